"""The loss of connectionist temporal classification, by the sums over all alignments up to each step."""

from collections.abc import Sequence

import torch

from weir.torch.operators import stop_gradient


def _add_logs(terms: Sequence[torch.Tensor]) -> torch.Tensor:
    """Returns the log of the sum of exponentials; of -inf alone it is -inf, without a gradient."""
    largest = stop_gradient(torch.stack(list(terms)).amax(0))
    base = torch.where(largest > float("-inf"), largest, torch.zeros((), dtype=largest.dtype))
    total = sum(torch.exp(term - base) for term in terms)
    is_some = ~(total <= 0)  # of NaNs, too
    logs = torch.log(torch.where(is_some, total, torch.ones((), dtype=total.dtype))) + base
    return torch.where(is_some, logs, torch.full((), float("-inf"), dtype=total.dtype))


def _split(targets: torch.Tensor, lengths: torch.Tensor, longest: int) -> torch.Tensor:
    """Returns targets that follow each other in rows of their own."""
    start = lengths.cumsum(0) - lengths
    place = start.unsqueeze(1) + torch.arange(longest)
    return targets[torch.minimum(place, torch.full((), max(targets.shape[0] - 1, 0), dtype=torch.int64))]


def ctc_loss(log_probs: torch.Tensor, targets: torch.Tensor, input_lengths: torch.Tensor | Sequence[int],
             target_lengths: torch.Tensor | Sequence[int], blank: int = 0, reduction: int | str = 1,
             zero_infinity: bool = False) -> torch.Tensor:
    """Rows [t, n, classes] of log probabilities. Labels [n, s], or those of all sequences behind each other.

    The gradient is PyTorch's, which is that of what log_softmax made the probabilities of.
    """
    is_single = log_probs.dim() == 2
    if is_single:
        log_probs = log_probs.unsqueeze(1)
        targets = targets.unsqueeze(0) if targets.dim() == 1 else targets
    steps, count, _ = log_probs.shape
    device = log_probs.device
    spans, lengths = (torch.as_tensor(each, device=device).reshape(-1).to(torch.int64)
                      for each in (input_lengths, target_lengths))
    targets = targets.to(torch.int64)
    if targets.dim() == 1:
        known = not isinstance(target_lengths, torch.Tensor)
        targets = _split(targets, lengths, max(target_lengths) if known else min(targets.shape[0], steps))
    longest = targets.shape[1]
    # States: a blank before, between and after labels.
    labels = torch.full((count, longest, 2), blank, dtype=torch.int64)
    labels = torch.cat([labels[..., :1], targets.unsqueeze(2)], 2).reshape(count, 2 * longest)
    labels = torch.cat([labels, torch.full((count, 1), blank, dtype=torch.int64)], 1)
    # Elements after a target's length may be any number.
    state = torch.arange(2 * longest + 1, device=device)
    labels = torch.where(state <= 2 * lengths.unsqueeze(1), labels, torch.full((), blank, dtype=torch.int64))
    emitted = log_probs.gather(2, labels.unsqueeze(0).expand(steps, -1, -1))
    never = torch.full((), float("-inf"), dtype=log_probs.dtype)
    is_new = torch.cat([torch.zeros((count, 2), dtype=torch.bool), labels[:, 2:] != labels[:, :-2]], 1)[:, :2 * longest + 1]

    def shift(rows: torch.Tensor, by: int) -> torch.Tensor:
        return torch.constant_pad_nd(rows, [by, 0], float("-inf"))[:, :2 * longest + 1]

    sums = torch.where((state < 2) & (state <= 2 * lengths.unsqueeze(1)), emitted[0], never) if steps else None
    for step in range(1, steps):
        reached = _add_logs([sums, shift(sums, 1), torch.where(is_new, shift(sums, 2), never)]) + emitted[step]
        sums = torch.where((step < spans).unsqueeze(1), reached, sums)
    # The last label, or the blank behind it. Without a step there is an alignment of no label alone.
    is_last = (state == 2 * lengths.unsqueeze(1)) | (state == 2 * lengths.unsqueeze(1) - 1)
    ends = torch.where(is_last, sums, never)
    loss = -_add_logs(list(ends.unbind(1)))
    infinite = torch.full((), float("inf"), dtype=loss.dtype)
    loss = torch.where(spans == 0, torch.where(lengths == 0, torch.zeros((), dtype=loss.dtype), infinite), loss)
    loss = torch.where(lengths > longest, infinite, loss)
    # A sum of 0, whose gradient is the probability of each class.
    probability = torch.exp(log_probs)
    is_read = (torch.arange(steps, device=device).unsqueeze(1) < spans).unsqueeze(2) & (loss < infinite).unsqueeze(1)
    loss = loss + torch.where(is_read, probability - stop_gradient(probability), torch.zeros((), dtype=loss.dtype)).sum((0, 2))
    if zero_infinity:
        loss = torch.where(loss == infinite, torch.zeros((), dtype=loss.dtype), loss)
    if reduction in (1, "mean"):
        return (loss / lengths.clamp(min=1).to(loss.dtype)).mean()
    return loss.sum() if reduction in (2, "sum") else loss.squeeze(0) if is_single else loss

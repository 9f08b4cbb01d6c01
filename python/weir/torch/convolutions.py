"""Transposed convolutions of groups, as convolutions of an input with zeros between its elements."""

from collections.abc import Sequence

import torch

aten = torch.ops.aten


def convolution(x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor | None, stride: Sequence[int],
                padding: Sequence[int], dilation: Sequence[int], transposed: bool, output_padding: Sequence[int],
                groups: int) -> torch.Tensor:
    if not transposed or groups == 1:
        return NotImplemented
    rank = weight.dim() - 2
    stride, padding, dilation, output_padding = (
        list(each) * rank if len(each) == 1 else list(each) for each in (stride, padding, dilation, output_padding))
    pads = []
    for d in range(rank):
        dim = d + 2
        if stride[d] > 1:
            x = torch.constant_pad_nd(x.unsqueeze(dim + 1), [0, 0] * (x.dim() - dim - 1) + [0, stride[d] - 1], 0).flatten(dim, dim + 1)
            x = x.narrow(dim, 0, x.shape[dim] - stride[d] + 1)
        reach = dilation[d] * (weight.shape[dim] - 1) - padding[d]
        pads = [reach, reach + output_padding[d], *pads]
    x = torch.constant_pad_nd(x, pads, 0)
    # [in, out / groups, ..] becomes [out, in / groups, ..], from the end to the start.
    kernel = weight.unflatten(0, (groups, -1)).transpose(1, 2).flatten(0, 1).flip(list(range(2, rank + 2)))
    return aten.convolution.default(x, kernel, bias, [1] * rank, [0] * rank, dilation, False, [0] * rank, groups)


TABLE = {aten.convolution.default: convolution}

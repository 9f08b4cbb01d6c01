"""Fine-tunes SmolLM2-135M, or a twin of 4 layers, with LoRA or in full: train.py [--size=twin] [--mode=full] ...

Without --checkpoint the weights are random, from a seed: the run shows speed, memory and a falling loss, not a model of
English. --checkpoint=FOLDER takes config.json, model.safetensors and tokenizer.json of a model that was downloaded.
Writes to --output: losses.json, loss.svg, and trained.safetensors, which --resume continues from.
"""

import argparse
import json
import pathlib
import sys
import time

import torch
from model import SIZES, Bytes, Pieces, Text, compute_loss, make_model, read_docs

import weir


def read_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--size", choices=SIZES, default="135M")
    parser.add_argument("--mode", choices=["lora", "full"], default="lora")
    parser.add_argument("--checkpoint", type=pathlib.Path, help="a folder with a model that was downloaded")
    parser.add_argument("--text", type=pathlib.Path, help="a file of text to train on (default: Weir's own pages)")
    parser.add_argument("--steps", type=int, default=100)
    parser.add_argument("--batch", type=int, default=1)
    parser.add_argument("--sequence", type=int, default=128, help="tokens of a window")
    parser.add_argument("--learning-rate", type=float, help="its highest value (default: 1e-3, in mode full 3e-4)")
    parser.add_argument("--microbatches", type=int, default=1, help="batches whose gradients make one step")
    parser.add_argument("--device", default="auto")
    parser.add_argument("--memory-limit", help="max bytes between kernels, such as 100MB")
    parser.add_argument("--resume", type=pathlib.Path, help="a checkpoint that this script wrote")
    parser.add_argument("--output", type=pathlib.Path, default=pathlib.Path("smollm2"))
    return parser.parse_args()


def make_schedule(highest: float, steps: int):
    """Returns a learning rate by steps done: up over a tenth of them, then down to a tenth of it."""
    def rate(done: int) -> float:
        begin = max(1, steps // 10)
        return highest * (min(1, (done + 1) / begin) - 0.9 * max(0, done - begin) / max(1, steps - begin))

    return rate


def evaluate(step: weir.Step, text: Text, batches: int = 8) -> float:
    """Returns the mean loss over windows that are not trained on."""
    losses = []
    for number in range(batches):
        ids, following = text.draw(1, seed=number, evaluates=True)
        losses.append(float(compute_loss(step.predict(ids), following)))
    return sum(losses) / len(losses)


def sample(step: weir.Step, tokenizer: Bytes | Pieces, prompt: str, sequence: int, count: int = 40) -> str:
    """Returns the prompt and what the model continues it with, each token drawn from the ten likeliest."""
    generator = torch.Generator().manual_seed(0)
    ids = tokenizer.encode(prompt)
    for _ in range(count):
        window = torch.zeros(1, sequence, dtype=torch.int64)
        shown = ids[-sequence:]
        window[0, : len(shown)] = torch.tensor(shown)  # what follows does not matter: attention looks back
        values, tokens = step.predict(window)[0, len(shown) - 1].topk(10)
        ids.append(int(tokens[torch.multinomial(values.softmax(0), 1, generator=generator)]))
    return tokenizer.decode(ids)


def plot(losses: list[float], path: pathlib.Path) -> None:
    try:
        import matplotlib
    except ImportError:
        print("no picture: matplotlib is not installed")
        return
    matplotlib.use("svg")
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(figsize=(6, 3), layout="constrained")
    axes.plot(range(1, len(losses) + 1), losses)
    axes.set(xlabel="step", ylabel="loss", ylim=(0, None))
    figure.savefig(path)


def main() -> None:
    arguments = read_arguments()
    rate = arguments.learning_rate or (1e-3 if arguments.mode == "lora" else 3e-4)
    tokenizer = Pieces(arguments.checkpoint) if arguments.checkpoint else Bytes()
    text = Text(tokenizer, arguments.text.read_text() if arguments.text else read_docs(), arguments.sequence)
    module = make_model(arguments.size, arguments.mode, arguments.checkpoint)
    ids, following = text.draw(arguments.batch, seed=0)
    step = weir.compile_step(
        module, compute_loss, example=(ids,), targets={"following": following},
        optimizer=weir.AdamW(learning_rate=make_schedule(rate, arguments.steps)), clip_norm=1.0,
        accumulate=arguments.microbatches > 1, predict=(ids[:1],), device=arguments.device,
        memory_limit=arguments.memory_limit)
    print(step)
    if arguments.resume:
        step.load(arguments.resume)
    prompt = "A step is "
    print(f"before: loss {evaluate(step, text):.4f} on text that is not trained on\n  "
          f"{sample(step, tokenizer, prompt, arguments.sequence)!r}")
    losses, begin = [], time.monotonic()
    while step.steps < arguments.steps:
        seed = 1 + step.steps * arguments.microbatches
        for number in range(arguments.microbatches):
            ids, following = text.draw(arguments.batch, seed + number)
            call = step if number + 1 == arguments.microbatches else step.accumulate
            loss = call(ids, following=following)
        losses.append(float(loss))
        each = (time.monotonic() - begin) / len(losses)
        print(f"\rstep {step.steps} of {arguments.steps}  loss {losses[-1]:.4f}  {each:.3f} s a step  ",
              end="" if sys.stdout.isatty() else "\n", flush=True)
    print()
    print(f"after:  loss {evaluate(step, text):.4f} on text that is not trained on\n  "
          f"{sample(step, tokenizer, prompt, arguments.sequence)!r}")
    arguments.output.mkdir(parents=True, exist_ok=True)
    step.save(arguments.output / "trained.safetensors")
    (arguments.output / "losses.json").write_text(json.dumps(losses) + "\n")
    plot(losses, arguments.output / "loss.svg")


if __name__ == "__main__":
    main()

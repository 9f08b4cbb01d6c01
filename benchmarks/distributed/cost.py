"""Estimates a training step of a large language model on many GPUs: memory and messages of a rank, waiting.

    python benchmarks/distributed/cost.py [--model=7B|70B] [--batch=1024] [--tokens=4096] [--efficiency=0.5]

Prints the tables of docs/distributed-costs.md, which has the formulas and what they were checked against."""

import argparse
import dataclasses
import functools

from schedules import SCHEDULES, Outcome, get_order, simulate

# Of an H100 SXM: flops of dense bf16, memory, NVLink and InfiniBand (ConnectX-7) each way, by NVIDIA's data sheets.
FLOPS, MEMORY, NVLINK, NETWORK = 989.4e12, 80e9, 450e9, 50e9
GPUS_OF_A_NODE = 8


@dataclasses.dataclass(frozen=True)
class Model:
    """A decoder of Llama's kind: RMS norms, grouped keys, a gated MLP, its own head."""

    layers: int
    width: int
    heads: int
    key_heads: int
    hidden: int
    vocabulary: int

    @property
    def layer(self) -> int:
        """Parameters of a layer."""
        keys = self.width * self.key_heads // self.heads
        return 2 * self.width**2 + 2 * self.width * keys + 3 * self.width * self.hidden + 2 * self.width

    @property
    def parameters(self) -> int:
        return self.layers * self.layer + 2 * self.vocabulary * self.width + self.width

    def count_kept(self, tensor: int = 1) -> float:
        """Returns what backward needs of a layer, in elements for each token and each element of the width, on one of
        `tensor` ranks that share its products: the residual stream twice and both norms whole; queries, keys, values,
        attention and the three values of the MLP in parts."""
        whole = 4
        shared = 2 + 2 * self.key_heads / self.heads + 3 * self.hidden / self.width
        return whole + shared / tensor


MODELS = {
    "7B": Model(32, 4096, 32, 32, 11008, 32000),
    "70B": Model(80, 8192, 64, 8, 28672, 32000),
}


@dataclasses.dataclass(frozen=True)
class Bytes:
    """Bytes of a parameter, its gradient, its optimizer's state, and of an element of an activation."""

    parameter: int
    gradient: int
    state: int
    activation: int


KINDS = {"f32": Bytes(4, 4, 8, 4), "bf16": Bytes(2, 4, 12, 2)}  # bf16: the f32 parameter is state


@dataclasses.dataclass(frozen=True)
class Layout:
    """How ranks share the work. `sharded`: what data parallel ranks have a part of: "nothing", "state" (ZeRO-1), "all"
    (ZeRO-3, FSDP)."""

    data: int
    tensor: int = 1
    pipeline: int = 1
    sharded: str = "nothing"
    schedule: str = "1F1B"
    microbatch: int = 1  # sequences

    @property
    def gpus(self) -> int:
        return self.data * self.tensor * self.pipeline


@dataclasses.dataclass(frozen=True)
class Cost:
    """Of the rank that has most. Bytes are those that it sends; seconds assume that nothing overlaps."""

    parameters: float  # bytes, with gradients and state
    activations: float  # bytes
    data_bytes: float
    tensor_bytes: float
    pipeline_bytes: float
    idle: float  # share of the time of the pipeline
    compute: float  # seconds
    messages: float  # seconds

    @property
    def memory(self) -> float:
        return self.parameters + self.activations


@functools.cache
def run_schedule(name: str, ranks: int, microbatches: int) -> Outcome:
    """Returns what a schedule comes to if the three parts of a step take the same time."""
    if ranks == 1:
        return Outcome(3.0 * microbatches, 0.0, 1.0)
    return simulate(get_order(name, ranks, microbatches), SCHEDULES[name], (1.0, 1.0, 1.0))


def estimate(model: Model, layout: Layout, kind: Bytes, batch: int, tokens: int, efficiency: float) -> Cost:
    """Returns the cost of a step of `batch` sequences of `tokens` tokens. Errors: ValueError if they do not divide."""
    microbatches, rest = divmod(batch, layout.data * layout.microbatch)
    layers, odd = divmod(model.layers, layout.pipeline)
    if rest or odd or not microbatches:
        raise ValueError(f"{batch} sequences and {model.layers} layers do not divide among {layout}")
    pipeline = run_schedule(layout.schedule, layout.pipeline, microbatches)
    ends = model.vocabulary * model.width * (2 if layout.pipeline == 1 else 1)
    own = (layers * model.layer + ends) / layout.tensor
    others = (layout.data - 1) / layout.data
    if layout.sharded == "all":
        gathered = 2 * model.layer / layout.tensor * kind.parameter  # one in use, one on its way
        parameters = own * (kind.parameter + kind.gradient + kind.state) / layout.data + gathered
        data_bytes = others * own * (kind.gradient + 2 * kind.parameter * microbatches)
    elif layout.sharded == "state":
        parameters = own * (kind.parameter + kind.gradient + kind.state / layout.data)
        data_bytes = others * own * (kind.gradient + kind.parameter)
    else:
        parameters = own * (kind.parameter + kind.gradient + kind.state)
        data_bytes = 2 * others * own * kind.gradient
    element = layout.microbatch * tokens * model.width * kind.activation
    kept = layers * pipeline.held * element * model.count_kept(layout.tensor)
    scores = 2 * layout.microbatch * tokens * model.vocabulary / layout.tensor * 4  # f32, and their gradient
    tensor_bytes = 4 * 2 * (layout.tensor - 1) / layout.tensor * element * layers * microbatches
    stages = SCHEDULES[layout.schedule] if layout.pipeline > 1 else 0
    pipeline_bytes = 2 * stages * element * microbatches
    flops = batch * tokens * (6 * model.parameters + 6 * model.layers * model.width * tokens)  # causal attention
    compute = flops / layout.gpus / FLOPS / efficiency / (1 - pipeline.idle)
    inner = NVLINK if layout.gpus <= GPUS_OF_A_NODE else NETWORK
    messages = data_bytes / inner + tensor_bytes / NVLINK + pipeline_bytes / inner
    return Cost(parameters, kept + scores, data_bytes, tensor_bytes, pipeline_bytes, pipeline.idle, compute, messages)


LAYOUTS = {
    "7B": [Layout(8), Layout(8, sharded="state"), Layout(8, sharded="all"), Layout(64, sharded="state"),
           Layout(64, sharded="all"), Layout(16, pipeline=4, sharded="state"),
           Layout(16, pipeline=4, sharded="state", schedule="ZBVZeroBubble"), Layout(8, tensor=8, sharded="state"),
           Layout(512, sharded="state"), Layout(1024, sharded="all")],
    "70B": [Layout(64, sharded="all"), Layout(8, tensor=8, sharded="all"),
            Layout(2, tensor=8, pipeline=4, sharded="state"),
            Layout(64, tensor=8, sharded="state"), Layout(16, tensor=8, pipeline=4, sharded="state"),
            Layout(16, tensor=8, pipeline=4, sharded="state", schedule="ZBVZeroBubble"),
            Layout(16, tensor=8, pipeline=8, sharded="state"),
            Layout(16, tensor=8, pipeline=8, sharded="state", schedule="InterleavedZeroBubble"),
            Layout(16, tensor=8, pipeline=8, sharded="state", schedule="DualPipeV"), Layout(1024, sharded="all")],
}


def print_table(name: str, kind: Bytes, batch: int, tokens: int, efficiency: float) -> None:
    print("| GPUs | data x tensor x pipeline | shared by data ranks | schedule | parameters, gradients, state "
          "| activations | sends a step: data, tensor, pipeline | idle | compute | messages |")
    print("| --- " * 10 + "|")
    for layout in LAYOUTS[name]:
        cost = estimate(MODELS[name], layout, kind, batch, tokens, efficiency)
        fits = "" if cost.memory < MEMORY else ", too much"
        sent = ", ".join(f"{part / 1e9:.1f}" for part in (cost.data_bytes, cost.tensor_bytes, cost.pipeline_bytes))
        print(f"| {layout.gpus} | {layout.data} x {layout.tensor} x {layout.pipeline} | {layout.sharded} "
              f"| {layout.schedule if layout.pipeline > 1 else '-'} | {cost.parameters / 1e9:.1f} GB "
              f"| {cost.activations / 1e9:.1f} GB{fits} | {sent} GB | {cost.idle:.1%} | {cost.compute:.2f} s "
              f"| {cost.messages:.2f} s |")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", choices=MODELS, help="default both")
    parser.add_argument("--kind", choices=KINDS, default="bf16", help="of parameters and activations (default bf16)")
    parser.add_argument("--batch", type=int, default=1024, help="sequences of a step (default 1024)")
    parser.add_argument("--tokens", type=int, default=4096, help="of a sequence (default 4096)")
    parser.add_argument("--efficiency", type=float, default=0.5, help="share of the peak in compute (default 0.5)")
    options = parser.parse_args()
    for name in [options.model] if options.model else MODELS:
        print(f"\n{name}: {MODELS[name].parameters / 1e9:.2f} billion parameters\n")
        try:
            print_table(name, KINDS[options.kind], options.batch, options.tokens, options.efficiency)
        except ValueError as error:
            parser.error(str(error))


if __name__ == "__main__":
    main()

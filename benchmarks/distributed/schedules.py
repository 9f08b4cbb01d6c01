"""Pipeline schedules of PyTorch, simulated: how long ranks wait, and how many microbatches they hold.

    python benchmarks/distributed/schedules.py --ranks=4 --microbatches=8 [--times=1,1,1]

The orders are those of torch.distributed.pipelining; nothing runs. A stage's forward, gradient of inputs and gradient of
weights take the given times for all of a rank's layers, which its stages share equally."""

import argparse
import dataclasses
import itertools

import torch
from torch.distributed.pipelining import schedules as torch_schedules

# Name: stages a rank.
SCHEDULES = {"GPipe": 1, "1F1B": 1, "Interleaved1F1B": 2, "LoopedBFS": 2, "InterleavedZeroBubble": 2, "ZBVZeroBubble": 2,
             "DualPipeV": 2}
KINDS = {"FORWARD": "F", "BACKWARD_INPUT": "I", "BACKWARD_WEIGHT": "W", "FULL_BACKWARD": "B"}


@dataclasses.dataclass(frozen=True)
class Outcome:
    """The outcome of a schedule, in the unit of the given times."""

    seconds: float  # from the first forward to the last gradient
    idle: float  # share of the ranks' time, 0 to 1
    held: float  # max microbatches whose forward a rank keeps, in layers of the whole rank


class _Stage:
    """Stands for a stage of a pipeline where only its place is asked for."""

    def __init__(self, index: int, ranks: int, count: int):
        self.stage_index, self.num_stages, self.group_size, self.group_rank = index, count, ranks, index % ranks
        self.is_first, self.is_last, self.has_backward = index == 0, index == count - 1, False
        self.device, self.submod = torch.device("cpu"), None
        self.stage_index_to_group_rank = {i: i % ranks for i in range(count)}


def get_order(name: str, ranks: int, microbatches: int) -> dict[int, list]:
    """Returns the actions of each rank. Errors: ValueError for numbers that the schedule does not take."""
    stages = SCHEDULES[name]
    made = torch_schedules.get_schedule_class(name)
    count = ranks * stages
    if stages > 1:
        found = made([_Stage(i * ranks, ranks, count) for i in range(stages)], microbatches).pipeline_order
        return {rank: list(_list_steps(actions)) for rank, actions in found.items()}
    # PyTorch 2.13 counts the last rank's forwards of 1F1B from 1; both schedules take microbatches in order.
    order = {}
    for rank, actions in made(_Stage(0, ranks, count), microbatches)._get_pipeline_order().items():
        next_of: dict[str, itertools.count] = {}
        order[rank] = [(kind, stage, next(next_of.setdefault(kind, itertools.count())))
                       for kind, stage, _ in _list_steps(actions)]
    return order


def _list_steps(actions):
    """Yields (kind, stage, microbatch) with kind F, I, W or B, which is I and W in one."""
    for action in actions:
        if action is None:
            continue
        for step in action.sub_actions or (action,):
            kind = KINDS.get(step.computation_type.name, "")
            if kind:
                yield kind, step.stage_index, step.microbatch_index


def simulate(order: dict[int, list], stages: int, times: tuple[float, float, float]) -> Outcome:
    """Returns how long the ranks take where each step waits for those that it needs, and messages take no time."""
    forward, inputs, weights = (time / stages for time in times)
    durations = {"F": forward, "I": inputs, "W": weights, "B": inputs + weights}
    last = max(stage for steps in order.values() for _, stage, _ in steps)
    done: dict[tuple, float] = {}
    clocks, places = dict.fromkeys(order, 0.0), dict.fromkeys(order, 0)
    held, most = dict.fromkeys(order, 0), dict.fromkeys(order, 0)
    while any(places[rank] < len(order[rank]) for rank in order):
        moved = False
        for rank, steps in order.items():
            while places[rank] < len(steps):
                kind, stage, number = steps[places[rank]]
                needs = {"F": [("F", stage - 1, number)] if stage else [], "W": [("I", stage, number)]}.get(
                    kind, [("F", stage, number), *([("I", stage + 1, number)] if stage < last else [])])
                if any(need not in done for need in needs):
                    break
                clocks[rank] = max([clocks[rank], *(done[need] for need in needs)]) + durations[kind]
                done["I" if kind == "B" else kind, stage, number] = clocks[rank]
                held[rank] += {"F": 1, "B": -1, "W": -1, "I": 0}[kind]
                most[rank] = max(most[rank], held[rank])
                places[rank] += 1
                moved = True
        if not moved:
            raise ValueError("the order waits for itself")
    seconds = max(clocks.values())
    busy = sum(durations[kind] for steps in order.values() for kind, _, _ in steps)
    return Outcome(seconds, 1 - busy / (seconds * len(order)), max(most.values()) / stages)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--ranks", type=int, default=4)
    parser.add_argument("--microbatches", type=int, default=8)
    parser.add_argument("--times", default="1,1,1", help="of forward, gradient of inputs, gradient of weights")
    options = parser.parse_args()
    times = tuple(float(time) for time in options.times.split(","))
    if len(times) != 3 or min(times) <= 0:
        parser.error(f"--times={options.times}: expected three times above 0, such as 1,1,1")
    print("| schedule | time | idle | microbatches held |\n| --- | --- | --- | --- |")
    for name, stages in SCHEDULES.items():
        try:
            order = get_order(name, options.ranks, options.microbatches)
        except ValueError as error:
            print(f"| {name} | - | {error} | - |")
            continue
        made = simulate(order, stages, times)
        print(f"| {name} | {made.seconds:.2f} | {made.idle:.1%} | {made.held:.1f} |")


if __name__ == "__main__":
    main()

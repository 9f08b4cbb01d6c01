"""Loops of a plan, as docs/certificate.md has them: their edges, and their trips written out."""

from itertools import product


def contains(loop, command):
    return loop["first"] <= command < loop["end"]


def is_edge(loops, command):
    """Whether a barrier stands just before a loop, or at the end of one's commands."""
    return any(command + 1 in (loop["first"], loop["end"]) for loop in loops)


def goes_round(loops, barrier, first, second):
    """Whether the barrier ends a loop that has both commands."""
    return any(loop["end"] == barrier + 1 and contains(loop, first) and contains(loop, second) for loop in loops)


def choices(loops):
    """Returns trips of all loops, two or none each: for each two loops those where they and the loops around them
    run, and others only if they must."""
    def around(inner):
        return {i for i, loop in enumerate(loops) if "flag" not in loop
                or (inner and loop["first"] <= inner["first"] and inner["end"] <= loop["end"])}

    ones = [around(loop) for loop in (None, *loops)]
    return {tuple(2 if i in a | b else 0 for i in range(len(loops))) for a, b in product(ones, ones)}


def write_out(loops, trips, begin, end, following=0):
    """Yields the commands of [begin, end) in the order in which they run."""
    while begin < end:
        inner = next((i for i in range(following, len(loops)) if loops[i]["first"] >= begin), len(loops))
        stop = min(end, loops[inner]["first"]) if inner < len(loops) else end
        yield from range(begin, stop)
        begin, following = stop, inner
        if begin < end:
            for _ in range(trips[inner]):
                yield from write_out(loops, trips, loops[inner]["first"], loops[inner]["end"], inner + 1)
            begin = loops[inner]["end"]
            following = next((i for i in range(inner, len(loops)) if loops[i]["first"] >= begin), len(loops))


class Written:
    """A plan whose loops make given numbers of trips, as far as order is concerned."""

    def __init__(self, plan, walk_time, trips):
        order = list(write_out(plan.loops, trips, 0, len(plan.commands)))
        numbers = {c: d for d, c in enumerate(plan.at)}
        self.commands = [plan.commands[c] for c in order]
        self.moments = walk_time(self.commands)
        self.at = [i for i, c in enumerate(order) if c in numbers]
        self.uses = [[use._replace(dispatch=d) for use in plan.uses[numbers[order[i]]]] for d, i in enumerate(self.at)]
        self.runs = plan.runs


def made_twice(loops, arguments, writes):
    """Returns a value that is made inside and outside of a loop, or by two loops; None if there is none."""
    makers = {value: None for value in arguments if value >= 0}
    for value, command in writes if loops else ():
        loop = max((i for i, loop in enumerate(loops) if contains(loop, command)), default=None)
        if makers.setdefault(value, loop) != loop:
            return value
    for loop in loops:
        for _, _, _, _, inside, _, after in loop["carried"]:
            for value in inside, after:
                if value in makers:
                    return value
                makers[value] = None
    return None

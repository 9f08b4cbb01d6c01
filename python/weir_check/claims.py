"""The claims of docs/certificate.md about plans. Each is proved for one plan, or refuted by an example."""

from bisect import bisect_left, bisect_right
from heapq import heappop, heappush
from math import prod
from typing import NamedTuple

from . import loops
from .read import stored_bytes, tensor_bytes


class Fails(Exception):
    """A claim does not hold. The message is a counterexample."""


def need(holds, message):
    if not holds:
        raise Fails(message() if callable(message) else message)


class Use(NamedTuple):
    """An operand of a dispatch that has bytes and is accessed."""
    dispatch: int
    operand: int
    allocation: int
    begin: int
    end: int
    value: tuple  # of the byte at offset 0: (value, place), None without a value
    reads: bool
    writes: bool
    access: str
    covers_all: bool
    slice: list  # begin, bytes, stride, count of the bytes that it writes, or None
    before: tuple  # what the bytes hold that it inserts into, or None

    def __str__(self):
        return (f"operand {self.operand} of dispatch {self.dispatch}, bytes [{self.begin}, "
                f"{self.end}) of allocation {self.allocation}")


class Runs:
    """A state for each byte, stored once for each run of equal bytes."""

    def __init__(self, state):
        self.starts, self.states = [0], [state]

    def cut(self, at):
        """Makes a run begin at byte `at`, and returns its index."""
        i = bisect_left(self.starts, at)
        if i == len(self.starts) or self.starts[i] != at:
            self.starts.insert(i, at)
            self.states.insert(i, self.states[i - 1])
        return i

    def over(self, begin, end):
        """Returns the indices of the runs that make up bytes [begin, end), at least one byte."""
        first = self.cut(begin)
        return range(first, self.cut(end))

    def get(self, begin, end):
        return self.states[bisect_right(self.starts, begin) - 1:bisect_left(self.starts, end)]

    def put(self, begin, end, state):
        runs = self.over(begin, end)
        self.starts[runs.start:runs.stop] = [begin]
        self.states[runs.start:runs.stop] = [state]


class Moment(NamedTuple):
    """A command's place, and the number of commands of each queue that ended before it began."""
    queue: int
    position: int
    past: dict

    def is_before(self, other):
        return other.past.get(self.queue, 0) > self.position


def join(a, b):
    return a | {queue: count for queue, count in b.items() if count > a.get(queue, 0)}


def walk_time(commands, with_barriers=True):
    """Returns the moment of each command, by the rules of "Time"."""
    moments, counts, held, signals = [], {}, {}, {}
    for command in commands:
        queue = command.get("queue", 0)
        position, past = counts.get(queue, 0), held.get(queue, {})
        counts[queue] = position + 1
        kind = command["command"]
        if kind == "signal" or kind == "barrier" and with_barriers:
            past = past | {queue: position}
        after = past | {queue: position + 1}
        moments.append(Moment(queue, position, past))
        if kind == "signal":
            signals[command["signal"]] = after
        elif kind == "wait":
            held[queue] = join(past, signals[command["signal"]])
        elif kind == "barrier" and with_barriers:
            held[queue] = after
    return moments


class Plan:
    """One plan, with what several claims need of it. Requires that `ranges` holds."""

    def __init__(self, manifest, entry, profile, plan):
        self.manifest, self.entry, self.profile, self.plan = manifest, entry, profile, plan
        self.commands, self.kernels = plan["commands"], plan["kernels"]
        self.allocations = plan["allocations"]
        self.loops = plan.get("loops", [])
        check_ranges(self)
        self.at = [i for i, c in enumerate(self.commands) if c["command"] == "dispatch"]
        self.dispatches = [self.commands[i] for i in self.at]
        self.moments = walk_time(self.commands)
        self.uses, self.use_at = [], {}  # a list for each dispatch; by dispatch and operand
        for d, dispatch in enumerate(self.dispatches):
            self.uses.append([])
            for o, kernel_operand in enumerate(self.kernels[dispatch["kernel"]]["operands"]):
                allocation, offset, size, *value = dispatch["operands"][o]
                access = kernel_operand["access"]
                if size and access != "none":
                    use = Use(d, o, allocation, offset, offset + size,
                              (value[0], offset - value[1]) if value else None,
                              access in ("read", "update"), access in ("write", "update"), access,
                              kernel_operand["covers_all"], kernel_operand.get("slice"),
                              (value[2], offset - value[1]) if len(value) == 3 else None)
                    self.uses[d].append(use)
                    self.use_at[d, o] = use

    def is_in(self, use, kind):
        return self.allocations[use.allocation]["kind"] == kind

    def waves_of(self, loop):
        """Returns the waves of a loop's dispatches, in order."""
        return sorted(dispatch["wave"] for c, dispatch in zip(self.at, self.dispatches) if loops.contains(loop, c))

    def runs(self, state):
        return [Runs(state) for _ in self.allocations]


def check_view(plan, view, what):
    allocation, offset, size = view[:3]
    need(0 <= allocation < len(plan.allocations), f"{what} names no allocation, {allocation}")
    need(offset >= 0 and size >= 0 and offset + size <= plan.allocations[allocation]["bytes"],
         f"{what}, bytes [{offset}, {offset + size}), leaves allocation {allocation}")


def check_operand(plan, operand, kernel_operand, what):
    check_view(plan, operand, what)
    need(operand[2] == kernel_operand["bytes"] <= plan.profile["bytes_per_binding"],
         f"{what} has {operand[2]} bytes, not its kernel's {kernel_operand['bytes']} or too many")
    values = plan.plan["values"]
    if len(operand) == 3:
        return
    value, begin, *before = operand[3:]
    for number in value, *before:
        need(0 <= number < len(values), f"{what} names no value, {number}")
        need(0 <= begin and begin + operand[2] <= values[number][1],
             f"{what} has bytes [{begin}, {begin + operand[2]}) of value {number}, "
             f"which has {values[number][1]}")
    need(not before or (kernel_operand["access"] in ("write", "update") and not kernel_operand["covers_all"]),
         f"{what} inserts, and its kernel does not write some of it")


def check_commands(plan):
    dispatches = [c for c in plan.commands if c["command"] == "dispatch"]
    d, signals = 0, {}
    for c, command in enumerate(plan.commands):
        for view in command.get("memory", ()):
            check_view(plan, view, f"memory of command {c}")
        if command["command"] == "dispatch":
            need(0 <= command["kernel"] < len(plan.kernels), f"dispatch {d} names no kernel")
            operands = plan.kernels[command["kernel"]]["operands"]
            need(len(command["operands"]) == len(operands),
                 f"dispatch {d} has {len(command['operands'])} views, its kernel {len(operands)}")
            for o, (operand, kernel_operand) in enumerate(zip(command["operands"], operands)):
                check_operand(plan, operand, kernel_operand, f"operand {o} of dispatch {d}")
            d += 1
        elif command["command"] == "signal":
            need(command["signal"] not in signals, f"command {c} signals a second time")
            signals[command["signal"]] = command.get("queue", 0)
        elif command["command"] == "wait":
            need(signals.get(command["signal"], command.get("queue", 0)) != command.get("queue", 0),
                 f"command {c} waits for no signal recorded before it on another queue")
        for _, *ends in command.get("hazards", ()):
            for dispatch, operand in (ends[:2], ends[2:]):
                need(0 <= dispatch < len(dispatches)
                     and 0 <= operand < len(dispatches[dispatch]["operands"]),
                     f"a hazard of command {c} names no operand {operand} of dispatch {dispatch}")


def check_allocations(plan):
    constants = plan.manifest["constants"]
    sizes = {"constants": max((c["offset"] + tensor_bytes(c) for c in constants), default=0),
             "arena": plan.plan["arena_bytes"]}
    seen, results = set(), set()
    for a, allocation in enumerate(plan.allocations):
        kind, index = allocation["kind"], allocation["index"]
        if kind in sizes:
            need(index == 0, f"allocation {a}, {kind}, has an index")
            size = sizes[kind]
        else:
            tensors = plan.entry[kind + "s"]
            need(0 <= index < len(tensors), f"allocation {a} is of no {kind}, {index}")
            size = stored_bytes(tensors[index], plan.profile)
        need((kind, index) not in seen, f"allocation {a} is the second of its {kind}")
        need(kind != "constants" or constants, f"allocation {a} is of no constants")
        seen.add((kind, index))
        need(allocation["bytes"] == size, f"allocation {a} has {allocation['bytes']} bytes, its "
             f"{kind} {size}")
        result = index if kind == "result" else allocation.get("result")
        if result is not None:
            need(kind in ("argument", "result"), f"allocation {a}, {kind}, names a result")
            need(kind == "argument" or "result" not in allocation,
                 f"allocation {a}, a result, names one")
            need(0 <= result < len(plan.entry["results"]), f"allocation {a} names no result")
            need(stored_bytes(plan.entry["results"][result], plan.profile) == size,
                 f"allocation {a} has other bytes than its result {result}")
            need(result not in results, f"result {result} is in two allocations")
            results.add(result)
    need(sizes["arena"] == 0 or ("arena", 0) in seen, "the arena has no allocation")


def check_ranges(plan):
    check_allocations(plan)
    values = plan.plan["values"]
    for kind in "argument", "result":
        have, tensors = plan.plan[f"{kind}_values"], plan.entry[f"{kind}s"]
        need(len(have) == len(tensors), f"there are {len(have)} {kind} values for {len(tensors)}")
        for i, (value, tensor) in enumerate(zip(have, tensors)):
            need(-1 <= value < len(values), f"{kind} {i} names no value, {value}")
            size = values[value][1] if value >= 0 else 0
            needed = stored_bytes(tensor, plan.profile)
            need(size == needed, f"{kind} {i} has {needed} bytes, its value {size}")
    named = [value for value in plan.plan["argument_values"] if value >= 0]
    need(len(set(named)) == len(named), "two arguments are one value")
    for k, kernel in enumerate(plan.kernels):
        for pair in kernel.get("in_place", ()):
            need(all(0 <= o < len(kernel["operands"]) for o in pair)
                 and [kernel["operands"][o]["access"] for o in pair] == ["read", "write"],
                 f"in_place of kernel {k}, {pair}, is not of a read and a write")
    check_commands(plan)
    names = [part[0] for part in plan.plan.get("parts", ())]
    need(len(set(names)) == len(names), "two parts of results have one name")
    for part, result, begin, count, _ in plan.plan.get("parts", ()):
        need(result < len(plan.entry["results"])
             and begin + count <= tensor_bytes(plan.entry["results"][result]),
             f"part {part!r}, {count} bytes from {begin}, leaves result {result}")
    check_loops(plan)


def check_loops(plan):
    around = []
    for i, loop in enumerate(plan.loops):
        need(loop["first"] < loop["end"] <= len(plan.commands), f"loop {i} is not of commands that there are")
        need(i == 0 or (plan.loops[i - 1]["first"], -plan.loops[i - 1]["end"]) < (loop["first"], -loop["end"]),
             f"loop {i} stands out of order")
        around = [end for end in around if end > loop["first"]]
        need(all(loop["end"] <= end for end in around), f"loop {i} ends behind one in which it begins")
        around.append(loop["end"])
        for view in loop["carried"]:
            check_view(plan, view, f"a carried value of loop {i}")
            need(all(value < len(plan.plan["values"]) and plan.plan["values"][value][1] == view[2]
                     for value in view[3:]), f"a carried value of loop {i} has other bytes than its values")
        if "flag" in loop:
            check_view(plan, loop["flag"], f"the flag of loop {i}")
            need(loop["flag"][2] == 1 and any(view[:2] == loop["flag"][:2] for view in loop["carried"]),
                 f"the flag of loop {i} is not the first byte of a carried value")
    need(not (plan.loops and plan.plan.get("parts")), "a plan with loops has parts of results")
    for c, command in enumerate(plan.commands if plan.loops else ()):
        need(command.get("queue", 0) == 0 and command["command"] in ("dispatch", "barrier"),
             f"command {c} is of another queue, in a plan with loops")


def prove_ranges(plan):
    return f"{sum(map(len, plan.uses))} uses in {len(plan.allocations)} allocations"


class Seen(NamedTuple):
    """The uses of a byte from its last write on."""
    writer: Use = None
    shown: dict = {}  # by queue the first barrier or signal after the write that shows it
    readers: dict = {}  # by queue the last use that reads it


def order_use(plan, use, state):
    moment, writer = plan.moments[plan.at[use.dispatch]], state.writer
    earlier = [writer] if writer else []
    earlier += state.readers.values() if use.writes else ()
    for other in earlier:
        need(plan.moments[plan.at[other.dispatch]].is_before(moment),
             lambda: f"{other}, conflicts with {use}, and does not end before")
    need(not writer or any(shower.is_before(moment) for shower in state.shown.values()),
         lambda: f"what is written by {writer}, is not made visible to {use}")


def show(plan, runs, moment, views):
    for allocation, offset, size in views:
        states = runs[allocation].states
        for i in runs[allocation].over(offset, offset + size) if size else ():
            state = states[i]
            if (state.writer and moment.queue not in state.shown
                    and plan.moments[plan.at[state.writer.dispatch]].is_before(moment)):
                states[i] = state._replace(shown=state.shown | {moment.queue: moment})


def prove_order(plan):
    if not plan.loops:
        return f"{order_all(plan)} runs of bytes used, each after and in sight of what it must be"
    checked = max(order_all(loops.Written(plan, walk_time, trips)) for trips in loops.choices(plan.loops))
    return f"{checked} runs of bytes used in two trips, each after and in sight of what it must be"


def order_all(plan):
    runs, d, checked = plan.runs(Seen()), 0, 0
    for moment, command in zip(plan.moments, plan.commands):
        show(plan, runs, moment, command.get("memory", ()))
        if command["command"] != "dispatch":
            continue
        for use in plan.uses[d]:
            for state in runs[use.allocation].get(use.begin, use.end):
                order_use(plan, use, state)
                checked += 1
        for use in plan.uses[d]:
            if not use.writes:
                states = runs[use.allocation].states
                for i in runs[use.allocation].over(use.begin, use.end):
                    readers = states[i].readers | {moment.queue: use}
                    states[i] = states[i]._replace(readers=readers)
        for use in plan.uses[d]:
            if use.writes:
                runs[use.allocation].put(use.begin, use.end, Seen(use))
        d += 1
    return checked


def share(a, b):
    return a.allocation == b.allocation and a.begin < b.end and b.begin < a.end


def prove_in_place(plan):
    pairs = 0
    for dispatch, uses in zip(plan.dispatches, plan.uses):
        allowed = plan.kernels[dispatch["kernel"]].get("in_place", [])
        for written in filter(lambda use: use.writes, uses):
            for use in uses:
                if use is written or not share(use, written):
                    continue
                need(use[2:5] == written[2:5] and written.access == "write" and not use.writes
                     and [use.operand, written.operand] in allowed,
                     lambda: f"{written}, is written while {use}, is used, and no pair allows it")
                pairs += 1
    return f"{pairs} operands written in place"


def prove_barriers(plan):
    waits_alone, last, barriers = walk_time(plan.commands, with_barriers=False), {}, 0
    for c, command in enumerate(plan.commands):
        if command["command"] != "barrier":
            continue
        barriers += 1
        need(command["hazards"], f"the barrier at command {c} states no hazard")
        for kind, *ends in command["hazards"]:
            first, second = (plan.use_at.get(tuple(end)) for end in (ends[:2], ends[2:]))
            need(first and second, lambda: f"a hazard of the barrier at command {c}, {kind} "
                 f"{ends}, has an end that uses no bytes")
            need(first.reads if kind == "war" else first.writes,
                 lambda: f"{first}, cannot be the first end of a {kind} hazard")
            need(second.reads if kind == "raw" else second.writes,
                 lambda: f"{second}, cannot be the second end of a {kind} hazard")
            need(share(first, second), lambda: f"{first}, and {second}, share no byte")
            need(plan.at[ends[0]] < c < plan.at[ends[2]]
                 or loops.goes_round(plan.loops, c, plan.at[ends[0]], plan.at[ends[2]]),
                 lambda: f"the barrier at command {c} is not between {first}, and {second}")
        if loops.is_edge(plan.loops, c):
            continue
        begin, end = command["hazards"][0][1], command["hazards"][0][3]
        queue = plan.moments[c].queue
        first, second = waits_alone[plan.at[begin]], waits_alone[plan.at[end]]
        need(first.queue == second.queue == queue,
             f"the first hazard of the barrier at command {c} is of another queue")
        need(not first.is_before(second), f"the barrier at command {c} is not needed: dispatch "
             f"{end} comes after {begin} without it")
        need(last.get(queue, -1) <= begin, f"the barrier at command {c} is not needed: its first "
             f"hazard is from dispatch {begin}, that of the one before to {last.get(queue)}")
        last[queue] = end
    return f"{barriers} barriers, none without need"


def prove_waves(plan):
    for i, loop in enumerate(plan.loops):
        own = plan.waves_of(loop)
        for c, dispatch in zip(plan.at, plan.dispatches):
            need(not own or loops.contains(loop, c) or not own[0] <= dispatch["wave"] <= own[-1],
                 f"command {c}, outside of loop {i}, is of its waves")
    waves = {}
    for dispatch, uses in zip(plan.dispatches, plan.uses):
        wave = waves.setdefault(dispatch["wave"], {})
        for use in uses:
            runs = wave.setdefault(use.allocation, Runs((None, None)))
            states = runs.states
            for i in runs.over(use.begin, use.end):
                writer, user = states[i]  # its first ones
                for other in [writer] + [user] * use.writes:
                    need(other is None or other.dispatch == use.dispatch,
                         lambda: f"{other}, conflicts with {use}, of the same wave")
                states[i] = (writer or (use if use.writes else None), user or use)
    return f"{len(waves)} waves"


def put_slot(slots, active, s):
    """Adds slot `s` to the ordered slots `active`. Fails if it shares bytes with one of them."""
    begin, end = slots[s][1], slots[s][1] + slots[s][2]
    i = bisect_left(active, (begin,))
    for other in active[max(i - 1, 0):i + 1]:
        need(other[0] >= end or other[1] <= begin,
             f"slots {other[2]} and {s} share bytes and waves from {slots[s][4]} on")
    active.insert(i, (begin, end, s))


def prove_slots(plan):
    slots = plan.plan["slots"]
    for s, (_, offset, size, _, first, last) in enumerate(slots):
        need(offset >= 0 and size >= 0 and offset + size <= plan.plan["arena_bytes"],
             f"slot {s}, bytes [{offset}, {offset + size}), leaves the arena")
        need(first <= last, f"slot {s} ends before it begins")
    uses = [(plan.dispatches[d]["wave"], 1, d, use) for d, uses in enumerate(plan.uses)
            for use in uses if plan.is_in(use, "arena")]
    starts = [(slot[4], 0, s, None) for s, slot in enumerate(slots) if slot[2]]
    active, ends = [], []
    for wave, is_use, s, use in sorted(uses + starts, key=lambda event: event[:3]):
        while ends and ends[0][0] < wave:
            _, begin = heappop(ends)
            del active[bisect_left(active, (begin,))]
        if not is_use:
            put_slot(slots, active, s)
            heappush(ends, (slots[s][5], slots[s][1]))
            continue
        i = bisect_right(active, use.begin, key=lambda slot: slot[0]) - 1
        need(i >= 0 and active[i][1] >= use.end,
             lambda: f"{use}, lies in no slot in wave {wave}")
    for i, loop in enumerate(plan.loops):
        live_throughout(plan, i, loop)
    return f"{len(slots)} slots, each of {len(uses)} uses in one"


def live_throughout(plan, i, loop):
    """Checks that slots which live inside and outside of a loop, and those of carried values, live in all its waves."""
    waves = plan.waves_of(loop)
    if not waves:
        return
    slots = [slot for slot in plan.plan["slots"] if slot[2]]
    whole = [slot for slot in slots if slot[4] <= waves[0] and waves[-1] <= slot[5]]
    for slot in slots:
        inside = slot[4] <= waves[-1] and waves[0] <= slot[5]
        outside = slot[4] < waves[0] or waves[-1] < slot[5]
        need(not (inside and outside) or slot in whole,
             f"slot {slot[0]!r}, of waves {slot[4]} to {slot[5]}, lives inside and outside of loop {i}, not in all of it")
    for allocation, offset, size, *_ in loop["carried"]:
        need(not size or plan.allocations[allocation]["kind"] != "arena"
             or any(slot[1] <= offset and offset + size <= slot[1] + slot[2] for slot in whole),
             f"bytes [{offset}, {offset + size}) that loop {i} carries are in no slot of all its waves")


def is_sure(use):
    """Whether a write states which bytes hold its value afterwards."""
    return use.covers_all or use.slice is not None and not use.before


def written_runs(use):
    begin, size, stride, count = use.slice or (0, use.end - use.begin, 0, 1)
    return ((at, at + size) for at in (use.begin + begin + i * stride for i in range(count)))


def read_all(plan, runs, uses):
    reads = 0
    for use in uses:
        constant = plan.is_in(use, "constants")
        need(constant == (use.value is None), lambda: f"{use}, has "
             f"{'a' if constant else 'no'} value")
        if use.reads and not constant:
            reads += 1
            expected = use.before or use.value
            for held in runs[use.allocation].get(use.begin, use.end):
                need(held == expected, lambda: f"{use}, must hold {describe(expected)}, and "
                     f"holds {describe(held)}")
    return reads


def write_all(runs, uses):
    for use in uses:
        if use.writes and not is_sure(use):
            states = runs[use.allocation].states
            for i in runs[use.allocation].over(use.begin, use.end):
                need(not use.before or states[i] == use.before, lambda: f"{use}, must hold "
                     f"{describe(use.before)} to be inserted into, and holds "
                     f"{describe(states[i])}")
                states[i] = use.value if states[i] == use.value or use.before else None
    for use in uses:
        if use.writes and is_sure(use):
            for begin, end in written_runs(use):
                runs[use.allocation].put(begin, end, use.value)


def go_round(plan, runs, loop, due, then):
    """Checks that the carried bytes hold values `due`, and makes them hold `then`; forgets what else a loop writes."""
    for allocation, offset, size, *values in loop["carried"]:
        for held in runs[allocation].get(offset, offset + size) if size else ():
            need(held == (values[due], offset), lambda: f"bytes [{offset}, {offset + size}) of allocation "
                 f"{allocation} must hold value {values[due]} at the edge of the loop at command {loop['first']}, "
                 f"and hold {describe(held)}")
    for uses in plan.uses:
        for use in uses:
            if use.writes and loop["first"] <= plan.at[use.dispatch] < loop["end"]:
                runs[use.allocation].put(use.begin, use.end, None)
    for allocation, offset, size, *values in loop["carried"]:
        if size:
            runs[allocation].put(offset, offset + size, (values[then], offset))


INIT, INSIDE, NEXT, AFTER = range(4)  # of a carried value


def prove_contents(plan):
    runs, arguments = plan.runs(None), plan.plan["argument_values"]
    homes = {}
    for a, allocation in enumerate(plan.allocations):
        if allocation["kind"] == "argument":
            if allocation["bytes"]:
                runs[a].put(0, allocation["bytes"], (arguments[allocation["index"]], 0))
        is_result = allocation["kind"] == "result"
        homes[allocation["index"] if is_result else allocation.get("result")] = a
    reads, d = 0, 0
    twice = loops.made_twice(plan.loops, arguments, [
        (use.value[0], plan.at[use.dispatch]) for uses in plan.uses for use in uses if use.writes and use.value])
    need(twice is None, lambda: f"value {twice} is made inside and outside of a loop, or by two")
    for c in range(len(plan.commands) + 1):
        for loop in reversed(plan.loops):
            if loop["end"] == c:
                go_round(plan, runs, loop, NEXT, AFTER)
        for loop in plan.loops:
            if loop["first"] == c:
                go_round(plan, runs, loop, INIT, INSIDE)
        if c < len(plan.commands) and plan.commands[c]["command"] == "dispatch":
            reads += read_all(plan, runs, plan.uses[d])
            write_all(runs, plan.uses[d])
            d += 1
    for r, tensor in enumerate(plan.entry["results"]):
        size = stored_bytes(tensor, plan.profile)
        if size:
            need(r in homes, f"result {r} has no allocation")
            for held in runs[homes[r]].get(0, size):
                value = (plan.plan["result_values"][r], 0)
                need(held == value, lambda: f"result {r}, allocation {homes[r]}, must end as "
                     f"{describe(value)}, and holds {describe(held)}")
    return f"{reads} reads of the value meant"


def describe(held):
    return f"value {held[0]} from byte {held[1]} of the allocation on" if held else "nothing"


def prove_parts(plan):
    parts = plan.plan.get("parts", [])
    places = sorted(parts, key=lambda part: part[1:3])
    for one, other in zip(places, places[1:]):
        need(one[1] != other[1] or one[2] + one[3] <= other[2],
             f"parts {one[0]!r} and {other[0]!r} share bytes of result {other[1]}")
    homes = {allocation["index"] if allocation["kind"] == "result" else allocation.get("result"): a
             for a, allocation in enumerate(plan.allocations)}
    for part, result, begin, count, wave in parts:
        waves = [dispatch["wave"] for dispatch, uses in zip(plan.dispatches, plan.uses) for use in uses
                 if use.writes and use.allocation == homes.get(result)
                 and use.begin < begin + count and begin < use.end]
        need(waves, f"part {part!r} is written by no dispatch")
        need(max(waves) == wave, f"part {part!r} is final after wave {max(waves)}, not {wave}")
    return f"{len(parts)} parts of results, each written last in its wave"


def prove_read_only(plan):
    arguments = plan.entry["arguments"]
    for a, allocation in enumerate(plan.allocations):
        if "result" in allocation:
            need(arguments[allocation["index"]]["donate"],
                 f"allocation {a} gives its bytes to a result, and is not donated")
    for use in (use for uses in plan.uses for use in uses if use.writes):
        allocation = plan.allocations[use.allocation]
        need(allocation["kind"] != "constants", lambda: f"{use}, writes the constants")
        need(allocation["kind"] != "argument" or arguments[allocation["index"]]["donate"],
             lambda: f"{use}, writes an argument that is not donated")
    return "no write to constants or to arguments that are not donated"


def prove_alignment(plan):
    for k, kernel in enumerate(plan.kernels):
        for o, operand in enumerate(kernel["operands"]):
            need(operand["alignment"] <= 256,
                 f"operand {o} of kernel {k} has alignment {operand['alignment']}, expected 1, 2, 4 ... 256")
    for d, dispatch in enumerate(plan.dispatches):
        for o, kernel_operand in enumerate(plan.kernels[dispatch["kernel"]]["operands"]):
            _, offset, size = dispatch["operands"][o][:3]
            for alignment in kernel_operand["alignment"], plan.profile["offset_alignment"]:
                need(not size or offset % alignment == 0,
                     f"operand {o} of dispatch {d} begins at byte {offset}, not a multiple of "
                     f"{alignment}")
    for s, (_, offset, _, alignment, _, _) in enumerate(plan.plan["slots"]):
        need(alignment >= 1 and offset % alignment == 0,
             f"slot {s} begins at byte {offset}, which is not a multiple of {alignment}")
    return f"{len(plan.plan['slots'])} slots and {len(plan.dispatches)} dispatches"


def prove_limits(plan):
    most, slots = plan.profile["max_workgroup_size"], plan.profile["storage_buffers_per_stage"]
    for k, kernel in enumerate(plan.kernels):
        need(prod(kernel["workgroup"]) <= most,
             f"kernel {k} has {kernel['workgroup']} invocations, more than {most}")
        need(kernel.get("workgroup_memory", 0) <= plan.profile["workgroup_memory"],
             f"kernel {k} is launched with more workgroup memory than the target has")
        need("tensor_maps" not in kernel or plan.profile["sm"] >= 90,
             f"kernel {k} has tensor maps, which GPUs have from sm_90 on")
        need(len(kernel["operands"]) <= slots, f"kernel {k} has more than {slots} operands")
    for d, dispatch in enumerate(plan.dispatches):
        need(all(1 <= n <= m for n, m in zip(dispatch["grid"], plan.profile["max_grid"])),
             f"dispatch {d} has the grid {dispatch['grid']}, at most {plan.profile['max_grid']}")
    return f"{len(plan.kernels)} kernels and {len(plan.dispatches)} grids"


CLAIMS = {"ranges": prove_ranges, "order": prove_order, "in place": prove_in_place,
          "barriers": prove_barriers, "waves": prove_waves, "slots": prove_slots,
          "contents": prove_contents, "parts": prove_parts, "read-only": prove_read_only,
          "alignment": prove_alignment, "limits": prove_limits}


def check_plan(manifest, entry, profile, plan):
    """Yields (claim, holds, detail) of each claim; of `ranges` alone if that fails."""
    try:
        prepared = Plan(manifest, entry, profile, plan)
    except Fails as fails:
        yield "ranges", False, str(fails)
        return
    for claim, prove in CLAIMS.items():
        try:
            yield claim, True, prove(prepared)
        except Fails as fails:
            yield claim, False, str(fails)

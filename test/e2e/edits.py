"""Seeded random edits of an artifact's JSON, from a number changed to dispatches swapped."""

import json
import subprocess
import zipfile

from conftest import BIN, ROOT

WORDS = ["none", "read", "write", "update", "raw", "war", "waw", "argument", "result", "constants",
         "arena", "I64", "U8", "barrier", "signal", "wait", ""]


def read_documents(path):
    """Returns {path: JSON} and {path: bytes} of an artifact, its graph left out."""
    documents, rest = {}, {}
    with zipfile.ZipFile(path) as archive:
        for name in archive.namelist():
            if name.endswith(".json"):
                documents[name] = json.loads(archive.read(name))
            elif not name.startswith("ir/"):
                rest[name] = archive.read(name)
    return documents, rest


def write_documents(path, documents, rest):
    files = rest | {name: json.dumps(document).encode() for name, document in documents.items()}
    with zipfile.ZipFile(path, "w") as archive:
        for name in sorted(files):
            archive.writestr(zipfile.ZipInfo(name), files[name])


def get_plan(artifact, entry="f"):
    """For Vulkan."""
    with zipfile.ZipFile(artifact) as archive:
        return json.loads(archive.read(f"plan/vulkan/{entry}.json"))


def edit_plan(path, artifact, plan, target="vulkan"):
    """Writes `artifact` with another plan for a target, of its entry f."""
    with zipfile.ZipFile(artifact) as old, zipfile.ZipFile(path, "w", zipfile.ZIP_STORED) as new:
        for entry in old.infolist():
            data = old.read(entry.filename)
            new.writestr(entry, json.dumps(plan).encode() if entry.filename == f"plan/{target}/f.json" else data)


def run_checkers(artifact):
    """weir verify and weir_check, ended."""
    return [subprocess.run([*command, artifact], capture_output=True, text=True, cwd=ROOT / "python")
            for command in ([BIN / "weir", "verify"], ["python3", "-m", "weir_check"])]


def find_places(node, wanted, place="", found=None):
    """Gathers (container, key) of nodes of the `wanted` types, by where they stand: of all
    elements of a list of objects alike, of a row by column."""
    found = {} if found is None else found
    items = node.items() if type(node) is dict else enumerate(node)
    for key, child in items:
        is_column = type(node) is list and not any(type(c) is dict or type(c) is list for c in node)
        at = f"{place}.{key if type(node) is dict or is_column else '*'}"
        if type(child) in wanted:
            found.setdefault(at, []).append((node, key))
        if type(child) in (dict, list):
            find_places(child, wanted, at, found)
    return found


def choose(random, document, *wanted):
    places = find_places(document, wanted)
    at = random.choice(sorted(places))
    container, key = random.choice(places[at])
    return container, key, [c[k] for c, k in places[at]]


def change_value(random, document, plan):
    container, key, alike = choose(random, document, int, bool, str)
    value = container[key]
    if type(value) is bool:
        container[key] = not value
    elif type(value) is str:
        container[key] = random.choice(alike + WORDS)
    else:
        container[key] = random.choice([value + 1, value - 1, value + 256, value - 256, value * 2,
                                        value // 2, value + 16, 0, -1, 3, 2**62, *alike[:9]])


def change_list(random, document, plan):
    container, key, _ = choose(random, document, list)
    elements = container[key]
    if not elements:
        return
    i, j = random.randrange(len(elements)), random.randrange(len(elements))
    kind = random.randrange(4)
    if kind == 0:
        del elements[i]
    elif kind == 1:
        elements.insert(j, json.loads(json.dumps(elements[i])))
    elif kind == 2:
        elements[i], elements[j] = elements[j], elements[i]
    else:
        elements.insert(j, elements.pop(i))


def change_key(random, document, plan):
    container, key, _ = choose(random, document, dict)
    target = container[key]
    if random.random() < 0.5:
        del target[random.choice(sorted(target))]
    else:
        target[random.choice(["queue", "result", "in_place", "sm"])] = random.choice([0, 1, [[0, 1]]])


def pick(random, plan, *kinds):
    """The index of a command of these kinds, None if there is none."""
    found = [i for i, c in enumerate(plan["commands"]) if c["command"] in kinds]
    return random.choice(found) if found else None


def drop_ordering(random, document, plan):
    i = pick(random, plan, "barrier", "wait")
    if i is not None:
        del plan["commands"][i]


def move_ordering(random, document, plan):
    i = pick(random, plan, "barrier", "wait", "signal")
    if i is not None:
        to = max(0, i + random.choice([-3, -2, -1, 1, 2, 3]))
        plan["commands"].insert(to, plan["commands"].pop(i))


def change_memory(random, document, plan):
    i = pick(random, plan, "barrier", "signal")
    views = plan["commands"][i]["memory"] if i is not None else None
    if not views:
        return
    v = random.randrange(len(views))
    allocation, offset, size = views[v]
    part = random.randrange(size + 1)
    views[v:v + 1] = random.choice([
        [], [[allocation, offset, part]], [[allocation, offset + part, size - part]],
        [[allocation, offset, part], [allocation, offset + part, size - part]],
        [[allocation, 0, plan["allocations"][allocation]["bytes"]]]])


def add_barrier(random, document, plan):
    commands, i = plan["commands"], pick(random, plan, "barrier")
    if i is not None:
        commands.insert(random.randrange(len(commands) + 1), json.loads(json.dumps(commands[i])))


def renumber(plan, numbers):
    for command in plan["commands"]:
        for hazard in command.get("hazards", ()):
            for end in 1, 3:
                hazard[end] = numbers.get(hazard[end], hazard[end])


def swap_dispatches(random, document, plan):
    """Two dispatches change places, and hazards still mean the same ones."""
    at = [i for i, c in enumerate(plan["commands"]) if c["command"] == "dispatch"]
    if len(at) < 2:
        return
    d = random.randrange(len(at) - 1)
    e = min(d + random.choice([1, 1, 2, 3]), len(at) - 1)
    commands = plan["commands"]
    commands[at[d]], commands[at[e]] = commands[at[e]], commands[at[d]]
    if random.random() < 0.5:
        commands[at[d]]["wave"], commands[at[e]]["wave"] = commands[at[e]]["wave"], commands[at[d]]["wave"]
    renumber(plan, {d: e, e: d})


def move_slot(random, document, plan):
    """A slot and all views in it move, those of barriers too."""
    if not plan["slots"]:
        return
    slot = random.choice(plan["slots"])
    begin, end, by = slot[1], slot[1] + slot[2], random.choice([-1024, -256, -16, 16, 256, 1024])
    if random.random() < 0.5:
        by = random.choice(plan["slots"])[1] - begin
    slot[1] += by
    for command in plan["commands"]:
        in_waves = slot[4] <= command.get("wave", slot[4]) <= slot[5]
        for view in command.get("memory", []) + command.get("operands", []):
            if plan["allocations"][view[0]]["kind"] == "arena" and in_waves:
                if begin <= view[1] and view[1] + view[2] <= end:
                    view[1] += by


def change_operand(random, document, plan):
    """An operand of a dispatch gets a view of another that is as large."""
    operands = [o for c in plan["commands"] for o in c.get("operands", ())]
    operand = random.choice(operands)
    other = random.choice([o for o in operands if o[2] == operand[2]])
    operand[:] = random.choice([other[:3] + operand[3:], operand[:3] + other[3:], other[:]])


def change_queue(random, document, plan):
    command = random.choice(plan["commands"])
    command["queue"] = random.choice([1, 2])


EDITS = [change_value] * 6 + [change_list] * 4 + [change_key] + 2 * [
    drop_ordering, move_ordering, change_memory, add_barrier, swap_dispatches, move_slot,
    change_operand, change_queue]


def edit(random, documents):
    """Edits a copy of the documents once or twice; returns it and the names of the edits."""
    documents, names = json.loads(json.dumps(documents)), []
    plans = [name for name in documents if name.startswith("plan/")]
    for _ in range(random.choice([1, 1, 2])):
        plan = documents[random.choice(plans)]
        change = random.choice(EDITS)
        try:
            change(random, documents["manifest.json"] if random.random() < 0.2 else plan, plan)
        except (KeyError, IndexError, TypeError, ValueError, AttributeError):
            break  # the first edit left nothing for a second
        names.append(change.__name__)
    return documents, names


def edit_code(weir, artifact, edit):
    """Copies an artifact, its one file of PTX edited."""
    documents, rest = read_documents(artifact)
    [name] = [name for name in rest if name.endswith(".ptx")]
    rest[name] = edit(rest[name].decode()).encode()
    copy = weir.folder / "edited.weir"
    write_documents(copy, documents, rest)
    return copy, name

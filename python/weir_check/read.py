"""Reads a .weir file by docs/artifact.md, and refuses any other file with one sentence."""

import json
import os
import re
import struct
import zipfile
from math import prod

SCHEMA_VERSION = 7
BITS = {"BOOL": 8, "U8": 8, "I8": 8, "F8_E4M3": 8, "F8_E5M2": 8, "U16": 16, "I16": 16, "F16": 16,
        "BF16": 16, "U32": 32, "I32": 32, "F32": 32, "U64": 64, "I64": 64, "F64": 64}
NAME = re.compile(r"(?!\.)[A-Za-z0-9_.$-]{1,200}\Z")


class Unreadable(Exception):
    """The file is not an artifact. The message says why."""


def need(holds, message):
    if not holds:
        raise Unreadable(message)


def tensor_bytes(tensor):
    return prod(tensor["shape"]) * BITS[tensor["dtype"]] // 8


def stored_bytes(tensor, profile):
    """The bytes of an argument or result on a device: whole words, if it has no elements so short."""
    size, bits = tensor_bytes(tensor), BITS[tensor["dtype"]]
    in_words = bits in (8, 16) and not profile[f"storage{bits}"]
    return -(-size // 4) * 4 if in_words else size


# Checks of JSON: functions of a value and the place where it stands.

def number(low=-(2**63), high=2**63 - 1):
    def check(value, place):
        need(type(value) is int and low <= value <= high,
             f"{place} is not an integer from {low} to {high}")
    return check


def one_of(*values):
    def check(value, place):
        need(any(value == v and type(value) is type(v) for v in values),
             f"{place} is none of {', '.join(map(str, values))}")
    return check


def array(each, least=0):
    def check(value, place):
        need(type(value) is list and len(value) >= least, f"{place} is not a list, or too short")
        for i, element in enumerate(value):
            each(element, f"{place}[{i}]")
    return check


def row(*columns):
    def check(value, place):
        need(type(value) is list and len(value) == len(columns),
             f"{place} is not a list of {len(columns)}")
        for i, (column, element) in enumerate(zip(columns, value)):
            column(element, f"{place}[{i}]")
    return check


def record(optional=(), **keys):
    required = set(keys) - set(optional)

    def check(value, place):
        need(type(value) is dict, f"{place} is not an object")
        need(required <= set(value) <= set(keys), f"{place} lacks a key or has one too many: "
             f"{', '.join(sorted(required - set(value) | set(value) - set(keys)))}")
        for key, element in value.items():
            keys[key](element, f"{place}.{key}")
    return check


def string(value, place):
    need(type(value) is str, f"{place} is not a string")


def name(value, place):
    need(type(value) is str and value and not re.search(r"[\x00-\x1f\x7f]", value),
         f"{place} is not a name")


def file_name(value, place):
    need(type(value) is str and NAME.match(value), f"{place} is not a file name")


def power_of_two(value, place):
    need(type(value) is int and 0 < value <= 2**56 and not value & value - 1,
         f"{place} is not a power of two up to 2^56")


def operand(value, place):
    view(value[:3] if type(value) is list else value, place)
    need(len(value) in (3, 5, 6), f"{place} is not a list of 3, 5 or 6")
    for i, check in enumerate((index, size, index)[:len(value) - 3], 3):
        check(value[i], f"{place}[{i}]")


def slot(value, place):
    row(string, size, size, power_of_two, index, index)(value, place)
    need(value[4] <= value[5], f"{place} ends before it begins")


def kernel_operand(value, place):
    record(optional=["slice"], access=one_of("none", "read", "write", "update"), covers_all=flag,
           bytes=size, alignment=power_of_two, slice=row(size, count, size, count))(value, place)
    need(not value["covers_all"] or value["access"] in ("write", "update"),
         f"{place} covers all, and is not written")
    if "slice" in value:
        begin, width, stride, runs = value["slice"]
        need(value["access"] == "write" and not value["covers_all"],
             f"{place} has a slice, and is not written in part")
        need(width < stride <= value["bytes"] and begin + (runs - 1) * stride + width <= value["bytes"],
             f"{place} has a slice that does not fit in its {value['bytes']} bytes")


index, size, flag = number(0), number(0, 2**56), one_of(False, True)
count, word = number(1), number(1, 2**32 - 1)
triple = row(word, word, word)
view = row(index, size, size)
queue = number(1, 63)
tensor = dict(name=name, dtype=one_of(*BITS), shape=array(size))


def argument(value, place):
    record(**tensor, optional=["starts_as", "starts_at", "memory"], starts_as=name, starts_at=string, donate=flag,
           kind=one_of("", "input", "target", "param", "state"), memory=one_of("device", "host"))(value, place)
    need(value.get("memory") != "host" or (value["kind"] == "state" and value["donate"]),
         f"{place} lies in host memory, and is no donated state")


COOPERATIVE = tuple(f"{rows}x{columns}x{products} f16 f32"
                    for rows in (8, 16, 32) for columns in (8, 16, 32) for products in (8, 16, 32))

MANIFEST = record(
    schema_version=one_of(SCHEMA_VERSION), producer=string,
    entries=array(record(
        name=file_name, results=array(record(**tensor)),
        arguments=array(argument))),
    targets=array(record(
        optional=["sm", "sm_exact", "isa"], name=name, target=file_name, api=name, sm=number(1, 999),
        sm_exact=flag,
        isa=one_of("x86-64-v2", "x86-64-v3", "x86-64-v4", "aarch64"),
        subgroup_size=power_of_two, max_workgroup_size=word, workgroup_memory=word,
        max_grid=triple, storage_buffers_per_stage=word, bytes_per_binding=number(1, 2**56),
        offset_alignment=power_of_two, max_loop_trips=count, float64=flag, int64=flag,
        storage8=flag, storage16=flag, row_mapping=one_of("lane", "subgroup", "workgroup"), workgroup_size=word,
        vector_width=one_of(1, 4, 8, 16), private_row_bytes=word, elements_per_invocation=word,
        contraction_rows=number(1, 64), contraction_columns=number(1, 8),
        contraction_slab=number(0, 64), slab_tile=one_of(4, 8, 16),
        matrix_tile=one_of(0, 32, 64), matrix_slab=one_of(16, 32, 64), matrix_stages=one_of(2, 3, 4),
        cooperative_matrix=one_of("none", *COOPERATIVE),
        precision=one_of("f32", "tf32"), words64=flag,
        column_parts=word, units=number(0, 2**32 - 1), unroll_private=flag, streamed_bytes=size,
        stage_bytes=number(0, 2**22), stage_groups=word, attention_keys=number(0, 2**32 - 1),
        queues=number(1, 64))),
    constants=array(record(**tensor, offset=size)))
COMMANDS = {
    "dispatch": record(optional=["queue"], command=string, queue=queue, kernel=index,
                       grid=triple, wave=index, operands=array(operand), location=string),
    "barrier": record(optional=["queue"], command=string, queue=queue, memory=array(view),
                      hazards=array(row(one_of("raw", "war", "waw"), *[index] * 4), least=1)),
    "signal": record(optional=["queue"], command=string, queue=queue, signal=index,
                     memory=array(view)),
    "wait": record(optional=["queue"], command=string, queue=queue, signal=index)}


def get_element_bytes(tensor_map):
    """Returns the bytes of an element of the tensor that boxes are copied of."""
    return 4 if tensor_map["dtype"] == "F32" else 2


def tensor_map(value, place):
    record(operand=index, dtype=one_of("BF16", "F16", "F32"), shape=array(number(1, 2**31 - 1), least=2),
           box=array(number(1, 256)))(value, place)
    shape, box, element = value["shape"], value["box"], get_element_bytes(value)
    need(len(shape) <= 5 and len(box) == len(shape), f"{place} has more than 5 sizes, or a box of other than {len(shape)}")
    need(box[-1] * element == 128, f"{place} has a box with lines of other than 128 bytes")
    need(shape[-1] * element % 16 == 0, f"{place} has rows of no multiple of 16 bytes")
    need(element * prod(shape) < 2**40, f"{place} has 2^40 bytes or more")


def kernel(value, place):
    record(optional=["in_place", "workgroup_memory", "tensor_maps"], name=name, code=string, workgroup=triple,
           workgroup_memory=number(1, 2**31 - 1), in_place=array(row(index, index)), operands=array(kernel_operand),
           tensor_maps=array(tensor_map))(value, place)
    for i, each in enumerate(value.get("tensor_maps", ())):
        need(each["operand"] < len(value["operands"]), f"{place}.tensor_maps[{i}] is of no operand")
        operand = value["operands"][each["operand"]]
        need(operand["access"] == "read" and operand["alignment"] % 16 == 0
             and get_element_bytes(each) * prod(each["shape"]) <= operand["bytes"],
             f"{place}.tensor_maps[{i}] is of an operand that is not read alone, not aligned to 16 bytes, or too short")


def command(value, place):
    kind = value.get("command") if type(value) is dict else None
    need(type(kind) is str and kind in COMMANDS, f"{place} is not a command")
    COMMANDS[kind](value, place)


def loop(value, place):
    record(optional=["flag"], first=index, end=count, trips=count, flag=view,
           carried=array(row(index, size, size, index, index, index, index)))(value, place)


PLAN = record(
    optional=["loops", "parts"], loops=array(loop), parts=array(row(name, index, size, number(1, 2**56), index)),
    schema_version=one_of(SCHEMA_VERSION), entry=string, target=string, arena_bytes=size, pinned_bytes=size,
    allocations=array(record(optional=["result"], result=index, index=index, bytes=size,
                             kind=one_of("argument", "result", "constants", "arena"))),
    values=array(row(string, size)), argument_values=array(number(-1)),
    result_values=array(number(-1)),
    slots=array(slot),
    kernels=array(kernel),
    commands=array(command))


def notes_of(file, notes):
    """Checks the form of notes. Whether they fit the plan is not checked: they are for people."""
    need(type(notes) is dict and type(notes.get("texts")) is list, f"{file} has no texts")
    text = number(0, len(notes["texts"]) - 1)

    def entry(value, place):
        kernels = value.get("kernels") if type(value) is dict else None
        last = len(kernels) - 1 if type(kernels) is list else -1
        record(optional=["memory_limit", "checks"], entry=file_name, memory_limit=size, checks=array(text),
               kernels=array(array(row(text, text))),
               apart=array(row(number(0, last), number(0, last), text)),
               dispatches=array(number(-1, last)),
               refusals=array(row(index, text, text, text)))(value, place)

    record(schema_version=one_of(SCHEMA_VERSION), texts=array(string), entries=array(entry))(notes, file)
    unique((each["entry"] for each in notes["entries"]), f"notes of {file}")


def parse(data, place):
    """Parses JSON. Refuses duplicate keys, numbers that are not integers, null, and NUL."""
    def pairs(items):
        found = dict(items)
        need(len(found) == len(items), f"{place} has a key twice in an object")
        return found

    def refuse(text):
        raise Unreadable(f"{place} has the number {text}, which is not an integer")

    def walk(value, depth):
        need(depth <= 32, f"{place} is nested too deeply")
        need(value is not None, f"{place} has a null")
        if type(value) is str:
            need("\0" not in value and value.encode() is not None, f"{place} has a NUL")
        elif type(value) in (list, dict):
            for element in value if type(value) is list else [*value, *value.values()]:
                if type(element) is not int:
                    walk(element, depth + 1)

    try:
        found = json.loads(data.decode(), object_pairs_hook=pairs, parse_float=refuse,
                           parse_constant=refuse)
        walk(found, 0)
    except (ValueError, RecursionError) as error:
        raise Unreadable(f"{place} is not JSON: {error}") from None
    return found


def unique(items, what):
    items = list(items)
    need(len(set(items)) == len(items), f"two {what} have one name")


def read_files(path):
    """Returns {path: bytes} of a ZIP of the form that the page defines."""
    files = {}
    with open(path, "rb") as raw, zipfile.ZipFile(path) as archive:
        infos = archive.infolist()
        end = sum(76 + 2 * len(info.filename) + info.file_size for info in infos)
        size = os.path.getsize(path)
        need(size > 0xffffffff or size == end + 22, "it has bytes that belong to none of its files")
        raw.seek(end)
        need(size > 0xffffffff or struct.unpack("<4x4H8xH", raw.read()) == (0, 0, len(infos), len(infos), 0),
             "the record that ends it is of another ZIP")
        names = [info.filename for info in infos]
        need(names == sorted(set(names)), "files stand twice or not in the order of their names")
        for info in infos:
            file = info.filename
            need(all(map(NAME.match, file.split("/"))), f"{file!r} is not a path of names")
            need(info.compress_type == 0 and not info.flag_bits
                 and info.compress_size == info.file_size, f"{file} is compressed or encrypted, or has other flags")
            need(info.date_time == (1980, 1, 1, 0, 0, 0), f"{file} has a date")
            raw.seek(info.header_offset)
            version, *local = struct.unpack("<4x5H3I4x", raw.read(30))
            need(version == info.extract_version <= 63, f"{file} needs another version of the format")
            need(local == [info.flag_bits, 0, 0, 0x21, info.CRC, info.file_size, info.file_size],
                 f"{file} has two headers that differ")
            files[file] = archive.read(info)
    return files


def check_weights(data, constants):
    need(len(data) >= 8, "weights.safetensors is too short")
    length = struct.unpack("<Q", data[:8])[0]
    need(length <= len(data) - 8, "weights.safetensors ends within its header")
    header = parse(data[8:8 + length], "weights.safetensors")
    need(type(header) is dict, "weights.safetensors has no header")
    header.pop("__metadata__", None)
    need(set(header) == {constant["name"] for constant in constants},
         "weights.safetensors holds other tensors than the manifest")
    ends = []
    for constant in constants:
        place = f"weights.safetensors: {constant['name']}"
        have = header[constant["name"]]
        record(dtype=string, shape=array(size), data_offsets=row(size, size))(have, place)
        begin, end = have["data_offsets"]
        need((have["dtype"], have["shape"]) == (constant["dtype"], constant["shape"])
             and end - begin == tensor_bytes(constant), f"{place} is not the manifest's")
        ends.append((begin, end))
    ends = [(0, 0), *sorted(ends), (len(data) - 8 - length,)]
    need(all(a[1] == b[0] for a, b in zip(ends, ends[1:])),
         "weights.safetensors: tensors do not lie one after another")


def check_constants(constants):
    end = padded = 0
    for constant in sorted(constants, key=lambda constant: constant["offset"]):
        need(constant["offset"] % 256 == 0, f"constant {constant['name']} is not aligned")
        if tensor_bytes(constant):
            need(constant["offset"] >= end, f"constant {constant['name']} shares bytes")
        end = max(end, constant["offset"] + tensor_bytes(constant))
        padded += -(-tensor_bytes(constant) // 256) * 256
    need(end <= padded, "the constant segment is longer than its constants")


def check_profile(profile):
    place = f"profile {profile['name']}"
    base = profile["target"].partition(".")[0]
    need(("sm" in profile) == (base == "cuda"), f"{place}: sm is for cuda alone")
    need(("isa" in profile) == (base == "cpu"), f"{place}: isa is for cpu alone")
    need(not profile.get("sm_exact") or profile.get("sm") == 90, f"{place}: sm_exact is for sm 90 alone")
    if "sm" in profile:
        sm = profile["sm"]
        most = 1024 * (99 if sm in (86, 89, 120, 121) else 163 if sm < 90 else 227)
        need(profile["workgroup_memory"] <= most, f"{place} has more than {most} bytes of workgroup memory")
    need(profile["vector_width"] in ((1, 4, 8, 16) if base == "cpu" else (1, 4)),
         f"{place} has a vector width that it cannot have")
    need(profile["workgroup_size"] % profile["subgroup_size"] == 0
         and profile["workgroup_size"] <= profile["max_workgroup_size"],
         f"{place} has a workgroup size that it cannot have")
    need(profile["int64"] or not profile["words64"], f"{place} has words64 without int64")
    need(profile["contraction_slab"] % 4 == 0, f"{place} has a contraction_slab that is no multiple of 4")
    need(not profile["matrix_tile"] or profile.get("sm", 0) >= 80, f"{place} has a matrix_tile without an sm of 80")
    need(profile["matrix_tile"] or profile["precision"] == "f32", f"{place} has tf32 without a matrix_tile")
    need(profile["cooperative_matrix"] == "none" or base == "vulkan" and profile["storage16"],
         f"{place} has a cooperative_matrix without target vulkan or storage16")


def read_artifact(path):
    """Returns the manifest and [(entry, profile, plan)]; raises Unreadable."""
    try:
        files = read_files(path)
    except (OSError, zipfile.BadZipFile, zipfile.LargeZipFile, NotImplementedError, RuntimeError,
            ValueError, EOFError, OverflowError, MemoryError, struct.error) as error:
        raise Unreadable(f"it is not a ZIP of stored files: {error}") from None
    need("manifest.json" in files, "it has no manifest.json")
    manifest = parse(files["manifest.json"], "manifest.json")
    MANIFEST(manifest, "manifest.json")
    unique((entry["name"] for entry in manifest["entries"]), "entries")
    unique((profile["target"] for profile in manifest["targets"]), "targets")
    unique((constant["name"] for constant in manifest["constants"]), "constants")
    for entry in manifest["entries"]:
        for key in "arguments", "results":
            unique((tensor["name"] for tensor in entry[key]), f"{key} of {entry['name']}")
    for profile in manifest["targets"]:
        check_profile(profile)
    check_constants(manifest["constants"])
    named, plans = {"manifest.json"}, []
    if manifest["constants"]:
        need("weights.safetensors" in files, "it has no weights.safetensors")
        check_weights(files["weights.safetensors"], manifest["constants"])
        named.add("weights.safetensors")
    for entry in manifest["entries"]:
        for profile in manifest["targets"]:
            target = profile["target"]
            file = f"plan/{target}/{entry['name']}.json"
            need(file in files, f"it has no {file}")
            plan = parse(files[file], file)
            PLAN(plan, file)
            need((plan["entry"], plan["target"]) == (entry["name"], target),
                 f"{file} is of another entry or target")
            unique((kernel["name"] for kernel in plan["kernels"]), f"kernels of {file}")
            for kernel in plan["kernels"]:
                code = kernel["code"]
                need(code.startswith(f"code/{target}/") and code in files, f"it has no {code!r}")
                named.add(code)
            named.add(file)
            plans.append((entry, profile, plan))
    for profile in manifest["targets"]:
        file = f"notes/{profile['target']}.json"
        if file in files:
            notes = parse(files[file], file)
            notes_of(file, notes)
            need({each["entry"] for each in notes["entries"]}
                 <= {entry["name"] for entry in manifest["entries"]},
                 f"{file} is of an entry that is not there")
            named.add(file)
    for file in files:
        need(file in named or re.fullmatch(r"ir/[^/]+\.mlir", file), f"nothing names {file}")
    return manifest, plans

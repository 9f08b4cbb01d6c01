"""Runs the kernels of GPUVerify's testsuite through `weir check-shader`, translated from OpenCL to GLSL.

    gpuverify.py FOLDER [--filter=REGEX] [--every=N] [--json=OUT.json]

FOLDER is testsuite/OpenCL of a checkout of https://github.com/mc-imperial/gpuverify, which is not part of Weir; without
it, it is what WEIR_GPUVERIFY_TESTS names. Its first line says whether a kernel is free of races and divergent barriers
("//pass") or not ("//xfail:NOT_ALL_VERIFIED"), the second how many workgroups of which size run. The translation is one
of text: pointers among the parameters become buffers or workgroup memory, numbers become push constants, integers are
signed. Left out are kernels with annotations, structs, atomics, asynchronous copies or several kernels, those that fail for
null pointers or assertions, and those whose flags change what a race is. What glslangValidator refuses of the rest
(pointers above all) is not compiled. A racy kernel is found if its races or barriers are refuted, and missed if they
are all proved; a clean one is proved, or a false alarm. GPUVerify allows that several invocations write the same value
to the same place, which Vulkan does not: "benign" tests are left out, others are false alarms. The exit status is 1 if
one is missed, and 77 if there is no folder or no compiler.
"""

import pathlib
import re

from shaders import run_all

SKIPPED = re.compile(r"__\w*(?:requires|ensures|invariant|assert|assume|axiom|read|write|enabled|uniform|distinct|same|"
                     r"barrier|global_|function_wide|ptr|implies|non_temporal)\w*\s*\(|\bstruct\b|\btypedef\b|\batom|"
                     r"async|event_t|image|sampler|\bprintf|null pointer|assertion|\bgoto\b|#include")
FLAGS = re.compile(r"--(?:only-|kernel-args|check-array-bounds|warp-sync|equality-abstraction|asymmetric)")
KERNEL = re.compile(r"(?:__attribute__\s*\(\(.*?\)\)\s*)?\b(?:__)?kernel\s+(?:__attribute__\s*\(\(.*?\)\)\s*)?void\s+"
                    r"(\w+)\s*\(([^)]*)\)\s*\{")
TYPES = [(r"\b(?:unsigned|signed)\s+(?:int|char|short|long)\b|\b(?:unsigned|signed|uint|size_t|u?char|u?short|u?long|"
          r"ulong|ptrdiff_t)\b", "int"), (r"\b(?:u?int|u?char|u?short|u?long)([234])\b", r"ivec\1"),
         (r"\bfloat([234])\b", r"vec\1"), (r"\b(\d+|0x[0-9a-fA-F]+)[uUlL]+\b", r"\1")]
LOCAL = re.compile(r"(?:\b(?:__)?local|volatile)\s+(?:volatile\s+)?(?:__local\s+)?(\w+)\s+(\w+(?:\s*\[[^;,]*\])*)\s*;")
PRELUDE = """#version 450
#extension GL_KHR_memory_scope_semantics : require
#define get_global_id(d) int(gl_GlobalInvocationID[d])
#define get_local_id(d) int(gl_LocalInvocationID[d])
#define get_group_id(d) int(gl_WorkGroupID[d])
#define get_local_size(d) int(gl_WorkGroupSize[d])
#define get_num_groups(d) int(gl_NumWorkGroups[d])
#define get_global_size(d) int(gl_WorkGroupSize[d] * gl_NumWorkGroups[d])
#define order(storage) controlBarrier(gl_ScopeWorkgroup, gl_ScopeWorkgroup, storage, gl_SemanticsAcquireRelease)
"""


def read_sizes(text, name):
    """Returns the three sizes of --local_size or --num_groups, or None."""
    found = re.search(rf"--{name}=(?:\[([\d,]+)\]|(\d+))", text)
    if not found:
        return None
    sizes = (found[1] or found[2]).split(",")
    return sizes + ["1"] * (3 - len(sizes))


def strip_comments(text):
    return re.sub(r"/\*.*?\*/", " ", re.sub(r"//[^\n]*", "", text), flags=re.S)


def translate_types(text):
    for pattern, by in TYPES:
        text = re.sub(pattern, by, text)
    return text


def translate_barrier(found):
    flags = found[1]
    names = [name for flag, name in (("GLOBAL", "gl_StorageSemanticsBuffer"), ("LOCAL", "gl_StorageSemanticsShared"))
             if flag in flags]
    return f"order({' | '.join(names) or '0'})"


def translate(text, local_size):
    """Returns a kernel in GLSL, or None."""
    kernels = KERNEL.findall(text)
    if len(kernels) != 1:
        return None
    declarations, copies, numbers = [], [], []
    for position, parameter in enumerate(kernels[0][1].split(",")):
        parameter = re.sub(r"\b(?:const|restrict|__restrict|volatile|__const|__private)\b", " ", parameter).strip()
        if not parameter or parameter == "void":
            continue
        pointer = re.fullmatch(r"(?:__)?(global|local|constant)\s+([\w ]+?)\s*\*\s*(\w+)", parameter)
        number = re.fullmatch(r"([\w ]+?)\s+(\w+)", parameter)
        if pointer:
            kind = translate_types(pointer[2])
            declarations.append(f"shared {kind} {pointer[3]}[2048];" if pointer[1] == "local" else
                                f"layout(std430, set = 0, binding = {position}) buffer B{position} {{ {kind} "
                                f"{pointer[3]}[]; }};")
        elif number and "*" not in parameter:
            kind = translate_types(number[1])
            numbers.append(f"{kind} argument_{number[2]};")
            copies.append(f"{kind} {number[2]} = argument_{number[2]};")
        else:
            return None
    if numbers:
        declarations.append("layout(push_constant) uniform Arguments { " + " ".join(numbers) + " };")
    text = KERNEL.sub("void main() {\n" + " ".join(copies), text)
    text = re.sub(r"\bbarrier\s*\(([^()]*)\)", translate_barrier, text)
    text = translate_types(text)
    shared = []
    text = LOCAL.sub(lambda found: shared.append(f"shared {found[1]} {found[2]};") or "", text)
    text = re.sub(r"\b(?:inline|static|__private|restrict)\b|__attribute__\s*\(\(.*?\)\)", "", text)
    defines = "\n".join(re.findall(r"^\s*#.*$", text, re.M))
    text = re.sub(r"^\s*#.*$", "", text, flags=re.M)
    size = "layout(local_size_x = {}, local_size_y = {}, local_size_z = {}) in;".format(*local_size)
    return "\n".join([PRELUDE, defines, size, *declarations, *shared, text])


def find_tests(folder):
    for path in sorted(pathlib.Path(folder).rglob("*.cl")):
        text = path.read_text(errors="replace")
        name = str(path.relative_to(folder).parent)
        verdict = text.split("\n", 1)[0].strip().lower()
        local_size, groups = read_sizes(text, "local_size"), read_sizes(text, "num_groups")
        if (verdict not in ("//pass", "//xfail:not_all_verified") or SKIPPED.search(text) or FLAGS.search(text) or
                "benign" in name or not local_size or not groups):
            continue
        shader = translate(strip_comments(text), local_size)
        if shader:
            yield name, verdict != "//pass", "glsl", shader, ",".join(groups)


if __name__ == "__main__":
    run_all(__doc__, "WEIR_GPUVERIFY_TESTS", find_tests, ("races", "barriers"), wrong=("missed", "broken"))

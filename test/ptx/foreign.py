"""foreign.py FOLDER [--bin=build/release/bin] [--grid=3] [--block=64] [--json]

Reads PTX that other compilers made: all *.ptx in FOLDER, and *.ll for NVPTX as llc compiles them.
Prints the share of kernels that lib/PtxReader reads, and why it refuses the others. Each kernel that
oracle.py can run is run for a few values of its numbers, and what read-ptx claims of it is tried
against that: a claim that a run disproves is an error. FOLDER is not part of the repository; without
it, there is nothing to do.

PTX is made, for instance, by `nvcc -ptx`, by triton.compile for GPUTarget("cuda", 80, 32), by
numba.cuda.compile_ptx, or of LLVM's llvm/test/CodeGen/NVPTX/*.ll."""

import argparse
import collections
import json
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

import oracle

ROOT = pathlib.Path(__file__).resolve().parents[2]
SCALARS = (0, 3, 100)


def get_texts(folder, llc):
    for path in sorted(folder.rglob("*.ptx")):
        yield path, path
    for path in sorted(folder.rglob("*.ll")):
        with tempfile.TemporaryDirectory() as made:
            out = pathlib.Path(made) / (path.stem + ".ptx")
            line = re.search(r"RUN:[^|\n]*\bllc\b[^|\n]*", path.read_text(errors="replace"))
            options = re.findall(r"-?-(?:mcpu|mattr|march|mtriple)=\S+", line.group()) if line else []
            done = subprocess.run([llc, path, "-o", out, *(options or ["-mtriple=nvptx64", "-mcpu=sm_80"])],
                                  capture_output=True, timeout=60)
            if done.returncode == 0:
                yield path, out


def get_reason(problem):
    """A problem without file, line and names."""
    text = re.sub(r"^\S*?:\d+: ", "", problem)
    return re.sub(r"'([a-z0-9_]+)[^']*'", r"'\1'", text)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--bin", type=pathlib.Path, default=ROOT / "build/release/bin")
    parser.add_argument("--grid", type=int, default=3)
    parser.add_argument("--block", type=int, default=64)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    if not options.folder.is_dir():
        print(f"{options.folder} is not there: nothing to read")
        return 0
    llc = shutil.which("llc-22") or shutil.which("llc")
    read, tried, objections, reasons, unknown = 0, 0, [], collections.Counter(), collections.Counter()
    claims = collections.Counter()
    for path, text_path in get_texts(options.folder, llc):
        text = text_path.read_text(errors="replace")
        done = subprocess.run([options.bin / "read-ptx", text_path, str(options.grid), str(options.block)],
                              capture_output=True, text=True, timeout=120)
        if done.returncode != 0:
            objections.append(f"{path}: read-ptx ended with {done.returncode}")
        for line in done.stdout.splitlines():
            entry = json.loads(line)
            if entry["problem"]:
                reasons[get_reason(entry["problem"])] += 1
                continue
            read += 1
            touched = [each for each in entry["parameters"].values() if each["touched"]]
            claims["operands with bounds"] += sum(each["reach"] is not None for each in touched)
            claims["operands free of races"] += sum(each["free_of_races"] == "yes" for each in touched)
            claims["operands"] += len(touched)
            try:
                for scalars in SCALARS:
                    accesses, barriers = oracle.run(text, entry["entry"], options.grid, options.block, scalars, scalars)
                    if problem := oracle.find_objection(entry, accesses, barriers):
                        objections.append(f"{path}, {entry['entry']}, numbers {scalars}: {problem}")
                tried += 1
            except oracle.Unknown as problem:
                unknown[str(problem)] += 1
    result = {"kernels": read + sum(reasons.values()), "read": read, "tried": tried, "claims": claims,
              "refused": dict(reasons.most_common()), "not_run": dict(unknown.most_common()), "objections": objections}
    if options.json:
        print(json.dumps(result))
    else:
        print(f"{result['kernels']} kernels, {read} read, {tried} of these run; {len(objections)} objections")
        print(f"of {claims['operands']} operands {claims['operands with bounds']} have bounds, "
              f"{claims['operands free of races']} are free of races")
        for reason, count in reasons.most_common():
            print(f"  {count:4} {reason}")
        for objection in objections:
            print("OBJECTION", objection)
    return 1 if objections else 0


if __name__ == "__main__":
    sys.exit(main())

"""Shared by the suites of shaders: compiles one, asks `weir check-shader`, compares with what the suite says, counts."""

import argparse
import collections
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]

def find_weir():
    """Returns the path of weir, or of weir-device, which has the verb, too."""
    folder = pathlib.Path(os.environ.get("WEIR_BIN", ROOT / "build/release/bin"))
    return next(folder / name for name in ("weir", "weir-device") if (folder / name).exists())


def find_glslang():
    return os.environ.get("WEIR_GLSLANG") or shutil.which("glslangValidator")


def compile_shader(language, text, place):
    """Returns the module of a shader in "glsl" or "asm", or None if it cannot be compiled."""
    (place / "shader.comp").write_text(text)
    command = ([find_glslang(), "-V", "--target-env", "vulkan1.2", "-g"] if language == "glsl" else
               ["spirv-as", "--target-env", "vulkan1.2"])
    done = subprocess.run([*command, "shader.comp", "-o", "shader.spv"], cwd=place, capture_output=True)
    return None if done.returncode else place / "shader.spv"


def ask(language, text, workgroups, kinds):
    """Returns the answer on all claims of these kinds, and its detail."""
    with tempfile.TemporaryDirectory(prefix="weir-") as folder:
        module = compile_shader(language, text, pathlib.Path(folder))
        if not module:
            return "not compiled", ""
        command = [find_weir(), "check-shader", module, f"--workgroups={workgroups}", "--json"]
        try:
            done = subprocess.run(command, capture_output=True, text=True, timeout=120)
        except subprocess.TimeoutExpired:
            return "unknown", "after 120 seconds"
    if done.returncode not in (0, 1, 3):
        return "broken", done.stderr.strip()
    claims = [claim for claim in json.loads(done.stdout)["claims"] if claim["claim"] in kinds]
    for answer in ("refuted", "unknown"):
        for claim in claims:
            if claim["answer"] == answer:
                return answer, claim["detail"]
    return "proved", ""


def judge(answer, is_racy):
    """Compares an answer with what the suite says of a shader."""
    if is_racy:
        return {"refuted": "found", "proved": "missed"}.get(answer, answer)
    return {"refuted": "false alarm"}.get(answer, answer)


def run_all(description, variable, find_tests, kinds, wrong=("missed", "false alarm", "broken")):
    """Runs all tests: find_tests(FOLDER) yields the name, whether it races, the language, the text and the
    workgroups of each. Exits with 1 if a verdict is wrong."""
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", nargs="?", default=os.environ.get(variable))
    parser.add_argument("--filter", default="")
    parser.add_argument("--every", type=int, default=1)
    parser.add_argument("--json")
    options = parser.parse_args()
    if not options.folder or not find_glslang() or not shutil.which("spirv-as"):
        sys.exit(77)
    counts, rows = collections.Counter(), []
    tests = [test for test in find_tests(options.folder) if re.search(options.filter, test[0])]
    for name, is_racy, language, text, workgroups in tests[::options.every]:
        answer, detail = ask(language, text, workgroups, kinds)
        verdict, kind = judge(answer, is_racy), "racy" if is_racy else "clean"
        counts[kind, verdict] += 1
        rows.append({"test": name, "kind": kind, "verdict": verdict, "detail": detail})
        print(f"{verdict:12} {kind:5} {name} {detail}", flush=True)
    for (kind, verdict), count in sorted(counts.items()):
        print(f"{kind}: {count} {verdict}")
    if options.json:
        pathlib.Path(options.json).write_text(json.dumps(rows, indent=1))
    sys.exit(any(row["verdict"] in wrong for row in rows))

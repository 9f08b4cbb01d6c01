"""Counts the questions about two accesses that a compilation asks, from the dispatches level on.

count.py GRAPH FLAGS... [--limits KIND=N,...] [--same-as GRAPH]: fails where there are more of a kind than its limit. With
--same-as, just as many questions must be new (not repeated) as in a compilation of that graph."""

import argparse
import re
import subprocess
import sys

PASSES = (
    "weir-schedule,weir-assign-queues,weir-donate-buffers,weir-plan-memory,weir-verify-placed,weir-insert-barriers,"
    "weir-insert-workgroup-barriers,weir-remove-redundant-workgroup-barriers,weir-verify-ordered,weir-emit-spirv,"
    "weir-test-question-counts"
)


def count(graph, flags):
    level = subprocess.run(
        ["weir", "compile", graph, "--stop-after=dispatches", "-o", "-", *flags], check=True, stdout=subprocess.PIPE
    ).stdout
    result = subprocess.run(
        ["weir-opt", f"--pass-pipeline=builtin.module({PASSES})", "-o", "/dev/null"],
        input=level, check=True, stderr=subprocess.PIPE,
    )
    line = re.search(r"questions:(.*)", result.stderr.decode())[1]
    return {kind: int(number) for kind, number in re.findall(r"([a-z-]+) (\d+)", line)}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("graph")
    parser.add_argument("--limits", default="")
    parser.add_argument("--same-as")
    arguments, flags = parser.parse_known_args()
    counts = count(arguments.graph, flags)
    print(arguments.graph, counts)
    problems = []
    for limit in filter(None, arguments.limits.split(",")):
        kind, most = limit.split("=")
        if counts[kind] > int(most):
            problems.append(f"{counts[kind]} questions of kind {kind}, more than {most}")
    if arguments.same_as:
        other = count(arguments.same_as, flags)
        print(arguments.same_as, other)
        new = [{kind: number for kind, number in each.items() if kind != "repeated"} for each in (counts, other)]
        for kind in ("digits", "search", "given-up", "steps"):
            if new[0][kind] != new[1][kind]:
                problems.append(f"{new[0][kind]} of kind {kind}, and {new[1][kind]} in {arguments.same_as}")
    sys.exit("\n".join(problems) or 0)


main()

"""Checks where passes are listed and tested: check-levels.py [PIPELINES TD PAGE], by default passes/Pipelines.cpp
passes/Passes.td docs/architecture.md

- TD: a pass stands in the section of its level, which is the folder of its file. Those of the pipeline stand in the
  order in which they first run, the level's gate behind them. A RUN line of a test has the pass.
- PAGE: the table of levels names the passes of each level in the order in which they run, and the gate.
"""

import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parents[1]
FUNCTION = re.compile(r"^static void (\w+)\(OpPassManager &\w*, const PipelineOptions &\w*\) \{\n(.*?)^\}",
                      re.MULTILINE | re.DOTALL)
LEVEL = re.compile(r'\{"(\w+)", (\w+), addOne<create(\w+)Pass>\}')


def main() -> None:
    default = ["passes/Pipelines.cpp", "passes/Passes.td", "docs/architecture.md"]
    pipelines, source, page = map(pathlib.Path, sys.argv[1:] or [ROOT / path for path in default])
    levels = read_levels(pipelines.read_text())
    sections = read_sections(source.read_text())
    problems = check_folders(sections) + check_sections(levels, sections) + check_tests(source.read_text())
    problems += check_page(levels, sections, page.read_text())
    for problem in problems:
        print(f"error: {problem}", file=sys.stderr)
    print(f"{len(levels)} levels, {sum(map(len, sections.values()))} passes, {len(problems)} problems")
    sys.exit(1 if problems or not levels else 0)


def read_levels(text: str) -> dict[str, tuple[list[str], str]]:
    """Maps each level to its passes in order and its gate."""
    passes = {name: re.findall(r"create(\w+)Pass\(", body) for name, body in FUNCTION.findall(text)}
    return {level: (passes[function], gate) for level, function, gate in LEVEL.findall(text)}


def read_sections(text: str) -> dict[str, list[str]]:
    """Maps each banner to the passes below it."""
    sections: dict[str, list[str]] = {}
    for banner, name in re.findall(r"^//===-+===//\n// (.*)\n//===-+===//$|^def (\w+)Pass : Pass<", text, re.MULTILINE):
        if banner:
            sections[banner] = []
        else:
            list(sections.values())[-1].append(name)
    return sections


def check_folders(sections: dict[str, list[str]]) -> list[str]:
    return [
        f"{name} stands under '{level}', but there is no passes/{level}/{name}.cpp"
        for level, names in sections.items() for name in names if not (ROOT / f"passes/{level}/{name}.cpp").exists()
    ]


def check_sections(levels: dict, sections: dict[str, list[str]]) -> list[str]:
    problems, seen = [], set()
    for level, (passes, gate) in levels.items():
        defined = sections.get(level, [])
        expected = [name for name in dict.fromkeys([*passes, gate]) if name in defined and name not in seen]
        found = [name for name in defined if name in expected]
        seen.update(expected)
        if found != expected:
            order = ", ".join(expected)
            problems.append(f"{level} has {', '.join(found)}, expected the order of the pipeline, {order}")
    return problems


def check_tests(text: str) -> list[str]:
    runs = "\n".join(
        line for suffix in ("mlir", "test") for test in (ROOT / "test").rglob(f"*.{suffix}")
        for line in test.read_text().splitlines() if re.search(r"\b(RUN|DEFINE):", line)
    )
    arguments = re.findall(r'^def \w+Pass : Pass<"([\w-]+)"', text, re.MULTILINE)
    return [f"no test runs {argument}" for argument in arguments if not re.search(rf"{argument}(?![\w-])", runs)]


def check_page(levels: dict, sections: dict[str, list[str]], text: str) -> list[str]:
    problems = []
    outside = {name for names in sections.values() for name in names} - {
        name for passes, gate in levels.values() for name in (*passes, gate)}
    for level, (passes, gate) in levels.items():
        rows = re.findall(rf"^\| `{level}` \|(.*)\| `{gate}` \|$", text, re.MULTILINE)
        found = [name for name in re.findall(r"`([A-Z]\w+)`", rows[0]) if name not in outside] if rows else []
        if len(rows) != 1:
            problems.append(f"the page has {len(rows)} rows with {level} and {gate}, expected 1")
        elif found != passes:
            problems.append(f"the page has for {level} {', '.join(found)}, expected {', '.join(passes)}")
    return problems


if __name__ == "__main__":
    main()

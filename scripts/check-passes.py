"""Checks the contracts of passes: check-passes.py [--write] [TD [PAGE]], by default passes/Passes.td docs/passes.md

Each description has the sections Needs, Gives, Never and Cost and an example. An example is a block of MLIR and the
block behind it: what the pass makes of the first. The sentence in between may give the command, as in "Becomes, by
`weir-opt --weir-a --weir-b=x=1`:", else it is `weir-opt` with the pass. The second block is one of these:

- ```mlir without `...`: the same operations, whatever values are called and however text is laid out. Attributes of the
  module, which has the profile, do not count.
- ```mlir with `...`: the text that is printed. In a line `...` stands for anything, as a line for any number of lines.
- ```text: lines that are printed in this order, perhaps with others between them and text around them.

A ```json block is the file `profile.json` of the commands behind it.

The page must be what the descriptions give; `--write` writes it. `weir-opt` and `llvm-tblgen` are those of PATH.
"""

import json
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[1]
SECTIONS = ("Needs", "Gives", "Never", "Cost")
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
COMMAND = re.compile(r"`weir-opt ([^`]*)`")
WIDTH = 100

INTRODUCTION = """\
# Passes

Every pass of `weir-opt` by level, in the order of [passes/Passes.td](../passes/Passes.td), from whose descriptions
`scripts/check-passes.py --write` makes this page. [architecture.md](architecture.md) has the levels,
`passes/Pipelines.cpp` says why each pass stands where it stands. A test runs every example.

*Needs* is what must hold before the pass, *Gives* what it guarantees, *Never* what it leaves alone, *Cost* the time.
"""


def main() -> None:
    arguments = [argument for argument in sys.argv[1:] if argument != "--write"]
    source = pathlib.Path(arguments[0] if arguments else ROOT / "passes/Passes.td")
    page = pathlib.Path(arguments[1] if len(arguments) > 1 else ROOT / "docs/passes.md")
    passes = read_passes(source)
    problems = check_width(source) + [problem for record in passes for problem in check_pass(record)]
    text = make_page(source, passes)
    if "--write" in sys.argv:
        page.write_text(text)
    elif not page.exists() or page.read_text() != text:
        problems.append(f"{page.name} is stale; run scripts/check-passes.py --write")
    for problem in problems:
        print(f"error: {problem}", file=sys.stderr)
    print(f"{len(passes)} passes, {len(problems)} problems")
    sys.exit(1 if problems else 0)


def read_passes(source: pathlib.Path) -> list[dict]:
    """Returns the records of all passes in the order of the file; `line` is where one begins."""
    tool = shutil.which("llvm-tblgen")
    if not tool:
        sys.exit("error: no llvm-tblgen in PATH")
    include = pathlib.Path(tool).resolve().parents[1] / "include"
    command = [tool, "--dump-json", f"-I{include}", source]
    records = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
    found = [records[name] for name in records["!instanceof"]["Pass"]]
    for record in found:
        record["line"] = int(record["!locs"][0].rpartition(":")[2])
        record["options"] = [records[option["def"]] for option in record["options"]]
        record["description"] = strip_indent(record["description"])
    return sorted(found, key=lambda record: record["line"])


def strip_indent(text: str) -> str:
    lines = text.strip("\n").rstrip().split("\n")
    indent = min((len(line) - len(line.lstrip()) for line in lines if line.strip()), default=0)
    return "\n".join(line[indent:] for line in lines)


def check_width(source: pathlib.Path) -> list[str]:
    return [
        f"{source.name}:{number} has {len(line)} columns, the limit is {WIDTH}"
        for number, line in enumerate(source.read_text().splitlines(), 1) if len(line) > WIDTH
    ]


def check_pass(record: dict) -> list[str]:
    name, text = record["argument"], record["description"]
    problems = [
        f"{name} has no section '{section}'" for section in SECTIONS
        if not re.search(rf"^{section}: ", text, re.MULTILINE)
    ]
    if not record["summary"].endswith("."):
        problems.append(f"{name} has a summary without a period")
    blocks = [block for block in BLOCK.finditer(text) if block.group(1) != "json"]
    if not blocks or len(blocks) % 2:
        problems.append(f"{name} has {len(blocks)} blocks of examples, expected before and after")
    for before, after in zip(blocks[::2], blocks[1::2]):
        given = COMMAND.search(text[before.end() : after.start()])
        options = given.group(1).split() if given else [f"--{name}"]
        if not any(re.fullmatch(rf"--{name}(=.*)?", option) for option in options):
            problems.append(f"{name} has an example without the pass: {' '.join(options)}")
        with tempfile.TemporaryDirectory() as folder:
            for block in BLOCK.finditer(text, 0, before.start()):
                if block.group(1) == "json":
                    pathlib.Path(folder, "profile.json").write_text(block.group(2))
            problems += [f"{name}: {problem}" for problem in check_example(options, before, after, folder)]
    return problems


def check_example(options: list[str], before: re.Match, after: re.Match, folder: str) -> list[str]:
    done = run(options, before.group(2), folder)
    kind, expected = after.groups()
    if kind == "text":
        return [] if has_lines(done.stdout + done.stderr, expected) else [explain(expected, done.stdout + done.stderr)]
    if done.returncode:
        return [f"the example fails: {done.stderr.strip()}"]
    if "..." in expected:
        return [] if matches(done.stdout, expected) else [explain(expected, done.stdout)]
    parsed = run([], expected, folder)
    if parsed.returncode:
        return [f"the block behind the pass does not parse: {parsed.stderr.strip()}"]
    same = drop_attributes(done.stdout) == drop_attributes(parsed.stdout)
    return [] if same else [explain(parsed.stdout, done.stdout)]


def run(options: list[str], text: str, folder: str) -> subprocess.CompletedProcess:
    return subprocess.run(["weir-opt", *options], input=text, cwd=folder, capture_output=True, text=True)


def explain(expected: str, found: str) -> str:
    return f"the example has drifted\n--- described\n{expected.rstrip()}\n--- made\n{found.rstrip()}\n---"


def drop_attributes(text: str) -> str:
    return re.sub(r"^module attributes \{.*\} \{$", "module {", text, count=1, flags=re.MULTILINE)


def to_pattern(line: str) -> str:
    return ".*".join(re.escape(part) for part in squeeze(line).split("..."))


def squeeze(line: str) -> str:
    return " ".join(line.split())


def has_lines(text: str, expected: str) -> bool:
    """Whether lines of `text` have the text of those of `expected`, in their order."""
    lines = map(squeeze, text.splitlines())
    return all(any(re.search(to_pattern(line), found) for found in lines) for line in expected.splitlines())


def matches(text: str, expected: str) -> bool:
    """Whether `text` is `expected`, in which `...` stands for what is left out."""
    pattern = "".join(
        r"(.*\n)*?" if line.strip() == "..." else to_pattern(line) + r"\n" for line in expected.splitlines()
    )
    lines = "".join(f"{squeeze(line)}\n" for line in text.splitlines() if line.strip())
    return re.fullmatch(pattern, lines) is not None


def make_page(source: pathlib.Path, passes: list[dict]) -> str:
    """Returns the page: a heading for each banner of the file, and one for each pass."""
    lines = [INTRODUCTION]
    banners = re.finditer(r"^//===-+===//\n// (.*)\n//===-+===//$", source.read_text(), re.MULTILINE)
    headings = [(banner.string.count("\n", 0, banner.start()) + 1, banner.group(1)) for banner in banners]
    for record in passes:
        while headings and headings[0][0] < record["line"]:
            lines += [f"## {headings.pop(0)[1]}", ""]
        text = re.sub(rf"^({'|'.join(SECTIONS)}): ", r"*\1:* ", record["description"], flags=re.MULTILINE)
        lines += [f"### `{record['argument']}`", "", f"**{record['summary']}**", "", text, ""]
        for option in record["options"]:
            default = option["defaultValue"].strip('"')
            lines.append(f"- `{option['argument']}` (default {default}): {option['description']}")
        lines += [""] if record["options"] else []
    return "\n".join(lines).rstrip() + "\n"


if __name__ == "__main__":
    main()

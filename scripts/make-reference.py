"""Writes docs/reference-python.md and docs/reference-c.md: make-reference.py [FOLDER, by default docs]

The text comes from the docstrings of python/weir and the comments of include/weir/weir.h. Nothing is imported, so
neither PyTorch nor a build is needed. Exits with 2, and writes nothing, if a public name has no text.
"""

import ast
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parents[1]
PYTHON = ROOT / "python"
HEADER = ROOT / "include/weir/weir.h"

PYTHON_INTRODUCTION = """\
# Python reference

Made by `scripts/make-reference.py` from the docstrings of `python/weir`; change those, and run it.
[python.md](python.md) is the guide, [tutorial.md](tutorial.md) a first program.
"""
C_INTRODUCTION = """\
# C reference

Made by `scripts/make-reference.py` from [include/weir/weir.h](../include/weir/weir.h); change that, and run it.
[examples/host_c](../examples/host_c) is a program that uses it, [install.md](install.md#from-c-and-cmake) says how to
build one.
"""

# Names of `weir.__all__` by heading. The modules behind them follow with what is left of their public names.
SECTIONS = {
    "Compiling and loading": ["compile", "compile_step", "load"],
    "Programs": ["Compiled", "Step", "Array"],
    "Optimizers": ["SGD", "Adam", "AdamW", "Lion", "Adafactor", "Rule", "Group"],
    "Devices": ["Device"],
    "Errors": ["Error", "CompileError", "CheckpointError"],
}
MODULES = ["weir.torch", "weir.jax", "weir.onnx", "weir.distributed", "weir.runtime"]

ITEM = re.compile(r"(`\w+`|Arguments|Errors|Results|Shapes|Source|Units): +(.*)")
SECTION = re.compile(r"/\*--- (\w+) -+\*/\n")
COMMENT = re.compile(r"/\*(.*?)\*/\n", re.DOTALL)
FUNCTION = re.compile(r"(weir_\w+)\(")


class Reference:
    """A page under construction: its lines, and the public names without a text."""

    def __init__(self, introduction: str):
        self.lines = [introduction]
        self.missing: list[str] = []

    def add(self, heading: str, code: str, language: str, text: str | None) -> None:
        if not text:
            self.missing.append(heading.strip("# "))
            return
        self.lines += [heading, "", f"```{language}", code, "```", "", text, ""]

    def __str__(self) -> str:
        return "\n".join(self.lines).rstrip() + "\n"


class Module:
    """The definitions of a Python module by name, including those imported from Weir's modules."""

    def __init__(self, name: str):
        self.name = name
        place = PYTHON / name.replace(".", "/")
        self.source = (place / "__init__.py" if place.is_dir() else place.with_suffix(".py")).read_text()
        self.tree = ast.parse(self.source)
        self.imports = {
            alias.name: node.module
            for node in ast.walk(self.tree) if isinstance(node, ast.ImportFrom) and node.module.startswith("weir.")
            for alias in node.names
        }
        self.definitions = {
            node.name: node for node in self.tree.body if isinstance(node, (ast.ClassDef, ast.FunctionDef))
        }

    def find(self, name: str) -> tuple["Module", ast.ClassDef | ast.FunctionDef]:
        """Returns a definition and its module."""
        if name in self.definitions:
            return self, self.definitions[name]
        return Module(self.imports[name]).find(name)

    def list_public(self) -> list[str]:
        """Returns the names in `__all__`, or else the definitions without an underscore."""
        for node in self.tree.body:
            if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__":
                return ast.literal_eval(node.value)
        return [name for name in self.definitions if not name.startswith("_")]


def main() -> None:
    folder = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else ROOT / "docs")
    pages = {"reference-python.md": make_python_page(), "reference-c.md": make_c_page()}
    if missing := [name for page in pages.values() for name in page.missing]:
        sys.exit(_fail(f"these have no text: {', '.join(missing)}; give each a docstring, or in weir.h a comment"))
    for name, page in pages.items():
        (folder / name).write_text(str(page))


def _fail(message: str) -> int:
    print(f"make-reference.py: {message}", file=sys.stderr)
    return 2


def make_python_page() -> Reference:
    """Returns the page of `weir.__all__` and of MODULES."""
    page = Reference(PYTHON_INTRODUCTION)
    package = Module("weir")
    told = [name for names in SECTIONS.values() for name in names]
    if left := set(package.list_public()) ^ set(told):
        sys.exit(_fail(f"weir.__all__ and SECTIONS of make-reference.py differ in {', '.join(sorted(left))}"))
    for title, names in SECTIONS.items():
        page.lines += [f"## {title}", ""]
        for name in names:
            add_definition(page, "weir", *package.find(name))
    shared: set[tuple[str, str]] = set()  # told in a section before
    for name in MODULES:
        module = Module(name)
        page.lines += [f"## {name}", "", format_text(ast.get_docstring(module.tree)), ""]
        for part in module.list_public():
            place, node = module.find(part)
            if package.imports.get(part) != name and (place.name, part) not in shared:
                shared.add((place.name, part))
                add_definition(page, name, place, node)
    return page


def add_definition(page: Reference, place: str, module: Module, node: ast.ClassDef | ast.FunctionDef) -> None:
    """Adds a function, or a class with its public members."""
    heading = f"### {place}.{node.name}"
    if isinstance(node, ast.FunctionDef):
        page.add(heading, get_signature(node, node.name), "python", get_text(node))
        return
    page.add(heading, get_class_head(module, node), "python", get_text(node))
    for member in list_members(module, node):
        is_property = any(ast.unparse(part).endswith("property") for part in member.decorator_list)
        code = get_signature(member, node.name if member.name == "__init__" else member.name)
        if is_property:
            code = f"{member.name}: {ast.unparse(member.returns)}"
        page.add(f"#### `{node.name}.{member.name}`", code, "python", get_text(member))


def list_members(module: Module, node: ast.ClassDef) -> list[ast.FunctionDef]:
    """Returns public methods, including those of private bases, `__call__`, and `__init__` if it has a text."""
    found = [member for member in node.body if isinstance(member, ast.FunctionDef)]
    for base in node.bases:
        if (name := ast.unparse(base)) in module.definitions and name.startswith("_"):
            known = {member.name for member in found}
            found += [member for member in list_members(module, module.definitions[name]) if member.name not in known]
    return [
        member for member in found
        if not member.name.startswith("_") or member.name == "__call__"
        or (member.name == "__init__" and ast.get_docstring(member))
    ]


def get_class_head(module: Module, node: ast.ClassDef) -> str:
    """Returns the class's first line, and a data class's fields with their comments."""
    bases = [name for name in map(ast.unparse, node.bases) if not name.startswith("_") and not name.endswith("Mixin")]
    head = f"class {node.name}" + (f"({', '.join(bases)})" if bases else "")
    fields = [part for part in node.body if isinstance(part, ast.AnnAssign)]
    if not node.decorator_list or not fields:
        return head
    lines = module.source.splitlines()[fields[0].lineno - 1 : fields[-1].end_lineno]
    return "\n".join([*(f"@{ast.unparse(part)}" for part in node.decorator_list), f"{head}:", *lines])


def get_signature(node: ast.FunctionDef, name: str) -> str:
    """Returns `name(parameters) -> type` without `self`, with one parameter per line if it is too long."""
    arguments = node.args
    if arguments.args and arguments.args[0].arg == "self":
        arguments = ast.arguments(**{**vars(arguments), "args": arguments.args[1:]})
    returns = f" -> {ast.unparse(node.returns)}" if node.returns and node.name != "__init__" else ""
    returns = returns.replace("'", "")  # around the class's own name
    parts = [part.replace("=", " = ") if ":" in part else part for part in _split(ast.unparse(arguments))]
    text = ", ".join(parts)
    if len(name) + len(text) + len(returns) < 100:
        return f"{name}({text}){returns}"
    return f"{name}(\n" + "".join(f"    {part},\n" for part in parts) + f"){returns}"


def _split(text: str) -> list[str]:
    """Splits at commas outside of brackets."""
    parts, depth = [""], 0
    for letter in text.replace("'", '"'):
        depth += (letter in "([{") - (letter in ")]}")
        if letter == "," and not depth:
            parts.append("")
        else:
            parts[-1] += letter
    return [part.strip() for part in parts if part]


def get_text(node: ast.ClassDef | ast.FunctionDef) -> str | None:
    text = ast.get_docstring(node)
    return format_text(text) if text else None


def format_text(text: str) -> str:
    """Returns a docstring as Markdown: lines such as "Errors: ..." and "`name`: ..." become a list."""
    made: list[str] = []
    is_item = False
    for line in text.splitlines():
        if found := ITEM.match(line):
            if made and made[-1] and not is_item:
                made.append("")
            name, rest = found.groups()
            made.append(f"- {name if name.startswith('`') else f'*{name}*'}: {rest}")
            is_item = True
        elif is_item and line.startswith("  "):
            made.append(f"  {line.strip()}")
        else:
            if is_item and line:
                made.append("")
            made.append(line)
            is_item = False
    return "\n".join(made)


def make_c_page() -> Reference:
    """Returns the page of weir.h. Every declaration must directly follow its comment."""
    page = Reference(C_INTRODUCTION)
    header = HEADER.read_text()
    head, *sections = SECTION.split(header.partition("#ifdef __cplusplus\n}")[0])
    about = COMMENT.match(head).group(1).split("\n", 1)[1]
    page.lines += [strip_comment(re.sub(r"\*===-.*", "", about)), ""]
    for title, body in zip(sections[::2], sections[1::2]):
        page.lines += [f"## {title.capitalize()}", ""]
        for comment, code in split_declarations(body):
            page.add(f"### {find_name(code)}", code, "c", strip_comment(comment))
    return page


def split_declarations(body: str) -> list[tuple[str, str]]:
    """Returns (comment or "", text) of each declaration, which ends with a semicolon outside of braces."""
    found = []
    while body := body.strip():
        comment = COMMENT.match(body)
        body = body[comment.end() if comment else 0 :]
        depth = end = 0
        code = re.sub(r"/\*.*?\*/", lambda inner: " " * len(inner.group()), body, flags=re.DOTALL)
        for end, letter in enumerate(code):
            depth += (letter == "{") - (letter == "}")
            if letter == ";" and not depth:
                break
        found.append((comment.group(1) if comment else "", body[: end + 1].strip()))
        body = body[end + 1 :]
    return found


def find_name(code: str) -> str:
    """Returns the declared name."""
    if pointer := re.search(r"\(\*(weir_\w+)\)", code):
        return pointer.group(1)
    if not code.startswith("typedef") and (function := FUNCTION.search(code)):
        return function.group(1)
    return re.search(r"(\w+);$", code).group(1)


def strip_comment(text: str) -> str:
    lines = (re.sub(r"^ ?\* ?", "", line.strip()) for line in text.strip().splitlines())
    return "\n".join(line.rstrip() for line in lines).strip()


if __name__ == "__main__":
    main()

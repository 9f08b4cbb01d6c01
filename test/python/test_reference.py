"""The references of docs/ are those of the sources, and links of all pages lead somewhere."""

import ctypes
import pathlib
import re
import shutil
import subprocess
import sys

import pytest
from conftest import ROOT

import weir
from weir import locations

SCRIPT = "scripts/make-reference.py"
PAGES = ("reference-python.md", "reference-c.md")
ELSEWHERE = {"setup.py"}  # files of others


def list_headings(page):
    return re.findall(r"^###+ `?([\w.]+)`?$", (ROOT / "docs" / page).read_text(), re.MULTILINE)


def make_reference(root, folder):
    return subprocess.run([sys.executable, root / SCRIPT, folder], capture_output=True, text=True)


def test_committed_references_are_current(tmp_path):
    done = make_reference(ROOT, tmp_path)
    assert done.returncode == 0, done.stderr
    for page in PAGES:
        assert (tmp_path / page).read_text() == (ROOT / "docs" / page).read_text(), f"run {SCRIPT}: {page} is stale"


def test_every_python_name_is_in_the_reference():
    headings = list_headings("reference-python.md")
    assert {f"weir.{name}" for name in weir.__all__} <= set(headings)
    exported = re.search(r"__all__ = \[(.*?)\]", (ROOT / "python/weir/torch/__init__.py").read_text()).group(1)
    assert {f"weir.torch.{name}" for name in re.findall(r"\w+", exported)} <= set(headings)
    assert len(headings) == len(set(headings))


def test_every_c_function_is_in_the_reference():
    try:
        library = ctypes.CDLL(locations.find_library())
    except OSError as error:  # as a sanitized one; test_runtime.py fails where it has to load
        pytest.skip(f"the library cannot be loaded here: {error}")
    text = re.sub(r"/\*.*?\*/", "", (ROOT / "include/weir/weir.h").read_text(), flags=re.DOTALL)
    functions = set(re.findall(r"\b(weir_\w+)\(", text))
    headings = list_headings("reference-c.md")
    assert len(functions) > 25 and functions <= set(headings)
    assert [name for name in functions if not hasattr(library, name)] == []
    assert len(headings) == len(set(headings))


@pytest.mark.parametrize("file, text, message", [
    ("python/weir/programs.py", '"""The name of the device."""', "Compiled.device"),
    ("python/weir/__init__.py", '"load",', "weir.__all__ and SECTIONS of make-reference.py differ in load"),
    ("include/weir/weir.h", "/* Waits for the submitted runs that use the buffer. */", "weir_buffer_wait"),
])
def test_names_without_text_are_refused(tmp_path, file, text, message):
    for folder in ("scripts", "python", "include/weir"):
        (tmp_path / folder).mkdir(parents=True)
    shutil.copy(ROOT / SCRIPT, tmp_path / SCRIPT)
    shutil.copy(ROOT / "include/weir/weir.h", tmp_path / "include/weir")
    shutil.copytree(ROOT / "python/weir", tmp_path / "python/weir", ignore=shutil.ignore_patterns("__pycache__"))
    (tmp_path / "docs").mkdir()
    assert make_reference(tmp_path, tmp_path / "docs").returncode == 0  # the twin
    for page in PAGES:
        (tmp_path / "docs" / page).unlink()
    source = (tmp_path / file).read_text()
    # The last one: "load", stands in the table of places, too.
    before, found, after = source.rpartition(text)
    assert found
    (tmp_path / file).write_text(before + after)
    done = make_reference(tmp_path, tmp_path / "docs")
    assert done.returncode == 2 and message in done.stderr and done.stderr.count("\n") == 1
    assert not list((tmp_path / "docs").iterdir())


def list_pages():
    """Returns the repository's pages, those of build folders left out."""
    return [path for path in ROOT.rglob("*.md") if not {"build", "node_modules"} & set(path.relative_to(ROOT).parts)
            and not any(part.startswith(".") for part in path.relative_to(ROOT).parts)]


def get_anchors(page):
    """Returns the names that GitHub gives a page's headings."""
    titles = re.findall(r"^#+ (.*)$", strip_code(page.read_text()), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}


def strip_code(text):
    return re.sub(r"^```.*?^```", "", text, flags=re.MULTILINE | re.DOTALL)


def find_broken_links(page):
    """Returns the links of a page to files that are not there, and to headings that their page has not."""
    broken = []
    for target in re.findall(r"\]\(([^)\s]+)\)", re.sub(r"`[^`\n]*`", "", strip_code(page.read_text()))):
        if re.match(r"\w+:", target):
            continue
        path, _, anchor = target.partition("#")
        file = (page.parent / path).resolve() if path else page
        if not file.exists() or (anchor and file.suffix == ".md" and anchor not in get_anchors(file)):
            broken.append(target)
    return broken


def test_links_lead_somewhere():
    pages = list_pages()
    assert len(pages) > 20 and ROOT / "README.md" in pages
    assert {str(page.relative_to(ROOT)): broken for page in pages if (broken := find_broken_links(page))} == {}


def test_broken_links_are_found(tmp_path):
    (tmp_path / "other.md").write_text("# A title, `quoted`\n\n```\n# no title\n```\n")
    (tmp_path / "page.md").write_text(
        "# Here\n[good](other.md#a-title-quoted) [good](#here) [web](https://example.org/x) `[code](none)`\n"
        "[file](none.md) [heading](other.md#no-title) [own](#there)\n```\n[code](none)\n```\n")
    assert find_broken_links(tmp_path / "page.md") == ["none.md", "other.md#no-title", "#there"]
    assert find_broken_links(tmp_path / "other.md") == []


def test_paths_on_pages_exist():
    """A path of the repository in backticks is that of a file or a folder, or the end of one."""
    files = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True).stdout.split()
    known = {file for path in files for file in (path, *map(str, pathlib.PurePath(path).parents))}
    ends = {"/".join(path.split("/")[i:]) for path in known for i in range(path.count("/") + 1)}
    folders = {path.split("/")[0] for path in files if "/" in path}
    pages = [ROOT / file for file in files if file.endswith(".md")]
    wrong = []
    for page in pages:
        for text in re.findall(r"`([^`\n]+)`", page.read_text()):
            path = text.rstrip("/")
            is_path = re.fullmatch(r"[\w.-]+(/[\w.-]+)+", path) and path.split("/")[0] in folders
            is_source = re.fullmatch(r"[\w.-]+\.(cpp|h|td|py)", path) and path not in ELSEWHERE
            if (is_path and path not in known and not path.startswith("build/")) or (is_source and path not in ends):
                wrong.append(f"{page.relative_to(ROOT)}: {path}")
    assert not wrong


def test_a_shell_completes_public_names_alone():
    names = [name for name in dir(weir) if not name.startswith("__")]
    assert names == sorted([*weir.__all__, "distributed", "jax", "onnx", "torch"])
    assert weir.__version__ == re.search(r"project\(weir VERSION ([\d.]+)", (ROOT / "CMakeLists.txt").read_text())[1]

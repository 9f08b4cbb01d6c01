"""The commands of docs/coming-from.md are run, and print what the page shows."""

import os
import re
import subprocess

from conftest import BIN, ROOT


def read_sessions(text):
    """Returns (command, lines shown) of each command in the page's console blocks."""
    sessions = []
    for block in re.findall(r"```console\n(.*?)```", text, re.DOTALL):
        for line in block.splitlines():
            if line.startswith("$ "):
                sessions.append((line[2:], []))
            elif line.startswith("> "):
                sessions[-1] = (f"{sessions[-1][0]}\n{line[2:]}", [])
            else:
                sessions[-1][1].append(line)
    return sessions


def make_pattern(lines):
    """A line `...` stands for any lines, `...` within a line for any text."""
    parts = ["(.*\n)*" if line == "..." else ".*".join(map(re.escape, line.split("..."))) + "\n" for line in lines]
    return re.compile("".join(parts))


def test_coming_from(tmp_path):
    for name in "examples", "scripts":
        (tmp_path / name).symlink_to(ROOT / name)
    environment = os.environ | {"PATH": f"{BIN}:{os.environ['PATH']}", "WEIR_LIB": str(BIN.parent / "lib")}
    sessions = read_sessions((ROOT / "docs/coming-from.md").read_text())
    assert len(sessions) > 20
    for command, shown in sessions:
        done = subprocess.run(["bash", "-c", command], cwd=tmp_path, env=environment, text=True,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        output = done.stdout if not done.stdout or done.stdout.endswith("\n") else done.stdout + "\n"
        assert make_pattern(shown).fullmatch(output), f"{command}\n{output}"
        failure = any(word in "\n".join(shown) for word in ("error:", "sim:"))
        assert (done.returncode != 0) == failure, f"{command}\n{done.returncode}"


def test_a_page_that_differs_is_noticed():
    assert make_pattern(["a ... c", "...", "e"]).fullmatch("a b c\nd\ne\n")
    assert not make_pattern(["a ... c"]).fullmatch("a b d\n")
    assert not make_pattern(["a"]).fullmatch("a\nb\n")
    assert read_sessions("```console\n$ cat <<E\n> x\n> E\nx\n```") == [("cat <<E\nx\nE", ["x"])]

"""Checks the files of `weir help --pages`: check_pages.py FOLDER. Every verb and every option that
--help shows is in its man page and in the completion of each shell, and the shells that are
there can read theirs."""

import pathlib
import re
import shutil
import subprocess
import sys

share = pathlib.Path(sys.argv[1])
scripts = {"bash": share / "bash-completion/completions/weir", "zsh": share / "zsh/site-functions/_weir",
           "fish": share / "fish/vendor_completions.d/weir.fish"}
texts = {shell: path.read_text() for shell, path in scripts.items()}
expected = set(scripts.values())


def run(*command):
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def complete(*words):
    """Returns what bash offers for the last of the words of a command line."""
    line = " ".join(f"'{word}'" for word in words)
    return run("bash", "-c", f"source {scripts['bash']}; COMP_WORDS=({line}); COMP_CWORD={len(words) - 1}; "
               "compopt() { :; }; _weir; printf '%s\\n' \"${COMPREPLY[@]}\"").split()


verbs = re.findall(r"^  ([a-z-]+) ", run("weir", "help").split("Verbs:")[1], re.M)
assert {"compile", "run", "help"} <= set(verbs), verbs
for verb in ["", *verbs]:
    page = share / "man/man1" / ("-".join(filter(None, ["weir", verb])) + ".1")
    expected.add(page)
    manual = page.read_text().replace("\\-", "-")
    assert manual.startswith(".TH "), page
    options = re.findall(r"^  (?:-\w,)?(--[a-z0-9-]+)", run("weir", "help", *filter(None, [verb])), re.M)
    assert "--help" in options, (verb, options)
    for option in options:
        assert f"{option}\\fR" in manual, (page, option)
        assert option in [word.rstrip("=") for word in complete("weir", *filter(None, [verb]), option)], (verb, option)
        if verb:
            assert re.search(rf"{option}[=\[]", texts["zsh"]), (verb, option)
            assert re.search(rf"__fish_seen_subcommand_from {verb}' -l {option[2:]} ", texts["fish"]), (verb, option)
assert {path for path in share.rglob("*") if path.is_file()} == expected

assert complete("weir", "comp") == ["compile"]
assert complete("weir", "run", "--random") == ["--random-inputs="]
assert complete("weir", "run", "x") == [], "files are the shell's"
assert complete("weir", "help", "insp") == ["inspect"]
for shell, path in scripts.items():
    if shutil.which(shell):
        run(shell, "-n", str(path))
if shutil.which("groff"):
    for page in share.glob("man/man1/*"):
        warnings = subprocess.run(["groff", "-man", "-ww", "-z", str(page)], capture_output=True, text=True).stderr
        assert not warnings, warnings

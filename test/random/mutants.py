"""Mutants of an artifact, each shown to `weir verify` and to the simulator."""

import collections
import concurrent.futures
import dataclasses
import json
import os
import pathlib
import random
import re
import shutil
import subprocess

from check import PROFILES, get_profile
from graphs import make_graph


KEEP = os.environ.get("WEIR_KEEP_MUTANTS")  # a folder for those that `weir verify` must refuse elsewhere, too


def keep_mutant(path, mutant):
    """Keeps a mutant that must be refused, for `scripts/gpu-tests`."""
    test = re.sub(r"\W+", "_", os.environ.get("PYTEST_CURRENT_TEST", "mutant").split("::")[-1].split(" ")[0])
    folder = pathlib.Path(KEEP)
    folder.mkdir(parents=True, exist_ok=True)
    shutil.copy(path, folder / f"{test}-{re.sub(r'[^A-Za-z0-9]+', '_', mutant['id'])}.weir")


@dataclasses.dataclass
class Judged:
    """A mutant as `weir-mutate --list --json` lists it, and which checkers object."""
    id: str
    kind: str
    what: str
    proof: str
    is_of: str  # class
    verify: bool
    sim: bool
    words: str  # of those who object

    def is_right(self):
        """Whether both checkers object exactly if they should. Neither may object to an equivalent mutant."""
        if self.is_of == "behavior":
            return self.verify and self.sim
        return self.verify if self.is_of == "metadata" else not (self.verify or self.sim)

    def __str__(self):
        return (f"{self.id} ({self.what}) is of class {self.is_of}, for {self.proof}; "
                f"verify {'objects' if self.verify else 'is content'}, "
                f"sim {'objects' if self.sim else 'is content'}: {self.words}")


def ask(command):
    """Returns whether a check fails, and its output. Any status but 0 and 1 is an error, unless a loop does not end."""
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True)
    is_endless = done.returncode == 2 and "too many for the simulator" in done.stderr
    if done.returncode not in (0, 1) and not is_endless:
        raise RuntimeError(f"{' '.join(map(str, command))}\n{done.stdout}{done.stderr}")
    return done.returncode != 0, done.stdout + done.stderr


def make_target(weir, folder, seed, target):
    """Returns what `--target` of compile is for a seed: `target`, "vulkan" or "cuda", with its own profile or with the
    habits of one of the random graphs'. `weir` is the program."""
    name, path = get_profile(seed), folder / "profile.json"
    if name is None:
        return target
    changes = dict(PROFILES[name])
    if target == "cuda":
        profile = {"like": "sm_80"}
        if "workgroup_size" in changes:  # of whole warps
            changes["workgroup_size"] = max(changes["workgroup_size"], 32)
    else:
        subprocess.run([weir, "devices", f"--emit-profile={path}"], check=True, stdout=subprocess.DEVNULL)
        profile = json.loads(path.read_text())
    path.write_text(json.dumps(profile | {"name": name} | changes))
    return f"{target}:{path}"


def make_mutable_graph(seed):
    """Returns a random graph that weir-mutate can follow: without gathers, whose addresses depend on data."""
    return make_graph(seed, without=["Gather"])


def list_mutants(tools, artifact):
    done = subprocess.run([tools / "weir-mutate", artifact, "--list", "--json"], capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(done.stderr)
    return json.loads(done.stdout)


def judge(tools, artifact, folder, most=None, flags=("--random-inputs=1",), kinds=None):
    """Judges the mutants of an artifact: of each kind and class at most `most`, chosen by the
    ids, or only those of `kinds`. `tools` is the folder of the programs."""
    groups = collections.defaultdict(list)
    for mutant in list_mutants(tools, artifact):
        if kinds is None or mutant["kind"] in kinds:
            groups[mutant["kind"], mutant["class"]].append(mutant)
    chosen = []
    for alike in groups.values():
        few = most is not None and len(alike) > most
        chosen += random.Random(alike[0]["id"]).sample(alike, most) if few else alike

    def show(job):
        number, mutant = job
        path = folder / f"mutant{number}.weir"
        subprocess.run([tools / "weir-mutate", artifact, f"--apply={mutant['id']}", "-o", path], check=True)
        if KEEP and mutant["class"] != "equivalent":
            keep_mutant(path, mutant)
        verify, claims = ask([tools / "weir-device", "verify", path])
        sim, reports = ask([tools / "weir-device", "run", path, f"--entry={mutant['entry']}", "--device=sim",
                            *flags])
        path.unlink()
        fails = [line for line in claims.splitlines() if " FAILS " in line]
        words = "\n".join(fails + [line for line in reports.splitlines() if line.startswith("sim:")])
        return Judged(mutant["id"], mutant["kind"], mutant["what"], mutant["proof"], mutant["class"],
                      verify, sim, words)

    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        return list(pool.map(show, enumerate(chosen)))


def print_table(judged):
    """Prints how many mutants of each kind and class each checker objects to, as Markdown."""
    rows = collections.defaultdict(collections.Counter)
    for mutant in judged:
        rows[mutant.kind, mutant.is_of][mutant.verify, mutant.sim] += 1
    lines = ["| kind | class | mutants | both object | verify alone | sim alone | neither |",
             "| --- | --- | ---: | ---: | ---: | ---: | ---: |"]
    for (kind, is_of), counts in sorted(rows.items()):
        who = [counts[key] for key in ((True, True), (True, False), (False, True), (False, False))]
        lines.append(f"| {kind} | {is_of} | {sum(who)} | {' | '.join(map(str, who))} |")
    return "\n".join(lines)

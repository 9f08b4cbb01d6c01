"""docs/troubleshooting.md: each message on the page is provoked."""

import contextlib
import os
import pathlib
import re
import subprocess
import sys
import threading

import numpy
import pytest
from conftest import BIN, ENVIRONMENT, ROOT

torch = pytest.importorskip("torch", reason="PyTorch is not installed: scripts/setup --torch")
pytest.importorskip("torch_mlir", reason="torch-mlir is not installed: scripts/setup --torch")

from torch import nn  # noqa: E402

import weir  # noqa: E402

X = torch.ones(4, 8)
HEADINGS = re.findall(r"^### `(.*)`$", (ROOT / "docs/troubleshooting.md").read_text(), re.MULTILINE)
PROVOKED = {}  # by heading: what raises the message


def provokes(heading):
    def register(function):
        PROVOKED[heading] = function
        return function

    return register


def compile_function(function, example=X, **options):
    return weir.compile(function, example=(example,), **options)


class Mixed(nn.Module):
    """Has parameters of two types."""

    def __init__(self):
        super().__init__()
        self.first, self.second = nn.Linear(8, 2), nn.Linear(2, 2).double()

    def forward(self, x):
        return self.second(self.first(x).double())


def compile_step(module, loss=torch.sum, **options):
    return weir.compile_step(module, loss, example=(X,), **options)


def run_weir(*arguments, **environment):
    done = subprocess.run([BIN / "weir", *arguments], capture_output=True, text=True, env={**ENVIRONMENT, **environment})
    assert done.returncode == 2
    raise RuntimeError(done.stderr.removeprefix("error: "))


def compile_text(text, *options):
    pathlib.Path("g.mlir").write_text(text)
    run_weir("compile", "g.mlir", *options, "-o", "g.weir")


def loop(x):
    while x.sum() < 10:
        x = x + 1
    return x


FLAGGED = "... is ..., but the program was compiled for ..."
DYNAMIC = "func.func @f(%x: tensor<?x4xf32>) -> tensor<?x4xf32> {\n  return %x : tensor<?x4xf32>\n}\n"
LARGE = """
func.func @f(%x: tensor<34000000xf32>) -> tensor<34000000xf32> {
  %y = arith.addf %x, %x : tensor<34000000xf32>
  return %y : tensor<34000000xf32>
}
"""
BITS = """
func.func @f(%x: tensor<f32> {weir.kind = "param"}) -> tensor<f32> {
  %i = arith.bitcast %x : tensor<f32> to tensor<i32>
  %y = arith.bitcast %i : tensor<i32> to tensor<f32>
  return %y : tensor<f32>
}
"""
DONATING = """
func.func @add(%x: tensor<4xf32> {weir.donate, weir.name = "x"}) -> (tensor<4xf32> {weir.name = "y"}) {
  %y = arith.addf %x, %x : tensor<4xf32>
  return %y : tensor<4xf32>
}
"""

provokes("the module has operators without a form in linalg: ...")(lambda: compile_function(lambda x: torch.igamma(x, x)))
provokes("the module has results whose shapes depend on values: ...")(lambda: compile_function(lambda x: x[x > 0]))
provokes("torch.export cannot trace the module: a number that depends on values decides what is computed; ...")(
    lambda: compile_function(loop))
provokes("the module has random operators that are made of no uniform numbers here: ...")(
    lambda: compile_function(lambda x: x[torch.randperm(4)]))
provokes("the module writes to its input ..., through which no gradient would flow; copy it first")(
    lambda: weir.torch.Module(lambda x: x.add_(1), example=(X,)))
provokes("the loss is ...; it must be one float of rank 0: use .mean() or .sum()")(
    lambda: compile_step(nn.Linear(8, 2), lambda output: output))
provokes("two arguments are named ...; give the input or the target another name")(
    lambda: compile_step(nn.Linear(8, 2), lambda output, target: output.sum(), targets={"input": X}))
provokes("no parameter of the module requires a gradient, so there is nothing to train")(
    lambda: compile_step(nn.Linear(8, 2).requires_grad_(False)))
provokes("... does not fit in ... bytes: its arena has ... as written, ... in the best order, and the smallest limit that "
         "fits is ...")(lambda: compile_step(nn.Linear(8, 2), lambda output: output.softmax(1).sum(), memory_limit=1))
provokes("... parameters ... and ... are ... and ...; a step updates f64 alone")(
    lambda: compile_step(Mixed(), lambda output: output.sum()))
provokes("... is float32[...], expected float32[...]")(lambda: compile_function(lambda x: x * 2)(X[:2]))
provokes("no entry takes these arguments; ...")(
    lambda: weir.compile(lambda x: x * 2, example=[(X,), (X[:1],)])(X[:2]))
provokes("... is a tensor on ...; move it to host memory by .cpu()")(
    lambda: compile_function(lambda x: x * 2)(X.to("meta")))
provokes(FLAGGED)(lambda: weir.compile(lambda x, scale: x * scale, example=(X, 2.0))(X, 3.0))
provokes("got an unexpected keyword argument 'momentum'")(
    lambda: compile_step(nn.Linear(8, 2), optimizer=weir.SGD())(X, momentum=0.9))
provokes("... uses an index that is not in ...; reads took the nearest element, writes were dropped")(
    lambda: compile_function(nn.Embedding(5, 3), torch.tensor([0]))(torch.tensor([5])))
provokes("no Vulkan device found: ...")(lambda: run_weir("devices", "--api=vulkan", VK_DRIVER_FILES="/nowhere"))
provokes("cannot read artifact ...: it is cut short: ...")(lambda: run_weir("inspect", write_cut_artifact()))

provokes("... larger than the ... bytes per binding of target ...")(lambda: compile_text(LARGE))
provokes("... is ..., not a ranked tensor of static shape; export with fixed sizes, as one function for each size that is "
         "needed")(lambda: compile_text(DYNAMIC))
provokes("... has no gradient rule: ...")(lambda: compile_text(BITS, "--grad=f"))


@provokes("no CUDA device found: ...")
def open_cuda():
    with contextlib.closing(weir.Device("cuda")):
        pytest.skip("there is a CUDA GPU")


@provokes("another thread is in a call of this program; give each thread its own, or take turns by a lock")
def call_from_two_threads():
    program = compile_function(lambda x: x * 2)
    with program._execution.exclusive():  # as a call of another thread has it
        problems = []

        def call():
            try:
                program(X)
            except weir.Error as error:
                problems.append(error)

        thread = threading.Thread(target=call)
        thread.start()
        thread.join()
    raise problems[0]


@provokes("the array ... was donated to a run of ... and is gone; use that run's result, or give the run a copy")
def read_donated_array():
    pathlib.Path("g.mlir").write_text(DONATING)
    subprocess.run([BIN / "weir", "compile", "g.mlir", "-o", "g.weir"], check=True)
    with weir.load("g.weir") as add:
        first = add(numpy.ones(4, numpy.float32))
        add(first)
        first.numpy()


@provokes("... takes parameters, ... and others; give their values by checkpoint=FILE.safetensors")
def load_without_parameters():
    compile_function(nn.Linear(8, 2)).save_artifact("m.weir")
    weir.load("m.weir")


@provokes("... is of another model: it has ..., which the program has not...")
def load_checkpoint_of_step():
    module = nn.Linear(8, 2)
    compile_step(module).save("c.safetensors")
    compile_function(module).load("c.safetensors")


@provokes("... is no safetensors file, or cut short: ...")
def load_cut_checkpoint():
    step = compile_step(nn.Linear(8, 2))
    step.save("c.safetensors")
    os.truncate("c.safetensors", os.path.getsize("c.safetensors") - 1)
    step.load("c.safetensors")


@provokes("there is no program ... in ..., which WEIR_BIN names")
def compile_without_compiler():
    code = "import torch, weir; weir.compile(lambda x: x, example=(torch.ones(2),))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True,
                          env={**ENVIRONMENT, "WEIR_BIN": "/nowhere"})
    raise RuntimeError(done.stderr.splitlines()[-1])


def write_cut_artifact():
    with contextlib.closing(compile_function(lambda x: x * 2)) as program:
        program.save_artifact("m.weir")
    os.truncate("m.weir", os.path.getsize("m.weir") - 30)
    return "m.weir"


def test_the_page_has_each_message_once():
    assert sorted(HEADINGS) == sorted(PROVOKED) and len(HEADINGS) > 20


@pytest.mark.parametrize("heading", HEADINGS)
def test_messages_are_those_of_the_page(heading, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(Exception) as raised:
        PROVOKED[heading]()
    pattern = ".*".join(re.escape(part.strip()) for part in heading.split("..."))
    assert re.search(pattern, str(raised.value), re.DOTALL), raised.value

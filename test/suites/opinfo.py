#!/usr/bin/env python3
"""PyTorch's own databases of operators and modules: results and gradients beside eager PyTorch's in f64.

    test/suites/opinfo.py --samples=2 --filter='^op:lgamma' --dtypes=f32,f64

Cases are "op:NAME" (OpInfo, forward), "grad:NAME" (its gradients) and "module:NAME" (ModuleInfo, both modes).
Samples of several cases are results of one artifact; if it is refused or fails, its halves are tried, down to
single samples. An error is right up to a few times that of eager PyTorch in the same type.
"""

import collections
import copy
import itertools
import json
import math
import os
import pathlib
import re
import select
import signal
import sys
import time
import types
import unittest
import warnings

from common import can_import, parse_options

# The databases import expecttest for the base of their test cases only.
if not can_import("expecttest"):
    sys.modules["expecttest"] = types.SimpleNamespace(TestCase=unittest.TestCase)
if not all(map(can_import, ("torch", "torch_mlir", "torch.testing._internal.common_methods_invocations"))):
    print("skipped: needs torch and torch_mlir")
    sys.exit(77)

import torch  # noqa: E402
from torch import nn  # noqa: E402
from torch.testing._internal.common_methods_invocations import op_db  # noqa: E402
from torch.testing._internal.common_modules import module_db  # noqa: E402
from torch.utils import _pytree as pytree  # noqa: E402

import weir  # noqa: E402
import weir.torch  # noqa: E402

VERDICTS = ("right", "wrong", "refused", "refused badly", "raised", "not compared")
DTYPES = {
    "f32": torch.float32, "f64": torch.float64, "bf16": torch.bfloat16, "f16": torch.float16, "i64": torch.int64,
    "i32": torch.int32, "i16": torch.int16, "i8": torch.int8, "u8": torch.uint8, "bool": torch.bool,
    "c64": torch.complex64,
}
# What --values=edges puts in place of some elements.
EDGES = [math.nan, math.inf, -math.inf, 0.0, -0.0, 1.0, -1.0, 1e-41, 1e30, -1e-6, 1.0, 2.5, -2.0]
BUNDLE = 32  # samples of one artifact
GROUP = 12  # cases of one process

# Operators that don't count, by the reason: an expression of names that matches as a whole.
EXCLUDED = {
    "draws random numbers, which are not PyTorch's":
        r"bernoulli|multinomial|normal.*|uniform|randn?|randn_like|rand_like|randint.*|cauchy|exponential|geometric|log_normal|"
        r"nn\.functional\..*dropout.*|nn\.functional\.rrelu|nn\.functional\.fractional_max_pool.*|pca_lowrank|svd_lowrank|"
        r"nn\.functional\.scaled_dot_product_attention_dropout|randperm",
    "has values that are not defined": r"(new_)?empty.*|empty_like|resize_|resize_as_|uninitialized",
    "has results whose shape depends on values":
        r"nonzero|argwhere|unique.*|masked_select|combinations|bincount|_unique.*|nonzero_static|torch\.ops\.aten\._nested.*",
    "returns a number to Python": r"item|allclose|equal|broadcast_shapes|.*_local_scalar.*",
    "is about sparse tensors, places or CUDA's own programs":
        r"sparse\..*|to_sparse.*|.*_sparse|jiterator.*|torch\.ops\.aten\._(efficient|flash).*|cdouble_.*",
}
# Gradients that don't count: PyTorch's own are not those of the function.
WITHOUT_GRADIENT = {
    "as_strided_scatter": "of the elements that are written over",
    "linalg.cholesky_ex|linalg.cholesky|cholesky": "of the imaginary part of the diagonal, in complex numbers",
}


def find_exclusion(name):
    """Returns the reason for which an operator does not count, or None."""
    return next((why for why, names in EXCLUDED.items() if re.fullmatch(names, name)), None)


class Sample:
    """A call: a function or module, and its arguments as leaves of a tree."""

    def __init__(self, label, function, arguments, finish=None, name=""):
        self.label, self.function, self.finish, self.name = label, function, finish or (lambda value: value), name
        self.leaves, self.tree = pytree.tree_flatten(arguments)
        self.places = [i for i, leaf in enumerate(self.leaves) if isinstance(leaf, torch.Tensor)]

    def take(self):
        """Returns the tensors, complex ones as real pairs."""
        values = [self.leaves[i].detach() for i in self.places]
        return [torch.view_as_real(value.resolve_conj()).clone() if value.is_complex() else value for value in values]

    def call(self, function, tensors):
        leaves = list(self.leaves)
        for i, value in zip(self.places, tensors, strict=True):
            leaves[i] = torch.view_as_complex(value) if self.leaves[i].is_complex() else value
        args, kwargs = pytree.tree_unflatten(leaves, self.tree)
        results = pytree.tree_leaves(self.finish(function(*args, **kwargs)))
        return [torch.view_as_real(value.resolve_conj()) if value.is_complex() else value
                for value in results if isinstance(value, torch.Tensor)]


def plant(sample):
    """Puts edge values into floating operands, at other places of each: one by one, and a NaN not in all."""
    for number, place in enumerate(sample.places):
        value = sample.leaves[place]
        if not value.is_floating_point() or not value.numel():
            continue
        flat = value.detach().flatten().clone()
        chosen = EDGES[number % 3:] if number % 2 == 0 else EDGES[3:]
        for k in range(0, flat.numel(), 2):
            flat[k] = chosen[(k // 2 + number) % len(chosen)]
        sample.leaves[place] = flat.reshape(value.shape).requires_grad_(value.requires_grad)
    return sample


class Bundle(nn.Module):
    """Samples as one module; with `trains`, their floating tensors are its parameters."""

    def __init__(self, samples, trains=False, wide=False):
        super().__init__()
        self.samples, self.arguments, self.slots = samples, [], []
        self.modules_ = nn.ModuleDict()
        self.values = nn.ParameterDict()
        for k, sample in enumerate(samples):
            if isinstance(sample.function, nn.Module):
                function = copy.deepcopy(sample.function)
                self.modules_[str(k)] = function.double() if wide else function
            slots = []
            for i, value in enumerate(sample.take()):
                value = widen(value) if wide else value
                if trains and value.is_floating_point():
                    self.values[f"p{k}_{i}"] = nn.Parameter(value.clone())
                    slots.append(f"p{k}_{i}")
                else:
                    slots.append(len(self.arguments))
                    self.arguments.append(value)
            self.slots.append(slots)

    def forward(self, _, *arguments):
        results = []
        for k, (sample, slots) in enumerate(zip(self.samples, self.slots, strict=True)):
            function = self.modules_[str(k)] if str(k) in self.modules_ else sample.function
            # A copy of a parameter, which an operator may write to.
            tensors = [self.values[slot] if isinstance(slot, str) else arguments[slot] for slot in slots]
            results.append(sample.call(function, tensors))
        return results


def widen(value):
    return value.double() if value.is_floating_point() else value


def flatten(values):
    """Returns results as tensors."""
    leaves = pytree.tree_leaves(values, is_leaf=lambda value: isinstance(value, weir.Array))
    return [leaf.torch() if isinstance(leaf, weir.Array) else leaf for leaf in leaves if leaf is not None]


def compare(found, eager, wide, factor=1):
    """Returns what is wrong with a result, or ""; `wide` is the result of f64."""
    if found.dtype != eager.dtype or found.shape != eager.shape:
        return f"is {found.dtype}{list(found.shape)}, expected {eager.dtype}{list(eager.shape)}"
    if not found.is_floating_point():
        bad = (found != eager) & (found != wide if wide.dtype == found.dtype else True)
    else:
        eps = torch.finfo(found.dtype).eps
        got, near, far = found.double(), eager.double(), wide.double()
        rounded = wide.to(found.dtype).double()
        finite = far.isfinite() & rounded.isfinite()
        size = far[finite].abs().max().item() if finite.any() else 0.0
        both = finite & near.isfinite()
        own = (near - far)[both].abs().max().item() if both.any() else 0.0
        allowed = factor * (8 * own + (16 if eps > 1e-10 else 256) * eps * size) + torch.finfo(found.dtype).tiny
        same = (got == near) | (got == rounded) | (got.isnan() & (near.isnan() | far.isnan()))
        bad = ~same & ~(finite & ((got - far).abs() <= allowed))
    if not bad.any():
        return ""
    place = tuple(bad.nonzero()[0].tolist())
    return (f"{int(bad.sum())} of {bad.numel()} differ, at {list(place)}: got {found[place].item()}, "
            f"expected {eager[place].item()}")


def allow(sample, result):
    """Returns the factor of the error that counts as right: more where PyTorch's own result is exact to 1e-6 alone."""
    is_rough = re.fullmatch(r"special\.(bessel_[jy][01]|airy_ai)|.*polygamma.*", sample.name)
    return 1 if not is_rough else 1e8 if result.dtype == torch.float64 else 8


def names_equals(sample, found, eager):
    """Whether both are places of equal elements, for operators that give any of those."""
    x = sample.leaves[0]
    if not re.search("sort|topk|kthvalue|median|mode", sample.name):
        return False
    if found.dtype != torch.int64 or found.shape != eager.shape or not isinstance(x, torch.Tensor):
        return False
    for dim in range(x.dim()):
        one, other = ((each if each.dim() == x.dim() else each.unsqueeze(dim)) for each in (found, eager))
        try:
            one, other = x.gather(dim, one), x.gather(dim, other)
        except RuntimeError:
            continue
        if torch.equal(one.nan_to_num(), other.nan_to_num()):
            return True
    return False


def names_poles(sample, found, eager):
    """Whether all that differs are poles of polygamma: PyTorch's sine of a multiple of pi isn't 0, so its are finite."""
    if "polygamma" not in sample.name or found.shape != eager.shape:
        return False
    close = torch.isclose(found, eager, rtol=1e-5, atol=0, equal_nan=True)
    return bool((close | found.isinf() & (eager.abs() > 1e12)).all())


def run_eager(samples, trains, wide):
    bundle = Bundle(samples, trains, wide)
    with torch.set_grad_enabled(trains):
        return bundle, bundle(torch.zeros(()), *(value.clone() for value in bundle.arguments))


def draw_cotangents(results):
    """Returns the weights of the results in the sum whose gradient is taken."""
    generator = torch.Generator().manual_seed(7)
    return [torch.rand(value.shape, generator=generator, dtype=torch.float64) + 0.5 for value in results]


def pick(results):
    """Returns the results that gradients go through: of those without elements nothing does."""
    return [value for value in flatten(results) if value.is_floating_point() and value.requires_grad and value.numel()]


def differentiate(bundle, results, weights):
    if not results:
        return {}
    bundle.zero_grad()
    sum((value.double() * weight).sum() for value, weight in zip(results, weights, strict=True)).backward()
    return {name.removeprefix("module."): torch.zeros_like(value) if value.grad is None else value.grad.clone()
            for name, value in bundle.named_parameters()}


def check_forward(samples, device):
    """Returns the verdicts on samples as one artifact."""
    bundle, eager = run_eager(samples, False, False)
    try:
        _, wide = run_eager(samples, False, True)
    except RuntimeError:
        wide = eager
    arguments = (torch.zeros(()), *bundle.arguments)
    found = weir.compile(bundle, example=arguments, device=device)(*arguments)
    found = iter(flatten(found))
    verdicts = []
    for sample, one, other in zip(samples, eager, wide, strict=True):
        problems = []
        for i, (a, b) in enumerate(zip(one, other, strict=True)):
            value = next(found)
            if (problem := compare(value, a, b, allow(sample, a))) and not (
                    names_equals(sample, value, a) or names_poles(sample, value, a)):
                problems.append(f"result {i} {problem}")
        verdicts.append(("wrong", problems[0]) if problems else ("right", "") if one else ("not compared", "no tensor"))
    return verdicts


def check_gradients(samples, device):
    reference, wide = run_eager(samples, True, True)
    weights = draw_cotangents(pick(wide))
    if not weights:
        return [("not compared", "nothing to differentiate")] * len(samples)
    expected = differentiate(reference, pick(wide), weights)
    bundle, eager = run_eager(samples, True, False)
    near = differentiate(bundle, pick(eager), weights)
    module = weir.torch.Module(bundle, example=(torch.zeros(()), *bundle.arguments), device=device)
    results = pick(module(torch.zeros(()), *bundle.arguments))
    if len(results) != len(weights):
        if len(samples) > 1:
            raise ValueError("not all results are differentiable")  # the halves tell of which sample
        return [("wrong", f"{len(results)} differentiable results, expected {len(weights)}")] * len(samples)
    found = differentiate(module, results, weights)
    verdicts = []
    for k in range(len(samples)):
        names = [name for name in expected if re.match(rf"(values\.p{k}_|modules_\.{k}\.)", name)]
        problems = []
        for name in names:
            match = found.get(name, next((value for key, value in found.items() if key.endswith(name)), None))
            problem = "is missing" if match is None else compare(match, near[name], expected[name], 4)
            if problem:
                problems.append(f"gradient {name} {problem}")
        verdicts.append(("wrong", problems[0]) if problems else ("right", ""))
    return verdicts


def judge_refusal(error, name):
    """Returns "refused", or "refused badly" for a message that is raw, long or names no operator."""
    text = str(error)
    words = [word for word in re.split(r"[._:]", name) if len(word) > 2]
    named = any(word in text for word in words) or "aten." in text or "torch." in text
    raw = "Traceback" in text or "internal error" in text or len(text) > 800 or text.count("\n") > 8
    return ("refused" if named and not raw else "refused badly"), text[:1500]


def judge(samples, device, say, check, ended):
    """Says the verdict on each sample, by its index: all at once, or by halves. `ended`: groups that ended a process."""
    def attempt(places):
        if not places:
            return
        say({"start": places})
        verdicts = None
        if frozenset(places) not in ended:
            try:
                verdicts = check([samples[i] for i in places], device)
            except Exception as error:  # noqa: BLE001
                refusal = isinstance(error, (weir.torch.ExportError, weir.CompileError))
                verdicts = [judge_refusal(error, samples[places[0]].name) if refusal
                            else ("raised", f"{type(error).__name__}: {error}"[:1500])] if len(places) == 1 else None
        if verdicts is None:
            middle = len(places) // 2
            attempt(places[:middle])
            attempt(places[middle:])
            return
        for i, verdict in zip(places, verdicts, strict=True):
            say({"index": i, "verdict": verdict})

    return attempt


def runs_in_eager(sample, trains):
    """Whether PyTorch itself runs a sample, and in f64, and gives the same numbers twice."""
    try:
        made, set_seed = [], torch.manual_seed
        try:
            for seed in range(4):
                set_seed(seed)
                torch.manual_seed = lambda _, seed=seed: set_seed(seed)  # some samples set their own
                made.append(run_eager([sample], trains, False)[1][0])
        finally:
            torch.manual_seed = set_seed
        if not all(torch.equal(one.nan_to_num(7), other.nan_to_num(7)) for each in made for one, other in zip(made[0], each)):
            return False
        if trains:
            _, results = run_eager([sample], True, True)
            return bool(pick(results))
    except Exception:  # noqa: BLE001
        return False
    return True


def find_samples(case, options):
    """Returns the samples of a case, of all types."""
    kind, name, info = case
    chosen = [label for label in options.dtypes.split(",") if label in DTYPES]
    samples = []
    for label in chosen:
        dtype = DTYPES[label]
        torch.manual_seed(0)
        if kind == "module":
            if dtype not in (torch.float32, torch.float64):
                continue
            for training, mode in ((True, "train"), (False, "eval")):
                made = info.module_inputs_func(info, device="cpu", dtype=dtype, requires_grad=False, training=training)
                for k, one in enumerate(itertools.islice(made, options.samples)):
                    built = info.module_cls(*one.constructor_input.args, **one.constructor_input.kwargs)
                    built = built.to(dtype).train(training)
                    if one.forward_input is not None:
                        samples.append(Sample(f"{label}[{k}] {mode}", built,
                                              (one.forward_input.args, one.forward_input.kwargs), name=name))
            continue
        if dtype not in info.supported_dtypes("cpu"):
            continue
        if kind == "grad" and any(re.fullmatch(names, name) for names in WITHOUT_GRADIENT) and (
                dtype.is_complex or name == "as_strided_scatter"):
            continue
        if kind == "grad" and not (dtype.is_floating_point or dtype.is_complex) or (
                kind == "grad" and dtype not in info.supported_backward_dtypes("cpu")):
            continue
        made = info.sample_inputs("cpu", dtype, requires_grad=kind == "grad")
        for k, one in enumerate(itertools.islice(made, options.samples)):
            # Eigenvectors may have other signs.
            finish = one.output_process_fn_grad if kind == "grad" or name == "linalg.eigh" else None
            sample = Sample(f"{label}[{k}]", info.op, ((one.input, *one.args), one.kwargs), finish, name)
            samples.append(plant(sample) if options.values == "edges" else sample)
    return samples


def work(cases, options, skip, ended, say):
    """Runs cases of one kind in this process; `skip` are the samples that have a verdict, `ended` the groups that ended
    a process."""
    trains = cases[0][0] == "grad"
    found = [(case, sample) for case in cases for sample in find_samples(case, options)]
    samples = [sample for _, sample in found]
    say({"labels": [(f"{kind}:{name}", sample.label) for (kind, name, _), sample in found]})
    places = []
    for i, sample in enumerate(samples):
        if i in skip:
            places.append(i)
        elif not runs_in_eager(sample, trains):
            say({"index": i, "verdict": ("not compared", "PyTorch refuses it or has nothing to compare")})
        else:
            places.append(i)
    attempt = judge(samples, options.device, say, check_gradients if trains else check_forward, ended)
    for start in range(0, len(places), BUNDLE):
        attempt([i for i in places[start:start + BUNDLE] if i not in skip])


class Worker:
    """A process that runs cases; it is started again, and takes apart what ended it."""

    def __init__(self, cases, options):
        self.cases, self.options = cases, options
        self.labels, self.verdicts, self.ended_by = [], {}, set()
        self.start()

    def start(self):
        reader, writer = os.pipe()
        self.current = []
        self.pid = os.fork()
        if not self.pid:
            os.close(reader)
            os.setpgid(0, 0)
            null = os.open(os.devnull, os.O_WRONLY)
            os.dup2(null, 1)
            os.dup2(null, 2)
            stream = os.fdopen(writer, "w", buffering=1)

            def say(message):
                stream.write(json.dumps(message) + "\n")
                stream.flush()

            try:
                work(self.cases, self.options, set(self.verdicts), self.ended_by, say)
                say({"end": True})
            except BaseException as error:  # noqa: BLE001
                say({"failed": f"{type(error).__name__}: {error}"[:1500]})
            os._exit(0)
        os.close(writer)
        self.stream, self.ended, self.buffer = reader, False, b""
        self.deadline = time.monotonic() + self.options.timeout

    def read(self):
        """Takes in what was said; returns whether the case is done."""
        data = os.read(self.stream, 1 << 16)
        self.buffer += data
        *lines, self.buffer = self.buffer.split(b"\n")
        for line in lines:
            self.take(json.loads(line))
        return self.finish("the process died") if not data else False

    def take(self, message):
        self.deadline = time.monotonic() + self.options.timeout
        if "labels" in message:
            self.labels = message["labels"]
        elif "start" in message:
            self.current = message["start"]
        elif "index" in message:
            self.verdicts[message["index"]] = tuple(message["verdict"])
        else:
            self.ended = True
            if "failed" in message:
                self.verdicts[-1] = ("raised", message["failed"])

    def finish(self, reason):
        os.close(self.stream)
        try:
            os.killpg(self.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        _, status = os.waitpid(self.pid, 0)
        if self.ended:
            return True
        suspects = [i for i in self.current if i not in self.verdicts]
        if len(suspects) == 1 or not suspects:
            self.verdicts[suspects[0] if suspects else -1] = ("raised", f"{reason} with status {status}")
            if not suspects:
                return True
        self.ended_by.add(frozenset(suspects))
        self.start()
        return False


def list_cases():
    """Returns (kind, name, entry) of the databases, and the names that do not count."""
    cases, excluded = [], {}
    for info in op_db:
        name = info.name + (f".{info.variant_test_name}" if info.variant_test_name else "")
        if why := find_exclusion(info.name):
            excluded[name] = why
            continue
        cases.append(("op", name, info))
        if info.supports_autograd:
            cases.append(("grad", name, info))
    cases += [("module", info.name, info) for info in module_db if not re.search("Dropout|RReLU|Fractional", info.name)]
    return cases, excluded


def group_cases(cases):
    """Returns lists of cases of one kind."""
    kinds = [[case for case in cases if case[0] == kind] for kind in ("op", "grad", "module")]
    return [some[i:i + GROUP] for some in kinds for i in range(0, len(some), GROUP)]


def run_cases(cases, options):
    """Returns {case: {sample: (verdict, what was said)}}."""
    waiting, running, found = collections.deque(group_cases(cases)), {}, collections.defaultdict(dict)
    while waiting or running:
        while waiting and len(running) < options.jobs:
            worker = Worker(waiting.popleft(), options)
            running[worker.stream] = worker
        ready, _, _ = select.select(list(running), [], [], 1)
        for stream in list(running):
            worker = running[stream]
            late = time.monotonic() > worker.deadline
            if stream not in ready and not late:
                continue
            done = worker.read() if stream in ready else worker.finish(f"no answer in {options.timeout} s")
            if done or worker.stream != stream:
                del running[stream]
            if not done:
                running[worker.stream] = worker
                continue
            first = f"{worker.cases[0][0]}:{worker.cases[0][1]}"
            for i, verdict in sorted(worker.verdicts.items()):
                case, label = worker.labels[i] if i >= 0 else (first, "and others")
                found[case][label] = verdict
            for kind, name, _ in worker.cases:
                show(f"{kind}:{name}", found[f"{kind}:{name}"])
    return found


def show(case, results):
    """Prints what is not right of a case: a line by verdict and message."""
    groups = collections.defaultdict(list)
    for label, (verdict, said) in results.items():
        if verdict not in ("right", "not compared"):
            groups[verdict, re.sub(r"[-\d.e+]+", "#", said)[:80]].append((label, said))
    for (verdict, _), entries in groups.items():
        labels = ", ".join(label for label, _ in entries[:4]) + (f" and {len(entries) - 4} more" if len(entries) > 4 else "")
        print(f"{verdict}: {case} {labels}: {' '.join(entries[0][1].split())[:300]}", flush=True)


def add_options(parser):
    parser.add_argument("--samples", type=int, default=None, help="first N samples of each type (default all)")
    parser.add_argument("--dtypes", default=",".join(DTYPES), help="types (default all)")
    parser.add_argument("--values", choices=("samples", "edges"), default="samples",
                        help="edges: with NaN, infinities, zeros, denormals in operands (default samples)")
    parser.add_argument("--shard", default="0/1", help="I/N: run case numbers I, I + N, ... (default 0/1)")
    parser.add_argument("--jobs", type=int, default=os.cpu_count(), help="processes at a time (default: processors)")
    parser.add_argument("--timeout", type=int, default=300, help="seconds of one artifact (default 300)")
    parser.add_argument("--excluded", action="store_true", help="print the operators that do not count, and stop")


def main():
    options = parse_options(__doc__, add_options)
    warnings.filterwarnings("ignore")
    torch.set_num_threads(1)
    cases, excluded = list_cases()
    if options.excluded:
        for name, why in sorted(excluded.items(), key=lambda entry: entry[::-1]):
            print(f"{name}: {why}")
        return 0
    index, shards = map(int, options.shard.split("/"))
    cases = [case for case in cases if re.search(options.filter, f"{case[0]}:{case[1]}")]
    found = run_cases(cases[::options.every][index::shards], options)
    counts = collections.Counter(verdict for results in found.values() for verdict, _ in results.values())
    print(f"{options.device}: {len(found)} cases, {sum(counts.values())} samples, "
          + ", ".join(f"{counts[kind]} {kind}" for kind in VERDICTS))
    if options.json:
        pathlib.Path(options.json).write_text(json.dumps(found, indent=1) + "\n")
    return 1 if counts["wrong"] or counts["raised"] else 0


if __name__ == "__main__":
    sys.exit(main())

"""PyTorch: eager, and by torch.compile. A VJP is the backward of what forward saved, and compiled one graph of both."""

import functools
import time
import warnings

import cases
import torch
import torch._inductor.select_algorithm
from torch.nn import functional

torch._inductor.select_algorithm.PRINT_AUTOTUNE = False
torch._inductor.config.max_autotune_report_choices_stats = False

PRODUCTS = ("product", "product_bt", "mlp", "mlp_step", "chains")
AUTOTUNE, RECOMPUTE, WHOLE = "max-autotune", "forward again", "whole step"
MODES = {AUTOTUNE: {"mode": "max-autotune-no-cudagraphs"}}


def list_settings(case, is_compiled):
    torch._dynamo.reset()  # or the cases before would count against its limit of versions
    if not is_compiled:
        return ["eager"]
    if case.is_model:
        return ["default", WHOLE]
    if case.kind.endswith("_vjp"):
        return ["default", RECOMPUTE]
    return ["default", AUTOTUNE] if case.kind in PRODUCTS else ["default"]  # its choices are those of products


def mlp(x, w1, b1, w2, b2):
    return functional.linear(functional.gelu(functional.linear(x, w1, b1)), w2, b2)


def chains(*arguments, length):
    *values, w = arguments
    for _ in range(length):
        values = [torch.mm(value, w) for value in values]
    return tuple(values)


def get_loss(x, t, *parameters):
    for weight, bias in zip(parameters[::2], parameters[1::2]):
        x = torch.tanh(functional.linear(x, weight, bias))
    return functional.mse_loss(x, t)


def step_functionally(x, t, *parameters):
    """Updates the parameters as one graph, which torch.compile sees whole."""
    positions = tuple(range(2, 2 + len(parameters)))
    gradients, loss = torch.func.grad_and_value(get_loss, positions)(x, t, *parameters)
    for parameter, gradient in zip(parameters, gradients):
        parameter.sub_(gradient, alpha=cases.LEARNING_RATE)
    return loss


def make_eager_step(parameters):
    for parameter in parameters:
        parameter.requires_grad_()
    optimizer = torch.optim.SGD(parameters, lr=cases.LEARNING_RATE, fused=True)

    def step(x, t, *_):
        optimizer.zero_grad()
        loss = get_loss(x, t, *parameters)
        loss.backward()
        optimizer.step()
        return loss

    return step


def prepare_model(case, setting, compile, device="cpu"):
    """Returns a function that runs a step and returns its loss. Its first call compiles."""
    import torch_models

    inputs = {name: torch.from_numpy(value).to(device) for name, value in case.make_inputs().items()}
    parameters = {name: inputs.pop(name) for name in case.donated}

    def get_model_loss(values):
        return getattr(torch_models.Model(values | inputs), case.kind)(**case.sizes)

    if setting == WHOLE:
        def step_whole():
            gradients, loss = torch.func.grad_and_value(get_model_loss)(parameters)
            for name, parameter in parameters.items():
                parameter.sub_(gradients[name], alpha=cases.LEARNING_RATE)
            return loss

        return compile(step_whole)
    for parameter in parameters.values():
        parameter.requires_grad_()
    optimizer = torch.optim.SGD(parameters.values(), lr=cases.LEARNING_RATE, fused=True)
    forward = compile(get_model_loss)

    def step():
        optimizer.zero_grad()
        loss = forward(parameters)
        loss.backward()
        optimizer.step()
        return loss.detach()

    return step


def get_vjp(forward, operands):
    """Returns the function of a cotangent and operands that has the gradients of the float ones."""
    floats = [i for i, each in enumerate(operands) if each.is_floating_point()]

    def vjp(dy, *given):
        def of_floats(*values):
            merged = list(given)
            for i, value in zip(floats, values):
                merged[i] = value
            return forward(*merged)

        return torch.func.vjp(of_floats, *(given[i] for i in floats))[1](dy)

    return vjp


FORWARDS = {
    "copy": lambda x: x.clone(),
    "layer_norm": lambda x, gamma, beta: functional.layer_norm(x, x.shape[1:], gamma, beta, cases.EPSILON),
    "rms_norm": lambda x, gamma: functional.rms_norm(x, x.shape[1:], gamma, cases.EPSILON),
    "softmax": lambda x: torch.softmax(x, -1),
    "cross_entropy": functional.cross_entropy,
    "gelu_bias": lambda x, bias: functional.gelu(x + bias),
    "product": torch.matmul,
    "product_bt": lambda a, b: torch.matmul(a, b.transpose(-1, -2)),
    "attention": functional.scaled_dot_product_attention,
    "mlp": mlp,
    "add_one": lambda x: x + 1,
}
# The inputs behind the cotangent that forward is given.
OPERANDS = {
    "layer_norm_vjp": lambda x, gamma: (x, gamma, torch.zeros_like(gamma)),
    "softmax_vjp": lambda y: (torch.log(y),),
    "attention_vjp": lambda q, k, v, *_: (q, k, v),
}


def prepare(case, setting, options):
    """Returns a function that runs a case once, one that returns its results, and facts of its compilation."""
    torch.set_num_threads(options["threads"])
    warnings.simplefilter("ignore")  # torch.compile uses what PyTorch deprecates
    torch._functorch.config.donated_buffer = False  # or a backward could not be run twice
    compile = (lambda f: f) if setting == "eager" else functools.partial(torch.compile, dynamic=False,
                                                                         **MODES.get(setting, {}))
    inputs = [] if case.is_model else [torch.from_numpy(value) for value in case.make_inputs().values()]
    facts = {}

    if case.is_model:
        torch._inductor.config.force_disable_caches = True  # they would hide the time of compilation
        compute = prepare_model(case, setting, compile)
    elif case.kind == "mlp_step":
        step = make_eager_step(inputs[2:]) if setting == "eager" else compile(step_functionally)

        def compute():
            return step(*inputs), *inputs[2:]
    elif case.kind == "chains":
        compute = functools.partial(compile(functools.partial(chains, length=case.sizes["length"])), *inputs)
    elif not case.kind.endswith("_vjp"):
        compute = functools.partial(compile(FORWARDS[case.kind]), *inputs)
    else:
        forward = FORWARDS[case.kind.removesuffix("_vjp")]
        operands = OPERANDS.get(case.kind, lambda *given: given)(*inputs[1:])
        if setting == RECOMPUTE:
            compute = functools.partial(compile(get_vjp(forward, operands)), inputs[0], *operands)
        else:
            wanted = [each.requires_grad_() for each in operands if each.is_floating_point()]
            y = compile(forward)(*operands)
            compute = functools.partial(torch.autograd.grad, y, wanted, inputs[0], retain_graph=True)

    results = []

    def run():
        results.clear()  # so that the memory of the call before serves this one
        begin = time.perf_counter()
        made = compute()
        if setting != "eager":
            facts.setdefault("compile_seconds", time.perf_counter() - begin)
        results.extend(made if isinstance(made, tuple) else (made,))

    return run, lambda: [result.detach().numpy().copy() for result in results], facts

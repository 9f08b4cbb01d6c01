"""PyTorch: eager, and by torch.compile. A VJP is the backward of what forward saved."""

import functools
import warnings

import cases
import torch
import torch._inductor.select_algorithm
from torch.nn import functional

torch._inductor.select_algorithm.PRINT_AUTOTUNE = False
torch._inductor.config.max_autotune_report_choices_stats = False

PRODUCTS = ("product", "product_bt", "mlp", "mlp_step", "chains")
MODES = {"max-autotune": {"mode": "max-autotune-no-cudagraphs"}}


def list_settings(case, is_compiled):
    if not is_compiled:
        return ["eager"]
    return ["default", *(MODES if case.kind in PRODUCTS else ())]  # its choices are those of products


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


FORWARDS = {
    "copy": lambda x: x.clone(),
    "layer_norm": lambda x, gamma, beta: functional.layer_norm(x, x.shape[1:], gamma, beta, cases.EPSILON),
    "rms_norm": lambda x, gamma: functional.rms_norm(x, x.shape[1:], gamma, cases.EPSILON),
    "softmax": lambda x: torch.softmax(x, -1),
    "cross_entropy": functional.cross_entropy,
    "gelu_bias": lambda x, bias: functional.gelu(x + bias),
    "product": torch.matmul,
    "product_bt": lambda a, b: torch.matmul(a, b.transpose(-1, -2)),
    "mlp": mlp,
    "add_one": lambda x: x + 1,
}
# What forward is given, of the inputs behind the cotangent.
OPERANDS = {
    "layer_norm_vjp": lambda x, gamma: (x, gamma, torch.zeros_like(gamma)),
    "softmax_vjp": lambda y: (torch.log(y),),
}


def prepare(case, setting, options):
    """Returns a function that runs a case once, one that returns its results, and no facts."""
    torch.set_num_threads(options["threads"])
    torch._dynamo.reset()
    warnings.simplefilter("ignore")  # torch.compile uses what PyTorch deprecates
    torch._functorch.config.donated_buffer = False  # or a backward could not be run twice
    compile = (lambda f: f) if setting == "eager" else functools.partial(torch.compile, dynamic=False,
                                                                         **MODES.get(setting, {}))
    inputs = [torch.from_numpy(value) for value in case.make_inputs().values()]
    # The results live until the next call has begun, so that it finds the memory of the call before.
    results = []

    if case.kind == "mlp_step":
        step = make_eager_step(inputs[2:]) if setting == "eager" else compile(step_functionally)

        def run():
            results[:] = [step(*inputs), *inputs[2:]]
    elif case.kind.endswith("_vjp"):
        operands = OPERANDS.get(case.kind, lambda *given: given)(*inputs[1:])
        wanted = [each.requires_grad_() for each in operands if each.is_floating_point()]
        y = compile(FORWARDS[case.kind.removesuffix("_vjp")])(*operands)

        def run():
            results.clear()
            results.extend(torch.autograd.grad(y, wanted, inputs[0], retain_graph=True))
    else:
        forward = compile(functools.partial(chains, length=case.sizes["length"]) if case.kind == "chains"
                          else FORWARDS[case.kind])

        def run():
            results.clear()
            with torch.no_grad():
                made = forward(*inputs)
            results.extend(made if isinstance(made, tuple) else (made,))

    return run, lambda: [result.detach().numpy().copy() for result in results], {}

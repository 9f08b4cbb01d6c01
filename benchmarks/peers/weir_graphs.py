"""Prints the cases as graphs for `weir compile`: weir_graphs.py CASE."""

import functools
import pathlib
import re
import sys

import cases
import whole_models

sys.path.append(str(pathlib.Path(__file__).resolve().parents[1] / "mlp_step"))
import graph as mlp_step  # noqa: E402


def tensor(*shape, element="f32"):
    return f"tensor<{'x'.join([*map(str, shape), element])}>"


def function(arguments, results, body):
    """Returns a function `main` of arguments and results with these names and types."""
    taken = ", ".join(f'%{name}: {type} {{weir.name = "{name}"}}' for name, type in arguments.items())
    made = ", ".join(f'{type} {{weir.name = "{name}"}}' for name, type in results.items())
    return f"func.func @main({taken}) -> ({made}) {{\n{body.strip()}\n}}\n"


def store_as(element, text):
    """Returns a graph of f32 whose arguments and results are stored as `element`; it computes as before."""
    head, body = text.split("{\n", 1) if "{weir.name" not in text else text.split(" {\n", 1)
    body, last = body[:body.rindex("return ")], body[body.rindex("return "):]
    widened = []
    for name, type in re.findall(r"%(\w+): (tensor<(?:\d+x)*f32>)", head):
        given = type.replace("f32>", f"{element}>")
        head = head.replace(f"%{name}: {type}", f"%{name}_stored: {given}")
        widened.append(f"  %{name} = arith.extf %{name}_stored : {given} to {type}\n")
    values, types = re.fullmatch(r"return (.*) : (.*)\n}\n", last).groups()
    narrowed, returned = [], []
    for value, type in zip(values.split(", "), types.split(", ")):
        stored = type.replace("f32>", f"{element}>")
        narrowed.append(f"  {value}_stored = arith.truncf {value} : {type} to {stored}\n")
        returned.append((f"{value}_stored", stored))
    head = head[:head.index("->")] + head[head.index("->"):].replace("f32>", f"{element}>")
    last = f"  return {', '.join(value for value, _ in returned)} : {', '.join(type for _, type in returned)}\n}}\n"
    return head + " {\n" + "".join(widened) + body + "\n" + "".join(narrowed) + last


def copy(rows, columns):
    t = tensor(rows, columns)
    return function({"x": t}, {"y": t}, f"return %x : {t}")


def layer_norm(rows, columns):
    t, v = tensor(rows, columns), tensor(columns)
    return function({"x": t, "gamma": v, "beta": v}, {"y": t}, f"""
  %y = norm.layer_norm %x gamma(%gamma : {v}) beta(%beta : {v})
       {{axes = 1 : i64, eps = {cases.EPSILON:e} : f64}} : {t}
  return %y : {t}""")


def layer_norm_vjp(rows, columns):
    t, v = tensor(rows, columns), tensor(columns)
    return function({"dy": t, "x": t, "gamma": v}, {"dx": t, "dgamma": v, "dbeta": v}, f"""
  %dx, %dgamma, %dbeta = norm.layer_norm_vjp %dy, %x gamma(%gamma : {v})
      {{axes = 1 : i64, eps = {cases.EPSILON:e} : f64}} : {t}, {v}
  return %dx, %dgamma, %dbeta : {t}, {v}, {v}""")


def rms_norm(rows, columns):
    t, v = tensor(rows, columns), tensor(columns)
    return function({"x": t, "gamma": v}, {"y": t}, f"""
  %y = norm.rms_norm %x gamma(%gamma : {v}) {{axes = 1 : i64, eps = {cases.EPSILON:e} : f64}} : {t}
  return %y : {t}""")


def rms_norm_vjp(rows, columns):
    t, v = tensor(rows, columns), tensor(columns)
    return function({"dy": t, "x": t, "gamma": v}, {"dx": t, "dgamma": v}, f"""
  %dx, %dgamma = norm.rms_norm_vjp %dy, %x gamma(%gamma : {v})
      {{axes = 1 : i64, eps = {cases.EPSILON:e} : f64}} : {t}, {v}
  return %dx, %dgamma : {t}, {v}""")


def softmax(rows, columns):
    t = tensor(rows, columns)
    return function({"x": t}, {"y": t}, f"""
  %e = tensor.empty() : {t}
  %y = linalg.softmax dimension(1) ins(%x : {t}) outs(%e : {t}) -> {t}
  return %y : {t}""")


def softmax_vjp(rows, columns):
    t = tensor(rows, columns)
    return function({"dy": t, "y": t}, {"dx": t}, f"""
  %dx = norm.softmax_vjp %dy, %y {{axis = 1 : i64}} : {t}
  return %dx : {t}""")


def cross_entropy(rows, columns):
    t, v = tensor(rows, columns), tensor(rows, element="i64")
    return function({"logits": t, "targets": v}, {"loss": "tensor<f32>"}, f"""
  %loss = norm.softmax_cross_entropy mean %logits, %targets : {t}, {v} -> tensor<f32>
  return %loss : tensor<f32>""")


def cross_entropy_vjp(rows, columns):
    t, v = tensor(rows, columns), tensor(rows, element="i64")
    return function({"dloss": "tensor<f32>", "logits": t, "targets": v}, {"dlogits": t}, f"""
  %dlogits = norm.softmax_cross_entropy_vjp mean %dloss, %logits, %targets : tensor<f32>, {t}, {v}
  return %dlogits : {t}""")


def add_row(name, value, row, rows, columns):
    """Returns the sum of `value` and a row, as op %name."""
    t, v, point = tensor(rows, columns), tensor(columns), "affine_map<(i, j) -> (i, j)>"
    return f"""
  %{name}_to = tensor.empty() : {t}
  %{name} = linalg.generic {{indexing_maps = [{point}, affine_map<(i, j) -> (j)>, {point}],
                           iterator_types = ["parallel", "parallel"]}}
      ins({value}, {row} : {t}, {v}) outs(%{name}_to : {t}) {{
  ^bb0(%a: f32, %b: f32, %o: f32):
    %s = arith.addf %a, %b : f32
    linalg.yield %s : f32
  }} -> {t}"""


def gelu_bias(rows, columns):
    t, v = tensor(rows, columns), tensor(columns)
    return function({"x": t, "bias": v}, {"y": t}, f"""
  {add_row("z", "%x", "%bias", rows, columns)}
  %y = norm.gelu %z : {t}
  return %y : {t}""")


def gelu_bias_vjp(rows, columns):
    t, v = tensor(rows, columns), tensor(columns)
    return function({"dy": t, "x": t, "bias": v}, {"dx": t, "dbias": v}, f"""
  {add_row("z", "%x", "%bias", rows, columns)}
  %dx = norm.gelu_vjp %dy, %z : {t}
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : {v}
  %zeros = linalg.fill ins(%zero : f32) outs(%empty : {v}) -> {v}
  %dbias = linalg.reduce {{ arith.addf }} ins(%dx : {t}) outs(%zeros : {v}) dimensions = [0]
  return %dx, %dbias : {t}, {v}""")


def multiply(name, a, b, m, k, n, batch=()):
    """Returns the product of two tensors, as op %name."""
    left, right, made = tensor(*batch, m, k), tensor(*batch, k, n), tensor(*batch, m, n)
    return f"""
  %{name}_zero = arith.constant 0.0 : f32
  %{name}_empty = tensor.empty() : {made}
  %{name}_zeros = linalg.fill ins(%{name}_zero : f32) outs(%{name}_empty : {made}) -> {made}
  %{name} = linalg.{"batch_matmul" if batch else "matmul"} ins({a}, {b} : {left}, {right})
      outs(%{name}_zeros : {made}) -> {made}"""


def transpose(name, value, rows, columns, batch=()):
    """Returns the transpose of a tensor of rows x columns, as op %name."""
    t, rank = tensor(*batch, columns, rows), len(batch) + 2
    return f"""
  %{name}_to = tensor.empty() : {t}
  %{name} = linalg.transpose ins({value} : {tensor(*batch, rows, columns)}) outs(%{name}_to : {t})
      permutation = [{', '.join(map(str, [*range(len(batch)), rank - 1, rank - 2]))}]"""


def product(m, k, n, batch=()):
    y = tensor(*batch, m, n)
    return function({"a": tensor(*batch, m, k), "b": tensor(*batch, k, n)}, {"y": y}, f"""
  {multiply("y", "%a", "%b", m, k, n, batch)}
  return %y : {y}""")


def product_bt(m, k, n, batch=()):
    y = tensor(*batch, m, n)
    return function({"a": tensor(*batch, m, k), "b": tensor(*batch, n, k)}, {"y": y}, f"""
  {transpose("c", "%b", n, k, batch)}
  {multiply("y", "%a", "%c", m, k, n, batch)}
  return %y : {y}""")


def mlp(rows, width, hidden):
    t, h = tensor(rows, width), tensor(rows, hidden)
    arguments = {"x": t, "w1": tensor(hidden, width), "b1": tensor(hidden), "w2": tensor(width, hidden),
                 "b2": tensor(width)}
    return function(arguments, {"y": t}, f"""
  {transpose("p1", "%w1", hidden, width)}
  {multiply("m1", "%x", "%p1", rows, width, hidden)}
  {add_row("z", "%m1", "%b1", rows, hidden)}
  %h = norm.gelu %z : {h}
  {transpose("p2", "%w2", width, hidden)}
  {multiply("m2", "%h", "%p2", rows, hidden, width)}
  {add_row("y", "%m2", "%b2", rows, width)}
  return %y : {t}""")


def mlp_bf16(rows, width, hidden):
    """Returns the block on bf16, whose GELU is of f32."""
    narrow, wide = tensor(rows, hidden, element="bf16"), tensor(rows, hidden)
    text = mlp(rows, width, hidden).replace("f32", "bf16")
    return text.replace(f"%h = norm.gelu %z : {narrow}", f"""%wide = arith.extf %z : {narrow} to {wide}
  %curved = norm.gelu %wide : {wide}
  %h = arith.truncf %curved : {wide} to {narrow}""")


def list_attention_types(heads, tokens, size, element):
    t, rows = tensor(*heads, tokens, size, element=element), tensor(*heads, tokens)
    attributes = f"{{scale = {size ** -0.5:e} : f64}}"
    return t, rows, f"{attributes} : {t}, {t}, {t} -> {t}, {rows}"


def attention(heads, tokens, size, element="f32"):
    t, _, types = list_attention_types(heads, tokens, size, element)
    return function({name: t for name in "qkv"}, {"y": t}, f"""
  %y, %m, %s = norm.attention %q, %k, %v {types}
  return %y : {t}""")


def attention_vjp(heads, tokens, size, element="f32"):
    t, rows, types = list_attention_types(heads, tokens, size, element)
    given = {name: t for name in ("dy", *"qkvy")} | {"largest": rows, "share": rows}
    return function(given, {name: t for name in ("dq", "dk", "dv")}, f"""
  %dq, %dk, %dv = norm.attention_vjp %dy, %q, %k, %v, %y, %largest, %share {types}
  return %dq, %dk, %dv : {t}, {t}, {t}""")


def add_one(count):
    t = tensor(count)
    return function({"x": t}, {"y": t}, f"""
  %one = arith.constant dense<1.0> : {t}
  %y = arith.addf %x, %one : {t}
  return %y : {t}""")


def chains(chains, length, size):
    t, lines, last = tensor(size, size), [], []
    for chain in range(chains):
        value = f"%x{chain}"
        for link in range(length):
            lines.append(multiply(f"v{chain}_{link}", value, "%w", size, size, size))
            value = f"%v{chain}_{link}"
        last.append(value)
    return function({**{f"x{i}": t for i in range(chains)}, "w": t}, {f"y{i}": t for i in range(chains)}, f"""
  {"".join(lines)}
  return {', '.join(last)} : {', '.join([t] * chains)}""")


def train_mlp(layers, rows, width):
    return mlp_step.make_graph(layers, width, rows)


GRAPHS = {
    "copy": copy, "layer_norm": layer_norm, "layer_norm_vjp": layer_norm_vjp, "rms_norm": rms_norm,
    "rms_norm_vjp": rms_norm_vjp, "softmax": softmax, "softmax_vjp": softmax_vjp, "cross_entropy": cross_entropy,
    "cross_entropy_vjp": cross_entropy_vjp, "gelu_bias": gelu_bias, "gelu_bias_vjp": gelu_bias_vjp,
    "product": product, "product_bt": product_bt, "mlp": mlp, "mlp_step": train_mlp, "add_one": add_one,
    "chains": chains, **{family: functools.partial(whole_models.make_graph, family) for family in whole_models.SIZES},
}
STEP = ("--train=sgd:main", "--entry=main.step")
FLAGS = {  # of `weir compile`
    "mlp_step": ("--train=sgd:loss", "--entry=loss.step", "--require-donation"),
    "llama": (*STEP, "--require-donation"),
    "gpt2": (*STEP, "--require-donation"),
    "resnet": STEP,  # weights of batch norms are read behind their update
}


def make_graph(case):
    return GRAPHS[case.kind](**case.sizes)


if __name__ == "__main__":
    print(make_graph(cases.CASES[sys.argv[1]]), end="")

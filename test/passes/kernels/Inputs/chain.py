"""chain.py N [sum [M] | kernel]: a graph of N elementwise ops, each of the one before and, now
and then, of one far before.

`sum` lets a sum of rows follow, and M ops of it; `kernel` writes the ops as one kernel.
"""

import sys

BODY = ["arith.addf %p, %q : f32", "math.tanh %p : f32", "arith.mulf %p, %q : f32", "arith.negf %q : f32"]


def op(name, inputs, body, shape="8x6"):
    dims = ", ".join("rc"[: shape.count("x") + 1])
    point = f"affine_map<({dims}) -> ({dims})>"
    loops = ", ".join(['"parallel"'] * (shape.count("x") + 1))
    tensor = f"tensor<{shape}xf32>"
    return f"""  %{name}e = tensor.empty() : {tensor}
  %{name} = linalg.generic {{indexing_maps = [{point}, {point}, {point}], iterator_types = [{loops}]}}
      ins({inputs[0]}, {inputs[1]} : {tensor}, {tensor}) outs(%{name}e : {tensor}) {{
  ^bb0(%p: f32, %q: f32, %o: f32):
    %b = {body}
    linalg.yield %b : f32
  }} -> {tensor}"""


def chain(first, count, prefix, shape):
    values = [first]
    for i in range(count):
        far = values[-60] if i % 10 == 0 and i > 60 else values[-1]
        print(op(f"{prefix}{i}", (values[-1], far), BODY[i % 4], shape))
        values.append(f"%{prefix}{i}")
    return values[-1]


count, what = int(sys.argv[1]), sys.argv[2] if len(sys.argv) > 2 else ""
shape = "8" if what == "sum" else "8x6"
print(f"func.func @f(%x: tensor<8x6xf32>) -> tensor<{shape}xf32> {{")
if what == "kernel":
    print('  %r = schedule.kernel "chain" (%x) : (tensor<8x6xf32>) -> tensor<8x6xf32> {')
    print("  ^bb0(%a: tensor<8x6xf32>):")
    print(f"  schedule.yield {chain('%a', count, 'v', '8x6')} : tensor<8x6xf32>\n  }}")
    last = "%r"
else:
    last = chain("%x", count, "v", "8x6")
if what == "sum":
    print(f"""  %zero = arith.constant dense<0.0> : tensor<8xf32>
  %sum = linalg.reduce {{ arith.addf }} ins({last} : tensor<8x6xf32>) outs(%zero : tensor<8xf32>) dimensions = [1]""")
    last = chain("%sum", int(sys.argv[3]), "w", "8")
print(f"  return {last} : tensor<{shape}xf32>\n}}")

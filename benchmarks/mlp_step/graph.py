"""Prints an MLP to train: graph.py LAYERS WIDTH BATCH. Layers of matmul, bias and tanh,
weights stored (out, in) as PyTorch does; the loss is the mean square of y - t."""

import sys


def make_graph(layers, width, batch):
    row, square, vector = f"tensor<{batch}x{width}xf32>", f"tensor<{width}x{width}xf32>", f"tensor<{width}xf32>"
    point = "affine_map<(i, j) -> (i, j)>"
    arguments = [f'%x: {row} {{weir.name = "x", weir.kind = "input"}}',
                 f'%t: {row} {{weir.name = "t", weir.kind = "target"}}']
    lines, value = [], "%x"
    for layer in range(layers):
        arguments += [f'%w{layer}: {square} {{weir.name = "{layer}.weight", weir.kind = "param"}}',
                      f'%b{layer}: {vector} {{weir.name = "{layer}.bias", weir.kind = "param"}}']
        lines.append(f"""
  %p{layer} = linalg.transpose ins(%w{layer} : {square}) outs(%square : {square}) permutation = [1, 0]
  %h{layer} = linalg.matmul ins({value}, %p{layer} : {row}, {square}) outs(%zeros : {row}) -> {row}
  %y{layer} = linalg.generic {{indexing_maps = [{point}, affine_map<(i, j) -> (j)>, {point}],
                              iterator_types = ["parallel", "parallel"]}}
      ins(%h{layer}, %b{layer} : {row}, {vector}) outs(%row : {row}) {{
  ^bb0(%a: f32, %b: f32, %o: f32):
    %s = arith.addf %a, %b : f32
    %r = math.tanh %s : f32
    linalg.yield %r : f32
  }} -> {row}""")
        value = f"%y{layer}"
    return f"""func.func @loss({', '.join(arguments)}) -> (tensor<f32> {{weir.name = "loss"}}) {{
  %zero = arith.constant 0.0 : f32
  %row = tensor.empty() : {row}
  %square = tensor.empty() : {square}
  %scalar = tensor.empty() : tensor<f32>
  %zeros = linalg.fill ins(%zero : f32) outs(%row : {row}) -> {row}
  %init = linalg.fill ins(%zero : f32) outs(%scalar : tensor<f32>) -> tensor<f32>
{''.join(lines)}
  %loss = linalg.generic {{indexing_maps = [{point}, {point}, affine_map<(i, j) -> ()>],
                          iterator_types = ["reduction", "reduction"]}}
      ins({value}, %t : {row}, {row}) outs(%init : tensor<f32>) {{
  ^bb0(%a: f32, %b: f32, %o: f32):
    %n = arith.constant {1 / (width * batch)!r} : f32
    %d = arith.subf %a, %b : f32
    %q = arith.mulf %d, %d : f32
    %m = arith.mulf %q, %n : f32
    %r = arith.addf %o, %m : f32
    linalg.yield %r : f32
  }} -> tensor<f32>
  return %loss : tensor<f32>
}}
"""


if __name__ == "__main__":
    print(make_graph(*map(int, sys.argv[1:])), end="")

//===- Passes.td - Every pass of Weir, in the order of the levels ---------===//
//
// A description is a contract: what the pass needs, what it gives, what it never
// does, what it costs, and an example. scripts/check-passes.py runs the examples
// and makes docs/passes.md.
//
//===----------------------------------------------------------------------===//

#ifndef WEIR_PASSES_TD
#define WEIR_PASSES_TD

include "mlir/Pass/PassBase.td"

//===----------------------------------------------------------------------===//
// graph
//===----------------------------------------------------------------------===//

def CheckIndicesPass : Pass<"weir-check-indices", "mlir::func::FuncOp"> {
  let summary = "Adds a result that says whether an index was out of range.";
  let description = [{
    Needs: the graph level, before weir-normalize-graph, which clamps indices.

    Gives: a result `weir.status` of type tensor<i32>: 0, or the number, counted from 1, of a
    `tensor.extract` with an index out of range. The attribute `weir.checks` has the text
    of each number.

    Never: changes what the function computes besides, or a function without an index to
    check; never checks offsets of slices.

    Cost: for each gather a maximum over the loops that its indices depend on.

    Example:
    ```mlir
    func.func @gather(%table: tensor<11xf32>, %k: tensor<5xi64>) -> tensor<5xf32> {
      %e = tensor.empty() : tensor<5xf32>
      %r = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>],
                           iterator_types = ["parallel"]}
          ins(%k : tensor<5xi64>) outs(%e : tensor<5xf32>) {
      ^bb0(%in: i64, %out: f32):
        %i = arith.index_cast %in : i64 to index
        %x = tensor.extract %table[%i] : tensor<11xf32>
        linalg.yield %x : f32
      } -> tensor<5xf32>
      return %r : tensor<5xf32>
    }
    ```
    ```mlir
    #map = affine_map<(d0) -> (d0)>
    #map1 = affine_map<(d0) -> ()>
    func.func @gather(%table: tensor<11xf32>, %k: tensor<5xi64>)
        -> (tensor<5xf32>, tensor<i32> {weir.name = "weir.status"})
        attributes {weir.checks = ["<stdin>:8 uses an index that is not in [0, 11)"]} {
      %0 = tensor.empty() : tensor<5xf32>
      %cst = arith.constant dense<0> : tensor<5xi32>
      %c0_i32 = arith.constant 0 : i32
      %1 = tensor.empty() : tensor<i32>
      %2 = linalg.fill ins(%c0_i32 : i32) outs(%1 : tensor<i32>) -> tensor<i32>
      %3 = linalg.generic {indexing_maps = [#map, #map, #map1], iterator_types = ["reduction"]}
          ins(%k, %cst : tensor<5xi64>, tensor<5xi32>) outs(%2 : tensor<i32>) {
      ^bb0(%in: i64, %in_0: i32, %out: i32):
        %5 = arith.index_cast %in : i64 to index
        %c0_i64 = arith.constant 0 : i64
        %6 = arith.cmpi slt, %in, %c0_i64 : i64
        %c11_i64 = arith.constant 11 : i64
        %7 = arith.cmpi sge, %in, %c11_i64 : i64
        %8 = arith.ori %6, %7 : i1
        %c1_i32 = arith.constant 1 : i32
        %c0_i32_1 = arith.constant 0 : i32
        %9 = arith.select %8, %c1_i32, %c0_i32_1 : i32
        %10 = arith.maxsi %9, %out : i32
        linalg.yield %10 : i32
      } -> tensor<i32>
      %4 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel"]} ins(%k
          : tensor<5xi64>) outs(%0 : tensor<5xf32>) {
      ^bb0(%in: i64, %out: f32):
        %5 = arith.index_cast %in : i64 to index
        %extracted = tensor.extract %table[%5] : tensor<11xf32>
        linalg.yield %extracted : f32
      } -> tensor<5xf32>
      return %4, %3 : tensor<5xf32>, tensor<i32>
    }
    ```
  }];
  let dependentDialects = ["mlir::arith::ArithDialect", "mlir::linalg::LinalgDialect",
                           "mlir::tensor::TensorDialect"];
}

def UnrollLoopsPass : Pass<"weir-unroll-loops", "mlir::ModuleOp"> {
  let summary = "Unrolls short loops between tensors.";
  let description = [{
    Front ends print a loop where a model has a recurrence, such as an LSTM from ONNX.
    Written out, ops of several trips share kernels.

    Needs: what a front end printed.

    Gives: no `scf.for` between tensors of constant bounds that takes one trip or none, or
    makes at most 4,096 ops; or, where the module takes gradients, 32,768. Its counter is a
    constant in every step, and so are the offsets of slices that depend on it. An `scf.while`
    whose condition follows from constants becomes an `scf.for` first. Other loops stay for
    weir-split-loops.

    Never: touches a loop whose bounds are computed, or a loop inside the body of a
    structured op; or one of 8 trips or more that weir-form-sequences takes, and where the module
    takes gradients, whose operands each have an element for each point.

    Cost: linear in the ops that are made.

    Example:
    ```mlir
    func.func @sum(%x: tensor<4xf32>, %ws: tensor<2x4xf32>) -> tensor<4xf32> {
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      %c2 = arith.constant 2 : index
      %e = tensor.empty() : tensor<4xf32>
      %r = scf.for %i = %c0 to %c2 step %c1 iter_args(%h = %x) -> tensor<4xf32> {
        %w = tensor.extract_slice %ws[%i, 0] [1, 4] [1, 1] : tensor<2x4xf32> to tensor<4xf32>
        %n = linalg.add ins(%h, %w : tensor<4xf32>, tensor<4xf32>)
            outs(%e : tensor<4xf32>) -> tensor<4xf32>
        scf.yield %n : tensor<4xf32>
      }
      return %r : tensor<4xf32>
    }
    ```
    ```mlir
    func.func @sum(%x: tensor<4xf32>, %ws: tensor<2x4xf32>) -> tensor<4xf32> {
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      %c2 = arith.constant 2 : index
      %0 = tensor.empty() : tensor<4xf32>
      %extracted_slice = tensor.extract_slice %ws[0, 0] [1, 4] [1, 1]
          : tensor<2x4xf32> to tensor<4xf32>
      %1 = linalg.add ins(%x, %extracted_slice : tensor<4xf32>, tensor<4xf32>) outs(%0
          : tensor<4xf32>) -> tensor<4xf32>
      %extracted_slice_0 = tensor.extract_slice %ws[1, 0] [1, 4] [1, 1]
          : tensor<2x4xf32> to tensor<4xf32>
      %2 = linalg.add ins(%1, %extracted_slice_0 : tensor<4xf32>, tensor<4xf32>) outs(%0
          : tensor<4xf32>) -> tensor<4xf32>
      return %2 : tensor<4xf32>
    }
    ```
  }];
  let dependentDialects = ["mlir::arith::ArithDialect"];
}

def FoldGathersPass : Pass<"weir-fold-gathers", "mlir::func::FuncOp"> {
  let summary = "Turns gathers at known indices into reshapes and maps.";
  let description = [{
    Torch's decomposition of group norm finds its groups by tables of constants, and
    torch-mlir reads the weights of a transposed convolution from their end. Both hide
    from later passes that every element is read once.

    Needs: the graph level, before weir-raise-norms, which looks through reshapes only.

    Gives: a reshape for a gather whose indices are constants that name all elements in
    their order; an indexing map for a gather whose indices are sums of loop indices and
    in range; `linalg.index` for the elements of a constant that counts upward, as PyTorch's
    `arange` does, so that masks are seen to compare places.

    Never: changes which element is read. A gather that may read out of range stays, and
    so does one by data.

    Cost: linear in the elements of the result; reshapes are looked for up to 65,536.

    Example:
    ```mlir
    func.func @rows(%x: tensor<1x4xf32>) -> tensor<4xf32> {
      %c0 = arith.constant 0 : index
      %table = arith.constant dense<[0, 1, 2, 3]> : tensor<4xi64>
      %e = tensor.empty() : tensor<4xf32>
      %y = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>],
                           iterator_types = ["parallel"]}
          ins(%table : tensor<4xi64>) outs(%e : tensor<4xf32>) {
      ^bb0(%in: i64, %out: f32):
        %i = arith.index_cast %in : i64 to index
        %v = tensor.extract %x[%c0, %i] : tensor<1x4xf32>
        linalg.yield %v : f32
      } -> tensor<4xf32>
      return %y : tensor<4xf32>
    }
    ```
    ```mlir
    func.func @rows(%x: tensor<1x4xf32>) -> tensor<4xf32> {
      %c0 = arith.constant 0 : index
      %cst = arith.constant dense<[0, 1, 2, 3]> : tensor<4xi64>
      %0 = tensor.empty() : tensor<4xf32>
      %collapsed = tensor.collapse_shape %x [[0, 1]] : tensor<1x4xf32> into tensor<4xf32>
      return %collapsed : tensor<4xf32>
    }
    ```
  }];
  let dependentDialects = ["mlir::linalg::LinalgDialect", "mlir::tensor::TensorDialect"];
}

def RaiseNormsPass : Pass<"weir-raise-norms", "mlir::func::FuncOp"> {
  let summary = "Turns decomposed norms, losses and activations into `norm` ops.";
  let description = [{
    Recognises LayerNorm, group norm, batch norm, RMSNorm, softmax, its logarithm,
    logsumexp, cross-entropy and attention by the expression of one element, whatever ops
    and reshapes spell it, and GELU, SiLU, error functions and asinh by their values at 393
    points. docs/graph-level.md has the list and the reasons.

    Needs: the graph level, before weir-normalize-graph, which clamps indices and drops the
    assertions that tell a class from any other index.

    Gives: fewer kernels, a gradient in closed form, statistics in f32 where the text has
    f64. An assertion that a target is a class becomes a NaN loss.

    Never: raises what does not match exactly, or an inner part that other ops use. Attention
    is matched but for the roundings of scores and probabilities, and for rows masked by -inf
    as a whole, where a softmax gives NaN and the op 0.

    Cost: each op is a candidate once; an activation visits max 1,000 ops from each of
    max 8 seeds.

    Example:
    ```mlir
    func.func @silu(%x: tensor<4xf32>) -> tensor<4xf32> {
      %one = arith.constant 1.0 : f32
      %e = tensor.empty() : tensor<4xf32>
      %y = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>],
                           iterator_types = ["parallel"]}
          ins(%x : tensor<4xf32>) outs(%e : tensor<4xf32>) {
      ^bb0(%v: f32, %out: f32):
        %minus = arith.negf %v : f32
        %exp = math.exp %minus : f32
        %sum = arith.addf %exp, %one : f32
        %r = arith.divf %v, %sum : f32
        linalg.yield %r : f32
      } -> tensor<4xf32>
      return %y : tensor<4xf32>
    }
    ```
    ```mlir
    func.func @silu(%x: tensor<4xf32>) -> tensor<4xf32> {
      %0 = norm.silu %x : tensor<4xf32>
      return %0 : tensor<4xf32>
    }
    ```
  }];
  let dependentDialects = ["mlir::linalg::LinalgDialect", "mlir::tensor::TensorDialect",
                           "weir::norm::NormDialect"];
}

def NormalizeGraphPass : Pass<"weir-normalize-graph", "mlir::func::FuncOp"> {
  let summary = "Makes types static and computed indices safe.";
  let description = [{
    Front ends cast to unknown sizes and back, assert that an index is in range, and
    branch inside of bodies. A kernel cannot stop, so a read must be safe by itself.

    Needs: what a front end printed, before anything is differentiated, so that kernels,
    gradients and the reference read the same elements.

    Gives: static types where sizes are known; every index of a `tensor.extract` in range,
    clamped where its operands do not prove it; no assertions; a choice in place of each
    `scf.if`, both of whose branches are computed. A branch that has a loop or may not be
    computed if it is not taken becomes an `scf.while` that runs once or never.

    Never: changes a read that is in range.

    Cost: linear in ops.

    Example:
    ```mlir
    func.func @gather(%table: tensor<11xf32>, %k: tensor<5xi64>) -> tensor<5xf32> {
      %c11 = arith.constant 11 : index
      %e = tensor.empty() : tensor<5xf32>
      %r = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>],
                           iterator_types = ["parallel"]}
          ins(%k : tensor<5xi64>) outs(%e : tensor<5xf32>) {
      ^bb0(%in: i64, %out: f32):
        %i = arith.index_cast %in : i64 to index
        %ok = arith.cmpi slt, %i, %c11 : index
        cf.assert %ok, "index must be smaller than dim size"
        %x = tensor.extract %table[%i] : tensor<11xf32>
        linalg.yield %x : f32
      } -> tensor<5xf32>
      return %r : tensor<5xf32>
    }
    ```
    ```mlir
    #map = affine_map<(d0) -> (d0)>
    func.func @gather(%table: tensor<11xf32>, %k: tensor<5xi64>) -> tensor<5xf32> {
      %c11 = arith.constant 11 : index
      %0 = tensor.empty() : tensor<5xf32>
      %1 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel"]} ins(%k
          : tensor<5xi64>) outs(%0 : tensor<5xf32>) {
      ^bb0(%in: i64, %out: f32):
        %2 = arith.index_cast %in : i64 to index
        %3 = arith.cmpi slt, %2, %c11 : index
        %c0_i64 = arith.constant 0 : i64
        %4 = arith.maxsi %in, %c0_i64 : i64
        %c10_i64 = arith.constant 10 : i64
        %5 = arith.minsi %4, %c10_i64 : i64
        %6 = arith.index_cast %5 : i64 to index
        %extracted = tensor.extract %table[%6] : tensor<11xf32>
        linalg.yield %extracted : f32
      } -> tensor<5xf32>
      return %1 : tensor<5xf32>
    }
    ```
  }];
  let dependentDialects = ["mlir::arith::ArithDialect", "mlir::linalg::LinalgDialect",
                           "mlir::tensor::TensorDialect"];
}

def WidenArithmeticPass : Pass<"weir-widen-arithmetic", "mlir::func::FuncOp"> {
  let summary = "Computes f16 and bf16 in f32.";
  let description = [{
    Needs: the graph or the gradient level.

    Gives: no arithmetic on f16 or bf16: operands are extended, each op of the graph rounds
    once, to the nearest, ties to even. A reduction keeps its running value in f32 and
    rounds at its end. f16 and bf16 are types that tensors are stored in.

    Never: drops a cast that the graph has, or lets two casts cancel each other.

    Cost: linear in ops.

    Example:
    ```mlir
    func.func @add(%a: tensor<8xf16>, %b: tensor<8xf16>) -> tensor<8xf16> {
      %e = tensor.empty() : tensor<8xf16>
      %r = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>,
                                            affine_map<(i) -> (i)>],
                           iterator_types = ["parallel"]}
          ins(%a, %b : tensor<8xf16>, tensor<8xf16>) outs(%e : tensor<8xf16>) {
      ^bb0(%x: f16, %y: f16, %out: f16):
        %s = arith.addf %x, %y : f16
        linalg.yield %s : f16
      } -> tensor<8xf16>
      return %r : tensor<8xf16>
    }
    ```
    ```mlir
    #map = affine_map<(d0) -> (d0)>
    func.func @add(%a: tensor<8xf16>, %b: tensor<8xf16>) -> tensor<8xf16> {
      %0 = tensor.empty() : tensor<8xf16>
      %1 = linalg.generic {indexing_maps = [#map, #map, #map], iterator_types = ["parallel"]}
          ins(%a, %b : tensor<8xf16>, tensor<8xf16>) outs(%0 : tensor<8xf16>) {
      ^bb0(%in: f16, %in_0: f16, %out: f16):
        %2 = arith.extf %in_0 : f16 to f32
        %3 = arith.extf %in : f16 to f32
        %4 = arith.addf %3, %2 : f32
        %5 = arith.truncf %4 : f32 to f16
        linalg.yield %5 : f16
      } -> tensor<8xf16>
      return %1 : tensor<8xf16>
    }
    ```
  }];
  let dependentDialects = ["mlir::arith::ArithDialect", "mlir::linalg::LinalgDialect",
                           "mlir::tensor::TensorDialect"];
}

def DropDilationsPass : Pass<"weir-drop-dilations", "mlir::func::FuncOp"> {
  let summary = "Skips the zeros of dilated tensors in convolutions.";
  let description = [{
    Front ends write a transposed convolution, and weir-differentiate the gradient of a
    convolution with strides, as a convolution of a tensor with zeros between its elements.

    Needs: the graph or the gradient level.

    Gives: one contraction over the taps that meet an element. Its result has a dimension
    for the residues of an index, and is collapsed. Taps whose number is no multiple of the
    stride get zeros behind them; what no tap reaches is 0.

    Never: changes a tensor whose gaps are not known to be zeros.

    Cost: linear in ops; the work in kernels falls by the stride of each dimension.

    Example: stride 2 and 4 taps.
    ```mlir
    func.func @dx(%x: tensor<3x8xf32>, %w: tensor<3x4xf32>) -> tensor<18xf32> {
      %f = arith.constant 0.0 : f32
      %e = tensor.empty() : tensor<3x21xf32>
      %zeros = linalg.fill ins(%f : f32) outs(%e : tensor<3x21xf32>) -> tensor<3x21xf32>
      %d = tensor.insert_slice %x into %zeros[0, 3] [3, 8] [1, 2]
          : tensor<3x8xf32> into tensor<3x21xf32>
      %z = arith.constant dense<0.0> : tensor<18xf32>
      %y = linalg.generic {indexing_maps = [affine_map<(h, f, k) -> (f, h - k + 3)>,
                                            affine_map<(h, f, k) -> (f, k)>,
                                            affine_map<(h, f, k) -> (h)>],
                           iterator_types = ["parallel", "reduction", "reduction"]}
          ins(%d, %w : tensor<3x21xf32>, tensor<3x4xf32>) outs(%z : tensor<18xf32>) {
      ^bb0(%a: f32, %b: f32, %o: f32):
        %p = arith.mulf %a, %b : f32
        %s = arith.addf %o, %p : f32
        linalg.yield %s : f32
      } -> tensor<18xf32>
      return %y : tensor<18xf32>
    }
    ```
    ```mlir
    #map = affine_map<(d0, d1, d2, d3) -> (d2, d0 - d3 + 1)>
    #map1 = affine_map<(d0, d1, d2, d3) -> (d2, d3, d1)>
    #map2 = affine_map<(d0, d1, d2, d3) -> (d0, d1)>
    func.func @dx(%x: tensor<3x8xf32>, %w: tensor<3x4xf32>) -> tensor<18xf32> {
      %cst = arith.constant 0.000000e+00 : f32
      %0 = tensor.empty() : tensor<3x10xf32>
      %1 = linalg.fill ins(%cst : f32) outs(%0 : tensor<3x10xf32>) -> tensor<3x10xf32>
      %inserted_slice = tensor.insert_slice %x into %1[0, 1] [3, 8] [1, 1] : tensor<3x8xf32>
          into tensor<3x10xf32>
      %expanded = tensor.expand_shape %w [[0], [1, 2]] output_shape [3, 2, 2] : tensor<3x4xf32>
          into tensor<3x2x2xf32>
      %cst_0 = arith.constant 0.000000e+00 : f32
      %2 = tensor.empty() : tensor<9x2xf32>
      %3 = linalg.fill ins(%cst_0 : f32) outs(%2 : tensor<9x2xf32>) -> tensor<9x2xf32>
      %4 = linalg.generic {indexing_maps = [#map, #map1, #map2],
          iterator_types = ["parallel", "parallel", "reduction", "reduction"]}
          ins(%inserted_slice, %expanded : tensor<3x10xf32>, tensor<3x2x2xf32>) outs(%3
          : tensor<9x2xf32>) {
      ^bb0(%in: f32, %in_1: f32, %out: f32):
        %5 = arith.mulf %in, %in_1 : f32
        %6 = arith.addf %out, %5 : f32
        linalg.yield %6 : f32
      } -> tensor<9x2xf32>
      %collapsed = tensor.collapse_shape %4 [[0, 1]] : tensor<9x2xf32> into tensor<18xf32>
      return %collapsed : tensor<18xf32>
    }
    ```
  }];
  let dependentDialects = ["mlir::arith::ArithDialect", "mlir::linalg::LinalgDialect",
                           "mlir::tensor::TensorDialect"];
}

def VerifyGraphPass : Pass<"weir-verify-graph", "mlir::ModuleOp"> {
  let summary = "Rejects what the graph level does not hold.";
  let description = [{
    Needs: nothing.

    Gives: functions of one block on ranked tensors of static shape, of the ops and types
    that docs/graph-level.md lists. All problems are reported, each at its op.

    Never: changes the module.

    Cost: linear in ops.

    Example:
    ```mlir
    func.func @f(%x: tensor<?xf32>) -> tensor<?xf32> {
      return %x : tensor<?xf32>
    }
    ```
    ```text
    error: 'func.func' op argument 0 is 'tensor<?xf32>', not a ranked tensor of static shape...
    ```
  }];
}

//===----------------------------------------------------------------------===//
// gradient
//===----------------------------------------------------------------------===//

def DifferentiatePass : Pass<"weir-differentiate", "mlir::ModuleOp"> {
  let summary = "Replaces `autodiff` ops by forward and backward.";
  let description = [{
    Needs: the graph level. Every op that the gradient flows through has a rule
    (`DifferentiableOpInterface`); one without is an error.

    Gives: for every `autodiff.vjp`, the callee's ops and those that carry cotangents back
    from seeded results to wanted arguments. No `autodiff.vjp`, no `autodiff.stop_gradient`,
    and no private function that is unused then.

    Never: differentiates integers, or what leads to no wanted argument.

    Cost: linear in the callee's ops, for each `autodiff.vjp`.

    Example:
    ```mlir
    func.func private @square(%x: tensor<4xf32>) -> tensor<4xf32> {
      %e = tensor.empty() : tensor<4xf32>
      %y = linalg.mul ins(%x, %x : tensor<4xf32>, tensor<4xf32>)
          outs(%e : tensor<4xf32>) -> tensor<4xf32>
      return %y : tensor<4xf32>
    }
    func.func @dx(%x: tensor<4xf32>, %dy: tensor<4xf32>) -> tensor<4xf32> {
      %y, %dx = autodiff.vjp @square(%x) seeded [0] (%dy) wanted [0]
          : (tensor<4xf32>, tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>)
      return %dx : tensor<4xf32>
    }
    ```
    ```mlir
    #map = affine_map<(d0) -> (d0)>
    func.func @dx(%x: tensor<4xf32>, %dy: tensor<4xf32>) -> tensor<4xf32> {
      %0 = tensor.empty() : tensor<4xf32>
      %1 = linalg.mul ins(%x, %x : tensor<4xf32>, tensor<4xf32>) outs(%0 : tensor<4xf32>)
          -> tensor<4xf32>
      %2 = tensor.empty() : tensor<4xf32>
      %3 = linalg.generic {indexing_maps = [#map, #map, #map, #map],
          iterator_types = ["parallel"]} ins(%x, %x, %dy
          : tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) outs(%2 : tensor<4xf32>) {
      ^bb0(%in: f32, %in_0: f32, %in_1: f32, %out: f32):
        %4 = arith.mulf %in_1, %in_0 : f32
        %5 = arith.mulf %in_1, %in : f32
        %6 = arith.addf %4, %5 : f32
        linalg.yield %6 : f32
      } -> tensor<4xf32>
      return %3 : tensor<4xf32>
    }
    ```
  }];
  let dependentDialects = ["mlir::arith::ArithDialect", "mlir::linalg::LinalgDialect",
                           "mlir::math::MathDialect", "mlir::tensor::TensorDialect",
                           "weir::norm::NormDialect"];
}

def SplitBackwardPass : Pass<"weir-split-backward", "mlir::ModuleOp"> {
  let summary = "Splits a joint backward into forward, input pass and weight pass.";
  let description = [{
    For pipeline schedules that run the weight pass later. docs/gradients.md says more.
    Functions with collectives between ranks are cut, too, into the sections between
    exchanges: docs/distributed.md says more.

    Needs: weir-differentiate. A function F.split has forward and backward of F, with its
    total cotangents marked by `autodiff.total`. Collectives are at the top of functions.

    Gives: F.forward, F.backward_input and F.backward_weight in place of F.split. Each op runs
    in one of them; tensors that a later one reads are results of an earlier one. F.section.0,
    F.section.1 and so on in place of a function F with collectives. Section n + 1 runs when
    the ranks have exchanged what section n gives as `sent.<number>.<collective>`, with the
    dimension behind it where there is one; the result is its argument `received.<number>`.
    Other values for later sections are `kept.<number>`, donated to the last reader; constants
    and reshapes are repeated. An argument whose `weir.sharded` names a unit is
    `gathered.<dimension>.<name>` where its gather is read; ops that read another unit than
    those before them, in the order of the text, begin a section. The next value of a donated
    argument comes from the last section that reads the argument. No op of `shard`, and no
    `weir.sharded`.

    Never: computes a total cotangent of an activation in the weight pass. Accepts a result
    without `weir.sharded` that may differ by rank.

    Cost: linear in ops, and in sections times arguments.

    Example:
    ```mlir
    func.func @f(%x: tensor<4xf32> {weir.kind = "input", weir.name = "x"},
                 %w: tensor<4xf32> {weir.kind = "param", weir.name = "w"})
        -> (tensor<4xf32> {weir.name = "y"}) {
      %e = tensor.empty() : tensor<4xf32>
      %y = linalg.mul ins(%x, %w : tensor<4xf32>, tensor<4xf32>)
          outs(%e : tensor<4xf32>) -> tensor<4xf32>
      return %y : tensor<4xf32>
    }
    func.func @f.split(%x: tensor<4xf32> {weir.kind = "input", weir.name = "x"},
                       %w: tensor<4xf32> {weir.kind = "param", weir.name = "w"},
                       %dy: tensor<4xf32> {weir.name = "cotangent.y"})
        -> (tensor<4xf32> {weir.name = "y"}, tensor<4xf32>, tensor<4xf32>)
        attributes {autodiff.split = array<i64: 2, 1>} {
      %y, %dx, %dw = autodiff.vjp @f(%x, %w) seeded [0] (%dy) wanted [0, 1] {totals}
          : (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>)
            -> (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>)
      return %y, %dx, %dw : tensor<4xf32>, tensor<4xf32>, tensor<4xf32>
    }
    ```
    Becomes, by `weir-opt --weir-differentiate --weir-split-backward`:
    ```mlir
    #map = affine_map<(d0) -> (d0)>
    func.func @f(%x: tensor<4xf32> {weir.kind = "input", weir.name = "x"},
        %w: tensor<4xf32> {weir.kind = "param", weir.name = "w"})
        -> (tensor<4xf32> {weir.name = "y"}) {
      %0 = tensor.empty() : tensor<4xf32>
      %1 = linalg.mul ins(%x, %w : tensor<4xf32>, tensor<4xf32>) outs(%0 : tensor<4xf32>)
          -> tensor<4xf32>
      return %1 : tensor<4xf32>
    }
    func.func @f.forward(%arg0: tensor<4xf32> {weir.kind = "input", weir.name = "x"},
        %arg1: tensor<4xf32> {weir.kind = "param", weir.name = "w"})
        -> (tensor<4xf32> {weir.name = "y"}) {
      %0 = tensor.empty() : tensor<4xf32>
      %1 = linalg.mul ins(%arg0, %arg1 : tensor<4xf32>, tensor<4xf32>) outs(%0 : tensor<4xf32>)
          -> tensor<4xf32>
      return %1 : tensor<4xf32>
    }
    func.func @f.backward_input(%arg0: tensor<4xf32> {weir.kind = "param", weir.name = "w"},
        %arg1: tensor<4xf32> {weir.name = "cotangent.y"})
        -> (tensor<4xf32> {weir.name = "grad.x"}) {
      %0 = tensor.empty() : tensor<4xf32>
      %1 = linalg.generic {indexing_maps = [#map, #map, #map], iterator_types = ["parallel"]}
          ins(%arg0, %arg1 : tensor<4xf32>, tensor<4xf32>) outs(%0 : tensor<4xf32>) {
      ^bb0(%in: f32, %in_0: f32, %out: f32):
        %2 = arith.mulf %in_0, %in : f32
        linalg.yield %2 : f32
      } -> tensor<4xf32>
      return %1 : tensor<4xf32>
    }
    func.func @f.backward_weight(%arg0: tensor<4xf32> {weir.kind = "input", weir.name = "x"},
        %arg1: tensor<4xf32> {weir.name = "cotangent.y"},
        %arg2: tensor<4xf32> {weir.donate, weir.name = "grad.w"})
        -> (tensor<4xf32> {weir.name = "grad.w"}) {
      %0 = tensor.empty() : tensor<4xf32>
      %1 = linalg.generic {indexing_maps = [#map, #map, #map], iterator_types = ["parallel"]}
          ins(%arg0, %arg1 : tensor<4xf32>, tensor<4xf32>) outs(%0 : tensor<4xf32>) {
      ^bb0(%in: f32, %in_0: f32, %out: f32):
        %3 = arith.mulf %in_0, %in : f32
        linalg.yield %3 : f32
      } -> tensor<4xf32>
      %2 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel"]} ins(%1
          : tensor<4xf32>) outs(%arg2 : tensor<4xf32>) {
      ^bb0(%in: f32, %out: f32):
        %3 = arith.addf %out, %in : f32
        linalg.yield %3 : f32
      } -> tensor<4xf32>
      return %2 : tensor<4xf32>
    }
    ```
  }];
  let dependentDialects = ["mlir::arith::ArithDialect", "mlir::linalg::LinalgDialect",
                           "mlir::tensor::TensorDialect"];
}

def ExpandRandomPass : Pass<"weir-expand-random", "mlir::func::FuncOp"> {
  let summary = "Expands `random` ops into `linalg.generic`.";
  let description = [{
    Needs: no `autodiff` ops left: forward and backward must read the same numbers, so while
    gradients are taken a `random` op is a value like any other.

    Gives: no `random` op. Each element comes from seed, step, stream and its own index by
    ten rounds of Philox.

    Never: makes numbers depend on shapes of kernels or on the order of execution.

    Cost: linear in ops; 20 products for each element at run time.

    Example:
    ```mlir
    func.func @noise(%seed: tensor<i64>, %step: tensor<i64>) -> tensor<8xf32> {
      %u = random.uniform %seed, %step stream 7 : tensor<8xf32>
      return %u : tensor<8xf32>
    }
    ```
    ```mlir
    #map = affine_map<(d0) -> ()>
    #map1 = affine_map<(d0) -> (d0)>
    module {
      func.func @noise(%arg0: tensor<i64>, %arg1: tensor<i64>) -> tensor<8xf32> {
        %0 = tensor.empty() : tensor<8xf32>
        %1 = linalg.generic {indexing_maps = [#map, #map, #map1], ...
        ...
        %low, %high = arith.mului_extended ...
        ...
      } -> tensor<8xf32>
      return %1 : tensor<8xf32>
    }
    }
    ```
  }];
  let dependentDialects = ["mlir::arith::ArithDialect", "mlir::linalg::LinalgDialect",
                           "mlir::tensor::TensorDialect"];
}

def VerifyGradientPass : Pass<"weir-verify-gradient", "mlir::ModuleOp"> {
  let summary = "Rejects what the gradient level does not hold.";
  let description = [{
    Needs: nothing.

    Gives: the graph level without `autodiff` and `random` ops. All problems are reported.

    Never: changes the module.

    Cost: linear in ops.

    Example:
    ```mlir
    func.func @f(%x: tensor<4xf32>) -> tensor<4xf32> {
      %y = autodiff.stop_gradient %x : tensor<4xf32>
      return %y : tensor<4xf32>
    }
    ```
    ```text
    error: 'autodiff.stop_gradient' op is not supported at the gradient level...
    ```
  }];
}

//===----------------------------------------------------------------------===//
// kernels
//===----------------------------------------------------------------------===//

def SetProfilePass : Pass<"weir-set-profile", "mlir::ModuleOp"> {
  let summary = "Sets the target profile that the module is compiled for.";
  let description = [{
    Needs: nothing. From the kernels level on a module is for one target.

    Gives: `weir.profile`, the limits that later passes and gates read. One that is there is
    replaced.

    Never: changes anything else. An unknown profile is an error.

    Cost: reads one file at most.

    Example:
    ```mlir
    module {
    }
    ```
    ```mlir
    module attributes {weir.profile = {...max_loop_trips = 65535..., name = "lavapipe"...}} {
    }
    ```
  }];
  let options = [
    Option<"profile", "profile", "std::string", "\"lavapipe\"",
           "A built-in profile's name or the path of a profile file.">,
    Option<"precision", "precision", "std::string", "\"\"",
           "Rounding of factors of products in f32: f32 or tf32; empty: the profile's.">];
}

def DecomposeMatricesPass : Pass<"weir-decompose-matrices", "mlir::func::FuncOp"> {
  let summary = "Writes factorizations of matrices as loops.";
  let description = [{
    Needs: the gradient level: ops of `matrix` are differentiated as such.

    Gives: no op of `matrix`. Each is a loop of `scf.for` over the steps of its algorithm, whose
    trips compute all elements of all matrices of the batch in a `linalg.generic` or two, or a
    value of no loop where it has no elements. Equations with one matrix factor it once. Eigenvalues
    are sorted by `norm.argsort`. The reference expands them by the same functions
    (dialects/Matrix/Decompose.h).

    Never: touches other ops, but for merging equal ones where it writes an equation in others.

    Cost: linear in ops.

    Example:
    ```mlir
    func.func @f(%a: tensor<3x3xf32>) -> tensor<3x3xf32> {
      %l = matrix.cholesky %a : tensor<3x3xf32>
      return %l : tensor<3x3xf32>
    }
    ```
    Becomes:
    ```text
    tensor.expand_shape
    scf.for
    linalg.generic
    scf.yield
    tensor.collapse_shape
    return
    ```
  }];
  let dependentDialects = ["weir::matrix::MatrixDialect", "mlir::scf::SCFDialect",
                           "weir::norm::NormDialect"];
}

def FormSequencesPass : Pass<"weir-form-sequences", "mlir::func::FuncOp"> {
  let summary = "Writes loops that compute element by element as one op each.";
  let description = [{
    A recurrence such as h = a[t] * h + b[t] is a loop whose body needs, for an element of what it
    carries, only that element. All trips of an element become one walk then: a `linalg.generic`
    that reduces over the trips. A device runs one kernel for it, which keeps what is carried in
    registers, where the loop has a dispatch or several for each trip.

    Needs: gradients are there; weir-unroll-loops has written out short loops.

    Gives: in place of an `scf.for` of known length an op over the points of what it carries and
    over its trips. What the loop carries is the same in all trips, a counter, a tensor of which an
    element depends on that of the trip before, or a tensor into which each trip inserts a row, from
    the first one on or from the last. Bodies read rows of other tensors at numbers that the counter
    decides. Results have the bits of the loop, unless it adds up: sums are in the order of a
    reduction of their shape then.

    Never: touches a loop whose body reduces, or has an op with `weir.no_fuse`, or checks an index;
    or one of data-dependent length, or of more tensors than a kernel binds.

    Cost: linear in the ops of loops' bodies.

    Example: the last and all states of a recurrence of 1,000 trips.
    ```mlir
    func.func @f(%a: tensor<1000x8xf32>, %x: tensor<8xf32>) -> tensor<8xf32> {
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      %c1000 = arith.constant 1000 : index
      %e = tensor.empty() : tensor<8xf32>
      %r = scf.for %i = %c0 to %c1000 step %c1 iter_args(%h = %x) -> tensor<8xf32> {
        %row = tensor.extract_slice %a[%i, 0] [1, 8] [1, 1] : tensor<1000x8xf32> to tensor<8xf32>
        %n = linalg.div ins(%h, %row : tensor<8xf32>, tensor<8xf32>)
            outs(%e : tensor<8xf32>) -> tensor<8xf32>
        scf.yield %n : tensor<8xf32>
      }
      return %r : tensor<8xf32>
    }
    ```
    ```mlir
    #map = affine_map<(d0, d1) -> (d1, d0)>
    #map1 = affine_map<(d0, d1) -> (d0)>
    module {
      func.func @f(%arg0: tensor<1000x8xf32>, %arg1: tensor<8xf32>) -> tensor<8xf32> {
        %0 = linalg.generic {indexing_maps = [#map, #map1],
                             iterator_types = ["parallel", "reduction"]}
            ins(%arg0 : tensor<1000x8xf32>) outs(%arg1 : tensor<8xf32>) {
        ^bb0(%in: f32, %out: f32):
          %1 = arith.divf %out, %in : f32
          linalg.yield %1 : f32
        } -> tensor<8xf32>
        return %0 : tensor<8xf32>
      }
    }
    ```
  }];
  let dependentDialects = ["mlir::arith::ArithDialect", "mlir::linalg::LinalgDialect",
                           "mlir::tensor::TensorDialect"];
}

def SplitLoopsPass : Pass<"weir-split-loops", "mlir::ModuleOp"> {
  let summary = "Cuts functions with loops between tensors into segments.";
  let description = [{
    A *segment* is a function without loops: what runs before a loop, its body, or what runs behind
    it. Each goes through all levels like any other function, and weir-pack makes one plan of their
    plans, in which the loop is an item.

    Needs: weir-verify-gradient: a loop is an `scf.for` or an `scf.while` between tensors, in a
    function or in the body of another loop.

    Gives: for each function with loops its segments, functions with `weir.segment`, and in the
    module's `weir.programs` an entry of its name: its type and attributes, the values between
    segments by number (arguments first), and the steps. A step is a segment with the values that
    it takes and gives, or a loop: max number of trips, the carried value that decides whether a
    trip follows, and for each carried value the numbers before the loop, in a trip, at its end and
    behind the loop, and the segment that copies it, for the case that it cannot be updated in
    place. The counter of an `scf.for` is a carried value, and so is the condition of an
    `scf.while`, which is computed before the first trip and at the end of each. An argument
    is donated to the last step that takes it.

    Never: touches a function without loops. A carried tensor without elements is an error.

    Cost: linear in ops.

    Example: x, doubled 1,000 times. `@f_part` makes what the loop begins with, `@f_part_0` is a
    trip, `@f_part_1` makes the result.
    ```mlir
    func.func @f(%x: tensor<4xf32>) -> tensor<4xf32> {
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      %c1000 = arith.constant 1000 : index
      %e = tensor.empty() : tensor<4xf32>
      %r = scf.for %i = %c0 to %c1000 step %c1 iter_args(%h = %x) -> tensor<4xf32> {
        %n = linalg.add ins(%h, %h : tensor<4xf32>, tensor<4xf32>)
            outs(%e : tensor<4xf32>) -> tensor<4xf32>
        scf.yield %n : tensor<4xf32>
      }
      return %r : tensor<4xf32>
    }
    ```
    ```mlir
    module {
      func.func @f_part(%arg0: tensor<4xf32>) -> tensor<4xf32> attributes {weir.segment} {
        return %arg0 : tensor<4xf32>
      }
      func.func @f_copy(%arg0: tensor<4xf32>) -> tensor<4xf32> attributes {weir.segment} {
        return %arg0 : tensor<4xf32>
      }
      func.func @f_part_0(%arg0: tensor<4xf32> {weir.donate}) -> tensor<4xf32>
          attributes {weir.segment} {
        %0 = tensor.empty() : tensor<4xf32>
        %1 = linalg.add ins(%arg0, %arg0 : tensor<4xf32>, tensor<4xf32>)
            outs(%0 : tensor<4xf32>) -> tensor<4xf32>
        return %1 : tensor<4xf32>
      }
      func.func @f_part_1(%arg0: tensor<4xf32> {weir.donate}) -> tensor<4xf32>
          attributes {weir.segment} {
        return %arg0 : tensor<4xf32>
      }
    }
    ```
  }];
  let dependentDialects = ["mlir::arith::ArithDialect", "mlir::func::FuncDialect",
                           "mlir::tensor::TensorDialect"];
}

def FormSegmentsPass : Pass<"weir-form-segments", "mlir::func::FuncOp"> {
  let summary = "Writes scatters of many updates without comparing them with all rows.";
  let description = [{
    A scatter, and the gradient of a gather, is a reduction over all updates for each row that may
    be written: it chooses the updates that name the row, and the neutral element instead of the
    others. This pass sorts the updates by the rows that they name (`norm.argsort`). Those of one
    row are neighbours then, a *segment*. A scan that starts anew in each segment combines them in
    their order, and each row takes what the scan has at the end of its segment, which a binary
    search finds. Each element still has one writer.

    For a processor, the reduction is written once more, of the names and the updates, and marked
    `weir.scatter`. Its kernel takes each update, in their order, to the row that it names in the
    bytes of the init.

    Needs: the profile; gradients are there already. weir-decompose-norms writes out the sort.

    Gives: such a scatter, if it is for a processor and has fewer steps than the comparisons and the
    sort: 4096, 2 for each update, and one for 2 elements of the result, which is stored twice. Or a
    sort, a scan, a search and an op that reads their results in place of each reduction
    whose choice compares a number, which depends on the update and perhaps on other dimensions of
    the result, with the number of the row; if the comparisons of all rows with all updates, 16 of
    which count as one step, are more than the steps of the sort, of the search and of the scan.
    Other conditions of the choice may depend on what the number depends on. Where there are few
    other elements for each row, the scan is in chunks, and what a segment has in the chunks before
    is combined with the rest: so a sum's bits depend on the shape alone, but are not those of the
    reduction. A scatter combines the init with the first update of a row, then that with the next.

    Never: touches a reduction of few updates, or whose terms depend on the row.

    Cost: linear in ops, times the ops between a reduction and its elements.

    Example: the sums of the elements that name a place.
    ```mlir
    func.func @f(%x: tensor<9000xf32>, %to: tensor<9000xi32>) -> tensor<20000xf32> {
      %zero = arith.constant dense<0.0> : tensor<20000xf32>
      %none = arith.constant -0.0 : f32
      %sum = linalg.generic {
          indexing_maps = [affine_map<(i, j) -> (j)>, affine_map<(i, j) -> (j)>,
                           affine_map<(i, j) -> (i)>],
          iterator_types = ["parallel", "reduction"]}
          ins(%x, %to : tensor<9000xf32>, tensor<9000xi32>) outs(%zero : tensor<20000xf32>) {
      ^bb0(%in: f32, %row: i32, %out: f32):
        %i = linalg.index 0 : index
        %place = arith.index_cast %i : index to i32
        %isIt = arith.cmpi eq, %row, %place : i32
        %chosen = arith.select %isIt, %in, %none : f32
        %next = arith.addf %out, %chosen : f32
        linalg.yield %next : f32
      } -> tensor<20000xf32>
      return %sum : tensor<20000xf32>
    }
    ```
    Becomes, by `weir-opt --weir-set-profile --weir-form-segments`:
    ```text
    norm.argsort
    linalg.generic
    return
    ```
  }];
  let dependentDialects = ["mlir::arith::ArithDialect", "mlir::linalg::LinalgDialect",
                           "mlir::tensor::TensorDialect", "weir::norm::NormDialect"];
}

def DecomposeNormsPass : Pass<"weir-decompose-norms", "mlir::func::FuncOp"> {
  let summary = "Expands `norm` ops into `linalg`.";
  let description = [{
    Needs: the gradient level: `norm` ops are differentiated as such, in closed form.

    Gives: no `norm` op; statistics in f32, or f64 where the tensor is f64, variances in two
    passes. The reference expands them by the same functions (dialects/Norm/Decompose.h).
    Attention has one tensor of scores. Where the module has a profile with `attention_keys`, and
    attention as many keys or more, each of its sums has scores of its own, which begin at products
    with the attribute `weir.in_blocks`: a kernel can compute them a block at a time, and keep none.
    Forward sums the products of exponentials then, and multiplies the sums by the rows' shares.

    Never: touches other ops.

    Cost: linear in ops.

    Example:
    ```mlir
    func.func @silu(%x: tensor<4xf32>) -> tensor<4xf32> {
      %y = norm.silu %x : tensor<4xf32>
      return %y : tensor<4xf32>
    }
    ```
    ```mlir
    #map = affine_map<(d0) -> (d0)>
    func.func @silu(%x: tensor<4xf32>) -> tensor<4xf32> {
      %0 = tensor.empty() : tensor<4xf32>
      %1 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel"]} ins(%x
          : tensor<4xf32>) outs(%0 : tensor<4xf32>) {
      ^bb0(%in: f32, %out: f32):
        %2 = arith.negf %in : f32
        %3 = math.exp %2 : f32
        %cst = arith.constant 1.000000e+00 : f32
        %4 = arith.addf %cst, %3 : f32
        %5 = arith.divf %in, %4 : f32
        linalg.yield %5 : f32
      } -> tensor<4xf32>
      return %1 : tensor<4xf32>
    }
    ```
  }];
  let dependentDialects = ["mlir::arith::ArithDialect", "mlir::linalg::LinalgDialect",
                           "mlir::math::MathDialect", "mlir::tensor::TensorDialect"];
}

def GeneralizeTensorsPass : Pass<"weir-generalize-tensors", "mlir::func::FuncOp"> {
  let summary = "Turns ops of `tensor` and scalars into `linalg.generic`.";
  let description = [{
    Needs: weir-set-profile and weir-decompose-norms.

    Gives: slices as indexing maps; pads, concatenations, insertions and generated tensors as
    bodies that read elements at computed indices, in range for every element. Scalars
    between tensors are computed in each body that uses them. What is computed for such a
    body alone is computed in it, max 4 times for an element.

    Never: copies a concatenation of max 4 parts, or a pad, that kernels can write part by
    part: it stays, or becomes insertions into a `tensor.empty`.

    Cost: linear in ops.

    Example:
    ```mlir
    func.func @slice(%x: tensor<7x9xf32>) -> tensor<3x4xf32> {
      %r = tensor.extract_slice %x[0, 1] [3, 4] [1, 2] : tensor<7x9xf32> to tensor<3x4xf32>
      return %r : tensor<3x4xf32>
    }
    ```
    Becomes, by `weir-opt --weir-set-profile --weir-generalize-tensors`:
    ```mlir
    #map = affine_map<(d0, d1) -> (d0 mod 7, d1 * 2 + 1)>
    #map1 = affine_map<(d0, d1) -> (d0, d1)>
    func.func @slice(%x: tensor<7x9xf32>) -> tensor<3x4xf32> {
      %0 = tensor.empty() : tensor<3x4xf32>
      %1 = linalg.generic {indexing_maps = [#map, #map1],
          iterator_types = ["parallel", "parallel"]} ins(%x : tensor<7x9xf32>) outs(%0
          : tensor<3x4xf32>) {
      ^bb0(%in: f32, %out: f32):
        linalg.yield %in : f32
      } -> tensor<3x4xf32>
      return %1 : tensor<3x4xf32>
    }
    ```
  }];
  let dependentDialects = ["mlir::arith::ArithDialect", "mlir::linalg::LinalgDialect",
                           "mlir::tensor::TensorDialect"];
}

def FormScansPass : Pass<"weir-form-scans", "mlir::func::FuncOp"> {
  let summary = "Writes running sums as scans.";
  let description = [{
    Front ends write a running sum, product, maximum or minimum of n elements as n reductions: each
    chooses the elements up to a place, or from a place on, and the neutral element instead of the
    others. A *scan* is one walk over the elements that stores what it has so far at each of them:
    a `linalg.generic` with two results, one of which has the map of all loops, the other one that
    of the loops that are not reduced.

    Needs: weir-generalize-tensors; gradients are there already.

    Gives: a scan in place of each reduction over one loop of 9 elements or more whose choice
    compares the place with the element's, by `linalg.index` or a constant mask, with the place's
    own element or without it. The order of the sum is that of the reduction, so the bits are, too,
    but for the sign of a zero. Where the module's profile has `units` and there are too few rows
    for them, the scan is in equal parts: their sums, a scan of those, and a scan of each part that
    starts from what the parts before it have.

    Never: touches a reduction whose choice compares anything else, or starts from other than one
    constant.

    Cost: linear in ops, times the ops between a reduction and its elements.

    Example: the sums of the elements before each.
    ```mlir
    func.func @f(%x: tensor<12xi32>) -> tensor<12xi32> {
      %zero = arith.constant dense<0> : tensor<12xi32>
      %c0 = arith.constant 0 : i32
      %sum = linalg.generic {
          indexing_maps = [affine_map<(i, j) -> (j)>, affine_map<(i, j) -> (i)>],
          iterator_types = ["parallel", "reduction"]}
          ins(%x : tensor<12xi32>) outs(%zero : tensor<12xi32>) {
      ^bb0(%in: i32, %out: i32):
        %i = linalg.index 0 : index
        %j = linalg.index 1 : index
        %isBefore = arith.cmpi slt, %j, %i : index
        %chosen = arith.select %isBefore, %in, %c0 : i32
        %next = arith.addi %out, %chosen : i32
        linalg.yield %next : i32
      } -> tensor<12xi32>
      return %sum : tensor<12xi32>
    }
    ```
    ```mlir
    #map = affine_map<(d0) -> (d0)>
    #map1 = affine_map<(d0) -> ()>
    func.func @f(%x: tensor<12xi32>) -> tensor<12xi32> {
      %cst = arith.constant dense<0> : tensor<12xi32>
      %c0_i32 = arith.constant 0 : i32
      %0 = tensor.empty() : tensor<12xi32>
      %cst_0 = arith.constant dense<0> : tensor<i32>
      %1:2 = linalg.generic {indexing_maps = [#map, #map, #map1], iterator_types = ["reduction"]}
          ins(%x : tensor<12xi32>) outs(%0, %cst_0 : tensor<12xi32>, tensor<i32>) {
      ^bb0(%in: i32, %out: i32, %before: i32):
        %2 = arith.addi %before, %in : i32
        linalg.yield %before, %2 : i32, i32
      } -> (tensor<12xi32>, tensor<i32>)
      return %1#0 : tensor<12xi32>
    }
    ```
  }];
  let dependentDialects = ["mlir::arith::ArithDialect", "mlir::linalg::LinalgDialect",
                           "mlir::tensor::TensorDialect"];
}

def PrepareKernelsPass : Pass<"weir-prepare-kernels", "mlir::func::FuncOp"> {
  let summary = "Brings the graph into the form that kernels are made from.";
  let description = [{
    Ops of one kernel have its loops. So reshapes between ops are moved out: the op on one side
    gets the loops of the other one, and the reshape moves on to where it is free, between
    kernels.

    Needs: weir-set-profile and weir-generalize-tensors; common subexpressions eliminated.

    Gives: every structured op is a `linalg.generic`. Transposes and broadcasts are part of
    their readers' maps; but where products in tf32 by four subgroups (`sm_90a`) gain by it, a
    factor is transposed by an op of its own, with `weir.no_fuse`. A reduction of many columns
    is two ops: one makes parts of consecutive rows, the other one combines the parts in order;
    so is a contraction of few and long sums. A sum that keeps the element of one number, and
    adds zeros for the others, is that element, with the same bits, where a kernel's operand has
    it. An op of more operands than the profile's `storage_buffers_per_stage` is several, for
    each op of its body one, if it computes points or reduces.

    Never: forms a kernel. Looks at the order of ops: the rows of a part depend on shapes and the
    profile alone, so bits do not depend on what else is in the graph.

    Cost: linear in ops, times the folds of one op.

    Example: the reshape moves to the argument, so that one kernel of 6 x 2 x 7 points may compute
    both ops.
    ```mlir
    func.func @f(%x: tensor<12x7xf32>) -> tensor<6x2x7xf32> {
      %e = tensor.empty() : tensor<12x7xf32>
      %f = tensor.empty() : tensor<6x2x7xf32>
      %0 = linalg.exp ins(%x : tensor<12x7xf32>) outs(%e : tensor<12x7xf32>) -> tensor<12x7xf32>
      %1 = tensor.expand_shape %0 [[0, 1], [2]] output_shape [6, 2, 7]
          : tensor<12x7xf32> into tensor<6x2x7xf32>
      %2 = linalg.tanh ins(%1 : tensor<6x2x7xf32>) outs(%f : tensor<6x2x7xf32>)
          -> tensor<6x2x7xf32>
      return %2 : tensor<6x2x7xf32>
    }
    ```
    Becomes, by `weir-opt --weir-set-profile --weir-prepare-kernels`:
    ```mlir
    ...
    %expanded = tensor.expand_shape %arg0...into tensor<6x2x7xf32>
    ...
    %3 = math.exp %in : f32
    ...
    %3 = math.tanh %in : f32
    ...
    ```
  }];
  let dependentDialects = ["mlir::affine::AffineDialect", "mlir::arith::ArithDialect",
                           "mlir::linalg::LinalgDialect", "mlir::tensor::TensorDialect"];
}

def FormKernelsPass : Pass<"weir-form-kernels", "mlir::ModuleOp"> {
  let summary = "Groups tensor computation into `schedule.kernel` regions.";
  let description = [{
    Needs: weir-prepare-kernels.

    Gives: all computation in kernels; between them constants, reshapes and concatenations. An
    op joins the kernels of its producers where one domain of rows and columns holds them
    all, and each value inside is read at the point where it was made. An op that no kernel can
    compute is an error. A contraction with `weir.in_blocks` is in the kernel of its reader, and its
    sums are no tensor, if that reader alone can compute them in blocks; else the mark goes. A
    contraction of the exponentials that the reductions of such rows sum is in the kernel of these
    reductions, if it computes the same scores: one walk makes all sums.

    Never: changes the loops or the arithmetic of an op. Bits do not depend on what shares a
    kernel, but for those of one walk: they depend on shapes, types and profile.

    Cost: one walk in program order; an op is tried with the kernels of its producers.

    Example: one kernel of 6 x 2 x 7 points.
    ```mlir
    func.func @f(%x: tensor<12x7xf32>) -> tensor<6x2x7xf32> {
      %e = tensor.empty() : tensor<12x7xf32>
      %f = tensor.empty() : tensor<6x2x7xf32>
      %0 = linalg.exp ins(%x : tensor<12x7xf32>) outs(%e : tensor<12x7xf32>) -> tensor<12x7xf32>
      %1 = tensor.expand_shape %0 [[0, 1], [2]] output_shape [6, 2, 7]
          : tensor<12x7xf32> into tensor<6x2x7xf32>
      %2 = linalg.tanh ins(%1 : tensor<6x2x7xf32>) outs(%f : tensor<6x2x7xf32>)
          -> tensor<6x2x7xf32>
      return %2 : tensor<6x2x7xf32>
    }
    ```
    Becomes, by `weir-opt --weir-set-profile --weir-prepare-kernels --weir-form-kernels`:
    ```mlir
    #map = affine_map<(d0, d1, d2) -> (d0, d1, d2)>
    func.func @f(%x: tensor<12x7xf32>) -> tensor<6x2x7xf32> {
      %expanded = tensor.expand_shape %x [[0, 1], [2]] output_shape [6, 2, 7] : tensor<12x7xf32>
          into tensor<6x2x7xf32>
      %0 = schedule.kernel "map_6x2x7"(%expanded) : (tensor<6x2x7xf32>) -> tensor<6x2x7xf32> {
      ^bb0(%arg1: tensor<6x2x7xf32>):
        %1 = tensor.empty() : tensor<6x2x7xf32>
        %2 = linalg.generic {indexing_maps = [#map, #map],
            iterator_types = ["parallel", "parallel", "parallel"]} ins(%arg1 : tensor<6x2x7xf32>)
            outs(%1 : tensor<6x2x7xf32>) {
        ^bb0(%in: f32, %out: f32):
          %4 = math.exp %in : f32
          linalg.yield %4 : f32
        } -> tensor<6x2x7xf32>
        %3 = linalg.generic {indexing_maps = [#map, #map],
            iterator_types = ["parallel", "parallel", "parallel"]} ins(%2 : tensor<6x2x7xf32>)
            outs(%1 : tensor<6x2x7xf32>) {
        ^bb0(%in: f32, %out: f32):
          %4 = math.tanh %in : f32
          linalg.yield %4 : f32
        } -> tensor<6x2x7xf32>
        schedule.yield %3 : tensor<6x2x7xf32>
      }
      return %0 : tensor<6x2x7xf32>
    }
    ```
  }];
  let dependentDialects = ["weir::schedule::ScheduleDialect", "mlir::linalg::LinalgDialect",
                           "mlir::tensor::TensorDialect"];
}

def JoinKernelsPass : Pass<"weir-join-kernels", "mlir::ModuleOp"> {
  let summary = "Makes kernels that work on the same batches the stages of one kernel.";
  let description = [{
    Between two kernels all of the first waits for nothing less than all of the second. A stage
    waits for the stages before it in its own workgroup: so scores, softmax and product of an
    attention's head need no barrier between them, and what goes from one to the next stays in the
    workgroup's memory.

    Needs: weir-form-kernels. Does nothing where a workgroup has several invocations, or
    `stage_bytes` of the profile is 0.

    Gives: for contractions with batches, at least `stage_groups` of them: a kernel that has as
    stages the contraction and all kernels that make or read what another stage does, batch by
    batch, as long as what one workgroup keeps between its stages fits `stage_bytes`.

    Never: joins a kernel that reads an argument that is given away or makes a result that may take
    one's bytes, since either may work in place; a part of a concatenation; one with
    `weir.no_fuse`; one that reduces columns; or one in whose place a value would leave the kernel
    and come back. Bits do not depend on it.

    Cost: linear in kernels, times the stages of a kernel.

    Example: two products of 8 batches.
    ```mlir
    func.func @f(%a: tensor<8x4x5xf32>, %b: tensor<8x5x6xf32>, %c: tensor<8x6x7xf32>)
        -> tensor<8x4x7xf32> {
      %zero = arith.constant 0.0 : f32
      %e = tensor.empty() : tensor<8x4x6xf32>
      %z = linalg.fill ins(%zero : f32) outs(%e : tensor<8x4x6xf32>) -> tensor<8x4x6xf32>
      %m = linalg.batch_matmul ins(%a, %b : tensor<8x4x5xf32>, tensor<8x5x6xf32>)
          outs(%z : tensor<8x4x6xf32>) -> tensor<8x4x6xf32>
      %e2 = tensor.empty() : tensor<8x4x7xf32>
      %z2 = linalg.fill ins(%zero : f32) outs(%e2 : tensor<8x4x7xf32>) -> tensor<8x4x7xf32>
      %n = linalg.batch_matmul ins(%m, %c : tensor<8x4x6xf32>, tensor<8x6x7xf32>)
          outs(%z2 : tensor<8x4x7xf32>) -> tensor<8x4x7xf32>
      return %n : tensor<8x4x7xf32>
    }
    ```
    Becomes, by `weir-opt --weir-set-profile=profile=x86-64-v3 --weir-prepare-kernels
    --weir-form-kernels --weir-join-kernels`:
    ```mlir
    ...
    %0 = schedule.kernel "staged_8_2"...
    ...
    %1 = schedule.kernel "contraction_8x4x6x5"...attributes {group_dims = array<i64: 0>}...
    ...
    %2 = schedule.kernel "contraction_8x4x7x6"...attributes {group_dims = array<i64: 0>}...
    ...
    ```
  }];
  let dependentDialects = ["weir::schedule::ScheduleDialect", "mlir::tensor::TensorDialect"];
}

def AddSparesPass : Pass<"weir-add-spares", "mlir::ModuleOp"> {
  let summary = "Adds kernels that recompute a value for less than its own kernel.";
  let description = [{
    weir-limit-memory takes spares as patterns for what it repeats; weir-schedule drops them.

    Needs: weir-form-kernels.

    Gives: for a result that follows element by element from other results and inputs of its
    kernel, where the kernel does more than that: a kernel of those ops alone, behind it.
    `weir.spare` is the index of the result.

    Never: changes other kernels. A spare has the same bits: they do not depend on what shares
    a kernel.

    Cost: linear in ops of kernels.

    Example: a product and its tanh leave one kernel; the tanh follows from the product.
    ```mlir
    func.func @f(%a: tensor<16x16xf32>, %b: tensor<16x16xf32>) -> tensor<16x16xf32> {
      %zero = arith.constant 0.0 : f32
      %e = tensor.empty() : tensor<16x16xf32>
      %z = linalg.fill ins(%zero : f32) outs(%e : tensor<16x16xf32>) -> tensor<16x16xf32>
      %m = linalg.matmul ins(%a, %b : tensor<16x16xf32>, tensor<16x16xf32>)
          outs(%z : tensor<16x16xf32>) -> tensor<16x16xf32>
      %t = linalg.tanh ins(%m : tensor<16x16xf32>) outs(%e : tensor<16x16xf32>)
          -> tensor<16x16xf32>
      %c = linalg.matmul ins(%m, %t : tensor<16x16xf32>, tensor<16x16xf32>)
          outs(%z : tensor<16x16xf32>) -> tensor<16x16xf32>
      return %c : tensor<16x16xf32>
    }
    ```
    Becomes, by
    `weir-opt --weir-set-profile --weir-prepare-kernels --weir-form-kernels --weir-add-spares`:
    ```mlir
    ...
    %0:2 = schedule.kernel "contraction_16x16x16"(%arg0, %arg1) : ...
    ...
    %1 = schedule.kernel "again_16x16"(%0#0) attributes {weir.spare = 1 : i64} : ...
    ...
    %5 = math.tanh %in : f32
    ...
    ```
  }];
}

def VerifyKernelsPass : Pass<"weir-verify-kernels", "mlir::ModuleOp"> {
  let summary = "Rejects what the kernels level does not hold.";
  let description = [{
    Needs: weir-set-profile.

    Gives: functions on ranked tensors of static shape, whose ops are kernels, constants,
    reshapes and concatenations. All problems are reported.

    Never: changes the module.

    Cost: linear in ops.

    Example:
    ```mlir
    func.func @f(%x: tensor<4xf32>) -> tensor<4xf32> {
      %y = math.exp %x : tensor<4xf32>
      return %y : tensor<4xf32>
    }
    ```
    Prints, by `weir-opt --weir-set-profile --weir-verify-kernels`:
    ```text
    error: 'math.exp' op stands outside of kernels...
    ```
  }];
}

//===----------------------------------------------------------------------===//
// dispatches
//===----------------------------------------------------------------------===//

def LowerKernelsPass : Pass<"weir-lower-kernels", "mlir::ModuleOp"> {
  let summary = "Turns `schedule.kernel` regions into GPU kernels and dispatches.";
  let description = [{
    Needs: the kernels level.

    Gives: one `gpu.func` for kernels that are equal; functions on flat buffers: arguments,
    then results, then one allocation for each value between kernels; one
    `schedule.commands`. Reshapes are gone, constants are globals. Arguments of kernels
    have `schedule.effect`.

    Never: places a value or orders beyond the program's order. Launches nothing for a kernel
    without points.

    Cost: linear in ops and in the code that is made.

    Example:
    ```mlir
    func.func @f(%x: tensor<2x4xf32>) -> tensor<2x4xf32> {
      %y = schedule.kernel "double" (%x) : (tensor<2x4xf32>) -> tensor<2x4xf32> {
      ^bb0(%a: tensor<2x4xf32>):
        %o = tensor.empty() : tensor<2x4xf32>
        %s = linalg.add ins(%a, %a : tensor<2x4xf32>, tensor<2x4xf32>)
            outs(%o : tensor<2x4xf32>) -> tensor<2x4xf32>
        schedule.yield %s : tensor<2x4xf32>
      }
      return %y : tensor<2x4xf32>
    }
    ```
    Becomes, by `weir-opt --weir-set-profile --weir-lower-kernels`:
    ```mlir
    module attributes {gpu.container_module} {
      gpu.module @double {
        gpu.func @double(%arg0: memref<2xvector<4xf32>, #gpu.address_space<global>>
            {schedule.effect = #schedule.effect<read>},
            %arg1: memref<2xvector<4xf32>, #gpu.address_space<global>> {schedule.effect =
            #schedule.effect<write, covers_all = true>}) kernel
            attributes {known_block_size = array<i32: 8, 1, 1>, known_grid_size = array<i32: 1, 1,
            1>} {
          %c2 = arith.constant 2 : index
          %c8 = arith.constant 8 : index
          %block_id_x = gpu.block_id  x
          %thread_id_x = gpu.thread_id  x
          %0 = arith.muli %block_id_x, %c8 : index
          %1 = arith.addi %0, %thread_id_x : index
          %2 = arith.cmpi ult, %1, %c2 : index
          scf.if %2 {
            %3 = memref.load %arg0[%1] : memref<2xvector<4xf32>, #gpu.address_space<global>>
            %4 = arith.addf %3, %3 : vector<4xf32>
            memref.store %4, %arg1[%1] : memref<2xvector<4xf32>, #gpu.address_space<global>>
          }
          gpu.return
        }
      }
      func.func @f(%x: memref<8xf32> {weir.shape = tensor<2x4xf32>},
          %arg1: memref<8xf32> {weir.result, weir.shape = tensor<2x4xf32>})
          attributes {weir.entry} {
        schedule.commands {
          schedule.dispatch @double::@double [1, 1, 1](%x, %arg1) : (memref<8xf32>, memref<8xf32>)
        }
        return
      }
    }
    ```
  }];
  let dependentDialects = [
      "weir::schedule::ScheduleDialect", "mlir::gpu::GPUDialect", "mlir::memref::MemRefDialect",
      "mlir::NVVM::NVVMDialect", "mlir::nvgpu::NVGPUDialect", "mlir::scf::SCFDialect",
      "mlir::vector::VectorDialect", "mlir::arith::ArithDialect", "mlir::math::MathDialect"];
}

def NarrowArithmeticPass : Pass<"weir-narrow-arithmetic", "mlir::ModuleOp"> {
  let summary = "Computes f64 in pairs of f32 where the target has no f64.";
  let description = [{
    Front ends compute statistics in f64 whose operands and results are f32.

    Needs: weir-lower-kernels, and `weir.profile`. Sums have their order then, which pairs
    keep, with gradients or without.

    Gives: where the profile has no `float64`, no f64 in kernels and in the buffers between
    them: a value is the nearest f32 and the rest, 48 bits in the range of f32.

    Never: changes a module whose profile has f64, or an entry that takes or returns f64 (a gate
    says what the target lacks). What has no form in pairs is an error.

    Cost: linear in ops; an operation on pairs takes several on f32.

    Example: a profile without f64.
    ```json
    {"like": "lavapipe", "name": "no_f64", "float64": false}
    ```
    ```mlir
    gpu.module @k {
      gpu.func @k(%x: memref<4xf32>, %y: memref<4xf32>, %c: memref<4xi1>) kernel {
        %i = gpu.thread_id x
        %v = memref.load %x[%i] : memref<4xf32>
        %b = memref.load %c[%i] : memref<4xi1>
        %zero = arith.constant 0.0 : f64
        %wide = arith.extf %v : f32 to f64
        %z = arith.select %b, %wide, %zero : f64
        %r = arith.truncf %z : f64 to f32
        memref.store %r, %y[%i] : memref<4xf32>
        gpu.return
      }
    }
    ```
    Becomes, by `weir-opt --weir-set-profile=profile=profile.json --weir-narrow-arithmetic`:
    ```mlir
    gpu.module @k {
      gpu.func @k(%x: memref<4xf32>, %y: memref<4xf32>, %c: memref<4xi1>) kernel {
        %thread_id_x = gpu.thread_id  x
        %0 = memref.load %x[%thread_id_x] : memref<4xf32>
        %1 = memref.load %c[%thread_id_x] : memref<4xi1>
        %cst = arith.constant 0.000000e+00 : f32
        %cst_0 = arith.constant 0.000000e+00 : f32
        %cst_1 = arith.constant 0.000000e+00 : f32
        %2 = arith.select %1, %0, %cst : f32
        %3 = arith.select %1, %cst_1, %cst_0 : f32
        memref.store %2, %y[%thread_id_x] : memref<4xf32>
        gpu.return
      }
    }
    ```
  }];
  let dependentDialects = ["mlir::arith::ArithDialect", "mlir::math::MathDialect",
                           "mlir::vector::VectorDialect"];
}

def ExpandMathPass : Pass<"weir-expand-math"> {
  let summary = "Replaces `math` functions by Weir's own.";
  let description = [{
    Needs: nothing: scalars and vectors, in kernels or anywhere else.

    Gives: `arith` and `math.fma` in place of every function that docs/math.md lists, with the
    same bits on all targets. Where the module's profile is one of CUDA, whose fma rounds once, exp
    of f32 is shorter, with the same bits, and GELU and its derivative are one function each.

    Never: folds constants with the host's math library, or changes other functions.

    Cost: linear in ops.

    Example:
    ```mlir
    func.func @f(%x: f32) -> f32 {
      %y = math.rsqrt %x : f32
      return %y : f32
    }
    ```
    ```mlir
    module {
      func.func @f(%arg0: f32) -> f32 {
        ...
        %14 = math.fma ...
        ...
        return %51 : f32
      }
    }
    ```
  }];
  let dependentDialects = ["mlir::arith::ArithDialect", "mlir::math::MathDialect"];
}

def StoreInWordsPass : Pass<"weir-store-in-words", "mlir::ModuleOp"> {
  let summary = "Makes integers and halves that the target lacks from words of 32 bits.";
  let description = [{
    Vulkan leaves integers of 8, 16 and 64 bits, and elements of 8 and 16 bits in memory, to the
    device.

    Needs: weir-expand-math, and `weir.profile`.

    Gives: where the profile has no `storage8`, `storage16` or `int64`, kernels that load, store
    and compute in words of 32 bits instead, with the same bits. Arguments and results keep their
    bytes; the last word may end behind them. Short elements of a buffer are packed where all
    that write it write whole words, and lie in a word each where not: `pack_words` then packs
    a result, each word by one invocation.

    Never: stores a part of a word, or lets two invocations write parts of one. Changes nothing
    where the profile has the types. Wide integers have no conversion to or from f64 but from
    i64: an error names the op.

    Cost: linear in ops. An op on i64 takes up to 20; a division runs a loop of 64 trips.

    Example: a profile without i64.
    ```json
    {"like": "lavapipe", "name": "no_i64", "int64": false, "words64": false}
    ```
    ```mlir
    gpu.module @k {
      gpu.func @k(%x: memref<4xi64>, %y: memref<4xi64>) kernel {
        %i = gpu.thread_id x
        %v = memref.load %x[%i] : memref<4xi64>
        %r = arith.andi %v, %v : i64
        memref.store %r, %y[%i] : memref<4xi64>
        gpu.return
      }
    }
    ```
    Becomes, by `weir-opt --weir-set-profile=profile=profile.json --weir-store-in-words`:
    ```mlir
    gpu.module @k {
      gpu.func @k(%x: memref<4xvector<2xi32>>, %y: memref<4xvector<2xi32>>) kernel {
        %thread_id_x = gpu.thread_id  x
        %0 = memref.load %x[%thread_id_x] : memref<4xvector<2xi32>>
        %1 = vector.extract %0[0] : i32 from vector<2xi32>
        %2 = vector.extract %0[1] : i32 from vector<2xi32>
        %3 = vector.from_elements %1, %2 : vector<2xi32>
        memref.store %3, %y[%thread_id_x] : memref<4xvector<2xi32>>
        gpu.return
      }
    }
    ```
  }];
  let dependentDialects = ["mlir::arith::ArithDialect", "mlir::math::MathDialect",
                           "mlir::scf::SCFDialect", "mlir::vector::VectorDialect"];
}

def LimitLoopTripsPass : Pass<"weir-limit-loop-trips", "mlir::ModuleOp"> {
  let summary = "Unrolls loops that the device would end early.";
  let description = [{
    Mesa's driver for CPUs counts the trips of all loops of an invocation together, and each end
    of a loop as one more. Behind 65,535 it leaves out the rest, stores included, and says
    nothing.

    Needs: `weir.profile`, with its `max_loop_trips`; kernels, behind all passes that write loops.

    Gives: kernels whose invocations make at most as many trips. The innermost loop with the most
    trips is unrolled first, by as many times as all trips are too many; others follow if that is
    not enough.

    Never: changes the order of operations, so sums keep their bits; unrolls a loop whose bounds
    are no constants; makes a kernel of more than 16,384 operations. A kernel that makes too many
    trips even so is refused by weir-verify-dispatches.

    Cost: linear in ops, old and new. Nothing where the device ends no loop.

    Example: 100,000 trips, and the end of the loop.
    ```mlir
    gpu.module @k {
      gpu.func @k(%y: memref<100000xf32>) kernel {
        %zero = arith.constant 0 : index
        %one = arith.constant 1 : index
        %n = arith.constant 100000 : index
        %v = arith.constant 1.0 : f32
        scf.for %i = %zero to %n step %one {
          memref.store %v, %y[%i] : memref<100000xf32>
        }
        gpu.return
      }
    }
    ```
    Becomes, by `weir-opt --weir-set-profile --weir-limit-loop-trips --canonicalize`:
    ```mlir
    gpu.module @k {
      gpu.func @k(%arg0: memref<100000xf32>) kernel {
        %c0 = arith.constant 0 : index
        %c1 = arith.constant 1 : index
        %c100000 = arith.constant 100000 : index
        %cst = arith.constant 1.000000e+00 : f32
        %c2 = arith.constant 2 : index
        scf.for %arg1 = %c0 to %c100000 step %c2 {
          memref.store %cst, %arg0[%arg1] : memref<100000xf32>
          %0 = arith.addi %arg1, %c1 : index
          memref.store %cst, %arg0[%0] : memref<100000xf32>
        }
        gpu.return
      }
    }
    ```
  }];
  let dependentDialects = ["mlir::arith::ArithDialect", "mlir::scf::SCFDialect"];
}

def VerifyDispatchesPass : Pass<"weir-verify-dispatches", "mlir::ModuleOp"> {
  let summary = "Rejects what the dispatches level does not hold.";
  let description = [{
    Needs: weir-set-profile.

    Gives: functions on flat buffers around one command list; kernels whose effects are declared
    as wide as the body does, with workgroups, memory, loops and types within the profile's
    limits. All problems are reported.

    Never: changes the module.

    Cost: linear in ops; ranges of integers are analysed for kernels with computed bounds.

    Example:
    ```mlir
    func.func @f(%x: memref<4xf32>) {
      return
    }
    ```
    Prints, by `weir-opt --weir-set-profile --weir-verify-dispatches`:
    ```text
    error: 'func.func' op has no command list
    ```
  }];
}

def ImportLaunchesPass : Pass<"weir-import-launches", "mlir::ModuleOp"> {
  let summary = "Turns host code that launches kernels into a command list.";
  let description = [{
    For programs that Weir did not compile: weir-insert-barriers then orders them. A function
    that only copies and fills becomes one, too.

    Needs: functions of one block of `gpu.launch_func`, `gpu.memcpy`, `gpu.memset` and
    `memref.copy`, with or without tokens, on arguments, allocations, globals and views of
    them. Grid and workgroup sizes fold to constants. Host code that may touch memory
    stands before the first command only.

    Gives: dispatches, copies and fills of one `schedule.commands`, in the program's order.
    A kernel without `known_block_size` gets that of its launch, and is copied where
    launches differ; it gets its grid where all launches agree. Memory is freed behind the
    list. Tokens and waits are dropped: weir-insert-barriers orders again, in recorded
    order, whatever memory needs. Where the source orders less it has a race, and a warning
    names the two commands.

    Never: changes functions without launches, `gpu.memcpy` and `gpu.memset` that call or touch
    memory other than by `memref.copy`: their copies are host code.

    Cost: linear in ops, plus the hazards between commands.

    Example:
    ```mlir
    module attributes {gpu.container_module} {
      gpu.module @k {
        gpu.func @k(%n: index, %y: memref<64xf32>) kernel {
          gpu.return
        }
      }
      func.func @f(%n: index, %x: memref<64xf32>, %y: memref<64xf32>) {
        %c1 = arith.constant 1 : index
        %c2 = arith.constant 2 : index
        %c32 = arith.constant 32 : index
        %t0 = gpu.wait async
        %t1 = gpu.memcpy async [%t0] %y, %x : memref<64xf32>, memref<64xf32>
        %t2 = gpu.launch_func async [%t1] @k::@k blocks in (%c2, %c1, %c1)
            threads in (%c32, %c1, %c1) args(%n : index, %y : memref<64xf32>)
        gpu.wait [%t2]
        return
      }
    }
    ```
    ```mlir
    module attributes {gpu.container_module} {
      gpu.module @k {
        gpu.func @k(%n: index, %y: memref<64xf32>) kernel
            attributes {known_block_size = array<i32: 32, 1, 1>, known_grid_size = array<i32: 2,
            1, 1>} {
          gpu.return
        }
      }
      func.func @f(%n: index, %x: memref<64xf32>, %y: memref<64xf32>) {
        %c1 = arith.constant 1 : index
        %c2 = arith.constant 2 : index
        %c32 = arith.constant 32 : index
        schedule.commands {
          schedule.copy %x to %y : memref<64xf32> to memref<64xf32>
          schedule.dispatch @k::@k [2, 1, 1](%n, %y) : (index, memref<64xf32>)
        }
        return
      }
    }
    ```
  }];
  let dependentDialects = ["weir::schedule::ScheduleDialect"];
}

//===----------------------------------------------------------------------===//
// placed
//===----------------------------------------------------------------------===//

def SchedulePass : Pass<"weir-schedule", "mlir::ModuleOp"> {
  let summary = "Orders the dispatches and puts them in waves.";
  let description = [{
    Needs: the dispatches level: every value has bytes of its own.

    Gives: a wave for each command, never less than the one before; commands of one wave have
    no hazard among them. All readers of a donated argument come before the dispatch that
    may write a result over it, where hazards allow. What reads or writes the host's memory
    comes as soon as it can. In entries `values`: the value that each operand is part of.
    Spares are dropped.

    Never: breaks a hazard between values, or takes an order for memory that needs more bytes
    than the program's.

    Cost: with `memory`, the best of up to 64 ready commands at each step; hazards are linear in
    operands.

    Example:
    ```mlir
    module attributes {gpu.container_module} {
      gpu.module @k {
        gpu.func @copy(%x: memref<64xf32>, %y: memref<64xf32>)
            kernel attributes {known_block_size = array<i32: 64, 1, 1>,
                               known_grid_size = array<i32: 1, 1, 1>} {
          %i = gpu.thread_id x
          %v = memref.load %x[%i] : memref<64xf32>
          memref.store %v, %y[%i] : memref<64xf32>
          gpu.return
        }
      }
      func.func @f(%x: memref<64xf32>, %y: memref<64xf32>) attributes {weir.entry} {
        %a = memref.alloc() : memref<64xf32>
        schedule.commands {
          schedule.dispatch @k::@copy [1, 1, 1] (%x, %a) : (memref<64xf32>, memref<64xf32>)
          schedule.dispatch @k::@copy [1, 1, 1] (%a, %y) : (memref<64xf32>, memref<64xf32>)
        }
        return
      }
    }
    ```
    ```mlir
    ...
    func.func @f(... weir.value_names = ["", "", ""]} {
      %alloc = memref.alloc() : memref<64xf32>
      schedule.commands {
        schedule.dispatch @k::@copy...(%arg0, %alloc) wave 0 values [0, 0, 2, 0]...
        schedule.dispatch @k::@copy...(%alloc, %arg1) wave 1 values [2, 0, 1, 0]...
      }
    ...
    ```
  }];
  let options = [
    Option<"schedule", "schedule", "std::string", "\"memory\"",
           "program: the program's order; memory: one with fewer live bytes, where there is one.">];
}

def LimitMemoryPass : Pass<"weir-limit-memory", "mlir::ModuleOp"> {
  let summary = "Schedules so that the arena fits a limit.";
  let description = [{
    Needs: the dispatches level. Stands in place of weir-schedule, and does what that does.

    Gives: an order whose arena, as weir-plan-memory makes it, has max `limit` bytes. With
    `knee`, the one that saves a larger share of the arena than it adds to the work, by the most.
    With neither, the order of weir-schedule. Tried in this order: the program's order and the
    one of weir-schedule, a wave for each dispatch,
    then repeated dispatches. A value that is live at the peak and not used there is
    recomputed behind it, by the same kernel from the same values, or by a spare
    (weir-add-spares): same bits. Spares leave the list. A remark says what each step
    brought. With `curve`, each entry gets the attribute `weir.curve`, with what the choices from
    that of weir-schedule to the smallest arena take in bytes, work and barriers.

    Never: repeats a dispatch that updates what it reads or writes a part of a value, or one
    that would read a donated argument behind its last reader. Where nothing fits, the
    error names the smallest limit that does and the largest values at the peak.

    Cost: for each repeated dispatch, commands, and values idle at the peak, times ways to make
    them. An arena takes the time of weir-plan-memory: few are tried, by live bytes.

    Example: %t is not needed while %u and %v are live.
    ```mlir
    module attributes {gpu.container_module} {
      gpu.module @k {
        gpu.func @add(%a: memref<64xf32>, %b: memref<64xf32>, %y: memref<64xf32>)
            kernel attributes {known_block_size = array<i32: 64, 1, 1>,
                               known_grid_size = array<i32: 1, 1, 1>} {
          %i = gpu.thread_id x
          %u = memref.load %a[%i] : memref<64xf32>
          %v = memref.load %b[%i] : memref<64xf32>
          %w = arith.addf %u, %v : f32
          memref.store %w, %y[%i] : memref<64xf32>
          gpu.return
        }
        gpu.func @reverse(%a: memref<64xf32>, %y: memref<64xf32>)
            kernel attributes {known_block_size = array<i32: 64, 1, 1>,
                               known_grid_size = array<i32: 1, 1, 1>} {
          %c63 = arith.constant 63 : index
          %i = gpu.thread_id x
          %r = arith.subi %c63, %i : index
          %u = memref.load %a[%r] : memref<64xf32>
          memref.store %u, %y[%i] : memref<64xf32>
          gpu.return
        }
      }
      func.func @f(%x: memref<64xf32>, %y: memref<64xf32> {weir.result})
          attributes {weir.entry} {
        %t = memref.alloc() {weir.name = "t"} : memref<64xf32>
        %u = memref.alloc() {weir.name = "u"} : memref<64xf32>
        %v = memref.alloc() {weir.name = "v"} : memref<64xf32>
        %w = memref.alloc() {weir.name = "w"} : memref<64xf32>
        schedule.commands {
          schedule.dispatch @k::@reverse [1, 1, 1] (%x, %t) : (memref<64xf32>, memref<64xf32>)
          schedule.dispatch @k::@reverse [1, 1, 1] (%t, %u) : (memref<64xf32>, memref<64xf32>)
          schedule.dispatch @k::@reverse [1, 1, 1] (%u, %v) : (memref<64xf32>, memref<64xf32>)
          schedule.dispatch @k::@reverse [1, 1, 1] (%v, %w) : (memref<64xf32>, memref<64xf32>)
          schedule.dispatch @k::@add [1, 1, 1] (%w, %t, %y)
              : (memref<64xf32>, memref<64xf32>, memref<64xf32>)
        }
        return
      }
    }
    ```
    Becomes, by `weir-opt --weir-limit-memory=limit=512`:
    ```mlir
    ...
    func.func @f(...
      %alloc = memref.alloc() {weir.name = "t"} : memref<64xf32>
      %alloc_0 = memref.alloc() {weir.name = "u"} : memref<64xf32>
      %alloc_1 = memref.alloc() {weir.name = "v"} : memref<64xf32>
      %alloc_2 = memref.alloc() {weir.name = "w"} : memref<64xf32>
      %alloc_3 = memref.alloc() {weir.name = "t again"} : memref<64xf32>
      schedule.commands {
        schedule.dispatch @k::@reverse...(%arg0, %alloc) wave 0...
        schedule.dispatch @k::@reverse...(%alloc, %alloc_0) wave 1...
        schedule.dispatch @k::@reverse...(%alloc_0, %alloc_1) wave 2...
        schedule.dispatch @k::@reverse...(%alloc_1, %alloc_2) wave 3...
        schedule.dispatch @k::@reverse...(%arg0, %alloc_3) wave 4...
        schedule.dispatch @k::@add...(%alloc_2, %alloc_3, %arg1) wave 5...
      }
    ...
    ```
  }];
  let options = [
    Option<"limit", "limit", "int64_t", "0", "Max bytes of an arena; 0 is no limit (default 0).">,
    Option<"knee", "knee", "bool", "false",
           "Repeat dispatches as long as that saves a larger share of bytes than it adds work.">,
    Option<"curve", "curve", "bool", "false", "Add an attribute with the whole range of choices.">,
    Option<"reorder", "reorder", "bool", "true",
           "Whether weir-reorder runs later, so that the curve counts its barriers.">,
    Option<"effort", "effort", "int64_t", "200000", "As for weir-plan-memory.">];
  let dependentDialects = ["mlir::arith::ArithDialect", "mlir::memref::MemRefDialect"];
}

def AssignQueuesPass : Pass<"weir-assign-queues", "mlir::ModuleOp"> {
  let summary = "Spreads the dispatches over queues.";
  let description = [{
    Needs: the dispatches level, with `weir.profile` unless `queues` is given.

    Gives: a queue for each dispatch: that of the dispatch whose result it reads, if that one is
    the last of its queue, else the queue with the fewest bytes to move so far.

    Never: changes recorded order or waves, or anything for one queue.

    Cost: linear in hazards.

    Example: two chains that share nothing.
    ```mlir
    module attributes {gpu.container_module} {
      gpu.module @k {
        gpu.func @copy(%x: memref<64xf32>, %y: memref<64xf32>)
            kernel attributes {known_block_size = array<i32: 64, 1, 1>,
                               known_grid_size = array<i32: 1, 1, 1>} {
          %i = gpu.thread_id x
          %v = memref.load %x[%i] : memref<64xf32>
          memref.store %v, %y[%i] : memref<64xf32>
          gpu.return
        }
      }
      func.func @f(%x: memref<64xf32>, %y: memref<64xf32>) {
        %a = memref.alloc() : memref<64xf32>
        %b = memref.alloc() : memref<64xf32>
        %c = memref.alloc() : memref<64xf32>
        %d = memref.alloc() : memref<64xf32>
        schedule.commands {
          schedule.dispatch @k::@copy [1, 1, 1] (%x, %a) : (memref<64xf32>, memref<64xf32>)
          schedule.dispatch @k::@copy [1, 1, 1] (%y, %b) : (memref<64xf32>, memref<64xf32>)
          schedule.dispatch @k::@copy [1, 1, 1] (%a, %c) : (memref<64xf32>, memref<64xf32>)
          schedule.dispatch @k::@copy [1, 1, 1] (%b, %d) : (memref<64xf32>, memref<64xf32>)
        }
        return
      }
    }
    ```
    Becomes, by `weir-opt --weir-assign-queues=queues=2`:
    ```mlir
    ...
    func.func @f(...
      %alloc = memref.alloc() : memref<64xf32>
      %alloc_0 = memref.alloc() : memref<64xf32>
      %alloc_1 = memref.alloc() : memref<64xf32>
      %alloc_2 = memref.alloc() : memref<64xf32>
      schedule.commands {
        schedule.dispatch @k::@copy...(%arg0, %alloc)...
        schedule.dispatch @k::@copy...(%arg1, %alloc_0) queue 1...
        schedule.dispatch @k::@copy...(%alloc, %alloc_1)...
        schedule.dispatch @k::@copy...(%alloc_0, %alloc_2) queue 1...
      }
    ...
    ```
  }];
  let options = [
    Option<"queues", "queues", "int64_t", "0",
           "Number of queues; 0: as many as the profile says.">];
}

def DonateBuffersPass : Pass<"weir-donate-buffers", "mlir::ModuleOp"> {
  let summary = "Finds results that may take the bytes of operands.";
  let description = [{
    Needs: waves, by weir-schedule or weir-limit-memory.

    Gives: `weir.permissions` on dispatches: a value whose life begins here may take the bytes
    of an operand whose life ends here, since the kernel's access maps prove that nothing is
    read after it was overwritten. Every other pair gets a remark with the reason and a
    witness; a donated argument that nothing may take keeps the first in `weir.refusal`.

    Never: decides which permissions are used: weir-plan-memory does.

    Cost: for each dispatch, its operands times the values that it begins; a question about two
    access maps is asked once for each pair of a kernel's arguments.

    Example:
    ```mlir
    module attributes {gpu.container_module} {
      gpu.module @k {
        gpu.func @copy(%x: memref<64xf32>, %y: memref<64xf32>)
            kernel attributes {known_block_size = array<i32: 64, 1, 1>,
                               known_grid_size = array<i32: 1, 1, 1>} {
          %i = gpu.thread_id x
          %v = memref.load %x[%i] : memref<64xf32>
          memref.store %v, %y[%i] : memref<64xf32>
          gpu.return
        }
      }
      func.func @f(%x: memref<64xf32> {weir.donate}, %y: memref<64xf32> {weir.result})
          attributes {weir.entry} {
        schedule.commands {
          schedule.dispatch @k::@copy [1, 1, 1] (%x, %y) : (memref<64xf32>, memref<64xf32>)
        }
        return
      }
    }
    ```
    Becomes, by `weir-opt --weir-schedule --weir-donate-buffers`:
    ```mlir
    ...
    func.func @f(...
      schedule.commands {
        schedule.dispatch...{weir.permissions = [#schedule.permission<1 over 0>]}...
      }
    ...
    ```
  }];
}

def PlanMemoryPass : Pass<"weir-plan-memory", "mlir::ModuleOp"> {
  let summary = "Packs the values of an entry into slots of one arena.";
  let description = [{
    Needs: waves. Permissions, by weir-donate-buffers, where values shall share bytes.

    Gives: one arena; each value a view of it with a `weir.slot`, its bytes and waves. Values
    that are live in a common wave share no byte, except by permission. Values that pass
    their bytes on make a chain, which is placed as one; a chain that ends in a result lies
    in the result, or in the donated argument that it begins with.

    Never: changes order, waves or kernels.

    Cost: greedy packing first, for each value the values live with it, times a logarithm; then
    a search of `effort` steps; max 100,000 values are placed while chains are chosen.

    Example: the third value takes the bytes of the first.
    ```mlir
    module attributes {gpu.container_module} {
      gpu.module @k {
        gpu.func @copy(%x: memref<64xf32>, %y: memref<64xf32>)
            kernel attributes {known_block_size = array<i32: 64, 1, 1>,
                               known_grid_size = array<i32: 1, 1, 1>} {
          %i = gpu.thread_id x
          %v = memref.load %x[%i] : memref<64xf32>
          memref.store %v, %y[%i] : memref<64xf32>
          gpu.return
        }
      }
      func.func @f(%x: memref<64xf32>, %y: memref<64xf32>) attributes {weir.entry} {
        %a = memref.alloc() {weir.name = "first"} : memref<64xf32>
        %b = memref.alloc() : memref<64xf32>
        %c = memref.alloc() : memref<64xf32>
        schedule.commands {
          schedule.dispatch @k::@copy [1, 1, 1] (%x, %a) : (memref<64xf32>, memref<64xf32>)
          schedule.dispatch @k::@copy [1, 1, 1] (%a, %b) : (memref<64xf32>, memref<64xf32>)
          schedule.dispatch @k::@copy [1, 1, 1] (%b, %c) : (memref<64xf32>, memref<64xf32>)
          schedule.dispatch @k::@copy [1, 1, 1] (%c, %y) : (memref<64xf32>, memref<64xf32>)
        }
        return
      }
    }
    ```
    Becomes, by `weir-opt --weir-schedule --weir-plan-memory`:
    ```mlir
    ...
    func.func @f(...
      %alloc = memref.alloc() {alignment = 256 : i64, weir.arena} : memref<512xi8>
      %c0 = arith.constant 0 : index
      %c256 = arith.constant 256 : index
      %view = memref.view %alloc[%c0]..."first", alignment = 256, waves = 0 to 1...
      %view_0 = memref.view %alloc[%c256]..."value1", alignment = 256, waves = 1 to 2...
      %view_1 = memref.view %alloc[%c0]..."value2", alignment = 256, waves = 2 to 3...
      schedule.commands {
        schedule.dispatch @k::@copy...(%arg0, %view) wave 0...
        schedule.dispatch @k::@copy...(%view, %view_0) wave 1...
        schedule.dispatch @k::@copy...(%view_0, %view_1) wave 2...
        schedule.dispatch @k::@copy...(%view_1, %arg1) wave 3...
      }
    ...
    ```
  }];
  let options = [
    Option<"noReuse", "no-reuse", "bool", "false",
           "Give every value bytes of its own, donated or not.">,
    Option<"requireDonation", "require-donation", "bool", "false",
           "Fail when a donated argument gives its bytes to no result.">,
    Option<"effort", "effort", "int64_t", "200000",
           "Number of steps of the search for a smaller arena than greedy packing finds, for up "
           "to 64 values; divided by n for n times as many, as each step costs more.">];
  let dependentDialects = ["mlir::arith::ArithDialect", "mlir::memref::MemRefDialect"];
}

def ReorderPass : Pass<"weir-reorder", "mlir::ModuleOp"> {
  let summary = "Reorders placed commands for fewer barriers.";
  let description = [{
    Needs: weir-plan-memory: barriers, signals and waits are counted on addresses.

    Gives: an order that keeps every hazard and needs fewer of them, where it finds one, with
    waves and places of slots for it. With bytes enough the barriers of one queue are one less
    than the dispatches of the longest chain of hazards between values.

    Never: lets the arena grow beyond what `reorder` and `limit` allow. Touches a list that holds
    anything besides commands.

    Cost: that of hazards and of weir-plan-memory's search, for each order that is tried.

    Example, two chains that needed two barriers and need one:
    ```mlir
    module attributes {gpu.container_module} {
      gpu.module @k {
        gpu.func @copy(%x: memref<64xf32>, %y: memref<64xf32>)
            kernel attributes {known_block_size = array<i32: 64, 1, 1>,
                               known_grid_size = array<i32: 1, 1, 1>} {
          %i = gpu.thread_id x
          %v = memref.load %x[%i] : memref<64xf32>
          memref.store %v, %y[%i] : memref<64xf32>
          gpu.return
        }
      }
      func.func @f(%x: memref<64xf32>, %a: memref<64xf32>, %b: memref<64xf32>,
                   %c: memref<64xf32>, %d: memref<64xf32>) attributes {weir.entry} {
        schedule.commands {
          schedule.dispatch @k::@copy [1, 1, 1] (%x, %a) wave 0 : (memref<64xf32>, memref<64xf32>)
          schedule.dispatch @k::@copy [1, 1, 1] (%a, %b) wave 1 : (memref<64xf32>, memref<64xf32>)
          schedule.dispatch @k::@copy [1, 1, 1] (%x, %c) wave 1 : (memref<64xf32>, memref<64xf32>)
          schedule.dispatch @k::@copy [1, 1, 1] (%c, %d) wave 2 : (memref<64xf32>, memref<64xf32>)
        }
        return
      }
    }
    ```
    ```mlir
    ...
      schedule.commands {
        schedule.dispatch @k::@copy...(%arg0, %arg1) wave 0...
        schedule.dispatch @k::@copy...(%arg0, %arg3) wave 0...
        schedule.dispatch @k::@copy...(%arg1, %arg2) wave 1...
        schedule.dispatch @k::@copy...(%arg3, %arg4) wave 1...
      }
    ...
    ```
  }];
  let options = [
    Option<"reorder", "reorder", "std::string", "\"safe\"",
           "How far the arena may grow: safe (not at all) or a percentage such as 10%; "
           "off leaves the order (default safe).">,
    Option<"limit", "limit", "int64_t", "0",
           "Max bytes that an arena may grow to; 0 is no limit (default 0).">,
    Option<"effort", "effort", "int64_t", "200000",
           "Number of steps to search for a smaller arena than greedy packing finds, for up "
           "to 32 slots; more slots get less (default 200000).">];
  let dependentDialects = ["mlir::arith::ArithDialect", "mlir::memref::MemRefDialect"];
}

def VerifyPlacedPass : Pass<"weir-verify-placed", "mlir::ModuleOp"> {
  let summary = "Rejects what the placed level does not hold.";
  let description = [{
    Needs: weir-set-profile.

    Gives: what the dispatches level holds, and: operands are bytes of arguments, constants or
    one arena; waves rise in recorded order without a hazard inside; slots that are live in
    a common wave share no byte but by permission; no barriers, signals and waits yet.
    Effects and hazards are derived again. All problems are reported.

    Never: changes the module.

    Cost: that of effects and hazards, and slots times a logarithm.

    Example:
    ```mlir
    func.func @f(%x: memref<64xf32>) attributes {weir.entry} {
      %a = memref.alloc() : memref<64xf32>
      schedule.commands {
      }
      return
    }
    ```
    Prints, by `weir-opt --weir-set-profile --weir-verify-placed`:
    ```text
    error: 'memref.alloc' op is not the arena...
    ```
  }];
}

//===----------------------------------------------------------------------===//
// ordered
//===----------------------------------------------------------------------===//

def InsertBarriersPass : Pass<"weir-insert-barriers", "mlir::ModuleOp"> {
  let summary = "Orders dispatches that have a hazard on addresses.";
  let description = [{
    Needs: addresses: a command list of Weir's on the placed level, or one that
    weir-import-launches made.

    Gives: in a queue the fewest `schedule.barrier`, each just before a dispatch that needs it.
    Between queues a `schedule.signal` just behind the last dispatch that must have ended,
    readers too, and a `schedule.wait` just before the one that must come after. Each names
    its hazards. Those of the input are made anew.

    Never: changes the order of dispatches, or what they bind.

    Cost: linear in operands while ranges nest or repeat, and linear in hazards times queues.

    Example:
    ```mlir
    module attributes {gpu.container_module} {
      gpu.module @k {
        gpu.func @copy(%x: memref<64xf32>, %y: memref<64xf32>)
            kernel attributes {known_block_size = array<i32: 64, 1, 1>,
                               known_grid_size = array<i32: 1, 1, 1>} {
          %i = gpu.thread_id x
          %v = memref.load %x[%i] : memref<64xf32>
          memref.store %v, %y[%i] : memref<64xf32>
          gpu.return
        }
      }
      func.func @f(%x: memref<64xf32>, %y: memref<64xf32>, %z: memref<64xf32>) {
        schedule.commands {
          schedule.dispatch @k::@copy [1, 1, 1] (%x, %y) : (memref<64xf32>, memref<64xf32>)
          schedule.dispatch @k::@copy [1, 1, 1] (%y, %z) : (memref<64xf32>, memref<64xf32>)
        }
        return
      }
    }
    ```
    ```mlir
    ...
    func.func @f(...
      schedule.commands {
        schedule.dispatch @k::@copy...(%arg0, %arg1)...
        schedule.barrier memory(%arg1...) [#schedule.hazard<raw, 0 operand 1 -> 1 operand 0>...
        schedule.dispatch @k::@copy...(%arg1, %arg2)...
      }
    ...
    ```
  }];
}

def InsertWorkgroupBarriersPass : Pass<"weir-insert-workgroup-barriers"> {
  let summary = "Inserts `gpu.barrier` where invocations of a workgroup would race.";
  let description = [{
    Needs: kernels (`gpu.func ... kernel`) of any origin, with the functions that they call.
    Arguments may share bytes unless one is `llvm.noalias`, or the module dispatches the
    kernel with views that do not.

    Gives: no two invocations of a workgroup touch a byte between the same two barriers if one
    of them writes, unless both are atomic or they write the same value by one instruction.
    A barrier goes just before the later access, or to another place between the two that
    serves more pairs or is in fewer loops, always one that all invocations reach together.
    An asynchronous copy (`nvgpu.device_async_copy`) touches its bytes until its invocation has
    waited for its group: where no wait comes before the barrier, one for all groups is inserted.
    So does a product of matrices by four subgroups (`schedule.group_product`), which sees what
    invocations and copies wrote only behind an `nvvm.fence.proxy`: that is inserted, too. A copy of
    a box (`schedule.tile_copy`) ends with the wait for its mbarrier, which is never inserted.
    An op that is not known touches its operands, and everything once an address or a token
    was made from a memref.

    - An error: two accesses that need a barrier where none can be; an instruction that surely
      races with itself, or with one of a different workgroup; a barrier that not all
      invocations reach.
    - A remark: an instruction by which invocations, or workgroups, may write the same bytes.

    Never: removes a barrier; those of the input count.

    Cost: pairs of accesses to memory that invocations share, each compared by access maps.

    Example:
    ```mlir
    gpu.module @m {
      gpu.func @k(%out: memref<64xf32> {llvm.noalias}, %x: f32)
          workgroup(%s: memref<64xf32, #gpu.address_space<workgroup>>)
          kernel attributes {known_block_size = array<i32: 64, 1, 1>,
                             known_grid_size = array<i32: 1, 1, 1>} {
        %t = gpu.thread_id x
        %c63 = arith.constant 63 : index
        %r = arith.subi %c63, %t : index
        memref.store %x, %s[%t] : memref<64xf32, #gpu.address_space<workgroup>>
        %y = memref.load %s[%r] : memref<64xf32, #gpu.address_space<workgroup>>
        memref.store %y, %out[%t] : memref<64xf32>
        gpu.return
      }
    }
    ```
    ```mlir
    gpu.module @m {
      gpu.func @k(%out: memref<64xf32> {llvm.noalias}, %x: f32) workgroup(%s
          : memref<64xf32, #gpu.address_space<workgroup>>) kernel
          attributes {known_block_size = array<i32: 64, 1, 1>, known_grid_size = array<i32: 1, 1,
          1>} {
        %thread_id_x = gpu.thread_id  x
        %c63 = arith.constant 63 : index
        %0 = arith.subi %c63, %thread_id_x : index
        memref.store %x, %s[%thread_id_x] : memref<64xf32, #gpu.address_space<workgroup>>
        gpu.barrier
        %1 = memref.load %s[%0] : memref<64xf32, #gpu.address_space<workgroup>>
        memref.store %1, %out[%thread_id_x] : memref<64xf32>
        gpu.return
      }
    }
    ```
  }];
  let dependentDialects = ["mlir::gpu::GPUDialect"];
}

def RemoveRedundantWorkgroupBarriersPass : Pass<"weir-remove-redundant-workgroup-barriers"> {
  let summary = "Removes each `gpu.barrier` that no race needs.";
  let description = [{
    Needs: kernels of any origin, as weir-insert-workgroup-barriers.

    Gives: every two accesses of a workgroup that barriers separate stay separated. Of several
    barriers that could go one at a time, those in loops go first.

    Never: adds or moves a barrier.

    Cost: for each barrier, the pairs of accesses that it separates.

    Example: the first of two would do as well.
    ```mlir
    gpu.module @m {
      gpu.func @k(%out: memref<64xf32> {llvm.noalias}, %x: f32)
          workgroup(%s: memref<64xf32, #gpu.address_space<workgroup>>)
          kernel attributes {known_block_size = array<i32: 64, 1, 1>,
                             known_grid_size = array<i32: 1, 1, 1>} {
        %t = gpu.thread_id x
        %c63 = arith.constant 63 : index
        %r = arith.subi %c63, %t : index
        memref.store %x, %s[%t] : memref<64xf32, #gpu.address_space<workgroup>>
        gpu.barrier
        %z = arith.addf %x, %x : f32
        gpu.barrier
        %y = memref.load %s[%r] : memref<64xf32, #gpu.address_space<workgroup>>
        memref.store %y, %out[%t] : memref<64xf32>
        gpu.return
      }
    }
    ```
    ```mlir
    gpu.module @m {
      gpu.func @k(%out: memref<64xf32> {llvm.noalias}, %x: f32) workgroup(%s
          : memref<64xf32, #gpu.address_space<workgroup>>) kernel
          attributes {known_block_size = array<i32: 64, 1, 1>, known_grid_size = array<i32: 1, 1,
          1>} {
        %thread_id_x = gpu.thread_id  x
        %c63 = arith.constant 63 : index
        %0 = arith.subi %c63, %thread_id_x : index
        memref.store %x, %s[%thread_id_x] : memref<64xf32, #gpu.address_space<workgroup>>
        %1 = arith.addf %x, %x : f32
        gpu.barrier
        %2 = memref.load %s[%0] : memref<64xf32, #gpu.address_space<workgroup>>
        memref.store %2, %out[%thread_id_x] : memref<64xf32>
        gpu.return
      }
    }
    ```
  }];
}

def VerifyOrderedPass : Pass<"weir-verify-ordered", "mlir::ModuleOp"> {
  let summary = "Rejects what the ordered level does not hold.";
  let description = [{
    Needs: a command list; `weir.profile` unless it is another program's, without
    `weir.entry`, as weir-import-launches leaves it.

    Gives: two commands that share bytes, of which one writes, are ordered by barriers, signals
    and waits, and what is written is made visible. In Weir's own modules also what the
    levels before promised. Order is derived by vector clocks, from no hazard that
    weir-insert-barriers found. All problems are reported.

    Never: changes the module.

    Cost: linear in commands times queues, and in the runs of bytes that commands touch.

    Example:
    ```mlir
    module attributes {gpu.container_module} {
      gpu.module @k {
        gpu.func @copy(%x: memref<64xf32>, %y: memref<64xf32>)
            kernel attributes {known_block_size = array<i32: 64, 1, 1>,
                               known_grid_size = array<i32: 1, 1, 1>} {
          %i = gpu.thread_id x
          %v = memref.load %x[%i] : memref<64xf32>
          memref.store %v, %y[%i] : memref<64xf32>
          gpu.return
        }
      }
      func.func @f(%x: memref<64xf32>, %y: memref<64xf32>, %z: memref<64xf32>) {
        schedule.commands {
          schedule.dispatch @k::@copy [1, 1, 1] (%x, %y) : (memref<64xf32>, memref<64xf32>)
          schedule.dispatch @k::@copy [1, 1, 1] (%y, %z) : (memref<64xf32>, memref<64xf32>)
        }
        return
      }
    }
    ```
    ```text
    error: 'schedule.dispatch' op dispatch 1 of @copy reads bytes [0, 256) of argument 1...
    note: dispatch 0 of @copy, through operand 1
    ```
  }];
}

//===----------------------------------------------------------------------===//
// emitted
//===----------------------------------------------------------------------===//

def EmitSpirvPass : Pass<"weir-emit-spirv", "mlir::ModuleOp"> {
  let summary = "Turns GPU kernels into validated SPIR-V.";
  let description = [{
    Needs: `weir.profile` of target `vulkan`.

    Gives: for each kernel one `gpu.binary` of its name, whose entry point has that name.
    Argument i is binding i of descriptor set 0. Beside the words: `weir.workgroup`, the
    invocations for each axis, and `weir.operands`, each operand's effect, bytes and
    alignment in bytes. What runs only on a profile with other limits is refused.

    Never: contracts or reassociates floats: no fma but an explicit one.

    Cost: linear in ops; each kernel goes through a module of its own.

    Example:
    ```mlir
    gpu.module @m {
      gpu.func @double(%x: memref<8xf32, #gpu.address_space<global>>)
          kernel attributes {known_block_size = array<i32: 8, 1, 1>} {
        %i = gpu.thread_id x
        %v = memref.load %x[%i] : memref<8xf32, #gpu.address_space<global>>
        %w = arith.addf %v, %v : f32
        memref.store %w, %x[%i] : memref<8xf32, #gpu.address_space<global>>
        gpu.return
      }
    }
    ```
    Becomes, by `weir-opt --weir-set-profile --weir-emit-spirv`:
    ```mlir
    module attributes {...} {
      gpu.binary @double {...weir.operands = [{alignment = 4 : i64, bytes = 32 : i64, ...
    }
    ```
  }];
  let dependentDialects = ["mlir::arith::ArithDialect", "mlir::gpu::GPUDialect",
                           "mlir::memref::MemRefDialect", "mlir::scf::SCFDialect",
                           "mlir::spirv::SPIRVDialect", "mlir::vector::VectorDialect",
                           "weir::schedule::ScheduleDialect"];
}

def EmitPtxPass : Pass<"weir-emit-ptx", "mlir::ModuleOp"> {
  let summary = "Turns GPU kernels into checked PTX.";
  let description = [{
    Needs: `weir.profile` of target `cuda`; weir-expand-math, as only instructions of the GPU
    have a lowering here.

    Gives: for each kernel one `gpu.binary` of its name, as weir-emit-spirv. Parameter i of the
    entry is the address of operand i, on which LLVM is told nothing: operands may share
    bytes.

    Never: contracts floats or flushes denormals; every operation rounds to nearest. Calls
    nothing of libdevice.

    Cost: linear in ops; LLVM's NVPTX backend runs once for each kernel.

    Example:
    ```mlir
    gpu.module @m {
      gpu.func @double(%x: memref<8xf32, #gpu.address_space<global>>)
          kernel attributes {known_block_size = array<i32: 8, 1, 1>} {
        %i = gpu.thread_id x
        %v = memref.load %x[%i] : memref<8xf32, #gpu.address_space<global>>
        %w = arith.addf %v, %v : f32
        memref.store %w, %x[%i] : memref<8xf32, #gpu.address_space<global>>
        gpu.return
      }
    }
    ```
    Becomes, by `weir-opt --weir-set-profile=profile=sm_80 --weir-emit-ptx`:
    ```mlir
    module attributes {...} {
      gpu.binary @double {...chip = "sm_80"...
    }
    ```
  }];
  let dependentDialects = ["mlir::arith::ArithDialect", "mlir::cf::ControlFlowDialect",
                           "mlir::gpu::GPUDialect", "mlir::memref::MemRefDialect",
                           "mlir::scf::SCFDialect", "mlir::vector::VectorDialect",
                           "mlir::LLVM::LLVMDialect", "mlir::NVVM::NVVMDialect",
                           "weir::schedule::ScheduleDialect"];
}

def PrintPtxPass : Pass<"weir-print-ptx", "mlir::ModuleOp"> {
  let summary = "Prints the PTX of each `gpu.binary` to stdout.";
  let description = [{
    Needs: weir-emit-ptx.

    Gives: text on stdout, for tests and for reading.

    Never: changes the module.

    Cost: linear in the text.

    Example:
    ```mlir
    gpu.module @m {
      gpu.func @double(%x: memref<8xf32, #gpu.address_space<global>>)
          kernel attributes {known_block_size = array<i32: 8, 1, 1>} {
        %i = gpu.thread_id x
        %v = memref.load %x[%i] : memref<8xf32, #gpu.address_space<global>>
        %w = arith.addf %v, %v : f32
        memref.store %w, %x[%i] : memref<8xf32, #gpu.address_space<global>>
        gpu.return
      }
    }
    ```
    Prints, by `weir-opt --weir-set-profile=profile=sm_80 --weir-emit-ptx --weir-print-ptx`:
    ```text
    // gpu.binary @double
    .target sm_80
    .visible .entry double(
    ld.global.b32
    add.rn.f32
    st.global.b32
    ```
  }];
}

def PrintSpirvPass : Pass<"weir-print-spirv", "mlir::ModuleOp"> {
  let summary = "Prints the SPIR-V of each `gpu.binary` as assembly text to stdout.";
  let description = [{
    Needs: weir-emit-spirv.

    Gives: text on stdout, for tests and for reading.

    Never: changes the module.

    Cost: linear in the words.

    Example:
    ```mlir
    gpu.module @m {
      gpu.func @double(%x: memref<8xf32, #gpu.address_space<global>>)
          kernel attributes {known_block_size = array<i32: 8, 1, 1>} {
        %i = gpu.thread_id x
        %v = memref.load %x[%i] : memref<8xf32, #gpu.address_space<global>>
        %w = arith.addf %v, %v : f32
        memref.store %w, %x[%i] : memref<8xf32, #gpu.address_space<global>>
        gpu.return
      }
    }
    ```
    Prints, by `weir-opt --weir-set-profile --weir-emit-spirv --weir-print-spirv`:
    ```text
    ; gpu.binary @double
    OpEntryPoint GLCompute ... "double"
    OpExecutionMode ... LocalSize 8 1 1
    OpDecorate ... NoContraction
    OpLoad %float
    OpFAdd %float
    OpStore
    ```
  }];
}

def EmitCpuPass : Pass<"weir-emit-cpu", "mlir::ModuleOp"> {
  let summary = "Turns GPU kernels into machine code.";
  let description = [{
    Needs: `weir.profile` of target `cpu`; workgroups of one invocation; weir-expand-math, as only
    instructions of the CPU have a lowering here.

    Gives: for each kernel one `gpu.binary` of its name that holds a relocatable ELF object with one
    function. It runs a range of the kernel's workgroups one after the other. Whoever makes the
    artifact links the objects of all kernels.

    Never: contracts or reorders floats; every operation rounds to nearest. `math.fma` rounds once,
    but for x86-64-v2, which has no instruction for it: product and sum round there. Calls nothing:
    no C library, no other object.

    A `vector.store` that is `nontemporal` goes past the caches where its operand shares no bytes
    with another and begins at a multiple of `offset_alignment`, which the code asks when it runs.
    There it may state an alignment up to that. A fence follows the last workgroup.

    Cost: linear in ops; LLVM's passes and backend run once for each kernel, on several threads.
    Their number changes no byte.

    Example:
    ```mlir
    gpu.module @m {
      gpu.func @double(%x: memref<8xf32, #gpu.address_space<global>>)
          kernel attributes {known_block_size = array<i32: 1, 1, 1>} {
        %i = gpu.block_id x
        %v = memref.load %x[%i] : memref<8xf32, #gpu.address_space<global>>
        %w = arith.addf %v, %v : f32
        memref.store %w, %x[%i] : memref<8xf32, #gpu.address_space<global>>
        gpu.return
      }
    }
    ```
    Becomes, by `weir-opt --weir-set-profile=profile=x86-64-v3 --weir-emit-cpu`:
    ```mlir
    module attributes {...} {
      gpu.binary @double ...
    }
    ```
  }];
  let dependentDialects = ["weir::schedule::ScheduleDialect", "mlir::LLVM::LLVMDialect",
                           "mlir::scf::SCFDialect", "mlir::cf::ControlFlowDialect",
                           "mlir::func::FuncDialect", "mlir::memref::MemRefDialect"];
  let options = [
    Option<"threads", "threads", "unsigned", "0",
           "Threads of LLVM's backend; 0: as many as processors.">];
}

def PackPass : Pass<"weir-pack", "mlir::ModuleOp"> {
  let summary = "Writes the plan of every entry into the module.";
  let description = [{
    Needs: the ordered level, with its kernels emitted.

    Gives: `weir.plan` on entries and `weir.manifest` on the module: the JSON of a .weir file
    (docs/artifact.md), which no later step makes again.

    Never: changes commands or kernels.

    Cost: linear in commands, operands and barriers.

    Example:
    ```mlir
    gpu.binary @copy {
      weir.workgroup = array<i64: 64, 1, 1>,
      weir.operands = [
        {effect = #schedule.effect<read>, bytes = 256 : i64, alignment = 16 : i64},
        {effect = #schedule.effect<write, covers_all = true>, bytes = 256 : i64,
         alignment = 16 : i64}
      ]
    } [#gpu.object<#spirv.target_env<#spirv.vce<v1.3, [Shader], []>, #spirv.resource_limits<>>,
                   bin = "words">]
    func.func @f(%x: memref<64xf32> {weir.name = "x"}, %y: memref<64xf32> {weir.result})
        attributes {weir.entry, weir.pinned_bytes = 0 : i64, weir.value_names = ["x", "y"],
                    weir.value_bytes = array<i64: 256, 256>} {
      schedule.commands {
        schedule.dispatch @copy::@copy [1, 1, 1] (%x, %y) wave 0 values [0, 0, 1, 0]
            : (memref<64xf32>, memref<64xf32>)
      }
      return
    }
    ```
    Becomes, by `weir-opt --weir-set-profile --weir-pack`:
    ```mlir
    module attributes {weir.manifest = "{...
      gpu.binary @copy ...
      func.func @f(...weir.plan = "{...
      ...
    }
    ```
  }];
}

def VerifyEmittedPass : Pass<"weir-verify-emitted", "mlir::ModuleOp"> {
  let summary = "Rejects what the emitted level does not hold.";
  let description = [{
    Needs: nothing.

    Gives: a manifest, a plan for each entry, and for each dispatched kernel a `gpu.binary` of one
    object; no `gpu.module`. Plans are parsed, not proved: lib/Verify proves them from the
    file. All problems are reported.

    Never: changes the module.

    Cost: linear in ops and in the JSON.

    Example:
    ```mlir
    module attributes {gpu.container_module} {
      gpu.module @k {
        gpu.func @k(%x: memref<4xf32>) kernel {
          gpu.return
        }
      }
    }
    ```
    ```text
    error: 'builtin.module' op has no manifest; run weir-pack first
    error: 'gpu.module' op was not emitted
    ```
  }];
}

#endif // WEIR_PASSES_TD

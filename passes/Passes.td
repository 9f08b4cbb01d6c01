//===- Passes.td - Every pass of Weir, in the order of the levels ---------===//

#ifndef WEIR_PASSES_TD
#define WEIR_PASSES_TD

include "mlir/Pass/PassBase.td"

//===----------------------------------------------------------------------===//
// graph, gradient
//===----------------------------------------------------------------------===//

def UnrollLoopsPass : Pass<"weir-unroll-loops", "mlir::func::FuncOp"> {
  let summary = "Writes out what loops between tensors do.";
  let description = [{
    A graph has no control flow. An `scf.for` whose bounds are constants, such as
    ONNX's LSTM becomes, is written out step by step, with its counter known; what
    is more than 32,768 ops then is an error. Others stay, for the gate to refuse.

    Example: before and after.
    ```mlir
    %r = scf.for %i = %c0 to %c2 step %c1 iter_args(%h = %x) -> tensor<4xf32> {
      %w = tensor.extract_slice %ws[%i, 0] [1, 4] [1, 1] : tensor<2x4xf32> to tensor<4xf32>
      %n = linalg.mul ins(%h, %w : ...) outs(%e : tensor<4xf32>) -> tensor<4xf32>
      scf.yield %n : tensor<4xf32>
    }
    ```
    ```mlir
    %w0 = tensor.extract_slice %ws[0, 0] [1, 4] [1, 1] : tensor<2x4xf32> to tensor<4xf32>
    %h1 = linalg.mul ins(%x, %w0 : ...) outs(%e : tensor<4xf32>) -> tensor<4xf32>
    %w1 = tensor.extract_slice %ws[1, 0] [1, 4] [1, 1] : tensor<2x4xf32> to tensor<4xf32>
    %r = linalg.mul ins(%h1, %w1 : ...) outs(%e : tensor<4xf32>) -> tensor<4xf32>
    ```
  }];
  let dependentDialects = ["mlir::arith::ArithDialect"];
}

def FoldGathersPass : Pass<"weir-fold-gathers", "mlir::func::FuncOp"> {
  let summary = "Turns gathers at places that are known into reshapes and maps.";
  let description = [{
    Torch's decomposition of group norm finds its groups by tables of constants.
    Places are computed from them and from the loops, of results of up to 65,536
    elements; where all elements are read in their order, that is a reshape.

    Places that are sums of loops are a map, as of the weights of a transposed
    convolution, which torch-mlir reads from their end. What may be out of range stays
    a gather.

    Example: before and after, where %places holds 0, 1, 2 and 3.
    ```mlir
    %y = linalg.generic {...} ins(%places : tensor<4xi64>) outs(%e : tensor<4xf32>) {
    ^bb0(%in: i64, %out: f32):
      %i = arith.index_cast %in : i64 to index
      %v = tensor.extract %x[%c0, %i] : tensor<1x4xf32>
      linalg.yield %v : f32
    } -> tensor<4xf32>
    ```
    ```mlir
    %y = tensor.collapse_shape %x [[0, 1]] : tensor<1x4xf32> into tensor<4xf32>
    ```
  }];
  let dependentDialects = ["mlir::linalg::LinalgDialect", "mlir::tensor::TensorDialect"];
}

def RaiseNormsPass : Pass<"weir-raise-norms", "mlir::func::FuncOp"> {
  let summary = "Turns decomposed norms, losses and activations into `norm` ops.";
  let description = [{
    Recognises LayerNorm, group norm, batch norm, RMSNorm, softmax, its logarithm,
    logsumexp and cross-entropy (each reduction, ignored targets, smoothed labels) by
    what their elements are computed from, whatever ops and reshapes spell it, and
    GELU, SiLU, error functions and asinh by their values at some 400 points. Statistics
    that were in f64 become f32 in two passes; an assertion that a target is a
    class becomes a NaN loss. What does not match exactly stays as it is, and so
    does what others use the inner parts of: docs/graph-level.md says why.
  }];
  let dependentDialects = ["mlir::linalg::LinalgDialect", "mlir::tensor::TensorDialect",
                           "weir::norm::NormDialect"];
}

def NormalizeGraphPass : Pass<"weir-normalize-graph", "mlir::func::FuncOp"> {
  let summary = "Makes types static and computed indices safe.";
  let description = [{
    What front ends write with `tensor.cast` to unknown sizes and back gets the
    sizes that are known. Every index of a `tensor.extract` that is not in range by
    what it is made of is clamped to it, and assertions go: a kernel cannot stop.

    Example: in the body of a gather, before and after.
    ```mlir
    %i = arith.index_cast %in : i64 to index
    %ok = arith.cmpi slt, %i, %c11 : index
    cf.assert %ok, "index must be smaller than dim size"
    %x = tensor.extract %table[%i] : tensor<11xf32>
    ```
    ```mlir
    %low = arith.maxsi %in, %c0 : i64
    %in_range = arith.minsi %low, %c10 : i64
    %i = arith.index_cast %in_range : i64 to index
    %x = tensor.extract %table[%i] : tensor<11xf32>
    ```
  }];
  let dependentDialects = ["mlir::arith::ArithDialect", "mlir::linalg::LinalgDialect",
                           "mlir::tensor::TensorDialect"];
}

def WidenArithmeticPass : Pass<"weir-widen-arithmetic", "mlir::func::FuncOp"> {
  let summary = "Computes in f32 what is of f16 and bf16.";
  let description = [{
    Operands are extended, results are truncated, to the nearest, ties to even: each
    op of the graph rounds once, and f16 and bf16 are types that tensors are stored
    in. A reduction keeps what it has so far in f32 and rounds at its end.

    Example:
    ```mlir
    %sum = arith.addf %x, %y : f16
    ```
    ```mlir
    %0 = arith.extf %x : f16 to f32
    %1 = arith.extf %y : f16 to f32
    %2 = arith.addf %0, %1 : f32
    %sum = arith.truncf %2 : f32 to f16
    ```
  }];
  let dependentDialects = ["mlir::arith::ArithDialect", "mlir::linalg::LinalgDialect",
                           "mlir::tensor::TensorDialect"];
}

def DropDilationsPass : Pass<"weir-drop-dilations", "mlir::func::FuncOp"> {
  let summary = "Walks what was dilated in place of the zeros in between.";
  let description = [{
    A convolution of a tensor with zeros between its elements, as front ends write
    transposed convolutions and `weir-differentiate` the gradients of those with
    strides, becomes one contraction whose result has a dimension for the residues
    of its places, and which walks the taps of that residue alone. Taps whose number
    is no multiple of the stride get zeros behind them; what no tap reaches is 0.

    Example: stride 2 and 4 taps, before and after.
    ```mlir
    %d = tensor.insert_slice %x into %zeros[0, 3] [3, 8] [1, 2]
        : tensor<3x8xf32> into tensor<3x21xf32>
    %y = linalg.generic {indexing_maps = [affine_map<(h, f, k) -> (f, h - k + 3)>,
                                          affine_map<(h, f, k) -> (f, k)>,
                                          affine_map<(h, f, k) -> (h)>], ...}
        ins(%d, %w : tensor<3x21xf32>, tensor<3x4xf32>) outs(%z : tensor<18xf32>) {...}
    ```
    ```mlir
    %p = tensor.insert_slice %x into %zeros[0, 1] [3, 8] [1, 1]
        : tensor<3x8xf32> into tensor<3x10xf32>
    %t = tensor.expand_shape %w [[0], [1, 2]] output_shape [3, 2, 2] : ...
    %r = linalg.generic {indexing_maps = [affine_map<(q, r, f, m) -> (f, q - m + 1)>,
                                          affine_map<(q, r, f, m) -> (f, m, r)>,
                                          affine_map<(q, r, f, m) -> (q, r)>], ...}
        ins(%p, %t : tensor<3x10xf32>, tensor<3x2x2xf32>) outs(%z : tensor<9x2xf32>) {...}
    %y = tensor.collapse_shape %r [[0, 1]] : tensor<9x2xf32> into tensor<18xf32>
    ```
  }];
  let dependentDialects = ["mlir::arith::ArithDialect", "mlir::linalg::LinalgDialect",
                           "mlir::tensor::TensorDialect"];
}

def VerifyGraphPass : Pass<"weir-verify-graph", "mlir::ModuleOp"> {
  let summary = "Rejects what the graph level does not hold.";
}

def DifferentiatePass : Pass<"weir-differentiate", "mlir::ModuleOp"> {
  let summary = "Puts forward and backward in the place of `autodiff` ops.";
  let description = [{
    Every `autodiff.vjp` becomes its callee's ops and those that carry the
    cotangents back, from rules that each op brings (`DifferentiableOpInterface`).
    Only what leads from a wanted argument to a seeded result is differentiated;
    values of integers and what an `autodiff.stop_gradient` gives have no derivative. An
    op without a rule that the gradient flows through is an error. Private functions that
    are then unused go, and so does every `autodiff.stop_gradient`.
  }];
  let dependentDialects = ["mlir::arith::ArithDialect", "mlir::linalg::LinalgDialect",
                           "mlir::math::MathDialect", "mlir::tensor::TensorDialect",
                           "weir::norm::NormDialect"];
}

def CheckIndicesPass : Pass<"weir-check-indices", "mlir::func::FuncOp"> {
  let summary = "Adds a result that says whether an index left its tensor.";
  let description = [{
    Must run before weir-normalize-graph, which clamps indices. The function gets a
    result `weir.status` of type tensor<i32>: 0, or the number, counted from 1, of a
    `tensor.extract` one of whose indices is out of range; the attribute `weir.checks`
    says in words what each number stands for. A function that has no index to check
    stays as it is.
  }];
  let dependentDialects = ["mlir::arith::ArithDialect", "mlir::linalg::LinalgDialect",
                           "mlir::tensor::TensorDialect"];
}

def ExpandRandomPass : Pass<"weir-expand-random", "mlir::func::FuncOp"> {
  let summary = "Writes `random` ops out as `linalg.generic`.";
  let description = [{
    Must run after weir-differentiate: as one op a random number is a value like any
    other, which forward and backward both read.
  }];
  let dependentDialects = ["mlir::arith::ArithDialect", "mlir::linalg::LinalgDialect",
                           "mlir::tensor::TensorDialect"];
}

def SplitBackwardPass : Pass<"weir-split-backward", "mlir::ModuleOp"> {
  let summary = "Makes forward, input pass and weight pass of a joint backward.";
  let description = [{
    Must run after weir-differentiate. A function F.split, which holds forward and
    backward of F with its totals marked, becomes F.forward, F.backward_input and
    F.backward_weight. Each op runs in one of them; the weight pass computes no total
    cotangent of an activation. docs/gradients.md has an example.
  }];
  let dependentDialects = ["mlir::arith::ArithDialect", "mlir::linalg::LinalgDialect",
                           "mlir::tensor::TensorDialect"];
}

def VerifyGradientPass : Pass<"weir-verify-gradient", "mlir::ModuleOp"> {
  let summary = "Rejects what the gradient level does not hold.";
}

//===----------------------------------------------------------------------===//
// kernels
//===----------------------------------------------------------------------===//

def SetProfilePass : Pass<"weir-set-profile", "mlir::ModuleOp"> {
  let summary = "Sets the target profile that the module is compiled for.";
  let options = [
    Option<"profile", "profile", "std::string", "\"lavapipe\"",
           "A built-in profile's name or the path of a profile file.">];
}

def DecomposeNormsPass : Pass<"weir-decompose-norms", "mlir::func::FuncOp"> {
  let summary = "Expands `norm` ops into `linalg`.";
  let dependentDialects = ["mlir::arith::ArithDialect", "mlir::linalg::LinalgDialect",
                           "mlir::math::MathDialect", "mlir::tensor::TensorDialect"];
}

def GeneralizeTensorsPass : Pass<"weir-generalize-tensors", "mlir::func::FuncOp"> {
  let summary = "Writes ops of `tensor`, and scalars, as `linalg.generic`.";
  let description = [{
    Slices become maps; pads, concatenations, insertions and what is generated
    become bodies that read elements at computed places, and compute there what is
    computed for them alone. Scalars between tensors are computed again in each body
    that uses them. A concatenation whose parts kernels make anyway stays, or becomes
    insertions into a `tensor.empty`, where the module's `weir.profile` can bind them.
  }];
  let dependentDialects = ["mlir::arith::ArithDialect", "mlir::linalg::LinalgDialect",
                           "mlir::tensor::TensorDialect"];
}

def FormKernelsPass : Pass<"weir-form-kernels", "mlir::ModuleOp"> {
  let summary = "Groups tensor computation into `schedule.kernel` regions.";
  let description = [{
    Ops of one kernel have its loops, so reshapes between them leave the way first: the
    op on one side gets the loops of the other one, and what costs nothing between
    kernels stands there.

    Example: one kernel, of 6 x 2 x 7 points.
    ```mlir
    %0 = linalg.exp ins(%x : tensor<12x7xf32>) outs(%e : tensor<12x7xf32>) -> tensor<12x7xf32>
    %1 = tensor.expand_shape %0 [[0, 1], [2]] output_shape [6, 2, 7]
        : tensor<12x7xf32> into tensor<6x2x7xf32>
    %2 = linalg.tanh ins(%1 : tensor<6x2x7xf32>) outs(%f : tensor<6x2x7xf32>)
        -> tensor<6x2x7xf32>
    ```
  }];
  let dependentDialects = ["weir::schedule::ScheduleDialect", "mlir::affine::AffineDialect",
                           "mlir::linalg::LinalgDialect", "mlir::tensor::TensorDialect"];
}

def AddSparesPass : Pass<"weir-add-spares", "mlir::ModuleOp"> {
  let summary = "Adds kernels that make values again for less than those that made them.";
  let description = [{
    For a result that follows element by element from other results and inputs of its
    kernel, where the kernel does more than that: a kernel of just those ops, behind
    it. `weir.spare` names the result. Bits depend on shape, types and target, not on
    what shares a kernel, so the spare makes the same.

    weir-limit-memory takes spares as patterns; weir-schedule leaves them out.

    Example, of a kernel that adds up rows to %sum and takes the square root to %root:
    ```mlir
    %again = schedule.kernel "again_64" (%sum) : (tensor<64xf32>) -> tensor<64xf32>
        attributes {weir.spare = 1 : i64} {...}
    ```
  }];
}

def VerifyKernelsPass : Pass<"weir-verify-kernels", "mlir::ModuleOp"> {
  let summary = "Rejects what the kernels level does not hold.";
}

//===----------------------------------------------------------------------===//
// dispatches
//===----------------------------------------------------------------------===//

def LowerKernelsPass : Pass<"weir-lower-kernels", "mlir::ModuleOp"> {
  let summary = "Turns `schedule.kernel` regions into GPU kernels and dispatches.";
  let dependentDialects = [
      "weir::schedule::ScheduleDialect", "mlir::gpu::GPUDialect", "mlir::memref::MemRefDialect",
      "mlir::scf::SCFDialect", "mlir::vector::VectorDialect", "mlir::arith::ArithDialect",
      "mlir::math::MathDialect"];
}

def NarrowArithmeticPass : Pass<"weir-narrow-arithmetic", "mlir::ModuleOp"> {
  let summary = "Computes in pairs of f32 what is of f64, where the target has none.";
  let description = [{
    Where the profile has no `float64`, a value of f64 becomes two of f32, the nearest
    one and what is left, in kernels and in the buffers between them: a pair has 48
    bits, and the range of f32. Does nothing where an entry takes or returns f64; what
    has no form in pairs is an error.

    Example:
    ```mlir
    %y = arith.extf %x : f32 to f64
    %z = arith.select %c, %y, %w : f64
    ```
    ```mlir
    %none = arith.constant 0.0 : f32
    %z = arith.select %c, %x, %w : f32
    %z_rest = arith.select %c, %none, %w_rest : f32
    ```
  }];
  let dependentDialects = ["mlir::arith::ArithDialect", "mlir::math::MathDialect",
                           "mlir::vector::VectorDialect"];
}

def ExpandMathPass : Pass<"weir-expand-math"> {
  let summary = "Replaces `math` functions by Weir's own.";
  let description = [{
    Afterwards every function that docs/math.md lists is `arith` and `math.fma`;
    the others are as they were.
  }];
  let dependentDialects = ["mlir::arith::ArithDialect", "mlir::math::MathDialect"];
}

def VerifyDispatchesPass : Pass<"weir-verify-dispatches", "mlir::ModuleOp"> {
  let summary = "Rejects what the dispatches level does not hold.";
}

def ImportLaunchesPass : Pass<"weir-import-launches", "mlir::ModuleOp"> {
  let summary = "Turns host code that launches kernels into a command list.";
  let description = [{
    Takes functions that others made: one block of `gpu.launch_func`,
    `gpu.memcpy`, `gpu.memset` and `memref.copy`, with or without tokens, on
    arguments, allocations, globals and views of them. They become dispatches,
    copies and fills of one `schedule.commands`, in the program's order.
    Functions that launch nothing stay as they are.

    Grid and workgroup sizes must fold to constants. A kernel that states no
    `known_block_size` gets its launch's; launched with several, it is copied.
    It states its grid, too, where all launches agree. Memory is freed behind the list. Host code that may touch memory may stand
    before the first command only.

    Tokens and waits, `gpu.wait` of the host included, are dropped. They say
    what the source orders; whatever must be ordered for memory's sake, in
    recorded order, weir-insert-barriers orders again. Where the source orders
    less, it has a race: a warning names the two commands.

    Example:
    ```mlir
    %t0 = gpu.wait async
    %t1 = gpu.memcpy async [%t0] %y, %x : memref<64xf32>, memref<64xf32>
    %t2 = gpu.launch_func async [%t1] @k::@k blocks in (%c2, %c1, %c1)
        threads in (%c32, %c1, %c1) args(%n : index, %y : memref<64xf32>)
    gpu.wait [%t2]
    ```
    becomes
    ```mlir
    schedule.commands {
      schedule.copy %x to %y : memref<64xf32> to memref<64xf32>
      schedule.dispatch @k::@k [2, 1, 1] (%n, %y) : (index, memref<64xf32>)
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
    All readers of a donated argument come before the dispatch that may write a
    result over it, where what they need allows. Sets each command's wave, and in
    entries `weir.values`, which value each operand is part of.
  }];
  let options = [
    Option<"schedule", "schedule", "std::string", "\"memory\"",
           "program: as written; memory: so that fewer bytes are live, if that is so.">];
}

def LimitMemoryPass : Pass<"weir-limit-memory", "mlir::ModuleOp"> {
  let summary = "Schedules so that the arena has no more bytes than a limit.";
  let description = [{
    Stands in the place of weir-schedule, and does what that does. Where the arena
    that weir-plan-memory would make of it is larger than `limit`, every dispatch
    gets a wave of its own; where that is not enough, dispatches are repeated: a value
    that is live at the peak and not used there is made again behind it, by the
    same kernel from the same values, and so has the same bits.

    What a dispatch reads must still be there, or is made again, too. No dispatch is
    repeated that updates what it reads, or writes a part of a value, and none is
    that would read a donated argument behind its last reader.

    A dispatch with `weir.spare = N` is another way to make the value that is operand
    N of the command before it. Spares are taken as patterns and leave the list.

    The result says as a remark what each step brought. An error names the smallest
    limit that fits and the largest values at the peak then.

    Example, %t made again in the place of being kept while %u is there:
    ```mlir
    schedule.dispatch @k::@k [1, 1, 1] (%x, %t) wave 0 : (memref<64xf32>, memref<64xf32>)
    schedule.dispatch @k::@k [1, 1, 1] (%t, %a) wave 1 : (memref<64xf32>, memref<64xf32>)
    schedule.dispatch @k::@k [1, 1, 1] (%a, %u) wave 2 : (memref<64xf32>, memref<64xf32>)
    schedule.dispatch @k::@k [1, 1, 1] (%u, %b) wave 3 : (memref<64xf32>, memref<64xf32>)
    schedule.dispatch @k::@k [1, 1, 1] (%x, %t_again) wave 4 : (memref<64xf32>, memref<64xf32>)
    schedule.dispatch @k::@k [1, 1, 1] (%t_again, %c) wave 5 : (memref<64xf32>, memref<64xf32>)
    ```
  }];
  let options = [
    Option<"limit", "limit", "int64_t", "0", "The most bytes that an arena may have.">,
    Option<"effort", "effort", "int64_t", "200000", "As for weir-plan-memory.">];
  let dependentDialects = ["mlir::arith::ArithDialect", "mlir::memref::MemRefDialect"];
}

def DonateBuffersPass : Pass<"weir-donate-buffers", "mlir::ModuleOp"> {
  let summary = "Says which results may take the bytes of which operands.";
  let description = [{
    Sets `weir.permissions` on dispatches: this value, whose life begins here, may
    take the bytes of that operand, whose life ends here, since the kernel's own
    access maps prove that nothing is read after it was overwritten. Every other
    pair gets a remark with the reason and the witness; a donated argument that
    nothing may take keeps the first in `weir.refusal`.
  }];
}

def AssignQueuesPass : Pass<"weir-assign-queues", "mlir::ModuleOp"> {
  let summary = "Spreads the dispatches over queues.";
  let description = [{
    A dispatch follows the one whose result it reads if that is the last of its
    queue, else it goes to the queue with the least bytes to move so far. The
    recorded order and the waves stay. For one queue nothing changes.

    Example: of two chains that share nothing, one stays on queue 0:
    ```mlir
    schedule.dispatch @k::@k [1, 1, 1] (%x, %a) : (memref<64xf32>, memref<64xf32>)
    schedule.dispatch @k::@k [1, 1, 1] (%y, %b) queue 1 : (memref<64xf32>, memref<64xf32>)
    schedule.dispatch @k::@k [1, 1, 1] (%a, %c) : (memref<64xf32>, memref<64xf32>)
    schedule.dispatch @k::@k [1, 1, 1] (%b, %d) queue 1 : (memref<64xf32>, memref<64xf32>)
    ```
  }];
  let options = [
    Option<"queues", "queues", "int64_t", "0",
           "How many queues; 0: as many as the profile says.">];
}

def PlanMemoryPass : Pass<"weir-plan-memory", "mlir::ModuleOp"> {
  let summary = "Packs the values of an entry into slots of one arena.";
  let options = [
    Option<"noReuse", "no-reuse", "bool", "false",
           "Give every value bytes of its own, donated or not.">,
    Option<"requireDonation", "require-donation", "bool", "false",
           "Fail when a donated argument gives its bytes to no result.">,
    Option<"effort", "effort", "int64_t", "200000",
           "Steps that are spent on a smaller arena than greedy packing finds, "
           "for up to 64 values; for n times as many an n-th, as each step costs more.">];
  let dependentDialects = ["mlir::arith::ArithDialect", "mlir::memref::MemRefDialect"];
}

def VerifyPlacedPass : Pass<"weir-verify-placed", "mlir::ModuleOp"> {
  let summary = "Rejects what the placed level does not hold.";
}

//===----------------------------------------------------------------------===//
// ordered
//===----------------------------------------------------------------------===//

def InsertBarriersPass : Pass<"weir-insert-barriers", "mlir::ModuleOp"> {
  let summary = "Orders dispatches that meet a hazard on addresses.";
  let description = [{
    Inside a queue by the fewest `schedule.barrier` that do, each just before a
    dispatch that needs it. Between queues by a `schedule.signal` just behind the
    last dispatch that must have ended, readers too, and a `schedule.wait` just
    before the one that must come after. Those found in the input are made anew.

    With `reorder` the commands come first into an order that needs fewer of them,
    where there is one that keeps every hazard: `safe` lets the arena grow by
    nothing, `10%` by a tenth. Slots are placed anew for it and waves written anew.
    With bytes enough the barriers of one queue are one less than the dispatches of
    the longest chain of hazards between values.
  }];
  let options = [
    Option<"reorder", "reorder", "std::string", "\"off\"",
           "off, safe, or by how much the arena may grow, such as 10%.">,
    Option<"limit", "limit", "int64_t", "0",
           "Bytes that an arena that has no more does not grow beyond; 0: any.">];
  let dependentDialects = ["mlir::arith::ArithDialect", "mlir::memref::MemRefDialect"];
}

def InsertWorkgroupBarriersPass : Pass<"weir-insert-workgroup-barriers"> {
  let summary = "Inserts `gpu.barrier` where invocations of a workgroup would race.";
  let description = [{
    Looks at each kernel (`gpu.func ... kernel`), whoever made it, with the
    functions it calls. Two invocations of a workgroup must not touch a byte
    between the same two barriers if one of them writes, unless both are atomic.
    Where they may, a barrier goes just before the later access, or to another
    place between the two that serves more such pairs or stands in fewer loops,
    always one that all invocations of the workgroup come to together. Barriers
    found in the input count and stay.

    Arguments may share bytes unless one is `llvm.noalias`, or the module
    dispatches the kernel with views that don't. Invocations that write the same
    value to the same place by one instruction don't race. An op that is not
    known touches what it is given, and everything once an address or a token
    was made from a memref.

    - An error: two accesses that need a barrier where none can stand, an
      instruction that surely races with itself, or with itself or another in a
      different workgroup; a barrier that not all invocations come to.
    - A remark: an instruction of which it can't be told whether invocations, or
      workgroups, write the same bytes by it.

    Example:
    ```mlir
    memref.store %x, %s[%thread] : memref<64xf32, #gpu.address_space<workgroup>>
    // becomes: gpu.barrier
    %y = memref.load %s[%other] : memref<64xf32, #gpu.address_space<workgroup>>
    ```
  }];
  let dependentDialects = ["mlir::gpu::GPUDialect"];
}

def RemoveRedundantWorkgroupBarriersPass : Pass<"weir-remove-redundant-workgroup-barriers"> {
  let summary = "Removes each `gpu.barrier` without which nothing races that didn't.";
  let description = [{
    Proves that every two accesses of a workgroup which the barriers of a kernel
    separate stay separated. Of several barriers that could go one at a time,
    those inside loops go first.
  }];
}

def VerifyOrderedPass : Pass<"weir-verify-ordered", "mlir::ModuleOp"> {
  let summary = "Rejects what the ordered level does not hold.";
  let description = [{
    No two commands that share bytes, of which one writes, may lie between the
    same barriers, and what is written must be made visible. In a module without
    `weir.profile` and `weir.entry`, as weir-import-launches leaves those of
    others, that is all; otherwise the module must keep, too, what the levels
    before promised.
  }];
}

//===----------------------------------------------------------------------===//
// emitted
//===----------------------------------------------------------------------===//

def EmitSpirvPass : Pass<"weir-emit-spirv", "mlir::ModuleOp"> {
  let summary = "Turns GPU kernels into validated SPIR-V.";
  let description = [{
    Each kernel of each `gpu.module` becomes one `gpu.binary` of the kernel's
    name, whose entry point has that name, too. Argument i is binding i of
    descriptor set 0. Beside the words the binary carries `weir.workgroup`, the
    invocations per axis, and `weir.operands`, each operand's effect, bytes and
    alignment in bytes.

    Needs `weir.profile`, and what only runs on a profile with other limits is
    refused. Floats are exact: every float operation but an explicit fma may be
    neither contracted nor reassociated.
  }];
  let dependentDialects = ["mlir::arith::ArithDialect", "mlir::gpu::GPUDialect",
                           "mlir::memref::MemRefDialect", "mlir::scf::SCFDialect",
                           "mlir::spirv::SPIRVDialect", "mlir::vector::VectorDialect",
                           "weir::schedule::ScheduleDialect"];
}

def EmitPtxPass : Pass<"weir-emit-ptx", "mlir::ModuleOp"> {
  let summary = "Turns GPU kernels into checked PTX.";
  let description = [{
    As weir-emit-spirv, for a profile of target `cuda`: each kernel becomes one
    `gpu.binary` of the kernel's name, whose one entry has that name, too.
    Parameter i of the entry is the address of operand i, on which LLVM is told
    nothing: operands may share bytes.

    Floats are exact: every operation rounds to nearest, denormals stay, and only
    an explicit fma is one. `math` has no lowering but for what is an instruction
    (weir-expand-math makes the rest); nothing of libdevice is called.
  }];
  let dependentDialects = ["mlir::arith::ArithDialect", "mlir::cf::ControlFlowDialect",
                           "mlir::gpu::GPUDialect", "mlir::memref::MemRefDialect",
                           "mlir::scf::SCFDialect", "mlir::vector::VectorDialect",
                           "mlir::LLVM::LLVMDialect", "mlir::NVVM::NVVMDialect",
                           "weir::schedule::ScheduleDialect"];
}

def PrintPtxPass : Pass<"weir-print-ptx", "mlir::ModuleOp"> {
  let summary = "Prints the PTX of each `gpu.binary` to stdout.";
}

def PrintSpirvPass : Pass<"weir-print-spirv", "mlir::ModuleOp"> {
  let summary = "Prints the SPIR-V of each `gpu.binary` as assembly text to stdout.";
}

def PackPass : Pass<"weir-pack", "mlir::ModuleOp"> {
  let summary = "Writes the plan of every entry into the module.";
}

def VerifyEmittedPass : Pass<"weir-verify-emitted", "mlir::ModuleOp"> {
  let summary = "Rejects what the emitted level does not hold.";
}

#endif // WEIR_PASSES_TD

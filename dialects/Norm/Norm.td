//===- Norm.td - Normalisations, losses, activations and sorts ------------===//

#ifndef WEIR_DIALECTS_NORM_TD
#define WEIR_DIALECTS_NORM_TD

include "dialects/Autodiff/Differentiable.td"
include "mlir/IR/EnumAttr.td"
include "mlir/IR/OpBase.td"
include "mlir/Interfaces/SideEffectInterfaces.td"

def Norm_Dialect : Dialect {
  let name = "norm";
  let cppNamespace = "::weir::norm";
  let summary = "Normalisations, losses, activations and sorts as single ops.";
  let description = [{
    Ops on ranked tensors of static shape, with value semantics: results are
    returned, nothing is written. Each has a decomposition to `linalg`
    (`dialects/Norm/Decompose.h`), which defines what it computes. Accumulation
    is in f32, or f64 for f64. A NaN in a row reaches every result of that row.

    The VJP of an op is `op_vjp`: it takes the cotangents of the op's results and
    yields the gradients of all its float operands together, for they share what
    they read. An unused gradient costs nothing: its part of the decomposition is dead.
  }];
}

def Norm_Tensor : StaticShapeTensorOf<[F32, F64]>;
def Norm_NarrowTensor : StaticShapeTensorOf<[F16, BF16, F32, F64]>;
def Norm_Targets : StaticShapeTensorOf<[I32, I64]>;

def Norm_Reduction : I32EnumAttr<"Reduction", "how the losses of rows are combined", [
  I32EnumAttrCase<"none", 0>, I32EnumAttrCase<"mean", 1>, I32EnumAttrCase<"sum", 2>]> {
  let cppNamespace = "::weir::norm";
}

class Norm_Op<string mnemonic, list<Trait> traits = []>
    : Op<Norm_Dialect, mnemonic, [Pure] # traits> {
  let hasVerifier = 1;
}

def Norm_LayerNormOp
    : Norm_Op<"layer_norm", [AllTypesMatch<["x", "result"]>, AttrSizedOperandSegments,
                             DeclareOpInterfaceMethods<DifferentiableOpInterface>]> {
  let summary = "Mean 0, variance 1 over the last dimensions, then scale and shift.";
  let description = [{
    `(x - mean) * rsqrt(variance + eps) * gamma + beta` over the last `axes`
    dimensions. The variance is the biased one, in two passes: the mean of
    `(x - mean)^2`. `eps` is rounded to the type of `x`. `gamma` and `beta` may
    be absent.

    - (C1) `axes` is in [1, rank of x].
    - (C2) `gamma` and `beta` have the shape of the last `axes` dimensions and
      the element type of `x`.
    - (C3) `eps` is finite and not negative.

    ```mlir
    func.func @example(%x: tensor<4x8xf32>, %gamma: tensor<8xf32>,
                       %beta: tensor<8xf32>) -> tensor<4x8xf32> {
      %y = norm.layer_norm %x gamma(%gamma : tensor<8xf32>) beta(%beta : tensor<8xf32>)
           {axes = 1 : i64, eps = 1.0e-5 : f64} : tensor<4x8xf32>
      return %y : tensor<4x8xf32>
    }
    ```
  }];
  let arguments = (ins Norm_Tensor:$x, Optional<Norm_Tensor>:$gamma, Optional<Norm_Tensor>:$beta,
                       I64Attr:$axes, F64Attr:$eps);
  let results = (outs Norm_Tensor:$result);
  let assemblyFormat = [{
    $x (`gamma` `(` $gamma^ `:` type($gamma) `)`)? (`beta` `(` $beta^ `:` type($beta) `)`)?
    attr-dict `:` type($x)
  }];
}

def Norm_LayerNormVjpOp
    : Norm_Op<"layer_norm_vjp", [AllTypesMatch<["dy", "x", "dx"]>,
                                 AllTypesMatch<["dgamma", "dbeta"]>]> {
  let summary = "The gradients of `layer_norm`, from those of its result.";
  let description = [{
    With `rstd = rsqrt(variance + eps)`, `n = (x - mean) * rstd` (both as
    `layer_norm` computes them), `a = dy * gamma` and means over the last `axes`
    dimensions:

    - `dx = rstd * (a - mean(a) - n * mean(a * n))`
    - `dgamma = sum(dy * n)`, `dbeta = sum(dy)`, over the other dimensions.

    `beta` plays no part. Without `gamma` it is 1, and `dgamma` the gradient at 1.

    - (C1) `axes` is in [1, rank of x].
    - (C2) `gamma`, `dgamma` and `dbeta` have the shape of the last `axes`
      dimensions and the element type of `x`.
    - (C3) `eps` is finite and not negative.

    ```mlir
    func.func @example(%dy: tensor<4x8xf32>, %x: tensor<4x8xf32>, %gamma: tensor<8xf32>)
        -> (tensor<4x8xf32>, tensor<8xf32>, tensor<8xf32>) {
      %dx, %dgamma, %dbeta = norm.layer_norm_vjp %dy, %x gamma(%gamma : tensor<8xf32>)
          {axes = 1 : i64, eps = 1.0e-5 : f64} : tensor<4x8xf32>, tensor<8xf32>
      return %dx, %dgamma, %dbeta : tensor<4x8xf32>, tensor<8xf32>, tensor<8xf32>
    }
    ```
  }];
  let arguments = (ins Norm_Tensor:$dy, Norm_Tensor:$x, Optional<Norm_Tensor>:$gamma,
                       I64Attr:$axes, F64Attr:$eps);
  let results = (outs Norm_Tensor:$dx, Norm_Tensor:$dgamma, Norm_Tensor:$dbeta);
  let assemblyFormat = [{
    $dy `,` $x (`gamma` `(` $gamma^ `:` type($gamma) `)`)? attr-dict `:` type($x) `,`
    type($dgamma)
  }];
}

def Norm_RmsNormOp
    : Norm_Op<"rms_norm", [AllTypesMatch<["x", "result"]>,
                           DeclareOpInterfaceMethods<DifferentiableOpInterface>]> {
  let summary = "Root mean square 1 over the last dimensions, then scale.";
  let description = [{
    `x * rsqrt(mean(x^2) + eps) * gamma` over the last `axes` dimensions,
    computed in f32 where `x` is narrower. Then the cast point matters:
    with `cast_before_scale` the normalised value is rounded to the type of `x`
    and multiplied there (as Llama does); without it the product is rounded.
    `gamma` may be absent.

    - (C1) `axes` is in [1, rank of x].
    - (C2) `gamma` has the shape of the last `axes` dimensions and the element
      type of `x`.
    - (C3) `eps` is finite and not negative.

    ```mlir
    func.func @example(%x: tensor<4x8xbf16>, %gamma: tensor<8xbf16>) -> tensor<4x8xbf16> {
      %y = norm.rms_norm %x gamma(%gamma : tensor<8xbf16>)
           {axes = 1 : i64, eps = 1.0e-6 : f64, cast_before_scale} : tensor<4x8xbf16>
      return %y : tensor<4x8xbf16>
    }
    ```
  }];
  let arguments = (ins Norm_NarrowTensor:$x, Optional<Norm_NarrowTensor>:$gamma, I64Attr:$axes,
                       F64Attr:$eps, UnitAttr:$cast_before_scale);
  let results = (outs Norm_NarrowTensor:$result);
  let assemblyFormat = [{
    $x (`gamma` `(` $gamma^ `:` type($gamma) `)`)? attr-dict `:` type($x)
  }];
}

def Norm_RmsNormVjpOp
    : Norm_Op<"rms_norm_vjp", [AllTypesMatch<["dy", "x", "dx"]>]> {
  let summary = "The gradients of `rms_norm`, from those of its result.";
  let description = [{
    With `rstd = rsqrt(mean(x^2) + eps)`, `n = x * rstd`, `a = dy * gamma` and
    means over the last `axes` dimensions:

    - `dx = rstd * (a - n * mean(a * n))`
    - `dgamma = sum(dy * n)` over the other dimensions.

    All of it is computed in f32 where `x` is narrower, and rounded once. With
    `cast_before_scale` the `n` of `dgamma` is rounded to the type of `x` first,
    as it was when `gamma` multiplied it. Without `gamma` it is 1, and `dgamma`
    the gradient at 1.

    - (C1) `axes` is in [1, rank of x].
    - (C2) `gamma` and `dgamma` have the shape of the last `axes` dimensions and
      the element type of `x`.
    - (C3) `eps` is finite and not negative.

    ```mlir
    func.func @example(%dy: tensor<4x8xf32>, %x: tensor<4x8xf32>, %gamma: tensor<8xf32>)
        -> (tensor<4x8xf32>, tensor<8xf32>) {
      %dx, %dgamma = norm.rms_norm_vjp %dy, %x gamma(%gamma : tensor<8xf32>)
          {axes = 1 : i64, eps = 1.0e-6 : f64} : tensor<4x8xf32>, tensor<8xf32>
      return %dx, %dgamma : tensor<4x8xf32>, tensor<8xf32>
    }
    ```
  }];
  let arguments = (ins Norm_NarrowTensor:$dy, Norm_NarrowTensor:$x,
                       Optional<Norm_NarrowTensor>:$gamma, I64Attr:$axes, F64Attr:$eps,
                       UnitAttr:$cast_before_scale);
  let results = (outs Norm_NarrowTensor:$dx, Norm_NarrowTensor:$dgamma);
  let assemblyFormat = [{
    $dy `,` $x (`gamma` `(` $gamma^ `:` type($gamma) `)`)? attr-dict `:` type($x) `,`
    type($dgamma)
  }];
}

def Norm_BatchNormOp
    : Norm_Op<"batch_norm", [AllTypesMatch<["x", "result"]>, AllTypesMatch<["mean", "variance"]>,
                             AttrSizedOperandSegments,
                             DeclareOpInterfaceMethods<DifferentiableOpInterface>]> {
  let summary = "Mean 0, variance 1 of each channel, then scale and shift.";
  let description = [{
    `(x - mean) * rsqrt(variance + eps) * gamma + beta`, where `mean` and the biased
    `variance`, in two passes as for `layer_norm`, are those of all elements with the same
    index in dimension `axis`. They are results, too, for running statistics (Ioffe and
    Szegedy 2015, in training). `eps` is rounded to the type of
    `x`. `gamma` and `beta` may be absent.

    - (C1) `axis` is in [0, rank of x).
    - (C2) `gamma`, `beta`, `mean` and `variance` have the size of `axis` and the
      element type of `x`.
    - (C3) `eps` is finite and not negative.

    ```mlir
    func.func @example(%x: tensor<4x3x8xf32>, %gamma: tensor<3xf32>, %beta: tensor<3xf32>)
        -> (tensor<4x3x8xf32>, tensor<3xf32>) {
      %y, %mean, %variance = norm.batch_norm %x gamma(%gamma : tensor<3xf32>)
          beta(%beta : tensor<3xf32>) {axis = 1 : i64, eps = 1.0e-5 : f64}
          : tensor<4x3x8xf32>, tensor<3xf32>
      return %y, %mean : tensor<4x3x8xf32>, tensor<3xf32>
    }
    ```
  }];
  let arguments = (ins Norm_Tensor:$x, Optional<Norm_Tensor>:$gamma, Optional<Norm_Tensor>:$beta,
                       I64Attr:$axis, F64Attr:$eps);
  let results = (outs Norm_Tensor:$result, Norm_Tensor:$mean, Norm_Tensor:$variance);
  let assemblyFormat = [{
    $x (`gamma` `(` $gamma^ `:` type($gamma) `)`)? (`beta` `(` $beta^ `:` type($beta) `)`)?
    attr-dict `:` type($x) `,` type($mean)
  }];
}

def Norm_BatchNormVjpOp
    : Norm_Op<"batch_norm_vjp", [AllTypesMatch<["dy", "x", "dx"]>,
                                 AllTypesMatch<["dgamma", "dbeta"]>, AttrSizedOperandSegments]> {
  let summary = "The gradients of `batch_norm`, from those of its results.";
  let description = [{
    With `mean` and `rstd = rsqrt(variance + eps)` as `batch_norm` computes them, `n = (x -
    mean) * rstd` and means over the m elements of a channel:

    - `dx = (dy - mean(dy) - n * mean(dy * n)) * rstd * gamma`
    - `dgamma = sum(dy * n)`, `dbeta = sum(dy)`, over a channel.

    The cotangents of the other two results, where they are given, add `dmean / m` and
    `dvariance * 2 * (x - mean) / m` to `dx`. `beta` plays no part. Without `gamma` it is
    1, and `dgamma` the gradient at 1.

    - (C1) `axis` is in [0, rank of x).
    - (C2) `gamma`, `dmean`, `dvariance`, `dgamma` and `dbeta` have the size of `axis` and
      the element type of `x`.
    - (C3) `eps` is finite and not negative.

    ```mlir
    func.func @example(%dy: tensor<4x3x8xf32>, %x: tensor<4x3x8xf32>, %gamma: tensor<3xf32>)
        -> (tensor<4x3x8xf32>, tensor<3xf32>, tensor<3xf32>) {
      %dx, %dgamma, %dbeta = norm.batch_norm_vjp %dy, %x gamma(%gamma : tensor<3xf32>)
          {axis = 1 : i64, eps = 1.0e-5 : f64} : tensor<4x3x8xf32>, tensor<3xf32>
      return %dx, %dgamma, %dbeta : tensor<4x3x8xf32>, tensor<3xf32>, tensor<3xf32>
    }
    ```
  }];
  let arguments = (ins Norm_Tensor:$dy, Norm_Tensor:$x, Optional<Norm_Tensor>:$gamma,
                       Optional<Norm_Tensor>:$dmean, Optional<Norm_Tensor>:$dvariance,
                       I64Attr:$axis, F64Attr:$eps);
  let results = (outs Norm_Tensor:$dx, Norm_Tensor:$dgamma, Norm_Tensor:$dbeta);
  let assemblyFormat = [{
    $dy `,` $x (`gamma` `(` $gamma^ `:` type($gamma) `)`)?
    (`dmean` `(` $dmean^ `:` type($dmean) `)`)?
    (`dvariance` `(` $dvariance^ `:` type($dvariance) `)`)? attr-dict `:` type($x) `,`
    type($dgamma)
  }];
}

def Norm_BatchNormInferenceOp
    : Norm_Op<"batch_norm_inference", [AllTypesMatch<["x", "result"]>,
                                       AllTypesMatch<["mean", "variance"]>,
                                       AttrSizedOperandSegments]> {
  let summary = "Batch norm by statistics that are given.";
  let description = [{
    `(x - mean) * rsqrt(variance + eps) * gamma + beta` with one mean, variance, gamma and
    beta for each index in dimension `axis`. It is elementwise, and its gradient is
    that of its decomposition. `eps` is rounded to the type of `x`; `gamma` and `beta` may
    be absent.

    - (C1) `axis` is in [0, rank of x).
    - (C2) `mean`, `variance`, `gamma` and `beta` have the size of `axis` and the element
      type of `x`.
    - (C3) `eps` is finite and not negative.

    ```mlir
    func.func @example(%x: tensor<4x3x8xf32>, %mean: tensor<3xf32>, %variance: tensor<3xf32>)
        -> tensor<4x3x8xf32> {
      %y = norm.batch_norm_inference %x, %mean, %variance
          {axis = 1 : i64, eps = 1.0e-5 : f64} : tensor<4x3x8xf32>, tensor<3xf32>
      return %y : tensor<4x3x8xf32>
    }
    ```
  }];
  let arguments = (ins Norm_Tensor:$x, Norm_Tensor:$mean, Norm_Tensor:$variance,
                       Optional<Norm_Tensor>:$gamma, Optional<Norm_Tensor>:$beta,
                       I64Attr:$axis, F64Attr:$eps);
  let results = (outs Norm_Tensor:$result);
  let assemblyFormat = [{
    $x `,` $mean `,` $variance (`gamma` `(` $gamma^ `:` type($gamma) `)`)?
    (`beta` `(` $beta^ `:` type($beta) `)`)? attr-dict `:` type($x) `,` type($mean)
  }];
}

def Norm_SoftmaxVjpOp : Norm_Op<"softmax_vjp", [AllTypesMatch<["dy", "y", "dx"]>]> {
  let summary = "The gradient of `linalg.softmax`, from that of its result `y`.";
  let description = [{
    `dx = y * (dy - sum(dy * y))` along dimension `axis`.

    - (C1) `axis` is in [0, rank of y).

    ```mlir
    func.func @example(%dy: tensor<4x10xf32>, %y: tensor<4x10xf32>) -> tensor<4x10xf32> {
      %dx = norm.softmax_vjp %dy, %y {axis = 1 : i64} : tensor<4x10xf32>
      return %dx : tensor<4x10xf32>
    }
    ```
  }];
  let arguments = (ins Norm_Tensor:$dy, Norm_Tensor:$y, I64Attr:$axis);
  let results = (outs Norm_Tensor:$dx);
  let assemblyFormat = "$dy `,` $y attr-dict `:` type($y)";
}

def Norm_LogSoftmaxOp
    : Norm_Op<"log_softmax", [AllTypesMatch<["x", "result"]>,
                              DeclareOpInterfaceMethods<DifferentiableOpInterface>]> {
  let summary = "The logarithm of the softmax along one dimension.";
  let description = [{
    `(x - max) - log(sum(exp(x - max)))` along dimension `axis`.

    - (C1) `axis` is in [0, rank of x).

    ```mlir
    func.func @example(%x: tensor<4x10xf32>) -> tensor<4x10xf32> {
      %y = norm.log_softmax %x {axis = 1 : i64} : tensor<4x10xf32>
      return %y : tensor<4x10xf32>
    }
    ```
  }];
  let arguments = (ins Norm_Tensor:$x, I64Attr:$axis);
  let results = (outs Norm_Tensor:$result);
  let assemblyFormat = "$x attr-dict `:` type($x)";
}

def Norm_LogSoftmaxVjpOp : Norm_Op<"log_softmax_vjp", [AllTypesMatch<["dy", "y", "dx"]>]> {
  let summary = "The gradient of `log_softmax`, from that of its result `y`.";
  let description = [{
    `dx = dy - exp(y) * sum(dy)` along dimension `axis`.

    - (C1) `axis` is in [0, rank of y).

    ```mlir
    func.func @example(%dy: tensor<4x10xf32>, %y: tensor<4x10xf32>) -> tensor<4x10xf32> {
      %dx = norm.log_softmax_vjp %dy, %y {axis = 1 : i64} : tensor<4x10xf32>
      return %dx : tensor<4x10xf32>
    }
    ```
  }];
  let arguments = (ins Norm_Tensor:$dy, Norm_Tensor:$y, I64Attr:$axis);
  let results = (outs Norm_Tensor:$dx);
  let assemblyFormat = "$dy `,` $y attr-dict `:` type($y)";
}

def Norm_LogsumexpOp
    : Norm_Op<"logsumexp", [DeclareOpInterfaceMethods<DifferentiableOpInterface>]> {
  let summary = "The logarithm of the sum of exponentials along one dimension.";
  let description = [{
    `log(sum(exp(x - shift))) + shift` along dimension `axis`, where `shift` is the
    largest element, or 0 where that is infinite: a row of -inf gives -inf, one with
    inf gives inf.

    - (C1) `axis` is in [0, rank of x).
    - (C2) the result has the element type of `x`, and its shape without `axis`.

    ```mlir
    func.func @example(%x: tensor<4x10xf32>) -> tensor<4xf32> {
      %y = norm.logsumexp %x {axis = 1 : i64} : tensor<4x10xf32> -> tensor<4xf32>
      return %y : tensor<4xf32>
    }
    ```
  }];
  let arguments = (ins Norm_Tensor:$x, I64Attr:$axis);
  let results = (outs Norm_Tensor:$result);
  let assemblyFormat = "$x attr-dict `:` type($x) `->` type($result)";
}

def Norm_LogsumexpVjpOp : Norm_Op<"logsumexp_vjp", [AllTypesMatch<["x", "dx"]>]> {
  let summary = "The gradient of `logsumexp`, from that of its result.";
  let description = [{
    `dx = dy * (exp(x - shift) / sum(exp(x - shift)))` along dimension `axis`, with
    the `shift` of `logsumexp`.

    - (C1) `axis` is in [0, rank of x).
    - (C2) `dy` has the element type of `x`, and its shape without `axis`.

    ```mlir
    func.func @example(%dy: tensor<4xf32>, %x: tensor<4x10xf32>) -> tensor<4x10xf32> {
      %dx = norm.logsumexp_vjp %dy, %x {axis = 1 : i64} : tensor<4xf32>, tensor<4x10xf32>
      return %dx : tensor<4x10xf32>
    }
    ```
  }];
  let arguments = (ins Norm_Tensor:$dy, Norm_Tensor:$x, I64Attr:$axis);
  let results = (outs Norm_Tensor:$dx);
  let assemblyFormat = "$dy `,` $x attr-dict `:` type($dy) `,` type($x)";
}

def Norm_SoftmaxCrossEntropyOp
    : Norm_Op<"softmax_cross_entropy", [DeclareOpInterfaceMethods<DifferentiableOpInterface>]> {
  let summary = "The negative log-likelihood of target classes.";
  let description = [{
    For every row of `logits` (its last dimension counts the classes) the loss
    is `log(sum(exp(x - max))) - (x[target] - max)`. A row whose target is
    `ignore_index` has loss 0. A target that is neither that nor a class makes
    the row's loss NaN: loud, never silent.

    With `label_smoothing` s the target's logit weighs 1 - s, and all C logits of the
    row s / C: the loss is `log(sum(exp(x - max))) - (1 - s) * (x[target] - max) -
    s / C * sum(x - max)`.

    `none` returns the losses, `sum` their sum, `mean` their sum divided by the
    number of targets that are not ignored (NaN when there are none).

    - (C1) `logits` has one dimension more than `targets`, the last; the others
      agree.
    - (C2) the result has the element type of `logits`, and the shape of
      `targets` for `none`, rank 0 otherwise.
    - (C3) `ignore_index` and the number of classes fit the type of `targets`.
    - (C4) `label_smoothing` is in [0, 1].

    ```mlir
    func.func @example(%logits: tensor<4x10xf32>, %targets: tensor<4xi64>) -> tensor<f32> {
      %loss = norm.softmax_cross_entropy mean %logits, %targets
          : tensor<4x10xf32>, tensor<4xi64> -> tensor<f32>
      return %loss : tensor<f32>
    }
    ```
  }];
  let arguments = (ins Norm_Tensor:$logits, Norm_Targets:$targets, Norm_Reduction:$reduction,
                       DefaultValuedAttr<I64Attr, "-100">:$ignore_index,
                       DefaultValuedAttr<F64Attr, "0.0">:$label_smoothing);
  let results = (outs Norm_Tensor:$result);
  let assemblyFormat = [{
    $reduction $logits `,` $targets attr-dict `:` type($logits) `,` type($targets) `->`
    type($result)
  }];
}

def Norm_SoftmaxCrossEntropyVjpOp
    : Norm_Op<"softmax_cross_entropy_vjp", [AllTypesMatch<["logits", "dlogits"]>]> {
  let summary = "The gradient of `softmax_cross_entropy`, from that of its result.";
  let description = [{
    `(softmax(logits) - onehot(target)) * dloss` for every row, where `dloss` is
    the row's own for `none`, the same for all rows for `sum`, and for `mean` that
    divided by the number of targets that are not ignored. Rows whose target is
    `ignore_index` have gradient 0, whatever they hold; a target that is neither
    that nor a class makes its row NaN. With `label_smoothing` s, `(1 - s) *
    onehot(target) + s / C` is subtracted.

    - (C1) `logits` has one dimension more than `targets`, the last; the others
      agree.
    - (C2) `dloss` has the element type of `logits`, and the shape of `targets`
      for `none`, rank 0 otherwise.
    - (C3) `ignore_index` and the number of classes fit the type of `targets`.
    - (C4) `label_smoothing` is in [0, 1].

    ```mlir
    func.func @example(%dloss: tensor<f32>, %logits: tensor<4x10xf32>, %targets: tensor<4xi64>)
        -> tensor<4x10xf32> {
      %dlogits = norm.softmax_cross_entropy_vjp mean %dloss, %logits, %targets
          : tensor<f32>, tensor<4x10xf32>, tensor<4xi64>
      return %dlogits : tensor<4x10xf32>
    }
    ```
  }];
  let arguments = (ins Norm_Tensor:$dloss, Norm_Tensor:$logits, Norm_Targets:$targets,
                       Norm_Reduction:$reduction, DefaultValuedAttr<I64Attr, "-100">:$ignore_index,
                       DefaultValuedAttr<F64Attr, "0.0">:$label_smoothing);
  let results = (outs Norm_Tensor:$dlogits);
  let assemblyFormat = [{
    $reduction $dloss `,` $logits `,` $targets attr-dict `:` type($dloss) `,` type($logits) `,`
    type($targets)
  }];
}

def Norm_AttentionOp
    : Norm_Op<"attention", [AllTypesMatch<["max", "share"]>,
                            DeclareOpInterfaceMethods<DifferentiableOpInterface>]> {
  let summary = "Sums of values, weighted by the softmax of products of queries and keys.";
  let description = [{
    `q` has the shape [B..., Tq, D], `k` [B..., Tk, D] and `v` [B..., Tk, C], with any number
    of batch dimensions B. The score of a query and a key is

    - `x = scale * sum(q * k)` over D,
    - with a `softcap`, `x = softcap * tanh(x / softcap)` of that,
    - with a `bias`, that plus the bias, which may be -inf: it masks the key. With `bias_covers`,
      scores of at most -1e30 are the bias alone, in which any product is lost: no gradient goes to
      the product, not even in a row that is masked as a whole.

    `result` is `sum(exp(x - max) * share * v)` over the keys, where `max` is the row's largest
    score and `share` is `1 / sum(exp(x - max))`. A row whose scores are all -inf has a share
    of 0, the lowest finite number as its maximum, and 0 as its result. Scores, statistics and
    sums are in f32, or f64 for f64; where `v` is narrower, `result` is rounded once.

    - (C1) `q`, `k` and `v` have one element type, at least two dimensions, and the same batch
      dimensions; `k` has the last dimension of `q`, and `v` the last but one of `k`.
    - (C2) `bias` has the rank and element type of the scores, [B..., Tq, Tk]; each of its
      dimensions is theirs or 1.
    - (C3) `result` has the shape [B..., Tq, C] and the element type of `v`; `max` and `share`
      have the shape [B..., Tq] and the element type of the scores.
    - (C4) `scale` is finite; `softcap` is finite and above 0.

    ```mlir
    func.func @example(%q: tensor<2x8x4xf32>, %k: tensor<2x9x4xf32>, %v: tensor<2x9x5xf32>,
                       %mask: tensor<1x8x9xf32>) -> tensor<2x8x5xf32> {
      %result, %max, %share = norm.attention %q, %k, %v bias(%mask : tensor<1x8x9xf32>)
          {scale = 0.5 : f64} : tensor<2x8x4xf32>, tensor<2x9x4xf32>, tensor<2x9x5xf32>
          -> tensor<2x8x5xf32>, tensor<2x8xf32>
      return %result : tensor<2x8x5xf32>
    }
    ```
  }];
  let arguments = (ins Norm_NarrowTensor:$q, Norm_NarrowTensor:$k, Norm_NarrowTensor:$v,
                       Optional<Norm_Tensor>:$bias, F64Attr:$scale,
                       OptionalAttr<F64Attr>:$softcap, UnitAttr:$bias_covers);
  let results = (outs Norm_NarrowTensor:$result, Norm_Tensor:$max, Norm_Tensor:$share);
  let assemblyFormat = [{
    $q `,` $k `,` $v (`bias` `(` $bias^ `:` type($bias) `)`)? attr-dict `:` type($q) `,`
    type($k) `,` type($v) `->` type($result) `,` type($max)
  }];
}

def Norm_AttentionVjpOp
    : Norm_Op<"attention_vjp", [AllTypesMatch<["dresult", "result"]>, AllTypesMatch<["q", "dq"]>,
                                AllTypesMatch<["k", "dk"]>, AllTypesMatch<["v", "dv"]>,
                                AllTypesMatch<["max", "share"]>]> {
  let summary = "The gradients of `attention`, from that of its result.";
  let description = [{
    With the scores x of `attention`, computed again, `p = exp(x - max) * share`,
    `dp = sum(dresult * v)` and `delta = sum(dresult * result)`, both over C, where `delta` may be
    computed as `sum(p * dp)` over the keys, which is the same:

    - `dbias = p * (dp - delta)`, summed over the dimensions in which `bias` is repeated
    - `ds = p * (dp - delta) * scale`, with a `softcap` times `1 - tanh(scale * sum(q * k) /
      softcap)^2`, and with `bias_covers` 0 where the score is at most -1e30
    - `dq = sum(ds * k)` and `dv = sum(p * dresult)`, `dk = sum(ds * q)`, over keys and queries.

    `result`, `max` and `share` are those of `attention`.

    - (C1) to (C4) are those of `attention`.
    - (C5) `dbias` is given exactly if `bias` is, and has its type.

    ```mlir
    func.func @example(%dy: tensor<8x5xf32>, %q: tensor<8x4xf32>, %k: tensor<9x4xf32>,
                       %v: tensor<9x5xf32>, %y: tensor<8x5xf32>, %max: tensor<8xf32>,
                       %share: tensor<8xf32>) -> tensor<8x4xf32> {
      %dq, %dk, %dv = norm.attention_vjp %dy, %q, %k, %v, %y, %max, %share {scale = 0.5 : f64}
          : tensor<8x4xf32>, tensor<9x4xf32>, tensor<9x5xf32> -> tensor<8x5xf32>, tensor<8xf32>
      return %dq : tensor<8x4xf32>
    }
    ```
  }];
  let arguments = (ins Norm_NarrowTensor:$dresult, Norm_NarrowTensor:$q, Norm_NarrowTensor:$k,
                       Norm_NarrowTensor:$v, Optional<Norm_Tensor>:$bias,
                       Norm_NarrowTensor:$result, Norm_Tensor:$max, Norm_Tensor:$share,
                       F64Attr:$scale, OptionalAttr<F64Attr>:$softcap, UnitAttr:$bias_covers);
  let results = (outs Norm_NarrowTensor:$dq, Norm_NarrowTensor:$dk, Norm_NarrowTensor:$dv,
                      Optional<Norm_Tensor>:$dbias);
  let assemblyFormat = [{
    $dresult `,` $q `,` $k `,` $v `,` $result `,` $max `,` $share
    (`bias` `(` $bias^ `:` type($bias) `)`)? attr-dict `:` type($q) `,` type($k) `,` type($v)
    `->` type($result) `,` type($max) (`,` type($dbias)^)?
  }];
}

def Norm_GeluOp : Norm_Op<"gelu", [AllTypesMatch<["x", "result"]>,
                                   DeclareOpInterfaceMethods<DifferentiableOpInterface>]> {
  let summary = "x times the normal distribution's share below x.";
  let description = [{
    `x / 2 * erfc(-x / sqrt(2))`, for each element (Hendrycks and Gimpel 2016). Other
    than `1 + erf(x / sqrt(2))`, the complement keeps its digits where x is far below 0.

    With `tanh_factor` k, its approximation `x / 2 * (1 + tanh(k * (x + 0.044715 * x^3)))`;
    k is `sqrt(2 / pi)`, or what a front end has for that.

    - (C1) `tanh_factor` is finite.

    ```mlir
    func.func @example(%x: tensor<4x10xf32>) -> tensor<4x10xf32> {
      %y = norm.gelu %x : tensor<4x10xf32>
      return %y : tensor<4x10xf32>
    }
    ```
  }];
  let arguments = (ins Norm_Tensor:$x, OptionalAttr<F64Attr>:$tanh_factor);
  let results = (outs Norm_Tensor:$result);
  let assemblyFormat = "$x attr-dict `:` type($x)";
}

def Norm_GeluVjpOp : Norm_Op<"gelu_vjp", [AllTypesMatch<["dy", "x", "dx"]>]> {
  let summary = "The gradient of `gelu`, from that of its result.";
  let description = [{
    `dx = dy * (erfc(-x / sqrt(2)) / 2 + x * exp(-x^2 / 2) / sqrt(2 * pi))`, for each
    element. With `tanh_factor` k and `t = tanh(k * (x + 0.044715 * x^3))`,
    `dx = dy * ((1 + t) / 2 + x / 2 * (1 - t) * (1 + t) * k * (1 + 0.134145 * x^2))`.

    - (C1) `tanh_factor` is finite.

    ```mlir
    func.func @example(%dy: tensor<4x10xf32>, %x: tensor<4x10xf32>) -> tensor<4x10xf32> {
      %dx = norm.gelu_vjp %dy, %x {tanh_factor = 0.79788456080286541 : f64} : tensor<4x10xf32>
      return %dx : tensor<4x10xf32>
    }
    ```
  }];
  let arguments = (ins Norm_Tensor:$dy, Norm_Tensor:$x, OptionalAttr<F64Attr>:$tanh_factor);
  let results = (outs Norm_Tensor:$dx);
  let assemblyFormat = "$dy `,` $x attr-dict `:` type($x)";
}

def Norm_SiluOp : Norm_Op<"silu", [AllTypesMatch<["x", "result"]>,
                                   DeclareOpInterfaceMethods<DifferentiableOpInterface>]> {
  let summary = "x times its logistic function, also called swish.";
  let description = [{
    `x / (1 + exp(-x))`, for each element.

    ```mlir
    func.func @example(%x: tensor<4x10xf32>) -> tensor<4x10xf32> {
      %y = norm.silu %x : tensor<4x10xf32>
      return %y : tensor<4x10xf32>
    }
    ```
  }];
  let arguments = (ins Norm_Tensor:$x);
  let results = (outs Norm_Tensor:$result);
  let assemblyFormat = "$x attr-dict `:` type($x)";
  let hasVerifier = 0;
}

def Norm_SiluVjpOp : Norm_Op<"silu_vjp", [AllTypesMatch<["dy", "x", "dx"]>]> {
  let summary = "The gradient of `silu`, from that of its result.";
  let description = [{
    `dx = dy * s * (1 + x * (1 - s))` with `s = 1 / (1 + exp(-x))`, for each element.
    Both `s` and `1 - s` are made from `exp(-|x|)`, which neither overflows nor cancels.

    ```mlir
    func.func @example(%dy: tensor<4x10xf32>, %x: tensor<4x10xf32>) -> tensor<4x10xf32> {
      %dx = norm.silu_vjp %dy, %x : tensor<4x10xf32>
      return %dx : tensor<4x10xf32>
    }
    ```
  }];
  let arguments = (ins Norm_Tensor:$dy, Norm_Tensor:$x);
  let results = (outs Norm_Tensor:$dx);
  let assemblyFormat = "$dy `,` $x attr-dict `:` type($x)";
  let hasVerifier = 0;
}

def Norm_Keys : StaticShapeTensorOf<[I1, I8, I16, I32, I64, F16, BF16, F32, F64]>;
def Norm_Order : StaticShapeTensorOf<[I32]>;

def Norm_ArgsortOp : Norm_Op<"argsort"> {
  let summary = "The numbers of a row's elements in sorted order.";
  let description = [{
    For each row of the last dimension, the elements' numbers in ascending order of
    the first key, equal ones in that of the second, and so on; elements that are
    equal in all keys keep their order. If the result's rows are shorter, they have
    the first elements of that order.

    Integers are signed, of booleans false comes first. The two zeros of a float are
    equal. NaNs are equal and the largest. With `descending`, larger elements come
    first, and equal ones still keep their order.

    - (C1) There is a key, and all keys have the same shape, of rank 1 or more, whose
      last dimension is in [1, 2^30].
    - (C2) The result has that shape, or a last dimension that is shorter, from 1 on.

    ```mlir
    func.func @example(%x: tensor<4x10xf32>, %y: tensor<4x10xi64>) -> tensor<4x3xi32> {
      %order = norm.argsort %x, %y {descending}
          : tensor<4x10xf32>, tensor<4x10xi64> -> tensor<4x3xi32>
      return %order : tensor<4x3xi32>
    }
    ```
  }];
  let arguments = (ins Variadic<Norm_Keys>:$keys, UnitAttr:$descending);
  let results = (outs Norm_Order:$order);
  let assemblyFormat = "$keys attr-dict `:` type($keys) `->` type($order)";
}

#endif // WEIR_DIALECTS_NORM_TD

//===- Matrix.td - Factorizations of small matrices -----------------------===//

#ifndef WEIR_DIALECTS_MATRIX_TD
#define WEIR_DIALECTS_MATRIX_TD

include "dialects/Autodiff/Differentiable.td"
include "mlir/IR/OpBase.td"
include "mlir/Interfaces/SideEffectInterfaces.td"

def Matrix_Dialect : Dialect {
  let name = "matrix";
  let cppNamespace = "::weir::matrix";
  let summary = "Factorizations of matrices, and what is solved with them.";
  let dependentDialects = ["::mlir::arith::ArithDialect", "::mlir::linalg::LinalgDialect",
                           "::mlir::math::MathDialect", "::mlir::tensor::TensorDialect"];
  let description = [{
    Ops on tensors [.., rows, columns] of static shape: a matrix for each index of the
    dimensions in front, the batch. All operands of an op have the same batch. Gone at
    the `kernels` level: weir-decompose-matrices makes loops of `linalg` ops of them,
    which define what they compute.

    A matrix that has no such factorization gives NaN or infinite elements, never an
    error; other matrices of the batch are not affected.
  }];
}

def Matrix_Tensor : StaticShapeTensorOf<[F32, F64]>;
def Matrix_Numbers : StaticShapeTensorOf<[I32]>;

class Matrix_Op<string mnemonic, list<Trait> traits = []>
    : Op<Matrix_Dialect, mnemonic, [Pure] # traits> {
  let hasVerifier = 1;
}

def Matrix_CholeskyOp
    : Matrix_Op<"cholesky", [AllTypesMatch<["a", "result"]>,
                             DeclareOpInterfaceMethods<DifferentiableOpInterface>]> {
  let summary = "The lower triangular L with L L^T = A.";
  let description = [{
    Reads the lower triangle of `a`; the result is 0 above its diagonal. If a leading
    minor is not positive, the diagonal has a NaN in the row of the first such one, and
    no NaN before, unless `a` has. The gradient is symmetric: half of it belongs to the
    triangle that is not read.

    - (C1) the last two dimensions of `a` are equal.

    ```mlir
    func.func @example(%a: tensor<2x3x3xf32>) -> tensor<2x3x3xf32> {
      %l = matrix.cholesky %a : tensor<2x3x3xf32>
      return %l : tensor<2x3x3xf32>
    }
    ```
  }];
  let arguments = (ins Matrix_Tensor:$a);
  let results = (outs Matrix_Tensor:$result);
  let assemblyFormat = "$a attr-dict `:` type($a)";
}

def Matrix_TriangularSolveOp
    : Matrix_Op<"triangular_solve", [AllTypesMatch<["b", "result"]>,
                                     DeclareOpInterfaceMethods<DifferentiableOpInterface>]> {
  let summary = "The X with A X = B, A triangular.";
  let description = [{
    Reads the lower triangle of `a`, or with `upper` the upper one. With `transposed` the
    equation is A^T X = B. With `unit_diagonal` the diagonal is not read, and is 1.

    - (C1) the last two dimensions of `a` are equal.
    - (C2) `b` has the batch, the rows and the element type of `a`.

    ```mlir
    func.func @example(%a: tensor<3x3xf32>, %b: tensor<3x5xf32>) -> tensor<3x5xf32> {
      %x = matrix.triangular_solve %a, %b {upper, transposed}
          : tensor<3x3xf32>, tensor<3x5xf32>
      return %x : tensor<3x5xf32>
    }
    ```
  }];
  let arguments = (ins Matrix_Tensor:$a, Matrix_Tensor:$b, UnitAttr:$upper, UnitAttr:$transposed,
                       UnitAttr:$unit_diagonal);
  let results = (outs Matrix_Tensor:$result);
  let assemblyFormat = "$a `,` $b attr-dict `:` type($a) `,` type($b)";
}

def Matrix_SolveOp
    : Matrix_Op<"solve", [AllTypesMatch<["b", "result"]>,
                          DeclareOpInterfaceMethods<DifferentiableOpInterface>]> {
  let summary = "The X with A X = B.";
  let description = [{
    By `lu` and two `triangular_solve`. With `transposed` the equation is A^T X = B.

    - (C1) the last two dimensions of `a` are equal.
    - (C2) `b` has the batch, the rows and the element type of `a`.

    ```mlir
    func.func @example(%a: tensor<3x3xf32>, %b: tensor<3x5xf32>) -> tensor<3x5xf32> {
      %x = matrix.solve %a, %b : tensor<3x3xf32>, tensor<3x5xf32>
      return %x : tensor<3x5xf32>
    }
    ```
  }];
  let arguments = (ins Matrix_Tensor:$a, Matrix_Tensor:$b, UnitAttr:$transposed);
  let results = (outs Matrix_Tensor:$result);
  let assemblyFormat = "$a `,` $b attr-dict `:` type($a) `,` type($b)";
}

def Matrix_LuOp
    : Matrix_Op<"lu", [AllTypesMatch<["a", "lu"]>,
                       DeclareOpInterfaceMethods<DifferentiableOpInterface>]> {
  let summary = "L U with exchanged rows, in one matrix.";
  let description = [{
    With k the smaller of rows and columns, `lu` has U on and above its diagonal and L
    below, whose own diagonal is 1. Step i of k exchanges row i with row `pivots[i]`,
    which has the largest magnitude of column i from row i on, the first of equal ones.
    Row i of L U is row `permutation[i]` of `a`. A column of zeros leaves zeros in L, and
    a 0 on the diagonal of U.

    - (C1) `pivots` has the batch of `a` and k elements, `permutation` as many as rows.

    ```mlir
    func.func @example(%a: tensor<3x5xf32>) -> (tensor<3x5xf32>, tensor<3xi32>, tensor<3xi32>) {
      %lu, %pivots, %order = matrix.lu %a : tensor<3x5xf32>, tensor<3xi32>, tensor<3xi32>
      return %lu, %pivots, %order : tensor<3x5xf32>, tensor<3xi32>, tensor<3xi32>
    }
    ```
  }];
  let arguments = (ins Matrix_Tensor:$a);
  let results = (outs Matrix_Tensor:$lu, Matrix_Numbers:$pivots, Matrix_Numbers:$permutation);
  let assemblyFormat = "$a attr-dict `:` type($a) `,` type($pivots) `,` type($permutation)";
}

def Matrix_HouseholderOp : Matrix_Op<"householder", [AllTypesMatch<["a", "packed"]>]> {
  let summary = "R and the reflections that make it of A.";
  let description = [{
    With k the smaller of rows and columns, reflection i of k is 1 - t v v^T: t is `factors[i]`,
    v has zeros, then 1 in row i, and then what `packed` has below the diagonal of column i. On
    and above the diagonal `packed` has R. The reflections turn column i to minus its sign times
    its length; one whose column is 0 below the diagonal has the factor 0. (LAPACK's `geqrf`.)

    - (C1) `factors` has the batch of `a` and k elements.

    ```mlir
    func.func @example(%a: tensor<5x3xf32>) -> (tensor<5x3xf32>, tensor<3xf32>) {
      %packed, %factors = matrix.householder %a : tensor<5x3xf32>, tensor<3xf32>
      return %packed, %factors : tensor<5x3xf32>, tensor<3xf32>
    }
    ```
  }];
  let arguments = (ins Matrix_Tensor:$a);
  let results = (outs Matrix_Tensor:$packed, Matrix_Tensor:$factors);
  let assemblyFormat = "$a attr-dict `:` type($a) `,` type($factors)";
}

def Matrix_HouseholderProductOp : Matrix_Op<"householder_product"> {
  let summary = "The first columns of a product of reflections.";
  let description = [{
    The reflections are those that `packed` and `factors` hold as `householder` gives them, the
    first one on the left. (LAPACK's `orgqr`.)

    - (C1) `factors` has the batch of `packed`, and at most as many elements as rows or columns.
    - (C2) the result has the batch and rows of `packed`, and at most as many columns as rows.

    ```mlir
    func.func @example(%packed: tensor<5x3xf32>, %factors: tensor<3xf32>) -> tensor<5x3xf32> {
      %q = matrix.householder_product %packed, %factors
          : tensor<5x3xf32>, tensor<3xf32> -> tensor<5x3xf32>
      return %q : tensor<5x3xf32>
    }
    ```
  }];
  let arguments = (ins Matrix_Tensor:$packed, Matrix_Tensor:$factors);
  let results = (outs Matrix_Tensor:$result);
  let assemblyFormat = [{
    $packed `,` $factors attr-dict `:` type($packed) `,` type($factors) `->` type($result)
  }];
}

def Matrix_QrOp
    : Matrix_Op<"qr", [DeclareOpInterfaceMethods<DifferentiableOpInterface>]> {
  let summary = "Q R with orthonormal columns Q and upper triangular R.";
  let description = [{
    By `householder`; the diagonal of R may be negative. Q has as many columns as R has rows:
    k, the smaller of rows and columns of `a`, or all rows. There is no gradient where Q has
    more columns than k.

    - (C1) `q` and `r` have the batch and the element type of `a`, `q` its rows, `r` its columns.
    - (C2) `q` has k columns, or as many as rows, and `r` as many rows.

    ```mlir
    func.func @example(%a: tensor<5x3xf32>) -> (tensor<5x3xf32>, tensor<3x3xf32>) {
      %q, %r = matrix.qr %a : tensor<5x3xf32> -> tensor<5x3xf32>, tensor<3x3xf32>
      return %q, %r : tensor<5x3xf32>, tensor<3x3xf32>
    }
    ```
  }];
  let arguments = (ins Matrix_Tensor:$a);
  let results = (outs Matrix_Tensor:$q, Matrix_Tensor:$r);
  let assemblyFormat = "$a attr-dict `:` type($a) `->` type($q) `,` type($r)";
}

def Matrix_EighOp
    : Matrix_Op<"eigh", [AllTypesMatch<["a", "vectors"]>,
                         DeclareOpInterfaceMethods<DifferentiableOpInterface>]> {
  let summary = "Eigenvalues and eigenvectors of a symmetric matrix.";
  let description = [{
    Reads the lower triangle of `a`, or with `upper` the upper one. By a fixed number of
    sweeps of Jacobi's rotations, pairs of one round at once. `values` rise, NaNs come last; column i of `vectors` belongs
    to `values[i]`, has length 1, and the first of its largest magnitudes is positive.

    In the gradient, 1 / (value_j - value_i) is 0 where the two differ by at most n times the
    epsilon of the type times the largest magnitude of the n values.

    - (C1) the last two dimensions of `a` are equal.
    - (C2) `values` has the batch of `a` and as many elements as rows.

    ```mlir
    func.func @example(%a: tensor<3x3xf32>) -> (tensor<3xf32>, tensor<3x3xf32>) {
      %values, %vectors = matrix.eigh %a : tensor<3xf32>, tensor<3x3xf32>
      return %values, %vectors : tensor<3xf32>, tensor<3x3xf32>
    }
    ```
  }];
  let arguments = (ins Matrix_Tensor:$a, UnitAttr:$upper);
  let results = (outs Matrix_Tensor:$values, Matrix_Tensor:$vectors);
  let assemblyFormat = "$a attr-dict `:` type($values) `,` type($a)";
}

def Matrix_SvdOp
    : Matrix_Op<"svd", [DeclareOpInterfaceMethods<DifferentiableOpInterface>]> {
  let summary = "U diag(s) V^T with orthonormal columns U and V.";
  let description = [{
    Uses a fixed number of sweeps of one-sided Jacobi rotations. `s` is descending and not negative.
    The first of the largest magnitudes of each of the first k rows of `vt` is positive, where k
    is the smaller of rows and columns. Where `u` has all rows as columns, or `vt` all columns as
    rows, the others complete a basis.

    In the gradient, 1 / (s_j - s_i) and 1 / s_i are 0 where the denominator is at most k times
    the epsilon of the type times the largest value. There is no gradient where `u` or `vt`
    completes a basis.

    - (C1) all have the batch and element type of `a`; `s` has k elements, `u` the rows of `a`,
      `vt` its columns.
    - (C2) `u` has k columns, or as many as rows; `vt` has k rows, or as many as columns.

    ```mlir
    func.func @example(%a: tensor<5x3xf32>)
        -> (tensor<5x3xf32>, tensor<3xf32>, tensor<3x3xf32>) {
      %u, %s, %vt = matrix.svd %a
          : tensor<5x3xf32> -> tensor<5x3xf32>, tensor<3xf32>, tensor<3x3xf32>
      return %u, %s, %vt : tensor<5x3xf32>, tensor<3xf32>, tensor<3x3xf32>
    }
    ```
  }];
  let arguments = (ins Matrix_Tensor:$a);
  let results = (outs Matrix_Tensor:$u, Matrix_Tensor:$s, Matrix_Tensor:$vt);
  let assemblyFormat = "$a attr-dict `:` type($a) `->` type($u) `,` type($s) `,` type($vt)";
}

#endif // WEIR_DIALECTS_MATRIX_TD

//===- Autodiff.td - The autodiff dialect ------------------------------------------===//

#ifndef WEIR_DIALECTS_AUTODIFF_TD
#define WEIR_DIALECTS_AUTODIFF_TD

include "mlir/IR/OpBase.td"
include "mlir/IR/SymbolInterfaces.td"

def Autodiff_Dialect : Dialect {
  let name = "autodiff";
  let cppNamespace = "::weir::autodiff";
  let summary = "Derivatives of functions, before they are expanded.";
  let description = [{
    Ops on ranked tensors that name a function at the `graph` level. They are gone
    at the `gradient` level: weir-differentiate puts forward and backward in their
    place.
  }];
}

class Autodiff_Op<string mnemonic, list<Trait> traits = []>
    : Op<Autodiff_Dialect, mnemonic, traits>;

def Autodiff_VjpOp
    : Autodiff_Op<"vjp", [AttrSizedOperandSegments,
                          DeclareOpInterfaceMethods<SymbolUserOpInterface>]> {
  let summary = "A function's results, and the gradients of some of its arguments.";
  let description = [{
    Calls `callee` with `arguments`. Its results come first, then for each argument
    numbered in `wanted`, in that order, the sum over the results numbered in
    `seeded` of cotangent times derivative. The other results count as if their
    cotangents were 0. An argument that no seeded result depends on has gradient 0.

    - (C1) `callee` is a function of one block in the same module.
    - (C2) `arguments` have the types of its arguments.
    - (C3) `seeded` rises, each number that of a float tensor among the results of
      `callee`, whose types `cotangents` have.
    - (C4) `wanted` rises, each number that of a float tensor among the arguments.
    - (C5) the results have the types of those of `callee`, then of the arguments
      that are wanted.

    ```mlir
    func.func @square(%x: tensor<4xf32>) -> tensor<4xf32> {
      %empty = tensor.empty() : tensor<4xf32>
      %y = linalg.mul ins(%x, %x : tensor<4xf32>, tensor<4xf32>) outs(%empty : tensor<4xf32>)
           -> tensor<4xf32>
      return %y : tensor<4xf32>
    }
    func.func @example(%x: tensor<4xf32>, %dy: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
      %y, %dx = autodiff.vjp @square(%x) seeded [0] (%dy) wanted [0]
          : (tensor<4xf32>, tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>)
      return %y, %dx : tensor<4xf32>, tensor<4xf32>
    }
    ```
  }];
  let arguments = (ins FlatSymbolRefAttr:$callee, Variadic<AnyRankedTensor>:$arguments,
                       Variadic<AnyRankedTensor>:$cotangents, DenseI64ArrayAttr:$seeded,
                       DenseI64ArrayAttr:$wanted);
  let results = (outs Variadic<AnyRankedTensor>:$results);
  let assemblyFormat = [{
    $callee `(` $arguments `)` `seeded` $seeded `(` $cotangents `)` `wanted` $wanted attr-dict `:`
    functional-type(operands, results)
  }];
}

#endif // WEIR_DIALECTS_AUTODIFF_TD

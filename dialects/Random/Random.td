//===- Random.td - Numbers from a counter-based generator ---------------------------===//

#ifndef WEIR_DIALECTS_RANDOM_TD
#define WEIR_DIALECTS_RANDOM_TD

include "mlir/IR/OpBase.td"
include "mlir/Interfaces/SideEffectInterfaces.td"

def Random_Dialect : Dialect {
  let name = "random";
  let cppNamespace = "::weir::random";
  let summary = "Random numbers as functions of a seed and a counter.";
  let description = [{
    Ops on ranked tensors of static shape. They have no hidden state: equal operands
    and attributes give equal bits, on every device. They are gone at the `gradient`
    level (weir-expand-random).
  }];
}

def Random_Number : Type<0DTensorOf<[I64]>.predicate, "0D tensor of 64-bit signless integer values",
                         "::mlir::RankedTensorType">,
                    BuildableType<"::mlir::RankedTensorType::get({}, $_builder.getI64Type())">;

class Random_Op<string mnemonic, list<Trait> traits = []>
    : Op<Random_Dialect, mnemonic, traits>;

def Random_UniformOp : Random_Op<"uniform", [Pure]> {
  let summary = "Numbers of [0, 1), each a multiple of 2^-24.";
  let description = [{
    Element i, counted row by row, is (w >> 8) * 2^-24. w is word i mod 4 of the
    Philox4x32-10 block with key (low and high half of `seed`) and counter
    (i / 4, `stream`, low and high half of `step`). Ops of one function differ in
    `stream`, runs in `step`.

    Source: Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", SC 2011.

    - (C1) `stream` is in [0, 2^32).
    - (C2) the result has at most 2^34 elements.

    ```mlir
    func.func @example(%seed: tensor<i64>, %step: tensor<i64>) -> tensor<4x8xf32> {
      %u = random.uniform %seed, %step stream 3 : tensor<4x8xf32>
      return %u : tensor<4x8xf32>
    }
    ```
  }];
  let arguments = (ins Random_Number:$seed, Random_Number:$step, I64Attr:$stream);
  let results = (outs StaticShapeTensorOf<[F32]>:$result);
  let assemblyFormat = "$seed `,` $step `stream` $stream attr-dict `:` type($result)";
  let hasVerifier = 1;
}

#endif // WEIR_DIALECTS_RANDOM_TD

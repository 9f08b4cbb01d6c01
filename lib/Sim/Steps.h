//===- Steps.h - What one step computes -------------------------*- C++ -*-===//

#ifndef WEIR_LIB_SIM_STEPS_H
#define WEIR_LIB_SIM_STEPS_H

#include "Program.h"

namespace weir::sim {

/// What a scalar is in a register. Shorter types than 32 bits are widened before
/// and narrowed after.
enum class Number { U32, U64, F32, F64 };

/// Functions of one scalar operation: `to` = op(`a`, `b`, `c`). Null when there is no
/// such operation. Integers are the same signed and unsigned but for the opcode.
StepFunction findStep(spv::Op op, Number number);
StepFunction findStep(spv::Glsl op, Number number);

/// Functions of OpGroupNonUniformIAdd and the like, of the active lanes in their order:
/// `to` = the `Reduction` that `number` says, of `a`; `b` is what none of them give.
StepFunction findReduction(spv::Op op, Number number);

/// Conversions; `number` is the immediate of some.
enum class Convert {
  Copy32,
  Copy64,
  Mask,        ///< U32: the low `number` bits
  SignExtend,  ///< U32: from `number` bits
  SignedToU64, ///< U32 to U64
  U32ToU64,
  U64ToU32,
  HalfToF32,
  HalfToF64,
  F32ToHalf,
  F64ToHalf,
  F32ToF64,
  F64ToF32,
  S32ToF32,
  S32ToF64,
  U32ToF32,
  U32ToF64,
  S64ToF32,
  S64ToF64,
  U64ToF32,
  U64ToF64,
  F32ToS32,
  F32ToU32,
  F32ToS64,
  F32ToU64,
  F64ToS32,
  F64ToU32,
  F64ToS64,
  F64ToU64,
  Select32, ///< `to` = `a` ? `b` : `c`
  Select64,
  Index32, ///< `to` = `a` + `b` * `number`, with `b` of 32 bits and a sign, `to` 64
  Index64,
  Extract32, ///< `to` = scalar `b` of `number` scalars that lie in a row from `a`
  Extract64,
  Insert32, ///< as `Extract`, `to` the first of the row, `c` what is put there
  Insert64
};
StepFunction getStep(Convert convert);

} // namespace weir::sim

#endif // WEIR_LIB_SIM_STEPS_H

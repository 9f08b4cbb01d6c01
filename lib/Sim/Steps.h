//===- Steps.h - Steps of scalar operations ---------------------*- C++ -*-===//

#ifndef WEIR_LIB_SIM_STEPS_H
#define WEIR_LIB_SIM_STEPS_H

#include "Program.h"

namespace weir::sim {

/// The type of a scalar in a register. Types shorter than 32 bits are widened before an
/// operation and narrowed after it.
enum class Number { U32, U64, F32, F64 };

/// Returns the step of a scalar operation, `to` = op(`a`, `b`, `c`), or null if there is none.
/// For integers the opcode alone decides the sign.
StepFunction findStep(spv::Op op, Number number);
StepFunction findStep(spv::Glsl op, Number number);

/// Returns the step of OpGroupNonUniformIAdd and the like over the active lanes in order: `to`
/// = reduction of `a` over the lanes given by `number`, a `Reduction`; `b` is the identity.
StepFunction findReduction(spv::Op op, Number number);

/// Conversions; some use the immediate `number`.
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
  Index32, ///< `to` = `a` + `b` * `number`, with signed 32-bit `b` and 64-bit `to`
  Index64,
  Extract32, ///< `to` = scalar `b` of the `number` adjacent scalars from `a` on
  Extract64,
  Insert32, ///< replaces scalar `b` of the `number` adjacent scalars from `to` on by `c`
  Insert64
};
StepFunction getStep(Convert convert);

} // namespace weir::sim

#endif // WEIR_LIB_SIM_STEPS_H

//===- PtxSteps.h - Steps of instructions of PTX ----------------*- C++ -*-===//

#ifndef WEIR_LIB_SIM_PTXSTEPS_H
#define WEIR_LIB_SIM_PTXSTEPS_H

#include "Program.h"

#include <string>
#include <vector>

namespace weir::sim {

/// The step of an instruction that has its PTX name: `to` = f(`a`, `b`, `c`).
struct NamedStep {
  StepFunction run = nullptr;
  /// Bits of the registers of result and operands: 32 or 64. A shorter number is in the low bits
  /// of a register of 32.
  uint32_t resultBits = 32;
  std::vector<uint32_t> bits;
  bool isSigned = false; ///< whether the result is extended by its sign
  int64_t number = 0;
  size_t constants = 0; ///< last operands that are constants, given by `number`
};

/// Returns the step of an instruction, "fma.rn.f32"; without `run` if the simulator has none.
NamedStep findNamedStep(const std::string &name);

} // namespace weir::sim

#endif // WEIR_LIB_SIM_PTXSTEPS_H

//===- CPUGate.cpp - What a kernel must be before it becomes machine code -===//
//
// Operations that LLVM lowers to calls of a C library are refused: the object that is made has
// no library, and functions of others have results that Weir does not state.
//
//===----------------------------------------------------------------------===//

#include "KernelGate.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "weir/Target/Cpu.h"

using namespace mlir;
using namespace weir;

namespace {
class CpuGate : public KernelGate {
  using KernelGate::KernelGate;

  StringRef getLanguage() const override { return "machine code"; }
  std::string findScalarError(Type) const override {
    return " has no representation in machine code here; there are index, i1, i8, i16, i32, i64, "
           "f16, bf16, f32, f64 and vectors of them";
  }
  std::string findOperationError(Operation *op) override;
  int64_t getMaxLanes() const override { return maxLanes; }
  bool isVectorAccess(Operation *) const override { return true; }

  static constexpr int64_t maxLanes = 64; // four of the longest registers of 32-bit elements
};
} // namespace

/// Whether all processors have an instruction, or a few, for an operation of `math`; exact but for
/// an fma where the profile has none.
static bool hasCpuInstructions(Operation *op) {
  return isa<math::AbsFOp, math::AbsIOp, math::CeilOp, math::CopySignOp, math::CountLeadingZerosOp,
             math::CountTrailingZerosOp, math::CtPopOp, math::FloorOp, math::FmaOp,
             math::IsFiniteOp, math::IsInfOp, math::IsNaNOp, math::IsNormalOp, math::RoundEvenOp,
             math::RoundOp, math::SqrtOp, math::TruncOp>(op);
}

std::string CpuGate::findOperationError(Operation *op) {
  if (isa<math::MathDialect>(op->getDialect()) && !hasCpuInstructions(op))
    return getMissingFunction(op);
  if (isa<memref::AtomicRMWOp, memref::GenericAtomicRMWOp>(op))
    return op->getName().getStringRef().str() + " has no lowering to machine code";
  return "";
}

LogicalResult weir::checkCpuKernel(gpu::GPUFuncOp kernel, const Profile &profile) {
  return CpuGate(kernel, profile).check();
}

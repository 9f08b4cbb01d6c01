//===- PTXGate.cpp - What a kernel must be before it becomes PTX ----------===//
//
// Upstream lowers most of `math` to calls into libdevice, whose results Weir
// does not state, and a shuffle of fewer lanes than a warp to one that some of
// its lanes don't take part in.
//
//===----------------------------------------------------------------------===//

#include "KernelGate.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "weir/Target/Ptx.h"

using namespace mlir;
using namespace weir;

namespace {
class PtxGate : public KernelGate {
  using KernelGate::KernelGate;

  StringRef getLanguage() const override { return "PTX"; }
  std::string findScalarError(Type type) const override {
    if (type.isF16() || type.isBF16() || type.isSignlessInteger(16))
      return "";
    return " has no representation in PTX here; there are index, i1, i8, i16, i32, i64, f16, "
           "bf16, f32, f64 and vectors of them";
  }
  std::string findOperationError(Operation *op) override;
  std::string findShuffleError(gpu::ShuffleOp shuffle);
};
} // namespace

/// Whether LLVM lowers an operation of `math` to instructions alone, all exact.
static bool hasPtxInstructions(Operation *op) {
  if (isa<math::SqrtOp>(op)) // of f32 it is Weir's own
    return getElementTypeOrSelf(op->getOperand(0)).isF64();
  return isa<math::AbsFOp, math::AbsIOp, math::CeilOp, math::CopySignOp, math::CountLeadingZerosOp,
             math::CountTrailingZerosOp, math::CtPopOp, math::FloorOp, math::FmaOp,
             math::IsFiniteOp, math::IsInfOp, math::IsNaNOp, math::IsNormalOp, math::RoundEvenOp,
             math::RoundOp, math::TruncOp>(op);
}

std::string PtxGate::findShuffleError(gpu::ShuffleOp shuffle) {
  APInt width;
  if (!matchPattern(shuffle.getWidth(), m_ConstantInt(&width)) ||
      width.getSExtValue() != profile.subgroupSize)
    return "shuffles other than among all " + std::to_string(profile.subgroupSize) +
           " invocations of a subgroup have no lowering";
  int64_t invocations = 1;
  for (int32_t size : kernel.getKnownBlockSize().value_or(ArrayRef<int32_t>()))
    invocations *= size;
  if (invocations % profile.subgroupSize)
    return "shuffles in a workgroup of " + std::to_string(invocations) +
           " invocations, which is not a multiple of the subgroup's " +
           std::to_string(profile.subgroupSize);
  return "";
}

std::string PtxGate::findOperationError(Operation *op) {
  std::string name = op->getName().getStringRef().str();
  if (auto shuffle = dyn_cast<gpu::ShuffleOp>(op))
    return findShuffleError(shuffle);
  if (isa<math::MathDialect>(op->getDialect()) && !hasPtxInstructions(op))
    return getMissingFunction(op);
  if (auto atomic = dyn_cast<memref::AtomicRMWOp>(op);
      atomic && isa<FloatType>(atomic.getValue().getType()))
    return name + " of floats leaves the order of the sum open";
  return "";
}

LogicalResult weir::checkPtxKernel(gpu::GPUFuncOp kernel, const Profile &profile) {
  return PtxGate(kernel, profile).check();
}

//===- SPIRVGate.cpp - What a kernel must be before it becomes SPIR-V -----===//
//
// Upstream's conversion takes some of what is refused here and lowers it
// wrongly, without a word: bf16 becomes packed f32, a group reduction reduces
// per subgroup, an index in memory changes its size.
//
//===----------------------------------------------------------------------===//

#include "KernelGate.h"
#include "weir/Target/Spirv.h"

using namespace mlir;
using namespace weir;

namespace {
class SpirvGate : public KernelGate {
  using KernelGate::KernelGate;

  StringRef getLanguage() const override { return "SPIR-V"; }
  std::string findScalarError(Type type) const override {
    return " has no representation in SPIR-V here; there are index, i1, i8, i32, i64, f32, f64 "
           "and vectors of them";
  }
  std::string findOperationError(Operation *op) override;
};
} // namespace

/// The operations of `math` that SPIR-V computes on f64, too.
static bool hasFloat64Form(Operation *op) {
  return isa<math::AbsFOp, math::CeilOp, math::CopySignOp, math::FloorOp, math::FmaOp,
             math::IsNaNOp, math::IsInfOp, math::RoundEvenOp, math::RsqrtOp, math::SqrtOp,
             math::TruncOp>(op);
}

std::string SpirvGate::findOperationError(Operation *op) {
  std::string name = op->getName().getStringRef().str();
  if (auto loop = dyn_cast<scf::ForOp>(op); loop && loop.getUnsignedCmp())
    return "an unsigned loop has no lowering";
  if (isa<scf::WhileOp>(op))
    return name + " has no lowering; the target bounds the trips of a loop";
  if (isa<math::MathDialect>(op->getDialect()) && op->getNumOperands() &&
      getElementTypeOrSelf(op->getOperand(0)).isF64() && !hasFloat64Form(op))
    return "f64 " + name + " has no lowering for target " + profile.name;
  return "";
}

LogicalResult weir::checkSpirvKernel(gpu::GPUFuncOp kernel, const Profile &profile) {
  return SpirvGate(kernel, profile).check();
}

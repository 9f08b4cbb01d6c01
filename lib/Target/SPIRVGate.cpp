//===- SPIRVGate.cpp - What a kernel must be before it becomes SPIR-V -----===//
//
// Upstream's conversion takes some of what is refused here and lowers it
// wrongly, without a word: bf16 becomes packed f32, a group reduction reduces
// per subgroup, an index in memory changes its size.
//
//===----------------------------------------------------------------------===//

#include "KernelGate.h"
#include "weir/Target/Halves.h"
#include "weir/Target/Spirv.h"

using namespace mlir;
using namespace weir;

namespace {
class SpirvGate : public KernelGate {
  using KernelGate::KernelGate;

  StringRef getLanguage() const override { return "SPIR-V"; }
  std::string findScalarError(Type type) const override {
    return " has no representation in SPIR-V here; there are index, i1, i8, i16, i32, i64, "
           "f16, bf16, f32, f64 and vectors of them";
  }
  bool isOwnType(Type type) const override { return isa<gpu::MMAMatrixType>(type); }
  std::string findOperationError(Operation *op) override;
};
} // namespace

/// Whether drivers agree on the results of an operation of `math`. Vulkan leaves the errors of
/// GLSL's other functions to them, and has none of these of f64.
static bool hasSpirvInstructions(Operation *op) {
  if (isa<math::RoundOp, math::CountLeadingZerosOp>(op)) {
    Type type = getElementTypeOrSelf(op->getOperand(0));
    return type.isF32() || type.isInteger(32);
  }
  return isa<math::AbsFOp, math::AbsIOp, math::CeilOp, math::CopySignOp, math::FloorOp, math::FmaOp,
             math::IsNaNOp, math::IsInfOp, math::RoundEvenOp, math::RsqrtOp, math::SqrtOp,
             math::TruncOp>(op);
}

std::string SpirvGate::findOperationError(Operation *op) {
  std::string name = op->getName().getStringRef().str();
  if (llvm::any_of(op->getOperandTypes(), llvm::IsaPred<gpu::MMAMatrixType>) ||
      llvm::any_of(op->getResultTypes(), llvm::IsaPred<gpu::MMAMatrixType>)) {
    if (!profile.cooperative.rows)
      return name + " needs a \"cooperative_matrix\", which target " + profile.name + " lacks";
    return isa<gpu::SubgroupMmaLoadMatrixOp, gpu::SubgroupMmaStoreMatrixOp,
               gpu::SubgroupMmaComputeOp, gpu::SubgroupMmaConstantMatrixOp, scf::ForOp,
               scf::YieldOp>(op)
               ? ""
               : name + " of cooperative matrices has no lowering";
  }
  if (computesInHalves(op))
    return name + " of f16 or bf16 has no lowering; weir-widen-arithmetic has one for graphs";
  if (auto loop = dyn_cast<scf::ForOp>(op); loop && loop.getUnsignedCmp())
    return "an unsigned loop has no lowering";
  if (isa<scf::WhileOp>(op))
    return name + " has no lowering; the target bounds the trips of a loop";
  if (isa<math::MathDialect>(op->getDialect()) && !hasSpirvInstructions(op))
    return getMissingFunction(op);
  return "";
}

LogicalResult weir::checkSpirvKernel(gpu::GPUFuncOp kernel, const Profile &profile) {
  return SpirvGate(kernel, profile).check();
}

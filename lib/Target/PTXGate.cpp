//===- PTXGate.cpp - What a kernel must be before it becomes PTX ----------===//
//
// Upstream lowers most of `math` to calls into libdevice, whose results Weir
// does not state, and a shuffle of fewer lanes than a warp to one that some of
// its lanes don't take part in.
//
//===----------------------------------------------------------------------===//

#include "KernelGate.h"
#include "dialects/Schedule/Schedule.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/NVGPU/IR/NVGPUDialect.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "weir/Target/Ptx.h"

using namespace mlir;
using namespace weir;

/// Bits of the widest load and store.
static constexpr int64_t vectorBits = 128;
/// Bits of a register.
static constexpr int64_t wordBits = 32;
/// The first GPUs with mma of bf16, with ldmatrix, and with copies to workgroup memory.
static constexpr int64_t matrixSm = 80;

namespace {
class PtxGate : public KernelGate {
  using KernelGate::KernelGate;

  StringRef getLanguage() const override { return "PTX"; }
  std::string findScalarError(Type type) const override {
    if (type.isF16() || type.isBF16() || type.isSignlessInteger(16) ||
        isa<nvgpu::DeviceAsyncTokenType>(type)) // of copies; no register holds it
      return "";
    return " has no representation in PTX here; there are index, i1, i8, i16, i32, i64, f16, "
           "bf16, f32, f64 and vectors of them";
  }
  int64_t getMaxLanes() const override { return 8; } // of 16 bits, in one access
  bool isOwnVector(VectorType type) const override;
  bool isVectorAccess(Operation *access) const override;
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

/// Whether these are eight neighbours of 16 bits, or a lane's part of a matrix: two or four words
/// of elements, or two pairs of sums.
bool PtxGate::isOwnVector(VectorType type) const {
  Type element = type.getElementType();
  bool isHalf = element.isF16() || element.isBF16();
  if (type.getRank() == 1 && element.isF32()) // an invocation's sums of a product by four subgroups
    return type.getNumElements() % 4 == 0 && type.getNumElements() <= 128;
  if (type.getRank() == 1)
    return isHalf && type.getNumElements() * 16 == vectorBits;
  if (type.getRank() != 2 || (!isHalf && !element.isF32()))
    return false;
  bool isSums = element.isF32() && type.getDimSize(0) == 2 && type.getDimSize(1) == 2;
  bool isFragment = (type.getDimSize(0) == 2 || type.getDimSize(0) == 4) &&
                    type.getDimSize(1) * element.getIntOrFloatBitWidth() == wordBits;
  return isSums || isFragment;
}

/// Whether the access states that it is aligned, so that it is one instruction.
bool PtxGate::isVectorAccess(Operation *access) const {
  auto isAligned = [](VectorType type, std::optional<uint64_t> alignment) {
    int64_t bits = type.getNumElements() * type.getElementTypeBitWidth();
    return bits <= vectorBits && alignment && int64_t(*alignment) * 8 == bits;
  };
  if (auto load = dyn_cast<vector::LoadOp>(access))
    return isAligned(load.getVectorType(), load.getAlignment());
  auto store = cast<vector::StoreOp>(access);
  return isAligned(store.getVectorType(), store.getAlignment());
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
  if (isa<nvgpu::LdMatrixOp, nvgpu::MmaSyncOp, NVVM::ConvertFloatToTF32Op, nvgpu::DeviceAsyncCopyOp,
          nvgpu::DeviceAsyncCreateGroupOp, nvgpu::DeviceAsyncWaitOp>(op))
    return profile.sm < matrixSm
               ? name + " needs an sm of " + std::to_string(matrixSm) + "; target " + profile.name +
                     " has " + std::to_string(profile.sm)
               : "";
  if (isa<schedule::GroupProductOp, NVVM::WgmmaFenceAlignedOp, NVVM::WgmmaGroupSyncAlignedOp,
          NVVM::WgmmaWaitGroupSyncOp, schedule::TileCopyOp, schedule::MBarrierInitOp,
          schedule::MBarrierExpectOp, schedule::MBarrierWaitOp>(op))
    return profile.isSmExact ? ""
                             : name + " needs target cuda:sm_90a; target " + profile.name +
                                   " is of " + profile.getChip();
  if (auto atomic = dyn_cast<memref::AtomicRMWOp>(op);
      atomic && isa<FloatType>(atomic.getValue().getType()))
    return name + " of floats leaves the order of the sum open";
  return "";
}

LogicalResult weir::checkPtxKernel(gpu::GPUFuncOp kernel, const Profile &profile) {
  return PtxGate(kernel, profile).check();
}

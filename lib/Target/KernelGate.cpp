//===- KernelGate.cpp - What both targets refuse --------------------------===//

#include "KernelGate.h"

#include "dialects/Schedule/Schedule.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;
using namespace weir;

InFlightDiagnostic KernelGate::fail(Operation *op) {
  failed = true;
  return op->emitError() << "kernel @" << kernel.getName() << ": ";
}

static std::string print(Type type) {
  std::string text;
  llvm::raw_string_ostream(text) << "'" << type << "'";
  return text;
}

std::string KernelGate::getMissing(StringRef capability, Type type) const {
  return "target " + profile.name + " has no " + capability.str() + ", needed for " + print(type);
}

std::string KernelGate::getMissingFunction(Operation *op) {
  Type type = op->getOperand(0).getType();
  std::string text = op->getName().getStringRef().str() + " of ";
  llvm::raw_string_ostream(text) << type << " has no exact lowering";
  if (isa<FloatType>(getElementTypeOrSelf(type)))
    text += "; weir-expand-math has one for f32 and f64";
  return text;
}

std::string KernelGate::findTypeError(Type type) const {
  if (isOwnType(type))
    return "";
  if (auto vector = dyn_cast<VectorType>(type)) {
    if (isOwnVector(vector))
      return findTypeError(vector.getElementType());
    if (vector.getRank() != 1 || vector.isScalable() || vector.getNumElements() > getMaxLanes())
      return print(type) + " is not a vector of 1 to " + std::to_string(getMaxLanes()) +
             " elements";
    return findTypeError(vector.getElementType());
  }
  if (type.isIndex() || type.isInteger(1) || type.isSignlessInteger(32) || type.isF32())
    return "";
  if (type.isSignlessInteger(8))
    return profile.storage8 ? "" : getMissing("8-bit storage", type);
  if (type.isSignlessInteger(16) || type.isF16() || type.isBF16())
    return profile.storage16 ? "" : getMissing("16-bit storage", type);
  if (type.isSignlessInteger(64))
    return profile.int64 ? "" : getMissing("64-bit integers", type);
  if (type.isF64())
    return profile.float64 ? "" : getMissing("64-bit floats", type);
  std::string error = findScalarError(type);
  return error.empty() ? "" : print(type) + error;
}

void KernelGate::checkMemory(Operation *op, MemRefType type) {
  if (type.getRank() != 1 || !type.hasStaticShape() || !type.getLayout().isIdentity()) {
    fail(op) << type << " is not a 1-D memref of static shape and identity layout";
    return;
  }
  auto space = dyn_cast_or_null<gpu::AddressSpaceAttr>(type.getMemorySpace());
  if (!space) {
    fail(op) << type << " has no #gpu.address_space";
    return;
  }
  if (type.getDimSize(0) == 0) {
    fail(op) << type << " has no elements, which " << getLanguage() << " cannot declare";
    return;
  }
  Type element = type.getElementType();
  if (std::string error = findTypeError(element); !error.empty()) {
    fail(op) << error;
    return;
  }
  // Their size in memory is the target's choice, not the plan's.
  Type scalar = getElementTypeOrSelf(element);
  if (scalar.isIndex() || scalar.isInteger(1)) {
    fail(op) << scalar << " in memory has no fixed size; store i8, i16, i32 or i64";
    return;
  }
  auto vector = dyn_cast<VectorType>(element);
  if (vector && (vector.getNumElements() < 2 || !llvm::isPowerOf2_64(vector.getNumElements()))) {
    fail(op) << element << " in memory is padded in " << getLanguage()
             << "; use a power of two of elements, at least 2";
    return;
  }
  if (type.getDimSize(0) > INT32_MAX)
    fail(op) << type << " has more elements than a 32-bit index reaches";
}

void KernelGate::checkSignature() {
  if (!kernel.isKernel()) {
    fail(kernel) << "is not a kernel; helper functions must be inlined before";
    return;
  }
  std::optional<ArrayRef<int32_t>> block = kernel.getKnownBlockSize();
  if (!block) {
    fail(kernel) << "has no known_block_size";
    return;
  }
  int64_t invocations = 1;
  for (int32_t size : *block)
    if (size < 1 || llvm::MulOverflow<int64_t>(invocations, size, invocations)) {
      fail(kernel) << "known_block_size must be positive";
      return;
    }
  if (invocations > profile.maxWorkgroupSize)
    fail(kernel) << "a workgroup of " << invocations << " invocations exceeds the "
                 << profile.maxWorkgroupSize << " of target " << profile.name;
  if (int64_t(kernel.getArgumentTypes().size()) > profile.storageBuffersPerStage)
    fail(kernel) << kernel.getArgumentTypes().size() << " operands exceed the "
                 << profile.storageBuffersPerStage << " storage buffers of target " << profile.name;

  for (auto [index, given] : llvm::enumerate(kernel.getArgumentTypes())) {
    auto type = dyn_cast<MemRefType>(given);
    auto space = type ? dyn_cast_or_null<gpu::AddressSpaceAttr>(type.getMemorySpace()) : nullptr;
    if (!space || space.getValue() != gpu::AddressSpace::Global) {
      fail(kernel) << "argument " << index << " of type " << given
                   << " is not a memref in #gpu.address_space<global>";
      continue;
    }
    checkMemory(kernel, type);
    std::optional<int64_t> bytes = schedule::getByteSize(type);
    if (bytes && *bytes > profile.bytesPerBinding)
      fail(kernel) << "argument " << index << " spans " << *bytes << " bytes, more than the "
                   << profile.bytesPerBinding << " that target " << profile.name << " binds";
  }
  int64_t shared = 0;
  for (BlockArgument attribution : kernel.getWorkgroupAttributions()) {
    auto type = cast<MemRefType>(attribution.getType());
    checkMemory(kernel, type);
    int64_t bytes = schedule::getByteSize(type).value_or(0);
    if (llvm::AddOverflow(shared, bytes, shared))
      shared = std::numeric_limits<int64_t>::max();
  }
  if (shared > profile.workgroupMemory)
    fail(kernel) << shared << " bytes of workgroup memory exceed the " << profile.workgroupMemory
                 << " of target " << profile.name
                 << "; compile for a profile with a larger workgroup_memory, if the device has it";
  for (BlockArgument attribution : kernel.getPrivateAttributions())
    checkMemory(kernel, cast<MemRefType>(attribution.getType()));
}

void KernelGate::checkOperation(Operation *op) {
  if (isa<gpu::AllReduceOp, gpu::SubgroupReduceOp, vector::ReductionOp>(op)) {
    fail(op) << op->getName() << " leaves the order of the sum open; use gpu.shuffle and arith";
    return;
  }
  if (isa<vector::TransferReadOp, vector::TransferWriteOp>(op) ||
      (isa<vector::LoadOp, vector::StoreOp>(op) && !isVectorAccess(op))) {
    fail(op) << op->getName() << " has no lowering; load and store elements of a memref of vectors";
    return;
  }
  if (isa<arith::RemFOp>(op)) {
    fail(op) << getMissingFunction(op);
    return;
  }
  if (isa<memref::AllocOp>(op)) {
    fail(op) << op->getName() << " is not kernel memory; use memref.alloca or an attribution";
    return;
  }
  if (auto alloca = dyn_cast<memref::AllocaOp>(op)) {
    auto space = dyn_cast_or_null<gpu::AddressSpaceAttr>(alloca.getType().getMemorySpace());
    if (!space || space.getValue() != gpu::AddressSpace::Private) {
      fail(op) << alloca.getType() << " is not a memref in #gpu.address_space<private>";
      return;
    }
  }
  if (std::string error = findOperationError(op); !error.empty()) {
    fail(op) << error;
    return;
  }
  auto checkType = [&](Type type) {
    if (auto memref = dyn_cast<MemRefType>(type)) {
      checkMemory(op, memref);
      return !failed;
    }
    std::string error = findTypeError(type);
    if (!error.empty())
      fail(op) << error;
    return error.empty();
  };
  // A value's type is told where it is made, once.
  for (Type type : op->getResultTypes())
    if (!checkType(type))
      return;
  for (Region &region : op->getRegions())
    for (BlockArgument argument : region.getArguments())
      if (!checkType(argument.getType()))
        return;
}

LogicalResult KernelGate::check() {
  checkSignature();
  kernel.getBody().walk([&](Operation *op) { checkOperation(op); });
  return failure(failed);
}

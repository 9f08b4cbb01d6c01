//===- EmitKernels.cpp - Steps of emitting that all targets share ---------===//
//
// Each kernel goes through a module of its own, so that what it declares is
// what it needs.
//
//===----------------------------------------------------------------------===//

#include "passes/emitted/EmitKernels.h"

#include "dialects/Schedule/Schedule.h"
#include "mlir/Dialect/NVGPU/IR/NVGPUDialect.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "llvm/ADT/ScopeExit.h"
#include "llvm/ADT/StringSet.h"

using namespace mlir;
using namespace weir;

static LogicalResult checkKernels(ModuleOp module, StringRef language,
                                  llvm::function_ref<LogicalResult(gpu::GPUFuncOp)> check) {
  bool good = true;
  llvm::StringSet<> taken;
  for (Operation &op : module.getOps())
    if (auto symbol = dyn_cast<SymbolOpInterface>(op); symbol && !isa<gpu::GPUModuleOp>(op))
      taken.insert(symbol.getName());
  for (auto kernels : module.getOps<gpu::GPUModuleOp>())
    for (Operation &op : kernels.getBody()->getOperations()) {
      auto kernel = dyn_cast<gpu::GPUFuncOp>(op);
      if (!kernel) {
        op.emitError() << "gpu.module @" << kernels.getName() << " holds " << op.getName()
                       << "; only kernels become " << language;
        good = false;
        continue;
      }
      if (!taken.insert(kernel.getName()).second) {
        kernel.emitError() << "kernel @" << kernel.getName()
                           << ": another symbol of the module has this name";
        good = false;
      }
      good &= succeeded(check(kernel));
    }
  return success(good);
}

/// Returns the alignment that a kernel needs of an operand: that of an element, of the vectors that
/// it loads, or of what it copies asynchronously.
static int64_t getAlignment(Value operand) {
  auto type = cast<MemRefType>(operand.getType());
  int64_t alignment = *schedule::getByteSize(type) / type.getNumElements();
  for (Operation *user : operand.getUsers())
    if (auto load = dyn_cast<vector::LoadOp>(user))
      alignment = std::max<int64_t>(alignment, load.getAlignment().value_or(1));
    else if (auto copy = dyn_cast<nvgpu::DeviceAsyncCopyOp>(user); copy && copy.getSrc() == operand)
      alignment = std::max<int64_t>(alignment, copy.getDstElementsAttr().getInt() *
                                                   type.getElementTypeBitWidth() / 8);
    else if (isa<schedule::TileCopyOp>(user)) // as a tensor map needs it
      alignment = std::max<int64_t>(alignment, 16);
  return alignment;
}

/// Returns effect, bytes and alignment of each operand, for gates and the packer. Effects
/// are those that barriers were made from, which may be narrower than the declared ones.
static ArrayAttr describeOperands(gpu::GPUFuncOp kernel, Effects &effects) {
  Builder builder(kernel.getContext());
  SmallVector<Attribute> operands;
  auto arguments = kernel.getArguments().take_front(kernel.getNumArguments());
  for (auto [index, argument] : llvm::enumerate(arguments)) {
    const OperandEffect &derived = effects.get(kernel).operands[index];
    Attribute effect = schedule::EffectAttr::get(kernel.getContext(), derived.access,
                                                 derived.coversAll, derived.slice);
    int64_t bytes = *schedule::getByteSize(cast<MemRefType>(argument.getType()));
    operands.push_back(builder.getDictionaryAttr(
        {builder.getNamedAttr("effect", effect),
         builder.getNamedAttr("bytes", builder.getI64IntegerAttr(bytes)),
         builder.getNamedAttr("alignment", builder.getI64IntegerAttr(getAlignment(argument)))}));
  }
  return builder.getArrayAttr(operands);
}

/// Returns the pairs of operands of which one may be written over the other.
static ArrayAttr describeInPlace(gpu::GPUFuncOp kernel, InPlaceProofs &proofs) {
  Builder builder(kernel.getContext());
  SmallVector<Attribute> pairs;
  for (auto [source, target] : proofs.getPairs(kernel))
    pairs.push_back(builder.getDenseI64ArrayAttr({source, target}));
  return builder.getArrayAttr(pairs);
}

static LogicalResult emitBinary(gpu::GPUFuncOp kernel, Effects &effects, InPlaceProofs &proofs,
                                EmitKernel emit) {
  OpBuilder builder(kernel->getParentOp());
  Location loc = kernel.getLoc();
  auto scratch = ModuleOp::create(builder, loc);
  llvm::scope_exit eraseScratch([&] { scratch.erase(); });
  builder.setInsertionPointToStart(scratch.getBody());
  auto module = gpu::GPUModuleOp::create(builder, loc, kernel.getName());
  builder.setInsertionPointToStart(module.getBody());
  auto copy = cast<gpu::GPUFuncOp>(builder.clone(*kernel));
  FailureOr<gpu::ObjectAttr> object = emit(module, copy, kernel);
  if (failed(object))
    return failure();

  builder.setInsertionPoint(kernel->getParentOp());
  auto result = gpu::BinaryOp::create(builder, loc, kernel.getName(), Attribute(),
                                      ArrayRef<Attribute>{*object});
  SmallVector<int64_t> workgroup(*kernel.getKnownBlockSize());
  result->setAttr(schedule::workgroupAttrName, builder.getDenseI64ArrayAttr(workgroup));
  for (StringRef name : {schedule::launchMemoryAttrName, schedule::tensorMapsAttrName})
    if (Attribute stated = kernel->getAttr(name))
      result->setAttr(name, stated);
  result->setAttr(schedule::operandsAttrName, describeOperands(kernel, effects));
  result->setAttr(schedule::inPlaceAttrName, describeInPlace(kernel, proofs));
  return success();
}

LogicalResult weir::emitKernels(ModuleOp module, Effects &effects, InPlaceProofs &proofs,
                                StringRef language,
                                llvm::function_ref<LogicalResult(gpu::GPUFuncOp)> check,
                                EmitKernel emit) {
  if (failed(checkKernels(module, language, check)))
    return failure();
  for (auto kernels : llvm::make_early_inc_range(module.getOps<gpu::GPUModuleOp>())) {
    for (auto kernel : kernels.getOps<gpu::GPUFuncOp>())
      if (failed(emitBinary(kernel, effects, proofs, emit)))
        return failure();
    kernels.erase();
  }
  // A binary is called as its kernel; the `gpu.module` may have had another name.
  module.walk([](schedule::DispatchOp dispatch) {
    StringAttr kernel = dispatch.getKernel().getLeafReference();
    dispatch.setKernelAttr(SymbolRefAttr::get(kernel, FlatSymbolRefAttr::get(kernel)));
  });
  return success();
}

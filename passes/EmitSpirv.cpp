//===- EmitSpirv.cpp - Turn GPU kernels into validated SPIR-V -------------===//
//
// Each kernel goes through a module of its own, so that what it declares is
// what it needs. All kernels are checked before the first is emitted, so that
// one run reports all of them.
//
//===----------------------------------------------------------------------===//

#include "passes/Passes.h"

#include "weir/Analysis/Effects.h"
#include "weir/Analysis/InPlace.h"
#include "weir/Target/ProfileAttr.h"
#include "weir/Target/Spirv.h"
#include "llvm/ADT/ScopeExit.h"
#include "llvm/ADT/StringSet.h"

namespace weir {
#define GEN_PASS_DEF_EMITSPIRVPASS
#include "passes/Passes.h.inc"
} // namespace weir

using namespace mlir;
using namespace weir;

namespace {
struct EmitSpirv : weir::impl::EmitSpirvPassBase<EmitSpirv> {
  using EmitSpirvPassBase::EmitSpirvPassBase;

  void runOnOperation() override {
    FailureOr<Profile> profile = getProfile(getOperation());
    if (failed(profile) || failed(check(*profile)))
      return signalPassFailure();
    SpirvEmitter emitter(&getContext(), *profile);
    for (auto module : llvm::make_early_inc_range(getOperation().getOps<gpu::GPUModuleOp>()))
      if (failed(emitModule(module, emitter, *profile)))
        return signalPassFailure();
    renameDispatches();
  }

private:
  LogicalResult check(const Profile &profile);
  LogicalResult emitModule(gpu::GPUModuleOp module, SpirvEmitter &emitter, const Profile &profile);
  FailureOr<gpu::BinaryOp> emitKernel(gpu::GPUFuncOp kernel, SpirvEmitter &emitter,
                                      const Profile &profile);
  void renameDispatches();
};
} // namespace

LogicalResult EmitSpirv::check(const Profile &profile) {
  bool good = true;
  llvm::StringSet<> taken;
  for (Operation &op : getOperation().getOps())
    if (auto symbol = dyn_cast<SymbolOpInterface>(op); symbol && !isa<gpu::GPUModuleOp>(op))
      taken.insert(symbol.getName());
  for (auto module : getOperation().getOps<gpu::GPUModuleOp>())
    for (Operation &op : module.getBody()->getOperations()) {
      auto kernel = dyn_cast<gpu::GPUFuncOp>(op);
      if (!kernel) {
        op.emitError() << "gpu.module @" << module.getName() << " holds " << op.getName()
                       << "; only kernels become SPIR-V";
        good = false;
        continue;
      }
      if (!taken.insert(kernel.getName()).second) {
        kernel.emitError() << "kernel @" << kernel.getName()
                           << ": another symbol of the module has this name";
        good = false;
      }
      good &= succeeded(checkSpirvKernel(kernel, profile));
    }
  return success(good);
}

/// What the level gates and the packer read of each operand. Effects are those
/// that the barriers were made from, which may be narrower than the declared.
static ArrayAttr describeOperands(gpu::GPUFuncOp kernel) {
  Effects effects(kernel);
  Builder builder(kernel.getContext());
  SmallVector<Attribute> operands;
  for (auto [index, argument] : llvm::enumerate(kernel.getArgumentTypes())) {
    auto type = cast<MemRefType>(argument);
    const OperandEffect &derived = effects.get(kernel).operands[index];
    Attribute effect =
        schedule::EffectAttr::get(kernel.getContext(), derived.access, derived.coversAll);
    int64_t bytes = *schedule::getByteSize(type);
    operands.push_back(builder.getDictionaryAttr(
        {builder.getNamedAttr("effect", effect),
         builder.getNamedAttr("bytes", builder.getI64IntegerAttr(bytes)),
         builder.getNamedAttr("alignment",
                              builder.getI64IntegerAttr(bytes / type.getNumElements()))}));
  }
  return builder.getArrayAttr(operands);
}

/// Which operands the kernel may write over which, once more from its body.
static ArrayAttr describeInPlace(gpu::GPUFuncOp kernel) {
  Builder builder(kernel.getContext());
  SmallVector<Attribute> pairs;
  for (auto [source, target] : getInPlacePairs(kernel))
    pairs.push_back(builder.getDenseI64ArrayAttr({source, target}));
  return builder.getArrayAttr(pairs);
}

FailureOr<gpu::BinaryOp> EmitSpirv::emitKernel(gpu::GPUFuncOp kernel, SpirvEmitter &emitter,
                                               const Profile &profile) {
  OpBuilder builder(kernel->getParentOp());
  Location loc = kernel.getLoc();
  auto scratch = ModuleOp::create(builder, loc);
  llvm::scope_exit eraseScratch([&] { scratch.erase(); });
  builder.setInsertionPointToStart(scratch.getBody());
  auto module = gpu::GPUModuleOp::create(builder, loc, kernel.getName());
  builder.setInsertionPointToStart(module.getBody());
  auto copy = cast<gpu::GPUFuncOp>(builder.clone(*kernel));

  legalizeForSpirv(copy);
  FailureOr<SmallVector<uint32_t>> words = emitter.emit(
      module, [&](OpPassManager &pipeline, Operation *op) { return runPipeline(pipeline, op); });
  if (failed(words))
    return kernel.emitError() << "kernel @" << kernel.getName() << " has no lowering to SPIR-V";
  SmallVector<int64_t> bytes;
  for (Type type : kernel.getArgumentTypes())
    bytes.push_back(*schedule::getByteSize(cast<MemRefType>(type)));
  if (std::optional<std::string> error = findSpirvError(*words, profile, kernel.getName(), bytes))
    return kernel.emitError() << "kernel @" << kernel.getName()
                              << " became invalid SPIR-V: " << *error;

  StringRef binary(reinterpret_cast<const char *>(words->data()), words->size() * sizeof(uint32_t));
  auto object = gpu::ObjectAttr::get(emitter.getTarget(), gpu::CompilationTarget::Binary,
                                     builder.getStringAttr(binary));
  builder.setInsertionPoint(kernel->getParentOp());
  auto result = gpu::BinaryOp::create(builder, loc, kernel.getName(), Attribute(),
                                      ArrayRef<Attribute>{object});
  SmallVector<int64_t> workgroup(*kernel.getKnownBlockSize());
  result->setAttr(schedule::workgroupAttrName, builder.getDenseI64ArrayAttr(workgroup));
  result->setAttr(schedule::operandsAttrName, describeOperands(kernel));
  result->setAttr(schedule::inPlaceAttrName, describeInPlace(kernel));
  return result;
}

LogicalResult EmitSpirv::emitModule(gpu::GPUModuleOp module, SpirvEmitter &emitter,
                                    const Profile &profile) {
  for (auto kernel : module.getOps<gpu::GPUFuncOp>())
    if (failed(emitKernel(kernel, emitter, profile)))
      return failure();
  module.erase();
  return success();
}

/// A binary is called as its kernel; the `gpu.module` may have had another name.
void EmitSpirv::renameDispatches() {
  getOperation().walk([](schedule::DispatchOp dispatch) {
    StringAttr kernel = dispatch.getKernel().getLeafReference();
    dispatch.setKernelAttr(SymbolRefAttr::get(kernel, FlatSymbolRefAttr::get(kernel)));
  });
}

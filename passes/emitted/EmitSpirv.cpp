//===- EmitSpirv.cpp - Turn GPU kernels into validated SPIR-V -------------===//

#include "passes/emitted/EmitKernels.h"

#include "dialects/Schedule/Schedule.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/SPIRV/IR/SPIRVDialect.h"
#include "mlir/Pass/Pass.h"
#include "weir/Target/ProfileAttr.h"
#include "weir/Target/Spirv.h"

namespace weir {
#define GEN_PASS_DEF_EMITSPIRVPASS
#include "passes/Passes.h.inc"
} // namespace weir

using namespace mlir;
using namespace weir;

namespace {
struct EmitSpirv : weir::impl::EmitSpirvPassBase<EmitSpirv> {
  using EmitSpirvPassBase::EmitSpirvPassBase;

  void runOnOperation() override;
};
} // namespace

void EmitSpirv::runOnOperation() {
  FailureOr<Profile> profile = getProfile(getOperation());
  if (failed(profile))
    return signalPassFailure();
  if (profile->target != "vulkan") {
    getOperation().emitError() << "target " << profile->name << " is of " << profile->target
                               << ", which takes no SPIR-V; run weir-emit-ptx";
    return signalPassFailure();
  }
  SpirvEmitter emitter(&getContext(), *profile);
  auto check = [&](gpu::GPUFuncOp kernel) { return checkSpirvKernel(kernel, *profile); };
  auto emit = [&](gpu::GPUModuleOp module, gpu::GPUFuncOp copy,
                  gpu::GPUFuncOp kernel) -> FailureOr<gpu::ObjectAttr> {
    legalizeForSpirv(copy, *profile);
    FailureOr<SmallVector<uint32_t>> words = emitter.emit(
        module, [&](OpPassManager &pipeline, Operation *op) { return runPipeline(pipeline, op); });
    if (failed(words))
      return kernel.emitError() << "kernel @" << kernel.getName() << " has no lowering to SPIR-V";
    SmallVector<int64_t> bytes;
    for (Type type : kernel.getArgumentTypes())
      bytes.push_back(*schedule::getByteSize(cast<MemRefType>(type)));
    if (std::optional<std::string> error =
            findSpirvError(*words, *profile, kernel.getName(), bytes))
      return kernel.emitError() << "kernel @" << kernel.getName()
                                << " became invalid SPIR-V: " << *error;
    StringRef binary(reinterpret_cast<const char *>(words->data()),
                     words->size() * sizeof(uint32_t));
    return gpu::ObjectAttr::get(emitter.getTarget(), gpu::CompilationTarget::Binary,
                                StringAttr::get(&getContext(), binary));
  };
  if (failed(emitKernels(getOperation(), getAnalysis<Effects>(), getAnalysis<InPlaceProofs>(),
                         "SPIR-V", check, emit)))
    signalPassFailure();
}

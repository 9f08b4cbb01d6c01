//===- EmitPtx.cpp - Turn GPU kernels into checked PTX --------------------===//

#include "passes/emitted/EmitKernels.h"

#include "dialects/Schedule/Schedule.h"
#include "mlir/Dialect/ControlFlow/IR/ControlFlow.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Pass/Pass.h"
#include "weir/Target/ProfileAttr.h"
#include "weir/Target/Ptx.h"

namespace weir {
#define GEN_PASS_DEF_EMITPTXPASS
#include "passes/Passes.h.inc"
} // namespace weir

using namespace mlir;
using namespace weir;

namespace {
struct EmitPtx : weir::impl::EmitPtxPassBase<EmitPtx> {
  using EmitPtxPassBase::EmitPtxPassBase;

  void runOnOperation() override;
};
} // namespace

void EmitPtx::runOnOperation() {
  FailureOr<Profile> profile = getProfile(getOperation());
  if (failed(profile))
    return signalPassFailure();
  if (profile->target != "cuda") {
    getOperation().emitError() << "target " << profile->name << " is of " << profile->target
                               << ", which takes no PTX; run weir-emit-spirv";
    return signalPassFailure();
  }
  FailureOr<PtxEmitter> emitter = PtxEmitter::create(getOperation().getLoc(), *profile);
  if (failed(emitter))
    return signalPassFailure();
  auto check = [&](gpu::GPUFuncOp kernel) { return checkPtxKernel(kernel, *profile); };
  auto emit = [&](gpu::GPUModuleOp module, gpu::GPUFuncOp copy,
                  gpu::GPUFuncOp kernel) -> FailureOr<gpu::ObjectAttr> {
    const int64_t launchMemory = getLaunchMemory(kernel);
    if (launchMemory)
      kernel->setAttr(schedule::launchMemoryAttrName,
                      Builder(&getContext()).getI64IntegerAttr(launchMemory));
    const ArrayAttr tensorMaps = getTensorMaps(kernel);
    if (!tensorMaps.empty())
      kernel->setAttr(schedule::tensorMapsAttrName, tensorMaps);
    legalizeForPtx(copy, *profile);
    FailureOr<std::string> text = emitter->emit(
        module, [&](OpPassManager &pipeline, Operation *op) { return runPipeline(pipeline, op); });
    if (failed(text))
      return kernel.emitError() << "kernel @" << kernel.getName() << " has no lowering to PTX";
    if (std::optional<std::string> error =
            findPtxError(*text, *profile, kernel.getName(), kernel.getNumArguments(),
                         *kernel.getKnownBlockSize(), launchMemory > 0, tensorMaps.size()))
      return kernel.emitError() << "kernel @" << kernel.getName()
                                << " became wrong PTX: " << *error;
    return gpu::ObjectAttr::get(emitter->getTarget(), gpu::CompilationTarget::Assembly,
                                StringAttr::get(&getContext(), *text));
  };
  if (failed(emitKernels(getOperation(), getAnalysis<Effects>(), getAnalysis<InPlaceProofs>(),
                         "PTX", check, emit)))
    signalPassFailure();
}

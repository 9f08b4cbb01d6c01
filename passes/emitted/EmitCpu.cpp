//===- EmitCpu.cpp - Turn GPU kernels into machine code -------------------===//

#include "passes/Passes.h"

#include "dialects/Schedule/Schedule.h"
#include "mlir/Dialect/ControlFlow/IR/ControlFlow.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "passes/emitted/EmitKernels.h"
#include "weir/Target/Cpu.h"
#include "weir/Target/ProfileAttr.h"

namespace weir {
#define GEN_PASS_DEF_EMITCPUPASS
#include "passes/Passes.h.inc"
} // namespace weir

using namespace mlir;
using namespace weir;

namespace {
struct EmitCpu : weir::impl::EmitCpuPassBase<EmitCpu> {
  using EmitCpuPassBase::EmitCpuPassBase;

  void runOnOperation() override;
};
} // namespace

void EmitCpu::runOnOperation() {
  FailureOr<Profile> profile = getProfile(getOperation());
  if (failed(profile))
    return signalPassFailure();
  if (profile->target != "cpu") {
    getOperation().emitError() << "target " << profile->name << " is of " << profile->target
                               << ", which takes no machine code; run weir-emit-"
                               << (profile->target == "cuda" ? "ptx" : "spirv");
    return signalPassFailure();
  }
  FailureOr<CpuEmitter> emitter = CpuEmitter::create(getOperation().getLoc(), *profile, threads);
  if (failed(emitter))
    return signalPassFailure();
  KernelDispatches dispatches(getOperation());
  // No dialect has an attribute for a CPU.
  auto describe = [&](StringRef object) {
    return gpu::ObjectAttr::get(StringAttr::get(&getContext(), profile->isa),
                                gpu::CompilationTarget::Binary,
                                StringAttr::get(&getContext(), object));
  };
  llvm::StringMap<std::shared_future<std::string>> objects;
  auto check = [&](gpu::GPUFuncOp kernel) { return checkCpuKernel(kernel, *profile); };
  auto emit = [&](gpu::GPUModuleOp module, gpu::GPUFuncOp copy,
                  gpu::GPUFuncOp kernel) -> FailureOr<gpu::ObjectAttr> {
    auto scratch = module->getParentOfType<ModuleOp>();
    keepCached(copy, kernel, dispatches);
    legalizeForCpu(copy, *profile);
    FailureOr<std::shared_future<std::string>> object =
        emitter->emit(scratch, kernel.getName(), [&](OpPassManager &pipeline, Operation *op) {
          return runPipeline(pipeline, op);
        });
    if (failed(object))
      return kernel.emitError() << "kernel @" << kernel.getName()
                                << " has no lowering to machine code";
    objects[kernel.getName()] = *object;
    return describe(""); // until it is there
  };
  if (failed(emitKernels(getOperation(), getAnalysis<Effects>(), getAnalysis<InPlaceProofs>(),
                         "machine code", check, emit)))
    return signalPassFailure();
  for (auto binary : getOperation().getOps<gpu::BinaryOp>()) {
    auto found = objects.find(binary.getName());
    if (found == objects.end())
      continue;
    const std::string &object = found->second.get();
    if (object.empty()) {
      binary.emitError() << "kernel @" << binary.getName() << " has no lowering to machine code";
      return signalPassFailure();
    }
    binary.setObjectsAttr(ArrayAttr::get(&getContext(), describe(object)));
  }
}

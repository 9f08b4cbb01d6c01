//===- Ptx.h - GPU kernels to checked PTX -----------------------*- C++ -*-===//
//
// The way of a kernel: the gate refuses what has no exact lowering, the
// legalization rewrites what upstream does not lower as Weir means it, the
// emitter converts to NVVM and runs LLVM's backend, and the check reads the text
// again.
//
//===----------------------------------------------------------------------===//

#ifndef WEIR_TARGET_PTX_H
#define WEIR_TARGET_PTX_H

#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Pass/PassManager.h"
#include "weir/Artifact/Profile.h"
#include "llvm/Target/TargetMachine.h"

namespace weir {

/// Checks that `kernel` keeps the kernel ABI, obeys the limits of `profile` and
/// holds only what has an exact lowering.
///
/// Errors: failure, with a diagnostic per problem that names the kernel.
mlir::LogicalResult checkPtxKernel(mlir::gpu::GPUFuncOp kernel, const Profile &profile);

/// Returns the bytes of workgroup memory that a launch of `kernel` states: those of all its
/// variables if PTX cannot declare as many, else 0.
int64_t getLaunchMemory(mlir::gpu::GPUFuncOp kernel);

/// Returns the tensor maps by which `kernel` copies boxes of its operands, as
/// `schedule::tensorMapsAttrName` has them. They become parameters behind the operands.
mlir::ArrayAttr getTensorMaps(mlir::gpu::GPUFuncOp kernel);

/// Rewrites a checked kernel, in place, into what upstream's conversion takes:
/// subgroup numbers from thread numbers, shuffles of 32 bits, workgroup memory
/// aligned for vectors and, where its size is the launch's, one variable, no fast-math or wrap
/// flags, and no attributes on operands: two of them may share bytes, which LLVM must not be told
/// otherwise.
void legalizeForPtx(mlir::gpu::GPUFuncOp kernel, const Profile &profile);

/// Turns kernels of one profile into PTX, in process.
class PtxEmitter {
public:
  /// Errors: failure, with a diagnostic at `loc`, when LLVM has no such GPU or
  ///         PTX version, or not both together.
  static mlir::FailureOr<PtxEmitter> create(mlir::Location loc, const Profile &profile);

  /// Runs a pipeline on an operation inside the one that the caller works on.
  using RunPipeline =
      llvm::function_ref<mlir::LogicalResult(mlir::OpPassManager &, mlir::Operation *)>;

  /// Returns the `#nvvm.target` that kernels are emitted for.
  mlir::Attribute getTarget() const { return target; }

  /// Emits the only kernel of `module`, a legalized `gpu.module`, which is
  /// consumed. The entry is called as the kernel, and its parameter i is the
  /// address of operand i; tensor maps follow.
  ///
  /// Errors: failure, with a diagnostic, when an operation has no lowering.
  mlir::FailureOr<std::string> emit(mlir::gpu::GPUModuleOp module, RunPipeline runPipeline) const;

private:
  PtxEmitter(mlir::Attribute target, std::unique_ptr<llvm::TargetMachine> machine)
      : target(target), machine(std::move(machine)) {}

  mlir::LogicalResult convert(mlir::gpu::GPUModuleOp module) const;

  mlir::Attribute target;
  std::unique_ptr<llvm::TargetMachine> machine;
};

/// Checks PTX text against what the kernel was meant to be: the version and GPU
/// of `profile`, one entry of that name with `operands` addresses, `tensorMaps` tensor maps and the
/// given workgroup, floats exact (rounded to nearest, denormals kept, nothing
/// approximate), memory read coherently, and no external symbol but, with `hasLaunchMemory`, one
/// of workgroup memory.
///
/// Errors: returns a description of the problem; std::nullopt when there is none.
std::optional<std::string> findPtxError(llvm::StringRef text, const Profile &profile,
                                        llvm::StringRef entryPoint, unsigned operands,
                                        llvm::ArrayRef<int32_t> workgroup,
                                        bool hasLaunchMemory = false, unsigned tensorMaps = 0);

} // namespace weir

#endif // WEIR_TARGET_PTX_H

//===- Spirv.h - GPU kernels to validated SPIR-V ----------------*- C++ -*-===//
//
// The way of a kernel: the gate refuses what upstream would lower wrongly, the
// legalization rewrites what upstream does not lower as Weir means it, the
// emitter converts and serializes, and the checks read the words again.
//
//===----------------------------------------------------------------------===//

#ifndef WEIR_TARGET_SPIRV_H
#define WEIR_TARGET_SPIRV_H

#include "mlir/Conversion/SCFToSPIRV/SCFToSPIRV.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/SPIRV/IR/SPIRVAttributes.h"
#include "mlir/Dialect/SPIRV/Transforms/SPIRVConversion.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Rewrite/FrozenRewritePatternSet.h"
#include "weir/Artifact/Profile.h"

namespace weir {

/// Checks that `kernel` keeps the kernel ABI, obeys the limits of `profile` and
/// holds only what has an exact lowering.
///
/// Errors: failure, with a diagnostic per problem that names the kernel.
mlir::LogicalResult checkSpirvKernel(mlir::gpu::GPUFuncOp kernel, const Profile &profile);

/// Rewrites a checked kernel, in place, into what upstream's conversion takes:
/// storage classes for address spaces, allocations for attributions, the entry
/// point's ABI, exact forms of maximum and minimum, no fast-math or wrap flags, and
/// 64-bit words in buffers of 32-bit vectors where the profile wants them.
void legalizeForSpirv(mlir::gpu::GPUFuncOp kernel, const Profile &profile);

/// Turns kernels of one profile into SPIR-V words, in process. Setting one up
/// costs as much as a kernel, so one serves a whole module.
class SpirvEmitter {
public:
  SpirvEmitter(mlir::MLIRContext *context, const Profile &profile);

  /// Runs a pipeline on an operation inside the one that the caller works on.
  using RunPipeline =
      llvm::function_ref<mlir::LogicalResult(mlir::OpPassManager &, mlir::Operation *)>;

  /// Returns the target, with everything that the profile allows.
  mlir::spirv::TargetEnvAttr getTarget() const { return target; }

  /// Emits the only kernel of `module`, a legalized `gpu.module` alone in a
  /// block; the module is consumed. The entry point is called as the kernel.
  ///
  /// Errors: failure, with a diagnostic, when an operation has no lowering.
  mlir::FailureOr<mlir::SmallVector<uint32_t>> emit(mlir::gpu::GPUModuleOp module,
                                                    RunPipeline runPipeline);

private:
  mlir::spirv::TargetEnvAttr target;
  std::unique_ptr<mlir::ConversionTarget> legality;
  mlir::SPIRVTypeConverter types;
  mlir::ScfToSPIRVContext scfContext;
  mlir::FrozenRewritePatternSet patterns;
  mlir::OpPassManager pipeline;
};

/// Checks words against the validator of SPIRV-Tools and against what the
/// kernel was meant to be: the entry point's name, storage buffer i spanning
/// `operandBytes[i]` bytes, no capability that `profile` lacks.
///
/// Errors: returns the problems, one or more lines; std::nullopt when there are none.
std::optional<std::string> findSpirvError(llvm::ArrayRef<uint32_t> words, const Profile &profile,
                                          llvm::StringRef entryPoint,
                                          llvm::ArrayRef<int64_t> operandBytes);

/// Returns the assembly text of SPIR-V words in any byte order.
/// Errors: failure, with no diagnostic, when the words are not SPIR-V.
mlir::FailureOr<std::string> disassembleSpirv(llvm::ArrayRef<uint32_t> words);

} // namespace weir

#endif // WEIR_TARGET_SPIRV_H

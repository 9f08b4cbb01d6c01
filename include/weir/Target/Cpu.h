//===- Cpu.h - Kernels to machine code --------------------------*- C++ -*-===//
//
// The way of a kernel: the gate refuses what has no exact lowering, the legalization makes one
// invocation of a workgroup, the emitter converts to LLVM and runs its backend, and the linker
// makes one object of all kernels, which needs nothing else.
//
//===----------------------------------------------------------------------===//

#ifndef WEIR_TARGET_CPU_H
#define WEIR_TARGET_CPU_H

#include "mlir/Conversion/LLVMCommon/TypeConverter.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Rewrite/FrozenRewritePatternSet.h"
#include "weir/Analysis/KernelDispatches.h"
#include "weir/Artifact/Profile.h"
#include "llvm/Target/TargetMachine.h"

#include <future>

namespace weir {

/// Checks that `kernel` keeps the kernel ABI, obeys the limits of `profile`, has workgroups of one
/// invocation, and holds only what has an exact lowering.
///
/// Errors: failure, with a diagnostic per problem that names the kernel.
mlir::LogicalResult checkCpuKernel(mlir::gpu::GPUFuncOp kernel, const Profile &profile);

/// Lets stores of `copy` go through the caches where a dispatch of `kernel`, which it is a copy of,
/// reads the bytes that they write: those are in the caches already.
void keepCached(mlir::gpu::GPUFuncOp copy, mlir::gpu::GPUFuncOp kernel,
                const KernelDispatches &dispatches);

/// Turns a checked kernel, alone in its `gpu.module`, into a function in the place of that, which
/// runs workgroups [first, last) of a grid, counted with x fastest:
///
///     func.func private @KERNEL.body(operands..., %first, %last, %gridX, %gridY : index)
///
/// Numbers of invocations in a workgroup become constant, workgroup and private memory lies on the
/// stack, f16 and bf16 become i16. A `math.fma` is a product and a sum where `profile` has no
/// instruction for it. Stores past the caches (`nontemporal`) run only where the operands that they
/// write begin at multiples of the profile's `offset_alignment`; other stores do elsewhere. They
/// are over when the function returns. Needs: what `checkCpuKernel` checks with the same profile.
void legalizeForCpu(mlir::gpu::GPUFuncOp kernel, const Profile &profile);

class CpuBackend;

/// Turns kernels of one profile into machine code, in process.
class CpuEmitter {
public:
  CpuEmitter(CpuEmitter &&);
  ~CpuEmitter();

  /// Runs LLVM's backend on `threads`, or as many as processors if that is 0.
  ///
  /// Errors: failure, with a diagnostic at `loc`, when this LLVM has no code for the profile's
  ///         instruction set.
  static mlir::FailureOr<CpuEmitter> create(mlir::Location loc, const Profile &profile,
                                            unsigned threads = 0);

  /// Runs a pipeline on an operation inside the one that the caller works on.
  using RunPipeline =
      llvm::function_ref<mlir::LogicalResult(mlir::OpPassManager &, mlir::Operation *)>;

  /// Starts to emit a relocatable ELF object with one function, called as `name`:
  ///
  ///     void NAME(void *const *operands, const int64_t *grid, int64_t first, int64_t last)
  ///
  /// `module` holds the function that `legalizeForCpu` made, and is consumed. It is converted at
  /// once; LLVM's backend runs on threads of its own. The object is empty where LLVM has no code.
  ///
  /// Errors: failure, with a diagnostic, when an operation has no lowering.
  mlir::FailureOr<std::shared_future<std::string>> emit(mlir::ModuleOp module, llvm::StringRef name,
                                                        RunPipeline runPipeline);

private:
  CpuEmitter(mlir::MLIRContext *context, std::unique_ptr<CpuBackend> backend);

  std::unique_ptr<CpuBackend> backend;
  std::unique_ptr<llvm::TargetMachine> machine; ///< of this thread
  // All of these cost more to make than a small kernel to convert.
  std::unique_ptr<mlir::LLVMTypeConverter> types;
  mlir::FrozenRewritePatternSet patterns;
  mlir::OpPassManager toBranches, cleanUp;
};

/// Links relocatable objects into one position-independent ELF object without relocations, symbols
/// of elsewhere or writable data. The same objects always make the same bytes.
///
/// Errors: `Error` with the linker's words, where an object needs a function that none has.
std::string linkCpuObjects(llvm::ArrayRef<llvm::StringRef> objects);

/// Returns the instructions of the functions in an object that `linkCpuObjects` made, as text.
/// Errors: `Error` when it is not such an object, or this LLVM does not know its instruction set.
std::string disassembleCpu(llvm::StringRef object);

} // namespace weir

#endif // WEIR_TARGET_CPU_H

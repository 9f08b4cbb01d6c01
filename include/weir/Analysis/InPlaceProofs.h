//===- InPlaceProofs.h - What kernels may write over, remembered -*- C++ -*-==//

#ifndef WEIR_ANALYSIS_INPLACEPROOFS_H
#define WEIR_ANALYSIS_INPLACEPROOFS_H

#include "dialects/Schedule/Schedule.h"
#include "weir/Analysis/AccessMap.h"
#include "weir/Analysis/InPlace.h"

#include <map>
#include <memory>

namespace weir {

/// Proofs of kernels, each made once. A pass that leaves kernels and launches as they are may
/// preserve it. One that inserts or removes a barrier in a kernel may not.
class InPlaceProofs {
public:
  explicit InPlaceProofs(mlir::Operation *) {}

  /// Returns whether the kernel of `dispatch` reads each byte through operand `read` before it
  /// writes the same byte of another memref through operand `written`.
  const InPlaceProof &get(schedule::DispatchOp dispatch, unsigned read, unsigned written);

  /// Returns the pairs of arguments (source, target) of equal size for which the proof holds,
  /// sorted by source, then target. The source is an argument that is read, the target one that is
  /// not.
  llvm::SmallVector<std::pair<unsigned, unsigned>> getPairs(mlir::gpu::GPUFuncOp kernel);

private:
  /// A kernel with its access maps, and the proofs that were asked for.
  struct Kernel {
    Kernel(mlir::gpu::GPUFuncOp op, Launches &launches)
        : op(op), maps(op, LaunchSizes::get(op, launches)) {}
    const InPlaceProof &prove(unsigned read, unsigned written);

    mlir::gpu::GPUFuncOp op;
    AccessMaps maps;
    std::map<std::pair<unsigned, unsigned>, InPlaceProof> proofs; ///< by read and written operand
  };

  Kernel &getKernel(mlir::gpu::GPUFuncOp op);

  Launches launches;
  mlir::SymbolTableCollection symbols;
  llvm::DenseMap<mlir::Operation *, std::unique_ptr<Kernel>> kernels;
  /// By symbol table and name: cheaper to look up than the kernel.
  llvm::DenseMap<std::pair<mlir::Operation *, mlir::Attribute>, Kernel *> byName;
};

} // namespace weir

#endif // WEIR_ANALYSIS_INPLACEPROOFS_H

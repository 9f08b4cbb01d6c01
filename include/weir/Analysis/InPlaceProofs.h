//===- InPlaceProofs.h - What kernels may write over, remembered -*- C++ -*-==//

#ifndef WEIR_ANALYSIS_INPLACEPROOFS_H
#define WEIR_ANALYSIS_INPLACEPROOFS_H

#include "dialects/Schedule/Schedule.h"
#include "weir/Analysis/AccessMap.h"
#include "weir/Analysis/InPlace.h"

#include <map>
#include <memory>

namespace weir {

/// Proofs of kernels, each made once. Lives as long as the kernels stay as they are.
class InPlaceProofs {
public:
  /// Returns whether the kernel of `dispatch` reads each byte through operand `read` before it
  /// writes the same byte of another memref through operand `written`.
  const InPlaceProof &get(schedule::DispatchOp dispatch, unsigned read, unsigned written);

private:
  /// A kernel with its access maps, and the proofs that were asked for.
  struct Kernel {
    Kernel(mlir::gpu::GPUFuncOp op, Launches &launches)
        : op(op), maps(op, LaunchSizes::get(op, launches)) {}

    mlir::gpu::GPUFuncOp op;
    AccessMaps maps;
    std::map<std::pair<unsigned, unsigned>, InPlaceProof> proofs; ///< by read and written operand
  };

  Launches launches;
  mlir::SymbolTableCollection symbols;
  /// By symbol table and name: cheaper to look up than the kernel.
  llvm::DenseMap<std::pair<mlir::Operation *, mlir::Attribute>, std::unique_ptr<Kernel>> kernels;
};

} // namespace weir

#endif // WEIR_ANALYSIS_INPLACEPROOFS_H

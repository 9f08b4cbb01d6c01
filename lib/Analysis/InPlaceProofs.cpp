//===- InPlaceProofs.cpp - What kernels may write over, remembered --------===//

#include "weir/Analysis/InPlaceProofs.h"

using namespace mlir;
using namespace weir;

const InPlaceProof &InPlaceProofs::get(schedule::DispatchOp dispatch, unsigned read,
                                       unsigned written) {
  Operation *table = SymbolTable::getNearestSymbolTable(dispatch);
  std::unique_ptr<Kernel> &known = kernels[{table, dispatch.getKernelAttr()}];
  if (!known)
    known = std::make_unique<Kernel>(
        symbols.lookupSymbolIn<gpu::GPUFuncOp>(table, dispatch.getKernelAttr()), launches);
  auto [proof, isNew] = known->proofs.try_emplace({read, written});
  if (isNew)
    proof->second = proveInPlace(known->maps, known->op, read, written);
  return proof->second;
}

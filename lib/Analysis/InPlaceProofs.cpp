//===- InPlaceProofs.cpp - What kernels may write over, remembered --------===//

#include "weir/Analysis/InPlaceProofs.h"

using namespace mlir;
using namespace weir;

const InPlaceProof &InPlaceProofs::get(schedule::DispatchOp dispatch, unsigned read,
                                       unsigned written) {
  auto kernel = symbols.lookupNearestSymbolFrom<gpu::GPUFuncOp>(dispatch, dispatch.getKernelAttr());
  std::unique_ptr<Kernel> &known = kernels[kernel];
  if (!known)
    known = std::make_unique<Kernel>(kernel, launches);
  auto [proof, isNew] = known->proofs.try_emplace({read, written});
  if (isNew)
    proof->second = proveInPlace(known->maps, kernel, read, written);
  return proof->second;
}

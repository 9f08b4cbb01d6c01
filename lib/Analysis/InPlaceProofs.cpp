//===- InPlaceProofs.cpp - What kernels may write over, remembered --------===//

#include "weir/Analysis/InPlaceProofs.h"

using namespace mlir;
using namespace weir;

const InPlaceProof &InPlaceProofs::Kernel::prove(unsigned read, unsigned written) {
  auto [proof, isNew] = proofs.try_emplace({read, written});
  if (isNew)
    proof->second = proveInPlace(maps, op, read, written);
  return proof->second;
}

InPlaceProofs::Kernel &InPlaceProofs::getKernel(gpu::GPUFuncOp op) {
  std::unique_ptr<Kernel> &known = kernels[op];
  if (!known)
    known = std::make_unique<Kernel>(op, launches);
  return *known;
}

const InPlaceProof &InPlaceProofs::get(schedule::DispatchOp dispatch, unsigned read,
                                       unsigned written) {
  Operation *table = SymbolTable::getNearestSymbolTable(dispatch);
  Kernel *&known = byName[{table, dispatch.getKernelAttr()}];
  if (!known)
    known = &getKernel(symbols.lookupSymbolIn<gpu::GPUFuncOp>(table, dispatch.getKernelAttr()));
  return known->prove(read, written);
}

SmallVector<std::pair<unsigned, unsigned>> InPlaceProofs::getPairs(gpu::GPUFuncOp op) {
  SmallVector<std::pair<unsigned, unsigned>> pairs;
  if (op.isExternal())
    return pairs;
  Kernel &kernel = getKernel(op);
  auto getBytes = [&](unsigned index) -> std::optional<int64_t> {
    auto type = dyn_cast<MemRefType>(op.getArgument(index).getType());
    return type ? schedule::getByteSize(type) : std::nullopt;
  };
  llvm::SmallDenseSet<Value> read, written;
  for (const MemoryAccess &access : kernel.maps.getAccesses()) {
    if (access.reads)
      read.insert(access.root);
    if (access.writes)
      written.insert(access.root);
  }
  auto isOnly = [&](unsigned index, const llvm::SmallDenseSet<Value> &these,
                    const llvm::SmallDenseSet<Value> &others) {
    Value argument = op.getArgument(index);
    return these.contains(argument) && !others.contains(argument);
  };
  for (unsigned source = 0; source < op.getNumArguments(); ++source)
    for (unsigned target = 0; target < op.getNumArguments(); ++target) {
      std::optional<int64_t> bytes = getBytes(source);
      if (source != target && bytes && bytes == getBytes(target) && isOnly(source, read, written) &&
          isOnly(target, written, read) && kernel.prove(source, target).holds)
        pairs.push_back({source, target});
    }
  return pairs;
}

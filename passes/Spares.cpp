//===- Spares.cpp - Cheaper kernels for values ----------------------------===//

#include "passes/Spares.h"

#include "dialects/Schedule/Schedule.h"

using namespace mlir;
using namespace weir;

llvm::SetVector<StringAttr> weir::getSpareKernels(ModuleOp module) {
  llvm::SetVector<StringAttr> kernels;
  module.walk([&](schedule::DispatchOp dispatch) {
    if (dispatch->hasAttr(spareAttrName))
      kernels.insert(dispatch.getKernelAttr().getRootReference());
  });
  return kernels;
}

void weir::eraseUnusedKernels(ModuleOp module, const llvm::SetVector<StringAttr> &kernels) {
  if (kernels.empty())
    return;
  SymbolTable symbols(module);
  for (StringAttr name : kernels)
    if (Operation *kernel = symbols.lookup(name);
        kernel && SymbolTable::symbolKnownUseEmpty(name, module))
      symbols.erase(kernel);
}

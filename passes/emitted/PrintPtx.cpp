//===- PrintPtx.cpp - Print the PTX of a module ---------------------------===//

#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Pass/Pass.h"

namespace weir {
#define GEN_PASS_DEF_PRINTPTXPASS
#include "passes/Passes.h.inc"
} // namespace weir

using namespace mlir;

namespace {
struct PrintPtx : weir::impl::PrintPtxPassBase<PrintPtx> {
  using PrintPtxPassBase::PrintPtxPassBase;

  void runOnOperation() override {
    markAllAnalysesPreserved();
    for (auto binary : getOperation().getOps<gpu::BinaryOp>())
      for (auto object : binary.getObjects().getAsRange<gpu::ObjectAttr>())
        if (object.getFormat() == gpu::CompilationTarget::Assembly)
          llvm::outs() << "// gpu.binary @" << binary.getName() << "\n"
                       << object.getObject().getValue();
  }
};
} // namespace

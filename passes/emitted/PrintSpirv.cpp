//===- PrintSpirv.cpp - Print the SPIR-V of a module as assembly text -----===//

#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/SPIRV/IR/SPIRVDialect.h"
#include "mlir/Pass/Pass.h"
#include "weir/Target/Spirv.h"

namespace weir {
#define GEN_PASS_DEF_PRINTSPIRVPASS
#include "passes/Passes.h.inc"
} // namespace weir

using namespace mlir;
using namespace weir;

namespace {
struct PrintSpirv : weir::impl::PrintSpirvPassBase<PrintSpirv> {
  using PrintSpirvPassBase::PrintSpirvPassBase;

  void runOnOperation() override {
    markAllAnalysesPreserved();
    for (auto binary : getOperation().getOps<gpu::BinaryOp>())
      for (Attribute attribute : binary.getObjects()) {
        auto object = dyn_cast<gpu::ObjectAttr>(attribute);
        if (!object || !isa<spirv::TargetEnvAttr>(object.getTarget()))
          continue;
        StringRef bytes = object.getObject().getValue();
        SmallVector<uint32_t> words(bytes.size() / sizeof(uint32_t));
        std::memcpy(words.data(), bytes.data(), words.size() * sizeof(uint32_t));
        FailureOr<std::string> text = disassembleSpirv(words);
        if (failed(text)) {
          binary.emitError() << "gpu.binary @" << binary.getName() << " holds no SPIR-V";
          return signalPassFailure();
        }
        llvm::outs() << "; gpu.binary @" << binary.getName() << "\n" << *text;
      }
  }
};
} // namespace

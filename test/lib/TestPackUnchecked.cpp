//===- TestPackUnchecked.cpp - Write an artifact that nobody checked ------===//
//
// Packs whatever order and places the module states, so that tests can show
// that `weir verify` and the devices' own validation find what gates refuse.
//
//===----------------------------------------------------------------------===//

#include "test/lib/TestPasses.h"

#include "dialects/Schedule/Schedule.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Pass/Pass.h"
#include "weir/Artifact/Artifact.h"
#include "weir/Artifact/Error.h"
#include "weir/Target/Bundle.h"

using namespace mlir;
using namespace weir;

namespace {
struct TestPackUnchecked : PassWrapper<TestPackUnchecked, OperationPass<ModuleOp>> {
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(TestPackUnchecked)

  TestPackUnchecked() = default;
  TestPackUnchecked(const TestPackUnchecked &other) : PassWrapper(other) {}

  StringRef getArgument() const override { return "weir-test-pack-unchecked"; }
  StringRef getDescription() const override {
    return "Writes the artifact of a module that weir-pack packed, without any check.";
  }

  void runOnOperation() override {
    FailureOr<Artifact> artifact = buildArtifact(getOperation(), "");
    if (failed(artifact))
      return signalPassFailure();
    try {
      writeArtifact(output, *artifact);
    } catch (const Error &error) {
      getOperation().emitError() << error.what();
      signalPassFailure();
    }
  }

  Option<std::string> output{*this, "output", llvm::cl::desc("Path of the artifact.")};
};
} // namespace

void weir::test::registerTestPackUncheckedPass() { PassRegistration<TestPackUnchecked>(); }

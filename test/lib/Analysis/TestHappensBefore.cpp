//===- TestHappensBefore.cpp - Print what comes before each dispatch ------===//

#include "test/lib/TestPasses.h"

#include "mlir/Pass/Pass.h"
#include "weir/Analysis/CommandList.h"

using namespace mlir;
using namespace weir;

namespace {
struct TestHappensBefore : PassWrapper<TestHappensBefore, OperationPass<ModuleOp>> {
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(TestHappensBefore)

  StringRef getArgument() const override { return "weir-test-happens-before"; }
  StringRef getDescription() const override {
    return "Prints which dispatches have ended before each begins.";
  }

  void runOnOperation() override {
    getOperation().walk([&](schedule::CommandsOp list) {
      QueueCommands commands = getQueueCommands(list);
      HappensBefore happensBefore(commands.commands);
      for (auto [number, to] : llvm::enumerate(commands.dispatches)) {
        InFlightDiagnostic remark = commands.ops[to]->emitRemark()
                                    << "dispatch " << number << " comes after";
        for (auto [other, from] : llvm::enumerate(commands.dispatches))
          if (happensBefore(from, to))
            remark << " " << other;
      }
    });
  }
};
} // namespace

void weir::test::registerTestHappensBeforePass() { PassRegistration<TestHappensBefore>(); }

//===- TestQuestionCounts.cpp - Print how many questions were asked -------===//

#include "test/lib/TestPasses.h"

#include "mlir/IR/BuiltinOps.h"
#include "mlir/Pass/Pass.h"
#include "weir/Analysis/KnownAnswers.h"

using namespace mlir;
using namespace weir;

namespace {
struct TestQuestionCounts : PassWrapper<TestQuestionCounts, OperationPass<ModuleOp>> {
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(TestQuestionCounts)

  StringRef getArgument() const override { return "weir-test-question-counts"; }
  StringRef getDescription() const override {
    return "Prints how many questions about two accesses were asked so far, by what decided them.";
  }

  void runOnOperation() override {
    const KnownAnswers *answers = KnownAnswers::get(&getContext());
    QuestionCounts counts = answers ? answers->getCounts() : QuestionCounts();
    InFlightDiagnostic remark = getOperation().emitRemark() << "questions:";
    for (size_t i = 0; i < numDecisions; ++i)
      remark << " " << weir::getName(Decision(i)) << " " << counts.decided[i] << ",";
    remark << " steps " << counts.steps;
    markAllAnalysesPreserved();
  }
};
} // namespace

void weir::test::registerTestQuestionCountsPass() { PassRegistration<TestQuestionCounts>(); }

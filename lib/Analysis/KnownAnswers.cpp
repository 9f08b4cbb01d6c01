//===- KnownAnswers.cpp - Answers that hold for a whole compile -----------===//

#include "weir/Analysis/KnownAnswers.h"

#include "mlir/Dialect/GPU/IR/GPUDialect.h"

using namespace mlir;
using namespace weir;

const char *weir::getName(Decision decision) {
  static const char *const names[numDecisions] = {"repeated", "identity", "intervals",
                                                  "digits",   "search",   "given-up"};
  return names[size_t(decision)];
}

const KnownAnswers *KnownAnswers::get(MLIRContext *context) {
  auto *dialect = context->getLoadedDialect<gpu::GPUDialect>();
  return dialect ? dialect->getRegisteredInterface<KnownAnswers>() : nullptr;
}

std::optional<KnownAnswers::Answer> KnownAnswers::find(const std::vector<int64_t> &question) const {
  std::lock_guard<std::mutex> lock(mutex);
  auto it = answers.find(question);
  return it == answers.end() ? std::nullopt : std::optional(it->second);
}

void KnownAnswers::add(std::vector<int64_t> question, Answer answer) const {
  std::lock_guard<std::mutex> lock(mutex);
  answers.try_emplace(std::move(question), answer);
}

void KnownAnswers::count(Decision decision, int64_t steps) const {
  std::lock_guard<std::mutex> lock(mutex);
  ++counts.decided[size_t(decision)];
  counts.steps += steps;
}

QuestionCounts KnownAnswers::getCounts() const {
  std::lock_guard<std::mutex> lock(mutex);
  return counts;
}

void weir::registerKnownAnswers(DialectRegistry &registry) {
  registry.addExtension(+[](MLIRContext *, gpu::GPUDialect *dialect) {
    if (!dialect->getRegisteredInterface<KnownAnswers>())
      dialect->addInterfaces<KnownAnswers>();
  });
}

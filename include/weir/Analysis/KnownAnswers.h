//===- KnownAnswers.h - Answers that hold for a whole compile ----*- C++ -*-===//

#ifndef WEIR_ANALYSIS_KNOWNANSWERS_H
#define WEIR_ANALYSIS_KNOWNANSWERS_H

#include "mlir/IR/DialectInterface.h"
#include "mlir/IR/DialectRegistry.h"

#include <array>
#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <vector>

namespace weir {

/// The step that decided whether two executions can touch a common byte, the cheapest first.
enum class Decision {
  Repeated,  ///< an equal question had been answered
  Identity,  ///< the addresses differ by a constant
  Intervals, ///< the ranges of the addresses are apart
  Digits,    ///< the digits of the addresses are apart
  Search,    ///< a search for an integer point
  GivenUp    ///< none: the search ran out of steps, or a number was too large
};
constexpr size_t numDecisions = size_t(Decision::GivenUp) + 1;

/// Returns "repeated", "identity", "intervals", "digits", "search" or "given-up".
const char *getName(Decision decision);

/// Numbers of questions by the step that decided them, and the steps of all searches.
struct QuestionCounts {
  std::array<int64_t, numDecisions> decided = {};
  int64_t steps = 0;
};

/// Answers to questions about integer points. Kernels of equal layers, several passes on one kernel
/// and rows of one tile ask equal questions; an answer depends on the question's numbers alone, so
/// it holds as long as the MLIRContext lives. Any thread may ask.
class KnownAnswers : public mlir::DialectInterface::Base<KnownAnswers> {
public:
  explicit KnownAnswers(mlir::Dialect *dialect) : Base(dialect) {}

  enum class Answer { None, Found, Unknown }; ///< of points

  /// Returns the answers of a context; null where `registerKnownAnswers` was not called for it.
  static const KnownAnswers *get(mlir::MLIRContext *context);

  std::optional<Answer> find(const std::vector<int64_t> &question) const;
  void add(std::vector<int64_t> question, Answer answer) const;
  void count(Decision decision, int64_t steps = 0) const;
  QuestionCounts getCounts() const;

private:
  mutable std::mutex mutex;
  mutable std::map<std::vector<int64_t>, Answer> answers;
  mutable QuestionCounts counts;
};

/// Gives every context that loads the GPU dialect its own answers.
void registerKnownAnswers(mlir::DialectRegistry &registry);

} // namespace weir

#endif // WEIR_ANALYSIS_KNOWNANSWERS_H

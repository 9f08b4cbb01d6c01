//===- IntegerSystem.h - Whether constraints have an integer point -*- C++ -*-===//
//
// Linear constraints over integers, and a search for a point that satisfies
// them all. Plain numbers: nothing here knows of IR.
//
// A sum is read as digits first: what terms with large factors add up to is a multiple of their
// common divisor, and terms with small factors cannot make up for what is missing to one.
//
//   256 * group + 4 * lane in [1, 3], lane in [0, 63]     no multiple of 4 is in [1, 3]
//   256 * group + 4 * lane in [0, 3], lane in [1, 63]     256 * group would be in [-252, -1]
//   256 * group + 4 * lane in [0, 3], lane in [-63, 63]   group = 0, and 4 * lane in [0, 3]
//
// Digits decide completely, without a search: sums in which the terms with smaller factors reach
// less far than the common divisor of those with larger ones (mixed radix), and whose digits are
// variables with ranges, or one difference of two such variables. For the rest the search narrows
// the range of each variable by each constraint until nothing changes, combines equalities with
// other constraints, and tries what is left by halves.
//
// The search costs a number of steps that its caller limits, never a time, so an answer depends on
// the question alone.
//
//===----------------------------------------------------------------------===//

#ifndef WEIR_LIB_ANALYSIS_INTEGERSYSTEM_H
#define WEIR_LIB_ANALYSIS_INTEGERSYSTEM_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/SmallVector.h"

#include <cstdint>
#include <optional>
#include <vector>

namespace weir {

/// Integers from `lower` to `upper`, both included; no bound where one is missing.
struct Interval {
  std::optional<int64_t> lower, upper;
};

/// A sum of multiples of variables, and a constant.
struct LinearSum {
  struct Term {
    unsigned variable;
    int64_t factor;
    bool operator==(const Term &) const = default;
  };
  llvm::SmallVector<Term, 4> terms; ///< by variable, ascending; no factor is 0
  int64_t constant = 0;

  static LinearSum ofVariable(unsigned variable) { return {{{variable, 1}}, 0}; }
  bool isConstant() const { return terms.empty(); }
  /// Adds `factor * other`. Errors: false, and an unspecified sum, when a number doesn't fit into
  /// 64 bits.
  [[nodiscard]] bool add(const LinearSum &other, int64_t factor);
};

class IntegerSystem {
public:
  /// Returns the variable's number.
  unsigned addVariable(Interval range);
  /// Requires `sum` to be in `range`.
  void require(const LinearSum &sum, Interval range);

  /// Whether `sum` may be in `range`, by the variables' ranges alone.
  bool mayBeIn(const LinearSum &sum, Interval range) const;

  enum class Answer {
    None,   ///< no point satisfies the system: proved
    Found,  ///< some point does
    Unknown ///< the steps did not suffice, or a number was too large
  };
  /// Searches for a point. A step is one look at one constraint; takes what it needed off `steps`.
  Answer findPoint(int64_t &steps) const;

  /// Whether the bounds of all variables were small enough to count: else a point that is found may
  /// be beyond one.
  bool hasAllBounds() const { return !dropsBound; }

  /// Returns numbers that say all of the system: systems whose variables and constraints were added
  /// in the same order have equal keys just if they are equal.
  const std::vector<int64_t> &getKey() const { return key; }

private:
  struct Constraint {
    LinearSum sum; ///< its constant is 0
    Interval range;
  };

  std::vector<Interval> variables;
  std::vector<Constraint> constraints;
  std::vector<int64_t> key;
  bool isTooLarge = false, dropsBound = false;
};

} // namespace weir

#endif // WEIR_LIB_ANALYSIS_INTEGERSYSTEM_H

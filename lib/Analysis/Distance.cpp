//===- Distance.cpp - How close two addresses can come --------------------===//
//
// Addresses are made of digits: a row number times the row's bytes, a column times
// the element's, constants for the lanes of a vector and the rows of a tile. Where
// the larger digits differ, the smaller ones cannot make up for it; a search from
// the largest digit down finds all ways in which they could, which are few.
//
//===----------------------------------------------------------------------===//

#include "Distance.h"

#include "Interval.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace weir;

namespace {
/// A sum of multiples of expressions, and a constant.
struct Sum {
  llvm::MapVector<AffineExpr, int64_t> factors;
  int64_t constant = 0;
  bool overflows = false;

  void add(AffineExpr expr, int64_t factor);
};

/// `factor` times a number from 0 to `span`.
struct Term {
  int64_t factor, span;
};

/// The search.
class Search {
public:
  Search(std::vector<Term> terms, int64_t least, int64_t most);
  /// Whether the terms from number `next` on can make the sum that is missing.
  bool reaches(size_t next, int64_t sum);

private:
  std::vector<Term> terms;
  std::vector<int64_t> lowest, highest; ///< what the terms from each on can add
  int64_t least, most;
  int64_t budget = 1000; ///< of tries; then anything is possible
};
} // namespace

void Sum::add(AffineExpr expr, int64_t factor) {
  int64_t product;
  if (auto known = dyn_cast<AffineConstantExpr>(expr)) {
    overflows |= llvm::MulOverflow(known.getValue(), factor, product) ||
                 llvm::AddOverflow(constant, product, constant);
    return;
  }
  auto binary = dyn_cast<AffineBinaryOpExpr>(expr);
  if (binary && expr.getKind() == AffineExprKind::Add) {
    add(binary.getLHS(), factor);
    add(binary.getRHS(), factor);
    return;
  }
  if (binary && expr.getKind() == AffineExprKind::Mul)
    if (auto scale = dyn_cast<AffineConstantExpr>(binary.getRHS())) {
      if (llvm::MulOverflow(scale.getValue(), factor, product))
        overflows = true;
      else
        add(binary.getLHS(), product);
      return;
    }
  overflows |= llvm::AddOverflow(factors[expr], factor, factors[expr]);
}

Search::Search(std::vector<Term> given, int64_t least, int64_t most)
    : terms(std::move(given)), lowest(terms.size() + 1), highest(terms.size() + 1), least(least),
      most(most) {
  llvm::sort(terms,
             [](const Term &a, const Term &b) { return std::abs(a.factor) > std::abs(b.factor); });
  for (size_t i = terms.size(); i-- > 0;) {
    int64_t reach = terms[i].factor * terms[i].span;
    lowest[i] = lowest[i + 1] + std::min<int64_t>(reach, 0);
    highest[i] = highest[i + 1] + std::max<int64_t>(reach, 0);
  }
}

bool Search::reaches(size_t next, int64_t sum) {
  if (sum + highest[next] < least || sum + lowest[next] > most)
    return false;
  if (next == terms.size() || --budget < 0)
    return true;
  // What this term must add for the others to reach the rest.
  auto [factor, span] = terms[next];
  int64_t from = least - sum - highest[next + 1], to = most - sum - lowest[next + 1];
  if (factor < 0)
    std::swap(from, to);
  int64_t first = std::max<int64_t>(llvm::divideCeilSigned(from, factor), 0);
  int64_t last = std::min(llvm::divideFloorSigned(to, factor), span);
  for (int64_t value = first; value <= last; ++value)
    if (reaches(next + 1, sum + factor * value))
      return true;
  return false;
}

AffineExpr weir::getDifference(AffineExpr first, AffineExpr second) {
  Sum sum;
  sum.add(second, 1);
  sum.add(first, -1);
  if (sum.overflows)
    return second - first;
  AffineExpr difference = getAffineConstantExpr(sum.constant, first.getContext());
  for (auto [expr, factor] : sum.factors)
    difference = difference + expr * factor;
  return difference;
}

bool weir::mayDifferBy(AffineExpr first, AffineExpr second, int64_t least, int64_t most,
                       ArrayRef<MapVariable> variables) {
  Sum from, to;
  from.add(first, 1);
  to.add(second, 1);
  // Numbers this large would overflow below.
  constexpr int64_t limit = int64_t(1) << 56;
  int64_t constant, reach = 0;
  if (from.overflows || to.overflows || llvm::SubOverflow(to.constant, from.constant, constant))
    return true;
  std::vector<Term> terms;
  // Adds `factor` times what varies from `lower` to `upper`.
  auto add = [&](int64_t factor, int64_t lower, int64_t upper) {
    int64_t span, width, shift;
    if (llvm::SubOverflow(upper, lower, span) || llvm::MulOverflow(factor, span, width) ||
        llvm::MulOverflow(factor, lower, shift) || llvm::AddOverflow(constant, shift, constant) ||
        width > limit || width < -limit || (reach += std::abs(width)) > limit)
      return false;
    if (factor != 0 && span > 0)
      terms.push_back({factor, span});
    return true;
  };
  for (auto [expr, factor] : to.factors) {
    Interval range = getInterval(expr, variables);
    if (!range.lower || !range.upper || *range.upper < *range.lower)
      return true;
    int64_t other = from.factors.lookup(expr);
    if (factor == other) {
      int64_t span;
      if (llvm::SubOverflow(*range.upper, *range.lower, span) || !add(factor, -span, span))
        return true;
    } else if (!add(factor, *range.lower, *range.upper) ||
               !add(-other, *range.lower, *range.upper)) {
      return true;
    }
  }
  for (auto [expr, factor] : from.factors) {
    if (to.factors.contains(expr))
      continue;
    Interval range = getInterval(expr, variables);
    if (!range.lower || !range.upper || *range.upper < *range.lower ||
        !add(-factor, *range.lower, *range.upper))
      return true;
  }
  for (int64_t number : {constant, least, most})
    if (number > limit || number < -limit)
      return true;
  return Search(std::move(terms), least, most).reaches(0, constant);
}

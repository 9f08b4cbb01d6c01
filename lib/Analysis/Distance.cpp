//===- Distance.cpp - How close two addresses can come --------------------===//
//
// Addresses are made of digits: a row number times the row's bytes, a column times
// the element's, constants for the lanes of a vector and the rows of a tile. Where
// the larger digits differ, the smaller ones cannot make up for it; a search from
// the largest digit down finds all ways in which they could, which are few.
//
// Quotients and rests are digits, too, of the number that they divide: 512 * block +
// lane is made of x / 49152, x / 64 % 768 and x % 64, whatever place each has in the
// address. Of two numbers that differ, some digit is the first that does.
//
//===----------------------------------------------------------------------===//

#include "Distance.h"

#include "llvm/ADT/MapVector.h"
#include "llvm/Support/MathExtras.h"

#include <map>
#include <set>

using namespace mlir;
using namespace weir;

namespace {
/// Checked arithmetic on sizes that programs may choose.
struct Checked {
  bool overflows = false;

  int64_t add(int64_t a, int64_t b) {
    overflows |= llvm::AddOverflow(a, b, a);
    return a;
  }
  int64_t subtract(int64_t a, int64_t b) {
    overflows |= llvm::SubOverflow(a, b, a);
    return a;
  }
  int64_t multiply(int64_t a, int64_t b) {
    overflows |= llvm::MulOverflow(a, b, a);
    return a;
  }
};

/// A sum of multiples of variables, and a constant.
struct Linear {
  std::map<unsigned, int64_t> factors;
  int64_t constant = 0;

  void add(unsigned variable, int64_t factor, Checked &checked) {
    int64_t &sum = factors[variable];
    sum = checked.add(sum, factor);
  }
  void add(const Linear &other, int64_t factor, Checked &checked);
};

/// A linear sum and multiples of other expressions.
struct Sum {
  Linear linear;
  llvm::MapVector<AffineExpr, int64_t> others;

  void add(AffineExpr expr, int64_t factor, Checked &checked);
};

/// Some digits of a number: number / divisor % modulus, or number / divisor if the modulus is 0.
struct Digits {
  Linear number;
  int64_t divisor = 1, modulus = 0;

  bool isNumber() const { return divisor == 1 && modulus == 0; }
};

/// A number that has a value in each address, at least 0.
struct Number {
  Linear of; ///< without its constants
  std::optional<int64_t> constants[2];
  llvm::MapVector<AffineExpr, Digits> places[2]; ///< where it occurs in the sums
  /// The factors of number / divisor in the two sums, by divisor. Each divisor is a multiple of the
  /// one before.
  std::map<int64_t, std::array<int64_t, 2>> quotients;
  int64_t max = 0;

  /// Whether `digits` are digits of this number (or of one that differs from it by a multiple of
  /// their divisor and modulus), and fit between the others: each begins and ends where another
  /// does, or within one.
  bool has(const Digits &digits, unsigned side, Checked &checked) const;
};

/// `factor` times a number from 0 to `span`.
struct Term {
  int64_t factor, span;
};

/// A search for values of terms by which their sum is in a range.
class TermSearch {
public:
  TermSearch(std::vector<Term> terms, int64_t min, int64_t max);
  /// Whether the terms from number `next` on can make the sum that is missing.
  bool reaches(size_t next, int64_t sum);

private:
  std::vector<Term> terms;
  std::vector<int64_t> highest; ///< the max sum of the terms from each on
  int64_t min, max;             ///< of a sum of terms with positive factors
  int64_t budget = 1000;        ///< number of tries, after which anything is assumed possible
};

/// The terms that a difference is the sum of.
class Terms {
public:
  Terms(int64_t before, int64_t after) : constant(checked.subtract(after, before)) {}
  /// Adds `after * y - before * x`, x and y in `range` and y - x in `difference`.
  void add(int64_t before, int64_t after, Interval range, Interval difference);
  /// Adds a term of which nothing is known.
  void giveUp() { isUnbounded = true; }
  /// Whether the sum may lie in [least, most].
  bool mayBeIn(int64_t min, int64_t max) const;

private:
  void add(int64_t factor, Interval range);

  std::vector<Term> terms;
  Checked checked;
  int64_t constant, reach = 0;
  bool isUnbounded = false, isImpossible = false;
};

/// Two addresses, as sums of digits.
class Addresses {
public:
  Addresses(AffineExpr first, AffineExpr second, ArrayRef<MapVariable> variables,
            const Differences &known);
  bool mayDifferBy(int64_t min, int64_t max) const;

private:
  void findNumbers();
  bool isOfDigits(Number &number);
  void replace(Number &number, unsigned side);
  Interval getRange(unsigned variable) const {
    return {variables[variable].lower, variables[variable].upper};
  }
  Interval getDifference(unsigned variable) const {
    auto it = known.find(variable);
    return it == known.end() ? Interval{} : it->second;
  }
  /// Returns the terms of all but the numbers.
  Terms getTerms() const;
  /// Adds the terms of a number. If `first` is given, its digit of number / `first` is the first
  /// that differs, by `difference`.
  void addDigits(const Number &number, std::optional<int64_t> first, Interval difference,
                 Terms &terms) const;

  Sum sums[2];
  ArrayRef<MapVariable> variables;
  const Differences &known;
  std::vector<Number> numbers;
  Checked checked;
};
} // namespace

//===----------------------------------------------------------------------===//
// Expressions
//===----------------------------------------------------------------------===//

void Linear::add(const Linear &other, int64_t factor, Checked &checked) {
  constant = checked.add(constant, checked.multiply(other.constant, factor));
  for (auto [variable, own] : other.factors)
    add(variable, checked.multiply(own, factor), checked);
}

void Sum::add(AffineExpr expr, int64_t factor, Checked &checked) {
  if (auto constant = dyn_cast<AffineConstantExpr>(expr)) {
    int64_t product = checked.multiply(constant.getValue(), factor);
    linear.constant = checked.add(linear.constant, product);
    return;
  }
  if (auto dim = dyn_cast<AffineDimExpr>(expr))
    return linear.add(dim.getPosition(), factor, checked);
  auto binary = dyn_cast<AffineBinaryOpExpr>(expr);
  if (binary && expr.getKind() == AffineExprKind::Add) {
    add(binary.getLHS(), factor, checked);
    add(binary.getRHS(), factor, checked);
    return;
  }
  if (binary && expr.getKind() == AffineExprKind::Mul)
    if (auto scale = dyn_cast<AffineConstantExpr>(binary.getRHS()))
      return add(binary.getLHS(), checked.multiply(scale.getValue(), factor), checked);
  int64_t &sum = others[expr];
  sum = checked.add(sum, factor);
}

static std::optional<Digits> getDigits(AffineExpr expr, Checked &checked) {
  Digits result;
  if (auto constant = dyn_cast<AffineConstantExpr>(expr)) {
    result.number.constant = constant.getValue();
    return result;
  }
  if (auto dim = dyn_cast<AffineDimExpr>(expr)) {
    result.number.factors[dim.getPosition()] = 1;
    return result;
  }
  auto binary = dyn_cast<AffineBinaryOpExpr>(expr);
  std::optional<Digits> left = binary ? getDigits(binary.getLHS(), checked) : std::nullopt;
  if (!left)
    return std::nullopt;
  if (expr.getKind() == AffineExprKind::Add) {
    std::optional<Digits> right = getDigits(binary.getRHS(), checked);
    if (right && !right->isNumber())
      std::swap(left, right);
    if (!right || !right->isNumber() || left->modulus != 0)
      return std::nullopt;
    // x / d + y = (x + d * y) / d
    left->number.add(right->number, left->divisor, checked);
    return left;
  }
  auto constant = dyn_cast<AffineConstantExpr>(binary.getRHS());
  if (!constant)
    return std::nullopt;
  int64_t by = constant.getValue();
  switch (expr.getKind()) {
  case AffineExprKind::Mul:
    if (!left->isNumber())
      return std::nullopt;
    result.number.add(left->number, by, checked);
    return result;
  case AffineExprKind::Mod:
    if (by < 1 || left->modulus % by != 0)
      return std::nullopt;
    left->modulus = by;
    return left;
  case AffineExprKind::FloorDiv:
    if (by < 1 || left->modulus % by != 0 || left->modulus == by)
      return std::nullopt;
    left->divisor = checked.multiply(left->divisor, by);
    left->modulus /= by;
    return left;
  default:
    return std::nullopt;
  }
}

//===----------------------------------------------------------------------===//
// Differences
//===----------------------------------------------------------------------===//

TermSearch::TermSearch(std::vector<Term> given, int64_t min, int64_t max) : min(min), max(max) {
  for (Term &term : given)
    if (term.factor < 0) { // counted from the other end
      term.factor = -term.factor;
      this->min += term.factor * term.span;
      this->max += term.factor * term.span;
    }
  llvm::sort(given, [](const Term &a, const Term &b) { return a.factor > b.factor; });
  for (const Term &term : given)
    if (!terms.empty() && terms.back().factor == term.factor)
      terms.back().span += term.span;
    else
      terms.push_back(term);
  highest.resize(terms.size() + 1);
  for (size_t i = terms.size(); i-- > 0;) {
    highest[i] = highest[i + 1] + terms[i].factor * terms[i].span;
  }
}

bool TermSearch::reaches(size_t next, int64_t sum) {
  if (sum + highest[next] < min || sum > max)
    return false;
  if (next == terms.size() || --budget < 0)
    return true;
  // The values of this term with which the others can reach the range.
  auto [factor, span] = terms[next];
  int64_t first =
      std::max<int64_t>(llvm::divideCeilSigned(min - sum - highest[next + 1], factor), 0);
  int64_t last = std::min(llvm::divideFloorSigned(max - sum, factor), span);
  for (int64_t value = first; value <= last; ++value)
    if (reaches(next + 1, sum + factor * value))
      return true;
  return false;
}

/// Numbers this large would overflow in the search.
static constexpr int64_t limit = int64_t(1) << 56;

static bool isEmpty(Interval range) {
  return range.lower && range.upper && *range.lower > *range.upper;
}

void Terms::add(int64_t factor, Interval range) {
  if (factor == 0)
    return;
  if (!range.lower || !range.upper)
    return giveUp();
  int64_t span = checked.subtract(*range.upper, *range.lower);
  int64_t width = checked.multiply(factor, span);
  constant = checked.add(constant, checked.multiply(factor, *range.lower));
  checked.overflows |= width > limit || width < -limit;
  if (!checked.overflows)
    reach += std::abs(width);
  checked.overflows |= reach > limit;
  if (span > 0)
    terms.push_back({factor, span});
}

void Terms::add(int64_t before, int64_t after, Interval range, Interval difference) {
  std::optional<int64_t> span = addBounds(range.upper, scaleBound(range.lower, -1));
  Interval possible = intersect(difference, {scaleBound(span, -1), span});
  isImpossible |= isEmpty(range) || isEmpty(possible);
  if (before != after && !difference.lower && !difference.upper) {
    add(after, range);
    add(checked.multiply(before, -1), range);
  } else {
    add(after, possible);
    add(checked.subtract(after, before), range);
  }
}

bool Terms::mayBeIn(int64_t min, int64_t max) const {
  if (isImpossible)
    return false;
  if (isUnbounded || checked.overflows)
    return true;
  for (int64_t number : {constant, min, max})
    if (number > limit || number < -limit)
      return true;
  return TermSearch(terms, min, max).reaches(0, constant);
}

//===----------------------------------------------------------------------===//
// Numbers and their digits
//===----------------------------------------------------------------------===//

bool Number::has(const Digits &digits, unsigned side, Checked &checked) const {
  int64_t by = checked.multiply(digits.divisor, std::max<int64_t>(digits.modulus, 1));
  Linear rest = of;
  rest.constant = constants[side].value_or(digits.number.constant);
  rest.add(digits.number, -1, checked);
  for (const auto &known : places)
    for (const auto &[expr, other] : known)
      for (int64_t end : {other.divisor, other.divisor * std::max<int64_t>(other.modulus, 1)})
        for (int64_t own : {digits.divisor, by})
          if (end % own != 0 && own % end != 0)
            return false;
  return !checked.overflows && rest.constant % by == 0 &&
         llvm::all_of(rest.factors, [&](const auto &term) { return term.second % by == 0; });
}

Addresses::Addresses(AffineExpr first, AffineExpr second, ArrayRef<MapVariable> variables,
                     const Differences &known)
    : variables(variables), known(known) {
  sums[0].add(first, 1, checked);
  sums[1].add(second, 1, checked);
  findNumbers();
}

void Addresses::findNumbers() {
  struct Found {
    unsigned side;
    AffineExpr expr;
    Digits digits;
  };
  // Those of many variables first: where all multiples of a divisor have left a
  // quotient, it is still one of the whole number.
  std::multimap<size_t, Found, std::greater<>> found;
  for (unsigned side : {0u, 1u})
    for (auto [expr, factor] : sums[side].others)
      if (std::optional<Digits> digits = getDigits(expr, checked))
        found.insert({digits->number.factors.size(), Found{side, expr, *digits}});
  for (const auto &[size, next] : found) {
    auto number = llvm::find_if(
        numbers, [&](const Number &number) { return number.has(next.digits, next.side, checked); });
    if (number == numbers.end()) {
      number = numbers.emplace(numbers.end());
      number->of.factors = next.digits.number.factors;
    }
    if (!number->constants[next.side])
      number->constants[next.side] = next.digits.number.constant;
    number->places[next.side].insert({next.expr, next.digits});
  }
  llvm::erase_if(numbers, [&](Number &number) { return !isOfDigits(number); });
  // Multiples in a sum are of a number that it has digits of, if there is one.
  for (unsigned side : {0u, 1u})
    for (bool hasDigits : {true, false})
      for (Number &number : numbers)
        if (number.places[side].empty() != hasDigits)
          replace(number, side);
}

/// Fills in all of `number` but the factors. Returns whether each divisor is a multiple of the one
/// before.
bool Addresses::isOfDigits(Number &number) {
  number.quotients[1];
  for (unsigned side : {0u, 1u}) {
    for (const auto &[expr, digits] : number.places[side]) {
      number.quotients[digits.divisor];
      if (digits.modulus)
        number.quotients[checked.multiply(digits.divisor, digits.modulus)];
    }
    int64_t constant = number.constants[side].value_or(0);
    number.constants[side] = constant;
    Interval range = {constant, constant};
    for (auto [variable, factor] : number.of.factors) {
      if (factor == 0 || factor > limit || factor < -limit)
        return false;
      Interval own = getRange(variable);
      if (factor < 0)
        std::swap(own.lower, own.upper);
      range.lower = addBounds(range.lower, scaleBound(own.lower, factor));
      range.upper = addBounds(range.upper, scaleBound(own.upper, factor));
    }
    if (!range.lower || !range.upper || *range.lower < 0)
      return false;
    number.max = std::max(number.max, *range.upper);
  }
  int64_t last = 1;
  return !checked.overflows && llvm::all_of(number.quotients, [&](const auto &quotient) {
    return quotient.first % std::exchange(last, quotient.first) == 0;
  });
}

/// Moves quotients and rests of the number, and its multiples, from a sum to the number.
void Addresses::replace(Number &number, unsigned side) {
  Sum &sum = sums[side];
  for (const auto &[expr, digits] : number.places[side]) {
    int64_t factor = std::exchange(sum.others[expr], 0);
    int64_t &quotient = number.quotients[digits.divisor][side];
    quotient = checked.add(quotient, factor);
    if (digits.modulus) {
      int64_t &rest = number.quotients[digits.divisor * digits.modulus][side];
      rest = checked.subtract(rest, checked.multiply(factor, digits.modulus));
      continue;
    }
    // x / d = (x + d * y) / d - y
    Linear more = number.of;
    more.constant = *number.constants[side];
    more.add(digits.number, -1, checked);
    more.constant /= digits.divisor;
    for (auto &[variable, own] : more.factors)
      own /= digits.divisor;
    sum.linear.add(more, checked.multiply(factor, -1), checked);
  }
  // Any multiple would do; this one leaves nothing of the variable that varies most finely.
  auto finest = llvm::min_element(number.of.factors, [](const auto &a, const auto &b) {
    return std::abs(a.second) < std::abs(b.second);
  });
  if (finest == number.of.factors.end())
    return;
  int64_t own = sum.linear.factors[finest->first];
  if (own > limit || own < -limit)
    return;
  int64_t times = own / finest->second;
  int64_t &whole = number.quotients[1][side];
  whole = checked.add(whole, times);
  Linear all = number.of;
  all.constant = *number.constants[side];
  sum.linear.add(all, checked.multiply(times, -1), checked);
}

Terms Addresses::getTerms() const {
  Terms terms(sums[0].linear.constant, sums[1].linear.constant);
  std::set<unsigned> varying;
  for (const Sum &sum : sums)
    for (auto [variable, factor] : sum.linear.factors)
      varying.insert(variable);
  for (const auto &[variable, difference] : known)
    varying.insert(variable); // some may be impossible
  auto getFactor = [](const auto &factors, auto key) {
    auto it = factors.find(key);
    return it == factors.end() ? int64_t(0) : it->second;
  };
  for (unsigned variable : varying)
    terms.add(getFactor(sums[0].linear.factors, variable),
              getFactor(sums[1].linear.factors, variable), getRange(variable),
              getDifference(variable));
  for (auto [expr, factor] : sums[1].others)
    terms.add(getFactor(sums[0].others, expr), factor, getInterval(expr, variables), {});
  for (auto [expr, factor] : sums[0].others)
    if (!sums[1].others.contains(expr))
      terms.add(factor, 0, getInterval(expr, variables), {});
  return terms;
}

void Addresses::addDigits(const Number &number, std::optional<int64_t> first, Interval difference,
                          Terms &terms) const {
  for (auto it = number.quotients.begin(); it != number.quotients.end(); ++it) {
    // Each quotient by less is a sum of this digit and others, too.
    Checked overall;
    std::array<int64_t, 2> factors = {0, 0};
    for (auto less = number.quotients.begin(); less != std::next(it); ++less)
      for (unsigned side : {0u, 1u})
        factors[side] = overall.add(factors[side],
                                    overall.multiply(less->second[side], it->first / less->first));
    Interval range = {0, number.max / it->first};
    if (auto next = std::next(it); next != number.quotients.end())
      range.upper = std::min(*range.upper, next->first / it->first - 1);
    if (overall.overflows)
      return terms.giveUp();
    if (!first || it->first < *first)
      terms.add(factors[0], factors[1], range, {});
    else if (it->first > *first)
      terms.add(factors[0], factors[1], range, {0, 0});
    else
      terms.add(factors[0], factors[1], range, difference);
  }
}

bool Addresses::mayDifferBy(int64_t min, int64_t max) const {
  if (checked.overflows)
    return true;
  const Terms others = getTerms();
  auto mayBeIn = [&](const Number *differing, int64_t divisor, Interval difference) {
    Terms terms = others;
    for (const Number &number : numbers)
      addDigits(number, &number == differing ? std::optional(divisor) : std::nullopt, difference,
                terms);
    return terms.mayBeIn(min, max);
  };
  if (!mayBeIn(nullptr, 0, {}))
    return false;
  for (const Number &number : numbers) {
    Terms whole(*number.constants[0], *number.constants[1]);
    for (auto [variable, factor] : number.of.factors)
      whole.add(factor, factor, getRange(variable), getDifference(variable));
    if (whole.mayBeIn(0, 0))
      continue; // and all its digits the same
    auto mayDifferFirst = [&](const auto &quotient) {
      return (whole.mayBeIn(1, number.max) && mayBeIn(&number, quotient.first, {1, {}})) ||
             (whole.mayBeIn(-number.max, -1) && mayBeIn(&number, quotient.first, {{}, -1}));
    };
    if (llvm::none_of(number.quotients, mayDifferFirst))
      return false;
  }
  return true;
}

AffineExpr weir::getDifference(AffineExpr first, AffineExpr second) {
  Checked checked;
  Sum sum;
  sum.add(second, 1, checked);
  sum.add(first, -1, checked);
  if (checked.overflows)
    return second - first;
  MLIRContext *context = first.getContext();
  AffineExpr difference = getAffineConstantExpr(sum.linear.constant, context);
  for (auto [variable, factor] : sum.linear.factors)
    difference = difference + getAffineDimExpr(variable, context) * factor;
  for (auto [expr, factor] : sum.others)
    difference = difference + expr * factor;
  return difference;
}

bool weir::mayDifferBy(AffineExpr first, AffineExpr second, int64_t min, int64_t max,
                       ArrayRef<MapVariable> variables, const Differences &known) {
  return Addresses(first, second, variables, known).mayDifferBy(min, max);
}

//===- IntegerSystem.cpp - Whether constraints have an integer point ------===//

#include "IntegerSystem.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/MathExtras.h"

#include <limits>
#include <map>
#include <numeric>

using namespace weir;

using SumTerm = LinearSum::Term;
using PointAnswer = IntegerSystem::Answer;

//===----------------------------------------------------------------------===//
// Sums
//===----------------------------------------------------------------------===//

bool LinearSum::add(const LinearSum &other, int64_t factor) {
  int64_t product;
  if (llvm::MulOverflow(other.constant, factor, product) ||
      llvm::AddOverflow(constant, product, constant))
    return false;
  if (factor == 0)
    return true;
  llvm::SmallVector<SumTerm, 4> sum;
  const SumTerm *own = terms.begin(), *more = other.terms.begin();
  while (own != terms.end() || more != other.terms.end()) {
    if (more == other.terms.end() || (own != terms.end() && own->variable < more->variable)) {
      sum.push_back(*own++);
      continue;
    }
    SumTerm term = *more++;
    if (llvm::MulOverflow(term.factor, factor, term.factor))
      return false;
    if (own != terms.end() && own->variable == term.variable)
      if (llvm::AddOverflow(term.factor, (own++)->factor, term.factor))
        return false;
    if (term.factor != 0)
      sum.push_back(term);
  }
  terms = std::move(sum);
  return true;
}

//===----------------------------------------------------------------------===//
// Systems
//===----------------------------------------------------------------------===//

/// A number that stands in keys for a missing bound. No bound is as large.
static constexpr int64_t noBound = std::numeric_limits<int64_t>::min();

/// Factors and bounds up to this one keep every sum of the search within 128 bits.
static constexpr int64_t largest = int64_t(1) << 56;

static bool isLarge(int64_t number) { return number > largest || number < -largest; }

static void appendTo(std::vector<int64_t> &key, Interval range) {
  key.push_back(range.lower.value_or(noBound));
  key.push_back(range.upper.value_or(noBound));
}

unsigned IntegerSystem::addVariable(Interval range) {
  // A bound this far away is none; to leave it out only adds points.
  for (std::optional<int64_t> *bound : {&range.lower, &range.upper})
    if (*bound && isLarge(**bound)) {
      bound->reset();
      dropsBound = true;
    }
  key.push_back(-1);
  appendTo(key, range);
  variables.push_back(range);
  return variables.size() - 1;
}

void IntegerSystem::require(const LinearSum &sum, Interval range) {
  Constraint constraint{sum, range};
  constraint.sum.constant = 0;
  for (std::optional<int64_t> *bound : {&constraint.range.lower, &constraint.range.upper})
    if (*bound) {
      isTooLarge |= llvm::SubOverflow(**bound, sum.constant, **bound);
      isTooLarge |= isLarge(**bound);
    }
  key.push_back(int64_t(sum.terms.size()));
  for (SumTerm term : sum.terms) {
    isTooLarge |= isLarge(term.factor);
    key.push_back(term.variable);
    key.push_back(term.factor);
  }
  appendTo(key, constraint.range);
  constraints.push_back(std::move(constraint));
}

//===----------------------------------------------------------------------===//
// The search
//===----------------------------------------------------------------------===//

namespace {
using Wide = __int128;

/// A range whose ends are always numbers. `infinite` and its opposite stand for no bound.
struct Bounds {
  int64_t lower, upper;
};

constexpr int64_t infinite = std::numeric_limits<int64_t>::max();

/// The min and max value of a sum; each is meaningless if some term has no such bound.
struct Reach {
  Wide lower = 0, upper = 0;
  unsigned withoutLower = 0, withoutUpper = 0; ///< terms

  void add(SumTerm term, Bounds range, int sign);
};

class PointSearch {
public:
  PointSearch(llvm::ArrayRef<Interval> variables, int64_t &steps);
  /// Adds a constraint. Returns false where no point satisfies it.
  bool add(const LinearSum &sum, Interval range);
  /// Adds combinations of equalities with other constraints. Returns false if no point satisfies
  /// them.
  bool addCombinations();
  /// Adds an equality for each digit of a sum that can have one value only, such as x - y = 0 for
  /// 64 * x - 64 * y + z in [0, 3], z in [0, 7]. Returns false if no point satisfies them.
  bool splitDigits();
  PointAnswer run();

private:
  struct Row {
    llvm::SmallVector<SumTerm, 4> terms; ///< by size of the factor, the largest first
    Bounds range;
  };
  using AllBounds = std::vector<Bounds>;

  bool isOpen(SumTerm term, const AllBounds &ranges) const {
    return ranges[term.variable].lower != ranges[term.variable].upper;
  }
  bool mayHold(const Row &row, const Reach &reach, const AllBounds &ranges) const;
  bool holds(const Row &row, const AllBounds &ranges) const;
  bool narrow(const Row &row, AllBounds &ranges, std::vector<unsigned> &changed) const;
  bool narrowAll(AllBounds &ranges, std::vector<bool> isWaiting);
  std::optional<unsigned> choose(const AllBounds &ranges) const;
  PointAnswer search(AllBounds ranges, std::vector<bool> isWaiting, unsigned depth);

  AllBounds start;
  std::vector<Row> rows;
  std::map<std::vector<std::pair<unsigned, int64_t>>, unsigned> rowOf; ///< by terms
  std::vector<llvm::SmallVector<unsigned, 4>> rowsOf;                  ///< by variable
  int64_t &steps;
};
} // namespace

void Reach::add(SumTerm term, Bounds range, int sign) {
  bool falls = term.factor < 0;
  int64_t low = falls ? range.upper : range.lower, high = falls ? range.lower : range.upper;
  if (low == infinite || low == -infinite)
    withoutLower += sign;
  else
    lower += sign * Wide(term.factor) * low;
  if (high == infinite || high == -infinite)
    withoutUpper += sign;
  else
    upper += sign * Wide(term.factor) * high;
}

static Wide divideDown(Wide number, Wide by) {
  Wide quotient = number / by;
  return quotient - (number % by != 0 && (number < 0) != (by < 0));
}

static Wide divideUp(Wide number, Wide by) { return -divideDown(-number, by); }

PointSearch::PointSearch(llvm::ArrayRef<Interval> variables, int64_t &steps)
    : rowsOf(variables.size()), steps(steps) {
  for (Interval range : variables)
    start.push_back({range.lower.value_or(-infinite), range.upper.value_or(infinite)});
}

bool PointSearch::add(const LinearSum &sum, Interval range) {
  Bounds bounds = {range.lower.value_or(-infinite), range.upper.value_or(infinite)};
  if (sum.isConstant())
    return bounds.lower <= 0 && bounds.upper >= 0;
  // Equal sums, but for a factor, are one row.
  int64_t common = 0;
  for (SumTerm term : sum.terms)
    common = std::gcd(common, term.factor);
  if (sum.terms.front().factor < 0)
    common = -common;
  if (common < 0)
    bounds = {-bounds.upper, -bounds.lower};
  int64_t size = std::abs(common);
  if (bounds.lower != -infinite)
    bounds.lower = llvm::divideCeilSigned(bounds.lower, size);
  if (bounds.upper != infinite)
    bounds.upper = llvm::divideFloorSigned(bounds.upper, size);
  std::vector<std::pair<unsigned, int64_t>> terms;
  for (SumTerm term : sum.terms)
    terms.push_back({term.variable, term.factor / common});
  if (terms.size() == 1) {
    Bounds &own = start[terms[0].first];
    own = {std::max(own.lower, bounds.lower), std::min(own.upper, bounds.upper)};
    return own.lower <= own.upper;
  }
  auto [place, isNew] = rowOf.try_emplace(terms, rows.size());
  if (isNew) {
    Row &row = rows.emplace_back(Row{{}, bounds});
    for (auto [variable, factor] : terms) {
      row.terms.push_back({variable, factor});
      rowsOf[variable].push_back(rows.size() - 1);
    }
    llvm::sort(row.terms, [](SumTerm a, SumTerm b) {
      return std::pair(-std::abs(a.factor), a.variable) <
             std::pair(-std::abs(b.factor), b.variable);
    });
  }
  Bounds &row = rows[place->second].range;
  row = {std::max(row.lower, bounds.lower), std::min(row.upper, bounds.upper)};
  return row.lower <= row.upper;
}

/// Rows that are given and derived, together.
static constexpr size_t maxRows = 256;

bool PointSearch::splitDigits() {
  if (!narrowAll(start, std::vector<bool>(rows.size(), true)))
    return false;
  for (size_t index = 0; index < rows.size() && rows.size() < maxRows; ++index) {
    const Row row = rows[index];
    if (row.range.lower == -infinite || row.range.upper == infinite)
      continue;
    Reach rest;
    for (SumTerm term : row.terms)
      rest.add(term, start[term.variable], 1);
    int64_t common = 0;
    for (size_t next = 0; next + 1 < row.terms.size(); ++next) {
      common = std::gcd(common, row.terms[next].factor);
      rest.add(row.terms[next], start[row.terms[next].variable], -1);
      // Terms with equal factors are one digit.
      if (rest.withoutLower || rest.withoutUpper ||
          std::abs(row.terms[next].factor) == std::abs(row.terms[next + 1].factor))
        continue;
      Wide least = divideUp(row.range.lower - rest.upper, common),
           most = divideDown(row.range.upper - rest.lower, common);
      if (least > most)
        return false;
      if (least < most || least * common > largest || least * common < -largest)
        continue;
      int64_t high = int64_t(least * common);
      auto getPart = [&](size_t begin, size_t end) {
        LinearSum part;
        part.terms.assign(row.terms.begin() + begin, row.terms.begin() + end);
        llvm::sort(part.terms, [](SumTerm a, SumTerm b) { return a.variable < b.variable; });
        return part;
      };
      if (!add(getPart(0, next + 1), {high, high}) ||
          !add(getPart(next + 1, row.terms.size()),
               {row.range.lower - high, row.range.upper - high}))
        return false;
    }
  }
  return true;
}

bool PointSearch::addCombinations() {
  auto getSum = [](const Row &row) {
    LinearSum sum{row.terms, 0};
    llvm::sort(sum.terms, [](SumTerm a, SumTerm b) { return a.variable < b.variable; });
    return sum;
  };
  auto getBound = [](int64_t bound) {
    return std::abs(bound) == infinite ? std::nullopt : std::optional(bound);
  };
  const std::vector<Row> given = rows;
  for (const Row &equal : given) {
    if (equal.range.lower != equal.range.upper)
      continue;
    LinearSum zero = getSum(equal);
    zero.constant = -equal.range.lower;
    for (SumTerm pivot : equal.terms) {
      if (std::abs(pivot.factor) != 1)
        continue;
      for (const Row &row : given) {
        auto term =
            llvm::find_if(row.terms, [&](SumTerm term) { return term.variable == pivot.variable; });
        if (&row == &equal || term == row.terms.end())
          continue;
        LinearSum sum = getSum(row);
        Interval range = {getBound(row.range.lower), getBound(row.range.upper)};
        if (!sum.add(zero, -term->factor * pivot.factor) || isLarge(sum.constant) ||
            llvm::any_of(sum.terms, [](SumTerm term) { return isLarge(term.factor); }))
          continue;
        for (std::optional<int64_t> *bound : {&range.lower, &range.upper})
          if (*bound)
            **bound -= sum.constant;
        sum.constant = 0;
        if (!add(sum, range))
          return false;
        if (rows.size() >= maxRows)
          return true;
      }
    }
  }
  return true;
}

/// Whether the digits of a sum can make up a value that the row allows: terms with the k largest
/// factors add up to a multiple of their common divisor, for every k.
bool PointSearch::mayHold(const Row &row, const Reach &reach, const AllBounds &ranges) const {
  if ((!reach.withoutLower && row.range.upper != infinite && reach.lower > row.range.upper) ||
      (!reach.withoutUpper && row.range.lower != -infinite && reach.upper < row.range.lower))
    return false;
  if (row.range.lower == -infinite || row.range.upper == infinite)
    return true;
  Reach rest = reach;
  int64_t common = 0;
  for (SumTerm term : row.terms) {
    if (!isOpen(term, ranges))
      continue; // a constant
    common = std::gcd(common, term.factor);
    rest.add(term, ranges[term.variable], -1);
    if (rest.withoutLower || rest.withoutUpper)
      continue;
    Wide lower = row.range.lower - rest.upper, upper = row.range.upper - rest.lower;
    if (divideDown(upper, common) * common < lower)
      return false;
  }
  return true;
}

/// Whether every point of `ranges` satisfies the row.
bool PointSearch::holds(const Row &row, const AllBounds &ranges) const {
  Reach reach;
  for (SumTerm term : row.terms)
    reach.add(term, ranges[term.variable], 1);
  return (row.range.lower == -infinite ||
          (!reach.withoutLower && reach.lower >= row.range.lower)) &&
         (row.range.upper == infinite || (!reach.withoutUpper && reach.upper <= row.range.upper));
}

/// Narrows the range of each variable of a row to what the others leave. Returns false if nothing
/// is left.
bool PointSearch::narrow(const Row &row, AllBounds &ranges, std::vector<unsigned> &changed) const {
  Reach reach;
  for (SumTerm term : row.terms)
    reach.add(term, ranges[term.variable], 1);
  if (!mayHold(row, reach, ranges))
    return false;
  for (SumTerm term : row.terms) {
    Bounds &own = ranges[term.variable];
    Reach others = reach;
    others.add(term, own, -1);
    Bounds least = own;
    auto limitFactor = [&](bool isUpper, Wide limit) { // of factor * variable
      bool isUpperOfOwn = isUpper == (term.factor > 0);
      Wide bound = isUpperOfOwn ? divideDown(limit, term.factor) : divideUp(limit, term.factor);
      if (isUpperOfOwn && bound < least.upper)
        least.upper = int64_t(std::max<Wide>(bound, -infinite + 1));
      else if (!isUpperOfOwn && bound > least.lower)
        least.lower = int64_t(std::min<Wide>(bound, infinite - 1));
    };
    if (row.range.upper != infinite && !others.withoutLower)
      limitFactor(true, row.range.upper - others.lower);
    if (row.range.lower != -infinite && !others.withoutUpper)
      limitFactor(false, row.range.lower - others.upper);
    if (least.lower > least.upper)
      return false;
    if (least.lower == own.lower && least.upper == own.upper)
      continue;
    reach = others;
    own = least;
    reach.add(term, own, 1);
    changed.push_back(term.variable);
  }
  return true;
}

/// Narrows all ranges until nothing changes. Returns false where nothing is left.
bool PointSearch::narrowAll(AllBounds &ranges, std::vector<bool> isWaiting) {
  std::vector<unsigned> waiting, changed;
  for (unsigned row = 0; row < rows.size(); ++row)
    if (isWaiting[row])
      waiting.push_back(row);
  // Two rows may narrow each other by one again and again: what they leave is tried by halves.
  size_t most = 8 * rows.size() + 16;
  for (size_t next = 0; next < waiting.size() && next < most; ++next) {
    isWaiting[waiting[next]] = false;
    --steps;
    changed.clear();
    if (!narrow(rows[waiting[next]], ranges, changed))
      return false;
    for (unsigned variable : changed)
      for (unsigned row : rowsOf[variable])
        if (!isWaiting[row]) {
          isWaiting[row] = true;
          waiting.push_back(row);
        }
  }
  return true;
}

/// Returns a variable that the answer depends on still: the one with the fewest values.
std::optional<unsigned> PointSearch::choose(const AllBounds &ranges) const {
  std::optional<unsigned> best;
  uint64_t fewest = 0;
  for (const Row &row : rows) {
    if (holds(row, ranges))
      continue;
    for (SumTerm term : row.terms) {
      if (!isOpen(term, ranges))
        continue;
      const Bounds &range = ranges[term.variable];
      uint64_t values = uint64_t(range.upper) - uint64_t(range.lower);
      if (!best || values < fewest) {
        best = term.variable;
        fewest = values;
      }
    }
  }
  return best;
}

/// Returns the value at which to cut a range in two: at twice the other end if one end is missing.
static int64_t getMiddle(Bounds range) {
  auto [lower, upper] = range;
  bool hasLower = lower != -infinite, hasUpper = upper != infinite;
  if (hasLower && hasUpper)
    return lower + int64_t((uint64_t(upper) - uint64_t(lower)) / 2);
  if (hasLower && lower >= 0)
    return int64_t(std::min<Wide>(2 * Wide(lower) + 16, infinite - 2));
  if (hasUpper && upper <= 0)
    return int64_t(std::max<Wide>(2 * Wide(upper) - 16, -infinite + 2));
  return 0;
}

PointAnswer PointSearch::search(AllBounds ranges, std::vector<bool> isWaiting, unsigned depth) {
  if (!narrowAll(ranges, std::move(isWaiting)))
    return PointAnswer::None;
  std::optional<unsigned> variable = choose(ranges);
  if (!variable)
    return llvm::all_of(rows, [&](const Row &row) { return holds(row, ranges); })
               ? PointAnswer::Found
               : PointAnswer::None;
  if (steps <= 0 || depth == 0)
    return PointAnswer::Unknown;
  auto [lower, upper] = ranges[*variable];
  int64_t middle = getMiddle(ranges[*variable]);
  Bounds halves[2] = {{lower, middle}, {middle + 1, upper}};
  if (std::abs(lower) > std::abs(upper)) // points near 0 are found sooner
    std::swap(halves[0], halves[1]);
  std::vector<bool> next(rows.size());
  for (unsigned row : rowsOf[*variable])
    next[row] = true;
  PointAnswer result = PointAnswer::None;
  for (Bounds half : halves) {
    ranges[*variable] = half;
    PointAnswer answer = search(ranges, next, depth - 1);
    if (answer == PointAnswer::Found)
      return answer;
    if (answer == PointAnswer::Unknown)
      result = answer;
    if (steps <= 0)
      return PointAnswer::Unknown;
  }
  return result;
}

PointAnswer PointSearch::run() {
  return search(start, std::vector<bool>(rows.size(), true), /*depth=*/400);
}

bool IntegerSystem::mayBeIn(const LinearSum &sum, Interval range) const {
  Reach reach;
  for (SumTerm term : sum.terms) {
    Interval own = variables[term.variable];
    reach.add(term, {own.lower.value_or(-infinite), own.upper.value_or(infinite)}, 1);
  }
  return (reach.withoutLower || !range.upper || reach.lower + sum.constant <= *range.upper) &&
         (reach.withoutUpper || !range.lower || reach.upper + sum.constant >= *range.lower);
}

PointAnswer IntegerSystem::findPoint(int64_t &steps) const {
  if (isTooLarge)
    return PointAnswer::Unknown;
  // Combinations cost more than they bring where the ranges of variables decide.
  PointAnswer answer = PointAnswer::Unknown;
  int64_t all = steps, used = 0;
  for (bool isCombined : {false, true}) {
    steps = isCombined ? all - used : all / 2;
    int64_t given = steps;
    PointSearch search(variables, steps);
    auto addTo = [&](const Constraint &constraint) {
      return search.add(constraint.sum, constraint.range);
    };
    bool mayHold = llvm::all_of(constraints, addTo) && search.splitDigits() &&
                   (!isCombined || (search.addCombinations() && search.splitDigits()));
    answer = mayHold ? search.run() : PointAnswer::None;
    used += given - steps;
    if (answer != PointAnswer::Unknown)
      break;
  }
  steps = all - used;
  return answer;
}

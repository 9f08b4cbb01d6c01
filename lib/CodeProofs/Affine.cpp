//===- Affine.cpp - Sums of ids and counters ------------------------------===//

#include "weir/CodeProofs/Affine.h"

#include <algorithm>
#include <numeric>

using namespace weir::spv;

/// Max terms of a sum; real address arithmetic has fewer.
static constexpr size_t maxTerms = 32;
/// Max rounds of interval propagation over all guards.
static constexpr int maxRounds = 4;
/// Max number of values of one number, and of all, that are looked at one by one.
static constexpr int64_t maxValues = 1 << 14, maxTries = 1 << 18;
/// Max number of atoms inside an atom.
static constexpr uint32_t maxAtomSize = 64;

static int64_t add(int64_t a, int64_t b) {
  int64_t sum;
  if (__builtin_add_overflow(a, b, &sum))
    throw TooLarge();
  return sum;
}

static int64_t multiply(int64_t a, int64_t b) {
  int64_t product;
  if (__builtin_mul_overflow(a, b, &product))
    throw TooLarge();
  return product;
}

int64_t Affine::getFactor(uint32_t number) const {
  for (auto [each, factor] : terms)
    if (each == number)
      return factor;
  return 0;
}

Affine weir::spv::operator+(const Affine &a, const Affine &b) {
  Affine sum{add(a.constant, b.constant), {}};
  auto left = a.terms.begin(), right = b.terms.begin();
  while (left != a.terms.end() || right != b.terms.end()) {
    if (right == b.terms.end() || (left != a.terms.end() && left->first < right->first)) {
      sum.terms.push_back(*left++);
    } else if (left == a.terms.end() || right->first < left->first) {
      sum.terms.push_back(*right++);
    } else {
      if (int64_t factor = add(left->second, right->second))
        sum.terms.emplace_back(left->first, factor);
      ++left;
      ++right;
    }
  }
  if (sum.terms.size() > maxTerms)
    throw TooLarge();
  return sum;
}

Affine weir::spv::operator*(const Affine &a, int64_t factor) {
  if (factor == 0)
    return {};
  Affine product{multiply(a.constant, factor), a.terms};
  for (auto &[number, each] : product.terms)
    each = multiply(each, factor);
  return product;
}

Affine Atoms::getId(Atom::Kind kind, uint32_t number, int64_t count) {
  if (count == 1)
    return {};
  auto [place, isNew] = ids.try_emplace({kind, number}, uint32_t(atoms.size()));
  if (isNew) {
    Atom &atom = atoms.emplace_back();
    atom.kind = kind;
    atom.number = number;
    atom.range = {0, count - 1};
  }
  return Affine::number(place->second);
}

Affine Atoms::makeOther(Interval range) {
  if (range.min == range.max)
    return Affine::of(range.min);
  Atom &atom = atoms.emplace_back();
  atom.range = range;
  return Affine::number(uint32_t(atoms.size() - 1));
}

bool Atoms::isUniform(uint32_t number) const {
  const Atom &atom = atoms[number];
  if (atom.kind != Atom::Kind::Digit && atom.kind != Atom::Kind::Clamped)
    return atom.isUniform;
  return std::all_of(atom.of.terms.begin(), atom.of.terms.end(),
                     [&](auto term) { return isUniform(term.first); });
}

/// Returns floor(a / b). Needs: b >= 1.
static int64_t divideDown(int64_t a, int64_t b) { return a / b - (a % b < 0 ? 1 : 0); }

namespace {

/// Ranges of atoms, narrowed by interval propagation.
class Ranges {
public:
  explicit Ranges(const Atoms &atoms) : atoms(atoms) {}

  Interval get(uint32_t number) const {
    auto found = narrowed.find(number);
    Interval range = found == narrowed.end() ? atoms[number].range : found->second;
    const Atom &atom = atoms[number];
    if (narrowed.empty() || depth > maxDepth)
      return range;
    ++depth;
    if (atom.kind == Atom::Kind::Choice)
      range = join(range, get(atom.of), get(atom.otherwise));
    if (atom.kind == Atom::Kind::Digit)
      range = getDigit(atom, range);
    --depth;
    return range;
  }

  /// Returns the range of a digit, which is in `range`.
  Interval getDigit(const Atom &atom, Interval range) const {
    Interval of = get(atom.of);
    if (of.min >= 0 && (atom.modulus == 0 || of.max / atom.divisor < atom.modulus))
      range = {std::max(range.min, of.min / atom.divisor),
               std::min(range.max, of.max / atom.divisor)};
    return range;
  }

  Interval get(const Affine &sum) const {
    Interval range{sum.constant, sum.constant};
    for (auto [number, factor] : sum.terms) {
      Interval each = get(number);
      range.min = add(range.min, multiply(factor, factor > 0 ? each.min : each.max));
      range.max = add(range.max, multiply(factor, factor > 0 ? each.max : each.min));
    }
    return range;
  }

  /// Narrows the atoms of `guard` by guard >= 0; returns false if it is always negative.
  bool require(const Affine &guard) {
    int64_t max = get(guard).max;
    for (auto [number, factor] : guard.terms) {
      Interval range = get(number);
      // The min that this term must have when the others are largest: factor * atom >= min.
      int64_t min = add(multiply(factor, factor > 0 ? range.max : range.min), multiply(max, -1));
      int64_t bound = min / factor, rest = min % factor;
      if (factor > 0)
        range.min = std::max(range.min, bound + (rest > 0));
      else
        range.max = std::min(range.max, bound - (rest > 0));
      if (range.min > range.max)
        return false;
      narrowed[number] = range;
    }
    return max >= 0;
  }

private:
  static constexpr int maxDepth = 16;

  /// Returns the part of `range` that is between the ends of both others.
  static Interval join(Interval range, Interval a, Interval b) {
    return {std::max(range.min, std::min(a.min, b.min)),
            std::min(range.max, std::max(a.max, b.max))};
  }

  const Atoms &atoms;
  std::map<uint32_t, Interval> narrowed;
  mutable int depth = 0;
};

} // namespace

Interval Atoms::getRange(const Affine &sum) const { return Ranges(*this).get(sum); }

std::optional<Interval> Atoms::getRange(const Affine &sum,
                                        const std::vector<Affine> &guards) const {
  Ranges ranges(*this);
  for (int round = 0; round < maxRounds; ++round)
    for (const Affine &guard : guards)
      if (!ranges.require(guard))
        return std::nullopt;
  Interval range = ranges.get(sum);
  // Since a guard is >= 0, c * sum + k * guard bounds c * sum from above, and - k * guard from
  // below. A k for which a term cancels may show that the sum grows only with the guard.
  for (const Affine &guard : guards)
    for (auto [number, factor] : guard.terms) {
      int64_t own = sum.getFactor(number);
      if (own == 0 || own == INT64_MIN || factor == INT64_MIN)
        continue;
      int64_t common = std::gcd(own, factor), times = std::abs(factor / common),
              k = std::abs(own / common);
      bool isAbove = (own > 0) != (factor > 0);
      try {
        Interval bound = ranges.get(sum * times + guard * (isAbove ? k : -k));
        if (isAbove)
          range.max = std::min(range.max, divideDown(bound.max, times));
        else if (bound.min != INT64_MIN)
          range.min = std::max(range.min, -divideDown(-bound.min, times));
      } catch (TooLarge) {
      }
    }
  if (range.min > range.max)
    return std::nullopt;
  return range;
}

Affine Atoms::choose(const std::vector<Affine> &conditions, const Affine &first,
                     const Affine &second) {
  if (first == second)
    return first;
  // Terms that both have in common stay outside.
  Affine difference = first - second;
  Atom atom;
  atom.kind = Atom::Kind::Choice;
  atom.of = difference.isConstant() ? Affine::of(1) : first;
  atom.otherwise = difference.isConstant() ? Affine() : second;
  atom.conditions = conditions;
  Interval a = getRange(atom.of), b = getRange(atom.otherwise);
  atom.range = {std::min(a.min, b.min), std::max(a.max, b.max)};
  Affine choice = add(std::move(atom), std::nullopt);
  return difference.isConstant() ? second + choice * difference.constant : choice;
}

/// Returns the bits of numbers in [0, max] that are multiples of 2^low.
static uint64_t getBitsBelow(uint64_t max, int low) {
  uint64_t below = max ? ~uint64_t(0) >> __builtin_clzll(max) : 0;
  return low < 64 ? below & ~uint64_t(0) << low : 0;
}

/// Splits a sum into (terms whose factors `divisor` divides, divided by it; the rest).
static std::pair<Affine, Affine> split(const Affine &sum, int64_t divisor) {
  int64_t rest = sum.constant % divisor;
  rest += rest < 0 ? divisor : 0;
  Affine whole = Affine::of((sum.constant - rest) / divisor), part = Affine::of(rest);
  for (auto [number, factor] : sum.terms)
    if (factor % divisor == 0)
      whole.terms.emplace_back(number, factor / divisor);
    else
      part.terms.emplace_back(number, factor);
  return {whole, part};
}

/// Returns the bits of a sum whose terms have bits of their own: all that the terms may have set;
/// none if two terms may have a common one.
static std::optional<uint64_t> joinBits(const Atoms &atoms, const Affine &sum) {
  if (sum.constant < 0)
    return std::nullopt;
  uint64_t bits = uint64_t(sum.constant);
  for (auto [number, factor] : sum.terms) {
    int64_t max;
    if (factor <= 0 || atoms[number].range.min < 0 ||
        __builtin_mul_overflow(factor, atoms[number].range.max, &max))
      return std::nullopt;
    uint64_t own = getBitsBelow(uint64_t(max), __builtin_ctzll(uint64_t(factor)));
    if (bits & own)
      return std::nullopt;
    bits |= own;
  }
  return bits;
}

uint64_t Atoms::getBits(const Affine &sum, Interval range) const {
  uint64_t all = uint64_t(sum.constant);
  for (auto [number, factor] : sum.terms)
    all |= uint64_t(factor);
  uint64_t bits = getBitsBelow(uint64_t(range.max), all ? __builtin_ctzll(all) : 64);
  if (std::optional<uint64_t> joined = joinBits(*this, sum))
    return bits & *joined;
  // Multiples of 2^low, of either sign, change no bit below that.
  for (auto [number, factor] : sum.terms) {
    int low = __builtin_ctzll(uint64_t(factor));
    if (low == 0 || low > 61)
      continue;
    uint64_t below = (uint64_t(1) << low) - 1;
    if (std::optional<uint64_t> joined = joinBits(*this, split(sum, int64_t(1) << low).second))
      bits &= ~below | *joined;
  }
  return bits;
}

/// Returns the greatest common divisor of `divisor` and all factors.
static int64_t getCommonDivisor(const Affine &sum, int64_t divisor) {
  for (auto [number, factor] : sum.terms)
    divisor = std::gcd(divisor, factor);
  return divisor;
}

static Affine shrink(const Affine &sum, int64_t divisor) { return split(sum, divisor).first; }

Affine Atoms::divide(const Affine &sum, int64_t divisor) {
  auto [whole, part] = split(sum, divisor);
  Interval range = getRange(part);
  if (range.min >= 0 && range.max < divisor)
    return whole;
  if (range.min < 0) { // division rounds differently for a negative part
    whole = {};
    part = sum;
  }
  int64_t common = getCommonDivisor(part, divisor);
  return whole + makeDigit(shrink(part, common), divisor / common, 0);
}

Affine Atoms::getRest(const Affine &sum, int64_t divisor) {
  Affine part = split(sum, divisor).second;
  Interval range = getRange(part);
  if (range.min >= 0 && range.max < divisor)
    return part;
  if (range.min < 0)
    part = sum;
  int64_t common = getCommonDivisor(part, divisor);
  int64_t rest = split(Affine::of(part.constant), common).second.constant;
  return makeDigit(shrink(part, common), 1, divisor / common) * common + Affine::of(rest);
}

/// Simplifies a digit of a digit to a digit of the inner sum.
std::optional<Affine> Atoms::findDigit(const Affine &sum, int64_t divisor, int64_t modulus) {
  if (sum.constant != 0 || sum.terms.size() != 1 || sum.terms[0].second != 1)
    return std::nullopt;
  const Atom atom = atoms[sum.terms[0].first];
  if (atom.kind != Atom::Kind::Digit)
    return std::nullopt;
  if (atom.modulus == 0)
    return makeDigit(atom.of, multiply(atom.divisor, divisor), modulus);
  if (atom.modulus % divisor == 0 && modulus == 0)
    return makeDigit(atom.of, multiply(atom.divisor, divisor), atom.modulus / divisor);
  if (modulus != 0 && atom.modulus % multiply(divisor, modulus) == 0)
    return makeDigit(atom.of, multiply(atom.divisor, divisor), modulus);
  return std::nullopt;
}

/// Returns the number d for which floor(factor * x / divisor) is floor(x / d) while the product is
/// at most `maxSum`: compilers divide by d as a product and a shift. 0 if there is none.
static int64_t findTrueDivisor(int64_t factor, int64_t divisor, int64_t maxSum) {
  if (factor < 2)
    return 0;
  // With factor * d = divisor + excess, x * excess < divisor suffices.
  int64_t d = (divisor - 1) / factor + 1;
  __int128 excess = __int128(factor) * d - divisor;
  return __int128(maxSum / factor) * excess < divisor ? d : 0;
}

Affine Atoms::joinRests(Affine sum) {
  for (size_t tries = 0, i = 0; i < sum.terms.size() && tries < 8; ++i) {
    auto [number, factor] = sum.terms[i];
    const Atom high = atoms[number];
    if (high.kind != Atom::Kind::Digit)
      continue;
    // The sum that is divided itself.
    if (high.modulus == 0 && factor % high.divisor == 0) {
      int64_t times = -(factor / high.divisor);
      bool isWhole = std::all_of(high.of.terms.begin(), high.of.terms.end(), [&](auto term) {
        return sum.getFactor(term.first) == term.second * times;
      });
      if (isWhole && !high.of.terms.empty()) {
        sum = sum - Affine::number(number, factor) - high.of * times +
              getRest(high.of, high.divisor) * times;
        i = -1;
        ++tries;
        continue;
      }
    }
    // Or a lower digit of it.
    for (auto [other, otherFactor] : std::vector(sum.terms)) {
      const Atom low = atoms[other];
      if (low.kind != Atom::Kind::Digit || low.of != high.of || high.divisor <= low.divisor ||
          high.divisor % low.divisor != 0)
        continue;
      int64_t ratio = high.divisor / low.divisor;
      bool haveOneEnd =
          low.modulus == 0 ? high.modulus == 0 : low.modulus == multiply(high.modulus, ratio);
      Affine joined;
      if (haveOneEnd && factor == -multiply(otherFactor, ratio))
        joined = makeDigit(low.of, low.divisor, ratio);
      else if (low.modulus == ratio && factor == multiply(otherFactor, ratio))
        joined = makeDigit(low.of, low.divisor, multiply(ratio, high.modulus));
      else
        continue;
      sum = sum - Affine::number(number, factor) - Affine::number(other, otherFactor) +
            joined * otherFactor;
      i = -1;
      ++tries;
      break;
    }
  }
  return sum;
}

/// Returns the value of a sum of multiples of `base` and digits of such sums, where `base` has a
/// value; none for other sums.
std::optional<int64_t> Atoms::evaluate(const Affine &sum, const Affine &base, int64_t value) const {
  int64_t result = sum.constant;
  Affine rest;
  for (auto [number, factor] : sum.terms) {
    const Atom &atom = atoms[number];
    if (atom.kind != Atom::Kind::Digit) {
      rest.terms.emplace_back(number, factor);
      continue;
    }
    std::optional<int64_t> of = evaluate(atom.of, base, value);
    if (!of || *of < 0)
      return std::nullopt;
    int64_t digit = *of / atom.divisor;
    result = ::add(result, multiply(atom.modulus ? digit % atom.modulus : digit, factor));
  }
  if (rest.terms.empty())
    return result;
  int64_t times = rest.terms[0].second / base.terms[0].second;
  if (rest != base * times)
    return std::nullopt;
  return ::add(result, multiply(value, times));
}

/// Returns the number that the digits in a sum are of, if there are any.
const Affine *Atoms::findInner(const Affine &sum) const {
  const Affine *inner = nullptr;
  for (const Affine *outer = &sum; outer;) {
    const Affine *next = nullptr;
    for (auto [number, factor] : outer->terms)
      if (!next && atoms[number].kind == Atom::Kind::Digit)
        next = &atoms[number].of;
    inner = next ? next : inner;
    outer = next;
  }
  return inner && !inner->terms.empty() ? inner : nullptr;
}

/// Returns a number's values without its constant, divided by what they have in common.
static Affine getBase(const Affine &number) {
  Affine base{0, number.terms};
  return shrink(base, getCommonDivisor(base, 0));
}

/// Returns the values of a sum of digits by those of the number inside; none if there are many, or
/// if the sum depends on others.
std::optional<std::vector<int64_t>> Atoms::getValues(const Affine &sum) {
  const Affine *inner = findInner(sum);
  if (!inner)
    return std::nullopt;
  const Affine base = getBase(*inner);
  Interval range = getRange(base);
  if (range.min != 0 || range.max > maxValues || (tries += range.max) > maxTries)
    return std::nullopt;
  std::vector<int64_t> values;
  for (int64_t value = 0; value <= range.max; ++value) {
    std::optional<int64_t> each = evaluate(sum, base, value);
    if (!each)
      return std::nullopt;
    values.push_back(*each);
  }
  return values;
}

std::optional<Interval> Atoms::findRange(const Affine &sum) {
  std::optional<std::vector<int64_t>> values = getValues(sum);
  if (!values)
    return std::nullopt;
  auto [min, max] = std::minmax_element(values->begin(), values->end());
  return Interval{*min, *max};
}

/// Finds out whether a digit of a sum of digits is a digit of the number inside, by looking at all
/// its values: compilers divide by constants in several steps.
std::optional<Affine> Atoms::findQuotient(const Affine &of, int64_t divisor, int64_t modulus) {
  std::optional<std::vector<int64_t>> found = getValues(of);
  if (!found || *std::min_element(found->begin(), found->end()) < 0)
    return std::nullopt;
  std::vector<int64_t> &values = *found;
  for (int64_t &value : values)
    value = modulus ? value / divisor % modulus : value / divisor;
  const Affine *inner = findInner(of);
  const Affine number = shrink(*inner, getCommonDivisor(*inner, inner->constant));
  const int64_t times = number.terms[0].second / getBase(number).terms[0].second;
  if (number.constant < 0 || times < 1)
    return std::nullopt;
  auto getNumber = [&](int64_t value) { return number.constant + times * value; };
  int64_t first = int64_t(std::find_if(values.begin(), values.end(), [](int64_t v) { return v; }) -
                          values.begin());
  int64_t count = *std::max_element(values.begin(), values.end()) + 1;
  if (count == 1)
    return Affine();
  int64_t least = first ? getNumber(first - 1) + 1 : 1;
  for (int64_t d = getNumber(first); d >= std::max(least, getNumber(first) - 16); --d) {
    bool isQuotient = d > 0;
    for (size_t value = 0; isQuotient && value < values.size(); ++value)
      isQuotient = values[value] == getNumber(int64_t(value)) / d % count;
    if (isQuotient)
      return getRest(divide(number, d), count);
  }
  return std::nullopt;
}

Affine Atoms::makeDigit(const Affine &of, int64_t divisor, int64_t modulus) {
  if (std::optional<Affine> digit = findDigit(of, divisor, modulus))
    return *digit;
  if (std::optional<Affine> digit = findQuotient(of, divisor, modulus))
    return *digit;
  Interval range = getRange(of);
  if (range.min < 0)
    range = findRange(of).value_or(range);
  if (range.min < 0)
    throw TooLarge();
  if (int64_t factor = getCommonDivisor(of, of.constant))
    if (int64_t d = findTrueDivisor(factor, divisor, range.max)) {
      Affine number = shrink(of, factor);
      return modulus ? makeDigit(number, d, modulus) : divide(number, d);
    }
  range = {range.min / divisor, range.max / divisor};
  if (modulus && range.max < modulus)
    modulus = 0;
  if (modulus)
    range = {0, modulus - 1};
  if (modulus == 1 || range.min == range.max)
    return Affine::of(range.min);
  if (divisor == 1 && modulus == 0)
    return of;
  Atom atom;
  atom.kind = Atom::Kind::Digit;
  atom.of = of;
  atom.divisor = divisor;
  atom.modulus = modulus;
  atom.range = range;
  return add(std::move(atom), Key{Atom::Kind::Digit, of, divisor, modulus});
}

Affine Atoms::clamp(const Affine &sum, Interval to) {
  Interval range = getRange(sum);
  if (to.min <= range.min && range.max <= to.max)
    return sum;
  range = {std::clamp(range.min, to.min, to.max), std::clamp(range.max, to.min, to.max)};
  if (range.min == range.max)
    return Affine::of(range.min);
  Atom atom;
  atom.kind = Atom::Kind::Clamped;
  atom.of = sum;
  atom.range = range;
  return add(std::move(atom), Key{Atom::Kind::Clamped, sum, range.min, range.max});
}

Affine Atoms::add(Atom atom, std::optional<Key> key) {
  forEachInside(atom, [&](const Affine &sum) {
    for (auto [number, factor] : sum.terms)
      atom.size += atoms[number].size;
  });
  if (atom.size > maxAtomSize)
    return makeOther(atom.range);
  if (!key) {
    atoms.push_back(std::move(atom));
    return Affine::number(uint32_t(atoms.size() - 1));
  }
  auto [place, isNew] = made.try_emplace(std::move(*key), uint32_t(atoms.size()));
  if (isNew)
    atoms.push_back(std::move(atom));
  return Affine::number(place->second);
}

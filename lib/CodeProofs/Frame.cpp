//===- Frame.cpp - Addresses as sums of independent digits ----------------===//

#include "Frame.h"

#include <algorithm>
#include <limits>
#include <set>
#include <tuple>

using namespace weir::spv;

using Terms = std::vector<std::pair<uint32_t, int64_t>>;

/// Max number of steps, which bounds the digits.
static constexpr size_t maxSteps = 64;

void Frame::pair(uint32_t loopOfFirst, uint32_t loopOfSecond) {
  firstOfSecond[loopOfSecond] = loopOfFirst;
}

uint32_t Frame::addDigit(int64_t count, bool isOther) {
  digits.push_back({count, isOther});
  return uint32_t(digits.size() - 1);
}

/// Returns the digit that an atom was before all steps; makes it if it is new.
uint32_t Frame::getDigit(uint32_t atom, Who who) {
  const Atom &number = (*atoms)[atom];
  int64_t count;
  if (__builtin_sub_overflow(number.range.max, number.range.min, &count) ||
      __builtin_add_overflow(count, 1, &count))
    throw TooLarge();
  std::pair<Owner, uint32_t> key = {OfBoth, atom};
  // Clamping maps several values of a sum to one, and so does a choice.
  bool isOther = number.kind == Atom::Kind::Other || number.kind == Atom::Kind::Clamped ||
                 number.kind == Atom::Kind::Choice;
  if (isOther) {
    key.first = who == First ? OtherOfFirst : OtherOfSecond;
  } else if (number.kind == Atom::Kind::Trip) {
    auto paired = firstOfSecond.find(number.number);
    bool isPaired = who == First || paired != firstOfSecond.end();
    key = {isPaired ? OfLoop : LoopOfSecond,
           who == Second && isPaired ? paired->second : number.number};
  }
  auto [place, isNew] = digitOf.try_emplace(key, 0);
  if (isNew)
    place->second = addDigit(count, isOther);
  return place->second;
}

/// Rewrites a sum by the steps [step, end): replaces digits by those that took their places.
std::optional<Affine> Frame::apply(Affine sum, size_t step, size_t end) const {
  for (; step < end; ++step) {
    const Step &each = steps[step];
    Terms kept;
    std::optional<int64_t> times; // the factor of the merged sum in this one
    size_t found = 0;
    for (auto term : sum.terms) {
      auto place = std::find_if(each.from.begin(), each.from.end(),
                                [&](auto from) { return from.first == term.first; });
      if (place == each.from.end()) {
        kept.push_back(term);
        continue;
      }
      ++found;
      if (term.second % place->second != 0 || (times && *times != term.second / place->second))
        return std::nullopt;
      times = term.second / place->second;
    }
    if (!found)
      continue;
    if (found != each.from.size())
      return std::nullopt;
    sum.terms = std::move(kept);
    sum = sum + Affine::number(each.to, *times);
    if (each.kind == Step::Kind::Split)
      sum = sum + Affine::number(each.high, *times) * each.by;
    else if (each.kind == Step::Kind::Shift)
      sum = sum + Affine::of(each.by) * *times;
  }
  return sum;
}

std::optional<Affine> Frame::express(const Affine &sum, Who who) {
  Affine plain = Affine::of(sum.constant);
  std::vector<Meaning> parts;
  for (auto [number, factor] : sum.terms) {
    const Atom &atom = (*atoms)[number];
    if (atom.kind != Atom::Kind::Digit) {
      plain = plain + Affine::number(getDigit(number, who), factor) +
              Affine::of(atom.range.min) * factor;
      continue;
    }
    const Meaning &meaning = understand(number, who);
    if (!meaning.sum)
      return std::nullopt;
    parts.push_back({*meaning.sum * factor, meaning.step});
  }
  // A merge may need several parts together.
  parts.push_back({plain, 0});
  std::sort(parts.begin(), parts.end(),
            [](const Meaning &a, const Meaning &b) { return a.step < b.step; });
  std::optional<Affine> whole = Affine();
  size_t step = 0;
  for (const Meaning &part : parts) {
    whole = apply(*whole, step, part.step);
    step = part.step;
    if (!whole)
      return std::nullopt;
    whole = *whole + *part.sum;
  }
  return apply(*whole, step, steps.size());
}

void Frame::prepare(const std::vector<std::pair<Affine, Who>> &sums) {
  std::set<std::tuple<uint32_t, uint32_t, Who>> found; // by size
  std::vector<std::pair<Affine, Who>> open = sums;
  while (!open.empty()) {
    auto [sum, who] = std::move(open.back());
    open.pop_back();
    for (auto [number, factor] : sum.terms) {
      const Atom &atom = (*atoms)[number];
      if (atom.kind == Atom::Kind::Digit && found.emplace(atom.size, number, who).second)
        open.emplace_back(atom.of, who);
    }
  }
  for (auto [size, number, who] : found)
    understand(number, who);
}

const Frame::Meaning &Frame::understand(uint32_t number, Who who) {
  auto known = meanings.find({who, number});
  if (known == meanings.end())
    known = meanings.emplace(std::pair(who, number), findMeaning((*atoms)[number], who)).first;
  return known->second;
}

/// Returns the current meaning of an atom that is a digit of a sum.
Frame::Meaning Frame::findMeaning(const Atom &digit, Who who) {
  std::optional<Affine> of = express(digit.of, who);
  if (!of)
    return {};
  std::optional<std::pair<Affine, Affine>> parts = cut(*of, digit.divisor);
  if (parts && digit.modulus) {
    parts = cut(parts->second, digit.modulus);
    return {parts ? std::optional(parts->first) : std::nullopt, steps.size()};
  }
  return {parts ? std::optional(parts->second) : std::nullopt, steps.size()};
}

/// Divides a sum: returns (rest, quotient).
std::optional<std::pair<Affine, Affine>> Frame::cut(Affine sum, int64_t divisor) {
  for (bool hasMerged = false;;) {
    // Split digits that straddle the divisor. Leave out an uneven split if a larger factor is
    // not a multiple of the divisor: such digits are merged below.
    size_t before = steps.size();
    for (auto [digit, factor] : sum.terms) {
      int64_t by = factor > 0 && divisor % factor == 0 ? divisor / factor : 1;
      bool isFollowed = std::any_of(sum.terms.begin(), sum.terms.end(), [&](auto other) {
        return other.second > factor && other.second % divisor != 0;
      });
      if (by > 1 && digits[digit].count > by && (digits[digit].count % by == 0 || !isFollowed))
        split(digit, by);
    }
    std::optional<Affine> again = apply(sum, before, steps.size());
    if (!again)
      return std::nullopt;
    sum = *again;
    int64_t constant = sum.constant % divisor;
    constant += constant < 0 ? divisor : 0;
    Affine low = Affine::of(constant), high = Affine::of((sum.constant - constant) / divisor);
    __int128 max = constant;
    bool isPositive = true;
    for (auto [digit, factor] : sum.terms) {
      if (factor % divisor == 0) {
        high.terms.emplace_back(digit, factor / divisor);
        continue;
      }
      low.terms.emplace_back(digit, factor);
      isPositive &= factor > 0;
      max += __int128(factor) * (digits[digit].count - 1);
    }
    if (isPositive && max < divisor)
      return std::pair(low, high);
    if (hasMerged || !isPositive || constant != 0)
      return std::nullopt;
    // The divisor falls between no two of these digits: merge the min number of them into one.
    Terms terms = sum.terms;
    std::sort(terms.begin(), terms.end(), [](auto a, auto b) { return a.second < b.second; });
    size_t first = 0;
    for (size_t i = 0; i < terms.size() && terms[i].second < divisor; ++i)
      if (divisor % terms[i].second == 0)
        first = i;
    size_t end = first;
    __int128 reach = terms[first].second;
    do
      reach = __int128(terms[end].second) * digits[terms[end].first].count;
    while (++end < terms.size() && (reach < divisor || reach % divisor != 0));
    terms = Terms(terms.begin() + first, terms.begin() + end);
    before = steps.size();
    if (!merge(terms))
      return std::nullopt;
    again = apply(sum, before, steps.size());
    if (!again)
      return std::nullopt;
    sum = *again;
    hasMerged = true;
  }
}

/// Merges digits into one number. Needs: lowest first, each adjacent to the one before.
bool Frame::merge(Terms terms) {
  int64_t unit = terms[0].second;
  __int128 count = 1;
  bool isOther = false;
  for (auto &[digit, factor] : terms) {
    if (factor % unit != 0 || factor / unit != count)
      return false;
    factor /= unit;
    count *= digits[digit].count;
    isOther |= digits[digit].isOther;
    if (count > std::numeric_limits<int64_t>::max())
      return false;
  }
  if (terms.size() < 2 || steps.size() >= maxSteps)
    return false;
  uint32_t to = addDigit(int64_t(count), isOther);
  steps.push_back({Step::Kind::Merge, terms, to});
  return true;
}

void Frame::split(uint32_t digit, int64_t by) {
  if (steps.size() >= maxSteps)
    throw TooLarge();
  auto [count, isOther] = digits[digit];
  uint32_t low = addDigit(std::min(by, count), isOther);
  uint32_t high = addDigit((count - 1) / by + 1, isOther);
  steps.push_back({Step::Kind::Split, {{digit, 1}}, low, high, by});
}

void Frame::restrict(const Affine &guard, Who who, bool merges) {
  bool hasDigits = std::any_of(guard.terms.begin(), guard.terms.end(), [&](auto term) {
    return (*atoms)[term.first].kind == Atom::Kind::Digit;
  });
  // Facts found about a guard that cannot be used may stand in the way of others.
  std::optional<Frame> before = hasDigits ? std::optional(*this) : std::nullopt;
  std::optional<Affine> sum = express(guard, who);
  if (!sum) {
    if (before)
      *this = std::move(*before);
    exact = false;
    return;
  }
  std::erase_if(sum->terms, [&](auto term) { return digits[term.first].count == 1; });
  __int128 min = sum->constant, max = sum->constant;
  bool allFall = true;
  for (auto [digit, factor] : sum->terms) {
    allFall &= factor < 0;
    (factor < 0 ? min : max) += __int128(factor) * (digits[digit].count - 1);
  }
  if (min >= 0)
    return;
  if (max < 0) {
    empty = true;
    return;
  }
  Terms terms = sum->terms;
  // Of a number that stands for others, the guard restricts those.
  exact &= std::none_of(terms.begin(), terms.end(),
                        [&](auto term) { return digits[term.first].isOther; });
  const bool allRise =
      std::all_of(terms.begin(), terms.end(), [](auto term) { return term.second > 0; });
  if (std::optional<Affine> bound = allRise ? findBound(*sum) : std::nullopt) {
    // A lower bound of the digit with the largest factor.
    const auto [digit, one] = bound->terms[0];
    const int64_t minDigit = -bound->constant;
    exact &= sum->constant + __int128(sum->getFactor(digit)) * minDigit >= 0;
    if (steps.size() >= maxSteps)
      throw TooLarge();
    uint32_t to = addDigit(digits[digit].count - minDigit, digits[digit].isOther);
    steps.push_back({Step::Kind::Shift, {{digit, 1}}, to, 0, minDigit});
    return;
  }
  if (!allFall) {
    exact = false;
    return;
  }
  // constant - sum >= 0: the digits' sum is at most the constant.
  for (auto &[digit, factor] : terms)
    factor = -factor;
  std::sort(terms.begin(), terms.end(), [](auto a, auto b) { return a.second < b.second; });
  auto [top, factor] = terms.back();
  __int128 below = 0;
  for (auto [digit, each] : terms)
    if (digit != top)
      below += __int128(each) * (digits[digit].count - 1);
  int64_t maxDigit = sum->constant / factor;
  bool isWhole = sum->constant % factor >= below;
  if (!isWhole && merges && merge(terms)) {
    uint32_t number = steps.back().to;
    digits[number].count = std::min(digits[number].count, sum->constant / terms[0].second + 1);
    return;
  }
  digits[top].count = std::min(digits[top].count, maxDigit + 1);
  exact &= isWhole;
}

std::optional<Affine> Frame::findBound(const Affine &guard) const {
  if (guard.terms.empty())
    return std::nullopt;
  auto [top, factor] =
      *std::max_element(guard.terms.begin(), guard.terms.end(),
                        [](auto a, auto b) { return std::abs(a.second) < std::abs(b.second); });
  __int128 most = guard.constant; // of the constant and the other digits
  for (auto [digit, each] : guard.terms)
    if (digit != top && each > 0)
      most += __int128(each) * (digits[digit].count - 1);
  const __int128 last = digits[top].count - 1;
  if (factor > 0) {
    const __int128 least = most >= 0 ? 0 : (-most + factor - 1) / factor;
    if (least <= 0 || least > last)
      return std::nullopt;
    return Affine::number(top) + Affine::of(-int64_t(least));
  }
  const __int128 greatest = most / -__int128(factor);
  if (most < 0 || greatest >= last)
    return std::nullopt;
  return Affine::of(int64_t(greatest)) - Affine::number(top);
}

bool Frame::isExact() const {
  // A split with a rest is exact only if the digit still has all its values.
  return exact && std::all_of(steps.begin(), steps.end(), [&](const Step &step) {
           return step.kind != Step::Kind::Split ||
                  digits[step.high].count <= digits[step.from[0].first].count / step.by;
         });
}

bool Frame::isFixedDigit(uint32_t digit, const std::vector<uint32_t> &equal) const {
  if (digits[digit].count == 1 || std::find(equal.begin(), equal.end(), digit) != equal.end())
    return true;
  for (const Step &step : steps)
    for (auto [from, factor] : step.from)
      if (from == digit)
        return isFixedDigit(step.to, equal) &&
               (step.kind != Step::Kind::Split || isFixedDigit(step.high, equal));
  return false;
}

bool Frame::isFixedId(uint32_t atom, const std::vector<uint32_t> &equal) const {
  auto found = digitOf.find({OfBoth, atom});
  return found != digitOf.end() && isFixedDigit(found->second, equal);
}

bool Frame::isFixedTrip(uint32_t loop, const std::vector<uint32_t> &equal) const {
  auto found = digitOf.find({OfLoop, loop});
  return found != digitOf.end() && isFixedDigit(found->second, equal);
}

std::optional<uint32_t> Frame::findTripDigit(uint32_t loop) const {
  auto found = digitOf.find({OfLoop, loop});
  if (found == digitOf.end())
    return std::nullopt;
  uint32_t digit = found->second;
  for (const Step &step : steps)
    for (auto [from, factor] : step.from)
      if (from == digit) {
        if (step.kind != Step::Kind::Shift)
          return std::nullopt;
        digit = step.to;
        break;
      }
  return digit;
}

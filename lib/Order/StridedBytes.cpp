//===- StridedBytes.cpp - Bytes that strides step over, compared ----------===//
//
// Two elements meet when the difference of their first bytes is small. That
// difference is a sum of strides times indices of both sides, each index in its
// box; counting the indices of one side from their other end makes all strides
// positive. So the question is one of bounded integers only: does a sum of
// multiples of strides hit a window? The window swallows strides it is as wide
// as, the strides' common divisor narrows it, and what is left is searched.
//
//===----------------------------------------------------------------------===//

#include "weir/Order/StridedBytes.h"

#include <algorithm>
#include <limits>
#include <numeric>
#include <tuple>

using namespace weir;

/// Sums of a few products of 64-bit numbers.
using Wide = __int128;

static constexpr Wide int64Min = std::numeric_limits<int64_t>::min();
static constexpr Wide int64Max = std::numeric_limits<int64_t>::max();

static Wide floorDivide(Wide a, Wide b) { return a / b - (a % b < 0); }
static Wide ceilDivide(Wide a, Wide b) { return a / b + (a % b > 0); }
static Wide modulo(Wide a, Wide b) { return a - floorDivide(a, b) * b; }

bool StridedBytes::operator<(const StridedBytes &other) const {
  return std::tie(begin, elementBytes, dims) <
         std::tie(other.begin, other.elementBytes, other.dims);
}

//===----------------------------------------------------------------------===//
// Canonical form
//===----------------------------------------------------------------------===//

namespace {
/// Multiples 0 to `count` of `stride`; both positive.
struct Steps {
  Wide stride = 0, count = 0;
};
using StepList = std::vector<Steps>;
} // namespace

/// Lets one step list take in another where the two make an unbroken one: steps
/// of 4 bytes, 8 of them, then steps of 32.
static void merge(StepList &steps) {
  std::sort(steps.begin(), steps.end(), [](const Steps &a, const Steps &b) {
    return std::tie(a.stride, a.count) < std::tie(b.stride, b.count);
  });
  StepList merged;
  for (const Steps &coarse : steps) {
    auto fine = std::find_if(merged.begin(), merged.end(), [&](const Steps &fine) {
      return coarse.stride % fine.stride == 0 && coarse.stride / fine.stride <= fine.count + 1;
    });
    if (fine == merged.end())
      merged.push_back(coarse);
    else
      fine->count += coarse.stride / fine->stride * coarse.count;
  }
  steps = std::move(merged);
}

std::optional<StridedBytes> weir::canonicalize(const StridedBytes &bytes) {
  StridedBytes result;
  result.begin = bytes.begin;
  if (bytes.elementBytes <= 0 ||
      std::any_of(bytes.dims.begin(), bytes.dims.end(),
                  [](const StridedBytes::Dim &dim) { return dim.size <= 0; }))
    return result;

  constexpr Wide largestSpan = Wide(1) << 62;
  Wide begin = bytes.begin, end = begin + bytes.elementBytes;
  StepList steps;
  for (const StridedBytes::Dim &dim : bytes.dims) {
    if (dim.size == 1 || dim.stride == 0)
      continue;
    Wide span = (Wide(dim.size) - 1) * dim.stride;
    if (span > largestSpan || span < -largestSpan)
      return std::nullopt;
    (span < 0 ? begin : end) += span;
    steps.push_back({dim.stride < 0 ? -Wide(dim.stride) : Wide(dim.stride), Wide(dim.size) - 1});
  }
  if (begin < int64Min || end > int64Max || end - begin > int64Max)
    return std::nullopt;
  result.begin = begin;

  Wide element = bytes.elementBytes;
  merge(steps);
  for (const Steps &step : steps) {
    if (step.stride <= element)
      element += step.stride * step.count;
    else
      result.dims.push_back({int64_t(step.count + 1), int64_t(step.stride)});
  }
  result.elementBytes = element;
  return result;
}

ByteRange weir::getHull(const StridedBytes &canonical) {
  int64_t end = canonical.begin + canonical.elementBytes;
  for (const StridedBytes::Dim &dim : canonical.dims)
    end += (dim.size - 1) * dim.stride;
  return {canonical.begin, end};
}

//===----------------------------------------------------------------------===//
// Comparison
//===----------------------------------------------------------------------===//

/// Returns the least x >= 0 with low <= a * x mod m <= high; -1 when there is
/// none. 0 <= low <= high < m and 0 <= a < m. Euclid's steps: the multiples of
/// `a` that pass a multiple of `m` are those of `m mod a` seen modulo `a`.
static Wide findFirst(Wide a, Wide m, Wide low, Wide high) {
  if (low == 0)
    return 0;
  if (a == 0)
    return -1;
  if (2 * a > m)
    return findFirst(m - a, m, m - high, m - low);
  Wide x = ceilDivide(low, a);
  if (x * a <= high)
    return x;
  Wide rounds = findFirst(m % a, a, modulo(-high, a), modulo(-low, a));
  return rounds < 0 ? -1 : ceilDivide(low + rounds * m, a);
}

namespace {
class SumSearch {
public:
  /// Whether a sum of one multiple from each of `steps` lies in [low, high].
  Sharing solve(StepList steps, Wide low, Wide high);

private:
  static bool hitsWithTwo(const Steps &first, const Steps &second, Wide low, Wide high);

  int64_t budget = 1 << 13;
};
} // namespace

/// No stride is as wide as the window: else it would have been swallowed.
bool SumSearch::hitsWithTwo(const Steps &first, const Steps &second, Wide low, Wide high) {
  // The multiples of the first for which the rest is within the second's reach.
  Wide from = ceilDivide(low - second.stride * second.count, first.stride);
  Wide to = floorDivide(high, first.stride);
  from = std::max<Wide>(from, 0);
  to = std::min(to, first.count);
  if (from > to)
    return false;
  // The rest must lie less than the window above a multiple of the second.
  Wide rest = high - from * first.stride;
  Wide top = modulo(rest, second.stride), bottom = modulo(rest - (high - low), second.stride);
  if (bottom > top)
    return true; // the rest is within the window already
  Wide more = findFirst(first.stride % second.stride, second.stride, bottom, top);
  return more >= 0 && more <= to - from;
}

Sharing SumSearch::solve(StepList steps, Wide low, Wide high) {
  if (--budget < 0)
    return Sharing::Unknown;
  Wide reach = 0;
  for (bool changed = true; changed;) {
    reach = 0;
    int64_t divisor = 0;
    for (const Steps &step : steps) {
      reach += step.stride * step.count;
      divisor = std::gcd(divisor, int64_t(step.stride));
    }
    if (high < 0 || low > reach)
      return Sharing::Disjoint;
    if (low <= 0 || high >= reach)
      return Sharing::Overlap;
    low = ceilDivide(low, divisor);
    high = floorDivide(high, divisor);
    if (low > high)
      return Sharing::Disjoint;
    reach /= divisor;
    for (Steps &step : steps)
      step.stride /= divisor;
    changed = false;
    std::erase_if(steps, [&](const Steps &step) {
      bool swallowed = step.stride <= high - low + 1;
      if (swallowed)
        low -= step.stride * step.count;
      changed |= swallowed;
      return swallowed;
    });
  }
  merge(steps);
  if (steps.size() == 2)
    return hitsWithTwo(steps[0], steps[1], low, high) ? Sharing::Overlap : Sharing::Disjoint;

  // Try the multiples of the steps with the fewest that leave the rest within
  // reach; those in the middle first, where the rest has most sums.
  const Steps *chosen = nullptr;
  Wide from = 0, to = 0;
  for (const Steps &step : steps) {
    Wide others = reach - step.stride * step.count;
    Wide first = std::max<Wide>(ceilDivide(low - others, step.stride), 0);
    Wide last = std::min(floorDivide(high, step.stride), step.count);
    if (chosen && last - first >= to - from)
      continue;
    chosen = &step;
    from = first;
    to = last;
  }
  Wide stride = chosen->stride;
  steps.erase(steps.begin() + (chosen - steps.data()));
  Wide middle = from + (to - from) / 2;
  for (Wide index = 0; index <= to - from && budget >= 0; ++index) {
    Wide multiple = middle + (index % 2 ? (index + 1) / 2 : -index / 2);
    Sharing sharing = solve(steps, low - multiple * stride, high - multiple * stride);
    if (sharing == Sharing::Overlap)
      return Sharing::Overlap;
  }
  return budget < 0 ? Sharing::Unknown : Sharing::Disjoint;
}

Sharing weir::compare(const StridedBytes &first, const StridedBytes &second) {
  std::optional<StridedBytes> a = canonicalize(first), b = canonicalize(second);
  if ((a && !a->elementBytes) || (b && !b->elementBytes))
    return Sharing::Disjoint;
  if (!a || !b)
    return Sharing::Unknown;
  // An element of a less one of b, the indices of b counted from its last.
  StepList steps;
  Wide offset = Wide(b->begin) - a->begin;
  for (const StridedBytes::Dim &dim : a->dims)
    steps.push_back({dim.stride, dim.size - 1});
  for (const StridedBytes::Dim &dim : b->dims) {
    steps.push_back({dim.stride, dim.size - 1});
    offset += Wide(dim.stride) * (dim.size - 1);
  }
  merge(steps);
  return SumSearch().solve(std::move(steps), offset - a->elementBytes + 1,
                           offset + b->elementBytes - 1);
}

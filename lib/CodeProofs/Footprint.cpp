//===- Footprint.cpp - Bytes that a kernel's instructions touch -----------===//

#include "weir/CodeProofs/Footprint.h"

#include "Frame.h"
#include "Points.h"

#include <algorithm>
#include <set>

using namespace weir::spv;

/// Max number of runs in one set of bytes.
static constexpr size_t maxRuns = 1 << 16;

static bool hasOther(const Frame &frame, const Affine &sum) {
  return std::any_of(sum.terms.begin(), sum.terms.end(),
                     [&](auto term) { return frame.isOther(term.first); });
}

namespace {
/// An access with its own frame.
struct Framed {
  Frame frame;
  std::optional<Affine> address;
  bool isExact = false; ///< whether every value of the digits is an execution
};
} // namespace

/// Expresses an access in digits in several ways: the digits depend on which guard merges
/// several of them into one, and on whether the address comes before the guards.
static std::vector<Framed> place(const AddressMap &map, const MemoryAccess &access) {
  std::vector<Framed> ways;
  if (!access.address)
    return ways;
  for (auto [merges, addressFirst] : {std::pair(true, false), {true, true}, {false, true}}) {
    Framed framed{Frame(map.atoms), {}};
    try {
      if (addressFirst) {
        std::vector<std::pair<Affine, Who>> sums = {{*access.address, First}};
        for (const Affine &guard : access.guards)
          sums.emplace_back(guard, First);
        framed.frame.prepare(sums);
      }
      for (const Affine &guard : access.guards)
        framed.frame.restrict(guard, First, merges);
      framed.frame.prepare({{*access.address, First}});
      framed.address = framed.frame.express(*access.address, First);
    } catch (TooLarge) {
    }
    if (!framed.address)
      continue;
    framed.isExact =
        access.isCertain && framed.frame.isExact() && !hasOther(framed.frame, *framed.address);
    ways.push_back(std::move(framed));
    if (ways.back().isExact) {
      std::swap(ways.front(), ways.back());
      break;
    }
  }
  return ways;
}

/// Returns the range of the address; none if it exceeds all memory.
static std::optional<Interval> getSpan(const Framed &way) {
  __int128 min = way.address->constant, max = min;
  for (auto [digit, factor] : way.address->terms)
    (factor < 0 ? min : max) += __int128(factor) * (way.frame.getCount(digit) - 1);
  if (min < -maxAddress || max > maxAddress)
    return std::nullopt;
  return Interval{int64_t(min), int64_t(max)};
}

//===----------------------------------------------------------------------===//
// Where one access reaches
//===----------------------------------------------------------------------===//

std::optional<Reach> weir::spv::getReach(const AddressMap &map, const MemoryAccess &access,
                                         int64_t bytes) {
  if (!access.address || access.bytes <= 0)
    return std::nullopt;
  std::optional<Interval> range;
  try {
    range = map.atoms.getRange(*access.address, access.guards);
    if (!range)
      return Reach{0, 0, true};
  } catch (TooLarge) {
  }
  bool isExact = false;
  for (const Framed &way : place(map, access)) {
    if (way.frame.isEmpty())
      return Reach{0, 0, true};
    std::optional<Interval> span = getSpan(way);
    if (!span)
      continue;
    range = {range ? std::max(range->min, span->min) : span->min,
             range ? std::min(range->max, span->max) : span->max};
    isExact |= way.isExact;
  }
  bool mayLeave = !range || range->min < 0 || range->max > bytes - access.bytes;
  std::optional<int64_t> outside;
  if (mayLeave && !isExact) {
    Points points(map, access, maxPoints);
    if (points.canVisit() && !points.areAll() && access.isCertain)
      points.forEach([&](const Point &, int64_t at) {
        if (at < 0 || at > bytes - access.bytes)
          outside = at;
        return !outside;
      });
    if (points.areAll()) {
      std::optional<Interval> visited;
      points.forEach([&](const Point &, int64_t at) {
        visited = visited ? Interval{std::min(visited->min, at), std::max(visited->max, at)}
                          : Interval{at, at};
        return true;
      });
      if (!visited)
        return Reach{0, 0, true};
      range = visited;
      isExact = access.isCertain;
    }
  }
  int64_t end;
  if (!range || __builtin_add_overflow(range->max, access.bytes, &end))
    return std::nullopt;
  return Reach{range->min, end, isExact, outside};
}

//===----------------------------------------------------------------------===//
// Where two accesses never meet
//===----------------------------------------------------------------------===//

namespace {

/// `factor` times any integer in [min, max].
struct Multiple {
  __int128 factor, min, max;
};

/// Searches for a sum of multiples in an interval, from the largest factor down. The smaller
/// factors bound how far the larger ones may be from the interval.
class SumSearch {
public:
  explicit SumSearch(std::vector<Multiple> given);
  /// Whether some sum of the terms from `next` on lies in [min, max].
  bool isIn(__int128 min, __int128 max, size_t next = 0);

private:
  std::vector<Multiple> terms;
  std::vector<__int128> lowest, highest; ///< min and max of the sum of the terms from each on
  int budget = 1000;                     ///< max number of tries; then the answer is "maybe"
};

} // namespace

SumSearch::SumSearch(std::vector<Multiple> given) {
  std::sort(given.begin(), given.end(),
            [](const Multiple &a, const Multiple &b) { return a.factor > b.factor; });
  for (const Multiple &each : given)
    if (!terms.empty() && terms.back().factor == each.factor) {
      terms.back().min += each.min;
      terms.back().max += each.max;
    } else {
      terms.push_back(each);
    }
  lowest.resize(terms.size() + 1);
  highest.resize(terms.size() + 1);
  for (size_t i = terms.size(); i-- > 0;) {
    lowest[i] = lowest[i + 1] + terms[i].factor * terms[i].min;
    highest[i] = highest[i + 1] + terms[i].factor * terms[i].max;
  }
}

bool SumSearch::isIn(__int128 min, __int128 max, size_t next) {
  if (highest[next] < min || lowest[next] > max)
    return false;
  if (next == terms.size() || --budget < 0)
    return true;
  auto divideDown = [](__int128 a, __int128 b) { return a / b - (a % b < 0 ? 1 : 0); };
  const Multiple &term = terms[next];
  // The range of this term for which the others can reach the interval.
  __int128 from = -divideDown(highest[next + 1] - min, term.factor);
  __int128 to = divideDown(max - lowest[next + 1], term.factor);
  for (__int128 number = std::max(from, term.min); number <= std::min(to, term.max); ++number)
    if (isIn(min - term.factor * number, max - term.factor * number, next + 1))
      return true;
  return false;
}

bool weir::spv::areApart(const AddressMap &map, const MemoryAccess &first,
                         const MemoryAccess &second) {
  // Each access has its own digits: two executions share no number.
  std::vector<Framed> firstWays = place(map, first), secondWays = place(map, second);
  for (const Framed &a : firstWays)
    for (const Framed &b : secondWays) {
      if (a.frame.isEmpty() || b.frame.isEmpty())
        return true;
      if (!getSpan(a) || !getSpan(b))
        continue;
      std::vector<Multiple> terms;
      auto add = [&](const Framed &way, int sign) {
        for (auto [digit, factor] : way.address->terms) {
          __int128 last = way.frame.getCount(digit) - 1;
          if (sign * factor > 0)
            terms.push_back({std::abs(factor), 0, last});
          else
            terms.push_back({std::abs(factor), -last, 0});
        }
      };
      add(a, 1);
      add(b, -1);
      __int128 apart = __int128(a.address->constant) - b.address->constant;
      if (!SumSearch(std::move(terms)).isIn(1 - first.bytes - apart, second.bytes - 1 - apart))
        return true;
    }
  return false;
}

//===----------------------------------------------------------------------===//
// Coverage by all accesses
//===----------------------------------------------------------------------===//

namespace {

/// The range [begin, begin + width), repeated at all sums of strides.
struct Strided {
  int64_t begin = 0, width = 0;
  std::vector<std::pair<int64_t, int64_t>> strides; ///< (bytes, count), largest first
};

} // namespace

static void join(std::vector<ByteRange> &runs) {
  std::sort(runs.begin(), runs.end(), [](ByteRange a, ByteRange b) { return a.begin < b.begin; });
  size_t last = 0;
  for (size_t i = 1; i < runs.size(); ++i)
    if (runs[i].begin <= runs[last].end)
      runs[last].end = std::max(runs[last].end, runs[i].end);
    else
      runs[++last] = runs[i];
  if (!runs.empty())
    runs.resize(last + 1);
}

static Strided getStrided(const Framed &framed, int64_t width) {
  Strided set{framed.address->constant, width, {}};
  for (auto [digit, factor] : framed.address->terms) {
    int64_t count = framed.frame.getCount(digit);
    if (count <= 1)
      continue;
    if (factor < 0)
      set.begin += factor * (count - 1);
    set.strides.emplace_back(std::abs(factor), count);
  }
  std::sort(set.strides.begin(), set.strides.end());
  // Merge strides to the min number, so that equal sets have equal strides.
  size_t kept = 0;
  for (size_t i = 1; i < set.strides.size(); ++i)
    if (set.strides[kept].first * set.strides[kept].second == set.strides[i].first)
      set.strides[kept].second *= set.strides[i].second;
    else
      set.strides[++kept] = set.strides[i];
  if (!set.strides.empty())
    set.strides.resize(kept + 1);
  std::reverse(set.strides.begin(), set.strides.end());
  return set;
}

/// Splits a set's outermost stride where it walks as far as one of `strides` does, in smaller
/// steps: 192 x 32768 is 12288 x 512 of 192 x 64. So sets that repeat together are united once.
static void splitOutermost(Strided &set, const std::set<std::pair<int64_t, int64_t>> &strides) {
  const auto [stride, count] = set.strides.front();
  for (auto [larger, times] : strides) {
    const int64_t inside = larger / stride;
    if (larger <= stride || larger % stride != 0 || count % inside != 0 || count / inside != times)
      continue;
    set.strides.front() = {stride, inside};
    set.strides.insert(set.strides.begin(), {larger, times});
    return;
  }
}

/// Returns the union of the sets as runs; none if there are too many.
static std::optional<std::vector<ByteRange>> unite(std::vector<Strided> sets) {
  std::vector<ByteRange> runs;
  std::set<std::pair<int64_t, int64_t>> outermost;
  for (Strided &set : sets) {
    while (!set.strides.empty() && set.strides.back().first <= set.width) {
      set.width += set.strides.back().first * (set.strides.back().second - 1);
      set.strides.pop_back();
    }
    if (set.strides.empty())
      runs.push_back({set.begin, set.begin + set.width});
    else
      outermost.insert(set.strides.front());
  }
  std::map<std::pair<int64_t, int64_t>, std::vector<Strided>> byStride;
  for (Strided &set : sets) {
    if (set.strides.empty())
      continue;
    splitOutermost(set, outermost);
    std::pair<int64_t, int64_t> outer = set.strides.front();
    set.strides.erase(set.strides.begin());
    byStride[outer].push_back(std::move(set));
  }
  for (auto &[outer, group] : byStride) {
    std::optional<std::vector<ByteRange>> inner = unite(std::move(group));
    if (!inner)
      return std::nullopt;
    auto [stride, count] = outer;
    for (ByteRange run : *inner) {
      if (run.end - run.begin >= stride) {
        runs.push_back({run.begin, run.end + stride * (count - 1)});
        continue;
      }
      if (runs.size() >= maxRuns || size_t(count) > maxRuns - runs.size())
        return std::nullopt;
      for (int64_t i = 0; i < count; ++i)
        runs.push_back({run.begin + stride * i, run.end + stride * i});
    }
  }
  join(runs);
  return runs;
}

int64_t weir::spv::findHole(const std::vector<ByteRange> &runs, int64_t bytes) {
  int64_t covered = 0;
  for (const ByteRange &run : runs)
    if (run.begin <= covered)
      covered = std::max(covered, run.end);
  return covered < bytes ? covered : -1;
}

bool weir::spv::doCover(const std::vector<ByteRange> &runs, int64_t shift, ByteRange range) {
  return std::any_of(runs.begin(), runs.end(), [&](ByteRange run) {
    return run.begin + shift <= range.begin && range.end <= run.end + shift;
  });
}

bool weir::spv::doMeet(const std::vector<ByteRange> &first, int64_t shift,
                       const std::vector<ByteRange> &second, int64_t begin, int64_t end) {
  for (size_t i = 0, j = 0; i < first.size() && j < second.size();) {
    int64_t firstEnd = first[i].end + shift;
    if (std::max({first[i].begin + shift, second[j].begin, begin}) <
        std::min({firstEnd, second[j].end, end}))
      return true;
    ++(firstEnd < second[j].end ? i : j);
  }
  return false;
}

/// Whether some invocation surely executes the access, at whichever address.
static bool surelyRuns(const AddressMap &map, const MemoryAccess &access) {
  MemoryAccess somewhere = access;
  somewhere.address = Affine();
  Points points(map, somewhere, maxPoints);
  bool runs = false;
  if (access.isCertain && points.canVisit())
    points.forEach([&](const Point &, int64_t) {
      runs = true;
      return false;
    });
  return runs;
}

/// Returns an access as it is where loaded numbers let it run.
static MemoryAccess allow(const AddressMap &map, MemoryAccess access) {
  std::erase_if(access.guards, [&](const Affine &guard) {
    return guard.terms.size() == 1 && map.atoms[guard.terms[0].first].isLoaded;
  });
  access.isCertain = true;
  return access;
}

/// Splits the executions of an access at the last value of the number with the largest factor in a
/// guard. In 512 x + y <= 1000 with y < 600, y is free up to x = 0, and for x = 1 is at most 488.
static std::optional<std::pair<MemoryAccess, MemoryAccess>> splitAtEnd(const AddressMap &map,
                                                                       const MemoryAccess &access) {
  for (const Affine &guard : access.guards) {
    bool isPlain = guard.terms.size() >= 2;
    std::pair<uint32_t, int64_t> top;
    __int128 below = 0;
    for (auto [number, factor] : guard.terms) {
      const Atom &atom = map.atoms[number];
      isPlain &= atom.kind <= Atom::Kind::Trip && factor < 0 && factor != INT64_MIN;
      below -= __int128(factor) * atom.range.max;
      if (factor < top.second)
        top = {number, factor};
    }
    if (!isPlain || guard.constant < 0)
      continue;
    const int64_t factor = -top.second, max = map.atoms[top.first].range.max,
                  last = guard.constant / factor;
    below -= __int128(factor) * max;
    if (guard.constant % factor >= below || last < 1 || last > max)
      continue;
    const Affine number = Affine::number(top.first);
    std::pair<MemoryAccess, MemoryAccess> parts(access, access);
    parts.first.guards.insert(parts.first.guards.begin(), Affine::of(last - 1) - number);
    parts.second.guards.insert(parts.second.guards.begin(),
                               {number - Affine::of(last), Affine::of(last) - number});
    return parts;
  }
  return std::nullopt;
}

TouchedBytes weir::spv::getTouched(const AddressMap &map, uint32_t binding, bool reads) {
  TouchedBytes touched;
  if (!map.problem.empty())
    return touched;
  std::vector<Strided> certain, possible;
  std::vector<ByteRange> visited;
  bool mayBeAnywhere = false;
  std::vector<MemoryAccess> accesses;
  for (const MemoryAccess &access : map.accesses)
    if ((reads ? access.reads : access.writes) && access.root != MemoryAccess::Root::Shared &&
        (access.root != MemoryAccess::Root::Binding || access.binding == binding))
      accesses.push_back(access);
  // Each access may be split once or twice.
  const size_t maxAccesses = 4 * accesses.size();
  for (size_t i = 0; i < accesses.size(); ++i) {
    const MemoryAccess access = accesses[i];
    if (access.root == MemoryAccess::Root::Unknown || access.bytes <= 0) {
      mayBeAnywhere = true;
      continue;
    }
    std::vector<Framed> ways = place(map, access);
    if (!ways.empty() && ways.front().frame.isEmpty())
      continue;
    bool isKnown = !ways.empty() && getSpan(ways.front());
    if (isKnown && ways.front().isExact) {
      certain.push_back(getStrided(ways.front(), access.bytes));
      possible.push_back(certain.back());
      continue;
    }
    Points points(map, access, maxPoints);
    if (accesses.size() < maxAccesses && access.isCertain && points.canVisit())
      if (auto parts = splitAtEnd(map, access)) {
        accesses.push_back(std::move(parts->first));
        accesses.push_back(std::move(parts->second));
        continue;
      }
    if (points.canVisit() && access.isCertain) {
      points.forEach([&](const Point &, int64_t address) {
        ByteRange next{address, address + access.bytes};
        // Most executions go on where the one before ended.
        if (!visited.empty() && visited.back().begin <= address && address <= visited.back().end)
          visited.back().end = std::max(visited.back().end, next.end);
        else
          visited.push_back(next);
        return true;
      });
      join(visited);
    }
    if (points.areAll() && access.isCertain)
      continue;
    if ((!points.canVisit() && surelyRuns(map, access)) ||
        (access.isDecidedByData && surelyRuns(map, allow(map, access))))
      if (std::optional<Reach> reach = getReach(map, access))
        touched.somewhere.push_back({reach->begin, reach->end});
    if (isKnown) {
      possible.push_back(getStrided(ways.front(), access.bytes));
    } else {
      mayBeAnywhere = true;
    }
  }
  auto getRuns = [&](std::vector<Strided> sets) {
    std::optional<std::vector<ByteRange>> runs = unite(std::move(sets));
    if (runs) {
      runs->insert(runs->end(), visited.begin(), visited.end());
      join(*runs);
    }
    return runs;
  };
  touched.certain = getRuns(std::move(certain)).value_or(visited);
  if (!mayBeAnywhere)
    touched.possible = getRuns(std::move(possible));
  return touched;
}

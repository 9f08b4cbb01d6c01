//===- Footprint.cpp - Bytes that a kernel's instructions touch -----------===//

#include "weir/SpirvReader/Footprint.h"

#include "Frame.h"
#include "Points.h"

#include <algorithm>

using namespace weir::spv;

/// Executions that are visited one by one where digits do not tell.
static constexpr int64_t maxPoints = 1 << 14;
/// Runs of bytes in one set.
static constexpr size_t maxRuns = 1 << 16;
/// Pairs of accesses, those of them that are compared one by one, and pairs of
/// executions.
static constexpr size_t maxPairs = 1 << 12, maxCompared = 64, maxMeetings = 1 << 16;

static bool hasOther(const Frame &frame, const Affine &sum) {
  return std::any_of(sum.terms.begin(), sum.terms.end(),
                     [&](auto term) { return frame.isOther(term.first); });
}

namespace {
/// An access in a frame of its own.
struct Framed {
  Frame frame;
  std::optional<Affine> address;
  bool isExact = false; ///< it has each address that the digits make
};
} // namespace

/// Ways to find digits: which guard makes one number of several, and whether the
/// address is looked at before, decides which digits there are.
static std::vector<Framed> place(const AddressMap &map, const MemoryAccess &access) {
  std::vector<Framed> ways;
  if (!access.address)
    return ways;
  for (auto [merges, addressFirst] : {std::pair(true, false), {true, true}, {false, true}}) {
    Framed framed{Frame(map.atoms), {}};
    try {
      if (addressFirst) {
        for (const Affine &guard : access.guards)
          framed.frame.express(guard, First);
        framed.frame.express(*access.address, First);
      }
      for (const Affine &guard : access.guards)
        framed.frame.restrict(guard, First, merges);
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

/// Addresses that the digits make; none when they are beyond all memory.
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
    range = map.atoms.getRange(*access.address);
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
  if (mayLeave && !isExact) {
    Points points(map, access, maxPoints);
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
  return Reach{range->min, end, isExact};
}

//===----------------------------------------------------------------------===//
// What all of them cover
//===----------------------------------------------------------------------===//

namespace {

/// [begin, begin + width), and again at all sums of strides.
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
  std::sort(set.strides.rbegin(), set.strides.rend());
  return set;
}

/// The runs of the sets together, none when there are too many.
static std::optional<std::vector<ByteRange>> unite(std::vector<Strided> sets) {
  std::map<std::pair<int64_t, int64_t>, std::vector<Strided>> byStride;
  std::vector<ByteRange> runs;
  for (Strided &set : sets) {
    while (!set.strides.empty() && set.strides.back().first <= set.width) {
      set.width += set.strides.back().first * (set.strides.back().second - 1);
      set.strides.pop_back();
    }
    if (set.strides.empty()) {
      runs.push_back({set.begin, set.begin + set.width});
      continue;
    }
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

Touched weir::spv::getTouched(const AddressMap &map, uint32_t binding, bool reads) {
  Touched touched;
  if (!map.problem.empty())
    return touched;
  std::vector<Strided> certain, possible;
  std::vector<ByteRange> visited;
  bool mayBeAnywhere = false;
  for (const MemoryAccess &access : map.accesses) {
    if (!(reads ? access.reads : access.writes) || access.root == MemoryAccess::Root::Shared)
      continue;
    if (access.root == MemoryAccess::Root::Binding && access.binding != binding)
      continue;
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
    if (points.areAll() && access.isCertain) {
      points.forEach([&](const Point &, int64_t address) {
        visited.push_back({address, address + access.bytes});
        return true;
      });
      join(visited);
    } else if (isKnown) {
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

//===----------------------------------------------------------------------===//
// Writing over what is read
//===----------------------------------------------------------------------===//

/// The loops around both, outermost first.
static std::vector<uint32_t> getCommonLoops(const MemoryAccess &a, const MemoryAccess &b) {
  auto ends = std::mismatch(a.loops.begin(), a.loops.end(), b.loops.begin(), b.loops.end());
  return {a.loops.begin(), ends.first};
}

/// Whether all invocations of a workgroup meet at a barrier between the two, in each
/// trip of the loops around both.
static bool isSeparated(const AddressMap &map, const MemoryAccess &first,
                        const MemoryAccess &second) {
  std::vector<uint32_t> common = getCommonLoops(first, second);
  return std::any_of(map.barriers.begin(), map.barriers.end(), [&](const BarrierPlace &barrier) {
    // Who comes to the second has come by the barrier.
    bool isOnTheWay =
        barrier.isCertain && barrier.guards.size() <= second.guards.size() &&
        std::equal(barrier.guards.begin(), barrier.guards.end(), second.guards.begin());
    return isOnTheWay && barrier.loops == common && first.position < barrier.position &&
           barrier.position < second.position;
  });
}

namespace {
/// What is the same in any two executions that touch one byte.
struct Meeting {
  bool isPossible = true;
  std::vector<uint32_t> equal; ///< digits
};
} // namespace

/// Solves first's address - second's in [1 - first's bytes, second's bytes - 1] from
/// the digit of the largest factor down: what those below cannot make up for is fixed.
static Meeting meet(const Frame &frame, const Affine &first, const Affine &second,
                    int64_t firstBytes, int64_t secondBytes) {
  Meeting meeting;
  struct Term {
    uint32_t digit;
    int64_t factor;
    int64_t reach; ///< the digits differ by no more
  };
  std::vector<Term> terms;
  // The difference plus what is known to be free, as an interval that holds 0.
  __int128 low = __int128(first.constant) - second.constant - (secondBytes - 1);
  __int128 high = __int128(first.constant) - second.constant + (firstBytes - 1);
  auto addFree = [&](uint32_t digit, int64_t factor) {
    __int128 most = __int128(factor) * (frame.getCount(digit) - 1);
    (most < 0 ? low : high) += most;
  };
  for (auto [digit, factor] : first.terms)
    if (!frame.isOther(digit) && second.getFactor(digit) == factor)
      terms.push_back({digit, factor, frame.getCount(digit) - 1});
    else
      addFree(digit, factor);
  for (auto [digit, factor] : second.terms)
    if (frame.isOther(digit) || first.getFactor(digit) != factor)
      addFree(digit, -factor);
  std::sort(terms.begin(), terms.end(),
            [](const Term &a, const Term &b) { return std::abs(a.factor) > std::abs(b.factor); });
  for (const Term &term : terms) {
    __int128 most = __int128(std::abs(term.factor)) * term.reach;
    low -= most;
    high += most;
  }
  for (const Term &term : terms) {
    __int128 factor = std::abs(term.factor);
    low += factor * term.reach;
    high -= factor * term.reach;
    // Differences d, of either sign, for which factor * d + [low, high] holds 0.
    auto divideUp = [&](__int128 value) {
      return value >= 0 ? (value + factor - 1) / factor : -(-value / factor);
    };
    __int128 least = std::max(divideUp(-high), -__int128(term.reach));
    __int128 most = std::min(-divideUp(low), __int128(term.reach));
    if (least > most) {
      meeting.isPossible = false;
      return meeting;
    }
    if (least != most)
      break; // nothing is known of those below, either
    if (least == 0)
      meeting.equal.push_back(term.digit);
    low += factor * least;
    high += factor * least;
  }
  return meeting;
}

/// Whether equal digits leave no two executions but those that are ordered.
static bool isReadFirst(const AddressMap &map, const Frame &frame, const Meeting &meeting,
                        const MemoryAccess &read, const MemoryAccess &write) {
  auto areFixed = [&](const std::vector<uint32_t> &ids) {
    return std::all_of(ids.begin(), ids.end(),
                       [&](uint32_t id) { return frame.isFixedId(id, meeting.equal); });
  };
  for (uint32_t loop : getCommonLoops(read, write))
    if (map.loops[loop].most != 1 && !frame.isFixedTrip(loop, meeting.equal))
      return false;
  if (!areFixed(map.groupIds))
    return false;
  if ((map.hasLocalIds && areFixed(map.localIds)) || (map.hasLaneIds && areFixed(map.laneIds)))
    return read.position < write.position;
  return isSeparated(map, read, write);
}

static bool isProvedByDigits(const AddressMap &map, const MemoryAccess &read,
                             const MemoryAccess &write) {
  std::vector<uint32_t> common = getCommonLoops(read, write);
  for (bool pairs : {true, false})
    for (bool merges : {true, false}) {
      Frame frame(map.atoms);
      for (uint32_t loop : common)
        frame.pair(loop, loop);
      for (size_t i = common.size(); pairs && i < std::min(read.loops.size(), write.loops.size());
           ++i)
        if (map.loops[read.loops[i]].most == map.loops[write.loops[i]].most)
          frame.pair(read.loops[i], write.loops[i]);
      try {
        // What holds for both.
        for (const Affine &guard : read.guards)
          for (const Affine &other : write.guards) {
            std::optional<Affine> second = frame.express(other, Second);
            std::optional<Affine> first = frame.express(guard, First);
            if (first && first == second && frame.express(other, Second) == second) {
              frame.restrict(guard, First, merges);
              break;
            }
          }
        // Until the one makes no digits that the other must be in, too.
        std::optional<Affine> from, to;
        do {
          from = frame.express(*read.address, First);
          to = frame.express(*write.address, Second);
        } while (from && to && from != frame.express(*read.address, First));
        if (!from || !to)
          continue;
        Meeting meeting = meet(frame, *from, *to, read.bytes, write.bytes);
        if (!meeting.isPossible || isReadFirst(map, frame, meeting, read, write))
          return true;
      } catch (TooLarge) {
      }
    }
  return false;
}

namespace {
/// Two accesses, of which executions are compared.
struct Comparison {
  const AddressMap &map;
  const MemoryAccess &read, &write;
  std::vector<uint32_t> trips; ///< counters of the loops around both, outermost first
  bool isBarrierBetween;

  Comparison(const AddressMap &map, const MemoryAccess &read, const MemoryAccess &write)
      : map(map), read(read), write(write), isBarrierBetween(isSeparated(map, read, write)) {
    for (uint32_t loop : getCommonLoops(read, write))
      for (uint32_t number = 0; number < map.atoms.size(); ++number)
        if (map.atoms[number].kind == Atom::Kind::Trip && map.atoms[number].number == loop)
          trips.push_back(number);
  }
  Answer isReadFirst(const Point &first, const Point &second) const;
};
} // namespace

/// Whether the read comes first, of two executions that touch one byte.
Answer Comparison::isReadFirst(const Point &first, const Point &second) const {
  auto areEqual = [&](const std::vector<uint32_t> &ids) {
    return std::all_of(ids.begin(), ids.end(),
                       [&](uint32_t id) { return first[id] == second[id]; });
  };
  int order = 0; // of the trips, in the first loop where they differ
  for (size_t i = 0; i < trips.size() && order == 0; ++i)
    order = first[trips[i]] < second[trips[i]] ? -1 : first[trips[i]] > second[trips[i]];
  bool isKnownWho = !(map.hasLocalIds && map.hasLaneIds);
  if (!areEqual(map.groupIds))
    return isKnownWho ? Answer::No : Answer::Unknown;
  if (areEqual(map.hasLocalIds ? map.localIds : map.laneIds)) {
    bool isFirst = order < 0 || (order == 0 && read.position < write.position);
    return isFirst ? Answer::Yes : isKnownWho ? Answer::No : Answer::Unknown;
  }
  if (order == 0 && isBarrierBetween)
    return Answer::Yes;
  return map.barriers.empty() && isKnownWho ? Answer::No : Answer::Unknown;
}

/// Looks at executions one by one. `byte` is set with `No`.
static Answer compareOneByOne(const AddressMap &map, const MemoryAccess &read,
                              const MemoryAccess &write, int64_t &byte) {
  Points reads(map, read, maxPoints), writes(map, write, maxPoints);
  if (!reads.canVisit() || !writes.canVisit())
    return Answer::Unknown;
  struct Visit {
    int64_t address;
    Point point;
  };
  std::vector<Visit> written;
  writes.forEach([&](const Point &point, int64_t address) {
    written.push_back({address, point});
    return true;
  });
  std::sort(written.begin(), written.end(),
            [](const Visit &a, const Visit &b) { return a.address < b.address; });
  bool isWhole = reads.areAll() && writes.areAll();
  const Comparison comparison(map, read, write);
  Answer answer = Answer::Yes;
  size_t meetings = 0;
  reads.forEach([&](const Point &point, int64_t address) {
    auto visit =
        std::lower_bound(written.begin(), written.end(), address - write.bytes + 1,
                         [](const Visit &visit, int64_t begin) { return visit.address < begin; });
    for (; visit != written.end() && visit->address < address + read.bytes; ++visit) {
      if (++meetings > maxMeetings) {
        answer = Answer::Unknown;
        return false;
      }
      Answer order = comparison.isReadFirst(point, visit->point);
      if (order == Answer::No && read.isCertain && write.isCertain) {
        byte = std::max(address, visit->address);
        answer = Answer::No;
        return false;
      }
      if (order != Answer::Yes)
        answer = Answer::Unknown;
    }
    return true;
  });
  return answer == Answer::Yes && !isWhole ? Answer::Unknown : answer;
}

Overwrite weir::spv::mayOverwrite(const AddressMap &map, uint32_t source, uint32_t target) {
  Overwrite result;
  if (!map.problem.empty())
    return result;
  std::vector<const MemoryAccess *> reads, writes;
  for (const MemoryAccess &access : map.accesses) {
    if (access.root == MemoryAccess::Root::Unknown)
      return result;
    if (access.root != MemoryAccess::Root::Binding)
      continue;
    if (access.binding == source && access.reads)
      reads.push_back(&access);
    if (access.binding == target && access.writes)
      writes.push_back(&access);
  }
  if (reads.size() * writes.size() > maxPairs)
    return result;
  result.answer = Answer::Yes;
  size_t compared = 0;
  for (const MemoryAccess *read : reads)
    for (const MemoryAccess *write : writes) {
      bool isKnown = read->address && write->address && read->bytes > 0 && write->bytes > 0;
      if (isKnown && isProvedByDigits(map, *read, *write))
        continue;
      isKnown &= compared++ < maxCompared;
      Answer answer = isKnown ? compareOneByOne(map, *read, *write, result.byte) : Answer::Unknown;
      if (answer == Answer::Yes)
        continue;
      if (result.answer == Answer::Yes || answer == Answer::No)
        result = {answer, read, write, result.byte};
      if (answer == Answer::No)
        return result;
    }
  return result;
}

//===- Races.cpp - Races between invocations of a kernel ------------------===//
//
// For each pair of accesses, finds the numbers that any two executions touching a common byte
// have in common: from digits (Frame.h), which can prove it, or one by one (Points.h), which
// may also find a counterexample. These numbers tell how the executions are ordered.
//
//===----------------------------------------------------------------------===//

#include "weir/CodeProofs/Races.h"

#include "Frame.h"
#include "Points.h"
#include "weir/CodeProofs/Footprint.h"

#include <algorithm>
#include <functional>
#include <map>
#include <numeric>

using namespace weir::spv;

/// Max numbers of pairs of accesses to workgroup memory, of which barriers separate most, and to
/// operands; of pairs of accesses that are looked at, and compared one by one; and of pairs of
/// executions.
static constexpr size_t maxSharedPairs = 1 << 19, maxOperandPairs = 1 << 15, maxPairs = 1 << 14,
                        maxCompared = 64, maxMeetings = 1 << 16;

//===----------------------------------------------------------------------===//
// Order
//===----------------------------------------------------------------------===//

/// Returns the loops around both, outermost first.
static std::vector<uint32_t> getCommonLoops(const MemoryAccess &a, const MemoryAccess &b) {
  auto ends = std::mismatch(a.loops.begin(), a.loops.end(), b.loops.begin(), b.loops.end());
  return {a.loops.begin(), ends.first};
}

namespace {
/// The distance from an earlier to a later execution: the number of outer loops around both
/// that are in the same trip, and the number of trips between them in the next loop, if any.
struct Distance {
  size_t same = 0;
  int64_t trips = 0;
};
} // namespace

static bool contains(const std::vector<uint32_t> &words, uint32_t word) {
  return std::find(words.begin(), words.end(), word) != words.end();
}

/// Whether all invocations of a workgroup meet at a barrier between two executions that orders
/// their memory. If the first is that of a copy or product, its invocation has waited for it
/// before; if the second is a product's, it has ordered its write for such.
static Answer isBarrierBetween(const AddressMap &map, const MemoryAccess &first,
                               const MemoryAccess &second, Distance distance) {
  if (first.isPrivate || second.isPrivate)
    return Answer::Unknown;
  const bool isShared = first.root == MemoryAccess::Root::Shared;
  const size_t around = distance.same + (distance.trips ? 1 : 0); // number of loops around both
  Answer answer = Answer::No;
  for (const BarrierSite &barrier : map.barriers) {
    auto isAround = [&](const MemoryAccess &access, size_t loop) {
      return loop < access.loops.size() && loop < barrier.loops.size() &&
             access.loops[loop] == barrier.loops[loop];
    };
    if (!(isShared ? barrier.ordersShared : barrier.ordersBindings) ||
        (around && !isAround(first, around - 1)))
      continue;
    if (first.isLate && contains(barrier.inFlight, first.word)) {
      if (!contains(barrier.neverLanded, first.word))
        answer = Answer::Unknown;
      continue;
    }
    if (second.isAsync && first.writes && contains(barrier.unfenced, first.word)) {
      if (!contains(barrier.neverFenced, first.word))
        answer = Answer::Unknown;
      continue;
    }
    // Whether the barrier is passed in the access's own trip of all loops around the barrier.
    auto comesBy = [&](const MemoryAccess &access) {
      bool isInTrip = barrier.loops.empty() || isAround(access, barrier.loops.size() - 1);
      if (access.isInHeader && barrier.loops.size() == access.loops.size())
        return false; // the header runs once more, without the barrier
      return isInTrip &&
             std::all_of(barrier.guards.begin(), barrier.guards.end(), [&](const Affine &guard) {
               return std::find(access.guards.begin(), access.guards.end(), guard) !=
                      access.guards.end();
             });
    };
    bool isBehind = first.position < barrier.position,
         isBefore = barrier.position < second.position;
    bool isBetween = distance.trips == 0
                         ? isBehind && isBefore && (comesBy(first) || comesBy(second))
                         : (isBehind && comesBy(first)) || (isBefore && comesBy(second));
    // Or it is passed in every trip between the two.
    isBetween |= distance.trips > 1 && barrier.loops.size() == around && barrier.guards.empty();
    if (isBetween && barrier.isUniform)
      return Answer::Yes;
    // The barrier may be passed in another trip of a loop around only one of the two.
    if (isAround(first, around) || isAround(second, around) || distance.trips > 1 ||
        (distance.trips == 1 ? isBehind || isBefore : isBehind && isBefore))
      answer = Answer::Unknown;
  }
  return answer;
}

//===----------------------------------------------------------------------===//
// Digits
//===----------------------------------------------------------------------===//

namespace {
/// The digits whose difference is the same in any two executions that touch a common byte.
struct Meeting {
  bool isPossible = true;
  std::vector<uint32_t> equal; ///< digits that do not differ
  /// How much larger others are in the first execution.
  std::map<uint32_t, int64_t> differences;
};
} // namespace

namespace {
/// An access in the digits of a frame shared with another one.
struct Placed {
  Affine address;
  std::vector<Affine> guards;
  int64_t bytes;
};
} // namespace

/// Returns the min and max of a sum of digits. Uses guards to narrow disjoint parts of the sum.
static std::pair<__int128, __int128> getRange(const Frame &frame, const Affine &sum,
                                              const std::vector<Affine> &guards) {
  __int128 min = 0, max = 0;
  std::vector<uint32_t> open;
  for (auto [digit, factor] : sum.terms) {
    (factor < 0 ? min : max) += __int128(factor) * (frame.getCount(digit) - 1);
    open.push_back(digit);
  }
  for (const Affine &guard : guards) {
    // The part of the sum that equals times * (guard - its constant).
    std::optional<int64_t> times;
    __int128 partMin = 0, partMax = 0;
    bool isPart = !guard.terms.empty();
    for (auto [digit, factor] : guard.terms) {
      int64_t own = sum.getFactor(digit);
      if (!times)
        times = own / factor;
      isPart &= std::find(open.begin(), open.end(), digit) != open.end() &&
                own == __int128(*times) * factor;
      (own < 0 ? partMin : partMax) += __int128(own) * (frame.getCount(digit) - 1);
    }
    if (!isPart || *times == 0)
      continue;
    // The part of the guard is a multiple of all its factors' common divisor.
    int64_t divisor = 0;
    for (auto [digit, factor] : guard.terms)
      divisor = std::gcd(divisor, factor);
    int64_t rest = guard.constant % divisor;
    int64_t constant = guard.constant - (rest < 0 ? rest + divisor : rest);
    __int128 bound = -__int128(*times) * constant;
    if (*times > 0)
      min += std::max<__int128>(bound - partMin, 0);
    else
      max -= std::max<__int128>(partMax - bound, 0);
    for (auto [digit, factor] : guard.terms)
      std::erase(open, digit);
  }
  return {min, max};
}

/// Solves first.address - second.address in [1 - first.bytes, second.bytes - 1], from the digit
/// with the largest factor down. A digit that both have differs by one known number, and one that
/// a single access has is one known number, if the digits below cannot compensate for another one.
static Meeting meet(const Frame &frame, const Placed &first, const Placed &second) {
  Meeting meeting;
  // The part that is not solved yet: an interval, and digits of either access.
  __int128 low = __int128(first.address.constant) - second.address.constant - (second.bytes - 1);
  __int128 high = __int128(first.address.constant) - second.address.constant + (first.bytes - 1);
  Affine ofFirst, ofSecond;
  ofFirst.terms = first.address.terms;
  ofSecond.terms = second.address.terms;
  struct Unknown {
    uint32_t digit;
    int64_t factor; ///< in the difference of the addresses
    bool isInFirst, isInSecond;
  };
  std::vector<Unknown> unknowns;
  for (auto [digit, factor] : ofFirst.terms) {
    const bool isShared = !frame.isOther(digit) && ofSecond.getFactor(digit) == factor;
    unknowns.push_back({digit, factor, true, isShared});
  }
  for (auto [digit, factor] : ofSecond.terms)
    if (frame.isOther(digit) || ofFirst.getFactor(digit) != factor)
      unknowns.push_back({digit, -factor, false, true});
  auto drop = [](Affine &sum, uint32_t digit) {
    std::erase_if(sum.terms, [&](auto term) { return term.first == digit; });
  };
  while (!unknowns.empty()) {
    auto largest = std::max_element(unknowns.begin(), unknowns.end(), [](auto &a, auto &b) {
      return std::abs(a.factor) < std::abs(b.factor);
    });
    const Unknown unknown = *largest;
    unknowns.erase(largest);
    if (unknown.isInFirst)
      drop(ofFirst, unknown.digit);
    if (unknown.isInSecond)
      drop(ofSecond, unknown.digit);
    const bool isShared = unknown.isInFirst && unknown.isInSecond;
    __int128 factor = std::abs(unknown.factor), reach = frame.getCount(unknown.digit) - 1;
    auto [firstMin, firstMax] = getRange(frame, ofFirst, first.guards);
    auto [secondMin, secondMax] = getRange(frame, ofSecond, second.guards);
    __int128 min = low + firstMin - secondMax, max = high + firstMax - secondMin;
    // The range of numbers d for which factor * d + [min, max] contains 0.
    auto divideUp = [&](__int128 value) {
      return value >= 0 ? (value + factor - 1) / factor : -(-value / factor);
    };
    const bool isNegative = unknown.factor < 0;
    const __int128 least = isShared || isNegative ? -reach : 0,
                   most = isShared || !isNegative ? reach : 0;
    __int128 from = std::max(divideUp(-max), least), to = std::min(-divideUp(min), most);
    if (from > to) {
      meeting.isPossible = false;
      return meeting;
    }
    if (from != to && isShared)
      return meeting; // the digits below are unknown, too
    if (isShared && from == 0)
      meeting.equal.push_back(unknown.digit);
    else if (isShared)
      meeting.differences[unknown.digit] = int64_t(isNegative ? -from : from);
    low += factor * from;
    high += factor * to;
  }
  meeting.isPossible = low <= 0 && high >= 0;
  return meeting;
}

static bool areFixed(const Frame &frame, const Meeting &meeting, const std::vector<uint32_t> &ids) {
  return std::all_of(ids.begin(), ids.end(),
                     [&](uint32_t id) { return frame.isFixedId(id, meeting.equal); });
}

static bool isOneInvocation(const AddressMap &map, const Frame &frame, const Meeting &meeting) {
  return (map.hasLocalIds && areFixed(frame, meeting, map.localIds)) ||
         (map.hasLaneIds && areFixed(frame, meeting, map.laneIds));
}

static bool hasOneSubgroup(const AddressMap &map) {
  return map.localSize[0] * map.localSize[1] * map.localSize[2] <= map.launch.subgroupSize;
}

/// Whether two executions that touch a common byte are by one invocation, in the same trips, given
/// their equal digits. Of a matrix that a subgroup loads or stores, any invocation may have the
/// byte: such an execution is in order with itself alone.
static bool areByOne(const AddressMap &map, const Frame &frame, const Meeting &meeting,
                     const MemoryAccess &a, const MemoryAccess &b) {
  if (!a.isCooperative && !b.isCooperative)
    return isOneInvocation(map, frame, meeting);
  if (a.position != b.position || !(map.hasLaneIds || hasOneSubgroup(map)))
    return false;
  for (uint32_t loop : getCommonLoops(a, b))
    if (map.loops[loop].maxTrips != 1 && !frame.isFixedTrip(loop, meeting.equal))
      return false;
  return std::all_of(map.laneIds.begin(), map.laneIds.end(), [&](uint32_t id) {
    return map.atoms[id].kind != Atom::Kind::Subgroup || frame.isFixedId(id, meeting.equal);
  });
}

/// A claim about any two executions that touch a common byte, given their equal digits.
using Claim = std::function<bool(const Frame &, const Meeting &)>;

/// Drops from `sum` the uniform terms that `other` has, too: they cancel.
static Affine dropUniform(const Atoms &atoms, Affine sum, const Affine &other) {
  std::erase_if(sum.terms, [&](auto term) {
    return atoms.isUniform(term.first) &&
           std::find(other.terms.begin(), other.terms.end(), term) != other.terms.end();
  });
  return sum;
}

/// Expresses two accesses in the same digits; none if that is impossible.
static std::optional<std::pair<Placed, Placed>> place(const Atoms &atoms, Frame &frame,
                                                      const MemoryAccess &a, const MemoryAccess &b,
                                                      bool hasGuards) {
  static const std::vector<Affine> noGuards;
  auto express = [&](const MemoryAccess &access, Who who) {
    const Affine &other = *(who == First ? b : a).address;
    std::vector<std::optional<Affine>> sums = {
        frame.express(dropUniform(atoms, *access.address, other), who)};
    for (const Affine &guard : hasGuards ? access.guards : noGuards)
      sums.push_back(frame.express(guard, who));
    return sums;
  };
  frame.prepare({{*a.address, First}, {*b.address, Second}});
  std::vector<std::optional<Affine>> first, second;
  // Repeat until no guard changes the digits of another.
  do {
    first = express(a, First);
    second = express(b, Second);
  } while (first[0] && second[0] && (first != express(a, First) || second != express(b, Second)));
  if (!first[0] || !second[0])
    return std::nullopt;
  auto gather = [&](const std::vector<std::optional<Affine>> &sums, int64_t bytes) {
    Placed placed{*sums[0], {}, bytes};
    for (size_t i = 1; i < sums.size(); ++i)
      if (sums[i])
        placed.guards.push_back(*sums[i]);
    // Behind them, what they say of single digits: addresses have other factors.
    for (size_t i = 0, count = placed.guards.size(); i < count; ++i)
      if (placed.guards[i].terms.size() > 1)
        if (std::optional<Affine> bound = frame.findBound(placed.guards[i]))
          placed.guards.push_back(*bound);
    return placed;
  };
  return std::pair(gather(first, a.bytes), gather(second, b.bytes));
}

/// Whether digits prove a claim for all executions of two accesses that touch a common byte.
/// Tries several choices of paired loops and of merged sums, which give different digits.
static bool isProvedByDigits(const AddressMap &map, const MemoryAccess &a, const MemoryAccess &b,
                             const Claim &claim) {
  std::vector<uint32_t> common = getCommonLoops(a, b);
  for (int way = 0; way < 16; ++way) {
    const bool pairs = !(way & 1), merges = !(way & 2), hasGuards = way & 4, addressFirst = way & 8;
    if ((hasGuards || addressFirst) && a.guards.empty() && b.guards.empty())
      break;
    Frame frame(map.atoms);
    for (uint32_t loop : common)
      frame.pair(loop, loop);
    for (size_t i = common.size(); pairs && i < std::min(a.loops.size(), b.loops.size()); ++i)
      if (map.loops[a.loops[i]].maxTrips == map.loops[b.loops[i]].maxTrips)
        frame.pair(a.loops[i], b.loops[i]);
    try {
      if (addressFirst)
        frame.prepare({{*a.address, First}, {*b.address, Second}});
      // Guards that hold for both.
      for (const Affine &guard : a.guards)
        for (const Affine &other : b.guards) {
          std::optional<Affine> second = frame.express(other, Second);
          std::optional<Affine> first = frame.express(guard, First);
          if (first && first == second && frame.express(other, Second) == second) {
            frame.restrict(guard, First, merges);
            break;
          }
        }
      if (auto both = place(map.atoms, frame, a, b, hasGuards)) {
        Meeting meeting = meet(frame, both->first, both->second);
        if (!meeting.isPossible || claim(frame, meeting))
          return true;
      }
    } catch (TooLarge) {
    }
  }
  return false;
}

/// Whether nothing orders the executions of two accesses, even those of one invocation.
static bool areUnordered(const MemoryAccess &a, const MemoryAccess &b) {
  return a.isReadOnly || b.isReadOnly;
}

/// Whether executions of two accesses by one invocation need not be in program order.
static bool areLate(const MemoryAccess &a, const MemoryAccess &b) { return a.isLate || b.isLate; }

/// Whether equal digits imply that the read is ordered before the write.
static bool isReadFirst(const AddressMap &map, const Frame &frame, const Meeting &meeting,
                        const MemoryAccess &read, const MemoryAccess &write) {
  if (areUnordered(read, write))
    return false;
  std::vector<uint32_t> common = getCommonLoops(read, write);
  Distance distance{common.size()};
  for (size_t i = 0; i < common.size() && distance.trips == 0; ++i) {
    if (map.loops[common[i]].maxTrips == 1 || frame.isFixedTrip(common[i], meeting.equal))
      continue;
    // The read may be in an earlier trip, by a known number.
    std::optional<uint32_t> digit = frame.findTripDigit(common[i]);
    auto difference = digit ? meeting.differences.find(*digit) : meeting.differences.end();
    if (difference == meeting.differences.end() || difference->second > 0)
      return false;
    distance = {i, -difference->second};
  }
  if (!areFixed(frame, meeting, map.groupIds))
    return false;
  if (areByOne(map, frame, meeting, read, write) && !areLate(read, write))
    return distance.trips > 0 || read.position < write.position;
  return isBarrierBetween(map, read, write, distance) == Answer::Yes;
}

/// Whether all executions of two accesses by one workgroup are ordered, given that the trips of the
/// loops for which `isFixed` are the same: by barriers or, if both are by one invocation, by its
/// program. What it copies lands later, but behind all that it did before.
static bool isSeparated(const AddressMap &map, const MemoryAccess &a, const MemoryAccess &b,
                        const std::function<bool(uint32_t loop)> &isFixed, bool areByOne = false) {
  std::vector<uint32_t> common = getCommonLoops(a, b);
  auto isOrdered = [&](const MemoryAccess &first, const MemoryAccess &second, Distance distance) {
    return (areByOne && !first.isLate && !second.isAsync) ||
           isBarrierBetween(map, first, second, distance) == Answer::Yes;
  };
  bool isFirst = a.position < b.position, isOneExecution = areByOne && &a == &b;
  if (!isOneExecution && !isOrdered(isFirst ? a : b, isFirst ? b : a, {common.size()}))
    return false;
  for (size_t i = 0; i < common.size(); ++i)
    if (map.loops[common[i]].maxTrips != 1 && !isFixed(common[i]) &&
        (!isOrdered(a, b, {i, 1}) || !isOrdered(b, a, {i, 1})))
      return false;
  return true;
}

/// Whether equal digits imply that the executions are ordered.
static bool isOrdered(const AddressMap &map, const Frame &frame, const Meeting &meeting,
                      const MemoryAccess &a, const MemoryAccess &b) {
  if (areUnordered(a, b))
    return false;
  // Each workgroup has its own workgroup memory.
  if (a.root != MemoryAccess::Root::Shared && !areFixed(frame, meeting, map.groupIds))
    return false;
  auto isFixed = [&](uint32_t loop) { return frame.isFixedTrip(loop, meeting.equal); };
  return isSeparated(map, a, b, isFixed, areByOne(map, frame, meeting, a, b));
}

//===----------------------------------------------------------------------===//
// One by one
//===----------------------------------------------------------------------===//

namespace {
/// Compares executions of two accesses one by one.
class Comparison {
public:
  Comparison(const AddressMap &map, const MemoryAccess &a, const MemoryAccess &b);
  Answer isReadFirst(const Point &read, const Point &write) const;
  Answer isOrdered(const Point &first, const Point &second) const;

private:
  bool areEqual(const Point &a, const Point &b, const std::vector<uint32_t> &ids) const {
    return std::all_of(ids.begin(), ids.end(), [&](uint32_t id) { return a[id] == b[id]; });
  }
  bool areByOne(const Point &first, const Point &second) const {
    if (a.isCooperative || b.isCooperative) {
      Distance distance = measure(first, second);
      return a.position == b.position && distance.trips == 0 &&
             (map.hasLaneIds || hasOneSubgroup(map)) &&
             std::all_of(map.laneIds.begin(), map.laneIds.end(), [&](uint32_t id) {
               return map.atoms[id].kind != Atom::Kind::Subgroup || first[id] == second[id];
             });
    }
    return (map.hasLocalIds && areEqual(first, second, map.localIds)) ||
           (map.hasLaneIds && areEqual(first, second, map.laneIds));
  }
  /// Returns `No`, or `Unknown` if barriers of a subgroup may order the two.
  Answer denyBarrier(const Point &a, const Point &b) const {
    bool areInOne = map.hasSubgroupOrder && !map.hasLaneIds &&
                    getInvocation(map, a) / map.launch.subgroupSize ==
                        getInvocation(map, b) / map.launch.subgroupSize;
    return areInOne ? Answer::Unknown : deny();
  }
  /// Returns the distance from `a` to `b`; negative if `b` is earlier.
  Distance measure(const Point &a, const Point &b) const;
  /// Returns `No`, or `Unknown` if the code uses both kinds of ids: then some points are no
  /// executions. Or if it orders them in another way.
  Answer deny() const {
    bool isKnown = !(map.hasLocalIds && map.hasLaneIds) && !map.hasOtherOrder;
    return isKnown ? Answer::No : Answer::Unknown;
  }

  const AddressMap &map;
  const MemoryAccess &a, &b;
  std::vector<std::optional<uint32_t>> counters; ///< counters of the loops around both
};
} // namespace

Comparison::Comparison(const AddressMap &map, const MemoryAccess &a, const MemoryAccess &b)
    : map(map), a(a), b(b) {
  for (uint32_t loop : getCommonLoops(a, b)) {
    counters.emplace_back();
    for (uint32_t number = 0; number < map.atoms.size(); ++number)
      if (map.atoms[number].kind == Atom::Kind::Trip && map.atoms[number].number == loop)
        counters.back() = number;
  }
}

Distance Comparison::measure(const Point &a, const Point &b) const {
  for (size_t i = 0; i < counters.size(); ++i)
    if (counters[i] && a[*counters[i]] != b[*counters[i]])
      return {i, b[*counters[i]] - a[*counters[i]]};
  return {counters.size()};
}

/// Whether, of two executions that touch a common byte, the read is ordered before the write.
Answer Comparison::isReadFirst(const Point &read, const Point &write) const {
  Distance distance = measure(read, write);
  bool isEarlier = distance.trips ? distance.trips > 0 : a.position < b.position;
  if (!areEqual(read, write, map.groupIds) || !isEarlier || areUnordered(a, b))
    return deny();
  if (areByOne(read, write) && !areLate(a, b))
    return Answer::Yes;
  Answer answer = isBarrierBetween(map, a, b, distance);
  return answer == Answer::No ? denyBarrier(read, write) : answer;
}

/// Whether two executions that touch a common byte are ordered.
Answer Comparison::isOrdered(const Point &first, const Point &second) const {
  if (!areEqual(first, second, map.groupIds))
    return a.root == MemoryAccess::Root::Shared ? Answer::Yes : deny();
  if (areUnordered(a, b))
    return deny();
  Distance distance = measure(first, second);
  bool isFirst = distance.trips ? distance.trips > 0 : a.position < b.position;
  // A copy lands behind everything that its invocation did before it began the copy.
  bool isOneExecution = &a == &b && distance.trips == 0;
  const bool isByOne = areByOne(first, second);
  if (isByOne && (isOneExecution || (!(isFirst ? a : b).isLate && !(isFirst ? b : a).isAsync)))
    return Answer::Yes;
  distance.trips = std::abs(distance.trips);
  Answer answer = isBarrierBetween(map, isFirst ? a : b, isFirst ? b : a, distance);
  if (answer == Answer::No && isByOne && (a.isAsync || b.isAsync))
    return Answer::Unknown; // a fence may order it
  return answer == Answer::No ? denyBarrier(first, second) : answer;
}

/// Calls `compare` for pairs of executions that touch a common byte; sets `byte` on `No`.
static Answer compareOneByOne(const AddressMap &map, const MemoryAccess &a, const MemoryAccess &b,
                              Answer (Comparison::*compare)(const Point &, const Point &) const,
                              int64_t &byte) {
  Points firsts(map, a, maxPoints), seconds(map, b, maxPoints);
  if (!firsts.canVisit() || !seconds.canVisit())
    return Answer::Unknown;
  struct Visit {
    int64_t address;
    Point point;
  };
  std::vector<Visit> visits;
  seconds.forEach([&](const Point &point, int64_t address) {
    visits.push_back({address, point});
    return true;
  });
  std::sort(visits.begin(), visits.end(),
            [](const Visit &x, const Visit &y) { return x.address < y.address; });
  bool isWhole = firsts.areAll() && seconds.areAll();
  const Comparison comparison(map, a, b);
  Answer answer = Answer::Yes;
  size_t meetings = 0;
  firsts.forEach([&](const Point &point, int64_t address) {
    auto visit =
        std::lower_bound(visits.begin(), visits.end(), address - b.bytes + 1,
                         [](const Visit &visit, int64_t begin) { return visit.address < begin; });
    for (; visit != visits.end() && visit->address < address + a.bytes; ++visit) {
      if (++meetings > maxMeetings) {
        answer = Answer::Unknown;
        return false;
      }
      Answer order = (comparison.*compare)(point, visit->point);
      if (order == Answer::No && a.isCertain && b.isCertain) {
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

//===----------------------------------------------------------------------===//
// All pairs
//===----------------------------------------------------------------------===//

static bool isKnown(const MemoryAccess &access) { return access.address && access.bytes > 0; }

PairAnswer weir::spv::mayOverwrite(const AddressMap &map, uint32_t source, uint32_t target) {
  PairAnswer result;
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
      bool areKnown = isKnown(*read) && isKnown(*write);
      if (areKnown &&
          isProvedByDigits(map, *read, *write, [&](const Frame &frame, const Meeting &meeting) {
            return isReadFirst(map, frame, meeting, *read, *write);
          }))
        continue;
      if (areKnown && areApart(map, *read, *write))
        continue;
      areKnown &= compared++ < maxCompared;
      Answer answer =
          areKnown ? compareOneByOne(map, *read, *write, &Comparison::isReadFirst, result.byte)
                   : Answer::Unknown;
      if (answer == Answer::Yes)
        continue;
      if (result.answer == Answer::Yes || answer == Answer::No)
        result = {answer, read, write, result.byte};
      if (answer == Answer::No)
        return result;
    }
  return result;
}

namespace {
/// The extents of accesses to workgroup memory, each of which is found once. Parts of a variable
/// that a kernel uses in turn are apart by these.
class Extents {
public:
  explicit Extents(const AddressMap &map) : map(map) {}
  bool areApart(const MemoryAccess &a, const MemoryAccess &b) {
    const auto &first = get(a), &second = get(b);
    return first && second && (first->second <= second->first || second->second <= first->first);
  }

private:
  const std::optional<std::pair<int64_t, int64_t>> &get(const MemoryAccess &access) {
    auto [place, isNew] = known.try_emplace(&access);
    if (isNew)
      place->second = getExtent(map, access);
    return place->second;
  }

  const AddressMap &map;
  std::map<const MemoryAccess *, std::optional<std::pair<int64_t, int64_t>>> known;
};
} // namespace

/// Whether a guard of one access excludes one of the other for the same workgroup: no workgroup
/// executes both.
static bool areInOtherWorkgroups(const AddressMap &map, const MemoryAccess &a,
                                 const MemoryAccess &b) {
  auto isOfGroup = [&](const Affine &guard) {
    return std::all_of(guard.terms.begin(), guard.terms.end(), [&](auto term) {
      return map.atoms[term.first].kind == Atom::Kind::Workgroup;
    });
  };
  for (const Affine &guard : a.guards)
    for (const Affine &other : b.guards) {
      if (!isOfGroup(guard) || !isOfGroup(other))
        continue;
      try {
        const Affine sum = guard + other; // of two that are >= 0
        if (sum.isConstant() && sum.constant < 0)
          return true;
      } catch (TooLarge) {
      }
    }
  return false;
}

/// Whether any two executions of two accesses, or of one access, are ordered.
static Answer areOrdered(const AddressMap &map, const MemoryAccess &a, const MemoryAccess &b,
                         Extents &extents, size_t &looks, size_t &compared, int64_t &byte) {
  // True for any addresses.
  if (a.root == MemoryAccess::Root::Shared && !areUnordered(a, b) &&
      isSeparated(map, a, b, [](uint32_t) { return false; }))
    return Answer::Yes;
  if (!isKnown(a) || !isKnown(b))
    return Answer::Unknown;
  if (&a != &b && a.root == MemoryAccess::Root::Shared && extents.areApart(a, b))
    return Answer::Yes;
  if (a.root == MemoryAccess::Root::Shared && areInOtherWorkgroups(map, a, b))
    return Answer::Yes;
  if (++looks > maxPairs)
    return Answer::Unknown;
  if (isProvedByDigits(map, a, b, [&](const Frame &frame, const Meeting &meeting) {
        return isOrdered(map, frame, meeting, a, b);
      }))
    return Answer::Yes;
  if (&a != &b && areApart(map, a, b))
    return Answer::Yes;
  if (compared++ >= maxCompared)
    return Answer::Unknown;
  return compareOneByOne(map, a, b, &Comparison::isOrdered, byte);
}

PairAnswer weir::spv::isFreeOfRaces(const AddressMap &map, MemoryAccess::Root root,
                                    uint32_t binding) {
  PairAnswer result;
  if (!map.problem.empty())
    return result;
  std::vector<const MemoryAccess *> reads, writes;
  bool isFollowed = true;
  for (const MemoryAccess &access : map.accesses)
    if (access.root == root && access.binding == binding)
      (access.writes ? writes : reads).push_back(&access);
    else
      isFollowed &= access.root != MemoryAccess::Root::Unknown;
  result.answer = isFollowed ? Answer::Yes : Answer::Unknown;
  const bool isShared = root == MemoryAccess::Root::Shared;
  if (writes.size() * (writes.size() + reads.size()) >
      (isShared ? maxSharedPairs : maxOperandPairs)) {
    result.answer = Answer::Unknown;
    return result;
  }
  Extents extents(map);
  size_t looks = 0, compared = 0;
  auto compare = [&](const MemoryAccess *a, const MemoryAccess *b) {
    if (a->isAtomic && b->isAtomic)
      return;
    int64_t byte = -1;
    Answer answer = areOrdered(map, *a, *b, extents, looks, compared, byte);
    if (answer == Answer::No || (answer != Answer::Yes && result.answer == Answer::Yes))
      result = {answer, a, b, byte};
  };
  for (size_t i = 0; i < writes.size() && result.answer != Answer::No; ++i) {
    for (size_t k = i; k < writes.size() && result.answer != Answer::No; ++k)
      compare(writes[i], writes[k]);
    for (size_t k = 0; k < reads.size() && result.answer != Answer::No; ++k)
      compare(reads[k], writes[i]);
  }
  return result;
}

//===----------------------------------------------------------------------===//
// Barriers
//===----------------------------------------------------------------------===//

Answer weir::spv::isUniform(const AddressMap &map, const BarrierSite &barrier) {
  if (barrier.isUniform)
    return Answer::Yes;
  if (!barrier.isCertain)
    return Answer::Unknown;
  // Model reaching the barrier as an access with its guards, for all ids and counters.
  MemoryAccess place;
  place.address = Affine();
  place.guards = barrier.guards;
  place.loops = barrier.loops;
  Points points(map, place, maxPoints);
  std::vector<uint32_t> who;
  int64_t invocations = 1;
  for (const std::vector<uint32_t> *ids : {&map.localIds, &map.laneIds})
    for (uint32_t id : *ids) {
      who.push_back(id);
      invocations *= map.atoms[id].range.max + 1;
    }
  if (!points.areAll())
    return Answer::Unknown;
  std::map<Point, int64_t> comers;
  points.forEach([&](Point point, int64_t) {
    for (uint32_t id : who)
      point[id] = 0;
    ++comers[point];
    return true;
  });
  bool isDivergent = std::any_of(comers.begin(), comers.end(),
                                 [&](auto &each) { return each.second != invocations; });
  return !isDivergent                        ? Answer::Yes
         : map.hasLocalIds && map.hasLaneIds ? Answer::Unknown
                                             : Answer::No;
}

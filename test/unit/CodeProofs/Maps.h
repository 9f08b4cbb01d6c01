//===- Maps.h - Address maps made by hand and at random ---------*- C++ -*-===//
//
// Builds maps, and visits all executions of a map one by one as an oracle.
//
//===----------------------------------------------------------------------===//

#ifndef WEIR_TEST_UNIT_CODEPROOFS_MAPS_H
#define WEIR_TEST_UNIT_CODEPROOFS_MAPS_H

#include "weir/CodeProofs/Races.h"

#include <algorithm>
#include <functional>
#include <random>

namespace weir::test {

using namespace spv;

/// Makes a map of a kernel that reads binding 0 and writes binding 1, in workgroups of `size`.
struct Kernel {
  AddressMap map;
  Affine group, local;

  Kernel(int64_t groups, int64_t size) {
    map.launch.grid[0] = groups;
    map.localSize[0] = size;
    group = map.atoms.getId(Atom::Kind::Workgroup, 0, groups);
    local = map.atoms.getId(Atom::Kind::Local, 0, size);
    for (auto [number, factor] : group.terms)
      map.groupIds.push_back(number);
    for (auto [number, factor] : local.terms)
      map.localIds.push_back(number);
    map.hasLocalIds = true;
  }
  /// Returns the counter.
  Affine addLoop(int64_t trips) {
    map.loops.push_back({trips, false});
    return map.atoms.getId(Atom::Kind::Trip, uint32_t(map.loops.size() - 1), trips);
  }
  MemoryAccess &add(bool writes, const Affine &address, std::vector<uint32_t> loops = {},
                    std::vector<Affine> guards = {}) {
    MemoryAccess &access = map.accesses.emplace_back();
    access.root = MemoryAccess::Root::Binding;
    access.binding = writes;
    access.reads = !writes;
    access.writes = writes;
    access.address = address;
    access.bytes = 4;
    access.guards = std::move(guards);
    access.isCertain = true;
    access.loops = std::move(loops);
    access.position = position++;
    return access;
  }
  BarrierSite &addBarrier(std::vector<uint32_t> loops = {}) {
    BarrierSite &barrier = map.barriers.emplace_back();
    barrier.isCertain = true;
    barrier.loops = std::move(loops);
    barrier.position = position++;
    barrier.ordersBindings = barrier.ordersShared = barrier.isUniform = true;
    return barrier;
  }
  Affine linear() const { return group * map.localSize[0] + local; }
  /// Redirects all accesses to one binding, or to one variable of workgroup memory.
  void join(MemoryAccess::Root root) {
    for (MemoryAccess &access : map.accesses) {
      access.root = root;
      access.binding = 0;
    }
  }
  PairAnswer isFreeOfRaces() const {
    return spv::isFreeOfRaces(map, map.accesses[0].root, map.accesses[0].binding);
  }
  Answer mayOverwrite() const { return spv::mayOverwrite(map, 0, 1).answer; }

  uint32_t position = 0;
};

/// Writes 400 rows of 104 elements, in tiles of 16 columns by workgroups up to 1599, and of 8, from
/// column `begin` + 32 on, by those from `narrowFrom` on.
inline Kernel makeTwoWidths(int64_t narrowFrom, int64_t begin) {
  Kernel kernel(3600, 8);
  Atoms &atoms = kernel.map.atoms;
  const Affine row = atoms.getRest(kernel.group, 400) * 104, tile = atoms.divide(kernel.group, 400);
  for (int64_t half : {0, 8})
    kernel.add(true, (row + tile * 16 + kernel.local + Affine::of(half)) * 4, {},
               {Affine::of(1599) - kernel.group});
  kernel.add(true, (row + tile * 8 + kernel.local + Affine::of(begin)) * 4, {},
             {kernel.group - Affine::of(narrowFrom)});
  return kernel;
}

struct Event {
  std::vector<int64_t> values; ///< of atoms
  int64_t address;
  std::vector<int64_t> time; ///< in its invocation: trips and positions, alternating
  int64_t phase = 0;         ///< barriers passed that order its memory
};

/// Visits the executions of a map one by one.
class Brute {
public:
  explicit Brute(const AddressMap &map) : map(map) {}

  int64_t evaluate(const Affine &sum, const std::vector<int64_t> &values) const {
    int64_t result = sum.constant;
    for (auto [number, factor] : sum.terms) {
      const Atom &atom = map.atoms[number];
      int64_t value = values[number];
      if (atom.kind == Atom::Kind::Digit) {
        value = evaluate(atom.of, values) / atom.divisor;
        if (atom.modulus)
          value %= atom.modulus;
      } else if (atom.kind == Atom::Kind::Clamped) {
        value = std::clamp(evaluate(atom.of, values), atom.range.min, atom.range.max);
      }
      result += factor * value;
    }
    return result;
  }

  /// Returns all executions of an instruction with these guards and loops.
  std::vector<Event> run(const std::vector<uint32_t> &loops, const std::vector<Affine> &guards,
                         const Affine &address) const {
    std::vector<Event> events;
    std::vector<int64_t> values(map.atoms.size());
    std::function<void(uint32_t)> choose = [&](uint32_t number) {
      if (number == map.atoms.size()) {
        if (std::all_of(guards.begin(), guards.end(),
                        [&](const Affine &guard) { return evaluate(guard, values) >= 0; }))
          events.push_back({values, evaluate(address, values), {}});
        return;
      }
      const Atom &atom = map.atoms[number];
      bool isChosen = atom.kind == Atom::Kind::Workgroup || atom.kind == Atom::Kind::Local ||
                      (atom.kind == Atom::Kind::Trip &&
                       std::find(loops.begin(), loops.end(), atom.number) != loops.end());
      for (int64_t value = 0; value <= (isChosen ? atom.range.max : 0); ++value) {
        values[number] = value;
        choose(number + 1);
      }
    };
    choose(0);
    return events;
  }

  /// Returns the time in its invocation: trips and positions, alternating.
  std::vector<int64_t> getTime(const std::vector<uint32_t> &loops, uint32_t position,
                               const std::vector<int64_t> &values) const {
    // A loop's place is that of the first thing in it, before all that comes in it.
    std::vector<int64_t> time;
    for (uint32_t loop : loops) {
      uint32_t first = ~0u;
      auto look = [&](const std::vector<uint32_t> &around, uint32_t place) {
        if (std::find(around.begin(), around.end(), loop) != around.end())
          first = std::min(first, place);
      };
      for (const MemoryAccess &access : map.accesses)
        look(access.loops, access.position);
      for (const BarrierSite &barrier : map.barriers)
        look(barrier.loops, barrier.position);
      time.push_back(2 * first);
      int64_t trip = 0;
      for (uint32_t number = 0; number < map.atoms.size(); ++number)
        if (map.atoms[number].kind == Atom::Kind::Trip && map.atoms[number].number == loop)
          trip = values[number];
      time.push_back(trip);
    }
    time.push_back(2 * position + 1);
    return time;
  }

  std::vector<Event> run(const MemoryAccess &access) const {
    bool isShared = access.root == MemoryAccess::Root::Shared;
    std::vector<Event> events = run(access.loops, access.guards, *access.address);
    for (Event &event : events)
      event.time = getTime(access.loops, access.position, event.values);
    for (const BarrierSite &barrier : map.barriers)
      if (isShared ? barrier.ordersShared : barrier.ordersBindings)
        for (const Event &meeting : run(barrier.loops, barrier.guards, Affine())) {
          auto time = getTime(barrier.loops, barrier.position, meeting.values);
          for (Event &event : events)
            event.phase += isOneInvocation(meeting, event) && time < event.time;
        }
    return events;
  }

  static bool isSame(const std::vector<int64_t> &a, const std::vector<int64_t> &b,
                     const std::vector<uint32_t> &ids) {
    return std::all_of(ids.begin(), ids.end(), [&](uint32_t id) { return a[id] == b[id]; });
  }

  bool isOneWorkgroup(const Event &a, const Event &b) const {
    return isSame(a.values, b.values, map.groupIds);
  }
  bool isOneInvocation(const Event &a, const Event &b) const {
    return isOneWorkgroup(a, b) && isSame(a.values, b.values, map.localIds);
  }

  /// Whether `claim` holds for all executions of two accesses that touch a common byte.
  bool holds(const MemoryAccess &a, const MemoryAccess &b,
             const std::function<bool(const Event &, const Event &)> &claim) const {
    std::vector<Event> firsts = run(a), seconds = run(b);
    for (const Event &first : firsts)
      for (const Event &second : seconds)
        if (first.address < second.address + b.bytes && second.address < first.address + a.bytes &&
            !claim(first, second))
          return false;
    return true;
  }

  bool mayOverwrite() const {
    for (const MemoryAccess &read : map.accesses)
      for (const MemoryAccess &write : map.accesses)
        if (read.reads && write.writes &&
            !holds(read, write, [&](const Event &first, const Event &second) {
              return isOneInvocation(first, second)
                         ? first.time < second.time
                         : isOneWorkgroup(first, second) && first.phase < second.phase;
            }))
          return false;
    return true;
  }

  /// Compares all accesses, to any binding.
  bool isFreeOfRaces() const {
    for (const MemoryAccess &a : map.accesses)
      for (const MemoryAccess &b : map.accesses)
        if ((a.writes || b.writes) && !holds(a, b, [&](const Event &first, const Event &second) {
              return isOneInvocation(first, second) ||
                     (isOneWorkgroup(first, second) ? first.phase != second.phase
                                                    : a.root == MemoryAccess::Root::Shared);
            }))
          return false;
    return true;
  }

  const AddressMap &map;
};

/// Makes a random kernel similar to real ones: a number made of ids and counters, its digits,
/// and guards.
class Maker {
public:
  explicit Maker(unsigned seed) : random(seed), kernel(pick({1, 2, 3, 5}), pick({1, 2, 4, 6})) {}

  Kernel make() {
    for (int i = choose(3); i--;)
      trips.push_back(kernel.addLoop(pick({1, 2, 3})));
    // Everything in the first loop, or the first one around what comes second.
    bool isAround = choose(2) && !trips.empty();
    size_t reads = 1 + choose(2), writes = 1 + choose(2);
    std::vector<std::vector<uint32_t>> nests = {{}};
    if (!trips.empty())
      nests = isAround ? std::vector<std::vector<uint32_t>>{{0}, {0}} : nests;
    if (!isAround && !trips.empty())
      nests.push_back({0});
    if (trips.size() > 1) {
      std::vector<uint32_t> inner =
          isAround ? std::vector<uint32_t>{0, 1} : std::vector<uint32_t>{1};
      nests.push_back(inner);
    }
    std::vector<Affine> maps = {makeAddress(nests.back()), makeAddress(nests.front())};
    size_t nest = 0;
    for (size_t i = 0; i < reads + writes; ++i) {
      const std::vector<uint32_t> &before = nests[nest];
      nest = std::min(nest + choose(2), nests.size() - 1);
      auto ends =
          std::mismatch(before.begin(), before.end(), nests[nest].begin(), nests[nest].end());
      if (choose(3) == 0)
        addBarrier({before.begin(), ends.first});
      Affine address = choose(2) ? makeAddress(nests[nest]) : fit(maps[choose(2)], nests[nest]);
      std::vector<Affine> guards;
      if (choose(8) == 0)
        guards.push_back(makeNumber(nests[nest]) - Affine::of(int64_t(choose(9))));
      if (choose(3) == 0)
        guards.push_back(Affine::of(int64_t(choose(20))) - makeNumber(nests[nest]));
      kernel.add(i >= reads, address, nests[nest], guards);
    }
    return std::move(kernel);
  }

private:
  size_t choose(size_t count) { return random() % count; }
  int64_t pick(std::vector<int64_t> from) { return from[choose(from.size())]; }

  void addBarrier(std::vector<uint32_t> nest) {
    BarrierSite &barrier = kernel.addBarrier(std::move(nest));
    barrier.ordersBindings = choose(8);
    barrier.ordersShared = choose(8);
    if (choose(4) == 0)
      barrier.guards = {Affine::of(int64_t(choose(3))) - kernel.group};
  }

  /// Returns a mixed-radix number of ids and counters.
  Affine makeNumber(const std::vector<uint32_t> &nest) {
    Affine number = kernel.local;
    int64_t size = kernel.map.localSize[0];
    for (uint32_t loop : nest)
      if (choose(2)) {
        number = number + trips[loop] * size;
        size *= kernel.map.loops[loop].maxTrips;
      }
    number = number + kernel.group * size;
    return choose(6) ? number : number * pick({2, 3}) + Affine::of(pick({0, 1}));
  }

  Affine makeAddress(const std::vector<uint32_t> &nest) {
    Affine number = makeNumber(nest);
    Atoms &atoms = kernel.map.atoms;
    if (choose(2)) {
      int64_t columns = pick({2, 3, 4, 5, 6});
      Affine row = atoms.divide(number, columns), column = atoms.getRest(number, columns);
      if (choose(8) == 0)
        column = atoms.clamp(column - Affine::of(pick({0, 1, 2})), {0, pick({1, 2, 3})});
      number = choose(2) ? row * columns + column : column * pick({3, 4, 8}) + row;
      if (choose(3) == 0)
        number = atoms.getRest(row, 2) + column * 2 + atoms.divide(row, 2) * (2 * columns);
    }
    for (uint32_t loop : nest)
      if (choose(2))
        number = number + trips[loop] * pick({1, 2, 7, 12});
    return number * 4;
  }

  /// Drops the counters of other loops.
  Affine fit(Affine address, const std::vector<uint32_t> &nest) {
    for (auto [number, factor] : address.terms)
      if (!isInside(number, nest))
        return kernel.linear() * 4;
    return address;
  }
  bool isInside(uint32_t number, const std::vector<uint32_t> &nest) {
    const Atom &atom = kernel.map.atoms[number];
    if (atom.kind == Atom::Kind::Digit || atom.kind == Atom::Kind::Clamped)
      return std::all_of(atom.of.terms.begin(), atom.of.terms.end(),
                         [&](auto term) { return isInside(term.first, nest); });
    return atom.kind != Atom::Kind::Trip ||
           std::find(nest.begin(), nest.end(), atom.number) != nest.end();
  }

  std::mt19937_64 random;
  Kernel kernel;
  std::vector<Affine> trips;
};

} // namespace weir::test

#endif // WEIR_TEST_UNIT_CODEPROOFS_MAPS_H

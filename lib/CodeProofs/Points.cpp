//===- Points.cpp - Executions of an instruction, one by one --------------===//

#include "Points.h"

#include <algorithm>

using namespace weir::spv;

static int64_t evaluate(const Atoms &atoms, const Affine &sum, const Point &point) {
  int64_t value = sum.constant;
  for (auto [number, factor] : sum.terms) {
    const Atom &atom = atoms[number];
    int64_t each = point[number];
    if (atom.kind == Atom::Kind::Digit) {
      each = evaluate(atoms, atom.of, point) / atom.divisor;
      each = atom.modulus ? each % atom.modulus : each;
    } else if (atom.kind == Atom::Kind::Clamped) {
      each = std::clamp(evaluate(atoms, atom.of, point), atom.range.min, atom.range.max);
    } else if (atom.kind == Atom::Kind::Choice) {
      bool isFirst =
          std::all_of(atom.conditions.begin(), atom.conditions.end(), [&](const Affine &condition) {
            return evaluate(atoms, condition, point) >= 0;
          });
      each = evaluate(atoms, isFirst ? atom.of : atom.otherwise, point);
    }
    value += each * factor;
  }
  return value;
}

int64_t weir::spv::getInvocation(const AddressMap &map, const Point &point) {
  int64_t index = 0;
  for (uint32_t id : map.localIds) {
    int64_t stride = 1;
    for (uint32_t axis = 0; axis < map.atoms[id].number; ++axis)
      stride *= map.localSize[axis];
    index += point[id] * stride;
  }
  return index;
}

void Points::collect(const Affine &sum) {
  for (auto [number, factor] : sum.terms) {
    const Atom &atom = map.atoms[number];
    if (atom.kind == Atom::Kind::Digit || atom.kind == Atom::Kind::Clamped ||
        atom.kind == Atom::Kind::Choice)
      Atoms::forEachInside(atom, [&](const Affine &inner) { collect(inner); });
    else if (atom.kind == Atom::Kind::Other)
      isKnown = false;
    else if (std::find(numbers.begin(), numbers.end(), number) == numbers.end())
      numbers.push_back(number);
  }
}

Points::Points(const AddressMap &map, const MemoryAccess &access, int64_t max, bool ofAddress)
    : map(map), access(access), isKnown(access.address.has_value()) {
  if (!isKnown)
    return;
  try {
    collect(*access.address);
    Interval range = map.atoms.getRange(*access.address);
    isKnown &= range.min >= -maxAddress && range.max <= maxAddress;
    for (const Affine &guard : access.guards) {
      collect(guard);
      map.atoms.getRange(guard);
    }
  } catch (TooLarge) {
    isKnown = false;
  }
  // Include ids and counters that are not in the address: they decide the order.
  for (uint32_t number = 0; !ofAddress && number < map.atoms.size(); ++number) {
    const Atom &atom = map.atoms[number];
    bool isAround =
        atom.kind == Atom::Kind::Trip &&
        std::find(access.loops.begin(), access.loops.end(), atom.number) != access.loops.end();
    if (atom.kind < Atom::Kind::Trip || isAround)
      collect(Affine::number(number));
  }
  std::sort(numbers.begin(), numbers.end());
  for (uint32_t loop : access.loops)
    isKnown &= map.loops[loop].maxTrips >= 0;
  // Give each more values in turn while the product is small enough.
  counts.assign(numbers.size(), 1);
  int64_t total = 1;
  for (bool grows = true; grows;) {
    grows = false;
    for (size_t i = 0; i < numbers.size(); ++i) {
      int64_t count = map.atoms[numbers[i]].range.max + 1;
      int64_t next = std::min(count, counts[i] * 2);
      if (counts[i] == count || total / counts[i] > max / next)
        continue;
      total = total / counts[i] * next;
      counts[i] = next;
      grows = true;
    }
  }
  for (size_t i = 0; i < numbers.size(); ++i)
    isWhole &= counts[i] > map.atoms[numbers[i]].range.max;
}

int64_t Points::getValue(size_t i, int64_t before) const {
  int64_t last = map.atoms[numbers[i]].range.max, first = counts[i] / 2;
  if (before < first || counts[i] == last + 1)
    return before;
  int64_t left = counts[i] - first; // >= 1
  return int64_t(last - __int128(last - first) * (counts[i] - 1 - before) / left);
}

void Points::forEach(const std::function<bool(const Point &, int64_t)> &visit) const {
  Point point(map.atoms.size());
  std::vector<int64_t> turns(numbers.size());
  for (size_t i = 0; i < numbers.size(); ++i)
    point[numbers[i]] = getValue(i, 0);
  while (true) {
    bool runs = std::all_of(access.guards.begin(), access.guards.end(), [&](const Affine &guard) {
      return evaluate(map.atoms, guard, point) >= 0;
    });
    if (runs && !visit(point, evaluate(map.atoms, *access.address, point)))
      return;
    size_t i = 0;
    for (; i < numbers.size(); ++i) {
      turns[i] = turns[i] + 1 < counts[i] ? turns[i] + 1 : 0;
      point[numbers[i]] = getValue(i, turns[i]);
      if (turns[i] != 0)
        break;
    }
    if (i == numbers.size())
      return;
  }
}

std::optional<std::pair<int64_t, int64_t>> weir::spv::getExtent(const AddressMap &map,
                                                                const MemoryAccess &access) {
  MemoryAccess free = access;
  free.guards.clear();
  free.loops.clear();
  Points points(map, free, maxPoints, /*ofAddress=*/true);
  if (!points.areAll())
    return std::nullopt;
  std::optional<std::pair<int64_t, int64_t>> extent;
  points.forEach([&](const Point &, int64_t at) {
    if (!extent)
      extent.emplace(at, at + access.bytes);
    extent->first = std::min(extent->first, at);
    extent->second = std::max(extent->second, at + access.bytes);
    return true;
  });
  return extent;
}

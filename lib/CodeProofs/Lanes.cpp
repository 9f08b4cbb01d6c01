//===- Lanes.cpp - Lanes that meet at an instruction ----------------------===//

#include "Points.h"
#include "weir/CodeProofs/Races.h"

#include <algorithm>
#include <map>

using namespace weir::spv;

/// Returns bits for the lanes of a subgroup that the workgroup has.
static uint32_t getLanes(const AddressMap &map, int64_t subgroup) {
  int64_t size = map.localSize[0] * map.localSize[1] * map.localSize[2];
  int64_t lanes = std::min(map.launch.subgroupSize, size - subgroup * map.launch.subgroupSize);
  return lanes >= 32 ? ~uint32_t(0) : (uint32_t(1) << lanes) - 1;
}

static bool isSameInSubgroup(const AddressMap &map, const Affine &sum);

/// Whether a sum is a multiple of the subgroup's size, the same for all lanes of a subgroup, plus
/// the lane's number. So divided by multiples of that size it is the same for them, and so is
/// whether it is at least 0.
static bool isOfLane(const AddressMap &map, const Affine &sum) {
  const int64_t size = map.launch.subgroupSize;
  Affine rest = sum;
  int64_t stride = 1;
  for (uint32_t axis = 0; axis < 3; stride *= map.localSize[axis++])
    for (uint32_t id : map.localIds)
      if (map.atoms[id].number == axis)
        rest = rest - Affine::number(id, stride);
  return rest.constant % size == 0 &&
         std::all_of(rest.terms.begin(), rest.terms.end(), [&](auto term) {
           return term.second % size == 0 && isSameInSubgroup(map, Affine::number(term.first));
         });
}

/// Whether a sum is the same for all lanes of a subgroup, in one trip of all loops.
static bool isSameInSubgroup(const AddressMap &map, const Affine &sum) {
  return std::all_of(sum.terms.begin(), sum.terms.end(), [&](auto term) {
    const Atom &atom = map.atoms[term.first];
    switch (atom.kind) {
    case Atom::Kind::Workgroup:
    case Atom::Kind::Subgroup:
    case Atom::Kind::Trip:
      return true;
    case Atom::Kind::Digit:
      return isSameInSubgroup(map, atom.of) ||
             (atom.divisor % map.launch.subgroupSize == 0 && isOfLane(map, atom.of));
    case Atom::Kind::Clamped:
      return isSameInSubgroup(map, atom.of);
    case Atom::Kind::Other:
      return map.atoms.isUniform(term.first);
    default:
      return false;
    }
  });
}

Answer weir::spv::doLanesMeet(const AddressMap &map, const LaneSite &site) {
  if (!site.mask || !site.isCertain || map.hasLaneIds || map.launch.subgroupSize > 32)
    return Answer::Unknown;
  bool isUniform = false;
  try {
    isUniform = std::all_of(site.guards.begin(), site.guards.end(), [&](const Affine &guard) {
      return isSameInSubgroup(map, guard) || isOfLane(map, guard) ||
             isOfLane(map, Affine::of(-1) - guard);
    });
  } catch (TooLarge) {
  }
  if (isUniform && (getLanes(map, 0) & ~*site.mask) == 0)
    return Answer::Yes;
  // Model reaching it as an access with its guards.
  MemoryAccess place;
  place.address = Affine();
  place.guards = site.guards;
  place.loops = site.loops;
  Points points(map, place, maxPoints);
  if (!points.canVisit())
    return Answer::Unknown;
  auto getSubgroup = [&](const Point &point) {
    return getInvocation(map, point) / map.launch.subgroupSize;
  };
  if (isUniform) {
    // All lanes come if one does.
    bool isLacking = false;
    points.forEach([&](const Point &point, int64_t) {
      isLacking = getLanes(map, getSubgroup(point)) & ~*site.mask;
      return !isLacking;
    });
    return isLacking ? Answer::No : points.areAll() ? Answer::Yes : Answer::Unknown;
  }
  if (!points.areAll())
    return Answer::Unknown;
  std::map<std::pair<Point, int64_t>, uint32_t> comers; // by all but the lane
  points.forEach([&](Point point, int64_t) {
    int64_t subgroup = getSubgroup(point);
    int64_t lane = getInvocation(map, point) % map.launch.subgroupSize;
    for (uint32_t id : map.localIds)
      point[id] = 0;
    comers[{point, subgroup}] |= uint32_t(1) << lane;
    return true;
  });
  bool doMeet = std::all_of(comers.begin(), comers.end(), [&](const auto &each) {
    return each.second == (*site.mask & getLanes(map, each.first.second));
  });
  return doMeet ? Answer::Yes : Answer::No;
}

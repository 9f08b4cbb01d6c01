//===- Warp.cpp - Lanes that part and meet --------------------------------===//

#include "Machine.h"

#include <bit>

using namespace weir;
using namespace weir::sim;

//===----------------------------------------------------------------------===//
// Order of threads
//===----------------------------------------------------------------------===//

/// Makes lanes wait. Lanes that wait at the same step for the same ones go on together.
void Subgroup::wait(const Waiting &lanes) {
  for (Waiting &other : waiting)
    if (other.block == lanes.block && other.step == lanes.step && other.members == lanes.members) {
      other.mask |= lanes.mask;
      return;
    }
  waiting.push_back(lanes);
}

/// Returns the lanes that run next, or the number of those that wait if none can. In lockstep they
/// are those furthest behind.
size_t Subgroup::pick() const {
  Machine &machine = workgroup->machine;
  const SimStrategy strategy = program.isWarp ? machine.strategy : SimStrategy::Recorded;
  size_t best = waiting.size(), count = 0;
  for (size_t i = 0; i < waiting.size(); ++i) {
    if (waiting[i].members)
      continue;
    ++count;
    bool isBetter = best == waiting.size();
    if (!isBetter)
      switch (strategy) {
      case SimStrategy::Random:
        isBetter = machine.random() % count == 0;
        break;
      case SimStrategy::Split: // those that went on last, to where they wait for others
        isBetter = true;
        break;
      case SimStrategy::LatestFirst:
      case SimStrategy::WriterFirst:
        isBetter = waiting[i].block > waiting[best].block;
        break;
      case SimStrategy::Recorded:
        isBetter = waiting[i].block < waiting[best].block;
        break;
      }
    if (isBetter)
      best = i;
  }
  return best;
}

/// Goes on with lanes that wait.
void Subgroup::choose() {
  if (size_t next = pick(); next < waiting.size()) {
    go(waiting[next]);
    waiting[next] = waiting.back();
    waiting.pop_back();
  } else if (waiting.empty()) {
    stop(State::Done);
  } else if (!resume()) {
    reportStuck();
  }
}

/// Goes on with lanes that wait for others which are all there. Returns whether there are any.
bool Subgroup::resume() {
  for (size_t i = 0; i < waiting.size(); ++i)
    if (waiting[i].members && (waiting[i].members & getLiving()) == waiting[i].mask) {
      go(waiting[i]);
      waiting[i] = waiting.back();
      waiting.pop_back();
      return true;
    }
  return false;
}

/// Parts the lanes of a warp and lets others go first, as the strategy says.
void Subgroup::part() {
  if (!program.isWarp || workgroup->machine.strategy != SimStrategy::Random)
    return;
  std::mt19937_64 &random = workgroup->machine.random;
  if (random() % 8 == 0)
    if (Mask others = mask & random(); others && others != mask) {
      waiting.push_back({block, step, others});
      setMask(mask & ~others);
    }
  if (!waiting.empty() && random() % 2) {
    waiting.push_back({block, step, mask});
    choose();
  }
}

/// Lets lanes that have waited for long go on, since the current ones may wait for them in a loop.
void Subgroup::giveWay() {
  auto next = std::find_if(waiting.begin(), waiting.end(),
                           [](const Waiting &each) { return each.members == 0; });
  blocksRun = 0;
  if (next == waiting.end())
    return;
  Waiting other = *next;
  waiting.erase(next);
  waiting.push_back({block, step, mask});
  go(other);
}

/// With the strategy that splits, lets the upper half of a warp go first, up to where it waits.
void Subgroup::halve() {
  if (!program.isWarp || workgroup->machine.strategy != SimStrategy::Split)
    return;
  const Mask lower = mask & 0xffff;
  if (lower == 0 || lower == mask)
    return;
  waiting.push_back({block, step, lower});
  setMask(mask & ~lower);
}

void Subgroup::passBarrier(uint32_t phase) {
  state = State::Ready;
  if (program.syncsWarps)
    resetOrder(phase);
  halve();
}

//===----------------------------------------------------------------------===//
// Order of a warp's accesses
//===----------------------------------------------------------------------===//

void Subgroup::resetOrder(uint32_t phase) {
  times.assign(warpLanes, phase);
  ended.assign(size_t(warpLanes) * warpLanes, phase);
}

void Subgroup::orderLanes() {
  std::array<uint32_t, warpLanes> known = {};
  forEachLane([&](uint32_t lane) {
    for (uint32_t other = 0; other < warpLanes; ++other)
      known[other] = std::max(known[other], ended[size_t(lane) * warpLanes + other]);
  });
  forEachLane([&](uint32_t lane) { known[lane] = ++times[lane]; });
  forEachLane([&](uint32_t lane) {
    std::copy(known.begin(), known.end(), &ended[size_t(lane) * warpLanes]);
  });
}

//===----------------------------------------------------------------------===//
// Meetings
//===----------------------------------------------------------------------===//

bool Subgroup::gather(Register members, const Meeting *meeting) {
  Mask wanted = all;
  if (members != noRegister) {
    const auto *named = at<uint32_t>(members);
    wanted = named[std::countr_zero(mask)];
    Mask same = 0;
    forEachLane([&](uint32_t lane) { same |= Mask(named[lane] == wanted) << lane; });
    if (same != mask) { // the others wait for others
      waiting.push_back({block, step - 1, mask & ~same});
      setMask(same);
    }
    if (Mask strangers = mask & ~wanted) {
      workgroup->reportStranger(*meeting, *this, uint32_t(std::countr_zero(strangers)));
      return false;
    }
  }
  if (mask == (wanted & getLiving()))
    return true;
  wait({block, step - 1, mask, wanted});
  if (!resume())
    choose();
  return false;
}

/// Ends the workgroup where all lanes wait for some that do not come.
void Subgroup::reportStuck() {
  const Waiting &first = waiting.front();
  const Step &at = program.steps[first.step];
  const auto number = size_t(at.number);
  if (at.run == getBarrierStep())
    return workgroup->reportDivergence(program.barriers[number]);
  if (at.run == getProductStep()) {
    const GroupProduct &product = program.products[number];
    return workgroup->reportHang(
        product.name, product.source, *this, uint32_t(std::countr_zero(first.mask)),
        uint32_t(std::countr_zero(first.members & getLiving() & ~first.mask)));
  }
  if (at.run == getTileStep()) {
    const TileStep &tile = program.tiles[number];
    return workgroup->reportHang(
        tile.name, tile.source, *this, uint32_t(std::countr_zero(first.mask)),
        uint32_t(std::countr_zero(first.members & getLiving() & ~first.mask)));
  }
  const bool isMatrix = at.run == getMatrixStep();
  workgroup->reportHang(isMatrix ? program.matrices[number].name : program.meetings[number].name,
                        isMatrix ? program.matrices[number].source
                                 : program.meetings[number].source,
                        *this, uint32_t(std::countr_zero(first.mask)),
                        uint32_t(std::countr_zero(first.members & getLiving() & ~first.mask)));
}

/// Returns the lane that a lane takes its value from, and whether that is in range; by the PTX
/// ISA, shfl.sync.
static std::pair<uint32_t, bool> findSource(Meeting::How how, uint32_t lane, uint32_t by,
                                            uint32_t clamp) {
  const uint32_t segment = clamp >> 8 & 31, low = lane & segment;
  const uint32_t high = low | (clamp & 31 & ~segment);
  by &= 31;
  int32_t from = 0;
  bool isIn = false;
  switch (how) {
  case Meeting::How::Up:
    from = int32_t(lane) - int32_t(by);
    isIn = from >= int32_t(high);
    break;
  case Meeting::How::Down:
    from = int32_t(lane + by);
    isIn = from <= int32_t(high);
    break;
  case Meeting::How::Xor:
    from = int32_t(lane ^ by);
    isIn = from <= int32_t(high);
    break;
  default:
    from = int32_t(low | (by & ~segment));
    isIn = from <= int32_t(high);
    break;
  }
  return {isIn ? uint32_t(from) : lane, isIn};
}

static uint32_t combine(Meeting::How how, uint32_t a, uint32_t b) {
  using How = Meeting::How;
  switch (how) {
  case How::Add:
    return a + b;
  case How::Min:
    return std::min(a, b);
  case How::Max:
    return std::max(a, b);
  case How::MinSigned:
    return uint32_t(std::min(int32_t(a), int32_t(b)));
  case How::MaxSigned:
    return uint32_t(std::max(int32_t(a), int32_t(b)));
  case How::And:
    return a & b;
  case How::Or:
    return a | b;
  default:
    return a ^ b;
  }
}

static void shuffle(Subgroup &subgroup, const Meeting &meeting) {
  auto *to = subgroup.at<uint32_t>(meeting.to);
  const auto *value = subgroup.at<uint32_t>(meeting.value),
             *by = subgroup.at<uint32_t>(meeting.lane),
             *clamp = subgroup.at<uint32_t>(meeting.clamp);
  subgroup.forEachLane([&](uint32_t lane) {
    auto [source, isIn] = findSource(meeting.how, lane, by[lane], clamp[lane]);
    if (meeting.isPredicate) {
      to[lane] = isIn;
    } else if (subgroup.isActive(source)) {
      to[lane] = value[source];
    } else {
      subgroup.workgroup->reportInactive(meeting.source, subgroup, lane);
      to[lane] = ~0u;
    }
  });
}

static void runMeeting(Subgroup &subgroup, const Step &step) {
  using Kind = Meeting::Kind;
  const Meeting &meeting = subgroup.program.meetings[size_t(step.number)];
  if (!subgroup.gather(meeting.members, &meeting))
    return;
  auto *to = subgroup.at<uint32_t>(meeting.to);
  const auto *value = subgroup.at<uint32_t>(meeting.value);
  const auto first = uint32_t(std::countr_zero(subgroup.mask));
  switch (meeting.kind) {
  case Kind::Warp:
    subgroup.orderLanes();
    break;
  case Kind::Shuffle:
    shuffle(subgroup, meeting);
    break;
  case Kind::Elect:
    subgroup.forEachLane(
        [&](uint32_t lane) { to[lane] = meeting.isPredicate ? lane == first : first; });
    break;
  case Kind::Reduce: {
    uint32_t total = value[first];
    subgroup.forEachLane([&](uint32_t lane) {
      total = lane == first ? total : combine(meeting.how, total, value[lane]);
    });
    subgroup.forEachLane([&](uint32_t lane) { to[lane] = total; });
    break;
  }
  case Kind::MatchAny:
    subgroup.forEachLane([&](uint32_t lane) {
      uint32_t same = 0;
      subgroup.forEachLane(
          [&](uint32_t other) { same |= uint32_t(value[other] == value[lane]) << other; });
      to[lane] = same;
    });
    break;
  case Kind::MatchAll:
  case Kind::VoteAll:
  case Kind::VoteAny:
  case Kind::VoteUniform:
  case Kind::VoteBallot: {
    uint32_t set = 0;
    bool isSame = true;
    subgroup.forEachLane([&](uint32_t lane) {
      set |= uint32_t(value[lane] != 0) << lane;
      isSame &= value[lane] == value[first];
    });
    const bool isAll = set == uint32_t(subgroup.mask);
    uint32_t result = meeting.kind == Kind::MatchAll      ? (meeting.isPredicate ? isSame
                                                             : isSame ? uint32_t(subgroup.mask)
                                                                      : 0)
                      : meeting.kind == Kind::VoteAll     ? isAll
                      : meeting.kind == Kind::VoteAny     ? set != 0
                      : meeting.kind == Kind::VoteUniform ? isAll || set == 0
                                                          : set;
    subgroup.forEachLane([&](uint32_t lane) { to[lane] = result; });
    break;
  }
  }
  subgroup.halve();
}

StepFunction sim::getMeetingStep() { return runMeeting; }

static void runActive(Subgroup &subgroup, const Step &step) {
  auto *to = subgroup.at<uint32_t>(step.to);
  subgroup.forEachLane([&](uint32_t lane) { to[lane] = uint32_t(subgroup.mask); });
}

StepFunction sim::getActiveStep() { return runActive; }

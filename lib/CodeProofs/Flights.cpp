//===- Flights.cpp - What has not ended at a barrier ----------------------===//
//
// An invocation puts its copies into groups, one after the other, and waits until at most some
// number of its newest groups are on their way. So a copy has landed once the groups closed behind
// it outnumber those that a wait leaves. For each copy, the number of groups closed since it last
// began is followed along all ways of the control flow: the smallest number says whether it may
// still be on its way at a barrier, the largest whether it is on its way for certain. Copies that
// the same instruction began before have more groups behind them, so they land no later.
//
// Products of matrices by four warps are followed in the same way, with groups of their own: until
// they have ended they read their factors. They read through another proxy than stores and copies
// write by, so that these end only with a fence between the two proxies.
//
// Copies of boxes end with a wait for their mbarrier; MBarriers.cpp proves that it is for the phase
// that they are of.
//
//===----------------------------------------------------------------------===//

#include "Walk.h"

#include <algorithm>

using namespace weir;
using namespace weir::spv;

namespace {
/// A copy, product or store as an invocation finds it at a place.
struct Flight {
  /// The later ones end later.
  enum class State { NotBegun, Ended, Unfenced, InFlight } state = State::NotBegun;
  uint32_t groups = 0; ///< InFlight: closed since it began

  bool operator==(const Flight &) const = default;
};

/// The same over all ways to a place: `latest` ends later than on any way, `earliest` earlier.
struct Flights {
  Flight latest, earliest;

  bool operator==(const Flights &) const = default;
};

/// The instructions that are followed, and what an invocation finds of each at a place.
struct Tracked {
  uint32_t word = 0;
  enum class Kind { Copy, Product, Store, Tile } kind = Kind::Copy;
  std::optional<std::pair<Id, int64_t>> mbarrier = {}; ///< Tile
};

/// The contents of a place, as an invocation finds them.
struct Place {
  std::vector<Flights> flights; ///< by tracked instruction
  /// Whether no register was written since the last wgmma.fence, on all ways and on some.
  bool isBegun = false, mayBeBegun = false;

  bool operator==(const Place &) const = default;
};
} // namespace

/// Numbers of groups beyond this one are not told apart; a wait that leaves as many is no wait.
static constexpr uint32_t maxGroups = 64;

static Flight meetAt(const Flight &a, const Flight &b, bool latest) {
  using State = Flight::State;
  if (a.state == State::NotBegun || b.state == State::NotBegun)
    return a.state == State::NotBegun ? b : a;
  if (a.state != b.state)
    return (a.state > b.state) == latest ? a : b;
  return (a.groups < b.groups) == latest ? a : b;
}

static Flights meetAt(const Flights &a, const Flights &b) {
  return {meetAt(a.latest, b.latest, true), meetAt(a.earliest, b.earliest, false)};
}

bool weir::spv::isFenceForProducts(const std::string &name) {
  return name == "fence.proxy.async" || name == "fence.proxy.async.shared::cta" ||
         name == "fence.proxy.async.shared::cluster";
}

/// Whether an instruction writes memory by the proxy of invocations, at once.
static bool isStore(const Instruction &instruction) {
  return instruction.op == Op::Store || instruction.op == Op::AtomicStore ||
         (getKind(instruction.op) == OpKind::Atomic && instruction.op != Op::AtomicLoad);
}

/// Follows a flight past an instruction.
static void pass(const Instruction &instruction, const std::string &name,
                 std::optional<int64_t> left, const std::map<uint32_t, MBarrierSite> &mbarriers,
                 const Tracked &tracked, Flight &flight) {
  using State = Flight::State;
  if (instruction.word == tracked.word)
    flight = {tracked.kind == Tracked::Kind::Store ? State::Unfenced : State::InFlight, 0};
  if (tracked.kind == Tracked::Kind::Tile) {
    if (instruction.op == Op::MBarrierWait && flight.state == State::InFlight && tracked.mbarrier &&
        mbarriers.at(instruction.word).getKey() == tracked.mbarrier)
      flight = {State::Ended, 0};
    return;
  }
  if (instruction.op != Op::NamedEffect)
    return;
  if (flight.state == State::Unfenced && isFenceForProducts(name))
    flight = {State::Ended, 0};
  if (flight.state != State::InFlight)
    return;
  const bool isProduct = tracked.kind == Tracked::Kind::Product;
  if (name == (isProduct ? "wgmma.commit_group.sync.aligned" : "cp.async.commit_group"))
    flight.groups = std::min(flight.groups + 1, maxGroups);
  const bool waits = name == (isProduct ? "wgmma.wait_group.sync.aligned" : "cp.async.wait_group");
  const bool waitsForAll = !isProduct && name == "cp.async.wait_all";
  if (waitsForAll || (waits && left && *left >= 0 && *left < int64_t(flight.groups)))
    flight = {isProduct ? State::Ended : State::Unfenced, 0};
}

/// Finds for each barrier the copies, products and stores that an invocation may come there with,
/// and what uses the registers of products too early.
void Walk::findFlights() {
  using State = Flight::State;
  const bool usesProxy = map.hasProducts || map.hasTiles;
  std::vector<Tracked> tracked;
  for (const Block &block : function.blocks)
    for (const Instruction &instruction : block.instructions)
      if (instruction.op == Op::CopyAsync)
        tracked.push_back({instruction.word, Tracked::Kind::Copy});
      else if (instruction.op == Op::GroupMatrix)
        tracked.push_back({instruction.word, Tracked::Kind::Product});
      else if (instruction.op == Op::CopyTile)
        tracked.push_back({instruction.word, Tracked::Kind::Tile,
                           mbarriers.contains(instruction.word)
                               ? mbarriers.at(instruction.word).getKey()
                               : std::nullopt});
      else if (usesProxy && isStore(instruction))
        tracked.push_back({instruction.word, Tracked::Kind::Store});
  if (tracked.empty())
    return;
  auto passAll = [&](const Instruction &instruction, Place &place) {
    const bool isEffect = instruction.op == Op::NamedEffect;
    static const std::string none;
    const std::string &name = isEffect ? module.getString(instruction.operands[0]) : none;
    std::optional<int64_t> left;
    if (isEffect && instruction.operands.size() > 1)
      left = getConstant(instruction.operands[1]);
    if (!isEffect && instruction.op != Op::CopyAsync && instruction.op != Op::GroupMatrix &&
        instruction.op != Op::CopyTile && instruction.op != Op::MBarrierWait &&
        !isStore(instruction))
      return;
    if (instruction.op == Op::MBarrierWait && !mbarriers.contains(instruction.word))
      return; // it never runs
    for (size_t i = 0; i < tracked.size(); ++i)
      for (Flight *flight : {&place.flights[i].latest, &place.flights[i].earliest})
        pass(instruction, name, left, mbarriers, tracked[i], *flight);
    if (name == "wgmma.fence.sync.aligned")
      place.isBegun = place.mayBeBegun = true;
    else if (name == "wgmma.wait_group.sync.aligned")
      place.isBegun = place.mayBeBegun = false;
  };
  std::vector<Place> atBegin(function.blocks.size(),
                             {std::vector<Flights>(tracked.size()), true, false});
  atBegin[0].isBegun = false;
  std::vector<uint32_t> open = {0};
  std::vector<bool> isReached(function.blocks.size());
  isReached[0] = true;
  while (!open.empty()) {
    const uint32_t number = open.back();
    open.pop_back();
    Place here = atBegin[number];
    for (const Instruction &instruction : function.blocks[number].instructions)
      passAll(instruction, here);
    for (uint32_t next : function.blocks[number].successors) {
      Place met = atBegin[next];
      for (size_t i = 0; i < tracked.size(); ++i)
        met.flights[i] = meetAt(met.flights[i], here.flights[i]);
      met.isBegun &= here.isBegun;
      met.mayBeBegun |= here.mayBeBegun;
      if (!isReached[next] || met != atBegin[next])
        open.push_back(next);
      isReached[next] = true;
      atBegin[next] = std::move(met);
    }
  }
  const std::set<Id> sums = map.hasProducts ? findSums(function) : std::set<Id>();
  auto note = [&](const Instruction &instruction, bool isCertain, const char *what) {
    map.registerHazards.push_back({instruction.word, instruction.source, isCertain, what});
  };
  for (size_t number = 0; number < function.blocks.size(); ++number) {
    Place place = atBegin[number];
    if (!isReached[number])
      continue;
    for (const Instruction &instruction : function.blocks[number].instructions) {
      if (instruction.op == Op::GroupMatrix && !place.isBegun)
        note(instruction, !place.mayBeBegun, "adds to sums without a wgmma.fence before it");
      bool isUse = usesSums(instruction, sums);
      for (size_t i = 0; isUse && i < tracked.size(); ++i)
        if (const Flights &flights = place.flights[i];
            tracked[i].kind == Tracked::Kind::Product && flights.latest.state == State::InFlight) {
          note(instruction, flights.earliest.state == State::InFlight,
               "uses sums of products that no wgmma.wait_group has waited for");
          isUse = false;
        }
      passAll(instruction, place);
      if (instruction.op != Op::ControlBarrier)
        continue;
      for (BarrierSite &barrier : map.barriers) {
        if (barrier.word != instruction.word)
          continue;
        for (size_t i = 0; i < tracked.size(); ++i) {
          const Flights &flights = place.flights[i];
          const uint32_t word = tracked[i].word;
          if (flights.latest.state == State::InFlight)
            barrier.inFlight.push_back(word);
          if (flights.earliest.state == State::InFlight)
            barrier.neverLanded.push_back(word);
          if (flights.latest.state >= State::Unfenced && usesProxy)
            barrier.unfenced.push_back(word);
          if (flights.earliest.state >= State::Unfenced && usesProxy)
            barrier.neverFenced.push_back(word);
        }
      }
    }
  }
}

//===- Flights.cpp - Copies that have not landed at a barrier --------------===//
//
// An invocation puts its copies into groups, one after the other, and waits until at most some
// number of its newest groups are on their way. So a copy has landed once the groups closed behind
// it outnumber those that a wait leaves. For each copy, the number of groups closed since it last
// began is followed along all ways of the control flow: the smallest number says whether it may
// still be on its way at a barrier, the largest whether it is on its way for certain. Copies that
// the same instruction began before have more groups behind them, so they land no later.
//
//===----------------------------------------------------------------------===//

#include "Walk.h"

#include <algorithm>

using namespace weir;
using namespace weir::spv;

namespace {
/// A copy as an invocation finds it at a place.
struct Flight {
  enum class State { NotBegun, Landed, InFlight } state = State::NotBegun;
  uint32_t groups = 0; ///< InFlight: closed since it began

  bool operator==(const Flight &) const = default;
};

/// The same over all ways to a place: `latest` lands later than on any way, `earliest` earlier.
struct Flights {
  Flight latest, earliest;

  bool operator==(const Flights &) const = default;
};
} // namespace

/// Numbers of groups beyond this one are not told apart; a wait that leaves as many is no wait.
static constexpr uint32_t maxGroups = 64;

static Flight meetAt(const Flight &a, const Flight &b, bool latest) {
  using State = Flight::State;
  if (a.state == State::NotBegun || b.state == State::NotBegun)
    return a.state == State::NotBegun ? b : a;
  if (a.state != b.state)
    return (a.state == State::InFlight) == latest ? a : b;
  return (a.groups < b.groups) == latest ? a : b;
}

static Flights meetAt(const Flights &a, const Flights &b) {
  return {meetAt(a.latest, b.latest, true), meetAt(a.earliest, b.earliest, false)};
}

/// Finds for each barrier the copies that an invocation may come there with.
void Walk::findFlights() {
  using State = Flight::State;
  std::vector<uint32_t> copies; // words
  for (const Block &block : function.blocks)
    for (const Instruction &instruction : block.instructions)
      if (instruction.op == Op::CopyAsync)
        copies.push_back(instruction.word);
  if (copies.empty())
    return;
  auto pass = [&](const Instruction &instruction, uint32_t copy, Flights &flights) {
    if (instruction.op == Op::CopyAsync && instruction.word == copy)
      flights.latest = flights.earliest = {State::InFlight, 0};
    if (instruction.op != Op::NamedEffect)
      return;
    const std::string &name = module.getString(instruction.operands[0]);
    for (Flight *flight : {&flights.latest, &flights.earliest}) {
      if (flight->state != State::InFlight)
        continue;
      if (name == "cp.async.commit_group")
        flight->groups = std::min(flight->groups + 1, maxGroups);
      std::optional<int64_t> left;
      if (name == "cp.async.wait_group")
        left = getConstant(instruction.operands[1]);
      if (name == "cp.async.wait_all" || (left && *left >= 0 && *left < int64_t(flight->groups)))
        *flight = {State::Landed, 0};
    }
  };
  std::vector<std::vector<Flights>> atBegin(function.blocks.size(),
                                            std::vector<Flights>(copies.size()));
  std::vector<uint32_t> open = {0};
  std::vector<bool> isReached(function.blocks.size());
  isReached[0] = true;
  while (!open.empty()) {
    const uint32_t number = open.back();
    open.pop_back();
    std::vector<Flights> here = atBegin[number];
    for (const Instruction &instruction : function.blocks[number].instructions)
      for (size_t i = 0; i < copies.size(); ++i)
        pass(instruction, copies[i], here[i]);
    for (uint32_t next : function.blocks[number].successors) {
      bool isChanged = !isReached[next];
      isReached[next] = true;
      for (size_t i = 0; i < copies.size(); ++i) {
        Flights met = meetAt(atBegin[next][i], here[i]);
        isChanged |= met != atBegin[next][i];
        atBegin[next][i] = met;
      }
      if (isChanged)
        open.push_back(next);
    }
  }
  for (size_t number = 0; number < function.blocks.size(); ++number)
    for (size_t i = 0; i < copies.size(); ++i) {
      Flights flights = atBegin[number][i];
      for (const Instruction &instruction : function.blocks[number].instructions) {
        pass(instruction, copies[i], flights);
        if (instruction.op != Op::ControlBarrier || flights.latest.state != State::InFlight)
          continue;
        for (BarrierSite &barrier : map.barriers)
          if (barrier.word == instruction.word) {
            barrier.inFlight.push_back(copies[i]);
            if (flights.earliest.state == State::InFlight)
              barrier.neverLanded.push_back(copies[i]);
          }
      }
    }
}

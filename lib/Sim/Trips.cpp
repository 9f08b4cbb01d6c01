//===- Trips.cpp - How often the loops of a plan run ----------------------===//

#include "Trips.h"

#include "Machine.h"

#include <algorithm>
#include <map>

using namespace weir;
using namespace weir::sim;

/// Max number of dispatches of all trips.
static constexpr int64_t maxDispatches = int64_t(1) << 16;
/// Stands for the flag of a loop that nothing has written.
static constexpr int noFlag = -1;

/// Throws an `Error` if so many trips are too many to be written out.
static void checkSize(const Plan &plan, const std::vector<int64_t> &trips) {
  std::vector<__int128> repeats(plan.commands.size(), 1);
  for (size_t i = 0; i < plan.loops.size(); ++i)
    for (int64_t place = plan.loops[i].first; place < plan.loops[i].end; ++place)
      repeats[size_t(place)] = std::min<__int128>(repeats[size_t(place)] * trips[i], maxDispatches);
  __int128 dispatches = 0;
  for (size_t i = 0; i < plan.commands.size(); ++i)
    dispatches += plan.commands[i].kind == Command::Kind::Dispatch ? repeats[i] : 0;
  if (dispatches >= maxDispatches)
    throw Error("the loops of entry '" + plan.entry + "' make " + std::to_string(maxDispatches) +
                " dispatches or more, too many for the simulator; run it on a device");
}

/// Returns what a loop's flag holds at the beginning: a byte of an argument, or nothing.
static int getFirstFlag(const Plan &plan, const Loop &loop, const std::vector<Tensor> &arguments) {
  const Allocation &holder = plan.allocations[size_t(loop.flag->allocation)];
  if (holder.kind != AllocationKind::Argument)
    return noFlag;
  const Bytes &data = arguments[size_t(holder.index)].data;
  return size_t(loop.flag->offset) < data.size() ? data[size_t(loop.flag->offset)] : noFlag;
}

/// Returns the values of a loop's flag: before the first trip, and after each; `noFlag` where
/// nothing has written it.
static std::vector<int> getFlags(const Artifact &artifact, const EntrySpec &entry, const Plan &plan,
                                 const Profile &profile, const std::vector<Tensor> &arguments,
                                 size_t number, const std::vector<int64_t> &trips) {
  const Loop &loop = plan.loops[number];
  std::vector<size_t> places; // of dispatches
  for (size_t i = 0; i < plan.commands.size(); ++i)
    if (plan.commands[i].kind == Command::Kind::Dispatch)
      places.push_back(i);
  UnrolledPlan unrolled = unrollLoops(plan, trips);
  Machine machine(artifact, entry, unrolled.plan, profile, /*fusesFma=*/false, nullptr);
  std::vector<int> flags(size_t(trips[number]) + 1, noFlag);
  flags.front() = getFirstFlag(plan, loop, arguments);
  std::vector<int64_t> tripOf(unrolled.dispatches.size()); // counted from 1; 0: outside
  std::map<size_t, int64_t> seen;
  std::vector<const Command *> commands;
  for (const Command &command : unrolled.plan.commands)
    if (command.kind == Command::Kind::Dispatch)
      commands.push_back(&command);
  for (size_t i = 0; i < tripOf.size(); ++i) {
    const auto place = int64_t(places[unrolled.dispatches[i]]);
    if (place >= loop.first && place < loop.end)
      tripOf[i] = ++seen[unrolled.dispatches[i]];
    else if (place >= loop.end)
      tripOf[i] = -1;
  }
  machine.onWrite = [&](size_t dispatch, size_t operand, const Bytes &bytes) {
    const PlanOperand &view = commands[dispatch]->operands[operand];
    int64_t at = loop.flag->offset - view.offset;
    if (tripOf[dispatch] >= 0 && view.allocation == loop.flag->allocation && at >= 0 &&
        at < view.bytes)
      flags[size_t(tripOf[dispatch])] = bytes[size_t(at)];
  };
  machine.invoke(arguments, SimStrategy::Recorded, /*seed=*/1);
  for (size_t trip = 1; trip < flags.size(); ++trip)
    if (flags[trip] == noFlag) // as the trip before left it
      flags[trip] = flags[trip - 1];
  return flags;
}

Trips sim::findTrips(const Artifact &artifact, const EntrySpec &entry, const Plan &plan,
                     const Profile &profile, const std::vector<Tensor> &arguments) {
  Trips found;
  std::vector<int64_t> &trips = found.trips;
  for (const Loop &loop : plan.loops)
    trips.push_back(loop.flag ? 0 : loop.trips);
  for (size_t i = 0; i < plan.loops.size(); ++i) {
    if (!plan.loops[i].flag)
      continue;
    for (size_t outer = 0; outer < i; ++outer)
      if (plan.loops[outer].end >= plan.loops[i].end)
        throw Error("entry '" + plan.entry +
                    "' has a loop inside of another one whose number of "
                    "trips is decided by data, which the simulator does not run; run it on a "
                    "device");
    for (int64_t most = 1;; most *= 2) {
      trips[i] = most;
      checkSize(plan, trips);
      auto flags = getFlags(artifact, entry, plan, profile, arguments, i, trips);
      auto end = std::find_if(flags.begin(), flags.end(), [](int flag) { return flag <= 0; });
      trips[i] = end - flags.begin();
      if (end == flags.end())
        continue;
      if (*end == noFlag)
        found.unwritten.push_back(i);
      break;
    }
    if (trips[i] > plan.loops[i].trips)
      throw Error("a loop did not end within its " + std::to_string(plan.loops[i].trips) +
                  " trips");
  }
  checkSize(plan, trips);
  return found;
}

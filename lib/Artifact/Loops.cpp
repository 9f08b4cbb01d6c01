//===- Loops.cpp - Writes out the loops of a plan -------------------------===//

#include "weir/Artifact/Loops.h"

#include <algorithm>
#include <limits>
#include <map>

using namespace weir;

std::vector<int64_t> weir::findLoops(const Plan &plan) {
  std::vector<int64_t> result(plan.commands.size(), -1);
  // Inner loops come later.
  for (size_t i = 0; i < plan.loops.size(); ++i)
    std::fill(result.begin() + plan.loops[i].first, result.begin() + plan.loops[i].end, int64_t(i));
  return result;
}

std::vector<int64_t> weir::countRuns(const Plan &plan) {
  constexpr int64_t most = std::numeric_limits<int64_t>::max();
  std::vector<int64_t> runs(plan.commands.size(), 1);
  for (const Loop &loop : plan.loops)
    for (int64_t i = loop.first; i < loop.end && !loop.flag; ++i)
      if (__builtin_mul_overflow(runs[size_t(i)], loop.trips, &runs[size_t(i)]))
        runs[size_t(i)] = most;
  return runs;
}

namespace {
class Unroller {
public:
  Unroller(const Plan &plan, const std::vector<int64_t> &trips)
      : plan(plan), trips(trips), instances(plan.slots.size()) {
    size_t dispatches = 0;
    for (const Command &command : plan.commands) {
      numbers.push_back(dispatches);
      dispatches += command.kind == Command::Kind::Dispatch;
    }
    current.resize(plan.values.size());
    for (size_t i = 0; i < current.size(); ++i)
      current[i] = int64_t(i);
  }

  UnrolledPlan unroll();

private:
  void addRange(int64_t first, int64_t end, size_t nextLoop);
  void addLoop(size_t number);
  void addStretch(int64_t first, int64_t end);
  void addCommand(size_t number);
  void renameValues(const Loop &loop);
  void hold(const Loop &loop, const std::map<int64_t, int64_t> &last);
  void addSlots();

  const Plan &plan;
  const std::vector<int64_t> &trips;
  std::vector<size_t> numbers;  ///< by command: number of dispatches before it
  std::vector<int64_t> current; ///< by value of the plan: that of the trip that is written
  /// By slot: runs of waves in which it is live, each time that it is.
  std::vector<std::vector<std::pair<int64_t, int64_t>>> instances;
  int64_t nextWave = 0; ///< behind all waves that were written
  int64_t shift = 0;    ///< of a wave of the plan
  UnrolledPlan result;
};
} // namespace

/// Gives all values that the loop's commands make new numbers.
void Unroller::renameValues(const Loop &loop) {
  auto rename = [&](int64_t value) {
    if (value < 0)
      return;
    current[size_t(value)] = int64_t(result.plan.values.size());
    result.plan.values.push_back(plan.values[size_t(value)]);
  };
  for (int64_t i = loop.first; i < loop.end; ++i) {
    const Command &command = plan.commands[size_t(i)];
    if (command.kind != Command::Kind::Dispatch)
      continue;
    const Kernel &kernel = plan.kernels[size_t(command.kernel)];
    for (size_t k = 0; k < command.operands.size(); ++k)
      if (kernel.operands[k].access == Access::Write || kernel.operands[k].access == Access::Update)
        rename(command.operands[k].value);
  }
}

void Unroller::addCommand(size_t number) {
  Command command = plan.commands[number];
  for (PlanOperand &operand : command.operands) {
    if (operand.value >= 0)
      operand.value = current[size_t(operand.value)];
    if (operand.before >= 0)
      operand.before = current[size_t(operand.before)];
  }
  command.hazards.clear();
  if (command.kind == Command::Kind::Dispatch) {
    command.wave += shift;
    result.dispatches.push_back(numbers[number]);
  }
  result.commands.push_back(number);
  result.plan.commands.push_back(std::move(command));
}

/// Adds commands between the ends of loops. Their waves go on behind those before, in the plan's
/// order: a dispatch may be recorded before others of an earlier wave.
void Unroller::addStretch(int64_t first, int64_t end) {
  int64_t least = std::numeric_limits<int64_t>::max(), most = -1;
  for (int64_t i = first; i < end; ++i)
    if (const Command &command = plan.commands[size_t(i)];
        command.kind == Command::Kind::Dispatch) {
      least = std::min(least, command.wave);
      most = std::max(most, command.wave);
    }
  shift = nextWave - least;
  for (size_t i = 0; most >= 0 && i < plan.slots.size(); ++i) {
    int64_t from = std::max(plan.slots[i].firstWave, least),
            to = std::min(plan.slots[i].lastWave, most);
    if (from > to)
      continue;
    auto &runs = instances[i];
    if (runs.empty() || runs.back().second < from + shift - 1)
      runs.push_back({from + shift, to + shift});
    runs.back().second = to + shift;
  }
  for (int64_t i = first; i < end; ++i)
    addCommand(size_t(i));
  if (most >= 0)
    nextWave = most + shift + 1;
}

/// Notes what a loop's carried bytes hold; `last` has the value of each by its `inside`.
void Unroller::hold(const Loop &loop, const std::map<int64_t, int64_t> &last) {
  for (const CarriedValue &carried : loop.carried)
    result.held.push_back({result.plan.commands.size(), carried.view, last.at(carried.inside),
                           loop.flag && loop.flag->allocation == carried.view.allocation &&
                               loop.flag->offset == carried.view.offset});
}

void Unroller::addLoop(size_t number) {
  const Loop &loop = plan.loops[number];
  std::map<int64_t, int64_t> last; // of carried values: the value so far
  for (const CarriedValue &carried : loop.carried)
    last[carried.inside] = current[size_t(carried.init)];
  hold(loop, last);
  for (int64_t trip = 0; trip < trips[number]; ++trip) {
    renameValues(loop);
    for (const CarriedValue &carried : loop.carried)
      current[size_t(carried.inside)] = last[carried.inside];
    addRange(loop.first, loop.end, number + 1);
    for (const CarriedValue &carried : loop.carried)
      last[carried.inside] = current[size_t(carried.next)];
    hold(loop, last);
  }
  for (const CarriedValue &carried : loop.carried)
    current[size_t(carried.after)] = last[carried.inside];
}

void Unroller::addRange(int64_t first, int64_t end, size_t nextLoop) {
  while (first < end) {
    if (nextLoop < plan.loops.size() && plan.loops[nextLoop].first == first) {
      size_t inner = nextLoop;
      first = plan.loops[inner].end;
      while (nextLoop < plan.loops.size() && plan.loops[nextLoop].first < first)
        ++nextLoop;
      addLoop(inner);
    } else {
      int64_t next = nextLoop < plan.loops.size() ? std::min(plan.loops[nextLoop].first, end) : end;
      addStretch(first, next);
      first = next;
    }
  }
}

/// Adds the slots' runs of waves. Those of a run that ended in one wave and began in the next again
/// are one, which is what a slot around a loop is.
void Unroller::addSlots() {
  for (size_t i = 0; i < plan.slots.size(); ++i)
    for (auto [firstWave, lastWave] : instances[i]) {
      Slot slot = plan.slots[i];
      slot.firstWave = firstWave;
      slot.lastWave = lastWave;
      result.plan.slots.push_back(std::move(slot));
    }
}

UnrolledPlan Unroller::unroll() {
  Plan &unrolled = result.plan;
  unrolled.entry = plan.entry;
  unrolled.target = plan.target;
  unrolled.allocations = plan.allocations;
  unrolled.values = plan.values;
  unrolled.argumentValues = plan.argumentValues;
  unrolled.kernels = plan.kernels;
  unrolled.arenaBytes = plan.arenaBytes;
  unrolled.pinnedBytes = plan.pinnedBytes;
  addRange(0, int64_t(plan.commands.size()), 0);
  for (int64_t value : plan.resultValues)
    unrolled.resultValues.push_back(value < 0 ? value : current[size_t(value)]);
  addSlots();
  return std::move(result);
}

UnrolledPlan weir::unrollLoops(const Plan &plan, const std::vector<int64_t> &trips) {
  return Unroller(plan, trips).unroll();
}

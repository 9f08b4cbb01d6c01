//===- Statements.cpp - What a plan states, compared with its code --------===//

#include "Replay.h"

#include <map>

using namespace weir;
using namespace weir::mutate;

Replay::Witness Replay::judgeEffects() {
  for (size_t command : dispatches) {
    const Command &dispatch = plan.commands[command];
    const Kernel &kernel = plan.kernels[size_t(dispatch.kernel)];
    const std::vector<Effect> &effects = judge.getEffects(artifact, plan, dispatch);
    for (size_t i = 0; i < effects.size(); ++i) {
      const KernelOperand &said = kernel.operands[i];
      std::string text = "the code of @" + kernel.name;
      std::string operand =
          " operand " + print(int64_t(i)) + ", but the plan says that it does not";
      if (!effects[i].reads.empty() && !doesRead(said.access))
        return text + " reads" + operand;
      if (!effects[i].writes.empty() && !doesWrite(said.access))
        return text + " writes" + operand;
      if (said.coversAll && said.bytes && effects[i].writes != Intervals{{0, said.bytes}})
        return text + " leaves bytes of operand " + print(int64_t(i)) +
               " as they were, but the plan says that it does not";
      if (said.slice && effects[i].writes != getIntervals(*said.slice, 0))
        return text + " writes other bytes of operand " + print(int64_t(i)) +
               " than the plan says it does";
    }
  }
  return std::nullopt;
}

const KernelOperand *Replay::findUse(int64_t dispatch, int64_t operand) const {
  if (size_t(dispatch) >= dispatches.size())
    return nullptr;
  const Command &command = plan.commands[dispatches[size_t(dispatch)]];
  if (size_t(operand) >= command.operands.size() || !command.operands[size_t(operand)].bytes)
    return nullptr;
  return &plan.kernels[size_t(command.kernel)].operands[size_t(operand)];
}

/// Whether a barrier is before a loop, or at the end of its trips: it is there for all that crosses
/// the edge, however often the loop runs.
bool Replay::isAtEdge(size_t command) const {
  return std::any_of(plan.loops.begin(), plan.loops.end(), [&](const Loop &loop) {
    return loop.first == int64_t(command) + 1 || loop.end == int64_t(command) + 1;
  });
}

/// Whether a barrier is between two commands, in one trip or, as the last command of a loop,
/// between its trips.
bool Replay::isBetween(size_t barrier, size_t from, size_t to) const {
  auto isOf = [](const Loop &loop, size_t command) {
    return loop.first <= int64_t(command) && int64_t(command) < loop.end;
  };
  return (from < barrier && barrier < to) ||
         std::any_of(plan.loops.begin(), plan.loops.end(), [&](const Loop &loop) {
           return loop.end == int64_t(barrier) + 1 && isOf(loop, from) && isOf(loop, to);
         });
}

Replay::Witness Replay::judgeHazards() {
  Order waits(plan, /*barriers=*/false);
  std::map<int64_t, int64_t> ends; // by queue: end of the last interval
  for (size_t barrier = 0; barrier < plan.commands.size(); ++barrier) {
    const Command &command = plan.commands[barrier];
    if (command.kind != Command::Kind::Barrier)
      continue;
    for (const Hazard &hazard : command.hazards) {
      const std::string text = "command " + print(int64_t(barrier)) +
                               " states a hazard of dispatch " + print(hazard.from) +
                               " with dispatch " + print(hazard.to);
      const KernelOperand *from = findUse(hazard.from, hazard.fromOperand);
      const KernelOperand *to = findUse(hazard.to, hazard.toOperand);
      bool isReal =
          from && to &&
          (hazard.kind == HazardKind::WAR ? doesRead(from->access) : doesWrite(from->access)) &&
          (hazard.kind == HazardKind::RAW ? doesRead(to->access) : doesWrite(to->access));
      if (!isReal)
        return text + " that their effects don't have";
      size_t first = dispatches[size_t(hazard.from)], second = dispatches[size_t(hazard.to)];
      if (!doesShare(plan.commands[first].operands[size_t(hazard.fromOperand)],
                     plan.commands[second].operands[size_t(hazard.toOperand)]))
        return text + ", which share no byte there";
      if (!isBetween(barrier, first, second))
        return text + ", which it does not stand between";
      if (&hazard != &command.hazards.front() || isAtEdge(barrier))
        continue;
      if (plan.commands[first].queue != command.queue ||
          plan.commands[second].queue != command.queue || waits.isOrdered(first, second) ||
          hazard.from < ends[command.queue])
        return text + " that does not force it";
      ends[command.queue] = hazard.to;
    }
    if (command.hazards.empty())
      return "command " + print(int64_t(barrier)) + " states no hazard";
  }
  return std::nullopt;
}

Replay::Witness Replay::judgeWaves() {
  for (size_t i = 0; i < dispatches.size(); ++i)
    for (size_t k = 0; k < i; ++k) {
      const Command &a = plan.commands[dispatches[i]], &b = plan.commands[dispatches[k]];
      if (a.wave != b.wave)
        continue;
      for (size_t m = 0; m < a.operands.size(); ++m)
        for (size_t n = 0; n < b.operands.size(); ++n) {
          Access one = plan.kernels[size_t(a.kernel)].operands[m].access;
          Access two = plan.kernels[size_t(b.kernel)].operands[n].access;
          if (doesShare(a.operands[m], b.operands[n]) && one != Access::None &&
              two != Access::None && (doesWrite(one) || doesWrite(two)))
            return describe(dispatches[k]) + " and " + describe(dispatches[i]) + " of wave " +
                   print(a.wave) + " share bytes, and one writes them";
        }
    }
  return std::nullopt;
}

Replay::Witness Replay::judgeSlots() {
  for (size_t i = 0; i < plan.slots.size(); ++i)
    for (size_t k = 0; k < i; ++k) {
      const Slot &a = plan.slots[i], &b = plan.slots[k];
      if (std::max(a.offset, b.offset) < std::min(a.offset + a.bytes, b.offset + b.bytes) &&
          std::max(a.firstWave, b.firstWave) <= std::min(a.lastWave, b.lastWave))
        return "slots " + print(int64_t(k)) + " and " + print(int64_t(i)) +
               " share bytes and a wave";
    }
  for (size_t command : dispatches) {
    const Command &dispatch = plan.commands[command];
    for (size_t i = 0; i < dispatch.operands.size(); ++i) {
      const PlanOperand &view = dispatch.operands[i];
      if (plan.allocations[size_t(view.allocation)].kind != AllocationKind::Arena || !view.bytes ||
          plan.kernels[size_t(dispatch.kernel)].operands[i].access == Access::None)
        continue;
      if (std::none_of(plan.slots.begin(), plan.slots.end(), [&](const Slot &slot) {
            return slot.offset <= view.offset &&
                   view.offset + view.bytes <= slot.offset + slot.bytes &&
                   slot.firstWave <= dispatch.wave && dispatch.wave <= slot.lastWave;
          }))
        return describe(command) + " of wave " + print(dispatch.wave) + " uses " + describe(view) +
               ", which are in no slot that is live then";
    }
  }
  for (const Loop &loop : plan.loops)
    if (Witness witness = judgeLives(loop))
      return witness;
  return std::nullopt;
}

/// Searches for bytes that go over an edge of a loop, and for a dispatch outside of it, among whose
/// waves there are some that they are not said to live in, or that are its own.
Replay::Witness Replay::judgeLives(const Loop &loop) const {
  auto isInside = [&](size_t command) {
    return loop.first <= int64_t(command) && int64_t(command) < loop.end;
  };
  int64_t first = INT64_MAX, last = -1;
  for (size_t command : dispatches)
    if (isInside(command)) {
      first = std::min(first, plan.commands[command].wave);
      last = std::max(last, plan.commands[command].wave);
    }
  if (last < 0)
    return std::nullopt;
  for (size_t command : dispatches)
    if (int64_t wave = plan.commands[command].wave;
        !isInside(command) && first <= wave && wave <= last)
      return describe(command) + " is outside of a loop, but of its wave " + print(wave);
  auto isWhole = [&](const Slot &slot) { return slot.firstWave <= first && last <= slot.lastWave; };
  for (const Slot &slot : plan.slots)
    if (slot.bytes && slot.firstWave <= last && first <= slot.lastWave &&
        (slot.firstWave < first || last < slot.lastWave) && !isWhole(slot))
      return "slot \"" + slot.value +
             "\" lives inside and outside of a loop, but not in all of "
             "its waves";
  for (const CarriedValue &carried : loop.carried) {
    const PlanView &view = carried.view;
    if (view.bytes && plan.allocations[size_t(view.allocation)].kind == AllocationKind::Arena &&
        std::none_of(plan.slots.begin(), plan.slots.end(), [&](const Slot &slot) {
          return isWhole(slot) && slot.offset <= view.offset &&
                 view.offset + view.bytes <= slot.offset + slot.bytes;
        }))
      return describe(view) + " are carried by a loop, in whose waves no slot of theirs lives";
  }
  return std::nullopt;
}

Replay::Witness Replay::judgeInPlace() {
  for (size_t command : dispatches) {
    const Command &dispatch = plan.commands[command];
    const Kernel &kernel = plan.kernels[size_t(dispatch.kernel)];
    for (size_t i = 0; i < dispatch.operands.size(); ++i)
      for (size_t k = 0; k < dispatch.operands.size(); ++k) {
        const PlanOperand &a = dispatch.operands[i], &b = dispatch.operands[k];
        Access one = kernel.operands[i].access, two = kernel.operands[k].access;
        if (i == k || !doesShare(a, b) || one == Access::None || !doesWrite(two))
          continue;
        if (static_cast<const PlanView &>(a) != static_cast<const PlanView &>(b) ||
            one != Access::Read || two != Access::Write ||
            std::find(kernel.inPlace.begin(), kernel.inPlace.end(),
                      std::pair<int64_t, int64_t>(i, k)) == kernel.inPlace.end())
          return describe(command) + " writes operand " + print(int64_t(k)) + " over operand " +
                 print(int64_t(i)) + ", which the plan has no permission for";
      }
  }
  return std::nullopt;
}

/// Places operands apart, but for one pair that the plan permits, used or not.
Replay::Witness Replay::judgePermissions() {
  for (size_t command : dispatches) {
    Command dispatch = plan.commands[command];
    const Kernel &kernel = plan.kernels[size_t(dispatch.kernel)];
    for (auto [source, target] : kernel.inPlace) {
      for (size_t i = 0; i < dispatch.operands.size(); ++i) {
        dispatch.operands[i].allocation = int64_t(i) == target ? source : int64_t(i);
        dispatch.operands[i].offset = 0;
      }
      const std::string &problem = judge.findProblemInside(artifact, plan, dispatch);
      if (!problem.empty())
        return "where operand " + print(target) + " of @" + kernel.name + " is over operand " +
               print(source) + ", which the plan permits, " + problem;
    }
  }
  return std::nullopt;
}

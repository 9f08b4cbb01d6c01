//===- Memory.cpp - Where values lie, and what they need ------------------===//

#include "Checks.h"

#include "weir/Artifact/Error.h"

#include <algorithm>
#include <set>

using namespace weir;
using namespace weir::verifier;

//===----------------------------------------------------------------------===//
// Ranges
//===----------------------------------------------------------------------===//

/// The bytes that an allocation must have. Errors: `Counterexample`.
static int64_t getNeededBytes(const Subject &subject, const Allocation &allocation,
                              const std::string &name) {
  auto getTensorBytes = [&](const std::vector<TensorSpec> &tensors) {
    if (allocation.index < 0 || size_t(allocation.index) >= tensors.size())
      throw Counterexample{name + " is of tensor " + std::to_string(allocation.index) + " of " +
                           std::to_string(tensors.size())};
    try {
      return getByteSize(tensors[allocation.index]);
    } catch (const Error &error) {
      throw Counterexample{name + ": " + error.what()};
    }
  };
  switch (allocation.kind) {
  case AllocationKind::Argument:
    return getTensorBytes(subject.entry.arguments);
  case AllocationKind::Result:
    return getTensorBytes(subject.entry.results);
  case AllocationKind::Constants:
    return int64_t(subject.artifact.constants.size());
  case AllocationKind::Arena:
    return subject.plan.arenaBytes;
  }
  throw Counterexample{name + " is of no kind"};
}

std::string verifier::checkRanges(const Subject &subject) {
  const Plan &plan = subject.plan;
  std::set<std::pair<AllocationKind, int64_t>> seen;
  for (size_t i = 0; i < plan.allocations.size(); ++i) {
    const Allocation &allocation = plan.allocations[i];
    std::string name = "allocation " + std::to_string(i);
    int64_t bytes = getNeededBytes(subject, allocation, name);
    if (allocation.bytes != bytes || bytes < 0)
      throw Counterexample{name + " has " + std::to_string(allocation.bytes) +
                           " bytes, what it stands for has " + std::to_string(bytes)};
    bool single =
        allocation.kind == AllocationKind::Constants || allocation.kind == AllocationKind::Arena;
    if (!seen.insert({allocation.kind, single ? 0 : allocation.index}).second)
      throw Counterexample{name + " stands for the same as an earlier one"};
  }
  auto checkView = [&](const PlanView &view, const std::string &name) {
    if (view.allocation < 0 || size_t(view.allocation) >= plan.allocations.size())
      throw Counterexample{name + " is in allocation " + std::to_string(view.allocation) + " of " +
                           std::to_string(plan.allocations.size())};
    int64_t bytes = plan.allocations[view.allocation].bytes;
    if (view.bytes < 0 || view.offset < 0 || view.bytes > bytes || view.offset > bytes - view.bytes)
      throw Counterexample{name + " has " + std::to_string(view.bytes) + " bytes at " +
                           std::to_string(view.offset) + " of allocation " +
                           std::to_string(view.allocation) + ", which has " +
                           std::to_string(bytes)};
  };

  size_t views = 0;
  for (size_t dispatch = 0; dispatch < subject.dispatches.size(); ++dispatch) {
    const Command &command = *subject.dispatches[dispatch];
    std::string name = "dispatch " + std::to_string(dispatch);
    if (command.kernel < 0 || size_t(command.kernel) >= plan.kernels.size())
      throw Counterexample{name + " launches kernel " + std::to_string(command.kernel) + " of " +
                           std::to_string(plan.kernels.size())};
    const Kernel &kernel = plan.kernels[command.kernel];
    if (command.operands.size() != kernel.operands.size())
      throw Counterexample{name + " has " + count(command.operands.size(), "operand") + ", @" +
                           kernel.name + " takes " + std::to_string(kernel.operands.size())};
    for (size_t i = 0; i < command.operands.size(); ++i, ++views) {
      const PlanView &view = command.operands[i];
      std::string operand = "operand " + std::to_string(i) + " of " + subject.describe(dispatch);
      checkView(view, operand);
      if (view.bytes != kernel.operands[i].bytes)
        throw Counterexample{operand + " has " + std::to_string(view.bytes) +
                             " bytes, the kernel binds " +
                             std::to_string(kernel.operands[i].bytes)};
      if (view.bytes > subject.profile.bytesPerBinding)
        throw Counterexample{operand + " has " + std::to_string(view.bytes) +
                             " bytes, the target binds at most " +
                             std::to_string(subject.profile.bytesPerBinding)};
    }
  }
  size_t barrier = 0;
  for (const Command &command : plan.commands) {
    if (command.kind != Command::Kind::Barrier)
      continue;
    for (const PlanView &view : command.memory)
      checkView(view, "the memory of barrier " + std::to_string(barrier));
    ++barrier;
  }
  return count(views, "view") + " in " + count(plan.allocations.size(), "allocation");
}

//===----------------------------------------------------------------------===//
// Alignment and limits
//===----------------------------------------------------------------------===//

/// What the runtime gives every allocation's base.
static constexpr int64_t baseAlignment = 256;

std::string verifier::checkAlignment(const Subject &subject) {
  for (size_t dispatch = 0; dispatch < subject.dispatches.size(); ++dispatch) {
    const Kernel &kernel = subject.getKernel(dispatch);
    for (size_t i = 0; i < kernel.operands.size(); ++i) {
      const PlanView &view = subject.dispatches[dispatch]->operands[i];
      int64_t needed = kernel.operands[i].alignment;
      auto refuse = [&](const std::string &why) {
        throw Counterexample{"operand " + std::to_string(i) + " of " + subject.describe(dispatch) +
                             " " + why};
      };
      if (needed < 1 || needed > baseAlignment || baseAlignment % needed)
        refuse("needs an alignment of " + std::to_string(needed) + ", allocations have " +
               std::to_string(baseAlignment));
      // Powers of two: the larger of two alignments implies the other.
      needed = std::max(needed, subject.profile.offsetAlignment);
      if (view.bytes && view.offset % needed)
        refuse("begins at byte " + std::to_string(view.offset) + ", which is no multiple of " +
               std::to_string(needed));
    }
  }
  for (const Slot &slot : subject.plan.slots)
    if (slot.alignment < 1 || slot.offset % slot.alignment)
      throw Counterexample{"slot \"" + slot.value + "\" begins at byte " +
                           std::to_string(slot.offset) + ", which is no multiple of " +
                           std::to_string(slot.alignment)};
  return count(subject.plan.slots.size(), "slot") + " and the views of " +
         std::to_string(subject.dispatches.size()) + " dispatches";
}

std::string verifier::checkLimits(const Subject &subject) {
  const Profile &profile = subject.profile;
  for (const Kernel &kernel : subject.plan.kernels) {
    int64_t left = profile.maxWorkgroupSize;
    for (int64_t size : kernel.workgroup) {
      if (size < 1 || size > left)
        throw Counterexample{"the workgroup of @" + kernel.name + " exceeds the target's " +
                             count(profile.maxWorkgroupSize, "invocation")};
      left /= size;
    }
    if (int64_t(kernel.operands.size()) > profile.storageBuffersPerStage)
      throw Counterexample{"@" + kernel.name + " binds " + count(kernel.operands.size(), "buffer") +
                           ", the target has " + std::to_string(profile.storageBuffersPerStage)};
  }
  for (size_t dispatch = 0; dispatch < subject.dispatches.size(); ++dispatch)
    for (int axis = 0; axis < 3; ++axis)
      if (int64_t size = subject.dispatches[dispatch]->grid[axis];
          size < 1 || size > profile.maxGrid[axis])
        throw Counterexample{subject.describe(dispatch) + " has " + std::to_string(size) +
                             " workgroups on axis " + std::to_string(axis) +
                             ", the target's limit is " + std::to_string(profile.maxGrid[axis])};
  return count(subject.plan.kernels.size(), "kernel") + " and " +
         std::to_string(subject.dispatches.size()) + " grids within profile " + profile.name;
}

//===----------------------------------------------------------------------===//
// Slots
//===----------------------------------------------------------------------===//

static bool isArena(const Subject &subject, const Use &use) {
  return subject.plan.allocations[use.view.allocation].kind == AllocationKind::Arena;
}

/// The slot of each use, by number; uses outside the arena have slot 0.
/// Errors: `Counterexample`.
static std::vector<size_t> findSlots(const Subject &subject) {
  const std::vector<Slot> &slots = subject.plan.slots;
  // In the order of waves: slots begin, views look for theirs, slots end.
  enum Phase { Begin, Look, End };
  struct Event {
    int64_t wave;
    Phase phase;
    size_t number;
    auto operator<=>(const Event &) const = default;
  };
  std::vector<Event> events;
  for (size_t i = 0; i < slots.size(); ++i) {
    const Slot &slot = slots[i];
    if (slot.offset < 0 || slot.bytes < 0 || slot.bytes > subject.plan.arenaBytes ||
        slot.offset > subject.plan.arenaBytes - slot.bytes || slot.firstWave > slot.lastWave)
      throw Counterexample{"slot \"" + slot.value + "\" has " + std::to_string(slot.bytes) +
                           " bytes at " + std::to_string(slot.offset) + " in waves " +
                           std::to_string(slot.firstWave) + " to " + std::to_string(slot.lastWave) +
                           ", the arena has " + std::to_string(subject.plan.arenaBytes) + " bytes"};
    if (slot.bytes == 0)
      continue;
    events.push_back({slot.firstWave, Begin, i});
    events.push_back({slot.lastWave, End, i});
  }
  for (size_t i = 0; i < subject.uses.size(); ++i)
    if (isArena(subject, subject.uses[i]))
      events.push_back({subject.dispatches[subject.uses[i].dispatch]->wave, Look, i});
  std::sort(events.begin(), events.end());

  std::vector<size_t> result(subject.uses.size());
  std::map<int64_t, size_t> live; // by offset; they share no bytes
  auto getEnd = [&](size_t slot) { return slots[slot].offset + slots[slot].bytes; };
  for (auto [wave, phase, number] : events) {
    if (phase == End) {
      live.erase(slots[number].offset);
      continue;
    }
    int64_t offset = phase == Begin ? slots[number].offset : subject.uses[number].begin();
    auto after = live.upper_bound(offset);
    const bool hasBefore = after != live.begin();
    if (phase == Look) {
      if (!hasBefore || getEnd(std::prev(after)->second) < subject.uses[number].end()) {
        const Use &use = subject.uses[number];
        throw Counterexample{"operand " + std::to_string(use.operand) + " of " +
                             subject.describe(use.dispatch) + ", " +
                             subject.describe(use.view.allocation, use.begin(), use.end()) +
                             ", is in no slot that is live in wave " + std::to_string(wave)};
      }
      result[number] = std::prev(after)->second;
      continue;
    }
    auto refuse = [&](size_t other) {
      throw Counterexample{"slots \"" + slots[other].value + "\" and \"" + slots[number].value +
                           "\" share bytes and are both live in wave " + std::to_string(wave)};
    };
    if (hasBefore && getEnd(std::prev(after)->second) > offset)
      refuse(std::prev(after)->second);
    if (after != live.end() && after->first < getEnd(number))
      refuse(after->second);
    live.emplace(offset, number);
  }
  return result;
}

std::string verifier::checkSlots(const Subject &subject) {
  findSlots(subject);
  size_t views = std::count_if(subject.uses.begin(), subject.uses.end(),
                               [&](const Use &use) { return isArena(subject, use); });
  return count(subject.plan.slots.size(), "slot") + " in " +
         std::to_string(subject.plan.arenaBytes) + " bytes, each of " + count(views, "view") +
         " in one of them";
}

//===----------------------------------------------------------------------===//
// Contents
//===----------------------------------------------------------------------===//

namespace {
/// The slot whose value a run of bytes holds, whole; `none` before that.
struct Holds {
  static constexpr size_t none = -1;
  size_t slot = none;
};
} // namespace

std::string verifier::checkContents(const Subject &subject) {
  const Plan &plan = subject.plan;
  std::vector<size_t> slots = findSlots(subject);
  std::vector<ByteMap<Holds>> memory(plan.allocations.size());
  auto isOurs = [&](const Use &use) {
    AllocationKind kind = plan.allocations[use.view.allocation].kind;
    return kind == AllocationKind::Arena || kind == AllocationKind::Result;
  };
  size_t reads = 0;
  for (size_t dispatch = 0; dispatch < subject.dispatches.size(); ++dispatch) {
    size_t first = subject.firstUse[dispatch], last = subject.firstUse[dispatch + 1];
    for (size_t i = first; i < last; ++i) {
      const Use &use = subject.uses[i];
      if (!use.reads || !isOurs(use))
        continue;
      ++reads;
      memory[use.view.allocation].visit(
          use.begin(), use.end(), [&](Holds &bytes, int64_t begin, int64_t end) {
            if (bytes.slot != slots[i])
              throw Counterexample{
                  subject.describe(dispatch) + " reads " +
                  subject.describe(use.view.allocation, begin, end) +
                  ", which no dispatch before it is known to have written whole" +
                  (isArena(subject, use) ? " for \"" + plan.slots[slots[i]].value + "\"" : "")};
          });
    }
    // A write of some of the bytes keeps what was there of the same value only.
    for (size_t i = first; i < last; ++i)
      if (const Use &use = subject.uses[i]; use.writes && !use.coversAll && isOurs(use))
        memory[use.view.allocation].visit(use.begin(), use.end(),
                                          [&](Holds &bytes, int64_t, int64_t) {
                                            if (bytes.slot != slots[i])
                                              bytes.slot = Holds::none;
                                          });
    for (size_t i = first; i < last; ++i)
      if (const Use &use = subject.uses[i]; use.writes && use.coversAll && isOurs(use))
        memory[use.view.allocation].assign(use.begin(), use.end(), {slots[i]});
  }

  std::vector<bool> placed(subject.entry.results.size());
  for (size_t i = 0; i < plan.allocations.size(); ++i) {
    const Allocation &allocation = plan.allocations[i];
    if (allocation.kind != AllocationKind::Result)
      continue;
    placed[allocation.index] = true;
    if (allocation.bytes)
      memory[i].visit(0, allocation.bytes, [&](Holds &bytes, int64_t begin, int64_t end) {
        if (bytes.slot == Holds::none)
          throw Counterexample{"no dispatch is known to write all of " +
                               subject.describe(int64_t(i), begin, end)};
      });
  }
  for (size_t i = 0; i < placed.size(); ++i)
    if (const TensorSpec &result = subject.entry.results[i];
        !placed[i] && std::count(result.shape.begin(), result.shape.end(), 0) == 0)
      throw Counterexample{"result \"" + result.name + "\" has no allocation, nothing writes it"};
  return count(reads, "read") + " of bytes written before, " + count(placed.size(), "result") +
         " written whole";
}

std::string verifier::checkReadOnly(const Subject &subject) {
  size_t writes = 0;
  for (const Use &use : subject.uses) {
    if (!use.writes)
      continue;
    ++writes;
    const Allocation &allocation = subject.plan.allocations[use.view.allocation];
    if (allocation.kind == AllocationKind::Constants ||
        (allocation.kind == AllocationKind::Argument &&
         !subject.entry.arguments[allocation.index].donate))
      throw Counterexample{subject.describe(use.dispatch) + " writes " +
                           subject.describe(use.view.allocation, use.begin(), use.end()) +
                           ", which it does not own"};
  }
  return count(writes, "write") + ", none to constants or to arguments that are not donated";
}

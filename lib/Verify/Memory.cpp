//===- Memory.cpp - Proves placement --------------------------------------===//

#include "Checks.h"

#include "weir/Artifact/Error.h"
#include "weir/Artifact/StoredBytes.h"

#include <algorithm>
#include <set>

using namespace weir;
using namespace weir::verifier;

//===----------------------------------------------------------------------===//
// Ranges
//===----------------------------------------------------------------------===//

/// Returns the bytes of a tensor on the device. Errors: `Counterexample` on overflow.
static int64_t getTensorBytes(const Subject &subject, const TensorSpec &spec,
                              const std::string &name) {
  try {
    return getStoredBytes(spec, subject.profile);
  } catch (const Error &error) {
    throw Counterexample{name + ": " + error.what()};
  }
}

/// Returns the bytes that an allocation must have. Errors: `Counterexample`.
static int64_t getNeededBytes(const Subject &subject, const Allocation &allocation,
                              const std::string &name) {
  auto getBytesOf = [&](const std::vector<TensorSpec> &tensors) {
    if (allocation.index < 0 || size_t(allocation.index) >= tensors.size())
      throw Counterexample{name + " is of tensor " + std::to_string(allocation.index) + " of " +
                           std::to_string(tensors.size())};
    return getTensorBytes(subject, tensors[allocation.index], name);
  };
  switch (allocation.kind) {
  case AllocationKind::Argument:
    return getBytesOf(subject.entry.arguments);
  case AllocationKind::Result:
    return getBytesOf(subject.entry.results);
  case AllocationKind::Constants:
    return int64_t(subject.artifact.constants.size());
  case AllocationKind::Arena:
    return subject.plan.arenaBytes;
  }
  throw Counterexample{name + " has an unknown kind"};
}

/// Checks that a result in an argument's bytes exists, has their size, and is in no other
/// argument. Errors: `Counterexample`.
static void checkDonation(const Subject &subject) {
  std::vector<bool> placed(subject.entry.results.size());
  for (size_t i = 0; i < subject.plan.allocations.size(); ++i) {
    const Allocation &allocation = subject.plan.allocations[i];
    const bool own = allocation.kind == AllocationKind::Result;
    const int64_t result = own ? allocation.index : allocation.result;
    if (result < 0)
      continue;
    std::string name = "allocation " + std::to_string(i);
    if (!own && allocation.kind != AllocationKind::Argument)
      throw Counterexample{name + " holds a result, but is not an argument"};
    if (size_t(result) >= placed.size())
      throw Counterexample{name + " holds result " + std::to_string(result) + " of " +
                           std::to_string(placed.size())};
    const TensorSpec &spec = subject.entry.results[result];
    if (int64_t bytes = getTensorBytes(subject, spec, name); bytes != allocation.bytes)
      throw Counterexample{name + " of " + std::to_string(allocation.bytes) +
                           " bytes holds result \"" + spec.name + "\", which has " +
                           std::to_string(bytes)};
    if (placed[result])
      throw Counterexample{name + " holds result \"" + spec.name + "\", as an earlier one does"};
    placed[result] = true;
  }
}

/// Checks that arguments or results have one value each, of their size, and that arguments have
/// different values. Errors: `Counterexample`.
static void checkValues(const Subject &subject, const std::vector<int64_t> &values,
                        const std::vector<TensorSpec> &tensors, const std::string &what) {
  if (values.size() != tensors.size())
    throw Counterexample{count(values.size(), "value") + " for " + count(tensors.size(), what)};
  std::set<int64_t> seen;
  for (size_t i = 0; i < values.size(); ++i) {
    std::string name = what + " \"" + tensors[i].name + "\"";
    if (values[i] < -1 || values[i] >= int64_t(subject.plan.values.size()))
      throw Counterexample{name + " is value " + std::to_string(values[i]) + " of " +
                           std::to_string(subject.plan.values.size())};
    int64_t bytes = values[i] < 0 ? 0 : subject.plan.values[values[i]].bytes;
    if (int64_t needed = getTensorBytes(subject, tensors[i], name); bytes != needed)
      throw Counterexample{name + " has " + std::to_string(needed) + " bytes, its value " +
                           std::to_string(bytes)};
    if (what == "argument" && values[i] >= 0 && !seen.insert(values[i]).second)
      throw Counterexample{name + " has the same value as an earlier argument"};
  }
}

/// Checks that allocations have the bytes of their tensors, and stand for each tensor once.
/// Errors: `Counterexample`.
static void checkAllocations(const Subject &subject) {
  std::set<std::pair<AllocationKind, int64_t>> seen;
  for (size_t i = 0; i < subject.plan.allocations.size(); ++i) {
    const Allocation &allocation = subject.plan.allocations[i];
    std::string name = "allocation " + std::to_string(i);
    int64_t bytes = getNeededBytes(subject, allocation, name);
    if (allocation.bytes != bytes || bytes < 0)
      throw Counterexample{name + " has " + std::to_string(allocation.bytes) +
                           " bytes, its tensor has " + std::to_string(bytes)};
    bool single =
        allocation.kind == AllocationKind::Constants || allocation.kind == AllocationKind::Arena;
    if (!seen.insert({allocation.kind, single ? 0 : allocation.index}).second)
      throw Counterexample{name + " stands for the same tensor as an earlier one"};
  }
}

/// Checks that a view lies within its allocation. `name` is called for errors only: there are
/// hundreds of thousands of views. Errors: `Counterexample`.
static void checkView(const Plan &plan, const PlanView &view, auto name) {
  if (view.allocation < 0 || size_t(view.allocation) >= plan.allocations.size())
    throw Counterexample{name() + " is in allocation " + std::to_string(view.allocation) + " of " +
                         std::to_string(plan.allocations.size())};
  int64_t bytes = plan.allocations[view.allocation].bytes;
  if (view.bytes < 0 || view.offset < 0 || view.bytes > bytes || view.offset > bytes - view.bytes)
    throw Counterexample{name() + " has " + std::to_string(view.bytes) + " bytes at " +
                         std::to_string(view.offset) + " of allocation " +
                         std::to_string(view.allocation) + ", which has " + std::to_string(bytes)};
}

/// Checks that an operand lies within its value, and within the value that it is inserted into.
/// Errors: `Counterexample`.
static void checkPart(const Plan &plan, const PlanOperand &view, const KernelOperand &how,
                      auto name) {
  if (view.value < -1 || view.value >= int64_t(plan.values.size()))
    throw Counterexample{name() + " is value " + std::to_string(view.value) + " of " +
                         std::to_string(plan.values.size())};
  if (int64_t bytes = view.value < 0 ? view.bytes : plan.values[view.value].bytes;
      view.from < 0 || view.bytes > bytes || view.from > bytes - view.bytes)
    throw Counterexample{name() + " is " + std::to_string(view.bytes) + " bytes from byte " +
                         std::to_string(view.from) + " of a value that has " +
                         std::to_string(bytes)};
  if (view.before == -1)
    return;
  if (view.before < 0 || view.before >= int64_t(plan.values.size()) || view.value < 0)
    throw Counterexample{name() + " is inserted into value " + std::to_string(view.before) +
                         " of " + std::to_string(plan.values.size())};
  if (int64_t bytes = plan.values[view.before].bytes;
      view.bytes > bytes || view.from > bytes - view.bytes)
    throw Counterexample{name() + " is inserted into a value that has " + std::to_string(bytes) +
                         " bytes"};
  if ((how.access != Access::Write && how.access != Access::Update) || how.coversAll)
    throw Counterexample{name() + " is inserted into, but not written in part"};
}

/// Checks that an operand with a slice is written in part, by runs of bytes within those that the
/// kernel binds. Errors: `Counterexample`.
static void checkRuns(const KernelOperand &how, auto name) {
  if (!how.slice)
    return;
  if (how.access != Access::Write || how.coversAll)
    throw Counterexample{name() + " has a slice, but is not written in part"};
  const ByteSlice &slice = *how.slice;
  if (slice.begin < 0 || slice.bytes < 1 || slice.count < 1 || slice.stride <= slice.bytes ||
      slice.end() > how.bytes)
    throw Counterexample{name() + " has the slice " + printSlice(slice) +
                         ", expected bytes < stride, and runs that end within its " +
                         std::to_string(how.bytes) + " bytes"};
}

/// Checks the operands of dispatches against allocations, values and kernels. Returns their
/// number. Errors: `Counterexample`.
static size_t checkOperands(const Subject &subject) {
  const Plan &plan = subject.plan;
  size_t views = 0;
  for (size_t dispatch = 0; dispatch < subject.dispatches.size(); ++dispatch) {
    const Command &command = *subject.dispatches[dispatch];
    auto name = [&] { return "dispatch " + std::to_string(dispatch); };
    if (command.kernel < 0 || size_t(command.kernel) >= plan.kernels.size())
      throw Counterexample{name() + " launches kernel " + std::to_string(command.kernel) + " of " +
                           std::to_string(plan.kernels.size())};
    const Kernel &kernel = plan.kernels[command.kernel];
    if (command.operands.size() != kernel.operands.size())
      throw Counterexample{name() + " has " + count(command.operands.size(), "operand") + ", @" +
                           kernel.name + " takes " + std::to_string(kernel.operands.size())};
    for (size_t i = 0; i < command.operands.size(); ++i, ++views) {
      const PlanOperand &view = command.operands[i];
      auto operand = [&] {
        return "operand " + std::to_string(i) + " of " + subject.describe(dispatch);
      };
      checkView(plan, view, operand);
      checkPart(plan, view, kernel.operands[i], operand);
      checkRuns(kernel.operands[i], operand);
      if (view.bytes != kernel.operands[i].bytes)
        throw Counterexample{operand() + " has " + std::to_string(view.bytes) +
                             " bytes, the kernel binds " +
                             std::to_string(kernel.operands[i].bytes)};
      if (view.bytes > subject.profile.bytesPerBinding)
        throw Counterexample{operand() + " has " + std::to_string(view.bytes) +
                             " bytes, the target binds at most " +
                             std::to_string(subject.profile.bytesPerBinding)};
    }
  }
  return views;
}

/// Checks that each wait is for a signal of another queue that is recorded before it, so nothing
/// deadlocks, and the views of barriers and signals. Errors: `Counterexample`.
static void checkQueues(const Plan &plan) {
  std::map<int64_t, int64_t> signals; // their queues
  for (size_t i = 0; i < plan.commands.size(); ++i) {
    const Command &command = plan.commands[i];
    auto name = [&] { return "command " + std::to_string(i); };
    if (command.queue < 0 || command.queue >= maxQueues)
      throw Counterexample{name() + " is for queue " + std::to_string(command.queue) + " of " +
                           std::to_string(maxQueues)};
    for (const PlanView &view : command.memory)
      checkView(plan, view, [&] { return "the memory of " + name(); });
    auto signal = [&] { return std::to_string(command.signal); };
    if (command.kind == Command::Kind::Signal &&
        !signals.insert({command.signal, command.queue}).second)
      throw Counterexample{name() + " repeats signal " + signal()};
    if (command.kind != Command::Kind::Wait)
      continue;
    auto found = signals.find(command.signal);
    if (found == signals.end())
      throw Counterexample{name() + " waits for signal " + signal() +
                           ", which is not recorded before it: it may wait forever"};
    if (found->second == command.queue)
      throw Counterexample{name() + " waits for signal " + signal() + " of its own queue"};
  }
}

/// Checks that the parts of results have bytes there. Errors: `Counterexample`.
static void checkResultParts(const Subject &subject) {
  const std::vector<TensorSpec> &results = subject.entry.results;
  for (const ResultPart &part : subject.plan.parts) {
    bool exists = part.result >= 0 && size_t(part.result) < results.size();
    int64_t bytes = exists ? getByteSize(results[size_t(part.result)]) : 0;
    if (part.bytes < 1 || part.from < 0 || part.bytes > bytes || part.from > bytes - part.bytes)
      throw Counterexample{"part \"" + part.name + "\", " + count(part.bytes, "byte") + " from " +
                           std::to_string(part.from) + ", leaves result " +
                           std::to_string(part.result)};
  }
}

/// Checks one loop: its commands, its carried bytes and its flag. Errors: `Counterexample`.
static void checkLoop(const Plan &plan, const Loop &loop, const std::string &name) {
  if (loop.first < 0 || loop.first >= loop.end || loop.end > int64_t(plan.commands.size()) ||
      loop.trips < 1)
    throw Counterexample{name + " makes " + std::to_string(loop.trips) + " trips of commands [" +
                         std::to_string(loop.first) + ", " + std::to_string(loop.end) + ") of " +
                         std::to_string(plan.commands.size())};
  const std::string what = "a carried value of " + name;
  for (const CarriedValue &carried : loop.carried) {
    checkView(plan, carried.view, [&] { return what; });
    for (int64_t value : {carried.init, carried.inside, carried.next, carried.after})
      if (value < 0 || value >= int64_t(plan.values.size()) ||
          plan.values[value].bytes != carried.view.bytes)
        throw Counterexample{what + " of " + count(carried.view.bytes, "byte") + " is value " +
                             std::to_string(value) + ", which has others or is none"};
  }
  if (!loop.flag)
    return;
  checkView(plan, *loop.flag, [&] { return "the flag of " + name; });
  if (loop.flag->bytes != 1 ||
      std::none_of(loop.carried.begin(), loop.carried.end(), [&](const CarriedValue &carried) {
        return carried.view.allocation == loop.flag->allocation &&
               carried.view.offset == loop.flag->offset;
      }))
    throw Counterexample{"the flag of " + name + " is not the first byte of a carried value"};
}

/// Checks that loops are nested or apart, in order, and in a plan that can have them. Errors:
/// `Counterexample`.
static void checkLoopRanges(const Plan &plan) {
  for (size_t i = 0; i < plan.loops.size(); ++i) {
    const Loop &loop = plan.loops[i];
    const std::string name = "loop " + std::to_string(i);
    checkLoop(plan, loop, name);
    for (size_t k = 0; k < i; ++k) {
      const Loop &earlier = plan.loops[k];
      const bool isInside =
          earlier.first <= loop.first && loop.end <= earlier.end &&
          std::pair(earlier.first, earlier.end) != std::pair(loop.first, loop.end);
      if (!isInside && earlier.end > loop.first)
        throw Counterexample{name + " is neither inside of loop " + std::to_string(k) +
                             " nor behind it"};
    }
  }
  if (plan.loops.empty())
    return;
  if (!plan.parts.empty())
    throw Counterexample{"a plan with loops has parts of results, whose waves are those of one "
                         "trip"};
  for (size_t i = 0; i < plan.commands.size(); ++i)
    if (const Command &command = plan.commands[i];
        command.queue != 0 ||
        (command.kind != Command::Kind::Dispatch && command.kind != Command::Kind::Barrier))
      throw Counterexample{"command " + std::to_string(i) +
                           " is of another queue, in a plan with loops"};
}

std::string verifier::checkRanges(const Subject &subject) {
  checkAllocations(subject);
  checkDonation(subject);
  checkValues(subject, subject.plan.argumentValues, subject.entry.arguments, "argument");
  checkValues(subject, subject.plan.resultValues, subject.entry.results, "result");
  size_t views = checkOperands(subject);
  checkQueues(subject.plan);
  checkResultParts(subject);
  checkLoopRanges(subject.plan);
  return count(views, "view") + " in " + count(subject.plan.allocations.size(), "allocation");
}

//===----------------------------------------------------------------------===//
// Alignment and limits
//===----------------------------------------------------------------------===//

/// Alignment that the runtime gives to every allocation.
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
        refuse("begins at byte " + std::to_string(view.offset) + ", expected a multiple of " +
               std::to_string(needed));
    }
  }
  for (const Slot &slot : subject.plan.slots)
    if (slot.alignment < 1 || slot.offset % slot.alignment)
      throw Counterexample{"slot \"" + slot.value + "\" begins at byte " +
                           std::to_string(slot.offset) + ", expected a multiple of " +
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
    if (kernel.workgroupMemory > profile.workgroupMemory)
      throw Counterexample{
          "@" + kernel.name + " is launched with " + count(kernel.workgroupMemory, "byte") +
          " of workgroup memory, the target has " + std::to_string(profile.workgroupMemory) +
          "; compile it for a profile with a larger workgroup_memory, if the "
          "device has it, or with a smaller matrix_slab or matrix_stages"};
    if (constexpr int64_t firstSm = 90; !kernel.tensorMaps.empty() && profile.sm < firstSm)
      throw Counterexample{"@" + kernel.name + " has tensor maps, which GPUs have from sm_90 on; " +
                           "the target is of " + profile.getChip()};
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

/// Returns the index of each use's slot; 0 for uses outside the arena. Errors:
/// `Counterexample`.
static std::vector<size_t> findSlots(const Subject &subject) {
  const std::vector<Slot> &slots = subject.plan.slots;
  // Events in the order of waves: slots begin, views find their slot, slots end.
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

/// Checks that bytes which cross an edge of a loop are live in all its waves: a slot that lives
/// inside and outside, and one for each carried value. Errors: `Counterexample`.
static void checkLivesInLoops(const Subject &subject) {
  for (size_t i = 0; i < subject.plan.loops.size(); ++i) {
    const Loop &loop = subject.plan.loops[i];
    auto waves = getWaves(subject, loop);
    if (!waves)
      continue;
    auto [first, last] = *waves;
    auto isThroughout = [&](const Slot &slot) {
      return slot.firstWave <= first && slot.lastWave >= last;
    };
    const std::string name = "loop " + std::to_string(i) + ", waves " + std::to_string(first) +
                             " to " + std::to_string(last);
    for (const Slot &slot : subject.plan.slots)
      if (slot.bytes && slot.firstWave <= last && slot.lastWave >= first &&
          (slot.firstWave < first || slot.lastWave > last) && !isThroughout(slot))
        throw Counterexample{"slot \"" + slot.value + "\" is live in waves " +
                             std::to_string(slot.firstWave) + " to " +
                             std::to_string(slot.lastWave) + ", inside and outside of " + name +
                             ", but not in all of these"};
    for (const CarriedValue &carried : loop.carried)
      if (const PlanView &view = carried.view;
          view.bytes && subject.plan.allocations[view.allocation].kind == AllocationKind::Arena &&
          std::none_of(subject.plan.slots.begin(), subject.plan.slots.end(), [&](const Slot &slot) {
            return isThroughout(slot) && slot.offset <= view.offset &&
                   view.offset + view.bytes <= slot.offset + slot.bytes;
          }))
        throw Counterexample{
            subject.describe(view.allocation, view.offset, view.offset + view.bytes) + ", which " +
            name +
            ", carries, are in no slot that is live in all of "
            "these"};
  }
}

std::string verifier::checkSlots(const Subject &subject) {
  findSlots(subject);
  checkLivesInLoops(subject);
  size_t views = std::count_if(subject.uses.begin(), subject.uses.end(),
                               [&](const Use &use) { return isArena(subject, use); });
  return count(subject.plan.slots.size(), "slot") + " in " +
         std::to_string(subject.plan.arenaBytes) + " bytes, each of " + count(views, "view") +
         " in one of them";
}

//===----------------------------------------------------------------------===//
// Ownership
//===----------------------------------------------------------------------===//

std::string verifier::checkReadOnly(const Subject &subject) {
  size_t donated = 0;
  for (const Allocation &allocation : subject.plan.allocations) {
    if (allocation.result < 0)
      continue;
    const TensorSpec &argument = subject.entry.arguments[allocation.index];
    if (!argument.donate)
      throw Counterexample{"result \"" + subject.entry.results[allocation.result].name +
                           "\" lives in argument \"" + argument.name + "\", which is not donated"};
    ++donated;
  }
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
  return count(writes, "write") + ", none to constants or to arguments that are not donated; " +
         count(donated, "result") + " in a donated argument";
}

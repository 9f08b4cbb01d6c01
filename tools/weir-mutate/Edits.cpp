//===- Edits.cpp - Plans edited by bytes ----------------------------------===//

#include "Edits.h"

#include "Mutants.h"

#include <algorithm>
#include <utility>

using namespace weir;
using namespace weir::mutate;

namespace {

/// One edit's bytes, and what they choose.
struct PlanEdit {
  uint8_t kind, a, b, c;
  int8_t amount;
  uint8_t unit;

  int64_t getBytes() const {
    static constexpr int64_t units[] = {1, 4, 16, 64, 256};
    return amount * units[unit % std::size(units)];
  }
};

class Editor {
public:
  Editor(Artifact &artifact, size_t number)
      : artifact(artifact), number(number), plan(artifact.plans[number]) {}
  void apply(const PlanEdit &edit);
  std::vector<std::string> sentences;

private:
  void mutate(const PlanEdit &edit);
  void moveCommand(const PlanEdit &edit);
  void swapCommands(const PlanEdit &edit);
  void dropCommand(const PlanEdit &edit);
  void repeatCommand(const PlanEdit &edit);
  void changeTime(const PlanEdit &edit);
  void changeMemory(const PlanEdit &edit);
  void changeHazard(const PlanEdit &edit);
  void moveOperand(const PlanEdit &edit);
  void moveValue(const PlanEdit &edit);
  void changeSlot(const PlanEdit &edit);
  void changeSlots(const PlanEdit &edit);
  void changeEffect(const PlanEdit &edit);
  void changeSlice(const PlanEdit &edit);
  void changePermissions(const PlanEdit &edit);
  void changeGrid(const PlanEdit &edit);
  void changeKernel(const PlanEdit &edit);
  void changeDonation(const PlanEdit &edit);
  void changeArena(const PlanEdit &edit);

  void say(std::string sentence) { sentences.push_back(std::move(sentence)); }
  template <typename Change> void reorder(Change change);
  Command *findDispatch(uint8_t choice, size_t &index);
  /// Whether an operand's bytes have contents that the plan states. Others are constants: which of
  /// them an operand reads is dataflow.
  static bool hasValue(const PlanOperand &operand) { return operand.value >= 0; }

  Artifact &artifact;
  const size_t number;
  Plan &plan;
  bool isRaw = false;   ///< whether the plan may state anything by now
  bool hasCode = false; ///< whether code is changed
};

} // namespace

static std::string toText(int64_t number) { return std::to_string(number); }

//===----------------------------------------------------------------------===//
// Order
//===----------------------------------------------------------------------===//

/// Lets `change` edit the commands, each with its number among the dispatches or -1, and lets
/// hazards follow the dispatches.
template <typename Change> void Editor::reorder(Change change) {
  std::vector<std::pair<int64_t, Command>> numbered;
  int64_t dispatches = 0;
  for (Command &command : plan.commands)
    numbered.emplace_back(command.kind == Command::Kind::Dispatch ? dispatches++ : -1,
                          std::move(command));
  change(numbered);
  std::vector<int64_t> now(size_t(dispatches), -1);
  plan.commands.clear();
  int64_t next = 0;
  for (auto &[before, command] : numbered) {
    if (before >= 0)
      now[size_t(before)] = next++;
    plan.commands.push_back(std::move(command));
  }
  auto renumber = [&](int64_t &dispatch) {
    if (dispatch >= 0 && dispatch < dispatches)
      dispatch = std::max<int64_t>(now[size_t(dispatch)], 0);
  };
  for (Command &command : plan.commands)
    for (Hazard &hazard : command.hazards) {
      renumber(hazard.from);
      renumber(hazard.to);
    }
}

void Editor::moveCommand(const PlanEdit &edit) {
  const size_t count = plan.commands.size(), from = edit.a % count, to = edit.b % count;
  if (from == to)
    return;
  reorder([&](auto &commands) {
    auto moved = std::move(commands[from]);
    commands.erase(commands.begin() + int64_t(from));
    commands.insert(commands.begin() + int64_t(to), std::move(moved));
  });
  say("command " + toText(int64_t(from)) + " becomes command " + toText(int64_t(to)));
}

void Editor::swapCommands(const PlanEdit &edit) {
  const size_t count = plan.commands.size(), from = edit.a % count, to = edit.b % count;
  if (from == to)
    return;
  reorder([&](auto &commands) {
    std::swap(commands[from], commands[to]);
    if (edit.c & 1)
      std::swap(commands[from].second.wave, commands[to].second.wave);
    if (edit.c & 2)
      std::swap(commands[from].second.queue, commands[to].second.queue);
  });
  say("commands " + toText(int64_t(from)) + " and " + toText(int64_t(to)) + " change places");
}

void Editor::dropCommand(const PlanEdit &edit) {
  const size_t at = edit.a % plan.commands.size();
  reorder([&](auto &commands) { commands.erase(commands.begin() + int64_t(at)); });
  say("command " + toText(int64_t(at)) + " is gone");
}

void Editor::repeatCommand(const PlanEdit &edit) {
  const size_t count = plan.commands.size(), from = edit.a % count, to = edit.b % count;
  reorder([&](auto &commands) {
    auto copy = commands[from];
    commands.insert(commands.begin() + int64_t(to), std::move(copy));
  });
  say("command " + toText(int64_t(from)) + " is also command " + toText(int64_t(to)));
}

/// Changes the queue, wave or signal of a command.
void Editor::changeTime(const PlanEdit &edit) {
  const size_t at = edit.a % plan.commands.size();
  Command &command = plan.commands[at];
  std::string name = "command " + toText(int64_t(at));
  if (edit.c % 3 == 0)
    say(name + " is on queue " + toText(command.queue = edit.b % 3));
  else if (edit.c % 3 == 1)
    say(name + " is in wave " +
        toText(command.wave = std::max<int64_t>(command.wave + edit.amount, 0)));
  else
    say(name + " has signal " + toText(command.signal = edit.b % 3));
}

/// Changes what a barrier or signal shows.
void Editor::changeMemory(const PlanEdit &edit) {
  const size_t at = edit.a % plan.commands.size();
  std::vector<PlanView> &memory = plan.commands[at].memory;
  if (memory.empty())
    return;
  const size_t index = edit.b % memory.size();
  PlanView &view = memory[index];
  std::string name =
      "view " + toText(int64_t(index)) + " of the memory of command " + toText(int64_t(at));
  switch (edit.c % 4) {
  case 0:
    memory.erase(memory.begin() + int64_t(index));
    return say(name + " is gone");
  case 1:
    return say(name + " begins at byte " + toText(view.offset += edit.getBytes()));
  case 2:
    return say(name + " has " + toText(view.bytes += edit.getBytes()) + " bytes");
  default:
    view.allocation = int64_t(uint8_t(edit.amount) % plan.allocations.size());
    return say(name + " is of allocation " + toText(view.allocation));
  }
}

void Editor::changeHazard(const PlanEdit &edit) {
  const size_t at = edit.a % plan.commands.size();
  std::vector<Hazard> &hazards = plan.commands[at].hazards;
  if (hazards.empty())
    return;
  const size_t index = edit.b % hazards.size();
  Hazard &hazard = hazards[index];
  std::string name = "hazard " + toText(int64_t(index)) + " of command " + toText(int64_t(at));
  switch (edit.c % 6) {
  case 0:
    hazards.erase(hazards.begin() + int64_t(index));
    return say(name + " is gone");
  case 1:
    hazard.kind = HazardKind(uint8_t(edit.amount) % 3);
    return say(name + " is of another kind");
  case 2:
    return say(name + " is from dispatch " + toText(hazard.from += edit.amount));
  case 3:
    return say(name + " is to dispatch " + toText(hazard.to += edit.amount));
  case 4:
    return say(name + " is from operand " + toText(hazard.fromOperand += edit.amount));
  default:
    std::rotate(hazards.begin(), hazards.begin() + int64_t(index), hazards.end());
    return say(name + " is the first");
  }
}

//===----------------------------------------------------------------------===//
// Places
//===----------------------------------------------------------------------===//

/// Returns a dispatch and its index among the commands, or null if there is none.
Command *Editor::findDispatch(uint8_t choice, size_t &index) {
  std::vector<size_t> dispatches;
  for (size_t i = 0; i < plan.commands.size(); ++i)
    if (plan.commands[i].kind == Command::Kind::Dispatch)
      dispatches.push_back(i);
  if (dispatches.empty())
    return nullptr;
  index = dispatches[choice % dispatches.size()];
  return &plan.commands[index];
}

/// Moves one operand of a dispatch: by some bytes, to another allocation, or over another operand.
void Editor::moveOperand(const PlanEdit &edit) {
  size_t at = 0;
  Command *dispatch = findDispatch(edit.a, at);
  if (!dispatch || dispatch->operands.empty())
    return;
  const size_t index = edit.b % dispatch->operands.size();
  PlanOperand &operand = dispatch->operands[index];
  if (!hasValue(operand))
    return;
  std::string name = "operand " + toText(int64_t(index)) + " of command " + toText(int64_t(at));
  switch (edit.c % 3) {
  case 0:
    return say(name + " begins at byte " + toText(operand.offset += edit.getBytes()));
  case 1:
    operand.allocation = int64_t(uint8_t(edit.amount) % plan.allocations.size());
    return say(name + " is in allocation " + toText(operand.allocation));
  default:
    const size_t other = uint8_t(edit.amount) % dispatch->operands.size();
    operand.allocation = dispatch->operands[other].allocation;
    operand.offset = dispatch->operands[other].offset;
    return say(name + " lies over operand " + toText(int64_t(other)));
  }
}

/// Moves all views of a value that lie in the arena, what shows them and their slot.
void Editor::moveValue(const PlanEdit &edit) {
  if (plan.values.empty() || edit.amount == 0)
    return;
  const int64_t value = int64_t(edit.a % plan.values.size()), by = edit.getBytes();
  std::vector<PlanView> moved;
  for (Command &command : plan.commands)
    for (PlanOperand &operand : command.operands)
      if (operand.value == value &&
          plan.allocations[size_t(operand.allocation)].kind == AllocationKind::Arena) {
        moved.push_back(operand);
        operand.offset += by;
      }
  auto isMoved = [&](int64_t offset, int64_t bytes) {
    return std::any_of(moved.begin(), moved.end(), [&](const PlanView &view) {
      return view.offset >= offset && view.offset < offset + bytes;
    });
  };
  for (Command &command : plan.commands)
    for (size_t i = 0, end = command.memory.size(); i < end; ++i)
      if (PlanView view = command.memory[i]; isMoved(view.offset, view.bytes)) {
        view.offset += by;
        command.memory.push_back(view);
      }
  for (Slot &slot : plan.slots)
    if (edit.b % 2 == 0 && isMoved(slot.offset, slot.bytes))
      slot.offset += by;
  if (!moved.empty())
    say("value " + toText(value) + " lies " + toText(by) + " bytes further on in the arena");
}

void Editor::changeSlot(const PlanEdit &edit) {
  if (plan.slots.empty())
    return;
  const size_t index = edit.a % plan.slots.size();
  Slot &slot = plan.slots[index];
  std::string name = "slot " + toText(int64_t(index));
  switch (edit.b % 5) {
  case 0:
    return say(name + " begins at byte " + toText(slot.offset += edit.getBytes()));
  case 1:
    return say(name + " has " + toText(slot.bytes += edit.getBytes()) + " bytes");
  case 2:
    return say(name + " is aligned to " + toText(slot.alignment = int64_t(1) << edit.c % 10));
  case 3:
    return say(name + " lives from wave " + toText(slot.firstWave += edit.amount));
  default:
    return say(name + " lives to wave " + toText(slot.lastWave += edit.amount));
  }
}

/// Removes a slot, or adds one.
void Editor::changeSlots(const PlanEdit &edit) {
  if (plan.slots.empty())
    return;
  const size_t index = edit.a % plan.slots.size();
  if (edit.b % 2 == 0) {
    plan.slots.erase(plan.slots.begin() + int64_t(index));
    return say("slot " + toText(int64_t(index)) + " is gone");
  }
  Slot added = plan.slots[index];
  added.offset += edit.getBytes();
  added.firstWave += edit.c % 8;
  added.lastWave += edit.c % 8;
  plan.slots.push_back(std::move(added));
  say("slot " + toText(int64_t(index)) + " has a copy");
}

void Editor::changeArena(const PlanEdit &edit) {
  plan.arenaBytes = std::max<int64_t>(plan.arenaBytes + edit.getBytes(), 0);
  for (Allocation &allocation : plan.allocations)
    if (allocation.kind == AllocationKind::Arena)
      allocation.bytes = plan.arenaBytes;
  say("the arena has " + toText(plan.arenaBytes) + " bytes");
}

/// Lets an argument hold another result or none, or lets its bytes be donated or not.
void Editor::changeDonation(const PlanEdit &edit) {
  auto entry = std::find_if(artifact.manifest.entries.begin(), artifact.manifest.entries.end(),
                            [&](const EntrySpec &each) { return each.name == plan.entry; });
  if (edit.b % 2 == 0 && !entry->arguments.empty()) {
    TensorSpec &argument = entry->arguments[edit.a % entry->arguments.size()];
    argument.donate = !argument.donate;
    return say("argument \"" + argument.name + "\" is " + (argument.donate ? "" : "not ") +
               "donated");
  }
  if (plan.allocations.empty())
    return;
  const size_t index = edit.a % plan.allocations.size();
  Allocation &allocation = plan.allocations[index];
  if (allocation.kind != AllocationKind::Argument)
    return;
  allocation.result = int64_t(edit.c % (entry->results.size() + 1)) - 1;
  say("allocation " + toText(int64_t(index)) + " holds result " + toText(allocation.result));
}

//===----------------------------------------------------------------------===//
// Statements about kernels
//===----------------------------------------------------------------------===//

void Editor::changeEffect(const PlanEdit &edit) {
  if (plan.kernels.empty())
    return;
  Kernel &kernel = plan.kernels[edit.a % plan.kernels.size()];
  if (kernel.operands.empty())
    return;
  const size_t index = edit.b % kernel.operands.size();
  KernelOperand &operand = kernel.operands[index];
  std::string name = "operand " + toText(int64_t(index)) + " of @" + kernel.name;
  switch (edit.c % 4) {
  case 0:
    operand.access = Access(uint8_t(edit.amount) % 4);
    return say(name + " has another access");
  case 1:
    operand.coversAll = !operand.coversAll;
    return say(name + " is " + (operand.coversAll ? "" : "not ") + "covered");
  case 2:
    return say(name + " is aligned to " + toText(operand.alignment = int64_t(1) << edit.unit % 9));
  default:
    operand.bytes += edit.getBytes();
    for (Command &command : plan.commands)
      if (command.kind == Command::Kind::Dispatch &&
          &plan.kernels[size_t(command.kernel)] == &kernel)
        command.operands[index].bytes = operand.bytes;
    return say(name + " has " + toText(operand.bytes) + " bytes");
  }
}

void Editor::changeSlice(const PlanEdit &edit) {
  if (plan.kernels.empty())
    return;
  Kernel &kernel = plan.kernels[edit.a % plan.kernels.size()];
  if (kernel.operands.empty())
    return;
  const size_t index = edit.b % kernel.operands.size();
  std::optional<ByteSlice> &slice = kernel.operands[index].slice;
  std::string name = "the slice of operand " + toText(int64_t(index)) + " of @" + kernel.name;
  if (edit.c % 5 == 0) {
    if (slice)
      slice.reset();
    else
      slice = ByteSlice{0, kernel.operands[index].bytes, kernel.operands[index].bytes, 1};
    return say(name + (slice ? " is all of it" : " is gone"));
  }
  if (!slice)
    return;
  int64_t *const fields[] = {&slice->begin, &slice->bytes, &slice->stride, &slice->count};
  *fields[edit.c % 5 - 1] += edit.c % 5 == 4 ? edit.amount : edit.getBytes();
  say(name + " is " + printSlice(*slice));
}

void Editor::changePermissions(const PlanEdit &edit) {
  if (plan.kernels.empty())
    return;
  Kernel &kernel = plan.kernels[edit.a % plan.kernels.size()];
  if (kernel.operands.empty())
    return;
  const int64_t source = int64_t(edit.b % kernel.operands.size()),
                target = int64_t(edit.c % kernel.operands.size());
  auto found = std::find(kernel.inPlace.begin(), kernel.inPlace.end(), std::pair(source, target));
  if (found != kernel.inPlace.end())
    kernel.inPlace.erase(found);
  else
    kernel.inPlace.emplace_back(source, target);
  say("@" + kernel.name + " may " + (found == kernel.inPlace.end() ? "" : "not ") +
      "write operand " + toText(target) + " over operand " + toText(source));
}

void Editor::changeGrid(const PlanEdit &edit) {
  size_t at = 0;
  Command *dispatch = findDispatch(edit.a, at);
  if (!dispatch)
    return;
  std::array<int64_t, 3> &grid = dispatch->grid;
  int64_t &axis = grid[edit.b % 3];
  if (edit.c % 2 == 0)
    axis += edit.amount % 4;
  else
    std::swap(axis, grid[edit.unit % 3]);
  if (axis < 1 || axis > 256)
    axis = 1;
  say("the grid of command " + toText(int64_t(at)) + " is " + toText(grid[0]) + " x " +
      toText(grid[1]) + " x " + toText(grid[2]));
}

/// Changes the workgroups of a kernel, or the workgroup memory that its launches add.
void Editor::changeKernel(const PlanEdit &edit) {
  if (plan.kernels.empty())
    return;
  Kernel &kernel = plan.kernels[edit.a % plan.kernels.size()];
  if (edit.c % 4 == 0) {
    kernel.workgroupMemory =
        std::clamp<int64_t>(kernel.workgroupMemory + edit.getBytes(), 0, 65536);
    return say("launches of @" + kernel.name + " add " + toText(kernel.workgroupMemory) + " bytes");
  }
  int64_t &axis = kernel.workgroup[edit.b % 3];
  if (edit.c % 4 == 1)
    axis = axis * 2;
  else if (edit.c % 4 == 2)
    axis = axis / 2;
  else
    std::swap(axis, kernel.workgroup[edit.unit % 3]);
  axis = std::clamp<int64_t>(axis, 1, 1024);
  say("workgroups of @" + kernel.name + " are " + toText(kernel.workgroup[0]) + " x " +
      toText(kernel.workgroup[1]) + " x " + toText(kernel.workgroup[2]));
}

//===----------------------------------------------------------------------===//
// Mutants
//===----------------------------------------------------------------------===//

static bool changesCode(const Mutant &mutant) {
  const std::string &kind = mutant.kind;
  return kind.find("-code-") != kind.npos || kind.find("-copy-") != kind.npos ||
         kind.find("-product-") != kind.npos || kind == "drop-proxy-fence" ||
         kind.find("-phase-") != kind.npos || kind == "expect-fewer" || kind == "drop-box" ||
         kind.ends_with("-store") || kind == "make-noncoherent" || kind == "cut-shuffle-mask";
}

/// Applies one of the artifact's mutants: those of `listMutants` that keep the dataflow. Guards
/// choose what is computed, and two moved stores may change places: neither keeps it.
void Editor::mutate(const PlanEdit &edit) {
  if (isRaw)
    return; // a mutant is made of a plan whose parts fit
  try {
    Judge judge;
    std::vector<Mutant> mutants = listMutants(artifact, judge);
    std::erase_if(mutants, [&](const Mutant &mutant) {
      return mutant.plan != number || mutant.kind.ends_with("-guard") ||
             (hasCode && changesCode(mutant));
    });
    if (mutants.empty())
      return;
    const Mutant &chosen = mutants[(size_t(edit.a) << 8 | edit.b) % mutants.size()];
    chosen.apply(artifact);
    hasCode |= changesCode(chosen);
    say(chosen.what);
  } catch (const Error &) {
    // The code of this artifact cannot be enumerated.
  }
}

void Editor::apply(const PlanEdit &edit) {
  static constexpr void (Editor::*changes[])(const PlanEdit &) = {
      &Editor::moveCommand,       &Editor::swapCommands, &Editor::dropCommand,
      &Editor::repeatCommand,     &Editor::changeTime,   &Editor::changeMemory,
      &Editor::changeHazard,      &Editor::moveOperand,  &Editor::moveValue,
      &Editor::changeSlot,        &Editor::changeSlots,  &Editor::changeArena,
      &Editor::changeDonation,    &Editor::changeEffect, &Editor::changeSlice,
      &Editor::changePermissions, &Editor::changeGrid,   &Editor::changeKernel};
  const size_t kind = edit.kind % (std::size(changes) + 2);
  if (kind >= std::size(changes))
    return mutate(edit);
  if (plan.commands.empty() || plan.allocations.empty())
    return;
  (this->*changes[kind])(edit);
  isRaw = true;
}

std::pair<size_t, std::vector<std::string>> mutate::applyEdits(Artifact &artifact,
                                                               const uint8_t *bytes, size_t size) {
  const size_t number = size ? bytes[0] % 16 % artifact.plans.size() : 0;
  Editor editor(artifact, number);
  for (size_t i = 0; i < maxEdits && 1 + (i + 1) * editBytes <= size; ++i) {
    const uint8_t *at = bytes + 1 + i * editBytes;
    editor.apply({at[0], at[1], at[2], at[3], int8_t(at[4]), at[5]});
  }
  return {number, std::move(editor.sentences)};
}

//===- Mutants.cpp - Artifacts with one fact changed ----------------------===//

#include "Mutants.h"

#include "CodeMutants.h"

#include <algorithm>
#include <utility>

using namespace weir;
using namespace weir::mutate;

namespace {

class Lister {
public:
  Lister(const Artifact &artifact, Judge &judge, size_t number)
      : artifact(artifact), judge(judge), number(number), plan(artifact.plans[number]) {
    for (size_t i = 0; i < plan.commands.size(); ++i)
      if (plan.commands[i].kind == Command::Kind::Dispatch)
        dispatches.push_back(i);
  }

  std::vector<Mutant> list() {
    changeOrder();
    changeMemory();
    swapDispatches();
    moveSlots();
    divertWrites();
    useRefused();
    shrinkEffects();
    shrinkLifetimes();
    changeLoops();
    changeCode();
    return std::move(mutants);
  }

private:
  void changeOrder();
  void changeMemory();
  void swapDispatches();
  void moveSlots();
  void divertWrites();
  void useRefused();
  void shrinkEffects();
  void shrinkLifetimes();
  void changeLoops();
  void changeCode();

  /// Adds a mutant; `change` edits a copy of the artifact.
  void addChange(const std::string &kind, const std::vector<size_t> &numbers,
                 const std::string &what, std::function<void(Artifact &)> change) {
    std::string id = plan.entry + (plan.target == "vulkan" ? "" : ":" + plan.target) + ":" + kind;
    for (size_t i : numbers)
      id += ":" + std::to_string(i);
    mutants.push_back({id, kind, what, std::move(change), number});
  }
  /// Adds a mutant; `change` edits the plan in a copy of the artifact.
  template <typename Change>
  void add(const std::string &kind, const std::vector<size_t> &numbers, const std::string &what,
           Change change) {
    addChange(kind, numbers, what,
              [change, plan = number](Artifact &copy) { change(copy.plans[plan]); });
  }
  std::string describe(size_t dispatch) const {
    const Kernel &kernel = plan.kernels[size_t(plan.commands[dispatches[dispatch]].kernel)];
    return "dispatch " + std::to_string(dispatch) + " (@" + kernel.name + ")";
  }
  bool doConflict(size_t a, size_t b);

  const Artifact &artifact;
  Judge &judge;
  size_t number;
  const Plan &plan;
  std::vector<size_t> dispatches; ///< among the commands
  std::vector<Mutant> mutants;
};

} // namespace

static bool isOf(const Plan &plan, const PlanView &view, AllocationKind kind) {
  return plan.allocations[size_t(view.allocation)].kind == kind;
}

//===----------------------------------------------------------------------===//
// Order
//===----------------------------------------------------------------------===//

/// Removes a command; loops have those that they had.
static void removeCommand(Plan &plan, int64_t at) {
  plan.commands.erase(plan.commands.begin() + at);
  for (Loop &loop : plan.loops) {
    loop.first -= at < loop.first;
    loop.end -= at < loop.end;
  }
}

/// Moves a barrier to the other side of a dispatch, whose loops it is of then.
static void moveBarrier(Plan &plan, int64_t from, int64_t dispatch) {
  Command barrier = plan.commands[size_t(from)];
  removeCommand(plan, from);
  const bool isBehind = from < dispatch;
  const int64_t place = isBehind ? dispatch - 1 : dispatch; // of the dispatch now
  plan.commands.insert(plan.commands.begin() + place + isBehind, barrier);
  for (Loop &loop : plan.loops) {
    loop.end += place < loop.end;
    loop.first += place < loop.first;
  }
}

void Lister::changeOrder() {
  // A loop of no commands is none.
  auto isAlone = [&](size_t at) {
    return std::any_of(plan.loops.begin(), plan.loops.end(), [&](const Loop &loop) {
      return loop.first == int64_t(at) && loop.end == int64_t(at) + 1;
    });
  };
  auto drop = [](size_t at) { return [at](Plan &copy) { removeCommand(copy, int64_t(at)); }; };
  for (size_t i = 0; i < plan.commands.size(); ++i) {
    const Command &command = plan.commands[i];
    std::string name = "command " + std::to_string(i);
    if (command.kind == Command::Kind::Wait)
      add("drop-wait", {i}, "the wait that is " + name + " is gone", drop(i));
    if (command.kind != Command::Kind::Barrier || isAlone(i))
      continue;
    add("drop-barrier", {i}, "the barrier that is " + name + " is gone", drop(i));
    // Move it to the other side of an adjacent dispatch on its queue.
    for (int64_t step : {-1, 1}) {
      int64_t to = int64_t(i) + step, end = int64_t(plan.commands.size());
      while (to >= 0 && to < end && plan.commands[size_t(to)].queue != command.queue)
        to += step;
      if (to < 0 || to >= end || plan.commands[size_t(to)].kind != Command::Kind::Dispatch)
        continue;
      add("move-barrier", {i, size_t(to)},
          "the barrier that is " + name + " stands " + (step < 0 ? "before" : "behind") +
              " command " + std::to_string(to),
          [i, to](Plan &copy) { moveBarrier(copy, int64_t(i), to); });
    }
  }
}

void Lister::changeMemory() {
  for (size_t i = 0; i < plan.commands.size(); ++i)
    for (size_t v = 0; v < plan.commands[i].memory.size(); ++v) {
      const PlanView &view = plan.commands[i].memory[v];
      std::string name =
          "view " + std::to_string(v) + " of the memory of command " + std::to_string(i);
      if (!view.bytes)
        continue;
      add("weaken-barrier", {i, v, 0}, name + " is gone", [i, v](Plan &copy) {
        copy.commands[i].memory.erase(copy.commands[i].memory.begin() + int64_t(v));
      });
      int64_t cut = std::min<int64_t>(4, view.bytes);
      if (cut < view.bytes)
        add("weaken-barrier", {i, v, 1}, name + " ends " + std::to_string(cut) + " bytes earlier",
            [i, v, cut](Plan &copy) { copy.commands[i].memory[v].bytes -= cut; });
    }
}

static bool doShare(const Intervals &a, int64_t aOffset, const Intervals &b, int64_t bOffset) {
  for (auto [aBegin, aEnd] : a)
    for (auto [bBegin, bEnd] : b)
      if (std::max(aBegin + aOffset, bBegin + bOffset) < std::min(aEnd + aOffset, bEnd + bOffset))
        return true;
  return false;
}

/// Whether the code of two dispatches accesses a common byte, one of them writing.
bool Lister::doConflict(size_t a, size_t b) {
  const Command &first = plan.commands[dispatches[a]], &second = plan.commands[dispatches[b]];
  const std::vector<Effect> &one = judge.getEffects(artifact, plan, first);
  const std::vector<Effect> &two = judge.getEffects(artifact, plan, second);
  for (size_t i = 0; i < one.size(); ++i)
    for (size_t k = 0; k < two.size(); ++k) {
      int64_t from = first.operands[i].offset, to = second.operands[k].offset;
      if (first.operands[i].allocation == second.operands[k].allocation &&
          (doShare(one[i].writes, from, two[k].reads, to) ||
           doShare(one[i].writes, from, two[k].writes, to) ||
           doShare(one[i].reads, from, two[k].writes, to)))
        return true;
    }
  return false;
}

/// Swaps two dispatches with a conflict. Waves stay in place, and stated hazards move with
/// their dispatches.
void Lister::swapDispatches() {
  for (size_t b = 0; b < dispatches.size(); ++b)
    for (size_t a = b; a-- > 0;) {
      if (!doConflict(a, b))
        continue;
      add("swap-dispatches", {a, b}, describe(a) + " and " + describe(b) + " change places",
          [a, b, from = dispatches[a], to = dispatches[b]](Plan &copy) {
            std::swap(copy.commands[from], copy.commands[to]);
            std::swap(copy.commands[from].wave, copy.commands[to].wave);
            std::swap(copy.commands[from].queue, copy.commands[to].queue);
            auto renumber = [&](int64_t &dispatch) {
              dispatch = dispatch == int64_t(a)   ? int64_t(b)
                         : dispatch == int64_t(b) ? int64_t(a)
                                                  : dispatch;
            };
            for (Command &command : copy.commands)
              for (Hazard &hazard : command.hazards) {
                renumber(hazard.from);
                renumber(hazard.to);
              }
          });
      break; // one per dispatch is enough: the latest
    }
}

//===----------------------------------------------------------------------===//
// Places
//===----------------------------------------------------------------------===//

static void growArena(Plan &plan, int64_t bytes) {
  plan.arenaBytes = std::max(plan.arenaBytes, bytes);
  for (Allocation &allocation : plan.allocations)
    if (allocation.kind == AllocationKind::Arena)
      allocation.bytes = plan.arenaBytes;
}

/// Makes barriers and signals that cover `bytes` of the arena also cover the bytes `by` further
/// on.
static void showMoved(Plan &plan, const PlanView &bytes, int64_t allocation, int64_t by) {
  for (Command &command : plan.commands) {
    std::vector<PlanView> shown = command.memory;
    for (const PlanView &view : shown) {
      int64_t begin = std::max(view.offset, bytes.offset);
      int64_t end = std::min(view.offset + view.bytes, bytes.offset + bytes.bytes);
      if (view.allocation == bytes.allocation && begin < end)
        command.memory.push_back({allocation, begin + by, end - begin});
    }
  }
}

/// Moves what loops carry in a slot.
static void moveCarried(Plan &plan, const Slot &slot, int64_t by) {
  auto move = [&](PlanView &view) {
    if (isOf(plan, view, AllocationKind::Arena) && slot.offset <= view.offset &&
        view.offset + view.bytes <= slot.offset + slot.bytes)
      view.offset += by;
  };
  for (Loop &loop : plan.loops) {
    const bool isLive = std::any_of(plan.commands.begin() + loop.first,
                                    plan.commands.begin() + loop.end, [&](const Command &command) {
                                      return command.kind == Command::Kind::Dispatch &&
                                             slot.firstWave <= command.wave &&
                                             command.wave <= slot.lastWave;
                                    });
    if (!isLive)
      continue;
    for (CarriedValue &carried : loop.carried)
      move(carried.view);
    if (loop.flag)
      move(*loop.flag);
  }
}

static void moveSlot(Plan &plan, size_t number, int64_t by) {
  Slot &slot = plan.slots[number];
  growArena(plan, slot.offset + slot.bytes + by);
  moveCarried(plan, slot, by);
  for (Command &command : plan.commands)
    if (slot.firstWave <= command.wave && command.wave <= slot.lastWave)
      for (PlanOperand &view : command.operands)
        if (isOf(plan, view, AllocationKind::Arena) && slot.offset <= view.offset &&
            view.offset + view.bytes <= slot.offset + slot.bytes)
          view.offset += by;
  for (size_t i = 0; i < plan.allocations.size(); ++i)
    if (plan.allocations[i].kind == AllocationKind::Arena)
      showMoved(plan, {int64_t(i), slot.offset, slot.bytes}, int64_t(i), by);
  slot.offset += by;
}

void Lister::moveSlots() {
  for (size_t i = 0; i < plan.slots.size(); ++i) {
    const Slot &slot = plan.slots[i];
    if (!slot.bytes)
      continue;
    std::string name = "slot " + std::to_string(i) + " (\"" + slot.value + "\")";
    for (int64_t by : {-slot.alignment, slot.alignment})
      if (slot.offset + by >= 0)
        add("shift-slot", {i, by > 0},
            name + " lies " + std::to_string(slot.alignment) + " bytes " +
                (by > 0 ? "further on" : "further back"),
            [i, by](Plan &copy) { moveSlot(copy, i, by); });
    // Move it onto the next slot that is live at the same time.
    for (size_t step = 1; step < plan.slots.size(); ++step) {
      size_t k = (i + step) % plan.slots.size();
      const Slot &other = plan.slots[k];
      if (!other.bytes || other.firstWave > slot.lastWave || slot.firstWave > other.lastWave ||
          other.offset % slot.alignment)
        continue;
      add("overlap-slot", {i, k},
          name + " begins where slot " + std::to_string(k) + " (\"" + other.value +
              "\") does, which lives at the same time",
          [i, by = other.offset - slot.offset](Plan &copy) { moveSlot(copy, i, by); });
      break;
    }
  }
}

/// Lets each written operand go to new bytes at the end of the arena, a slot of its own, so that
/// the bytes of its value are never written.
void Lister::divertWrites() {
  int64_t arena = 0, last = int64_t(plan.allocations.size());
  while (arena < last && plan.allocations[size_t(arena)].kind != AllocationKind::Arena)
    ++arena;
  if (arena == last)
    return;
  for (size_t d = 0; d < dispatches.size(); ++d) {
    const Command &dispatch = plan.commands[dispatches[d]];
    for (size_t i = 0; i < dispatch.operands.size(); ++i) {
      if (plan.kernels[size_t(dispatch.kernel)].operands[i].access != Access::Write ||
          !dispatch.operands[i].bytes)
        continue;
      add("divert-write", {d, i},
          describe(d) + " writes operand " + std::to_string(i) +
              " to new bytes at the end of the arena",
          [arena, command = dispatches[d], i](Plan &copy) {
            PlanOperand &operand = copy.commands[command].operands[i];
            int64_t wave = copy.commands[command].wave;
            operand.allocation = arena;
            operand.offset = (copy.arenaBytes + 255) / 256 * 256;
            growArena(copy, operand.offset + operand.bytes);
            copy.slots.push_back({"diverted", operand.offset, operand.bytes, 256, wave, wave});
          });
    }
  }
}

/// Places a value over another operand of its writer, as a permission would allow, although the
/// kernel or readers of those bytes forbid it.
static void placeOver(Plan &plan, size_t command, size_t source, size_t target) {
  const PlanOperand from = plan.commands[command].operands[source];
  const PlanOperand old = plan.commands[command].operands[target];
  int64_t bytes = plan.values[size_t(old.value)].bytes;
  int64_t base = from.offset - old.from, oldBase = old.offset - old.from;
  int64_t firstWave = INT64_MAX, lastWave = 0;
  for (Command &other : plan.commands)
    for (PlanOperand &view : other.operands)
      if (view.value == old.value && other.kind == Command::Kind::Dispatch) {
        view.allocation = from.allocation;
        view.offset = base + view.from;
        firstWave = std::min(firstWave, other.wave);
        lastWave = std::max(lastWave, other.wave);
      }
  showMoved(plan, {old.allocation, oldBase, bytes}, from.allocation, base - oldBase);
  if (isOf(plan, from, AllocationKind::Arena)) {
    growArena(plan, base + bytes);
    for (Slot &slot : plan.slots)
      if (slot.offset <= from.offset && from.offset + from.bytes <= slot.offset + slot.bytes &&
          slot.firstWave <= plan.commands[command].wave &&
          plan.commands[command].wave <= slot.lastWave) {
        slot.firstWave = std::min(slot.firstWave, firstWave);
        slot.lastWave = std::max(slot.lastWave, lastWave);
      }
  }
  if (isOf(plan, old, AllocationKind::Arena))
    return;
  // A result moved into an argument has no allocation of its own.
  plan.allocations[size_t(from.allocation)].result = plan.allocations[size_t(old.allocation)].index;
  plan.allocations.erase(plan.allocations.begin() + old.allocation);
  for (Command &other : plan.commands) {
    std::erase_if(other.memory, [&](auto &view) { return view.allocation == old.allocation; });
    for (PlanView &view : other.memory)
      view.allocation -= view.allocation > old.allocation;
    for (PlanView &view : other.operands)
      view.allocation -= view.allocation > old.allocation;
  }
}

void Lister::useRefused() {
  for (size_t d = 0; d < dispatches.size(); ++d) {
    const Command &dispatch = plan.commands[dispatches[d]];
    const Kernel &kernel = plan.kernels[size_t(dispatch.kernel)];
    for (size_t target = 0; target < dispatch.operands.size(); ++target)
      for (size_t source = 0; source < dispatch.operands.size(); ++source) {
        const PlanOperand &to = dispatch.operands[target], &from = dispatch.operands[source];
        if (kernel.operands[target].access != Access::Write ||
            kernel.operands[source].access != Access::Read || to.bytes != from.bytes || !to.bytes ||
            from.value < 0 || to.value < 0 ||
            static_cast<const PlanView &>(to) == static_cast<const PlanView &>(from))
          continue;
        // The whole value moves: it must be in one place, and fit into the other.
        int64_t bytes = plan.values[size_t(to.value)].bytes;
        const Allocation &holder = plan.allocations[size_t(to.allocation)];
        const Allocation &place = plan.allocations[size_t(from.allocation)];
        bool isArena = place.kind == AllocationKind::Arena;
        if (from.offset < to.from || (!isArena && from.offset - to.from + bytes > place.bytes))
          continue;
        bool isResult = holder.kind == AllocationKind::Result;
        if (isResult ? place.kind != AllocationKind::Argument || place.result >= 0 ||
                           place.bytes != holder.bytes || to.from != to.offset ||
                           from.offset != to.offset ||
                           plan.resultValues[size_t(holder.index)] != to.value
                     : holder.kind != AllocationKind::Arena)
          continue;
        if (isResult && place.kind == AllocationKind::Argument) {
          auto entry =
              std::find_if(artifact.manifest.entries.begin(), artifact.manifest.entries.end(),
                           [&](const EntrySpec &e) { return e.name == plan.entry; });
          if (!entry->arguments[size_t(place.index)].donate)
            continue; // a reader refuses such a plan
        }
        add("use-refused", {d, source, target},
            describe(d) + " writes operand " + std::to_string(target) + " over operand " +
                std::to_string(source),
            [command = dispatches[d], source, target](Plan &copy) {
              placeOver(copy, command, source, target);
            });
      }
  }
}

//===----------------------------------------------------------------------===//
// Statements
//===----------------------------------------------------------------------===//

void Lister::shrinkEffects() {
  for (size_t k = 0; k < plan.kernels.size(); ++k)
    for (size_t i = 0; i < plan.kernels[k].operands.size(); ++i) {
      const KernelOperand &said = plan.kernels[k].operands[i];
      const std::vector<TensorMap> &maps = plan.kernels[k].tensorMaps;
      if (std::any_of(maps.begin(), maps.end(),
                      [&](const TensorMap &map) { return map.operand == int64_t(i); }))
        continue; // a reader refuses maps of what is not read
      std::string name = "operand " + std::to_string(i) + " of @" + plan.kernels[k].name;
      auto say = [&](size_t way, Access access, bool coversAll, const std::string &what) {
        add("shrink-effect", {k, i, way}, name + " is said " + what,
            [k, i, access, coversAll](Plan &copy) {
              copy.kernels[k].operands[i].access = access;
              copy.kernels[k].operands[i].coversAll = coversAll;
              copy.kernels[k].operands[i].slice.reset();
              // A permission pairs a read and a write: a reader refuses others.
              if (access == Access::None)
                std::erase_if(copy.kernels[k].inPlace, [&](auto &pair) {
                  return pair.first == int64_t(i) || pair.second == int64_t(i);
                });
            });
      };
      if (said.access == Access::Update) {
        say(0, Access::Read, false, "to be read only");
        say(1, Access::Write, said.coversAll, "to be written only");
      } else if (said.access != Access::None) {
        say(0, Access::None, false, "not to be touched");
      }
      if (said.coversAll || said.slice)
        say(2, said.access, false, "to be written in part");
    }
}

void Lister::shrinkLifetimes() {
  for (size_t i = 0; i < plan.slots.size(); ++i) {
    const Slot &slot = plan.slots[i];
    if (!slot.bytes || slot.firstWave == slot.lastWave)
      continue;
    std::string name = "slot " + std::to_string(i) + " (\"" + slot.value + "\")";
    add("shrink-lifetime", {i, 0}, name + " is said to live from a wave later",
        [i](Plan &copy) { ++copy.slots[i].firstWave; });
    add("shrink-lifetime", {i, 1}, name + " is said to live to a wave earlier",
        [i](Plan &copy) { --copy.slots[i].lastWave; });
  }
}

//===----------------------------------------------------------------------===//
// Loops
//===----------------------------------------------------------------------===//

/// Lets loops carry other bytes or values, and other donated arguments hold the results. How often
/// a loop runs, and by which value, is what the plan computes: no mutant changes it.
void Lister::changeLoops() {
  for (size_t i = 0; i < plan.loops.size(); ++i) {
    const Loop &loop = plan.loops[i];
    for (size_t k = 0; k < loop.carried.size(); ++k) {
      const CarriedValue &carried = loop.carried[k];
      const std::string name = "what loop " + std::to_string(i) + " carries as \"" +
                               plan.values[size_t(carried.inside)].name + "\"";
      const bool isFlag = loop.flag && loop.flag->allocation == carried.view.allocation &&
                          loop.flag->offset == carried.view.offset;
      if (!isFlag)
        add("drop-carried", {i, k}, name + " is not said to be carried", [i, k](Plan &copy) {
          std::vector<CarriedValue> &all = copy.loops[i].carried;
          all.erase(all.begin() + int64_t(k));
        });
      if (isOf(plan, carried.view, AllocationKind::Arena))
        add("divert-carried", {i, k}, name + " is said to lie in new bytes at the end of the arena",
            [i, k, isFlag](Plan &copy) {
              PlanView &view = copy.loops[i].carried[k].view;
              view.offset = (copy.arenaBytes + 255) / 256 * 256;
              growArena(copy, view.offset + view.bytes);
              if (isFlag)
                copy.loops[i].flag->offset = view.offset;
            });
      for (size_t other = k + 1; other < loop.carried.size(); ++other)
        if (loop.carried[other].view.bytes == carried.view.bytes)
          add("swap-carried", {i, k, other},
              name + " ends a trip as number " + std::to_string(other) + " does, and the other way",
              [i, k, other](Plan &copy) {
                std::vector<CarriedValue> &all = copy.loops[i].carried;
                std::swap(all[k].next, all[other].next);
              });
    }
  }
  for (size_t i = 0; i < plan.allocations.size() && !plan.loops.empty(); ++i)
    for (size_t k = i + 1; k < plan.allocations.size(); ++k) {
      const Allocation &one = plan.allocations[i], &other = plan.allocations[k];
      if (one.kind != AllocationKind::Argument || other.kind != AllocationKind::Argument ||
          one.result < 0 || other.result < 0 || one.bytes != other.bytes)
        continue;
      add("swap-donation", {i, k},
          "allocations " + std::to_string(i) + " and " + std::to_string(k) +
              " hold each other's results",
          [i, k](Plan &copy) {
            std::swap(copy.allocations[i].result, copy.allocations[k].result);
          });
    }
}

//===----------------------------------------------------------------------===//
// Code
//===----------------------------------------------------------------------===//

void Lister::changeCode() {
  for (size_t k = 0; k < plan.kernels.size(); ++k) {
    const Kernel &kernel = plan.kernels[k];
    for (CodeChange &change : listCodeChanges(kernel, artifact.code.at(kernel.code))) {
      std::vector<size_t> numbers = {k};
      numbers.insert(numbers.end(), change.numbers.begin(), change.numbers.end());
      addChange(change.kind, numbers, change.what,
                [path = kernel.code, apply = std::move(change.apply)](Artifact &copy) {
                  apply(copy.code[path]);
                });
    }
  }
}

std::vector<Mutant> mutate::listMutants(const Artifact &artifact, Judge &judge) {
  std::vector<Mutant> mutants;
  bool isAny = false;
  for (size_t i = 0; i < artifact.plans.size(); ++i) {
    if (!Judge::canRead(artifact.plans[i].target))
      continue;
    isAny = true;
    for (Mutant &mutant : Lister(artifact, judge, i).list())
      mutants.push_back(std::move(mutant));
  }
  if (!isAny)
    throw Error("the artifact has no plan for vulkan or cuda, whose code weir-mutate reads; "
                "compile it with --target=vulkan or --target=cuda");
  return mutants;
}

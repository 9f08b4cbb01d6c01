//===- Contents.cpp - Proves that reads find the values meant -------------===//

#include "Checks.h"

#include "weir/Artifact/Loops.h"

#include <algorithm>

using namespace weir;
using namespace weir::verifier;

namespace {
/// The contents of a run of bytes: part of a value whose byte 0 would be at `base` of the
/// allocation.
struct Holds {
  int64_t value = -1, base = 0; ///< -1: nothing, or a mixture
  const Use *writer = nullptr;  ///< null: contents since the start

  bool isPartOf(int64_t other, int64_t otherBase) const {
    return value == other && base == otherBase;
  }
};
} // namespace

/// Returns "holds \"h\" since dispatch 3 (@k, f.mlir:1:2) wrote it".
static std::string describe(const Subject &subject, const Holds &bytes, int64_t wanted) {
  if (bytes.value < 0)
    return bytes.writer ? "holds no whole value since " + subject.describe(bytes.writer->dispatch) +
                              " wrote to it"
                        : "nothing wrote before";
  std::string text = bytes.value == wanted ? "holds other bytes of " : "holds ";
  text += "\"" + subject.plan.values[bytes.value].name + "\"";
  return bytes.writer ? text + " since " + subject.describe(bytes.writer->dispatch) + " wrote it"
                      : text + " from the start";
}

/// Checks that every result's bytes hold the result at the end.
static void checkResults(const Subject &subject, std::vector<ByteMap<Holds>> &memory) {
  const Plan &plan = subject.plan;
  std::vector<bool> placed(subject.entry.results.size());
  for (size_t i = 0; i < plan.allocations.size(); ++i) {
    const Allocation &allocation = plan.allocations[i];
    int64_t result =
        allocation.kind == AllocationKind::Result ? allocation.index : allocation.result;
    if (result < 0)
      continue;
    placed[result] = true;
    int64_t value = plan.resultValues[result];
    if (allocation.bytes)
      memory[i].visit(0, allocation.bytes, [&](Holds &bytes, int64_t begin, int64_t end) {
        if (!bytes.isPartOf(value, 0))
          throw Counterexample{"result \"" + subject.entry.results[result].name +
                               "\" is to be in " + subject.describe(int64_t(i), begin, end) +
                               " at the end, which " + describe(subject, bytes, value)};
      });
  }
  for (size_t i = 0; i < placed.size(); ++i)
    if (const TensorSpec &result = subject.entry.results[i];
        !placed[i] && std::count(result.shape.begin(), result.shape.end(), 0) == 0)
      throw Counterexample{"result \"" + result.name + "\" has no allocation, nothing writes it"};
}

namespace {
/// Follows the values that bytes hold through the commands.
class ContentsCheck {
public:
  explicit ContentsCheck(const Subject &subject)
      : subject(subject), plan(subject.plan), memory(subject.plan.allocations.size()) {}

  std::string run();

private:
  void begin();
  void checkMakers() const;
  void checkReads(size_t dispatch);
  void write(size_t dispatch);
  void insert(const Use &use);
  void forget(const Loop &loop);
  void pass(const Loop &loop, int64_t CarriedValue::*found, const std::string &when,
            int64_t CarriedValue::*held);
  void require(const PlanView &view, int64_t value, const std::string &when);

  const Subject &subject;
  const Plan &plan;
  std::vector<ByteMap<Holds>> memory;
  size_t reads = 0;
};
} // namespace

/// Checks that each value is made in one place: in one loop or outside of all, or by a loop itself.
/// Otherwise its number would not tell which trip made it.
void ContentsCheck::checkMakers() const {
  const std::vector<int64_t> around = findLoops(plan);
  constexpr int64_t unknown = -2;
  std::vector<int64_t> maker(plan.values.size(), unknown); // a loop; -1: outside of all
  auto refuse = [&](int64_t value) {
    throw Counterexample{"\"" + plan.values[value].name + "\", value " + std::to_string(value) +
                         ", is made both inside and outside of a loop, or by two"};
  };
  for (int64_t value : plan.argumentValues)
    if (value >= 0)
      maker[value] = -1;
  for (const Use &use : subject.uses) {
    if (!use.writes || use.view.value < 0)
      continue;
    int64_t &known = maker[use.view.value], loop = around[subject.place[use.dispatch]];
    if (known != unknown && known != loop)
      refuse(use.view.value);
    known = loop;
  }
  for (const Loop &loop : plan.loops)
    for (const CarriedValue &carried : loop.carried)
      for (int64_t value : {carried.inside, carried.after}) {
        if (maker[value] != unknown)
          refuse(value);
        maker[value] = -1;
      }
}

void ContentsCheck::begin() {
  if (!plan.loops.empty())
    checkMakers();
  for (size_t i = 0; i < plan.allocations.size(); ++i) {
    const Allocation &allocation = plan.allocations[i];
    if (allocation.kind != AllocationKind::Argument || allocation.bytes == 0)
      continue;
    memory[i].assign(0, allocation.bytes, {plan.argumentValues[allocation.index], 0, nullptr});
  }
}

void ContentsCheck::checkReads(size_t dispatch) {
  for (size_t i = subject.firstUse[dispatch]; i < subject.firstUse[dispatch + 1]; ++i) {
    const Use &use = subject.uses[i];
    const bool isConstant = plan.allocations[use.view.allocation].kind == AllocationKind::Constants;
    if (isConstant != (use.view.value < 0))
      throw Counterexample{"operand " + std::to_string(use.operand) + " of " +
                           subject.describe(dispatch) +
                           (isConstant ? " is a value in the constants" : " names no value")};
    if (isConstant || !use.reads)
      continue;
    ++reads;
    const int64_t value = use.view.before < 0 ? use.view.value : use.view.before;
    memory[use.view.allocation].visit(
        use.begin(), use.end(), [&](Holds &bytes, int64_t begin, int64_t end) {
          if (!bytes.isPartOf(value, use.view.offset - use.view.from))
            throw Counterexample{
                "operand " + std::to_string(use.operand) + " of " + subject.describe(dispatch) +
                " reads " + subject.describe(use.view.allocation, begin, end) + " as \"" +
                plan.values[value].name + "\", which " + describe(subject, bytes, value)};
        });
  }
}

/// Records a write of some of the operand's bytes, which are not known: it keeps those of the same
/// value and of the one that it inserts into.
void ContentsCheck::insert(const Use &use) {
  const int64_t base = use.view.offset - use.view.from, before = use.view.before;
  memory[use.view.allocation].visit(
      use.begin(), use.end(), [&](Holds &run, int64_t begin, int64_t end) {
        if (before >= 0 && !run.isPartOf(before, base))
          throw Counterexample{
              "operand " + std::to_string(use.operand) + " of " + subject.describe(use.dispatch) +
              " inserts into " + subject.describe(use.view.allocation, begin, end) + " as \"" +
              plan.values[before].name + "\", which " + describe(subject, run, before)};
        if (before >= 0)
          run = {use.view.value, base, &use};
        else if (!run.isPartOf(use.view.value, base))
          run = {-1, 0, &use};
      });
}

/// Records the writes of a dispatch, those of known bytes last. A write of a slice keeps all bytes
/// outside of it.
void ContentsCheck::write(size_t dispatch) {
  for (bool isSure : {false, true})
    for (size_t i = subject.firstUse[dispatch]; i < subject.firstUse[dispatch + 1]; ++i) {
      const Use &use = subject.uses[i];
      if (!use.writes || use.isSure() != isSure || use.view.value < 0)
        continue;
      if (!isSure) {
        insert(use);
        continue;
      }
      const ByteSlice runs =
          use.slice.value_or(ByteSlice{0, use.view.bytes, use.view.bytes, /*count=*/1});
      for (int64_t run = 0; run < runs.count; ++run) {
        int64_t begin = use.begin() + runs.at(run);
        memory[use.view.allocation].assign(begin, begin + runs.bytes,
                                           {use.view.value, use.view.offset - use.view.from, &use});
      }
    }
}

/// Checks that bytes hold all of a value.
void ContentsCheck::require(const PlanView &view, int64_t value, const std::string &when) {
  memory[view.allocation].visit(
      view.offset, view.offset + view.bytes, [&](Holds &bytes, int64_t begin, int64_t end) {
        if (!bytes.isPartOf(value, view.offset))
          throw Counterexample{subject.describe(view.allocation, begin, end) + " are to hold \"" +
                               plan.values[value].name + "\" " + when + ", and each " +
                               describe(subject, bytes, value)};
      });
}

/// Forgets the contents of all bytes that a loop writes: it may have made any number of trips.
void ContentsCheck::forget(const Loop &loop) {
  for (const Use &use : subject.uses)
    if (int64_t place = int64_t(subject.place[use.dispatch]);
        use.writes && place >= loop.first && place < loop.end)
      memory[use.view.allocation].assign(use.begin(), use.end(), {-1, 0, &use});
}

/// Passes an edge of a loop, before its trips or behind one: checks what the carried bytes hold
/// there, and goes on with what they hold after any number of trips.
void ContentsCheck::pass(const Loop &loop, int64_t CarriedValue::*found, const std::string &when,
                         int64_t CarriedValue::*held) {
  for (const CarriedValue &carried : loop.carried)
    require(carried.view, carried.*found, when);
  forget(loop);
  for (const CarriedValue &carried : loop.carried)
    memory[carried.view.allocation].assign(carried.view.offset,
                                           carried.view.offset + carried.view.bytes,
                                           {carried.*held, carried.view.offset, nullptr});
}

std::string ContentsCheck::run() {
  begin();
  size_t dispatch = 0;
  for (size_t place = 0; place <= plan.commands.size(); ++place) {
    // Inner loops end first and begin last.
    for (size_t i = plan.loops.size(); i-- > 0;)
      if (size_t(plan.loops[i].end) == place)
        pass(plan.loops[i], &CarriedValue::next, "at the end of a trip", &CarriedValue::after);
    for (const Loop &loop : plan.loops)
      if (size_t(loop.first) == place)
        pass(loop, &CarriedValue::init, "before the loop", &CarriedValue::inside);
    if (place == plan.commands.size() || plan.commands[place].kind != Command::Kind::Dispatch)
      continue;
    checkReads(dispatch);
    write(dispatch++);
  }
  checkResults(subject, memory);
  return count(reads, "read") + " of the value meant, " +
         count(subject.entry.results.size(), "result") + " whole at the end" +
         (plan.loops.empty() ? ""
                             : ", and the carried values of " + count(plan.loops.size(), "loop") +
                                   " in each trip");
}

std::string verifier::checkContents(const Subject &subject) { return ContentsCheck(subject).run(); }

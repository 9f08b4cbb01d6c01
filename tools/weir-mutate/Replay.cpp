//===- Replay.cpp - A plan's dispatches, one by one -----------------------===//

#include "Replay.h"

#include <iterator>
#include <map>

using namespace weir;
using namespace weir::mutate;

void mutate::append(Intervals &intervals, int64_t begin, int64_t end) {
  if (!intervals.empty() && intervals.back().second >= begin)
    intervals.back().second = std::max(intervals.back().second, end);
  else
    intervals.emplace_back(begin, end);
}

Intervals mutate::getIntervals(const ByteSlice &slice, int64_t offset) {
  Intervals intervals;
  for (int64_t run = 0; run < slice.count; ++run)
    append(intervals, offset + slice.at(run), offset + slice.at(run) + slice.bytes);
  return intervals;
}

namespace weir::mutate {

/// The contents of a run of bytes, and its latest accesses.
struct Run {
  int64_t value = -1, place = 0; ///< value of the plan, or -1, and the byte where it begins
  size_t writer = SIZE_MAX;      ///< index of a command
  std::vector<size_t> readers;   ///< commands that read it since
};

class Memory {
public:
  template <typename Visit> void visit(int64_t begin, int64_t end, Visit visit) {
    if (begin >= end)
      return;
    split(begin);
    split(end);
    for (auto run = runs.find(begin); run->first < end; ++run)
      visit(run->second, run->first, std::next(run)->first);
  }

private:
  void split(int64_t at) {
    auto next = runs.lower_bound(at);
    if (next->first != at)
      runs.emplace_hint(next, at, std::prev(next)->second);
  }
  std::map<int64_t, Run> runs = {{0, {}}, {INT64_MAX, {}}};
};

} // namespace weir::mutate

std::string Replay::describe(const PlanView &bytes) const {
  return "bytes [" + print(bytes.offset) + ", " + print(bytes.offset + bytes.bytes) + ") of " +
         weir::describeAllocation(plan.allocations[size_t(bytes.allocation)], entry);
}

std::vector<Replay::Use> Replay::getUses(size_t command, bool byCode) {
  const Command &dispatch = plan.commands[command];
  const Kernel &kernel = plan.kernels[size_t(dispatch.kernel)];
  std::vector<Use> uses;
  for (size_t i = 0; i < dispatch.operands.size(); ++i) {
    const PlanOperand &view = dispatch.operands[i];
    Use use{i, &view, {}, {}, {}, byCode || kernel.operands[i].coversAll};
    if (byCode) {
      const Effect &effect = judge.getEffects(artifact, plan, dispatch)[i];
      for (auto [from, to] : {std::pair(&effect.reads, &use.reads), {&effect.writes, &use.writes}})
        for (auto [begin, end] : *from)
          to->emplace_back(view.offset + begin, view.offset + end);
    } else if (view.bytes) {
      Intervals all = {{view.offset, view.offset + view.bytes}};
      use.reads = doesRead(kernel.operands[i].access) ? all : Intervals();
      use.writes = doesWrite(kernel.operands[i].access) ? all : Intervals();
    }
    use.settled = use.writes;
    if (const std::optional<ByteSlice> &slice = kernel.operands[i].slice;
        slice && view.before < 0 && !byCode && !use.writes.empty()) {
      use.isSure = true;
      use.settled = getIntervals(*slice, view.offset);
    }
    uses.push_back(std::move(use));
  }
  // Uses that may leave bytes unwritten come first: the others determine the contents.
  std::sort(uses.begin(), uses.end(), [](const Use &a, const Use &b) {
    return std::pair(a.isSure, a.operand) < std::pair(b.isSure, b.operand);
  });
  return uses;
}

/// Checks the order and visibility of two commands that access the same bytes, one writing.
Replay::Witness Replay::requireOrder(size_t from, size_t to, bool wrote, const PlanView &bytes) {
  ++pairs;
  std::string text = describe(to) + " touches " + describe(bytes) + " that " + describe(from) +
                     (wrote ? " writes" : " reads");
  if (!order.isOrdered(from, to))
    return text + ", and nothing orders the two";
  if (!wrote)
    return std::nullopt;
  Intervals shown;
  std::vector<std::pair<int64_t, int64_t>> views;
  for (size_t i = from; i < to; ++i)
    if (order.isOrdered(from, i) && order.isOrdered(i, to))
      for (const PlanView &view : plan.commands[i].memory)
        if (view.allocation == bytes.allocation && view.bytes)
          views.emplace_back(view.offset, view.offset + view.bytes);
  std::sort(views.begin(), views.end());
  for (auto [begin, end] : views)
    append(shown, begin, end);
  for (auto [begin, end] : shown)
    if (begin <= bytes.offset && bytes.offset + bytes.bytes <= end)
      return std::nullopt;
  return text + ", and no barrier or signal between makes all of them visible";
}

Replay::Witness Replay::touch(Memory &memory, size_t command, const Use &use) {
  Witness problem;
  const Allocation &holder = plan.allocations[size_t(use.view->allocation)];
  bool isConstant = holder.kind == AllocationKind::Constants;
  auto visit = [&](const Intervals &intervals, auto check) {
    for (auto [begin, end] : intervals)
      memory.visit(begin, end, [&](Run &run, int64_t first, int64_t last) {
        if (!problem)
          problem = check(run, PlanView{use.view->allocation, first, last - first});
      });
  };
  visit(use.reads, [&](Run &run, const PlanView &bytes) -> Witness {
    if (run.writer != SIZE_MAX)
      if (Witness witness = requireOrder(run.writer, command, true, bytes))
        return witness;
    ++reads;
    const int64_t value = use.view->before < 0 ? use.view->value : use.view->before;
    if (isConstant || (run.value == value && run.place == use.view->offset - use.view->from))
      return std::nullopt;
    return describe(command) + " reads " + describe(bytes) + " as " + describe(value) +
           ", which hold " + (run.value == value ? "other bytes of " : "") + describe(run.value);
  });
  visit(use.writes, [&](Run &run, const PlanView &bytes) -> Witness {
    if (isConstant ||
        (holder.kind == AllocationKind::Argument && !entry.arguments[size_t(holder.index)].donate))
      return describe(command) + " writes " + describe(bytes) + ", which is not donated";
    if (run.writer != SIZE_MAX && run.writer != command)
      if (Witness witness = requireOrder(run.writer, command, true, bytes))
        return witness;
    for (size_t reader : run.readers)
      if (reader != command)
        if (Witness witness = requireOrder(reader, command, false, bytes))
          return witness;
    return std::nullopt;
  });
  return problem;
}

/// Searches for carried bytes that hold something else at an edge of a loop.
Replay::Witness Replay::findHeld(std::vector<Memory> &memory, const HeldValue &held) {
  Witness problem;
  const PlanView &view = held.view;
  memory[size_t(view.allocation)].visit(
      view.offset, view.offset + (held.isFlag ? 1 : view.bytes),
      [&](Run &run, int64_t begin, int64_t end) {
        if (!problem && (run.value != held.value || run.place != view.offset))
          problem = "at the edge of a loop " +
                    describe(PlanView{view.allocation, begin, end - begin}) + " hold " +
                    describe(run.value) + " instead of " + describe(held.value);
      });
  return problem;
}

Replay::Witness Replay::replay(bool byCode) {
  std::vector<Memory> memory(plan.allocations.size());
  for (size_t i = 0; i < plan.allocations.size(); ++i)
    if (plan.allocations[i].kind == AllocationKind::Argument)
      memory[i].visit(0, plan.allocations[i].bytes, [&](Run &run, int64_t, int64_t) {
        run.value = plan.argumentValues[size_t(plan.allocations[i].index)];
      });
  auto held = unrolled ? unrolled->held.begin() : std::vector<HeldValue>::const_iterator();
  auto passEdges = [&](size_t command) -> Witness {
    for (; unrolled && held != unrolled->held.end() && held->command <= command; ++held)
      if (!byCode || held->isFlag)
        if (Witness witness = findHeld(memory, *held))
          return witness;
    return std::nullopt;
  };
  for (size_t command : dispatches) {
    if (Witness witness = passEdges(command))
      return witness;
    std::vector<Use> uses = getUses(command, byCode);
    for (const Use &use : uses)
      if (Witness witness = touch(memory[size_t(use.view->allocation)], command, use))
        return witness;
    for (const Use &use : uses)
      for (auto [begin, end] : use.reads)
        memory[size_t(use.view->allocation)].visit(
            begin, end, [&](Run &run, int64_t, int64_t) { run.readers.push_back(command); });
    for (const Use &use : uses)
      for (auto [begin, end] : use.writes)
        memory[size_t(use.view->allocation)].visit(begin, end, [&](Run &run, int64_t, int64_t) {
          run.writer = command;
          run.readers.clear();
        });
    // An insertion makes what it leaves of the value before a part of its own.
    for (const Use &use : uses)
      if (use.view->before >= 0 && !use.writes.empty()) {
        Witness problem;
        auto insert = [&](Run &run, int64_t begin, int64_t end) {
          if (run.value == use.view->before && run.place == use.view->offset - use.view->from)
            run.value = use.view->value;
          else if (!byCode && !problem)
            problem = describe(command) + " inserts into " +
                      describe(PlanView{use.view->allocation, begin, end - begin}) + " as " +
                      describe(use.view->before) + ", which hold " + describe(run.value);
        };
        memory[size_t(use.view->allocation)].visit(use.view->offset,
                                                   use.view->offset + use.view->bytes, insert);
        if (problem)
          return problem;
      }
    for (const Use &use : uses)
      for (auto [begin, end] : use.settled)
        memory[size_t(use.view->allocation)].visit(begin, end, [&](Run &run, int64_t, int64_t) {
          bool isSame =
              run.value == use.view->value && run.place == use.view->offset - use.view->from;
          run.value = isSame || use.isSure ? use.view->value : -1;
          run.place = use.view->offset - use.view->from;
        });
  }
  if (Witness witness = passEdges(plan.commands.size()))
    return witness;
  Witness problem;
  for (size_t i = 0; i < plan.allocations.size(); ++i) {
    const Allocation &allocation = plan.allocations[i];
    int64_t result = allocation.kind == AllocationKind::Result     ? allocation.index
                     : allocation.kind == AllocationKind::Argument ? allocation.result
                                                                   : -1;
    if (result < 0)
      continue;
    int64_t value = plan.resultValues[size_t(result)];
    memory[i].visit(0, allocation.bytes, [&](Run &run, int64_t begin, int64_t end) {
      if (!problem && (run.value != value || run.place != 0))
        problem = "in the end " + describe(PlanView{int64_t(i), begin, end - begin}) + " hold " +
                  describe(run.value) + " instead of " + describe(value);
    });
  }
  return problem;
}

Replay::Witness Replay::judgeKernels() {
  for (size_t command : dispatches) {
    const std::string &problem = judge.findProblemInside(artifact, plan, plan.commands[command]);
    if (!problem.empty())
      return "in " + describe(command) + " " + problem;
    const Command &dispatch = plan.commands[command];
    const std::vector<Effect> &effects = judge.getEffects(artifact, plan, dispatch);
    const Trace &trace = judge.getTrace(artifact, plan, dispatch);
    for (size_t i = 0; i < effects.size(); ++i) {
      const PlanOperand &view = dispatch.operands[i];
      for (const Intervals *touched : {&effects[i].reads, &effects[i].writes})
        if (!touched->empty() &&
            (touched->front().first < 0 || touched->back().second > view.bytes))
          return describe(command) + " touches bytes [" + print(touched->front().first) + ", " +
                 print(touched->back().second) + ") of operand " + print(int64_t(i)) +
                 ", which has " + print(view.bytes);
      if (view.offset % trace.alignments[i])
        return describe(command) + " has operand " + print(int64_t(i)) + " at byte " +
               print(view.offset) + ", its code needs a multiple of " + print(trace.alignments[i]);
    }
  }
  return std::nullopt;
}

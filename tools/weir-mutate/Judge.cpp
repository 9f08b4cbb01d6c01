//===- Judge.cpp - Judges a plan by enumeration ---------------------------===//

#include "Judge.h"

#include "Order.h"
#include "weir/Artifact/Error.h"
#include "weir/PtxReader/PtxReader.h"

#include <algorithm>
#include <iterator>
#include <optional>

using namespace weir;
using namespace weir::mutate;

const char *mutate::getName(Class what) {
  static constexpr const char *names[] = {"behavior", "metadata", "equivalent"};
  return names[size_t(what)];
}

static std::string print(int64_t number) { return std::to_string(number); }

static bool doesShare(const PlanView &a, const PlanView &b) {
  return a.allocation == b.allocation &&
         std::max(a.offset, b.offset) < std::min(a.offset + a.bytes, b.offset + b.bytes);
}

static bool doesRead(Access access) { return access == Access::Read || access == Access::Update; }
static bool doesWrite(Access access) { return access == Access::Write || access == Access::Update; }

//===----------------------------------------------------------------------===//
// Inside a dispatch
//===----------------------------------------------------------------------===//

/// Adds an interval, merging it with the last. Needs: it begins no earlier than the last one.
static void append(Intervals &intervals, int64_t begin, int64_t end) {
  if (!intervals.empty() && intervals.back().second >= begin)
    intervals.back().second = std::max(intervals.back().second, end);
  else
    intervals.emplace_back(begin, end);
}

/// Returns the runs of a slice of an operand that begins at byte `offset`.
static Intervals getIntervals(const ByteSlice &slice, int64_t offset) {
  Intervals intervals;
  for (int64_t run = 0; run < slice.count; ++run)
    append(intervals, offset + slice.at(run), offset + slice.at(run) + slice.bytes);
  return intervals;
}

static spv::Module readCode(const Artifact &artifact, const Kernel &kernel) {
  const Bytes &code = artifact.code.at(kernel.code);
  if (!kernel.code.ends_with(".ptx"))
    return spv::Module(code, kernel.code);
  std::string_view text(reinterpret_cast<const char *>(code.data()), code.size());
  std::array<uint32_t, 3> workgroup;
  std::copy(kernel.workgroup.begin(), kernel.workgroup.end(), workgroup.begin());
  auto module = ptx::readEntry(text, kernel.name, workgroup, kernel.code, kernel.workgroupMemory,
                               kernel.tensorMaps);
  if (!module)
    throw Error(kernel.code + ": has no entry \"" + kernel.name + "\"");
  return std::move(*module);
}

Judge::Known &Judge::know(const Artifact &artifact, const Plan &plan, const Command &dispatch) {
  const Kernel &kernel = plan.kernels[size_t(dispatch.kernel)];
  auto profile = std::find_if(artifact.manifest.targets.begin(), artifact.manifest.targets.end(),
                              [&](const Profile &p) { return p.target == plan.target; });
  Key key(artifact.code.at(kernel.code), kernel.name, dispatch.grid, profile->subgroupSize,
          kernel.operands.size());
  std::unique_ptr<Known> &entry = known[key];
  if (entry)
    return *entry;
  auto made = std::make_unique<Known>();
  spv::Module module = readCode(artifact, kernel);
  made->trace = trace(module, kernel.name, dispatch.grid, uint32_t(profile->subgroupSize),
                      uint32_t(kernel.operands.size()), kernel.code, countsChosen);
  sawChosen |= made->trace.hasChosen;
  made->effects.resize(kernel.operands.size());
  for (const Touch &touch : made->trace.touches) {
    if (touch.object >= kernel.operands.size())
      continue;
    Effect &effect = made->effects[touch.object];
    int64_t begin = touch.granule * made->trace.granule, end = begin + made->trace.granule;
    if (touch.reads)
      append(effect.reads, begin, end);
    if (touch.writes)
      append(effect.writes, begin, end);
  }
  entry = std::move(made);
  return *entry;
}

const std::vector<Effect> &Judge::getEffects(const Artifact &artifact, const Plan &plan,
                                             const Command &dispatch) {
  return know(artifact, plan, dispatch).effects;
}

const Trace &Judge::getTrace(const Artifact &artifact, const Plan &plan, const Command &dispatch) {
  return know(artifact, plan, dispatch).trace;
}

namespace {
/// A touch with its place in memory, so that operands that share bytes can be compared.
struct Placed {
  int64_t space, granule;
  const Touch *touch;
};
} // namespace

static std::string describe(const Placed &placed, const Trace &trace) {
  const Touch &touch = *placed.touch;
  return "byte " + print(touch.granule * trace.granule) + " of " +
         (touch.object < trace.bindings ? "operand " + print(touch.object) : "workgroup memory");
}

static std::pair<uint32_t, uint32_t> getPhase(const Touch &touch) {
  return {touch.phase, touch.warpPhase};
}

/// Returns an error among touches of one granule by one workgroup, or "".
static std::string judgeWorkgroup(const Placed *first, const Placed *last, const Trace &trace) {
  for (const Placed *a = first; a != last; ++a) {
    const Touch &one = *a->touch;
    if (!one.writes)
      continue;
    std::string workgroup = " of workgroup " + print(one.workgroup);
    for (const Placed *b = first; b != last; ++b) {
      const Touch &two = *b->touch;
      uint32_t other = two.invocation != one.invocation ? two.invocation
                       : one.isMany                     ? one.other
                                                        : two.other;
      bool isOne = one.invocation == two.invocation && !one.isMany && !two.isMany;
      bool isBetween =
          one.phase != two.phase || (one.warp == two.warp && one.warpPhase != two.warpPhase);
      if (!isBetween && !isOne)
        return "invocations " + print(one.invocation) + " and " + print(other) + workgroup +
               " touch " + describe(*a, trace) +
               (a == b ? "" : ", which is " + describe(*b, trace)) +
               ", one of them writes, and no barrier of the kernel is between";
      if (two.readsByProduct && one.phase < two.phase && one.shown >= two.phase)
        return "a product" + workgroup + " reads " + describe(*b, trace) + ", which invocation " +
               print(one.invocation) + " writes without a fence.proxy.async before the barrier";
      // A read through another operand must see the bytes before the write.
      if (one.object != two.object && two.reads &&
          (isBetween ? getPhase(one) < getPhase(two) : one.firstWrite < two.lastRead))
        return "invocation " + print(one.invocation) + workgroup + " writes " +
               describe(*a, trace) + " before it is read as " + describe(*b, trace);
    }
  }
  return "";
}

static std::string judgeInside(const Trace &trace, const Command &dispatch) {
  if (!trace.problem.empty())
    return trace.problem;
  int64_t granule = trace.granule;
  for (const PlanOperand &operand : dispatch.operands)
    granule = std::min(granule, (granule | operand.offset) & -(granule | operand.offset));
  std::vector<Placed> all;
  for (const Touch &touch : trace.touches) {
    bool isBuffer = touch.object < trace.bindings;
    const PlanOperand *operand = isBuffer ? &dispatch.operands[touch.object] : nullptr;
    int64_t begin = touch.granule * trace.granule + (isBuffer ? operand->offset : 0);
    for (int64_t at = begin; at < begin + trace.granule; at += granule)
      all.push_back(
          {isBuffer ? operand->allocation : -int64_t(touch.object) - 1, at / granule, &touch});
  }
  std::sort(all.begin(), all.end(), [](const Placed &a, const Placed &b) {
    return std::tie(a.space, a.granule, a.touch->workgroup, a.touch->phase) <
           std::tie(b.space, b.granule, b.touch->workgroup, b.touch->phase);
  });
  for (size_t i = 0; i < all.size();) {
    size_t end = i, workgroup = i;
    const Placed *write = nullptr, *early = nullptr;
    for (; end < all.size() && all[end].space == all[i].space && all[end].granule == all[i].granule;
         ++end) {
      if (all[end].touch->writes)
        write = &all[end];
      if (all[end].touch->readsEarly)
        early = &all[end];
      if (all[end].touch->workgroup == all[workgroup].touch->workgroup)
        continue;
      if (std::string problem = judgeWorkgroup(&all[workgroup], &all[end], trace); !problem.empty())
        return problem;
      workgroup = end;
    }
    if (std::string problem = judgeWorkgroup(&all[workgroup], all.data() + end, trace);
        !problem.empty())
      return problem;
    if (write && early)
      return "invocation " + print(write->touch->invocation) + " of workgroup " +
             print(write->touch->workgroup) + " writes " + describe(*write, trace) + ", and " +
             describe(*early, trace) + " is read as if nothing wrote it during the dispatch";
    // Each workgroup has its own workgroup memory.
    if (write && all[i].space >= 0)
      for (size_t k = i; k < end; ++k)
        if (all[k].touch->workgroup != write->touch->workgroup)
          return "workgroup " + print(write->touch->workgroup) + " writes " +
                 describe(*write, trace) + ", and workgroup " + print(all[k].touch->workgroup) +
                 " touches it as " + describe(all[k], trace);
    i = end;
  }
  return "";
}

const std::string &Judge::findProblemInside(const Artifact &artifact, const Plan &plan,
                                            const Command &dispatch) {
  Known &kernel = know(artifact, plan, dispatch);
  // The relative positions of the operands, which determine the result.
  std::vector<int64_t> pattern;
  for (size_t i = 0; i < dispatch.operands.size(); ++i)
    for (size_t k = 0; k < i; ++k)
      if (doesShare(dispatch.operands[i], dispatch.operands[k]))
        pattern.insert(pattern.end(), {int64_t(i), int64_t(k),
                                       dispatch.operands[i].offset - dispatch.operands[k].offset});
  auto [found, isNew] = kernel.problems.try_emplace(pattern);
  if (isNew)
    found->second = judgeInside(kernel.trace, dispatch);
  return found->second;
}

//===----------------------------------------------------------------------===//
// Between dispatches
//===----------------------------------------------------------------------===//

namespace {

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

} // namespace

namespace weir::mutate {

/// Replays a plan's dispatches in recorded order. Each check returns a witness of an error.
class Replay {
public:
  Replay(Judge &judge, const Artifact &artifact, const Plan &plan)
      : judge(judge), artifact(artifact), plan(plan), order(plan),
        entry(*std::find_if(artifact.manifest.entries.begin(), artifact.manifest.entries.end(),
                            [&](const EntrySpec &e) { return e.name == plan.entry; })) {
    for (size_t i = 0; i < plan.commands.size(); ++i)
      if (plan.commands[i].kind == Command::Kind::Dispatch)
        dispatches.push_back(i);
  }

  using Witness = std::optional<std::string>;

  /// Searches for a legal execution with an error, using the effects of the code (`byCode`) or
  /// those stated by the plan.
  Witness replay(bool byCode);
  Witness judgeKernels();
  Witness judgeEffects();
  Witness judgeHazards();
  Witness judgeWaves();
  Witness judgeSlots();
  Witness judgeInPlace();
  Witness judgePermissions();

  size_t pairs = 0, reads = 0;

private:
  struct Use {
    size_t operand;
    const PlanOperand *view;
    Intervals reads, writes; ///< in bytes of the allocation
    Intervals settled;       ///< bytes whose contents the plan states after the dispatch
    bool isSure;             ///< whether all settled bytes are written
  };
  std::vector<Use> getUses(size_t command, bool byCode);
  Witness touch(Memory &memory, size_t command, const Use &use);
  Witness requireOrder(size_t from, size_t to, bool wrote, const PlanView &bytes);
  std::string describe(size_t command) const {
    const Command &dispatch = plan.commands[command];
    auto number = std::lower_bound(dispatches.begin(), dispatches.end(), command);
    return "dispatch " + print(number - dispatches.begin()) + " (@" +
           plan.kernels[size_t(dispatch.kernel)].name + ")";
  }
  std::string describe(const PlanView &bytes) const;
  std::string describe(int64_t value) const {
    return value < 0 ? "nothing" : "\"" + plan.values[size_t(value)].name + "\"";
  }
  const KernelOperand *findUse(int64_t dispatch, int64_t operand) const;

  Judge &judge;
  const Artifact &artifact;
  const Plan &plan;
  Order order;
  const EntrySpec &entry;
  std::vector<size_t> dispatches; ///< indices into the commands
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

Replay::Witness Replay::replay(bool byCode) {
  std::vector<Memory> memory(plan.allocations.size());
  for (size_t i = 0; i < plan.allocations.size(); ++i)
    if (plan.allocations[i].kind == AllocationKind::Argument)
      memory[i].visit(0, plan.allocations[i].bytes, [&](Run &run, int64_t, int64_t) {
        run.value = plan.argumentValues[size_t(plan.allocations[i].index)];
      });
  for (size_t command : dispatches) {
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

//===----------------------------------------------------------------------===//
// Statements of the plan
//===----------------------------------------------------------------------===//

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

Replay::Witness Replay::judgeHazards() {
  Order waits(plan, /*barriers=*/false);
  std::map<int64_t, int64_t> ends; // by queue: end of the last interval
  for (size_t barrier = 0; barrier < plan.commands.size(); ++barrier) {
    const Command &command = plan.commands[barrier];
    if (command.kind != Command::Kind::Barrier)
      continue;
    std::string text = "command " + print(int64_t(barrier)) + " states a hazard of dispatch ";
    for (const Hazard &hazard : command.hazards) {
      text += print(hazard.from) + " with dispatch " + print(hazard.to);
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
      if (first > barrier || second < barrier)
        return text + ", which it does not stand between";
      if (&hazard != &command.hazards.front())
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

//===----------------------------------------------------------------------===//
// The verdict
//===----------------------------------------------------------------------===//

Verdict Judge::judge(const Artifact &artifact, const Plan &plan) {
  Replay byCode(*this, artifact, plan), bySaying(*this, artifact, plan);
  if (auto witness = byCode.judgeKernels())
    return {Class::Behavior, *witness};
  if (auto witness = byCode.replay(/*byCode=*/true))
    return {Class::Behavior, *witness};
  for (auto check : {&Replay::judgeEffects, &Replay::judgeHazards, &Replay::judgeWaves,
                     &Replay::judgeSlots, &Replay::judgeInPlace, &Replay::judgePermissions})
    if (auto witness = (bySaying.*check)())
      return {Class::Metadata, *witness};
  if (auto witness = bySaying.replay(/*byCode=*/false))
    return {Class::Metadata, "by the effects that the plan states, " + *witness};
  uint64_t accesses = 0;
  for (const Command &command : plan.commands)
    if (command.kind == Command::Kind::Dispatch)
      accesses += getTrace(artifact, plan, command).accesses;
  return {Class::Equivalent, "of all " + std::to_string(accesses) +
                                 " loads and stores, none races with one of its dispatch; all " +
                                 std::to_string(byCode.pairs) +
                                 " conflicts of two dispatches are ordered and visible; all " +
                                 std::to_string(byCode.reads) +
                                 " reads and the results find their values; and what the plan "
                                 "states is so"};
}

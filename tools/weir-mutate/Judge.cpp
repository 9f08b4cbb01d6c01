//===- Judge.cpp - Judges a plan by enumeration ---------------------------===//

#include "Judge.h"

#include "Replay.h"
#include "weir/Artifact/Error.h"
#include "weir/PtxReader/PtxReader.h"

#include <iterator>

using namespace weir;
using namespace weir::mutate;

const char *mutate::getName(Class what) {
  static constexpr const char *names[] = {"behavior", "metadata", "equivalent"};
  return names[size_t(what)];
}

//===----------------------------------------------------------------------===//
// Inside a dispatch
//===----------------------------------------------------------------------===//

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
// The verdict
//===----------------------------------------------------------------------===//

/// Returns the plan with its loops written out for none to three trips each: in the third one all
/// is as in the second, so more show nothing new. A loop without a flag makes its own number, or
/// three. Of many loops only the least and the most trips are taken.
static std::vector<UnrolledPlan> writeOut(const Plan &plan) {
  constexpr int64_t most = 3;
  constexpr size_t manyLoops = 3;
  std::vector<std::vector<int64_t>> choices = {{}};
  for (const Loop &loop : plan.loops) {
    std::vector<int64_t> counts = {std::min(loop.trips, most)};
    for (int64_t fewer = 0; loop.flag && fewer < counts.front(); ++fewer)
      if (fewer == 0 || plan.loops.size() <= manyLoops)
        counts.push_back(fewer);
    std::vector<std::vector<int64_t>> longer;
    for (const std::vector<int64_t> &trips : choices)
      for (int64_t count : counts) {
        longer.push_back(trips);
        longer.back().push_back(count);
      }
    choices = std::move(longer);
  }
  std::vector<UnrolledPlan> plans;
  for (const std::vector<int64_t> &trips : choices)
    plans.push_back(unrollLoops(plan, trips));
  return plans;
}

Verdict Judge::judge(const Artifact &artifact, const Plan &plan) {
  const std::vector<UnrolledPlan> written =
      plan.loops.empty() ? std::vector<UnrolledPlan>() : writeOut(plan);
  std::vector<Replay> replays;
  for (const UnrolledPlan &unrolled : written)
    replays.emplace_back(*this, artifact, unrolled.plan, &unrolled);
  Replay stated(*this, artifact, plan);
  if (written.empty())
    replays.emplace_back(*this, artifact, plan);
  size_t pairs = 0, reads = 0;
  if (auto witness = stated.judgeKernels())
    return {Class::Behavior, *witness};
  for (Replay &replay : replays) {
    if (auto witness = replay.replay(/*byCode=*/true))
      return {Class::Behavior, *witness};
    pairs = std::max(pairs, replay.pairs);
    reads = std::max(reads, replay.reads);
  }
  for (auto check : {&Replay::judgeEffects, &Replay::judgeHazards, &Replay::judgeWaves,
                     &Replay::judgeSlots, &Replay::judgeInPlace, &Replay::judgePermissions})
    if (auto witness = (stated.*check)())
      return {Class::Metadata, *witness};
  for (Replay &replay : replays)
    if (auto witness = replay.replay(/*byCode=*/false))
      return {Class::Metadata, "by the effects that the plan states, " + *witness};
  uint64_t accesses = 0;
  for (const Command &command : plan.commands)
    if (command.kind == Command::Kind::Dispatch)
      accesses += getTrace(artifact, plan, command).accesses;
  const std::string trips =
      written.empty() ? "" : "in " + std::to_string(written.size()) + " numbers of trips ";
  return {Class::Equivalent, "of all " + std::to_string(accesses) +
                                 " loads and stores, none races with one of its dispatch; " +
                                 trips + "all " + std::to_string(pairs) +
                                 " conflicts of two dispatches are ordered and visible; all " +
                                 std::to_string(reads) +
                                 " reads and the results find their values; and what the plan "
                                 "states is so"};
}

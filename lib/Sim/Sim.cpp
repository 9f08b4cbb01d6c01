//===- Sim.cpp - An artifact's SPIR-V, run by the book --------------------===//

#include "weir/Sim/Sim.h"

#include "Machine.h"
#include "Trips.h"

using namespace weir;
using namespace weir::sim;

SimStrategy weir::parseSimStrategy(const std::string &name) {
  static constexpr std::pair<const char *, SimStrategy> names[] = {
      {"random", SimStrategy::Random},
      {"recorded", SimStrategy::Recorded},
      {"latest-first", SimStrategy::LatestFirst},
      {"writer-first", SimStrategy::WriterFirst},
      {"split", SimStrategy::Split}};
  std::string known;
  for (auto [other, strategy] : names) {
    if (name == other)
      return strategy;
    known += (known.empty() ? "" : ", ") + std::string(other);
  }
  throw Error("'" + name + "' is not a strategy of the simulator; expected one of " + known);
}

const Profile &weir::chooseSimProfile(const Artifact &artifact, const std::string &target) {
  if (!target.empty()) {
    const Profile *profile = artifact.findProfile(target);
    if (std::string base = getBaseTarget(target); base != "vulkan" && base != "cuda")
      throw Error("the simulator runs code for vulkan and cuda, not for " + target);
    else if (std::vector<const Profile *> all = artifact.findProfiles(base);
             !profile && target == base && !all.empty())
      profile = all.front();
    if (!profile)
      throw Error("the artifact has no code for " + target +
                  "; compile it with --target=" + target);
    return *profile;
  }
  for (const char *base : {"vulkan", "cuda"})
    if (std::vector<const Profile *> all = artifact.findProfiles(base); !all.empty())
      return *all.front();
  throw Error("the artifact has no code for vulkan or cuda, which the simulator runs; compile it "
              "with --target=vulkan or --target=cuda");
}

SimOutcome weir::simulate(const Artifact &artifact, const EntrySpec &entry,
                          const std::vector<Tensor> &arguments, const SimOptions &options) {
  const Profile &profile = chooseSimProfile(artifact, options.target);
  const Plan *plan = artifact.findPlan(entry.name, profile.target);
  if (!plan)
    throw Error("the artifact has no plan of entry '" + entry.name + "' for " + profile.target +
                "; compile it with --target=" + getBaseTarget(profile.target));
  int64_t run = 0, runs = options.steps + 1;
  std::function<void(double)> progress;
  if (options.progress)
    progress = [&](double part) { options.progress((double(run) + part) / double(runs)); };
  const auto [trips, unwritten] = findTrips(artifact, entry, *plan, profile, arguments);
  const UnrolledPlan unrolled = plan->loops.empty() ? UnrolledPlan() : unrollLoops(*plan, trips);
  Machine machine(artifact, entry, plan->loops.empty() ? *plan : unrolled.plan, profile,
                  options.fusesFma, progress);
  for (size_t loop : unwritten)
    machine.reports.add(ReportKind::NeverWritten, {-1, -1, int64_t(loop), 0}, [&] {
      return "never written: the flag of loop " + std::to_string(loop) +
             " is read before a trip, and nothing has written it";
    });
  std::function<void(size_t, size_t, const Bytes &)> onWrite = options.onWrite;
  if (onWrite && !plan->loops.empty())
    onWrite = [&](size_t dispatch, size_t operand, const Bytes &bytes) {
      options.onWrite(unrolled.dispatches[dispatch], operand, bytes);
    };

  std::vector<Tensor> given = arguments;
  SimOutcome outcome;
  for (; run < options.steps; ++run) {
    for (size_t i = 0; i < options.carried.size() && run > 0; ++i)
      if (options.carried[i] >= 0)
        given[size_t(options.carried[i])].data = outcome.results[i].data;
    if (options.getArguments)
      for (auto &[index, value] : options.getArguments(run)) {
        machine.replaceArgument(index);
        given[index] = std::move(value);
      }
    if (run > 0 && findTrips(artifact, entry, *plan, profile, given).trips != trips)
      throw Error("a loop of entry '" + entry.name + "' makes another number of trips in step " +
                  std::to_string(run) + "; run the steps one by one");
    machine.onWrite = run == 0 ? onWrite : nullptr;
    outcome.results = machine.invoke(given, options.strategy, options.seed + uint64_t(run));
    if (options.onEnd)
      options.onEnd(run, outcome.results);
  }
  machine.onWrite = nullptr;
  // The leftovers of a run must not change the next one.
  std::vector<Tensor> again =
      machine.invoke(given, options.strategy, options.seed + uint64_t(options.steps));
  for (size_t i = 0; i < again.size(); ++i) {
    const Bytes &first = outcome.results[i].data, &second = again[i].data;
    auto differs = std::mismatch(first.begin(), first.end(), second.begin()).first;
    if (differs != first.end() && !machine.reports.haveRaces())
      machine.reports.add(ReportKind::Repeat, {int64_t(i), 0, 0, 0}, [&] {
        return "repeat: byte " + std::to_string(differs - first.begin()) + " of result \"" +
               entry.results[i].name +
               "\" differs when the entry runs a second time with the same arguments";
      });
  }
  outcome.reports = machine.reports.print();
  outcome.findings = machine.reports.list();
  return outcome;
}

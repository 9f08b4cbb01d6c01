//===- AgainstGraph.cpp - Code compared with the graph that it is of ------===//

#include "AgainstGraph.h"
#include "Invocation.h"
#include "Output.h"
#include "Profile.h"
#include "Tensors.h"
#include "WithCompiler.h"
#include "weir/Artifact/Floats.h"
#include "weir/Sim/Sim.h"

#include <algorithm>
#include <cmath>

using namespace weir;
using namespace weir::tool;

/// Returns how far a result may be off, as a fraction of its largest magnitude.
static double getTolerance(const Profile &profile) {
  return profile.precision == Precision::Tf32 ? 1e-2 : 1e-4;
}

/// Returns arguments for a run of an entry: floats around 0 in the first, then their magnitudes, then
/// numbers between 0 and 1, and integers of rank 0 that are 1, such as the count of steps.
static std::vector<Tensor> makeArguments(const EntrySpec &entry, uint64_t seed, size_t run) {
  std::vector<Tensor> arguments;
  for (const TensorSpec &spec : entry.arguments) {
    Tensor &tensor = arguments.emplace_back(makeRandom(spec, seed + run));
    if (!isFloat(spec.dtype) && run == 2 && spec.shape.empty())
      tensor.data[0] = 1; // little-endian
    if (run == 0 || !isFloat(spec.dtype))
      continue;
    for (size_t i = 0, count = tensor.data.size() / getDTypeBytes(spec.dtype); i < count; ++i) {
      double magnitude = std::abs(getFloat(tensor, i));
      setFloat(tensor, i, run == 1 ? magnitude : magnitude / (1 + magnitude));
    }
  }
  return arguments;
}

/// Whether a result can differ: it has a finite number, or no element at all.
static bool tells(const Tensor &expected) {
  if (!isFloat(expected.spec.dtype) || expected.data.empty())
    return true;
  size_t count = expected.data.size() / getDTypeBytes(expected.spec.dtype);
  for (size_t i = 0; i < count; ++i)
    if (std::isfinite(getFloat(expected, i)))
      return true;
  return false;
}

/// Whether each result of an entry can differ in one of the runs.
static bool allTell(const std::vector<ReferenceValues> &runs) {
  for (size_t i = 0; i < runs.front().wide.size(); ++i)
    if (std::none_of(runs.begin(), runs.end(),
                     [&](const ReferenceValues &run) { return tells(run.wide[i]); }))
      return false;
  return true;
}

/// Returns the results of the code for `profile`. Errors: `Error` when it cannot run here, or its
/// plan permits an order in which the results may be wrong.
static std::vector<Tensor> runCode(const Artifact &artifact, const std::string &path,
                                   const EntrySpec &entry, const Profile &profile,
                                   const std::vector<Tensor> &arguments,
                                   std::vector<std::string> &reports) {
  if (getBaseTarget(profile.target) == "cpu") {
    Invocation invocation("cpu:" + profile.isa, path, entry, arguments);
    if (invocation.getTarget() != profile.target)
      throw Error("this processor takes the code for " + invocation.getTarget());
    invocation.run();
    return invocation.read();
  }
  SimOptions options;
  options.target = profile.target;
  SimOutcome outcome = simulate(artifact, entry, arguments, options);
  reports = std::move(outcome.reports);
  return std::move(outcome.results);
}

/// Compares the code for one profile with the reference's results of all runs.
static GraphAnswer compareCode(const Artifact &artifact, const std::string &path,
                               const EntrySpec &entry, const Profile &profile,
                               const std::vector<std::vector<Tensor>> &arguments,
                               const std::vector<ReferenceValues> &expected) {
  GraphAnswer answer{entry.name, profile.target, std::nullopt, ""};
  std::vector<std::vector<Tensor>> results;
  try {
    for (const std::vector<Tensor> &given : arguments) {
      std::vector<std::string> reports;
      results.push_back(runCode(artifact, path, entry, profile, given, reports));
      if (!reports.empty()) {
        answer.agrees = false;
        answer.detail = reports.front();
        return answer;
      }
    }
  } catch (const Error &error) {
    answer.detail = error.what();
    return answer;
  }
  double largest = 0;
  std::string untold;
  for (size_t i = 0; i < entry.results.size(); ++i) {
    size_t told = 0, deviate = 0;
    std::string reason;
    for (size_t run = 0; run < results.size(); ++run) {
      const Tensor &wide = expected[run].wide[i];
      if (!tells(wide))
        continue;
      Comparison comparison = compareWithReference(results[run][i], expected[run].written[i], wide,
                                                   getTolerance(profile));
      ++told;
      deviate += !comparison.passes;
      if (comparison.passes)
        largest = std::max(largest, comparison.relativeError);
      else
        reason = comparison.reason;
    }
    if (told > 0 && deviate == told) {
      answer.agrees = false;
      answer.detail =
          "result '" + entry.results[i].name + "' is not what the graph says: " + reason;
      return answer;
    }
    if (told == 0)
      untold += (untold.empty() ? "not compared, since no argument made up for it gave a finite "
                                  "number: '"
                                : ", '") +
                entry.results[i].name + "'";
  }
  if (!untold.empty()) {
    answer.detail = untold;
    return answer;
  }
  answer.agrees = true;
  answer.detail = std::to_string(entry.results.size()) + " results in " +
                  std::to_string(results.size()) + " runs, largest relative error " +
                  printNumber(largest);
  return answer;
}

std::vector<GraphAnswer>
tool::compareWithGraph(const Artifact &artifact, const std::string &path, uint64_t seed,
                       const std::function<void(const std::string &)> &onStep) {
  auto graph = artifact.ir.find("ir/graph.mlir");
  if (graph == artifact.ir.end())
    throw Error(path + " holds no ir/graph.mlir to compare its code with; compile it from the "
                       "graph level");
  std::vector<GraphAnswer> answers;
  for (const EntrySpec &entry : artifact.manifest.entries) {
    onStep("running entry " + entry.name + " on reference");
    std::vector<std::vector<Tensor>> arguments;
    std::vector<ReferenceValues> expected;
    std::string problem;
    try {
      auto reference = makeReference(graph->second, entry.name);
      for (size_t run = 0; run < 2 || (run < 3 && !allTell(expected)); ++run) {
        arguments.push_back(makeArguments(entry, seed, run));
        expected.push_back(reference(arguments.back()));
      }
    } catch (const Error &error) { // such as a bitcast, which f64 has none of
      problem = error.what();
    }
    for (const Plan &plan : artifact.plans) {
      if (plan.entry != entry.name)
        continue;
      if (!problem.empty()) {
        answers.push_back({entry.name, plan.target, std::nullopt, problem});
        continue;
      }
      onStep("running entry " + entry.name + " of " + plan.target);
      answers.push_back(compareCode(artifact, path, entry, *artifact.findProfile(plan.target),
                                    arguments, expected));
    }
  }
  return answers;
}

bool tool::isSmall(const Artifact &artifact) {
  constexpr int64_t maxBytes = 64 << 10;
  constexpr size_t maxDispatches = 32;
  int64_t bytes = 0;
  for (const EntrySpec &entry : artifact.manifest.entries)
    for (const std::vector<TensorSpec> *specs : {&entry.arguments, &entry.results})
      for (const TensorSpec &spec : *specs)
        bytes += getByteSize(spec);
  size_t dispatches = 0;
  for (const Plan &plan : artifact.plans) {
    bytes += plan.arenaBytes;
    dispatches += getDispatches(plan).size();
  }
  return bytes <= maxBytes && dispatches <= maxDispatches;
}

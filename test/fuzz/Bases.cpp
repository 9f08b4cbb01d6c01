//===- Bases.cpp - Small artifacts that are run ---------------------------===//

#include "Bases.h"

#include "Fuzz.h"
#include "weir/Artifact/Floats.h"

#include <algorithm>
#include <cmath>

using namespace weir;
using namespace weir::fuzz;

/// Returns arguments of which no two have the same elements.
static std::vector<Tensor> makeArguments(const EntrySpec &entry) {
  std::vector<Tensor> arguments;
  for (const TensorSpec &spec : entry.arguments) {
    Tensor tensor{spec, Bytes(size_t(getByteSize(spec)))};
    const double number = double(arguments.size() + 1);
    for (size_t i = 0; i < tensor.data.size() / size_t(getDTypeBytes(spec.dtype)); ++i)
      if (isFloat(spec.dtype))
        setFloat(tensor, i, std::fmod(number * 0.618034 + double(i) * 0.754878, 1.0) + 0.25);
      else
        tensor.data[i * size_t(getDTypeBytes(spec.dtype))] = (i + arguments.size()) % 2;
    arguments.push_back(std::move(tensor));
  }
  return arguments;
}

static const EntrySpec &getEntry(const Artifact &artifact, const Plan &plan) {
  return *std::find_if(artifact.manifest.entries.begin(), artifact.manifest.entries.end(),
                       [&](const EntrySpec &each) { return each.name == plan.entry; });
}

std::vector<Bytes> fuzz::run(const Artifact &artifact, const Plan &plan,
                             const std::vector<Tensor> &arguments, SimStrategy strategy,
                             uint64_t seed) {
  SimOptions options;
  options.target = plan.target;
  options.strategy = strategy;
  options.seed = seed;
  SimOutcome outcome = simulate(artifact, getEntry(artifact, plan), arguments, options);
  expect(outcome.reports.empty(), outcome.reports.empty() ? "" : outcome.reports[0].c_str());
  std::vector<Bytes> results;
  for (Tensor &result : outcome.results)
    results.push_back(std::move(result.data));
  return results;
}

static std::vector<Base> readBases() {
  std::vector<std::filesystem::path> paths;
  for (const auto &each : std::filesystem::directory_iterator(WEIR_FUZZ_BASES))
    if (each.path().extension() == ".weir")
      paths.push_back(each.path());
  std::sort(paths.begin(), paths.end());
  std::vector<Base> bases;
  for (const std::filesystem::path &path : paths) {
    Base base{readArtifact(path.string()), {}, {}};
    base.artifact.ir.clear(); // nobody looks at it
    for (const Plan &plan : base.artifact.plans) {
      base.arguments.push_back(makeArguments(getEntry(base.artifact, plan)));
      base.results.push_back(run(base.artifact, plan, base.arguments.back()));
    }
    bases.push_back(std::move(base));
  }
  expect(!bases.empty(), "there are no artifacts in " WEIR_FUZZ_BASES);
  return bases;
}

const std::vector<Base> &fuzz::getBases() {
  static const std::vector<Base> bases = readBases();
  return bases;
}

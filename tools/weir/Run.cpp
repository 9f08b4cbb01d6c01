//===- Run.cpp - weir run -------------------------------------------------===//

#include "CheckValues.h"
#include "Output.h"
#include "Profile.h"
#include "Tensors.h"
#include "WithCompiler.h"
#include "weir/Sim/Sim.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <iostream>

using namespace weir;
using namespace weir::tool;

namespace {
struct RunOptions {
  std::string artifact, entry, device = "vulkan", output, expected, trace;
  std::vector<std::string> inputs;
  std::optional<uint64_t> seed;
  std::optional<double> givenTolerance;
  double tolerance = 1e-5;
  int steps = 1;
  std::string simStrategy;
  std::optional<uint64_t> simSeed;
  bool simFma = false;
  bool checkValues = false;
  bool float64 = false, json = false;
};

struct Outcome {
  std::vector<Tensor> results;
  double seconds = 0;               ///< of the fastest step, on the host's clock
  std::optional<double> deviceTime; ///< seconds between first and last command
  std::vector<std::string> reports; ///< of the simulator
};
} // namespace

/// Runs `step` as often as asked for and keeps the fastest time.
template <typename Step>
static void repeat(const RunOptions &options, Outcome &outcome, Step step) {
  for (int i = 0; i < options.steps; ++i) {
    auto begin = std::chrono::steady_clock::now();
    step();
    std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
    outcome.seconds = i ? std::min(outcome.seconds, took.count()) : took.count();
  }
}

static Outcome runOnReference(const Artifact &artifact, const EntrySpec &entry,
                              std::vector<Tensor> inputs, const RunOptions &options) {
  auto graph = artifact.ir.find("ir/graph.mlir");
  if (graph == artifact.ir.end())
    throw Error(options.artifact + " holds no ir/graph.mlir, which the reference runs; compile "
                                   "it from the graph level");
  std::vector<int64_t> carried = getCarried(entry);
  Outcome outcome;
  repeat(options, outcome, [&] {
    for (size_t i = 0; i < outcome.results.size(); ++i)
      if (carried[i] >= 0)
        inputs[carried[i]] = std::move(outcome.results[i]);
    outcome.results = runGraph(graph->second, entry.name, inputs, options.float64);
  });
  return outcome;
}

static Outcome runOnDevice(const Artifact &artifact, const EntrySpec &entry,
                           const std::vector<Tensor> &inputs, const RunOptions &options) {
  Invocation invocation(options.device, options.artifact, entry, inputs);
  const Plan *plan = artifact.findPlan(entry.name, options.device); // the program loaded it
  std::vector<weir_dispatch_time> times;
  Outcome outcome;
  int step = 0;
  repeat(options, outcome, [&] {
    if (++step == options.steps && !options.trace.empty()) {
      times = invocation.profile(getDispatches(*plan).size());
      return;
    }
    double seconds = invocation.run();
    outcome.deviceTime = outcome.deviceTime ? std::min(*outcome.deviceTime, seconds) : seconds;
  });
  outcome.results = invocation.read();
  if (!options.trace.empty())
    writeTrace(options.trace, *plan, invocation.getDeviceName(), times);
  return outcome;
}

static Outcome runOnSimulator(const Artifact &artifact, const EntrySpec &entry,
                              const std::vector<Tensor> &inputs, const RunOptions &options,
                              Progress &progress) {
  SimOptions sim;
  sim.steps = options.steps;
  sim.carried = getCarried(entry);
  if (options.simSeed)
    sim.seed = *options.simSeed;
  sim.fusesFma = options.simFma;
  if (!options.simStrategy.empty())
    sim.strategy = parseSimStrategy(options.simStrategy);
  sim.progress = [&](double part) {
    progress.begin("running entry " + entry.name + " on sim: " + std::to_string(int(part * 100)) +
                   "%");
  };
  auto begin = std::chrono::steady_clock::now();
  SimOutcome simulated = simulate(artifact, entry, inputs, sim);
  std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
  Outcome outcome;
  outcome.results = std::move(simulated.results);
  outcome.reports = std::move(simulated.reports);
  outcome.seconds = took.count();
  return outcome;
}

static int reportRun(const EntrySpec &entry, const Outcome &outcome,
                     const std::vector<Tensor> &expected, const RunOptions &options) {
  bool passes = outcome.reports.empty();
  Json list = Json::array();
  std::vector<std::string> head = {"result", "shape", "dtype"};
  if (!options.expected.empty())
    head.insert(head.end(), {"largest error", "relative", ""});
  std::vector<std::vector<std::string>> rows;
  for (size_t i = 0; i < outcome.results.size(); ++i) {
    const TensorSpec &spec = outcome.results[i].spec;
    rows.push_back({spec.name, printShape(spec.shape), spec.dtype});
    list.push_back({{"name", spec.name}, {"shape", spec.shape}, {"dtype", spec.dtype}});
    if (options.expected.empty())
      continue;
    Comparison comparison = compare(outcome.results[i], expected[i], options.tolerance);
    passes &= comparison.passes;
    rows.back().insert(rows.back().end(),
                       {printNumber(comparison.largestError), printNumber(comparison.relativeError),
                        comparison.passes ? "ok" : "FAILS: " + comparison.reason});
    list.back()["largest_error"] = toJson(comparison.largestError);
    list.back()["relative_error"] = toJson(comparison.relativeError);
    list.back()["passes"] = comparison.passes;
    if (!comparison.passes)
      list.back()["reason"] = comparison.reason;
  }
  if (options.json) {
    Json json = {{"entry", entry.name}, {"device", options.device}, {"results", list}};
    json["seconds"] = outcome.seconds;
    if (outcome.deviceTime)
      json["device_seconds"] = *outcome.deviceTime;
    if (options.device == "sim")
      json["reports"] = outcome.reports;
    if (!options.expected.empty())
      json["tolerance"] = options.tolerance;
    if (!options.expected.empty() || options.device == "sim")
      json["passes"] = passes;
    printJson(json);
  } else {
    printTable(head, rows);
    std::cout << "time: " << printNumber(outcome.seconds * 1e3) << " ms";
    if (outcome.deviceTime)
      std::cout << ", on the device " << printNumber(*outcome.deviceTime * 1e3) << " ms";
    std::cout << (options.steps > 1 && options.device != "sim"
                      ? " (fastest of " + std::to_string(options.steps) + ")"
                      : "")
              << "\n";
    for (const std::string &report : outcome.reports)
      std::cout << "sim: " << report << "\n";
  }
  return passes ? Done : CheckFailed;
}

static int run(RunOptions options) {
  options.tolerance = options.givenTolerance.value_or(options.tolerance);
  bool isDevice = options.device == "vulkan" || options.device == "cuda";
  bool isSimulator = options.device == "sim";
  if (!isDevice && !isSimulator && options.device != "reference")
    throw Error("--device=" + options.device +
                ": no such device; there are vulkan, cuda, reference and sim");
  if (options.float64 && options.device != "reference")
    throw Error("--f64 is for --device=reference");
  if (!options.trace.empty() && !isDevice)
    throw Error("--profile is for --device=vulkan and cuda");
  if (!isSimulator && (options.simSeed || !options.simStrategy.empty() || options.simFma))
    throw Error("--sim-seed, --sim-strategy and --sim-fma are for --device=sim");
  if (options.checkValues && !isDevice)
    throw Error("--check-values is for --device=vulkan and cuda");
  if (options.checkValues && (!options.expected.empty() || !options.output.empty() ||
                              !options.trace.empty() || options.steps != 1))
    throw Error("--check-values runs once and compares with the reference; leave out --compare, "
                "--output, --profile and --steps");
  if (options.givenTolerance && options.expected.empty() && !options.checkValues)
    throw Error("--tolerance is for --compare and --check-values");
  if (!(options.tolerance >= 0))
    throw Error("--tolerance is below 0");
  checkOutput("--output", options.output);
  checkOutput("--profile", options.trace);
  Progress progress;
  progress.begin("reading " + options.artifact);
  Artifact artifact = readArtifact(options.artifact);
  const EntrySpec &entry = findEntry(artifact, options.entry);
  std::vector<Tensor> inputs = gatherInputs(entry, options.inputs, options.seed, options.float64);
  if (options.checkValues)
    return checkValues(artifact, options.artifact, entry, options.device, inputs, options.tolerance,
                       options.json, progress);
  std::vector<Tensor> expected;
  if (!options.expected.empty())
    expected = readExpected(options.expected, entry.name, entry.results);
  progress.begin("running entry " + entry.name + " on " + options.device);
  Outcome outcome = isDevice      ? runOnDevice(artifact, entry, inputs, options)
                    : isSimulator ? runOnSimulator(artifact, entry, inputs, options, progress)
                                  : runOnReference(artifact, entry, inputs, options);
  if (!options.output.empty())
    writeSafetensors(options.output, outcome.results);
  return reportRun(entry, outcome, expected, options);
}

void tool::addRun(CLI::App &app, Verb &chosen) {
  auto options = std::make_shared<RunOptions>();
  CLI::App *verb = app.add_subcommand("run", "Run an entry of an artifact");
  verb->footer(
      "With --compare, floats pass when every |result - expected| is at most T times the largest\n"
      "finite |expected| of that tensor (times 1 where all expected are 0), NaNs are at the same\n"
      "places and infinities are equal; integers must be equal. Exit 1 when a result does not "
      "pass.\n"
      "Random inputs depend on the seed and the argument's name alone: floats of mean 0 and\n"
      "variance 1, integers 0 or 1. Tensor files are safetensors, tensors named as the entry's.");
  verb->add_option("artifact", options->artifact, "The artifact")->required()->type_name("X.weir");
  verb->add_option("--entry", options->entry, "The entry; needed where there are several")
      ->type_name("E");
  verb->add_option(
          "--device", options->device,
          "vulkan (default): the first Vulkan device; cuda: the first GPU of compute capability "
          "8.0; reference: the graph on the host, "
          "compiled another way; sim: the Vulkan code on the host, in orders that the plan "
          "permits, "
          "every byte watched; exit 1 when something may go wrong")
      ->type_name("DEVICE");
  verb->add_flag(
      "--f64", options->float64,
      "With --device=reference: every float becomes f64; float inputs may be F32 or F64");
  verb->add_option("--input", options->inputs, "Arguments by name, may be repeated")
      ->type_name("A.safetensors");
  verb->add_option("--random-inputs", options->seed,
                   "Random values for every argument that no --input has")
      ->type_name("SEED");
  verb->add_option("--sim-seed", options->simSeed, "With --device=sim: what orders are by; 1")
      ->type_name("SEED");
  verb->add_option("--sim-strategy", options->simStrategy,
                   "With --device=sim: random (default), recorded, latest-first, writer-first or "
                   "split: in which order what may overlap runs")
      ->type_name("STRATEGY");
  verb->add_flag("--sim-fma", options->simFma,
                 "With --device=sim: round a fused multiply-add once; without it twice, as "
                 "lavapipe does");
  verb->add_option("--steps", options->steps,
                   "Invoke so often and report the fastest; a result named as a donated argument "
                   "is that argument of the next step")
      ->check(CLI::Range(1, 1000000).description(""))
      ->type_name("N");
  verb->add_option("--output", options->output, "Write the results here")
      ->type_name("B.safetensors");
  verb->add_option("--compare", options->expected, "Compare the results with these")
      ->type_name("EXPECTED.safetensors");
  verb->add_option("--tolerance", options->givenTolerance,
                   "Largest relative error, 1e-5 by default; with --compare or --check-values")
      ->type_name("T");
  verb->add_flag("--check-values", options->checkValues,
                 "Run one dispatch at a time, compare what each writes with the reference in f64 "
                 "and name the first that departs; exit 1 when one does");
  verb->add_option("--profile", options->trace,
                   "Run the last step one dispatch at a time and write when each ran, for a viewer "
                   "of Chrome traces")
      ->type_name("TRACE.json");
  verb->add_flag("--json", options->json, "Print JSON");
  verb->callback([options, &chosen] { chosen = [options] { return run(*options); }; });
}

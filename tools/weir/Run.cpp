//===- Run.cpp - weir run -------------------------------------------------===//

#include "CheckValues.h"
#include "NotFinite.h"
#include "Output.h"
#include "Profile.h"
#include "Tensors.h"
#include "WithCompiler.h"
#include "weir/Artifact/Floats.h"
#include "weir/Sim/Sim.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <iostream>

using namespace weir;
using namespace weir::tool;

namespace {
struct RunOptions {
  std::string artifact, entry, device, output, expected, trace, batches;
  std::vector<std::string> inputs, settings, printed;
  std::optional<uint64_t> seed;
  std::optional<double> givenTolerance;
  double tolerance = 1e-5;
  std::optional<int> givenSteps;
  std::string simTarget, simStrategy;
  std::optional<uint64_t> simSeed;
  bool simFma = false;
  bool checkValues = false;
  bool float64 = false, json = false;

  /// Returns the device as `Observation` names it.
  std::string getDevice() const { return device == "sim" ? "sim:" + simTarget : device; }
};

struct Outcome {
  std::vector<Tensor> results;
  double seconds = 0;               ///< by the host's clock
  std::optional<double> deviceTime; ///< seconds between first and last command
  std::string timed;                ///< the steps that were timed
  std::vector<std::string> reports; ///< reports of the simulator
};

/// A step whose results are not finite.
struct NotFinite {
  int64_t step;
  std::string what; ///< "loss is NaN"
};

/// The inputs of later steps, and the output printed after each step.
class Steps {
public:
  Steps(const Artifact &artifact, const EntrySpec &entry, const RunOptions &options,
        Progress &progress);

  /// Returns the new arguments of a step, counted from 0.
  std::vector<std::pair<size_t, Tensor>> getArguments(int64_t step) const;

  /// Keeps the results of a step, if they are checked. Throws `NotFinite` if they are not finite.
  void check(int64_t step, const std::function<std::vector<Tensor>()> &read);

  /// Prints a step's scalars if --steps is given; `read` returns a result by index.
  void tell(int64_t step, const std::function<Tensor(size_t)> &read);

  int64_t count = 1;
  std::optional<Batches> batches;
  Json told = Json::array();
  std::string outOfRange;      ///< message on the first step with an index out of range
  std::vector<Tensor> checked; ///< results of the last step that was checked and finite

private:
  const EntrySpec &entry;
  Progress &progress;
  bool tellsAll, isJson, checks;
  std::vector<size_t> scalars; ///< scalar float results that are not arguments of the next step
  std::optional<size_t> status;
  std::vector<std::string> statusTexts; ///< explanations of the status values

  void checkStatus(int64_t step, const Tensor &result);
};
} // namespace

Steps::Steps(const Artifact &artifact, const EntrySpec &entry, const RunOptions &options,
             Progress &progress)
    : entry(entry), progress(progress), tellsAll(options.givenSteps || !options.batches.empty()),
      isJson(options.json), checks(options.checkValues) {
  if (!options.batches.empty())
    batches.emplace(options.batches, entry, options.float64);
  count = options.givenSteps.value_or(batches ? int(batches->size()) : 1);
  std::vector<int64_t> carried = getCarried(entry);
  for (size_t i = 0; i < entry.results.size(); ++i)
    if (entry.results[i].shape.empty() && isFloat(entry.results[i].dtype) && carried[i] < 0)
      scalars.push_back(i);
  for (size_t i = 0; i < entry.results.size(); ++i)
    if (entry.results[i].name == statusName && entry.results[i].dtype == "I32" &&
        entry.results[i].shape.empty())
      status = i;
  for (const auto &[target, notes] : artifact.notes)
    if (const EntryNotes *found = artifact.findNotes(entry.name, target))
      statusTexts = found->checks;
}

void Steps::checkStatus(int64_t step, const Tensor &result) {
  int32_t number = 0;
  std::memcpy(&number, result.data.data(), sizeof(number));
  if (number == 0 || !outOfRange.empty())
    return;
  outOfRange = count > 1 ? "step " + std::to_string(step + 1) + ": " : "";
  outOfRange += number > 0 && size_t(number) <= statusTexts.size()
                    ? statusTexts[size_t(number) - 1]
                    : "an operator uses an index that is out of range";
  outOfRange += "; reads took the nearest element, writes were dropped";
}

std::vector<std::pair<size_t, Tensor>> Steps::getArguments(int64_t step) const {
  // The first batch is already in the initial arguments.
  return batches && step > 0 ? batches->read(size_t(step))
                             : std::vector<std::pair<size_t, Tensor>>();
}

void Steps::check(int64_t step, const std::function<std::vector<Tensor>()> &read) {
  if (!checks)
    return;
  std::vector<Tensor> results = read();
  if (std::string what = findNotFinite(entry, results); !what.empty())
    throw NotFinite{step, what};
  checked = std::move(results);
}

void Steps::tell(int64_t step, const std::function<Tensor(size_t)> &read) {
  if (status)
    checkStatus(step, read(*status));
  if (!tellsAll || scalars.empty())
    return;
  std::string line = "step " + std::to_string(step + 1);
  Json values = Json::object();
  for (size_t i : scalars) {
    Tensor result = read(i);
    char text[32];
    std::snprintf(text, sizeof(text), "%.6g", getFloat(result, 0));
    line += "  " + entry.results[i].name + " " + text;
    values[entry.results[i].name] = toJson(getFloat(result, 0));
  }
  told.push_back({{"step", step + 1}, {"results", values}});
  if (!isJson)
    progress.print(line);
}

/// Calls `run` for every step and keeps the fastest time. Ignores the first step, which warms
/// up, and the last if it is profiled, unless there are no others. `run` returns the device's
/// seconds, if known; `read` returns a result, `readAll` all of them.
template <typename Run, typename Set, typename Read, typename ReadAll>
static void repeat(Steps &steps, bool isProfiled, Outcome &outcome, Run run, Set set, Read read,
                   ReadAll readAll) {
  int64_t first = steps.count > 1 ? 1 : 0;
  int64_t last = steps.count - 1 - (isProfiled && steps.count > 2);
  for (int64_t step = 0; step < steps.count; ++step) {
    for (auto &[index, value] : steps.getArguments(step))
      set(index, std::move(value));
    auto begin = std::chrono::steady_clock::now();
    std::optional<double> onDevice = run(step);
    std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
    steps.check(step, readAll);
    steps.tell(step, read);
    if (step < first || step > last)
      continue;
    outcome.seconds = step == first ? took.count() : std::min(outcome.seconds, took.count());
    if (onDevice)
      outcome.deviceTime = outcome.deviceTime ? std::min(*outcome.deviceTime, *onDevice) : onDevice;
  }
  outcome.timed = first == last ? "step " + std::to_string(first + 1)
                                : "fastest of steps " + std::to_string(first + 1) + " to " +
                                      std::to_string(last + 1);
}

static Outcome runOnReference(const Artifact &artifact, const EntrySpec &entry,
                              std::vector<Tensor> inputs, const RunOptions &options, Steps &steps) {
  auto graph = artifact.ir.find("ir/graph.mlir");
  if (graph == artifact.ir.end())
    throw Error(options.artifact + " holds no ir/graph.mlir, which the reference runs; compile "
                                   "it from the graph level");
  std::vector<int64_t> carried = getCarried(entry);
  Outcome outcome;
  repeat(
      steps, /*isProfiled=*/false, outcome,
      [&](int64_t) -> std::optional<double> {
        for (size_t i = 0; i < outcome.results.size(); ++i)
          if (carried[i] >= 0)
            inputs[carried[i]] = std::move(outcome.results[i]);
        outcome.results = runGraph(graph->second, entry.name, inputs, options.float64);
        return std::nullopt;
      },
      [&](size_t index, Tensor value) { inputs[index] = std::move(value); },
      [&](size_t result) { return outcome.results[result]; }, [&] { return outcome.results; });
  return outcome;
}

static Outcome runOnDevice(const Artifact &artifact, const EntrySpec &entry,
                           const std::vector<Tensor> &inputs, const RunOptions &options,
                           Steps &steps) {
  Invocation invocation(options.device, options.artifact, entry, inputs);
  const Plan *plan = artifact.findPlan(entry.name, invocation.getTarget());
  if (!options.trace.empty() && !plan->loops.empty())
    throw Error("--profile: entry '" + entry.name +
                "' has loops, whose dispatches run many times, and "
                "a trace has each once; measure it by weir bench");
  std::vector<weir_dispatch_time> times;
  Outcome outcome;
  repeat(
      steps, !options.trace.empty(), outcome,
      [&](int64_t step) -> std::optional<double> {
        if (step + 1 < steps.count || options.trace.empty())
          return invocation.run();
        times = invocation.profile(getDispatches(*plan).size());
        return std::nullopt;
      },
      [&](size_t index, Tensor value) { invocation.setArgument(index, std::move(value)); },
      [&](size_t result) { return invocation.read(result); }, [&] { return invocation.read(); });
  outcome.results = invocation.read();
  if (!options.trace.empty())
    writeTrace(options.trace, *plan, invocation.getDeviceName(), times);
  return outcome;
}

static Outcome runOnSimulator(const Artifact &artifact, const EntrySpec &entry,
                              const std::vector<Tensor> &inputs, const RunOptions &options,
                              Steps &steps, Progress &progress) {
  SimOptions sim;
  sim.target = options.simTarget;
  sim.steps = steps.count;
  sim.carried = getCarried(entry);
  if (options.simSeed)
    sim.seed = *options.simSeed;
  sim.fusesFma = options.simFma;
  if (!options.simStrategy.empty())
    sim.strategy = parseSimStrategy(options.simStrategy);
  sim.getArguments = [&](int64_t step) { return steps.getArguments(step); };
  sim.onEnd = [&](int64_t step, const std::vector<Tensor> &results) {
    steps.check(step, [&] { return results; });
    steps.tell(step, [&](size_t result) { return results[result]; });
  };
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
  outcome.timed = "all steps, and the last once more";
  return outcome;
}

/// Prints the elements of a result, one line per row of the last dimension.
static void printValues(const Tensor &tensor) {
  constexpr size_t maxElements = 1000;
  std::vector<std::string> elements = printElements(tensor);
  std::cout << tensor.spec.name << " (" << describe(tensor.spec) << "):";
  size_t row = tensor.spec.shape.empty() ? 1 : size_t(tensor.spec.shape.back());
  for (size_t i = 0; i < std::min(elements.size(), maxElements); ++i)
    std::cout << (i % row ? " " : "\n  ") << elements[i];
  if (elements.size() > maxElements)
    std::cout << "\n  and " << elements.size() - maxElements << " more, which --output=FILE writes";
  std::cout << "\n";
}

static Json toJson(const Tensor &tensor) {
  Json values = Json::array();
  std::vector<std::string> elements = printElements(tensor);
  for (size_t i = 0; i < elements.size(); ++i)
    values.push_back(isFloat(tensor.spec.dtype) ? tool::toJson(getFloat(tensor, i))
                                                : Json::parse(elements[i]));
  return values;
}

static bool isPrinted(const RunOptions &options, const TensorSpec &result) {
  return std::find(options.printed.begin(), options.printed.end(), result.name) !=
         options.printed.end();
}

static int reportRun(const EntrySpec &entry, const Outcome &outcome,
                     const std::vector<Tensor> &expected, const RunOptions &options,
                     const Steps &steps) {
  bool passes = outcome.reports.empty() && steps.outOfRange.empty();
  Json list = Json::array();
  std::vector<std::string> head = {"result", "shape", "dtype"};
  if (!options.expected.empty())
    head.insert(head.end(), {"largest error", "relative", ""});
  std::vector<std::vector<std::string>> rows;
  for (size_t i = 0; i < outcome.results.size(); ++i) {
    const TensorSpec &spec = outcome.results[i].spec;
    rows.push_back({spec.name, printShape(spec.shape), spec.dtype});
    list.push_back({{"name", spec.name}, {"shape", spec.shape}, {"dtype", spec.dtype}});
    if (isPrinted(options, spec))
      list.back()["values"] = toJson(outcome.results[i]);
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
    if (!steps.told.empty())
      json["steps"] = steps.told;
    json["seconds"] = outcome.seconds;
    json["seconds_of"] = outcome.timed;
    if (outcome.deviceTime)
      json["device_seconds"] = *outcome.deviceTime;
    if (options.device == "sim")
      json["reports"] = outcome.reports;
    if (!options.expected.empty())
      json["tolerance"] = options.tolerance;
    if (!steps.outOfRange.empty())
      json["out_of_range"] = steps.outOfRange;
    if (!options.expected.empty() || options.device == "sim" || !steps.outOfRange.empty())
      json["passes"] = passes;
    printJson(json);
  } else {
    printTable(head, rows);
    std::cout << "time: " << printNumber(outcome.seconds * 1e3) << " ms";
    if (outcome.deviceTime)
      std::cout << ", on the device " << printNumber(*outcome.deviceTime * 1e3) << " ms";
    std::cout << " (" << outcome.timed << ")\n";
    for (const Tensor &result : outcome.results)
      if (isPrinted(options, result.spec))
        printValues(result);
    for (const std::string &report : outcome.reports)
      std::cout << "sim: " << report << "\n";
    if (!steps.outOfRange.empty())
      std::cout << "out of range: " << steps.outOfRange << "\n";
  }
  return passes ? Done : CheckFailed;
}

/// Reports a step whose results are not finite; the results of the one before stand.
static int reportNotFinite(const Artifact &artifact, const EntrySpec &entry,
                           std::vector<Tensor> inputs, const RunOptions &options,
                           const Steps &steps, const NotFinite &found, Progress &progress) {
  progress.begin("running step " + std::to_string(found.step + 1) + " on " + options.device +
                 ", one dispatch at a time");
  std::vector<int64_t> carried = getCarried(entry);
  for (size_t i = 0; i < steps.checked.size(); ++i)
    if (carried[i] >= 0)
      inputs[size_t(carried[i])].data = steps.checked[i].data;
  for (auto &[index, value] : steps.getArguments(found.step))
    inputs[index] = std::move(value);
  std::string sentence =
      explainNotFinite(artifact, options.artifact, entry, options.getDevice(), inputs);
  if (sentence.empty())
    sentence = "no dispatch makes it when they run one after the other";
  sentence = "step " + std::to_string(found.step + 1) + ": " + found.what + ": " + sentence;
  if (!options.output.empty() && !steps.checked.empty())
    writeSafetensors(options.output, steps.checked);
  if (options.json) {
    Json json = {{"entry", entry.name}, {"device", options.device}};
    if (!steps.told.empty())
      json["steps"] = steps.told;
    json["not_finite"] = sentence;
    json["passes"] = false;
    printJson(json);
  } else {
    progress.print("not finite: " + sentence);
  }
  return CheckFailed;
}

static int run(RunOptions options) {
  options.tolerance = options.givenTolerance.value_or(options.tolerance);
  bool isDevice = options.device.empty() || tool::isDevice(options.device);
  bool isSimulator = options.device == "sim";
  if (!isDevice && !isSimulator && options.device != "reference")
    throw Error("--device=" + options.device +
                ": no such device; there are vulkan, cuda, cpu, reference and sim");
  if (options.float64 && options.device != "reference")
    throw Error("--f64 is for --device=reference");
  if (!options.trace.empty() && !isDevice)
    throw Error("--profile is for --device=vulkan, cuda and cpu");
  if (!isSimulator && (options.simSeed || !options.simStrategy.empty() || options.simFma))
    throw Error("--sim-seed, --sim-strategy and --sim-fma are for --device=sim");
  if (!isSimulator && !options.simTarget.empty())
    throw Error("--target is for --device=sim; other devices run the code that was compiled for "
                "them");
  bool checksSteps = options.checkValues && (options.givenSteps || !options.batches.empty());
  if (options.checkValues && !isDevice && !isSimulator)
    throw Error("--check-values is for --device=vulkan, cuda, cpu and sim");
  if (options.checkValues && !checksSteps && (!options.output.empty() || !options.printed.empty()))
    throw Error("--check-values without --steps and --batches compares with the reference; leave "
                "out --output and --print");
  if (options.checkValues && (!options.expected.empty() || !options.trace.empty()))
    throw Error("--check-values has its own comparison; leave out --compare and --profile");
  if (options.givenTolerance && options.expected.empty() && (!options.checkValues || checksSteps))
    throw Error("--tolerance is for --compare and --check-values");
  if (!(options.tolerance >= 0))
    throw Error("--tolerance is below 0");
  checkOutput("--output", options.output);
  checkOutput("--profile", options.trace);
  Progress progress;
  progress.begin("reading " + options.artifact);
  Artifact artifact = readArtifact(options.artifact);
  if (options.device.empty())
    options.device = chooseApi(artifact);
  if (isSimulator)
    options.simTarget = chooseSimProfile(artifact, options.simTarget).target;
  const EntrySpec &entry = findEntry(artifact, options.entry);
  for (const std::string &name : options.printed)
    if (std::none_of(entry.results.begin(), entry.results.end(),
                     [&](const TensorSpec &result) { return result.name == name; }))
      throw Error("--print=" + name + ": entry '" + entry.name + "' has no result of that name; " +
                  "it has " + listNames(entry.results));
  Steps steps(artifact, entry, options, progress);
  InputOptions given = {.files = options.inputs,
                        .settings = options.settings,
                        .seed = options.seed,
                        .widen = options.float64,
                        .startState = true};
  if (steps.batches)
    given.files.push_back(steps.batches->getFirst());
  std::vector<Tensor> inputs = gatherInputs(entry, given);
  if (options.checkValues && !checksSteps)
    return checkValues(artifact, options.artifact, entry, options.getDevice(), inputs,
                       options.tolerance, options.json, progress);
  std::vector<Tensor> expected;
  if (!options.expected.empty())
    expected = readExpected(options.expected, entry.name, entry.results);
  progress.begin("running entry " + entry.name + " on " + options.device);
  Outcome outcome;
  try {
    outcome = isDevice      ? runOnDevice(artifact, entry, inputs, options, steps)
              : isSimulator ? runOnSimulator(artifact, entry, inputs, options, steps, progress)
                            : runOnReference(artifact, entry, inputs, options, steps);
  } catch (const NotFinite &found) {
    return reportNotFinite(artifact, entry, std::move(inputs), options, steps, found, progress);
  }
  if (!options.output.empty())
    writeSafetensors(options.output, outcome.results);
  return reportRun(entry, outcome, expected, options, steps);
}

void tool::addRun(CLI::App &app, Verb &chosen) {
  auto options = std::make_shared<RunOptions>();
  CLI::App *verb = app.add_subcommand("run", "Run an entry of an artifact");
  verb->footer(
      "Arguments come from --batches, --input and --set. Arguments of kind state that are not "
      "given are 0, or what the artifact says that they start with; --random-inputs fills in the "
      "others: floats with mean 0 and variance 1, integers 0 or 1, which depend only on the seed "
      "and the argument's name.\n"
      "With --compare, floats pass if every |result - expected| is at most T times the largest "
      "finite |expected| of that tensor (T if all are 0), NaNs are at the same places and "
      "infinities are equal; integers must be equal. Exits with 1 if a result does not pass.\n"
      "Tensor files are safetensors; tensors have the names of the entry's arguments and results.");
  verb->add_option("artifact", options->artifact, "The artifact")->required()->type_name("X.weir");
  verb->add_option("--entry", options->entry, "The entry (default the only one)")->type_name("E");
  verb->add_option(
          "--device", options->device,
          "Where to run (default a GPU for which the artifact has code, else cpu, else vulkan): "
          "vulkan, the first Vulkan device; vulkan:1 or vulkan:NAME, the one of that index or with "
          "that part of a name in `weir devices`; cuda, the first GPU of compute capability 8.0 or "
          "more; cpu, this processor; cpu:x86-64-v3, as if it had no better instruction set; "
          "reference, the graph on the host, "
          "compiled another way; sim, the code for vulkan or cuda on the host in an order that the "
          "plan permits, checking every access: exits with 1 if an order may be wrong")
      ->type_name("DEVICE");
  verb->add_flag(
      "--f64", options->float64,
      "With --device=reference: every float becomes f64; float inputs may be F32 or F64");
  verb->add_option("--input", options->inputs,
                   "Arguments by name from a safetensors file, or one argument from a .npy file; "
                   "may be repeated")
      ->type_name("A.safetensors|NAME=A.npy");
  verb->add_option("--set", options->settings,
                   "The value of an argument of rank 0, such as --set=learning_rate=1e-3; may be "
                   "repeated")
      ->type_name("NAME=NUMBER");
  verb->add_option(
          "--batches", options->batches,
          "A folder of safetensors files, each with the arguments of one step, in the order "
          "of their names, starting again after the last; without --steps each runs once")
      ->type_name("DIR");
  verb->add_option("--random-inputs", options->seed,
                   "Seed of random values for all other arguments (default: no random values)")
      ->type_name("SEED");
  verb->add_option("--steps", options->givenSteps,
                   "Run N times (default 1), print the scalar float results of every step, and "
                   "report the fastest step after the first; a result with the name of a donated "
                   "argument becomes that argument of the next step")
      ->check(CLI::Range(1, 1000000).description(""))
      ->type_name("N");
  verb->add_option("--print", options->printed,
                   "Print the elements of a result after the last step; may be repeated")
      ->type_name("RESULT");
  verb->add_option("--output", options->output, "Write the results of the last step to a file")
      ->type_name("B.safetensors");
  verb->add_option("--compare", options->expected,
                   "Compare the results of the last step with those in a file")
      ->type_name("EXPECTED.safetensors");
  verb->add_option("--tolerance", options->givenTolerance,
                   "Max relative error of --compare and --check-values (default 1e-5)")
      ->type_name("T");
  verb->add_flag("--check-values", options->checkValues,
                 "Run one dispatch at a time, compare the values that each writes with the "
                 "reference in f64 and name the first that deviates; exits with 1 if one does. "
                 "With --steps or --batches: end at the first step whose loss or next parameters "
                 "and state are NaN or infinite, and name the dispatch that made the first; "
                 "--output has the results of the step before");
  verb->add_option("--profile", options->trace,
                   "Run the last step one dispatch at a time and write the time of each as a trace "
                   "for Chrome's viewer or Perfetto")
      ->type_name("TRACE.json");
  verb->add_option("--target", options->simTarget,
                   "With --device=sim: whose code to run, vulkan or cuda (default vulkan if the "
                   "artifact has code for it, else cuda)")
      ->type_name("TARGET");
  verb->add_option("--sim-seed", options->simSeed,
                   "With --device=sim: seed of the schedule (default 1)")
      ->type_name("SEED");
  verb->add_option("--sim-strategy", options->simStrategy,
                   "With --device=sim: order of dispatches and workgroups that may overlap: random "
                   "(default), recorded, latest-first, writer-first or split")
      ->type_name("STRATEGY");
  verb->add_flag("--sim-fma", options->simFma,
                 "With --device=sim: round a fused multiply-add once (default: twice, as lavapipe "
                 "does)");
  verb->add_flag("--json", options->json, "Print JSON");
  verb->callback([options, &chosen] { chosen = [options] { return run(*options); }; });
}

//===- Bench.cpp - weir bench ---------------------------------------------===//
//
// Each round runs the entry, then its dispatches one by one, then a copy, so that all are
// measured in the same state of the machine. The copy is a graph that returns its argument,
// compiled for the artifact's profile and run like the entry.
//
//===----------------------------------------------------------------------===//

#include "Model.h"
#include "Output.h"
#include "Profile.h"
#include "Tensors.h"
#include "WithCompiler.h"

#include <algorithm>
#include <iostream>
#include <map>
#include <memory>

using namespace weir;
using namespace weir::tool;

namespace {
struct BenchOptions {
  std::string artifact, entry, device, copy;
  std::vector<std::string> inputs;
  uint64_t seed = 1;
  int rounds = 10;
  ModelOptions model;
  bool json = false;
};

/// Times of one kind of run over all rounds, in seconds.
struct Times {
  std::vector<double> all;
  double getFastest() const { return *std::min_element(all.begin(), all.end()); }
  double getMedian() const {
    std::vector<double> sorted = all;
    std::sort(sorted.begin(), sorted.end());
    size_t middle = sorted.size() / 2;
    return sorted.size() % 2 ? sorted[middle] : (sorted[middle - 1] + sorted[middle]) / 2;
  }
};

/// A kernel and all dispatches of it.
struct KernelTimes {
  int64_t dispatches = 0, bytes = 0; ///< of all trips
  double seconds = 0;                ///< sum of each dispatch's fastest time
  std::string source;                ///< source of the first dispatch in the graph

  /// Returns the source, and the number of other dispatches.
  std::string printSource() const {
    return source + (dispatches > 1 && !source.empty()
                         ? " and " + std::to_string(dispatches - 1) + " more"
                         : "");
  }
};
} // namespace

/// Returns the bytes that the copy reads and writes: more than caches hold, if a binding may be
/// that large.
static int64_t getCopyBytes(const Profile &profile) {
  constexpr int64_t wanted = int64_t(32) << 20;
  return std::min(wanted, profile.bytesPerBinding) / 4 * 4;
}

/// Returns the copy named by `options`, or compiles one for the profile.
static Invocation getCopy(const Profile &profile, const BenchOptions &options) {
  ScratchFolder folder;
  std::string path = options.copy;
  if (path.empty()) {
    std::string type = "tensor<" + std::to_string(getCopyBytes(profile) / 4) + "xf32>";
    std::string graph = folder.path / "copy.mlir";
    writeText(graph, "func.func @copy(%x: " + type + " {weir.name = \"x\"}) -> (" + type +
                         " {weir.name = \"y\"}) {\n  return %x : " + type + "\n}\n");
    path = folder.path / "copy.weir";
    compileFor(profile, graph, path);
  }
  Artifact artifact = readArtifact(path);
  const EntrySpec &entry = artifact.manifest.entries.front();
  int64_t bytes = getCopyBytes(profile);
  if (entry.arguments.size() != 1 || entry.results.size() != 1 ||
      getByteSize(entry.arguments.front()) != bytes || getByteSize(entry.results.front()) != bytes)
    throw Error("--copy=" + path + ": entry " + entry.name + " is not a copy of " +
                std::to_string(bytes) + " bytes, which weir bench measures");
  return Invocation(options.device, path, entry, gatherInputs(entry, {{}, {}, options.seed}));
}

/// Returns what a model says of each kernel of the plan that runs, all its dispatches together and
/// each with what its events add; none for those of which it can't tell. `runs`: how often each
/// command runs.
static std::map<std::string, std::optional<double>>
predictKernels(const Artifact &artifact, const Plan &plan, const BenchOptions &options,
               const std::vector<int64_t> &runs) {
  const model::Device &device = model::getDevice(options.model.model);
  const Profile &profile = findModelledProfile(artifact, options.artifact, device);
  std::map<std::string, std::optional<double>> predicted;
  for (const ModelledKernel &kernel :
       predictPlan(artifact, plan, profile, device, options.model.ptxas, runs).kernels) {
    std::optional<double> &sum = predicted.try_emplace(kernel.name, 0.0).first->second;
    sum = sum && kernel.prediction
              ? std::optional(*sum + (kernel.prediction->seconds + device.timedLaunch.orZero()) *
                                         double(kernel.dispatches))
              : std::nullopt;
  }
  return predicted;
}

/// Errors: `Error` if the model's device runs another target's code than was measured.
static void checkModel(const Artifact &artifact, const Plan &plan, const BenchOptions &options) {
  const model::Device &device = model::getDevice(options.model.model);
  const Profile &profile = findModelledProfile(artifact, options.artifact, device);
  if (profile.target != plan.target)
    throw Error("--model=" + options.model.model + " computes times of code for " + profile.target +
                ", and --device=" + options.device + " runs that for " + plan.target +
                "; measure it without --model");
}

static double getRate(int64_t bytes, double seconds) { return seconds > 0 ? bytes / seconds : 0; }

static int bench(BenchOptions options) {
  if (!options.model.model.empty() && options.device.empty()) {
    options.model.artifact = options.artifact;
    options.model.entry = options.entry;
    options.model.json = options.json;
    benchModel(options.model);
    return Done;
  }
  const ModelOptions &model = options.model;
  if (model.accesses || !model.grid.empty() || !model.workgroup.empty() || !model.bytes.empty())
    throw Error("--accesses, --grid, --workgroup and --bytes are for --model without --device");
  if (!options.device.empty() && !isDevice(options.device))
    throw Error("--device=" + options.device +
                ": no such device; weir bench measures on vulkan, cuda and cpu");
  Progress progress;
  progress.begin("reading " + options.artifact);
  Artifact artifact = readArtifact(options.artifact);
  if (options.device.empty())
    options.device = chooseApi(artifact);
  const EntrySpec &entry = findEntry(artifact, options.entry);
  requireCode(artifact, options.artifact, options.device);
  Invocation invocation(
      options.device, options.artifact, entry,
      gatherInputs(
          entry,
          {.files = options.inputs, .settings = {}, .seed = options.seed, .startState = true}));
  const Plan *plan = artifact.findPlan(entry.name, invocation.getTarget());
  const Profile &profile = *artifact.findProfile(plan->target);
  std::vector<const Command *> dispatches = getDispatches(*plan);
  std::vector<int64_t> runs(dispatches.size()); // of each dispatch, in a run of the entry
  const bool isModelled = !options.model.model.empty();
  if (isModelled)
    checkModel(artifact, *plan, options);
  progress.begin("making a copy");
  Invocation copy = getCopy(profile, options);
  // As many runs in a queue as take a while, but no more than a person waits for.
  constexpr double queued = 0.02;
  constexpr int64_t most = 50;
  Times whole, copies, behind;
  std::vector<Times> single(dispatches.size());
  for (int round = -1; round < options.rounds; ++round) { // the first warms up
    progress.begin("measuring, round " + std::to_string(round + 1));
    // Behind a copy, caches hold none of the entry's arguments.
    double copied = copy.run();
    double seconds = invocation.run();
    copy.run();
    std::vector<weir_dispatch_time> times = invocation.profile(dispatches.size());
    int64_t many = std::clamp(int64_t(queued / std::max(seconds, 1e-9)), int64_t(1), most);
    double inQueue = invocation.runQueued(many);
    if (round < 0)
      continue;
    whole.all.push_back(seconds);
    copies.all.push_back(copied);
    behind.all.push_back(inQueue);
    for (size_t i = 0; i < times.size(); ++i) {
      single[i].all.push_back((times[i].end - times[i].begin) * 1e-9);
      runs[i] = times[i].runs;
    }
  }

  std::map<std::string, std::optional<double>> predictions;
  if (isModelled) {
    progress.begin("computing the model of " + entry.name);
    // Data may decide the number of trips: the model counts those that were measured.
    std::vector<int64_t> commandRuns(plan->commands.size());
    for (size_t i = 0; i < dispatches.size(); ++i)
      commandRuns[size_t(dispatches[i] - plan->commands.data())] = runs[i];
    predictions = predictKernels(artifact, *plan, options, commandRuns);
  }
  double copyRate = getRate(2 * getCopyBytes(profile), copies.getFastest());
  std::vector<KernelTimes> kernels(plan->kernels.size());
  double sum = 0;
  for (size_t i = 0; i < dispatches.size(); ++i) {
    KernelTimes &kernel = kernels[dispatches[i]->kernel];
    if (kernel.source.empty())
      kernel.source = dispatches[i]->location;
    kernel.dispatches += runs[i];
    kernel.bytes += runs[i] * getBytesMoved(*plan, *dispatches[i]);
    kernel.seconds += single[i].getFastest();
    sum += single[i].getFastest();
  }
  std::vector<size_t> order;
  for (size_t i = 0; i < kernels.size(); ++i)
    if (kernels[i].dispatches)
      order.push_back(i);
  std::sort(order.begin(), order.end(), [&](size_t a, size_t b) {
    return std::pair(-kernels[a].seconds, a) < std::pair(-kernels[b].seconds, b);
  });
  Json list = Json::array();
  std::vector<std::vector<std::string>> rows;
  for (size_t i : order) {
    const KernelTimes &kernel = kernels[i];
    double rate = getRate(kernel.bytes, kernel.seconds);
    double share = sum > 0 ? kernel.seconds / sum : 0, ofCopy = copyRate > 0 ? rate / copyRate : 0;
    rows.push_back({plan->kernels[i].name, std::to_string(kernel.dispatches),
                    printNumber(kernel.seconds * 1e3) + " ms", printNumber(share * 100) + "%",
                    std::to_string(kernel.bytes), printNumber(rate * 1e-9) + " GB/s",
                    printNumber(ofCopy * 100) + "%"});
    std::optional<double> predicted = predictions[plan->kernels[i].name];
    if (isModelled)
      rows.back().insert(
          rows.back().end(),
          {predicted ? printNumber(*predicted * 1e3) + " ms" : "unknown",
           predicted && kernel.seconds > 0 ? printNumber(*predicted / kernel.seconds) : "unknown"});
    rows.back().push_back(kernel.printSource());
    list.push_back({{"kernel", plan->kernels[i].name},
                    {"dispatches", kernel.dispatches},
                    {"seconds", kernel.seconds},
                    {"share", share},
                    {"bytes", kernel.bytes},
                    {"bytes_per_second", rate},
                    {"share_of_copy", ofCopy},
                    {"source", kernel.source}});
    if (isModelled)
      list.back()["predicted_seconds"] = predicted ? Json(*predicted) : Json();
  }
  if (options.json) {
    printJson({{"entry", entry.name},
               {"device", invocation.getDeviceName()},
               {"rounds", options.rounds},
               {"seconds",
                {{"fastest", whole.getFastest()},
                 {"median", whole.getMedian()},
                 {"queued", behind.getFastest()}}},
               {"copy",
                {{"bytes", 2 * getCopyBytes(profile)},
                 {"seconds", copies.getFastest()},
                 {"bytes_per_second", copyRate}}},
               {"kernels", list}});
    return Done;
  }
  std::vector<std::string> titles = {"kernel", "dispatches", "time",     "share",
                                     "bytes",  "rate",       "of a copy"};
  if (isModelled)
    titles.insert(titles.end(), {"predicted", "of measured"});
  titles.push_back("source");
  printTable(titles, rows);
  std::cout << "\nentry " << entry.name << " on " << invocation.getDeviceName() << ": "
            << printNumber(whole.getFastest() * 1e3) << " ms, median "
            << printNumber(whole.getMedian() * 1e3) << " ms of " << options.rounds << ", "
            << printNumber(behind.getFastest() * 1e3)
            << " ms where runs queue; a copy in the same run: " << printNumber(copyRate * 1e-9)
            << " GB/s\n";
  return Done;
}

/// Adds the options of the model.
static void addModelOptions(CLI::App &verb, ModelOptions &options) {
  CLI::Option *model =
      verb.add_option("--model", options.model,
                      "Compute times by the model of a device, such as h100; list shows them. With "
                      "--device, measure and print both")
          ->type_name("DEVICE");
  verb.add_flag("--accesses", options.accesses,
                "With --model: print each load and store, with the bytes that it moves")
      ->needs(model);
  verb.add_option("--ptxas", options.ptxas,
                  "With --model: NVIDIA's assembler, which says how many registers a kernel takes "
                  "(default ptxas)")
      ->needs(model)
      ->type_name("PATH");
  auto addSizes = [&](const char *name, std::vector<int64_t> &sizes, const char *text, int max) {
    verb.add_option(name, sizes, text)
        ->needs(model)
        ->delimiter(',')
        ->expected(1, max)
        ->check(CLI::Range(int64_t(1), int64_t(1) << 40).description(""))
        ->type_name("N,...");
  };
  addSizes("--grid", options.grid, "With PTX: workgroups, up to three sizes", 3);
  addSizes("--workgroup", options.workgroup,
           "With PTX that requires none: invocations of a workgroup, up to three sizes", 3);
  addSizes("--bytes", options.bytes, "With PTX: the bytes behind each parameter", 64);
}

void tool::addBench(CLI::App &app, Verb &chosen) {
  auto options = std::make_shared<BenchOptions>();
  CLI::App *verb = app.add_subcommand("bench", "Time an entry and each of its kernels");
  verb->footer(
      "Kernels are timed one dispatch at a time, the entry as a whole. Times are measured by\n"
      "the device; the fastest round is reported. Bytes are those of the operands that a kernel\n"
      "reads and writes. A copy of up to 32 MiB, measured in each round, shows the memory's\n"
      "bandwidth. Each measurement follows a copy, so that caches hold none of the arguments; "
      "what\n"
      "a kernel leaves there for the next one counts. A run in a queue, of up to 50 that are\n"
      "submitted one behind the other, is timed by the host.\n"
      "With --model and no --device, nothing runs: times are computed from the code, for a device\n"
      "that need not be there. docs/model.md has the columns.");
  verb->add_option("artifact", options->artifact,
                   "The artifact; with --model, a file of PTX will do, too")
      ->type_name("X.weir");
  verb->add_option("--entry", options->entry, "The entry (default the only one)")->type_name("E");
  verb->add_option(
          "--device", options->device,
          "Where to run (default a GPU for which the artifact has code, else cpu, else "
          "vulkan): "
          "vulkan, the first Vulkan device; cuda, the first GPU of compute capability 8.0 or "
          "more; cpu, this processor")
      ->type_name("DEVICE");
  verb->add_option(
          "--input", options->inputs,
          "Arguments by name from a safetensors file, or one argument from a .npy file; may be "
          "repeated. Other arguments are random; those of kind state are 0")
      ->type_name("A.safetensors|NAME=A.npy");
  verb->add_option("--random-inputs", options->seed, "Seed of random arguments (default 1)")
      ->type_name("SEED");
  verb->add_option("--rounds", options->rounds, "Number of rounds to measure (default 10)")
      ->check(CLI::Range(1, 1000000).description(""))
      ->type_name("N");
  verb->add_option("--copy", options->copy,
                   "An artifact that copies a buffer, for comparison (default: compile one)")
      ->type_name("COPY.weir");
  addModelOptions(*verb, options->model);
  verb->add_flag("--json", options->json, "Print JSON");
  verb->callback([options, &chosen] {
    if (options->artifact.empty() && options->model.model != "list")
      throw CLI::RequiredError("artifact");
    chosen = [options] { return bench(*options); };
  });
}

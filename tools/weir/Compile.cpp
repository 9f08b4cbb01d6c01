//===- Compile.cpp - weir compile -----------------------------------------===//

#include "AgainstGraph.h"
#include "CompilerProblems.h"
#include "Import.h"
#include "Output.h"
#include "Pareto.h"
#include "Timing.h"
#include "weir/Artifact/Artifact.h"

#include <cctype>
#include <iostream>
#include <memory>
#include <unistd.h>

using namespace weir;
using namespace weir::tool;

/// Refuses a trace that could not be written at the end.
static void checkTrace(const std::string &path, const CompileOptions &options) {
  if (!path.ends_with(".json"))
    throw Error("--timing=" + path + " is not a .json file; name one that ends in .json");
  refuseOverwriting("--timing", path, {options.input, options.output});
  checkWritable(path);
}

/// Compiles to standard output: a module as text; an artifact unless that is a terminal.
static void compileToOutput(CompileOptions options) {
  if (!options.stopAfter.empty())
    return compile(options);
  if (isatty(STDOUT_FILENO))
    throw Error("--output=-: an artifact is not text for a terminal; name a file, or redirect "
                "standard output");
  ScratchFolder folder;
  options.output = folder.path / "artifact.weir";
  compile(options);
  Bytes bytes = readFile(options.output, "artifact");
  std::cout.write(reinterpret_cast<const char *>(bytes.data()), std::streamsize(bytes.size()));
}

/// Compiles to a file, after checking that it can be written.
static void compileToFile(const CompileOptions &options) {
  if (options.input != "-")
    refuseOverwriting("--output", options.output, {options.input});
  checkWritable(options.output);
  compile(options);
}

/// Refuses options for models of other formats where there is none, and outputs that would
/// overwrite it.
static void checkImport(const CompileOptions &options, const ImportOptions &import) {
  if (!isModel(options.input)) {
    if (!import.shapes.empty() || !import.parameters.empty())
      throw Error((import.shapes.empty() ? "--parameters" : "--shape") + std::string(": ") +
                  options.input + " is a graph, not a model: *.onnx, *.pt2 or *.stablehlo.mlir");
    return;
  }
  if (options.output != "-")
    refuseOverwriting("--output", options.output, {options.input});
  if (!import.parameters.empty())
    refuseOverwriting("--parameters", import.parameters, {options.input, options.output});
}

/// Returns what compares a new artifact with its graph: always, if `when` is that, or if it is
/// small.
static std::function<void(const std::string &)> compareWhenWritten(const std::string &when,
                                                                   bool fromGraph) {
  if (when == "never" || !fromGraph)
    return nullptr;
  return [when](const std::string &path) {
    Artifact artifact = readArtifact(path);
    if (when != "always" && !isSmall(artifact))
      return;
    for (const GraphAnswer &answer : compareWithGraph(artifact, path, 1, [](const auto &) {}))
      if (answer.agrees == false)
        throw Error("the code of entry '" + answer.entry + "' for " + answer.target +
                    " does not compute its graph: " + answer.detail + "; please report this");
  };
}

/// Compiles, then prints what was reported. `timing` is empty, "true" for a table of seconds, or
/// the file of a trace; `pareto` is empty or the file of a curve.
static int runCompile(CompileOptions &options, const ImportOptions &import,
                      const std::string &timing, const std::string &pareto,
                      const std::string &againstGraph) {
  options.onWritten = compareWhenWritten(againstGraph, options.startFrom == "graph");
  std::vector<std::string> reports;
  std::vector<MemoryCurve> curves;
  Timing times;
  if (!timing.empty())
    options.onStep = [&](const CompileStep &step) { times.add(step); };
  if (options.saveLevels == "-")
    throw Error("--save-levels=-: levels are files of a folder; name one");
  bool isTrace = !timing.empty() && timing != "true";
  if (isTrace)
    checkTrace(timing, options);
  if (!pareto.empty()) {
    checkPareto(pareto, {options.input, options.output, timing});
    options.onCurve = [&](const MemoryCurve &curve) { curves.push_back(curve); };
  }
  options.onReport = [&](const std::string &report) { reports.push_back(report); };
  ScratchFolder folder;
  checkImport(options, import);
  {
    Progress progress;
    if (isModel(options.input)) {
      progress.begin("reading " + options.input);
      const std::string graph = folder.path / "graph.mlir";
      importModel(options.input, graph, import);
      options.input = graph;
    }
    options.onProgress = [&](const std::string &what) { progress.begin("compiling: " + what); };
    reportProblems(
        [&] { options.output == "-" ? compileToOutput(options) : compileToFile(options); });
    times.end();
  }
  for (const std::string &report : reports)
    std::cerr << report << "\n";
  if (!pareto.empty())
    writePareto(pareto, curves);
  if (isTrace)
    times.writeTrace(timing);
  else if (!timing.empty())
    times.print(std::cerr);
  return Done;
}

void tool::addCompile(CLI::App &app, Verb &chosen) {
  auto options = std::make_shared<CompileOptions>();
  CLI::App *verb = app.add_subcommand("compile", "Compile a graph to an artifact");
  std::string levels;
  for (const std::string &level : getLevelNames())
    levels += (levels.empty() ? "" : ", ") + level;
  verb->footer("LEVEL is one of " + levels +
               ".\nEvery problem of the input is one line on standard error; "
               "if there is any, nothing is written.");
  verb->add_option(
          "input", options->input,
          "The graph, an .mlir file; - is standard input. Or a model, which the Python package "
          "weir reads: *.onnx, *.pt2, *.stablehlo.mlir")
      ->required()
      ->type_name("IN.mlir");
  verb->add_option("-o,--output", options->output,
                   "The artifact, or the module's text with --stop-after; - is standard output")
      ->required()
      ->type_name("OUT");
  auto import = std::make_shared<ImportOptions>();
  verb->add_option("--shape", import->shapes,
                   "Sizes of an ONNX model's input, x=8,3,224,224, or of what the model calls a "
                   "size, batch=8; may be repeated")
      ->type_name("NAME=SIZES");
  verb->add_option("--parameters", import->parameters,
                   "Write the parameters of a model, for 'weir run --input' (default none)")
      ->type_name("OUT.safetensors");
  verb->add_option(
          "--target", options->targets,
          "Targets, separated by commas (default vulkan): vulkan, cuda or cpu, each with an "
          "optional profile: vulkan:lavapipe (the default of vulkan), vulkan:nvidia, vulkan:rdna2, "
          "vulkan:rdna3, vulkan:gcn, vulkan:xe, vulkan:gen9, vulkan:adreno6, vulkan:adreno7, "
          "vulkan:valhall, vulkan:apple, vulkan:v3d, vulkan:powervr, vulkan:minimum, "
          "vulkan:vulkan13, cuda:sm_80 (the default of cuda), cuda:sm_90, cuda:sm_90a, "
          "cpu:x86-64-v2, "
          "cpu:x86-64-v3 (the default of cpu), "
          "cpu:x86-64-v4, "
          "cpu:aarch64, cpu:native (the best for this processor), or a file that 'weir devices "
          "--emit-profile=FILE' wrote, as vulkan:FILE. With several profiles of one, a device "
          "takes the best that it runs")
      ->delimiter(',')
      ->type_name("TARGET");
  verb->add_option("--entry", options->entries,
                   "A function to compile (default all public ones); may be repeated")
      ->type_name("F");
  verb->add_option("--vjp", options->vjp,
                   "Add entry F.vjp: takes F's arguments and a cotangent for each float result, "
                   "returns F's results and a gradient for each float argument; may be repeated")
      ->type_name("F");
  verb->add_option(
          "--grad", options->grad,
          "Add entry F.grad, for F with one scalar float result: returns F's results and a "
          "gradient for each parameter, or each float argument; may be repeated")
      ->type_name("F");
  verb->add_option("--split", options->split,
                   "Add entries F.forward, which returns F's results and a tape; F.backward_input, "
                   "which returns gradients of arguments that are not parameters; and "
                   "F.backward_weight, which adds gradients of parameters to its arguments; may be "
                   "repeated")
      ->type_name("F");
  verb->add_option("--train", options->train,
                   "Add entry F.step, for F with one scalar float result: takes F's arguments, "
                   "hyperparameters and the optimizer's state, returns F's results and updates the "
                   "parameters and the state in place; OPT is adafactor, adam, adam-amsgrad, "
                   "adamw, adamw-amsgrad, lion, momentum, momentum-damped, nesterov, sgd, or a file "
                   "with an update rule, FILE.mlir; may be repeated")
      ->type_name("OPT:F");
  verb->add_option("--train-group", options->trainGroups,
                   "Give parameters whose names fit a pattern (*, ?, [a-z]) hyperparameters of "
                   "their own, called NAME.learning_rate and so on; may be repeated: the first "
                   "group that fits counts")
      ->type_name("NAME=PATTERN,...");
  verb->add_flag(
      "--accumulate", options->accumulate,
      "Add entry F.accumulate beside F.step: adds the gradients of a microbatch to state "
      "in place; F.step takes the mean over all of them, its own included, whose "
      "number is the hyperparameter microbatches");
  verb->add_flag("--clip-norm", options->clipNorm,
                 "Scale gradients in F.step so that the norm of all together is at most the "
                 "hyperparameter max_norm");
  verb->add_flag("--maximize", options->maximize,
                 "Go up the gradient in F.step, not down: the update rule gets -gradient");
  verb->add_flag("--loss-scale", options->lossScale,
                 "Scale the loss in F.step by a state, against underflow in f16; a step with a "
                 "gradient that is not finite changes nothing but halves the scale");
  verb->add_flag("--ema", options->ema,
                 "Keep a moving average of each parameter as state P.ema, by the hyperparameter "
                 "ema_decay");
  verb->add_flag(
      "--pieces", options->pieces,
      "Add entries F.grad and F.update beside F.step: F.grad returns F's results and the "
      "gradients in one buffer, F.update takes such a buffer and updates; so the "
      "gradients of several processes can be added between the two");
  verb->add_option("--shards", options->shards,
                   "With N > 1, add entries F.update.0 to F.update.N-1 as well, each of which "
                   "updates some of the parameters (default 1); implies --pieces")
      ->check(CLI::Range(1, 1 << 16).description(""))
      ->type_name("N");
  verb->add_option_function<std::string>(
          "--offload", [options](const std::string &) { options->offloadState = true; },
          "Keep the state of parameters in host memory (default none), where F.step reads and "
          "updates it: moments, averages, accumulated gradients and the f32 copies of 16-bit "
          "parameters")
      ->check(CLI::IsMember({"state"}).description(""))
      ->type_name("state");
  verb->add_flag(
      "--check-indices", options->checkIndices,
      "Add to each entry that gathers by computed indices the result weir.status, an i32 "
      "of rank 0: 0, or the number of a gather whose index was out of range and was "
      "clamped; 'weir run' then names the gather and exits with 1");
  verb->add_flag("--require-donation", options->requireDonation,
                 "Fail if no result reuses the bytes of a donated argument");
  verb->add_option(
          "--precision", options->precision,
          "How products of f32 may round their factors (default f32, not at all): tf32, to "
          "10 bits behind the point, for matrix instructions of CUDA; sums stay in f32")
      ->check(CLI::IsMember({"f32", "tf32"}).description(""))
      ->type_name("f32|tf32");
  verb->add_flag("--no-reuse", options->noReuse, "Never let two values share bytes of the arena");
  verb->add_option(
          "--reorder", options->reorder,
          "Reorder dispatches for fewer barriers (default safe): off, never; safe, if the arena "
          "does not grow; N%, if it grows by at most N percent")
      ->type_name("off|safe|N%");
  // CLI11's parser of bytes would accept a sign, too.
  auto checkDigit = [](const std::string &text) {
    return !text.empty() && std::isdigit(uint8_t(text[0])) ? ""
                                                           : text + " is not a number of bytes";
  };
  verb->add_option_function<int64_t>(
          "--memory-limit", [options](int64_t bytes) { options->memoryLimit = bytes; },
          "Max size of an entry's arena, such as 1048576 or 1MiB (default none): dispatches are "
          "reordered, and recomputed instead of keeping their results, until it fits")
      ->transform(CLI::AsSizeValue(/*kb_is_1000=*/true).description(""))
      ->transform(CLI::Validator(checkDigit, ""))
      ->type_name("BYTES");
  verb->add_option(
          "--checkpoint", options->checkpoint,
          "Recompute dispatches instead of keeping their results, without a limit (default "
          "off): off, never; auto, as long as that saves a larger share of the arena "
          "than it adds to the work")
      ->type_name("off|auto");
  auto pareto = std::make_shared<std::string>();
  verb->add_option("--pareto", *pareto,
                   "Write what fewer bytes of the arena cost in work and barriers to FILE.json, "
                   "with a bound that no order beats, and a picture to FILE.svg")
      ->type_name("FILE.json");
  verb->add_option("--start-from", options->startFrom,
                   "Level of the input, checked by its gate (default graph)")
      ->type_name("LEVEL");
  verb->add_option("--stop-after", options->stopAfter,
                   "Write the module at this level instead of an artifact")
      ->type_name("LEVEL");
  verb->add_option("--save-levels", options->saveLevels, "Write each level to DIR/LEVEL.mlir, too")
      ->type_name("DIR");
  auto againstGraph = std::make_shared<std::string>("auto");
  verb->add_option("--against-graph", *againstGraph,
                   "When to run the new code on made-up arguments and compare the results with "
                   "the graph, as 'weir verify --against-graph' does (default auto): always; "
                   "never; auto, if that takes a fraction of a second")
      ->check(CLI::IsMember({"auto", "always", "never"}).description(""))
      ->type_name("auto|always|never");
  // A flag takes no separate word as its value, and is "true" without one.
  auto timing = std::make_shared<std::string>();
  verb->add_flag(
          "--timing", *timing,
          "Print a table of levels and passes on standard error, with seconds and numbers of "
          "ops; --timing=FILE.json writes a trace for Chrome's viewer or Perfetto instead")
      ->type_name("[=FILE.json]");
  verb->callback([options, import, timing, pareto, againstGraph, &chosen] {
    chosen = [options, import, timing, pareto, againstGraph] {
      return runCompile(*options, *import, *timing, *pareto, *againstGraph);
    };
  });
}

//===- Compiler.cpp - The pipelines as a library --------------------------===//
//
// Text in, artifact out. Whatever goes wrong becomes sentences; MLIR's own
// printing, reproducers and stack traces never reach the caller.
//
//===----------------------------------------------------------------------===//

#include "driver/Compiler/Compiler.h"

#include "NoteTaker.h"
#include "Steps.h"
#include "TextScan.h"
#include "dialects/Schedule/Schedule.h"
#include "dialects/Schedule/Segments.h"
#include "mlir/IR/Diagnostics.h"
#include "mlir/IR/Verifier.h"
#include "mlir/Parser/Parser.h"
#include "passes/Passes.h"
#include "passes/Pipelines.h"
#include "passes/Registration.h"
#include "passes/placed/Curve.h"
#include "weir/Artifact/FileKind.h"
#include "weir/Autodiff/Autodiff.h"
#include "weir/Autodiff/Sharding.h"
#include "weir/Autodiff/Training.h"
#include "weir/Kernels/Inline.h"
#include "weir/Target/Bundle.h"
#include "weir/Target/ProfileAttr.h"
#include "weir/Verify/Verify.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/SourceMgr.h"

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <map>
#include <sstream>

using namespace mlir;
using namespace weir;

CompileError::CompileError(std::vector<std::string> problems)
    : Error(problems.empty() ? std::string("compilation failed") : problems.front()),
      problems(std::move(problems)) {}

std::vector<std::string> weir::getLevelNames() {
  std::vector<std::string> names;
  for (const Level &level : getLevels())
    names.push_back(level.name.str());
  return names;
}

static std::string readAll(const std::string &path) {
  std::ostringstream text;
  if (path == "-") {
    text << std::cin.rdbuf();
    return text.str();
  }
  std::error_code status;
  if (std::filesystem::is_directory(path, status))
    throw Error(path + ": is a folder; name an .mlir file, or - for standard input");
  std::ifstream file(path, std::ios::binary);
  if (!file)
    throw Error(path + ": cannot be read: " + std::strerror(errno));
  if (file.peek() != std::ifstream::traits_type::eof())
    text << file.rdbuf();
  if (file.bad())
    throw Error(path + ": reading failed");
  return text.str();
}

/// Returns the name of the input in messages.
static std::string getPlace(const std::string &path) { return path == "-" ? "<stdin>" : path; }

std::string weir::readGraph(const std::string &path) {
  std::string text = readAll(path);
  if (std::string kind = describeNoGraph(findFileKind(text), path); !kind.empty())
    throw Error(getPlace(path) + ": " + kind);
  if (std::optional<std::string> problem = scanText(text, getPlace(path)))
    throw CompileError({*problem});
  return text;
}

static void writeModule(const std::string &path, const std::string &text) {
  if (path != "-")
    return writeText(path, text);
  std::cout << text << std::flush;
  if (!std::cout)
    throw Error("standard output cannot be written");
}

/// Returns advice on lowering another front end's dialect to the graph level.
static std::string getRemedy(StringRef dialect) {
  if (dialect == "stablehlo" || dialect == "chlo" || dialect == "mhlo" || dialect == "vhlo")
    return "; this is StableHLO: lower it to linalg with torch-mlir-opt "
           "--stablehlo-legalize-to-linalg, see docs/front-ends.md";
  if (dialect == "torch" || dialect == "torch_c" || dialect == "onnx")
    return "; lower it to linalg with torch-mlir-opt, see docs/front-ends.md";
  if (dialect == "tosa")
    return "; lower it to linalg with mlir-opt --tosa-to-linalg-pipeline";
  return "";
}

namespace {
/// Turns the diagnostics of one compilation into sentences.
class Problems {
public:
  Problems(MLIRContext &context, StringRef text, StringRef where)
      : text(text), where(where), handler(&context, [this](Diagnostic &diagnostic) {
          if (diagnostic.getSeverity() == DiagnosticSeverity::Error)
            sentences.push_back(describe(diagnostic));
          if (diagnostic.getSeverity() == DiagnosticSeverity::Remark)
            reports.push_back(diagnostic.str());
          return success();
        }) {}

  std::vector<std::string> sentences;
  std::vector<std::string> reports; ///< remarks of passes

private:
  StringRef text, where;
  ScopedDiagnosticHandler handler;

  static FileLineColLoc findPlace(Location location) {
    FileLineColLoc place;
    location->walk([&](Location part) {
      place = dyn_cast<FileLineColLoc>(part);
      return place ? WalkResult::interrupt() : WalkResult::advance();
    });
    return place;
  }

  std::string describe(Diagnostic &diagnostic) const {
    std::string sentence = getPlace(diagnostic.getLocation());
    if (std::string dialect = findUnknownDialect(diagnostic); !dialect.empty())
      return sentence + "unknown dialect '" + dialect +
             "'; the graph level holds linalg, tensor, arith, math, norm and func" +
             getRemedy(dialect);
    sentence += diagnostic.str();
    for (Diagnostic &note : diagnostic.getNotes())
      sentence += "; " + getPlace(note.getLocation()) + note.str();
    // An error may quote all of a long op.
    constexpr size_t maxSize = 2000;
    if (sentence.size() > maxSize)
      sentence = sentence.substr(0, maxSize) + "...";
    return sentence;
  }

  std::string getPlace(Location location) const {
    FileLineColLoc place = findPlace(location);
    if (!place)
      return where.str() + ": ";
    if (place.getLine() == 0) // the module as a whole
      return (place.getFilename().getValue() + ": ").str();
    return (place.getFilename().getValue() + ":" + Twine(place.getLine()) + ":" +
            Twine(place.getColumn()) + ": ")
        .str();
  }

  /// Returns the dialect that an error of the parser did not know, or nothing.
  /// Upstream words this in three ways, each with advice on flags that `weir`
  /// does not have; one of them names the dialect only by the place in the text.
  std::string findUnknownDialect(Diagnostic &diagnostic) const {
    std::string message = diagnostic.str();
    StringRef rest = message;
    if (rest.consume_front("Dialect `"))
      return rest.take_until([](char c) { return c == '\''; }).str();
    if (rest.contains("created with unregistered dialect"))
      return rest.drop_until(llvm::isAlpha)
          .take_while([](char c) { return llvm::isAlnum(c) || c == '_'; })
          .str();
    FileLineColLoc place = findPlace(diagnostic.getLocation());
    if (!rest.starts_with("operation being parsed with an unregistered dialect") || !place)
      return "";
    StringRef after = text;
    for (unsigned i = 1; i < place.getLine(); ++i)
      after = after.split('\n').second;
    // The location points behind the quoted name.
    StringRef before = text.take_front(text.size() - after.size() + place.getColumn() - 1).rtrim();
    before.consume_back("\"");
    return before.substr(before.rfind('"') + 1).split('.').first.take_front(100).str();
  }
};
} // namespace

static const Level &findLevel(const std::string &name, const char *option) {
  std::string known;
  for (const Level &level : getLevels()) {
    if (level.name == name)
      return level;
    known += (known.empty() ? "" : ", ") + level.name.str();
  }
  throw Error(std::string(option) + "=" + name + ": no such level; the levels are " + known);
}

namespace {
/// The options of one target.
struct TargetOptions : PipelineOptions {
  std::string name; ///< of the target in the artifact, "cpu" or "cpu.x86-64-v4"
};
} // namespace

/// Returns "vulkan, vulkan:lavapipe, ... and cpu:PROFILE".
static std::string listTargets() {
  std::string list;
  for (const char *target : {"vulkan", "cuda", "cpu"}) {
    list += list.empty() ? target : std::string(", ") + target;
    for (const std::string &name : getBuiltinProfileNames(target))
      list += std::string(", ") + target + ":" + name;
    if (StringRef(target) == "cpu")
      list += ", cpu:native and cpu:PROFILE";
    else
      list += std::string(", ") + target + ":PROFILE";
  }
  return list;
}

/// Sets the profile's name or path, its target and, as the name, the name of the profile.
static void setTarget(TargetOptions &options, const std::string &target) {
  auto [api, name] = StringRef(target).split(':');
  if (api != "vulkan" && api != "cuda" && api != "cpu")
    throw Error("--target=" + target + ": no such target; there are " + listTargets());
  options.target = api.str();
  options.profile = !name.empty()   ? name.str()
                    : api == "cuda" ? "sm_80"
                    : api == "cpu"  ? "x86-64-v3"
                                    : "lavapipe";
  Profile profile = loadProfile(options.profile);
  if (profile.target != api)
    throw Error("--target=" + target + ": profile " + profile.name + " is of target " +
                profile.target);
  if (options.precision == "tf32" && !profile.matrixTile)
    throw Error("--precision=tf32: profile " + profile.name + " of target " + profile.target +
                " has no instructions on matrices of tf32; compile for cuda with a profile that "
                "has a matrix_tile, or leave the option out");
  options.name = profile.name;
}

/// Returns `name` as a part of a file name.
static std::string makeFileName(std::string name) {
  for (char &letter : name)
    if (!llvm::isAlnum(letter) && !StringRef("_.$-").contains(letter))
      letter = '-';
  return name;
}

/// Returns `shared` for each target, in the order of their names. Profiles for one kind of device
/// stay in their order.
static std::vector<TargetOptions> readTargets(const std::vector<std::string> &names,
                                              const PipelineOptions &shared) {
  std::map<std::string, std::vector<TargetOptions>> kinds;
  for (const std::string &name : names) {
    TargetOptions options{shared, ""};
    setTarget(options, name);
    kinds[options.target].push_back(options);
  }
  std::vector<TargetOptions> targets;
  llvm::StringSet<> seen;
  for (auto &[kind, profiles] : kinds)
    for (TargetOptions &options : profiles) {
      std::string profile = std::exchange(options.name, kind);
      if (profiles.size() > 1)
        options.name += "." + makeFileName(profile);
      if (!seen.insert(options.name).second)
        throw Error("--target has two profiles of " + kind + " called " + profile +
                    "; in an artifact each has a name of its own");
      targets.push_back(options);
    }
  return targets;
}

namespace {
/// One --train option.
struct Training {
  std::string function;
  std::string rule, text; ///< name or path of the update rule, and its text
};
} // namespace

static std::vector<Training> readTraining(const std::vector<std::string> &options) {
  std::vector<Training> trainings;
  for (const std::string &option : options) {
    auto [rule, function] = StringRef(option).rsplit(':');
    if (function.empty())
      throw Error("--train=" + option + " names no function; it is OPT:F, such as sgd:" + option);
    Training training{function.str(), rule.str(), ""};
    if (std::optional<StringRef> known = autodiff::findUpdateRule(rule))
      training.text = known->str();
    else if (rule.ends_with(".mlir"))
      training.text = readGraph(training.rule);
    else
      throw Error("--train=" + option + ": no such optimizer; there are " +
                  llvm::join(autodiff::getUpdateRuleNames(), ", ") +
                  ", and files of update rules, FILE.mlir:F");
    trainings.push_back(std::move(training));
  }
  return trainings;
}

/// Reads --train-group options.
static std::vector<autodiff::ParameterGroup> readGroups(const std::vector<std::string> &options) {
  std::vector<autodiff::ParameterGroup> groups;
  for (const std::string &option : options) {
    auto [name, patterns] = StringRef(option).split('=');
    auto refuse = [&](const std::string &what) {
      throw Error("--train-group=" + option + " " + what);
    };
    if (name.empty() || patterns.empty())
      refuse("is no NAME=PATTERN,PATTERN, such as no_decay=*.bias,norm*");
    for (const autodiff::ParameterGroup &other : groups)
      if (other.name == name)
        refuse("names group " + name.str() + " a second time");
    groups.push_back({name.str(), {}});
    for (StringRef pattern : llvm::split(patterns, ',')) {
      llvm::Expected<llvm::GlobPattern> glob = llvm::GlobPattern::create(pattern);
      if (!glob)
        refuse("has the pattern '" + pattern.str() +
               "', which is none: " + llvm::toString(glob.takeError()));
      groups.back().patterns.push_back(std::move(*glob));
    }
  }
  return groups;
}

static autodiff::TrainOptions readTrainOptions(const CompileOptions &options) {
  autodiff::TrainOptions train;
  train.groups = readGroups(options.trainGroups);
  train.accumulates = options.accumulate;
  train.clipsNorm = options.clipNorm;
  train.maximizes = options.maximize;
  train.scalesLoss = options.lossScale;
  train.averages = options.ema;
  train.offloadsState = options.offloadState;
  train.inPieces = options.pieces || options.shards > 1;
  train.shards = options.shards;
  return train;
}

/// Returns the module of a text, or null after a diagnostic. `where` names the text there.
static OwningOpRef<ModuleOp> parse(const std::string &text, const std::string &where,
                                   MLIRContext &context) {
  llvm::SourceMgr sources;
  sources.AddNewSourceBuffer(llvm::MemoryBuffer::getMemBufferCopy(text, where), llvm::SMLoc());
  return parseSourceFile<ModuleOp>(sources, &context);
}

/// Adds the entries that are derived from functions. Adds their names to `entries` if
/// entries were chosen by name.
static void addDerived(ModuleOp module, const CompileOptions &options,
                       const std::vector<Training> &trainings, const std::string &input,
                       std::vector<std::string> &entries, const Problems &problems) {
  std::vector<std::string> missing;
  auto add = [&](const std::string &name, const char *option, auto addTo) {
    auto function = module.lookupSymbol<func::FuncOp>(name);
    if (!function) {
      missing.push_back(input + ": no function '" + name + "' for " + option);
      return;
    }
    auto added = addTo(function);
    if (failed(added) || options.entries.empty())
      return;
    if constexpr (std::is_same_v<decltype(added), FailureOr<func::FuncOp>>)
      entries.push_back(added->getName().str());
    else
      for (func::FuncOp entry : *added)
        entries.push_back(entry.getName().str());
  };
  for (const std::string &name : options.vjp)
    add(name, "--vjp", autodiff::addVjpEntry);
  for (const std::string &name : options.grad)
    add(name, "--grad", autodiff::addGradEntry);
  for (const std::string &name : options.split)
    add(name, "--split", autodiff::addSplitEntries);
  autodiff::TrainOptions train = readTrainOptions(options);
  for (const Training &training : trainings)
    add(training.function, "--train",
        [&](func::FuncOp function) -> FailureOr<SmallVector<func::FuncOp>> {
          OwningOpRef<ModuleOp> rule = parse(training.text, training.rule, *module.getContext());
          if (!rule)
            return failure();
          return autodiff::addTrainEntries(function, *rule, train);
        });
  llvm::append_range(missing, problems.sentences);
  if (!missing.empty())
    throw CompileError(missing);
}

/// Maps a function to the meaning of the numbers in its status.
using Checks = std::map<std::string, std::vector<std::string>>;

/// Gives functions a result that tells which index left its tensor.
static Checks addChecks(ModuleOp module, const Problems &problems) {
  PassManager manager(module.getContext());
  manager.addNestedPass<func::FuncOp>(createCheckIndicesPass());
  if (failed(manager.run(module)))
    throw CompileError(problems.sentences);
  Checks checks;
  for (auto function : module.getOps<func::FuncOp>())
    if (auto texts = dyn_cast_or_null<ArrayAttr>(function->removeAttr(schedule::checksAttrName)))
      for (auto text : texts.getAsRange<StringAttr>())
        checks[function.getName().str()].push_back(text.str());
  return checks;
}

/// Returns the checks of an entry, or of the function that it is derived from: F for F.step.
static std::vector<std::string> findChecks(const Checks &checks, std::string name) {
  while (true) {
    if (auto found = checks.find(name); found != checks.end())
      return found->second;
    size_t dot = name.rfind('.');
    if (dot == std::string::npos)
      return {};
    name.resize(dot);
  }
}

/// Keeps the chosen entries and the functions that they use.
static void selectEntries(ModuleOp module, const std::vector<std::string> &entries,
                          const std::string &input) {
  std::string known;
  std::vector<std::string> problems;
  llvm::SmallVector<func::FuncOp> others;
  llvm::StringSet<> found;
  for (auto function : module.getOps<func::FuncOp>()) {
    bool wanted = entries.empty() ? function.isPublic()
                                  : llvm::is_contained(entries, function.getName().str());
    if (function.isPublic())
      known += (known.empty() ? "" : ", ") + function.getName().str();
    if (!wanted) {
      others.push_back(function);
      continue;
    }
    found.insert(function.getName());
    if (function.isExternal())
      problems.push_back(input + ": function '" + function.getName().str() +
                         "' has no body; give it one, or name other entries with --entry");
  }
  for (const std::string &entry : entries)
    if (!found.contains(entry))
      problems.push_back(input + ": no function '" + entry + "'; the module has " +
                         (known.empty() ? "none" : known));
  if (entries.empty() && found.empty())
    problems.push_back(input + ": no public function to compile");
  if (!problems.empty())
    throw CompileError(problems);
  // A function that an entry uses stays: the gate decides about it.
  for (func::FuncOp function : others) {
    function.setPrivate();
    if (SymbolTable::symbolKnownUseEmpty(function, module))
      function.erase();
  }
}

static std::string print(ModuleOp module) {
  std::string text;
  llvm::raw_string_ostream stream(text);
  module->print(stream, OpPrintingFlags().enableDebugInfo(true, /*prettyForm=*/false));
  stream << "\n";
  return text;
}

namespace {
/// A parsed text. The text must outlive it.
struct Graph {
  Graph(const std::string &text, const std::string &path);

  std::string where;
  MLIRContext context;
  Problems problems;
  OwningOpRef<ModuleOp> module;
};
} // namespace

static DialectRegistry getRegistry() {
  DialectRegistry registry;
  registerEverything(registry);
  return registry;
}

Graph::Graph(const std::string &text, const std::string &path)
    : where(getPlace(path)), context(getRegistry(), MLIRContext::Threading::DISABLED),
      problems(context, text, where) {
  context.printOpOnDiagnostic(false);
  context.printStackTraceOnDiagnostic(false);
  module = parse(text, where, context);
  if (!module)
    throw CompileError(problems.sentences);
}

/// Runs the passes that `add` adds to a manager on the module of `graph`.
static void runPasses(Graph &graph, function_ref<void(PassManager &)> add) {
  PassManager manager(&graph.context);
  add(manager);
  if (failed(manager.run(*graph.module)))
    throw CompileError(graph.problems.sentences);
}

std::string weir::deriveVjp(const std::string &text, const std::string &path,
                            const std::string &entry) {
  Graph graph(text, path);
  auto function = graph.module->lookupSymbol<func::FuncOp>(entry);
  if (!function)
    throw CompileError({graph.where + ": no function '" + entry + "' for --entry"});
  if (hasCollectives(function))
    throw CompileError({graph.where + ": function '" + entry +
                        "' exchanges values with other ranks, and here is one; check the functions "
                        "between its collectives"});
  if (!graph.module->lookupSymbol(entry + ".vjp")) {
    autodiff::unfreeze(function); // differences are taken by all arguments
    if (failed(autodiff::addVjpEntry(function)))
      throw CompileError(graph.problems.sentences);
    runPasses(graph, [](PassManager &manager) { addGradientPasses(manager); });
  }
  return print(*graph.module);
}

/// Makes a function return the values that its kernels make, and puts their bodies in their places.
static void exposeFunction(func::FuncOp function) {
  SmallVector<Value> values = inlineKernels(function);
  llvm::erase_if(values, [](Value value) {
    return cast<RankedTensorType>(value.getType()).getNumElements() == 0;
  });
  Operation *terminator = function.getBody().front().getTerminator();
  terminator->insertOperands(terminator->getNumOperands(), values);
  SmallVector<Type> types(terminator->getOperandTypes());
  SmallVector<DictionaryAttr> attributes;
  function.getAllResultAttrs(attributes);
  attributes.resize(types.size(), DictionaryAttr::get(function.getContext()));
  function.setType(FunctionType::get(function.getContext(), function.getArgumentTypes(), types));
  function.setAllResultAttrs(attributes);
}

/// Returns a function with its exposed values, in a text of its own.
static ExposedStep exposeSegment(ModuleOp module, StringRef name) {
  auto function = module.lookupSymbol<func::FuncOp>(name);
  exposeFunction(function);
  OwningOpRef<ModuleOp> alone = ModuleOp::create(module.getLoc());
  (*alone)->setAttrs(module->getAttrDictionary());
  (*alone)->removeAttr(schedule::programsAttrName);
  alone->push_back(function.clone());
  ExposedStep step;
  step.function = name.str();
  step.text = print(*alone);
  return step;
}

/// Returns the steps of an entry with loops, as weir-split-loops describes them.
static std::vector<ExposedStep> exposeSteps(ModuleOp module, ArrayAttr steps) {
  auto getNumbers = [](DictionaryAttr step, StringRef name) {
    return step.getAs<DenseI64ArrayAttr>(name).asArrayRef().vec();
  };
  std::vector<ExposedStep> exposed;
  for (auto step : steps.getAsRange<DictionaryAttr>()) {
    if (auto name = step.getAs<StringAttr>("segment")) {
      exposed.push_back(exposeSegment(module, name));
      exposed.back().arguments = getNumbers(step, "arguments");
      exposed.back().results = getNumbers(step, "results");
      continue;
    }
    ExposedStep loop;
    for (auto carried : step.getAs<ArrayAttr>("carried").getAsRange<DenseI64ArrayAttr>())
      loop.carried.push_back({carried[0], carried[1], carried[2], carried[3]});
    loop.steps = exposeSteps(module, step.getAs<ArrayAttr>("steps"));
    exposed.push_back(std::move(loop));
  }
  return exposed;
}

ExposedGraph weir::exposeValues(const std::string &text, const std::string &entry,
                                const Profile &profile) {
  Graph graph(text, "ir/graph.mlir");
  setProfile(*graph.module, profile);
  PipelineOptions options;
  options.profile.clear();
  for (const Level &level : getLevels()) {
    // Only the gradient level adds the entries of a split backward.
    if (level.name == "kernels")
      selectEntries(*graph.module, {entry}, graph.where);
    runPasses(graph, [&](PassManager &manager) { level.addPasses(manager, options); });
    if (level.name == "kernels")
      break;
  }
  ExposedGraph exposed;
  for (NamedAttribute program : getPrograms(*graph.module)) {
    if (program.getName() != entry)
      continue;
    auto attributes = cast<DictionaryAttr>(program.getValue());
    exposed.steps = exposeSteps(*graph.module, attributes.getAs<ArrayAttr>("steps"));
    exposed.numBetween = attributes.getAs<IntegerAttr>("values").getInt();
    return exposed;
  }
  exposeFunction(graph.module->lookupSymbol<func::FuncOp>(entry));
  exposed.steps.push_back({print(*graph.module), entry, {}, {}, {}, {}});
  return exposed;
}

/// Verifies the artifact in a file that does not have its final name yet.
static void checkWritten(const std::string &path) {
  for (const Claim &claim : verify(readArtifact(path)))
    if (!claim.holds)
      throw Error("the plan of entry '" + claim.entry + "' does not verify: " + claim.what + ": " +
                  claim.detail + "; please report this");
}

/// Writes the text of each level to a file of the level's name in a folder.
static void saveLevels(const std::string &folder,
                       ArrayRef<std::pair<std::string, std::string>> levels) {
  std::error_code status;
  std::filesystem::create_directories(folder, status);
  for (auto &[level, text] : levels)
    std::filesystem::create_directories(std::filesystem::path(folder + "/" + level).parent_path(),
                                        status);
  if (status)
    throw Error(folder + ": cannot be made a folder: " + status.message());
  for (auto &[level, text] : levels)
    writeText(folder + "/" + level + ".mlir", text);
}

//===----------------------------------------------------------------------===//
// compile
//===----------------------------------------------------------------------===//

static const Level &findStop(const CompileOptions &options, const Level &start) {
  if (options.stopAfter.empty())
    return getLevels().back();
  const Level &stop = findLevel(options.stopAfter, "--stop-after");
  if (&stop < &start)
    throw Error("--stop-after=" + options.stopAfter +
                " comes before --start-from=" + options.startFrom);
  return stop;
}

/// Returns the options of the pipelines that all targets share.
static PipelineOptions readPipelineOptions(const CompileOptions &options) {
  PipelineOptions pipeline;
  pipeline.noReuse = options.noReuse;
  pipeline.precision = options.precision;
  pipeline.requireDonation = options.requireDonation;
  if (!options.reorder.empty()) {
    pipeline.reorder = options.reorder;
    if (failed(parseReorder(options.reorder)))
      throw Error("--reorder=" + options.reorder +
                  " is none of off, safe, and by how much the arena may grow, such as 10%");
  }
  if (options.memoryLimit) {
    pipeline.memoryLimit = *options.memoryLimit;
    if (*options.memoryLimit < 1)
      throw Error("--memory-limit=" + std::to_string(*options.memoryLimit) +
                  " is no number of bytes, 1 or more");
  }
  pipeline.checkpoint = options.checkpoint == "auto";
  if (!pipeline.checkpoint && !options.checkpoint.empty() && options.checkpoint != "off")
    throw Error("--checkpoint=" + options.checkpoint + " is none of off and auto");
  pipeline.curve = bool(options.onCurve);
  return pipeline;
}

/// Whether `level` is the level called `name` or a later one.
static bool isAtOrBehind(const Level &level, const char *name) {
  return &level >= &findLevel(name, "level");
}

/// Refuses options that have no effect with the chosen levels, or contradict each other.
static void checkOptions(const CompileOptions &options, const Level &start, const Level &stop) {
  auto hasNoEffect = [&](const std::string &option, const char *why, const char *has = "has") {
    return option + " " + has + " no effect with --start-from=" + options.startFrom + ": " + why;
  };
  const bool hasGradient = isAtOrBehind(start, "gradient"),
             hasProfile = isAtOrBehind(start, "kernels"), isPlanned = isAtOrBehind(start, "placed");
  const bool derives = !(options.vjp.empty() && options.grad.empty() && options.split.empty() &&
                         options.train.empty());
  const char *planned = "the module's memory is planned already";
  struct Refusal {
    bool applies;
    std::string text;
  };
  const Refusal refusals[] = {
      {hasProfile && options.targets != CompileOptions().targets,
       hasNoEffect("--target=" + llvm::join(options.targets, ","),
                   "the module states its profile already")},
      {!options.stopAfter.empty() && isAtOrBehind(stop, "kernels") && options.targets.size() > 1,
       "--stop-after=" + options.stopAfter + " writes one module, for one target, but " +
           "--target names " + std::to_string(options.targets.size())},
      {hasGradient && derives, hasNoEffect("--vjp, --grad, --split and --train",
                                           "gradients are taken of the graph level", "have")},
      {options.train.empty() && (options.accumulate || options.clipNorm || options.maximize ||
                                 options.lossScale || options.ema || options.offloadState ||
                                 options.pieces || options.shards > 1 || !options.trainGroups.empty()),
       "--train-group, --accumulate, --clip-norm, --maximize, --loss-scale, --ema, --offload, "
       "--pieces and --shards change the entries that --train=OPT:F adds; name one"},
      {options.shards > 1 && (options.clipNorm || options.lossScale),
       "--shards updates some of the parameters by themselves, --clip-norm and --loss-scale need "
       "the gradients of all; leave out one of them"},
      {hasGradient && options.checkIndices,
       hasNoEffect("--check-indices", "indices are clamped already")},
      {hasProfile && !options.precision.empty(),
       hasNoEffect("--precision", "the module states its profile already")},
      {isPlanned && options.noReuse, hasNoEffect("--no-reuse", planned)},
      {isPlanned && options.requireDonation, hasNoEffect("--require-donation", planned)},
      {isPlanned && options.memoryLimit, hasNoEffect("--memory-limit", planned)},
      {isPlanned && options.checkpoint == "auto", hasNoEffect("--checkpoint", planned)},
      {isPlanned && options.onCurve, hasNoEffect("--pareto", planned)},
      {!isAtOrBehind(stop, "placed") && options.onCurve,
       "--pareto has no effect with --stop-after=" + options.stopAfter +
           ": memory is planned at a later level"},
      {isPlanned && !options.reorder.empty(), hasNoEffect("--reorder", planned)},
      {options.noReuse && options.requireDonation,
       "--no-reuse gives every value bytes of its own, --require-donation forbids that; leave out "
       "one of them"},
      {options.noReuse && options.memoryLimit,
       "--no-reuse gives every value bytes of its own, --memory-limit has them share; leave out "
       "one of them"},
      {options.noReuse && (options.checkpoint == "auto" || options.onCurve),
       "--no-reuse gives every value bytes of its own, --checkpoint and --pareto have them share; "
       "leave out one of them"},
      {options.memoryLimit && options.checkpoint == "auto",
       "--memory-limit says how few bytes an arena may have, --checkpoint=auto chooses that; leave "
       "out one of them"},
  };
  for (const Refusal &refusal : refusals)
    if (refusal.applies)
      throw Error(refusal.text);
}

namespace {
/// One call of `compile`: from a text to an artifact, or to the module of one level.
class Compilation {
public:
  explicit Compilation(const CompileOptions &options)
      : options(options), start(findLevel(options.startFrom, "--start-from")),
        stop(findStop(options, start)), firstOfTarget(findLevel("kernels", "level")),
        targets(readTargets(options.targets, readPipelineOptions(options))),
        trainings(readTraining(options.train)) {
    checkOptions(options, start, stop);
    steps.emplace(options);
  }

  void run() {
    read();
    makeLevels();
    if (!options.saveLevels.empty())
      steps->run("save levels", [&] { saveLevels(options.saveLevels, saved); });
    steps->run("write", [&] { write(); });
  }

private:
  const CompileOptions &options;
  const Level &start, &stop, &firstOfTarget;
  std::vector<TargetOptions> targets;
  std::vector<Training> trainings;
  std::optional<Steps> steps;
  std::string text;
  std::optional<Graph> input;
  Checks checks;
  std::string graph; ///< the graph level as it came, which the reference runs
  std::optional<NoteTaker> noteTaker;
  std::vector<std::pair<std::string, std::string>> saved; ///< name and text of each level
  std::optional<Artifact> artifact;

  void read();
  std::string getFolder(const Level &level, const TargetOptions &target) const {
    return &level >= &firstOfTarget && targets.size() > 1 ? target.name + "/" : "";
  }
  void makeLevel(const Level &level, ModuleOp module, const TargetOptions &target);
  void makeLevels();
  void addToArtifact(ModuleOp emitted, const TargetOptions &target);
  void write();
};
} // namespace

void Compilation::read() {
  text = steps->run("read", [&] { return readGraph(options.input); });
  steps->run("parse", [&] { input.emplace(text, options.input); });
  auto &[where, context, problems, module] = *input;
  if (options.checkIndices)
    steps->run("check indices", [&] { checks = addChecks(*module, problems); });
  steps->run("add entries", [&] {
    std::vector<std::string> entries = options.entries;
    addDerived(*module, options, trainings, where, entries, problems);
    selectEntries(*module, entries, where);
  });
  if (&start == getLevels().begin())
    graph = steps->run("print the graph", [&] { return print(*module); });
  if (&start >= &firstOfTarget) {
    FailureOr<Profile> profile = getProfile(*module);
    if (failed(profile))
      throw CompileError(problems.sentences);
    targets.front().target = targets.front().name = profile->target;
  }
  if (options.stopAfter.empty())
    noteTaker.emplace(context);
}

void Compilation::makeLevel(const Level &level, ModuleOp module, const TargetOptions &target) {
  Problems &problems = input->problems;
  PassManager manager(&input->context);
  manager.enableVerifier(false); // verified once, below
  // A module that starts from a level has run its passes; the gate still looks.
  if (&level != &start || &level == getLevels().begin())
    level.addPasses(manager, target);
  level.addGate(manager);
  steps->watch(manager, module);
  bool isMade = succeeded(manager.run(module)) &&
                succeeded(steps->run("verify", [&] { return mlir::verify(module); })) &&
                problems.sentences.empty();
  if (!isMade && problems.sentences.empty())
    problems.sentences.push_back(input->where + ": the " + level.name.str() +
                                 " level could not be made");
  if (!isMade)
    throw CompileError(problems.sentences);
  for (const std::string &report : std::exchange(problems.reports, {}))
    if (level.name == "placed" && options.onReport)
      options.onReport(targets.size() > 1 ? target.name + ": " + report : report);
  if (options.onCurve && level.name == "placed")
    for (auto function : module.getOps<func::FuncOp>())
      if (std::vector<CurvePoint> points = takeCurve(function); !points.empty())
        options.onCurve({function.getName().str(), target.name, std::move(points)});
  if (!options.saveLevels.empty())
    saved.emplace_back(getFolder(level, target) + level.name.str(),
                       steps->run("print", [&] { return print(module); }));
}

/// Makes the levels up to gradient once and the others once for each target.
void Compilation::makeLevels() {
  size_t count = 0;
  for (const Level *level = &start; level <= &stop; ++level)
    count += level < &firstOfTarget ? 1 : targets.size();
  steps->setLevels(count);
  auto run = [&](const Level &level, ModuleOp module, const TargetOptions &target) {
    steps->runLevel(getFolder(level, target) + level.name.str(),
                    [&] { makeLevel(level, module, target); });
  };
  ModuleOp module = *input->module;
  const Level *level = &start;
  for (; level <= &stop && level < &firstOfTarget; ++level)
    run(*level, module, targets.front());
  for (const TargetOptions &target : targets) {
    OwningOpRef<ModuleOp> copy;
    if (targets.size() > 1)
      copy = module.clone();
    ModuleOp ofTarget = copy ? *copy : module;
    for (const Level *next = level; next <= &stop; ++next)
      run(*next, ofTarget, target);
    if (!options.stopAfter.empty())
      return;
    steps->run(getFolder(stop, target) + "build the artifact",
               [&] { addToArtifact(ofTarget, target); });
  }
}

void Compilation::addToArtifact(ModuleOp emitted, const TargetOptions &target) {
  FailureOr<Artifact> built = buildArtifact(emitted, graph);
  if (failed(built))
    throw CompileError(input->problems.sentences);
  // The pass that keeps the limit sees what is between the edges of loops, and not what is live
  // around it.
  for (const Plan &plan : built->plans)
    if (!plan.loops.empty() && options.memoryLimit && plan.arenaBytes > *options.memoryLimit)
      throw Error("entry '" + plan.entry + "' does not fit in " +
                  std::to_string(*options.memoryLimit) +
                  " bytes: it has loops, between whose edges "
                  "alone --memory-limit chooses an order, and its arena has " +
                  std::to_string(plan.arenaBytes));
  Notes notes = noteTaker->take(emitted, options.memoryLimit);
  for (EntryNotes &entry : notes.entries)
    entry.checks = findChecks(checks, entry.entry);
  built->notes[target.target] = std::move(notes);
  if (target.name != target.target)
    nameTarget(*built, target.name);
  if (artifact)
    addTargets(*artifact, *built);
  else
    artifact = std::move(*built);
}

void Compilation::write() {
  if (!artifact)
    return writeModule(options.output, print(*input->module));
  writeArtifact(options.output, *artifact, [&](const std::string &path) {
    steps->run("verify the plan", [&] { checkWritten(path); });
    if (options.onWritten)
      steps->run("compare with the graph", [&] { options.onWritten(path); });
  });
}

void weir::compile(const CompileOptions &options) { Compilation(options).run(); }

//===- Programs.cpp - Plans of entries that consist of segments -----------===//

#include "passes/emitted/Programs.h"

#include "dialects/Schedule/Schedule.h"
#include "dialects/Schedule/Segments.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "weir/Artifact/StoredBytes.h"
#include "weir/Order/Link.h"
#include "weir/Target/Bundle.h"
#include "weir/Target/Errors.h"

#include <algorithm>

using namespace mlir;
using namespace weir;

namespace {
/// Reads the steps of a program and the plans of its segments.
class ProgramReader {
public:
  ProgramReader(ModuleOp module, const Manifest &manifest) : module(module), manifest(manifest) {}

  FailureOr<std::vector<LinkedStep>> readSteps(ArrayAttr steps);
  std::vector<Plan> plans;

private:
  FailureOr<size_t> getSegment(StringAttr name);
  FailureOr<LinkedStep> readStep(DictionaryAttr step);

  ModuleOp module;
  const Manifest &manifest;
  llvm::StringMap<size_t> segments;
};
} // namespace

static std::vector<int64_t> getNumbers(DictionaryAttr attributes, StringRef name) {
  return attributes.getAs<DenseI64ArrayAttr>(name).asArrayRef().vec();
}

FailureOr<size_t> ProgramReader::getSegment(StringAttr name) {
  auto [known, isNew] = segments.try_emplace(name, plans.size());
  if (!isNew)
    return known->second;
  auto function = module.lookupSymbol<func::FuncOp>(name);
  if (!function)
    return module.emitError() << "has no segment " << name;
  FailureOr<Plan> plan = getPlan(function, manifest);
  if (failed(plan))
    return failure();
  plans.push_back(std::move(*plan));
  return known->second;
}

FailureOr<LinkedStep> ProgramReader::readStep(DictionaryAttr attributes) {
  LinkedStep step;
  if (auto name = attributes.getAs<StringAttr>("segment")) {
    FailureOr<size_t> segment = getSegment(name);
    if (failed(segment))
      return failure();
    step.segment = *segment;
    step.arguments = getNumbers(attributes, "arguments");
    step.results = getNumbers(attributes, "results");
    return step;
  }
  step.isLoop = true;
  step.trips = attributes.getAs<IntegerAttr>("trips").getInt();
  if (auto flag = attributes.getAs<IntegerAttr>("flag"))
    step.flag = flag.getInt();
  for (auto [carried, name] : llvm::zip_equal(attributes.getAs<ArrayAttr>("carried"),
                                              attributes.getAs<ArrayAttr>("copies"))) {
    ArrayRef<int64_t> numbers = cast<DenseI64ArrayAttr>(carried).asArrayRef();
    FailureOr<size_t> copy = getSegment(cast<StringAttr>(name));
    if (failed(copy))
      return failure();
    step.carried.push_back({numbers[0], numbers[1], numbers[2], numbers[3], *copy});
  }
  FailureOr<std::vector<LinkedStep>> steps = readSteps(attributes.getAs<ArrayAttr>("steps"));
  if (failed(steps))
    return failure();
  step.steps = std::move(*steps);
  return step;
}

FailureOr<std::vector<LinkedStep>> ProgramReader::readSteps(ArrayAttr steps) {
  std::vector<LinkedStep> result;
  for (Attribute attribute : steps) {
    FailureOr<LinkedStep> step = readStep(cast<DictionaryAttr>(attribute));
    if (failed(step))
      return failure();
    result.push_back(std::move(*step));
  }
  return result;
}

FailureOr<Plan> weir::getProgramPlan(ModuleOp module, NamedAttribute entry,
                                     const Manifest &manifest) {
  auto attributes = cast<DictionaryAttr>(entry.getValue());
  LinkedProgram program;
  program.entry = *llvm::find_if(
      manifest.entries, [&](const EntrySpec &spec) { return spec.name == entry.getName().str(); });
  for (const TensorSpec &argument : program.entry.arguments)
    program.argumentBytes.push_back(getStoredBytes(argument, manifest.targets.front()));
  ProgramReader reader(module, manifest);
  FailureOr<std::vector<LinkedStep>> steps = reader.readSteps(attributes.getAs<ArrayAttr>("steps"));
  if (failed(steps))
    return failure();
  program.steps = std::move(*steps);
  program.segments = std::move(reader.plans);
  program.values = attributes.getAs<IntegerAttr>("values").getInt();
  program.results = getNumbers(attributes, "results");
  return catchErrors([&] { return module.emitError() << "entry " << entry.getName() << ": "; },
                     [&] { return parsePlan(printPlan(linkPlans(program)), "the plan"); });
}

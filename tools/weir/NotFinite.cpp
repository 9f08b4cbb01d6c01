//===- NotFinite.cpp - The first dispatch that makes a NaN ----------------===//

#include "NotFinite.h"

#include "Profile.h"
#include "weir/Artifact/Floats.h"

#include <cmath>

using namespace weir;
using namespace weir::tool;

/// Whether a result may hold infinities: neither a loss nor the next value of a parameter.
static bool mayBeInfinite(const TensorSpec &result, int64_t carried) {
  return !result.shape.empty() && carried < 0;
}

std::string tool::findNotFinite(const EntrySpec &entry, const std::vector<Tensor> &results) {
  std::vector<int64_t> carried = getCarried(entry);
  for (size_t i = 0; i < results.size(); ++i) {
    const Tensor &result = results[i];
    if (!isFloat(result.spec.dtype))
      continue;
    size_t count = result.data.size() / size_t(getDTypeBytes(result.spec.dtype));
    for (size_t at = 0; at < count; ++at) {
      double number = getFloat(result, at);
      bool isNan = std::isnan(number);
      if (isNan || (std::isinf(number) && !mayBeInfinite(result.spec, carried[i])))
        return (carried[i] < 0 ? "" : "the new ") + result.spec.name +
               (result.spec.shape.empty() ? " is " : " holds ") + (isNan ? "NaN" : "an infinity");
    }
  }
  return "";
}

/// Prints the place of an element: "'x' at [0, 3]".
static std::string printPlace(const std::string &name, const std::vector<int64_t> &shape,
                              int64_t element) {
  std::string indices;
  for (size_t dim = shape.size(); dim-- > 0; element /= shape[dim])
    indices = std::to_string(element % shape[dim]) + (indices.empty() ? "" : ", ") + indices;
  return "'" + name + "'" + (indices.empty() ? "" : " at [" + indices + "]");
}

FlawTracker::FlawTracker(const Artifact &artifact, const EntrySpec &entry,
                         const Observation &observation, const std::vector<Tensor> &inputs,
                         const GraphValues &graph, const LoopWalk &walk)
    : entry(entry), plan(observation.getPlan()), profile(observation.getProfile()),
      dispatches(getDispatches(plan)), completions(findCompletions(plan)), graph(graph), walk(walk),
      values(plan.values.size()) {
  for (size_t i = 0; i < inputs.size(); ++i)
    if (int64_t value = plan.argumentValues[i]; value >= 0)
      addOutside(values[size_t(value)], "argument", inputs[i]);
  for (const ConstantSpec &constant : artifact.manifest.constants) {
    auto begin = artifact.constants.begin() + constant.offset;
    Bytes data(begin, begin + getByteSize(constant.tensor));
    addOutside(constants.emplace_back(constant, Flaws()).second, "constant",
               {constant.tensor, std::move(data)});
  }
}

/// Notes what a tensor holds before the run.
void FlawTracker::addOutside(Flaws &flaws, const std::string &what, const Tensor &tensor) const {
  Found found;
  find(tensor.data, 0, int64_t(tensor.data.size()), 0, tensor.spec, found);
  auto note = [&](Origin &origin, int64_t element, const char *number) {
    if (element < 0)
      return;
    origin.maker = what + " '" + tensor.spec.name + "'";
    origin.sentence = what + " " + printPlace(tensor.spec.name, tensor.spec.shape, element) +
                      " is " + number + " before the run";
  };
  note(flaws.nan, found.nan, "NaN");
  note(flaws.infinity, found.infinity, "infinite");
}

/// Adds what bytes [begin, end) of `data`, which begins at byte `from` of a value, hold.
void FlawTracker::find(const Bytes &data, int64_t begin, int64_t end, int64_t from,
                       const TensorSpec &type, Found &found) const {
  if (!isFloat(type.dtype))
    return;
  // Without f64 a device has pairs of f32, the larger one first.
  bool isPair = type.dtype == "F64" && !profile.float64;
  Tensor part;
  part.spec.dtype = isPair ? "F32" : type.dtype;
  part.data.assign(data.begin() + begin, data.begin() + end);
  int64_t bytes = getDTypeBytes(type.dtype);
  for (int64_t at = 0; at < (end - begin) / bytes; ++at) {
    double number = getFloat(part, size_t(isPair ? 2 * at : at));
    int64_t element = (from + begin) / bytes + at;
    if (std::isnan(number) && found.nan < 0)
      found.nan = element;
    if (std::isinf(number) && found.infinity < 0)
      found.infinity = element;
  }
}

/// Returns the flaws of what a dispatch reads, and the names.
std::vector<const FlawTracker::Flaws *>
FlawTracker::getOperands(size_t dispatch, std::vector<std::string> &names) const {
  std::vector<const Flaws *> flaws;
  const Command &command = *dispatches[dispatch];
  const Kernel &kernel = plan.kernels[size_t(command.kernel)];
  for (size_t i = 0; i < command.operands.size(); ++i) {
    const PlanOperand &operand = command.operands[i];
    Access access = kernel.operands[i].access;
    if (access != Access::Read && access != Access::Update)
      continue;
    if (operand.value >= 0) {
      flaws.push_back(&values[size_t(operand.value)]);
      names.push_back(plan.values[size_t(operand.value)].name);
      continue;
    }
    for (const auto &[constant, of] : constants)
      if (constant.offset < operand.offset + operand.bytes &&
          operand.offset < constant.offset + getByteSize(constant.tensor)) {
        flaws.push_back(&of);
        names.push_back(constant.tensor.name);
      }
  }
  return flaws;
}

/// Returns where the flaws come from that a dispatch wrote into a value.
FlawTracker::Flaws FlawTracker::explainWrite(size_t dispatch, int64_t value,
                                             const Found &found) const {
  std::vector<std::string> names;
  std::vector<const Flaws *> read = getOperands(dispatch, names);
  const Command &command = *dispatches[dispatch];
  Origin made;
  made.dispatch = int64_t(dispatch);
  made.maker = "dispatch " + std::to_string(dispatch) + " (kernel " +
               plan.kernels[size_t(command.kernel)].name + ", from " + command.location + ")" +
               walk.describeTrips();
  const TensorSpec &type = *graph.getType(value);
  auto getPlace = [&](int64_t element) {
    return printPlace(plan.values[size_t(value)].name, type.shape, element);
  };
  std::string finite;
  for (const std::string &name : names)
    finite += (finite.empty() ? "'" : ", '") + name + "'";
  finite = names.empty() ? "" : "; what it reads is finite: " + finite;
  Flaws flaws;
  for (const Flaws *from : read)
    if (flaws.nan.sentence.empty() && found.nan >= 0)
      flaws.nan = from->nan;
  for (const Flaws *from : read)
    if (flaws.infinity.sentence.empty() && found.infinity >= 0)
      flaws.infinity = from->infinity;
  if (found.nan >= 0 && flaws.nan.sentence.empty()) {
    flaws.nan = made;
    flaws.nan.sentence = made.maker + " is the first that makes a NaN, in " + getPlace(found.nan);
    std::string from = finite;
    for (size_t i = 0; i < read.size(); ++i)
      if (const Origin &origin = read[i]->infinity; !origin.sentence.empty()) {
        from = "; its operand '" + names[i] + "' holds an infinity, which " + origin.maker +
               (origin.dispatch < 0 ? " has" : " made");
        break;
      }
    flaws.nan.sentence += from;
  }
  if (found.infinity >= 0 && flaws.infinity.sentence.empty()) {
    flaws.infinity = made;
    flaws.infinity.sentence = made.maker + " is the first that makes an infinity, in " +
                              getPlace(found.infinity) + finite;
  }
  return flaws;
}

void FlawTracker::see(size_t dispatch, size_t index, const Bytes &data) {
  const PlanOperand &operand = dispatches[dispatch]->operands[index];
  if (operand.value < 0 || !graph.getType(operand.value))
    return;
  const KernelOperand &effect = plan.kernels[size_t(dispatches[dispatch]->kernel)].operands[index];
  const TensorSpec &type = *graph.getType(operand.value);
  Found found;
  // A device without short elements may have each of them in a word.
  int64_t scale = getWordScale(type, plan.values[size_t(operand.value)].bytes);
  Bytes elements = scale == 1 ? data : takeFromWords(data, scale);
  auto add = [&](int64_t begin, int64_t end) {
    find(elements, begin / scale, end / scale, operand.from / scale, type, found);
  };
  if (effect.slice) // other bytes may be of any value
    for (int64_t run = 0; run < effect.slice->count; ++run)
      add(effect.slice->at(run), effect.slice->at(run) + effect.slice->bytes);
  else if (effect.coversAll || operand.before >= 0 || completions.contains({dispatch, index}))
    add(0, int64_t(data.size()));
  Flaws flaws = explainWrite(dispatch, operand.value, found);
  // Parts that were written before keep theirs.
  Flaws &known = values[size_t(operand.value)];
  if (known.nan.sentence.empty())
    known.nan = flaws.nan;
  if (known.infinity.sentence.empty())
    known.infinity = flaws.infinity;
}

void FlawTracker::beginTrip(size_t number, int64_t CarriedValue::*from) {
  const Loop &loop = plan.loops[number];
  std::vector<Flaws> begun;
  for (const CarriedValue &carried : loop.carried)
    begun.push_back(values[size_t(carried.*from)]);
  // This trip makes again the values of the one before.
  for (int64_t i = loop.first; i < loop.end; ++i)
    if (const Command &command = plan.commands[size_t(i)];
        command.kind == Command::Kind::Dispatch) {
      const std::vector<KernelOperand> &effects = plan.kernels[size_t(command.kernel)].operands;
      for (size_t k = 0; k < command.operands.size(); ++k)
        if (command.operands[k].value >= 0 &&
            (effects[k].access == Access::Write || effects[k].access == Access::Update))
          values[size_t(command.operands[k].value)] = Flaws();
    }
  for (size_t i = 0; i < loop.carried.size(); ++i)
    values[size_t(loop.carried[i].inside)] = std::move(begun[i]);
}

void FlawTracker::endLoop(size_t number, int64_t CarriedValue::*from) {
  for (const CarriedValue &carried : plan.loops[number].carried)
    values[size_t(carried.after)] = values[size_t(carried.*from)];
}

std::string FlawTracker::explain() const {
  std::vector<int64_t> carried = getCarried(entry);
  for (size_t i = 0; i < plan.resultValues.size(); ++i) {
    if (plan.resultValues[i] < 0)
      continue;
    const Flaws &flaws = values[size_t(plan.resultValues[i])];
    if (!flaws.nan.sentence.empty())
      return flaws.nan.sentence;
    if (!flaws.infinity.sentence.empty() && !mayBeInfinite(entry.results[i], carried[i]))
      return flaws.infinity.sentence;
  }
  return "";
}

std::string tool::explainNotFinite(const Artifact &artifact, const std::string &path,
                                   const EntrySpec &entry, const std::string &device,
                                   const std::vector<Tensor> &inputs) {
  Observation observation(artifact, path, entry, device, inputs);
  GraphValues graph(artifact, path, entry, observation.getPlan(), observation.getProfile());
  LoopWalk walk(observation.getPlan());
  FlawTracker tracker(artifact, entry, observation, inputs, graph, walk);
  walk.onTrip = [&](size_t loop, int64_t CarriedValue::*from) { tracker.beginTrip(loop, from); };
  walk.onEnd = [&](size_t loop, int64_t CarriedValue::*from) { tracker.endLoop(loop, from); };
  observation.run(walk, [&](size_t dispatch, size_t operand, const Bytes &data) {
    tracker.see(dispatch, operand, data);
  });
  return tracker.explain();
}

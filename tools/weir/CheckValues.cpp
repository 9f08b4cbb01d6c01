//===- CheckValues.cpp - The first dispatch that departs ------------------===//

#include "CheckValues.h"
#include "GraphValues.h"
#include "LoopWalk.h"
#include "NotFinite.h"
#include "Observation.h"
#include "Output.h"
#include "Profile.h"
#include "Tensors.h"
#include "Verbs.h"
#include "WithCompiler.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <iostream>
#include <map>
#include <optional>
#include <set>

using namespace weir;
using namespace weir::tool;

namespace {
/// The comparison of one value that a dispatch wrote: in a loop, the first one that departs, or
/// that with the largest error.
struct Finding {
  size_t dispatch = 0;
  int64_t value = 0;
  std::vector<int64_t> shape;
  Comparison comparison;
  std::vector<int64_t> trips; ///< of outer loops first
  std::string where;          ///< " in trip 3"
};

/// Compares the values of a run with those of the graph's functions. A function of an entry with
/// loops takes what the device has made of its arguments, each time that it runs.
class ValueCheck {
public:
  ValueCheck(const Plan &plan, const Profile &profile, const GraphValues &graph,
             const LoopWalk &walk, const std::vector<Tensor> &inputs, double tolerance);

  void see(size_t dispatch, size_t index, const Bytes &data);
  void beginTrip(size_t loop, int64_t CarriedValue::*from);
  void endLoop(size_t loop, int64_t CarriedValue::*from);

  std::vector<Finding> findings;
  std::optional<size_t> first; ///< the finding that departed before all others

private:
  const ReferenceValues &getExpected(size_t segment);
  void compare(size_t dispatch, int64_t value, Tensor tensor);
  void add(Finding finding);

  const Plan &plan;
  const Profile &profile;
  const GraphValues &graph;
  const LoopWalk &walk;
  const std::vector<Tensor> &inputs;
  const double tolerance;
  std::vector<const Command *> dispatches;
  std::set<std::pair<size_t, size_t>> completes;
  std::vector<std::function<ReferenceValues(const std::vector<Tensor> &)>>
      references;                                       ///< by segment
  std::vector<std::optional<ReferenceValues>> expected; ///< by segment, of this trip
  std::vector<Bytes> values;                            ///< by value: the bytes written so far
  std::map<int64_t, Tensor> known;                      ///< whole values of a plan with loops
  std::map<std::pair<size_t, int64_t>, size_t> rows;    ///< of findings, by dispatch and value
};
} // namespace

/// Returns f64 numbers from the pairs of f32 that a device without f64 writes.
static Bytes joinPairs(const Bytes &pairs) {
  Bytes numbers(pairs.size());
  for (size_t at = 0; at + sizeof(double) <= pairs.size(); at += sizeof(double)) {
    std::array<float, 2> pair;
    std::memcpy(pair.data(), pairs.data() + at, sizeof(pair));
    double number = double(pair[0]) + double(pair[1]);
    std::memcpy(numbers.data() + at, &number, sizeof(number));
  }
  return numbers;
}

//===----------------------------------------------------------------------===//
// The comparison
//===----------------------------------------------------------------------===//

ValueCheck::ValueCheck(const Plan &plan, const Profile &profile, const GraphValues &graph,
                       const LoopWalk &walk, const std::vector<Tensor> &inputs, double tolerance)
    : plan(plan), profile(profile), graph(graph), walk(walk), inputs(inputs), tolerance(tolerance),
      dispatches(getDispatches(plan)), completes(findCompletions(plan)),
      expected(graph.segments.size()), values(plan.values.size()) {
  for (const Segment &segment : graph.segments)
    references.push_back(makeReference(segment.text, segment.function));
  if (graph.numBetween == 0)
    getExpected(0);
  for (size_t i = 0; i < inputs.size() && graph.numBetween > 0; ++i)
    known[int64_t(i)] = inputs[i];
}

/// Returns what a function computes, from all arguments of the entry or from what the run has made
/// of its own.
const ReferenceValues &ValueCheck::getExpected(size_t number) {
  if (expected[number])
    return *expected[number];
  if (graph.numBetween == 0)
    return expected[number].emplace(references[number](inputs));
  const Segment &segment = graph.segments[number];
  std::vector<Tensor> given;
  for (int64_t value : segment.arguments) {
    const TensorSpec &type = *graph.getType(value);
    auto made = known.find(value);
    if (made == known.end() && getByteSize(type) > 0)
      throw Error("entry '" + plan.entry + "' computes from '" + plan.values[size_t(value)].name +
                  "' before a dispatch has made it; weir verify says more");
    given.push_back(made == known.end() ? Tensor{type, {}} : made->second);
  }
  return expected[number].emplace(references[number](given));
}

void ValueCheck::beginTrip(size_t number, int64_t CarriedValue::*from) {
  const Loop &loop = plan.loops[number];
  std::vector<std::pair<int64_t, Tensor>> begun;
  for (const CarriedValue &carried : loop.carried)
    if (auto made = known.find(carried.*from); made != known.end())
      begun.emplace_back(carried.inside, made->second);
  for (auto &[value, tensor] : begun)
    known[value] = std::move(tensor);
  for (size_t i = 0; i < graph.segments.size(); ++i)
    if (graph.segments[i].first >= loop.first && graph.segments[i].first < loop.end)
      expected[i].reset();
}

void ValueCheck::endLoop(size_t number, int64_t CarriedValue::*from) {
  for (const CarriedValue &carried : plan.loops[number].carried)
    if (auto made = known.find(carried.*from); made != known.end())
      known[carried.after] = made->second;
}

void ValueCheck::see(size_t dispatch, size_t index, const Bytes &data) {
  const PlanOperand &operand = dispatches[dispatch]->operands[index];
  const TensorSpec *type = operand.value < 0 ? nullptr : graph.getType(operand.value);
  if (!type || (!graph.makers.contains(operand.value) && !graph.copies.contains(operand.value)))
    return;
  Bytes &value = values[size_t(operand.value)];
  value.resize(size_t(plan.values[size_t(operand.value)].bytes));
  std::copy(data.begin(), data.end(), value.begin() + operand.from);
  if (!completes.contains({dispatch, index}))
    return;
  if (type->dtype == "F64" && !profile.float64)
    value = joinPairs(value);
  if (int64_t scale = getWordScale(*type, int64_t(value.size())); scale > 1)
    value = takeFromWords(value, scale);
  value.resize(size_t(getByteSize(*type))); // the last word may end behind it
  compare(dispatch, operand.value, {*type, std::exchange(value, Bytes())});
}

/// Compares a whole value, and keeps it where functions may take it.
void ValueCheck::compare(size_t dispatch, int64_t value, Tensor tensor) {
  Finding finding = {dispatch, value, tensor.spec.shape, {}, walk.getTrips(), walk.describeTrips()};
  if (auto made = graph.makers.find(value); made != graph.makers.end()) {
    auto [segment, index] = made->second;
    const ReferenceValues &reference = getExpected(segment);
    finding.comparison =
        compareWithReference(tensor, reference.written[index], reference.wide[index], tolerance);
  } else {
    const Tensor &source = known.at(graph.copies.at(value));
    finding.comparison = compareWithReference(tensor, source, source, tolerance);
  }
  add(std::move(finding));
  if (value < graph.numBetween || graph.copies.contains(value))
    known[value] = std::move(tensor);
}

void ValueCheck::add(Finding finding) {
  auto [row, isNew] = rows.try_emplace({finding.dispatch, finding.value}, findings.size());
  if (isNew) {
    findings.push_back(std::move(finding));
  } else {
    Finding &kept = findings[row->second];
    const bool isWorse = finding.comparison.passes
                             ? finding.comparison.largestError > kept.comparison.largestError
                             : true;
    if (!kept.comparison.passes || !isWorse)
      return;
    kept = std::move(finding);
  }
  if (!first && !findings[row->second].comparison.passes)
    first = row->second;
}

//===----------------------------------------------------------------------===//
// The report
//===----------------------------------------------------------------------===//

static int reportFindings(const Plan &plan, const ValueCheck &check, const std::string &notFinite,
                          const std::string &device, double tolerance, bool json) {
  std::vector<const Command *> dispatches = getDispatches(plan);
  const std::vector<Finding> &findings = check.findings;
  const Finding *first = check.first ? &findings[*check.first] : nullptr;
  auto getKernel = [&](const Finding &finding) -> const std::string & {
    return plan.kernels[size_t(dispatches[finding.dispatch]->kernel)].name;
  };
  if (json) {
    Json list = Json::array();
    for (const Finding &finding : findings) {
      list.push_back({{"dispatch", finding.dispatch},
                      {"kernel", getKernel(finding)},
                      {"location", dispatches[finding.dispatch]->location},
                      {"value", plan.values[size_t(finding.value)].name},
                      {"largest_error", toJson(finding.comparison.largestError)},
                      {"relative_error", toJson(finding.comparison.relativeError)},
                      {"passes", finding.comparison.passes}});
      if (!finding.trips.empty())
        list.back()["trips"] = finding.trips;
    }
    Json out = {{"entry", plan.entry}, {"device", device}, {"tolerance", tolerance}};
    out["values"] = list;
    if (!notFinite.empty())
      out["not_finite"] = notFinite;
    out["first"] = first ? list[*check.first] : Json();
    out["passes"] = !first;
    printJson(out);
    return first ? CheckFailed : Done;
  }
  std::vector<std::vector<std::string>> rows;
  for (const Finding &finding : findings)
    rows.push_back({std::to_string(finding.dispatch), getKernel(finding),
                    dispatches[finding.dispatch]->location, plan.values[size_t(finding.value)].name,
                    printShape(finding.shape), printNumber(finding.comparison.largestError),
                    printNumber(finding.comparison.relativeError),
                    finding.comparison.passes
                        ? "ok"
                        : "DEPARTS" + finding.where + ": " + finding.comparison.reason});
  printTable({"dispatch", "kernel", "from", "value", "shape", "largest error", "relative", ""},
             rows);
  if (!notFinite.empty())
    std::cout << "not finite: " << notFinite << "\n";
  if (!first) {
    std::cout << "values: all " << findings.size() << " that dispatches write are the reference's"
              << (plan.loops.empty() ? "" : ", in all trips") << "\n";
    return Done;
  }
  std::cout << "values: dispatch " << first->dispatch << " (kernel " << getKernel(*first)
            << ", from " << dispatches[first->dispatch]->location << ")" << first->where
            << " is the first that deviates from the reference, in '"
            << plan.values[size_t(first->value)].name << "'\n";
  return CheckFailed;
}

int tool::checkValues(const Artifact &artifact, const std::string &path, const EntrySpec &entry,
                      const std::string &device, const std::vector<Tensor> &inputs,
                      double tolerance, bool json, Progress &progress) {
  Observation observation(artifact, path, entry, device, inputs);
  const Plan &plan = observation.getPlan();
  progress.begin("running entry " + entry.name + " on reference");
  GraphValues graph(artifact, path, entry, plan, observation.getProfile());
  LoopWalk walk(plan);
  ValueCheck check(plan, observation.getProfile(), graph, walk, inputs, tolerance);
  FlawTracker tracker(artifact, entry, observation, inputs, graph, walk);
  walk.onTrip = [&](size_t loop, int64_t CarriedValue::*from) {
    tracker.beginTrip(loop, from);
    check.beginTrip(loop, from);
  };
  walk.onEnd = [&](size_t loop, int64_t CarriedValue::*from) {
    tracker.endLoop(loop, from);
    check.endLoop(loop, from);
  };
  progress.begin("running entry " + entry.name + " on " + device + ", one dispatch at a time");
  observation.run(walk, [&](size_t dispatch, size_t operand, const Bytes &data) {
    tracker.see(dispatch, operand, data);
    check.see(dispatch, operand, data);
  });
  return reportFindings(plan, check, tracker.explain(), device, tolerance, json);
}

//===- CheckValues.cpp - The first dispatch that departs ------------------===//

#include "CheckValues.h"
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
#include <set>

using namespace weir;
using namespace weir::tool;

namespace {
/// The comparison of one value that a dispatch wrote.
struct Finding {
  size_t dispatch = 0;
  int64_t value = 0;
  std::vector<int64_t> shape;
  Comparison comparison;
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

static int reportFindings(const Plan &plan, const std::vector<Finding> &findings,
                          const std::string &notFinite, const std::string &device, double tolerance,
                          bool json) {
  std::vector<const Command *> dispatches = getDispatches(plan);
  auto first = std::find_if(findings.begin(), findings.end(),
                            [](const Finding &finding) { return !finding.comparison.passes; });
  auto getKernel = [&](const Finding &finding) -> const std::string & {
    return plan.kernels[size_t(dispatches[finding.dispatch]->kernel)].name;
  };
  if (json) {
    Json list = Json::array();
    for (const Finding &finding : findings)
      list.push_back({{"dispatch", finding.dispatch},
                      {"kernel", getKernel(finding)},
                      {"location", dispatches[finding.dispatch]->location},
                      {"value", plan.values[size_t(finding.value)].name},
                      {"largest_error", toJson(finding.comparison.largestError)},
                      {"relative_error", toJson(finding.comparison.relativeError)},
                      {"passes", finding.comparison.passes}});
    Json out = {{"entry", plan.entry}, {"device", device}, {"tolerance", tolerance}};
    out["values"] = list;
    if (!notFinite.empty())
      out["not_finite"] = notFinite;
    out["first"] = first == findings.end() ? Json() : list[size_t(first - findings.begin())];
    out["passes"] = first == findings.end();
    printJson(out);
    return first == findings.end() ? Done : CheckFailed;
  }
  std::vector<std::vector<std::string>> rows;
  for (const Finding &finding : findings)
    rows.push_back({std::to_string(finding.dispatch), getKernel(finding),
                    dispatches[finding.dispatch]->location, plan.values[size_t(finding.value)].name,
                    printShape(finding.shape), printNumber(finding.comparison.largestError),
                    printNumber(finding.comparison.relativeError),
                    finding.comparison.passes ? "ok" : "DEPARTS: " + finding.comparison.reason});
  printTable({"dispatch", "kernel", "from", "value", "shape", "largest error", "relative", ""},
             rows);
  if (!notFinite.empty())
    std::cout << "not finite: " << notFinite << "\n";
  if (first == findings.end()) {
    std::cout << "values: all " << findings.size()
              << " that dispatches write are the reference's\n";
    return Done;
  }
  std::cout << "values: dispatch " << first->dispatch << " (kernel " << getKernel(*first)
            << ", from " << dispatches[first->dispatch]->location
            << ") is the first that deviates from the reference, in '"
            << plan.values[size_t(first->value)].name << "'\n";
  return CheckFailed;
}

int tool::checkValues(const Artifact &artifact, const std::string &path, const EntrySpec &entry,
                      const std::string &device, const std::vector<Tensor> &inputs,
                      double tolerance, bool json, Progress &progress) {
  auto graph = artifact.ir.find("ir/graph.mlir");
  if (graph == artifact.ir.end())
    throw Error(path + " holds no ir/graph.mlir, which the reference runs; compile it from the "
                       "graph level");
  Observation observation(artifact, path, entry, device, inputs);
  const Plan *plan = &observation.getPlan();
  const Profile *profile = &observation.getProfile();
  progress.begin("running entry " + entry.name + " on reference");
  ReferenceValues reference = runValues(graph->second, entry.name, *profile, inputs);
  std::vector<TensorSpec> types;
  for (const Tensor &value : reference.written)
    types.push_back(value.spec);
  std::vector<int64_t> numbers = findValues(*plan, types, *profile, path);

  std::vector<int64_t> made(plan->values.size(), -1); // by value: index in the reference, or -1
  for (size_t i = 0; i < numbers.size(); ++i)
    if (numbers[i] >= 0)
      made[size_t(numbers[i])] = int64_t(i);
  FlawTracker tracker(artifact, entry, observation, inputs, types, numbers);
  std::vector<const Command *> dispatches = getDispatches(*plan);
  std::vector<Bytes> values(plan->values.size()); // the bytes written so far
  std::set<std::pair<size_t, size_t>> completes = findCompletions(*plan);

  progress.begin("running entry " + entry.name + " on " + device + ", one dispatch at a time");
  std::vector<Finding> findings;
  observation.run([&](size_t number, size_t index, const Bytes &data) {
    tracker.see(number, index, data);
    const PlanOperand &operand = dispatches[number]->operands[index];
    if (operand.value < 0 || made[size_t(operand.value)] < 0)
      return;
    Bytes &value = values[size_t(operand.value)];
    value.resize(size_t(plan->values[size_t(operand.value)].bytes));
    std::copy(data.begin(), data.end(), value.begin() + operand.from);
    if (!completes.contains({number, index}))
      return;
    const Tensor &written = reference.written[size_t(made[size_t(operand.value)])];
    const Tensor &wide = reference.wide[size_t(made[size_t(operand.value)])];
    if (written.spec.dtype == "F64" && !profile->float64)
      value = joinPairs(value);
    if (int64_t scale = getWordScale(written.spec, int64_t(value.size())); scale > 1)
      value = takeFromWords(value, scale);
    value.resize(written.data.size()); // the last word may end behind it
    Finding finding = {number, operand.value, written.spec.shape, {}};
    finding.comparison = compareWithReference({written.spec, std::exchange(value, Bytes())},
                                              written, wide, tolerance);
    findings.push_back(std::move(finding));
  });
  return reportFindings(*plan, findings, tracker.explain(), device, tolerance, json);
}

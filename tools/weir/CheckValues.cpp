//===- CheckValues.cpp - The first dispatch that departs ------------------===//

#include "CheckValues.h"
#include "Invocation.h"
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

/// Returns, for each value of the reference, its index in the plan: results first, then
/// intermediate values of kernels.
static std::vector<int64_t> getNumbers(const Plan &plan, const std::vector<Tensor> &made,
                                       const std::string &path) {
  std::vector<int64_t> numbers = plan.resultValues;
  std::vector<bool> isOutside(plan.values.size(), false);
  for (const std::vector<int64_t> *list : {&plan.argumentValues, &plan.resultValues})
    for (int64_t number : *list)
      isOutside[size_t(number)] = true;
  for (size_t number = 0; number < plan.values.size(); ++number)
    if (!isOutside[number] && plan.values[number].bytes > 0)
      numbers.push_back(int64_t(number));
  bool fits = numbers.size() == made.size();
  for (size_t i = 0; fits && i < made.size(); ++i)
    fits = plan.values[size_t(numbers[i])].bytes == getByteSize(made[i].spec);
  if (!fits)
    throw Error(path + ": the plan of entry '" + plan.entry +
                "' does not make the values that its ir/graph.mlir does; compile it anew, from the "
                "graph level, with this version");
  return numbers;
}

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
                          const std::string &device, double tolerance, bool json) {
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
  requireCode(artifact, path, device);
  Invocation invocation(device, path, entry, inputs);
  const Plan *plan = artifact.findPlan(entry.name, invocation.getTarget());
  const Profile *profile = artifact.findProfile(plan->target);
  progress.begin("running entry " + entry.name + " on reference");
  ReferenceValues reference = runValues(graph->second, entry.name, *profile, inputs);
  std::vector<int64_t> numbers = getNumbers(*plan, reference.written, path);

  std::vector<int64_t> made(plan->values.size(), -1); // by value: index in the reference, or -1
  for (size_t i = 0; i < numbers.size(); ++i)
    made[size_t(numbers[i])] = int64_t(i);
  std::vector<const Command *> dispatches = getDispatches(*plan);
  std::vector<Bytes> values(plan->values.size()); // the bytes written so far
  auto writes = [&](const Command &dispatch, size_t operand) {
    Access access = plan->kernels[size_t(dispatch.kernel)].operands[operand].access;
    return access == Access::Write || access == Access::Update;
  };
  // A value is complete once its last part is written, and again each time it is recomputed.
  std::set<std::pair<size_t, size_t>> completes; // dispatch, operand
  std::vector<bool> isMadeNext(plan->values.size(), true);
  for (size_t number = dispatches.size(); number-- > 0;) {
    const Command &dispatch = *dispatches[number];
    std::map<int64_t, size_t> last; // by value: the last operand that writes it
    for (size_t i = 0; i < dispatch.operands.size(); ++i)
      if (int64_t value = dispatch.operands[i].value;
          value >= 0 && writes(dispatch, i) && isMadeNext[size_t(value)])
        last[value] = i;
    for (auto [value, operand] : last)
      completes.insert({number, operand});
    for (size_t i = 0; i < dispatch.operands.size(); ++i)
      if (int64_t value = dispatch.operands[i].value; value >= 0 && writes(dispatch, i)) {
        const KernelOperand &effect = plan->kernels[size_t(dispatch.kernel)].operands[i];
        isMadeNext[size_t(value)] = effect.access == Access::Write && effect.coversAll &&
                                    dispatch.operands[i].bytes == plan->values[size_t(value)].bytes;
      }
  }

  progress.begin("running entry " + entry.name + " on " + device + ", one dispatch at a time");
  std::vector<Finding> findings;
  invocation.observe([&](size_t number, size_t index, const Bytes &data) {
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
    Finding finding = {number, operand.value, written.spec.shape, {}};
    finding.comparison = compare({written.spec, std::exchange(value, Bytes())}, wide, tolerance);
    if (!finding.comparison.passes && std::isfinite(finding.comparison.largestError))
      finding.comparison.passes =
          finding.comparison.largestError <= 8 * compare(written, wide, tolerance).largestError;
    findings.push_back(std::move(finding));
  });
  return reportFindings(*plan, findings, device, tolerance, json);
}

//===- Observation.cpp - A run, one dispatch after the other --------------===//

#include "Observation.h"

#include "Profile.h"
#include "weir/Artifact/StoredBytes.h"
#include "weir/Sim/Sim.h"

using namespace weir;
using namespace weir::tool;

bool tool::isSimulator(const std::string &device) {
  return device == "sim" || device.starts_with("sim:");
}

std::string tool::getSimTarget(const std::string &device) {
  return device.size() > 4 ? device.substr(4) : "";
}

Observation::Observation(const Artifact &artifact, const std::string &path, const EntrySpec &entry,
                         const std::string &device, const std::vector<Tensor> &inputs)
    : artifact(artifact), entry(entry), inputs(inputs) {
  std::string target;
  if (isSimulator(device)) {
    target = chooseSimProfile(artifact, getSimTarget(device)).target;
  } else {
    requireCode(artifact, path, device);
    invocation = std::make_unique<Invocation>(device, path, entry, inputs);
    target = invocation->getTarget();
  }
  plan = artifact.findPlan(entry.name, target);
  profile = artifact.findProfile(target);
}

void Observation::run(const std::function<void(size_t, size_t, const Bytes &)> &observer) {
  if (invocation)
    return invocation->observe(observer);
  SimOptions options;
  options.target = profile->target;
  options.strategy = SimStrategy::Recorded;
  options.onWrite = observer;
  simulate(artifact, entry, inputs, options);
}

int64_t tool::getWordScale(const TensorSpec &type, int64_t valueBytes) {
  constexpr int64_t wordBytes = 4;
  int64_t elementBytes = getDTypeBytes(type.dtype);
  bool isApart = elementBytes < wordBytes && getByteSize(type) > 0 &&
                 valueBytes == getByteSize(type) / elementBytes * wordBytes;
  return isApart ? wordBytes / elementBytes : 1;
}

Bytes tool::takeFromWords(const Bytes &words, int64_t scale) {
  constexpr int64_t wordBytes = 4;
  Bytes elements;
  for (auto word = words.begin(); words.end() - word >= wordBytes; word += wordBytes)
    elements.insert(elements.end(), word, word + wordBytes / scale);
  return elements;
}

std::vector<int64_t> tool::findValues(const Plan &plan, const std::vector<TensorSpec> &types,
                                      const Profile &profile, const std::string &path) {
  std::vector<int64_t> numbers = plan.resultValues;
  std::vector<bool> isOutside(plan.values.size(), false);
  for (const std::vector<int64_t> *list : {&plan.argumentValues, &plan.resultValues})
    for (int64_t number : *list)
      isOutside[size_t(number)] = true;
  for (size_t number = 0; number < plan.values.size(); ++number)
    if (!isOutside[number] && plan.values[number].bytes > 0)
      numbers.push_back(int64_t(number));
  // Behind those of the graph come buffers with a word for each element of a result.
  const bool hasShort = profile.storage8 && profile.storage16;
  bool fits = hasShort ? numbers.size() == types.size() : numbers.size() >= types.size();
  if (fits)
    numbers.resize(types.size());
  for (size_t i = 0; fits && i < types.size(); ++i) {
    int64_t bytes = numbers[i] < 0 ? 0 : plan.values[size_t(numbers[i])].bytes;
    fits = bytes == getByteSize(types[i]) || bytes == getStoredBytes(types[i], profile) ||
           (!hasShort && getWordScale(types[i], bytes) > 1);
  }
  if (!fits)
    throw Error(path + ": the plan of entry '" + plan.entry +
                "' does not make the values that its ir/graph.mlir does; compile it anew, from the "
                "graph level, with this version");
  return numbers;
}

std::set<std::pair<size_t, size_t>> tool::findCompletions(const Plan &plan) {
  std::vector<const Command *> dispatches = getDispatches(plan);
  auto writes = [&](const Command &dispatch, size_t operand) {
    Access access = plan.kernels[size_t(dispatch.kernel)].operands[operand].access;
    return access == Access::Write || access == Access::Update;
  };
  std::set<std::pair<size_t, size_t>> completes;
  std::vector<bool> isMadeNext(plan.values.size(), true);
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
        const KernelOperand &effect = plan.kernels[size_t(dispatch.kernel)].operands[i];
        isMadeNext[size_t(value)] = effect.access == Access::Write && effect.coversAll &&
                                    dispatch.operands[i].bytes == plan.values[size_t(value)].bytes;
      }
  }
  return completes;
}

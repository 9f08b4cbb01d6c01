//===- Observation.cpp - A run, one dispatch after the other --------------===//

#include "Observation.h"

#include "Profile.h"
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

void Observation::run(LoopWalk &walk,
                      const std::function<void(size_t, size_t, const Bytes &)> &observer) {
  std::optional<std::pair<size_t, size_t>> last; // a dispatch and an operand of it
  auto follow = [&](size_t dispatch, size_t operand, const Bytes &data) {
    // A dispatch has each operand once each time that it runs.
    if (!last || last->first != dispatch || last->second >= operand)
      walk.advance(dispatch);
    last = {dispatch, operand};
    observer(dispatch, operand, data);
  };
  if (invocation) {
    invocation->observe(follow);
  } else {
    SimOptions options;
    options.target = profile->target;
    options.strategy = SimStrategy::Recorded;
    options.onWrite = follow;
    simulate(artifact, entry, inputs, options);
  }
  walk.finish();
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

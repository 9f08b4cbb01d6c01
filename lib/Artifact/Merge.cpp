//===- Merge.cpp - Several targets in one artifact ------------------------===//
//
// Interfaces are the same for all targets; constants may differ, since fusion does. Constants
// with equal bytes are stored once.
//
//===----------------------------------------------------------------------===//

#include "weir/Artifact/Artifact.h"

#include <algorithm>
#include <set>

using namespace weir;

static constexpr int64_t constantAlignment = 256;

static bool haveEqualBytes(const Artifact &a, const ConstantSpec &first, const Artifact &b,
                           const ConstantSpec &second) {
  if (first.tensor.dtype != second.tensor.dtype || first.tensor.shape != second.tensor.shape)
    return false;
  auto from = a.constants.begin() + first.offset;
  return std::equal(from, from + getByteSize(first.tensor), b.constants.begin() + second.offset);
}

/// Adds a constant of `other`; returns its offset.
static int64_t addConstant(Artifact &artifact, const Artifact &other, ConstantSpec constant) {
  std::vector<ConstantSpec> &constants = artifact.manifest.constants;
  std::set<std::string> names;
  for (const ConstantSpec &known : constants) {
    if (haveEqualBytes(artifact, known, other, constant))
      return known.offset;
    names.insert(known.tensor.name);
  }
  std::string name = constant.tensor.name;
  for (int i = 0; names.count(constant.tensor.name); ++i)
    constant.tensor.name = name + "_" + std::to_string(i);
  auto begin = other.constants.begin() + constant.offset;
  int64_t end = artifact.constants.size();
  constant.offset = (end + constantAlignment - 1) / constantAlignment * constantAlignment;
  artifact.constants.resize(constant.offset);
  artifact.constants.insert(artifact.constants.end(), begin, begin + getByteSize(constant.tensor));
  constants.push_back(constant);
  return constant.offset;
}

void weir::nameTarget(Artifact &artifact, const std::string &target) {
  std::string from = artifact.manifest.targets.front().target;
  auto move = [&](const std::string &path) {
    return "code/" + target + path.substr(std::string("code/").size() + from.size());
  };
  artifact.manifest.targets.front().target = target;
  for (Plan &plan : artifact.plans) {
    plan.target = target;
    for (Kernel &kernel : plan.kernels)
      kernel.code = move(kernel.code);
  }
  std::map<std::string, Bytes> code;
  for (auto &[path, bytes] : artifact.code)
    code[move(path)] = std::move(bytes);
  artifact.code = std::move(code);
  if (auto notes = artifact.notes.extract(from)) {
    notes.key() = target;
    artifact.notes.insert(std::move(notes));
  }
}

void weir::addTargets(Artifact &artifact, const Artifact &other) {
  std::map<int64_t, int64_t> moved; // offsets of constants
  for (const ConstantSpec &constant : other.manifest.constants)
    moved[constant.offset] = addConstant(artifact, other, constant);
  for (Plan plan : other.plans) {
    auto move = [&](PlanView &view) {
      if (plan.allocations[view.allocation].kind != AllocationKind::Constants)
        return;
      auto [from, to] = *std::prev(moved.upper_bound(view.offset));
      view.offset += to - from;
    };
    for (Command &command : plan.commands) {
      std::for_each(command.operands.begin(), command.operands.end(), move);
      std::for_each(command.memory.begin(), command.memory.end(), move);
    }
    artifact.plans.push_back(std::move(plan));
  }
  for (Plan &plan : artifact.plans)
    for (Allocation &allocation : plan.allocations)
      if (allocation.kind == AllocationKind::Constants)
        allocation.bytes = artifact.constants.size();
  const std::vector<Profile> &targets = other.manifest.targets;
  artifact.manifest.targets.insert(artifact.manifest.targets.end(), targets.begin(), targets.end());
  artifact.code.insert(other.code.begin(), other.code.end());
  artifact.notes.insert(other.notes.begin(), other.notes.end());
}

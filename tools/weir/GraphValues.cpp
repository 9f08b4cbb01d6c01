//===- GraphValues.cpp - The values of a plan, by its graph ---------------===//

#include "GraphValues.h"

#include "Observation.h"
#include "WithCompiler.h"
#include "weir/Artifact/StoredBytes.h"

#include <algorithm>
#include <limits>

using namespace weir;
using namespace weir::tool;

/// Reads an entry's functions and finds their values in the plan. The numbers of values go up in
/// the order of the functions, so those of one begin with the least that its commands write.
class GraphValues::Reader {
public:
  Reader(GraphValues &values, const Plan &plan, const Profile &profile, const std::string &path)
      : values(values), plan(plan), profile(profile), path(path) {}

  void read(const ExposedGraph &graph, const EntrySpec &entry);

private:
  void readWhole(Segment segment);
  void readSteps(const std::vector<ExposedStep> &steps, int64_t first, int64_t end);
  void readSegment(const ExposedStep &step, int64_t first, int64_t end);
  void readLoop(const ExposedStep &step, int64_t first, int64_t end);
  int64_t findLeast(int64_t first, int64_t end) const;
  int64_t findSource(const Loop &loop, int64_t copy) const;
  void require(bool fits) const;
  void setType(int64_t value, const TensorSpec &type);
  void add(Segment segment);

  GraphValues &values;
  const Plan &plan;
  const Profile &profile;
  const std::string &path;
  size_t nextLoop = 0;
  int64_t next = 0; ///< least number of a value that no function so far has
};

void GraphValues::Reader::require(bool fits) const {
  if (!fits)
    throw Error(path + ": the plan of entry '" + plan.entry +
                "' does not make the values that its ir/graph.mlir does; compile it anew, from the "
                "graph level, with this version");
}

/// Notes the type of a value. Values without bytes may have several.
void GraphValues::Reader::setType(int64_t value, const TensorSpec &type) {
  require(value >= 0 && size_t(value) < plan.values.size());
  const int64_t bytes = plan.values[size_t(value)].bytes;
  const bool hasShort = profile.storage8 && profile.storage16;
  require(bytes == getByteSize(type) || bytes == getStoredBytes(type, profile) ||
          (!hasShort && getWordScale(type, bytes) > 1));
  values.types.insert({value, type});
}

void GraphValues::Reader::add(Segment segment) {
  for (size_t i = 0; i < segment.made.size(); ++i) {
    if (segment.made[i] < 0) {
      require(getByteSize(segment.types[i]) == 0);
      continue;
    }
    setType(segment.made[i], segment.types[i]);
    values.makers[segment.made[i]] = {values.segments.size(), i};
  }
  values.segments.push_back(std::move(segment));
}

/// Reads an entry without loops: the plan has the values of its kernels in their order.
void GraphValues::Reader::readWhole(Segment segment) {
  segment.made = plan.resultValues;
  std::vector<bool> isOutside(plan.values.size());
  for (const std::vector<int64_t> *list : {&plan.argumentValues, &plan.resultValues})
    for (int64_t value : *list)
      if (value >= 0)
        isOutside[size_t(value)] = true;
  for (size_t value = 0; value < plan.values.size(); ++value)
    if (!isOutside[value] && plan.values[value].bytes > 0)
      segment.made.push_back(int64_t(value));
  // Behind those of the graph come buffers with a word for each element of a result.
  const size_t count = segment.types.size();
  const bool hasShort = profile.storage8 && profile.storage16;
  require(hasShort ? segment.made.size() == count : segment.made.size() >= count);
  segment.made.resize(count);
  add(std::move(segment));
}

/// Returns the least number from `next` on of a value that commands [first, end) write, or `next`.
int64_t GraphValues::Reader::findLeast(int64_t first, int64_t end) const {
  int64_t least = std::numeric_limits<int64_t>::max();
  for (int64_t i = first; i < end; ++i) {
    const Command &command = plan.commands[size_t(i)];
    if (command.kind != Command::Kind::Dispatch)
      continue;
    const std::vector<KernelOperand> &effects = plan.kernels[size_t(command.kernel)].operands;
    for (size_t k = 0; k < command.operands.size(); ++k)
      if (Access access = effects[k].access;
          (access == Access::Write || access == Access::Update) &&
          command.operands[k].value >= next)
        least = std::min(least, command.operands[k].value);
  }
  return least == std::numeric_limits<int64_t>::max() ? next : least;
}

/// Returns the value from which a loop makes a copy, or -1.
int64_t GraphValues::Reader::findSource(const Loop &loop, int64_t copy) const {
  for (int64_t i = loop.first; i < loop.end; ++i) {
    const Command &command = plan.commands[size_t(i)];
    int64_t source = -1;
    bool writes = false;
    for (const PlanOperand &operand : command.operands)
      if (operand.value == copy)
        writes = true;
      else
        source = operand.value;
    if (writes && source >= 0)
      return source;
  }
  return -1;
}

void GraphValues::Reader::readSegment(const ExposedStep &step, int64_t first, int64_t end) {
  Segment segment = {step.text, step.function, step.arguments, {}, {}, first};
  segment.types = getFunctionTypes(step.text, step.function);
  require(step.results.size() <= segment.types.size());
  for (int64_t value : step.results) {
    require(value >= 0 && size_t(value) < plan.values.size());
    segment.made.push_back(plan.values[size_t(value)].bytes > 0 ? value : -1);
    if (segment.made.back() < 0)
      setType(value, segment.types[segment.made.size() - 1]);
  }
  if (segment.made.size() < segment.types.size())
    next = findLeast(first, end);
  while (segment.made.size() < segment.types.size()) {
    require(size_t(next) < plan.values.size());
    if (plan.values[size_t(next)].bytes > 0)
      segment.made.push_back(next);
    ++next;
  }
  add(std::move(segment));
}

/// Reads a loop that is the next one of the plan, and of commands in [first, end).
void GraphValues::Reader::readLoop(const ExposedStep &step, int64_t first, int64_t end) {
  require(nextLoop < plan.loops.size());
  const Loop &loop = plan.loops[nextLoop++];
  require(loop.first >= first && loop.end <= end && loop.carried.size() == step.carried.size());
  for (size_t i = 0; i < loop.carried.size(); ++i) {
    const CarriedValue &carried = loop.carried[i];
    const ExposedCarry &told = step.carried[i];
    require(carried.init == told.init && carried.inside == told.inside &&
            carried.after == told.after && values.getType(carried.init));
    const TensorSpec type = *values.getType(carried.init);
    setType(carried.inside, type);
    setType(carried.after, type);
  }
  readSteps(step.steps, loop.first, loop.end);
  for (size_t i = 0; i < loop.carried.size(); ++i) {
    const int64_t copy = loop.carried[i].next, source = step.carried[i].next;
    if (copy == source)
      continue;
    const TensorSpec *type = values.getType(source);
    require(copy >= next && type);
    const TensorSpec copied = *type;
    setType(copy, copied);
    values.copies[copy] = source;
    // Where values change places, they go by way of other bytes.
    if (int64_t spare = findSource(loop, copy); spare >= next && !values.getType(spare)) {
      setType(spare, copied);
      values.copies[spare] = source;
    }
  }
  for (const CarriedValue &carried : loop.carried)
    next = std::max(next, carried.next + 1);
}

/// Reads the steps of commands [first, end): a function has those up to the loop behind it.
void GraphValues::Reader::readSteps(const std::vector<ExposedStep> &steps, int64_t first,
                                    int64_t end) {
  for (size_t i = 0; i < steps.size(); ++i) {
    if (steps[i].function.empty()) {
      const size_t number = nextLoop;
      readLoop(steps[i], first, end);
      first = plan.loops[number].end;
      continue;
    }
    const bool hasLoop = std::any_of(steps.begin() + int64_t(i), steps.end(),
                                     [](const ExposedStep &step) { return step.function.empty(); });
    require(!hasLoop || nextLoop < plan.loops.size());
    readSegment(steps[i], first, hasLoop ? std::min(end, plan.loops[nextLoop].first) : end);
  }
}

void GraphValues::Reader::read(const ExposedGraph &graph, const EntrySpec &entry) {
  if (graph.numBetween == 0) {
    const ExposedStep &whole = graph.steps.front();
    require(plan.loops.empty());
    return readWhole(
        {whole.text, whole.function, {}, {}, getFunctionTypes(whole.text, whole.function), 0});
  }
  require(size_t(graph.numBetween) <= plan.values.size());
  for (size_t i = 0; i < entry.arguments.size(); ++i)
    setType(int64_t(i), entry.arguments[i]);
  next = values.numBetween = graph.numBetween;
  readSteps(graph.steps, 0, int64_t(plan.commands.size()));
  require(nextLoop == plan.loops.size());
}

GraphValues::GraphValues(const Artifact &artifact, const std::string &path, const EntrySpec &entry,
                         const Plan &plan, const Profile &profile) {
  auto graph = artifact.ir.find("ir/graph.mlir");
  if (graph == artifact.ir.end())
    throw Error(path + " holds no ir/graph.mlir, which says what its values are; compile it from "
                       "the graph level");
  Reader(*this, plan, profile, path).read(exposeGraph(graph->second, entry.name, profile), entry);
}

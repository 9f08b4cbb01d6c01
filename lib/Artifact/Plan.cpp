//===- Plan.cpp - The text form of a plan ---------------------------------===//

#include "Parts.h"
#include "weir/Artifact/Error.h"

#include <cstdlib>
#include <map>
#include <set>

using namespace weir;
using ordered_json = nlohmann::ordered_json;

static const char *const accesses[] = {"none", "read", "write", "update"};
static const char *const hazardKinds[] = {"raw", "war", "waw"};
static const char *const allocationKinds[] = {"argument", "result", "constants", "arena"};

//===----------------------------------------------------------------------===//
// Printing
//===----------------------------------------------------------------------===//

template <typename Items, typename Print>
static ordered_json printList(const Items &items, Print print) {
  ordered_json list = ordered_json::array();
  for (const auto &item : items)
    list.push_back(print(item));
  return list;
}

static ordered_json printView(const PlanView &view) {
  return ordered_json::array({view.allocation, view.offset, view.bytes});
}

static ordered_json printOperand(const PlanOperand &operand) {
  ordered_json list = printView(operand);
  if (operand.value >= 0) {
    list.push_back(operand.value);
    list.push_back(operand.from);
    if (operand.before >= 0)
      list.push_back(operand.before);
  }
  return list;
}

static ordered_json printAllocation(const Allocation &allocation) {
  ordered_json object = {{"kind", allocationKinds[size_t(allocation.kind)]},
                         {"index", allocation.index},
                         {"bytes", allocation.bytes}};
  if (allocation.result >= 0)
    object["result"] = allocation.result;
  return object;
}

static ordered_json printKernel(const Kernel &kernel) {
  ordered_json object = {{"name", kernel.name},
                         {"code", kernel.code},
                         {"workgroup", kernel.workgroup},
                         {"operands", printList(kernel.operands, [](const KernelOperand &operand) {
                            ordered_json object = {{"access", accesses[size_t(operand.access)]},
                                                   {"covers_all", operand.coversAll},
                                                   {"bytes", operand.bytes},
                                                   {"alignment", operand.alignment}};
                            if (operand.slice)
                              object["slice"] = {operand.slice->begin, operand.slice->bytes,
                                                 operand.slice->stride, operand.slice->count};
                            return object;
                          })}};
  if (!kernel.inPlace.empty())
    object["in_place"] = kernel.inPlace;
  if (kernel.workgroupMemory)
    object["workgroup_memory"] = kernel.workgroupMemory;
  if (!kernel.tensorMaps.empty())
    object["tensor_maps"] = printList(kernel.tensorMaps, [](const TensorMap &map) {
      return ordered_json{
          {"operand", map.operand}, {"dtype", map.dtype}, {"shape", map.shape}, {"box", map.box}};
    });
  return object;
}

static ordered_json printHazard(const Hazard &hazard) {
  return ordered_json::array({hazardKinds[size_t(hazard.kind)], hazard.from, hazard.fromOperand,
                              hazard.to, hazard.toOperand});
}

static const char *const commandKinds[] = {"dispatch", "barrier", "signal", "wait"};

static ordered_json printCommand(const Command &command) {
  ordered_json result = {{"command", commandKinds[size_t(command.kind)]}};
  if (command.queue)
    result["queue"] = command.queue;
  switch (command.kind) {
  case Command::Kind::Dispatch:
    result.update({{"kernel", command.kernel},
                   {"grid", command.grid},
                   {"wave", command.wave},
                   {"operands", printList(command.operands, printOperand)},
                   {"location", command.location}});
    break;
  case Command::Kind::Barrier:
    result.update({{"hazards", printList(command.hazards, printHazard)},
                   {"memory", printList(command.memory, printView)}});
    break;
  case Command::Kind::Signal:
    result.update({{"signal", command.signal}, {"memory", printList(command.memory, printView)}});
    break;
  case Command::Kind::Wait:
    result.update({{"signal", command.signal}});
    break;
  }
  return result;
}

static ordered_json printLoop(const Loop &loop) {
  ordered_json result = {{"first", loop.first}, {"end", loop.end}, {"trips", loop.trips}};
  if (loop.flag)
    result["flag"] = printView(*loop.flag);
  result["carried"] = printList(loop.carried, [](const CarriedValue &carried) {
    return ordered_json::array({carried.view.allocation, carried.view.offset, carried.view.bytes,
                                carried.init, carried.inside, carried.next, carried.after});
  });
  return result;
}

std::string weir::printPlan(const Plan &plan) {
  ordered_json object = {
      {"schema_version", schemaVersion},
      {"entry", plan.entry},
      {"target", plan.target},
      {"arena_bytes", plan.arenaBytes},
      {"pinned_bytes", plan.pinnedBytes},
      {"allocations", printList(plan.allocations, printAllocation)},
      {"values", printList(plan.values,
                           [](const PlanValue &value) {
                             return ordered_json::array({value.name, value.bytes});
                           })},
      {"argument_values", plan.argumentValues},
      {"result_values", plan.resultValues},
      {"slots", printList(plan.slots,
                          [](const Slot &slot) {
                            return ordered_json::array({slot.value, slot.offset, slot.bytes,
                                                        slot.alignment, slot.firstWave,
                                                        slot.lastWave});
                          })},
      {"kernels", printList(plan.kernels, printKernel)},
      {"commands", printList(plan.commands, printCommand)}};
  if (!plan.parts.empty())
    object["parts"] = printList(plan.parts, [](const ResultPart &part) {
      return ordered_json::array({part.name, part.result, part.from, part.bytes, part.wave});
    });
  // Most plans have none.
  if (!plan.loops.empty())
    object["loops"] = printList(plan.loops, printLoop);
  return printJson(object);
}

//===----------------------------------------------------------------------===//
// Reading
//===----------------------------------------------------------------------===//

static Allocation readAllocation(const JsonNode &node) {
  node.object({"kind", "index", "bytes"}, {"result"});
  Allocation allocation;
  allocation.kind = AllocationKind(node["kind"].choice(
      {allocationKinds[0], allocationKinds[1], allocationKinds[2], allocationKinds[3]}));
  allocation.index = node["index"].integer(0);
  allocation.bytes = node["bytes"].bytes();
  if (node.has("result")) {
    allocation.result = node["result"].integer(0);
    if (allocation.kind != AllocationKind::Argument)
      node["result"].fail("is set, but the allocation is not an argument");
  }
  return allocation;
}

static PlanValue readValue(const JsonNode &node) {
  node.tuple(2);
  return {node.element(0).string(), node.element(1).bytes()};
}

static int64_t readValueNumber(const JsonNode &node) { return node.integer(-1); }

static Slot readSlot(const JsonNode &node) {
  node.tuple(6);
  Slot slot;
  slot.value = node.element(0).string();
  slot.offset = node.element(1).bytes();
  slot.bytes = node.element(2).bytes();
  slot.alignment = node.element(3).alignment();
  slot.firstWave = node.element(4).integer(0);
  slot.lastWave = node.element(5).integer(slot.firstWave);
  return slot;
}

static KernelOperand readKernelOperand(const JsonNode &node) {
  node.object({"access", "covers_all", "bytes", "alignment"}, {"slice"});
  KernelOperand operand;
  operand.access =
      Access(node["access"].choice({accesses[0], accesses[1], accesses[2], accesses[3]}));
  operand.coversAll = node["covers_all"].boolean();
  operand.bytes = node["bytes"].bytes();
  operand.alignment = node["alignment"].alignment();
  if (operand.coversAll && (operand.access == Access::None || operand.access == Access::Read))
    node["covers_all"].fail("is true, but the operand is not written");
  if (!node.has("slice"))
    return operand;
  JsonNode slice = node["slice"];
  slice.tuple(4);
  operand.slice = {slice.element(0).bytes(), slice.element(1).integer(1), slice.element(2).bytes(),
                   slice.element(3).integer(1)};
  if (operand.access != Access::Write || operand.coversAll)
    slice.fail("is set, but the operand is not written in part");
  if (operand.slice->stride <= operand.slice->bytes || operand.slice->stride > operand.bytes ||
      operand.slice->count > operand.bytes || operand.slice->begin > operand.bytes ||
      __int128(operand.slice->count - 1) * operand.slice->stride >
          operand.bytes - operand.slice->begin - __int128(operand.slice->bytes))
    slice.fail("is " + printSlice(*operand.slice) +
               ", expected bytes < stride, and runs that end within the operand's " +
               std::to_string(operand.bytes) + " bytes");
  return operand;
}

static std::pair<int64_t, int64_t> readInPlace(const JsonNode &node) {
  node.tuple(2);
  return {node.element(0).integer(0), node.element(1).integer(0)};
}

static TensorMap readTensorMap(const JsonNode &node) {
  constexpr size_t minRank = 2, maxRank = 5;
  constexpr int64_t maxSize = int64_t(1) << 31, maxBox = 256, lineBytes = 128, runBytes = 16;
  node.object({"operand", "dtype", "shape", "box"});
  static constexpr const char *dtypes[] = {"BF16", "F16", "F32"};
  TensorMap map;
  map.operand = node["operand"].integer(0);
  map.dtype = dtypes[node["dtype"].choice({dtypes[0], dtypes[1], dtypes[2]})];
  map.shape = node["shape"].list([](const JsonNode &size) { return size.integer(1, maxSize - 1); });
  map.box = node["box"].list([](const JsonNode &size) { return size.integer(1, maxBox); });
  if (map.shape.size() < minRank || map.shape.size() > maxRank)
    node["shape"].fail("has " + std::to_string(map.shape.size()) + " sizes, expected 2 to 5");
  if (map.box.size() != map.shape.size())
    node["box"].fail("has " + std::to_string(map.box.size()) + " sizes for a shape of " +
                     std::to_string(map.shape.size()));
  const int64_t element = getDTypeBytes(map.dtype);
  if (map.box.back() * element != lineBytes)
    node["box"].fail("has lines of " + std::to_string(map.box.back() * element) +
                     " bytes, expected " + std::to_string(lineBytes));
  if (map.shape.back() * element % runBytes != 0)
    node["shape"].fail("has rows of " + std::to_string(map.shape.back() * element) +
                       " bytes, expected a multiple of " + std::to_string(runBytes));
  int64_t bytes = element;
  for (int64_t size : map.shape)
    if (__builtin_mul_overflow(bytes, size, &bytes) || bytes >= int64_t(1) << 40)
      node["shape"].fail("has 2^40 bytes or more");
  return map;
}

static Kernel readKernel(const JsonNode &node) {
  node.object({"name", "code", "workgroup", "operands"},
              {"in_place", "workgroup_memory", "tensor_maps"});
  Kernel kernel;
  kernel.name = node["name"].name();
  kernel.code = node["code"].name();
  kernel.workgroup = readTriple(node["workgroup"]);
  kernel.operands = node["operands"].list(readKernelOperand);
  if (node.has("in_place"))
    kernel.inPlace = node["in_place"].list(readInPlace);
  if (node.has("workgroup_memory"))
    kernel.workgroupMemory =
        node["workgroup_memory"].integer(1, std::numeric_limits<int32_t>::max());
  if (node.has("tensor_maps"))
    kernel.tensorMaps = node["tensor_maps"].list(readTensorMap);
  return kernel;
}

static PlanView readViewElements(const JsonNode &node) {
  return {node.element(0).integer(0), node.element(1).bytes(), node.element(2).bytes()};
}

static PlanView readView(const JsonNode &node) { return readViewElements(node.tuple(3)); }

static PlanOperand readOperand(const JsonNode &node) {
  if (node.size() == 3)
    return {readView(node)};
  bool inserts = node.size() == 6;
  return {readViewElements(node.tuple(inserts ? 6 : 5)), node.element(3).integer(0),
          node.element(4).bytes(), inserts ? node.element(5).integer(0) : -1};
}

static Hazard readHazard(const JsonNode &node) {
  node.tuple(5);
  return {HazardKind(node.element(0).choice({hazardKinds[0], hazardKinds[1], hazardKinds[2]})),
          node.element(1).integer(0), node.element(2).integer(0), node.element(3).integer(0),
          node.element(4).integer(0)};
}

static ResultPart readPart(const JsonNode &node) {
  node.tuple(5);
  return {node.element(0).name(), node.element(1).integer(0), node.element(2).bytes(),
          node.element(3).bytes(), node.element(4).integer(0)};
}

static Command readCommand(const JsonNode &node) {
  Command command;
  command.kind = Command::Kind(
      node["command"].choice({commandKinds[0], commandKinds[1], commandKinds[2], commandKinds[3]}));
  // Queue 0 is not written: most plans have no other.
  if (node.has("queue"))
    command.queue = node["queue"].integer(1, maxQueues - 1);
  switch (command.kind) {
  case Command::Kind::Dispatch:
    node.object({"command", "kernel", "grid", "wave", "operands", "location"}, {"queue"});
    command.kernel = node["kernel"].integer(0);
    command.grid = readTriple(node["grid"]);
    command.wave = node["wave"].integer(0);
    command.operands = node["operands"].list(readOperand);
    command.location = node["location"].string();
    break;
  case Command::Kind::Barrier:
    node.object({"command", "hazards", "memory"}, {"queue"});
    command.hazards = node["hazards"].list(readHazard);
    command.memory = node["memory"].list(readView);
    if (command.hazards.empty())
      node["hazards"].fail("must not be empty: a barrier states what needs it");
    break;
  case Command::Kind::Signal:
    node.object({"command", "signal", "memory"}, {"queue"});
    command.signal = node["signal"].integer(0);
    command.memory = node["memory"].list(readView);
    break;
  case Command::Kind::Wait:
    node.object({"command", "signal"}, {"queue"});
    command.signal = node["signal"].integer(0);
    break;
  }
  return command;
}

static CarriedValue readCarried(const JsonNode &node) {
  node.tuple(7);
  return {readViewElements(node), node.element(3).integer(0), node.element(4).integer(0),
          node.element(5).integer(0), node.element(6).integer(0)};
}

static Loop readLoop(const JsonNode &node) {
  node.object({"first", "end", "trips", "carried"}, {"flag"});
  Loop loop;
  loop.first = node["first"].integer(0);
  loop.end = node["end"].integer(1);
  loop.trips = node["trips"].integer(1);
  if (node.has("flag"))
    loop.flag = readView(node["flag"]);
  loop.carried = node["carried"].list(readCarried);
  return loop;
}

//===----------------------------------------------------------------------===//
// Tensor maps
//===----------------------------------------------------------------------===//

int64_t TensorMap::getStride(size_t dim) const {
  int64_t bytes = getDTypeBytes(dtype);
  for (size_t inner = dim + 1; inner < shape.size(); ++inner)
    bytes *= shape[inner];
  return bytes;
}

int64_t TensorMap::getBoxBytes() const {
  int64_t bytes = getDTypeBytes(dtype);
  for (int64_t size : box)
    bytes *= size;
  return bytes;
}

//===----------------------------------------------------------------------===//
// Names
//===----------------------------------------------------------------------===//

std::string weir::describeAllocation(const Allocation &allocation, const EntrySpec &entry) {
  switch (allocation.kind) {
  case AllocationKind::Argument:
    return "argument \"" + entry.arguments[size_t(allocation.index)].name + "\"";
  case AllocationKind::Result:
    return "result \"" + entry.results[size_t(allocation.index)].name + "\"";
  case AllocationKind::Constants:
    return "the constants";
  case AllocationKind::Arena:
    return "the arena";
  }
  std::abort(); // no other kind
}

std::string weir::printSlice(const ByteSlice &slice) {
  return "[begin, bytes, stride, count] = [" + std::to_string(slice.begin) + ", " +
         std::to_string(slice.bytes) + ", " + std::to_string(slice.stride) + ", " +
         std::to_string(slice.count) + "]";
}

//===----------------------------------------------------------------------===//
// Checks across the parts
//===----------------------------------------------------------------------===//

namespace {
/// Checks the parts of a plan against each other. A `name` is called for errors only.
class PlanChecker {
public:
  PlanChecker(const Plan &plan, const std::string &where) : plan(plan), where(where) {}

  void checkEntryValues() const;
  void checkKernels() const;
  void checkAllocations() const;
  void checkCommands() const;
  void checkWaits() const;
  void checkParts() const;
  void checkLoops() const;

private:
  [[noreturn]] void fail(const std::string &complaint) const {
    throw Error(where + ": " + complaint);
  }
  void checkView(const PlanView &view, auto name) const;
  void checkValue(int64_t value, auto name) const;
  void checkOperand(const PlanOperand &operand, auto name) const;
  void checkDispatch(const Command &command, size_t number) const;
  void checkLoop(size_t number) const;

  const Plan &plan;
  const std::string &where;
};
} // namespace

void PlanChecker::checkView(const PlanView &view, auto name) const {
  if (view.allocation < 0 || size_t(view.allocation) >= plan.allocations.size())
    fail(name() + " is in allocation " + std::to_string(view.allocation) + " of " +
         std::to_string(plan.allocations.size()));
  int64_t bytes = plan.allocations[view.allocation].bytes;
  if (view.offset < 0 || view.bytes < 0 || view.bytes > bytes || view.offset > bytes - view.bytes)
    fail(name() + " has " + std::to_string(view.bytes) + " bytes at " +
         std::to_string(view.offset) + ", beyond the " + std::to_string(bytes) +
         " bytes of allocation " + std::to_string(view.allocation));
}

void PlanChecker::checkValue(int64_t value, auto name) const {
  if (value < -1 || value >= int64_t(plan.values.size()))
    fail(name() + " is value " + std::to_string(value) + " of " +
         std::to_string(plan.values.size()));
}

void PlanChecker::checkOperand(const PlanOperand &operand, auto name) const {
  checkView(operand, name);
  checkValue(operand.value, name);
  checkValue(operand.before, name);
  int64_t bytes = operand.value < 0 ? operand.bytes : plan.values[operand.value].bytes;
  if (operand.before >= 0)
    bytes = std::min(bytes, plan.values[operand.before].bytes);
  if (operand.from < 0 || operand.bytes > bytes || operand.from > bytes - operand.bytes)
    fail(name() + " is bytes " + std::to_string(operand.from) + " and on of a value of " +
         std::to_string(bytes) + " bytes, too few for its " + std::to_string(operand.bytes));
}

/// Checks that arguments and results are values of the plan.
void PlanChecker::checkEntryValues() const {
  for (size_t i = 0; i < plan.argumentValues.size(); ++i)
    checkValue(plan.argumentValues[i], [&] { return "argument " + std::to_string(i); });
  for (size_t i = 0; i < plan.resultValues.size(); ++i)
    checkValue(plan.resultValues[i], [&] { return "result " + std::to_string(i); });
}

/// Checks that kernels have different names, write in place from a read to a written operand, and
/// have tensor maps of what they read.
void PlanChecker::checkKernels() const {
  std::set<std::string> names;
  for (const Kernel &kernel : plan.kernels) {
    if (!names.insert(kernel.name).second)
      fail("two kernels are called \"" + kernel.name + "\"");
    for (auto [source, target] : kernel.inPlace) {
      int64_t count = kernel.operands.size();
      if (source < 0 || source >= count || target < 0 || target >= count ||
          kernel.operands[source].access != Access::Read ||
          kernel.operands[target].access != Access::Write)
        fail("kernel \"" + kernel.name + "\" may write operand " + std::to_string(target) +
             " over " + std::to_string(source) + ", which must be a written and a read one");
    }
    for (const TensorMap &map : kernel.tensorMaps) {
      constexpr int64_t alignment = 16;
      auto name = [&] {
        return "kernel \"" + kernel.name + "\" has a tensor map of operand " +
               std::to_string(map.operand);
      };
      if (map.operand >= int64_t(kernel.operands.size()))
        fail(name() + " of " + std::to_string(kernel.operands.size()));
      const KernelOperand &operand = kernel.operands[size_t(map.operand)];
      if (operand.access != Access::Read)
        fail(name() + ", which it does not read alone");
      if (const int64_t bytes = map.getStride(0) * map.shape[0]; bytes > operand.bytes)
        fail(name() + " of " + std::to_string(bytes) + " bytes; the operand has " +
             std::to_string(operand.bytes));
      if (operand.alignment % alignment != 0)
        fail(name() + ", whose alignment is " + std::to_string(operand.alignment) +
             ", expected a multiple of " + std::to_string(alignment));
    }
  }
}

/// Checks that allocations are different, and that each result is in one of them.
void PlanChecker::checkAllocations() const {
  std::set<int64_t> donated;
  std::set<std::pair<AllocationKind, int64_t>> allocations;
  for (const Allocation &allocation : plan.allocations) {
    if (!allocations.insert({allocation.kind, allocation.index}).second)
      fail(std::string("two allocations are \"") + allocationKinds[size_t(allocation.kind)] +
           "\" " + std::to_string(allocation.index));
    if (allocation.result >= 0 && !donated.insert(allocation.result).second)
      fail("two arguments are donated to result " + std::to_string(allocation.result));
  }
  for (int64_t result : donated)
    if (allocations.count({AllocationKind::Result, result}))
      fail("result " + std::to_string(result) + " lives in an argument and has an allocation too");
}

/// Checks a dispatch, of that number, against its kernel.
void PlanChecker::checkDispatch(const Command &command, size_t number) const {
  auto name = [&] { return "dispatch " + std::to_string(number); };
  if (command.kernel < 0 || size_t(command.kernel) >= plan.kernels.size())
    fail(name() + " launches kernel " + std::to_string(command.kernel) + " of " +
         std::to_string(plan.kernels.size()));
  const Kernel &kernel = plan.kernels[command.kernel];
  if (command.operands.size() != kernel.operands.size())
    fail(name() + " has " + std::to_string(command.operands.size()) + " operands, kernel \"" +
         kernel.name + "\" takes " + std::to_string(kernel.operands.size()));
  for (size_t i = 0; i < command.operands.size(); ++i)
    checkOperand(command.operands[i],
                 [&] { return "operand " + std::to_string(i) + " of " + name(); });
}

/// Checks dispatches, then the memory and the hazards of barriers and signals.
void PlanChecker::checkCommands() const {
  std::vector<const Command *> dispatches;
  for (const Command &command : plan.commands) {
    if (command.kind != Command::Kind::Dispatch)
      continue;
    checkDispatch(command, dispatches.size());
    dispatches.push_back(&command);
  }
  for (const Command &command : plan.commands) {
    for (const PlanView &view : command.memory)
      checkView(view, [] { return std::string("the memory of a barrier or signal"); });
    for (const Hazard &hazard : command.hazards)
      for (auto [dispatch, operand] :
           {std::pair(hazard.from, hazard.fromOperand), std::pair(hazard.to, hazard.toOperand)})
        if (dispatch < 0 || size_t(dispatch) >= dispatches.size() || operand < 0 ||
            size_t(operand) >= dispatches[dispatch]->operands.size())
          fail("a barrier names operand " + std::to_string(operand) + " of dispatch " +
               std::to_string(dispatch) + ", which does not exist");
  }
}

/// Checks that each wait is for a signal of another queue that stands before it.
void PlanChecker::checkWaits() const {
  std::map<int64_t, int64_t> signals; // their queues
  for (const Command &command : plan.commands) {
    auto name = [&] { return std::to_string(command.signal); };
    if (command.kind == Command::Kind::Signal &&
        !signals.insert({command.signal, command.queue}).second)
      fail("two signals have the number " + name());
    if (command.kind != Command::Kind::Wait)
      continue;
    auto signal = signals.find(command.signal);
    if (signal == signals.end())
      fail("a wait for signal " + name() + " stands before that signal: it could wait forever");
    if (signal->second == command.queue)
      fail("a wait for signal " + name() + " is on the signal's own queue");
  }
}

/// Checks that parts have different names, and lie in their results.
void PlanChecker::checkParts() const {
  if (!plan.parts.empty() && !plan.loops.empty())
    fail("a plan with loops has parts of results, whose waves are those of one trip");
  std::set<std::string> names;
  for (const ResultPart &part : plan.parts) {
    auto name = [&] { return "part \"" + part.name + "\""; };
    if (!names.insert(part.name).second)
      fail("two parts of results are called \"" + part.name + "\"");
    if (part.result < 0 || size_t(part.result) >= plan.resultValues.size())
      fail(name() + " is of result " + std::to_string(part.result) + " of " +
           std::to_string(plan.resultValues.size()));
    int64_t value = plan.resultValues[size_t(part.result)];
    int64_t bytes = value < 0 ? 0 : plan.values[size_t(value)].bytes;
    if (part.bytes < 1 || part.from < 0 || part.bytes > bytes || part.from > bytes - part.bytes)
      fail(name() + " has " + std::to_string(part.bytes) + " bytes from " +
           std::to_string(part.from) + " of a result of " + std::to_string(bytes) + " bytes");
  }
}

/// Checks one loop: its commands, its carried bytes and its flag.
void PlanChecker::checkLoop(size_t number) const {
  const Loop &loop = plan.loops[number];
  auto name = [&] { return "loop " + std::to_string(number); };
  if (loop.first < 0 || loop.first >= loop.end || size_t(loop.end) > plan.commands.size())
    fail(name() + " is of commands [" + std::to_string(loop.first) + ", " +
         std::to_string(loop.end) + ") of " + std::to_string(plan.commands.size()));
  for (const CarriedValue &carried : loop.carried) {
    auto what = [&] { return "a carried value of " + name(); };
    checkView(carried.view, what);
    for (int64_t value : {carried.init, carried.inside, carried.next, carried.after}) {
      checkValue(value, what);
      if (value < 0 || plan.values[size_t(value)].bytes != carried.view.bytes)
        fail(what() + " has " + std::to_string(carried.view.bytes) +
             " bytes, which is not what value " + std::to_string(value) + " has");
    }
  }
  if (!loop.flag)
    return;
  checkView(*loop.flag, [&] { return "the flag of " + name(); });
  bool isCarried =
      std::any_of(loop.carried.begin(), loop.carried.end(), [&](const CarriedValue &carried) {
        return carried.view.allocation == loop.flag->allocation &&
               carried.view.offset == loop.flag->offset;
      });
  if (loop.flag->bytes != 1 || !isCarried)
    fail("the flag of " + name() + " is not the first byte of a carried value");
}

/// Checks that loops are nested, in order, and of a single queue.
void PlanChecker::checkLoops() const {
  std::vector<size_t> around;
  for (size_t i = 0; i < plan.loops.size(); ++i) {
    checkLoop(i);
    const Loop &loop = plan.loops[i];
    if (i > 0 && (plan.loops[i - 1].first > loop.first ||
                  (plan.loops[i - 1].first == loop.first && plan.loops[i - 1].end <= loop.end)))
      fail("loop " + std::to_string(i) + " stands out of order");
    while (!around.empty() && plan.loops[around.back()].end <= loop.first)
      around.pop_back();
    if (!around.empty() && plan.loops[around.back()].end < loop.end)
      fail("loop " + std::to_string(i) + " ends behind loop " + std::to_string(around.back()) +
           ", in which it begins");
    around.push_back(i);
  }
  if (!plan.loops.empty())
    for (const Command &command : plan.commands)
      if (command.queue != 0 || command.kind == Command::Kind::Signal ||
          command.kind == Command::Kind::Wait)
        fail("a plan with loops has one queue");
}

void weir::checkPlan(const Plan &plan, const std::string &where) {
  PlanChecker checker(plan, where);
  checker.checkEntryValues();
  checker.checkKernels();
  checker.checkAllocations();
  checker.checkCommands();
  checker.checkWaits();
  checker.checkParts();
  checker.checkLoops();
}

Plan weir::parsePlan(const std::string &json, const std::string &where) {
  Plan plan;
  auto readInto = [](auto &list, auto read) {
    return [&list, read](const JsonNode &node) { list.push_back(read(node)); };
  };
  // Reserve room for all commands, most of the text, to avoid copies.
  constexpr size_t minText = 100;
  plan.commands.reserve(json.size() / minText);
  Json tree = parseJson(json, where,
                        {{"values", readInto(plan.values, readValue)},
                         {"slots", readInto(plan.slots, readSlot)},
                         {"commands", readInto(plan.commands, readCommand)}});
  JsonNode node(tree, where);
  readSchemaVersion(node);
  node.object({"schema_version", "entry", "target", "arena_bytes", "pinned_bytes", "allocations",
               "values", "argument_values", "result_values", "slots", "kernels", "commands"},
              {"loops", "parts"});
  for (const char *list : {"values", "slots", "commands"})
    node[list].size(); // checks that it is an array
  plan.entry = readFileName(node["entry"]);
  plan.target = readFileName(node["target"]);
  plan.arenaBytes = node["arena_bytes"].bytes();
  plan.pinnedBytes = node["pinned_bytes"].bytes();
  plan.allocations = node["allocations"].list(readAllocation);
  plan.argumentValues = node["argument_values"].list(readValueNumber);
  plan.resultValues = node["result_values"].list(readValueNumber);
  plan.kernels = node["kernels"].list(readKernel);
  if (node.has("parts"))
    plan.parts = node["parts"].list(readPart);
  if (node.has("loops"))
    plan.loops = node["loops"].list(readLoop);
  checkPlan(plan, where);
  return plan;
}

//===- Link.cpp - One plan of the plans of segments -----------------------===//

#include "weir/Order/Link.h"

#include "weir/Artifact/Loops.h"
#include "weir/Order/Hazards.h"
#include "weir/Planner/Planner.h"

#include <algorithm>
#include <functional>
#include <map>
#include <numeric>
#include <set>

using namespace weir;

namespace {
/// Bytes that get one place: those of values that share them, or a segment's own arena.
struct Home {
  std::string name;
  int64_t bytes = 0;
  int64_t firstWave = -1, lastWave = -1;
  int64_t argument = -1, result = -1; ///< of the entry, whose bytes these are
  bool isConstants = false;
  bool isArena = false; ///< of one segment
  size_t segment = 0;
  PlanView place = {}; ///< once it is known

  void use(int64_t wave) {
    firstWave = firstWave < 0 ? wave : std::min(firstWave, wave);
    lastWave = std::max(lastWave, wave);
  }
};

class Linker {
public:
  explicit Linker(const LinkedProgram &program) : program(program), owners(program.values) {
    std::iota(owners.begin(), owners.end(), 0);
  }

  Plan link();

private:
  /// A loop's dispatches [first, end), waves included, until commands are known.
  struct Range {
    size_t first = 0, end = 0;
    int64_t firstWave = 0, lastWave = 0;
    std::vector<size_t> carriedHomes;
  };

  int64_t find(int64_t value);
  void join(int64_t a, int64_t b);
  bool isWithin(int64_t value, const std::set<int64_t> &values);
  void joinSteps(const std::vector<LinkedStep> &steps);
  void addValues();
  size_t getHome(int64_t value);
  void addSteps(const std::vector<LinkedStep> &steps);
  void addSegment(size_t segment, const std::vector<int64_t> &arguments,
                  const std::vector<int64_t> &results);
  void addLoop(const LinkedStep &step);
  std::vector<std::pair<size_t, int64_t>> addCopies(const LinkedStep &step);
  int64_t addCopy(size_t segment, int64_t from, size_t source, int64_t to, size_t target);
  int64_t addKernel(const Kernel &kernel);
  int64_t addValue(const std::string &name, int64_t bytes);
  void extendLives();
  void placeHomes();
  void addOrder();
  std::vector<size_t> getEdges() const;

  const LinkedProgram &program;
  Plan plan;
  std::vector<int64_t> owners;      ///< by value: another one with the same bytes
  std::map<int64_t, size_t> homeOf; ///< by owner
  std::vector<Home> homes;
  std::vector<Command> dispatches; ///< operands have homes as allocations until these have places
  std::vector<Range> ranges;       ///< by loop of the plan
  std::map<std::string, int64_t> kernels;
  int64_t wave = 0; ///< of the next segment
};
} // namespace

//===----------------------------------------------------------------------===//
// Values
//===----------------------------------------------------------------------===//

int64_t Linker::find(int64_t value) {
  while (owners[size_t(value)] != value)
    value = owners[size_t(value)];
  return value;
}

void Linker::join(int64_t a, int64_t b) {
  a = find(a);
  b = find(b);
  owners[size_t(std::max(a, b))] = std::min(a, b);
}

/// Whether a segment of the steps takes a value.
static bool isTaken(const std::vector<LinkedStep> &steps, int64_t value) {
  return std::any_of(steps.begin(), steps.end(), [&](const LinkedStep &step) {
    return std::count(step.arguments.begin(), step.arguments.end(), value) ||
           isTaken(step.steps, value);
  });
}

/// Adds the values that the steps make.
static void addMade(const std::vector<LinkedStep> &steps, std::set<int64_t> &made) {
  for (const LinkedStep &step : steps) {
    made.insert(step.results.begin(), step.results.end());
    for (const LinkedCarry &carried : step.carried)
      made.insert({carried.inside, carried.after});
    addMade(step.steps, made);
  }
}

/// Whether all values that share bytes with one are among those of a set.
bool Linker::isWithin(int64_t value, const std::set<int64_t> &values) {
  for (int64_t other = 0; other < int64_t(owners.size()); ++other)
    if (find(other) == find(value) && !values.count(other))
      return false;
  return true;
}

/// Joins values that share bytes: what segments update in place, and what loops carry.
void Linker::joinSteps(const std::vector<LinkedStep> &steps) {
  for (const LinkedStep &step : steps) {
    if (!step.isLoop) {
      for (const Allocation &allocation : program.segments[step.segment].allocations)
        if (allocation.result >= 0)
          join(step.arguments[size_t(allocation.index)], step.results[size_t(allocation.result)]);
      continue;
    }
    for (const LinkedCarry &carried : step.carried) {
      join(carried.init, carried.inside);
      join(carried.inside, carried.after);
    }
    joinSteps(step.steps);
    // A value that no segment of a trip takes, such as a flag, is gone when the trip begins: its
    // next one may be made there, unless that shares bytes with what comes from outside of the
    // trip.
    std::set<int64_t> made;
    addMade(step.steps, made);
    for (const LinkedCarry &carried : step.carried)
      if (!isTaken(step.steps, carried.inside) && isWithin(carried.next, made))
        join(carried.next, carried.inside);
  }
}

/// Finds the bytes of all values between segments, and gives them the first numbers of the plan.
void Linker::addValues() {
  plan.values.resize(program.values);
  std::vector<bool> isKnown(program.values);
  auto set = [&](int64_t value, PlanValue known) {
    if (isKnown[size_t(value)])
      return;
    isKnown[size_t(value)] = true;
    // A segment knows its arguments and results by number.
    if (value >= int64_t(program.entry.arguments.size()))
      known.name = "between" + std::to_string(value);
    plan.values[size_t(value)] = std::move(known);
  };
  std::function<void(const std::vector<LinkedStep> &)> look = [&](const auto &steps) {
    for (const LinkedStep &step : steps) {
      const Plan *segment = step.isLoop ? nullptr : &program.segments[step.segment];
      for (size_t i = 0; segment && i < step.arguments.size(); ++i)
        set(step.arguments[i], segment->values[size_t(segment->argumentValues[i])]);
      for (size_t i = 0; segment && i < step.results.size(); ++i)
        set(step.results[i], segment->values[size_t(segment->resultValues[i])]);
      look(step.steps);
      for (const LinkedCarry &carried : step.carried)
        for (int64_t value : {carried.inside, carried.after, carried.next})
          set(value, plan.values[size_t(carried.init)]);
    }
  };
  for (size_t i = 0; i < program.entry.arguments.size(); ++i)
    set(int64_t(i), {program.entry.arguments[i].name, program.argumentBytes[i]});
  look(program.steps);
  for (size_t i = 0; i < program.results.size(); ++i)
    plan.values[size_t(program.results[i])].name = program.entry.results[i].name;
}

int64_t Linker::addValue(const std::string &name, int64_t size) {
  plan.values.push_back({name, size});
  return int64_t(plan.values.size()) - 1;
}

size_t Linker::getHome(int64_t value) {
  auto [known, isNew] = homeOf.try_emplace(find(value), homes.size());
  if (isNew) {
    const PlanValue &held = plan.values[size_t(find(value))];
    homes.push_back({held.name, held.bytes});
  }
  return known->second;
}

//===----------------------------------------------------------------------===//
// Steps
//===----------------------------------------------------------------------===//

int64_t Linker::addKernel(const Kernel &kernel) {
  auto [known, isNew] = kernels.try_emplace(kernel.name, int64_t(plan.kernels.size()));
  if (isNew)
    plan.kernels.push_back(kernel);
  return known->second;
}

void Linker::addSegment(size_t number, const std::vector<int64_t> &arguments,
                        const std::vector<int64_t> &results) {
  const Plan &segment = program.segments[number];
  std::vector<size_t> here; // homes by allocation
  for (const Allocation &allocation : segment.allocations) {
    bool isResult = allocation.kind == AllocationKind::Result;
    if (isResult || allocation.kind == AllocationKind::Argument) {
      here.push_back(getHome((isResult ? results : arguments)[size_t(allocation.index)]));
      continue;
    }
    here.push_back(homes.size());
    Home home = {plan.entry, allocation.bytes};
    home.isConstants = allocation.kind == AllocationKind::Constants;
    home.isArena = !home.isConstants;
    home.segment = number;
    homes.push_back(home);
  }
  std::vector<int64_t> values(segment.values.size(), -1);
  for (size_t i = 0; i < arguments.size(); ++i)
    if (segment.argumentValues[i] >= 0)
      values[size_t(segment.argumentValues[i])] = arguments[i];
  for (size_t i = 0; i < results.size(); ++i)
    if (segment.resultValues[i] >= 0)
      values[size_t(segment.resultValues[i])] = results[i];
  for (size_t i = 0; i < values.size(); ++i)
    if (values[i] < 0)
      values[i] = addValue(segment.values[i].name, segment.values[i].bytes);
  int64_t firstWave = wave;
  for (Command command : segment.commands) {
    if (command.kind != Command::Kind::Dispatch)
      continue;
    command.kernel = addKernel(segment.kernels[size_t(command.kernel)]);
    command.queue = 0;
    command.wave += firstWave;
    wave = std::max(wave, command.wave + 1);
    for (PlanOperand &operand : command.operands) {
      size_t home = here[size_t(operand.allocation)];
      homes[home].use(command.wave);
      operand.allocation = int64_t(home);
      if (operand.value >= 0)
        operand.value = values[size_t(operand.value)];
      if (operand.before >= 0)
        operand.before = values[size_t(operand.before)];
    }
    dispatches.push_back(std::move(command));
  }
  for (const Slot &slot : segment.slots) {
    Slot moved = slot;
    moved.firstWave += firstWave;
    moved.lastWave += firstWave;
    plan.slots.push_back(moved); // moved by its arena's place later
  }
}

/// Adds the dispatches of a segment that copies its argument. Returns the wave behind them.
int64_t Linker::addCopy(size_t segment, int64_t from, size_t source, int64_t to, size_t target) {
  const Plan &copy = program.segments[segment];
  int64_t end = wave;
  for (Command command : copy.commands) {
    if (command.kind != Command::Kind::Dispatch)
      continue;
    command.kernel = addKernel(copy.kernels[size_t(command.kernel)]);
    command.queue = 0;
    command.wave += wave;
    end = std::max(end, command.wave + 1);
    for (PlanOperand &operand : command.operands) {
      bool isSource = copy.allocations[size_t(operand.allocation)].kind == AllocationKind::Argument;
      operand.allocation = int64_t(isSource ? source : target);
      operand.value = isSource ? from : to;
      homes[size_t(operand.allocation)].use(command.wave);
    }
    dispatches.push_back(std::move(command));
  }
  return end;
}

/// Copies what a trip made elsewhere to the bytes where the next one expects it. Returns the home
/// and the value at the end of the trip of each carried value.
std::vector<std::pair<size_t, int64_t>> Linker::addCopies(const LinkedStep &step) {
  std::set<size_t> carriedHomes;
  for (const LinkedCarry &carried : step.carried)
    carriedHomes.insert(getHome(carried.inside));
  std::vector<std::pair<size_t, int64_t>> sources; // home and value
  for (const LinkedCarry &carried : step.carried)
    sources.push_back({getHome(carried.next), carried.next});
  auto name = [&](int64_t value) { return plan.values[size_t(value)].name; };
  // First out of the bytes of other carried values, then to their own.
  int64_t end = wave;
  for (size_t i = 0; i < sources.size(); ++i) {
    auto &[home, value] = sources[i];
    if (home == getHome(step.carried[i].inside) || !carriedHomes.count(home))
      continue;
    const int64_t size = plan.values[size_t(value)].bytes;
    int64_t made = addValue(name(value), size);
    size_t spare = homes.size();
    homes.push_back({name(value), size});
    end = std::max(end, addCopy(step.carried[i].copy, value, home, made, spare));
    sources[i] = {spare, made};
  }
  wave = end;
  for (size_t i = 0; i < sources.size(); ++i) {
    auto &[home, value] = sources[i];
    size_t own = getHome(step.carried[i].inside);
    if (home == own)
      continue;
    int64_t made = addValue(name(value), plan.values[size_t(value)].bytes);
    end = std::max(end, addCopy(step.carried[i].copy, value, home, made, own));
    sources[i] = {own, made};
  }
  wave = end;
  return sources;
}

void Linker::addLoop(const LinkedStep &step) {
  size_t number = plan.loops.size();
  plan.loops.emplace_back();
  ranges.emplace_back();
  Range range = {dispatches.size(), 0, wave, 0, {}};
  addSteps(step.steps);
  auto ends = addCopies(step);
  range.end = dispatches.size();
  range.lastWave = wave - 1;
  Loop &loop = plan.loops[number];
  loop.trips = step.trips;
  for (size_t i = 0; i < step.carried.size(); ++i) {
    const LinkedCarry &carried = step.carried[i];
    size_t home = ends[i].first;
    range.carriedHomes.push_back(home);
    PlanView view = {int64_t(home), 0, homes[home].bytes};
    loop.carried.push_back({view, carried.init, carried.inside, ends[i].second, carried.after});
    if (step.flag == int64_t(i))
      loop.flag = PlanView{int64_t(home), 0, 1};
  }
  ranges[number] = std::move(range);
}

void Linker::addSteps(const std::vector<LinkedStep> &steps) {
  for (const LinkedStep &step : steps)
    if (step.isLoop)
      addLoop(step);
    else
      addSegment(step.segment, step.arguments, step.results);
}

//===----------------------------------------------------------------------===//
// Places
//===----------------------------------------------------------------------===//

/// Makes all bytes that enter, leave or go round a loop live throughout it.
void Linker::extendLives() {
  for (size_t i = ranges.size(); i-- > 0;) { // inner loops first
    const Range &range = ranges[i];
    for (size_t home : range.carriedHomes) {
      homes[home].use(range.firstWave);
      homes[home].use(range.lastWave);
    }
    for (Home &home : homes) {
      bool touches = home.firstWave <= range.lastWave && home.lastWave >= range.firstWave;
      bool leaves = home.firstWave < range.firstWave || home.lastWave > range.lastWave;
      if (home.firstWave < 0 || !touches || !leaves)
        continue;
      home.use(range.firstWave);
      home.use(range.lastWave);
    }
  }
}

/// Finds the allocation and offset of each home.
void Linker::placeHomes() {
  std::map<std::pair<AllocationKind, int64_t>, int64_t> known;
  auto addAllocation = [&](AllocationKind kind, int64_t index, int64_t size) {
    auto [found, isNew] = known.try_emplace({kind, index}, int64_t(plan.allocations.size()));
    if (isNew)
      plan.allocations.push_back({kind, index, size});
    return found->second;
  };
  // Arguments and results have an allocation, used or not.
  for (size_t i = 0; i < program.entry.arguments.size(); ++i) {
    const PlanValue &value = plan.values[i];
    plan.argumentValues.push_back(value.bytes ? int64_t(i) : -1);
    Home &home = homes[getHome(int64_t(i))];
    home.argument = addAllocation(AllocationKind::Argument, int64_t(i), value.bytes);
    home.place = {home.argument, 0, value.bytes};
  }
  for (size_t i = 0; i < program.results.size(); ++i) {
    int64_t value = program.results[i], size = plan.values[size_t(value)].bytes;
    plan.resultValues.push_back(size ? value : -1);
    Home &home = homes[getHome(value)];
    home.result = int64_t(i);
    if (home.argument >= 0) {
      plan.allocations[size_t(home.argument)].result = int64_t(i);
      continue;
    }
    home.place = {addAllocation(AllocationKind::Result, int64_t(i), size), 0, size};
  }
  std::vector<Lifetime> lives;
  std::vector<size_t> numbers;
  for (size_t i = 0; i < homes.size(); ++i) {
    Home &home = homes[i];
    if (home.isConstants) {
      home.place = {addAllocation(AllocationKind::Constants, 0, home.bytes), 0, home.bytes};
    } else if (home.argument < 0 && home.result < 0 && home.firstWave >= 0) {
      constexpr int64_t alignment = 256;
      lives.push_back({home.bytes, alignment, home.firstWave, home.lastWave});
      numbers.push_back(i);
    }
  }
  MemoryPlan memory = planMemory(lives, /*noReuse=*/false);
  plan.arenaBytes = memory.arenaBytes;
  plan.pinnedBytes = memory.pinnedBytes;
  int64_t arena = plan.arenaBytes ? addAllocation(AllocationKind::Arena, 0, plan.arenaBytes) : -1;
  std::vector<Slot> slots;
  for (size_t i = 0; i < numbers.size(); ++i) {
    Home &home = homes[numbers[i]];
    home.place = {arena, memory.offsets[i], home.bytes};
    if (!home.isArena)
      slots.push_back(
          {home.name, memory.offsets[i], home.bytes, 256, home.firstWave, home.lastWave});
    else
      for (Slot slot : plan.slots) // of this segment
        if (slot.firstWave >= home.firstWave && slot.lastWave <= home.lastWave) {
          slot.offset += memory.offsets[i];
          slots.push_back(std::move(slot));
        }
  }
  plan.slots = std::move(slots);
  auto place = [&](PlanView &view) {
    const PlanView &at = homes[size_t(view.allocation)].place;
    view.allocation = at.allocation;
    view.offset += at.offset;
  };
  for (Command &command : dispatches)
    std::for_each(command.operands.begin(), command.operands.end(), place);
  for (Loop &loop : plan.loops) {
    for (CarriedValue &carried : loop.carried)
      place(carried.view);
    if (loop.flag)
      place(*loop.flag);
  }
}

//===----------------------------------------------------------------------===//
// Order
//===----------------------------------------------------------------------===//

/// Returns the dispatches before which a loop begins or ends, in order.
std::vector<size_t> Linker::getEdges() const {
  std::set<size_t> edges;
  for (const Range &range : ranges) {
    edges.insert(range.first);
    edges.insert(range.end);
  }
  return {edges.begin(), edges.end()};
}

/// Returns what the dispatches [first, end) access, in this order.
static CommandAccesses getAccesses(const Plan &plan, const std::vector<Command> &dispatches) {
  CommandAccesses accesses;
  accesses.mayShare.resize(plan.allocations.size());
  for (const Command &command : dispatches) {
    DispatchAccesses &uses = accesses.dispatches.emplace_back();
    const Kernel &kernel = plan.kernels[size_t(command.kernel)];
    for (size_t i = 0; i < command.operands.size(); ++i) {
      const PlanOperand &view = command.operands[i];
      Access access = kernel.operands[i].access;
      OperandAccess use;
      use.operand = int64_t(i);
      use.allocation = view.allocation;
      use.range = {view.offset, view.offset + view.bytes};
      use.reads = access == Access::Read || access == Access::Update;
      use.writes = access == Access::Write || access == Access::Update;
      if (view.bytes && (use.reads || use.writes))
        uses.push_back(use);
    }
  }
  return accesses;
}

/// Records dispatches and barriers, and counts the loops' commands.
void Linker::addOrder() {
  const std::vector<size_t> edges = getEdges();
  // By the dispatch that a barrier stands before; at an edge where a loop ends and another one
  // begins there are two, the first inside of the loop that ends.
  std::map<size_t, std::vector<Hazard>> atEnd, before;
  auto isEnd = [&](size_t edge) {
    return std::any_of(ranges.begin(), ranges.end(),
                       [&](const Range &range) { return range.end == edge; });
  };
  std::vector<Hazard> hazards = findHazards(getAccesses(plan, dispatches));
  std::vector<Hazard> inside; // between two edges
  for (const Hazard &hazard : hazards) {
    auto edge = std::upper_bound(edges.begin(), edges.end(), size_t(hazard.from));
    if (edge == edges.end() || *edge > size_t(hazard.to))
      inside.push_back(hazard);
    else
      (isEnd(*edge) ? atEnd : before)[*edge].push_back(hazard);
  }
  // Between a trip and the next one.
  for (const Range &range : ranges) {
    std::vector<Command> twice(dispatches.begin() + int64_t(range.first),
                               dispatches.begin() + int64_t(range.end));
    const int64_t count = int64_t(twice.size()), first = int64_t(range.first);
    twice.insert(twice.end(), dispatches.begin() + first, dispatches.begin() + first + count);
    for (Hazard hazard : findHazards(getAccesses(plan, twice))) {
      if (hazard.from >= count || hazard.to < count)
        continue;
      hazard.from += first;
      hazard.to += first - count;
      // An inner loop's edge may serve it already, but the last trip of that loop is no help to
      // what follows it.
      atEnd[range.end].push_back(hazard);
    }
  }
  std::vector<int64_t> queues(dispatches.size());
  for (PlannedBarrier &barrier : planOrder(inside, queues).barriers)
    before[size_t(barrier.before)] = std::move(barrier.hazards);
  auto addBarrier = [&](std::vector<Hazard> &served) {
    Command barrier;
    barrier.kind = Command::Kind::Barrier;
    barrier.hazards = std::move(served);
    for (const Hazard &hazard : barrier.hazards)
      if (const PlanView &view =
              dispatches[size_t(hazard.from)].operands[size_t(hazard.fromOperand)];
          hazard.kind != HazardKind::WAR &&
          std::find(barrier.memory.begin(), barrier.memory.end(), view) == barrier.memory.end())
        barrier.memory.push_back(view);
    plan.commands.push_back(std::move(barrier));
  };
  for (size_t i = 0; i <= dispatches.size(); ++i) {
    if (auto hazardsHere = atEnd.find(i); hazardsHere != atEnd.end())
      addBarrier(hazardsHere->second);
    for (size_t loop = 0; loop < ranges.size(); ++loop)
      if (ranges[loop].end == i)
        plan.loops[loop].end = int64_t(plan.commands.size());
    if (auto hazardsHere = before.find(i); hazardsHere != before.end())
      addBarrier(hazardsHere->second);
    for (size_t loop = 0; loop < ranges.size(); ++loop)
      if (ranges[loop].first == i)
        plan.loops[loop].first = int64_t(plan.commands.size());
    if (i < dispatches.size())
      plan.commands.push_back(dispatches[i]); // later barriers look at its operands
  }
}

Plan Linker::link() {
  plan.entry = program.entry.name;
  plan.target = program.segments.front().target;
  joinSteps(program.steps);
  addValues();
  addSteps(program.steps);
  for (size_t i = 0; i < program.entry.arguments.size(); ++i)
    getHome(int64_t(i));
  for (int64_t value : program.results)
    getHome(value);
  extendLives();
  placeHomes();
  addOrder();
  return std::move(plan);
}

Plan weir::linkPlans(const LinkedProgram &program) { return Linker(program).link(); }

//===- VerifyOrdered.cpp - The gate of the ordered level ------------------===//
//
// Walks the list and remembers, for each run of bytes, who touched it last.
// Everyone who touches it next must come after them by the vector clocks of the
// finished list; no hazard that barriers, signals or waits were made from is
// asked for.
//
//===----------------------------------------------------------------------===//

#include "passes/Gates.h"

#include "dialects/Schedule/Schedule.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "weir/Analysis/CommandList.h"

#include <limits>
#include <map>
#include <set>

namespace weir {
#define GEN_PASS_DEF_VERIFYORDEREDPASS
#include "passes/Passes.h.inc"
} // namespace weir

using namespace mlir;
using namespace weir;

namespace {
struct Touch {
  int64_t dispatch = -1; ///< -1: none
  const OperandAccess *access = nullptr;
};

/// The last dispatches that touched some bytes: the last writer and each queue's last reader since.
/// A dispatch that is ordered after these is ordered after all earlier ones: each queue's earlier
/// ones went before them in every clock.
struct LastTouches {
  Touch writer;
  SmallVector<Touch, 1> readers; ///< of different queues
};

/// LastTouches for the bytes of one allocation, kept for runs of bytes.
class TouchedBytes {
public:
  template <typename Visit> void visit(ByteRange range, Visit visit) {
    split(range.end);
    for (auto run = split(range.begin); run != runs.end() && run->first < range.end; ++run) {
      auto next = std::next(run);
      int64_t end = next == runs.end() ? std::numeric_limits<int64_t>::max() : next->first;
      visit(run->second, ByteRange{run->first, end});
    }
  }
  void write(ByteRange range, Touch touch) {
    auto last = split(range.end);
    runs.erase(std::next(split(range.begin)), last);
    runs[range.begin] = {touch, {}};
  }

  /// Accesses that leave out bytes of their range, of which no write hides one.
  std::vector<Touch> strided;
  /// The last ones that touched all bytes, by queue.
  std::vector<Touch> lastWriters, lastReaders;

private:
  std::map<int64_t, LastTouches>::iterator split(int64_t at) {
    auto next = runs.lower_bound(at);
    if (next != runs.end() && next->first == at)
      return next;
    return runs.emplace_hint(next, at, std::prev(next)->second);
  }

  std::map<int64_t, LastTouches> runs = {{0, {}}};
};

/// The memory that a barrier or signal makes visible.
class Memory {
public:
  Memory() = default;
  explicit Memory(ValueRange memory) : memory(memory) {}

  /// Whether it has all bytes of the view `operand`.
  bool shows(Value operand, const CommandList &list);

private:
  /// Most barriers show one view, and are asked for that.
  struct Index {
    Index(ValueRange memory, const CommandList &list);

    llvm::DenseSet<Value> values;
    std::set<std::pair<int64_t, StridedBytes>> bytes;
    SmallVector<View> views;
  };

  ValueRange memory;
  std::unique_ptr<Index> index;
};

struct VerifyOrdered : weir::impl::VerifyOrderedPassBase<VerifyOrdered> {
  using VerifyOrderedPassBase::VerifyOrderedPassBase;

  void runOnOperation() override;

private:
  void verifyFunction(func::FuncOp function, Effects &effects, Views &views,
                      DenseMap<Operation *, ListHazards> &found);
};

/// Checks one list.
class ListCheck {
public:
  ListCheck(const ListHazards &known, const QueueCommands &commands)
      : list(known.list), hazards(known.hazards), commands(commands),
        happensBefore(commands.commands), touched(list.allocations.size()),
        memories(commands.ops.size()) {
    for (const QueueCommand &command : commands.commands)
      severalQueues |= command.queue != commands.commands.front().queue;
  }

  LogicalResult run();

private:
  InFlightDiagnostic fail(Operation *op) {
    result = failure();
    return op->emitOpError();
  }
  int64_t getQueue(int64_t dispatch) const {
    return commands.commands[commands.dispatches[dispatch]].queue;
  }
  bool isOrdered(int64_t from, int64_t to) const {
    return happensBefore(commands.dispatches[from], commands.dispatches[to]);
  }
  void verifyDispatch(int64_t dispatch);
  void verifyAccess(Touch to);
  std::string getName(int64_t dispatch) const;
  void require(Touch from, Touch to, ByteRange bytes);
  void record(Touch touch, bool write);
  void verifyBarriers();
  void verifyBarrier(schedule::BarrierOp barrier, Memory &memory);
  void verifyVisible();

  const CommandList &list;
  const std::vector<Hazard> &hazards;
  const QueueCommands &commands;
  HappensBefore happensBefore;
  bool severalQueues = false;
  llvm::SmallDenseSet<int64_t> unordered; ///< with the dispatch being checked
  std::vector<TouchedBytes> touched;      ///< by allocation
  std::vector<Memory> memories;           ///< of barriers and signals, by command
  LogicalResult result = success();
};
} // namespace

/// Whether all command lists are of functions that others made. They promise
/// nothing of what an artifact needs, and are only checked for their order.
static bool isForeign(ModuleOp module) {
  if (module->hasAttr(schedule::profileAttrName))
    return false;
  bool lists = false, entries = false;
  module.walk([&](Operation *op) {
    lists |= isa<schedule::CommandsOp>(op);
    entries |= op->hasAttr(schedule::entryAttrName);
  });
  return lists && !entries;
}

void VerifyOrdered::runOnOperation() {
  Effects &effects = getAnalysis<Effects>();
  Views &views = getAnalysis<Views>();
  DenseMap<Operation *, ListHazards> found;
  markAllAnalysesPreserved();
  if (!isForeign(getOperation()) &&
      (failed(verifyCommands(getOperation(), effects)) ||
       failed(verifyPlacement(getOperation(), effects, views, found))))
    return signalPassFailure();
  getOperation().walk(
      [&](func::FuncOp function) { verifyFunction(function, effects, views, found); });
}

/// Returns a text such as "bytes [0, 256) of the arena".
static std::string describe(const AllocationRef &allocation, ByteRange range) {
  std::string text = "bytes ";
  llvm::raw_string_ostream out(text);
  if (range.end != std::numeric_limits<int64_t>::max())
    out << "[" << range.begin << ", " << range.end << ") ";
  out << "of ";
  if (allocation.symbol)
    out << "constant " << allocation.symbol;
  else if (auto argument = dyn_cast<BlockArgument>(allocation.value))
    out << "argument " << argument.getArgNumber();
  else if (allocation.value.getDefiningOp()->hasAttr(schedule::arenaAttrName))
    out << "the arena";
  else
    out << "an allocation";
  return text;
}

//===----------------------------------------------------------------------===//
// Order
//===----------------------------------------------------------------------===//

/// Returns a text such as "dispatch 3 of @kernel".
std::string ListCheck::getName(int64_t dispatch) const {
  std::string name = "dispatch " + std::to_string(dispatch);
  if (auto op = dyn_cast<schedule::DispatchOp>(*list.dispatches[dispatch]))
    name += " of @" + op.getKernel().getLeafReference().str();
  return name;
}

/// Complains, once for each pair of dispatches, when nothing orders the two.
void ListCheck::require(Touch from, Touch to, ByteRange bytes) {
  if (from.dispatch < 0 || from.dispatch == to.dispatch || isOrdered(from.dispatch, to.dispatch) ||
      !unordered.insert(from.dispatch).second)
    return;
  HazardKind kind = !from.access->writes ? HazardKind::WAR
                    : to.access->reads   ? HazardKind::RAW
                                         : HazardKind::WAW;
  std::string text = describe(list.allocations[to.access->allocation], bytes);
  const char *names[] = {"RAW", "WAR", "WAW"};
  InFlightDiagnostic error = fail(list.dispatches[to.dispatch]);
  error << getName(to.dispatch) << (kind == HazardKind::RAW ? " reads " : " writes ") << text
        << " through operand " << to.access->operand << ", which " << getName(from.dispatch)
        << (from.access->writes ? " writes" : " reads") << ": a " << names[size_t(kind)]
        << " hazard, and no barrier, signal or wait orders the two";
  error.attachNote(list.dispatches[from.dispatch]->getLoc())
      << getName(from.dispatch) << ", through operand " << from.access->operand;
}

void ListCheck::verifyAccess(Touch to) {
  const OperandAccess &access = *to.access;
  TouchedBytes &bytes = touched[access.allocation];
  auto compare = [&](Touch from, ByteRange range) {
    if (from.dispatch < 0 || !(access.writes || from.access->writes))
      return;
    OperandAccess part = *from.access;
    if (part.strided < 0)
      part.range = range;
    if (list.accesses.mayOverlap(part, access))
      require(from, to,
              {std::max(range.begin, access.range.begin), std::min(range.end, access.range.end)});
  };
  bytes.visit(access.range, [&](LastTouches &last, ByteRange range) {
    compare(last.writer, range);
    for (Touch reader : last.readers)
      compare(reader, range);
  });
  for (Touch from : bytes.strided)
    if (from.access->range.overlaps(access.range))
      compare(from, from.access->range);
  for (int64_t other : list.accesses.mayShare[access.allocation]) {
    for (Touch from : touched[other].lastWriters)
      require(from, to, access.range);
    if (access.writes)
      for (Touch from : touched[other].lastReaders)
        require(from, to, access.range);
  }
}

void ListCheck::record(Touch touch, bool write) {
  const OperandAccess &access = *touch.access;
  TouchedBytes &bytes = touched[access.allocation];
  size_t queue = getQueue(touch.dispatch);
  std::vector<Touch> &last = write ? bytes.lastWriters : bytes.lastReaders;
  last.resize(std::max(last.size(), queue + 1));
  last[queue] = touch;
  if (access.strided >= 0) {
    // An access that ended before this one did so for all later ones of the queue; those of other
    // queues may conflict with only one of the two.
    llvm::erase_if(bytes.strided, [&](Touch other) {
      bool hidden = other.access->strided == access.strided && (write || !other.access->writes);
      return size_t(getQueue(other.dispatch)) == queue &&
             isOrdered(other.dispatch, touch.dispatch) && (hidden || !severalQueues);
    });
    bytes.strided.push_back(touch);
    return;
  }
  if (write) {
    bytes.write(access.range, touch);
    llvm::erase_if(bytes.strided, [&](Touch other) {
      return access.range.begin <= other.access->range.begin &&
             other.access->range.end <= access.range.end;
    });
    return;
  }
  bytes.visit(access.range, [&](LastTouches &run, ByteRange) {
    for (Touch &reader : run.readers)
      if (size_t(getQueue(reader.dispatch)) == queue) {
        reader = touch;
        return;
      }
    run.readers.push_back(touch);
  });
}

/// Checks the operands of a dispatch, then records them: its kernel is responsible for bytes that
/// its own operands share.
void ListCheck::verifyDispatch(int64_t dispatch) {
  const DispatchAccesses &accesses = list.accesses.dispatches[dispatch];
  unordered.clear();
  for (const OperandAccess &access : accesses)
    verifyAccess({dispatch, &access});
  for (bool write : {false, true})
    for (const OperandAccess &access : accesses)
      if (write ? access.writes : access.reads)
        record({dispatch, &access}, write);
}

//===----------------------------------------------------------------------===//
// Barriers and what they show
//===----------------------------------------------------------------------===//

Memory::Index::Index(ValueRange memory, const CommandList &list) {
  for (Value value : memory) {
    values.insert(value);
    views.push_back(getView(value));
    if (views.back().bytes)
      bytes.insert({list.getNumber(views.back().allocation), *views.back().bytes});
  }
}

bool Memory::shows(Value operand, const CommandList &list) {
  if (memory.size() == 1 && memory.front() == operand)
    return true;
  if (!index)
    index = std::make_unique<Index>(memory, list);
  const View &view = list.views->get(operand);
  if (index->values.contains(operand) ||
      (view.allocation.value && index->values.contains(view.allocation.value)))
    return true;
  if (view.bytes && index->bytes.count({list.getNumber(view.allocation), *view.bytes}))
    return true;
  return llvm::any_of(index->views, [&](const View &shown) { return covers(shown, view); });
}

/// Checks that the hazards that a barrier lists are real, and that it makes their bytes visible.
void ListCheck::verifyBarrier(schedule::BarrierOp barrier, Memory &memory) {
  for (const schedule::HazardFields &hazard : barrier.getHazards()) {
    const OperandAccess *from = list.find(hazard.from, hazard.fromOperand);
    const OperandAccess *to = list.find(hazard.to, hazard.toOperand);
    bool earlier =
        hazard.kind == schedule::HazardKind::war ? from && from->reads : from && from->writes;
    bool later = hazard.kind == schedule::HazardKind::raw ? to && to->reads : to && to->writes;
    auto shows = [&] {
      schedule::CommandOpInterface command = list.dispatches[hazard.from];
      return memory.shows(command->getOperand(hazard.fromOperand), list);
    };
    if (!earlier || !later || !list.accesses.mayOverlap(*from, *to))
      fail(barrier) << "lists " << hazard.getAttr(barrier.getContext()) << ", which is no hazard";
    else if (hazard.kind != schedule::HazardKind::war && !shows())
      fail(barrier) << "lists " << hazard.getAttr(barrier.getContext())
                    << ", but does not make its bytes visible";
  }
}

/// Checks each barrier, and that the pair that it names first needs it: the next dispatch of the
/// queue and one after the queue's last barrier, which no wait orders.
void ListCheck::verifyBarriers() {
  std::vector<QueueCommand> waits = commands.commands;
  for (QueueCommand &command : waits)
    if (command.kind == QueueCommand::Kind::Barrier)
      command.kind = QueueCommand::Kind::Dispatch;
  HappensBefore ordersWithout(waits);

  std::map<int64_t, int64_t> last; ///< by queue: the dispatch behind the last barrier
  std::map<int64_t, schedule::BarrierOp> unchecked; ///< by queue: a barrier without its dispatch
  auto complain = [&](schedule::BarrierOp barrier) {
    fail(barrier) << "is not needed by the hazard it names first, "
                  << barrier.getHazards().front().getAttr(barrier.getContext());
  };
  int64_t dispatch = 0;
  for (auto [index, op] : llvm::enumerate(commands.ops)) {
    int64_t queue = commands.commands[index].queue;
    if (auto signal = dyn_cast<schedule::SignalOp>(op))
      memories[index] = Memory(signal.getMemory());
    if (auto barrier = dyn_cast<schedule::BarrierOp>(op)) {
      memories[index] = Memory(barrier.getMemory());
      verifyBarrier(barrier, memories[index]);
      if (auto other = unchecked.find(queue); other != unchecked.end())
        complain(other->second);
      unchecked[queue] = barrier;
    }
    if (!isa<schedule::CommandOpInterface>(op))
      continue;
    int64_t to = dispatch++;
    auto found = unchecked.find(queue);
    if (found == unchecked.end())
      continue;
    schedule::BarrierOp barrier = found->second;
    unchecked.erase(found);
    schedule::HazardFields forcing = barrier.getHazards().front();
    auto previous = last.find(queue);
    bool needed = forcing.to == to && forcing.from < to && getQueue(forcing.from) == queue;
    if (needed) {
      int64_t from = commands.dispatches[forcing.from];
      needed = (previous == last.end() || from >= previous->second) && !ordersWithout(from, index);
    }
    if (!needed)
      complain(barrier);
    last[queue] = index;
  }
  for (auto &[queue, barrier] : unchecked)
    complain(barrier);
}

/// Checks that every write is made visible to those that touch the bytes next.
void ListCheck::verifyVisible() {
  for (const Hazard &hazard : hazards) {
    if (hazard.kind == HazardKind::WAR || !isOrdered(hazard.from, hazard.to))
      continue;
    schedule::CommandOpInterface from = list.dispatches[hazard.from];
    Value written = from->getOperand(hazard.fromOperand);
    auto shows = [&](int64_t command) { return memories[command].shows(written, list); };
    if (!happensBefore.makesVisible(commands.dispatches[hazard.from],
                                    commands.dispatches[hazard.to], shows))
      fail(list.dispatches[hazard.to])
          << "operand " << hazard.toOperand << " needs what dispatch " << hazard.from
          << " wrote through operand " << hazard.fromOperand
          << ", and no barrier or signal makes it visible";
  }
}

LogicalResult ListCheck::run() {
  for (size_t dispatch = 0; dispatch < list.dispatches.size(); ++dispatch)
    verifyDispatch(dispatch);
  verifyBarriers();
  verifyVisible();
  return result;
}

void VerifyOrdered::verifyFunction(func::FuncOp function, Effects &effects, Views &views,
                                   DenseMap<Operation *, ListHazards> &found) {
  FailureOr<schedule::CommandsOp> commands = getCommands(function);
  if (failed(commands) || !*commands)
    return;
  auto known = found.find(function);
  if (known == found.end()) { // one that others made
    FailureOr<CommandList> list = collectAccesses(*commands, effects, views);
    if (failed(list))
      return signalPassFailure();
    std::vector<Hazard> hazards = findHazards(list->accesses);
    known = found.try_emplace(function, ListHazards{std::move(*list), std::move(hazards)}).first;
  }
  QueueCommands queueCommands = getQueueCommands(*commands);
  if (failed(ListCheck(known->second, queueCommands).run()))
    signalPassFailure();
}

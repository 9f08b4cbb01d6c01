//===- Placement.cpp - Sections of the ops between collectives ------------===//
//
// An op belongs to the first section that has its operands, so a function has as few sections as
// its longest chain of collectives allows. What computes nothing is repeated by each reader, as
// are scalars, which functions cannot return, and what depends on no argument, which kernels
// compute where they read it.
//
// Gathers of units depend on arguments alone, and would all be first. So that few units are whole
// at once, ops that read a unit begin a section where those before them, in the order of the text,
// read another: forward has one for each unit, and so has backward, which gathers again. What is
// computed from gathered values alone is no smaller, and repeated, too. An op that reads no unit
// and makes nothing smaller waits for its first reader: what backward computes of forward's values
// is not kept beside these.
//
// Updates and other ends of backward read the results of exchanges a section later than they could,
// as far as there is one: so ranks exchange them while the section between is computed.
//
//===----------------------------------------------------------------------===//

#include "Placement.h"

#include "dialects/Schedule/Schedule.h"
#include "mlir/Dialect/Shard/IR/ShardOps.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "weir/Autodiff/Sharding.h"
#include "weir/Graph/Repeatable.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/ADT/StringSet.h"

using namespace mlir;
using namespace weir;

namespace {
using Units = llvm::SmallSetVector<StringRef, 2>;

class Placer {
public:
  explicit Placer(func::FuncOp function) : function(function), block(function.getBody().front()) {}
  FailureOr<Placement> run();

private:
  func::FuncOp function;
  Block &block;
  Placement placed;
  DenseSet<Value> constants;
  DenseSet<Value> gathered;           ///< units, and what is computed from these alone
  DenseMap<Operation *, Units> units; ///< that an op reads, also by ops that are repeated
  Units open;                         ///< units of the last op that reads one
  size_t current = 0;                 ///< the section of that op

  LogicalResult place(Operation &op);
  bool isRepeated(Operation &op);
  bool keepsGathered(Operation &op) const;
  void findUnits(Operation &op);
  size_t enterUnits(const Units &read, size_t first);
  void waitForExchanges();
  void delay();
};
} // namespace

SmallVector<Value> weir::listReads(Block &block, Operation *op) {
  SmallVector<Value> found;
  op->walk([&](Operation *inner) {
    llvm::copy_if(inner->getOperands(), std::back_inserter(found),
                  [&](Value value) { return value.getParentBlock() == &block; });
  });
  return found;
}

static int64_t countElements(Value value) {
  auto tensor = dyn_cast<RankedTensorType>(value.getType());
  return tensor && tensor.hasStaticShape() ? tensor.getNumElements() : 1;
}

/// Whether `op` computes from gathered values and constants alone, and gives no less: a part of
/// one, or as many elements as the largest.
bool Placer::keepsGathered(Operation &op) const {
  int64_t largest = 0;
  for (Value value : listReads(block, &op)) {
    if (gathered.contains(value))
      largest = std::max(largest, countElements(value));
    else if (!constants.contains(value))
      return false;
  }
  return largest > 0 &&
         (isa<tensor::ExtractSliceOp>(op) || llvm::all_of(op.getResults(), [&](Value result) {
            return countElements(result) >= largest;
          }));
}

bool Placer::isRepeated(Operation &op) {
  if (isCollective(&op))
    return false;
  bool isConstant =
      llvm::all_of(listReads(block, &op), [&](Value value) { return constants.contains(value); });
  if (isConstant)
    constants.insert(op.result_begin(), op.result_end());
  bool fromGathered = keepsGathered(op);
  if (fromGathered)
    gathered.insert(op.result_begin(), op.result_end());
  bool isScalar = !llvm::all_of(op.getResultTypes(), llvm::IsaPred<RankedTensorType>);
  return isConstant || fromGathered || (isScalar && op.getNumRegions() == 0) ||
         computesNothing(&op);
}

void Placer::findUnits(Operation &op) {
  Units found;
  for (Value value : listReads(block, &op)) {
    Operation *made = value.getDefiningOp();
    auto known = units.find(made);
    if (made && known != units.end() &&
        (placed.repeated.contains(made) || placed.fetches.contains(made)))
      found.insert(known->second.begin(), known->second.end());
  }
  if (!found.empty())
    units[&op] = std::move(found);
}

/// Returns the section of an op that reads units and could be in section `first`.
size_t Placer::enterUnits(const Units &read, size_t first) {
  bool areOpen = llvm::all_of(read, [&](StringRef unit) { return open.contains(unit); });
  if (!areOpen) {
    current += !open.empty();
    open = read;
  }
  return current = std::max(current, first);
}

LogicalResult Placer::place(Operation &op) {
  auto gather = dyn_cast<shard::AllGatherOp>(op);
  auto argument = gather ? dyn_cast<BlockArgument>(gather.getInput()) : BlockArgument();
  StringRef unit = argument ? getUnit(function, argument.getArgNumber()) : "";
  if (!unit.empty()) {
    placed.fetches.insert(&op);
    units[&op].insert(unit);
    gathered.insert(gather.getResult());
    placed.ready[gather.getResult()] = 0;
    return success();
  }
  size_t section = 0;
  for (Value value : listReads(block, &op))
    section = std::max(section, placed.ready.lookup(value));
  findUnits(op);
  if (isRepeated(op)) {
    placed.repeated.insert(&op);
  } else {
    if (auto read = units.find(&op); read != units.end())
      section = enterUnits(read->second, section);
    placed.owner[&op] = section;
  }
  section += isCollective(&op);
  placed.numSections = std::max(placed.numSections, section + 1);
  for (Value result : op.getResults())
    placed.ready[result] = section;
  bool isScalar = !llvm::all_of(op.getResultTypes(), llvm::IsaPred<RankedTensorType>);
  if (isScalar && op.getNumRegions() > 0)
    return op.emitOpError("gives a number, which sections between collectives cannot hand on; "
                          "give it as a tensor of rank 0");
  return success();
}

/// Moves the readers of what a collective gives behind the next section, where no other collective
/// and no op that reads a unit waits for them.
void Placer::waitForExchanges() {
  DenseSet<Operation *> isAwaited; // by a collective, or by an op that reads a unit
  for (Operation &op : llvm::reverse(block.without_terminator()))
    if (isCollective(&op) || units.contains(&op) || isAwaited.contains(&op))
      for (Value value : listReads(block, &op))
        if (Operation *made = value.getDefiningOp())
          isAwaited.insert(made);
  for (Operation &op : block.without_terminator()) {
    if (placed.fetches.contains(&op))
      continue;
    size_t section = 0;
    for (Value value : listReads(block, &op))
      section = std::max(section, placed.ready.lookup(value));
    if (isCollective(&op)) {
      section = placed.owner.lookup(&op) + 1;
      if (!isAwaited.contains(&op))
        section = std::min(section + 1, placed.numSections - 1);
    } else if (!placed.repeated.contains(&op)) {
      section = placed.owner[&op] = std::max(section, placed.owner.lookup(&op));
    }
    for (Value result : op.getResults())
      placed.ready[result] = section;
  }
}

static int64_t countBytes(ValueRange values) {
  int64_t bytes = 0;
  for (Value value : values)
    if (auto tensor = dyn_cast<RankedTensorType>(value.getType()))
      bytes += schedule::getByteSize(tensor).value_or(0);
  return bytes;
}

/// Moves ops to the section of their first reader, but for those that read units, that make
/// something smaller of what they read, or that give a result of the function.
void Placer::delay() {
  DenseMap<Operation *, size_t> earliest; // section of the first reader, of ops that are repeated
  for (Operation &op : llvm::reverse(block.without_terminator())) {
    if (isCollective(&op) || op.use_empty())
      continue;
    size_t own = 0;
    for (Value result : op.getResults())
      own = std::max(own, placed.ready.lookup(result));
    size_t first = placed.numSections;
    for (Operation *user : op.getUsers()) {
      Operation *reader = block.findAncestorOpInBlock(*user);
      bool isLast = reader == block.getTerminator();
      first = std::min(first, isLast                             ? own
                              : placed.repeated.contains(reader) ? earliest.lookup(reader)
                                                                 : placed.owner.lookup(reader));
    }
    first = std::max(first, own);
    if (placed.repeated.contains(&op)) {
      earliest[&op] = first;
      continue;
    }
    int64_t largest = 0;
    for (Value value : listReads(block, &op))
      largest = std::max(largest, countBytes(value));
    if (units.contains(&op) || countBytes(op.getResults()) < largest)
      continue;
    placed.owner[&op] = first;
    for (Value result : op.getResults())
      placed.ready[result] = first;
  }
}

FailureOr<Placement> Placer::run() {
  LogicalResult result = success();
  placed.numSections = 1;
  for (Operation &op : block.without_terminator())
    if (failed(place(op)))
      result = failure();
  if (failed(result))
    return failure();
  if (!placed.fetches.empty()) {
    waitForExchanges();
    delay();
  }
  return std::move(placed);
}

FailureOr<Placement> weir::placeInSections(func::FuncOp function) { return Placer(function).run(); }

//===- Sections.cpp - Functions between two exchanges of ranks ------------===//
//
// `placeInSections` says which ops a section has. Values that cross are arguments and results.
//
//===----------------------------------------------------------------------===//

#include "weir/Autodiff/Sharding.h"

#include "Entries.h"
#include "Placement.h"

#include "dialects/Schedule/Schedule.h"
#include "mlir/Dialect/Shard/IR/ShardDialect.h"
#include "mlir/Dialect/Shard/IR/ShardOps.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "llvm/ADT/SetVector.h"

using namespace mlir;
using namespace weir;

namespace {
/// A result of a section.
struct Given {
  Value value; ///< of the function
  DictionaryAttr attributes;
};

/// A function between two exchanges, in terms of the whole one.
struct Section {
  llvm::SetVector<Value> taken;   ///< values that it reads and does not make
  DenseSet<Value> donated;        ///< of these
  DenseSet<Operation *> repeated; ///< ops that other sections have, too
  SmallVector<Given> given;
};

class Cutter {
public:
  explicit Cutter(func::FuncOp whole) : whole(whole), block(whole.getBody().front()) {}
  LogicalResult run();

private:
  func::FuncOp whole;
  Block &block;
  Placement placed;
  std::vector<Section> sections;

  void take(size_t index, Value value);
  void takeOperands(size_t index, Operation *op);
  std::optional<size_t> findLastReader(Value value) const;
  void sendAll();
  void giveResults();
  void keepAll();
  void takeGathered();
  void give(size_t index, Value value, const Twine &name);
  void donate();
  void build(size_t index);
  DenseMap<Value, std::string> names; ///< of values that cross sections
};
} // namespace

/// Lets a section read a value: its own, one that it computes again, or one that it is given.
void Cutter::take(size_t index, Value value) {
  Section &section = sections[index];
  Operation *op = value.getDefiningOp();
  if (op && placed.repeated.contains(op)) {
    if (section.repeated.insert(op).second)
      takeOperands(index, op);
    return;
  }
  if (!op || isCollective(op) || placed.owner.lookup(op) != index)
    section.taken.insert(value);
}

void Cutter::takeOperands(size_t index, Operation *op) {
  for (Value value : listReads(block, op))
    take(index, value);
}

std::optional<size_t> Cutter::findLastReader(Value value) const {
  for (size_t index = sections.size(); index-- > 0;)
    if (sections[index].taken.contains(value))
      return index;
  return std::nullopt;
}

void Cutter::give(size_t index, Value value, const Twine &name) {
  MLIRContext *context = whole.getContext();
  NamedAttribute attribute(StringAttr::get(context, schedule::nameAttrName),
                           StringAttr::get(context, name));
  sections[index].given.push_back({value, DictionaryAttr::get(context, attribute)});
  take(index, value);
}

/// Gives each result where it is known. The next value of an argument waits for the last section
/// that reads that argument, whose bytes it may take, or what ranks gather of it before.
void Cutter::giveResults() {
  for (OpOperand &operand : block.getTerminator()->getOpOperands()) {
    unsigned number = operand.getOperandNumber();
    size_t index = placed.ready.lookup(operand.get());
    Attribute name = whole.getResultAttr(number, schedule::nameAttrName);
    for (BlockArgument argument : block.getArguments()) {
      unsigned own = argument.getArgNumber();
      if (!name || whole.getArgAttr(own, schedule::nameAttrName) != name ||
          !whole.getArgAttr(own, schedule::donateAttrName))
        continue;
      index = std::max(index, findLastReader(argument).value_or(0));
      for (Operation *user : argument.getUsers())
        if (placed.fetches.contains(user))
          index = std::max(index, findLastReader(user->getResult(0)).value_or(0));
      sections[index].taken.insert(argument);
    }
    DictionaryAttr attributes = whole.getResultAttrDict(number);
    sections[index].given.push_back(
        {operand.get(), attributes ? attributes : DictionaryAttr::get(whole.getContext())});
    take(index, operand.get());
  }
}

/// Returns the name of what a collective is given, which says what it does.
static std::string describe(Operation *op, size_t number) {
  std::string name = "sent." + std::to_string(number) + "." + op->getName().stripDialect().str();
  if (unsigned along = getAxis(op))
    name += "@" + std::to_string(along);
  std::optional<APInt> axis;
  if (auto gather = dyn_cast<shard::AllGatherOp>(op))
    axis = gather.getGatherAxis();
  else if (auto scatter = dyn_cast<shard::ReduceScatterOp>(op))
    axis = scatter.getScatterAxis();
  else if (auto slice = dyn_cast<shard::AllSliceOp>(op))
    axis = slice.getSliceAxis();
  return axis ? name + "." + std::to_string(axis->getSExtValue()) : name;
}

/// Returns the name of an argument of all ranks, which says how it is gathered.
static std::string nameGathered(shard::AllGatherOp op, StringRef argument) {
  return ("gathered." + Twine(op.getGatherAxis().getSExtValue()) + "." + argument).str();
}

/// Gives what collectives read.
void Cutter::sendAll() {
  size_t number = 0;
  for (Operation &op : block.without_terminator())
    if (placed.fetches.contains(&op)) {
      auto argument = cast<BlockArgument>(op.getOperand(0));
      names[op.getResult(0)] = nameGathered(
          cast<shard::AllGatherOp>(op), autodiff::getArgumentName(whole, argument.getArgNumber()));
    } else if (isCollective(&op)) {
      names[op.getResult(0)] = "received." + std::to_string(number);
      give(placed.owner.lookup(&op), op.getOperand(0), describe(&op, number++));
    }
}

/// Gives what later sections read.
void Cutter::keepAll() {
  size_t kept = 0;
  for (Operation &op : block.without_terminator())
    for (Value value : op.getResults()) {
      if (isCollective(&op) || placed.repeated.contains(&op) || !findLastReader(value))
        continue;
      names[value] = "kept." + std::to_string(kept++);
      give(placed.owner.lookup(&op), value, names[value]);
    }
}

/// Lets the first section that reads a gathered argument take it, too, if no other does: so the
/// function still has it.
void Cutter::takeGathered() {
  for (Operation *fetch : placed.fetches) {
    Value argument = fetch->getOperand(0), gathered = fetch->getResult(0);
    if (findLastReader(argument))
      continue;
    auto reads = [&](const Section &section) { return section.taken.contains(gathered); };
    if (auto first = llvm::find_if(sections, reads); first != sections.end())
      first->taken.insert(argument);
  }
}

/// The last section that takes a value may have its bytes.
void Cutter::donate() {
  for (size_t index = 0; index < sections.size(); ++index)
    for (Value value : sections[index].taken) {
      auto argument = dyn_cast<BlockArgument>(value);
      // A gathered value may be read by the next section, too.
      bool mayBe = argument
                       ? bool(whole.getArgAttr(argument.getArgNumber(), schedule::donateAttrName))
                       : !placed.fetches.contains(value.getDefiningOp());
      if (mayBe && findLastReader(value) == index)
        sections[index].donated.insert(value);
    }
}

void Cutter::build(size_t index) {
  Section &section = sections[index];
  // A state that starts as another argument names it.
  for (Value value : SmallVector<Value>(section.taken.getArrayRef()))
    if (auto argument = dyn_cast<BlockArgument>(value))
      if (auto other = whole.getArgAttrOfType<StringAttr>(argument.getArgNumber(),
                                                          schedule::initialAttrName))
        for (BlockArgument each : block.getArguments())
          if (whole.getArgAttr(each.getArgNumber(), schedule::nameAttrName) == other)
            section.taken.insert(each);
  OpBuilder builder(whole);
  // Arguments of the function first, in their order there.
  SmallVector<Value> arguments, given;
  for (BlockArgument argument : block.getArguments())
    if (section.taken.contains(argument))
      arguments.push_back(argument);
  llvm::copy_if(section.taken, std::back_inserter(arguments),
                [](Value value) { return !isa<BlockArgument>(value); });
  for (const Given &each : section.given)
    given.push_back(each.value);
  std::string name = (whole.getName() + ".section." + Twine(index)).str();
  auto function = func::FuncOp::create(
      builder, whole.getLoc(), name,
      builder.getFunctionType(ValueRange(arguments).getTypes(), ValueRange(given).getTypes()));
  function.setVisibility(whole.getVisibility());
  Block *body = function.addEntryBlock();
  builder.setInsertionPointToEnd(body);
  IRMapping mapping;
  for (auto [position, value] : llvm::enumerate(arguments)) {
    mapping.map(value, body->getArgument(position));
    NamedAttrList attributes;
    if (auto argument = dyn_cast<BlockArgument>(value))
      attributes = whole.getArgAttrDict(argument.getArgNumber());
    else
      attributes.set(schedule::nameAttrName, builder.getStringAttr(names.lookup(value)));
    attributes.erase(schedule::donateAttrName);
    if (section.donated.contains(value))
      attributes.set(schedule::donateAttrName, builder.getUnitAttr());
    function.setArgAttrs(position, attributes.getDictionary(builder.getContext()));
  }
  for (Operation &op : block.without_terminator()) {
    auto owned = placed.owner.find(&op);
    bool isOwn = owned != placed.owner.end() && owned->second == index && !isCollective(&op);
    if (isOwn || section.repeated.contains(&op))
      builder.clone(op, mapping);
  }
  func::ReturnOp::create(builder, whole.getLoc(), llvm::map_to_vector(given, [&](Value value) {
                           return mapping.lookup(value);
                         }));
  for (auto [position, each] : llvm::enumerate(section.given))
    function.setResultAttrs(position, each.attributes);
}

LogicalResult Cutter::run() {
  // A section exists to give something.
  for (Operation &op : llvm::make_early_inc_range(llvm::reverse(block)))
    if (isOpTriviallyDead(&op))
      op.erase();
  FailureOr<Placement> found = placeInSections(whole);
  if (failed(found))
    return failure();
  placed = std::move(*found);
  sections.resize(placed.numSections);
  for (Operation &op : block.without_terminator())
    if (auto owned = placed.owner.find(&op); owned != placed.owner.end() && !isCollective(&op))
      takeOperands(owned->second, &op);
  // Results behind all readers of the arguments that they replace, and then what these need.
  sendAll();
  giveResults();
  keepAll();
  takeGathered();
  donate();
  SymbolTable symbols(whole->getParentOfType<ModuleOp>());
  for (size_t index = 0; index < sections.size(); ++index)
    if (std::string name = (whole.getName() + ".section." + Twine(index)).str();
        symbols.lookup(name))
      return whole.emitOpError() << "cannot have entry '" << name
                                 << "': that function is there already";
  for (size_t index = 0; index < sections.size(); ++index)
    build(index);
  whole.erase();
  return success();
}

LogicalResult weir::cutCollectives(ModuleOp module) {
  LogicalResult result = success();
  for (auto function : llvm::make_early_inc_range(module.getOps<func::FuncOp>())) {
    if (function.isExternal() || !function.getBody().hasOneBlock())
      continue;
    if (failed(verifyShardedResults(function)) ||
        (hasCollectives(function) && failed(Cutter(function).run())))
      result = failure();
  }
  for (auto function : module.getOps<func::FuncOp>()) {
    for (unsigned index = 0; index < function.getNumArguments(); ++index)
      function.removeArgAttr(index, shardedAttrName);
    for (unsigned index = 0; index < function.getNumResults(); ++index)
      function.removeResultAttr(index, StringAttr::get(module.getContext(), shardedAttrName));
  }
  for (auto grid : llvm::make_early_inc_range(module.getOps<shard::GridOp>()))
    grid.erase();
  return result;
}

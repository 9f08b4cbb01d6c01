//===- Split.cpp - One backward graph, two passes -------------------------===//
//
// Forward, input pass and weight pass are three slices of one block. Each takes what
// no slice before it has, so an op runs once. Every total cotangent of an activation
// belongs to the input pass, whoever reads it; so nothing is left in the weight pass
// that would carry a cotangent from one use of a weight to another.
//
//===----------------------------------------------------------------------===//

#include "Entries.h"

#include "dialects/Autodiff/Autodiff.h"
#include "dialects/Autodiff/Differentiable.h"
#include "dialects/Schedule/Schedule.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "weir/Autodiff/Sharding.h"
#include "weir/Graph/Repeatable.h"

using namespace mlir;
using namespace weir;
using namespace weir::autodiff;

namespace {
/// The new entries, in the order in which they run.
enum Part { Forward, InputGradients, WeightGradients, NumParts };
constexpr StringLiteral suffixes[NumParts] = {".forward", ".backward_input", ".backward_weight"};

/// An argument or a result of an entry.
struct Formal {
  Value value; ///< of the joint function
  std::string name;
  StringAttr kind = nullptr;
  bool donated = false;
};

class Splitter {
public:
  explicit Splitter(func::FuncOp joint);
  LogicalResult run();

private:
  func::FuncOp joint;
  Block &block;
  unsigned numArguments; ///< of F
  SmallVector<Formal> results, gradients, weightGradients;

  DenseMap<Operation *, Part> owner;
  /// The values that an entry reads and does not make.
  struct {
    DenseSet<Value> arguments;
    DenseSet<Value> taken; ///< from entries before
    DenseSet<Operation *> copies;
  } needs[NumParts];
  func::FuncOp entries[NumParts];

  bool isOf(Operation *op, Part part) {
    auto found = owner.find(op);
    return found != owner.end() && found->second == part;
  }
  void own(Part part, ArrayRef<Formal> roots);
  void need(Part part, Value value);
  void findNeeds(Part part, ArrayRef<Formal> roots);
  SmallVector<Formal> getHanded(Part from, StringRef prefix);
  SmallVector<Formal> getOwnArguments(Part part);
  LogicalResult checkEntries();
  LogicalResult checkHanded(ArrayRef<Formal> handed);
  void build(Part part, ArrayRef<Formal> arguments, ArrayRef<Formal> results);
  void addAccumulators();
  LogicalResult verify(ArrayRef<Formal> handed);
};
} // namespace

Splitter::Splitter(func::FuncOp joint) : joint(joint), block(joint.getBody().front()) {
  auto numbers = joint->getAttrOfType<DenseI64ArrayAttr>(splitAttrName);
  numArguments = numbers[0];
  ValueRange returned = block.getTerminator()->getOperands();
  unsigned numResults = numbers[1];
  for (unsigned index = 0; index < numResults; ++index)
    results.push_back({returned[index], getResultName(joint, index)});
  for (unsigned index = 0; index < numArguments; ++index) {
    if (!hasGradient(joint, index))
      continue;
    Value gradient = returned[numResults + gradients.size() + weightGradients.size()];
    (isWeight(joint, index) ? weightGradients : gradients)
        .push_back({gradient, "grad." + getArgumentName(joint, index)});
  }
}

/// Whether each entry may repeat `op`. An entry must not get its result as a tensor where the joint
/// function does not: readers sum by the maps that they take such an op into.
static bool isCopied(Operation *op) { return isa<TotalOp>(op) || computesNothing(op); }

/// Adds the ops that `roots` are computed from to `part`, unless they have a part already.
void Splitter::own(Part part, ArrayRef<Formal> roots) {
  SmallVector<Value> work =
      llvm::map_to_vector(roots, [](const Formal &root) { return root.value; });
  while (!work.empty()) {
    Operation *op = work.pop_back_val().getDefiningOp();
    if (!op || op->getBlock() != &block || !owner.try_emplace(op, part).second)
      continue;
    op->walk([&](Operation *inner) { llvm::append_range(work, inner->getOperands()); });
  }
}

void Splitter::need(Part part, Value value) {
  if (value.getParentBlock() != &block)
    return;
  Operation *op = value.getDefiningOp();
  if (!op) {
    needs[part].arguments.insert(value);
  } else if (isOf(op, part)) {
    return;
  } else if (!isCopied(op)) {
    needs[part].taken.insert(value);
  } else if (needs[part].copies.insert(op).second) {
    for (Value operand : op->getOperands())
      need(part, operand);
  }
}

void Splitter::findNeeds(Part part, ArrayRef<Formal> roots) {
  for (Operation &op : block.without_terminator())
    if (isOf(&op, part))
      op.walk([&](Operation *inner) {
        for (Value operand : inner->getOperands())
          need(part, operand);
      });
  for (const Formal &root : roots)
    need(part, root.value);
}

/// Returns the values of `from` that later entries take.
SmallVector<Formal> Splitter::getHanded(Part from, StringRef prefix) {
  SmallVector<Formal> handed;
  for (Operation &op : block.without_terminator())
    for (Value value : op.getResults())
      if (isOf(&op, from) && (needs[InputGradients].taken.contains(value) ||
                              needs[WeightGradients].taken.contains(value)))
        handed.push_back({value, (prefix + Twine(handed.size())).str()});
  return handed;
}

/// Returns the arguments of F that `part` needs.
SmallVector<Formal> Splitter::getOwnArguments(Part part) {
  SmallVector<Formal> found;
  for (BlockArgument argument : block.getArguments().take_front(numArguments)) {
    unsigned index = argument.getArgNumber();
    if (part == Forward || needs[part].arguments.contains(argument))
      found.push_back({argument, getArgumentName(joint, index),
                       joint.getArgAttrOfType<StringAttr>(index, schedule::kindAttrName)});
  }
  return found;
}

LogicalResult Splitter::checkEntries() {
  StringRef name = joint.getName();
  name.consume_back(".split");
  LogicalResult result = success();
  if (hasCollectives(joint))
    return joint.emitOpError("has collectives between ranks, and no split backward; take --grad or "
                             "--train");
  for (StringRef suffix : suffixes) {
    std::string entry = (name + suffix).str();
    if (SymbolTable::lookupNearestSymbolFrom(joint, StringAttr::get(joint.getContext(), entry)))
      result = joint.emitOpError()
               << "cannot have entry '" << entry << "': that function is there already";
  }
  return result;
}

LogicalResult Splitter::checkHanded(ArrayRef<Formal> handed) {
  LogicalResult result = success();
  for (Value argument : needs[Forward].arguments)
    if (unsigned index = cast<BlockArgument>(argument).getArgNumber(); index >= numArguments)
      result = joint.emitOpError() << "has a result that depends on its cotangent '"
                                   << getArgumentName(joint, index) << "'";
  for (const Formal &formal : handed)
    if (!isa<RankedTensorType>(formal.value.getType()))
      result = formal.value.getDefiningOp()->emitOpError()
               << "gives " << formal.value.getType()
               << ", which backward needs from another entry; entries give tensors";
  return result;
}

void Splitter::build(Part part, ArrayRef<Formal> arguments, ArrayRef<Formal> returned) {
  OpBuilder builder(joint);
  auto getTypes = [](ArrayRef<Formal> formals) {
    return llvm::map_to_vector(formals,
                               [](const Formal &formal) { return formal.value.getType(); });
  };
  StringRef name = joint.getName();
  name.consume_back(".split");
  func::FuncOp entry = entries[part] =
      func::FuncOp::create(builder, joint.getLoc(), (name + suffixes[part]).str(),
                           builder.getFunctionType(getTypes(arguments), getTypes(returned)));
  Block *body = entry.addEntryBlock();
  builder.setInsertionPointToEnd(body);
  IRMapping mapping;
  for (auto [index, formal] : llvm::enumerate(arguments)) {
    mapping.map(formal.value, body->getArgument(index));
    entry.setArgAttr(index, schedule::nameAttrName, builder.getStringAttr(formal.name));
    if (formal.kind)
      entry.setArgAttr(index, schedule::kindAttrName, formal.kind);
    if (formal.donated)
      entry.setArgAttr(index, schedule::donateAttrName, builder.getUnitAttr());
  }
  for (Operation &op : block.without_terminator()) {
    bool isOwn = isOf(&op, part);
    auto total = dyn_cast<TotalOp>(op);
    if (!isOwn && !needs[part].copies.contains(&op))
      continue;
    if (total && !isOwn) // marked where it is computed
      mapping.map(total.getTotal(), mapping.lookup(total.getCotangent()));
    else
      builder.clone(op, mapping);
  }
  func::ReturnOp::create(builder, joint.getLoc(),
                         llvm::map_to_vector(returned, [&](const Formal &formal) {
                           return mapping.lookup(formal.value);
                         }));
  for (auto [index, formal] : llvm::enumerate(returned))
    entry.setResultAttr(index, schedule::nameAttrName, builder.getStringAttr(formal.name));
}

/// Adds an argument of the same name to each result of the weight pass.
void Splitter::addAccumulators() {
  func::FuncOp entry = entries[WeightGradients];
  Operation *terminator = entry.getBody().front().getTerminator();
  OpBuilder builder(terminator);
  for (OpOperand &operand : terminator->getOpOperands()) {
    Value contribution = operand.get();
    NamedAttribute attributes[] = {
        builder.getNamedAttr(schedule::donateAttrName, builder.getUnitAttr()),
        builder.getNamedAttr(schedule::nameAttrName, entry.getResultAttr(operand.getOperandNumber(),
                                                                         schedule::nameAttrName))};
    LogicalResult added =
        entry.insertArgument(entry.getNumArguments(), contribution.getType(),
                             builder.getDictionaryAttr(attributes), entry.getLoc());
    assert(succeeded(added) && "functions take any argument");
    (void)added;
    Value accumulator = entry.getArguments().back();
    Cotangents sum({accumulator});
    sum.set(accumulator, accumulator);
    sum.add(builder, contribution.getLoc(), accumulator, contribution);
    operand.set(sum.get(accumulator));
  }
}

/// Whether `value` is `accumulator` plus another value, and nothing else reads
/// `accumulator`.
static bool isSumInto(Value value, BlockArgument accumulator) {
  auto op = value.getDefiningOp<linalg::GenericOp>();
  if (!op || !accumulator.hasOneUse() || op.getOutputs().front() != accumulator)
    return false;
  auto yield = cast<linalg::YieldOp>(op.getBody()->getTerminator());
  auto added = yield.getOperand(0).getDefiningOp<arith::AddFOp>();
  return added && llvm::is_contained(added->getOperands(), op.getRegionOutputArgs().front());
}

/// Checks the entries: each op runs in one of them, each value between them is made and
/// consumed once, and no total of an activation is computed by the weight pass.
LogicalResult Splitter::verify(ArrayRef<Formal> handed) {
  LogicalResult result = success();
  for (TotalOp total : entries[WeightGradients].getOps<TotalOp>())
    if (total.getKind() == ValueKind::activation)
      result = total.emitOpError("is computed by the weight pass, which would carry a cotangent "
                                 "from one use of a weight to another");
  auto computes = [](Operation &op) { return !isCopied(&op); };
  int64_t wanted = llvm::count_if(owner, [&](auto &owned) { return computes(*owned.first); });
  int64_t found = -int64_t(weightGradients.size()); // their additions
  for (func::FuncOp entry : entries)
    found += llvm::count_if(entry.getBody().front().without_terminator(), computes);
  if (found != wanted)
    result = joint.emitOpError() << "computes by " << wanted << " ops, its entries by " << found;
  auto hasName = [](Attribute attribute, StringRef name) {
    return cast<StringAttr>(attribute).getValue() == name;
  };
  for (const Formal &formal : handed) {
    unsigned made = 0, consumed = 0;
    for (func::FuncOp entry : entries) {
      for (unsigned index = 0; index < entry.getNumResults(); ++index)
        made += hasName(entry.getResultAttr(index, schedule::nameAttrName), formal.name);
      for (unsigned index = 0; index < entry.getNumArguments(); ++index)
        consumed += entry.getArgAttr(index, schedule::donateAttrName) &&
                    hasName(entry.getArgAttr(index, schedule::nameAttrName), formal.name);
    }
    if (made != 1 || consumed != 1)
      result = joint.emitOpError() << "has '" << formal.name << "' made " << made
                                   << " times and consumed " << consumed << " times";
  }
  func::FuncOp weight = entries[WeightGradients];
  Operation *terminator = weight.getBody().front().getTerminator();
  auto accumulators = weight.getArguments().take_back(weight.getNumResults());
  for (auto [sum, accumulator] : llvm::zip_equal(terminator->getOperands(), accumulators))
    if (!isSumInto(sum, accumulator))
      result = joint.emitOpError() << "has an accumulator that is not added to: argument "
                                   << accumulator.getArgNumber() << " of the weight pass";
  return result;
}

LogicalResult Splitter::run() {
  own(Forward, results);
  SmallVector<Formal> roots(gradients);
  for (TotalOp total : block.getOps<TotalOp>())
    if (total.getKind() == ValueKind::activation)
      roots.push_back({total, ""});
  own(InputGradients, roots);
  own(WeightGradients, weightGradients);
  findNeeds(Forward, results);
  findNeeds(InputGradients, gradients);
  findNeeds(WeightGradients, weightGradients);

  SmallVector<Formal> tape = getHanded(Forward, "tape."),
                      saved = getHanded(InputGradients, "saved.");
  SmallVector<Formal> handed(tape);
  llvm::append_range(handed, saved);
  if (failed(checkEntries()) || failed(checkHanded(handed)))
    return failure();

  SmallVector<Formal> arguments[NumParts];
  for (Part part : {Forward, InputGradients, WeightGradients})
    arguments[part] = getOwnArguments(part);
  // Whoever reads the tape last may have its bytes.
  for (Formal formal : handed) {
    bool isLast = needs[WeightGradients].taken.contains(formal.value);
    formal.donated = true;
    if (isLast)
      arguments[WeightGradients].push_back(formal);
    formal.donated = !isLast;
    if (needs[InputGradients].taken.contains(formal.value))
      arguments[InputGradients].push_back(formal);
  }
  for (BlockArgument cotangent : block.getArguments().drop_front(numArguments)) {
    Formal formal = {cotangent, getArgumentName(joint, cotangent.getArgNumber())};
    arguments[InputGradients].push_back(formal);
    if (needs[WeightGradients].arguments.contains(cotangent))
      arguments[WeightGradients].push_back(formal);
  }
  llvm::append_range(results, tape);
  llvm::append_range(gradients, saved);
  build(Forward, arguments[Forward], results);
  build(InputGradients, arguments[InputGradients], gradients);
  build(WeightGradients, arguments[WeightGradients], weightGradients);
  addAccumulators();
  for (func::FuncOp entry : entries)
    if (failed(checkNames(joint, entry)))
      return failure();
  if (failed(verify(handed)))
    return failure();
  for (func::FuncOp entry : entries)
    entry.walk([](TotalOp total) {
      total.replaceAllUsesWith(total.getCotangent());
      total.erase();
    });
  joint.erase();
  return success();
}

LogicalResult weir::autodiff::splitBackward(func::FuncOp joint) { return Splitter(joint).run(); }

//===- Entries.cpp - Entries that give gradients --------------------------===//

#include "Entries.h"

#include "dialects/Autodiff/Autodiff.h"
#include "dialects/Schedule/Schedule.h"
#include "weir/Autodiff/Sharding.h"
#include "llvm/ADT/StringMap.h"

using namespace mlir;
using namespace weir;
using namespace weir::autodiff;

bool weir::autodiff::isFloatTensor(Type type) {
  auto tensor = dyn_cast<RankedTensorType>(type);
  return tensor && isa<FloatType>(tensor.getElementType());
}

static SmallVector<int64_t> findFloats(TypeRange types) {
  SmallVector<int64_t> found;
  for (auto [index, type] : llvm::enumerate(types))
    if (isFloatTensor(type))
      found.push_back(index);
  return found;
}

bool weir::autodiff::isWeight(func::FuncOp function, int64_t index) {
  auto kind = function.getArgAttrOfType<StringAttr>(index, schedule::kindAttrName);
  return kind && kind == "param";
}

bool weir::autodiff::hasGradient(func::FuncOp function, int64_t index) {
  return isFloatTensor(function.getArgumentTypes()[index]) &&
         !function.getArgAttr(index, frozenAttrName);
}

void weir::autodiff::unfreeze(func::FuncOp function) {
  for (unsigned index = 0; index < function.getNumArguments(); ++index)
    function.removeArgAttr(index, frozenAttrName);
}

static SmallVector<int64_t> findDifferentiated(func::FuncOp function) {
  SmallVector<int64_t> found;
  for (unsigned index = 0; index < function.getNumArguments(); ++index)
    if (hasGradient(function, index))
      found.push_back(index);
  return found;
}

static std::string getName(Attribute name, StringRef fallback, int64_t index) {
  if (auto given = dyn_cast_or_null<StringAttr>(name))
    return given.str();
  return (fallback + Twine(index)).str();
}

std::string weir::autodiff::getArgumentName(func::FuncOp function, int64_t index) {
  return getName(function.getArgAttr(index, schedule::nameAttrName), "arg", index);
}

std::string weir::autodiff::getResultName(func::FuncOp function, int64_t index) {
  return getName(function.getResultAttr(index, schedule::nameAttrName), "result", index);
}

LogicalResult weir::autodiff::checkNames(func::FuncOp function, func::FuncOp entry) {
  LogicalResult result = success();
  auto check = [&](unsigned number, StringRef what, auto getName) {
    llvm::StringMap<unsigned> seen;
    for (unsigned index = 0; index < number; ++index)
      if (std::string name = getName(entry, index); !seen.try_emplace(name, index).second)
        result = function.emitOpError()
                 << "cannot have entry '" << entry.getName() << "': two of its " << what
                 << "s would be named '" << name << "'";
  };
  check(entry.getNumArguments(), "argument", getArgumentName);
  check(entry.getNumResults(), "result", getResultName);
  return result;
}

FailureOr<func::FuncOp> weir::autodiff::addEntry(func::FuncOp function, StringRef suffix,
                                                 ArrayRef<int64_t> seeded, ArrayRef<int64_t> wanted,
                                                 bool one) {
  std::string name = (function.getName() + suffix).str();
  if (SymbolTable::lookupNearestSymbolFrom(function, StringAttr::get(function.getContext(), name)))
    return function.emitOpError() << "cannot have entry '" << name
                                  << "': that function is there already";
  if (function.isExternal() || !function.getBody().hasOneBlock())
    return function.emitOpError("has no body of one block to differentiate");
  if (wanted.empty())
    return function.emitOpError("has no float argument to differentiate by");

  function.getContext()->loadDialect<AutodiffDialect, arith::ArithDialect>();
  OpBuilder builder(function->getContext());
  builder.setInsertionPointAfter(function);
  Location loc = function.getLoc();
  SmallVector<Type> arguments(function.getArgumentTypes()), results(function.getResultTypes());
  if (!one)
    for (int64_t index : seeded)
      arguments.push_back(function.getResultTypes()[index]);
  for (int64_t index : wanted)
    results.push_back(function.getArgumentTypes()[index]);
  auto entry =
      func::FuncOp::create(builder, loc, name, builder.getFunctionType(arguments, results));
  Block *block = entry.addEntryBlock();
  builder.setInsertionPointToEnd(block);
  unsigned own = function.getNumArguments();
  SmallVector<Value> cotangents(block->getArguments().drop_front(own));
  if (one) {
    auto type = cast<RankedTensorType>(function.getResultTypes()[seeded.front()]);
    auto value = DenseElementsAttr::get(type, builder.getFloatAttr(type.getElementType(), 1.0));
    cotangents.push_back(arith::ConstantOp::create(builder, loc, value));
  }
  auto vjp = VjpOp::create(builder, loc, results, function.getName(),
                           block->getArguments().take_front(own), cotangents, seeded, wanted);
  func::ReturnOp::create(builder, loc, vjp.getResults());

  // Arguments stay what they are. Donation is not copied: it belongs to the new entry.
  for (unsigned index = 0; index < own; ++index)
    for (StringRef attribute :
         {schedule::nameAttrName, schedule::kindAttrName, frozenAttrName, shardedAttrName})
      if (Attribute value = function.getArgAttr(index, attribute))
        entry.setArgAttr(index, attribute, value);
  if (!one)
    for (auto [position, index] : llvm::enumerate(seeded))
      entry.setArgAttr(own + position, schedule::nameAttrName,
                       builder.getStringAttr("cotangent." + getResultName(function, index)));
  for (unsigned index = 0; index < function.getNumResults(); ++index)
    entry.setResultAttr(index, schedule::nameAttrName,
                        builder.getStringAttr(getResultName(function, index)));
  for (auto [position, index] : llvm::enumerate(wanted))
    entry.setResultAttr(function.getNumResults() + position, schedule::nameAttrName,
                        builder.getStringAttr("grad." + getArgumentName(function, index)));
  // A cotangent or a gradient differs by rank as its value does.
  for (unsigned index = 0; index < function.getNumResults(); ++index)
    if (Attribute sharded = function.getResultAttr(index, shardedAttrName))
      entry.setResultAttr(index, shardedAttrName, sharded);
  for (auto [position, index] : llvm::enumerate(seeded))
    if (Attribute sharded = function.getResultAttr(index, shardedAttrName); sharded && !one)
      entry.setArgAttr(own + position, shardedAttrName, sharded);
  for (auto [position, index] : llvm::enumerate(wanted))
    if (Attribute sharded = getSharding(function, index))
      entry.setResultAttr(function.getNumResults() + position, shardedAttrName, sharded);
  return entry;
}

/// Adds the entry F.`suffix` of all gradients.
static FailureOr<func::FuncOp> addVjp(func::FuncOp function, StringRef suffix) {
  SmallVector<int64_t> seeded = findFloats(function.getResultTypes());
  if (seeded.empty())
    return function.emitOpError("has no float result to differentiate");
  return addEntry(function, suffix, seeded, findDifferentiated(function), /*one=*/false);
}

FailureOr<func::FuncOp> weir::autodiff::addVjpEntry(func::FuncOp function) {
  return addVjp(function, ".vjp");
}

FailureOr<func::FuncOp> weir::autodiff::addSplitEntries(func::FuncOp function) {
  SmallVector<int64_t> floats = findDifferentiated(function);
  if (llvm::none_of(floats, [&](int64_t index) { return isWeight(function, index); }))
    return function.emitOpError("has no float argument of kind param; without weights there is "
                                "nothing to split backward for");
  FailureOr<func::FuncOp> entry = addVjp(function, ".split");
  if (failed(entry))
    return failure();
  for (VjpOp vjp : entry->getOps<VjpOp>())
    vjp.setTotals(true);
  int64_t own[] = {function.getNumArguments(), function.getNumResults()};
  (*entry)->setAttr(splitAttrName, DenseI64ArrayAttr::get(function.getContext(), own));
  return entry;
}

FailureOr<int64_t> weir::autodiff::findLoss(func::FuncOp function) {
  SmallVector<int64_t> scalars;
  for (int64_t index : findFloats(function.getResultTypes()))
    if (cast<RankedTensorType>(function.getResultTypes()[index]).getRank() == 0)
      scalars.push_back(index);
  if (scalars.size() != 1)
    return function.emitOpError() << "has " << scalars.size()
                                  << " float results of rank 0; a gradient is that of exactly one";
  if (getResultAxes(function, scalars.front()))
    return function.emitOpError() << "has a loss that differs by rank; a gradient is that of one "
                                  << "loss: add it up by shard.all_reduce";
  return scalars.front();
}

FailureOr<func::FuncOp> weir::autodiff::addGradEntry(func::FuncOp function) {
  FailureOr<int64_t> loss = findLoss(function);
  if (failed(loss))
    return failure();
  return addEntry(function, ".grad", *loss, getTrained(function), /*one=*/true);
}

SmallVector<int64_t> weir::autodiff::getTrained(func::FuncOp function) {
  SmallVector<int64_t> floats = findDifferentiated(function), params;
  for (int64_t index : floats)
    if (isWeight(function, index))
      params.push_back(index);
  return params.empty() ? floats : params;
}

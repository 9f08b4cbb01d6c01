//===- Vjp.cpp - Derivatives of functions ---------------------------------===//

#include "Entries.h"
#include "Shard.h"
#include "dialects/Autodiff/Autodiff.h"
#include "dialects/Norm/Decompose.h"
#include "dialects/Norm/Norm.h"
#include "mlir/Dialect/Shard/IR/ShardDialect.h"
#include "mlir/Dialect/Shard/IR/ShardOps.h"
#include "weir/Autodiff/Autodiff.h"
#include "weir/Autodiff/Sharding.h"

using namespace mlir;
using namespace weir;
using namespace weir::autodiff;

void weir::autodiff::registerGradientRules(DialectRegistry &registry) {
  registerArithRules(registry);
  registerLinalgRules(registry);
  registerLoopRules(registry);
  registerMathRules(registry);
  registerShardRules(registry);
  registerTensorRules(registry);
}

/// Whether gradients of `function` are defined: values of static shape throughout.
static LogicalResult checkShapes(func::FuncOp function) {
  LogicalResult result = success();
  for (auto [index, type] : llvm::enumerate(function.getArgumentTypes()))
    if (auto shaped = dyn_cast<ShapedType>(type); shaped && !shaped.hasStaticShape())
      result = function.emitOpError() << "argument " << index << " is " << type
                                      << "; gradients need static shapes: export with fixed sizes";
  for (Operation &op : function.getBody().front())
    for (Type type : op.getResultTypes())
      if (auto shaped = dyn_cast<ShapedType>(type); shaped && !shaped.hasStaticShape()) {
        op.emitOpError() << "gives " << type
                         << "; gradients need static shapes: export with fixed sizes";
        result = failure();
      }
  return result;
}

/// Whether `op` is attention with statistics that others read, such as its VJP.
static bool hasReadStatistics(Operation &op) {
  auto attention = dyn_cast<norm::AttentionOp>(op);
  return attention && !(attention.getMax().use_empty() && attention.getShare().use_empty());
}

/// Decomposes the norms that have no rule, such as VJPs, into ops that have one. A sort gives
/// integers, which need none.
static void decomposeWithoutRule(Block &block) {
  OpBuilder builder(block.getParentOp()->getContext());
  for (Operation &op : llvm::make_early_inc_range(block))
    if (isa_and_present<norm::NormDialect>(op.getDialect()) && !isa<norm::ArgsortOp>(op) &&
        (!isa<DifferentiableOpInterface>(op) || hasReadStatistics(op))) {
      op.replaceAllUsesWith(norm::decompose(builder, &op));
      op.erase();
    }
}

/// Returns the arguments of `function` that are not weights, and all values that depend on
/// them, through integers, too.
static DenseSet<Value> findActivations(func::FuncOp function, ArrayRef<Operation *> ops) {
  DenseSet<Value> found;
  for (BlockArgument argument : function.getArguments())
    if (!isWeight(function, argument.getArgNumber()))
      found.insert(argument);
  for (Operation *op : ops)
    op->walk([&](Operation *inner) {
      if (llvm::any_of(inner->getOperands(), [&](Value value) { return found.contains(value); }))
        found.insert(op->result_begin(), op->result_end());
    });
  return found;
}

/// Returns where values that all ranks share are read beside others, if `function` is one of
/// several ranks. `vjp` is a clone of it, whose active values are then known.
static FailureOr<std::optional<SharedReads>>
markSharedReads(func::FuncOp function, func::FuncOp vjp, DenseSet<Value> &active) {
  bool isSharded = hasCollectives(function);
  for (unsigned index = 0; index < function.getNumArguments(); ++index)
    isSharded |= getArgumentAxes(function, index) != 0;
  if (!isSharded)
    return std::optional<SharedReads>();
  FailureOr<shard::GridOp> grid = findGrid(function);
  if (failed(grid))
    return failure();
  std::optional<SharedReads> reads;
  reads.emplace(vjp, grid->getSymName());
  if (failed(verifyCollectives(vjp)) || failed(reads->mark(active)))
    return failure();
  return reads;
}

FailureOr<func::FuncOp> weir::autodiff::buildVjp(func::FuncOp function, ArrayRef<int64_t> seeded,
                                                 ArrayRef<int64_t> wanted, bool totals,
                                                 StringRef name) {
  if (failed(checkShapes(function)))
    return failure();
  func::FuncOp vjp = function.clone();
  OwningOpRef<func::FuncOp> owner(vjp);
  vjp.setName(name);
  vjp.setPrivate();
  // In the module already, whose grid says what differs by rank.
  function->getBlock()->getOperations().insertAfter(function->getIterator(), vjp);
  Block &block = vjp.getBody().front();
  Operation *terminator = block.getTerminator();
  decomposeWithoutRule(block);

  SmallVector<Value> roots;
  for (int64_t index : wanted)
    roots.push_back(vjp.getArgument(index));
  auto listOps = [&] {
    return llvm::map_to_vector(block.without_terminator(), [](Operation &op) { return &op; });
  };
  FailureOr<DenseSet<Value>> active = findActive(listOps(), roots);
  if (failed(active))
    return failure();
  FailureOr<std::optional<SharedReads>> shared = markSharedReads(function, vjp, *active);
  if (failed(shared))
    return failure();
  SmallVector<Operation *> ops = listOps();
  DenseSet<Value> activations = findActivations(vjp, ops);

  OpBuilder builder(terminator);
  Cotangents sums(std::move(*active));
  SmallVector<Type> arguments(function.getArgumentTypes());
  for (int64_t index : seeded) {
    Value result = terminator->getOperand(index);
    arguments.push_back(result.getType());
    Value cotangent = block.addArgument(result.getType(), function.getLoc());
    sums.add(builder, function.getLoc(), result, cotangent);
  }
  auto mark = [&](Value result, Value total) -> Value {
    if (*shared)
      total = (*shared)->addParts(builder, result, total);
    if (!totals || !isa<RankedTensorType>(result.getType()))
      return total;
    ValueKind kind = activations.contains(result) ? ValueKind::activation : ValueKind::weight;
    return TotalOp::create(builder, result.getLoc(), total.getType(), kind, total);
  };
  if (failed(sweep(builder, ops, sums, mark)))
    return failure();

  SmallVector<Value> results(terminator->getOperands());
  for (Value root : roots) {
    Value gradient = sums.get(root);
    results.push_back(gradient ? gradient
                               : createZeros(builder, function.getLoc(), root.getType()));
  }
  func::ReturnOp::create(builder, terminator->getLoc(), results);
  terminator->erase();
  if (*shared)
    (*shared)->unmark();
  // Forward values that nothing needs, and what rules built on the way.
  for (Operation &op : llvm::make_early_inc_range(llvm::reverse(block)))
    if (isOpTriviallyDead(&op))
      op.erase();

  vjp.setAllArgAttrs(ArrayRef<Attribute>());
  vjp.setAllResultAttrs(ArrayRef<Attribute>());
  vjp.setFunctionType(builder.getFunctionType(arguments, ValueRange(results).getTypes()));
  return owner.release();
}

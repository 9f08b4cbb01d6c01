//===- Vjp.cpp - Derivatives of functions ---------------------------------===//

#include "Entries.h"
#include "Sweep.h"
#include "dialects/Autodiff/Autodiff.h"
#include "dialects/Norm/Decompose.h"
#include "dialects/Norm/Norm.h"
#include "weir/Autodiff/Autodiff.h"

using namespace mlir;
using namespace weir;
using namespace weir::autodiff;

void weir::autodiff::registerGradientRules(DialectRegistry &registry) {
  registerArithRules(registry);
  registerLinalgRules(registry);
  registerLoopRules(registry);
  registerMathRules(registry);
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

FailureOr<func::FuncOp> weir::autodiff::buildVjp(func::FuncOp function, ArrayRef<int64_t> seeded,
                                                 ArrayRef<int64_t> wanted, bool totals,
                                                 StringRef name) {
  if (failed(checkShapes(function)))
    return failure();
  func::FuncOp vjp = function.clone();
  OwningOpRef<func::FuncOp> owner(vjp);
  vjp.setName(name);
  vjp.setPrivate();
  Block &block = vjp.getBody().front();
  Operation *terminator = block.getTerminator();
  decomposeWithoutRule(block);

  SmallVector<Value> roots;
  for (int64_t index : wanted)
    roots.push_back(vjp.getArgument(index));
  SmallVector<Operation *> ops;
  for (Operation &op : block.without_terminator())
    ops.push_back(&op);
  FailureOr<DenseSet<Value>> active = findActive(ops, roots);
  if (failed(active))
    return failure();
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
  // Forward values that nothing needs, and what rules built on the way.
  for (Operation &op : llvm::make_early_inc_range(llvm::reverse(block)))
    if (isOpTriviallyDead(&op))
      op.erase();

  vjp.setAllArgAttrs(ArrayRef<Attribute>());
  vjp.setAllResultAttrs(ArrayRef<Attribute>());
  vjp.setFunctionType(builder.getFunctionType(arguments, ValueRange(results).getTypes()));
  function->getBlock()->getOperations().insertAfter(function->getIterator(), owner.release());
  return vjp;
}

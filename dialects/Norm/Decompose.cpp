//===- Decompose.cpp - Norm ops as linalg ---------------------------------===//
//
// Kernels are formed by iteration structure, so every op here loops over all
// dimensions of x (full), over those that stay (rows) or over those that are
// normalised (columns), and nothing else. Bodies recompute cheap values, so that no
// tensor of the size of x lies between two ops.
//
//===----------------------------------------------------------------------===//

#include "dialects/Norm/Decompose.h"
#include "dialects/Norm/Decompositions.h"
#include "dialects/Norm/RowBuilder.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "llvm/ADT/TypeSwitch.h"

#include <numbers>

using namespace mlir;
using namespace weir::norm;
using weir::autodiff::Number;

/// Computes each element from those of `inputs`, which have one type.
static Value mapElements(OpBuilder &builder, Location loc, ArrayRef<Value> inputs,
                         llvm::function_ref<Number(ArrayRef<Number>)> compute) {
  auto type = cast<RankedTensorType>(inputs.front().getType());
  RowBuilder elements(builder, loc, type, /*firstReduced=*/0, /*numReduced=*/0);
  SmallVector<Input> full;
  for (Value input : inputs)
    full.push_back({input, Extent::Full});
  return elements.full(full, type.getElementType(), [&](OpBuilder &b, ArrayRef<Value> in) {
    ImplicitLocOpBuilder body(loc, b);
    return compute(getNumbers(body, in)).get();
  });
}

/// Computes `erfc(-x / sqrt(2)) / 2`, the share of the normal distribution below x.
static Number getShareBelow(Number x) {
  return 0.5 * (x * (-1 / std::numbers::sqrt2)).apply<math::ErfcOp>();
}

/// Computes `tanh(factor * (x + 0.044715 * x^3))`.
static Number getGeluTanh(Number x, double factor) {
  return (factor * (x * (1 + 0.044715 * (x * x)))).apply<math::TanhOp>();
}

Value weir::norm::decomposeOp(OpBuilder &builder, GeluOp op) {
  return mapElements(builder, op.getLoc(), {op.getX()}, [&](ArrayRef<Number> in) {
    Number x = in[0];
    std::optional<APFloat> factor = op.getTanhFactor();
    return factor ? 0.5 * x * (1 + getGeluTanh(x, factor->convertToDouble()))
                  : x * getShareBelow(x);
  });
}

Value weir::norm::decomposeOp(OpBuilder &builder, GeluVjpOp op) {
  return mapElements(builder, op.getLoc(), {op.getDy(), op.getX()}, [&](ArrayRef<Number> in) {
    Number dy = in[0], x = in[1];
    if (std::optional<APFloat> attribute = op.getTanhFactor()) {
      double factor = attribute->convertToDouble();
      Number t = getGeluTanh(x, factor);
      Number inner = factor * (1 + 3 * 0.044715 * (x * x));
      return dy * (0.5 * (1 + t) * (1 + x * (1 - t) * inner));
    }
    Number density =
        (std::numbers::inv_sqrtpi / std::numbers::sqrt2) * (-0.5 * (x * x)).apply<math::ExpOp>();
    return dy * (getShareBelow(x) + x * density);
  });
}

Value weir::norm::decomposeOp(OpBuilder &builder, SiluOp op) {
  return mapElements(builder, op.getLoc(), {op.getX()}, [](ArrayRef<Number> in) {
    Number x = in[0];
    return x / (1 + (-x).apply<math::ExpOp>());
  });
}

Value weir::norm::decomposeOp(OpBuilder &builder, SiluVjpOp op) {
  return mapElements(builder, op.getLoc(), {op.getDy(), op.getX()}, [](ArrayRef<Number> in) {
    Number dy = in[0], x = in[1], zero = x.constant(0);
    Number power = (-x.apply<math::AbsFOp>()).apply<math::ExpOp>();
    Number larger = x.constant(1) / (1 + power), smaller = larger * power;
    Number share = smaller.where(arith::CmpFPredicate::OLT, x, zero, larger);
    Number rest = larger.where(arith::CmpFPredicate::OLT, x, zero, smaller);
    return dy * (share * (1 + x * rest));
  });
}

static SmallVector<Value> toValues(Value value) { return {value}; }
static SmallVector<Value> toValues(SmallVector<Value> values) { return values; }

SmallVector<Value> weir::norm::decompose(OpBuilder &builder, Operation *op) {
  OpBuilder::InsertionGuard guard(builder);
  builder.setInsertionPoint(op);
  return llvm::TypeSwitch<Operation *, SmallVector<Value>>(op)
      .Case<linalg::SoftmaxOp,
#define GET_OP_LIST
#include "dialects/Norm/NormOps.cpp.inc"
            >([&](auto op) { return toValues(decomposeOp(builder, op)); })
      .DefaultUnreachable("neither an op of norm nor linalg.softmax");
}

/// Builds the results of `op` before it, as `options` say. `number` is that of all equal ops.
static SmallVector<Value> decompose(OpBuilder &builder, Operation *op,
                                    const DecomposeOptions &options, int64_t number) {
  auto isInBlocks = [&](auto attention) {
    return options.keysInBlocks > 0 &&
           getScoresType(attention.getQ(), attention.getK()).getShape().back() >=
               options.keysInBlocks;
  };
  OpBuilder::InsertionGuard guard(builder);
  builder.setInsertionPoint(op);
  if (auto attention = dyn_cast<AttentionOp>(op); attention && isInBlocks(attention))
    return decomposeInBlocks(builder, attention, number);
  if (auto vjp = dyn_cast<AttentionVjpOp>(op); vjp && isInBlocks(vjp))
    return decomposeInBlocks(builder, vjp, number);
  if (auto sort = dyn_cast<ArgsortOp>(op); sort && options.sortsBits)
    return {decomposeAsBits(builder, sort)};
  return decompose(builder, op);
}

void weir::norm::decomposeAll(Operation *root, const DecomposeOptions &options) {
  OpBuilder builder(root->getContext());
  SmallVector<Operation *> ops;
  root->walk([&](Operation *op) {
    auto softmax = dyn_cast<linalg::SoftmaxOp>(op);
    if (isa_and_present<NormDialect>(op->getDialect()) ||
        (softmax && softmax.hasPureTensorSemantics()))
      ops.push_back(op);
  });
  SmallVector<Operation *> attentions;
  SmallVector<int64_t> numbers(ops.size(), 0);
  for (auto [op, number] : llvm::zip_equal(ops, numbers)) {
    if (!isa<AttentionOp, AttentionVjpOp>(op))
      continue;
    auto *equal = llvm::find_if(attentions, [&, op = op](Operation *other) {
      return OperationEquivalence::isEquivalentTo(op, other, OperationEquivalence::IgnoreLocations);
    });
    number = equal - attentions.begin();
    if (equal == attentions.end())
      attentions.push_back(op);
  }
  for (auto [op, number] : llvm::zip_equal(ops, numbers)) {
    Operation *before = op->getPrevNode();
    op->replaceAllUsesWith(::decompose(builder, op, options, number));
    // Unused gradients go, and the ops that only they used.
    for (Operation *last = op; last != before;) {
      Operation *previous = last->getPrevNode();
      if (isOpTriviallyDead(last))
        last->erase();
      last = previous;
    }
  }
}

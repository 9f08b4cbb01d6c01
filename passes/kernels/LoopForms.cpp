//===- LoopForms.cpp - Loops between tensors in one form ------------------===//

#include "passes/kernels/LoopForms.h"

#include "passes/graph/TripCounts.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

#include <limits>

using namespace mlir;
using namespace weir;

bool weir::isLoop(Operation *op) { return isa<scf::ForOp, scf::WhileOp>(op); }

unsigned weir::getNumCarried(Operation *loop) {
  if (auto counted = dyn_cast<scf::ForOp>(loop))
    return counted.getInitArgs().size();
  return loop->getNumOperands();
}

Block &weir::getBody(Operation *loop) {
  if (auto counted = dyn_cast<scf::ForOp>(loop))
    return *counted.getBody();
  return *cast<scf::WhileOp>(loop).getAfterBody();
}

int64_t weir::getMaxTrips(Operation *loop) {
  if (auto counted = dyn_cast<scf::ForOp>(loop))
    return counted.getStaticTripCount()->getZExtValue();
  return std::numeric_limits<int32_t>::max();
}

/// Returns a tensor of rank 0 that holds a scalar; tensors are themselves.
static Value pack(OpBuilder &builder, Location loc, Value value) {
  if (isa<TensorType>(value.getType()))
    return value;
  if (value.getType().isIndex())
    value = arith::IndexCastOp::create(builder, loc, builder.getI64Type(), value);
  auto type = RankedTensorType::get({}, value.getType());
  return tensor::FromElementsOp::create(builder, loc, type, value);
}

/// Undoes `pack` for a value of `type`.
static Value unpack(OpBuilder &builder, Location loc, Value value, Type type) {
  if (isa<TensorType>(type))
    return value;
  value = tensor::ExtractOp::create(builder, loc, value, ValueRange());
  if (type.isIndex())
    value = arith::IndexCastOp::create(builder, loc, type, value);
  return value;
}

static SmallVector<Value> pack(OpBuilder &builder, Location loc, ValueRange values) {
  return llvm::map_to_vector(values, [&](Value value) { return pack(builder, loc, value); });
}

static SmallVector<Value> unpack(OpBuilder &builder, Location loc, ValueRange values,
                                 TypeRange types) {
  SmallVector<Value> result;
  for (auto [value, type] : llvm::zip_equal(values, types))
    result.push_back(unpack(builder, loc, value, type));
  return result;
}

/// Makes a loop in the form of LoopForms.h. `inits` and what `makeTrip` takes are packed; that
/// returns the condition, a scalar, and packed values.
static scf::WhileOp
makeWhile(OpBuilder &builder, Location loc, Value condition, ValueRange inits,
          llvm::function_ref<SmallVector<Value>(OpBuilder &, ValueRange)> makeTrip) {
  SmallVector<Value> all = {pack(builder, loc, condition)};
  llvm::append_range(all, inits);
  return scf::WhileOp::create(
      builder, loc, TypeRange(inits), all,
      [&](OpBuilder &inner, Location, ValueRange values) {
        Value flag = tensor::ExtractOp::create(inner, loc, values.front(), ValueRange());
        scf::ConditionOp::create(inner, loc, flag, values.drop_front());
      },
      [&](OpBuilder &inner, Location, ValueRange values) {
        SmallVector<Value> made = makeTrip(inner, values);
        made.front() = pack(inner, loc, made.front());
        scf::YieldOp::create(inner, loc, made);
      });
}

static void replace(OpBuilder &builder, Operation *loop, ValueRange packed) {
  SmallVector<Value> values = unpack(builder, loop->getLoc(), packed, loop->getResultTypes());
  loop->replaceAllUsesWith(values);
  loop->erase();
}

/// A loop of a known number of trips counts in a carried value of its own, if at all.
static void bringCounted(scf::ForOp loop, int64_t trips) {
  OpBuilder builder(loop);
  Location loc = loop.getLoc();
  if (trips == 0) {
    loop.replaceAllUsesWith(loop.getInitArgs());
    loop.erase();
    return;
  }
  Value counter = loop.getInductionVar();
  const bool counts = !counter.use_empty();
  SmallVector<Value> inits = pack(builder, loc, loop.getInitArgs());
  std::optional<int64_t> first = getConstantIntValue(loop.getLowerBound());
  std::optional<int64_t> step = getConstantIntValue(loop.getStep());
  auto isShort = [](int64_t number) { return number == int32_t(number); };
  // Most devices count in 32 bits.
  const bool isNarrow = first && step && isShort(*first) && isShort(*step) && isShort(trips) &&
                        isShort(*first + *step * trips);
  Type narrow = isNarrow ? Type(builder.getI32Type()) : builder.getI64Type();
  auto packCounter = [&](OpBuilder &inner, Value value) {
    if (value.getType().isIndex())
      value = arith::IndexCastOp::create(inner, loc, narrow, value);
    return pack(inner, loc, value);
  };
  if (counts)
    inits.push_back(packCounter(builder, loop.getLowerBound()));
  auto bound = [&](int64_t number) -> Value {
    return arith::ConstantIndexOp::create(builder, loc, number);
  };
  auto made = scf::ForOp::create(
      builder, loc, bound(0), bound(trips), bound(1), inits,
      [&](OpBuilder &inner, Location, Value, ValueRange packed) {
        SmallVector<Value> values;
        if (counts) {
          Value number = tensor::ExtractOp::create(inner, loc, packed.back(), ValueRange());
          if (number.getType() != counter.getType())
            number = arith::IndexCastOp::create(inner, loc, counter.getType(), number);
          values.push_back(number);
          packed = packed.drop_back();
        } else {
          values.push_back(counter); // is not used
        }
        llvm::append_range(values, unpack(inner, loc, packed, loop.getInitArgs().getTypes()));
        SmallVector<Value> next = pack(inner, loc, inlineBlock(inner, *loop.getBody(), values));
        if (counts)
          next.push_back(packCounter(
              inner, arith::AddIOp::create(inner, loc, values.front(), loop.getStep())));
        scf::YieldOp::create(inner, loc, next);
      });
  replace(builder, loop, ValueRange(made.getResults()).take_front(loop.getNumResults()));
}

/// A loop of computed bounds compares its counter before each trip.
static void bringUncounted(scf::ForOp loop) {
  OpBuilder builder(loop);
  Location loc = loop.getLoc();
  Type type = loop.getInductionVar().getType();
  auto compare = [&](OpBuilder &inner, Value counter) -> Value {
    return arith::CmpIOp::create(
        inner, loc, loop.getUnsignedCmp() ? arith::CmpIPredicate::ult : arith::CmpIPredicate::slt,
        counter, loop.getUpperBound());
  };
  SmallVector<Value> inits = pack(builder, loc, loop.getInitArgs());
  inits.push_back(pack(builder, loc, loop.getLowerBound()));
  scf::WhileOp made = makeWhile(
      builder, loc, compare(builder, loop.getLowerBound()), inits,
      [&](OpBuilder &inner, ValueRange packed) {
        SmallVector<Value> values = {unpack(inner, loc, packed.back(), type)};
        llvm::append_range(values,
                           unpack(inner, loc, packed.drop_back(), loop.getInitArgs().getTypes()));
        SmallVector<Value> next = pack(inner, loc, inlineBlock(inner, *loop.getBody(), values));
        Value counter = arith::AddIOp::create(inner, loc, values.front(), loop.getStep());
        next.push_back(pack(inner, loc, counter));
        next.insert(next.begin(), compare(inner, counter));
        return next;
      });
  replace(builder, loop, ValueRange(made.getResults()).drop_back());
}

static void bringWhile(scf::WhileOp loop) {
  OpBuilder builder(loop);
  Location loc = loop.getLoc();
  SmallVector<Value> first = inlineBlock(builder, *loop.getBeforeBody(), loop.getInits());
  scf::WhileOp made =
      makeWhile(builder, loc, first.front(), pack(builder, loc, ArrayRef(first).drop_front()),
                [&](OpBuilder &inner, ValueRange packed) {
                  SmallVector<Value> values = unpack(inner, loc, packed, loop.getResultTypes());
                  SmallVector<Value> yielded = inlineBlock(inner, *loop.getAfterBody(), values);
                  SmallVector<Value> next = inlineBlock(inner, *loop.getBeforeBody(), yielded);
                  SmallVector<Value> result = {next.front()};
                  llvm::append_range(result, pack(inner, loc, ArrayRef(next).drop_front()));
                  return result;
                });
  replace(builder, loop, made.getResults());
}

LogicalResult weir::bringToForm(func::FuncOp function) {
  SmallVector<Operation *> loops; // the innermost first
  function.walk([&](Operation *op) {
    if (isLoop(op) && !op->getParentOfType<linalg::LinalgOp>())
      loops.push_back(op);
  });
  for (Operation *loop : loops) {
    for (Type type : loop->getResultTypes())
      if (auto tensor = dyn_cast<ShapedType>(type);
          tensor && (!tensor.hasStaticShape() || tensor.getNumElements() == 0))
        return loop->emitOpError()
               << "carries " << type << "; what a loop carries has a static shape and elements";
    if (auto counted = dyn_cast<scf::ForOp>(loop)) {
      if (std::optional<APInt> trips = counted.getStaticTripCount();
          trips && trips->isSignedIntN(32))
        bringCounted(counted, trips->getSExtValue());
      else
        bringUncounted(counted);
    } else {
      bringWhile(cast<scf::WhileOp>(loop));
    }
  }
  return success();
}

//===- TripCounts.cpp - Loops whose trips can be counted ------------------===//

#include "passes/graph/TripCounts.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;
using namespace weir;

static constexpr int64_t maxTrips = 1 << 17;

namespace {
/// Computes integers, and tensors of one integer of rank 0, of one trip.
class Evaluator {
public:
  /// Sets what an argument of a block holds; null: that is not known.
  void set(Value value, Attribute known) { values[value] = known; }

  /// Returns the integer, or null.
  Attribute get(Value value);

private:
  Attribute compute(OpResult result);

  DenseMap<Value, Attribute> values;
};
} // namespace

static bool isScalar(Type type) {
  if (auto tensor = dyn_cast<RankedTensorType>(type))
    return tensor.getRank() == 0 && tensor.getElementType().isInteger();
  return type.isIntOrIndex();
}

Attribute Evaluator::get(Value value) {
  if (auto known = values.find(value); known != values.end())
    return known->second;
  auto result = dyn_cast<OpResult>(value);
  Attribute computed = result && isScalar(value.getType()) ? compute(result) : Attribute();
  return values[value] = computed;
}

Attribute Evaluator::compute(OpResult result) {
  Operation *op = result.getOwner();
  Attribute constant;
  if (matchPattern(op, m_Constant(&constant))) {
    if (auto elements = dyn_cast<DenseIntElementsAttr>(constant))
      return elements.isSplat() ? *elements.getValues<Attribute>().begin() : Attribute();
    return constant;
  }
  if (auto extract = dyn_cast<tensor::ExtractOp>(op))
    return extract.getIndices().empty() ? get(extract.getTensor()) : Attribute();
  if (isa<tensor::FromElementsOp>(op))
    return get(op->getOperand(0));
  if (auto generic = dyn_cast<linalg::GenericOp>(op)) {
    if (generic.getNumLoops() != 0)
      return {};
    for (OpOperand &operand : generic->getOpOperands())
      set(generic.getMatchingBlockArgument(&operand), get(operand.get()));
    return get(generic.getBlock()->getTerminator()->getOperand(result.getResultNumber()));
  }
  if (!isa_and_present<arith::ArithDialect>(op->getDialect()))
    return {};
  SmallVector<Attribute> operands;
  for (Value operand : op->getOperands())
    operands.push_back(get(operand));
  SmallVector<OpFoldResult> folded;
  if (llvm::is_contained(operands, Attribute()) || failed(op->fold(operands, folded)) ||
      folded.empty())
    return {};
  if (auto other = dyn_cast<Value>(folded[result.getResultNumber()]))
    return get(other);
  return cast<Attribute>(folded[result.getResultNumber()]);
}

/// Returns the number of trips if constants decide it.
static std::optional<int64_t> getTrips(scf::WhileOp loop) {
  Evaluator outside;
  SmallVector<Attribute> carried;
  for (Value init : loop.getInits())
    carried.push_back(outside.get(init));
  Operation *condition = loop.getBeforeBody()->getTerminator();
  Operation *yield = loop.getAfterBody()->getTerminator();
  for (int64_t trip = 0; trip <= maxTrips; ++trip) {
    Evaluator here;
    for (auto [argument, known] : llvm::zip_equal(loop.getBeforeArguments(), carried))
      here.set(argument, known);
    auto goesOn = dyn_cast_or_null<IntegerAttr>(here.get(condition->getOperand(0)));
    if (!goesOn)
      return std::nullopt;
    if (goesOn.getValue().isZero())
      return trip;
    for (auto [argument, value] :
         llvm::zip_equal(loop.getAfterArguments(), condition->getOperands().drop_front()))
      here.set(argument, here.get(value));
    for (auto [known, value] : llvm::zip_equal(carried, yield->getOperands()))
      known = known ? here.get(value) : Attribute();
  }
  return std::nullopt;
}

SmallVector<Value> weir::inlineBlock(OpBuilder &builder, Block &block, ValueRange values) {
  IRMapping mapping;
  mapping.map(block.getArguments(), values);
  for (Operation &op : block.without_terminator())
    builder.clone(op, mapping);
  return llvm::map_to_vector(block.getTerminator()->getOperands(),
                             [&](Value value) { return mapping.lookupOrDefault(value); });
}

bool weir::countTrips(scf::WhileOp loop) {
  std::optional<int64_t> trips = getTrips(loop);
  if (!trips)
    return false;
  OpBuilder builder(loop);
  Location loc = loop.getLoc();
  auto getIndex = [&](int64_t number) -> Value {
    return arith::ConstantIndexOp::create(builder, loc, number);
  };
  auto counted = scf::ForOp::create(
      builder, loc, getIndex(0), getIndex(*trips), getIndex(1), loop.getInits(),
      [&](OpBuilder &inner, Location, Value, ValueRange values) {
        SmallVector<Value> passed = inlineBlock(inner, *loop.getBeforeBody(), values);
        scf::YieldOp::create(
            inner, loc, inlineBlock(inner, *loop.getAfterBody(), ArrayRef(passed).drop_front()));
      });
  builder.setInsertionPointAfter(counted);
  SmallVector<Value> last = inlineBlock(builder, *loop.getBeforeBody(), counted.getResults());
  loop.replaceAllUsesWith(ArrayRef(last).drop_front());
  loop.erase();
  return true;
}

//===- Narrow.cpp - Kernels of f64 in pairs of f32 ------------------------===//
//
// Pairs.h has the arithmetic. This file rewrites the ops: an op that only moves
// values is done twice.
//
//===----------------------------------------------------------------------===//

#include "weir/Numerics/Narrow.h"

#include "Pairs.h"

#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/Transforms/Patterns.h"
#include "mlir/Dialect/UB/IR/UBOps.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/DialectResourceBlobManager.h"
#include "mlir/IR/Matchers.h"
#include "mlir/Transforms/DialectConversion.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace weir;
using namespace weir::expression;

//===----------------------------------------------------------------------===//
// Types and constants
//===----------------------------------------------------------------------===//

/// Whether `type` is f64 or a vector of it.
static bool isWide(Type type) {
  return !isa<MemRefType>(type) && getElementTypeOrSelf(type).isF64();
}

/// Returns the type of each half of a pair: f32, or a vector of it.
static Type getHalfType(Type type) {
  Type half = Float32Type::get(type.getContext());
  auto vector = dyn_cast<VectorType>(type);
  return vector ? Type(vector.clone(half)) : half;
}

MemRefType weir::getNarrowType(MemRefType type) {
  if (!getElementTypeOrSelf(type.getElementType()).isF64())
    return type;
  Type half = Float32Type::get(type.getContext());
  auto vector = dyn_cast<VectorType>(type.getElementType());
  // Kernels read a pair at once; what is none of theirs has elements of numbers.
  int64_t together = !type.getMemorySpace() ? 1 : vector ? 4 : 2;
  int64_t count = type.getNumElements() * (vector ? vector.getNumElements() : 1) * 2 / together;
  Type element = together == 1 ? half : VectorType::get({together}, half);
  return MemRefType::get({count}, element, type.getLayout(), type.getMemorySpace());
}

/// Returns both halves of a number, or failure if its nearest f32 is not near enough.
static FailureOr<std::pair<APFloat, APFloat>> split(const APFloat &value) {
  bool inexact = false;
  APFloat high = value;
  high.convert(APFloat::IEEEsingle(), APFloat::rmNearestTiesToEven, &inexact);
  APFloat low = APFloat::getZero(APFloat::IEEEsingle());
  if (!value.isFinite() || value.isZero())
    return std::pair(high, low);
  if (!high.isNormal())
    return failure();
  APFloat back = high;
  back.convert(APFloat::IEEEdouble(), APFloat::rmNearestTiesToEven, &inexact);
  low = value - back;
  low.convert(APFloat::IEEEsingle(), APFloat::rmNearestTiesToEven, &inexact);
  return std::pair(high, low);
}

FailureOr<ElementsAttr> weir::getNarrowValues(ElementsAttr values) {
  SmallVector<APFloat> numbers, halves;
  if (auto dense = dyn_cast<DenseElementsAttr>(values)) {
    llvm::append_range(numbers, dense.getValues<APFloat>());
  } else if (auto resource = dyn_cast<DenseF64ResourceElementsAttr>(values)) {
    std::optional<ArrayRef<double>> found = resource.tryGetAsArrayRef();
    if (!found)
      return failure();
    for (double number : *found)
      numbers.emplace_back(number);
  } else {
    return failure();
  }
  for (const APFloat &number : numbers) {
    FailureOr<std::pair<APFloat, APFloat>> pair = split(number);
    if (failed(pair))
      return failure();
    halves.append({pair->first, pair->second});
  }
  auto type =
      RankedTensorType::get({int64_t(halves.size())}, Float32Type::get(values.getContext()));
  return ElementsAttr(DenseElementsAttr::get(type, halves));
}

/// Returns both halves of a constant, or nothing.
static std::optional<std::pair<TypedAttr, TypedAttr>> split(TypedAttr constant) {
  Type type = getHalfType(constant.getType());
  if (auto number = dyn_cast<FloatAttr>(constant)) {
    FailureOr<std::pair<APFloat, APFloat>> pair = split(number.getValue());
    if (failed(pair))
      return std::nullopt;
    return std::pair<TypedAttr, TypedAttr>(FloatAttr::get(type, pair->first),
                                           FloatAttr::get(type, pair->second));
  }
  FailureOr<ElementsAttr> halves = getNarrowValues(cast<ElementsAttr>(constant));
  if (failed(halves))
    return std::nullopt;
  SmallVector<APFloat> high, low;
  for (auto [index, half] : llvm::enumerate(halves->getValues<APFloat>()))
    (index % 2 ? low : high).push_back(half);
  return std::pair<TypedAttr, TypedAttr>(DenseElementsAttr::get(cast<ShapedType>(type), high),
                                         DenseElementsAttr::get(cast<ShapedType>(type), low));
}

//===----------------------------------------------------------------------===//
// Ops
//===----------------------------------------------------------------------===//

/// Whether the op is done to each half alike.
static bool movesOnly(Operation *op) {
  return isa<arith::SelectOp, gpu::ShuffleOp, vector::BroadcastOp, vector::ExtractOp,
             vector::FromElementsOp, ub::PoisonOp>(op);
}

static std::optional<APInt> getSmallPower(Operation *op) {
  APInt exponent;
  auto power = dyn_cast<math::FPowIOp>(op);
  if (power && matchPattern(power.getRhs(), m_ConstantInt(&exponent)) &&
      exponent.abs().ule(uint64_t(64)))
    return exponent;
  return std::nullopt;
}

/// Returns the reason why an op that handles f64 cannot be narrowed, or nothing.
static std::string findProblem(Operation *op) {
  if (auto constant = dyn_cast<arith::ConstantOp>(op))
    return split(constant.getValue()) ? "" : "a constant is out of the range of f32";
  bool hasForm =
      movesOnly(op) || getSmallPower(op) ||
      isa<arith::AddFOp, arith::SubFOp, arith::MulFOp, arith::DivFOp, arith::NegFOp, arith::CmpFOp,
          arith::MaximumFOp, arith::MinimumFOp, arith::MaxNumFOp, arith::MinNumFOp, arith::ExtFOp,
          arith::TruncFOp, arith::SIToFPOp, arith::UIToFPOp, arith::FPToSIOp, arith::FPToUIOp,
          math::AbsFOp, math::CeilOp, math::FloorOp, math::FmaOp, math::RsqrtOp, math::SqrtOp,
          math::TruncOp, memref::LoadOp, memref::StoreOp, scf::ForOp, scf::IfOp, scf::YieldOp>(op);
  return hasForm ? "" : op->getName().getStringRef().str() + " has no form in pairs of f32";
}

namespace {
/// Rewrites any op that handles f64, but for regions.
struct NarrowOperation : ConversionPattern {
  NarrowOperation(const TypeConverter &types, MLIRContext *context)
      : ConversionPattern(types, MatchAnyOpTypeTag(), /*benefit=*/1, context) {}

  LogicalResult matchAndRewrite(Operation *op, ArrayRef<ValueRange> operands,
                                ConversionPatternRewriter &rewriter) const override;
};
} // namespace

/// Repeats the op for each half.
static void moveHalves(Operation *op, ArrayRef<ValueRange> operands,
                       ConversionPatternRewriter &rewriter) {
  SmallVector<SmallVector<Value>> results(op->getNumResults());
  for (unsigned half : {0, 1}) {
    OperationState state(op->getLoc(), op->getName());
    for (ValueRange operand : operands)
      state.addOperands(operand.size() == 2 ? operand[half] : operand[0]);
    for (Type type : op->getResultTypes())
      state.addTypes(isWide(type) ? getHalfType(type) : type);
    state.addAttributes(op->getAttrs());
    Operation *copy = rewriter.create(state);
    for (auto [list, result] : llvm::zip_equal(results, copy->getResults()))
      if (half == 0 || isWide(op->getResult(result.getResultNumber()).getType()))
        list.push_back(result);
  }
  rewriter.replaceOpWithMultiple(op, std::move(results));
}

/// Selects elements of `one` and `two`, vectors of f32 of one type, by number.
static Value shuffle(OpBuilder &b, Location loc, Value one, Value two, ArrayRef<int64_t> numbers) {
  return vector::ShuffleOp::create(b, loc, one, two, numbers);
}

/// Returns the indices of the first and the second of two vectors that replace the vector
/// at an index.
static std::pair<Value, Value> getPlaces(OpBuilder &b, Location loc, Value index) {
  Value two = arith::ConstantIndexOp::create(b, loc, 2),
        one = arith::ConstantIndexOp::create(b, loc, 1);
  Value first = arith::MulIOp::create(b, loc, index, two);
  return {first, arith::AddIOp::create(b, loc, first, one)};
}

static std::pair<Value, Value> load(OpBuilder &b, Location loc, Value memory, Value index,
                                    Type type) {
  auto vector = dyn_cast<VectorType>(type);
  if (!vector || vector.getNumElements() == 2) {
    Value both = memref::LoadOp::create(b, loc, memory, index);
    if (vector)
      return {shuffle(b, loc, both, both, {0, 2}), shuffle(b, loc, both, both, {1, 3})};
    return {vector::ExtractOp::create(b, loc, both, 0), vector::ExtractOp::create(b, loc, both, 1)};
  }
  auto [first, second] = getPlaces(b, loc, index);
  Value one = memref::LoadOp::create(b, loc, memory, first);
  Value two = memref::LoadOp::create(b, loc, memory, second);
  return {shuffle(b, loc, one, two, {0, 2, 4, 6}), shuffle(b, loc, one, two, {1, 3, 5, 7})};
}

static void store(OpBuilder &b, Location loc, Value high, Value low, Value memory, Value index) {
  auto vector = dyn_cast<VectorType>(high.getType());
  if (!vector) {
    Value both =
        vector::FromElementsOp::create(b, loc, VectorType::get({2}, high.getType()), {high, low});
    memref::StoreOp::create(b, loc, both, memory, index);
    return;
  }
  if (vector.getNumElements() == 2) {
    memref::StoreOp::create(b, loc, shuffle(b, loc, high, low, {0, 2, 1, 3}), memory, index);
    return;
  }
  auto [first, second] = getPlaces(b, loc, index);
  memref::StoreOp::create(b, loc, shuffle(b, loc, high, low, {0, 4, 1, 5}), memory, first);
  memref::StoreOp::create(b, loc, shuffle(b, loc, high, low, {2, 6, 3, 7}), memory, second);
}

LogicalResult NarrowOperation::matchAndRewrite(Operation *op, ArrayRef<ValueRange> operands,
                                               ConversionPatternRewriter &rewriter) const {
  if (movesOnly(op)) {
    moveHalves(op, operands, rewriter);
    return success();
  }
  Type wide;
  for (TypeRange types : {TypeRange(op->getOperandTypes()), TypeRange(op->getResultTypes())})
    for (Type type : types)
      if (isWide(type))
        wide = type;
  Place at(rewriter, op->getLoc(), getHalfType(wide));
  auto pair = [&](unsigned number) -> Pair {
    return {{&at, operands[number][0]}, {&at, operands[number][1]}};
  };
  auto replace = [&](Pair result) {
    SmallVector<SmallVector<Value>> results = {{result.high.value, result.low.value}};
    rewriter.replaceOpWithMultiple(op, std::move(results));
    return success();
  };
  auto replaceByOne = [&](Value result) {
    rewriter.replaceOp(op, result);
    return success();
  };
  Float none{&at, {}};
  return llvm::TypeSwitch<Operation *, LogicalResult>(op)
      .Case([&](arith::ConstantOp constant) {
        auto halves = split(constant.getValue());
        auto make = [&](TypedAttr half) -> Float {
          return {&at, arith::ConstantOp::create(rewriter, op->getLoc(), half)};
        };
        return replace({make(halves->first), make(halves->second)});
      })
      .Case([&](memref::LoadOp access) {
        auto [high, low] = load(rewriter, op->getLoc(), operands[0][0], operands[1][0], wide);
        return replace({{&at, high}, {&at, low}});
      })
      .Case([&](memref::StoreOp access) {
        store(rewriter, op->getLoc(), operands[0][0], operands[0][1], operands[1][0],
              operands[2][0]);
        rewriter.eraseOp(op);
        return success();
      })
      .Case([&](arith::AddFOp) { return replace(pair(0) + pair(1)); })
      .Case([&](arith::SubFOp) { return replace(pair(0) - pair(1)); })
      .Case([&](arith::MulFOp) { return replace(pair(0) * pair(1)); })
      .Case([&](arith::DivFOp) { return replace(pair(0) / pair(1)); })
      .Case([&](arith::NegFOp) { return replace(-pair(0)); })
      .Case([&](math::FmaOp) { return replace(pair(0) * pair(1) + pair(2)); })
      .Case([&](math::AbsFOp) { return replace(absolute(pair(0))); })
      .Case([&](math::FloorOp) { return replace(roundedDown(pair(0))); })
      .Case([&](math::CeilOp) { return replace(roundedUp(pair(0))); })
      .Case([&](math::TruncOp) { return replace(roundedToZero(pair(0))); })
      .Case([&](math::SqrtOp) { return replace(squareRoot(pair(0))); })
      .Case([&](math::RsqrtOp) {
        Pair one = {literal(none, 1.0), literal(none, 0.0)};
        return replace(one / squareRoot(pair(0)));
      })
      .Case([&](math::FPowIOp) { return replace(raised(pair(0), *getSmallPower(op))); })
      .Case(
          [&](arith::MaximumFOp) { return replace(extremum<arith::MaximumFOp>(pair(0), pair(1))); })
      .Case(
          [&](arith::MinimumFOp) { return replace(extremum<arith::MinimumFOp>(pair(0), pair(1))); })
      .Case([&](arith::MaxNumFOp) { return replace(extremum<arith::MaxNumFOp>(pair(0), pair(1))); })
      .Case([&](arith::MinNumFOp) { return replace(extremum<arith::MinNumFOp>(pair(0), pair(1))); })
      .Case([&](arith::CmpFOp compare) {
        return replaceByOne(is(pair(0), compare.getPredicate(), pair(1)).value);
      })
      .Case([&](arith::ExtFOp) {
        Value high = operands[0][0];
        if (high.getType() != at.floats)
          high = arith::ExtFOp::create(rewriter, op->getLoc(), at.floats, high);
        return replace({{&at, high}, literal(none, 0.0)});
      })
      .Case([&](arith::TruncFOp) {
        Type type = op->getResult(0).getType();
        if (type == at.floats)
          return replaceByOne(operands[0][0]);
        Value odd = roundedToOdd(pair(0)).value;
        return replaceByOne(arith::TruncFOp::create(rewriter, op->getLoc(), type, odd));
      })
      .Case([&](arith::SIToFPOp) { return replace(toPair(at, operands[0][0], true)); })
      .Case([&](arith::UIToFPOp) { return replace(toPair(at, operands[0][0], false)); })
      .Case<arith::FPToSIOp, arith::FPToUIOp>(
          [&](Operation *) { return replaceByOne(toInteger(pair(0), op->getResult(0).getType())); })
      .Default([](Operation *) { return failure(); });
}

//===----------------------------------------------------------------------===//
// Kernels
//===----------------------------------------------------------------------===//

static bool handlesWide(Operation *op) {
  if (llvm::any_of(op->getOperandTypes(), isWide) || llvm::any_of(op->getResultTypes(), isWide))
    return true;
  for (Region &region : op->getRegions())
    if (llvm::any_of(region.getArgumentTypes(), isWide))
      return true;
  return false;
}

/// Rounds constants that are cast, as front ends write the limits of f64 for those of f32. Beyond
/// f32 they become infinite, as in any cast.
static void roundConstants(gpu::GPUFuncOp kernel) {
  kernel.walk([](arith::TruncFOp cast) {
    auto constant = cast.getIn().getDefiningOp<arith::ConstantOp>();
    auto number = constant ? dyn_cast<FloatAttr>(constant.getValue()) : FloatAttr();
    auto type = dyn_cast<FloatType>(cast.getType());
    if (!number || !type ||
        cast.getRoundingmode().value_or(arith::RoundingMode::to_nearest_even) !=
            arith::RoundingMode::to_nearest_even)
      return;
    APFloat value = number.getValue();
    bool loses = false;
    value.convert(type.getFloatSemantics(), APFloat::rmNearestTiesToEven, &loses);
    OpBuilder builder(cast);
    cast.replaceAllUsesWith(
        arith::ConstantOp::create(builder, cast.getLoc(), FloatAttr::get(type, value)).getResult());
    cast.erase();
    if (constant->use_empty())
      constant->erase();
  });
}

LogicalResult weir::narrowKernel(gpu::GPUFuncOp kernel) {
  roundConstants(kernel);
  bool hasProblems = false;
  kernel.walk([&](Operation *op) {
    if (!handlesWide(op))
      return;
    std::string problem = findProblem(op);
    if (problem.empty())
      return;
    hasProblems = true;
    op->emitError() << "kernel @" << kernel.getName()
                    << " computes in f64, which the target lacks, and " << problem
                    << "; compile for a profile with float64, or compute it in f32 in the graph";
  });
  if (hasProblems)
    return failure();

  MLIRContext *context = kernel.getContext();
  TypeConverter types;
  types.addConversion([](Type type) { return type; });
  types.addConversion([](Type type, SmallVectorImpl<Type> &halves) -> std::optional<LogicalResult> {
    if (!isWide(type))
      return std::nullopt;
    halves.assign(2, getHalfType(type));
    return success();
  });
  ConversionTarget target(*context);
  target.markUnknownOpDynamicallyLegal([](Operation *op) { return !handlesWide(op); });
  RewritePatternSet patterns(context);
  patterns.add<NarrowOperation>(types, context);
  scf::populateSCFStructuralTypeConversionsAndLegality(types, patterns, target);
  return applyPartialConversion(kernel, target, std::move(patterns));
}

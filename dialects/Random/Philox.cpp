//===- Philox.cpp - Random ops written out --------------------------------===//

#include "dialects/Random/Philox.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;
using namespace weir::random;

static Value createWord(ImplicitLocOpBuilder &builder, uint32_t word) {
  return arith::ConstantIntOp::create(builder, int32_t(word), 32);
}

std::array<Value, 4> weir::random::buildPhilox(ImplicitLocOpBuilder &builder,
                                               std::array<Value, 4> counter,
                                               std::array<Value, 2> key) {
  constexpr unsigned rounds = 10;
  constexpr uint32_t multipliers[] = {0xD2511F53, 0xCD9E8D57};
  constexpr uint32_t increments[] = {0x9E3779B9, 0xBB67AE85};
  auto multiply = [&](Value word, uint32_t factor) -> std::pair<Value, Value> {
    SmallVector<Value> halves;
    builder.createOrFold<arith::MulUIExtendedOp>(halves, word, createWord(builder, factor));
    return {halves[0], halves[1]};
  };
  auto combine = [&](Value a, Value b, Value c) {
    return builder.createOrFold<arith::XOrIOp>(builder.createOrFold<arith::XOrIOp>(a, b), c);
  };
  for (unsigned round = 0; round < rounds; ++round) {
    if (round > 0)
      for (auto [word, increment] : llvm::zip_equal(key, increments))
        word = builder.createOrFold<arith::AddIOp>(word, createWord(builder, increment));
    auto [low0, high0] = multiply(counter[0], multipliers[0]);
    auto [low1, high1] = multiply(counter[2], multipliers[1]);
    counter = {combine(high1, counter[1], key[0]), low1, combine(high0, counter[3], key[1]), low0};
  }
  return counter;
}

/// Returns the low and the high half of an i64.
static std::pair<Value, Value> split(ImplicitLocOpBuilder &builder, Value number) {
  Type word = builder.getI32Type();
  Value half = arith::ConstantIntOp::create(builder, 32, 64);
  return {arith::TruncIOp::create(builder, word, number),
          arith::TruncIOp::create(builder, word, arith::ShRUIOp::create(builder, number, half))};
}

/// Returns the number of the element that the body computes, counted row by row.
static Value createPosition(ImplicitLocOpBuilder &builder, ArrayRef<int64_t> shape) {
  Value position = arith::ConstantIndexOp::create(builder, 0);
  for (auto [dim, size] : llvm::enumerate(shape)) {
    Value rows = arith::ConstantIndexOp::create(builder, size);
    position = arith::AddIOp::create(builder, builder.createOrFold<arith::MulIOp>(position, rows),
                                     linalg::IndexOp::create(builder, dim));
  }
  return position;
}

Value weir::random::expand(OpBuilder &outside, UniformOp op) {
  RankedTensorType type = op.getType();
  Location loc = op.getLoc();
  AffineMap identity = outside.getMultiDimIdentityMap(type.getRank());
  AffineMap scalar = AffineMap::get(type.getRank(), 0, outside.getContext());
  Value empty = tensor::EmptyOp::create(outside, loc, type.getShape(), type.getElementType());
  SmallVector<utils::IteratorType> loops(type.getRank(), utils::IteratorType::parallel);
  auto generic = linalg::GenericOp::create(
      outside, loc, type, ValueRange{op.getSeed(), op.getStep()}, empty,
      ArrayRef{scalar, scalar, identity}, loops,
      [&](OpBuilder &inside, Location, ValueRange arguments) {
        ImplicitLocOpBuilder builder(loc, inside);
        Value position = createPosition(builder, type.getShape());
        Value four = arith::ConstantIndexOp::create(builder, 4);
        Type i32 = builder.getI32Type();
        Value block = arith::IndexCastUIOp::create(builder, i32,
                                                   arith::DivUIOp::create(builder, position, four));
        Value place = arith::IndexCastUIOp::create(builder, i32,
                                                   arith::RemUIOp::create(builder, position, four));
        auto [seedLow, seedHigh] = split(builder, arguments[0]);
        auto [stepLow, stepHigh] = split(builder, arguments[1]);
        std::array<Value, 4> words = buildPhilox(
            builder, {block, createWord(builder, uint32_t(op.getStream())), stepLow, stepHigh},
            {seedLow, seedHigh});
        Value word = words[3];
        for (uint32_t i : {2, 1, 0}) {
          Value here = arith::CmpIOp::create(builder, arith::CmpIPredicate::eq, place,
                                             createWord(builder, i));
          word = arith::SelectOp::create(builder, here, words[i], word);
        }
        // 24 bits are exact in f32; and never negative, so a signed conversion does.
        Value bits = arith::ShRUIOp::create(builder, word, createWord(builder, 8));
        Value number = arith::SIToFPOp::create(builder, builder.getF32Type(), bits);
        Value unit = arith::ConstantOp::create(builder, builder.getF32FloatAttr(0x1p-24f));
        linalg::YieldOp::create(builder, ValueRange{arith::MulFOp::create(builder, number, unit)});
      });
  return generic->getResult(0);
}

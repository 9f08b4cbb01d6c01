//===- SPIRVHalves.cpp - f16 and bf16 as integers of 16 bits --------------===//
//
// Vulkan has no bf16, and leaves the rounding of a conversion to f16, and whether
// numbers below 2^-14 survive it, to the device. Integers have neither freedom.
//
//===----------------------------------------------------------------------===//

#include "KernelLegalize.h"
#include "weir/Target/Halves.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/UB/IR/UBOps.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"

using namespace mlir;
using namespace weir;

bool weir::isHalf(Type type) { return type.isF16() || type.isBF16(); }

bool weir::computesInHalves(Operation *op) {
  bool hasHalves = false;
  for (TypeRange types : {TypeRange(op->getOperandTypes()), TypeRange(op->getResultTypes())})
    for (Type type : types)
      hasHalves |= !isa<MemRefType>(type) && isHalf(getElementTypeOrSelf(type));
  return hasHalves &&
         !isa<arith::ExtFOp, arith::TruncFOp, arith::BitcastOp, arith::SelectOp, arith::ConstantOp,
              ub::PoisonOp, memref::LoadOp, memref::StoreOp>(op) &&
         !isa<scf::SCFDialect, vector::VectorDialect>(op->getDialect());
}

namespace {
/// Values of 32 bits, or vectors of them, of the shape of one value.
class Words {
public:
  Words(Operation *op) : b(op->getLoc(), op), like(op->getResult(0).getType()) {}

  Type as(Type element) {
    auto vector = dyn_cast<VectorType>(like);
    return vector ? Type(vector.clone(element)) : element;
  }
  Value number(uint32_t value) {
    TypedAttr element = b.getI32IntegerAttr(int32_t(value));
    if (auto vector = dyn_cast<VectorType>(like))
      element = DenseElementsAttr::get(vector.clone(b.getI32Type()), Attribute(element));
    return arith::ConstantOp::create(b, element);
  }
  Value toFloat(Value bits) { return arith::BitcastOp::create(b, as(b.getF32Type()), bits); }
  Value toBits(Value number) { return arith::BitcastOp::create(b, as(b.getI32Type()), number); }
  Value add(Value x, Value y) { return arith::AddIOp::create(b, x, y); }
  Value mask(Value x, uint32_t ones) { return arith::AndIOp::create(b, x, number(ones)); }
  Value join(Value x, Value y) { return arith::OrIOp::create(b, x, y); }
  Value left(Value x, uint32_t by) { return arith::ShLIOp::create(b, x, number(by)); }
  Value right(Value x, uint32_t by) { return arith::ShRUIOp::create(b, x, number(by)); }
  Value isBelow(Value x, uint32_t limit) {
    return arith::CmpIOp::create(b, arith::CmpIPredicate::ult, x, number(limit));
  }
  Value choose(Value condition, Value yes, Value no) {
    return arith::SelectOp::create(b, condition, yes, no);
  }

  ImplicitLocOpBuilder b;

private:
  Type like;
};
} // namespace

// Sign, exponent and fraction have 1, 8, 23 bits in f32, 1, 8, 7 in bf16, 1, 5, 10 in
// f16; the exponent of 1.0 is 127, 127, 15 (IEEE 754-2019, section 3.4).

static Value extendF16(Words &w, Value half) {
  Value size = w.mask(half, 0x7fff), sign = w.left(w.mask(half, 0x8000), 16);
  Value shifted = w.left(size, 13);
  Value normal = w.add(shifted, w.number((127 - 15) << 23));
  Value special = w.join(shifted, w.number(0x7f800000)); // infinite, or NaN
  // A number without a leading one is a multiple of 2^-24.
  Value multiple = arith::UIToFPOp::create(w.b, w.as(w.b.getF32Type()), size);
  Value unit = w.toFloat(w.number((127 - 24) << 23));
  Value subnormal = w.toBits(arith::MulFOp::create(w.b, multiple, unit));
  Value finite = w.choose(w.isBelow(size, 0x400), subnormal, normal);
  return w.toFloat(w.join(w.choose(w.isBelow(size, 0x7c00), finite, special), sign));
}

/// Drops the last bits of a number, rounded to the nearest, ties to even.
static Value round(Words &w, Value bits, uint32_t dropped) {
  Value isOdd = w.mask(w.right(bits, dropped), 1);
  return w.right(w.add(w.add(bits, w.number((1u << (dropped - 1)) - 1)), isOdd), dropped);
}

static Value truncateToF16(Words &w, Value number) {
  Value bits = w.toBits(number);
  Value size = w.mask(bits, 0x7fffffff), sign = w.mask(w.right(bits, 16), 0x8000);
  Value normal = round(w, w.add(size, w.number(-((127u - 15) << 23))), 13);
  // One half has a last place of 2^-24: adding it rounds to a multiple of that.
  Value half = w.number(0x3f000000);
  Value sum = arith::AddFOp::create(w.b, w.toFloat(size), w.toFloat(half));
  Value subnormal = arith::SubIOp::create(w.b, w.toBits(sum), half);
  Value finite = w.choose(w.isBelow(size, (127 - 14) << 23), subnormal, normal);
  // 65520 and what is above are nearer to 2^16 than to the largest number.
  Value inRange = w.choose(w.isBelow(size, 0x477ff000), finite, w.number(0x7c00));
  Value nan = w.join(w.mask(w.right(size, 13), 0x3ff), w.number(0x7e00));
  return w.join(w.choose(w.isBelow(size, 0x7f800001), inRange, nan), sign);
}

static Value truncateToBF16(Words &w, Value number) {
  Value bits = w.toBits(number);
  Value nan = w.join(w.right(bits, 16), w.number(0x40));
  return w.choose(w.isBelow(w.mask(bits, 0x7fffffff), 0x7f800001), round(w, bits, 16), nan);
}

/// Rounds f64 to f32 so that a second rounding gives what one step would: toward zero, with
/// the last bit set where that was not exact (Boldo and Melquiond, 2008).
static Value truncateToOdd(Words &w, Value number) {
  Type wide = number.getType();
  Value nearest = arith::TruncFOp::create(w.b, w.as(w.b.getF32Type()), number);
  Value back = arith::ExtFOp::create(w.b, wide, nearest);
  auto compare = [&](arith::CmpFPredicate predicate, Value other) -> Value {
    return arith::CmpFOp::create(w.b, predicate, back, other);
  };
  TypedAttr none = w.b.getZeroAttr(wide);
  Value zero = arith::ConstantOp::create(w.b, none);
  // A number that is rounded to 0 never is away from it.
  Value isBelow = arith::AndIOp::create(w.b, compare(arith::CmpFPredicate::OLT, zero),
                                        compare(arith::CmpFPredicate::OLT, number));
  Value isAway = w.choose(compare(arith::CmpFPredicate::OGT, zero),
                          compare(arith::CmpFPredicate::OGT, number), isBelow);
  Value isInexact = compare(arith::CmpFPredicate::ONE, number);
  Value bits = w.toBits(nearest);
  bits = w.choose(isAway, w.add(bits, w.number(-1)), bits);
  return w.toFloat(w.choose(isInexact, w.join(bits, w.number(1)), bits));
}

static void expandExtension(arith::ExtFOp op, Type from) {
  Words w(op);
  Value bits = arith::ExtUIOp::create(w.b, w.as(w.b.getI32Type()), op.getIn());
  Value value = from.isF16() ? extendF16(w, bits) : w.toFloat(w.left(bits, 16));
  if (getElementTypeOrSelf(op.getType()).isF64())
    value = arith::ExtFOp::create(w.b, op.getType(), value);
  op.replaceAllUsesWith(value);
  op.erase();
}

static void expandTruncation(arith::TruncFOp op) {
  Words w(op);
  Value number = op.getIn();
  if (getElementTypeOrSelf(number).isF64())
    number = truncateToOdd(w, number);
  Value bits = getElementTypeOrSelf(op.getType()).isF16() ? truncateToF16(w, number)
                                                          : truncateToBF16(w, number);
  op.replaceAllUsesWith(
      arith::TruncIOp::create(w.b, w.as(w.b.getIntegerType(16)), bits).getResult());
  op.erase();
}

/// Replaces f16 and bf16 by integers, in types and in constants.
static void storeAsIntegers(gpu::GPUFuncOp kernel) {
  Type stored = IntegerType::get(kernel.getContext(), 16);
  auto getBits = [](const APFloat &value) { return value.bitcastToAPInt(); };
  AttrTypeReplacer replacer;
  replacer.addReplacement([&](FloatType type) { return isHalf(type) ? stored : Type(type); });
  // Of a cooperative matrix only what lies in memory becomes integers.
  replacer.addReplacement([](gpu::MMAMatrixType type) {
    return std::optional(std::pair(Type(type), WalkResult::skip()));
  });
  replacer.addReplacement([&](FloatAttr number) -> std::optional<Attribute> {
    if (!isHalf(number.getType()))
      return std::nullopt;
    return IntegerAttr::get(stored, getBits(number.getValue()));
  });
  replacer.addReplacement([&](DenseFPElementsAttr numbers) -> std::optional<Attribute> {
    if (!isHalf(numbers.getElementType()))
      return std::nullopt;
    return numbers.mapValues(stored, getBits);
  });
  replacer.recursivelyReplaceElementsIn(kernel, /*replaceAttrs=*/true, /*replaceLocs=*/false,
                                        /*replaceTypes=*/true);
}

void weir::storeHalvesAsIntegers(gpu::GPUFuncOp kernel) {
  SmallVector<std::pair<arith::ExtFOp, Type>> extensions;
  SmallVector<arith::TruncFOp> truncations;
  SmallVector<arith::BitcastOp> bitcasts;
  kernel.walk([&](Operation *op) {
    Type from = op->getNumOperands() ? getElementTypeOrSelf(op->getOperand(0)) : Type();
    Type to = op->getNumResults() ? getElementTypeOrSelf(op->getResult(0)) : Type();
    if (auto extension = dyn_cast<arith::ExtFOp>(op); extension && isHalf(from))
      extensions.emplace_back(extension, from);
    else if (auto truncation = dyn_cast<arith::TruncFOp>(op); truncation && isHalf(to))
      truncations.push_back(truncation);
    else if (auto cast = dyn_cast<arith::BitcastOp>(op); cast && (isHalf(from) || isHalf(to)))
      bitcasts.push_back(cast);
  });
  for (auto [extension, from] : extensions)
    expandExtension(extension, from);
  for (arith::TruncFOp truncation : truncations)
    expandTruncation(truncation);
  storeAsIntegers(kernel);
  for (arith::BitcastOp cast : bitcasts) {
    cast.replaceAllUsesWith(cast.getIn());
    cast.erase();
  }
}

//===- BlockMask.cpp - Blocks that a mask of positions leaves out ---------===//
//
// A causal mask adds -inf to the scores of later keys. Their exponentials are 0, and so is all that
// is multiplied by these: a block in which every score is masked changes no sum. The mask is found
// in what the kernel computes from the inner sums: where an affine condition of the row and the
// walked number chooses a value that is -inf, and that stays -inf, or becomes 0, on its way to the
// reader.
//
//===----------------------------------------------------------------------===//

#include "Blocks.h"

#include "mlir/Analysis/FlatLinearValueConstraints.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/IR/Matchers.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace weir;

namespace {
/// Points of the domain: all, or those of some half planes.
struct Where {
  bool isEverywhere = false;
  MaskedSides sides;

  void add(const Where &other) {
    isEverywhere |= other.isEverywhere;
    llvm::append_range(sides, other.sides);
  }
};

/// Facts about an element at a point of the domain.
struct Facts {
  AffineExpr number; ///< an integer's value, or null
  Where isTrue, isFalse;
  Where isNegativeInfinity, isZero;
};

/// Finds where an element that is computed in blocks is masked.
class MaskFinder {
public:
  explicit MaskFinder(const KernelDomain &domain)
      : domain(domain), blocks(*domain.getBlocks()),
        context(domain.getBlocks()->inner.front().op->getContext()) {}

  Facts find(OpOperand *read);

private:
  const KernelDomain &domain;
  const Blocks &blocks;
  MLIRContext *context;
  /// Values that may still be looked at: a value that is used twice is looked at twice.
  int64_t budget = 1 << 10;

  Facts find(Value tensor, ArrayRef<AffineExpr> at);
  Facts findInBody(linalg::GenericOp op, Value value, ArrayRef<AffineExpr> loops);
  Facts compare(arith::CmpIOp op, const Facts &lhs, const Facts &rhs);
  std::optional<MaskedSide> getSide(AffineExpr difference, bool isAtLeast, int64_t bound);
};
} // namespace

Facts MaskFinder::find(OpOperand *read) {
  auto op = cast<linalg::GenericOp>(read->getOwner());
  SmallVector<AffineExpr> loops, at;
  for (int64_t dim : domain.getDims(op))
    loops.push_back(dim < 0 ? getAffineConstantExpr(0, context) : getAffineDimExpr(dim, context));
  for (AffineExpr index : getAccessMap(op, read).getResults())
    at.push_back(index.replaceDims(loops));
  return find(read->get(), at);
}

Facts MaskFinder::find(Value tensor, ArrayRef<AffineExpr> at) {
  auto op = tensor.getDefiningOp<linalg::GenericOp>();
  if (!op || getOpShape(op) != OpShape::Pointwise)
    return {};
  AffineMap written = op.getIndexingMapMatchingResult(cast<OpResult>(tensor));
  SmallVector<AffineExpr> loops(op.getNumLoops(), getAffineConstantExpr(0, context));
  for (auto [index, place] : llvm::zip_equal(written.getResults(), at))
    if (auto loop = dyn_cast<AffineDimExpr>(index))
      loops[loop.getPosition()] = place;
  unsigned number = cast<OpResult>(tensor).getResultNumber();
  return findInBody(op, op.getBody()->getTerminator()->getOperand(number), loops);
}

/// Returns the half plane in which a difference is at least, or at most, a bound.
std::optional<MaskedSide> MaskFinder::getSide(AffineExpr difference, bool isAtLeast,
                                              int64_t bound) {
  SmallVector<int64_t> factors;
  unsigned dims = domain.getSizes().size();
  if (failed(getFlattenedAffineExpr(difference, dims, 0, &factors)) || factors.size() != dims + 1)
    return std::nullopt;
  int64_t constant = factors.back(), walked = factors[blocks.walkedDim];
  for (int64_t dim = 0; dim < int64_t(dims); ++dim)
    if (factors[dim] != (dim == blocks.walkedDim ? walked : dim == blocks.rowDim ? -walked : 0))
      return std::nullopt;
  if (walked != 1 && walked != -1)
    return std::nullopt;
  bool isAfter = (walked == 1) == isAtLeast;
  return MaskedSide{isAfter, isAtLeast ? bound - constant : constant - bound};
}

Facts MaskFinder::compare(arith::CmpIOp op, const Facts &lhs, const Facts &rhs) {
  Facts facts;
  using Predicate = arith::CmpIPredicate;
  Predicate predicate = op.getPredicate();
  if (predicate == Predicate::ne || predicate == Predicate::eq) {
    // A truth that was widened to an integer.
    auto literal = dyn_cast_or_null<AffineConstantExpr>(rhs.number);
    if (!literal || literal.getValue() != 0 || lhs.number)
      return facts;
    facts.isTrue = predicate == Predicate::ne ? lhs.isTrue : lhs.isFalse;
    facts.isFalse = predicate == Predicate::ne ? lhs.isFalse : lhs.isTrue;
    return facts;
  }
  if (!lhs.number || !rhs.number)
    return facts;
  AffineExpr difference = lhs.number - rhs.number;
  auto add = [&](Where &where, bool isAtLeast, int64_t bound) {
    if (std::optional<MaskedSide> side = getSide(difference, isAtLeast, bound))
      where.sides.push_back(*side);
  };
  auto addBoth = [&](Where &atLeast, Where &below, int64_t bound) {
    add(atLeast, true, bound);
    add(below, false, bound - 1);
  };
  if (predicate == Predicate::sge || predicate == Predicate::sgt)
    addBoth(facts.isTrue, facts.isFalse, predicate == Predicate::sgt);
  else if (predicate == Predicate::slt || predicate == Predicate::sle)
    addBoth(facts.isFalse, facts.isTrue, predicate == Predicate::sle);
  return facts;
}

/// Returns the points at which a choice is a value that its arms are at these points.
static Where choose(const Facts &condition, const Where &first, const Where &second) {
  Where where;
  where.isEverywhere = first.isEverywhere && second.isEverywhere;
  if (first.isEverywhere) {
    llvm::append_range(where.sides, condition.isTrue.sides);
    llvm::append_range(where.sides, second.sides);
  }
  if (second.isEverywhere) {
    llvm::append_range(where.sides, condition.isFalse.sides);
    llvm::append_range(where.sides, first.sides);
  }
  return where;
}

Facts MaskFinder::findInBody(linalg::GenericOp op, Value value, ArrayRef<AffineExpr> loops) {
  Facts facts;
  if (--budget < 0)
    return facts;
  if (auto argument = dyn_cast<BlockArgument>(value)) {
    if (argument.getOwner() != op.getBody())
      return facts;
    OpOperand &operand = op->getOpOperand(argument.getArgNumber());
    SmallVector<AffineExpr> at;
    for (AffineExpr index : getAccessMap(op, &operand).getResults())
      at.push_back(index.replaceDims(loops));
    return op.isDpsInit(&operand) ? facts : find(operand.get(), at);
  }
  Attribute constant;
  if (matchPattern(value, m_Constant(&constant))) {
    if (auto integer = dyn_cast<IntegerAttr>(constant)) {
      facts.isTrue.isEverywhere = integer.getValue().isOne();
      facts.isFalse.isEverywhere = integer.getValue().isZero();
      if (!integer.getType().isInteger(1) && integer.getValue().getSignificantBits() <= 32)
        facts.number = getAffineConstantExpr(integer.getInt(), context);
    } else if (auto number = dyn_cast<FloatAttr>(constant)) {
      facts.isNegativeInfinity.isEverywhere =
          number.getValue().isInfinity() && number.getValue().isNegative();
      facts.isZero.isEverywhere = number.getValue().isZero();
    }
    return facts;
  }
  Operation *producer = value.getDefiningOp();
  if (!producer || producer->getBlock() != op.getBody())
    return facts;
  if (auto index = dyn_cast<linalg::IndexOp>(producer)) {
    facts.number = loops[index.getDim()];
    return facts;
  }
  SmallVector<Facts> of;
  for (Value operand : producer->getOperands())
    of.push_back(findInBody(op, operand, loops));
  auto isWide = [&] { // enough for any index
    Type type = value.getType();
    return type.isIndex() || type.getIntOrFloatBitWidth() >= 32;
  };
  llvm::TypeSwitch<Operation *, void>(producer)
      .Case<arith::IndexCastOp, arith::IndexCastUIOp, arith::ExtSIOp, arith::ExtUIOp,
            arith::TruncIOp>([&](auto) {
        facts.isTrue = of[0].isTrue;
        facts.isFalse = of[0].isFalse;
        if (isWide())
          facts.number = of[0].number;
      })
      .Case<arith::AddIOp, arith::SubIOp>([&](auto) {
        if (of[0].number && of[1].number && isWide())
          facts.number = isa<arith::AddIOp>(producer) ? of[0].number + of[1].number
                                                      : of[0].number - of[1].number;
      })
      .Case([&](arith::CmpIOp compared) { facts = compare(compared, of[0], of[1]); })
      .Case<arith::AndIOp, arith::OrIOp>([&](auto) {
        if (!value.getType().isInteger(1))
          return;
        for (const Facts &each : of)
          isa<arith::AndIOp>(producer) ? facts.isFalse.add(each.isFalse)
                                       : facts.isTrue.add(each.isTrue);
      })
      .Case([&](arith::XOrIOp) {
        if (value.getType().isInteger(1) && of[1].isTrue.isEverywhere) {
          facts.isTrue = of[0].isFalse;
          facts.isFalse = of[0].isTrue;
        }
      })
      .Case([&](arith::SelectOp) {
        facts.isNegativeInfinity =
            choose(of[0], of[1].isNegativeInfinity, of[2].isNegativeInfinity);
        facts.isZero = choose(of[0], of[1].isZero, of[2].isZero);
        facts.isTrue = choose(of[0], of[1].isTrue, of[2].isTrue);
        facts.isFalse = choose(of[0], of[1].isFalse, of[2].isFalse);
      })
      .Case<arith::ExtFOp, arith::TruncFOp>([&](auto) {
        facts.isNegativeInfinity = of[0].isNegativeInfinity;
        facts.isZero = of[0].isZero;
      })
      // Of finite numbers and -inf.
      .Case([&](arith::AddFOp) {
        for (const Facts &each : of)
          facts.isNegativeInfinity.add(each.isNegativeInfinity);
      })
      .Case([&](arith::SubFOp) { facts.isNegativeInfinity = of[0].isNegativeInfinity; })
      .Case([&](arith::MulFOp) {
        for (const Facts &each : of)
          facts.isZero.add(each.isZero);
      })
      .Case([&](math::ExpOp) { facts.isZero = of[0].isNegativeInfinity; });
  return facts;
}

MaskedSides weir::findMasked(const KernelDomain &domain) {
  const Blocks &blocks = *domain.getBlocks();
  MaskFinder finder(domain);
  if (blocks.factor)
    return finder.find(blocks.factor).isZero.sides;
  return finder.find(blocks.softmax->element).isNegativeInfinity.sides;
}

SmallVector<Value> weir::whereNeeded(PointEmitter &emitter, const MaskedSides &masked,
                                     const BlockPlace &place, ValueRange otherwise,
                                     std::function<SmallVector<Value>()> body) {
  if (masked.empty())
    return body();
  OpBuilder &b = emitter.builder();
  Value isNeeded;
  for (const MaskedSide &side : masked) {
    // The point of the block that is masked last.
    AffineExpr less = side.isAfter ? place.firstNumber : place.firstRow,
               more = side.isAfter ? place.firstRow : place.firstNumber;
    int64_t bound = side.bound + (side.isAfter ? place.rows : place.numbers) - 1;
    (bound < 0 ? less : more) = (bound < 0 ? less : more) + std::abs(bound);
    Value is = arith::CmpIOp::create(b, emitter.loc, arith::CmpIPredicate::ult,
                                     emitter.expand(less), emitter.expand(more));
    isNeeded = isNeeded ? arith::AndIOp::create(b, emitter.loc, isNeeded, is) : is;
  }
  return emitter.guard(isNeeded, otherwise, body);
}

//===- WordValues.cpp - Kernels' integers in words of 32 bits -------------===//
//
// A short integer becomes a word whose other bits are zero; an op that reads the sign
// extends it first, and an op that may set other bits clears them. An integer of 64
// bits becomes two words.
//
//===----------------------------------------------------------------------===//

#include "WordValues.h"

#include "WideIntegers.h"

#include "mlir/Dialect/Arith/Transforms/Passes.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/SCF/Transforms/Patterns.h"
#include "mlir/Dialect/UB/IR/UBOps.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/Matchers.h"
#include "mlir/Transforms/DialectConversion.h"
#include "mlir/Transforms/GreedyPatternRewriteDriver.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace weir;

namespace {
/// The types of a kernel, before and after.
struct Words {
  LackingIntegers lacking;

  bool isShort(Type type) const { return !isa<MemRefType>(type) && lacking.isShort(type); }
  bool isWide(Type type) const { return !isa<MemRefType>(type) && lacking.isWide(type); }
  bool lacks(Type type) const { return isShort(type) || isWide(type); }
  bool lacksAny(TypeRange types) const {
    return llvm::any_of(types, [&](Type type) { return lacks(type); });
  }
  bool isLacked(Operation *op) const {
    return lacksAny(op->getOperandTypes()) || lacksAny(op->getResultTypes()) ||
           llvm::any_of(op->getRegions(),
                        [&](Region &region) { return lacksAny(region.getArgumentTypes()); });
  }
};
} // namespace

static unsigned getBits(Type type) { return getElementTypeOrSelf(type).getIntOrFloatBitWidth(); }

static Type getWord(Type type) {
  Type word = IntegerType::get(type.getContext(), 32);
  auto vector = dyn_cast<VectorType>(type);
  return vector ? Type(vector.clone(word)) : word;
}

/// Whether the op is done to each word alike.
static bool movesWords(Operation *op) {
  return isa<arith::SelectOp, gpu::ShuffleOp, ub::PoisonOp, vector::BroadcastOp, vector::ExtractOp,
             vector::ExtractStridedSliceOp, vector::FromElementsOp, vector::InsertOp,
             vector::InsertStridedSliceOp, vector::ShuffleOp>(op);
}

/// Whether an op computes in one type, bit by bit or not.
static bool isArithmetic(Operation *op) {
  return isa<arith::AddIOp, arith::SubIOp, arith::MulIOp, arith::AndIOp, arith::OrIOp,
             arith::XOrIOp, arith::ShLIOp, arith::ShRUIOp, arith::ShRSIOp, arith::DivUIOp,
             arith::DivSIOp, arith::RemUIOp, arith::RemSIOp, arith::MinUIOp, arith::MinSIOp,
             arith::MaxUIOp, arith::MaxSIOp, math::AbsIOp, math::CountLeadingZerosOp>(op);
}

/// Whether an op has more bits in two results than in one.
static bool isExtended(Operation *op) {
  return isa<arith::AddUIExtendedOp, arith::MulUIExtendedOp, arith::MulSIExtendedOp>(op);
}

static bool isCast(Operation *op) {
  return isa<arith::ExtUIOp, arith::ExtSIOp, arith::TruncIOp, arith::IndexCastOp,
             arith::IndexCastUIOp, arith::SIToFPOp, arith::UIToFPOp, arith::FPToSIOp,
             arith::FPToUIOp>(op);
}

/// Returns the reason why an op on lacking integers cannot be rewritten, or nothing.
static std::string findWordProblem(Operation *op) {
  bool hasForm = movesWords(op) || isArithmetic(op) || isExtended(op) || isCast(op) ||
                 isa<arith::ConstantOp, arith::CmpIOp, UnrealizedConversionCastOp, scf::ForOp,
                     scf::IfOp, scf::YieldOp>(op);
  for (TypeRange types : {TypeRange(op->getOperandTypes()), TypeRange(op->getResultTypes())})
    for (Type type : types)
      if (isCast(op) && getElementTypeOrSelf(type).isF64() && !isa<arith::SIToFPOp>(op))
        hasForm = false;
  return hasForm ? "" : op->getName().getStringRef().str() + " has no form in words of 32 bits";
}

namespace {
/// Rewrites any op on lacking integers, but for regions.
struct RewriteOperation : ConversionPattern {
  RewriteOperation(const TypeConverter &types, const Words &words, MLIRContext *context)
      : ConversionPattern(types, MatchAnyOpTypeTag(), /*benefit=*/1, context), words(words) {}

  LogicalResult matchAndRewrite(Operation *op, ArrayRef<ValueRange> operands,
                                ConversionPatternRewriter &rewriter) const override;

private:
  void move(Operation *op, ArrayRef<ValueRange> operands,
            ConversionPatternRewriter &rewriter) const;
  SmallVector<Value> makeConstant(arith::ConstantOp op, WordBuilder &w) const;

  const Words &words;
};
} // namespace

void RewriteOperation::move(Operation *op, ArrayRef<ValueRange> operands,
                            ConversionPatternRewriter &rewriter) const {
  bool isWide = llvm::any_of(op->getResultTypes(), [&](Type type) { return words.isWide(type); });
  SmallVector<SmallVector<Value>> results(op->getNumResults());
  for (unsigned half = 0; half < (isWide ? 2 : 1); ++half) {
    OperationState state(op->getLoc(), op->getName());
    for (ValueRange operand : operands)
      state.addOperands(operand.size() == 2 ? operand[half] : operand[0]);
    for (Type type : op->getResultTypes())
      state.addTypes(words.lacks(type) ? getWord(type) : type);
    state.addAttributes(op->getAttrs());
    Operation *copy = rewriter.create(state);
    for (auto [list, result] : llvm::zip_equal(results, copy->getResults()))
      if (half == 0 || words.isWide(op->getResult(result.getResultNumber()).getType()))
        list.push_back(result);
  }
  rewriter.replaceOpWithMultiple(op, std::move(results));
}

SmallVector<Value> RewriteOperation::makeConstant(arith::ConstantOp op, WordBuilder &w) const {
  Type type = getWord(op.getType());
  auto make = [&](unsigned shift) -> Value {
    auto getWordOf = [&](const APInt &value) {
      return value.zextOrTrunc(64).lshr(shift).zextOrTrunc(32);
    };
    TypedAttr attribute;
    if (auto number = dyn_cast<IntegerAttr>(op.getValue()))
      attribute = IntegerAttr::get(type, getWordOf(number.getValue()));
    else
      attribute = cast<DenseIntElementsAttr>(op.getValue()).mapValues(w.b.getI32Type(), getWordOf);
    return arith::ConstantOp::create(w.b, attribute);
  };
  if (words.isWide(op.getType()))
    return {make(0), make(32)};
  return {make(0)};
}

/// Copies the sign of an integer of `bits` to all bits of its word.
static Value extendSign(WordBuilder &w, Value word, unsigned bits) {
  if (bits == 32)
    return word;
  Value by = w.number(32 - bits);
  return w.make<arith::ShRSIOp>(w.left(word, by), by);
}

static Value clearAbove(WordBuilder &w, Value word, unsigned bits) {
  return bits == 32 ? word : w.mask(word, (1u << bits) - 1);
}

/// Whether an op on short integers reads their signs.
static bool isSigned(Operation *op) {
  if (auto compare = dyn_cast<arith::CmpIOp>(op))
    return compare.getPredicate() >= arith::CmpIPredicate::slt &&
           compare.getPredicate() <= arith::CmpIPredicate::sge;
  return isa<arith::DivSIOp, arith::RemSIOp, arith::MinSIOp, arith::MaxSIOp, arith::ShRSIOp,
             math::AbsIOp>(op);
}

/// Computes what an op computes of short integers of `bits`, in words.
static Value computeShort(WordBuilder &w, Operation *op, ArrayRef<Value> operands, unsigned bits) {
  SmallVector<Value> extended(operands);
  if (isSigned(op)) {
    bool isShift = isa<arith::ShRSIOp>(op);
    for (Value &operand : MutableArrayRef(extended).take_front(isShift ? 1 : extended.size()))
      operand = extendSign(w, operand, bits);
  }
  OperationState state(op->getLoc(), op->getName());
  state.addOperands(extended);
  if (auto compare = dyn_cast<arith::CmpIOp>(op))
    return w.compare(compare.getPredicate(), extended[0], extended[1]);
  state.addTypes(w.getWordType());
  Value result = w.b.create(state)->getResult(0);
  if (isa<math::CountLeadingZerosOp>(op))
    return w.sub(result, w.number(32 - bits));
  bool keepsAbove = isa<arith::AndIOp, arith::OrIOp, arith::XOrIOp, arith::DivUIOp, arith::RemUIOp,
                        arith::MinUIOp, arith::MaxUIOp, arith::ShRUIOp>(op);
  return keepsAbove ? result : clearAbove(w, result, bits);
}

/// Divides by a power of two without a loop, if `divisor` is that of an unsigned division.
static std::optional<Halves> divideByPower(WordBuilder &w, Operation *op, Halves value) {
  APInt divisor;
  if (!isa<arith::DivUIOp, arith::RemUIOp>(op) ||
      !matchPattern(op->getOperand(1), m_ConstantInt(&divisor)) || !divisor.isPowerOf2())
    return std::nullopt;
  if (isa<arith::DivUIOp>(op))
    return w.right(value, w.number(divisor.logBase2()), /*isSigned=*/false);
  return w.each<arith::AndIOp>(value, w.pair(divisor.getZExtValue() - 1));
}

static Halves computeWide(WordBuilder &w, Operation *op, Halves x, Halves y) {
  using P = arith::CmpIPredicate;
  auto extremum = [&](P predicate) { return w.choose(w.compare(predicate, x, y), x, y); };
  auto divide = [&](bool isSigned) {
    std::optional<Halves> simple = divideByPower(w, op, x);
    return simple ? std::pair(*simple, *simple) : w.divide(x, y, isSigned);
  };
  return llvm::TypeSwitch<Operation *, Halves>(op)
      .Case([&](arith::AddIOp) { return w.add(x, y); })
      .Case([&](arith::SubIOp) { return w.sub(x, y); })
      .Case([&](arith::MulIOp) { return w.mul(x, y); })
      .Case([&](arith::AndIOp) { return w.each<arith::AndIOp>(x, y); })
      .Case([&](arith::OrIOp) { return w.each<arith::OrIOp>(x, y); })
      .Case([&](arith::XOrIOp) { return w.each<arith::XOrIOp>(x, y); })
      .Case([&](arith::ShLIOp) { return w.left(x, y.low); })
      .Case([&](arith::ShRUIOp) { return w.right(x, y.low, /*isSigned=*/false); })
      .Case([&](arith::ShRSIOp) { return w.right(x, y.low, /*isSigned=*/true); })
      .Case([&](arith::DivUIOp) { return divide(false).first; })
      .Case([&](arith::DivSIOp) { return divide(true).first; })
      .Case([&](arith::RemUIOp) { return divide(false).second; })
      .Case([&](arith::RemSIOp) { return divide(true).second; })
      .Case([&](arith::MinUIOp) { return extremum(P::ult); })
      .Case([&](arith::MinSIOp) { return extremum(P::slt); })
      .Case([&](arith::MaxUIOp) { return extremum(P::ugt); })
      .Case([&](arith::MaxSIOp) { return extremum(P::sgt); })
      .Case([&](math::AbsIOp) { return w.absolute(x); })
      .Case([&](math::CountLeadingZerosOp) { return Halves{w.countLeadingZeros(x), w.number(0)}; });
}

/// Computes both results of an op on short integers of `bits`, in words.
static SmallVector<SmallVector<Value>> computeShortExtended(WordBuilder &w, Operation *op, Value x,
                                                            Value y, unsigned bits) {
  if (isa<arith::AddUIExtendedOp>(op)) {
    Value sum = w.add(x, y);
    Value carries = w.compare(arith::CmpIPredicate::ne, w.right(sum, bits), w.number(0));
    return {{clearAbove(w, sum, bits)}, {carries}};
  }
  bool extends = isa<arith::MulSIExtendedOp>(op);
  Value product = extends ? w.mul(extendSign(w, x, bits), extendSign(w, y, bits)) : w.mul(x, y);
  return {{clearAbove(w, product, bits)}, {clearAbove(w, w.right(product, bits), bits)}};
}

static SmallVector<SmallVector<Value>> computeWideExtended(WordBuilder &w, Operation *op, Halves x,
                                                           Halves y) {
  if (isa<arith::AddUIExtendedOp>(op)) {
    Halves sum = w.add(x, y);
    return {{sum.low, sum.high}, {w.compare(arith::CmpIPredicate::ult, sum, x)}};
  }
  auto [low, high] = w.mulExtended(x, y, isa<arith::MulSIExtendedOp>(op));
  return {{low.low, low.high}, {high.low, high.high}};
}

/// Returns an integer of any width, of an index or of a bit as two words. `bits` are those of the
/// words that hold it, 64 for two.
static Halves widen(WordBuilder &w, ValueRange value, unsigned bits, bool isSigned) {
  if (value.size() == 2)
    return {value[0], value[1]};
  Value word = value[0];
  if (getElementTypeOrSelf(word).isIndex())
    word = isSigned ? arith::IndexCastOp::create(w.b, w.getWordType(), word).getResult()
                    : arith::IndexCastUIOp::create(w.b, w.getWordType(), word).getResult();
  else if (getBits(word.getType()) < 32) // of the device's own
    word = isSigned ? arith::ExtSIOp::create(w.b, w.getWordType(), word).getResult()
                    : arith::ExtUIOp::create(w.b, w.getWordType(), word).getResult();
  else if (isSigned)
    word = extendSign(w, word, bits);
  return {word, isSigned ? w.sign(word) : w.number(0)};
}

/// Converts two words that hold an integer of at least `bits` to an integer type, lacking or not.
static SmallVector<Value> narrow(WordBuilder &w, Halves value, Type type, const Words &words) {
  if (words.isWide(type))
    return {value.low, value.high};
  if (words.isShort(type))
    return {clearAbove(w, value.low, getBits(type))};
  if (getBits(type) == 32)
    return {value.low};
  if (getBits(type) < 32)
    return {arith::TruncIOp::create(w.b, type, value.low)};
  // The device's own i64, of a short integer.
  Value low = arith::ExtUIOp::create(w.b, type, value.low);
  Value high = arith::ExtUIOp::create(w.b, type, value.high);
  TypedAttr by = w.b.getI64IntegerAttr(32);
  if (auto vector = dyn_cast<VectorType>(type))
    by = DenseElementsAttr::get(vector, Attribute(by));
  high = arith::ShLIOp::create(w.b, high, arith::ConstantOp::create(w.b, by));
  return {arith::OrIOp::create(w.b, low, high)};
}

/// Converts two words to a float.
static Value toFloat(WordBuilder &w, Halves value, Type type, bool isSigned) {
  if (!getElementTypeOrSelf(type).isF64())
    return w.toFloat(value, isSigned);
  // Both parts are exact, and their sum rounds once.
  Value high = isSigned ? arith::SIToFPOp::create(w.b, type, value.high).getResult()
                        : arith::UIToFPOp::create(w.b, type, value.high).getResult();
  TypedAttr factor = w.b.getF64FloatAttr(0x1p32);
  if (auto vector = dyn_cast<VectorType>(type))
    factor = DenseElementsAttr::get(vector, Attribute(factor));
  high = arith::MulFOp::create(w.b, high, arith::ConstantOp::create(w.b, factor));
  return arith::AddFOp::create(w.b, high, arith::UIToFPOp::create(w.b, type, value.low));
}

/// Converts between integers, indices and floats.
static SmallVector<Value> convert(WordBuilder &w, Operation *op, ValueRange operand,
                                  const Words &words) {
  Type from = op->getOperand(0).getType(), to = op->getResult(0).getType();
  bool isSigned = isa<arith::ExtSIOp, arith::IndexCastOp, arith::SIToFPOp, arith::FPToSIOp>(op);
  if (isa<arith::FPToSIOp, arith::FPToUIOp>(op)) {
    if (words.isWide(to))
      return narrow(w, w.fromFloat(operand[0]), to, words);
    Value word = isSigned ? arith::FPToSIOp::create(w.b, w.getWordType(), operand[0]).getResult()
                          : arith::FPToUIOp::create(w.b, w.getWordType(), operand[0]).getResult();
    return {clearAbove(w, word, getBits(to))};
  }
  unsigned bits = getElementTypeOrSelf(from).isIndex() ? 32 : getBits(from);
  if (isa<arith::SIToFPOp, arith::UIToFPOp>(op)) {
    if (words.isWide(from))
      return {toFloat(w, {operand[0], operand[1]}, to, isSigned)};
    Value word = isSigned ? extendSign(w, operand[0], bits) : operand[0];
    return {isSigned ? arith::SIToFPOp::create(w.b, to, word).getResult()
                     : arith::UIToFPOp::create(w.b, to, word).getResult()};
  }
  Halves value = widen(w, operand, bits, isSigned);
  if (!getElementTypeOrSelf(to).isIndex())
    return narrow(w, value, to, words);
  // An index has 32 bits on the device.
  return {isSigned ? arith::IndexCastOp::create(w.b, to, value.low).getResult()
                   : arith::IndexCastUIOp::create(w.b, to, value.low).getResult()};
}

LogicalResult RewriteOperation::matchAndRewrite(Operation *op, ArrayRef<ValueRange> operands,
                                                ConversionPatternRewriter &rewriter) const {
  auto replace = [&](ArrayRef<Value> result) {
    SmallVector<SmallVector<Value>> results(1, SmallVector<Value>(result));
    rewriter.replaceOpWithMultiple(op, std::move(results));
    return success();
  };
  if (movesWords(op)) {
    move(op, operands, rewriter);
    return success();
  }
  Type type = op->getNumOperands() ? op->getOperand(0).getType() : op->getResult(0).getType();
  WordBuilder w(rewriter, op->getLoc(), type);
  if (auto constant = dyn_cast<arith::ConstantOp>(op))
    return replace(makeConstant(constant, w));
  if (isa<UnrealizedConversionCastOp>(op)) {
    SmallVector<SmallVector<Value>> results;
    for (Value value : llvm::concat<Value>(llvm::to_vector(operands.front()),
                                           operands.size() == 2 ? llvm::to_vector(operands.back())
                                                                : SmallVector<Value>()))
      results.push_back({value});
    if (op->getNumResults() == 1)
      return replace({results[0][0], results[1][0]});
    rewriter.replaceOpWithMultiple(op, std::move(results));
    return success();
  }
  if (isCast(op))
    return replace(convert(w, op, operands.front(), words));
  if (isExtended(op)) {
    bool isShort = words.isShort(type);
    rewriter.replaceOpWithMultiple(
        op, isShort ? computeShortExtended(w, op, operands[0][0], operands[1][0], getBits(type))
                    : computeWideExtended(w, op, {operands[0][0], operands[0][1]},
                                          {operands[1][0], operands[1][1]}));
    return success();
  }
  if (!isArithmetic(op) && !isa<arith::CmpIOp>(op))
    return failure();
  if (words.isShort(type)) {
    SmallVector<Value> values;
    for (ValueRange operand : operands)
      values.push_back(operand.front());
    return replace(computeShort(w, op, values, getBits(type)));
  }
  Halves x = {operands.front()[0], operands.front()[1]};
  Halves y = {operands.back()[0], operands.back()[1]};
  if (auto compare = dyn_cast<arith::CmpIOp>(op))
    return replace(w.compare(compare.getPredicate(), x, y));
  Halves result = computeWide(w, op, x, y);
  return replace({result.low, result.high});
}

/// Clamps a wide integer in 32 bits where it becomes an index between constants of 32 bits, so that
/// the index's range stays known.
static void clampInWords(arith::IndexCastOp cast) {
  auto matchBound = [](Operation *op, APInt &bound) {
    return op && matchPattern(op->getOperand(1), m_ConstantInt(&bound)) && bound.isSignedIntN(32);
  };
  Operation *outer = cast.getIn().getDefiningOp();
  if (!isa_and_nonnull<arith::MinSIOp, arith::MaxSIOp>(outer))
    return;
  Operation *inner = outer->getOperand(0).getDefiningOp();
  APInt outerBound, innerBound;
  if (!isa_and_nonnull<arith::MinSIOp, arith::MaxSIOp>(inner) ||
      inner->getName() == outer->getName() || !matchBound(outer, outerBound) ||
      !matchBound(inner, innerBound))
    return;
  // Saturated to 32 bits first, which is a clamp to wider bounds.
  OpBuilder builder(cast);
  Value wide = inner->getOperand(0);
  WordBuilder w(builder, cast.getLoc(), wide.getType());
  TypedAttr by = builder.getI64IntegerAttr(32);
  if (auto vector = dyn_cast<VectorType>(wide.getType()))
    by = DenseElementsAttr::get(vector, Attribute(by));
  Value shifted = w.make<arith::ShRUIOp>(wide, arith::ConstantOp::create(w.b, by));
  Value low = arith::TruncIOp::create(w.b, w.getWordType(), wide);
  Value high = arith::TruncIOp::create(w.b, w.getWordType(), shifted);
  Value fits = w.compare(arith::CmpIPredicate::eq, high, w.sign(low));
  Value extreme = w.make<arith::XOrIOp>(w.sign(high), w.number(0x7fffffff));
  Value word = w.choose(fits, low, extreme);
  for (auto [op, bound] : {std::pair(inner, innerBound), std::pair(outer, outerBound)}) {
    Value limit = w.number(uint32_t(bound.getSExtValue()));
    word = isa<arith::MinSIOp>(op) ? w.make<arith::MinSIOp>(word, limit)
                                   : w.make<arith::MaxSIOp>(word, limit);
  }
  cast.getInMutable().assign(word);
}

/// Expands divisions that round up or down, whose patterns know no words.
static void expandDivisions(gpu::GPUFuncOp kernel) {
  auto found = kernel.walk([](Operation *op) {
    bool is = isa<arith::CeilDivSIOp, arith::CeilDivUIOp, arith::FloorDivSIOp>(op);
    return is ? WalkResult::interrupt() : WalkResult::advance();
  });
  if (!found.wasInterrupted())
    return;
  RewritePatternSet patterns(kernel.getContext());
  arith::populateCeilFloorDivExpandOpsPatterns(patterns);
  (void)applyPatternsGreedily(kernel, std::move(patterns)); // what stays is refused below
}

LogicalResult weir::computeInWords(gpu::GPUFuncOp kernel, const LackingIntegers &lacking) {
  Words words = {lacking};
  expandDivisions(kernel);
  if (!lacking.has64)
    kernel.walk([&](arith::IndexCastOp op) {
      if (words.isWide(op.getIn().getType()))
        clampInWords(op);
    });
  bool hasProblems = false;
  kernel.walk([&](Operation *op) {
    std::string problem = words.isLacked(op) ? findWordProblem(op) : "";
    if (problem.empty())
      return;
    hasProblems = true;
    Type type = op->getNumResults() && words.lacksAny(op->getResultTypes())
                    ? op->getResult(0).getType()
                    : op->getOperand(0).getType();
    op->emitError() << "kernel @" << kernel.getName() << " computes in " << type
                    << ", which the target lacks, and " << problem
                    << "; compile for a profile that has the type, or compute in i32 or f32";
  });
  if (hasProblems)
    return failure();

  MLIRContext *context = kernel.getContext();
  TypeConverter types;
  types.addConversion([](Type type) { return type; });
  types.addConversion([&](Type type, SmallVectorImpl<Type> &parts) -> std::optional<LogicalResult> {
    if (!words.lacks(type))
      return std::nullopt;
    parts.assign(words.isWide(type) ? 2 : 1, getWord(type));
    return success();
  });
  ConversionTarget target(*context);
  target.markUnknownOpDynamicallyLegal([&](Operation *op) { return !words.isLacked(op); });
  RewritePatternSet patterns(context);
  patterns.add<RewriteOperation>(types, words, context);
  scf::populateSCFStructuralTypeConversionsAndLegality(types, patterns, target);
  return applyPartialConversion(kernel, target, std::move(patterns));
}

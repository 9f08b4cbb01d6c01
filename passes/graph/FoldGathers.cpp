//===- FoldGathers.cpp - Gathers by places that are known -----------------===//
//
// Front ends spell some reshapes as a gather by tables of constants, which hides from
// everything later that each element is read once, and in order. Places that loops say,
// as those of weights that are turned around, are a map. A constant that counts upward,
// such as PyTorch's `arange`, is the index of a loop.
//
//===----------------------------------------------------------------------===//

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Dialect/Utils/IndexingUtils.h"
#include "mlir/IR/DialectResourceBlobManager.h"
#include "mlir/IR/Matchers.h"
#include "mlir/Pass/Pass.h"
#include "passes/graph/Triangles.h"
#include "weir/Graph/Graph.h"

namespace weir {
#define GEN_PASS_DEF_FOLDGATHERSPASS
#include "passes/Passes.h.inc"
} // namespace weir

using namespace mlir;
using namespace weir;

/// Returns the elements of a constant of integers, or nothing.
static std::optional<SmallVector<APInt>> getIntegers(Value tensor) {
  Attribute constant;
  if (!matchPattern(tensor, m_Constant(&constant)))
    return std::nullopt;
  if (auto dense = dyn_cast<DenseIntElementsAttr>(constant))
    return llvm::to_vector(dense.getValues<APInt>());
  auto resource = dyn_cast<DenseI64ResourceElementsAttr>(constant);
  std::optional<ArrayRef<int64_t>> numbers = resource ? resource.tryGetAsArrayRef() : std::nullopt;
  if (!numbers)
    return std::nullopt;
  return llvm::map_to_vector(*numbers, [](int64_t number) { return APInt(64, uint64_t(number)); });
}

namespace {
/// Evaluates a body on constants.
class PlaceReader {
public:
  explicit PlaceReader(linalg::GenericOp op) : op(op) {}

  /// Reads the tables. Whether all integer operands are constant tables.
  bool readTables();
  /// Returns the indices of `extract` at the point of these loops, or nothing.
  std::optional<SmallVector<int64_t>> getPlace(tensor::ExtractOp extract, ArrayRef<int64_t> loops);

private:
  linalg::GenericOp op;
  SmallVector<SmallVector<APInt>> tables; // of inputs
};
} // namespace

bool PlaceReader::readTables() {
  for (OpOperand *input : op.getDpsInputOperands()) {
    std::optional<SmallVector<APInt>> table = getIntegers(input->get());
    if (!table ||
        !op.getMatchingIndexingMap(input).isProjectedPermutation(/*allowZeroInResults=*/true))
      return false;
    tables.push_back(std::move(*table));
  }
  return true;
}

std::optional<SmallVector<int64_t>> PlaceReader::getPlace(tensor::ExtractOp extract,
                                                          ArrayRef<int64_t> loops) {
  Builder b(op.getContext());
  DenseMap<Value, Attribute> known;
  for (auto [input, table] : llvm::zip_equal(op.getDpsInputOperands(), tables)) {
    SmallVector<int64_t> at = op.getMatchingIndexingMap(input).compose(loops);
    auto type = cast<RankedTensorType>(input->get().getType());
    known[op.getMatchingBlockArgument(input)] = b.getIntegerAttr(
        type.getElementType(), table[linearize(at, computeSuffixProduct(type.getShape()))]);
  }
  auto get = [&](Value value) -> Attribute {
    Attribute constant = known.lookup(value);
    if (!constant)
      matchPattern(value, m_Constant(&constant));
    return constant;
  };
  for (Operation &inner : op.getBody()->without_terminator()) {
    if (auto index = dyn_cast<linalg::IndexOp>(inner)) {
      known[index] = b.getIndexAttr(loops[index.getDim()]);
      continue;
    }
    if (&inner == extract || inner.getNumResults() != 1 || isa<arith::ConstantOp>(inner))
      continue;
    SmallVector<Attribute> operands = llvm::map_to_vector(inner.getOperands(), get);
    SmallVector<OpFoldResult> results;
    if (llvm::is_contained(operands, Attribute()) || failed(inner.fold(operands, results)) ||
        results.size() != 1)
      return std::nullopt;
    auto value = dyn_cast<Value>(results.front());
    known[inner.getResult(0)] = value ? get(value) : cast<Attribute>(results.front());
  }
  SmallVector<int64_t> place;
  for (Value index : extract.getIndices()) {
    auto number = dyn_cast_or_null<IntegerAttr>(get(index));
    if (!number)
      return std::nullopt;
    place.push_back(number.getInt());
  }
  return place;
}

/// Whether `place` is in a tensor of this shape.
static bool isIn(ArrayRef<int64_t> shape, ArrayRef<int64_t> place) {
  return llvm::all_of(llvm::zip_equal(shape, place), [](auto pair) {
    auto [size, index] = pair;
    return index >= 0 && index < size;
  });
}

static void replaceByReshape(IRRewriter &rewriter, linalg::GenericOp op) {
  constexpr int64_t maxPoints = 1 << 16; // all of them are computed
  if (op.getNumReductionLoops() || op->getNumResults() != 1 || op.getNumLoops() == 0)
    return;
  auto extract = op.getBody()->getTerminator()->getOperand(0).getDefiningOp<tensor::ExtractOp>();
  auto type = dyn_cast<RankedTensorType>(op.getResult(0).getType());
  if (!extract || extract->getBlock() != op.getBody() || !type || !type.hasStaticShape() ||
      !extract.getTensor().getType().hasStaticShape() || type.getNumElements() > maxPoints ||
      type.getNumElements() == 0 || !op.getIndexingMapsArray().back().isIdentity())
    return;
  RankedTensorType source = extract.getTensor().getType();
  PlaceReader reader(op);
  if (source.getNumElements() != type.getNumElements() || !reader.readTables())
    return;
  SmallVector<int64_t> strides = computeSuffixProduct(type.getShape());
  SmallVector<int64_t> sourceStrides = computeSuffixProduct(source.getShape());
  for (int64_t number = 0; number < type.getNumElements(); ++number) {
    auto place = reader.getPlace(extract, delinearize(number, strides));
    if (!place || !isIn(source.getShape(), *place) || linearize(*place, sourceStrides) != number)
      return;
  }
  rewriter.setInsertionPoint(op);
  rewriter.replaceOp(op, createReshapes(rewriter, op.getLoc(), type, extract.getTensor()));
}

/// Returns an index as sums and multiples of the loops, or null.
static AffineExpr getExpression(Value index) {
  MLIRContext *context = index.getContext();
  APInt constant;
  if (matchPattern(index, m_ConstantInt(&constant)))
    return getAffineConstantExpr(constant.getSExtValue(), context);
  Operation *op = index.getDefiningOp();
  if (auto loop = dyn_cast_or_null<linalg::IndexOp>(op))
    return getAffineDimExpr(loop.getDim(), context);
  if (!isa_and_nonnull<arith::AddIOp, arith::SubIOp, arith::MulIOp>(op))
    return {};
  AffineExpr lhs = getExpression(op->getOperand(0)), rhs = getExpression(op->getOperand(1));
  if (!lhs || !rhs)
    return {};
  if (isa<arith::AddIOp>(op))
    return lhs + rhs;
  if (isa<arith::SubIOp>(op))
    return lhs - rhs;
  return lhs.isSymbolicOrConstant() || rhs.isSymbolicOrConstant() ? lhs * rhs : AffineExpr();
}

/// Replaces computed reads of an op that only moves elements by a map, if its loops
/// determine them and all are in range.
static void replaceByMap(IRRewriter &rewriter, linalg::GenericOp op) {
  if (op.getNumReductionLoops() || op->getNumResults() != 1)
    return;
  auto extract = op.getBody()->getTerminator()->getOperand(0).getDefiningOp<tensor::ExtractOp>();
  auto type = dyn_cast<RankedTensorType>(op.getResult(0).getType());
  if (!extract || extract->getBlock() != op.getBody() || !type || !type.hasStaticShape() ||
      !extract.getTensor().getType().hasStaticShape() || type.getNumElements() == 0 ||
      !op.getIndexingMapsArray().back().isIdentity())
    return;
  RankedTensorType source = extract.getTensor().getType();
  SmallVector<std::optional<int64_t>> first(type.getRank(), 0), last;
  for (int64_t size : type.getShape())
    last.push_back(size - 1);
  SmallVector<AffineExpr> indices;
  for (auto [index, size] : llvm::zip_equal(extract.getIndices(), source.getShape())) {
    AffineExpr expression = getExpression(index);
    if (!expression)
      return;
    auto min = getBoundForAffineExpr(expression, type.getRank(), 0, first, last, false);
    auto max = getBoundForAffineExpr(expression, type.getRank(), 0, first, last, true);
    auto loop = dyn_cast<AffineDimExpr>(expression);
    // Linalg's verifier takes a plain loop for all of a dimension.
    if (!min || !max || *min < 0 || *max >= size ||
        (loop && type.getDimSize(loop.getPosition()) != size))
      return;
    indices.push_back(expression);
  }
  rewriter.setInsertionPoint(op);
  Value empty =
      tensor::EmptyOp::create(rewriter, op.getLoc(), type.getShape(), type.getElementType());
  AffineMap maps[] = {AffineMap::get(type.getRank(), 0, indices, op.getContext()),
                      rewriter.getMultiDimIdentityMap(type.getRank())};
  rewriter.replaceOpWithNewOp<linalg::GenericOp>(op, type, extract.getTensor(), empty, maps,
                                                 op.getIteratorTypesArray(),
                                                 [](OpBuilder &b, Location loc, ValueRange values) {
                                                   linalg::YieldOp::create(b, loc, values.front());
                                                 });
}

/// Returns the loop whose index an operand is, less the first element, if it is a constant that
/// counts upward. Returns that element, too.
static std::optional<std::pair<unsigned, int64_t>> getCounted(linalg::GenericOp op,
                                                              OpOperand *input) {
  auto type = dyn_cast<RankedTensorType>(input->get().getType());
  if (!type || !type.getElementType().isSignlessInteger() || type.getNumElements() < 2)
    return std::nullopt;
  std::optional<unsigned> loop;
  for (auto [index, size] :
       llvm::zip_equal(op.getMatchingIndexingMap(input).getResults(), type.getShape())) {
    if (size == 1)
      continue;
    auto dim = dyn_cast<AffineDimExpr>(index);
    if (!dim || loop)
      return std::nullopt;
    loop = dim.getPosition();
  }
  std::optional<int64_t> first = loop ? findRamp(input->get()) : std::nullopt;
  return first ? std::optional(std::pair(*loop, *first)) : std::nullopt;
}

/// Replaces operands that count upward by the indices of their loops, which other operands walk,
/// too.
static void replaceByIndex(IRRewriter &rewriter, linalg::GenericOp op) {
  for (bool changed = true; changed;) {
    changed = false;
    for (OpOperand *input : op.getDpsInputOperands()) {
      std::optional<std::pair<unsigned, int64_t>> counted = getCounted(op, input);
      if (!counted)
        continue;
      unsigned number = input->getOperandNumber();
      SmallVector<AffineMap> maps = op.getIndexingMapsArray();
      maps.erase(maps.begin() + number);
      if (!inversePermutation(concatAffineMaps(maps, op.getContext())))
        continue;
      Location loc = op.getLoc();
      SmallVector<Value> inputs(op.getDpsInputs());
      inputs.erase(inputs.begin() + number);
      rewriter.setInsertionPoint(op);
      auto made = linalg::GenericOp::create(rewriter, loc, op->getResultTypes(), inputs,
                                            op.getDpsInits(), maps, op.getIteratorTypesArray());
      rewriter.inlineRegionBefore(op.getRegion(), made.getRegion(), made.getRegion().end());
      BlockArgument argument = made.getBody()->getArgument(number);
      rewriter.setInsertionPointToStart(made.getBody());
      Value index = linalg::IndexOp::create(rewriter, loc, counted->first);
      Value element = arith::IndexCastOp::create(rewriter, loc, argument.getType(), index);
      if (counted->second != 0) {
        Value first =
            arith::ConstantIntOp::create(rewriter, loc, argument.getType(), counted->second);
        element = arith::AddIOp::create(rewriter, loc, element, first);
      }
      rewriter.replaceAllUsesWith(argument, element);
      made.getBody()->eraseArgument(number);
      rewriter.replaceOp(op, made->getResults());
      op = made;
      changed = true;
      break;
    }
  }
}

namespace {
struct FoldGathers : weir::impl::FoldGathersPassBase<FoldGathers> {
  using FoldGathersPassBase::FoldGathersPassBase;

  void runOnOperation() override {
    IRRewriter rewriter(&getContext());
    getOperation().walk([&](linalg::GenericOp op) { replaceByReshape(rewriter, op); });
    getOperation().walk([&](linalg::GenericOp op) { replaceByMap(rewriter, op); });
    getOperation().walk([&](linalg::GenericOp op) { replaceByIndex(rewriter, op); });
  }
};
} // namespace

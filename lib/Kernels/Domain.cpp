//===- Domain.cpp - The iteration space that a kernel's ops share ---------===//
//
// An anchor op (a contraction, else the first reduction of rows, else the first
// of columns, else the first op) fixes the domain. The loops of every other op are tied to it along
// the edges between the ops: an edge says that a loop of the producer and a loop of the consumer
// walk the same dimension of the tensor between them.
//
//===----------------------------------------------------------------------===//

#include "weir/Kernels/Domain.h"

#include "Tuning.h"

#include "dialects/Schedule/Schedule.h"
#include "mlir/Analysis/SliceAnalysis.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Dialect/Utils/ReshapeOpsUtils.h"
#include "mlir/IR/Matchers.h"
#include "llvm/ADT/SetVector.h"

using namespace mlir;
using namespace weir;

//===----------------------------------------------------------------------===//
// Shapes of ops
//===----------------------------------------------------------------------===//

AffineMap weir::getAccessMap(linalg::GenericOp op, OpOperand *operand) {
  AffineMap map = op.getMatchingIndexingMap(operand);
  if (llvm::none_of(map.getResults(),
                    [](AffineExpr e) { return e.getKind() == AffineExprKind::Mod; }))
    return map;
  SmallVector<int64_t> ranges = op.getStaticLoopRanges();
  SmallVector<AffineExpr> results;
  for (AffineExpr result : map.getResults()) {
    auto mod = dyn_cast<AffineBinaryOpExpr>(result);
    if (mod && result.getKind() == AffineExprKind::Mod)
      if (auto loop = dyn_cast<AffineDimExpr>(mod.getLHS()))
        if (auto size = dyn_cast<AffineConstantExpr>(mod.getRHS());
            size && ranges[loop.getPosition()] <= size.getValue())
          result = loop;
    results.push_back(result);
  }
  return AffineMap::get(map.getNumDims(), 0, results, op.getContext());
}

/// Returns an index without constant offsets and factors.
static AffineExpr stripPlacement(AffineExpr index) {
  while (auto binary = dyn_cast<AffineBinaryOpExpr>(index)) {
    bool isPlacement =
        index.getKind() == AffineExprKind::Add || index.getKind() == AffineExprKind::Mul;
    if (!isPlacement || !isa<AffineConstantExpr>(binary.getRHS()))
      break;
    index = binary.getLHS();
  }
  return index;
}

/// Returns the argument of the body that `value` is, as it is or widened.
static BlockArgument getWidened(Value value) {
  if (auto widened = value.getDefiningOp<arith::ExtFOp>())
    value = widened.getIn();
  return dyn_cast<BlockArgument>(value);
}

/// Whether `op` sums the product of its two inputs, which may be widened first, and each of which
/// has a parallel loop that the other lacks.
static bool isContraction(linalg::GenericOp op, ArrayRef<Combiner> combiners, bool inParts) {
  if (combiners.size() != 1 || op.getNumDpsInputs() != 2 ||
      !isa<arith::AddFOp>(combiners.front().combine))
    return false;
  auto product = combiners.front().reduced.getDefiningOp<arith::MulFOp>();
  Block *body = op.getBody();
  if (!product || llvm::any_of(body->without_terminator(), [&](Operation &inner) {
        return !isa<arith::ExtFOp>(inner) && &inner != product &&
               &inner != combiners.front().combine;
      }))
    return false;
  Value lhs = getWidened(product.getLhs()), rhs = getWidened(product.getRhs());
  if (lhs == body->getArgument(1))
    std::swap(lhs, rhs);
  if (lhs != body->getArgument(0) || rhs != body->getArgument(1))
    return false;
  SmallVector<AffineMap> maps;
  for (OpOperand &operand : op->getOpOperands()) {
    AffineMap map = getAccessMap(op, &operand);
    SmallVector<AffineExpr> results(map.getResults());
    if (inParts && op.isDpsInit(&operand))
      results.erase(results.begin());
    if (op.isDpsInput(&operand))
      llvm::transform(results, results.begin(), stripPlacement);
    maps.push_back(AffineMap::get(map.getNumDims(), 0, results, op.getContext()));
  }
  FailureOr<linalg::ContractionDimensions> found = linalg::inferContractionDims(maps);
  if (failed(found))
    return false;
  SmallVector<int64_t> sizes = op.getStaticLoopRanges();
  auto matters = [&](ArrayRef<unsigned> loops) {
    return llvm::any_of(loops, [&](unsigned loop) { return sizes[loop] != 1; });
  };
  return matters(found->m) && matters(found->n) && !found->k.empty() &&
         maps.back().isProjectedPermutation();
}

/// Whether an output map reaches every element of the dimensions from `firstDim`
/// on: each is walked by a loop of its own, or has one element. Upstream's
/// `isProjectedPermutation` has no more results than loops.
static bool writesAll(AffineMap map, Value tensor, unsigned firstDim = 0) {
  auto shape = cast<RankedTensorType>(tensor.getType()).getShape().drop_front(firstDim);
  llvm::SmallDenseSet<AffineExpr> seen;
  return llvm::all_of(llvm::zip_equal(map.getResults(), shape), [&](auto entry) {
    auto [index, size] = entry;
    if (isa<AffineDimExpr>(index))
      return seen.insert(index).second;
    return size == 1 && index == getAffineConstantExpr(0, index.getContext());
  });
}

static bool isReduced(linalg::GenericOp op, unsigned loop) {
  return op.getIteratorTypesArray()[loop] == utils::IteratorType::reduction;
}

AffineExpr weir::getPartIndex(const ColumnParts &parts, linalg::GenericOp op) {
  SmallVector<int64_t> sizes = op.getStaticLoopRanges();
  AffineExpr row = getAffineConstantExpr(0, op.getContext());
  for (unsigned loop : parts.rowLoops)
    row = row * sizes[loop] + getAffineDimExpr(loop, op.getContext());
  return row.floorDiv(parts.chunk);
}

/// Returns the loops that `op` reduces and the number of rows that they walk.
static ColumnParts getRows(linalg::GenericOp op) {
  ColumnParts parts;
  parts.rows = 1;
  for (auto [loop, size] : llvm::enumerate(op.getStaticLoopRanges()))
    if (isReduced(op, loop)) {
      parts.rows *= size;
      if (size != 1)
        parts.rowLoops.push_back(loop);
    }
  return parts;
}

/// Returns the number in `parts.rowLoops` of the loop whose indices equal parts of products share
/// out, or nothing if there is none.
static std::optional<unsigned> findCut(linalg::GenericOp op, const ColumnParts &parts) {
  if (parts.rows % parts.chunk)
    return std::nullopt;
  SmallVector<int64_t> sizes = op.getStaticLoopRanges();
  int64_t inner = 1;
  for (unsigned number = parts.rowLoops.size(); number-- > 0;) {
    int64_t size = sizes[parts.rowLoops[number]];
    if (parts.chunk < inner * size)
      return parts.chunk % inner == 0 && size % (parts.chunk / inner) == 0 ? std::optional(number)
                                                                           : std::nullopt;
    inner *= size;
  }
  return std::nullopt;
}

std::optional<ColumnParts> weir::getColumnParts(linalg::GenericOp op) {
  if (op.getNumReductionLoops() == 0)
    return std::nullopt;
  ColumnParts parts;
  for (OpOperand &init : op.getDpsInitsMutable()) {
    AffineMap map = op.getMatchingIndexingMap(&init);
    if (map.getNumResults() == 0 || isa<AffineDimExpr, AffineConstantExpr>(map.getResult(0)))
      return std::nullopt;
    if (parts.chunk == 0) {
      parts = getRows(op);
      map.getResult(0).walk([&](AffineExpr part) {
        auto binary = dyn_cast<AffineBinaryOpExpr>(part);
        auto divisor = binary && part.getKind() == AffineExprKind::FloorDiv
                           ? dyn_cast<AffineConstantExpr>(binary.getRHS())
                           : AffineConstantExpr();
        if (divisor)
          parts.chunk = divisor.getValue();
      });
      if (parts.chunk < 1 || parts.rows < 1)
        return std::nullopt;
    }
    // The result has exactly the parts of the rows, then each column once.
    if (map.getResult(0) != getPartIndex(parts, op) ||
        cast<RankedTensorType>(init.get().getType()).getDimSize(0) != parts.getParts() ||
        !writesAll(map.dropResult(0), init.get(), /*firstDim=*/1))
      return std::nullopt;
    for (auto [loop, size] : llvm::enumerate(op.getStaticLoopRanges()))
      if (size != 1 && map.dropResult(0).isFunctionOfDim(loop) == isReduced(op, loop))
        return std::nullopt;
  }
  std::optional<SmallVector<Combiner>> combiners = getCombiners(op);
  if (!combiners)
    return std::nullopt;
  for (auto [combiner, init] : llvm::zip_equal(*combiners, op.getDpsInits()))
    if (getSplat(init) != getNeutral(combiner.combine))
      return std::nullopt;
  return parts;
}

bool weir::reducesAcross(linalg::GenericOp op) {
  SmallVector<int64_t> sizes = op.getStaticLoopRanges();
  SmallVector<unsigned> order; // of the loops in memory
  for (unsigned loop = 0; loop < op.getNumLoops(); ++loop)
    if (sizes[loop] != 1)
      order.push_back(loop);
  for (OpOperand *input : op.getDpsInputOperands()) {
    SmallVector<unsigned> walked;
    for (AffineExpr index : op.getMatchingIndexingMap(input).getResults())
      if (auto loop = dyn_cast<AffineDimExpr>(index); loop && sizes[loop.getPosition()] != 1)
        walked.push_back(loop.getPosition());
    if (walked.size() == order.size()) {
      order = walked;
      break;
    }
  }
  return !order.empty() && !isReduced(op, order.back()) &&
         llvm::any_of(order, [&](unsigned loop) { return isReduced(op, loop); });
}

/// Whether a value of the body is the same for all numbers of a loop.
static bool isSameAlong(linalg::GenericOp op, unsigned loop, Value value) {
  llvm::SetVector<Value> slice;
  slice.insert(value);
  for (size_t next = 0; next < slice.size(); ++next) {
    if (auto argument = dyn_cast<BlockArgument>(slice[next])) {
      if (argument.getOwner() != op.getBody())
        continue;
      OpOperand &operand = op->getOpOperand(argument.getArgNumber());
      if (op.isDpsInit(&operand) || getAccessMap(op, &operand).isFunctionOfDim(loop))
        return false;
      continue;
    }
    Operation *producer = slice[next].getDefiningOp();
    if (producer->getBlock() != op.getBody())
      continue;
    if (auto index = dyn_cast<linalg::IndexOp>(producer); index && index.getDim() == loop)
      return false;
    slice.insert(producer->operand_begin(), producer->operand_end());
  }
  return true;
}

arith::SelectOp weir::getSelection(linalg::GenericOp op) {
  if (op->getNumResults() != 1)
    return {};
  std::optional<SmallVector<Combiner>> combiners = getCombiners(op);
  AffineMap written = op.getIndexingMapsArray().back();
  if (!combiners || written.getNumResults() < 2)
    return {};
  // The last dimension in which a result has neighbours: domains have none of one element.
  SmallVector<int64_t> sizes = op.getStaticLoopRanges();
  std::optional<unsigned> inRow;
  for (AffineExpr index : llvm::reverse(written.getResults())) {
    auto dim = dyn_cast<AffineDimExpr>(index);
    if (!dim)
      return {};
    if (sizes[dim.getPosition()] == 1)
      continue;
    inRow = dim.getPosition();
    break;
  }
  if (!inRow)
    return {};
  auto select = combiners->front().reduced.getDefiningOp<arith::SelectOp>();
  TypedAttr otherwise;
  if (!select || select->getBlock() != op.getBody() ||
      !matchPattern(select.getFalseValue(), m_Constant(&otherwise)) ||
      otherwise != getNeutral(combiners->front().combine) ||
      !isSameAlong(op, *inRow, select.getCondition()))
    return {};
  return select;
}

std::optional<Scatter> weir::getScatter(linalg::GenericOp op) {
  if (!op->hasAttr(schedule::scatterAttrName) || op->getNumResults() != 1)
    return std::nullopt;
  std::optional<SmallVector<Combiner>> combiners = getCombiners(op);
  auto term =
      combiners ? combiners->front().reduced.getDefiningOp<arith::SelectOp>() : arith::SelectOp();
  TypedAttr otherwise;
  if (!term || term->getBlock() != op.getBody() ||
      !matchPattern(term.getFalseValue(), m_Constant(&otherwise)) ||
      otherwise != getNeutral(combiners->front().combine))
    return std::nullopt;
  auto compare = term.getCondition().getDefiningOp<arith::CmpIOp>();
  auto cast = compare ? compare.getRhs().getDefiningOp<arith::IndexCastOp>() : arith::IndexCastOp();
  auto row = cast ? cast.getIn().getDefiningOp<linalg::IndexOp>() : linalg::IndexOp();
  Scatter scatter;
  scatter.name = compare ? dyn_cast<BlockArgument>(compare.getLhs()) : BlockArgument();
  if (!row || compare.getPredicate() != arith::CmpIPredicate::eq || !scatter.name ||
      scatter.name.getOwner() != op.getBody())
    return std::nullopt;
  scatter.rowLoop = row.getDim();
  scatter.update = term.getTrueValue();
  int64_t rows = op.getStaticLoopRanges()[scatter.rowLoop];
  if (isReduced(op, scatter.rowLoop) ||
      !llvm::isIntN(scatter.name.getType().getIntOrFloatBitWidth(), rows) ||
      !isSameAlong(op, scatter.rowLoop, scatter.name) ||
      !isSameAlong(op, scatter.rowLoop, scatter.update))
    return std::nullopt;
  return scatter;
}

bool weir::isStepResult(linalg::GenericOp op, unsigned result) {
  AffineMap map = op.getMatchingIndexingMap(op.getDpsInitOperand(result));
  SmallVector<int64_t> sizes = op.getStaticLoopRanges();
  return llvm::any_of(llvm::seq(op.getNumLoops()), [&](unsigned loop) {
    return sizes[loop] != 1 && isReduced(op, loop) && map.isFunctionOfDim(loop);
  });
}

/// Whether `op` stores a result at each of its steps, each element once, and nothing else reads it
/// before the op ends.
static bool isScan(linalg::GenericOp op) {
  SmallVector<int64_t> sizes = op.getStaticLoopRanges();
  bool any = false;
  for (auto [number, init] : llvm::enumerate(op.getDpsInitsMutable())) {
    if (!isStepResult(op, number))
      continue;
    any = true;
    if (!op.getMatchingBlockArgument(&init).use_empty())
      return false;
    auto shape = cast<RankedTensorType>(init.get().getType()).getShape();
    llvm::SmallDenseSet<unsigned> seen;
    for (auto [index, size] :
         llvm::zip_equal(op.getMatchingIndexingMap(&init).getResults(), shape)) {
      // From the first element to the last, or from the last to the first.
      auto isOf = [&](unsigned loop) {
        AffineExpr dim = getAffineDimExpr(loop, op.getContext());
        return size == sizes[loop] && (index == dim || index == size - 1 - dim);
      };
      auto loops = llvm::seq<unsigned>(0, op.getNumLoops());
      auto loop = llvm::find_if(loops, isOf);
      bool isOnly = size == 1 && index == getAffineConstantExpr(0, op.getContext());
      if (!isOnly && (loop == loops.end() || !seen.insert(*loop).second))
        return false;
    }
    for (unsigned loop = 0; loop < sizes.size(); ++loop)
      if (sizes[loop] != 1 && !seen.contains(loop))
        return false;
  }
  return any;
}

/// Whether neighbours in the result of a reduction, not terms, are neighbours in what it reads.
static bool walksAcross(linalg::GenericOp op) { return reducesAcross(op) || getSelection(op); }

/// Returns the rows of a part where registers hold a row, and workgroups copy the next row of equal
/// parts while they compute one (`RowCopies`): `unequal` if no equal ones are better. All parts are
/// computed at a time. They share the way from and to memory, but each row also takes a time that
/// only other workgroups of its unit fill.
static int64_t chooseRowsOfPart(int64_t rows, int64_t columns, int64_t units, int64_t unequal) {
  auto getCost = [&](int64_t chunk) {
    const int64_t parts = llvm::divideCeil(rows, chunk);
    return std::max(rows * columns / std::min(parts, units),
                    chunk * tuning::column_parts::columnsOfReductions) +
           tuning::column_parts::rowsOfPart * parts * columns / units;
  };
  int64_t best = unequal, least = getCost(unequal) * 3 / 2; // each row is waited for
  for (int64_t chunk = tuning::loops::minTrips;
       chunk <= std::min(rows, tuning::column_parts::maxCopiedRows); ++chunk)
    if (rows % chunk == 0 && getCost(chunk) < least) {
      least = getCost(chunk);
      best = chunk;
    }
  return best;
}

std::optional<ColumnParts> weir::chooseColumnParts(linalg::GenericOp op, const Profile &profile) {
  const int64_t units = profile.units;
  constexpr int64_t enoughRows = tuning::column_parts::enoughRows;
  if (!reducesAcross(op) || getScatter(op) || llvm::is_contained(op.getStaticLoopRanges(), 0))
    return std::nullopt;
  ColumnParts parts = getRows(op);
  int64_t minRows =
      4 * parts.rows < enoughRows * units
          ? std::clamp<int64_t>(parts.rows / units, tuning::column_parts::minRows, enoughRows)
          : enoughRows;
  int64_t columns = 1;
  for (int64_t size : op.getStaticLoopRanges())
    columns *= size;
  columns /= parts.rows;
  // Few invocations wait for memory most of the time.
  if (units > 0 && parts.rows * columns / (enoughRows * profile.vectorWidth) <
                       units * tuning::units::hidingInvocations)
    minRows = std::min(minRows, tuning::column_parts::minRows);
  // Where a row is too long for any team to keep its columns, and so no kernel walks rows, the
  // parts are as few as keep a device busy: each is written and read again.
  int64_t kept = profile.maxWorkgroupSize / 2 * profile.privateRowBytes / int64_t(sizeof(float));
  if (units > 0 && columns > kept) {
    minRows = std::max(minRows, parts.rows * columns /
                                    (units * tuning::units::maxInvocations * profile.vectorWidth));
    for (int64_t rows = minRows; rows < 2 * minRows; ++rows)
      if (parts.rows % rows == 0) {
        minRows = rows;
        break;
      }
  } else if (units > 0 && profile.copiesAsynchronously())
    minRows = chooseRowsOfPart(parts.rows, columns, units, minRows);
  parts.chunk = std::max<int64_t>(minRows, llvm::divideCeil(parts.rows, profile.columnParts));
  // Long columns of floats have more parts, since a sum that takes all rows of one, one after the
  // other, would lose digits.
  std::optional<SmallVector<Combiner>> combiners = getCombiners(op);
  if (combiners && llvm::any_of(*combiners, [](const Combiner &combiner) {
        return isa<arith::AddFOp>(combiner.combine);
      }))
    parts.chunk = std::min(parts.chunk, tuning::sums::maxRows);
  return parts;
}

std::optional<ColumnParts> weir::getContractionParts(linalg::GenericOp op) {
  std::optional<ColumnParts> parts = getColumnParts(op);
  if (!parts || !isContraction(op, *getCombiners(op), /*inParts=*/true) || !findCut(op, *parts))
    return std::nullopt;
  return parts;
}

/// Whether a factor of `op` has as many elements as its sums in so many parts have. The parts could
/// then lie over the factor, which only the kernel's barriers would make safe; no verifier proves
/// that of its code.
static bool isFactorAsLarge(linalg::GenericOp op, int64_t elements) {
  return llvm::any_of(op.getDpsInputs(), [&](Value factor) {
    return cast<RankedTensorType>(factor.getType()).getNumElements() == elements;
  });
}

/// Returns the number of parts of `sums` sums of f32 with which units wait least for those that
/// have a tile more than others.
static int64_t chooseEvenParts(linalg::GenericOp op, int64_t sums, int64_t products,
                               const Profile &profile) {
  const bool isF32 = profile.matrixTile > 0 && profile.precision == Precision::F32 &&
                     llvm::all_of(op.getDpsInputs(), [](Value factor) {
                       return getElementTypeOrSelf(factor.getType()).isF32();
                     });
  if (!isF32 || sums < tuning::contraction_parts::evenTile)
    return 1;
  auto getCost = [&](int64_t parts) {
    const int64_t tiles = llvm::divideCeil(sums, tuning::contraction_parts::evenTile) * parts;
    const double share = double(tiles) / double(llvm::alignTo(tiles, profile.units));
    return 1 / share +
           (parts > 1 ? tuning::contraction_parts::productsOfSum * double(parts) / double(products)
                      : 0);
  };
  int64_t best = 1;
  for (int64_t parts = 2; parts <= tuning::contraction_parts::maxEvenParts &&
                          products >= tuning::contraction_parts::minEvenProducts * parts;
       ++parts)
    if (products % parts == 0 && !isFactorAsLarge(op, parts * sums) &&
        getCost(parts) < tuning::contraction_parts::evenGain * getCost(1) &&
        getCost(parts) < getCost(best))
      best = parts;
  return best;
}

/// Returns the number of parts, up to `most`, that take the least time where instructions on
/// matrices add `products` products of elements of 16 bits for each of `sums` sums, all at a time.
static int64_t chooseMatrixParts(int64_t sums, int64_t products, int64_t most) {
  constexpr int64_t bytesOfSum = 8; // stored as f32 and read again
  auto getCost = [&](int64_t parts) {
    return tuning::contraction_parts::bytesOfProduct * products / parts +
           (parts > 1 ? tuning::contraction_parts::bytesOfKernel + bytesOfSum * parts * sums : 0);
  };
  int64_t best = 1;
  for (int64_t parts = 2; parts <= most; ++parts)
    if (getCost(parts) < getCost(best))
      best = parts;
  return best;
}

std::optional<ColumnParts> weir::chooseContractionParts(linalg::GenericOp op,
                                                        const Profile &profile) {
  int64_t sums = 1;
  for (auto [loop, size] : llvm::enumerate(op.getStaticLoopRanges()))
    sums *= isReduced(op, loop) ? 1 : size;
  ColumnParts parts = getRows(op);
  int64_t wanted =
      sums == 0 ? 0
                : profile.units / int64_t(llvm::divideCeil(sums, tuning::contraction_parts::tile));
  if (wanted == 1 || (sums > 0 && wanted == 0 && profile.units > 0))
    wanted = chooseEvenParts(op, sums, parts.rows, profile);
  else if (profile.matrixTile > 0 && llvm::all_of(op.getDpsInputs(), [](Value factor) {
             return getElementTypeOrSelf(factor.getType()).isF16() ||
                    getElementTypeOrSelf(factor.getType()).isBF16();
           }))
    wanted = chooseMatrixParts(sums, parts.rows, wanted);
  if (wanted < 2 || parts.rows < tuning::contraction_parts::longSum)
    return std::nullopt;
  parts.chunk = std::max<int64_t>(tuning::contraction_parts::minProducts,
                                  llvm::divideCeil(parts.rows, wanted));
  constexpr int64_t step = tuning::contraction_parts::step;
  for (parts.chunk = llvm::alignTo(parts.chunk, step); 2 * parts.chunk <= parts.rows;
       parts.chunk += step)
    if (findCut(op, parts) && !isFactorAsLarge(op, parts.getParts() * sums))
      return parts;
  return std::nullopt;
}

Value weir::getInserted(Value yielded) {
  auto insertion = yielded.getDefiningOp<tensor::InsertSliceOp>();
  return insertion ? stripReshapes(insertion.getSource()) : yielded;
}

bool weir::isPartOfInsertion(Operation *op) {
  if (isReshape(op))
    return true;
  return getOpShape(op) != OpShape::Free && isMemoryEffectFree(op) && op->getNumRegions() == 0 &&
         llvm::none_of(op->getResultTypes(), llvm::IsaPred<RankedTensorType>);
}

OpShape weir::getOpShape(Operation *op) {
  if (isa<tensor::EmptyOp>(op))
    return OpShape::Free;
  if (op->hasTrait<OpTrait::ConstantLike>())
    return !isa<RankedTensorType>(op->getResult(0).getType()) || getSplat(op->getResult(0))
               ? OpShape::Free
               : OpShape::Other;
  if (isa<tensor::InsertSliceOp>(op))
    return OpShape::Insertion;
  if (isa<tensor::SplatOp>(op))
    return getSplat(op->getResult(0)) ? OpShape::Free : OpShape::Other;

  auto generic = dyn_cast<linalg::GenericOp>(op);
  if (!generic || !generic.hasPureTensorSemantics())
    return OpShape::Other;
  if (llvm::all_of(generic->getResults(), [](Value result) { return getSplat(result) != nullptr; }))
    return OpShape::Free;
  if (getColumnParts(generic))
    return getContractionParts(generic) ? OpShape::Contraction : OpShape::Column;
  const bool scans = generic.getNumReductionLoops() > 0 && isScan(generic);
  auto isStep = [&](OpOperand &output) {
    return scans && isStepResult(generic, output.getOperandNumber() - generic.getNumDpsInputs());
  };
  for (OpOperand &output : generic.getDpsInitsMutable()) {
    if (!isStep(output) && !writesAll(generic.getMatchingIndexingMap(&output), output.get()))
      return OpShape::Other;
  }
  // This runs for each op of each kernel that is tried, so sizes are computed once.
  const bool isParallel = generic.getNumParallelLoops() == generic.getNumLoops();
  AffineMap last = generic.getIndexingMapsArray().back();
  if (isParallel && last.getNumResults() >= last.getNumDims())
    return OpShape::Pointwise;
  SmallVector<int64_t> sizes = generic.getStaticLoopRanges();
  if (isParallel) {
    // Each loop must have an index of the output, or points would be lost.
    for (auto [loop, size] : llvm::enumerate(sizes))
      if (size != 1 && !last.isFunctionOfDim(loop))
        return OpShape::Other;
    return OpShape::Pointwise;
  }
  for (OpOperand &output : generic.getDpsInitsMutable()) {
    if (isStep(output))
      continue;
    AffineMap map = generic.getMatchingIndexingMap(&output);
    for (auto [loop, kind] : llvm::enumerate(generic.getIteratorTypesArray()))
      if (sizes[loop] != 1 && map.isFunctionOfDim(loop) != (kind == utils::IteratorType::parallel))
        return OpShape::Other;
  }
  std::optional<SmallVector<Combiner>> combiners = getCombiners(generic);
  if (scans || !combiners)
    return OpShape::Sequence;
  return isContraction(generic, *combiners, /*inParts=*/false) ? OpShape::Contraction
                                                               : OpShape::Reduction;
}

std::optional<SoftmaxSums> weir::matchSoftmaxSums(ArrayRef<linalg::GenericOp> reductions) {
  if (reductions.size() != 2)
    return std::nullopt;
  SoftmaxSums sums;
  sums.maximum = reductions[0];
  sums.sum = reductions[1];
  auto ofMaximum = getCombiners(sums.maximum), ofSum = getCombiners(sums.sum);
  if (!ofMaximum || ofMaximum->size() != 1 || !ofSum || ofSum->size() != 1 ||
      sums.maximum.getNumDpsInputs() != 1 || sums.sum.getNumDpsInputs() != 2)
    return std::nullopt;
  sums.larger = ofMaximum->front().combine;
  sums.add = ofSum->front().combine;
  sums.element = sums.maximum.getDpsInputOperand(0);
  sums.start = dyn_cast_or_null<FloatAttr>(getSplat(sums.maximum.getDpsInits().front()));
  auto zero = dyn_cast_or_null<FloatAttr>(getSplat(sums.sum.getDpsInits().front()));
  auto exponential = ofSum->front().reduced.getDefiningOp<math::ExpOp>();
  auto above = exponential ? exponential.getOperand().getDefiningOp<arith::SubFOp>() : nullptr;
  if (!isa<arith::MaximumFOp, arith::MaxNumFOp>(sums.larger) || !isa<arith::AddFOp>(sums.add) ||
      ofMaximum->front().reduced != sums.maximum.getBody()->getArgument(0) || !sums.start ||
      !zero || !zero.getValue().isZero() || !above)
    return std::nullopt;
  // The sum reads the element at the place of the maximum's, and the maximum at its row.
  OpOperand *element = nullptr, *maximum = nullptr;
  for (OpOperand *operand : sums.sum.getDpsInputOperands())
    (operand->get() == sums.maximum.getResult(0) ? maximum : element) = operand;
  if (!element || !maximum || element->get() != sums.element->get() ||
      above.getLhs() != sums.sum.getMatchingBlockArgument(element) ||
      above.getRhs() != sums.sum.getMatchingBlockArgument(maximum) ||
      sums.sum.getMatchingIndexingMap(element) !=
          sums.maximum.getMatchingIndexingMap(sums.element) ||
      sums.sum.getMatchingIndexingMap(maximum) != sums.maximum.getIndexingMapsArray().back())
    return std::nullopt;
  return sums;
}

//===----------------------------------------------------------------------===//
// KernelDomain
//===----------------------------------------------------------------------===//

int64_t KernelDomain::getParts() const {
  int64_t rows = 1;
  for (int64_t size : getRowSizes())
    rows *= size;
  return llvm::divideCeil(rows, chunk);
}

bool KernelDomain::hasColumns(Operation *op) const {
  return llvm::any_of(getDims(op), [&](int64_t dim) { return dim >= int64_t(numRows); });
}

/// Whether each index of an operand that walks terms of a reduction walks rows as well, or no index
/// walks rows.
static bool isWindow(linalg::GenericOp op, AffineMap map) {
  auto walks = [&](AffineExpr index, bool terms) {
    return llvm::any_of(llvm::seq(op.getNumLoops()), [&](unsigned loop) {
      return isReduced(op, loop) == terms && index.isFunctionOfDim(loop);
    });
  };
  auto walksRows = [&](AffineExpr index) { return walks(index, /*terms=*/false); };
  return llvm::none_of(map.getResults(), walksRows) ||
         llvm::all_of(map.getResults(), [&](AffineExpr index) {
           return walksRows(index) || !walks(index, /*terms=*/true);
         });
}

bool KernelDomain::readsWindows() const {
  return shape == KernelShape::Row && columnOps.empty() && llvm::all_of(dims, [&](auto &entry) {
           if (getOpShape(entry.first) != OpShape::Reduction)
             return !hasColumns(entry.first);
           auto op = cast<linalg::GenericOp>(entry.first);
           return llvm::all_of(op.getDpsInputOperands(), [&](OpOperand *operand) {
             return isWindow(op, op.getMatchingIndexingMap(operand));
           });
         });
}

/// Ties the loops of a producer and a consumer that walk the same dimension of
/// the tensor between them. Returns false on a contradiction; sets `changed`.
static bool tie(AffineMap written, SmallVectorImpl<int64_t> &producer, AffineMap read,
                SmallVectorImpl<int64_t> &consumer, ArrayRef<int64_t> shape, bool &changed) {
  for (auto [size, out, in] : llvm::zip_equal(shape, written.getResults(), read.getResults())) {
    if (size == 1)
      continue;
    auto outDim = dyn_cast<AffineDimExpr>(out), inDim = dyn_cast<AffineDimExpr>(in);
    if (!outDim || !inDim)
      return false;
    int64_t &a = producer[outDim.getPosition()], &b = consumer[inDim.getPosition()];
    if (a == b)
      continue;
    if (a != KernelDomain::unknownDim && b != KernelDomain::unknownDim)
      return false;
    (a == KernelDomain::unknownDim ? a : b) = a == KernelDomain::unknownDim ? b : a;
    changed = true;
  }
  return true;
}

bool KernelDomain::assignDims(ArrayRef<Operation *> ops) {
  llvm::SmallPtrSet<Operation *, 16> inside(ops.begin(), ops.end());
  // Back and forth, so that a chain is tied in two rounds, wherever its anchor is.
  SmallVector<Operation *> order(ops);
  auto tieAll = [&](bool &changed) {
    std::reverse(order.begin(), order.end());
    for (Operation *op : order) {
      auto consumer = cast<linalg::GenericOp>(op);
      for (OpOperand &operand : op->getOpOperands()) {
        auto producer = operand.get().getDefiningOp<linalg::GenericOp>();
        if (!producer || !inside.contains(producer) || isPrologue(producer) || isPrologue(op))
          continue;
        unsigned result = cast<OpResult>(operand.get()).getResultNumber();
        AffineMap written = producer.getIndexingMapMatchingResult(producer->getResult(result));
        if (!tie(written, dims[producer], consumer.getMatchingIndexingMap(&operand), dims[op],
                 cast<RankedTensorType>(operand.get().getType()).getShape(), changed))
          return false;
      }
    }
    return true;
  };
  // Gives loops that no edge ties, in order, the dimensions that their op lacks. A
  // reduction takes only those that it may reduce or must keep.
  auto matchRest = [&](linalg::GenericOp op, SmallVectorImpl<int64_t> &loops) {
    OpShape kind = getOpShape(op);
    SmallVector<int64_t> ranges = op.getStaticLoopRanges();
    for (unsigned loop = 0; loop < loops.size(); ++loop) {
      if (loops[loop] != KernelDomain::unknownDim)
        continue;
      bool isRow = isReduced(op, loop) == (kind == OpShape::Column);
      auto allowed = [&](int64_t dim) {
        return !llvm::is_contained(loops, dim) &&
               (kind == OpShape::Pointwise || isRow == (dim < int64_t(numRows)));
      };
      auto rest = llvm::seq<int64_t>(0, sizes.size());
      auto dim = llvm::find_if(rest, allowed);
      if (dim == rest.end() || sizes[*dim] != ranges[loop])
        return false;
      loops[loop] = *dim;
    }
    return true;
  };
  // A pointwise op that no edge ties has no known point.
  auto isMatchable = [&](Operation *op) {
    ArrayRef<int64_t> loops = dims[op];
    return llvm::is_contained(loops, KernelDomain::unknownDim) &&
           (getOpShape(op) != OpShape::Pointwise ||
            llvm::any_of(loops, [](int64_t dim) { return dim >= 0; }));
  };

  bool changed = true;
  while (changed) {
    changed = false;
    if (!tieAll(changed))
      return false;
    if (changed)
      continue;
    for (Operation *op : ops) {
      if (isPrologue(op) || !isMatchable(op))
        continue;
      if (!matchRest(cast<linalg::GenericOp>(op), dims[op]))
        return false;
      changed = true;
      break;
    }
  }
  return llvm::none_of(dims, [](const auto &entry) {
    return llvm::is_contained(entry.second, KernelDomain::unknownDim);
  });
}

/// Whether the rows that `op` reduces in parts are the domain's, in its order, and no op
/// inside reads a part: a part is not known before its last row is done.
bool KernelDomain::acceptColumns(linalg::GenericOp op) {
  ColumnParts parts = *getColumnParts(op);
  if (chunk == 0)
    chunk = parts.chunk;
  if (across || chunk != parts.chunk || parts.rowLoops.size() != numRows)
    return false;
  for (auto [row, loop] : llvm::enumerate(parts.rowLoops))
    if (getDims(op)[loop] != int64_t(row))
      return false;
  return llvm::none_of(op->getUsers(), [&](Operation *user) { return dims.contains(user); });
}

StringRef KernelDomain::chooseShape(ArrayRef<Operation *> ops) {
  auto isInBlocks = [](Operation *op) { return op->hasAttr(schedule::inBlocksAttrName); };
  auto isContraction = [&](Operation *op, bool inBlocks) {
    return getOpShape(op) == OpShape::Contraction && isInBlocks(op) == inBlocks;
  };
  bool hasOuter = llvm::any_of(ops, [&](Operation *op) { return isContraction(op, false); });
  bool hasReader = hasOuter || llvm::any_of(ops, [&](Operation *op) {
                     return getOpShape(op) == OpShape::Reduction;
                   });
  bool isOneWalk =
      hasOuter && llvm::any_of(ops, [&](Operation *op) { return isContraction(op, true); });
  for (Operation *op : ops) {
    OpShape kind = getOpShape(op);
    auto generic = dyn_cast<linalg::GenericOp>(op);
    if (kind == OpShape::Contraction && hasReader && isInBlocks(op)) {
      if (!blocks)
        blocks.emplace();
      blocks->inner.push_back({generic, {}});
      continue;
    }
    if (kind == OpShape::Reduction && isOneWalk)
      continue; // of the contraction's rows, made in its walk
    if (kind == OpShape::Contraction) {
      if (shape != KernelShape::Map && shape != KernelShape::Contraction)
        return "a contraction and a reduction do not share a kernel";
      shape = KernelShape::Contraction;
      contractions.push_back(generic);
      if (!anchor)
        anchor = generic;
    } else if (kind == OpShape::Reduction) {
      if (shape == KernelShape::Contraction)
        return "a contraction and a reduction do not share a kernel";
      if (shape != KernelShape::Row) {
        anchor = generic;
        across = walksAcross(generic);
      }
      shape = KernelShape::Row;
      if (walksAcross(generic) != across)
        return "one reduces along memory, the other across it";
    } else if (kind == OpShape::Column) {
      if (shape == KernelShape::Contraction)
        return "a contraction and a reduction of columns do not share a kernel";
      if (shape == KernelShape::Map) {
        anchor = generic;
        shape = KernelShape::Column;
      }
      columnOps.push_back(generic);
    } else if (kind == OpShape::Sequence) {
      if (ops.size() > 1)
        return "a reduction that has no combiner gets a kernel of its own";
      shape = KernelShape::Sequence;
      anchor = generic;
    } else if (kind != OpShape::Pointwise) {
      return "one of them is no computation of points";
    }
  }
  if (!anchor)
    anchor = cast<linalg::GenericOp>(ops.front());
  return {};
}

/// Makes the anchor's loops the dimensions of the domain: rows first, then columns. Returns
/// the dimension of each loop.
SmallVector<int64_t> KernelDomain::layOut() {
  SmallVector<int64_t> ranges = anchor.getStaticLoopRanges();
  SmallVector<int64_t> anchorDims(ranges.size(), -1);
  bool rowsReduced = shape == KernelShape::Column;
  for (bool reduced : {rowsReduced, !rowsReduced}) {
    for (auto [loop, size] : llvm::enumerate(ranges))
      if (isReduced(anchor, loop) == reduced && size != 1) {
        anchorDims[loop] = sizes.size();
        sizes.push_back(size);
      }
    if (reduced == rowsReduced)
      numRows = sizes.size();
  }
  return anchorDims;
}

/// Makes the number of the part a dimension of rows, and the products of a part those of columns.
SmallVector<int64_t> KernelDomain::layOutParts(const ColumnParts &parts) {
  SmallVector<int64_t> ranges = anchor.getStaticLoopRanges();
  SmallVector<int64_t> anchorDims(ranges.size(), -1);
  unsigned cut = *findCut(anchor, parts);
  int64_t inner = 1;
  for (unsigned loop : ArrayRef(parts.rowLoops).drop_front(cut + 1))
    inner *= ranges[loop];
  partLoops.dim = 0;
  sizes.push_back(parts.getParts());
  for (auto [number, loop] : llvm::enumerate(ArrayRef(parts.rowLoops).take_front(cut + 1))) {
    int64_t step = number == cut ? parts.chunk / inner : 1;
    partLoops.loops.push_back({loop, ranges[loop] / step, step});
  }
  for (bool reduced : {false, true}) {
    for (auto [loop, size] : llvm::enumerate(ranges)) {
      auto found = llvm::find_if(partLoops.loops, [&](auto &each) { return each.loop == loop; });
      int64_t length = found == partLoops.loops.end() ? size : found->step;
      if (isReduced(anchor, loop) != reduced || length == 1)
        continue;
      anchorDims[loop] = sizes.size();
      sizes.push_back(length);
    }
    if (!reduced)
      numRows = sizes.size();
  }
  return anchorDims;
}

bool weir::hasFunctions(Operation *op) {
  auto generic = dyn_cast_or_null<linalg::GenericOp>(op);
  return generic && llvm::any_of(generic.getBody()->without_terminator(), [](Operation &inner) {
           return isa<math::MathDialect>(inner.getDialect()) || isa<arith::DivFOp>(inner);
         });
}

bool KernelDomain::hasFunctions() const {
  return llvm::any_of(dims, [](const auto &entry) { return weir::hasFunctions(entry.first); });
}

bool KernelDomain::movesHalves() const {
  int64_t points = 1;
  for (int64_t size : sizes)
    points *= size;
  bool any = false, all = true;
  auto add = [&](Value value) {
    auto type = dyn_cast<RankedTensorType>(value.getType());
    if (!type || type.getNumElements() < points)
      return;
    any = true;
    all &= type.getElementType().isIntOrFloat() && type.getElementTypeBitWidth() == 16;
  };
  for (const auto &entry : dims) {
    auto op = dyn_cast<linalg::GenericOp>(entry.first);
    if (!op)
      continue;
    for (Value input : op.getDpsInputs())
      if (!dims.contains(input.getDefiningOp()) &&
          !isa_and_present<tensor::EmptyOp>(input.getDefiningOp()) && !getSplat(input))
        add(input);
    for (Value result : op->getResults())
      if (llvm::any_of(result.getUsers(), [&](Operation *user) { return !dims.contains(user); }))
        add(result);
  }
  return any && all;
}

/// Returns the dimensions of a contraction's loops, as far as they are known before ops are tied:
/// those that it sums are new ones.
SmallVector<int64_t> KernelDomain::layOutSums(linalg::GenericOp op) {
  SmallVector<int64_t> loops;
  for (auto [loop, size] : llvm::enumerate(op.getStaticLoopRanges())) {
    bool isSummed = size != 1 && isReduced(op, loop);
    loops.push_back(size == 1 ? -1 : isSummed ? int64_t(sizes.size()) : KernelDomain::unknownDim);
    if (isSummed)
      sizes.push_back(size);
  }
  return loops;
}

/// Whether the contractions' factors vary with the same rows, but for which one is the first: a
/// tile's rows belong to one factor of each, and its columns to the other.
bool KernelDomain::haveSameFactors() const {
  auto getFactors = [&](linalg::GenericOp op, bool swaps) {
    SmallVector<std::pair<bool, bool>> factors(numRows);
    for (auto [loop, dim] : llvm::enumerate(getDims(op)))
      if (dim >= 0 && dim < int64_t(numRows))
        factors[dim] = {op.getIndexingMapsArray()[swaps].isFunctionOfDim(loop),
                        op.getIndexingMapsArray()[!swaps].isFunctionOfDim(loop)};
    return factors;
  };
  return llvm::all_of(contractions, [&](linalg::GenericOp op) {
    auto first = getFactors(contractions.front(), false);
    return getFactors(op, false) == first || getFactors(op, true) == first;
  });
}

SmallVector<int64_t> KernelDomain::getSummedDims(linalg::GenericOp contraction) const {
  SmallVector<int64_t> summed;
  for (int64_t dim : getDims(contraction))
    if (dim >= int64_t(numRows))
      summed.push_back(dim);
  llvm::sort(summed);
  return summed;
}

void KernelDomain::fixGroup(ArrayRef<int64_t> groupDims) {
  SmallVector<int64_t> numbers, kept; // by dimension as it was
  for (auto [dim, size] : llvm::enumerate(getSizes())) {
    auto group = llvm::find(groupDims, int64_t(dim));
    bool isGroup = group != groupDims.end();
    numbers.push_back(isGroup ? -2 - (group - groupDims.begin()) : int64_t(kept.size()));
    if (!isGroup)
      kept.push_back(size);
  }
  sizes = std::move(kept);
  numRows -= groupDims.size();
  for (auto &[op, loops] : dims)
    for (int64_t &dim : loops)
      if (dim >= 0)
        dim = numbers[dim];
}

StringRef KernelDomain::findPrologue(ArrayRef<Operation *> ops,
                                     llvm::SmallPtrSetImpl<Operation *> &prologue) {
  if (contractions.empty() && !blocks)
    return {};
  llvm::SmallPtrSet<Operation *, 8> readers(contractions.begin(), contractions.end());
  for (Operation *op : ops)
    if (blocks && getOpShape(op) == OpShape::Reduction)
      readers.insert(op);
  // The accumulator's initial value belongs to the epilogue's point.
  auto isFactor = [&](OpOperand &use) {
    auto reader = dyn_cast<linalg::GenericOp>(use.getOwner());
    return reader && readers.contains(reader) &&
           !(getOpShape(reader) != OpShape::Pointwise && reader.isDpsInit(&use));
  };
  for (Operation *op : llvm::reverse(ops)) {
    if (llvm::none_of(op->getUses(), isFactor) || getOpShape(op) == OpShape::Reduction)
      continue;
    if (llvm::is_contained(contractions, op))
      return "a contraction reads the sums of another one, so all of them must be there first";
    if (!llvm::all_of(op->getUses(), isFactor))
      return "what a contraction reads is computed for it alone, and this has other readers";
    readers.insert(op);
    prologue.insert(op);
  }
  return {};
}

/// Whether `op` covers the rows, with or without the columns. A reduction must reduce exactly
/// the columns, or the rows; after a contraction there are only rows.
bool KernelDomain::coversPoints(linalg::GenericOp op) const {
  if (partLoops.dim >= 0 && op == anchor)
    return true;
  llvm::SmallDenseSet<int64_t> used;
  OpShape kind = getOpShape(op);
  for (auto [dim, size, iterator] :
       llvm::zip_equal(getDims(op), op.getStaticLoopRanges(), op.getIteratorTypesArray())) {
    if (dim < 0)
      continue;
    if (!used.insert(dim).second || sizes[dim] != size)
      return false;
    bool isColumn = dim >= int64_t(numRows);
    bool reducesColumns = kind != OpShape::Column;
    if ((iterator == utils::IteratorType::reduction) != (isColumn == reducesColumns) &&
        kind != OpShape::Pointwise)
      return false;
    if (shape == KernelShape::Contraction && kind == OpShape::Pointwise && isColumn)
      return false;
  }
  if (kind == OpShape::Contraction)
    return used.size() == numRows + getSummedDims(op).size();
  if (blocks && blocks->columnDim >= 0 && !used.contains(blocks->columnDim))
    return used.size() == sizes.size() - (kind == OpShape::Pointwise ? 2 : 1);
  bool all = used.size() == sizes.size();
  bool rows = used.size() == numRows && !hasColumns(op);
  bool mayBeRows = shape == KernelShape::Row || shape == KernelShape::Contraction;
  return all || (rows && mayBeRows && kind == OpShape::Pointwise);
}

StringRef KernelDomain::assign(ArrayRef<Operation *> ops) {
  if (ops.size() > maxOps)
    return "a kernel has at most 64 ops";
  if (StringRef why = chooseShape(ops); !why.empty())
    return why;
  for (Operation *op : ops)
    for (tensor::ExtractOp read :
         cast<linalg::GenericOp>(op).getBody()->getOps<tensor::ExtractOp>())
      if (llvm::is_contained(ops, read.getTensor().getDefiningOp()))
        return "one reads the other's result at computed places, so all of it must be there first";

  std::optional<ColumnParts> cut;
  if (!contractions.empty())
    cut = getContractionParts(anchor);
  if (contractions.size() > 1 && llvm::any_of(contractions, getContractionParts))
    return "a contraction in parts shares its kernel with no other one";
  SmallVector<int64_t> anchorDims = cut ? layOutParts(*cut) : layOut();
  llvm::SmallPtrSet<Operation *, 8> prologue;
  if (StringRef why = findPrologue(ops, prologue); !why.empty())
    return why;
  for (Operation *op : ops) {
    if (prologue.contains(op))
      continue;
    SmallVector<int64_t> loops;
    for (int64_t size : cast<linalg::GenericOp>(op).getStaticLoopRanges())
      loops.push_back(size == 1 ? -1 : KernelDomain::unknownDim);
    if (op == anchor)
      loops = anchorDims;
    else if (llvm::is_contained(contractions, op))
      loops = layOutSums(cast<linalg::GenericOp>(op));
    dims[op] = loops;
  }
  const bool hasContraction = !contractions.empty();
  if (blocks && hasContraction && sizes.size() > numRows)
    layOutReductions(ops);
  if (contractions.size() > 1 && sizes.size() > maxContractionDims)
    return "contractions that share a kernel have at most 15 dimensions together";
  if (!assignDims(ops))
    return "what one makes at a point the other reads at another point";
  if (!llvm::all_of(columnOps, [&](linalg::GenericOp op) { return acceptColumns(op); }))
    return "the parts of a column are known only after its last row, or are cut differently";
  if (blocks && hasContraction && !hasRowsOfReductions(ops))
    return "a contraction's rows are not those whose maximum its walk keeps";
  if (!llvm::all_of(dims, [&](const auto &entry) {
        return coversPoints(cast<linalg::GenericOp>(entry.first));
      }))
    return "they compute different points: one's loops are not the other's";
  if (!haveSameFactors())
    return "rows of one contraction's tile would be columns of the other's, or batches";
  if (blocks)
    return layOutBlocks(ops);
  return {};
}

std::optional<KernelDomain> KernelDomain::build(ArrayRef<Operation *> ops, StringRef *why) {
  KernelDomain domain;
  StringRef refusal = domain.assign(ops);
  if (refusal.empty())
    return domain;
  if (why)
    *why = refusal;
  return std::nullopt;
}

//===- GeneralizeTensors.cpp - Tensor ops and scalars become linalg -------===//
//
// Every op that moves elements becomes a `linalg.generic` over the elements of the
// result. If each element comes from one place that the loops name, the maps say so.
// Otherwise the body reads it with `tensor.extract`, at an index that is clamped to the
// range where the element is not chosen. Tensors that only such a body reads are computed
// in it.
//
// A concatenation whose parts kernels make anyway stays: the kernels write it part by
// part. So does a tensor made by a kernel with constants around it.
//
//===----------------------------------------------------------------------===//

#include "passes/kernels/GeneralizeTensors.h"
#include "mlir/Pass/Pass.h"
#include "passes/kernels/Scalars.h"

#include "dialects/Schedule/Schedule.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/IR/Matchers.h"
#include "mlir/Pass/Pass.h"
#include "weir/Kernels/Emitter.h"
#include "weir/Target/ProfileAttr.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/ADT/TypeSwitch.h"

namespace weir {
#define GEN_PASS_DEF_GENERALIZETENSORSPASS
#include "passes/Passes.h.inc"
} // namespace weir

using namespace mlir;
using namespace weir;

namespace {
struct GeneralizeTensors : weir::impl::GeneralizeTensorsPassBase<GeneralizeTensors> {
  using GeneralizeTensorsPassBase::GeneralizeTensorsPassBase;

  void runOnOperation() override;
};

/// Code of one element of a result.
class Element {
public:
  Element(OpBuilder &builder, Location loc, unsigned rank) : b(builder), loc(loc) {
    for (unsigned dim = 0; dim < rank; ++dim)
      indices.push_back(linalg::IndexOp::create(b, loc, dim));
  }

  OpBuilder &b;
  Location loc;
  SmallVector<Value> indices; ///< of the element

  Value constant(int64_t number) { return arith::ConstantIndexOp::create(b, loc, number); }
  Value add(Value value, int64_t number) {
    return number == 0 ? value : arith::AddIOp::create(b, loc, value, constant(number)).getResult();
  }
  /// Compares `value`, as an unsigned number, with `size`: negative values are not below.
  Value isBelow(Value value, int64_t size) {
    return arith::CmpIOp::create(b, loc, arith::CmpIPredicate::ult, value, constant(size));
  }
  Value both(Value lhs, Value rhs) {
    return !lhs ? rhs : arith::AndIOp::create(b, loc, lhs, rhs).getResult();
  }
  Value choose(Value condition, Value ifTrue, Value ifFalse) {
    return condition ? arith::SelectOp::create(b, loc, condition, ifTrue, ifFalse).getResult()
                     : ifTrue;
  }

  /// Reads the element of `source` at `at`. Clamps each index that `mayLeave` marks as
  /// possibly out of range.
  Value read(Value source, ArrayRef<Value> at, ArrayRef<bool> mayLeave) {
    SmallVector<Value> clamped(at);
    for (auto [dim, index] : llvm::enumerate(clamped))
      if (mayLeave[dim]) {
        int64_t size = cast<RankedTensorType>(source.getType()).getDimSize(dim);
        index = arith::MaxSIOp::create(b, loc, index, constant(0));
        index = arith::MinSIOp::create(b, loc, index, constant(size - 1));
      }
    return tensor::ExtractOp::create(b, loc, source, clamped);
  }
};
} // namespace

//===----------------------------------------------------------------------===//
// Tensors
//===----------------------------------------------------------------------===//

static bool isEmpty(Type type) {
  return llvm::is_contained(cast<RankedTensorType>(type).getShape(), 0);
}

/// Adds an op that makes a tensor of `type` with elements from `compute`, which gets the
/// element of `input` at the same indices, or null without `input`.
static Value generate(OpBuilder &builder, Location loc, RankedTensorType type, Value input,
                      function_ref<Value(Element &, Value)> compute) {
  Value empty = tensor::EmptyOp::create(builder, loc, type.getShape(), type.getElementType());
  AffineMap identity = builder.getMultiDimIdentityMap(type.getRank());
  SmallVector<AffineMap> maps(input ? 2 : 1, identity);
  SmallVector<utils::IteratorType> loops(type.getRank(), utils::IteratorType::parallel);
  return linalg::GenericOp::create(
             builder, loc, type, input ? ValueRange(input) : ValueRange(), empty, maps, loops,
             [&](OpBuilder &b, Location loc, ValueRange values) {
               Element element(b, loc, type.getRank());
               Value made = compute(element, input ? values.front() : Value());
               linalg::YieldOp::create(b, loc, made);
             })
      .getResult(0);
}

static Value lower(tensor::ExtractSliceOp op, OpBuilder &builder) {
  RankedTensorType type = op.getType();
  llvm::SmallBitVector dropped = op.getDroppedDims();
  auto offsets = getConstantIntValues(op.getMixedOffsets());
  ArrayRef<int64_t> strides = op.getStaticStrides();
  if (isEmpty(type))
    return tensor::EmptyOp::create(builder, op.getLoc(), type.getShape(), type.getElementType());
  if (!offsets)
    return generate(builder, op.getLoc(), type, {}, [&](Element &element, Value) {
      SmallVector<Value> at;
      unsigned next = 0;
      for (auto [dim, offset] : llvm::enumerate(op.getMixedOffsets())) {
        std::optional<int64_t> begin = getConstantIntValue(offset);
        at.push_back(begin ? element.constant(*begin) : cast<Value>(offset));
        if (dropped.test(dim))
          continue;
        Value moved = element.indices[next++];
        if (strides[dim] != 1)
          moved =
              arith::MulIOp::create(element.b, element.loc, moved, element.constant(strides[dim]));
        at.back() = arith::AddIOp::create(element.b, element.loc, at.back(), moved);
      }
      return element.read(op.getSource(), at, SmallVector<bool>(at.size(), false));
    });
  SmallVector<AffineExpr> read;
  unsigned dim = 0;
  for (unsigned index = 0; index < offsets->size(); ++index) {
    AffineExpr at = builder.getAffineConstantExpr((*offsets)[index]);
    if (!dropped.test(index)) {
      AffineExpr loop = builder.getAffineDimExpr(dim);
      at = at + loop * strides[index];
      // Linalg's verifier takes a plain loop for all of a dimension.
      int64_t size = op.getSourceType().getDimSize(index);
      if (at == loop && type.getDimSize(dim) != size)
        at = loop % size;
      ++dim;
    }
    read.push_back(at);
  }
  Value empty =
      tensor::EmptyOp::create(builder, op.getLoc(), type.getShape(), type.getElementType());
  AffineMap maps[] = {AffineMap::get(type.getRank(), 0, read, builder.getContext()),
                      builder.getMultiDimIdentityMap(type.getRank())};
  SmallVector<utils::IteratorType> loops(type.getRank(), utils::IteratorType::parallel);
  return linalg::GenericOp::create(builder, op.getLoc(), type, op.getSource(), empty, maps, loops,
                                   [](OpBuilder &b, Location loc, ValueRange values) {
                                     linalg::YieldOp::create(b, loc, values.front());
                                   })
      .getResult(0);
}

static bool reduces(linalg::LinalgOp op) { return op.getNumParallelLoops() != op.getNumLoops(); }

/// Whether a reduction's kernel may compute the tensor, which has one reader.
static bool endsReduction(Value value) {
  SmallVector<Value> open = {value};
  while (!open.empty()) {
    Value next = open.pop_back_val();
    Operation *op = next.getDefiningOp();
    auto computed = dyn_cast_or_null<linalg::LinalgOp>(op);
    if (!next.hasOneUse() || (!isReshape(op) && (!computed || getSplat(next))))
      continue;
    if (computed && reduces(computed))
      return true;
    llvm::append_range(open, op->getOperands());
  }
  return false;
}

bool weir::hasOwnKernel(Value value) {
  value = stripReshapes(value);
  auto op = value.getDefiningOp<linalg::LinalgOp>();
  if (!op || getSplat(value))
    return false;
  bool isComputed = !llvm::hasSingleElement(*op.getBlock());
  return reduces(op) || (isComputed && !value.hasOneUse()) ||
         llvm::any_of(op->getOperands(), endsReduction);
}

/// Whether the tensor is a result, or some reader takes elements from anywhere in it: no
/// reader could compute it itself.
static bool isStored(Value value) {
  return llvm::any_of(value.getUses(), [](OpOperand &use) {
    Operation *user = use.getOwner();
    if (isReshape(user))
      return isStored(user->getResult(0));
    auto op = dyn_cast<linalg::LinalgOp>(user);
    return isa<func::ReturnOp>(user) ||
           (op && !(op.getMatchingIndexingMap(&use).isProjectedPermutation() &&
                    (!reduces(op) || op.getNumDpsInputs() == 1)));
  });
}

/// Whether the tensor is computed from a reduction.
static bool followsReduction(Value value) {
  SetVector<Value> open;
  open.insert(value);
  for (size_t next = 0; next < open.size(); ++next) {
    Operation *op = open[next].getDefiningOp();
    auto computed = dyn_cast_or_null<linalg::LinalgOp>(op);
    if (!isReshape(op) && (!computed || getSplat(open[next])))
      continue;
    if (computed && reduces(computed))
      return true;
    open.insert_range(op->getOperands());
  }
  return false;
}

/// Whether the kernel that makes `slice` also writes the elements around it in `whole`.
static bool isPaddedInPlace(Value slice, Value whole) {
  return !isEmpty(slice.getType()) && (hasOwnKernel(slice) || followsReduction(slice)) &&
         isStored(whole);
}

static Value lower(tensor::PadOp op, OpBuilder &builder) {
  SmallVector<int64_t> low = *getConstantIntValues(op.getMixedLowPad());
  RankedTensorType source = op.getSourceType();
  TypedAttr constant;
  if (Value value = op.getConstantPaddingValue(); value &&
                                                  matchPattern(value, m_Constant(&constant)) &&
                                                  isPaddedInPlace(op.getSource(), op.getResult())) {
    auto splat = DenseElementsAttr::get(op.getResultType(), Attribute(constant));
    Value around = arith::ConstantOp::create(builder, op.getLoc(), splat);
    SmallVector<OpFoldResult> strides(low.size(), builder.getIndexAttr(1));
    return tensor::InsertSliceOp::create(
        builder, op.getLoc(), op.getSource(), around, op.getMixedLowPad(),
        getAsIndexOpFoldResult(op.getContext(), source.getShape()), strides);
  }
  return generate(builder, op.getLoc(), op.getResultType(), {}, [&](Element &element, Value) {
    IRMapping mapping;
    for (auto [argument, index] : llvm::zip_equal(op.getRegion().getArguments(), element.indices))
      mapping.map(argument, index);
    for (Operation &inner : op.getRegion().front().without_terminator())
      element.b.clone(inner, mapping);
    Value padding = mapping.lookupOrDefault(op.getRegion().front().getTerminator()->getOperand(0));
    if (isEmpty(source))
      return padding;
    SmallVector<Value> at;
    SmallVector<bool> mayLeave;
    Value inside;
    for (unsigned dim = 0; dim < low.size(); ++dim) {
      int64_t size = source.getDimSize(dim);
      at.push_back(element.add(element.indices[dim], -low[dim]));
      mayLeave.push_back(low[dim] > 0 || op.getResultType().getDimSize(dim) - low[dim] > size);
      if (mayLeave.back())
        inside = element.both(inside, element.isBelow(at.back(), size));
    }
    return element.choose(inside, element.read(op.getSource(), at, mayLeave), padding);
  });
}

/// Concatenates `inputs` along `dim` in one body that chooses among them. Groups them
/// first if there are more than one kernel can read.
static Value concatenate(OpBuilder &builder, Location loc, int64_t dim, ValueRange inputs,
                         const Profile &profile) {
  if (inputs.size() == 1)
    return inputs.front();
  SmallVector<Value> parts(inputs);
  size_t maxParts = std::max<int64_t>(profile.storageBuffersPerStage - 1, 2);
  if (parts.size() > maxParts) {
    size_t groups = llvm::divideCeil(parts.size(), maxParts), next = 0;
    parts.clear();
    for (size_t group = 0; group < groups; ++group) {
      size_t end = inputs.size() * (group + 1) / groups;
      parts.push_back(concatenate(builder, loc, dim, inputs.slice(next, end - next), profile));
      next = end;
    }
    return concatenate(builder, loc, dim, parts, profile);
  }
  RankedTensorType whole = tensor::ConcatOp::inferResultType(dim, inputs.getTypes());
  return generate(builder, loc, whole, {}, [&](Element &element, Value) {
    Value chosen;
    int64_t begin = 0;
    for (Value input : inputs) {
      int64_t size = cast<RankedTensorType>(input.getType()).getDimSize(dim);
      SmallVector<Value> at(element.indices);
      SmallVector<bool> mayLeave(at.size(), false);
      at[dim] = element.add(at[dim], -begin);
      mayLeave[dim] = size < whole.getDimSize(dim);
      Value read = element.read(input, at, mayLeave);
      // At indices below `begin` an earlier input was chosen.
      chosen = chosen ? element.choose(element.isBelow(element.indices[dim], begin), chosen, read)
                      : read;
      begin += size;
    }
    return chosen;
  });
}

/// Inserts the parts one after another. Each one is a kernel that waits for the one
/// before, since both bind the whole. Returns null if there are too many parts or runs.
static Value insertAll(OpBuilder &builder, tensor::ConcatOp op, ArrayRef<Value> parts) {
  constexpr size_t maxParts = 4;
  constexpr int64_t maxRuns = 1 << 14; // checkers follow them one by one
  RankedTensorType type = op.getResultType();
  int64_t dim = op.getDim(), begin = 0, runs = 1;
  for (int64_t size : type.getShape().take_front(dim))
    runs *= size;
  if (parts.size() > maxParts || runs > maxRuns)
    return {};
  Value whole =
      tensor::EmptyOp::create(builder, op.getLoc(), type.getShape(), type.getElementType());
  for (Value part : parts) {
    ArrayRef<int64_t> shape = cast<RankedTensorType>(part.getType()).getShape();
    SmallVector<OpFoldResult> offsets(shape.size(), builder.getIndexAttr(0));
    SmallVector<OpFoldResult> strides(shape.size(), builder.getIndexAttr(1));
    offsets[dim] = builder.getIndexAttr(begin);
    begin += shape[dim];
    whole = tensor::InsertSliceOp::create(builder, op.getLoc(), part, whole, offsets,
                                          getAsIndexOpFoldResult(op.getContext(), shape), strides);
  }
  return whole;
}

/// Returns a concatenation whose operands are made in their places, each by a kernel of its own, or
/// null if they cannot be.
static Value keepApart(tensor::ConcatOp op, OpBuilder &builder, const Profile &profile) {
  SmallVector<Value> inputs =
      llvm::filter_to_vector(op.getInputs(), [](Value input) { return !isEmpty(input.getType()); });
  if (inputs.size() < 2)
    return {};
  auto whole = tensor::ConcatOp::create(builder, op.getLoc(), op.getDim(), inputs);
  if (liesInPlace(whole, profile))
    return whole;
  whole.erase();
  return {};
}

/// Lets kernels write parts that they make anyway in place, if that takes no more kernels
/// than gathering all parts. Neighbours that are only moved are one part.
static Value lower(tensor::ConcatOp op, OpBuilder &builder, const Profile &profile) {
  if (op->hasAttr(schedule::apartAttrName))
    if (Value whole = keepApart(op, builder, profile))
      return whole;
  int64_t dim = op.getDim();
  SmallVector<SmallVector<Value>> runs; // of one input, or of inputs that are moved
  unsigned gathers = 0;
  bool isMoved = false;
  SmallVector<Value> inputs;
  for (Value input : op.getInputs()) {
    if (isEmpty(input.getType()))
      continue;
    inputs.push_back(input);
    bool wasMoved = std::exchange(isMoved, !hasOwnKernel(input));
    gathers += isMoved && !wasMoved;
    if (isMoved && wasMoved)
      runs.back().push_back(input);
    else
      runs.push_back({input});
  }
  if (inputs.empty())
    return tensor::EmptyOp::create(builder, op.getLoc(), op.getResultType().getShape(),
                                   op.getResultType().getElementType());
  if (gathers <= 1 && runs.size() > 1) {
    SmallVector<Value> parts;
    for (const SmallVector<Value> &run : runs)
      parts.push_back(concatenate(builder, op.getLoc(), dim, run, profile));
    auto whole = tensor::ConcatOp::create(builder, op.getLoc(), dim, parts);
    if (liesInPlace(whole, profile))
      return whole;
    whole.erase();
    if (Value slices = insertAll(builder, op, parts))
      return slices;
    for (Value part : parts)
      if (part.use_empty() && !llvm::is_contained(inputs, part))
        part.getDefiningOp()->erase();
  }
  return concatenate(builder, op.getLoc(), dim, inputs, profile);
}

/// Whether the slice covers some but not all elements, and has no single value.
static bool isPart(tensor::InsertSliceOp op) {
  int64_t count = op.getSourceType().getNumElements();
  return count > 0 && count < op.getType().getNumElements() && !getSplat(op.getSource());
}

/// Whether a tensor becomes a result: as it is, reshaped, or with more inserted into it.
static bool becomesResult(Value value) {
  auto later = value.hasOneUse() ? dyn_cast<tensor::InsertSliceOp>(*value.user_begin())
                                 : tensor::InsertSliceOp();
  if (later && later.getDest() == value)
    return isPart(later) && becomesResult(later.getResult());
  return llvm::any_of(value.getUsers(), [](Operation *user) {
    return isa<func::ReturnOp>(user) || (isReshape(user) && becomesResult(user->getResult(0)));
  });
}

/// Whether only the slice has to be written: the rest belongs to a donated argument with
/// no other use and becomes a result. In all other tensors the same kernel has to write
/// the elements around the slice anyway.
static bool insertsInPlace(tensor::InsertSliceOp op) {
  if (!isPart(op) || !becomesResult(op.getResult()))
    return false;
  Value into = op.getDest();
  while (into.hasOneUse() && isReshape(into.getDefiningOp()))
    into = into.getDefiningOp()->getOperand(0);
  if (!into.hasOneUse())
    return false;
  if (auto argument = dyn_cast<BlockArgument>(into))
    return bool(cast<func::FuncOp>(op->getParentOp())
                    .getArgAttr(argument.getArgNumber(), schedule::donateAttrName));
  auto earlier = into.getDefiningOp<tensor::InsertSliceOp>();
  return earlier && insertsInPlace(earlier);
}

static Value lower(tensor::InsertSliceOp op, OpBuilder &builder) {
  RankedTensorType source = op.getSourceType(), type = op.getType();
  if (isEmpty(source))
    return op.getDest();
  bool isPadding = getSplat(op.getDest()) && getConstantIntValues(op.getMixedOffsets());
  if (insertsInPlace(op) || (isPadding && isPaddedInPlace(op.getSource(), op.getResult())))
    return {};
  llvm::SmallBitVector dropped = op.getDroppedDims();
  return generate(builder, op.getLoc(), type, op.getDest(), [&](Element &element, Value before) {
    SmallVector<Value> at;
    SmallVector<bool> mayLeave;
    Value inside;
    for (auto [dim, index] : llvm::enumerate(element.indices)) {
      int64_t size = op.getStaticSizes()[dim], stride = op.getStaticStrides()[dim];
      OpFoldResult offset = op.getMixedOffsets()[dim];
      std::optional<int64_t> begin = getConstantIntValue(offset);
      Value moved;
      if (begin) {
        moved = element.add(index, -*begin);
      } else {
        moved = arith::SubIOp::create(element.b, element.loc, index, cast<Value>(offset));
      }
      bool whole = begin == 0 && stride == 1 && size == type.getDimSize(dim);
      if (!whole)
        inside = element.both(inside, element.isBelow(moved, (size - 1) * stride + 1));
      if (stride != 1) {
        Value step = element.constant(stride);
        Value rest = arith::RemUIOp::create(element.b, element.loc, moved, step);
        inside = element.both(inside, element.isBelow(rest, 1));
        moved = arith::DivUIOp::create(element.b, element.loc, moved, step);
      }
      if (dropped.test(dim))
        continue;
      at.push_back(moved);
      mayLeave.push_back(!whole);
    }
    return element.choose(inside, element.read(op.getSource(), at, mayLeave), before);
  });
}

static Value lower(tensor::InsertOp op, OpBuilder &builder) {
  return generate(
      builder, op.getLoc(), op.getType(), op.getDest(), [&](Element &element, Value before) {
        Value here;
        for (auto [index, wanted] : llvm::zip_equal(element.indices, op.getIndices()))
          here = element.both(here, arith::CmpIOp::create(element.b, element.loc,
                                                          arith::CmpIPredicate::eq, index, wanted));
        return element.choose(here, op.getScalar(), before);
      });
}

static Value lower(tensor::FromElementsOp op, OpBuilder &builder) {
  RankedTensorType type = op.getType();
  if (isEmpty(type))
    return tensor::EmptyOp::create(builder, op.getLoc(), type.getShape(), type.getElementType());
  return generate(builder, op.getLoc(), type, {}, [&](Element &element, Value) {
    Value number = element.constant(0);
    for (auto [size, index] : llvm::zip_equal(type.getShape(), element.indices)) {
      number = arith::MulIOp::create(element.b, element.loc, number, element.constant(size));
      number = arith::AddIOp::create(element.b, element.loc, number, index);
    }
    Value chosen;
    for (auto [place, value] : llvm::enumerate(op.getElements()))
      chosen = chosen ? element.choose(element.isBelow(number, place), chosen, value) : value;
    return chosen;
  });
}

static Value lower(tensor::SplatOp op, OpBuilder &builder) {
  if (!isComputedScalar(op.getInput()))
    return {};
  return generate(builder, op.getLoc(), op.getType(), {},
                  [&](Element &, Value) { return op.getInput(); });
}

static Value lower(linalg::FillOp op, OpBuilder &builder) {
  auto type = cast<RankedTensorType>(op.getOutputs().front().getType());
  Value scalar = op.getInputs().front();
  if (!isComputedScalar(scalar))
    return {};
  return generate(builder, op.getLoc(), type, {}, [&](Element &, Value) { return scalar; });
}

/// Returns a concatenation of slices that are inserted one after another and lie side by
/// side, each over the whole of the other dimensions. Returns null for other slices, and
/// if elements of the destination remain.
static Value joinSlices(tensor::InsertSliceOp last, OpBuilder &builder) {
  RankedTensorType type = last.getType();
  SmallVector<tensor::InsertSliceOp> slices = {last};
  Value before = last.getDest();
  while (auto earlier = before.getDefiningOp<tensor::InsertSliceOp>()) {
    if (!before.hasOneUse())
      break;
    slices.push_back(earlier);
    before = earlier.getDest();
  }
  if (slices.size() < 2)
    return {};
  std::optional<int64_t> along;
  for (tensor::InsertSliceOp slice : slices)
    for (int64_t dim = 0; dim < type.getRank(); ++dim)
      if (slice.getStaticSizes()[dim] != type.getDimSize(dim)) {
        if (along && *along != dim)
          return {};
        along = dim;
      }
  if (!along || llvm::any_of(slices, [&](tensor::InsertSliceOp slice) {
        return ShapedType::isDynamic(slice.getStaticOffsets()[*along]) ||
               slice.getStaticStrides()[*along] != 1 || slice.getStaticSizes()[*along] == 0;
      }))
    return {};
  llvm::sort(slices, [&](tensor::InsertSliceOp a, tensor::InsertSliceOp b) {
    return a.getStaticOffsets()[*along] < b.getStaticOffsets()[*along];
  });

  TypedAttr around = getSplat(before);
  if (before.getDefiningOp<tensor::EmptyOp>())
    around = builder.getZeroAttr(type.getElementType());
  int64_t begin = 0, size = type.getDimSize(*along);
  bool hasGaps = false;
  for (tensor::InsertSliceOp slice : slices) {
    int64_t offset = slice.getStaticOffsets()[*along];
    if (offset < begin)
      return {};
    hasGaps |= offset > begin;
    begin = offset + slice.getStaticSizes()[*along];
  }
  if ((hasGaps || begin < size) && !around)
    return {};

  SmallVector<Value> parts;
  begin = 0;
  auto fillTo = [&](int64_t end) {
    if (end == begin)
      return;
    SmallVector<int64_t> shape(type.getShape());
    shape[*along] = end - begin;
    auto part = RankedTensorType::get(shape, type.getElementType());
    parts.push_back(arith::ConstantOp::create(builder, last.getLoc(),
                                              DenseElementsAttr::get(part, Attribute(around))));
  };
  for (tensor::InsertSliceOp slice : slices) {
    auto part = RankedTensorType::get(slice.getStaticSizes(), type.getElementType());
    fillTo(slice.getStaticOffsets()[*along]);
    parts.push_back(createReshapes(builder, slice.getLoc(), part, slice.getSource()));
    begin = slice.getStaticOffsets()[*along] + part.getDimSize(*along);
  }
  fillTo(size);
  return tensor::ConcatOp::create(builder, last.getLoc(), *along, parts);
}

void GeneralizeTensors::runOnOperation() {
  if (getOperation().isExternal())
    return;
  FailureOr<Profile> profile = getProfile(getOperation()->getParentOfType<ModuleOp>());
  if (failed(profile))
    return signalPassFailure();
  Block &block = getOperation().getBody().front();
  IRRewriter rewriter(&getContext());
  SmallVector<tensor::InsertSliceOp> insertions(block.getOps<tensor::InsertSliceOp>());
  while (!insertions.empty()) { // last first: `joinSlices` looks at those before
    tensor::InsertSliceOp op = insertions.pop_back_val();
    rewriter.setInsertionPoint(op);
    if (op->use_empty())
      rewriter.eraseOp(op);
    else if (!insertsInPlace(op))
      if (Value joined = joinSlices(op, rewriter))
        rewriter.replaceOp(op, joined);
  }
  for (Operation &op : llvm::make_early_inc_range(block)) {
    rewriter.setInsertionPoint(&op);
    Value made =
        llvm::TypeSwitch<Operation *, Value>(&op)
            .Case<tensor::ExtractSliceOp, tensor::PadOp, tensor::InsertSliceOp, tensor::InsertOp,
                  tensor::FromElementsOp, tensor::SplatOp, linalg::FillOp>(
                [&](auto op) { return lower(op, rewriter); })
            .Case([&](tensor::ConcatOp op) { return lower(op, rewriter, *profile); })
            .Default([](Operation *) { return Value(); });
    if (made)
      rewriter.replaceOp(&op, made);
  }
  for (auto op : block.getOps<linalg::GenericOp>())
    repeatScalars(op);
  computeWhereRead(getOperation(), *profile);
  // Only scalars that are offsets of insertions remain between the tensors.
  for (Operation &op : llvm::make_early_inc_range(llvm::reverse(block)))
    if (op.getNumResults() && isOpTriviallyDead(&op))
      op.erase();
}

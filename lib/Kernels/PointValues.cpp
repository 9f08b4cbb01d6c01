//===- PointValues.cpp - Values that bodies compute at points -------------===//

#include "Shapes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/Matchers.h"
#include "llvm/ADT/SetVector.h"

#include <numeric>

using namespace mlir;
using namespace weir;

Value PointEmitter::broadcast(Value value) {
  if (isVector(value))
    return value;
  return vector::BroadcastOp::create(builder(), loc, VectorType::get({lanes}, value.getType()),
                                     value);
}

Value PointEmitter::extract(Value vector, int64_t lane) {
  return vector::ExtractOp::create(builder(), loc, vector, lane);
}

/// Repeats `op` on other operands, all scalars or all vectors.
static Operation *repeat(OpBuilder &builder, Operation *op, ValueRange operands) {
  OperationState state(op->getLoc(), op->getName());
  state.addOperands(operands);
  state.addAttributes(op->getAttrs());
  auto vector = operands.empty() ? nullptr : dyn_cast<VectorType>(operands.front().getType());
  for (Type type : op->getResultTypes())
    state.addTypes(vector ? Type(vector.clone(type)) : type);
  return builder.create(state);
}

void PointEmitter::match(Value &lhs, Value &rhs) {
  if (isVector(lhs) == isVector(rhs))
    return;
  lhs = broadcast(lhs);
  rhs = broadcast(rhs);
}

Value PointEmitter::combine(Operation *operation, Value lhs, Value rhs) {
  match(lhs, rhs);
  return repeat(builder(), operation, {lhs, rhs})->getResult(0);
}

Value PointEmitter::combineLanes(Operation *operation, Value vector) {
  for (int64_t size = cast<VectorType>(vector.getType()).getNumElements() / 2; size > 1;
       size /= 2) {
    auto half = [&](int64_t begin) -> Value {
      auto kept = llvm::to_vector(llvm::seq(begin, begin + size));
      return vector::ShuffleOp::create(builder(), loc, vector, vector, kept);
    };
    Value low = half(0), high = half(size);
    vector = combine(operation, low, high);
  }
  return combine(operation, extract(vector, 0), extract(vector, 1));
}

SmallVector<Value> PointEmitter::inlineBody(linalg::GenericOp op, ArrayRef<AffineExpr> loops,
                                            ArrayRef<Value> wanted, ArrayRef<Value> accumulators) {
  auto place = codeFor(op);
  Block *body = op.getBody();
  llvm::SmallDenseSet<Value> needed(wanted.begin(), wanted.end());
  for (Operation &inner : llvm::reverse(body->without_terminator()))
    if (llvm::any_of(inner.getResults(), [&](Value result) { return needed.contains(result); }))
      needed.insert(inner.operand_begin(), inner.operand_end());

  DenseMap<Value, Value> values;
  for (BlockArgument argument : body->getArguments()) {
    if (!needed.contains(argument))
      continue;
    OpOperand &operand = op->getOpOperand(argument.getArgNumber());
    if (op.isDpsInit(&operand) && !accumulators.empty()) {
      values[argument] = accumulators[argument.getArgNumber() - op.getNumDpsInputs()];
      continue;
    }
    values[argument] = isa<RankedTensorType>(operand.get().getType())
                           ? evaluate(operand.get(), apply(getAccessMap(op, &operand), loops))
                           : operand.get();
  }
  auto get = [&](Value value) {
    Value found = values.lookup(value);
    if (!found)
      found = value; // captured
    // Scalars from outside the body are constants, repeated here.
    TypedAttr attribute;
    Operation *producer = found.getDefiningOp();
    if (producer && kernel->isAncestor(producer) && matchPattern(found, m_Constant(&attribute)))
      found = arith::ConstantOp::create(builder(), loc, attribute);
    return found;
  };
  for (Operation &inner : body->without_terminator()) {
    if (llvm::none_of(inner.getResults(), [&](Value result) { return needed.contains(result); }))
      continue;
    if (auto index = dyn_cast<linalg::IndexOp>(inner)) {
      AffineExpr loop = loops[index.getDim()];
      if (!loop.isFunctionOfDim(laneOfVector)) {
        values[index.getResult()] = expand(loop);
        continue;
      }
      values[index.getResult()] = expandLanes(loop);
      continue;
    }
    if (auto extract = dyn_cast<tensor::ExtractOp>(inner)) {
      SmallVector<Value> at = llvm::map_to_vector(extract.getIndices(), get);
      values[extract.getResult()] = gather(extract, at, loops);
      continue;
    }
    if (!OpTrait::hasElementwiseMappableTraits(&inner) &&
        !inner.hasTrait<OpTrait::ConstantLike>()) {
      isFailed = true;
      inner.emitOpError("has no code inside a kernel");
      return SmallVector<Value>(wanted);
    }
    SmallVector<Value> operands = llvm::map_to_vector(inner.getOperands(), get);
    if (llvm::any_of(operands, [&](Value value) { return isVector(value); }))
      for (Value &operand : operands)
        operand = broadcast(operand);
    Operation *copy = repeat(builder(), &inner, operands);
    for (auto [from, to] : llvm::zip_equal(inner.getResults(), copy->getResults()))
      values[from] = to;
  }
  return llvm::map_to_vector(wanted, get);
}

Value PointEmitter::expandLanes(AffineExpr expression) {
  AffineExpr first = atLane(expression, 0), step = simplify(atLane(expression, 1) - first);
  auto literal = dyn_cast<AffineConstantExpr>(step);
  bool isLinear = profile.hasFreeVectors() && literal;
  for (int64_t lane = 2; isLinear && lane < lanes; ++lane)
    isLinear = simplify(atLane(expression, lane) - first) == step * lane;
  auto type = VectorType::get({lanes}, builder().getIndexType());
  if (isLinear) {
    auto steps = llvm::map_to_vector(
        llvm::seq(lanes), [&](int64_t lane) { return APInt(64, lane * literal.getValue()); });
    Value offsets =
        arith::ConstantOp::create(builder(), loc, DenseIntElementsAttr::get(type, steps));
    return arith::AddIOp::create(builder(), loc, broadcast(expand(first)), offsets);
  }
  SmallVector<Value> elements;
  for (int64_t lane = 0; lane < lanes; ++lane)
    elements.push_back(expand(atLane(expression, lane)));
  return vector::FromElementsOp::create(builder(), loc, type, elements);
}

Value PointEmitter::gather(tensor::ExtractOp op, ArrayRef<Value> computed,
                           ArrayRef<AffineExpr> loops) {
  auto place = codeFor(op);
  Value tensor = op.getTensor();
  auto type = cast<RankedTensorType>(tensor.getType());
  // Loops and constants form one expression; the rest is computed.
  SmallVector<AffineExpr> indices;
  bool isAffine = true;
  for (Value index : op.getIndices()) {
    APInt literal;
    if (auto loop = index.getDefiningOp<linalg::IndexOp>())
      indices.push_back(loops[loop.getDim()]);
    else if (matchPattern(index, m_ConstantInt(&literal)))
      indices.push_back(constant(literal.getSExtValue()));
    else
      indices.push_back(nullptr);
    isAffine &= indices.back() != nullptr;
  }
  if (isAffine)
    return evaluate(tensor, indices);
  TypedAttr any = getSplat(tensor);
  if (tensor.getDefiningOp<tensor::EmptyOp>())
    any = builder().getZeroAttr(type.getElementType());
  if (any)
    return arith::ConstantOp::create(builder(), loc, any);
  std::optional<unsigned> buffer = getBuffer(tensor);
  if (!buffer) {
    fail(op) << "reads at a computed place what this kernel does not get from memory";
    return arith::ConstantOp::create(builder(), loc, builder().getZeroAttr(type.getElementType()));
  }
  survey.buffers[*buffer].read = true;

  SmallVector<int64_t> sizes = getSizes(tensor);
  SmallVector<AffineExpr> known(indices);
  Value rest; // in elements
  int64_t stride = 1, alignment = lanes;
  bool perLane = false;
  for (int64_t dim = type.getRank(); dim-- > 0; stride *= sizes[dim]) {
    if (indices[dim])
      continue;
    known[dim] = constant(0);
    if (sizes[dim] == 1)
      continue;
    alignment = std::gcd(alignment, stride);
    Value scaled = computed[dim];
    perLane |= isVector(scaled);
    if (stride != 1) {
      Value factor = indexConstant(stride);
      match(scaled, factor);
      scaled = arith::MulIOp::create(builder(), loc, scaled, factor);
    }
    if (rest) {
      match(rest, scaled);
      scaled = arith::AddIOp::create(builder(), loc, rest, scaled);
    }
    rest = scaled;
  }
  AffineExpr address = linearize(sizes, known);
  if (!rest)
    return load(*buffer, address);
  auto loadAt = [&](Value place, AffineExpr expression) {
    return loadElement(*buffer, arith::AddIOp::create(builder(), loc, place, expand(expression)));
  };
  if (!perLane && !address.isFunctionOfDim(laneOfVector))
    return loadAt(rest, address);
  if (!perLane && (alignment == lanes || profile.hasFreeVectors()))
    if (std::optional<AffineExpr> place = getVectorAddress(*buffer, address)) {
      Value first = rest;
      if (!profile.hasFreeVectors())
        first = arith::DivUIOp::create(builder(), loc, rest, indexConstant(lanes));
      return loadVector(*buffer, arith::AddIOp::create(builder(), loc, first, expand(*place)));
    }
  SmallVector<Value> elements;
  for (int64_t lane = 0; lane < lanes; ++lane)
    elements.push_back(loadAt(perLane ? extract(rest, lane) : rest, atLane(address, lane)));
  return vector::FromElementsOp::create(
      builder(), loc, VectorType::get({lanes}, elements.front().getType()), elements);
}

Value PointEmitter::computeValue(Value tensor, ArrayRef<AffineExpr> indices) {
  if (Value result = reduced.lookup(tensor))
    return result;
  if (TypedAttr splat = getSplat(tensor))
    return arith::ConstantOp::create(builder(), loc, splat);
  if (std::optional<unsigned> buffer = getBuffer(tensor))
    return load(*buffer, linearize(getSizes(tensor), indices));
  if (tensor.getDefiningOp<tensor::EmptyOp>())
    return arith::ConstantOp::create(builder(), loc, builder().getZeroAttr(getElementType(tensor)));
  auto op = tensor.getDefiningOp<linalg::GenericOp>();
  if (!op || getOpShape(op) != OpShape::Pointwise) {
    fail(kernel) << "reads a value that this kernel does not compute";
    return arith::ConstantOp::create(builder(), loc, builder().getZeroAttr(getElementType(tensor)));
  }
  unsigned result = cast<OpResult>(tensor).getResultNumber();
  AffineMap written = op.getIndexingMapMatchingResult(op->getResult(result));
  SmallVector<AffineExpr> loops(op.getNumLoops(), constant(0));
  for (auto [expression, index] : llvm::zip_equal(written.getResults(), indices))
    if (auto loop = dyn_cast<AffineDimExpr>(expression))
      loops[loop.getPosition()] = index;
  return inlineBody(op, loops, op.getBody()->getTerminator()->getOperand(result)).front();
}

Value PointEmitter::computeOnce(std::pair<Value, AffineMap> key) {
  auto [tensor, indices] = key;
  Operation *op = tensor.getDefiningOp();
  if (!hasFunctions(op) || getOpShape(op) != OpShape::Pointwise)
    return computeValue(tensor, indices.getResults());
  Survey::Computed &computed = survey.values[key];
  computed.passes.insert(pass);
  computed.lanes = indices.isFunctionOfDim(laneOfVector) ? lanes : 1;
  const auto *copy = computedCache.find(key);
  if (copy && copy->isFilled)
    return memref::LoadOp::create(builder(), loc, copy->memory, computedCache.getTrip());
  Value value = computeValue(tensor, indices.getResults());
  if (!copy)
    return value;
  if (isa<VectorType>(cast<MemRefType>(copy->memory.getType()).getElementType()))
    value = broadcast(value);
  memref::StoreOp::create(builder(), loc, value, copy->memory, computedCache.getTrip());
  return value;
}

Value PointEmitter::evaluate(Value tensor, ArrayRef<AffineExpr> indices) {
  auto type = cast<RankedTensorType>(tensor.getType());
  SmallVector<AffineExpr> exact(indices);
  unsigned scope = 0;
  for (auto [size, index] : llvm::zip_equal(type.getShape(), exact)) {
    if (size == 1)
      index = constant(0);
    scope = std::max(scope, getScope(index));
  }
  if (Operation *producer = tensor.getDefiningOp(); producer && afterReduction.contains(producer))
    scope = std::max(scope, reducedDepth);
  if (overwritten.contains(tensor))
    scope = std::max(scope, getGuardedScope());
  // An invocation that skips the guarded code may not have filled its copy.
  if (unsigned guarded = getGuardedScope(); guarded > scope && readsCopy(tensor, exact))
    scope = guarded;
  AffineMap map = AffineMap::get(maxCoordinates, 0, exact, context);
  // The rest of a size has shorter vectors, and may have equal indices.
  std::tuple key = {tensor, map, map.isFunctionOfDim(laneOfVector) ? lanes : 1};
  if (Value value = scopes[scope].values.lookup(key))
    return value;
  unsigned before = current;
  current = scope;
  Value value = computeOnce({tensor, map});
  current = before;
  scopes[scope].values[key] = value;
  return value;
}

SmallVector<Value> PointEmitter::evaluateReduced(linalg::GenericOp op, ArrayRef<Combiner> combiners,
                                                 ArrayRef<AffineExpr> loops) {
  return inlineBody(op, loops,
                    llvm::map_to_vector(combiners, [](const Combiner &c) { return c.reduced; }));
}

SmallVector<Value> PointEmitter::evaluateStep(linalg::GenericOp op, ArrayRef<AffineExpr> loops,
                                              ArrayRef<Value> accumulators) {
  return inlineBody(op, loops, SmallVector<Value>(op.getBody()->getTerminator()->getOperands()),
                    accumulators);
}

bool PointEmitter::allReads(Value tensor, ArrayRef<AffineExpr> indices,
                            function_ref<bool(Value read, AffineMap at)> holds) const {
  // Visits a point that several ops read once: the number of paths to it may be exponential.
  llvm::SetVector<std::pair<Value, AffineMap>> reads;
  auto add = [&](Value read, ArrayRef<AffineExpr> at) {
    reads.insert({read, AffineMap::get(maxCoordinates, 0, at, context)});
  };
  add(tensor, indices);
  for (size_t next = 0; next < reads.size(); ++next) {
    auto [read, at] = reads[next];
    if (!holds(read, at))
      return false;
    auto op = read.getDefiningOp<linalg::GenericOp>();
    if (!op || getSplat(read) || getOpShape(op) != OpShape::Pointwise)
      continue;
    AffineMap written = op.getIndexingMapMatchingResult(cast<OpResult>(read));
    SmallVector<AffineExpr> loops(op.getNumLoops(), constant(0));
    for (auto [expression, index] : llvm::zip_equal(written.getResults(), at.getResults()))
      if (auto loop = dyn_cast<AffineDimExpr>(expression))
        loops[loop.getPosition()] = index;
    for (OpOperand *operand : op.getDpsInputOperands())
      if (isa<RankedTensorType>(operand->get().getType()))
        add(operand->get(), apply(getAccessMap(op, operand), loops));
  }
  return true;
}

bool PointEmitter::isVectorFriendly(Value tensor, ArrayRef<AffineExpr> indices) {
  return allReads(tensor, indices, [&](Value read, AffineMap at) {
    std::optional<unsigned> buffer = getBuffer(read);
    if (!buffer)
      return true;
    AffineExpr address = linearize(getSizes(read), at.getResults());
    return !address.isFunctionOfDim(laneOfVector) || getVectorAddress(*buffer, address).has_value();
  });
}

bool PointEmitter::readsCopy(Value tensor, ArrayRef<AffineExpr> indices) const {
  return !allReads(tensor, indices, [&](Value read, AffineMap at) {
    if (std::optional<unsigned> buffer = getBuffer(read)) {
      const auto *copy = cache.find({*buffer, linearize(getSizes(read), at.getResults())});
      return !copy || !copy->isFilled;
    }
    const auto *copy = computedCache.find({read, at});
    return !copy || !copy->isFilled;
  });
}

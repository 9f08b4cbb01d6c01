//===- PointEmitter.cpp - Values of tensors at points ---------------------===//
//
// Every address is one affine expression of coordinates, simplified, so that
// walking a tensor in order costs no division, and two loads of the same
// address are known to be the same.
//
//===----------------------------------------------------------------------===//

#include "Shapes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Arith/Utils/Utils.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/AffineExpr.h"
#include "mlir/IR/Matchers.h"

#include <numeric>

using namespace mlir;
using namespace weir;

static constexpr unsigned maxCoordinates = 40;
static constexpr unsigned firstPlace = 24; ///< coordinates of insertions from here on

Type weir::getStorageType(Type element) {
  return element.isInteger(1) ? IntegerType::get(element.getContext(), 8) : element;
}

PointEmitter::PointEmitter(schedule::KernelOp kernel, const KernelDomain &domain,
                           const Profile &profile, Survey &survey, const Survey *known)
    : profile(profile), domain(domain),
      lanes(domain.getShape() == KernelShape::Contraction ? 2 : 4), kernel(kernel),
      context(kernel.getContext()), loc(kernel.getLoc()), survey(survey), known(known),
      coordinates(maxCoordinates) {
  survey.buffers.resize(kernel.getInputs().size() + kernel.getNumResults());
  computed = llvm::map_to_vector(kernel.getBody().front().getTerminator()->getOperands(),
                                 [](Value value) { return getInserted(value); });
  // One invocation writes what there is one of for the kernel, or for a row.
  int64_t rows = domain.getShape() == KernelShape::Row ? getProduct(domain.getRowSizes()) : 1;
  auto isOfOne = [&](Value tensor) {
    int64_t count = cast<RankedTensorType>(tensor.getType()).getNumElements();
    return count == 1 || count == rows;
  };
  for (BlockArgument input : kernel.getBody().getArguments())
    if (isOfOne(input) && llvm::any_of(kernel.getResults(), [&](Value result) {
          return isOfOne(result) && getElementType(result) == getElementType(input) &&
                 cast<RankedTensorType>(result.getType()).getNumElements() ==
                     cast<RankedTensorType>(input.getType()).getNumElements();
        }))
      overwritten.insert(input);
  for (Operation &op : kernel.getBody().front()) {
    if (getOpShape(&op) == OpShape::Pointwise &&
        op.walk([&](Operation *inner) {
            return llvm::any_of(inner->getOperands(),
                                [&](Value v) { return overwritten.contains(v); })
                       ? WalkResult::interrupt()
                       : WalkResult::advance();
          }).wasInterrupted())
      overwritten.insert(op.result_begin(), op.result_end());
    OpShape shape = getOpShape(&op);
    bool after = shape == OpShape::Reduction || shape == OpShape::Contraction;
    for (Value operand : op.getOperands())
      if (Operation *producer = operand.getDefiningOp())
        after |= afterReduction.contains(producer);
    if (after)
      afterReduction.insert(&op);
  }
}

//===----------------------------------------------------------------------===//
// Scopes
//===----------------------------------------------------------------------===//

void PointEmitter::pushScope(OpBuilder builder) {
  scopes.emplace_back(builder);
  current = scopes.size() - 1;
}

void PointEmitter::popScope() {
  scopes.pop_back();
  current = scopes.empty() ? 0 : scopes.size() - 1;
}

void PointEmitter::placeScopes(Operation *op, bool after) {
  for (Scope &scope : scopes) {
    if (scope.builder.getInsertionBlock() != op->getBlock())
      continue;
    if (after)
      scope.builder.setInsertionPointAfter(op);
    else
      scope.builder.setInsertionPoint(op);
  }
}

AffineExpr PointEmitter::setCoordinate(unsigned number, Value value) {
  coordinates[number] = {value, depth()};
  return dim(number);
}

SmallVector<Value> PointEmitter::loop(int64_t trips, ValueRange carried, LoopBody body) {
  SmallVector<Value> values(carried);
  // Repetitions [begin, begin + count), in one loop.
  auto simple = [&](Value begin, int64_t count, ValueRange init, const LoopBody &run) {
    OpBuilder &outer = builder();
    auto op = scf::ForOp::create(outer, loc, indexConstant(0), indexConstant(count),
                                 indexConstant(1), init);
    OpBuilder inner = OpBuilder::atBlockBegin(op.getBody());
    placeScopes(op, /*after=*/false);
    Value number = op.getInductionVar();
    pushScope(inner);
    if (begin)
      number = arith::AddIOp::create(builder(), loc, begin, number);
    SmallVector<Value> yielded = run(number, op.getRegionIterArgs());
    if (init.empty())
      op.getBody()->getTerminator()->erase();
    builder().setInsertionPointToEnd(op.getBody());
    scf::YieldOp::create(builder(), loc, yielded);
    popScope();
    placeScopes(op, /*after=*/true);
    return SmallVector<Value>(op.getResults());
  };

  // Repetitions [begin, begin + count): blocks of a power of what one loop may
  // run, then the rest.
  int64_t most = profile.maxLoopTrips;
  std::function<SmallVector<Value>(Value, int64_t, SmallVector<Value>)> nest =
      [&](Value begin, int64_t count, SmallVector<Value> values) {
        if (count <= most)
          return simple(begin, count, values, body);
        int64_t block = most;
        while (count / block > most)
          block *= most;
        auto at = [&](Value number, int64_t scale) -> Value {
          Value offset = arith::MulIOp::create(builder(), loc, number, indexConstant(scale));
          return begin ? arith::AddIOp::create(builder(), loc, begin, offset) : offset;
        };
        values = simple(nullptr, count / block, values, [&](Value number, ValueRange init) {
          return nest(at(number, block), block, SmallVector<Value>(init));
        });
        if (int64_t rest = count % block)
          values = nest(at(indexConstant(count / block), block), rest, values);
        return values;
      };
  if (trips == 0)
    return values;
  if (trips == 1) {
    pushScope(builder());
    values = body(indexConstant(0), values);
    popScope();
    return values;
  }
  if (most < 2) {
    kernel.emitError() << "needs a loop; target " << profile.name << " runs loops of one trip";
    failed = true;
    return values;
  }
  return nest(nullptr, trips, values);
}

SmallVector<Value> PointEmitter::guard(Value condition, ValueRange otherwise,
                                       std::function<SmallVector<Value>()> body) {
  OpBuilder &outer = builder();
  auto op = scf::IfOp::create(outer, loc, otherwise.getTypes(), condition,
                              /*withElseRegion=*/!otherwise.empty());
  auto terminate = [&](Block &block, ValueRange values) {
    if (!block.empty() && block.back().hasTrait<OpTrait::IsTerminator>())
      block.back().erase();
    OpBuilder end = OpBuilder::atBlockEnd(&block);
    scf::YieldOp::create(end, loc, values);
  };
  placeScopes(op, /*after=*/false);
  pushScope(OpBuilder::atBlockBegin(op.thenBlock()));
  scopes.back().guarded = true;
  SmallVector<Value> values = body();
  popScope();
  terminate(*op.thenBlock(), values);
  if (!otherwise.empty())
    terminate(*op.elseBlock(), otherwise);
  placeScopes(op, /*after=*/true);
  return SmallVector<Value>(op.getResults());
}

unsigned PointEmitter::getScope(AffineExpr expression) const {
  unsigned scope = 0;
  expression.walk([&](AffineExpr part) {
    if (auto dim = dyn_cast<AffineDimExpr>(part))
      scope = std::max(scope, coordinates[dim.getPosition()].scope);
  });
  return scope;
}

/// The innermost scope in which not all invocations are, or else the first.
unsigned PointEmitter::getGuardedScope() const {
  for (unsigned scope = scopes.size(); scope-- > 0;)
    if (scopes[scope].guarded)
      return scope;
  return 0;
}

//===----------------------------------------------------------------------===//
// Indices
//===----------------------------------------------------------------------===//

AffineExpr PointEmitter::simplify(AffineExpr expression) const {
  return simplifyAffineExpr(expression, maxCoordinates, 0);
}

AffineExpr PointEmitter::atLane(AffineExpr expression, int64_t lane) const {
  return simplify(expression.replace(vectorLane(), constant(lane)));
}

SmallVector<AffineExpr> PointEmitter::apply(AffineMap map, ArrayRef<AffineExpr> loops) const {
  SmallVector<AffineExpr> indices;
  for (AffineExpr result : map.getResults())
    indices.push_back(simplify(result.replaceDims(loops)));
  return indices;
}

SmallVector<AffineExpr> PointEmitter::getLoops(Operation *op, ArrayRef<AffineExpr> point) const {
  SmallVector<AffineExpr> loops;
  for (int64_t dim : domain.getDims(op))
    loops.push_back(dim < 0 ? constant(0) : point[dim]);
  return loops;
}

SmallVector<AffineExpr> PointEmitter::delinearize(AffineExpr number,
                                                  ArrayRef<int64_t> sizes) const {
  SmallVector<AffineExpr> digits(sizes.size());
  for (size_t i = sizes.size(); i-- > 0;) {
    if (i == 0) {
      digits[i] = number;
      break;
    }
    // A dimension of size 0 makes the space empty; its code never runs.
    int64_t size = std::max<int64_t>(sizes[i], 1);
    digits[i] = simplify(number % size);
    number = simplify(number.floorDiv(size));
  }
  return digits;
}

AffineExpr PointEmitter::linearize(Value tensor, ArrayRef<AffineExpr> indices) const {
  auto type = cast<RankedTensorType>(tensor.getType());
  AffineExpr address = constant(0);
  for (auto [size, index] : llvm::zip_equal(type.getShape(), indices))
    address = address * size + (size == 1 ? constant(0) : index);
  return simplify(address);
}

Value PointEmitter::indexConstant(int64_t value) {
  return arith::ConstantIndexOp::create(builder(), loc, value);
}

Value PointEmitter::expand(AffineExpr expression) {
  unsigned scope = getScope(expression);
  auto [entry, isNew] = scopes[scope].expressions.try_emplace(expression);
  if (!isNew)
    return entry->second;
  Value value;
  if (auto literal = dyn_cast<AffineConstantExpr>(expression)) {
    value = arith::ConstantIndexOp::create(scopes[scope].builder, loc, literal.getValue());
  } else if (auto dim = dyn_cast<AffineDimExpr>(expression)) {
    value = coordinates[dim.getPosition()].value;
    assert(value && "a coordinate is used outside its scope");
  } else {
    auto binary = cast<AffineBinaryOpExpr>(expression);
    Value lhs = expand(binary.getLHS()), rhs = expand(binary.getRHS());
    OpBuilder &b = scopes[scope].builder;
    switch (expression.getKind()) {
    case AffineExprKind::Add:
      value = arith::AddIOp::create(b, loc, lhs, rhs);
      break;
    case AffineExprKind::Mul:
      value = arith::MulIOp::create(b, loc, lhs, rhs);
      break;
    case AffineExprKind::FloorDiv:
      value = arith::DivUIOp::create(b, loc, lhs, rhs);
      break;
    case AffineExprKind::Mod:
      value = arith::RemUIOp::create(b, loc, lhs, rhs);
      break;
    default:
      kernel.emitError("has an access map with ceildiv, which no kernel computes");
      failed = true;
      value = lhs;
    }
  }
  // The recursion may have moved the table's entries.
  scopes[scope].expressions[expression] = value;
  return value;
}

//===----------------------------------------------------------------------===//
// Buffers
//===----------------------------------------------------------------------===//

Type PointEmitter::getElementType(Value tensor) const {
  return cast<RankedTensorType>(tensor.getType()).getElementType();
}

static Value getTensor(schedule::KernelOp kernel, unsigned buffer) {
  unsigned inputs = kernel.getInputs().size();
  return buffer < inputs ? kernel.getInputs()[buffer] : kernel.getResult(buffer - inputs);
}

MemRefType PointEmitter::getBufferType(unsigned buffer) const {
  auto type = cast<RankedTensorType>(getTensor(kernel, buffer).getType());
  Type element = getStorageType(type.getElementType());
  int64_t count = type.getNumElements();
  bool canHold = profile.vectorWidth > 1 && count % lanes == 0 && element.isIntOrFloat() &&
                 element.getIntOrFloatBitWidth() >= 32;
  if (canHold && known)
    canHold = known->buffers[buffer].vectorAccess && !known->buffers[buffer].scalarStore;
  if (canHold) {
    element = VectorType::get({lanes}, element);
    count /= lanes;
  }
  auto space = gpu::AddressSpaceAttr::get(context, gpu::AddressSpace::Global);
  return MemRefType::get({count}, element, MemRefLayoutAttrInterface{}, space);
}

std::optional<unsigned> PointEmitter::getBuffer(Value tensor) const {
  auto argument = dyn_cast<BlockArgument>(tensor);
  if (!argument || argument.getOwner()->getParentOp() != kernel)
    return std::nullopt;
  return argument.getArgNumber();
}

std::optional<AffineExpr> PointEmitter::getVectorAddress(unsigned buffer,
                                                         AffineExpr address) const {
  if (!isa<VectorType>(getBufferType(buffer).getElementType()))
    return std::nullopt;
  AffineExpr first = atLane(address, 0);
  for (int64_t lane = 1; lane < lanes; ++lane)
    if (simplify(atLane(address, lane) - first) != constant(lane))
      return std::nullopt;
  if (!first.isMultipleOf(lanes))
    return std::nullopt;
  return simplify(first.floorDiv(lanes));
}

Value PointEmitter::loadElement(unsigned buffer, Value address) {
  Value value;
  if (isa<VectorType>(getBufferType(buffer).getElementType())) {
    Value count = indexConstant(lanes);
    Value number = arith::DivUIOp::create(builder(), loc, address, count);
    Value vector = memref::LoadOp::create(builder(), loc, buffers[buffer], number);
    Value lane = arith::RemUIOp::create(builder(), loc, address, count);
    value = vector::ExtractOp::create(builder(), loc, vector, lane);
  } else {
    value = memref::LoadOp::create(builder(), loc, buffers[buffer], address);
  }
  return fromStorage(buffer, value);
}

/// What is stored as another type.
Value PointEmitter::fromStorage(unsigned buffer, Value value) {
  if (!getElementType(getTensor(kernel, buffer)).isInteger(1))
    return value;
  Value zero = arith::ConstantIntOp::create(builder(), loc, value.getType(), 0);
  return arith::CmpIOp::create(builder(), loc, arith::CmpIPredicate::ne, value, zero);
}

Value PointEmitter::loadScalar(unsigned buffer, AffineExpr address) {
  MemRefType type = getBufferType(buffer);
  if (isa<VectorType>(type.getElementType())) {
    Value vector = memref::LoadOp::create(builder(), loc, buffers[buffer],
                                          expand(simplify(address.floorDiv(lanes))));
    AffineExpr lane = simplify(address % lanes);
    if (auto literal = dyn_cast<AffineConstantExpr>(lane))
      return extract(vector, literal.getValue());
    return vector::ExtractOp::create(builder(), loc, vector, expand(lane));
  }
  return fromStorage(buffer,
                     memref::LoadOp::create(builder(), loc, buffers[buffer], expand(address)));
}

Value PointEmitter::loadUncached(unsigned buffer, AffineExpr address) {
  survey.buffers[buffer].read = true;
  if (!address.isFunctionOfDim(laneOfVector))
    return loadScalar(buffer, address);
  if (std::optional<AffineExpr> number = getVectorAddress(buffer, address)) {
    survey.buffers[buffer].vectorAccess = true;
    return memref::LoadOp::create(builder(), loc, buffers[buffer], expand(*number));
  }
  SmallVector<Value> elements;
  for (int64_t lane = 0; lane < lanes; ++lane)
    elements.push_back(loadScalar(buffer, atLane(address, lane)));
  return vector::FromElementsOp::create(
      builder(), loc, VectorType::get({lanes}, elements.front().getType()), elements);
}

Value PointEmitter::load(unsigned buffer, AffineExpr address) {
  survey.loads[{buffer, address}].insert(pass);
  auto cache = caches.find({buffer, address});
  if (cache == caches.end())
    return loadUncached(buffer, address);
  if (cache->second.filled)
    return memref::LoadOp::create(builder(), loc, cache->second.memory, trip);
  Value value = loadUncached(buffer, address);
  memref::StoreOp::create(builder(), loc, value, cache->second.memory, trip);
  return value;
}

void PointEmitter::fillCache(unsigned buffer, AffineExpr address) {
  Value value = loadUncached(buffer, address);
  memref::StoreOp::create(builder(), loc, value, caches[{buffer, address}].memory, trip);
}

Value PointEmitter::computeScalar(Value scalar) {
  Operation *op = scalar.getDefiningOp();
  SmallVector<Value> operands;
  for (Value operand : op->getOperands())
    operands.push_back(isa<RankedTensorType>(operand.getType()) ? operand : computeScalar(operand));
  auto read = dyn_cast<tensor::ExtractOp>(op);
  if (!read) {
    IRMapping mapping;
    mapping.map(op->getOperands(), operands);
    return builder().clone(*op, mapping)->getResult(cast<OpResult>(scalar).getResultNumber());
  }
  if (TypedAttr any = getSplat(read.getTensor()))
    return arith::ConstantOp::create(builder(), loc, any);
  unsigned buffer = *getBuffer(read.getTensor());
  survey.buffers[buffer].read = true;
  Value address = indexConstant(0);
  for (auto [size, index] :
       llvm::zip_equal(cast<RankedTensorType>(read.getTensor().getType()).getShape(),
                       ArrayRef(operands).drop_front())) {
    address = arith::MulIOp::create(builder(), loc, address, indexConstant(size));
    address = arith::AddIOp::create(builder(), loc, address, index);
  }
  return loadElement(buffer, address);
}

void PointEmitter::placeInsertions() {
  for (Value value : kernel.getBody().front().getTerminator()->getOperands())
    if (auto insertion = value.getDefiningOp<tensor::InsertSliceOp>())
      for (Value offset : insertion.getOffsets())
        if (!places.contains(offset)) {
          unsigned number = firstPlace + places.size();
          if (number == maxCoordinates) {
            insertion.emitOpError("is one of too many insertions at computed places in one kernel");
            failed = true;
            return;
          }
          setCoordinate(number, computeScalar(offset));
          places[offset] = number;
        }
}

SmallVector<AffineExpr> PointEmitter::reshape(ArrayRef<AffineExpr> indices, ArrayRef<int64_t> from,
                                              ArrayRef<int64_t> to) const {
  SmallVector<AffineExpr> reshaped;
  for (size_t begin = 0; reshaped.size() < to.size();) {
    // The fewest dimensions of either that have as many elements as those of the other.
    size_t end = begin, last = reshaped.size() + 1;
    AffineExpr number = constant(0);
    int64_t count = 1, wanted = to[last - 1];
    while (count != wanted)
      if (count < wanted) {
        number = number * from[end] + (from[end] == 1 ? constant(0) : indices[end]);
        count *= from[end++];
      } else {
        wanted *= to[last++];
      }
    llvm::append_range(
        reshaped, delinearize(simplify(number), to.slice(reshaped.size(), last - reshaped.size())));
    begin = end;
  }
  return reshaped;
}

AffineExpr PointEmitter::getAddress(unsigned result, ArrayRef<AffineExpr> indices) {
  Value value = kernel.getBody().front().getTerminator()->getOperand(result);
  auto insertion = value.getDefiningOp<tensor::InsertSliceOp>();
  if (!insertion)
    return linearize(kernel.getResult(result), indices);
  SmallVector<AffineExpr> inSlice =
      reshape(indices, cast<RankedTensorType>(computed[result].getType()).getShape(),
              insertion.getStaticSizes());
  SmallVector<AffineExpr> at;
  for (auto [offset, stride, index] :
       llvm::zip_equal(insertion.getMixedOffsets(), insertion.getStaticStrides(), inSlice)) {
    std::optional<int64_t> literal = getConstantIntValue(offset);
    AffineExpr begin = literal ? constant(*literal) : dim(places.find(cast<Value>(offset))->second);
    at.push_back(begin + index * stride);
  }
  return linearize(kernel.getResult(result), at);
}

bool PointEmitter::isVectorStore(unsigned result, ArrayRef<AffineExpr> indices) {
  AffineExpr address = getAddress(result, indices);
  return getVectorAddress(kernel.getInputs().size() + result, address).has_value();
}

void PointEmitter::storeAt(unsigned result, Value value, AffineExpr address) {
  Value written = kernel.getBody().front().getTerminator()->getOperand(result);
  auto place = codeFor(written.getDefiningOp());
  unsigned buffer = kernel.getInputs().size() + result;
  bool vector = address.isFunctionOfDim(laneOfVector);
  if (vector)
    value = broadcast(value);
  Type element = getElementTypeOrSelf(value.getType());
  if (element.isInteger(1)) {
    Type stored = getStorageType(element);
    if (isVector(value))
      stored = VectorType::get({lanes}, stored);
    value = arith::ExtUIOp::create(builder(), loc, stored, value);
  }
  if (!vector) {
    survey.buffers[buffer].scalarStore = true;
    if (!isa<VectorType>(getBufferType(buffer).getElementType()))
      memref::StoreOp::create(builder(), loc, value, buffers[buffer], expand(address));
    return;
  }
  if (std::optional<AffineExpr> number = getVectorAddress(buffer, address)) {
    survey.buffers[buffer].vectorAccess = true;
    memref::StoreOp::create(builder(), loc, value, buffers[buffer], expand(*number));
    return;
  }
  survey.buffers[buffer].scalarStore = true;
  if (isa<VectorType>(getBufferType(buffer).getElementType()))
    return; // only in the survey
  for (int64_t lane = 0; lane < lanes; ++lane)
    memref::StoreOp::create(builder(), loc, extract(value, lane), buffers[buffer],
                            expand(atLane(address, lane)));
}

//===----------------------------------------------------------------------===//
// Values
//===----------------------------------------------------------------------===//

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
      SmallVector<Value> elements;
      for (int64_t lane = 0; lane < lanes; ++lane)
        elements.push_back(expand(atLane(loop, lane)));
      values[index.getResult()] = vector::FromElementsOp::create(
          builder(), loc, VectorType::get({lanes}, builder().getIndexType()), elements);
      continue;
    }
    if (auto extract = dyn_cast<tensor::ExtractOp>(inner)) {
      SmallVector<Value> at = llvm::map_to_vector(extract.getIndices(), get);
      values[extract.getResult()] = gather(extract, at, loops);
      continue;
    }
    if (!OpTrait::hasElementwiseMappableTraits(&inner) &&
        !inner.hasTrait<OpTrait::ConstantLike>()) {
      inner.emitOpError("has no code inside a kernel");
      failed = true;
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

Value PointEmitter::gather(tensor::ExtractOp op, ArrayRef<Value> computed,
                           ArrayRef<AffineExpr> loops) {
  auto place = codeFor(op);
  Value tensor = op.getTensor();
  auto type = cast<RankedTensorType>(tensor.getType());
  // What loops and constants name is one expression; the rest is computed.
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
    op.emitError("reads at a computed place what this kernel does not get from memory");
    failed = true;
    return arith::ConstantOp::create(builder(), loc, builder().getZeroAttr(type.getElementType()));
  }
  survey.buffers[*buffer].read = true;

  SmallVector<AffineExpr> known(indices);
  Value rest; // in elements
  int64_t stride = 1, alignment = lanes;
  bool perLane = false;
  for (int64_t dim = type.getRank(); dim-- > 0; stride *= type.getDimSize(dim)) {
    if (indices[dim])
      continue;
    known[dim] = constant(0);
    if (type.getDimSize(dim) == 1)
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
  AffineExpr address = linearize(tensor, known);
  if (!rest)
    return load(*buffer, address);
  auto loadAt = [&](Value place, AffineExpr expression) {
    return loadElement(*buffer, arith::AddIOp::create(builder(), loc, place, expand(expression)));
  };
  if (!perLane && !address.isFunctionOfDim(laneOfVector))
    return loadAt(rest, address);
  if (!perLane && alignment == lanes)
    if (std::optional<AffineExpr> number = getVectorAddress(*buffer, address)) {
      survey.buffers[*buffer].vectorAccess = true;
      Value first = arith::DivUIOp::create(builder(), loc, rest, indexConstant(lanes));
      first = arith::AddIOp::create(builder(), loc, first, expand(*number));
      return memref::LoadOp::create(builder(), loc, buffers[*buffer], first);
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
    return load(*buffer, linearize(tensor, indices));
  if (tensor.getDefiningOp<tensor::EmptyOp>())
    return arith::ConstantOp::create(builder(), loc, builder().getZeroAttr(getElementType(tensor)));
  auto op = tensor.getDefiningOp<linalg::GenericOp>();
  if (!op || getOpShape(op) != OpShape::Pointwise) {
    kernel.emitError("reads a value that this kernel does not compute");
    failed = true;
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
  std::pair<Value, AffineMap> key = {tensor, AffineMap::get(maxCoordinates, 0, exact, context)};
  if (Value value = scopes[scope].values.lookup(key))
    return value;
  unsigned before = current;
  current = scope;
  Value value = computeValue(tensor, exact);
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

bool PointEmitter::isVectorFriendly(Value tensor, ArrayRef<AffineExpr> indices) {
  // Visits a point that several ops read once: the number of paths to it may be exponential.
  llvm::SetVector<std::pair<Value, AffineMap>> reads;
  auto add = [&](Value read, ArrayRef<AffineExpr> at) {
    reads.insert({read, AffineMap::get(maxCoordinates, 0, at, context)});
  };
  add(tensor, indices);
  for (size_t next = 0; next < reads.size(); ++next) {
    auto [read, at] = reads[next];
    if (std::optional<unsigned> buffer = getBuffer(read)) {
      AffineExpr address = linearize(read, at.getResults());
      if (address.isFunctionOfDim(laneOfVector) && !getVectorAddress(*buffer, address))
        return false;
      continue;
    }
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

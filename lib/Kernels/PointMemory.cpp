//===- PointMemory.cpp - Loads and stores at points -----------------------===//
//
// Two loads of one address are one load: addresses are simplified expressions, and a
// value goes to the outermost scope that knows its coordinates.
//
//===----------------------------------------------------------------------===//

#include "Shapes.h"

#include "dialects/Schedule/Schedule.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/NVGPU/IR/NVGPUDialect.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;
using namespace weir;

Type weir::getStorageType(Type element) {
  return element.isInteger(1) ? IntegerType::get(element.getContext(), 8) : element;
}

Type PointEmitter::getElementType(Value tensor) const {
  return cast<RankedTensorType>(tensor.getType()).getElementType();
}

static ArrayRef<int64_t> getShape(Value tensor) {
  return cast<RankedTensorType>(tensor.getType()).getShape();
}

Value PointEmitter::getTensor(unsigned buffer) const {
  schedule::KernelOp op = kernel; // which has no const methods
  unsigned inputs = op.getInputs().size();
  return buffer < inputs ? op.getInputs()[buffer] : op.getResult(buffer - inputs);
}

MemRefType PointEmitter::getBufferType(unsigned buffer) const {
  auto type = cast<RankedTensorType>(getTensor(buffer).getType());
  Type element = getStorageType(type.getElementType());
  int64_t count = type.getNumElements();
  bool canHold = !profile.hasFreeVectors() && profile.vectorWidth > 1 && count % lanes == 0 &&
                 element.isIntOrFloat() &&
                 element.getIntOrFloatBitWidth() >= (profile.hasShortVectors() ? 16 : 32);
  if (canHold && known)
    canHold = known->buffers[buffer].vectorAccess && !known->buffers[buffer].scalarAccess;
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
  if (!profile.hasFreeVectors() && !isa<VectorType>(getBufferType(buffer).getElementType()))
    return std::nullopt;
  AffineExpr first = atLane(address, 0);
  for (int64_t lane = 1; lane < lanes; ++lane)
    if (simplify(atLane(address, lane) - first) != constant(lane))
      return std::nullopt;
  if (profile.hasFreeVectors())
    return first;
  if (!first.isMultipleOf(lanes))
    return std::nullopt;
  return simplify(first.floorDiv(lanes));
}

Value PointEmitter::loadVector(unsigned buffer, Value place) {
  survey.buffers[buffer].vectorAccess = true;
  if (!profile.hasFreeVectors())
    return memref::LoadOp::create(builder(), loc, buffers[buffer], place);
  auto type = VectorType::get({lanes}, getBufferType(buffer).getElementType());
  return fromStorage(buffer, vector::LoadOp::create(builder(), loc, type, buffers[buffer], place));
}

bool PointEmitter::isStreamed(unsigned result, VectorType type, AffineExpr first) const {
  KernelShape shape = domain.getShape();
  auto whole = cast<RankedTensorType>(computed[result].getType());
  int64_t elementBytes = type.getElementTypeBitWidth() / 8;
  bool readsBack = known && known->buffers[kernel->getNumOperands() + result].read;
  if (stage || readsBack || profile.streamedBytes == 0 ||
      whole.getNumElements() * elementBytes < profile.streamedBytes ||
      (shape != KernelShape::Map && shape != KernelShape::Row) || !first.isMultipleOf(lanes))
    return false;
  if (lanes * elementBytes % profile.offsetAlignment == 0)
    return true;
  unsigned walked = first.isFunctionOfDim(tripCoordinate) ? tripCoordinate : unitCoordinate;
  AffineExpr next = first.replace(dim(walked), dim(walked) + 1);
  return simplify(next - first) == constant(lanes);
}

void PointEmitter::storeVector(Value memory, unsigned result, Value vector, AffineExpr place) {
  unsigned buffer = kernel.getInputs().size() + result;
  survey.buffers[buffer].vectorAccess = true;
  if (!profile.hasFreeVectors()) {
    memref::StoreOp::create(builder(), loc, vector, memory, expand(place));
    return;
  }
  auto type = cast<VectorType>(vector.getType());
  bool streams = isStreamed(result, type, place);
  llvm::MaybeAlign alignment;
  if (streams)
    alignment = llvm::Align(std::min<uint64_t>(uint64_t(lanes) * type.getElementTypeBitWidth() / 8,
                                               uint64_t(profile.offsetAlignment)));
  vector::StoreOp::create(builder(), loc, vector, memory, expand(place), streams, alignment);
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

Value PointEmitter::fromStorage(unsigned buffer, Value value) {
  if (!getElementType(getTensor(buffer)).isInteger(1))
    return value;
  Value zero = arith::ConstantOp::create(builder(), loc, builder().getZeroAttr(value.getType()));
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
  if (std::optional<AffineExpr> place = getVectorAddress(buffer, address))
    return loadVector(buffer, expand(*place));
  SmallVector<Value> elements;
  for (int64_t lane = 0; lane < lanes; ++lane)
    elements.push_back(loadScalar(buffer, atLane(address, lane)));
  return vector::FromElementsOp::create(
      builder(), loc, VectorType::get({lanes}, elements.front().getType()), elements);
}

std::optional<AffineExpr> PointEmitter::getRun(Value tensor, ArrayRef<AffineExpr> indices,
                                               int64_t count) const {
  if (!getBuffer(tensor))
    return std::nullopt;
  return getRun(linearize(getSizes(tensor), indices), count);
}

std::optional<AffineExpr> PointEmitter::getRun(AffineExpr address, int64_t count) const {
  AffineExpr first = atLane(address, 0);
  for (int64_t lane = 1; lane < count; ++lane)
    if (simplify(atLane(address, lane) - first) != constant(lane))
      return std::nullopt;
  return first.isMultipleOf(count) ? std::optional(first) : std::nullopt;
}

std::optional<int64_t> PointEmitter::getDistance(ArrayRef<int64_t> sizes, ArrayRef<AffineExpr> from,
                                                 ArrayRef<AffineExpr> to) const {
  auto distance =
      dyn_cast<AffineConstantExpr>(simplify(linearize(sizes, to) - linearize(sizes, from)));
  return distance ? std::optional(distance.getValue()) : std::nullopt;
}

Value PointEmitter::loadRun(Value tensor, ArrayRef<AffineExpr> indices, int64_t count) {
  return loadFrom(*getBuffer(tensor), *getRun(tensor, indices, count), count);
}

/// Loads `count` elements at once.
static Value loadAligned(OpBuilder &b, Location loc, Type element, int64_t count, Value memory,
                         Value place) {
  auto type = VectorType::get({count}, element);
  llvm::Align alignment(count * type.getElementTypeBitWidth() / 8);
  return vector::LoadOp::create(b, loc, type, memory, place, /*nontemporal=*/false, alignment);
}

Value PointEmitter::loadFrom(unsigned buffer, AffineExpr first, int64_t count) {
  survey.buffers[buffer].read = true;
  keepElements(buffer);
  return loadAligned(builder(), loc, getElementType(getTensor(buffer)), count, buffers[buffer],
                     expand(first));
}

Value PointEmitter::copyRun(Value tensor, ArrayRef<AffineExpr> indices, int64_t count, Value memory,
                            Value at) {
  return copyFrom(*getBuffer(tensor), *getRun(tensor, indices, count), count, memory, at);
}

Value PointEmitter::copyFrom(unsigned buffer, AffineExpr first, int64_t count, Value memory,
                             Value at) {
  survey.buffers[buffer].read = true;
  keepElements(buffer);
  Value place = expand(first);
  constexpr int64_t bytesPastL1 = 16; // shorter copies go through L1
  const bool isPastL1 =
      count * getElementType(getTensor(buffer)).getIntOrFloatBitWidth() / 8 == bytesPastL1;
  return nvgpu::DeviceAsyncCopyOp::create(
      builder(), loc, nvgpu::DeviceAsyncTokenType::get(context), memory, at, buffers[buffer], place,
      builder().getIndexAttr(count), /*srcElements=*/Value(),
      /*bypassL1=*/isPastL1 ? builder().getUnitAttr() : UnitAttr());
}

void PointEmitter::copyTile(Value tensor, ValueRange at, ArrayRef<int64_t> box, Value slab,
                            int64_t place, Value mbarriers, int64_t number) {
  unsigned buffer = *getBuffer(tensor);
  survey.buffers[buffer].read = true;
  survey.buffers[buffer].scalarAccess = true;
  ArrayRef<int64_t> shape = cast<RankedTensorType>(tensor.getType()).getShape();
  schedule::TileCopyOp::create(builder(), loc, buffers[buffer], at, slab, indexConstant(place),
                               mbarriers, /*map=*/Value(), number, shape, box);
}

Value PointEmitter::load(unsigned buffer, AffineExpr address) {
  survey.loads[{buffer, address}].insert(pass);
  const auto *copy = cache.find({buffer, address});
  if (!copy)
    return loadUncached(buffer, address);
  if (copy->isFilled && !copy->shared.empty())
    if (Value memory = copy->shared[*getConstantIntValue(cache.getTrip())])
      return loadAligned(builder(), loc, getElementType(getTensor(buffer)), lanes, memory,
                         copy->place);
  if (copy->isFilled)
    return memref::LoadOp::create(builder(), loc, copy->memory, cache.getTrip());
  Value value = loadUncached(buffer, address);
  memref::StoreOp::create(builder(), loc, value, copy->memory, cache.getTrip());
  return value;
}

void PointEmitter::fillCache(unsigned buffer, AffineExpr address) {
  Value value = loadUncached(buffer, address);
  memref::StoreOp::create(builder(), loc, value, cache.find({buffer, address})->memory,
                          cache.getTrip());
}

void PointEmitter::prefetch(unsigned buffer, AffineExpr address, unsigned level) {
  memref::PrefetchOp::create(builder(), loc, buffers[buffer], expand(atLane(address, 0)),
                             /*isWrite=*/false, /*localityHint=*/4 - level, /*isDataCache=*/true);
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
       llvm::zip_equal(getShape(read.getTensor()), ArrayRef(operands).drop_front())) {
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
            isFailed = true;
            insertion.emitOpError("is one of too many insertions at computed places in one kernel");
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
    // The shortest runs of dimensions on both sides that have equally many elements.
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
    return linearize(getSizes(kernel.getResult(result)), indices);
  SmallVector<AffineExpr> inSlice =
      reshape(indices, getShape(computed[result]), insertion.getStaticSizes());
  SmallVector<AffineExpr> at;
  for (auto [offset, stride, index] :
       llvm::zip_equal(insertion.getMixedOffsets(), insertion.getStaticStrides(), inSlice)) {
    std::optional<int64_t> literal = getConstantIntValue(offset);
    AffineExpr begin = literal ? constant(*literal) : dim(places.find(cast<Value>(offset))->second);
    at.push_back(begin + index * stride);
  }
  return linearize(insertion.getType().getShape(), at);
}

bool PointEmitter::isVectorStore(unsigned result, ArrayRef<AffineExpr> indices) {
  auto isVector = [&](AffineExpr address) {
    return getVectorAddress(kernel.getInputs().size() + result, address).has_value();
  };
  return isVector(getAddress(result, indices)) &&
         (!wholes.contains(result) || isVector(linearize(getShape(computed[result]), indices)));
}

void PointEmitter::store(unsigned result, Value value, ArrayRef<AffineExpr> indices) {
  storeAt(result, value, getAddress(result, indices));
  if (Value memory = wholes.lookup(result))
    storeIn(memory, result, value, linearize(getShape(computed[result]), indices));
}

void PointEmitter::storeAt(unsigned result, Value value, AffineExpr address) {
  storeIn(buffers[kernel.getInputs().size() + result], result, value, address);
}

void PointEmitter::storeIn(Value memory, unsigned result, Value value, AffineExpr address) {
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
    survey.buffers[buffer].scalarAccess = true;
    if (!isa<VectorType>(getBufferType(buffer).getElementType()))
      memref::StoreOp::create(builder(), loc, value, memory, expand(address));
    return;
  }
  if (std::optional<AffineExpr> place = getVectorAddress(buffer, address)) {
    storeVector(memory, result, value, *place);
    return;
  }
  survey.buffers[buffer].scalarAccess = true;
  if (isa<VectorType>(getBufferType(buffer).getElementType()))
    return; // only in the survey
  for (int64_t lane = 0; lane < lanes; ++lane)
    memref::StoreOp::create(builder(), loc, extract(value, lane), memory,
                            expand(atLane(address, lane)));
}

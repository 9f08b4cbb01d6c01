//===- Emitter.cpp - Block code of kernels --------------------------------===//
//
// A kernel is emitted twice: the first time to learn how it uses its operands
// (as vectors or not, in how many passes), the second time for good.
//
//===----------------------------------------------------------------------===//

#include "weir/Kernels/Emitter.h"

#include "Blocks.h"
#include "Tuning.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "weir/Kernels/Stages.h"
#include "weir/Order/StridedBytes.h"

using namespace mlir;
using namespace weir;

int64_t weir::getProduct(ArrayRef<int64_t> sizes) {
  int64_t product = 1;
  for (int64_t size : sizes)
    product *= size;
  return product;
}

SmallVector<Rest> weir::getRests(int64_t size, int64_t lanes) {
  SmallVector<Rest> rests;
  int64_t begin = size - size % lanes;
  for (int64_t part = lanes / 2; part > 0; part /= 2)
    if ((size - begin) & part) {
      rests.push_back({begin, part});
      begin += part;
    }
  return rests;
}

bool weir::isKeepable(Type element) {
  return element.isIntOrFloat() && element.getIntOrFloatBitWidth() >= 16;
}

Value weir::allocatePrivate(PointEmitter &emitter, Type element, int64_t lanes, int64_t count) {
  Type kept = lanes > 1 ? Type(VectorType::get({lanes}, element)) : element;
  auto space = gpu::AddressSpaceAttr::get(emitter.context, gpu::AddressSpace::Private);
  auto type = MemRefType::get({count}, kept, MemRefLayoutAttrInterface{}, space);
  return memref::AllocaOp::create(emitter.builder(), emitter.loc, type);
}

void weir::emitRest(PointEmitter &emitter, const Rest &rest,
                    function_ref<void(AffineExpr index)> body) {
  emitter.setLanes(rest.lanes);
  emitter.loop(1, {}, [&](Value, ValueRange) -> SmallVector<Value> {
    Value unit = emitter.indexConstant(rest.begin / rest.lanes); // a multiple of them
    AffineExpr first = emitter.setCoordinate(tileRestCoordinate, unit) * rest.lanes;
    body(rest.lanes > 1 ? first + emitter.vectorLane() : first);
    return {};
  });
}

int64_t weir::getLanesBeforeRest(const Profile &profile, int64_t size) {
  return std::min<int64_t>(profile.vectorWidth,
                           llvm::bit_floor<uint64_t>(std::max<int64_t>(size, 1)));
}

int64_t weir::getLanes(const Profile &profile, ArrayRef<int64_t> sizes, int64_t max) {
  if (sizes.empty())
    return 1;
  if (!profile.hasFreeVectors())
    return profile.vectorWidth == 4 && sizes.back() % 4 == 0 ? 4 : 1;
  int64_t lanes = profile.vectorWidth * max;
  while (sizes.back() % lanes != 0 ||
         (lanes > profile.vectorWidth && sizes.back() / lanes < tuning::vectors::minUnits))
    lanes /= 2;
  return lanes;
}

int64_t weir::getVectorElements(const KernelDomain &domain, const Profile &profile) {
  constexpr int64_t usual = 4, most = 8;
  KernelShape shape = domain.getShape();
  bool hasColumns = shape == KernelShape::Row || shape == KernelShape::Column;
  if (profile.hasFreeVectors() || !profile.hasShortVectors() || profile.vectorWidth != usual ||
      (shape != KernelShape::Map && !hasColumns) || domain.isAcross())
    return usual;
  ArrayRef<int64_t> walked = hasColumns ? domain.getColumnSizes() : domain.getSizes();
  if (walked.empty() || walked.back() % most != 0 ||
      getProduct(walked) < most * profile.subgroupSize || !domain.movesHalves())
    return usual;
  return most;
}

int64_t weir::getColumnLanes(const KernelDomain &domain, const Profile &profile) {
  int64_t lanes = getLanes(profile, domain.getColumnSizes());
  return !profile.hasFreeVectors() && lanes > 1 ? getVectorElements(domain, profile) : lanes;
}

int64_t weir::getMaxVectors(const KernelDomain &domain) {
  return domain.hasFunctions() ? 1 : tuning::vectors::maxOfUnit;
}

SmallVector<AffineExpr> weir::getPoint(PointEmitter &emitter, AffineExpr unit,
                                       ArrayRef<int64_t> sizes, int64_t lanes) {
  SmallVector<int64_t> units(sizes);
  if (lanes > 1)
    units.back() /= lanes;
  SmallVector<AffineExpr> point = emitter.delinearize(unit, units);
  if (lanes > 1)
    point.back() = point.back() * lanes + emitter.vectorLane();
  return point;
}

SmallVector<AffineExpr> weir::getResultIndices(PointEmitter &emitter, Value value,
                                               ArrayRef<AffineExpr> point) {
  auto op = value.getDefiningOp<linalg::GenericOp>();
  AffineMap written = op.getIndexingMapMatchingResult(cast<OpResult>(value));
  return emitter.apply(written, emitter.getLoops(op, point));
}

void weir::emitResults(PointEmitter &emitter, ArrayRef<unsigned> results,
                       ArrayRef<AffineExpr> point) {
  SmallVector<std::pair<Value, SmallVector<AffineExpr>>> computed;
  for (unsigned result : results) {
    Value value = emitter.computed[result];
    SmallVector<AffineExpr> indices = getResultIndices(emitter, value, point);
    Value element = emitter.evaluate(value, indices);
    computed.emplace_back(element, std::move(indices));
  }
  for (auto [result, entry] : llvm::zip_equal(results, computed))
    emitter.store(result, entry.first, entry.second);
}

SmallVector<AffineExpr> weir::getPartIndices(PointEmitter &emitter, Value part,
                                             ArrayRef<AffineExpr> point) {
  SmallVector<AffineExpr> indices = getResultIndices(emitter, part, point);
  indices.front() = emitter.dim(partCoordinate);
  return indices;
}

Value weir::getWorkgroup(PointEmitter &emitter, const std::array<int64_t, 3> &grid) {
  auto [x, y, z] = grid;
  OpBuilder &b = emitter.builder();
  Location loc = emitter.loc;
  Value group = gpu::BlockIdOp::create(b, loc, gpu::Dimension::x);
  auto add = [&](int64_t factor, gpu::Dimension axis) {
    Value id = gpu::BlockIdOp::create(b, loc, axis);
    Value scaled = arith::MulIOp::create(b, loc, id, emitter.indexConstant(factor));
    group = arith::AddIOp::create(b, loc, group, scaled);
  };
  if (y > 1)
    add(x, gpu::Dimension::y);
  if (z > 1)
    add(x * y, gpu::Dimension::z);
  return group;
}

void weir::emitWorkgroups(PointEmitter &emitter, int64_t groups, EmittedKernel &launch,
                          function_ref<void(Value)> body) {
  if (emitter.isStage()) {
    emitter.loop(groups, {}, [&](Value group, ValueRange) -> SmallVector<Value> {
      body(group);
      return {};
    });
    return;
  }
  const std::array<int64_t, 3> &max = emitter.profile.maxGrid;
  int64_t x = std::min(groups, max[0]);
  int64_t y = std::min(llvm::divideCeil(groups, x), uint64_t(max[1]));
  int64_t z = llvm::divideCeil(groups, x * y);
  if (z > max[2]) {
    emitter.fail(emitter.kernel) << "needs " << groups
                                 << " workgroups, more than the grid of target "
                                 << emitter.profile.name << " holds";
    return;
  }
  launch.grid = {x, y, z};
  Value group = getWorkgroup(emitter, launch.grid);
  if (x * y * z == groups) {
    body(group);
    return;
  }
  OpBuilder &b = emitter.builder();
  Location loc = emitter.loc;
  Value inside = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::ult, group,
                                       emitter.indexConstant(groups));
  emitter.guard(inside, {}, [&]() -> SmallVector<Value> {
    body(group);
    return {};
  });
}

int64_t weir::chooseWorkgroup(int64_t invocations, int64_t least, const Profile &profile) {
  int64_t size = profile.workgroupSize;
  while (int64_t(llvm::divideCeil(invocations, size)) <
             tuning::workgroups::minPerUnit * profile.units &&
         size % (2 * least) == 0)
    size /= 2;
  return size;
}

void weir::emitUnits(PointEmitter &emitter, int64_t units, EmittedKernel &launch,
                     function_ref<void(Value)> body) {
  const Profile &profile = emitter.profile;
  int64_t size = profile.workgroupSize;
  if (!emitter.isStage()) {
    size = chooseWorkgroup(units, profile.subgroupSize, profile);
    emitter.setWorkgroup(size);
  }
  Location loc = emitter.loc;
  emitWorkgroups(emitter, llvm::divideCeil(units, size), launch, [&](Value group) {
    OpBuilder &b = emitter.builder();
    Value thread = gpu::ThreadIdOp::create(b, loc, gpu::Dimension::x);
    Value first = arith::MulIOp::create(b, loc, group, emitter.indexConstant(size));
    Value unit = arith::AddIOp::create(b, loc, first, thread);
    if (units % size == 0)
      return body(unit);
    Value inside = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::ult, unit,
                                         emitter.indexConstant(units));
    emitter.guard(inside, {}, [&]() -> SmallVector<Value> {
      body(unit);
      return {};
    });
  });
}

void weir::emitSubgroups(PointEmitter &emitter, int64_t tiles, EmittedKernel &launch,
                         function_ref<void(Value)> body) {
  const Profile &profile = emitter.profile;
  int64_t subgroups = profile.workgroupSize / profile.subgroupSize;
  Location loc = emitter.loc;
  emitWorkgroups(emitter, llvm::divideCeil(tiles, subgroups), launch, [&](Value group) {
    OpBuilder &b = emitter.builder();
    emitter.setCoordinate(teamLaneCoordinate, gpu::LaneIdOp::create(b, loc, nullptr));
    Value tile = group;
    if (subgroups > 1) {
      Value first = arith::MulIOp::create(b, loc, group, emitter.indexConstant(subgroups));
      tile = arith::AddIOp::create(b, loc, first, gpu::SubgroupIdOp::create(b, loc, nullptr));
    }
    if (tiles % subgroups == 0)
      return body(tile);
    Value inside = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::ult, tile,
                                         emitter.indexConstant(tiles));
    emitter.guard(inside, {}, [&]() -> SmallVector<Value> {
      body(tile);
      return {};
    });
  });
}

/// Checks operands against the profile's limits.
static LogicalResult checkOperands(schedule::KernelOp kernel, const Profile &profile) {
  SmallVector<Value> tensors(kernel.getInputs());
  llvm::append_range(tensors, kernel.getResults());
  if (int64_t(tensors.size()) > profile.storageBuffersPerStage)
    return kernel.emitError() << "has " << tensors.size() << " operands; target " << profile.name
                              << " binds at most " << profile.storageBuffersPerStage;
  for (Value tensor : tensors) {
    auto type = cast<RankedTensorType>(tensor.getType());
    Type element = getStorageType(type.getElementType());
    if (!element.isIntOrFloat())
      return kernel.emitError() << "has an operand of type " << type << ", which no kernel stores";
    std::optional<int64_t> bytes =
        schedule::getByteSize(RankedTensorType::get(type.getShape(), element));
    if (!bytes || *bytes > profile.bytesPerBinding || type.getNumElements() > INT32_MAX)
      return kernel.emitError() << "has an operand of type " << type << ", larger than the "
                                << profile.bytesPerBinding << " bytes per binding of target "
                                << profile.name;
  }
  return success();
}

tensor::InsertSliceOp weir::getInsertion(Value value) {
  auto kernel = value.getDefiningOp<schedule::KernelOp>();
  if (!kernel)
    return {};
  unsigned number = cast<OpResult>(value).getResultNumber();
  Value yielded = kernel.getBody().front().getTerminator()->getOperand(number);
  return yielded.getDefiningOp<tensor::InsertSliceOp>();
}

linalg::GenericOp weir::getYieldedScatter(Value value) {
  auto kernel = value.getDefiningOp<schedule::KernelOp>();
  if (!kernel)
    return {};
  unsigned number = cast<OpResult>(value).getResultNumber();
  auto op = kernel.getBody().front().getTerminator()->getOperand(number).getDefiningOp();
  return isa_and_present<linalg::GenericOp>(op) && op->hasAttr(schedule::scatterAttrName)
             ? cast<linalg::GenericOp>(op)
             : linalg::GenericOp();
}

Value weir::getInsertedInto(Value value) {
  tensor::InsertSliceOp insertion = getInsertion(value);
  linalg::GenericOp scatter = getYieldedScatter(value);
  BlockArgument into;
  if (insertion)
    into = dyn_cast<BlockArgument>(insertion.getDest());
  else if (scatter)
    into = dyn_cast<BlockArgument>(scatter.getDpsInits().front());
  return into ? value.getDefiningOp<schedule::KernelOp>().getInputs()[into.getArgNumber()]
              : Value();
}

Value weir::getOwner(Value value) {
  value = stripReshapes(value);
  while (Value into = getInsertedInto(value))
    value = stripReshapes(into);
  return value;
}

bool weir::liesInPlace(tensor::ConcatOp op, const Profile &profile) {
  RankedTensorType whole = op.getResultType();
  ArrayRef<int64_t> outer = whole.getShape().take_front(op.getDim());
  Type element = getStorageType(whole.getElementType());
  if (!whole.hasStaticShape() || !element.isIntOrFloat() ||
      llvm::any_of(outer, [](int64_t size) { return size != 1; }))
    return false;
  // A kernel may write its part in vectors.
  const int64_t bytes = element.getIntOrFloatBitWidth() / 8;
  const int64_t vector = profile.hasFreeVectors() ? bytes : bytes * profile.vectorWidth;
  int64_t begin = 0; // in elements
  for (Value part : op.getInputs()) {
    auto type = cast<RankedTensorType>(part.getType());
    if (!type.hasStaticShape() || type.getNumElements() == 0 ||
        begin * bytes % std::max(profile.offsetAlignment, vector))
      return false;
    begin += type.getNumElements();
  }
  return true;
}

tensor::ConcatOp weir::getWhole(Value value) {
  for (Operation *user : value.getUsers()) {
    if (auto concat = dyn_cast<tensor::ConcatOp>(user))
      return concat;
    if (isReshape(user))
      if (tensor::ConcatOp found = getWhole(user->getResult(0)))
        return found;
  }
  return {};
}

/// Checks that nothing else reads the destination of an insertion, whose bytes the kernel
/// overwrites.
static LogicalResult checkInsertion(tensor::InsertSliceOp op) {
  auto into = dyn_cast<BlockArgument>(op.getDest());
  if (getSplat(op.getDest()) && !getConstantIntValues(op.getMixedOffsets()))
    return op.emitError("is into a tensor of equal elements, at offsets that are no constants");
  if (op.getSourceType().getNumElements() == 0)
    return op.emitError("inserts no elements");
  if (!op.getDest().getDefiningOp<tensor::EmptyOp>() && !getSplat(op.getDest()) &&
      (!into || into.getOwner() != op->getBlock() || !into.hasOneUse()))
    return op.emitError("is into a tensor that is no input of the kernel, or that the kernel "
                        "uses otherwise");
  if (!op->hasOneUse() || !isa<schedule::YieldOp>(*op->user_begin()))
    return op.emitError("makes a tensor that the kernel does not just yield");
  if (ShapedType::isDynamicShape(op.getStaticSizes()) ||
      ShapedType::isDynamicShape(op.getStaticStrides()))
    return op.emitError("has sizes or strides that are no constants");
  SmallVector<Value> open(op.getOffsets());
  while (!open.empty()) {
    Operation *scalar = open.pop_back_val().getDefiningOp();
    auto read = dyn_cast_or_null<tensor::ExtractOp>(scalar);
    if (!scalar || (read && !getSplat(read.getTensor()) && !isa<BlockArgument>(read.getTensor())))
      return op.emitError("is at a place that the kernel's inputs do not say");
    for (Value operand : scalar->getOperands())
      if (!isa<RankedTensorType>(operand.getType()))
        open.push_back(operand);
  }
  return success();
}

SmallVector<int64_t> weir::getSlice(tensor::InsertSliceOp op) {
  RankedTensorType type = op.getType();
  std::optional<SmallVector<int64_t>> offsets = getConstantIntValues(op.getMixedOffsets());
  Type stored = getStorageType(type.getElementType());
  std::optional<int64_t> whole =
      schedule::getByteSize(RankedTensorType::get(type.getShape(), stored));
  if (!offsets || !whole || *whole == 0)
    return {};
  StridedBytes bytes;
  bytes.elementBytes = *whole / type.getNumElements();
  int64_t stride = bytes.elementBytes;
  for (unsigned dim = type.getRank(); dim-- > 0; stride *= type.getDimSize(dim)) {
    bytes.begin += (*offsets)[dim] * stride;
    bytes.dims.push_back({op.getStaticSizes()[dim], op.getStaticStrides()[dim] * stride});
  }
  std::optional<StridedBytes> canonical = canonicalize(bytes);
  if (!canonical || canonical->dims.size() > 1 || canonical->elementBytes == 0 ||
      canonical->elementBytes == *whole)
    return {};
  StridedBytes::Dim runs =
      canonical->dims.empty() ? StridedBytes::Dim{1, *whole} : canonical->dims.front();
  return {canonical->begin, canonical->elementBytes, runs.stride, runs.size};
}

/// Returns the effect of a kernel on the result that it yields as `yielded`.
static schedule::EffectAttr getWrite(Value yielded) {
  if (Operation *op = yielded.getDefiningOp(); op && op->hasAttr(schedule::scatterAttrName))
    return schedule::EffectAttr::get(yielded.getContext(), schedule::Access::update,
                                     /*coversAll=*/false, /*slice=*/{});
  auto insertion = yielded.getDefiningOp<tensor::InsertSliceOp>();
  bool coversAll = !insertion || getSplat(insertion.getDest()) ||
                   insertion.getStaticSizes() == insertion.getType().getShape();
  SmallVector<int64_t> slice;
  if (!coversAll)
    slice = getSlice(insertion);
  return schedule::EffectAttr::get(yielded.getContext(), schedule::Access::write, coversAll, slice);
}

/// Returns the ops of a kernel that compute points. Reports a region that is no kernel.
static FailureOr<SmallVector<Operation *>> getComputed(schedule::KernelOp kernel) {
  SmallVector<Operation *> ops;
  Block &block = kernel.getBody().front();
  for (Operation &op : block.without_terminator()) {
    OpShape shape = getOpShape(&op);
    if (shape == OpShape::Insertion) {
      if (failed(checkInsertion(cast<tensor::InsertSliceOp>(op))))
        return failure();
      continue;
    }
    if (shape == OpShape::Other && !isPartOfInsertion(&op))
      return op.emitError("cannot be computed inside a kernel");
    if (shape != OpShape::Free && shape != OpShape::Other)
      ops.push_back(&op);
  }
  for (Value value : block.getTerminator()->getOperands())
    if (!llvm::is_contained(ops, getInserted(value).getDefiningOp()))
      return kernel.emitError("yields a value that it does not compute");
  if (ops.size() > KernelDomain::maxOps)
    return kernel.emitError() << "holds " << ops.size() << " ops; a kernel holds at most "
                              << KernelDomain::maxOps;
  return ops;
}

gpu::GPUFuncOp weir::createKernelFunction(OpBuilder &builder, schedule::KernelOp kernel,
                                          StringRef name, ArrayRef<Type> types,
                                          const Profile &profile) {
  auto function =
      gpu::GPUFuncOp::create(builder, kernel.getLoc(), name, builder.getFunctionType(types, {}));
  function->setAttr(gpu::GPUDialect::getKernelFuncAttrName(), builder.getUnitAttr());
  function.setKnownBlockSizeAttr(
      builder.getDenseI32ArrayAttr({int32_t(profile.workgroupSize), 1, 1}));
  return function;
}

/// Creates the function of a kernel, without code, and sets the operands of its launch.
static gpu::GPUFuncOp createFunction(PointEmitter &emitter, OpBuilder &builder, StringRef name,
                                     EmittedKernel &launch) {
  schedule::KernelOp kernel = emitter.kernel;
  const Survey *known = emitter.getKnown();
  unsigned numInputs = kernel.getInputs().size();
  launch.operands.clear();
  SmallVector<Type> types;
  for (unsigned buffer = 0; buffer < numInputs + kernel.getNumResults(); ++buffer) {
    MemRefType type = emitter.getBufferType(buffer);
    // The destination of an insertion is bound as the result, not as an input.
    bool isUsed = buffer >= numInputs || !known || known->buffers[buffer].read;
    if (!isUsed || type.getNumElements() == 0)
      continue;
    launch.operands.push_back(buffer);
    types.push_back(type);
  }
  gpu::GPUFuncOp function = createKernelFunction(builder, kernel, name, types, emitter.profile);
  Operation *yield = kernel.getBody().front().getTerminator();
  auto read = schedule::EffectAttr::get(builder.getContext(), schedule::Access::read,
                                        /*coversAll=*/false, /*slice=*/{});
  for (auto [index, buffer] : llvm::enumerate(launch.operands))
    function.setArgAttr(index, schedule::effectAttrName,
                        buffer >= numInputs ? getWrite(yield->getOperand(buffer - numInputs))
                                            : read);
  emitter.setFunction(function, launch.operands);
  return function;
}

void weir::emitShape(PointEmitter &emitter, EmittedKernel &launch) {
  switch (emitter.domain.getShape()) {
  case KernelShape::Map:
    return emitMap(emitter, launch);
  case KernelShape::Row:
    if (!emitter.domain.getBlocks())
      return emitRow(emitter, launch);
    return emitter.profile.hasFreeVectors() ? emitTileBlockRow(emitter, launch)
                                            : emitBlockRow(emitter, launch);
  case KernelShape::Column:
    return emitColumn(emitter, launch);
  case KernelShape::Contraction:
    return emitter.profile.hasFreeVectors() ? emitTileContraction(emitter, launch)
                                            : emitContraction(emitter, launch);
  case KernelShape::Sequence:
    return emitSequence(emitter, launch);
  }
}

/// Emits all of a kernel's code. Fails, and leaves nothing, if something has no code.
static FailureOr<gpu::GPUFuncOp> emitOnce(PointEmitter &emitter, OpBuilder &builder, StringRef name,
                                          EmittedKernel &launch) {
  gpu::GPUFuncOp function = createFunction(emitter, builder, name, launch);
  Block *body = &function.getBody().front();
  emitter.pushScope(OpBuilder::atBlockBegin(body));
  emitter.placeInsertions();
  emitShape(emitter, launch);
  emitSurroundings(emitter, launch);
  OpBuilder end = OpBuilder::atBlockEnd(body);
  gpu::ReturnOp::create(end, emitter.kernel.getLoc());
  emitter.popScope();
  if (emitter.hasFailed()) {
    function.erase();
    return failure();
  }
  auto [x, y, z] = launch.grid;
  function.setKnownGridSizeAttr(builder.getDenseI32ArrayAttr({int32_t(x), int32_t(y), int32_t(z)}));
  return function;
}

FailureOr<EmittedKernel> weir::emitKernel(schedule::KernelOp kernel, OpBuilder &builder,
                                          StringRef name, const Profile &profile) {
  if (failed(checkOperands(kernel, profile)))
    return failure();
  if (hasStages(kernel))
    return emitStages(kernel, builder, name, profile);
  FailureOr<SmallVector<Operation *>> ops = getComputed(kernel);
  if (failed(ops))
    return failure();
  for (Operation *op : *ops)
    if (op->hasAttr(schedule::scatterAttrName) &&
        failed(checkScatter(kernel, cast<linalg::GenericOp>(op), profile)))
      return failure();
  EmittedKernel launch;
  launch.launches = llvm::any_of(kernel.getResultTypes(), [](Type type) {
    return cast<RankedTensorType>(type).getNumElements() != 0;
  });
  if (!launch.launches)
    return launch;
  std::optional<KernelDomain> domain = KernelDomain::build(*ops);
  if (!domain)
    return kernel.emitError("holds ops that no single kernel computes");

  Survey survey;
  PointEmitter surveyor(kernel, *domain, profile, survey, /*known=*/nullptr);
  FailureOr<gpu::GPUFuncOp> first = emitOnce(surveyor, builder, name, launch);
  if (failed(first))
    return failure();
  first->erase();
  Survey ignored;
  PointEmitter emitter(kernel, *domain, profile, ignored, &survey);
  if (failed(emitOnce(emitter, builder, name, launch)))
    return failure();
  return launch;
}

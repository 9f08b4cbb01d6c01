//===- MemoryInstructions.cpp - Instructions as memory accesses -----------===//

#include "MemoryInstructions.h"

#include "dialects/Schedule/Schedule.h"
#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/ControlFlow/IR/ControlFlowOps.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/NVGPU/IR/NVGPUDialect.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/BuiltinDialect.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "mlir/Interfaces/ViewLikeInterface.h"
#include "llvm/ADT/MapVector.h"

using namespace mlir;
using namespace weir;

//===----------------------------------------------------------------------===//
// Accesses
//===----------------------------------------------------------------------===//

void MemoryInstructions::add(MemoryAccess access, const Site &site, Effect effect,
                             const Conditions &conditions) {
  access.op = site.op;
  for (const BodyFrame *inner = &site.frame; inner->caller; inner = inner->caller)
    access.calls.insert(access.calls.begin(), inner->call);
  access.reads = effect.reads;
  access.writes = effect.writes;
  access.atomic = effect.atomic;
  access.late = effect.late;
  access.product = effect.product;
  access.certain = effect.certain && conditions.certain && access.root &&
                   (access.begin || !access.indices.empty());
  access.nonNegative = conditions.nonNegative;
  access.zero = conditions.zero;
  access.loops = site.at.loops;
  accesses.push_back(std::move(access));
}

/// Adds an access to any bytes of `root`, or of any memory if that is null.
void MemoryInstructions::addAnywhere(const Site &site, Value root, Effect effect) {
  MemoryAccess access;
  access.root = root;
  add(std::move(access), site, effect, site.at);
}

/// Adds an access to the elements [indices, last + elements) of a memref.
void MemoryInstructions::addElements(const Site &site, Value memref, ArrayRef<AffineExpr> indices,
                                     int64_t elements, int64_t elementBytes, Effect effect) {
  auto type = dyn_cast<MemRefType>(memref.getType());
  for (const MemoryReference &reference : references.resolve(memref, site.frame)) {
    Conditions here = site.at;
    llvm::append_range(here.nonNegative, reference.conditions.nonNegative);
    llvm::append_range(here.zero, reference.conditions.zero);
    here.certain &= reference.conditions.certain;
    MemoryAccess access;
    access.root = reference.root;
    AffineExpr begin = elementBytes ? reference.offset : AffineExpr();
    if (reference.strides.size() != indices.size())
      begin = {};
    for (size_t i = 0; begin && i < indices.size(); ++i) {
      AffineExpr index = indices[i], stride = reference.strides[i];
      bool affine = isa<AffineConstantExpr>(index) || isa<AffineConstantExpr>(stride);
      begin = affine ? begin + index * stride : AffineExpr();
    }
    bool packed = elements == 1 || (!reference.strides.empty() &&
                                    reference.strides.back() == values.constant(elementBytes));
    if (begin && packed) {
      access.begin = begin;
      access.bytes = elements * elementBytes;
    } else if (reference.root && type && type.getLayout().isIdentity() && elementBytes) {
      access.view = memref;
      access.indices.assign(indices.begin(), indices.end());
      access.elements = elements;
    }
    add(std::move(access), site, effect, here);
  }
}

/// Adds an access to each element of a memref, or anywhere if its shape is not known.
void MemoryInstructions::addWhole(const Site &site, Value memref, Effect effect) {
  auto type = dyn_cast<MemRefType>(memref.getType());
  int64_t elementBytes = type ? getBytesOfElement(type.getElementType()) : 0;
  if (!type || !type.hasStaticShape() || !elementBytes) {
    for (const MemoryReference &reference : references.resolve(memref, site.frame))
      addAnywhere(site, reference.root, effect);
    return;
  }
  if (type.getNumElements() == 0)
    return;
  SmallVector<AffineExpr> indices;
  for (int64_t size : type.getShape()) {
    MapVariable variable;
    variable.kind = MapVariable::Kind::Element;
    variable.lower = 0;
    variable.upper = size - 1;
    indices.push_back(size == 1 ? values.constant(0)
                                : values.dim(values.addVariable(std::move(variable))));
  }
  addElements(site, memref, indices, 1, elementBytes, effect);
}

/// Adds an access that moves an element of type `moved`, or a vector that may hold several.
void MemoryInstructions::addAccess(const Site &site, Value memref, ArrayRef<AffineExpr> indices,
                                   Type moved, Effect effect) {
  auto type = cast<MemRefType>(memref.getType());
  int64_t elementBytes = getBytesOfElement(type.getElementType()), elements = 1;
  auto vector = dyn_cast<VectorType>(moved);
  if (elementBytes && vector && vector != type.getElementType()) {
    if (vector.getRank() != 1 || vector.isScalable())
      return addWhole(site, memref, {effect.reads, effect.writes, effect.atomic, false});
    int64_t part = getBytesOfElement(vector.getElementType());
    if (!part || part * vector.getNumElements() % elementBytes)
      elementBytes = 0;
    else
      elements = part * vector.getNumElements() / elementBytes;
  }
  addElements(site, memref, indices, elements, elementBytes, effect);
}

SmallVector<AffineExpr> MemoryInstructions::evaluateAll(ValueRange indices,
                                                        const BodyFrame &frame) {
  return llvm::map_to_vector(indices, [&](Value value) { return values.evaluate(value, frame); });
}

//===----------------------------------------------------------------------===//
// Known instructions
//===----------------------------------------------------------------------===//

bool MemoryInstructions::visitElements(const Site &site) {
  auto visit = [&](Value memref, ValueRange indices, Type moved, Effect effect) {
    addAccess(site, memref, evaluateAll(indices, site.frame), moved, effect);
  };
  auto mask = [](Effect effect) {
    effect.certain = false;
    return effect;
  };
  Operation *op = site.op;
  if (auto load = dyn_cast<memref::LoadOp>(op)) {
    visit(load.getMemRef(), load.getIndices(), load.getType(), read);
  } else if (auto store = dyn_cast<memref::StoreOp>(op)) {
    visit(store.getMemRef(), store.getIndices(), store.getValueToStore().getType(), write);
  } else if (auto copy = dyn_cast<memref::CopyOp>(op)) {
    addWhole(site, copy.getSource(), read);
    addWhole(site, copy.getTarget(), write);
  } else if (auto rmw = dyn_cast<memref::AtomicRMWOp>(op)) {
    visit(rmw.getMemref(), rmw.getIndices(), rmw.getType(), atomic);
  } else if (auto rmw = dyn_cast<memref::GenericAtomicRMWOp>(op)) {
    visit(rmw.getMemref(), rmw.getIndices(), rmw.getType(), atomic);
  } else if (auto load = dyn_cast<vector::LoadOp>(op)) {
    visit(load.getBase(), load.getIndices(), load.getType(), read);
  } else if (auto store = dyn_cast<vector::StoreOp>(op)) {
    visit(store.getBase(), store.getIndices(), store.getVectorType(), write);
  } else if (auto load = dyn_cast<nvgpu::LdMatrixOp>(op)) {
    // Each lane of whole subgroups reads the line that it names.
    constexpr int64_t lineBits = 128;
    Type element = load.getRes().getType().getElementType();
    if (load.getNumTiles() == 4)
      visit(load.getSrcMemref(), load.getIndices(),
            VectorType::get({lineBits / element.getIntOrFloatBitWidth()}, element), read);
    else
      return false;
  } else if (auto copy = dyn_cast<nvgpu::DeviceAsyncCopyOp>(op)) {
    auto getMoved = [&](Value memref) {
      return VectorType::get({copy.getDstElementsAttr().getInt()},
                             cast<MemRefType>(memref.getType()).getElementType());
    };
    // With a number of elements to read, it may read fewer; others become zeros.
    visit(copy.getSrc(), copy.getSrcIndices(), getMoved(copy.getSrc()),
          {true, false, false, !copy.getSrcElements(), true});
    visit(copy.getDst(), copy.getDstIndices(), getMoved(copy.getDst()),
          {false, true, false, true, true});
  } else if (auto copy = dyn_cast<schedule::TileCopyOp>(op)) {
    // It is not asked which part of the box is in the operand.
    addWhole(site, copy.getOperand(), {true, false, false, false, true});
    addElements(site, copy.getSlab(), {values.evaluate(copy.getPlace(), site.frame)},
                copy.getElements(), getBytesOfElement(copy.getSlab().getType().getElementType()),
                {false, true, false, true, true, true});
    visitMBarrier(site, copy.getBarriers(), copy.getNumber(), atomic);
  } else if (auto init = dyn_cast<schedule::MBarrierInitOp>(op)) {
    visitMBarrier(site, init.getBarriers(), init.getNumber(), write);
  } else if (auto expect = dyn_cast<schedule::MBarrierExpectOp>(op)) {
    visitMBarrier(site, expect.getBarriers(), expect.getNumber(), atomic);
  } else if (auto wait = dyn_cast<schedule::MBarrierWaitOp>(op)) {
    visitMBarrier(site, wait.getBarriers(), wait.getNumber(), atomic);
  } else if (auto product = dyn_cast<schedule::GroupProductOp>(op)) {
    visitFactor(site, product.getRows(), product.getRow(), 0, product.getTransposesRows());
    visitFactor(site, product.getColumns(), product.getColumn(), 1, product.getTransposesColumns());
  } else if (auto load = dyn_cast<vector::MaskedLoadOp>(op)) {
    visit(load.getBase(), load.getIndices(), load.getType(), mask(read));
  } else if (auto store = dyn_cast<vector::MaskedStoreOp>(op)) {
    visit(store.getBase(), store.getIndices(), store.getVectorType(), mask(write));
  } else {
    return false;
  }
  return true;
}

/// Adds an access to an mbarrier.
void MemoryInstructions::visitMBarrier(const Site &site, Value mbarriers, int64_t number,
                                       Effect effect) {
  addElements(site, mbarriers, {values.constant(number)}, 1, 8, effect);
}

/// Adds the access of a product of matrices to a factor: from the line that it begins in to its
/// last one. Any of the four subgroups' invocations may read each.
void MemoryInstructions::visitFactor(const Site &site, Value memref, Value index, unsigned side,
                                     bool isTransposed) {
  constexpr int64_t rows = 64, blockBytes = 1024, lineBytes = 128, linesOfBlock = 8;
  auto product = cast<schedule::GroupProductOp>(site.op);
  const int64_t elementBytes =
                    getBytesOfElement(cast<MemRefType>(memref.getType()).getElementType()),
                lineElements = lineBytes / elementBytes;
  const int64_t elements = side == 0 ? rows : 2 * product.getSums().getType().getNumElements();
  const int64_t along = product.getStrides()[2 * side], across = product.getStrides()[2 * side + 1];
  const int64_t bytes = isTransposed ? (elements / lineElements - 1) * along + across + blockBytes
                                     : (elements / linesOfBlock - 1) * across + blockBytes;
  AffineExpr begin = values.evaluate(index, site.frame);
  if (begin)
    begin = begin + int64_t(side == 0 ? product.getRowOffset() : product.getColumnOffset());
  if (begin && !isTransposed) // runs of a line are exchanged
    begin = begin.floorDiv(lineElements) * lineElements;
  addElements(site, memref, {begin}, bytes / elementBytes, elementBytes,
              {true, false, false, false, true, true});
}

/// Adds the accesses of a load or store of a matrix by a subgroup: from its first element to its
/// last one. Any invocation may load each element. What is stored once for all of them counts as
/// stored by the first.
bool MemoryInstructions::visitCooperative(const Site &site) {
  auto visit = [&](const Site &from, Value memref, ValueRange indices, gpu::MMAMatrixType matrix,
                   int64_t stride, bool isTransposed, Effect effect) {
    ArrayRef<int64_t> shape = matrix.getShape();
    int64_t lines = shape[isTransposed ? 1 : 0], length = shape[isTransposed ? 0 : 1];
    effect.certain = false;
    int64_t bytes = getBytesOfElement(cast<MemRefType>(memref.getType()).getElementType());
    addElements(from, memref, evaluateAll(indices, site.frame), (lines - 1) * stride + length,
                bytes, effect);
  };
  if (auto load = dyn_cast<gpu::SubgroupMmaLoadMatrixOp>(site.op)) {
    visit(site, load.getSrcMemref(), load.getIndices(), cast<gpu::MMAMatrixType>(load.getType()),
          load.getLeadDimension().getSExtValue(), load.getTranspose().value_or(false), read);
    return true;
  }
  auto store = dyn_cast<gpu::SubgroupMmaStoreMatrixOp>(site.op);
  gpu::LaneIdOp lane;
  if (store)
    kernel->walk([&](gpu::LaneIdOp op) { lane = op; });
  if (!lane)
    return false;
  Surroundings ofFirst = site.at;
  ofFirst.zero.push_back(values.evaluate(lane, site.frame));
  visit({site.op, site.frame, ofFirst}, store.getDstMemref(), store.getIndices(),
        cast<gpu::MMAMatrixType>(store.getSrc().getType()), store.getLeadDimension().getSExtValue(),
        store.getTranspose().value_or(false), write);
  return true;
}

bool MemoryInstructions::visitAffine(const Site &site) {
  auto visit = [&](Value memref, AffineMap map, ValueRange operands, Type moved, Effect effect) {
    SmallVector<AffineExpr> indices;
    for (unsigned i = 0; i < map.getNumResults(); ++i) {
      AffineExpr index = values.replaceDims(map, operands, i, site.frame);
      if (!index) {
        effect.certain = false;
        return addWhole(site, memref, effect);
      }
      indices.push_back(index);
    }
    addAccess(site, memref, indices, moved, effect);
  };
  if (auto load = dyn_cast<affine::AffineReadOpInterface>(site.op))
    visit(load.getMemRef(), load.getAffineMap(), load.getMapOperands(), load.getValue().getType(),
          read);
  else if (auto store = dyn_cast<affine::AffineWriteOpInterface>(site.op))
    visit(store.getMemRef(), store.getAffineMap(), store.getMapOperands(),
          store.getValueToStore().getType(), write);
  else
    return false;
  return true;
}

bool MemoryInstructions::visitTransfer(const Site &site) {
  auto transfer = dyn_cast<VectorTransferOpInterface>(site.op);
  if (!transfer || !isa<MemRefType>(transfer.getBase().getType()))
    return false;
  Effect effect = isa<vector::TransferReadOp>(site.op) ? read : write;
  bool isIdentity = transfer.getPermutationMap().isMinorIdentity();
  effect.certain = isIdentity && !transfer.getMask() && !transfer.hasOutOfBoundsDim();
  if (isIdentity)
    addAccess(site, transfer.getBase(), evaluateAll(transfer.getIndices(), site.frame),
              transfer.getVectorType(), effect);
  else
    addWhole(site, transfer.getBase(), effect);
  return true;
}

//===----------------------------------------------------------------------===//
// Others
//===----------------------------------------------------------------------===//

/// Whether `op` asks about a memref and touches nothing.
static bool onlyLooks(Operation *op) {
  return isa<memref::DimOp, memref::RankOp, memref::AssumeAlignmentOp, memref::PrefetchOp,
             memref::ExtractStridedMetadataOp>(op);
}

/// Whether an op orders copies or products of its invocation, and touches nothing.
static bool ordersCopies(Operation *op) {
  return isa<nvgpu::DeviceAsyncCreateGroupOp, nvgpu::DeviceAsyncWaitOp, NVVM::WgmmaFenceAlignedOp,
             NVVM::WgmmaGroupSyncAlignedOp, NVVM::WgmmaWaitGroupSyncOp, NVVM::FenceProxyOp>(op);
}

/// Whether an op near the kernel makes a pointer or a token from a memref, by which others may
/// touch the memory later.
bool MemoryInstructions::addressesEscape() {
  if (escape)
    return *escape;
  auto escapes = [](Operation *op) {
    auto isMemRef = [](Type type) { return isa<BaseMemRefType>(type); };
    if (isa<CallOpInterface, ViewLikeOpInterface, nvgpu::DeviceAsyncCopyOp,
            schedule::GroupProductOp, schedule::TileCopyOp, schedule::MBarrierInitOp,
            schedule::MBarrierExpectOp, schedule::MBarrierWaitOp>(op) ||
        op->getNumRegions() || onlyLooks(op) || llvm::none_of(op->getOperandTypes(), isMemRef) ||
        llvm::all_of(op->getResultTypes(), isMemRef))
      return WalkResult::advance();
    SmallVector<MemoryEffects::EffectInstance> effects;
    if (auto interface = dyn_cast<MemoryEffectOpInterface>(op))
      interface.getEffects(effects);
    // A type of another dialect may be a token of a transfer that is still going on.
    bool isToken = llvm::any_of(op->getResultTypes(), [](Type type) {
      return !isa<BuiltinDialect, gpu::GPUDialect>(type.getDialect());
    });
    return effects.empty() || isToken ? WalkResult::interrupt() : WalkResult::advance();
  };
  Operation *scope = SymbolTable::getNearestSymbolTable(kernel->getParentOp());
  escape = (scope ? scope : kernel)->walk(escapes).wasInterrupted();
  return *escape;
}

/// Adds the accesses that the effects of an instruction state, or, if it states none, to whatever
/// it could reach. None of them is certain.
void MemoryInstructions::visitByEffects(const Site &site) {
  Operation *op = site.op;
  auto unsure = [](Effect effect) {
    effect.certain = false;
    return effect;
  };
  SmallVector<MemoryEffects::EffectInstance> effects;
  auto interface = dyn_cast<MemoryEffectOpInterface>(op);
  if (interface)
    interface.getEffects(effects);
  Effect elsewhere;
  llvm::MapVector<Value, Effect> known;
  for (const MemoryEffects::EffectInstance &instance : effects) {
    if (isa<MemoryEffects::Allocate, MemoryEffects::Free>(instance.getEffect()))
      continue;
    Value value = instance.getValue();
    Effect &effect = value ? known[value] : elsewhere;
    effect.reads |= isa<MemoryEffects::Read>(instance.getEffect());
    effect.writes |= isa<MemoryEffects::Write>(instance.getEffect());
    if (value && !isa<BaseMemRefType>(value.getType())) // a pointer: to where?
      addAnywhere(site, Value(), unsure(effect));
  }
  bool isSilent = interface && effects.empty();
  // If addresses escape, an unknown op may touch anything.
  if (!interface && !isa<CallOpInterface>(op) && addressesEscape())
    addAnywhere(site, Value(), unsure(update));
  for (Value operand : op->getOperands()) {
    if (!isa<BaseMemRefType>(operand.getType()) || known.contains(operand))
      continue;
    if (elsewhere.reads || elsewhere.writes)
      known[operand] = unsure(elsewhere);
    else if (!interface || isSilent)
      known[operand] = unsure(update); // its address escapes
  }
  for (auto &[value, effect] : known)
    if (isa<BaseMemRefType>(value.getType()))
      addWhole(site, value, unsure(effect));
  if (isa<CallOpInterface>(op))
    addAnywhere(site, Value(), unsure(update));
  else if (elsewhere.reads || elsewhere.writes)
    addAnywhere(site, Value(), unsure(elsewhere));
}

void MemoryInstructions::visit(Operation *op, const BodyFrame &frame, const Surroundings &at) {
  if (isa<gpu::BarrierOp, gpu::ShuffleOp, gpu::AllReduceOp, gpu::SubgroupReduceOp, gpu::PrintfOp,
          cf::AssertOp, arith::SelectOp>(op) ||
      onlyLooks(op) || ordersCopies(op))
    return;
  Site site{op, frame, at};
  if (visitElements(site) || visitCooperative(site) || visitAffine(site) || visitTransfer(site))
    return;
  // These pass a memref on without touching it. The users of their results are visited.
  if (isa<ViewLikeOpInterface>(op) || op->hasTrait<OpTrait::IsTerminator>())
    return;
  visitByEffects(site);
}

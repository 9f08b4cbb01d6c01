//===- MemoryReferences.cpp - Memrefs as places in memory -----------------===//

#include "MemoryReferences.h"

#include "dialects/Schedule/Schedule.h"
#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Interfaces/LoopLikeInterface.h"
#include "mlir/Interfaces/ViewLikeInterface.h"

using namespace mlir;
using namespace weir;

int64_t weir::getBytesOfElement(Type element) {
  std::optional<int64_t> bytes = schedule::getElementBytes(element);
  if (!bytes ||
      (element.isIntOrFloat() && !element.isInteger(1) && element.getIntOrFloatBitWidth() % 8 != 0))
    return 0;
  return *bytes;
}

//===----------------------------------------------------------------------===//
// Choices
//===----------------------------------------------------------------------===//

bool MemoryReferences::isKnown(Value memref, const BodyFrame &frame) const {
  return known.contains({&frame.getHome(memref), memref});
}

MemoryReferenceList MemoryReferences::resolve(Value memref, const BodyFrame &inner) {
  const BodyFrame &frame = inner.getHome(memref);
  if (auto it = known.find({&frame, memref}); it != known.end())
    return it->second;
  std::optional<MemoryReferenceList> chosen = resolveChoice(memref, frame);
  MemoryReferenceList found = chosen ? std::move(*chosen) : compute(memref, frame);
  return known[{&frame, memref}] = std::move(found);
}

/// Returns one reference for each root of `parts`; their offset is not known where parts differ.
static MemoryReferenceList mergeByRoot(MemoryReferenceList parts) {
  MemoryReferenceList found;
  for (MemoryReference &part : parts) {
    auto same =
        llvm::find_if(found, [&](const MemoryReference &other) { return other.root == part.root; });
    if (same == found.end())
      found.push_back(std::move(part));
    else if (same->offset != part.offset || same->strides != part.strides)
      same->offset = {};
  }
  for (MemoryReference &reference : found) {
    bool certain = reference.conditions.certain && found.size() == 1;
    reference.conditions = Conditions();
    reference.conditions.certain = certain;
  }
  return found;
}

/// Returns all pieces that `memref` may be in, seen through choices of which it is not known when
/// they take which.
MemoryReferenceList MemoryReferences::compute(Value memref, const BodyFrame &frame) {
  SmallVector<Value> open = {memref}, leaves;
  DenseSet<Value> seen;
  bool lost = false;
  while (!open.empty()) {
    Value value = open.pop_back_val();
    if (!value)
      lost = true;
    else if (!seen.insert(value).second)
      continue;
    else if (isKnown(value, frame))
      leaves.push_back(value);
    else if (std::optional<SmallVector<Value>> choices = getChoices(value, frame))
      llvm::append_range(open, *choices);
    else
      leaves.push_back(value);
  }
  // If it is a view of itself, it moves on with every trip, so only its roots are known.
  bool moves = llvm::any_of(leaves, [&](Value leaf) { return isViewOf(leaf, seen, frame); });
  if (!moves && leaves.size() == 1 && leaves.front() == memref)
    return resolveDirectly(memref, frame);
  MemoryReferenceList parts;
  if (lost)
    parts.push_back(MemoryReference());
  for (Value leaf : leaves) {
    if (!moves) {
      llvm::append_range(parts, resolve(leaf, frame));
      continue;
    }
    for (Value root : getRoots(leaf, frame)) {
      MemoryReference somewhere;
      somewhere.root = root;
      parts.push_back(somewhere);
    }
  }
  return mergeByRoot(std::move(parts));
}

/// Adds the pieces of `memref` to `found`, under these conditions and its own.
void MemoryReferences::addWhere(Value memref, const Conditions &when, const BodyFrame &frame,
                                MemoryReferenceList &found) {
  for (MemoryReference &reference : resolve(memref, frame)) {
    llvm::append_range(reference.conditions.nonNegative, when.nonNegative);
    llvm::append_range(reference.conditions.zero, when.zero);
    reference.conditions.certain &= when.certain;
    found.push_back(std::move(reference));
  }
}

/// Returns the pieces of a memref that a condition chooses, or that a loop hands around. Returns
/// nothing where it is not known when the memref is which.
std::optional<MemoryReferenceList> MemoryReferences::resolveChoice(Value memref,
                                                                   const BodyFrame &frame) {
  auto choose = [&](Value condition, Value first, Value second) {
    MemoryReferenceList found;
    for (bool holds : {true, false}) {
      Conditions when;
      values.addCondition(condition, holds, when, frame);
      addWhere(holds ? first : second, when, frame, found);
    }
    return found;
  };
  if (auto select = memref.getDefiningOp<arith::SelectOp>())
    return choose(select.getCondition(), select.getTrueValue(), select.getFalseValue());
  if (auto branch = memref.getDefiningOp<scf::IfOp>()) {
    unsigned index = cast<OpResult>(memref).getResultNumber();
    return choose(branch.getCondition(), branch.thenYield().getOperand(index),
                  branch.elseYield().getOperand(index));
  }
  auto argument = dyn_cast<BlockArgument>(memref);
  return argument ? resolveCycle(argument, frame) : std::nullopt;
}

/// Returns the pieces of a memref that a loop carries, where the loop passes on only memrefs that
/// it carries, as in double buffering:
///
///   iter_args(%a = %x, %b = %y) { yield %b, %a }      %a is %x on even trips, and %y on odd ones
std::optional<MemoryReferenceList> MemoryReferences::resolveCycle(BlockArgument argument,
                                                                  const BodyFrame &frame) {
  constexpr size_t maxCycle = 8;
  Block *block = argument.getOwner();
  auto loop = dyn_cast<LoopLikeOpInterface>(block->getParentOp());
  bool isOfBlocks = frame.headers.contains(block);
  if (!isOfBlocks && !(isa<scf::ForOp, affine::AffineForOp>(block->getParentOp())))
    return std::nullopt;
  // On trip n it is the value that the n-th step back around the cycle began with.
  SmallVector<Value> begins;
  for (BlockArgument step = argument; begins.empty() || step != argument;) {
    std::optional<std::pair<Value, Value>> carried;
    if (isOfBlocks)
      carried = getCarried(step, frame, dominance);
    else if (OpOperand *init = loop.getTiedLoopInit(step))
      carried = {init->get(), loop.getTiedLoopYieldedValue(step)->get()};
    auto next = carried ? dyn_cast<BlockArgument>(carried->second) : BlockArgument();
    if (!next || next.getOwner() != block || begins.size() == maxCycle)
      return std::nullopt;
    begins.push_back(carried->first);
    step = next;
  }
  AffineExpr trip = values.dim(isOfBlocks ? frame.headers.lookup(block)
                                          : values.getTrip(loop.getOperation(), frame));
  MemoryReferenceList found;
  for (auto [number, begin] : llvm::enumerate(begins)) {
    Conditions when;
    when.zero.push_back(trip % int64_t(begins.size()) - int64_t(number));
    addWhere(begin, when, frame, found);
  }
  return found;
}

/// Whether `view` is cut, through any choices, from one of `memrefs`.
bool MemoryReferences::isViewOf(Value view, const DenseSet<Value> &memrefs,
                                const BodyFrame &frame) {
  SmallVector<Value> open = {view};
  DenseSet<Value> seen;
  while (!open.empty()) {
    Value value = open.pop_back_val();
    if (!value || !seen.insert(value).second)
      continue;
    if (value != view && memrefs.contains(value))
      return true;
    if (isKnown(value, frame))
      continue; // before any of them was
    if (std::optional<SmallVector<Value>> choices = getChoices(value, frame))
      llvm::append_range(open, *choices);
    else if (auto op = value.getDefiningOp<ViewLikeOpInterface>())
      open.push_back(op.getViewSource());
  }
  return false;
}

/// Returns the memory that `memref` may be in; one root is null when not all is known.
SmallVector<Value> MemoryReferences::getRoots(Value memref, const BodyFrame &frame) {
  SmallVector<Value> open = {memref}, roots;
  DenseSet<Value> seen;
  while (!open.empty()) {
    Value value = open.pop_back_val();
    if (!value) {
      roots.push_back(value);
      continue;
    }
    if (!seen.insert(value).second)
      continue;
    bool isDone = isKnown(value, frame);
    std::optional<SmallVector<Value>> choices;
    if (!isDone && (choices = getChoices(value, frame)))
      llvm::append_range(open, *choices);
    else if (auto op = value.getDefiningOp<ViewLikeOpInterface>(); op && !isDone)
      open.push_back(op.getViewSource());
    else
      for (const MemoryReference &reference : resolve(value, frame))
        roots.push_back(reference.root);
  }
  return roots;
}

//===----------------------------------------------------------------------===//
// Views
//===----------------------------------------------------------------------===//

/// Returns the strides of `type` in bytes; none where an element is not whole bytes.
SmallVector<AffineExpr, 4> MemoryReferences::getStrides(MemRefType type, Value memref,
                                                        const BodyFrame &frame) {
  SmallVector<int64_t> strides;
  int64_t offset;
  SmallVector<AffineExpr, 4> result;
  int64_t element = getBytesOfElement(type.getElementType());
  if (!element || failed(type.getStridesAndOffset(strides, offset)))
    return result;
  for (auto [index, stride] : llvm::enumerate(strides)) {
    if (!ShapedType::isDynamic(stride)) {
      result.push_back(values.constant(stride * element));
      continue;
    }
    MapVariable variable;
    variable.value = memref;
    variable.scope = isa<BlockArgument>(memref) && !frame.caller ? Scope::Grid : Scope::Invocation;
    result.push_back(values.dim(values.addVariable(std::move(variable))) * element);
  }
  return result;
}

/// Moves a reference by one offset along each of its dimensions.
void MemoryReferences::shift(MemoryReference &reference, ArrayRef<OpFoldResult> offsets,
                             const BodyFrame &frame) {
  if (!reference.offset || reference.strides.size() != offsets.size()) {
    reference.offset = {};
    return;
  }
  for (auto [offset, stride] : llvm::zip_equal(offsets, reference.strides)) {
    AffineExpr index = values.evaluate(offset, frame);
    if (!isa<AffineConstantExpr>(stride) && !isa<AffineConstantExpr>(index)) {
      reference.offset = {};
      return;
    }
    reference.offset = reference.offset + index * stride;
  }
}

/// Whether the base pointer of `memref` is the first byte of `root`.
static bool isAtBase(Value memref, Value root) {
  while (auto view = memref.getDefiningOp<ViewLikeOpInterface>()) {
    if (isa<memref::ViewOp>(view.getOperation()))
      return false;
    memref = view.getViewSource();
  }
  auto type = dyn_cast_or_null<MemRefType>(root ? root.getType() : Type());
  if (!type || ShapedType::isDynamic(type.getStridesAndOffset().second))
    return false;
  return memref == root || memref.getDefiningOp<memref::GetGlobalOp>();
}

/// Returns `memref` from its own beginning on, as a view of `root`.
MemoryReference MemoryReferences::makeRoot(Value memref, Value root, const BodyFrame &frame) {
  MemoryReference reference;
  reference.root = root;
  auto type = dyn_cast<MemRefType>(memref.getType());
  if (!type)
    return reference;
  auto [strides, offset] = type.getStridesAndOffset();
  int64_t element = getBytesOfElement(type.getElementType());
  // An argument of dynamic offset is assumed to begin at its root: nothing else tells where.
  if (element)
    reference.offset = values.constant(ShapedType::isDynamic(offset) ? 0 : offset * element);
  reference.strides = getStrides(type, memref, frame);
  return reference;
}

/// Returns the pieces of a memref that is no choice.
MemoryReferenceList MemoryReferences::resolveDirectly(Value memref, const BodyFrame &frame) {
  if (auto argument = dyn_cast<BlockArgument>(memref)) {
    if (!frame.isArgument(argument))
      return {MemoryReference()};
    if (!frame.caller)
      return {makeRoot(memref, memref, frame)};
    return resolve(frame.getPassed(argument.getArgNumber()), *frame.caller);
  }
  Operation *op = memref.getDefiningOp();
  if (isa<memref::AllocaOp, memref::AllocOp>(op))
    return {makeRoot(memref, memref, frame)};
  if (auto global = dyn_cast<memref::GetGlobalOp>(op)) {
    auto [it, isNew] = globals.try_emplace(global.getNameAttr().getAttr(), memref);
    return {makeRoot(memref, it->second, frame)};
  }
  if (isa<gpu::DynamicSharedMemoryOp>(op)) {
    if (!dynamicShared)
      dynamicShared = memref;
    return {makeRoot(memref, dynamicShared, frame)};
  }
  auto view = dyn_cast<ViewLikeOpInterface>(op);
  if (!view || !isa<BaseMemRefType>(view.getViewSource().getType()))
    return {MemoryReference()};
  MemoryReferenceList result = resolve(view.getViewSource(), frame);
  for (MemoryReference &reference : result)
    applyView(op, reference, frame);
  return result;
}

/// Makes of a reference to what `view` is a view of one to its result.
void MemoryReferences::applyView(Operation *view, MemoryReference &reference,
                                 const BodyFrame &frame) {
  Value memref = view->getResult(0);
  auto type = dyn_cast<MemRefType>(memref.getType());
  if (auto subview = dyn_cast<memref::SubViewOp>(view)) {
    SmallVector<AffineExpr, 4> strides = reference.strides;
    shift(reference, subview.getMixedOffsets(), frame);
    reference.strides.clear();
    llvm::SmallBitVector dropped = subview.getDroppedDims();
    if (strides.size() != subview.getMixedStrides().size())
      return;
    for (auto [index, step] : llvm::enumerate(subview.getMixedStrides())) {
      if (dropped.test(index))
        continue;
      AffineExpr factor = values.evaluate(step, frame);
      AffineExpr stride = strides[index];
      reference.strides.push_back(isa<AffineConstantExpr>(factor) ? stride * factor
                                  : isa<AffineConstantExpr>(stride)
                                      ? factor * stride
                                      : values.addOpaque(memref, frame));
    }
  } else if (auto bytes = dyn_cast<memref::ViewOp>(view)) {
    if (reference.offset)
      reference.offset = reference.offset + values.evaluate(bytes.getByteShift(), frame);
    reference.strides = getStrides(type, memref, frame);
  } else if (auto cast = dyn_cast<memref::ReinterpretCastOp>(view)) {
    // Its numbers count from the base, which is the allocation's unless a `memref.view` moved it.
    int64_t element = getBytesOfElement(type.getElementType());
    reference.offset = element && isAtBase(cast.getSource(), reference.root)
                           ? values.evaluate(cast.getMixedOffsets()[0], frame) * element
                           : AffineExpr();
    reference.strides.clear();
    for (OpFoldResult stride : cast.getMixedStrides())
      reference.strides.push_back(values.evaluate(stride, frame) * std::max<int64_t>(element, 1));
  } else if (isa<memref::CastOp, memref::MemorySpaceCastOp, memref::AssumeAlignmentOp>(view)) {
    if (!type)
      reference.strides.clear();
  } else if (isa<memref::ExpandShapeOp, memref::CollapseShapeOp, memref::TransposeOp>(view)) {
    reference.strides = type ? getStrides(type, memref, frame) : SmallVector<AffineExpr, 4>();
  } else {
    reference.offset = {};
    reference.strides.clear();
  }
}

//===- InPlace.cpp - Whether a kernel may write over its operand ----------===//

#include "weir/Analysis/InPlace.h"

#include "dialects/Schedule/Schedule.h"
#include "mlir/Dialect/NVGPU/IR/NVGPUDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Interfaces/LoopLikeInterface.h"

using namespace mlir;
using namespace weir;

using Invocations = Instances::Invocations;
using Trip = Instances::Trip;

namespace {
/// The innermost block that holds two instructions.
struct CommonBlock {
  Block *block = nullptr;                        ///< null if there is none
  Operation *first = nullptr, *second = nullptr; ///< operations in it that hold them
};
} // namespace

/// Returns the outermost call that leads to `access` and not to `other`, or else the instruction.
static Operation *getDiverging(const MemoryAccess &access, const MemoryAccess &other) {
  size_t shared = 0;
  while (shared < access.calls.size() && shared < other.calls.size() &&
         access.calls[shared] == other.calls[shared])
    ++shared;
  return shared < access.calls.size() ? access.calls[shared] : access.op;
}

static CommonBlock getCommonBlock(const MemoryAccess &first, const MemoryAccess &second) {
  Operation *a = getDiverging(first, second), *b = getDiverging(second, first);
  for (Block *block = a->getBlock(); block;
       block = block->getParentOp() ? block->getParentOp()->getBlock() : nullptr)
    if (Operation *holder = block->findAncestorOpInBlock(*b))
      return {block, block->findAncestorOpInBlock(*a), holder};
  return {};
}

/// Whether every execution of the read comes before that of the write in one trip of the loops
/// around both.
static bool comesFirst(const MemoryAccess &read, const MemoryAccess &write) {
  CommonBlock at = getCommonBlock(read, write);
  if (!at.block)
    return false;
  if (at.first == at.second) // two branches of one op, of which one is taken
    return isa<scf::IfOp>(at.first);
  return at.first->isBeforeInBlock(at.second);
}

/// Whether a barrier stands between the two in each trip of the loops around both. All invocations
/// come to a barrier, since the kernel would hang otherwise.
static bool isSeparated(const MemoryAccess &read, const MemoryAccess &write) {
  CommonBlock at = getCommonBlock(read, write);
  if (!at.block || at.first == at.second || !at.first->isBeforeInBlock(at.second))
    return false;
  return std::any_of(at.first->getIterator(), at.second->getIterator(),
                     [](Operation &op) { return isa<gpu::BarrierOp>(op); });
}

/// Whether an op for which `isIt` holds stands behind `begin` in a block, or at its begin if that
/// is null, and before `end`.
template <typename Range>
static bool standsBetween(Block &block, Operation *begin, Operation *end, Range isIt) {
  Block::iterator first = begin ? std::next(begin->getIterator()) : block.begin();
  Block::iterator last = end ? end->getIterator() : block.end();
  return std::any_of(first, last, isIt);
}

/// Whether the copies that an invocation began before `from`, and closed groups of, are waited for
/// on every way from there to the write: behind `from` in `block`, or from the block's begin on if
/// that is null. Ops that hold the write are entered at the begin of its block.
static bool isWaitOnWay(Block *block, Operation *from, Operation *write) {
  auto isWait = [](Operation &op) {
    auto wait = dyn_cast<nvgpu::DeviceAsyncWaitOp>(op);
    return wait && wait.getNumGroups().value_or(0) == 0;
  };
  for (Operation *op = write; op; op = op->getParentOp()) {
    const bool isOutermost = op->getBlock() == block;
    if (standsBetween(*op->getBlock(), isOutermost ? from : nullptr, op, isWait))
      return true;
    if (isOutermost)
      return false;
  }
  return false;
}

/// Whether a copy is in a group that is closed behind it in its trip of the loops around it and the
/// write, before the op that holds the write if that is behind the copy.
static bool isGroupClosed(const CommonBlock &at, Operation *copy, bool writeIsBehind) {
  auto closes = [](Operation &op) { return isa<nvgpu::DeviceAsyncCreateGroupOp>(op); };
  for (Operation *op = copy; op; op = op->getParentOp()) {
    const bool isOutermost = op->getBlock() == at.block;
    if (standsBetween(*op->getBlock(), op, isOutermost && writeIsBehind ? at.second : nullptr,
                      closes))
      return true;
    if (isOutermost)
      return false;
  }
  return false;
}

/// Whether the write may come before a copy has read a common byte, though behind the begin of the
/// copy: a copy reads until it is waited for.
static bool mayOvertake(const AccessMaps &maps, const MemoryAccess &copy, const MemoryAccess &write,
                        int64_t shift) {
  auto meets = [&](ArrayRef<Trip> trips) {
    Instances instances;
    instances.invocations = Invocations::Same;
    instances.trips.assign(trips.begin(), trips.end());
    return maps.compare(copy, write, instances, shift) != Sharing::Disjoint;
  };
  CommonBlock at = getCommonBlock(copy, write);
  if (!at.block || !copy.calls.empty() || !write.calls.empty())
    return meets({});
  // In one trip of all loops around both.
  const unsigned common = maps.countCommonLoops(copy, write);
  const bool isBehind = comesFirst(copy, write);
  const bool isOrdered = isBehind && at.first != at.second && isGroupClosed(at, copy.op, true) &&
                         isWaitOnWay(at.block, at.first, write.op);
  if (isBehind && !isOrdered && meets(SmallVector<Trip>(common, Trip::Same)))
    return true;
  // In a later trip, whose begin is on the way.
  Operation *loop = at.block->getParentOp();
  while (loop && !isa<LoopLikeOpInterface>(loop) && !isa<FunctionOpInterface>(loop))
    loop = loop->getParentOp();
  auto isLater = [&] {
    SmallVector<Trip> trips;
    for (unsigned i = 0; i < common; ++i) {
      trips.push_back(Trip::Later);
      if (meets(trips))
        return true;
      trips.back() = Trip::Same;
    }
    return false;
  };
  if (common == 0)
    return false;
  auto body = dyn_cast_or_null<scf::ForOp>(loop);
  return !(body && isGroupClosed(at, copy.op, false) &&
           isWaitOnWay(body.getBody(), nullptr, write.op)) &&
         isLater();
}

/// Whether the write may come before the read on a common byte.
static bool mayComeLate(const AccessMaps &maps, const MemoryAccess &read, const MemoryAccess &write,
                        int64_t shift) {
  auto meets = [&](Invocations invocations, ArrayRef<Trip> trips, bool writeFirst) {
    Instances instances;
    instances.invocations = invocations;
    instances.trips.assign(trips.begin(), trips.end());
    Sharing sharing = writeFirst ? maps.compare(write, read, instances, -shift)
                                 : maps.compare(read, write, instances, shift);
    return sharing != Sharing::Disjoint;
  };
  // Nothing orders workgroups.
  if (meets(Invocations::DifferentWorkgroup, {}, false))
    return true;
  unsigned common = maps.countCommonLoops(read, write);
  bool separated = !read.late && isSeparated(read, write);
  if (!separated && meets(Invocations::SameWorkgroup, {}, false))
    return true;
  for (Invocations invocations : {Invocations::Same, Invocations::SameWorkgroup}) {
    if (invocations == Invocations::SameWorkgroup && !separated)
      continue; // they don't meet at all
    // The write is in an earlier trip than the read.
    SmallVector<Trip> trips;
    for (unsigned i = 0; i < common; ++i) {
      trips.push_back(Trip::Later);
      if (meets(invocations, trips, true))
        return true;
      trips.back() = Trip::Same;
    }
    // Both are in one trip.
    if (!comesFirst(read, write) && meets(invocations, trips, true))
      return true;
  }
  return false;
}

InPlaceProof weir::proveInPlace(const AccessMaps &maps, gpu::GPUFuncOp kernel, unsigned source,
                                unsigned target, int64_t shift) {
  InPlaceProof proof;
  Value from = kernel.getArgument(source), to = kernel.getArgument(target);
  SmallVector<const MemoryAccess *> reads, writes;
  for (const MemoryAccess &access : maps.getAccesses()) {
    if (!access.root)
      return proof; // it may be either
    if (access.root == from) {
      if (access.writes)
        return proof;
      reads.push_back(&access);
    } else if (access.root == to && access.writes) {
      if (access.atomic)
        return proof;
      writes.push_back(&access);
    }
  }
  for (const MemoryAccess *read : reads)
    for (const MemoryAccess *write : writes) {
      // An access to unknown bytes may be to any.
      if (!read->begin || !write->begin || mayComeLate(maps, *read, *write, shift) ||
          (read->late && mayOvertake(maps, *read, *write, shift))) {
        proof.read = read;
        proof.write = write;
        return proof;
      }
    }
  proof.holds = !writes.empty();
  return proof;
}

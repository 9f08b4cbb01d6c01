//===- Hazards.h - Which dispatches must not overlap ------------*- C++ -*-===//

#ifndef WEIR_ORDER_HAZARDS_H
#define WEIR_ORDER_HAZARDS_H

#include "weir/Artifact/Hazard.h"
#include "weir/Order/ShortVector.h"
#include "weir/Order/StridedBytes.h"

#include <cstdint>
#include <vector>

namespace weir {

/// The use that a dispatch makes of bytes of one allocation through one operand.
struct OperandAccess {
  int64_t operand = 0;
  int64_t allocation = 0; ///< a number that stands for the allocation
  ByteRange range;        ///< never empty; [0, 2^63 - 1) when it is not known
  bool reads = false;
  bool writes = false;
  /// The bytes of `range` as an index into CommandAccesses::strided; -1: all.
  int64_t strided = -1;
};

using DispatchAccesses = ShortVector<OperandAccess, 2>;

/// A command list as the functions below see it.
struct CommandAccesses {
  std::vector<DispatchAccesses> dispatches;
  /// For each allocation the others that may share bytes with it.
  std::vector<std::vector<int64_t>> mayShare;
  /// In canonical form, each once.
  std::vector<StridedBytes> strided;

  /// Whether two accesses may share bytes.
  bool mayOverlap(const OperandAccess &first, const OperandAccess &second) const;
};

/// Bytes for those of an allocation: of another allocation, `shift` bytes further on.
struct Spot {
  int64_t allocation = 0;
  int64_t shift = 0;
};

/// Puts each access into the spot of its allocation.
void moveAccesses(CommandAccesses &accesses, const std::vector<Spot> &spots);

/// Returns the same with dispatch `order[i]` in place i.
CommandAccesses permute(const CommandAccesses &accesses, const std::vector<int64_t> &order);

/// Returns the direct hazards, sorted by `to`, then kind, `from` and operands.
///
/// Direct: no third dispatch writes the bytes between the two. Every other
/// hazard follows from a chain of direct ones, so what orders these orders all.
/// Where views are strided some that are not direct are among them.
/// Bytes that a dispatch shares among its own operands are the kernel's
/// business.
/// Cost: linear in operands while ranges of an allocation nest or repeat; a
/// read of a range that others cut in n pieces costs n, and so does an access
/// among n different strided views.
std::vector<Hazard> findHazards(const CommandAccesses &accesses);

/// Returns the wave of each dispatch: the one before's, or the next where the
/// dispatch has a hazard with that wave. Waves never decrease in recorded
/// order: only then does "live in waves 2 to 3" say when in that order.
std::vector<int64_t> getWaves(int64_t dispatches, const std::vector<Hazard> &hazards);

struct PlannedBarrier {
  int64_t before = 0;          ///< the dispatch that it is recorded just before, on its queue
  std::vector<Hazard> hazards; ///< hazards that it serves; the first forced it
};

struct PlannedSignal {
  int64_t after = 0;           ///< the dispatch that it is recorded just after, on its queue
  std::vector<Hazard> hazards; ///< hazards that it serves
};

struct PlannedWait {
  int64_t before = 0; ///< the dispatch that it is recorded just before, on its queue
  int64_t signal = 0; ///< index into PlannedOrder::signals
};

/// Each list in recorded order; waits stand before the barrier of their place.
struct PlannedOrder {
  std::vector<PlannedBarrier> barriers;
  std::vector<PlannedSignal> signals;
  std::vector<PlannedWait> waits;
};

/// Returns what orders all `hazards` (sorted as above), where dispatch i is for
/// queue `queues[i]`.
///
/// Hazards between queues: a dispatch waits for the first signal behind the
/// last dispatch that it must come after; one is made where there is none.
/// Hazards inside one: the fewest barriers that separate those that no wait
/// orders. The pairs that forced a queue's barriers are disjoint, hence fewer
/// cannot do. Each barrier or signal serves the hazards for which it is the
/// first one behind `from` on its queue, so a write becomes visible once.
/// Cost: linear in hazards times queues.
PlannedOrder planOrder(const std::vector<Hazard> &hazards, const std::vector<int64_t> &queues);

} // namespace weir

#endif // WEIR_ORDER_HAZARDS_H

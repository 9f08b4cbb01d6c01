//===- Races.h - Races between invocations of a kernel ----------*- C++ -*-===//
//
// Proves the order of accesses inside one dispatch, from address maps. Two executions by one
// invocation are in program order; two by invocations of one workgroup are ordered if a barrier
// between them orders their memory; others are not ordered. `Unknown` is always a sound answer;
// the cost is bounded.
//
//===----------------------------------------------------------------------===//

#ifndef WEIR_CODEPROOFS_RACES_H
#define WEIR_CODEPROOFS_RACES_H

#include "weir/CodeProofs/AddressMap.h"

namespace weir::spv {

/// The answer for all pairs of accesses; unless it is `Yes`, with a pair that it fails for, if
/// known.
struct PairAnswer {
  Answer answer = Answer::Unknown;
  const MemoryAccess *first = nullptr, *second = nullptr;
  int64_t byte = -1; ///< `No`: a byte that both touch
};

/// Whether operand `target` may be written over the bytes of operand `source`: each read of a
/// byte of `source` is ordered before the writes of that byte of `target`. In the answer the
/// first access is the read.
PairAnswer mayOverwrite(const AddressMap &map, uint32_t source, uint32_t target);

/// Whether no invocations race for one binding, or for one variable of workgroup memory: any
/// two executions that touch a common byte, at least one writing and not both atomic, are
/// ordered.
PairAnswer isFreeOfRaces(const AddressMap &map, MemoryAccess::Root root, uint32_t binding);

/// Whether in each trip of the loops around a barrier either all invocations of a workgroup
/// reach it, or none.
Answer isUniform(const AddressMap &map, const BarrierSite &barrier);

/// Whether in each trip of the loops around an instruction the lanes of a subgroup that reach it
/// are those that its mask names, or none.
Answer doLanesMeet(const AddressMap &map, const LaneSite &site);

} // namespace weir::spv

#endif // WEIR_CODEPROOFS_RACES_H

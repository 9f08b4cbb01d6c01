//===- Races.h - What invocations do to each other's bytes ------*- C++ -*-===//
//
// Answers from address maps. Two executions by one invocation are ordered as its
// instructions are; two by invocations of one workgroup where a barrier that orders
// their memory is between them; others are not. `Unknown` is always right; the work is
// bounded.
//
//===----------------------------------------------------------------------===//

#ifndef WEIR_CODEPROOFS_RACES_H
#define WEIR_CODEPROOFS_RACES_H

#include "weir/CodeProofs/AddressMap.h"

namespace weir::spv {

/// What is known of all pairs of executions of two accesses, and of two accesses where
/// it isn't `Yes`, if there are two.
struct PairAnswer {
  Answer answer = Answer::Unknown;
  const MemoryAccess *first = nullptr, *second = nullptr;
  int64_t byte = -1; ///< that both touch, when it is `No`
};

/// Whether `target` may be written over the bytes of `source`: no invocation reads a
/// byte of `source` after one has written that byte of `target`, unless their order
/// puts the read first. The first access is the read.
PairAnswer mayOverwrite(const AddressMap &map, uint32_t source, uint32_t target);

/// Whether all that invocations do to one binding, or to one variable of workgroup
/// memory, is ordered: of two executions that touch a byte, one of them writing, not
/// both atomic.
PairAnswer isFreeOfRaces(const AddressMap &map, MemoryAccess::Root root, uint32_t binding);

/// Whether in each trip of the loops around a barrier all invocations of a workgroup
/// come to it, or none.
Answer isUniform(const AddressMap &map, const BarrierPlace &barrier);

} // namespace weir::spv

#endif // WEIR_CODEPROOFS_RACES_H

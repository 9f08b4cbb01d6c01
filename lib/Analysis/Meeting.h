//===- Meeting.h - Whether two executions can touch one byte -----*- C++ -*-===//
//
// The parts of AccessMaps::compare. Two executions of two instructions are two points: a value of
// each variable in the first, and one in the second.
//
//   1. getDifferences returns how far the values of a variable can be apart, by how the two
//      executions relate: an id of one invocation is the same in both, a trip of a loop is one
//      later.
//   2. getCases returns the ways in which two invocations can be different ones: the first id that
//      differs is less or greater.
//   3. mayMeet decides each case: whether there are two such points at which both execute and
//      touch a common byte. Cheap questions come first: whether the addresses differ by a
//      constant, are apart by their ranges, are apart by their digits (Distance.h). Then points
//      are searched for (IntegerSystem.h), in a limited number of steps.
//
//===----------------------------------------------------------------------===//

#ifndef WEIR_LIB_ANALYSIS_MEETING_H
#define WEIR_LIB_ANALYSIS_MEETING_H

#include "Distance.h"

#include "llvm/ADT/STLFunctionalExtras.h"
#include "llvm/ADT/SmallBitVector.h"

namespace weir {

class KnownAnswers;

/// Returns the variables of the address and the conditions of `access`, and those of what holds
/// wherever one of these occurs. One bit per variable.
llvm::SmallBitVector findVariables(const MemoryAccess &access,
                                   llvm::ArrayRef<MapVariable> variables);

/// Returns, by variable, how far its value in the second execution is from the one in the first.
/// Variables that may differ by anything are left out. `isUniform` returns whether all invocations
/// of a workgroup agree on a value; it may be null.
Differences getDifferences(const MemoryAccess &first, const MemoryAccess &second,
                           const Instances &instances, llvm::ArrayRef<MapVariable> variables,
                           llvm::function_ref<bool(mlir::Value)> isUniform);

/// Whether the variable tells invocations or workgroups apart.
bool isId(const MapVariable &variable);

/// Ids that tell two invocations apart.
struct TellingIds {
  llvm::SmallVector<unsigned> ids; ///< in some order
  /// Whether they may differ only in an id that neither access is made of.
  bool orElsewhere = false;
};

/// Returns the ids in `used` by which two invocations that relate as in `invocations` differ.
TellingIds getTellingIds(const llvm::SmallBitVector &used, llvm::ArrayRef<MapVariable> variables,
                         const LaunchSizes &sizes, Instances::Invocations invocations);

/// Returns the ways in which two invocations can differ, each as `differences` and more. Together
/// they are all ways, and no two have a pair of points in common.
std::vector<Differences> getCases(const Differences &differences, const TellingIds &telling);

/// The answer to whether two executions can touch a common byte.
struct Meeting {
  using Answer = IntegerSystem::Answer;
  Answer answer = Answer::Unknown;
  /// Whether the question had all conditions of the two; conditions that are not affine are left
  /// out.
  bool isExact = true;
};

/// Searches for two points that differ by `differences`, at which both accesses execute and touch a
/// common byte. With `shift` the roots are assumed to be one allocation, and it is added to the
/// second address. Accesses without addresses or indices in a common view may be anywhere.
/// `answers` may be null.
Meeting mayMeet(const MemoryAccess &first, const MemoryAccess &second, std::optional<int64_t> shift,
                const Differences &differences, llvm::ArrayRef<MapVariable> variables,
                const KnownAnswers *answers);

} // namespace weir

#endif // WEIR_LIB_ANALYSIS_MEETING_H

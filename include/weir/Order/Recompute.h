//===- Recompute.h - Values to compute again for a lower peak ---*- C++ -*-===//
//
// The order of the commands is given. Each is a wave of its own here, so a value lives from the
// command that makes it to its last reader.
//
//===----------------------------------------------------------------------===//

#ifndef WEIR_ORDER_RECOMPUTE_H
#define WEIR_ORDER_RECOMPUTE_H

#include "weir/Order/Problem.h"

#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

namespace weir {

/// A command without operands and bytes: the allocations that it reads and writes, each once.
struct Computation {
  std::vector<int64_t> reads = {}, writes = {};
  /// Pairs of a read allocation and one that may be written over it by the last reader. Both have
  /// the same number of bytes, if the first is not given.
  std::vector<std::pair<int64_t, int64_t>> inPlace = {};
  double work = 0;        ///< its cost, in any unit
  bool mayRepeat = false; ///< as of a command
  /// The command or recipe whose kernel it runs, as `problem` numbered them first: commands, then
  /// recipes.
  int64_t origin = 0;
};

/// An allocation, as far as its bytes can be saved.
struct Buffered {
  int64_t bytes = 0;    ///< 0 of what is given
  int64_t value = 0;    ///< number of the value it holds; equal for equal values
  bool isGiven = false; ///< an argument or a constant, which is there from the start
  bool isResult = false;
  bool isDonated = false; ///< an argument that a result may take the bytes of
  bool mayCopy = false;   ///< its readers can be made to read another allocation
};

/// The part of an `OrderProblem` that steps are chosen from.
struct RecomputeProblem {
  std::vector<Computation> commands;
  /// Further ways to make values: each makes the one that is its first write.
  std::vector<Computation> recipes;
  std::vector<Buffered> allocations;
};

/// Returns an allocation of the function for the same value.
inline Buffered getCopy(const Buffered &buffer) {
  return {buffer.bytes, buffer.value, false, false, false, true};
}

/// Returns the problem's commands, recipes and allocations under the same numbers.
RecomputeProblem summarize(const OrderProblem &problem);

/// Returns the problem with the commands of `after`, which steps made of its `before`, its summary.
/// Repeated commands keep their id.
OrderProblem carryOut(const OrderProblem &problem, const RecomputeProblem &before,
                      const RecomputeProblem &after);

/// When an allocation is used, by numbers of commands, and who gets its bytes.
struct BufferLife {
  int64_t first = -1, last = -1; ///< -1: nobody uses it
  int64_t taker = -1;            ///< gets its bytes at the last command; -1: none
  bool inArena = false;
};

/// Bytes that are live, command by command.
struct LiveProfile {
  std::vector<int64_t> live; ///< bytes, by command
  int64_t peak = 0;
  int64_t atPeak = 0;            ///< commands with that many
  std::vector<BufferLife> lives; ///< by allocation

  /// Returns the allocations in the order of their first commands.
  std::vector<int64_t> orderByFirstUse() const;
};

/// Returns the turn, 0 to 2, in which the target of a pair gets the source's bytes, at a command
/// with several pairs: results first, and those of donated arguments before all.
inline int getTurn(const Buffered &source, const Buffered &target) {
  return !target.isResult ? 2 : !source.isDonated;
}

/// Returns the profile. Values that pass their bytes on in place count once, and not at all if
/// these are the bytes of a result or a donated argument.
LiveProfile getLiveProfile(const RecomputeProblem &problem);

/// A command or recipe, carried out once more.
struct Repetition {
  bool isRecipe = false;
  int64_t number = 0;          ///< of `commands` or of `recipes`
  std::vector<int64_t> reads;  ///< allocations that it reads in place of its own reads
  std::vector<int64_t> writes; ///< new allocations, in place of its own writes
};

/// Repetitions that are recorded one after the other just before a command; from that one on
/// readers of `from` read `to`, a new allocation. New allocations are numbered from the end of
/// the problem's, in the order in which they are written.
struct Recomputation {
  int64_t before = 0;
  std::vector<Repetition> repetitions;
  std::vector<std::pair<int64_t, int64_t>> replaced; ///< (from, to)
};

/// Removes the commands that may repeat and whose writes nobody reads. Returns their number.
int64_t dropUnread(RecomputeProblem &problem);

/// Carries out a step, then does `dropUnread`, whose answer it returns.
int64_t recompute(RecomputeProblem &problem, const Recomputation &step);

/// The effect of a step: on the live bytes as of `LiveProfile`, and the work that it adds.
struct StepEffect {
  int64_t peak = 0, atPeak = 0;
  double work = 0;
};

/// Returns what a step does to the problem of this profile, equal to what `recompute` and
/// `getLiveProfile` say. Each command is read or may not repeat.
/// Cost: commands, as for a choice.
StepEffect getEffect(const RecomputeProblem &problem, const LiveProfile &profile,
                     const Recomputation &step);

/// Returns the step that lowers the peak, or the number of commands at it, and saves the most
/// bytes at the first of these for its work; nothing if there is none. `profile` is the problem's.
///
/// A value may be made again if it is not used at the peak, but before and after, by the command
/// that made it or by a recipe. The values that these read must still hold the same: they are kept
/// alive, or made again, too. A donated argument is not: by then a result may have its bytes.
/// Cost: commands; and for each value idle at the peak and each way to make it, the allocations
/// that this changes, times the logarithm of commands.
/// Source: greedy by bytes for work, as rematerialization is commonly done (Kirisame et al.,
/// "Dynamic Tensor Rematerialization", ICLR 2021), but at the peak of a known list of commands.
std::optional<Recomputation> chooseRecomputation(const RecomputeProblem &problem,
                                                 const LiveProfile &profile);

} // namespace weir

#endif // WEIR_ORDER_RECOMPUTE_H

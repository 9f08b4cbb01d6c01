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
  std::vector<int64_t> reads, writes;
  /// Pairs of a read allocation and one that may be written over it by the last reader.
  std::vector<std::pair<int64_t, int64_t>> inPlace;
  double work = 0;        ///< its cost, in any unit
  bool mayRepeat = false; ///< as of a command
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

/// The part of an `OrderProblem` that steps are chosen from. Dozens are tried on copies of it
/// before one is taken.
struct RecomputeProblem {
  std::vector<Computation> commands;
  /// Further ways to make values: each makes the one that is its first write.
  std::vector<Computation> recipes;
  std::vector<Buffered> allocations;
};

/// Returns the problem's commands, recipes and allocations under the same numbers.
RecomputeProblem summarize(const OrderProblem &problem);

/// Bytes that are live, command by command.
struct LiveProfile {
  std::vector<int64_t> live; ///< bytes, by command
  int64_t peak = 0;
  int64_t atPeak = 0;                             ///< commands with that many
  std::vector<std::pair<int64_t, int64_t>> lives; ///< first and last command, by allocation; -1
  std::vector<bool> inArena;                      ///< by allocation

  /// Returns the allocations in the order of their first commands.
  std::vector<int64_t> orderByFirstUse() const;
};

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

/// Returns the step that lowers the peak, or the number of commands at it, and saves the most
/// bytes at the first of these for its work; nothing if there is none.
///
/// A value may be made again if it is not used at the peak, but before and after, by the command
/// that made it or by a recipe. The values that these read must still hold the same: they are kept
/// alive, or made again, too. A donated argument is not: by then a result may have its bytes.
/// Cost: values idle at the peak, times their recipes, times commands.
std::optional<Recomputation> chooseRecomputation(const RecomputeProblem &problem);

/// Carries out a step: commands whose writes nobody reads any more are gone. Returns the new
/// number of each command of `problem`, -1 if it is gone.
std::vector<int64_t> recompute(RecomputeProblem &problem, const Recomputation &step);

/// Carries out a step that was chosen from the problem's `summary`. Repeated commands keep their
/// id.
void recompute(OrderProblem &problem, RecomputeProblem summary, const Recomputation &step);

} // namespace weir

#endif // WEIR_ORDER_RECOMPUTE_H

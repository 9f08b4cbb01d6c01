//===- Recompute.h - What to compute again for a lower peak -----*- C++ -*-===//
//
// Plain data in and out. The order of the commands is given; each is a wave of
// its own here, so a value lives from the command that makes it to its last
// reader.
//
//===----------------------------------------------------------------------===//

#ifndef WEIR_ORDER_RECOMPUTE_H
#define WEIR_ORDER_RECOMPUTE_H

#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

namespace weir {

/// What a command reads and writes, by numbers of allocations, each once.
struct Computation {
  std::vector<int64_t> reads, writes;
  /// Pairs of what is read and what may be written over it, where the reader is the
  /// last one.
  std::vector<std::pair<int64_t, int64_t>> inPlace;
  double work = 0; ///< what it costs, in any unit
  /// Run again it writes the same bits: it reads nothing that it writes, and writes
  /// all of what it writes.
  bool mayRepeat = false;
};

struct Buffered {
  int64_t bytes = 0;    ///< 0 of what is given
  int64_t value = 0;    ///< which value it holds; that of another where it holds the same
  bool isGiven = false; ///< an argument or a constant, which is there from the start
  bool isResult = false;
  bool isDonated = false; ///< an argument that a result may take the bytes of
  bool mayCopy = false;   ///< its readers can be made to read another allocation
};

struct RecomputeProblem {
  std::vector<Computation> commands;
  /// Further ways to make values: each makes the one that is its first write.
  std::vector<Computation> recipes;
  std::vector<Buffered> allocations;
};

/// What is live in which command.
struct LiveProfile {
  std::vector<int64_t> live; ///< bytes, by command
  int64_t peak = 0;
  int64_t atPeak = 0;                             ///< commands with that many
  std::vector<std::pair<int64_t, int64_t>> lives; ///< first and last command, by allocation; -1
  std::vector<bool> inArena;                      ///< by allocation
};

/// Values that pass their bytes on in place count once, and not at all where these
/// are a result's or a donated argument's.
LiveProfile getLiveProfile(const RecomputeProblem &problem);

/// One command, once more.
struct Repetition {
  bool isRecipe = false;
  int64_t number = 0;          ///< of `commands` or of `recipes`
  std::vector<int64_t> reads;  ///< what it reads in place of its own reads
  std::vector<int64_t> writes; ///< new allocations, in place of its own writes
};

/// Repetitions that are recorded one after the other just before a command; whoever
/// reads `from` from that one on reads `to`, a new allocation. New allocations are
/// numbered from the end of the problem's, in the order in which they are written.
struct Recomputation {
  int64_t before = 0;
  std::vector<Repetition> repetitions;
  std::vector<std::pair<int64_t, int64_t>> replaced; ///< (from, to)
};

/// Returns what lowers the peak, or has fewer commands at it, and saves the most
/// bytes at the first of these for its work; nothing if nothing does.
///
/// A value may be made again where it is not used at the peak, but before and
/// after, by the command that made it or a recipe. What that reads must still hold
/// what it read then: it is kept alive for it, or made again, too; a donated
/// argument is not, for a result may have its bytes by then.
/// Cost: values idle at the peak, times their recipes, times commands.
std::optional<Recomputation> chooseRecomputation(const RecomputeProblem &problem);

/// Carries it out: commands whose writes nobody reads any more are gone. Returns
/// the number of each command of `problem` behind that, -1 of those that are gone.
std::vector<int64_t> recompute(RecomputeProblem &problem, const Recomputation &step);

} // namespace weir

#endif // WEIR_ORDER_RECOMPUTE_H

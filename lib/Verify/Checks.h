//===- Checks.h - The claims of a plan, one function each -------*- C++ -*-===//
//
// A check returns a summary of its proof for people, or throws a counterexample. The effects of
// kernels on operands are taken from the plan; separate checks prove that the code has these
// effects.
//
//===----------------------------------------------------------------------===//

#ifndef WEIR_LIB_VERIFY_CHECKS_H
#define WEIR_LIB_VERIFY_CHECKS_H

#include "Code.h"

#include "weir/Artifact/ByteMap.h"

#include <map>
#include <string>
#include <vector>

namespace weir::verifier {

/// Thrown when a claim does not hold, with the first violation.
struct Counterexample {
  std::string text;
};

/// One operand of one dispatch that accesses bytes.
struct Use {
  size_t dispatch = 0, operand = 0;
  PlanOperand view;
  bool reads = false, writes = false, coversAll = false;
  std::optional<ByteSlice> slice = {};

  int64_t begin() const { return view.offset; }
  int64_t end() const { return view.offset + view.bytes; }
  /// Whether the bytes that hold the value after a write are known from the operand alone.
  bool isSure() const { return coversAll || (slice && view.before < 0); }
};

/// Vector clocks of a plan's commands: the number of commands of each queue that have ended
/// when a command begins. Needs: queues, signals and waits in range.
class Clocks {
public:
  /// Computes the clocks. Without `barriers`, only signals and waits order commands.
  Clocks(const Plan &plan, bool barriers);

  /// Whether command `from` ends before command `to` begins; indices into all commands.
  bool isOrdered(size_t from, size_t to) const {
    const Moment &first = moments[from], &second = moments[to];
    return pasts[second.past][first.queue] > first.number;
  }

private:
  struct Moment {
    size_t queue = 0, number = 0;
    size_t past = 0;
  };
  std::vector<Moment> moments;
  std::vector<std::vector<size_t>> pasts; ///< each with one number per queue
};

/// A kernel of the plan and one of its grids.
struct Launch {
  const Kernel &kernel;
  const KernelCode &code;
  size_t dispatch; ///< first dispatch that runs it
};

/// A plan with numbered dispatches and the accesses of their operands. All checks but
/// `checkRanges` need that `checkRanges` has succeeded.
struct Subject {
  const Artifact &artifact;
  const Plan &plan;
  const EntrySpec &entry;
  const Profile &profile;
  std::vector<const Command *> dispatches;
  std::vector<Use> uses;        ///< by dispatch, then by operand
  std::vector<size_t> firstUse; ///< by dispatch, and the end
  std::vector<size_t> place;    ///< by dispatch: index among the commands
  std::vector<Launch> launches;
  std::vector<size_t> launchOf;                  ///< by dispatch: index into `launches`
  std::vector<const spv::Validity *> validities; ///< by kernel; null: no SPIR-V
  /// Of a plan whose loops are written out: by dispatch its number in the plan as stated.
  std::vector<size_t> stated;

  /// Numbers the dispatches. `spreadEffects` fills in the rest.
  Subject(const Artifact &artifact, const Plan &plan, const EntrySpec &entry,
          const Profile &profile);
  void spreadEffects();
  /// Reads the code of all kernels that the plan runs. Needs: `checkRanges`.
  void readCode(CodeCache &cache);

  const Kernel &getKernel(size_t dispatch) const;
  /// Returns "dispatch 3 (@add, mlp.mlir:7:3)".
  std::string describe(size_t dispatch) const;
  /// Returns "bytes [0, 256) of the arena".
  std::string describe(int64_t allocation, int64_t begin, int64_t end) const;
};

/// Checks that indices and views are in range, allocations have the sizes of their tensors, and
/// views have the bytes that kernels bind. All other checks rely on it.
std::string checkRanges(const Subject &subject);
/// Checks that offsets have the alignment that kernels, device and slots need.
std::string checkAlignment(const Subject &subject);
/// Checks that grids, workgroups and bindings are within the profile's limits.
std::string checkLimits(const Subject &subject);
/// Returns the first and the last wave of a loop's dispatches, or nothing where it has none.
std::optional<std::pair<int64_t, int64_t>> getWaves(const Subject &subject, const Loop &loop);

/// Checks that slots which share bytes share no wave, that each arena view is in one live slot, and
/// that slots which live across an edge of a loop live throughout it.
std::string checkSlots(const Subject &subject);
/// Checks that each read finds the value that its operand names, written before and not
/// overwritten since, and that results hold their values at the end.
std::string checkContents(const Subject &subject);
/// Checks that constants and arguments that are not donated are not written, and that a result
/// reuses at most one donated argument, of its size.
std::string checkReadOnly(const Subject &subject);

/// Checks that a barrier, or a signal and its wait, stands between any two dispatches that
/// conflict and makes the bytes that the first wrote visible.
std::string checkOrder(const Subject &subject);
/// Checks that operands of one dispatch share bytes only as a read and a write of the same
/// range that the kernel permits.
std::string checkInPlace(const Subject &subject);
/// Checks that dispatches of one wave do not conflict, and that a loop shares no wave with what is
/// outside of it.
std::string checkWaves(const Subject &subject);
/// Checks that parts of results share no byte, and that each is last written in its wave.
std::string checkParts(const Subject &subject);
/// Checks that the stated hazards are real, and that no smaller number of barriers suffices.
std::string checkBarriers(const Subject &subject);

/// Facts that the plan states about code.
struct Facts {
  size_t proved = 0;
  std::vector<std::string> taken; ///< one description per unproved fact

  void add(const Facts &other) {
    proved += other.proved;
    taken.insert(taken.end(), other.taken.begin(), other.taken.end());
  }
};

/// Checks that Khronos' validator takes the kernels' SPIR-V.
Facts checkValidity(const Subject &subject);
/// Checks that kernels read, write and cover their operands as the stated effects say.
Facts checkEffects(const Subject &subject);
/// Checks that loads and stores stay in the operands' bytes and have the stated alignment.
Facts checkBounds(const Subject &subject);
/// Checks that kernels may overwrite operands as their `in_place` pairs state.
Facts checkPermissions(const Subject &subject);
/// Checks that invocations of a kernel do not race.
Facts checkRaces(const Subject &subject);
/// Checks that all invocations of a workgroup reach each barrier of a kernel equally often.
Facts checkUniformBarriers(const Subject &subject);
/// Checks that no loop of a kernel makes more trips than the device allows.
Facts checkLoops(const Subject &subject);
/// Checks that the hazards that forced barriers are between instructions that touch a common
/// byte.
Facts checkNeeds(const Subject &subject);

/// Returns "1 slot", "2 slots".
std::string count(size_t number, const std::string &noun);

} // namespace weir::verifier

#endif // WEIR_LIB_VERIFY_CHECKS_H

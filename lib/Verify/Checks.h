//===- Checks.h - The claims of a plan, one function each -------*- C++ -*-===//
//
// A check returns how much it proved, for people, or throws a counterexample. What a
// kernel does to its operands is taken from the plan's effects; whether these are what
// the code does is proved by checks of their own.
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

/// Why a claim does not hold: the first place found.
struct Counterexample {
  std::string text;
};

/// One operand of one dispatch that touches bytes.
struct Use {
  size_t dispatch = 0, operand = 0;
  PlanOperand view;
  bool reads = false, writes = false, coversAll = false;
  std::optional<ByteSlice> slice = {};

  int64_t begin() const { return view.offset; }
  int64_t end() const { return view.offset + view.bytes; }
  /// Whether a write says itself which bytes hold its value afterwards.
  bool isSure() const { return coversAll || (slice && view.before < 0); }
};

/// What has ended when a command of the plan begins, by vector clocks: how many
/// of each queue's commands. Needs: queues, signals and waits in range.
class Clocks {
public:
  /// Without `barriers`: what signals and waits order by themselves.
  Clocks(const Plan &plan, bool barriers);

  /// Numbers among all commands.
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
  std::vector<std::vector<size_t>> pasts; ///< each as long as there are queues
};

/// A kernel of the plan on a grid that it runs on.
struct Launch {
  const Kernel &kernel;
  const KernelCode &code;
  size_t dispatch; ///< the first that runs it
};

/// A plan, its dispatches numbered and its effects spread over their views.
/// Only `checkRanges` may be called before `checkRanges` has returned.
struct Subject {
  const Artifact &artifact;
  const Plan &plan;
  const EntrySpec &entry;
  const Profile &profile;
  std::vector<const Command *> dispatches;
  std::vector<Use> uses;        ///< by dispatch, then by operand
  std::vector<size_t> firstUse; ///< of each dispatch, and the end
  std::vector<size_t> place;    ///< of each dispatch among the commands
  std::vector<Launch> launches;
  std::vector<size_t> launchOf; ///< of each dispatch

  /// Numbers the dispatches; `spreadEffects` does the rest.
  Subject(const Artifact &artifact, const Plan &plan, const EntrySpec &entry,
          const Profile &profile);
  void spreadEffects();
  /// Reads the code of all that the plan runs. Needs: `checkRanges`.
  void readCode(CodeCache &cache);

  const Kernel &getKernel(size_t dispatch) const;
  /// "dispatch 3 (@add, mlp.mlir:7:3)".
  std::string describe(size_t dispatch) const;
  /// "bytes [0, 256) of the arena".
  std::string describe(int64_t allocation, int64_t begin, int64_t end) const;
};

/// Indices and views are in range, allocations have the sizes of their tensors,
/// views have the bytes that kernels bind. Everything else relies on it.
std::string checkRanges(const Subject &subject);
/// Offsets suit the kernels' accesses, the device and the slots.
std::string checkAlignment(const Subject &subject);
/// Grids, workgroups and bindings are within the profile.
std::string checkLimits(const Subject &subject);
/// Slots that share bytes share no wave; each arena view is in one live slot.
std::string checkSlots(const Subject &subject);
/// What is read are bytes of the value that the operand names, written before and
/// not overwritten since; results hold their values in the end.
std::string checkContents(const Subject &subject);
/// Arguments that are not donated and constants are not written; a result lies
/// in one donated argument of its size.
std::string checkReadOnly(const Subject &subject);

/// Between any two dispatches that conflict stands a barrier, which makes the
/// bytes visible that the first of them wrote.
std::string checkOrder(const Subject &subject);
/// Operands of one dispatch share bytes only as a read and a write of the same,
/// of which the kernel says that it allows it.
std::string checkInPlace(const Subject &subject);
/// Dispatches of one wave do not conflict.
std::string checkWaves(const Subject &subject);
/// The stated hazards are real, and no list of fewer barriers would do.
std::string checkBarriers(const Subject &subject);

/// Facts that the plan states of code.
struct Facts {
  size_t proved = 0;
  std::vector<std::string> taken; ///< what each is of that is not proved

  void add(const Facts &other) {
    proved += other.proved;
    taken.insert(taken.end(), other.taken.begin(), other.taken.end());
  }
};

/// Kernels read and write what their operands' effects say, and cover what these say.
Facts checkEffects(const Subject &subject);
/// Loads and stores stay in the operands' bytes, and are aligned as these say.
Facts checkBounds(const Subject &subject);
/// Kernels may write over what their `in_place` pairs say.
Facts checkPermissions(const Subject &subject);
/// Invocations of a kernel touch no common byte without an order, and come to barriers
/// together.
Facts checkRaces(const Subject &subject);
/// The hazards that forced barriers are between instructions that touch a common byte.
Facts checkNeeds(const Subject &subject);

/// "1 slot", "2 slots".
std::string count(size_t number, const std::string &noun);

} // namespace weir::verifier

#endif // WEIR_LIB_VERIFY_CHECKS_H

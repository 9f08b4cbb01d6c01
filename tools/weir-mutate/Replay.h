//===- Replay.h - A plan's dispatches, one by one ---------------*- C++ -*-===//

#ifndef WEIR_TOOLS_WEIR_MUTATE_REPLAY_H
#define WEIR_TOOLS_WEIR_MUTATE_REPLAY_H

#include "Judge.h"
#include "Order.h"
#include "weir/Artifact/Loops.h"

#include <algorithm>
#include <optional>

namespace weir::mutate {

inline std::string print(int64_t number) { return std::to_string(number); }

inline bool doesShare(const PlanView &a, const PlanView &b) {
  return a.allocation == b.allocation &&
         std::max(a.offset, b.offset) < std::min(a.offset + a.bytes, b.offset + b.bytes);
}

inline bool doesRead(Access access) { return access == Access::Read || access == Access::Update; }
inline bool doesWrite(Access access) { return access == Access::Write || access == Access::Update; }

/// Adds an interval, merging it with the last. Needs: it begins no earlier than the last one.
void append(Intervals &intervals, int64_t begin, int64_t end);

/// Returns the runs of a slice of an operand that begins at byte `offset`.
Intervals getIntervals(const ByteSlice &slice, int64_t offset);

class Memory;

/// Replays a plan's dispatches in recorded order. Each check returns a witness of an error.
class Replay {
public:
  Replay(Judge &judge, const Artifact &artifact, const Plan &plan,
         const UnrolledPlan *unrolled = nullptr)
      : judge(judge), artifact(artifact), plan(plan), unrolled(unrolled), order(plan),
        entry(*std::find_if(artifact.manifest.entries.begin(), artifact.manifest.entries.end(),
                            [&](const EntrySpec &e) { return e.name == plan.entry; })) {
    for (size_t i = 0; i < plan.commands.size(); ++i)
      if (plan.commands[i].kind == Command::Kind::Dispatch)
        dispatches.push_back(i);
  }

  using Witness = std::optional<std::string>;

  /// Searches for a legal execution with an error, using the effects of the code (`byCode`) or
  /// those stated by the plan.
  Witness replay(bool byCode);
  Witness judgeKernels();
  Witness judgeEffects();
  Witness judgeHazards();
  Witness judgeWaves();
  Witness judgeSlots();
  Witness judgeInPlace();
  Witness judgePermissions();

  size_t pairs = 0, reads = 0;

private:
  struct Use {
    size_t operand;
    const PlanOperand *view;
    Intervals reads, writes; ///< in bytes of the allocation
    Intervals settled;       ///< bytes whose contents the plan states after the dispatch
    bool isSure;             ///< whether all settled bytes are written
  };
  std::vector<Use> getUses(size_t command, bool byCode);
  Witness touch(Memory &memory, size_t command, const Use &use);
  Witness findHeld(std::vector<Memory> &memory, const HeldValue &held);
  bool isAtEdge(size_t command) const;
  bool isBetween(size_t barrier, size_t from, size_t to) const;
  Witness judgeLives(const Loop &loop) const;
  Witness requireOrder(size_t from, size_t to, bool wrote, const PlanView &bytes);
  std::string describe(size_t command) const {
    const Command &dispatch = plan.commands[command];
    const size_t number = size_t(std::lower_bound(dispatches.begin(), dispatches.end(), command) -
                                 dispatches.begin());
    return "dispatch " + print(int64_t(unrolled ? unrolled->dispatches[number] : number)) + " (@" +
           plan.kernels[size_t(dispatch.kernel)].name + ")";
  }
  std::string describe(const PlanView &bytes) const;
  std::string describe(int64_t value) const {
    return value < 0 ? "nothing" : "\"" + plan.values[size_t(value)].name + "\"";
  }
  const KernelOperand *findUse(int64_t dispatch, int64_t operand) const;

  Judge &judge;
  const Artifact &artifact;
  const Plan &plan;
  const UnrolledPlan *unrolled; ///< where `plan` is another one with its loops written out
  Order order;
  const EntrySpec &entry;
  std::vector<size_t> dispatches; ///< indices into the commands
};

} // namespace weir::mutate

#endif // WEIR_TOOLS_WEIR_MUTATE_REPLAY_H

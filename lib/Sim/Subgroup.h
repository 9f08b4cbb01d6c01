//===- Subgroup.h - Invocations that execute together -----------*- C++ -*-===//
//
// The lanes of a subgroup execute a block together. Lanes that branch elsewhere wait until
// their block is the earliest in structured order. Lanes that have left a loop keep their
// values, since steps write only the lanes of the current block.
//
// The lanes of a warp (PTX) need not run in lockstep: the strategy may part them anywhere and
// choose which go on. They meet where an instruction waits for those it names.
//
//===----------------------------------------------------------------------===//

#ifndef WEIR_LIB_SIM_SUBGROUP_H
#define WEIR_LIB_SIM_SUBGROUP_H

#include "Program.h"
#include "Shadow.h"

#include <algorithm>
#include <bit>
#include <memory>
#include <vector>

namespace weir::sim {

class Workgroup;

/// One bit per lane.
using Mask = uint64_t;
inline constexpr uint32_t maxLanes = 64;

class Subgroup {
public:
  enum class State { Ready, AtBarrier, AtPhase, Done };

  explicit Subgroup(const Program &program);

  /// Places lanes at the kernel's begin. `firstInvocation` is counted within the workgroup.
  void start(Workgroup &workgroup, uint32_t number, uint32_t firstInvocation, uint32_t lanes);

  /// Executes at least one step, until `accesses` instructions have accessed memory, or a
  /// barrier or the end is reached.
  void run(uint64_t accesses);

  /// Continues after a barrier, in a phase of the workgroup.
  void passBarrier(uint32_t phase);

  /// Waits for the lanes that `members` names by bits (noRegister: all). Returns whether they are
  /// there, and the current ones; otherwise others run first, and then this step runs again.
  bool gather(Register members, const Meeting *meeting);
  /// Calls a function with each current lane.
  template <typename Lane> void forEachLane(Lane lane) const {
    for (Mask rest = mask; rest; rest &= rest - 1)
      lane(uint32_t(std::countr_zero(rest)));
  }
  void halve();
  /// Waits for a phase of an mbarrier; then this step runs again.
  void waitForPhase() {
    --step;
    stop(State::AtPhase);
  }
  Mask getLiving() const { return all & ~exited; }
  /// Orders the accesses of the current lanes so far before those that follow.
  void orderLanes();
  /// The phase of a lane, and for each lane of the warp, the first one that may not have ended.
  uint32_t getTime(uint32_t lane) const { return times[lane]; }
  uint32_t getLastTime() const { return *std::max_element(times.begin(), times.end()); }
  const uint32_t *getEnded(uint32_t lane) const { return &ended[size_t(lane) * warpLanes]; }

  /// A lane's copies that have not landed: indices among its workgroup's, and the number of groups
  /// that it has made.
  struct Lates {
    std::vector<uint32_t> copies;
    uint32_t groups = 0;
  };
  std::vector<Lates> lates; ///< by lane

  /// A product that reads cells of its workgroup's memory until it has been waited for.
  struct OpenProduct {
    std::vector<uint32_t> cells;
    uint32_t group = 0;
  };
  std::vector<OpenProduct> products;
  uint32_t productGroups = 0;
  bool hasBegunProducts = false; ///< whether no register was written since the last fence

  State state = State::Done;
  uint32_t barrier = 0; ///< the barrier that it waits at: index into the program's barriers

  // For steps.
  template <typename T> T *at(Register value) const {
    return reinterpret_cast<T *>(registers.get() + value);
  }
  bool isActive(uint32_t lane) const { return mask >> lane & 1; }

  const Program &program;
  Workgroup *workgroup = nullptr;
  uint32_t firstInvocation = 0;
  uint32_t width = 0;                      ///< number of lanes of a register
  bool isUniform = false;                  ///< whether all existing lanes are in the current block
  Mask mask = 0;                           ///< lanes in the current block
  Mask all = 0;                            ///< existing lanes
  uint64_t budget = 0;                     ///< number of instructions that may still access memory
  std::vector<unsigned char> privateBytes; ///< lane by lane
  std::vector<unsigned char> privateWritten; ///< by byte: whether it was written
  void stop(State next) {
    state = next;
    budget = 0;
  }

private:
  struct Waiting {
    uint32_t block, step;
    Mask mask;
    Mask members = 0; ///< lanes that it waits for; 0: it can go on
  };

  void endBlock(const CodeBlock &block);
  void follow(const Edge &edge, Mask lanes);
  void choose();
  size_t pick() const;
  bool resume();
  void resetOrder(uint32_t phase);
  void part();
  void giveWay();
  void reportStuck();
  void wait(const Waiting &lanes);
  void go(const Waiting &next);
  void setMask(Mask lanes);

  struct Free {
    void operator()(unsigned char *bytes) const;
  };
  std::unique_ptr<unsigned char[], Free> registers;
  uint32_t block = 0, step = 0, endStep = 0;
  int blocksRun = 0; ///< since lanes that waited for long went on
  Mask exited = 0;
  // For barriers of a warp: the phase of each lane, and what it knows of each of the others.
  std::vector<uint32_t> times, ended;
  int64_t maxTrips = 0;
  int64_t trips = 0;            ///< of all loops, and their ends
  std::vector<Waiting> waiting; ///< lanes that others go before
};

/// Return steps that use more than registers: `number` is an index into the program's accesses,
/// barriers, meetings, matrices, copies, products or tiles.
StepFunction getAccessStep();
StepFunction getBarrierStep();
StepFunction getMeetingStep();
StepFunction getMatrixStep();
StepFunction getCooperativeStep();
StepFunction getCopyStep();
StepFunction getProductStep();
StepFunction getTileStep();
/// Returns a step that makes the lanes that execute it now, as bits.
StepFunction getActiveStep();
/// Returns a step whose `a` is the value, `b` a lane's number or distance, and `c` is 1 for 64
/// bits.
StepFunction getShuffleStep();

} // namespace weir::sim

#endif // WEIR_LIB_SIM_SUBGROUP_H

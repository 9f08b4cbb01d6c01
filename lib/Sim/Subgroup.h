//===- Subgroup.h - Invocations in lockstep ---------------------*- C++ -*-===//
//
// The lanes of a subgroup execute a block together. Lanes that branch elsewhere wait until
// their block is the earliest in structured order. Lanes that have left a loop keep their
// values, since steps write only the lanes of the current block.
//
//===----------------------------------------------------------------------===//

#ifndef WEIR_LIB_SIM_SUBGROUP_H
#define WEIR_LIB_SIM_SUBGROUP_H

#include "Program.h"

#include <memory>
#include <vector>

namespace weir::sim {

class Workgroup;

/// One bit per lane.
using Mask = uint64_t;
inline constexpr uint32_t maxLanes = 64;

class Subgroup {
public:
  enum class State { Ready, AtBarrier, Done };

  explicit Subgroup(const Program &program);

  /// Places lanes at the kernel's begin. `firstInvocation` is counted within the workgroup.
  void start(Workgroup &workgroup, uint32_t number, uint32_t firstInvocation, uint32_t lanes);

  /// Executes at least one step, until `accesses` instructions have accessed memory, or a
  /// barrier or the end is reached.
  void run(uint64_t accesses);

  /// Continues after a barrier.
  void passBarrier() { state = State::Ready; }

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
    uint32_t block;
    Mask mask;
  };

  void endBlock(const CodeBlock &block);
  void follow(const Edge &edge, Mask lanes);
  void choose();
  void setMask(Mask lanes);

  struct Free {
    void operator()(unsigned char *bytes) const;
  };
  std::unique_ptr<unsigned char[], Free> registers;
  uint32_t block = 0, step = 0;
  std::vector<int64_t> trips;   ///< by block: number of jumps back to it since it was entered
  std::vector<Waiting> waiting; ///< lanes waiting at the begin of a block
};

/// Returns a step that uses more than registers: `number` is an index into the program's accesses,
/// barriers or shuffles.
StepFunction getAccessStep();
StepFunction getBarrierStep();
/// Returns a step whose `a` is the value, `b` a lane's number or distance, and `c` is 1 for 64
/// bits.
StepFunction getShuffleStep();

} // namespace weir::sim

#endif // WEIR_LIB_SIM_SUBGROUP_H

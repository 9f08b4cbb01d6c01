//===- Subgroup.h - Invocations in lockstep ---------------------*- C++ -*-===//
//
// The lanes of a subgroup execute a block together; lanes that branch elsewhere
// wait until they are the ones that are behind, by the structured order of blocks.
// Lanes that have left a loop keep their values: steps write the lanes of the
// current block only.
//
//===----------------------------------------------------------------------===//

#ifndef WEIR_LIB_SIM_SUBGROUP_H
#define WEIR_LIB_SIM_SUBGROUP_H

#include "Program.h"

#include <memory>
#include <vector>

namespace weir::sim {

class Workgroup;

/// One bit a lane.
using Mask = uint64_t;
inline constexpr uint32_t mostLanes = 64;

class Subgroup {
public:
  enum class State { Ready, AtBarrier, Done };

  explicit Subgroup(const Program &program);

  /// Puts lanes at the kernel's begin. `firstInvocation` counts within the workgroup.
  void start(Workgroup &workgroup, uint32_t number, uint32_t firstInvocation, uint32_t lanes);

  /// Executes at least one step, until `accesses` instructions have touched memory,
  /// a barrier is reached, or the end.
  void run(uint64_t accesses);

  /// Goes on behind a barrier.
  void passBarrier() { state = State::Ready; }

  State state = State::Done;
  uint32_t barrier = 0; ///< the one it is at: an index into the program's

  // For steps.
  template <typename T> T *at(Register value) const {
    return reinterpret_cast<T *>(registers.get() + value);
  }
  bool isActive(uint32_t lane) const { return mask >> lane & 1; }

  const Program &program;
  Workgroup *workgroup = nullptr;
  uint32_t firstInvocation = 0;
  uint32_t width = 0;                        ///< lanes of registers
  bool isUniform = false;                    ///< all lanes that there are are in the current block
  Mask mask = 0;                             ///< lanes in the current block
  Mask all = 0;                              ///< lanes that there are
  uint64_t budget = 0;                       ///< instructions that may still touch memory
  std::vector<unsigned char> privateBytes;   ///< lane by lane
  std::vector<unsigned char> privateWritten; ///< whether a byte was
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
  std::vector<int64_t> trips;   ///< by block: times it was gone back to since it was entered
  std::vector<Waiting> waiting; ///< lanes that have branched to the begin of a block
};

/// Functions of steps that look beyond registers: `number` is an index into the
/// program's accesses, barriers or shuffles.
StepFunction getAccessStep();
StepFunction getBarrierStep();
/// `a` is the value, `b` a lane's number or distance, `c` is 1 for 64 bits.
StepFunction getShuffleStep();

} // namespace weir::sim

#endif // WEIR_LIB_SIM_SUBGROUP_H

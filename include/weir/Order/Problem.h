//===- Problem.h - What order and memory are decided from -------*- C++ -*-===//
//
// Plain data: commands, what they use, and the allocations behind that. The functions of this
// folder choose an order, queues, permissions and places from it.
//
//===----------------------------------------------------------------------===//

#ifndef WEIR_ORDER_PROBLEM_H
#define WEIR_ORDER_PROBLEM_H

#include "weir/Order/Hazards.h"

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace weir {

/// An allocation, and who may have its bytes.
struct OrderAllocation {
  enum class Kind {
    Local,    ///< allocated by the function
    Argument, ///< of the function
    Global,   ///< a constant
    Unknown,
  } kind = Kind::Unknown;
  bool isValue = false;     ///< is to get a place in the arena
  int64_t number = -1;      ///< among the function's values, or among its arguments
  int64_t value = -1;       ///< the allocation whose value it holds: its own, or a repeated one
  int64_t bytes = 0;        ///< 0: not known
  int64_t alignment = 256;  ///< of its first byte
  int64_t type = -1;        ///< equal for equal types; -1: not known
  int64_t space = -1;       ///< equal for equal memory spaces
  bool isResult = false;    ///< an argument that the function writes its result to
  bool isDonated = false;   ///< an argument whose bytes a result may take
  bool isReturned = false;  ///< whether the function returns it, or a view that may be of it
  bool isInHost = false;    ///< an argument in the host's memory
  bool isLent = false;      ///< an argument in whose bytes a result lies from the start
  bool mayBeShared = false; ///< an argument that may share bytes with others
  bool mayCopy = false;     ///< its readers can be made to read another allocation
  std::string name;         ///< of an argument; empty: none
};

/// A memref among a command's operands.
struct MemoryOperand {
  int64_t operand = 0;
  int64_t allocation = 0;
  int64_t begin = -1;   ///< the first byte in its allocation; -1: not known
  bool isWhole = false; ///< every byte of its allocation, and no other
};

struct OrderCommand {
  int64_t id = 0; ///< its number when the problem was collected
  int64_t queue = 0;
  int64_t wave = 0;
  bool isDispatch = false; ///< else a copy or fill
  /// Whether it writes the same bits if it runs again: it reads nothing that it writes, and writes
  /// all of what it writes.
  bool mayRepeat = false;
  double work = 0;                        ///< its cost, in any unit
  ShortVector<MemoryOperand, 2> operands; ///< accessed or not

  /// Returns the memref with this number among operands; null if there is none.
  const MemoryOperand *findOperand(int64_t operand) const;
  /// Returns the memref with this number among operands, which must be one.
  const MemoryOperand &getOperand(int64_t operand) const { return *findOperand(operand); }
};

/// A command together with its accesses.
struct CommandWithAccesses {
  OrderCommand command;
  DispatchAccesses accesses;
};

struct OrderProblem {
  CommandAccesses accesses; ///< of `commands`
  std::vector<OrderCommand> commands;
  std::vector<OrderAllocation> allocations; ///< as many as `accesses` has
  /// Further ways to make values: each writes one, and is not in the list.
  std::vector<CommandWithAccesses> recipes;
  /// Whether it is proved that the kernel of the command with this id never reads a byte through
  /// operand `read` after it wrote the same byte of another memref through operand `written`.
  std::function<bool(int64_t id, int64_t read, int64_t written)> isProved;
};

/// Returns the same with command `order[i]` in place i.
OrderProblem permute(OrderProblem problem, const std::vector<int64_t> &order);

} // namespace weir

#endif // WEIR_ORDER_PROBLEM_H

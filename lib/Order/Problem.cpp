//===- Problem.cpp - What order and memory are decided from ---------------===//

#include "weir/Order/Problem.h"

#include <algorithm>

using namespace weir;

const MemoryOperand *OrderCommand::findOperand(int64_t operand) const {
  auto it = std::find_if(operands.begin(), operands.end(),
                         [&](const MemoryOperand &other) { return other.operand == operand; });
  return it == operands.end() ? nullptr : &*it;
}

OrderProblem weir::permute(OrderProblem problem, const std::vector<int64_t> &order) {
  std::vector<OrderCommand> commands;
  std::vector<DispatchAccesses> dispatches;
  commands.reserve(order.size());
  dispatches.reserve(order.size());
  for (int64_t number : order) {
    commands.push_back(std::move(problem.commands[number]));
    dispatches.push_back(std::move(problem.accesses.dispatches[number]));
  }
  problem.commands = std::move(commands);
  problem.accesses.dispatches = std::move(dispatches);
  return problem;
}

//===- Problem.cpp - What order and memory are decided from ---------------===//

#include "weir/Order/Problem.h"

#include <algorithm>

using namespace weir;

const MemoryOperand *OrderCommand::findOperand(int64_t operand) const {
  auto it = std::find_if(operands.begin(), operands.end(),
                         [&](const MemoryOperand &other) { return other.operand == operand; });
  return it == operands.end() ? nullptr : &*it;
}

OrderProblem weir::permute(const OrderProblem &problem, const std::vector<int64_t> &order) {
  OrderProblem result = {
      permute(problem.accesses, order), {}, problem.allocations, problem.recipes, problem.isProved};
  for (int64_t number : order)
    result.commands.push_back(problem.commands[number]);
  return result;
}

//===- Problem.cpp - What order and memory are decided from ---------------===//

#include "weir/Order/Problem.h"

using namespace weir;

OrderProblem weir::permute(const OrderProblem &problem, const std::vector<int64_t> &order) {
  OrderProblem result = {
      permute(problem.accesses, order), {}, problem.allocations, problem.isProved};
  for (int64_t number : order)
    result.commands.push_back(problem.commands[number]);
  return result;
}

//===- ProblemBuilder.h - Problems of a few commands ------------*- C++ -*-===//

#ifndef WEIR_TEST_UNIT_ORDER_PROBLEMBUILDER_H
#define WEIR_TEST_UNIT_ORDER_PROBLEMBUILDER_H

#include "weir/Order/Problem.h"

#include <utility>
#include <vector>

namespace weir {

/// Commands that read and write whole allocations of 256 bytes, each in a wave of its own.
struct ProblemBuilder {
  ProblemBuilder() {
    problem.isProved = [](int64_t, int64_t, int64_t) { return true; };
  }

  int64_t addValue(int64_t bytes = 256) {
    OrderAllocation value;
    value.kind = OrderAllocation::Kind::Local;
    value.isValue = true;
    value.bytes = bytes;
    value.mayCopy = true;
    return add(value);
  }

  int64_t addArgument(const char *name, bool isDonated, bool isResult) {
    OrderAllocation argument;
    argument.kind = OrderAllocation::Kind::Argument;
    argument.name = name;
    argument.bytes = 256;
    argument.isDonated = isDonated;
    argument.isResult = isResult;
    return add(argument);
  }

  void addCommand(const std::vector<int64_t> &reads, int64_t written) {
    OrderCommand command;
    command.id = command.wave = problem.commands.size();
    command.isDispatch = command.mayRepeat = true;
    command.work = 1;
    DispatchAccesses accesses;
    auto use = [&](int64_t allocation, bool isRead) {
      int64_t operand = command.operands.size();
      command.operands.push_back({operand, allocation, 0, true});
      accesses.push_back(
          {operand, allocation, {0, problem.allocations[allocation].bytes}, isRead, !isRead});
    };
    for (int64_t read : reads)
      use(read, true);
    use(written, false);
    problem.commands.push_back(std::move(command));
    problem.accesses.dispatches.push_back(std::move(accesses));
  }

  OrderProblem problem;

private:
  int64_t add(OrderAllocation allocation) {
    int64_t number = problem.allocations.size();
    allocation.number = allocation.value = number;
    allocation.type = allocation.space = 0;
    problem.allocations.push_back(allocation);
    problem.accesses.mayShare.emplace_back();
    return number;
  }
};

} // namespace weir

#endif // WEIR_TEST_UNIT_ORDER_PROBLEMBUILDER_H

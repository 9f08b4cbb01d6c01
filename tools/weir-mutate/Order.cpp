//===- Order.cpp - Which commands end before which begin ------------------===//

#include "Order.h"

using namespace weir;
using namespace weir::mutate;

Order::Order(const Plan &plan, bool barriers) {
  const std::vector<Command> &commands = plan.commands;
  past.assign(commands.size(), std::vector<bool>(commands.size()));
  for (size_t to = 0; to < commands.size(); ++to) {
    // Everything that ended before `from` began has ended, too.
    auto follow = [&](size_t from) {
      if (past[to][from])
        return;
      past[to][from] = true;
      for (size_t i = 0; i < from; ++i)
        if (past[from][i])
          past[to][i] = true;
    };
    bool isBarrier = barriers && commands[to].kind == Command::Kind::Barrier;
    for (size_t from = to; from-- > 0;) {
      if (commands[from].queue != commands[to].queue)
        continue;
      if (isBarrier || commands[to].kind == Command::Kind::Signal ||
          (barriers && commands[from].kind == Command::Kind::Barrier))
        follow(from);
      if (commands[from].kind != Command::Kind::Wait)
        continue;
      for (size_t signal = 0; signal < from; ++signal)
        if (commands[signal].kind == Command::Kind::Signal &&
            commands[signal].signal == commands[from].signal)
          follow(signal);
    }
  }
}

//===- Order.cpp - Order and visibility in a plan -------------------------===//

#include "Order.h"

#include <algorithm>

using namespace weir;
using namespace weir::sim;

/// Returns the max of two clocks. A dispatch is visible if the clock of the bytes counts it, so
/// bytes covered by several barriers and signals have the join of their clocks.
uint32_t Order::join(uint32_t a, uint32_t b) {
  std::vector<uint32_t> joined = pasts[a];
  for (size_t queue = 0; queue < queues; ++queue)
    joined[queue] = std::max(joined[queue], pasts[b][queue]);
  if (joined == pasts[a])
    return a;
  if (joined == pasts[b])
    return b;
  pasts.push_back(std::move(joined));
  return uint32_t(pasts.size() - 1);
}

void Order::joinRuns(Runs &into, int64_t begin, int64_t end, uint32_t clock) {
  auto split = [&](int64_t at) {
    auto next = into.lower_bound(at);
    if (next != into.end() && next->first == at)
      return next;
    return into.emplace_hint(next, at, std::prev(next)->second);
  };
  auto last = split(end);
  for (auto run = split(begin); run != last; ++run)
    run->second = join(run->second, clock);
}

void Order::show(Visible &visible, const std::vector<PlanView> &views, uint32_t clock) {
  for (const PlanView &view : views)
    if (view.bytes)
      joinRuns(visible[size_t(view.allocation)], view.offset, view.offset + view.bytes, clock);
}

Order::Order(const Plan &plan) {
  for (const Command &command : plan.commands)
    queues = std::max(queues, size_t(command.queue) + 1);
  pasts.emplace_back(queues); // clock 0: nothing
  struct Shown {
    std::vector<PlanView> views;
    uint32_t clock;
  };
  struct Queue {
    uint32_t commands = 0, past = 0;
    Visible visible;
    std::vector<Shown> signalled; ///< since the last barrier
  };
  Queue fresh;
  fresh.visible.assign(plan.allocations.size(), {{0, 0}});
  std::vector<Queue> states(queues, fresh);
  struct Signal {
    uint32_t past;
    Visible visible;
  };
  std::map<int64_t, Signal> signals;

  for (const Command &command : plan.commands) {
    Queue &queue = states[size_t(command.queue)];
    // Returns the clock of a command ordered after all earlier ones of its queue.
    auto endAll = [&] {
      std::vector<uint32_t> next = pasts[queue.past];
      next[size_t(command.queue)] = queue.commands;
      pasts.push_back(std::move(next));
      return uint32_t(pasts.size() - 1);
    };
    auto showSignalled = [&](Visible &visible) {
      for (const Shown &shown : queue.signalled)
        show(visible, shown.views, shown.clock);
    };
    switch (command.kind) {
    case Command::Kind::Dispatch: {
      Dispatch dispatch;
      dispatch.queue = size_t(command.queue);
      dispatch.place = queue.commands;
      dispatch.past = queue.past;
      for (const PlanView &view : command.operands) {
        const Runs &runs = queue.visible[size_t(view.allocation)];
        auto &mine = dispatch.visible.emplace_back();
        auto run = std::prev(runs.upper_bound(view.offset));
        for (; run != runs.end() && (mine.empty() || run->first < view.offset + view.bytes); ++run)
          mine.emplace_back(run->first, run->second);
      }
      dispatches.push_back(std::move(dispatch));
      break;
    }
    case Command::Kind::Barrier: {
      queue.past = endAll();
      showSignalled(queue.visible);
      queue.signalled.clear();
      show(queue.visible, command.memory, queue.past);
      break;
    }
    case Command::Kind::Signal: {
      Signal signal = {endAll(), queue.visible};
      showSignalled(signal.visible);
      show(signal.visible, command.memory, signal.past);
      queue.signalled.push_back({command.memory, signal.past});
      signals.emplace(command.signal, std::move(signal));
      break;
    }
    case Command::Kind::Wait: {
      const Signal &signal = signals.at(command.signal);
      queue.past = join(queue.past, signal.past);
      for (size_t allocation = 0; allocation < signal.visible.size(); ++allocation) {
        const Runs &runs = signal.visible[allocation];
        for (auto run = runs.begin(); run != runs.end(); ++run)
          if (auto next = std::next(run); next != runs.end()) // the last run starts past the end
            joinRuns(queue.visible[allocation], run->first, next->first, run->second);
      }
      break;
    }
    }
    ++queue.commands;
  }
}

bool Order::isVisible(size_t from, size_t to, size_t operand, int64_t byte) const {
  const auto &runs = dispatches[to].visible[operand];
  auto next = std::upper_bound(runs.begin(), runs.end(), byte,
                               [](int64_t at, const auto &run) { return at < run.first; });
  const Dispatch &first = dispatches[from];
  return pasts[std::prev(next)->second][first.queue] > first.place;
}

//===- HappensBefore.cpp - Which commands end before which ----------------===//

#include "weir/Analysis/HappensBefore.h"

#include "llvm/ADT/TypeSwitch.h"

#include <algorithm>

using namespace mlir;
using namespace weir;

HappensBefore::HappensBefore(const std::vector<QueueCommand> &commands) {
  using Kind = QueueCommand::Kind;
  int64_t queues = 1;
  for (const QueueCommand &command : commands)
    queues = std::max(queues, command.queue + 1);
  clocks.assign(queues, 0);
  barriersAndSignals.resize(queues);
  std::vector<size_t> now(queues, 0); ///< each queue's clock
  std::vector<int64_t> recorded(queues, 0);

  auto change = [&](int64_t queue) {
    size_t clock = clocks.size();
    clocks.resize(clock + queues);
    std::copy_n(clocks.begin() + now[queue], queues, clocks.begin() + clock);
    now[queue] = clock;
    return clock;
  };
  llvm::DenseMap<int64_t, Place> signals;
  for (auto [index, command] : llvm::enumerate(commands)) {
    int64_t queue = command.queue, number = recorded[queue]++;
    Place place = {queue, number, now[queue]};
    if (command.kind == Kind::Barrier) {
      place.clock = change(queue);
      clocks[place.clock + queue] = number;
      // What follows comes after the barrier itself, too.
      clocks[change(queue) + queue] = number + 1;
    } else if (command.kind == Kind::Signal) {
      // Only those who wait learn of it: the queue's own clock stays.
      size_t own = now[queue];
      place.clock = change(queue);
      clocks[place.clock + queue] = number;
      now[queue] = own;
      signals[command.point] = place;
    } else if (command.kind == Kind::Wait) {
      const Place &signal = signals.at(command.point);
      size_t clock = change(queue);
      for (int64_t other = 0; other < queues; ++other)
        clocks[clock + other] = std::max(clocks[clock + other], clocks[signal.clock + other]);
      clocks[clock + signal.queue] = std::max(clocks[clock + signal.queue], signal.number + 1);
    }
    if (command.kind == Kind::Barrier || command.kind == Kind::Signal)
      barriersAndSignals[queue].push_back(index);
    places.push_back(place);
  }
}

bool HappensBefore::makesVisible(int64_t from, int64_t to,
                                 llvm::function_ref<bool(int64_t)> shows) const {
  auto look = [&](const std::vector<int64_t> &candidates) {
    auto it = std::upper_bound(candidates.begin(), candidates.end(), from);
    for (; it != candidates.end() && (*this)(*it, to); ++it)
      if ((*this)(from, *it) && shows(*it))
        return true;
    return false;
  };
  // Mostly it is the next one on the same queue.
  int64_t own = places[from].queue;
  if (look(barriersAndSignals[own]))
    return true;
  for (auto [queue, candidates] : llvm::enumerate(barriersAndSignals))
    if (int64_t(queue) != own && look(candidates))
      return true;
  return false;
}

QueueCommands weir::getQueueCommands(schedule::CommandsOp list) {
  using Kind = QueueCommand::Kind;
  QueueCommands result;
  for (Operation &op : list.getBody().front()) {
    llvm::TypeSwitch<Operation &>(op)
        .Case([&](schedule::CommandOpInterface command) {
          result.dispatches.push_back(result.commands.size());
          result.commands.push_back({Kind::Dispatch, command.getQueue(), 0});
        })
        .Case([&](schedule::BarrierOp barrier) {
          result.commands.push_back({Kind::Barrier, barrier.getQueue(), 0});
        })
        .Case([&](schedule::SignalOp signal) {
          result.commands.push_back({Kind::Signal, signal.getQueue(), int64_t(signal.getId())});
        })
        .Case([&](schedule::WaitOp wait) {
          result.commands.push_back({Kind::Wait, wait.getQueue(), int64_t(wait.getSignal())});
        });
    result.ops.push_back(&op);
  }
  return result;
}

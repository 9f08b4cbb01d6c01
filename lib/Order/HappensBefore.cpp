//===- HappensBefore.cpp - Which commands end before which ----------------===//

#include "weir/Order/HappensBefore.h"

#include <algorithm>
#include <unordered_map>

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
  std::unordered_map<int64_t, Place> signals;
  for (size_t index = 0; index < commands.size(); ++index) {
    const QueueCommand &command = commands[index];
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

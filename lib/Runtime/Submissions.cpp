//===- Submissions.cpp - A plan's commands, cut for several queues --------===//

#include "Submissions.h"

#include <algorithm>
#include <map>
#include <optional>

namespace weir::runtime {

int64_t countQueues(const Plan &plan) {
  int64_t queues = 1;
  for (const Command &command : plan.commands)
    queues = std::max(queues, command.queue + 1);
  return queues;
}

namespace {
class Splitter {
public:
  explicit Splitter(int64_t queues) : open(queues), values(queues), isUsed(queues) {}

  std::vector<Submission> split(const Plan &plan);

private:
  Submission &get(int64_t queue);
  void close(int64_t queue, bool signal);

  std::vector<std::optional<Submission>> open; ///< by queue
  std::vector<uint64_t> values;                ///< of the queues' timelines
  std::vector<bool> isUsed;
  std::map<int64_t, TimelinePoint> points; ///< by signal
  std::vector<Submission> result;
};
} // namespace

Submission &Splitter::get(int64_t queue) {
  if (!open[queue]) {
    open[queue].emplace().queue = queue;
    if (queue != 0 && !isUsed[queue])
      open[queue]->waits.push_back({0, 1});
    isUsed[queue] = true;
  }
  return *open[queue];
}

// A submission is closed after its waits are recorded, hence after the submissions that it
// waits for are closed.
void Splitter::close(int64_t queue, bool signal) {
  if (signal)
    get(queue).signals = ++values[queue];
  if (open[queue])
    result.push_back(std::move(*open[queue]));
  open[queue].reset();
}

std::vector<Submission> Splitter::split(const Plan &plan) {
  close(0, /*signal=*/true);
  for (size_t i = 0; i < plan.commands.size(); ++i) {
    const Command &command = plan.commands[i];
    switch (command.kind) {
    case Command::Kind::Dispatch:
    case Command::Kind::Barrier:
      get(command.queue).commands.push_back(i);
      break;
    case Command::Kind::Signal:
      close(command.queue, /*signal=*/true);
      points[command.signal] = {command.queue, values[command.queue]};
      break;
    case Command::Kind::Wait:
      if (open[command.queue] && !open[command.queue]->commands.empty())
        close(command.queue, /*signal=*/false);
      get(command.queue).waits.push_back(points.at(command.signal));
      break;
    }
  }
  Submission last;
  for (int64_t queue = 1; queue < int64_t(open.size()); ++queue) {
    if (!isUsed[queue])
      continue;
    if (open[queue])
      close(queue, /*signal=*/true);
    last.waits.push_back({queue, values[queue]});
  }
  close(0, /*signal=*/false);
  result.push_back(std::move(last));
  return std::move(result);
}

std::vector<Submission> splitSubmissions(const Plan &plan, int64_t queues) {
  int64_t needed = countQueues(plan);
  if (needed > 1 && needed <= queues)
    return Splitter(needed).split(plan);
  Submission all;
  for (size_t i = 0; i < plan.commands.size(); ++i)
    all.commands.push_back(i);
  return {all};
}

} // namespace weir::runtime

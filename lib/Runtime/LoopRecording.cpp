//===- LoopRecording.cpp - Recordings that run several times --------------===//

#include "LoopRecording.h"

#include <algorithm>
#include <iterator>

namespace weir::runtime {

/// Returns a plan with commands [first, last) of another one.
static Plan cut(const Plan &plan, int64_t first, int64_t last) {
  Plan part;
  part.entry = plan.entry;
  part.target = plan.target;
  part.allocations = plan.allocations;
  part.kernels = plan.kernels;
  part.commands.assign(plan.commands.begin() + first, plan.commands.begin() + last);
  return part;
}

/// Returns the number of dispatches among the first commands of a plan.
static size_t countDispatches(const Plan &plan, int64_t commands) {
  return size_t(std::count_if(
      plan.commands.begin(), plan.commands.begin() + commands,
      [](const Command &command) { return command.kind == Command::Kind::Dispatch; }));
}

LoopRecording::LoopRecording(Device &device, const Plan &plan,
                             const std::vector<const Storage *> &allocations, bool startsOutside,
                             bool isProfiled,
                             const std::function<std::unique_ptr<Recording>(const Plan &)> &make)
    : device(device), allocations(allocations), isProfiled(isProfiled),
      times(countDispatches(plan, int64_t(plan.commands.size()))) {
  if (startsOutside && plan.loops.front().first == 0) {
    pieces.emplace_back();
    pieces.back().recording = make(cut(plan, 0, 0));
  }
  std::vector<Piece> others = record(plan, 0, int64_t(plan.commands.size()), 0, make);
  std::move(others.begin(), others.end(), std::back_inserter(pieces));
}

/// Records commands [first, end), in which the loops from `nextLoop` on begin.
std::vector<LoopRecording::Piece>
LoopRecording::record(const Plan &plan, int64_t first, int64_t end, size_t nextLoop,
                      const std::function<std::unique_ptr<Recording>(const Plan &)> &make) {
  std::vector<Piece> list;
  while (first < end) {
    const bool isLoop = nextLoop < plan.loops.size() && plan.loops[nextLoop].first == first;
    if (isLoop) {
      const Loop &loop = plan.loops[nextLoop];
      Piece piece;
      piece.trips = loop.trips;
      if (loop.flag) {
        piece.flag = allocations[size_t(loop.flag->allocation)];
        piece.flagOffset = loop.flag->offset;
      }
      piece.body = record(plan, first, loop.end, nextLoop + 1, make);
      list.push_back(std::move(piece));
      first = loop.end;
      while (nextLoop < plan.loops.size() && plan.loops[nextLoop].first < first)
        ++nextLoop;
      continue;
    }
    const int64_t last =
        nextLoop < plan.loops.size() ? std::min(end, plan.loops[nextLoop].first) : end;
    Piece piece;
    piece.recording = make(cut(plan, first, last));
    piece.firstDispatch = countDispatches(plan, first);
    list.push_back(std::move(piece));
    first = last;
  }
  return list;
}

/// Waits for what decides whether a trip follows.
bool LoopRecording::isSet(const Piece &loop) const {
  unsigned char flag = 0;
  loop.flag->lastUse = device.submissions;
  device.read(*loop.flag, loop.flagOffset, &flag, 1);
  return flag != 0;
}

/// Waits for a piece and adds the times of its dispatches.
void LoopRecording::addTimes(const Piece &piece) {
  device.wait();
  double end = 0;
  size_t dispatch = piece.firstDispatch;
  for (const weir_dispatch_time &time : piece.recording->readDispatchTimes()) {
    weir_dispatch_time &sum = times[dispatch++];
    if (sum.runs == 0)
      sum.begin = sum.end = elapsed + time.begin;
    sum.end += time.end - time.begin;
    sum.runs += time.runs;
    end = std::max(end, time.end);
  }
  elapsed += end;
}

void LoopRecording::submit(bool /*isTimed*/) {
  std::fill(times.begin(), times.end(), weir_dispatch_time());
  elapsed = 0;
  submit(pieces);
}

void LoopRecording::submit(const std::vector<Piece> &list) {
  for (const Piece &piece : list) {
    if (piece.recording) {
      piece.recording->submit(isProfiled);
      if (isProfiled)
        addTimes(piece);
      continue;
    }
    if (!isProfiled && !piece.flag && piece.body.size() == 1 && piece.body.front().recording) {
      piece.body.front().recording->submitTimes(piece.trips);
      continue;
    }
    int64_t trip = 0;
    for (; trip < piece.trips && (!piece.flag || isSet(piece)); ++trip)
      submit(piece.body);
    if (piece.flag && trip == piece.trips && isSet(piece))
      throw Error("a loop did not end within its " + std::to_string(piece.trips) + " trips");
  }
}

} // namespace weir::runtime

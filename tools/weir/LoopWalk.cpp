//===- LoopWalk.cpp - A run's trips, by its dispatches --------------------===//

#include "LoopWalk.h"

#include "weir/Artifact/Error.h"

using namespace weir;
using namespace weir::tool;

static bool isAround(const Loop &loop, int64_t command) {
  return loop.first <= command && command < loop.end;
}

LoopWalk::LoopWalk(const Plan &plan) : plan(plan), trips(plan.loops.size()) {
  for (size_t i = 0; i < plan.commands.size(); ++i)
    if (plan.commands[i].kind == Command::Kind::Dispatch)
      places.push_back(int64_t(i));
}

void LoopWalk::beginTrip(size_t loop, int64_t CarriedValue::*from) {
  ++trips[loop];
  if (onTrip)
    onTrip(loop, from);
}

void LoopWalk::end(size_t loop, int64_t CarriedValue::*from) {
  trips[loop] = 0;
  if (onEnd)
    onEnd(loop, from);
}

/// Passes all edges up to a command, or, if loop `goesOn` is to make another trip, up to its end. A
/// loop that begins on the way and does not hold the command makes no trip.
void LoopWalk::pass(int64_t target, int64_t goesOn) {
  while (true) {
    for (int64_t i = int64_t(trips.size()); --i > goesOn;) // inner loops first
      if (trips[size_t(i)] > 0 && plan.loops[size_t(i)].end == place)
        end(size_t(i), &CarriedValue::next);
    if (goesOn >= 0 && place == target)
      return;
    bool isSkipped = false;
    for (size_t i = 0; i < trips.size() && !isSkipped; ++i) {
      if (trips[i] > 0 || plan.loops[i].first != place)
        continue;
      if (isAround(plan.loops[i], target)) {
        beginTrip(i, &CarriedValue::init);
        continue;
      }
      end(i, &CarriedValue::init);
      place = plan.loops[i].end;
      isSkipped = true;
    }
    if (isSkipped)
      continue;
    if (place >= target)
      return;
    ++place;
  }
}

void LoopWalk::advance(size_t dispatch) {
  const int64_t target = places.at(dispatch);
  if (target < place) {
    int64_t around = -1; // the innermost loop that runs and holds the dispatch
    for (size_t i = 0; i < trips.size(); ++i)
      if (trips[i] > 0 && isAround(plan.loops[i], target))
        around = int64_t(i);
    if (around < 0)
      throw Error("entry '" + plan.entry + "' runs dispatch " + std::to_string(dispatch) +
                  " again, which is in no loop that runs");
    pass(plan.loops[size_t(around)].end, around);
    place = plan.loops[size_t(around)].first;
    beginTrip(size_t(around), &CarriedValue::next);
  }
  pass(target, /*goesOn=*/-1);
  place = target + 1;
}

void LoopWalk::finish() { pass(int64_t(plan.commands.size()), /*goesOn=*/-1); }

std::vector<int64_t> LoopWalk::getTrips() const {
  std::vector<int64_t> list;
  for (int64_t trip : trips)
    if (trip > 0)
      list.push_back(trip);
  return list;
}

std::string LoopWalk::describeTrips() const {
  std::string text;
  for (size_t i = 0; i < trips.size(); ++i)
    if (trips[i] > 0)
      text += (text.empty() ? " in trip " : ", trip ") + std::to_string(trips[i]) +
              (trips.size() > 1 ? " of loop " + std::to_string(i) : "");
  return text;
}

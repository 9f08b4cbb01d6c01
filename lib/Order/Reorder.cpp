//===- Reorder.cpp - An order with fewer waves ----------------------------===//

#include "weir/Order/Reorder.h"

#include <algorithm>
#include <set>

using namespace weir;

namespace {
/// What is live while waves are filled one after another.
class LiveBytes {
public:
  LiveBytes(const CommandAccesses &accesses, const std::vector<int64_t> &bytes)
      : accesses(accesses), bytes(bytes), uses(bytes.size()), live(bytes.size()) {
    for (const DispatchAccesses &dispatch : accesses.dispatches)
      for (const OperandAccess &access : dispatch)
        ++uses[access.allocation];
  }

  int64_t get() const { return sum; }

  /// The bytes that `dispatch` would add to those live in this wave.
  int64_t getGrowth(int64_t dispatch) const {
    int64_t growth = 0;
    const DispatchAccesses &own = accesses.dispatches[dispatch];
    for (auto access = own.begin(); access != own.end(); ++access)
      if (!live[access->allocation] &&
          std::none_of(own.begin(), access, [&](const OperandAccess &other) {
            return other.allocation == access->allocation;
          }))
        growth += bytes[access->allocation];
    return growth;
  }

  void take(int64_t dispatch) {
    sum += getGrowth(dispatch);
    for (const OperandAccess &access : accesses.dispatches[dispatch]) {
      live[access.allocation] = true;
      if (--uses[access.allocation] == 0)
        ending.push_back(access.allocation);
    }
  }

  void endWave() {
    for (int64_t allocation : ending)
      sum -= bytes[allocation];
    ending.clear();
  }

private:
  const CommandAccesses &accesses;
  const std::vector<int64_t> &bytes;
  std::vector<int64_t> uses; ///< by allocation, those to come
  std::vector<bool> live;
  std::vector<int64_t> ending; ///< used for the last time in this wave
  int64_t sum = 0;
};
} // namespace

WaveOrder weir::orderInFewWaves(const CommandAccesses &accesses, const std::vector<Hazard> &hazards,
                                const std::vector<int64_t> &bytes, int64_t limit) {
  constexpr int64_t lookahead = 64;
  int64_t count = accesses.dispatches.size();
  std::vector<std::vector<int64_t>> after(count);
  std::vector<int64_t> waiting(count), height(count);
  // Sorted by `to`: whatever comes after `to` is known once the walk is there.
  for (auto hazard = hazards.rbegin(); hazard != hazards.rend(); ++hazard) {
    height[hazard->from] = std::max(height[hazard->from], height[hazard->to] + 1);
    after[hazard->from].push_back(hazard->to);
    ++waiting[hazard->to];
  }
  auto isBefore = [&](int64_t a, int64_t b) {
    return std::pair(-height[a], a) < std::pair(-height[b], b);
  };
  std::set<int64_t, decltype(isBefore)> ready(isBefore);
  for (int64_t dispatch = 0; dispatch < count; ++dispatch)
    if (waiting[dispatch] == 0)
      ready.insert(dispatch);

  LiveBytes live(accesses, bytes);
  WaveOrder result;
  std::vector<int64_t> &order = result.order;
  for (int64_t wave = 0; !ready.empty(); ++wave) {
    size_t waveBegin = order.size();
    auto take = [&](auto dispatch) {
      live.take(*dispatch);
      order.push_back(*dispatch);
      return ready.erase(dispatch);
    };
    int64_t misses = 0;
    auto least = ready.end();
    for (auto next = ready.begin(); next != ready.end() && misses < lookahead;) {
      int64_t growth = live.getGrowth(*next);
      if (growth <= limit - live.get()) {
        next = take(next);
        continue;
      }
      if (least == ready.end() || growth < live.getGrowth(*least))
        least = next;
      ++misses;
      ++next;
    }
    if (order.size() == waveBegin)
      take(least);
    live.endWave();
    result.waves.resize(order.size(), wave);
    for (size_t i = waveBegin, end = order.size(); i < end; ++i)
      for (int64_t dispatch : after[order[i]])
        if (--waiting[dispatch] == 0)
          ready.insert(dispatch);
  }
  return result;
}

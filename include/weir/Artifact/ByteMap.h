//===- ByteMap.h - A state for each byte of memory --------------*- C++ -*-===//

#ifndef WEIR_ARTIFACT_BYTEMAP_H
#define WEIR_ARTIFACT_BYTEMAP_H

#include <cstdint>
#include <iterator>
#include <limits>
#include <map>

namespace weir {

/// Maps each byte to a state. Bytes with the same state are stored as runs.
template <typename State> class ByteMap {
public:
  static constexpr int64_t end = std::numeric_limits<int64_t>::max();

  /// Calls `visit(State &, begin, end)` for each run in [begin, end), in order.
  template <typename Visit> void visit(int64_t begin, int64_t end, Visit visit) {
    split(end);
    for (auto run = split(begin); run != runs.end() && run->first < end; ++run) {
      auto next = std::next(run);
      int64_t last = next == runs.end() ? ByteMap::end : next->first;
      visit(run->second, run->first, last);
    }
  }
  void assign(int64_t begin, int64_t end, const State &state) {
    auto last = split(end);
    runs.erase(std::next(split(begin)), last);
    runs[begin] = state;
  }

private:
  using Runs = std::map<int64_t, State>;
  /// Makes a run start at `at` >= 0 and returns it.
  typename Runs::iterator split(int64_t at) {
    auto next = runs.lower_bound(at);
    if (next != runs.end() && next->first == at)
      return next;
    return runs.emplace_hint(next, at, std::prev(next)->second);
  }

  Runs runs = {{0, State()}};
};

} // namespace weir

#endif // WEIR_ARTIFACT_BYTEMAP_H

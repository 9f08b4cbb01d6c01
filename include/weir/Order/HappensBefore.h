//===- HappensBefore.h - Which commands end before which --------*- C++ -*-===//

#ifndef WEIR_ORDER_HAPPENSBEFORE_H
#define WEIR_ORDER_HAPPENSBEFORE_H

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace weir {

/// One command of a list for several queues, in recorded order.
struct QueueCommand {
  enum class Kind { Dispatch, Barrier, Signal, Wait } kind = Kind::Dispatch;
  int64_t queue = 0;
  int64_t point = 0; ///< of a signal, and of the wait for it
};

/// Vector clocks, kept only where they change: at barriers and waits.
///
/// - A barrier orders what was recorded before it on its queue before what
///   comes after it there.
/// - A signal covers what was recorded before it on its queue, and whatever
///   that queue had waited for. A wait orders all of it before what comes after
///   the wait on its own queue.
///
/// Needs: queues of small numbers (there is an entry for each up to the
/// largest), signals of unique points, each recorded before its waits.
/// Cost: linear in commands times queues.
class HappensBefore {
public:
  explicit HappensBefore(const std::vector<QueueCommand> &commands);

  /// Whether command `from` of the list has ended when `to` begins. A signal or
  /// barrier ends when it is passed.
  bool operator()(int64_t from, int64_t to) const {
    const Place &place = places[from];
    return clocks[places[to].clock + place.queue] > place.number;
  }

  /// Whether a barrier or signal between the two, after `from` and before `to`,
  /// is one that `shows` says makes the bytes in question visible.
  template <typename Predicate> bool makesVisible(int64_t from, int64_t to, Predicate shows) const {
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
    for (size_t queue = 0; queue < barriersAndSignals.size(); ++queue)
      if (int64_t(queue) != own && look(barriersAndSignals[queue]))
        return true;
    return false;
  }

private:
  struct Place {
    int64_t queue = 0;
    int64_t number = 0; ///< among its queue's commands
    size_t clock = 0;   ///< what happened before, an index into `clocks`
  };

  std::vector<Place> places;
  std::vector<int64_t> clocks; ///< as many entries for each as there are queues
  std::vector<std::vector<int64_t>> barriersAndSignals; ///< by queue
};

} // namespace weir

#endif // WEIR_ORDER_HAPPENSBEFORE_H

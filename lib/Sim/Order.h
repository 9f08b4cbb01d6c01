//===- Order.h - Order and visibility in a plan -----------------*- C++ -*-===//

#ifndef WEIR_LIB_SIM_ORDER_H
#define WEIR_LIB_SIM_ORDER_H

#include "weir/Artifact/Plan.h"

#include <cstdint>
#include <map>
#include <vector>

namespace weir::sim {

/// Vector clocks of a plan's dispatches: the number of commands of each queue that have ended
/// when a dispatch begins.
class Order {
public:
  explicit Order(const Plan &plan);

  size_t countDispatches() const { return dispatches.size(); }
  size_t countQueues() const { return queues; }

  /// Whether dispatch `from` ends before dispatch `to` begins. Only dispatches are numbered.
  bool isOrdered(size_t from, size_t to) const {
    const Dispatch &first = dispatches[from];
    return pasts[dispatches[to].past][first.queue] > first.place;
  }

  /// Whether a barrier or signal between the two dispatches makes `byte` of an operand of the
  /// second visible.
  bool isVisible(size_t from, size_t to, size_t operand, int64_t byte) const;

  size_t getQueue(size_t dispatch) const { return dispatches[dispatch].queue; }
  uint32_t getPlace(size_t dispatch) const { return dispatches[dispatch].place; }
  const std::vector<uint32_t> &getPast(size_t dispatch) const {
    return pasts[dispatches[dispatch].past];
  }

private:
  /// Maps a begin to a clock: writes by dispatches that it counts are visible up to the next
  /// begin.
  using Runs = std::map<int64_t, uint32_t>;
  /// Visibility by allocation.
  using Visible = std::vector<Runs>;

  struct Dispatch {
    size_t queue = 0;
    uint32_t place = 0; ///< index among its queue's commands
    uint32_t past = 0;  ///< index into `pasts`
    std::vector<std::vector<std::pair<int64_t, uint32_t>>> visible; ///< by operand
  };

  uint32_t join(uint32_t a, uint32_t b);
  void joinRuns(Runs &into, int64_t begin, int64_t end, uint32_t clock);
  void show(Visible &visible, const std::vector<PlanView> &views, uint32_t clock);

  size_t queues = 1;
  std::vector<Dispatch> dispatches;
  std::vector<std::vector<uint32_t>> pasts;
};

} // namespace weir::sim

#endif // WEIR_LIB_SIM_ORDER_H

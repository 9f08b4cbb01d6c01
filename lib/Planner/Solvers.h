//===- Solvers.h - Ways to place the items of a component -------*- C++ -*-===//
//
// Every solver gives the bases of all items, or none. Steps are counted, so that
// what a solver finds depends on its input alone.
//
//===----------------------------------------------------------------------===//

#ifndef WEIR_LIB_PLANNER_SOLVERS_H
#define WEIR_LIB_PLANNER_SOLVERS_H

#include "Model.h"

#include <memory>

namespace weir::planner {

using Bases = std::vector<int64_t>; ///< by item

/// The end of the highest item.
int64_t getPeak(const Instance &instance, const Bases &bases);

/// The most bytes live in one of the item's waves, by item.
std::vector<int64_t> getContentions(const Instance &instance);

enum class Order { Size, Area, Lifetime, Contention };
const char *getName(Order order);
std::vector<uint32_t> sortItems(const Instance &instance, Order order);

enum class Fit { First, Best };

/// Places the items one after the other; fixed ones are there from the start,
/// hints are taken where they are free if `useHints`.
Bases placeInOrder(const Instance &instance, const Conflicts &conflicts,
                   const std::vector<uint32_t> &order, Fit fit, bool useHints = false);

/// Places the items by their first waves into the smallest hole, and frees their
/// bytes behind their last. Cost: n log n, however many are live together.
Bases placeByWave(const Instance &instance);

/// Looks for a plan with a peak of at most `target`, from `bases`: whatever ends
/// higher is taken out and put where least is in its way, that in turn is taken
/// out. Returns none when `steps` are used up.
std::optional<Bases> repair(const Instance &instance, const Conflicts &conflicts,
                            const Bases &bases, int64_t target, int64_t &steps);

/// Swaps items in the order of placeInOrder and keeps what is no worse.
Bases climb(const Instance &instance, const Conflicts &conflicts, std::vector<uint32_t> order,
            int64_t target, uint64_t seed, int64_t &steps);

/// Exact search.
class Exact {
public:
  Exact(const Instance &instance, const Conflicts &conflicts);
  ~Exact();

  /// Whether the instance is small enough for its tables.
  static bool canSearch(const Instance &instance);

  enum class Answer { Found, None, Unknown };
  struct Result {
    Answer answer = Answer::Unknown;
    Bases bases; ///< when found
  };
  /// Looks for a plan with a peak of at most `capacity`. None is proved.
  Result search(int64_t capacity, int64_t &steps);

  struct Tables;

private:
  std::unique_ptr<Tables> tables;
};

} // namespace weir::planner

#endif // WEIR_LIB_PLANNER_SOLVERS_H

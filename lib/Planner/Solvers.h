//===- Solvers.h - Ways to place the items of a component -------*- C++ -*-===//
//
// Every solver returns the bases of all items, or none. Steps are counted, so that the result
// depends on the input alone.
//
//===----------------------------------------------------------------------===//

#ifndef WEIR_LIB_PLANNER_SOLVERS_H
#define WEIR_LIB_PLANNER_SOLVERS_H

#include "Model.h"

#include <memory>

namespace weir::planner {

using Bases = std::vector<int64_t>; ///< by item

/// Returns the end of the highest item.
int64_t getPeak(const Instance &instance, const Bases &bases);

/// Returns, for each item, the max number of bytes live in one of its waves.
std::vector<int64_t> getContentions(const Instance &instance);

enum class Order { Size, Area, Lifetime, Contention };
const char *getName(Order order);
std::vector<uint32_t> sortItems(const Instance &instance, Order order);

enum class Fit { First, Best };

/// Places the items one after the other. Fixed ones are placed first; with `useHints`, an item
/// takes its hint if that is free.
Bases placeInOrder(const Instance &instance, const Conflicts &conflicts,
                   const std::vector<uint32_t> &order, Fit fit, bool useHints = false);

/// Places the items by first wave into the smallest hole, and frees their bytes after their
/// last wave. Cost: n log n, for any number live together.
Bases placeByWave(const Instance &instance);

/// Searches for a plan with a peak of at most `target`, starting from `bases`: takes out items
/// that end higher and puts each where it displaces least; displaced items follow. Returns none
/// when `steps` are used up.
std::optional<Bases> repair(const Instance &instance, const Conflicts &conflicts,
                            const Bases &bases, int64_t target, int64_t &steps);

/// Swaps items in the order for placeInOrder and keeps swaps that are no worse.
Bases climb(const Instance &instance, const Conflicts &conflicts, std::vector<uint32_t> order,
            int64_t target, uint64_t seed, int64_t &steps);

/// An exact search for plans.
class Exact {
public:
  Exact(const Instance &instance, const Conflicts &conflicts);
  ~Exact();

  /// Whether the instance is small enough for its tables.
  static bool canSearch(const Instance &instance);

  enum class Answer { Found, None, Unknown };
  struct Result {
    Answer answer = Answer::Unknown;
    Bases bases; ///< if found
  };
  /// Searches for a plan with a peak of at most `capacity`. Answer::None is a proof.
  Result search(int64_t capacity, int64_t &steps);

  struct Tables;

private:
  std::unique_ptr<Tables> tables;
};

} // namespace weir::planner

#endif // WEIR_LIB_PLANNER_SOLVERS_H

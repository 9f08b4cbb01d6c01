//===- Exposed.h - The values of an entry, by its graph ---------*- C++ -*-===//
//
// Plain data, for callers with and without the compiler.
//
//===----------------------------------------------------------------------===//

#ifndef WEIR_DRIVER_COMPILER_EXPOSED_H
#define WEIR_DRIVER_COMPILER_EXPOSED_H

#include <cstdint>
#include <string>
#include <vector>

namespace weir {

/// A value that a loop carries, by its numbers in the plan. What the plan copies at the end of a
/// trip has another number there: this is that of the copy's source.
struct ExposedCarry {
  int64_t init = 0, inside = 0, next = 0, after = 0;
};

/// A part of an entry: a function without loops, or a loop of parts.
struct ExposedStep {
  std::string text, function; ///< a graph and a function of it; empty: a loop
  /// Numbers in the plan of what the function takes and of its results; of a whole entry, which
  /// knows those of its plan, none.
  std::vector<int64_t> arguments, results;
  std::vector<ExposedCarry> carried;
  std::vector<ExposedStep> steps;
};

/// An entry whose functions return, behind their own results, all other values of more than 0 bytes
/// that their kernels make, in the order of the kernels: the order of values in a plan.
struct ExposedGraph {
  std::vector<ExposedStep> steps; ///< in order; one function if the entry has no loops
  int64_t numBetween = 0;         ///< values of the plan that functions hand to one another; the
                                  ///< first ones are the arguments; 0: the entry has no loops
};

} // namespace weir

#endif // WEIR_DRIVER_COMPILER_EXPOSED_H

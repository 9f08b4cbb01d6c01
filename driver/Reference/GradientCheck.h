//===- GradientCheck.h - Gradients against central differences --*- C++ -*-===//

#ifndef WEIR_DRIVER_REFERENCE_GRADIENTCHECK_H
#define WEIR_DRIVER_REFERENCE_GRADIENTCHECK_H

#include "weir/Artifact/Artifact.h"

#include <memory>
#include <string>
#include <vector>

namespace weir {

class Reference;

/// The comparison of the gradient by one argument with differences.
struct GradientRow {
  std::string argument;
  int64_t elements = 0;
  /// Number of differences: one per element, or along random directions if there are more
  /// elements than that.
  int64_t differences = 0;
  double step = 0;
  /// The norm of gradient - differences divided by the larger of their norms, or by a bound
  /// of the rounding errors if that is larger. Infinite if one of them is not finite.
  double error = 0;
  /// The place with the largest distance: the element's index, or "direction N". Empty if
  /// there are no elements.
  std::string worst;
  double gradient = 0, difference = 0; ///< there
  /// Number of differences that disagree with the chosen step but agree at a kink, and the
  /// place of the first one. `error` leaves them out.
  int64_t kinks = 0;
  std::string firstKink;
};

/// Compares the gradients of `F.vjp` with central differences of F, both run by the
/// reference in f64, for random cotangents.
class GradientCheck {
public:
  /// `graphText` holds `entry`, F, at the graph level, and `vjpText` F.vjp.
  /// Errors: `Error` where either has no reference, or F.vjp isn't what
  ///         `weir compile --vjp=F` would make, by its types.
  GradientCheck(const std::string &graphText, const std::string &vjpText, const std::string &entry);
  ~GradientCheck();

  const std::vector<TensorSpec> &getArguments() const;

  /// Returns one row per float argument, for `arguments` in the entry's order.
  ///
  /// Where the error is above `tolerance`, each difference that departs is taken again with
  /// smaller steps, as long as rounding is far below what it departs by: a kink beside the
  /// point is then no longer crossed. Where it still departs, the slopes on both sides are
  /// compared. At a kink they differ, and a gradient that equals one of them or lies between
  /// them agrees. Without a kink no step and no side agrees with a wrong gradient.
  /// Errors: `Error` on arguments of the wrong number, shape or dtype.
  std::vector<GradientRow> run(std::vector<Tensor> arguments, uint64_t seed,
                               double tolerance) const;

private:
  std::unique_ptr<Reference> forward, vjp;
};

} // namespace weir

#endif // WEIR_DRIVER_REFERENCE_GRADIENTCHECK_H

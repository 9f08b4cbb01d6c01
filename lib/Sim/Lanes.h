//===- Lanes.h - Functions of scalars, run lane by lane ---------*- C++ -*-===//

#ifndef WEIR_LIB_SIM_LANES_H
#define WEIR_LIB_SIM_LANES_H

#include "Steps.h"
#include "Subgroup.h"

#include <bit>
#include <tuple>

namespace weir::sim {

template <auto function> struct Signature;
template <typename R, typename... A, R (*function)(A...)> struct Signature<function> {
  using Result = R;
  static constexpr size_t arity = sizeof...(A);
  /// Type of argument i; char for arguments beyond the function's.
  template <size_t i> using Argument = std::tuple_element_t<i, std::tuple<A..., char, char>>;
};

/// Runs a scalar function lane by lane. Registers have a multiple of eight lanes.
template <auto function> void apply(Subgroup &subgroup, const Step &step) {
  using S = Signature<function>;
  auto *__restrict to = subgroup.at<typename S::Result>(step.to);
  const auto *__restrict a = subgroup.at<typename S::template Argument<0>>(step.a);
  const auto *__restrict b = subgroup.at<typename S::template Argument<1>>(step.b);
  const auto *__restrict c = subgroup.at<typename S::template Argument<2>>(step.c);
  auto evaluate = [=](uint32_t lane) {
    if constexpr (S::arity == 1)
      return function(a[lane]);
    else if constexpr (S::arity == 2)
      return function(a[lane], b[lane]);
    else
      return function(a[lane], b[lane], c[lane]);
  };
  if (subgroup.isUniform) {
    for (uint32_t first = 0; first < subgroup.width; first += 8)
      for (uint32_t lane = 0; lane < 8; ++lane)
        to[first + lane] = evaluate(first + lane);
    return;
  }
  for (Mask rest = subgroup.mask; rest; rest &= rest - 1) {
    auto lane = uint32_t(std::countr_zero(rest));
    to[lane] = evaluate(lane);
  }
}

} // namespace weir::sim

#endif // WEIR_LIB_SIM_LANES_H

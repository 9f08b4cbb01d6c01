//===- Philox.h - Random ops written out ------------------------*- C++ -*-===//

#ifndef WEIR_DIALECTS_RANDOM_PHILOX_H
#define WEIR_DIALECTS_RANDOM_PHILOX_H

#include "dialects/Random/Random.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"

#include <array>

namespace weir::random {

/// Builds the block of Philox4x32-10 for a counter and a key.
///
/// Shapes: scalars of type i32, the lowest word first.
/// Source: Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", SC 2011,
///         section 3.3; test vectors in Random123's kat_vectors.
std::array<mlir::Value, 4> buildPhilox(mlir::ImplicitLocOpBuilder &builder,
                                       std::array<mlir::Value, 4> counter,
                                       std::array<mlir::Value, 2> key);

/// Builds, at `op`, a `linalg.generic` that computes the result of `op`, and returns
/// its value.
mlir::Value expand(mlir::OpBuilder &builder, UniformOp op);

} // namespace weir::random

#endif // WEIR_DIALECTS_RANDOM_PHILOX_H

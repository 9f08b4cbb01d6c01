//===- Shapes.h - One emitter per shape of kernel ---------------*- C++ -*-===//

#ifndef WEIR_LIB_KERNELS_SHAPES_H
#define WEIR_LIB_KERNELS_SHAPES_H

#include "PointEmitter.h"

namespace weir {

/// Coordinates that all shapes name alike.
enum Coordinates : unsigned {
  unitCoordinate = 1, ///< of a map kernel; the row of a row kernel
  tripCoordinate,     ///< of the loop over a row
  teamLaneCoordinate, ///< of the invocation among those that share a row
  tileColumnCoordinate,
  tileRowCoordinate,
  tileRestCoordinate,
  productCoordinate,
};

/// Emits `body` for `groups` workgroups and says how to launch them: one number
/// per workgroup, spread over the axes of the grid.
void emitWorkgroups(PointEmitter &emitter, int64_t groups, EmittedKernel &launch,
                    llvm::function_ref<void(mlir::Value group)> body);

/// Evaluates and stores result number `result` at the domain's point.
void emitResult(PointEmitter &emitter, unsigned result, llvm::ArrayRef<mlir::AffineExpr> point);

/// Row-major digits of a unit: with `vector`, a unit is four neighbours of the
/// last dimension, told apart by the vector lane.
llvm::SmallVector<mlir::AffineExpr> getPoint(PointEmitter &emitter, mlir::AffineExpr unit,
                                             llvm::ArrayRef<int64_t> sizes, bool vector);
/// Whether four neighbours of the last dimension are computed at once: a matter
/// of the sizes and the profile alone.
bool isVectorDomain(const Profile &profile, llvm::ArrayRef<int64_t> sizes);

int64_t getProduct(llvm::ArrayRef<int64_t> sizes);

void emitMap(PointEmitter &emitter, EmittedKernel &launch);
void emitRow(PointEmitter &emitter, EmittedKernel &launch);
void emitContraction(PointEmitter &emitter, EmittedKernel &launch);

} // namespace weir

#endif // WEIR_LIB_KERNELS_SHAPES_H

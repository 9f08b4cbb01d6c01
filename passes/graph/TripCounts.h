//===- TripCounts.h - Loops whose trips can be counted ----------*- C++ -*-===//

#ifndef WEIR_PASSES_GRAPH_TRIPCOUNTS_H
#define WEIR_PASSES_GRAPH_TRIPCOUNTS_H

#include "mlir/Dialect/SCF/IR/SCF.h"

namespace weir {

/// Writes an `scf.for` in place of a loop whose condition depends on constants alone, if it makes
/// at most 131,072 trips: its counters are followed from trip to trip. Front ends write loops of
/// known length as such. Returns whether it did.
bool countTrips(mlir::scf::WhileOp loop);

/// Clones the ops of a block whose arguments are `values`, and returns what its terminator takes.
llvm::SmallVector<mlir::Value> inlineBlock(mlir::OpBuilder &builder, mlir::Block &block,
                                           mlir::ValueRange values);

} // namespace weir

#endif // WEIR_PASSES_GRAPH_TRIPCOUNTS_H

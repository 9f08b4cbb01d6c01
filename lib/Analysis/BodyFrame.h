//===- BodyFrame.h - Function bodies as calls and trips reach them -*- C++ -*-//

#ifndef WEIR_LIB_ANALYSIS_BODYFRAME_H
#define WEIR_LIB_ANALYSIS_BODYFRAME_H

#include "mlir/IR/Dominance.h"
#include "mlir/Interfaces/CallInterfaces.h"
#include "mlir/Interfaces/FunctionInterfaces.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/SmallVector.h"

#include <optional>

namespace weir {

/// A function's body as one chain of calls reaches it, or one trip of a loop in it. One SSA value
/// may have a different meaning in each frame.
struct BodyFrame {
  const BodyFrame *caller = nullptr; ///< null in the kernel itself
  mlir::CallOpInterface call;        ///< the call in `caller`
  const BodyFrame *outer = nullptr;  ///< the frame around `loop`, if this is one trip of it
  mlir::Operation *loop = nullptr;
  mlir::FunctionOpInterface function;
  /// Trip variables of the loops among the function's blocks, by header.
  llvm::DenseMap<mlir::Block *, unsigned> headers;

  /// Returns the frame that knows `value`: this one if it is a trip of a loop around the value,
  /// else one further out.
  const BodyFrame &getHome(mlir::Value value) const;
  /// Whether `argument` is one of the function itself.
  bool isArgument(mlir::BlockArgument argument) const;
  /// Returns what the caller passes as argument `index`. There must be a caller.
  mlir::Value getPassed(unsigned index) const;
};

/// Returns the values of which `value` is one: those a branch chooses from, or those that a loop
/// starts with and passes on. One of them is null where an edge between blocks is not understood.
/// Returns nothing where `value` is only itself.
std::optional<llvm::SmallVector<mlir::Value>> getChoices(mlir::Value value, const BodyFrame &frame);

/// Returns what a loop of blocks passes to an argument of its header, on the first trip and on all
/// others. Returns nothing where the block heads no loop or the loop's edges disagree.
std::optional<std::pair<mlir::Value, mlir::Value>>
getCarried(mlir::BlockArgument argument, const BodyFrame &frame, mlir::DominanceInfo &dominance);

} // namespace weir

#endif // WEIR_LIB_ANALYSIS_BODYFRAME_H

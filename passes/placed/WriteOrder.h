//===- WriteOrder.h - A list of commands as lib/Order made it ---*- C++ -*-===//

#ifndef WEIR_PASSES_PLACED_WRITEORDER_H
#define WEIR_PASSES_PLACED_WRITEORDER_H

#include "weir/Analysis/CommandList.h"
#include "weir/Order/Schedule.h"

namespace weir {

/// Makes the function's list that of `problem`, which lib/Order made from the one collected with
/// `list`: commands in its order, in its waves, with the number of the value that each operand is
/// part of. A command that the problem has twice is cloned, one that it lacks is erased;
/// allocations that it adds are created. `list` does not fit the function any more after that.
void writeOrder(mlir::func::FuncOp function, const CommandList &list, const OrderProblem &problem);

/// Returns the name of an allocation, as weir-plan-memory calls its value.
std::string getValueName(mlir::func::FuncOp function, mlir::Value allocation);

/// Remarks which order was chosen, and how many bytes are live in each.
void remarkOrder(mlir::func::FuncOp function, const CommandOrder &chosen);

} // namespace weir

#endif // WEIR_PASSES_PLACED_WRITEORDER_H

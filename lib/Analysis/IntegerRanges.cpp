//===- IntegerRanges.cpp - Ranges of a kernel's integers ------------------===//

#include "IntegerRanges.h"

#include "mlir/Analysis/DataFlow/IntegerRangeAnalysis.h"
#include "mlir/Analysis/DataFlow/Utils.h"

using namespace mlir;
using namespace weir;

IntegerRanges::IntegerRanges(FunctionOpInterface function)
    : solver(DataFlowConfig().setInterprocedural(false)) {
  dataflow::loadBaselineAnalyses(solver);
  solver.load<dataflow::IntegerRangeAnalysis>();
  isKnown = succeeded(solver.initializeAndRun(function));
  if (!isKnown)
    function->emitWarning("integer range analysis failed: no ranges are known, so barriers may be "
                          "placed that are not needed");
}

std::optional<ConstantIntRanges> IntegerRanges::get(Value value) const {
  auto *state = isKnown ? solver.lookupState<dataflow::IntegerValueRangeLattice>(value) : nullptr;
  if (!state || state->getValue().isUninitialized())
    return std::nullopt;
  return state->getValue().getValue();
}

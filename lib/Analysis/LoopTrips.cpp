//===- LoopTrips.cpp - How many trips the loops of a kernel make ----------===//

#include "weir/Analysis/LoopTrips.h"

#include "mlir/Analysis/DataFlow/IntegerRangeAnalysis.h"
#include "mlir/Analysis/DataFlow/Utils.h"
#include "mlir/Analysis/DataFlowFramework.h"

#include <limits>

using namespace mlir;
using namespace weir;

static constexpr int64_t most = std::numeric_limits<int64_t>::max();

/// Adds or multiplies numbers that are not negative; too large ones become `most`.
static int64_t add(int64_t a, int64_t b) {
  int64_t sum;
  return llvm::AddOverflow(a, b, sum) ? most : sum;
}
static int64_t multiply(int64_t a, int64_t b) {
  int64_t product;
  return llvm::MulOverflow(a, b, product) ? most : product;
}

/// Returns the max trips by the ranges of the bounds; std::nullopt when there is none.
static std::optional<int64_t> getTripsByRange(scf::ForOp loop, const DataFlowSolver &solver) {
  auto getRange = [&](Value value) -> std::optional<ConstantIntRanges> {
    auto *state = solver.lookupState<dataflow::IntegerValueRangeLattice>(value);
    if (!state || state->getValue().isUninitialized())
      return std::nullopt;
    return state->getValue().getValue();
  };
  std::optional<ConstantIntRanges> lower = getRange(loop.getLowerBound());
  std::optional<ConstantIntRanges> upper = getRange(loop.getUpperBound());
  std::optional<ConstantIntRanges> step = getRange(loop.getStep());
  // Code that never runs has no ranges, and no trips.
  if (!lower || !upper || !step)
    return 0;
  int64_t from = lower->smin().getSExtValue(), to = upper->smax().getSExtValue(), span;
  int64_t smallestStep = step->smin().getSExtValue();
  if (smallestStep < 1 || upper->smax().isMaxSignedValue() || llvm::SubOverflow(to, from, span))
    return std::nullopt;
  return span <= 0 ? 0 : int64_t(llvm::divideCeil(uint64_t(span), uint64_t(smallestStep)));
}

LoopTrips::LoopTrips(gpu::GPUFuncOp kernel) {
  bool needsRanges = false; // they cost more than all the rest
  kernel.walk<WalkOrder::PreOrder>([&](LoopLikeOpInterface loop) {
    auto counted = dyn_cast<scf::ForOp>(*loop);
    std::optional<APInt> constant = counted ? counted.getStaticTripCount() : std::nullopt;
    needsRanges |= counted && !constant;
    trips[loop] = constant && constant->isSignedIntN(63) ? std::optional(constant->getSExtValue())
                                                         : std::nullopt;
  });
  if (!needsRanges)
    return;
  DataFlowSolver solver;
  dataflow::loadBaselineAnalyses(solver);
  solver.load<dataflow::IntegerRangeAnalysis>();
  if (failed(solver.initializeAndRun(kernel)))
    return;
  for (auto &[loop, known] : trips)
    if (auto counted = dyn_cast<scf::ForOp>(loop); counted && !known)
      known = getTripsByRange(counted, solver);
}

std::optional<int64_t> LoopTrips::getTrips(LoopLikeOpInterface loop) const {
  return trips.lookup(loop);
}

std::optional<int64_t> LoopTrips::getShare(LoopLikeOpInterface loop) const {
  std::optional<int64_t> own = getTrips(loop);
  if (!own)
    return std::nullopt;
  int64_t share = add(*own, 1);
  for (Operation *outer = loop->getParentOp(); outer; outer = outer->getParentOp())
    if (auto found = trips.find(outer); found != trips.end()) {
      if (!found->second)
        return std::nullopt;
      share = multiply(share, *found->second);
    }
  return share;
}

std::optional<int64_t> LoopTrips::getTotal() const {
  int64_t total = 0;
  for (LoopLikeOpInterface loop : getLoops()) {
    std::optional<int64_t> share = getShare(loop);
    if (!share)
      return std::nullopt;
    total = add(total, *share);
  }
  return total;
}

SmallVector<LoopLikeOpInterface> LoopTrips::getLoops() const {
  return llvm::map_to_vector(
      trips, [](const auto &entry) { return cast<LoopLikeOpInterface>(entry.first); });
}

//===- UnrollLoops.cpp - Short loops of known length become what they do --===//
//
// The steps of a loop are written out one by one. Its counter is a constant then, and so is what
// front ends compute of it.
//
//===----------------------------------------------------------------------===//

#include "passes/graph/TripCounts.h"
#include "passes/kernels/Sequences.h"

#include "dialects/Autodiff/Autodiff.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Pass/Pass.h"
#include "mlir/Transforms/GreedyPatternRewriteDriver.h"

namespace weir {
#define GEN_PASS_DEF_UNROLLLOOPSPASS
#include "passes/Passes.h.inc"
} // namespace weir

using namespace mlir;

namespace {
struct UnrollLoops : weir::impl::UnrollLoopsPassBase<UnrollLoops> {
  using UnrollLoopsPassBase::UnrollLoopsPassBase;

  void runOnOperation() override;
};
} // namespace

/// Max number of ops after unrolling: more take longer to compile than kernels of several trips
/// save.
static constexpr uint64_t maxOps = 1 << 12;
/// The same where gradients are taken: those of a loop need its steps.
static constexpr uint64_t maxDifferentiatedOps = 1 << 15;

/// Unrolls the loop's `trips`. Upstream's unrolling does not fold values of the counter.
static void unroll(scf::ForOp loop, int64_t trips) {
  OpBuilder builder(loop);
  int64_t counter = *getConstantIntValue(loop.getLowerBound());
  int64_t step = *getConstantIntValue(loop.getStep());
  SmallVector<Value> carried(loop.getInitArgs());
  for (int64_t trip = 0; trip < trips; ++trip, counter += step) {
    IRMapping values;
    auto type = loop.getInductionVar().getType();
    values.map(loop.getInductionVar(),
               arith::ConstantOp::create(builder, loop.getLoc(), type,
                                         builder.getIntegerAttr(type, counter)));
    values.map(loop.getRegionIterArgs(), carried);
    for (Operation &op : loop.getBody()->without_terminator()) {
      Operation *copy = builder.clone(op, values);
      SmallVector<Value> known;
      if (succeeded(builder.tryFold(copy, known)) && !known.empty() &&
          known.front() != copy->getResult(0)) {
        values.map(op.getResults(), known);
        copy->erase();
      }
    }
    carried = llvm::map_to_vector(loop.getYieldedValues(),
                                  [&](Value value) { return values.lookupOrDefault(value); });
  }
  loop.replaceAllUsesWith(carried);
  loop.erase();
}

/// Whether the module takes gradients.
static bool isDifferentiated(ModuleOp module) {
  return module.walk([](weir::autodiff::VjpOp) { return WalkResult::interrupt(); })
      .wasInterrupted();
}

/// Least number of trips that become one walk: fewer are as fast in one kernel with what is around
/// them.
static constexpr uint64_t fewestTrips = 8;

void UnrollLoops::runOnOperation() {
  const bool differentiates = isDifferentiated(getOperation());
  const uint64_t limit = differentiates ? maxDifferentiatedOps : maxOps;
  SmallVector<scf::WhileOp> whiles;
  getOperation().walk([&](scf::WhileOp loop) { whiles.push_back(loop); });
  llvm::for_each(whiles, weir::countTrips);
  SmallVector<scf::ForOp> loops; // the innermost first
  getOperation().walk([&](scf::ForOp loop) {
    if (!loop->getParentOfType<linalg::LinalgOp>())
      loops.push_back(loop);
  });
  bool changed = false;
  for (scf::ForOp loop : loops) {
    std::optional<APInt> trips = loop.getStaticTripCount();
    if (!trips || (trips->ugt(1) && trips->ugt(limit / llvm::range_size(*loop.getBody()))))
      continue;
    if (trips->uge(fewestTrips) && weir::simplifySequence(loop, differentiates)) {
      changed = true;
      continue;
    }
    unroll(loop, trips->getZExtValue());
    changed = true;
  }
  if (!changed && whiles.empty())
    return;
  // Places of slices are constants now.
  SmallVector<Operation *> slices;
  getOperation().walk([&](Operation *op) {
    if (isa<tensor::ExtractSliceOp, tensor::InsertSliceOp>(op))
      slices.push_back(op);
  });
  RewritePatternSet patterns(&getContext());
  tensor::ExtractSliceOp::getCanonicalizationPatterns(patterns, &getContext());
  tensor::InsertSliceOp::getCanonicalizationPatterns(patterns, &getContext());
  (void)applyOpPatternsGreedily(slices, std::move(patterns));
}

//===- UnrollLoops.cpp - Loops of known length become what they do --------===//
//
// A graph has no control flow: what a loop does is written out, step by step. Its counter is
// a constant then, and so is what front ends compute of it.
//
//===----------------------------------------------------------------------===//

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

/// Max number of ops after unrolling: more take too long to compile.
static constexpr uint64_t maxOps = 1 << 15;

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

void UnrollLoops::runOnOperation() {
  SmallVector<scf::ForOp> loops; // the innermost first
  getOperation().walk([&](scf::ForOp loop) {
    if (!loop->getParentOfType<linalg::LinalgOp>())
      loops.push_back(loop);
  });
  for (scf::ForOp loop : loops) {
    std::optional<APInt> trips = loop.getStaticTripCount();
    if (!trips) // the gate refuses it
      continue;
    uint64_t ops = llvm::range_size(*loop.getBody());
    if (trips->ugt(maxOps / ops)) {
      loop.emitOpError() << "takes " << toString(*trips, 10, false) << " steps of " << ops
                         << " ops; at most " << maxOps << " ops are written out";
      return signalPassFailure();
    }
    unroll(loop, trips->getZExtValue());
  }
  if (loops.empty())
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

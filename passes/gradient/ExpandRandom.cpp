//===- ExpandRandom.cpp - Random ops become linalg ------------------------===//

#include "dialects/Random/Philox.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Pass/Pass.h"

namespace weir {
#define GEN_PASS_DEF_EXPANDRANDOMPASS
#include "passes/Passes.h.inc"
} // namespace weir

namespace {
struct ExpandRandom : weir::impl::ExpandRandomPassBase<ExpandRandom> {
  using ExpandRandomPassBase::ExpandRandomPassBase;

  void runOnOperation() override {
    getOperation().walk([](weir::random::UniformOp op) {
      mlir::OpBuilder builder(op);
      op.replaceAllUsesWith(weir::random::expand(builder, op));
      op.erase();
    });
  }
};
} // namespace

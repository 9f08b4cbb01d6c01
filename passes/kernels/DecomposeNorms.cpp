//===- DecomposeNorms.cpp - Norm ops become linalg ------------------------===//

#include "dialects/Norm/Decompose.h"
#include "dialects/Norm/Norm.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Pass/Pass.h"

namespace weir {
#define GEN_PASS_DEF_DECOMPOSENORMSPASS
#include "passes/Passes.h.inc"
} // namespace weir

namespace {
struct DecomposeNorms : weir::impl::DecomposeNormsPassBase<DecomposeNorms> {
  using DecomposeNormsPassBase::DecomposeNormsPassBase;

  void runOnOperation() override { weir::norm::decomposeAll(getOperation()); }
};
} // namespace

//===- AddSpares.cpp - Cheaper ways to make values again ------------------===//
//
// A value that follows element by element from a sum can be recomputed without the sum.
// If one kernel makes both, the value gets a second, cheaper kernel here. Nothing reads it
// yet: weir-limit-memory may.
//
//===----------------------------------------------------------------------===//

#include "passes/Passes.h"
#include "passes/Spares.h"

#include "dialects/Schedule/Schedule.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/Pass/Pass.h"
#include "weir/Kernels/Emitter.h"
#include "weir/Kernels/Stages.h"
#include "weir/Target/ProfileAttr.h"
#include "llvm/ADT/SetVector.h"

namespace weir {
#define GEN_PASS_DEF_ADDSPARESPASS
#include "passes/Passes.h.inc"
} // namespace weir

using namespace mlir;
using namespace weir;

namespace {
struct AddSpares : weir::impl::AddSparesPassBase<AddSpares> {
  using AddSparesPassBase::AddSparesPassBase;

  void runOnOperation() override;
};

/// The ops of a kernel that make one of its results from its inputs and other results.
struct Slice {
  SetVector<Operation *> ops; ///< without what has neither operands nor effects
  SetVector<Value> inputs;    ///< arguments of the region, or results made in it
  bool isElementwise = true;  ///< nothing is reduced
};
} // namespace

static bool isPointwise(Operation *op) { return getOpShape(op) == OpShape::Pointwise; }

static Slice getSlice(schedule::KernelOp kernel, unsigned result) {
  Block &body = kernel.getBody().front();
  ValueRange made = body.getTerminator()->getOperands();
  Slice slice;
  SmallVector<Value> open = {made[result]};
  DenseSet<Value> seen;
  while (!open.empty()) {
    Value value = open.pop_back_val();
    if (!seen.insert(value).second)
      continue;
    Operation *op = value.getDefiningOp();
    if (!op || (value != made[result] && llvm::is_contained(made, value))) {
      slice.inputs.insert(value);
      continue;
    }
    slice.ops.insert(op);
    auto generic = dyn_cast<linalg::GenericOp>(op);
    slice.isElementwise &=
        generic ? generic.getNumLoops() == generic.getNumParallelLoops() : isPure(op);
    op->walk([&](Operation *inner) {
      for (Value operand : inner->getOperands())
        if (operand.getParentBlock() == &body)
          open.push_back(operand);
    });
  }
  return slice;
}

/// Adds a kernel of the slice behind `last`. Returns null if no single kernel computes each
/// point of the slice for itself within the profile's limits.
static schedule::KernelOp addSpare(schedule::KernelOp kernel, unsigned result, Slice slice,
                                   Operation *last, const Profile &profile) {
  Block &body = kernel.getBody().front();
  SmallVector<Operation *> ops = slice.ops.takeVector();
  llvm::sort(ops, [](Operation *a, Operation *b) { return a->isBeforeInBlock(b); });
  OpBuilder builder(kernel->getContext());
  builder.setInsertionPointAfter(last);
  ValueRange made = body.getTerminator()->getOperands();
  SmallVector<Value> inputs;
  for (Value input : slice.inputs) {
    auto argument = dyn_cast<BlockArgument>(input);
    inputs.push_back(argument ? kernel.getInputs()[argument.getArgNumber()]
                              : kernel.getResult(llvm::find(made, input) - made.begin()));
  }
  auto spare =
      schedule::KernelOp::create(builder, kernel.getLoc(), kernel.getResult(result).getType(),
                                 builder.getStringAttr("again"), inputs);
  Block *block = builder.createBlock(&spare.getBody());
  IRMapping mapping;
  for (Value input : slice.inputs)
    mapping.map(input, block->addArgument(input.getType(), input.getLoc()));
  SmallVector<Operation *> computed;
  for (Operation *op : ops)
    if (Operation *copy = builder.clone(*op, mapping); isPointwise(copy))
      computed.push_back(copy);
  schedule::YieldOp::create(builder, kernel.getLoc(), mapping.lookup(made[result]));
  std::optional<KernelDomain> domain = KernelDomain::build(computed);
  if (!domain || domain->getShape() != KernelShape::Map ||
      int64_t(inputs.size()) >= profile.storageBuffersPerStage) {
    spare.erase();
    return nullptr;
  }
  std::string name = "again";
  for (int64_t size : domain->getSizes())
    name += (name == "again" ? "_" : "x") + std::to_string(size);
  spare.setName(name);
  spare->setAttr(spareAttrName, builder.getI64IntegerAttr(result));
  return spare;
}

void AddSpares::runOnOperation() {
  FailureOr<Profile> profile = getProfile(getOperation());
  if (failed(profile))
    return signalPassFailure();
  SmallVector<schedule::KernelOp> kernels;
  getOperation().walk([&](schedule::KernelOp kernel) {
    if (!kernel->hasAttr(spareAttrName) && !hasStages(kernel) && !kernel.getGroupDims())
      kernels.push_back(kernel);
  });
  for (schedule::KernelOp kernel : kernels) {
    Operation *last = kernel;
    for (unsigned result = 0; result < kernel.getNumResults(); ++result) {
      if (llvm::any_of(kernel.getResult(result).getUsers(),
                       [](Operation *user) { return isa<func::ReturnOp>(user); }))
        continue; // is kept anyway
      Slice slice = getSlice(kernel, result);
      size_t computed =
          llvm::count_if(kernel.getBody().front().without_terminator(),
                         [](Operation &op) { return getOpShape(&op) != OpShape::Free; });
      size_t repeated = llvm::count_if(slice.ops, isPointwise);
      if (!slice.isElementwise || repeated == 0 || repeated == computed)
        continue; // or as dear as the kernel
      if (schedule::KernelOp spare = addSpare(kernel, result, std::move(slice), last, *profile))
        last = spare;
    }
  }
}

//===- ComputeWhereRead.cpp - Bodies compute the elements they read -------===//

#include "passes/kernels/GeneralizeTensors.h"

#include "dialects/Schedule/Schedule.h"
#include "mlir/Dialect/Affine/Utils.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Linalg/Transforms/Transforms.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/IRMapping.h"
#include "weir/Kernels/Emitter.h"
#include "llvm/ADT/SetVector.h"

using namespace mlir;
using namespace weir;

/// Lets `op` read the source of a slice or a transpose instead of its result.
static void readThrough(tensor::ExtractOp op) {
  while (auto moved = op.getTensor().getDefiningOp<linalg::LinalgOp>()) {
    if (!llvm::hasSingleElement(*moved.getBlock()) || moved.getNumDpsInputs() != 1 ||
        moved->getNumResults() != 1 || moved.getNumReductionLoops() ||
        moved.getBlock()->getTerminator()->getOperand(0) != moved.getBlock()->getArgument(0) ||
        !isa<RankedTensorType>(moved.getDpsInputs().front().getType()) ||
        !moved.getIndexingMapsArray().back().isIdentity())
      return;
    OpBuilder builder(op);
    OpOperand *input = moved.getDpsInputOperand(0);
    auto generic = dyn_cast<linalg::GenericOp>(*moved);
    AffineMap map = generic ? getAccessMap(generic, input) : moved.getMatchingIndexingMap(input);
    std::optional<SmallVector<Value, 8>> at =
        affine::expandAffineMap(builder, op.getLoc(), map, op.getIndices());
    if (!at)
      return;
    op.getTensorMutable().assign(input->get());
    op.getIndicesMutable().assign(*at);
  }
}

/// Returns the op that makes the tensor that `op` reads, if the reading body can compute
/// each element itself at no loss: no other op reads the tensor, no kernel makes it
/// anyway, and few elements are computed twice. Null otherwise.
static linalg::GenericOp getMaker(tensor::ExtractOp op, const Profile &profile) {
  // Number of times that an element may be computed, such as one of a concatenation's part.
  constexpr int64_t maxTimes = 4;
  auto reader = dyn_cast<linalg::GenericOp>(op->getParentOp());
  auto named = op.getTensor().getDefiningOp<linalg::LinalgOp>();
  if (!reader || !named || named->getNumResults() != 1 || !named->hasOneUse() ||
      named->hasAttr(schedule::noFuseAttrName) || reader->hasAttr(schedule::noFuseAttrName) ||
      getOpShape(reader) != OpShape::Pointwise || getSplat(op.getTensor()) ||
      hasOwnKernel(op.getTensor()) ||
      cast<RankedTensorType>(reader->getResult(0).getType()).getNumElements() / maxTimes >
          op.getTensor().getType().getNumElements())
    return {};
  auto maker = dyn_cast<linalg::GenericOp>(*named);
  if (!maker) {
    IRRewriter rewriter(named);
    FailureOr<linalg::GenericOp> generic = linalg::generalizeNamedOp(rewriter, named);
    if (failed(generic))
      return {};
    maker = *generic;
  }
  if (!maker.getIndexingMapsArray().back().isIdentity() ||
      getOpShape(maker) != OpShape::Pointwise || !maker.getRegionOutputArgs().front().use_empty() ||
      llvm::any_of(maker.getBody()->without_terminator(),
                   [](Operation &inner) { return !isMemoryEffectFree(&inner); }))
    return {};
  llvm::SmallDenseSet<Value> bound;
  for (linalg::GenericOp user : {reader, maker}) {
    auto bind = [&](Value value) {
      if (isa<RankedTensorType>(value.getType()) && value != op.getTensor() && !getSplat(value))
        bound.insert(value);
    };
    llvm::for_each(user.getInputs(), bind);
    user.getRegion().walk([&](tensor::ExtractOp read) { bind(read.getTensor()); });
  }
  if (int64_t(bound.size()) >= profile.storageBuffersPerStage)
    return {};
  return maker;
}

void weir::computeWhereRead(func::FuncOp function, const Profile &profile) {
  SetVector<tensor::ExtractOp> open;
  function.walk([&](tensor::ExtractOp op) { open.insert(op); });
  while (!open.empty()) {
    tensor::ExtractOp op = open.pop_back_val();
    readThrough(op);
    linalg::GenericOp maker = getMaker(op, profile);
    if (!maker)
      continue;
    OpBuilder builder(op);
    SmallVector<Value> at(op.getIndices());
    IRMapping known;
    bool isKnown = true;
    for (OpOperand *input : maker.getDpsInputOperands()) {
      BlockArgument argument = maker.getMatchingBlockArgument(input);
      if (argument.use_empty())
        continue;
      Value element = input->get();
      if (isa<RankedTensorType>(element.getType())) {
        std::optional<SmallVector<Value, 8>> place =
            affine::expandAffineMap(builder, op.getLoc(), getAccessMap(maker, input), at);
        isKnown &= place.has_value();
        if (!isKnown)
          break;
        auto read = tensor::ExtractOp::create(builder, op.getLoc(), element, *place);
        open.insert(read);
        element = read;
      }
      known.map(argument, element);
    }
    if (!isKnown)
      continue;
    for (Operation &inner : maker.getBody()->without_terminator()) {
      if (auto index = dyn_cast<linalg::IndexOp>(inner))
        known.map(index.getResult(), at[index.getDim()]);
      else if (auto read = dyn_cast<tensor::ExtractOp>(builder.clone(inner, known)))
        open.insert(read);
    }
    op.replaceAllUsesWith(known.lookupOrDefault(maker.getBody()->getTerminator()->getOperand(0)));
    op.erase();
    maker.walk([&](tensor::ExtractOp read) { open.remove(read); });
    maker.erase();
  }
}

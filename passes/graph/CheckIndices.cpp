//===- CheckIndices.cpp - Say which index left its tensor -----------------===//
//
// Each gather gets a companion that walks the same places, without the dimensions that
// its indices do not depend on, and finds whether one is out of range. All of them become
// one number, a result of the function.
//
//===----------------------------------------------------------------------===//

#include "passes/graph/Indices.h"

#include "dialects/Schedule/Schedule.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Pass/Pass.h"
#include "weir/Artifact/Notes.h"
#include "weir/Target/Bundle.h"
#include "llvm/ADT/SetVector.h"

namespace weir {
#define GEN_PASS_DEF_CHECKINDICESPASS
#include "passes/Passes.h.inc"
} // namespace weir

using namespace mlir;
using namespace weir;

namespace {
struct CheckIndices : weir::impl::CheckIndicesPassBase<CheckIndices> {
  using CheckIndicesPassBase::CheckIndicesPassBase;

  void runOnOperation() override;

private:
  SmallVector<std::string> sentences; ///< of each check

  void check(tensor::ExtractOp op);
  Value checkInBody(tensor::ExtractOp op, linalg::LinalgOp around, ArrayRef<unsigned> dims);
  Value checkScalars(tensor::ExtractOp op, ArrayRef<unsigned> dims);
};

/// An index and the size that it must be below.
struct Bounded {
  Value index;
  int64_t size;
};
} // namespace

/// Returns `number` if one of the indices is out of range, else 0.
static Value compute(OpBuilder &builder, Location loc, ArrayRef<Bounded> indices, int64_t number) {
  Value isOut;
  for (auto [index, size] : indices) {
    // A wide integer is compared before it becomes an index, which may have fewer bits.
    Value value = index;
    if (auto cast = index.getDefiningOp<arith::IndexCastOp>())
      value = cast.getIn();
    auto isBeyond = [&](arith::CmpIPredicate predicate, int64_t limit) -> Value {
      Value bound =
          arith::ConstantOp::create(builder, loc, builder.getIntegerAttr(value.getType(), limit));
      return arith::CmpIOp::create(builder, loc, predicate, value, bound);
    };
    Value below = isBeyond(arith::CmpIPredicate::slt, 0);
    // Every value of a narrow type may be in range.
    unsigned width = value.getType().isIndex() ? 64 : value.getType().getIntOrFloatBitWidth();
    if (width >= 64 || size < int64_t(1) << (width - 1))
      below = arith::OrIOp::create(builder, loc, below, isBeyond(arith::CmpIPredicate::sge, size));
    isOut = isOut ? arith::OrIOp::create(builder, loc, isOut, below) : below;
  }
  return arith::SelectOp::create(builder, loc, isOut,
                                 arith::ConstantIntOp::create(builder, loc, number, 32),
                                 arith::ConstantIntOp::create(builder, loc, 0, 32));
}

static Value createZero(OpBuilder &builder, Location loc) {
  Value zero = arith::ConstantIntOp::create(builder, loc, 0, 32);
  Value empty = tensor::EmptyOp::create(builder, loc, ArrayRef<int64_t>(), builder.getI32Type());
  return linalg::FillOp::create(builder, loc, zero, empty).getResult(0);
}

/// Builds the largest value of `inputs` over all places, computed from their elements by
/// `body`.
static Value reduce(OpBuilder &builder, Location loc, ValueRange inputs, ArrayRef<AffineMap> maps,
                    unsigned loops, function_ref<Value(OpBuilder &, ValueRange)> body) {
  SmallVector<AffineMap> all(maps);
  all.push_back(AffineMap::get(loops, 0, builder.getContext()));
  return linalg::GenericOp::create(
             builder, loc, RankedTensorType::get({}, builder.getI32Type()), inputs,
             createZero(builder, loc), all,
             SmallVector<utils::IteratorType>(loops, utils::IteratorType::reduction),
             [&](OpBuilder &inside, Location, ValueRange arguments) {
               Value value = body(inside, arguments.drop_back());
               Value largest = arith::MaxSIOp::create(inside, loc, value, arguments.back());
               linalg::YieldOp::create(inside, loc, largest);
             })
      ->getResult(0);
}

/// Returns the ops of `body` that `values` are computed from, in order.
static SmallVector<Operation *> slice(Block &body, ArrayRef<Value> values) {
  llvm::SetVector<Operation *> needed;
  SmallVector<Value> work(values);
  while (!work.empty()) {
    Operation *op = work.pop_back_val().getDefiningOp();
    if (!op || !body.findAncestorOpInBlock(*op) || !needed.insert(body.findAncestorOpInBlock(*op)))
      continue;
    body.findAncestorOpInBlock(*op)->walk(
        [&](Operation *inner) { llvm::append_range(work, inner->getOperands()); });
  }
  SmallVector<Operation *> ordered;
  for (Operation &op : body)
    if (needed.contains(&op))
      ordered.push_back(&op);
  return ordered;
}

Value CheckIndices::checkInBody(tensor::ExtractOp op, linalg::LinalgOp around,
                                ArrayRef<unsigned> dims) {
  Block &body = *around.getBlock();
  SmallVector<Value> indices =
      llvm::map_to_vector(dims, [&](unsigned dim) { return op.getIndices()[dim]; });
  SmallVector<Operation *> needed = slice(body, indices);
  SmallVector<Value> read(indices);
  for (Operation *each : needed)
    each->walk([&](Operation *inner) { llvm::append_range(read, inner->getOperands()); });

  llvm::SetVector<unsigned> loops;
  SmallVector<BlockArgument> arguments;
  for (BlockArgument argument : body.getArguments())
    if (llvm::is_contained(read, argument)) {
      // An accumulator is not an index.
      if (argument.getArgNumber() >= around.getNumDpsInputs())
        return nullptr;
      arguments.push_back(argument);
      AffineMap map = around.getMatchingIndexingMap(&around->getOpOperand(argument.getArgNumber()));
      for (unsigned loop = 0; loop < around.getNumLoops(); ++loop)
        if (map.isFunctionOfDim(loop))
          loops.insert(loop);
    }
  for (Operation *each : needed)
    each->walk([&](linalg::IndexOp index) { loops.insert(index.getDim()); });
  // Without a tensor to read, all that is known is known now, and front ends write no such.
  bool readsTensor =
      llvm::any_of(needed, [](Operation *each) { return isa<tensor::ExtractOp>(each); });
  if (arguments.empty() && !readsTensor && loops.empty() && needed.empty())
    return nullptr;
  SmallVector<int64_t> ranges = around.getStaticLoopRanges();
  if (llvm::any_of(loops, [&](unsigned loop) { return ShapedType::isDynamic(ranges[loop]); }))
    return nullptr;

  OpBuilder builder(around);
  Location loc = op.getLoc();
  SmallVector<AffineExpr> places(around.getNumLoops(), builder.getAffineConstantExpr(0));
  SmallVector<int64_t> sizes;
  for (auto [place, loop] : llvm::enumerate(loops)) {
    places[loop] = builder.getAffineDimExpr(place);
    sizes.push_back(ranges[loop]);
  }
  SmallVector<Value> inputs;
  SmallVector<AffineMap> maps;
  for (BlockArgument argument : arguments) {
    OpOperand &operand = around->getOpOperand(argument.getArgNumber());
    inputs.push_back(operand.get());
    maps.push_back(
        around.getMatchingIndexingMap(&operand).replaceDimsAndSymbols(places, {}, loops.size(), 0));
  }
  // It says how long the loops are that no input walks.
  auto type = RankedTensorType::get(sizes, builder.getI32Type());
  inputs.push_back(arith::ConstantOp::create(
      builder, loc, DenseElementsAttr::get(type, builder.getI32IntegerAttr(0))));
  maps.push_back(builder.getMultiDimIdentityMap(loops.size()));
  return reduce(builder, loc, inputs, maps, loops.size(), [&](OpBuilder &inside, ValueRange given) {
    IRMapping mapping;
    for (auto [argument, value] : llvm::zip(arguments, given))
      mapping.map(argument, value);
    for (Operation *each : needed) {
      Operation *copy = inside.clone(*each, mapping);
      copy->walk([&](linalg::IndexOp index) {
        index.setDim(llvm::find(loops, index.getDim()) - loops.begin());
      });
    }
    SmallVector<Bounded> bounded;
    for (auto [dim, index] : llvm::zip_equal(dims, indices))
      bounded.push_back({mapping.lookupOrDefault(index), op.getTensor().getType().getDimSize(dim)});
    return compute(inside, loc, bounded, int64_t(sentences.size()) + 1);
  });
}

Value CheckIndices::checkScalars(tensor::ExtractOp op, ArrayRef<unsigned> dims) {
  OpBuilder builder(op);
  SmallVector<Bounded> bounded;
  for (unsigned dim : dims)
    bounded.push_back({op.getIndices()[dim], op.getTensor().getType().getDimSize(dim)});
  Value status = compute(builder, op.getLoc(), bounded, int64_t(sentences.size()) + 1);
  return tensor::FromElementsOp::create(builder, op.getLoc(),
                                        RankedTensorType::get({}, builder.getI32Type()), status);
}

/// Returns the larger of two numbers of checks.
static Value takeLarger(OpBuilder &builder, Location loc, Value a, Value b) {
  SmallVector<AffineMap> maps(2, AffineMap::get(0, 0, builder.getContext()));
  return reduce(builder, loc, {a, b}, maps, 0, [&](OpBuilder &inside, ValueRange values) -> Value {
    return arith::MaxSIOp::create(inside, loc, values[0], values[1]);
  });
}

/// Carries `status`, made in the body of `loop`, to a new last result of it.
static Value leave(scf::ForOp loop, Value status) {
  IRRewriter rewriter(loop);
  Location loc = loop.getLoc();
  Value zero = createZero(rewriter, loc);
  auto wider = cast<scf::ForOp>(**loop.replaceWithAdditionalYields(
      rewriter, zero, /*replaceInitOperandUsesInLoop=*/false,
      [&](OpBuilder &builder, Location, ArrayRef<BlockArgument> carried) {
        return SmallVector<Value>{takeLarger(builder, loc, carried.front(), status)};
      }));
  return wider->getResults().back();
}

/// The same for a loop that data end, whose two regions both pass on the number so far.
static Value leave(scf::WhileOp loop, Value status) {
  OpBuilder builder(loop);
  Location loc = loop.getLoc();
  Type type = status.getType();
  bool isBefore = loop.getBefore().isAncestor(status.getParentRegion());
  SmallVector<Value> inits(loop.getInits());
  inits.push_back(createZero(builder, loc));
  SmallVector<Type> types(loop.getResultTypes());
  types.push_back(type);
  auto wider = scf::WhileOp::create(builder, loc, types, inits);
  wider->setDiscardableAttrs(loop->getDiscardableAttrDictionary());
  wider.getBefore().takeBody(loop.getBefore());
  wider.getAfter().takeBody(loop.getAfter());
  Value before = wider.getBeforeBody()->addArgument(type, loc);
  Value after = wider.getAfterBody()->addArgument(type, loc);
  auto pass = [&](Operation *end, Value carried, bool isHere) {
    OpBuilder inside(end);
    end->insertOperands(end->getNumOperands(),
                        isHere ? takeLarger(inside, loc, carried, status) : carried);
  };
  pass(wider.getConditionOp(), before, isBefore);
  pass(wider.getYieldOp(), after, !isBefore);
  loop->replaceAllUsesWith(wider->getResults().drop_back());
  loop->erase();
  return wider->getResults().back();
}

/// The same for a branch; the number is 0 where the other one is taken.
static Value leave(scf::IfOp branch, Value status) {
  OpBuilder builder(branch);
  Location loc = branch.getLoc();
  SmallVector<Type> types(branch.getResultTypes());
  types.push_back(status.getType());
  auto wider = scf::IfOp::create(builder, loc, types, branch.getCondition(),
                                 /*addThenBlock=*/false, /*addElseBlock=*/false);
  wider->setDiscardableAttrs(branch->getDiscardableAttrDictionary());
  Region *own = status.getParentRegion();
  bool isThen = branch.getThenRegion().isAncestor(own);
  wider.getThenRegion().takeBody(branch.getThenRegion());
  if (branch.getElseRegion().empty()) {
    OpBuilder inside = OpBuilder::atBlockEnd(&wider.getElseRegion().emplaceBlock());
    scf::YieldOp::create(inside, loc);
  } else {
    wider.getElseRegion().takeBody(branch.getElseRegion());
  }
  for (bool isSide : {true, false}) {
    Region &side = isSide ? wider.getThenRegion() : wider.getElseRegion();
    Operation *end = side.front().getTerminator();
    OpBuilder inside(end);
    end->insertOperands(end->getNumOperands(),
                        isSide == isThen ? status : createZero(inside, loc));
  }
  branch->replaceAllUsesWith(wider->getResults().drop_back());
  branch->erase();
  return wider->getResults().back();
}

/// Carries `status` out of the loops and branches that it was made in; null if it is in something
/// else.
static Value carryOut(Value status) {
  while (status) {
    Operation *parent = status.getParentBlock()->getParentOp();
    if (isa<func::FuncOp>(parent))
      return status;
    if (auto loop = dyn_cast<scf::ForOp>(parent))
      status = leave(loop, status);
    else if (auto loop = dyn_cast<scf::WhileOp>(parent))
      status = leave(loop, status);
    else if (auto branch = dyn_cast<scf::IfOp>(parent))
      status = leave(branch, status);
    else
      return nullptr;
  }
  return nullptr;
}

void CheckIndices::check(tensor::ExtractOp op) {
  RankedTensorType type = op.getTensor().getType();
  if (!type.hasStaticShape() || type.getNumElements() == 0)
    return;
  SmallVector<unsigned> dims;
  for (auto [dim, index] : llvm::enumerate(op.getIndices()))
    if (!isIndexInRange(index, type.getDimSize(dim)))
      dims.push_back(dim);
  if (dims.empty())
    return;
  auto around = op->getParentOfType<linalg::LinalgOp>();
  Value status;
  if (around && op->getBlock() == around.getBlock())
    status = checkInBody(op, around, dims);
  else if (!around)
    status = checkScalars(op, dims);
  status = carryOut(status);
  if (!status)
    return;
  // Loops around it may be replaced again, so it is used at once.
  Operation *end = getOperation().getBody().front().getTerminator();
  end->insertOperands(end->getNumOperands(), status);
  std::string sizes;
  for (unsigned dim : dims)
    sizes += (sizes.empty() ? "" : ", ") + std::to_string(type.getDimSize(dim));
  std::string source = printSource(op.getLoc());
  sentences.push_back((source.empty() ? "an operator" : source) + " uses " +
                      (dims.size() == 1
                           ? "an index that is not in [0, " + sizes + ")"
                           : "indices of which one is not below its size, " + sizes));
}

void CheckIndices::runOnOperation() {
  func::FuncOp function = getOperation();
  if (function.isExternal() || !function.getBody().hasOneBlock())
    return;
  SmallVector<tensor::ExtractOp> gathers;
  function.walk([&](tensor::ExtractOp op) { gathers.push_back(op); });
  for (tensor::ExtractOp op : gathers)
    check(op);
  if (sentences.empty())
    return;
  Operation *end = function.getBody().front().getTerminator();
  OpBuilder builder(end);
  unsigned number = function.getNumResults();
  SmallVector<Value> found(llvm::drop_begin(end->getOperands(), number));
  end->eraseOperands(number, found.size());
  Value status = found.front();
  if (found.size() > 1) {
    SmallVector<AffineMap> maps(found.size(), AffineMap::get(0, 0, builder.getContext()));
    status = reduce(builder, function.getLoc(), found, maps, 0,
                    [&](OpBuilder &inside, ValueRange values) {
                      Value largest = values.front();
                      for (Value value : values.drop_front())
                        largest = arith::MaxSIOp::create(inside, function.getLoc(), largest, value);
                      return largest;
                    });
  }
  end->insertOperands(number, status);
  (void)function.insertResult(number, status.getType(),
                              builder.getDictionaryAttr(builder.getNamedAttr(
                                  schedule::nameAttrName, builder.getStringAttr(statusName))));
  SmallVector<StringRef> texts(sentences.begin(), sentences.end());
  function->setAttr(schedule::checksAttrName, builder.getStrArrayAttr(texts));
  sentences.clear();
}

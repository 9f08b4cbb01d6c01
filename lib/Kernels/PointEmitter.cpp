//===- PointEmitter.cpp - Values of tensors at points ---------------------===//
//
// Every address is one affine expression of coordinates, simplified, so that
// walking a tensor in order costs no division, and two loads of the same
// address are known to be the same.
//
//===----------------------------------------------------------------------===//

#include "Blocks.h"
#include "Tuning.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Arith/Utils/Utils.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/AffineExpr.h"
#include "mlir/IR/Matchers.h"

#include <numeric>

using namespace mlir;
using namespace weir;

PointEmitter::PointEmitter(schedule::KernelOp kernel, const KernelDomain &domain,
                           const Profile &profile, Survey &survey, const Survey *known)
    : profile(profile), domain(domain),
      hasMatrices(chooseMatrixTile(domain, profile).has_value() ||
                  chooseMatrixBlockTile(domain, profile).has_value()),
      lanes(hasMatrices ||
                    ((domain.getBlocks() || domain.getShape() == KernelShape::Contraction) &&
                     !chooseSlabTile(domain, profile) && !chooseSlabBlockTile(domain, profile) &&
                     !chooseCooperativeTile(domain, profile))
                ? 2
                : getVectorElements(domain, profile)),
      kernel(kernel), context(kernel.getContext()), loc(kernel.getLoc()), survey(survey),
      known(known), coordinates(maxCoordinates) {
  survey.buffers.resize(kernel.getInputs().size() + kernel.getNumResults());
  computed = llvm::map_to_vector(kernel.getBody().front().getTerminator()->getOperands(),
                                 [](Value value) { return getInserted(value); });
  // One invocation writes a tensor with one element, or with one element per row.
  int64_t rows = domain.getShape() == KernelShape::Row ? getProduct(domain.getRowSizes()) : 1;
  auto isOfOne = [&](Value tensor) {
    int64_t count = cast<RankedTensorType>(tensor.getType()).getNumElements();
    return count == 1 || count == rows;
  };
  for (BlockArgument input : kernel.getBody().getArguments())
    if (isOfOne(input) && llvm::any_of(kernel.getResults(), [&](Value result) {
          return isOfOne(result) && getElementType(result) == getElementType(input) &&
                 cast<RankedTensorType>(result.getType()).getNumElements() ==
                     cast<RankedTensorType>(input.getType()).getNumElements();
        }))
      overwritten.insert(input);
  for (Operation &op : kernel.getBody().front()) {
    if (getOpShape(&op) == OpShape::Pointwise &&
        op.walk([&](Operation *inner) {
            return llvm::any_of(inner->getOperands(),
                                [&](Value v) { return overwritten.contains(v); })
                       ? WalkResult::interrupt()
                       : WalkResult::advance();
          }).wasInterrupted())
      overwritten.insert(op.result_begin(), op.result_end());
    OpShape shape = getOpShape(&op);
    bool after = shape == OpShape::Reduction || shape == OpShape::Contraction;
    for (Value operand : op.getOperands())
      if (Operation *producer = operand.getDefiningOp())
        after |= afterReduction.contains(producer);
    if (after)
      afterReduction.insert(&op);
  }
}

void PointEmitter::setFunction(gpu::GPUFuncOp function, ArrayRef<unsigned> operands) {
  this->function = function;
  buffers.resize(kernel.getInputs().size() + kernel.getNumResults());
  for (auto [index, buffer] : llvm::enumerate(operands))
    buffers[buffer] = function.getArgument(index);
}

//===----------------------------------------------------------------------===//
// Scopes
//===----------------------------------------------------------------------===//

void PointEmitter::pushScope(OpBuilder builder) {
  scopes.emplace_back(builder);
  current = scopes.size() - 1;
}

void PointEmitter::popScope() {
  scopes.pop_back();
  current = scopes.empty() ? 0 : scopes.size() - 1;
}

void PointEmitter::placeScopes(Operation *op, bool after) {
  for (Scope &scope : scopes) {
    if (scope.builder.getInsertionBlock() != op->getBlock())
      continue;
    if (after)
      scope.builder.setInsertionPointAfter(op);
    else
      scope.builder.setInsertionPoint(op);
  }
}

AffineExpr PointEmitter::setCoordinate(unsigned number, Value value) {
  coordinates[number] = {value, depth()};
  return dim(number);
}

SmallVector<Value> PointEmitter::loop(int64_t trips, ValueRange carried, LoopBody body) {
  if (trips == 0)
    return SmallVector<Value>(carried);
  if (trips == 1) {
    pushScope(builder());
    SmallVector<Value> values = body(indexConstant(0), carried);
    popScope();
    return values;
  }
  OpBuilder &outer = builder();
  auto op = scf::ForOp::create(outer, loc, indexConstant(0), indexConstant(trips), indexConstant(1),
                               carried);
  OpBuilder inner = OpBuilder::atBlockBegin(op.getBody());
  placeScopes(op, /*after=*/false);
  pushScope(inner);
  SmallVector<Value> yielded = body(op.getInductionVar(), op.getRegionIterArgs());
  if (carried.empty())
    op.getBody()->getTerminator()->erase();
  builder().setInsertionPointToEnd(op.getBody());
  scf::YieldOp::create(builder(), loc, yielded);
  popScope();
  placeScopes(op, /*after=*/true);
  return SmallVector<Value>(op.getResults());
}

bool PointEmitter::isLongSum(ArrayRef<Operation *> combiners, int64_t terms, int64_t max,
                             int64_t trips) const {
  const int64_t maxUnrolled =
      domain.hasFunctions() ? tuning::sums::maxUnrolledFunctions : tuning::sums::maxUnrolled;
  return terms > max && trips / maxUnrolled <= profile.maxLoopTrips &&
         llvm::any_of(combiners, llvm::IsaPred<arith::AddFOp>);
}

SmallVector<Value> PointEmitter::loopInBlocks(int64_t trips, ValueRange carried,
                                              const SumBlocks &blocks, LoopBody body, LoopEnd end) {
  if (blocks.trips == 0) {
    SmallVector<Value> values = loop(trips, carried, body);
    return end ? end(values) : values;
  }
  auto addBlock = [&](Value first, int64_t count, ValueRange totals, const LoopEnd &endOfBlock) {
    SmallVector<Value> sums = loop(count, blocks.neutral, [&](Value trip, ValueRange running) {
      return body(arith::AddIOp::create(builder(), loc, first, trip), running);
    });
    if (endOfBlock)
      sums = endOfBlock(sums);
    for (auto [number, total] : llvm::enumerate(totals))
      sums[number] =
          combine(blocks.combiners[number % blocks.combiners.size()], total, sums[number]);
    return sums;
  };
  LoopBody addWhole = [&](Value number, ValueRange totals) {
    Value first = arith::MulIOp::create(builder(), loc, number, indexConstant(blocks.trips));
    return addBlock(first, blocks.trips, totals, nullptr);
  };
  const int64_t whole = trips / blocks.trips, rest = trips % blocks.trips;
  SumBlocks ofBlocks = blocks;
  constexpr int64_t maxBlocks = tuning::sums::maxBlocks;
  ofBlocks.trips = blocks.isNested && whole > maxBlocks ? maxBlocks : 0;
  SmallVector<Value> totals = loopInBlocks(whole, carried, ofBlocks, addWhole);
  if (rest == 0 && !end)
    return totals;
  return loop(1, totals, [&](Value, ValueRange running) {
    return addBlock(indexConstant(whole * blocks.trips), rest, running, end);
  });
}

SmallVector<Value> PointEmitter::guard(Value condition, ValueRange otherwise,
                                       std::function<SmallVector<Value>()> body) {
  OpBuilder &outer = builder();
  auto op = scf::IfOp::create(outer, loc, otherwise.getTypes(), condition,
                              /*withElseRegion=*/!otherwise.empty());
  auto terminate = [&](Block &block, ValueRange values) {
    if (!block.empty() && block.back().hasTrait<OpTrait::IsTerminator>())
      block.back().erase();
    OpBuilder end = OpBuilder::atBlockEnd(&block);
    scf::YieldOp::create(end, loc, values);
  };
  placeScopes(op, /*after=*/false);
  pushScope(OpBuilder::atBlockBegin(op.thenBlock()));
  scopes.back().guarded = true;
  SmallVector<Value> values = body();
  popScope();
  terminate(*op.thenBlock(), values);
  if (!otherwise.empty())
    terminate(*op.elseBlock(), otherwise);
  placeScopes(op, /*after=*/true);
  return SmallVector<Value>(op.getResults());
}

void PointEmitter::branch(Value condition, function_ref<void()> first,
                          function_ref<void()> second) {
  auto op = scf::IfOp::create(builder(), loc, condition, /*withElseRegion=*/true);
  placeScopes(op, /*after=*/false);
  for (auto [block, body] : {std::pair(op.thenBlock(), first), {op.elseBlock(), second}}) {
    pushScope(OpBuilder::atBlockBegin(block));
    scopes.back().guarded = true;
    body();
    popScope();
  }
  placeScopes(op, /*after=*/true);
}

unsigned PointEmitter::getScope(AffineExpr expression) const {
  unsigned scope = 0;
  expression.walk([&](AffineExpr part) {
    if (auto dim = dyn_cast<AffineDimExpr>(part))
      scope = std::max(scope, coordinates[dim.getPosition()].scope);
  });
  return scope;
}

unsigned PointEmitter::getGuardedScope() const {
  for (unsigned scope = scopes.size(); scope-- > 0;)
    if (scopes[scope].guarded)
      return scope;
  return 0;
}

//===----------------------------------------------------------------------===//
// Indices
//===----------------------------------------------------------------------===//

/// Whether an expression of coordinates, which are not negative, may be negative by its form.
static bool mayBeNegative(AffineExpr expression) {
  if (auto literal = dyn_cast<AffineConstantExpr>(expression))
    return literal.getValue() < 0;
  auto binary = dyn_cast<AffineBinaryOpExpr>(expression);
  if (!binary || binary.getKind() == AffineExprKind::Mod)
    return false;
  return mayBeNegative(binary.getLHS()) || mayBeNegative(binary.getRHS());
}

static bool dividesNegative(AffineExpr expression) {
  bool found = false;
  expression.walk([&](AffineExpr inner) {
    auto binary = dyn_cast<AffineBinaryOpExpr>(inner);
    found |= binary && binary.getKind() != AffineExprKind::Add &&
             binary.getKind() != AffineExprKind::Mul && mayBeNegative(binary.getLHS());
  });
  return found;
}

/// Divisions are emitted without signs. Upstream takes multiples of a divisor out of a dividend,
/// which may leave a negative one: such an expression stays as it was.
AffineExpr PointEmitter::simplify(AffineExpr expression) const {
  AffineExpr simple = simplifyAffineExpr(expression, maxCoordinates, 0);
  return dividesNegative(simple) && !dividesNegative(expression) ? expression : simple;
}

AffineExpr PointEmitter::atLane(AffineExpr expression, int64_t lane) const {
  return simplify(expression.replace(vectorLane(), constant(lane)));
}

SmallVector<AffineExpr> PointEmitter::apply(AffineMap map, ArrayRef<AffineExpr> loops) const {
  SmallVector<AffineExpr> indices;
  for (AffineExpr result : map.getResults())
    indices.push_back(simplify(result.replaceDims(loops)));
  return indices;
}

SmallVector<AffineExpr> PointEmitter::getLoops(Operation *op, ArrayRef<AffineExpr> point) const {
  SmallVector<AffineExpr> loops;
  for (int64_t dim : domain.getDims(op))
    loops.push_back(dim >= 0   ? point[dim]
                    : dim < -1 ? this->dim(groupCoordinate + -2 - dim)
                               : constant(0));
  const KernelDomain::PartLoops &parts = domain.getPartLoops();
  if (parts.dim < 0 || op != domain.getContractions().front())
    return loops;
  AffineExpr part = point[parts.dim];
  for (const KernelDomain::PartLoops::Loop &loop : llvm::reverse(parts.loops)) {
    bool isLast = &loop == parts.loops.begin();
    AffineExpr digit = isLast ? part : part % loop.digits;
    loops[loop.loop] = simplify(loops[loop.loop] + digit * loop.step);
    part = part.floorDiv(loop.digits);
  }
  return loops;
}

SmallVector<AffineExpr> PointEmitter::delinearize(AffineExpr number,
                                                  ArrayRef<int64_t> sizes) const {
  SmallVector<AffineExpr> digits(sizes.size());
  for (size_t i = sizes.size(); i-- > 0;) {
    if (i == 0) {
      digits[i] = number;
      break;
    }
    // A dimension of size 0 makes the space empty; its code never runs.
    int64_t size = std::max<int64_t>(sizes[i], 1);
    digits[i] = simplify(number % size);
    number = simplify(number.floorDiv(size));
  }
  return digits;
}

SmallVector<int64_t> PointEmitter::getSizes(Value tensor) const {
  auto sizes = llvm::to_vector(cast<RankedTensorType>(tensor.getType()).getShape());
  if (auto found = ofGroup.find(tensor); found != ofGroup.end())
    for (int64_t dim : found->second)
      sizes[dim] = 1;
  return sizes;
}

AffineExpr PointEmitter::linearize(ArrayRef<int64_t> sizes, ArrayRef<AffineExpr> indices) const {
  AffineExpr address = constant(0);
  for (auto [size, index] : llvm::zip_equal(sizes, indices))
    address = address * size + (size == 1 ? constant(0) : index);
  return simplify(address);
}

Value PointEmitter::indexConstant(int64_t value) {
  return arith::ConstantIndexOp::create(builder(), loc, value);
}

Value PointEmitter::expand(AffineExpr expression) {
  unsigned scope = getScope(expression);
  auto [entry, isNew] = scopes[scope].expressions.try_emplace(expression);
  if (!isNew)
    return entry->second;
  Value value;
  if (auto literal = dyn_cast<AffineConstantExpr>(expression)) {
    value = arith::ConstantIndexOp::create(scopes[scope].builder, loc, literal.getValue());
  } else if (auto dim = dyn_cast<AffineDimExpr>(expression)) {
    value = coordinates[dim.getPosition()].value;
    assert(value && "a coordinate is used outside its scope");
  } else {
    auto binary = cast<AffineBinaryOpExpr>(expression);
    Value lhs = expand(binary.getLHS()), rhs = expand(binary.getRHS());
    OpBuilder &b = scopes[scope].builder;
    switch (expression.getKind()) {
    case AffineExprKind::Add:
      value = arith::AddIOp::create(b, loc, lhs, rhs);
      break;
    case AffineExprKind::Mul:
      value = arith::MulIOp::create(b, loc, lhs, rhs);
      break;
    case AffineExprKind::FloorDiv:
      value = arith::DivUIOp::create(b, loc, lhs, rhs);
      break;
    case AffineExprKind::Mod:
      value = arith::RemUIOp::create(b, loc, lhs, rhs);
      break;
    default:
      fail(kernel) << "has an access map with ceildiv, which no kernel computes";
      value = lhs;
    }
  }
  // The recursion may have moved the table's entries.
  scopes[scope].expressions[expression] = value;
  return value;
}

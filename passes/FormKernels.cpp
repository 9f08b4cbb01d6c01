//===- FormKernels.cpp - Group tensor computation into kernels ------------===//
//
// One walk in program order: an op joins the kernels of its producers when one
// kernel can compute them all (KernelDomain says so) and no value would have to
// leave the kernel and come back. Data movement is folded into the maps of its
// readers first, so that transposes and broadcasts cost nothing.
//
//===----------------------------------------------------------------------===//

#include "passes/Passes.h"

#include "mlir/Dialect/Linalg/Transforms/Transforms.h"
#include "mlir/Transforms/GreedyPatternRewriteDriver.h"
#include "weir/Kernels/Domain.h"
#include "weir/Target/ProfileAttr.h"
#include "llvm/ADT/SetVector.h"

#include <queue>

namespace weir {
#define GEN_PASS_DEF_FORMKERNELSPASS
#include "passes/Passes.h.inc"
} // namespace weir

using namespace mlir;
using namespace weir;

namespace {
/// Ops that become one kernel, in program order.
using Group = SmallVector<Operation *>;

class KernelFormer {
public:
  KernelFormer(func::FuncOp function, const Profile &profile)
      : block(function.getBody().front()), profile(profile) {}

  LogicalResult run() {
    if (failed(checkOps()))
      return failure();
    materializeResults();
    formGroups();
    buildKernels();
    return success();
  }

private:
  Block &block;
  const Profile &profile;
  std::vector<Group> groups;               // emptied when merged into another
  DenseMap<Operation *, unsigned> groupOf; // index into `groups`
  DenseMap<Operation *, unsigned> position;

  LogicalResult checkOps();
  void materializeResults();
  void formGroups();
  bool tryJoin(Operation *op, ArrayRef<unsigned> candidates);
  bool fits(const Group &group);
  bool isClosed(const Group &group);
  void buildKernels();
  void buildKernel(const Group &group);
};

struct FormKernels : weir::impl::FormKernelsPassBase<FormKernels> {
  using FormKernelsPassBase::FormKernelsPassBase;

  void runOnOperation() override {
    FailureOr<Profile> profile = getProfile(getOperation());
    if (failed(profile))
      return signalPassFailure();
    for (auto function : getOperation().getOps<func::FuncOp>()) {
      if (failed(normalize(function)) || failed(KernelFormer(function, *profile).run()))
        return signalPassFailure();
    }
  }

private:
  LogicalResult normalize(func::FuncOp function);
};
} // namespace

/// Makes every structured op a `linalg.generic` and folds pure data movement
/// into the maps of its readers.
LogicalResult FormKernels::normalize(func::FuncOp function) {
  IRRewriter rewriter(&getContext());
  SmallVector<linalg::LinalgOp> named;
  function.walk([&](linalg::LinalgOp op) {
    if (!isa<linalg::GenericOp>(op))
      named.push_back(op);
  });
  for (linalg::LinalgOp op : named) {
    rewriter.setInsertionPoint(op);
    if (failed(linalg::generalizeNamedOp(rewriter, op)))
      return op->emitOpError("has no generic form, so no kernel computes it");
  }
  RewritePatternSet patterns(&getContext());
  linalg::populateElementwiseOpsFusionPatterns(patterns, [](OpOperand *operand) {
    auto producer = operand->get().getDefiningOp<linalg::GenericOp>();
    return producer && llvm::hasSingleElement(*producer.getBody()) && !getSplat(operand->get());
  });
  return applyPatternsGreedily(function, std::move(patterns));
}

/// What a value is a reshape of; reshapes move no bytes.
static Value stripReshapes(Value value) {
  while (isa_and_nonnull<tensor::ExpandShapeOp, tensor::CollapseShapeOp>(value.getDefiningOp()))
    value = value.getDefiningOp()->getOperand(0);
  return value;
}

/// Returns a copy of `value`, computed by a kernel.
static Value createCopy(OpBuilder &builder, Location loc, Value value) {
  auto type = cast<RankedTensorType>(value.getType());
  Value empty = tensor::EmptyOp::create(builder, loc, type.getShape(), type.getElementType());
  AffineMap identity = builder.getMultiDimIdentityMap(type.getRank());
  SmallVector<utils::IteratorType> loops(type.getRank(), utils::IteratorType::parallel);
  return linalg::GenericOp::create(builder, loc, type, value, empty,
                                   ArrayRef<AffineMap>{identity, identity}, loops,
                                   [](OpBuilder &b, Location loc, ValueRange values) {
                                     linalg::YieldOp::create(b, loc, values.front());
                                   })
      .getResult(0);
}

/// Every op must have a place: in a kernel, or as a constant or reshape between
/// kernels. Reports all that have none.
LogicalResult KernelFormer::checkOps() {
  bool allPlaced = true;
  for (Operation &op : block.without_terminator()) {
    if (isa<tensor::ExpandShapeOp, tensor::CollapseShapeOp, arith::ConstantOp>(op) ||
        getOpShape(&op) == OpShape::Free)
      continue;
    if (getOpShape(&op) != OpShape::Other && KernelDomain::build(&op))
      continue;
    allPlaced = false;
    if (isa<linalg::GenericOp>(op))
      op.emitOpError("has no kernel: it neither computes every point for itself nor reduces with a "
                     "combiner that has a neutral element");
    else
      op.emitOpError("has no kernel");
  }
  return success(allPlaced);
}

/// Every result of the function becomes bytes that some kernel writes for it
/// alone, and every other tensor that a reshape reads becomes one too.
void KernelFormer::materializeResults() {
  for (Operation &op : block)
    if (isa<tensor::ExpandShapeOp, tensor::CollapseShapeOp>(op)) {
      Value source = op.getOperand(0);
      Operation *producer = source.getDefiningOp();
      if (producer && getOpShape(producer) == OpShape::Free) {
        OpBuilder builder(&op);
        op.setOperand(0, createCopy(builder, op.getLoc(), source));
      }
    }
  Operation *terminator = block.getTerminator();
  llvm::SmallDenseSet<Value> taken;
  OpBuilder builder(terminator);
  for (OpOperand &operand : terminator->getOpOperands()) {
    Value base = stripReshapes(operand.get());
    Operation *producer = base.getDefiningOp();
    bool computed =
        producer && isa<linalg::GenericOp>(producer) && getOpShape(producer) != OpShape::Free;
    if (!computed || !taken.insert(base).second)
      operand.set(createCopy(builder, terminator->getLoc(), operand.get()));
  }
}

/// Inputs and results of a kernel made of `group`.
static void getOperands(const Group &group, SetVector<Value> &inputs, SetVector<Value> &results) {
  llvm::SmallPtrSet<Operation *, 16> inside(group.begin(), group.end());
  for (Operation *op : group) {
    for (Value operand : op->getOperands()) {
      Operation *producer = operand.getDefiningOp();
      bool isFree =
          producer && (inside.contains(producer) || getOpShape(producer) == OpShape::Free);
      if (!isFree && isa<RankedTensorType>(operand.getType()))
        inputs.insert(operand);
    }
    for (Value result : op->getResults())
      if (llvm::any_of(result.getUsers(), [&](Operation *user) {
            return !inside.contains(user) && !inside.contains(user->getParentOp());
          }))
        results.insert(result);
  }
}

/// Whether one kernel can compute `group` within the profile's limits.
bool KernelFormer::fits(const Group &group) {
  std::optional<KernelDomain> domain = KernelDomain::build(group);
  if (!domain)
    return false;
  SetVector<Value> inputs, results;
  getOperands(group, inputs, results);
  if (int64_t(inputs.size() + results.size()) > profile.storageBuffersPerStage)
    return false;
  // A prologue is computed again for every tile: only what is as cheap as a load.
  constexpr unsigned cheapOps = 4;
  for (Operation *op : group)
    if (domain->isPrologue(op)) {
      Block *body = cast<linalg::GenericOp>(op).getBody();
      if (body->getOperations().size() > cheapOps + 1 || llvm::any_of(*body, [](Operation &inner) {
            return isa<math::MathDialect>(inner.getDialect());
          }))
        return false;
    }
  return true;
}

/// Whether no value leaves the group and comes back to it through other ops.
bool KernelFormer::isClosed(const Group &group) {
  llvm::SmallPtrSet<Operation *, 16> inside(group.begin(), group.end());
  unsigned last = position.lookup(group.back());
  // Ops outside that depend on the group, with all that shares a kernel with them.
  SmallVector<Operation *> work(group.begin(), group.end());
  llvm::SmallPtrSet<Operation *, 32> seen;
  while (!work.empty()) {
    Operation *op = work.pop_back_val();
    for (Operation *user : op->getUsers()) {
      user = block.findAncestorOpInBlock(*user);
      if (inside.contains(user)) {
        if (!inside.contains(op))
          return false;
        continue;
      }
      SmallVector<Operation *> reached = {user};
      if (auto other = groupOf.find(user); other != groupOf.end())
        reached = groups[other->second];
      for (Operation *next : reached)
        if (position.lookup(next) <= last && seen.insert(next).second)
          work.push_back(next);
    }
  }
  return true;
}

bool KernelFormer::tryJoin(Operation *op, ArrayRef<unsigned> candidates) {
  Group merged = {op};
  for (unsigned candidate : candidates)
    llvm::append_range(merged, groups[candidate]);
  llvm::sort(merged, [&](Operation *a, Operation *b) { return position[a] < position[b]; });
  if (!fits(merged) || !isClosed(merged))
    return false;
  for (unsigned candidate : candidates)
    groups[candidate].clear();
  unsigned target = candidates.front();
  for (Operation *member : merged)
    groupOf[member] = target;
  groups[target] = std::move(merged);
  return true;
}

void KernelFormer::formGroups() {
  for (auto [index, op] : llvm::enumerate(block))
    position[&op] = index;
  for (Operation &op : block.without_terminator()) {
    OpShape shape = getOpShape(&op);
    if (shape == OpShape::Free || !isa<linalg::GenericOp>(op))
      continue;
    // Kernels that make operands, the latest first.
    SmallVector<unsigned> candidates;
    for (Value operand : op.getOperands()) {
      Operation *producer = operand.getDefiningOp();
      auto group = producer ? groupOf.find(producer) : groupOf.end();
      if (group != groupOf.end() && !llvm::is_contained(candidates, group->second))
        candidates.push_back(group->second);
    }
    llvm::sort(candidates, [&](unsigned a, unsigned b) {
      return position[groups[a].back()] > position[groups[b].back()];
    });
    bool joined = candidates.size() > 1 && tryJoin(&op, candidates);
    for (unsigned candidate : candidates)
      joined = joined || tryJoin(&op, candidate);
    if (joined)
      continue;
    groupOf[&op] = groups.size();
    groups.push_back({&op});
  }
}

void KernelFormer::buildKernel(const Group &group) {
  SetVector<Value> inputs, results;
  getOperands(group, inputs, results);
  OpBuilder builder(block.getTerminator());
  std::optional<KernelDomain> domain = KernelDomain::build(group);
  std::string name = domain->getShape() == KernelShape::Map   ? "map"
                     : domain->getShape() == KernelShape::Row ? "row"
                                                              : "contraction";
  char separator = '_';
  for (int64_t size : domain->getSizes()) {
    name += separator + std::to_string(size);
    separator = 'x';
  }

  SmallVector<Location> locations;
  for (Operation *op : group)
    locations.push_back(op->getLoc());
  auto kernel = schedule::KernelOp::create(
      builder, builder.getFusedLoc(locations),
      llvm::map_to_vector(results, [](Value value) { return value.getType(); }),
      builder.getStringAttr(name), inputs.getArrayRef());
  Block *body = builder.createBlock(&kernel.getBody());
  IRMapping mapping;
  for (Value input : inputs)
    mapping.map(input, body->addArgument(input.getType(), input.getLoc()));

  // Free ops are repeated inside, with the scalars that bodies capture.
  std::function<void(Operation *)> bring = [&](Operation *op) {
    op->walk([&](Operation *inner) {
      for (Value operand : inner->getOperands()) {
        Operation *producer = operand.getDefiningOp();
        if (producer && !mapping.contains(operand) && producer->getBlock() == &block)
          bring(producer);
      }
    });
    builder.clone(*op, mapping);
  };
  for (Operation *op : group)
    bring(op);
  schedule::YieldOp::create(
      builder, kernel.getLoc(),
      llvm::map_to_vector(results, [&](Value value) { return mapping.lookup(value); }));
  for (auto [value, result] : llvm::zip_equal(results, kernel.getResults())) {
    Value old = value;
    old.replaceUsesWithIf(
        result, [&](OpOperand &use) { return !llvm::is_contained(group, use.getOwner()); });
  }
}

/// Replaces the groups by kernels, in an order in which operands come first and
/// that follows the program otherwise.
void KernelFormer::buildKernels() {
  // Units are groups and single ops, known by the position of their last op.
  std::map<unsigned, SmallVector<Operation *>> units;
  DenseMap<Operation *, unsigned> unitOf;
  for (Operation &op : block.without_terminator())
    if (!groupOf.contains(&op))
      units[position.lookup(&op)] = {&op};
  for (const Group &group : groups)
    if (!group.empty())
      units[position[group.back()]] = group;
  for (auto &[unit, ops] : units)
    for (Operation *op : ops)
      unitOf[op] = unit;

  DenseMap<unsigned, unsigned> waitsFor;
  DenseMap<unsigned, SetVector<unsigned>> readers;
  for (auto &[unit, ops] : units) {
    SetVector<unsigned> producers;
    for (Operation *op : ops)
      op->walk([&](Operation *inner) {
        for (Value operand : inner->getOperands())
          if (Operation *producer = operand.getDefiningOp())
            if (auto found = unitOf.find(producer); found != unitOf.end() && found->second != unit)
              producers.insert(found->second);
      });
    waitsFor[unit] = producers.size();
    for (unsigned producer : producers)
      readers[producer].insert(unit);
  }
  std::priority_queue<unsigned, std::vector<unsigned>, std::greater<>> ready;
  for (auto &[unit, ops] : units)
    if (waitsFor[unit] == 0)
      ready.push(unit);
  SmallVector<Operation *> replaced;
  while (!ready.empty()) {
    unsigned unit = ready.top();
    ready.pop();
    SmallVector<Operation *> &ops = units[unit];
    if (groupOf.contains(ops.front())) {
      buildKernel(ops);
      llvm::append_range(replaced, ops);
    } else {
      ops.front()->moveBefore(block.getTerminator());
    }
    for (unsigned reader : readers[unit])
      if (--waitsFor[reader] == 0)
        ready.push(reader);
  }
  for (Operation *op : llvm::reverse(replaced))
    op->erase();
  // What only kernels used was repeated inside them.
  SmallVector<Operation *> rest;
  for (Operation &op : block.without_terminator())
    rest.push_back(&op);
  for (Operation *op : llvm::reverse(rest))
    if (isOpTriviallyDead(op))
      op->erase();
}

//===- FormKernels.cpp - Group tensor computation into kernels ------------===//
//
// One walk in program order: an op joins the kernels of its producers when one
// kernel can compute them all (KernelDomain says so) and no value would have to
// leave the kernel and come back. Kernels that read the same tensor are then made
// one.
//
//===----------------------------------------------------------------------===//

#include "passes/kernels/Scalars.h"

#include "dialects/Schedule/Schedule.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/Remarks.h"
#include "mlir/Pass/Pass.h"
#include "weir/Kernels/Emitter.h"
#include "weir/Target/ProfileAttr.h"
#include "llvm/ADT/EquivalenceClasses.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/ADT/StringExtras.h"

#include <queue>
#include <set>

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
      : function(function), block(function.getBody().front()), profile(profile) {}

  LogicalResult run() {
    giveScalars();
    if (failed(checkOps()))
      return failure();
    materializeResults();
    for (auto [index, op] : llvm::enumerate(block))
      position[&op] = index;
    findOverwriters();
    formBlocks();
    formGroups();
    allFormed = true;
    mergeSiblings();
    if (function.getContext()->getRemarkEngine())
      findApart();
    buildKernels();
    reportApart();
    return success();
  }

private:
  func::FuncOp function;
  Block &block;
  const Profile &profile;
  std::vector<Group> groups;               // emptied when merged into another
  DenseMap<Operation *, unsigned> groupOf; // index into `groups`
  DenseMap<Operation *, unsigned> position;
  /// Maps an op that reads a donated argument to the later ops that make the argument's
  /// next value. To write it in place they would have to wait for the reader.
  DenseMap<Operation *, SmallVector<Operation *>> overwriters;
  DenseMap<Operation *, SmallVector<Operation *>> overwritten; ///< the other way round
  std::set<std::array<size_t, 4>> apart; ///< pairs of groups and their sizes: not one kernel
  bool allFormed = false;                ///< every op has its group
  /// Maps the op that makes an insertion's source to all ops of the insertion: one group
  /// from the start.
  DenseMap<Operation *, Group> insertions;
  /// Two groups of which one reads what the other makes, and why they are not one.
  struct Apart {
    unsigned producer, reader; ///< indices into `groups`
    std::string why;
  };
  std::vector<Apart> apartGroups;
  DenseMap<unsigned, std::pair<int64_t, Location>> kernels; ///< by group: number and place

  void giveScalars();
  LogicalResult checkOps();
  void materializeResults();
  void findOverwriters();
  std::vector<Group> findBlocks();
  bool canBeInBlocks(const Group &group);
  bool tryOneWalk(Group &rows, Group &sums);
  void formBlocks();
  SmallVector<unsigned> getCandidates(const Group &group);
  void formGroups();
  bool tryMerge(ArrayRef<unsigned> merging);
  bool overwrites(unsigned group, unsigned other) const;
  void mergeReaders(const SetVector<Value> &values, std::optional<unsigned> target);
  void mergeSiblings();
  bool fits(const Group &group, std::string *why = nullptr);
  SmallVector<Operation *> getNeighbours(Operation *op, bool behind) const;
  bool isClosed(const Group &group);
  std::string explainApart(unsigned producer, unsigned reader);
  void findApart();
  void reportApart();
  void buildKernels();
  void buildKernel(const Group &group);
  void reportKernel(schedule::KernelOp kernel, int64_t number, const Group &group);
};

struct FormKernels : weir::impl::FormKernelsPassBase<FormKernels> {
  using FormKernelsPassBase::FormKernelsPassBase;

  void runOnOperation() override {
    FailureOr<Profile> profile = getProfile(getOperation());
    if (failed(profile))
      return signalPassFailure();
    for (auto function : getOperation().getOps<func::FuncOp>())
      if (failed(KernelFormer(function, *profile).run()))
        return signalPassFailure();
  }
};
} // namespace

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

/// Gives each insertion its own source, which a kernel computes, and its own scalars for
/// offsets. Gives each body its own scalars. None are left between the ops.
void KernelFormer::giveScalars() {
  for (auto op : llvm::make_early_inc_range(block.getOps<tensor::InsertSliceOp>())) {
    OpBuilder builder(op);
    Value source = stripReshapes(op.getSource());
    Value copy = createCopy(builder, op.getLoc(), source);
    IRMapping reshaped, scalars;
    reshaped.map(source, copy);
    std::function<Value(Value)> reshape = [&](Value value) {
      if (!reshaped.contains(value)) {
        reshape(value.getDefiningOp()->getOperand(0));
        builder.clone(*value.getDefiningOp(), reshaped);
      }
      return reshaped.lookup(value);
    };
    op.getSourceMutable().assign(reshape(op.getSource()));
    for (OpOperand &offset : op.getOffsetsMutable())
      offset.set(repeatScalar(builder, offset.get(), scalars));
    Group group;
    for (Operation *made = copy.getDefiningOp(); made != op; made = made->getNextNode())
      group.push_back(made);
    group.push_back(op);
    insertions[copy.getDefiningOp()] = std::move(group);
  }
  // Named ops take scalars, too, and equal scalars of bodies may have become one.
  for (auto op : block.getOps<linalg::GenericOp>())
    repeatScalars(op);
  for (Operation &op : llvm::make_early_inc_range(llvm::reverse(block)))
    if (isOpTriviallyDead(&op))
      op.erase();
}

/// Checks that every op belongs into a kernel, or is a constant, reshape or concatenation
/// between kernels. Reports all others.
LogicalResult KernelFormer::checkOps() {
  bool allPlaced = true;
  llvm::SmallPtrSet<Operation *, 8> inserted;
  for (const auto &[copy, group] : insertions)
    if (getOpShape(copy) != OpShape::Free)
      inserted.insert(group.begin(), group.end());
  for (Operation &op : block.without_terminator()) {
    if (inserted.contains(&op) || isReshape(&op) || isa<arith::ConstantOp>(op) ||
        getOpShape(&op) == OpShape::Free)
      continue;
    if (auto concat = dyn_cast<tensor::ConcatOp>(op); concat && liesInPlace(concat, profile))
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

/// Whether a scatter may change its init in place: it is all that uses a donated argument, whose
/// bytes become one result, or all that uses what a kernel makes.
static bool ownsInit(linalg::GenericOp scatter, Block &block) {
  Value init = scatter.getDpsInits().front();
  for (; init.hasOneUse() && isReshape(init.getDefiningOp());
       init = init.getDefiningOp()->getOperand(0))
    ;
  if (!init.hasOneUse())
    return false;
  auto argument = dyn_cast<BlockArgument>(init);
  if (!argument)
    return isa<linalg::GenericOp>(init.getDefiningOp()) &&
           getOpShape(init.getDefiningOp()) != OpShape::Free;
  auto isResult = [&](OpOperand &result) {
    return stripReshapes(result.get()) == scatter->getResult(0);
  };
  return cast<func::FuncOp>(block.getParentOp())
             .getArgAttr(argument.getArgNumber(), schedule::donateAttrName) &&
         llvm::count_if(block.getTerminator()->getOpOperands(), isResult) == 1;
}

/// Adds copies so that a kernel writes each result of the function, each part of a concatenation
/// and each tensor that a scatter changes into bytes of its own, and each other tensor that a
/// reshape reads into some bytes.
void KernelFormer::materializeResults() {
  for (Operation &op : block)
    if (isReshape(&op)) {
      Value source = op.getOperand(0);
      Operation *producer = source.getDefiningOp();
      if (producer && getOpShape(producer) == OpShape::Free) {
        OpBuilder builder(&op);
        op.setOperand(0, createCopy(builder, op.getLoc(), source));
      }
    }
  for (auto op : block.getOps<linalg::GenericOp>())
    if (op->hasAttr(schedule::scatterAttrName) && !ownsInit(op, block)) {
      OpBuilder builder(op);
      OpOperand &init = op.getDpsInitsMutable()[0];
      init.set(createCopy(builder, op.getLoc(), init.get()));
    }
  llvm::SmallDenseSet<Value> taken;
  auto place = [&](OpOperand &operand) {
    Value base = stripReshapes(operand.get());
    Operation *producer = base.getDefiningOp(), *owner = operand.getOwner();
    bool changes = producer && (isa<tensor::InsertSliceOp>(producer) ||
                                producer->hasAttr(schedule::scatterAttrName));
    bool isComputed = producer && getOpShape(producer) != OpShape::Free &&
                      (changes ? owner == block.getTerminator()
                               : isa<linalg::GenericOp, tensor::ConcatOp>(producer));
    OpBuilder builder(owner);
    if (!isComputed || !taken.insert(base).second)
      operand.set(createCopy(builder, owner->getLoc(), operand.get()));
  };
  for (auto concat : block.getOps<tensor::ConcatOp>())
    llvm::for_each(concat->getOpOperands(), place);
  llvm::for_each(block.getTerminator()->getOpOperands(), place);
}

void KernelFormer::findOverwriters() {
  for (OpOperand &result : block.getTerminator()->getOpOperands()) {
    Attribute name = function.getResultAttr(result.getOperandNumber(), schedule::nameAttrName);
    Operation *writer = stripReshapes(result.get()).getDefiningOp();
    for (BlockArgument argument : block.getArguments()) {
      unsigned index = argument.getArgNumber();
      if (!name || function.getArgAttr(index, schedule::nameAttrName) != name ||
          !function.getArgAttr(index, schedule::donateAttrName))
        continue;
      SmallVector<Value> names = {argument};
      while (!names.empty())
        for (Operation *reader : names.pop_back_val().getUsers()) {
          if (isReshape(reader))
            names.push_back(reader->getResult(0));
          else if (Operation *op = block.findAncestorOpInBlock(*reader);
                   position.lookup(op) < position.lookup(writer)) {
            overwriters[op].push_back(writer);
            overwritten[writer].push_back(op);
          }
        }
    }
  }
}

/// Adds the inputs and results of a kernel made of `group` to `inputs` and `results`.
static void getOperands(const Group &group, SetVector<Value> &inputs, SetVector<Value> &results) {
  llvm::SmallPtrSet<Operation *, 16> inside(group.begin(), group.end());
  for (Operation *op : group) {
    op->walk([&](Operation *reader) {
      for (Value operand : reader->getOperands()) {
        Operation *producer = operand.getDefiningOp();
        bool isFree =
            producer && (inside.contains(producer) || getOpShape(producer) == OpShape::Free);
        if (!isFree && isa<RankedTensorType>(operand.getType()))
          inputs.insert(operand);
      }
    });
    for (Value result : op->getResults())
      if (llvm::any_of(result.getUsers(), [&](Operation *user) {
            return !inside.contains(user) && !inside.contains(user->getParentOp());
          }))
        results.insert(result);
  }
}

/// Returns the domain of a group, or nothing.
static std::optional<KernelDomain> getDomain(const Group &group, StringRef *why = nullptr) {
  Group computed;
  llvm::copy_if(group, std::back_inserter(computed), llvm::IsaPred<linalg::GenericOp>);
  return KernelDomain::build(computed, why);
}

/// Whether nothing else in `group` uses an insertion's destination or result: one
/// invocation writes elements that others would read.
static bool keepsInsertions(const Group &group) {
  llvm::SmallPtrSet<Operation *, 16> inside(group.begin(), group.end());
  auto isUsedInside = [&](Value value) {
    return llvm::count_if(value.getUsers(), [&](Operation *user) {
      while (user && !inside.contains(user))
        user = user->getParentOp();
      return user != nullptr;
    });
  };
  for (Operation *op : group) {
    auto read = dyn_cast<tensor::ExtractOp>(op);
    if (read && inside.contains(read.getTensor().getDefiningOp()))
      return false;
    auto insertion = dyn_cast<tensor::InsertSliceOp>(op);
    Operation *into = insertion ? insertion.getDest().getDefiningOp() : nullptr;
    bool isFresh = into && getOpShape(into) == OpShape::Free;
    if (insertion && ((!isFresh && isUsedInside(insertion.getDest()) > 1) ||
                      isUsedInside(insertion) > 0 || inside.contains(into)))
      return false;
  }
  return true;
}

/// Whether one kernel can compute `group` within the profile's limits. Otherwise sets
/// `why`, if given, to the reason.
bool KernelFormer::fits(const Group &group, std::string *why) {
  auto refuse = [&](const Twine &reason) {
    if (why)
      *why = reason.str();
    return false;
  };
  if (group.size() > 1 &&
      llvm::any_of(group, [](Operation *op) { return op->hasAttr(schedule::noFuseAttrName); }))
    return refuse("weir.no_fuse asks for a kernel of its own");
  StringRef noDomain;
  std::optional<KernelDomain> domain = getDomain(group, &noDomain);
  if (!domain)
    return refuse(noDomain);
  if (!keepsInsertions(group))
    return refuse("what an insertion writes, or writes into, is read by others of the kernel");
  SetVector<Value> inputs, results;
  getOperands(group, inputs, results);
  if (int64_t buffers = inputs.size() + results.size(); buffers > profile.storageBuffersPerStage)
    return refuse("one kernel would have " + Twine(buffers) + " buffers, the target allows " +
                  Twine(profile.storageBuffersPerStage));
  if (domain->getContractions().size() > 1 && !profile.hasFreeVectors())
    return refuse("a subgroup keeps the sums of one contraction in registers");
  // The parts of columns are kept until the last row of theirs is done.
  std::optional<int64_t> keptBytes = getKeptColumnBytes(*domain, profile);
  if (!keptBytes || *keptBytes > profile.privateRowBytes)
    return refuse("an invocation cannot hold the parts of its columns in " +
                  Twine(profile.privateRowBytes) + " bytes");
  // A prologue is computed again for every tile: only what is as cheap as a load.
  // Values made of a block's sums are computed once for each of its points.
  constexpr unsigned cheapOps = 4;
  llvm::SmallPtrSet<Operation *, 8> ofBlocks;
  for (Operation *op : group) {
    bool reads = llvm::any_of(op->getOperands(), [&](Value operand) {
      return ofBlocks.contains(operand.getDefiningOp());
    });
    if (reads || (domain->getBlocks() && op->hasAttr(schedule::inBlocksAttrName)))
      ofBlocks.insert(op);
  }
  for (Operation *op : group)
    if (isa<linalg::GenericOp>(op) && domain->isPrologue(op) && !ofBlocks.contains(op)) {
      Block *body = cast<linalg::GenericOp>(op).getBody();
      if (body->getOperations().size() > cheapOps + 1 || llvm::any_of(*body, [](Operation &inner) {
            return isa<math::MathDialect, tensor::TensorDialect>(inner.getDialect());
          }))
        return refuse("a contraction computes what it reads again for every tile, and this is "
                      "not as cheap as a load");
    }
  return true;
}

/// Returns the ops that wait for `op` if `behind`, else those that `op` waits for.
SmallVector<Operation *> KernelFormer::getNeighbours(Operation *op, bool behind) const {
  SmallVector<Operation *> neighbours = (behind ? overwriters : overwritten).lookup(op);
  if (behind)
    for (Operation *user : op->getUsers())
      neighbours.push_back(block.findAncestorOpInBlock(*user));
  else
    op->walk([&](Operation *reader) {
      for (Value operand : reader->getOperands())
        if (Operation *producer = operand.getDefiningOp(); producer && position.contains(producer))
          neighbours.push_back(producer);
    });
  return neighbours;
}

/// Whether no value leaves the group and comes back to it through other ops, and no op of
/// the group has to wait outside of it for readers of bytes that the group overwrites.
bool KernelFormer::isClosed(const Group &group) {
  llvm::SmallPtrSet<Operation *, 16> inside(group.begin(), group.end());
  unsigned last = allFormed ? position.size() : position.lookup(group.back());
  // Ops outside that depend on the group, with all that shares a kernel with them, and
  // those that the group depends on. A step of either search in turn: one often ends soon
  // where the other would look at most of the function.
  struct Search {
    bool behind;
    SmallVector<Operation *> work; // those before `next` are done: the nearest come first
    size_t next = 0;
    llvm::SmallPtrSet<Operation *, 32> seen = {};
  };
  Search searches[] = {{true, group}, {false, group}};
  while (true)
    for (Search &search : searches) {
      if (search.next == search.work.size())
        return true;
      Operation *op = search.work[search.next++];
      for (Operation *neighbour : getNeighbours(op, search.behind)) {
        if (inside.contains(neighbour)) {
          if (!inside.contains(op))
            return false;
          continue;
        }
        SmallVector<Operation *> reached = {neighbour};
        if (auto other = groupOf.find(neighbour); other != groupOf.end())
          reached = groups[other->second];
        for (Operation *next : reached)
          if (position.lookup(next) <= last && search.seen.insert(next).second)
            search.work.push_back(next);
      }
    }
}

bool KernelFormer::tryMerge(ArrayRef<unsigned> merging) {
  Group merged;
  for (unsigned group : merging)
    llvm::append_range(merged, groups[group]);
  llvm::sort(merged, [&](Operation *a, Operation *b) { return position[a] < position[b]; });
  if (!fits(merged) || !isClosed(merged))
    return false;
  for (unsigned group : merging)
    groups[group].clear();
  unsigned target = merging.front();
  for (Operation *member : merged)
    groupOf[member] = target;
  groups[target] = std::move(merged);
  return true;
}

/// Whether an op is computed from the sums of contractions in blocks, and makes a tensor of it.
static bool readsBlocks(Operation *op) {
  OpShape shape = getOpShape(op);
  return shape == OpShape::Reduction ||
         (shape == OpShape::Contraction && !op->hasAttr(schedule::inBlocksAttrName));
}

/// Returns the contractions that are to be computed in blocks, each reader of theirs, and all
/// between them: a group for each reader, or two reductions.
std::vector<Group> KernelFormer::findBlocks() {
  llvm::EquivalenceClasses<Operation *> classes;
  SmallVector<Operation *> open;
  for (auto op : block.getOps<linalg::GenericOp>())
    if (op->hasAttr(schedule::inBlocksAttrName))
      open.push_back(op);
  llvm::SmallPtrSet<Operation *, 32> seen(open.begin(), open.end());
  while (!open.empty()) {
    Operation *op = open.pop_back_val();
    classes.insert(op);
    for (Operation *user : op->getUsers()) {
      if (!isa<linalg::GenericOp>(user) ||
          (readsBlocks(op) && !(seen.contains(user) && getOpShape(user) == OpShape::Reduction)))
        continue;
      classes.unionSets(op, user);
      if (seen.insert(user).second)
        open.push_back(user);
    }
  }
  std::map<unsigned, Group> groups; // by the first op's position
  for (const auto &entry : classes) {
    if (!entry->isLeader())
      continue;
    Group group(classes.member_begin(*entry), classes.member_end());
    llvm::sort(group, [&](Operation *a, Operation *b) { return position[a] < position[b]; });
    groups[position[group.front()]] = group;
  }
  std::vector<Group> found;
  for (auto &[first, group] : groups)
    found.push_back(std::move(group));
  return found;
}

bool KernelFormer::canBeInBlocks(const Group &group) {
  std::optional<KernelDomain> domain = getDomain(group);
  return domain && domain->getBlocks() && fits(group) && isClosed(group);
}

namespace {
/// Finds ops of one group that compute what ops of another one do, from the same operands.
class EqualOps {
public:
  explicit EqualOps(const Group &originals) : originals(originals) {}

  /// Returns the op that computes the same, or null. Equal operands must have been asked for.
  Operation *find(Operation *op) {
    for (Operation *original : originals)
      if (areEqual(op, original)) {
        for (auto [own, same] : llvm::zip_equal(op->getResults(), original->getResults()))
          equal[own] = same;
        return original;
      }
    return nullptr;
  }

private:
  const Group &originals;
  DenseMap<Value, Value> equal;

  bool areEqual(Operation *op, Operation *original) {
    DenseMap<Value, Value> ofBody;
    return OperationEquivalence::isEquivalentTo(
        op, original,
        [&](Value own, Value other) {
          return success(ofBody.lookup(own) == other || areEqual(own, other));
        },
        [&](Value own, Value other) { ofBody[own] = other; },
        OperationEquivalence::IgnoreLocations | OperationEquivalence::IgnoreDiscardableAttrs);
  }
  bool areEqual(Value own, Value other) {
    if (own == other || equal.lookup(own) == other)
      return true;
    Operation *first = own.getDefiningOp(), *second = other.getDefiningOp();
    return first && second && getOpShape(first) == OpShape::Free &&
           getOpShape(second) == OpShape::Free && areEqual(first, second);
  }
};
} // namespace

/// Adds the ops of a group that sums products to those that reduce its rows, without those that
/// compute the same, if one walk makes both. Leaves all as it was otherwise.
bool KernelFormer::tryOneWalk(Group &rows, Group &sums) {
  EqualOps equal(rows);
  Group merged(rows), repeated;
  DenseMap<Value, Value> originals;
  for (Operation *op : sums) {
    Operation *original = equal.find(op);
    (original ? repeated : merged).push_back(op);
    if (original)
      for (auto [own, same] : llvm::zip_equal(op->getResults(), original->getResults()))
        originals[own] = same;
  }
  SmallVector<std::pair<OpOperand *, Value>> changed;
  for (auto [own, original] : originals)
    for (OpOperand &use : own.getUses())
      if (!llvm::is_contained(repeated, use.getOwner()))
        changed.emplace_back(&use, original);
  if (changed.empty())
    return false;
  auto exchange = [&] {
    for (auto &[use, value] : changed) {
      Value before = use->get();
      use->set(value);
      value = before;
    }
  };
  exchange();
  llvm::sort(merged, [&](Operation *a, Operation *b) { return position[a] < position[b]; });
  if (!canBeInBlocks(merged)) {
    exchange();
    return false;
  }
  rows = std::move(merged);
  sums.clear();
  for (Operation *op : llvm::reverse(repeated)) {
    position.erase(op);
    op->erase();
  }
  return true;
}

/// Makes a group of each reader that computes contractions in blocks, with these. One that reads
/// the maxima of rows is summed in the walk that makes them, where a kernel can. Where no kernel
/// can compute in blocks, they are ordinary ones.
void KernelFormer::formBlocks() {
  std::vector<Group> formed = findBlocks();
  auto readsMaximum = [](const Group &sums, const Group &rows) {
    return llvm::any_of(sums, [&](Operation *op) {
      return llvm::any_of(op->getOperands(), [&](Value operand) {
        Operation *maker = operand.getDefiningOp();
        return maker && getOpShape(maker) == OpShape::Reduction && llvm::is_contained(rows, maker);
      });
    });
  };
  for (Group &rows : formed)
    for (Group &sums : formed)
      if (&rows != &sums && readsMaximum(sums, rows) && tryOneWalk(rows, sums))
        break;
  for (Group &group : formed) {
    if (group.empty())
      continue;
    if (!canBeInBlocks(group)) {
      for (Operation *op : group)
        op->removeAttr(schedule::inBlocksAttrName);
      continue;
    }
    for (Operation *op : group) {
      groupOf[op] = groups.size();
      if (op->hasAttr(schedule::inBlocksAttrName)) // one number, so that equal kernels are equal
        op->setAttr(schedule::inBlocksAttrName,
                    IntegerAttr::get(IntegerType::get(op->getContext(), 64), 0));
    }
    groups.push_back(std::move(group));
  }
}

/// Returns the other groups that make operands of this one, the latest first.
SmallVector<unsigned> KernelFormer::getCandidates(const Group &group) {
  SmallVector<unsigned> candidates;
  for (Operation *op : group)
    for (Value operand : op->getOperands()) {
      Operation *producer = operand.getDefiningOp();
      auto other = producer ? groupOf.find(producer) : groupOf.end();
      if (other != groupOf.end() && !llvm::is_contained(candidates, other->second) &&
          !llvm::is_contained(group, producer))
        candidates.push_back(other->second);
    }
  llvm::sort(candidates, [&](unsigned a, unsigned b) {
    return position[groups[a].back()] > position[groups[b].back()];
  });
  return candidates;
}

void KernelFormer::formGroups() {
  for (Operation &op : block.without_terminator()) {
    OpShape shape = getOpShape(&op);
    if (shape == OpShape::Free || !isa<linalg::GenericOp>(op))
      continue;
    if (auto formed = groupOf.find(&op); formed != groupOf.end()) {
      // Operands of a block are made before its last op.
      if (groups[formed->second].back() == &op)
        for (unsigned candidate : getCandidates(Group(groups[formed->second])))
          tryMerge({candidate, groupOf[&op]});
      continue;
    }
    SmallVector<unsigned> candidates = getCandidates({&op});
    unsigned own = groups.size();
    auto insertion = insertions.find(&op);
    groups.push_back(insertion != insertions.end() ? insertion->second : Group{&op});
    for (Operation *member : groups[own])
      groupOf[member] = own;
    SmallVector<unsigned> all(candidates);
    all.push_back(own);
    if (candidates.size() > 1 && tryMerge(all))
      continue;
    for (unsigned candidate : candidates)
      if (tryMerge({candidate, own}))
        break;
  }
}

/// Whether `group` makes the next value of a donated argument that `other` reads: as one
/// kernel they could not write it in place.
bool KernelFormer::overwrites(unsigned group, unsigned other) const {
  return llvm::any_of(groups[other], [&](Operation *reader) {
    auto found = overwriters.find(reader);
    return found != overwriters.end() && llvm::any_of(found->second, [&](Operation *writer) {
             return llvm::is_contained(groups[group], writer);
           });
  });
}

/// Merges the groups that read one of `values` into `target`, or else into the first of them, what
/// is left into the first that is left, and so on.
void KernelFormer::mergeReaders(const SetVector<Value> &values, std::optional<unsigned> target) {
  std::set<unsigned> readers;
  for (Value value : values)
    for (Operation *user : value.getUsers())
      if (auto group = groupOf.find(block.findAncestorOpInBlock(*user)); group != groupOf.end())
        readers.insert(group->second);
  // A tensor may have hundreds of readers, most of different shapes.
  constexpr unsigned maxTargets = 4;
  for (unsigned number = 0; number < maxTargets && !readers.empty(); ++number) {
    unsigned into = target.value_or(*readers.begin());
    readers.erase(into);
    for (auto reader = readers.begin(); reader != readers.end();) {
      // A pair is tried again only if one of the two has grown.
      std::array<size_t, 4> pair = {into, *reader, groups[into].size(), groups[*reader].size()};
      bool isMerged = !overwrites(into, *reader) && !overwrites(*reader, into) &&
                      !apart.contains(pair) && tryMerge({into, *reader});
      if (!isMerged)
        apart.insert(pair);
      reader = isMerged ? readers.erase(reader) : std::next(reader);
    }
    if (target)
      return;
  }
}

/// Merges groups of which neither reads a result of the other: first groups that read the
/// same tensor with one that reduces columns, then groups that combine the parts of one
/// kernel's columns, then other groups that read the same tensor.
void KernelFormer::mergeSiblings() {
  SmallVector<Operation *> columnOps;
  for (Operation &op : block)
    if (getOpShape(&op) == OpShape::Column)
      columnOps.push_back(&op);
  for (Operation *op : columnOps) {
    SetVector<Value> inputs, results;
    getOperands(groups[groupOf[op]], inputs, results);
    mergeReaders(inputs, groupOf[op]);
  }
  for (Operation *op : columnOps) {
    SetVector<Value> parts;
    for (Operation *other : groups[groupOf[op]])
      if (getOpShape(other) == OpShape::Column)
        parts.insert(other->result_begin(), other->result_end());
    mergeReaders(parts, std::nullopt);
  }
  SmallVector<Value> values(block.getArguments());
  for (Operation &op : block)
    if (getOpShape(&op) != OpShape::Free)
      llvm::append_range(values, op.getResults());
  for (Value value : values)
    if (auto tensor = dyn_cast<RankedTensorType>(value.getType()); tensor && tensor.getRank() > 0)
      mergeReaders(SetVector<Value>(&value, &value + 1), std::nullopt);
}

/// Returns why two groups, one of which reads a result of the other, are two kernels.
std::string KernelFormer::explainApart(unsigned producer, unsigned reader) {
  Group merged(groups[producer]);
  llvm::append_range(merged, groups[reader]);
  llvm::sort(merged, [&](Operation *a, Operation *b) { return position[a] < position[b]; });
  std::string why;
  if (!fits(merged, &why))
    return why;
  if (!isClosed(merged))
    return "a value would leave the kernel and come back through another one";
  if (overwrites(producer, reader) || overwrites(reader, producer))
    return "as one kernel they could not write a donated argument in place";
  return "in program order each went to another kernel first";
}

/// Explains each pair of groups that a value goes between.
void KernelFormer::findApart() {
  std::set<std::pair<unsigned, unsigned>> seen;
  for (auto [reader, group] : llvm::enumerate(groups))
    for (Operation *op : group)
      for (Value operand : op->getOperands()) {
        Operation *producer = stripReshapes(operand).getDefiningOp();
        auto found = producer ? groupOf.find(producer) : groupOf.end();
        if (found != groupOf.end() && found->second != reader &&
            seen.insert({found->second, reader}).second)
          apartGroups.push_back(
              {found->second, unsigned(reader), explainApart(found->second, reader)});
      }
}

void KernelFormer::reportApart() {
  for (const Apart &apart : apartGroups) {
    auto producer = kernels.find(apart.producer), reader = kernels.find(apart.reader);
    if (producer == kernels.end() || reader == kernels.end())
      continue;
    remark::missed(
        reader->second.second,
        remark::RemarkOpts::name("apart").category("form-kernels").function(function.getName()))
        << remark::reason("{0}", apart.why) << remark::metric("producer", producer->second.first)
        << remark::metric("reader", reader->second.first);
  }
}

/// Returns the ops of a body in words: "reduce: mulf, addf".
static std::string describeOp(Operation *op) {
  auto generic = dyn_cast<linalg::GenericOp>(op);
  if (!generic)
    return "insert";
  std::string text;
  switch (getOpShape(op)) {
  case OpShape::Reduction:
  case OpShape::Sequence:
    text = "reduce";
    break;
  case OpShape::Column:
    text = "reduce columns";
    break;
  case OpShape::Contraction:
    text = "contract";
    break;
  default:
    text = "map";
    break;
  }
  constexpr unsigned maxNames = 8;
  llvm::SetVector<StringRef> names;
  for (Operation &inner : generic.getBody()->without_terminator())
    if (!isa<arith::ConstantOp, linalg::IndexOp>(inner))
      names.insert(inner.getName().stripDialect());
  if (names.empty())
    return text + ": copy";
  auto shown = names.getArrayRef().take_front(maxNames);
  return text + ": " + llvm::join(shown, ", ") + (shown.size() < names.size() ? "..." : "");
}

/// Reports the ops of a kernel as a remark.
void KernelFormer::reportKernel(schedule::KernelOp kernel, int64_t number, const Group &group) {
  auto remark = remark::passed(
      kernel.getLoc(),
      remark::RemarkOpts::name("kernel").category("form-kernels").function(function.getName()));
  if (!remark)
    return;
  remark << remark::metric("kernel", number);
  for (Operation *op : group)
    if (isa<linalg::GenericOp, tensor::InsertSliceOp>(op))
      remark << remark::metric("op", describeOp(op))
             << remark::detail::Remark::Arg("at", Attribute(LocationAttr(op->getLoc())));
}

void KernelFormer::buildKernel(const Group &group) {
  SetVector<Value> inputs, results;
  getOperands(group, inputs, results);
  OpBuilder builder(block.getTerminator());
  std::optional<KernelDomain> domain = getDomain(group);
  std::string name;
  switch (domain->getShape()) {
  case KernelShape::Map:
    name = "map";
    break;
  case KernelShape::Row:
    name = domain->isAcross() ? "across" : domain->getColumnOps().empty() ? "row" : "row_column";
    break;
  case KernelShape::Column:
    name = "column";
    break;
  case KernelShape::Contraction:
    name = "contraction";
    break;
  case KernelShape::Sequence:
    name = "sequence";
    break;
  }
  if (group.front()->hasAttr(schedule::scatterAttrName))
    name = "scatter";
  if (const Blocks *blocks = domain->getBlocks())
    name = blocks->isOneWalk() ? "block_softmax" : "block_" + name;
  char separator = '_';
  for (int64_t size : domain->getSizes()) {
    name += separator + std::to_string(size);
    separator = 'x';
  }

  SmallVector<Location> locations;
  for (Operation *op : group)
    locations.push_back(op->getLoc());
  // The number tells the dispatches of a kernel from those of another of the same lines.
  int64_t number = kernels.size();
  auto kernel = schedule::KernelOp::create(
      builder, builder.getFusedLoc(locations, builder.getI64IntegerAttr(number)),
      llvm::map_to_vector(results, [](Value value) { return value.getType(); }),
      builder.getStringAttr(name), inputs.getArrayRef());
  kernels.try_emplace(groupOf.lookup(group.front()), number, kernel.getLoc());
  reportKernel(kernel, number, group);
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
  // Kernels have copies of the free ops that they use.
  SmallVector<Operation *> rest;
  for (Operation &op : block.without_terminator())
    rest.push_back(&op);
  for (Operation *op : llvm::reverse(rest))
    if (isOpTriviallyDead(op))
      op->erase();
}

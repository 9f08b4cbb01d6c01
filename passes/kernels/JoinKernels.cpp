//===- JoinKernels.cpp - Kernels become stages of one ---------------------===//
//
// A kernel that waits for all of another one waits for too much where both work on batches: the
// heads of an attention need only their own scores. From each contraction on, kernels that make or
// read what the others do, in the same batches, become the stages of one kernel, as long as what a
// workgroup keeps of its batches fits its memory and no value leaves them and comes back.
//
//===----------------------------------------------------------------------===//

#include "passes/Passes.h"

#include "dialects/Schedule/Schedule.h"
#include "mlir/Analysis/TopologicalSortUtils.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/Pass/Pass.h"
#include "weir/Graph/Graph.h"
#include "weir/Kernels/Emitter.h"
#include "weir/Kernels/Stages.h"
#include "weir/Target/ProfileAttr.h"
#include "llvm/ADT/SetVector.h"

namespace weir {
#define GEN_PASS_DEF_JOINKERNELSPASS
#include "passes/Passes.h.inc"
} // namespace weir

using namespace mlir;
using namespace weir;

namespace {
/// Max number of stages of a kernel. Bounds the time to compile it.
constexpr size_t maxStages = 16;

class KernelJoiner {
public:
  KernelJoiner(func::FuncOp function, const Profile &profile)
      : function(function), block(function.getBody().front()), profile(profile) {}

  void run();

private:
  func::FuncOp function;
  Block &block;
  const Profile &profile;
  DenseMap<Operation *, std::optional<KernelDomain>> domains;

  const std::optional<KernelDomain> &getDomain(schedule::KernelOp kernel);
  bool isDonated(BlockArgument argument);
  bool isBound(schedule::KernelOp kernel);
  std::optional<SmallVector<int64_t>> findGroup(const Stages &stages, schedule::KernelOp kernel,
                                                const KernelDomain &domain);
  bool grow(Stages &stages);
  bool tryAdd(Stages &stages, schedule::KernelOp kernel);
  int64_t getKeptBytes(const Stages &stages) const;
  bool isClosed(const Stages &stages) const;
  void join(Stages &stages);
};

struct JoinKernels : weir::impl::JoinKernelsPassBase<JoinKernels> {
  using JoinKernelsPassBase::JoinKernelsPassBase;

  void runOnOperation() override {
    FailureOr<Profile> profile = getProfile(getOperation());
    if (failed(profile))
      return signalPassFailure();
    if (!profile->hasFreeVectors() || profile->stageBytes == 0)
      return;
    for (auto function : getOperation().getOps<func::FuncOp>())
      KernelJoiner(function, *profile).run();
  }
};
} // namespace

/// Calls `body` for each op that reads `value` or a reshape of it, and is none itself.
static void forEachReader(Value value, function_ref<void(Operation *)> body) {
  for (Operation *user : value.getUsers())
    if (isReshape(user))
      forEachReader(user->getResult(0), body);
    else
      body(user);
}

const std::optional<KernelDomain> &KernelJoiner::getDomain(schedule::KernelOp kernel) {
  auto [entry, isNew] = domains.try_emplace(kernel);
  if (isNew && !isBound(kernel))
    entry->second = getStageDomain(kernel);
  return entry->second;
}

bool KernelJoiner::isDonated(BlockArgument argument) {
  return function.getArgAttr(argument.getArgNumber(), schedule::donateAttrName) != nullptr;
}

/// Whether a kernel makes a part of a concatenation, reads an argument that is given away, or makes
/// a result that may take one's bytes: it may work in place, which stages could forbid.
bool KernelJoiner::isBound(schedule::KernelOp kernel) {
  bool isBound = hasStages(kernel);
  for (Value input : kernel.getInputs())
    if (auto argument = dyn_cast<BlockArgument>(stripReshapes(input)))
      isBound |= isDonated(argument);
  bool mayBeDonated = llvm::any_of(block.getArguments(),
                                   [&](BlockArgument argument) { return isDonated(argument); });
  for (Value result : kernel.getResults())
    forEachReader(result, [&](Operation *reader) {
      isBound |= !isa<schedule::KernelOp>(reader) && (mayBeDonated || !isa<func::ReturnOp>(reader));
    });
  return isBound;
}

/// Returns the bytes that a workgroup keeps of its group.
int64_t KernelJoiner::getKeptBytes(const Stages &stages) const {
  int64_t bytes = 0;
  llvm::SmallDenseSet<Value> kept;
  for (const Stage &stage : stages)
    for (Value input : stage.kernel.getInputs())
      if (Value made = stripReshapes(input); findMaker(stages, made) && kept.insert(made).second) {
        auto type = cast<RankedTensorType>(made.getType());
        Type element = getStorageType(type.getElementType());
        bytes +=
            schedule::getByteSize(RankedTensorType::get(type.getShape(), element)).value_or(0) /
            stages.front().getGroups();
      }
  return bytes;
}

/// Whether no value leaves the stages and comes back through other ops.
bool KernelJoiner::isClosed(const Stages &stages) const {
  llvm::SmallPtrSet<Operation *, 16> inside;
  Operation *last = nullptr;
  for (const Stage &stage : stages) {
    inside.insert(stage.kernel);
    if (!last || last->isBeforeInBlock(stage.kernel))
      last = stage.kernel;
  }
  llvm::SetVector<Operation *> behind; // ops outside that depend on a stage
  auto add = [&](Operation *op) {
    for (Operation *user : op->getUsers())
      if (!inside.contains(user) && user->isBeforeInBlock(last))
        behind.insert(user);
  };
  for (const Stage &stage : stages)
    add(stage.kernel);
  for (size_t next = 0; next < behind.size(); ++next) {
    Operation *op = behind[next];
    // A reshape between stages becomes part of the kernel.
    if (!(isReshape(op) && inside.contains(stripReshapes(op->getResult(0)).getDefiningOp())) &&
        llvm::any_of(op->getUsers(), [&](Operation *user) { return inside.contains(user); }))
      return false;
    add(op);
  }
  return true;
}

/// Returns the dimensions of a kernel's domain that walk the group's digits of a tensor that a
/// stage has, too: one that either makes for the other, or that a contraction reads as well.
std::optional<SmallVector<int64_t>> KernelJoiner::findGroup(const Stages &stages,
                                                            schedule::KernelOp kernel,
                                                            const KernelDomain &domain) {
  auto find = [&](const Stage &stage, Value ofStage, Value tensor) {
    auto dims = getGroupedDims(stage, ofStage);
    return dims ? findGroupDims(kernel, domain, tensor, getDigits(ofStage, *dims)) : std::nullopt;
  };
  for (auto [input, argument] :
       llvm::zip_equal(kernel.getInputs(), kernel.getBody().getArguments()))
    if (const Stage *maker = findMaker(stages, input))
      if (auto group = find(*maker, getYielded(stripReshapes(input)), argument))
        return group;
  for (const Stage &stage : stages)
    for (auto [input, argument] :
         llvm::zip_equal(stage.kernel.getInputs(), stage.kernel.getBody().getArguments())) {
      Value made = stripReshapes(input);
      if (made.getDefiningOp() == kernel)
        if (auto group = find(stage, argument, getYielded(made)))
          return group;
      if (domain.getShape() != KernelShape::Contraction)
        continue;
      for (auto [other, read] :
           llvm::zip_equal(kernel.getInputs(), kernel.getBody().getArguments()))
        if (stripReshapes(other) == made)
          if (auto group = find(stage, argument, read))
            return group;
    }
  return std::nullopt;
}

bool KernelJoiner::tryAdd(Stages &stages, schedule::KernelOp kernel) {
  const std::optional<KernelDomain> &domain = getDomain(kernel);
  if (!domain || stages.size() == maxStages)
    return false;
  auto groupDims = findGroup(stages, kernel, *domain);
  if (!groupDims)
    return false;
  stages.push_back({kernel, *domain, *groupDims});
  if (!findForeignRead(stages) && getKeptBytes(stages) <= profile.stageBytes && isClosed(stages))
    return true;
  stages.pop_back();
  return false;
}

/// Adds a kernel that makes or reads what a stage does; returns whether there is one.
bool KernelJoiner::grow(Stages &stages) {
  llvm::SetVector<Operation *> candidates;
  for (const Stage &stage : stages) {
    for (Value input : stage.kernel.getInputs())
      if (auto maker = stripReshapes(input).getDefiningOp<schedule::KernelOp>())
        candidates.insert(maker);
    for (Value result : stage.kernel.getResults())
      forEachReader(result, [&](Operation *reader) { candidates.insert(reader); });
  }
  // Others that read the same come last: they have no value to wait for.
  for (const Stage &stage : stages)
    for (Value input : stage.kernel.getInputs())
      if (auto maker = stripReshapes(input).getDefiningOp<schedule::KernelOp>())
        forEachReader(stripReshapes(input), [&](Operation *reader) { candidates.insert(reader); });
  return llvm::any_of(candidates, [&](Operation *candidate) {
    auto kernel = dyn_cast<schedule::KernelOp>(candidate);
    return kernel &&
           llvm::none_of(stages, [&](const Stage &stage) { return stage.kernel == kernel; }) &&
           tryAdd(stages, kernel);
  });
}

/// Replaces kernels by one that has them as stages.
void KernelJoiner::join(Stages &stages) {
  llvm::sort(stages,
             [](const Stage &a, const Stage &b) { return a.kernel->isBeforeInBlock(b.kernel); });
  auto isInside = [&](Operation *op) {
    return llvm::any_of(stages, [&](const Stage &stage) { return stage.kernel == op; });
  };
  llvm::SetVector<Value> inputs, results;
  SmallVector<Location> locations;
  Attribute number; // of the first kernel: tells its dispatches from those of another
  for (const Stage &stage : stages) {
    for (Value input : stage.kernel.getInputs())
      if (!findMaker(stages, input))
        inputs.insert(input);
    for (Value result : stage.kernel.getResults())
      forEachReader(result, [&](Operation *reader) {
        if (!isInside(reader))
          results.insert(result);
      });
    if (auto fused = dyn_cast<FusedLoc>(stage.kernel.getLoc())) {
      llvm::append_range(locations, fused.getLocations());
      if (!number)
        number = fused.getMetadata();
    } else {
      locations.push_back(stage.kernel.getLoc());
    }
  }

  std::string name = "staged";
  char separator = '_';
  for (int64_t size : stages.front().getGroupSizes()) {
    name += separator + std::to_string(size);
    separator = 'x';
  }
  name += "_" + std::to_string(stages.size());
  OpBuilder builder(block.getTerminator());
  auto joined = schedule::KernelOp::create(
      builder, FusedLoc::get(function.getContext(), locations, number),
      llvm::map_to_vector(results, [](Value value) { return value.getType(); }),
      builder.getStringAttr(name), inputs.getArrayRef());
  Block *body = builder.createBlock(&joined.getBody());
  IRMapping mapping;
  for (Value input : inputs)
    mapping.map(input, body->addArgument(input.getType(), input.getLoc()));
  std::function<void(Value)> bring = [&](Value value) {
    if (mapping.contains(value))
      return;
    Operation *reshape = value.getDefiningOp();
    bring(reshape->getOperand(0));
    builder.clone(*reshape, mapping);
  };
  for (const Stage &stage : stages) {
    llvm::for_each(stage.kernel.getInputs(), bring);
    auto copy = cast<schedule::KernelOp>(builder.clone(*stage.kernel, mapping));
    copy.setGroupDims(stage.groupDims);
  }
  schedule::YieldOp::create(
      builder, joined.getLoc(),
      llvm::map_to_vector(results, [&](Value value) { return mapping.lookup(value); }));
  for (auto [value, result] : llvm::zip_equal(results, joined.getResults())) {
    Value old = value;
    old.replaceAllUsesWith(result);
  }
  for (const Stage &stage : stages) {
    stage.kernel->dropAllReferences();
  }
  // Reshapes that only stages read are dead, too.
  for (Operation &op : llvm::make_early_inc_range(llvm::reverse(block)))
    if (isReshape(&op) && op.use_empty())
      op.erase();
  for (const Stage &stage : stages) {
    domains.erase(stage.kernel);
    stage.kernel->erase();
  }
  sortTopologically(&block);
}

void KernelJoiner::run() {
  SmallVector<schedule::KernelOp> seeds(block.getOps<schedule::KernelOp>());
  llvm::DenseSet<Operation *> joined;
  for (schedule::KernelOp seed : seeds) {
    if (joined.contains(seed))
      continue;
    const std::optional<KernelDomain> &domain = getDomain(seed);
    if (!domain || domain->getShape() != KernelShape::Contraction)
      continue;
    Stages stages = {{seed, *domain, getBatchDims(*domain)}};
    size_t dims = stages.front().groupDims.size();
    if (dims == 0 || dims > KernelDomain::maxGroupDims ||
        stages.front().getGroups() < profile.stageGroups)
      continue;
    while (grow(stages))
      ;
    if (stages.size() == 1)
      continue;
    for (const Stage &stage : stages)
      joined.insert(stage.kernel);
    join(stages);
  }
}

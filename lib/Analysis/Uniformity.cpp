//===- Uniformity.cpp - What all invocations agree on ---------------------===//
//
// For a whole kernel, everything is uniform until shown otherwise: ids of invocations vary, and so
// do values loaded from memory that others may write, values computed from these, and values that a
// branch on them decides. The rounds end when nothing more varies.
//
// Integer ranges come first: a value that can only be one number is uniform, even if it is computed
// from values that vary, such as `thread_id < 64` in a workgroup of 64.
//
//===----------------------------------------------------------------------===//

#include "weir/Analysis/Uniformity.h"

#include "BodyFrame.h"
#include "IntegerRanges.h"

#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/ControlFlow/IR/ControlFlowOps.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/Dominance.h"
#include "mlir/Interfaces/CallInterfaces.h"
#include "mlir/Interfaces/LoopLikeInterface.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "llvm/ADT/StringSet.h"

using namespace mlir;
using namespace weir;

//===----------------------------------------------------------------------===//
// One operation
//===----------------------------------------------------------------------===//

/// Whether all who execute `op` with the same operands get the same results.
static bool dependsOnOperandsOnly(Operation *op) {
  if (op->getNumRegions() || !isMemoryEffectFree(op) || !op->getDialect())
    return false;
  if (op->hasTrait<OpTrait::ConstantLike>())
    return true;
  // An op without side effects may still read a register of ids, and no interface tells. All
  // operations of these dialects compute their results from operands.
  static const llvm::StringSet<> arithmetic = {"affine", "arith",  "complex", "index",
                                               "math",   "memref", "vector"};
  StringRef dialect = op->getDialect()->getNamespace();
  return arithmetic.contains(dialect) || (dialect == "llvm" && op->getNumOperands());
}

Scope weir::getResultScope(Operation *op) {
  if (isa<gpu::BlockIdOp, gpu::ClusterIdOp, gpu::ClusterBlockIdOp>(op))
    return Scope::Workgroup;
  // A memref of private or workgroup memory is one value, though each has memory of its own.
  if (isa<gpu::BlockDimOp, gpu::GridDimOp, gpu::NumSubgroupsOp, gpu::SubgroupSizeOp,
          gpu::ClusterDimOp, gpu::ClusterDimBlocksOp, memref::AllocOp, memref::AllocaOp,
          memref::GetGlobalOp, gpu::DynamicSharedMemoryOp>(op))
    return Scope::Grid;
  return dependsOnOperandsOnly(op) ? Scope::Grid : Scope::Invocation;
}

//===----------------------------------------------------------------------===//
// One value
//===----------------------------------------------------------------------===//

namespace {
/// Collects who agrees on all values that one value is computed from.
class AgreementSearch {
public:
  explicit AgreementSearch(DominanceInfo &dominance) : dominance(dominance) {}

  Agreement run(Value value, const BodyFrame &frame) {
    push(value, frame);
    while (!open.empty()) {
      auto [part, at] = open.pop_back_val();
      if (!part || !seen.insert({part, at}).second)
        continue;
      if (auto argument = dyn_cast<BlockArgument>(part))
        visitArgument(argument, *at);
      else
        visitResult(cast<OpResult>(part), *at);
    }
    return result;
  }

private:
  DominanceInfo &dominance;
  Agreement result;
  SmallVector<std::pair<Value, const BodyFrame *>> open;
  DenseSet<std::pair<Value, const BodyFrame *>> seen;

  void meet(Scope scope, bool varies) {
    result.scope = std::min(result.scope, scope);
    result.varies |= varies;
  }
  void push(ValueRange values, const BodyFrame &frame) {
    for (Value value : values)
      open.push_back({value, &frame});
  }
  void visitArgument(BlockArgument argument, const BodyFrame &frame);
  void visitResult(OpResult value, const BodyFrame &frame);
};
} // namespace

void AgreementSearch::visitArgument(BlockArgument argument, const BodyFrame &frame) {
  Block *block = argument.getOwner();
  unsigned index = argument.getArgNumber();
  Operation *parent = block->getParentOp();
  if (frame.isArgument(argument)) {
    if (frame.caller)
      push(frame.getPassed(index), *frame.caller);
  } else if (auto loop = dyn_cast<scf::WhileOp>(parent)) {
    meet(Scope::Grid, true);
    if (block == loop.getBeforeBody())
      push({loop.getInits()[index], loop.getYieldOp().getOperand(index)}, frame);
    else
      push(loop.getConditionOp().getArgs()[index], frame);
  } else if (auto loop = dyn_cast<LoopLikeOpInterface>(parent);
             loop && isa<scf::ForOp, affine::AffineForOp>(parent)) {
    meet(Scope::Grid, true);
    if (OpOperand *init = loop.getTiedLoopInit(argument))
      push({init->get(), loop.getTiedLoopYieldedValue(argument)->get()}, frame);
    else if (auto simple = dyn_cast<scf::ForOp>(parent))
      push({simple.getLowerBound(), simple.getStep()}, frame);
    else
      push(cast<affine::AffineForOp>(parent).getLowerBoundOperands(), frame);
  } else {
    std::optional<std::pair<Value, Value>> carried = getCarried(argument, frame, dominance);
    meet(carried ? Scope::Grid : Scope::Invocation, true);
    if (carried)
      push({carried->first, carried->second}, frame);
  }
}

void AgreementSearch::visitResult(OpResult value, const BodyFrame &frame) {
  Operation *op = value.getOwner();
  unsigned index = value.getResultNumber();
  if (auto loop = dyn_cast<scf::ForOp>(op)) {
    meet(Scope::Grid, true);
    push({loop.getLowerBound(), loop.getUpperBound(), loop.getStep(), loop.getInitArgs()[index],
          loop.getYieldedValues()[index]},
         frame);
    return;
  }
  if (auto branch = dyn_cast<scf::IfOp>(op))
    return push({branch.getCondition(), branch.thenYield().getOperand(index),
                 branch.elseYield().getOperand(index)},
                frame);
  Scope scope = getResultScope(op);
  meet(scope, scope == Scope::Invocation);
  if (scope != Scope::Grid)
    return;
  for (Value operand : op->getOperands())
    if (!isa<BaseMemRefType>(operand.getType()))
      push(operand, frame);
    else if (!isa<BlockArgument>(operand))
      meet(Scope::Invocation, true);
}

Agreement weir::getAgreement(Value value, const BodyFrame &frame, DominanceInfo &dominance) {
  return AgreementSearch(dominance).run(value, frame);
}

//===----------------------------------------------------------------------===//
// All values of a kernel
//===----------------------------------------------------------------------===//

Operation *Uniformity::getDivergence(Block *block) const {
  for (; block; block = block->getParentOp() ? block->getParentOp()->getBlock() : nullptr)
    if (auto it = divergence.find(block); it != divergence.end())
      return it->second;
  return nullptr;
}

class weir::UniformityBuilder {
public:
  UniformityBuilder(Uniformity &result, FunctionOpInterface kernel, Scope scope,
                    Uniformity::IsStable isStable)
      : result(result), kernel(kernel), scope(scope), isStable(isStable) {}

  void run();

private:
  Uniformity &result;
  FunctionOpInterface kernel;
  Scope scope;
  Uniformity::IsStable isStable;
  SetVector<Operation *> functions; // the kernel and whatever it calls
  DenseMap<Operation *, FunctionOpInterface> callees;
  std::optional<IntegerRanges> ranges; // of the kernel itself
  PostDominanceInfo postDominance;
  bool changed = false;

  void collectFunctions();

  bool varies(Value value) { return result.varying.contains(value); }
  bool anyVaries(ValueRange values) {
    return llvm::any_of(values, [&](Value value) { return varies(value); });
  }
  void setVarying(Value value);
  void setVarying(ValueRange values) {
    for (Value value : values)
      setVarying(value);
  }
  void setDivergent(Block *block, Operation *branch) {
    changed |= result.divergence.try_emplace(block, branch).second;
  }
  void setDivergentBranch(Operation *branch) {
    changed |= result.divergentBranches.insert(branch).second;
  }

  std::optional<ConstantIntRanges> getRange(Value value) { return ranges->get(value); }
  bool isSource(Operation *op);
  bool loadsUniform(Operation *op);
  bool tripsVary(Value lower, Value upper, Value step);
  bool decidesDifferently(Operation *op);

  void visit(Region &region);
  void visit(Operation *op);
  void visitStructured(RegionBranchOpInterface op);
  void visitCall(Operation *call, FunctionOpInterface callee);
  void visitBlocks(Region &region);
  void split(Block *block);
};

void UniformityBuilder::collectFunctions() {
  functions.insert(kernel);
  for (unsigned i = 0; i < functions.size(); ++i)
    functions[i]->walk([&](CallOpInterface call) {
      auto symbol = dyn_cast<SymbolRefAttr>(call.getCallableForCallee());
      auto callee = symbol ? dyn_cast_or_null<FunctionOpInterface>(
                                 SymbolTable::lookupNearestSymbolFrom(call, symbol))
                           : FunctionOpInterface();
      if (!callee || callee.isExternal() ||
          callee.getNumArguments() != call.getArgOperands().size())
        return;
      callees[call] = callee;
      functions.insert(callee);
    });
}

void UniformityBuilder::setVarying(Value value) {
  if (varies(value))
    return;
  if (std::optional<ConstantIntRanges> range = getRange(value); range && range->getConstantValue())
    return;
  result.varying.insert(value);
  changed = true;
}

/// Whether the results of `op` differ though its operands don't.
bool UniformityBuilder::isSource(Operation *op) {
  if (isa<gpu::AllReduceOp>(op)) // its result is the same for all of a workgroup that take part
    return scope == Scope::Grid || !result.isUniform(op);
  return getResultScope(op) < scope && !loadsUniform(op);
}

/// Whether `op` only loads, all invocations load the same bytes, and nobody changes them.
bool UniformityBuilder::loadsUniform(Operation *op) {
  auto interface = dyn_cast<MemoryEffectOpInterface>(op);
  if (!interface || op->getNumRegions())
    return false;
  SmallVector<MemoryEffects::EffectInstance> effects;
  interface.getEffects(effects);
  if (effects.empty())
    return false;
  bool inWorkgroup = scope == Scope::Workgroup && result.isUniform(op);
  for (const MemoryEffects::EffectInstance &effect : effects) {
    auto type = effect.getValue() ? dyn_cast<BaseMemRefType>(effect.getValue().getType())
                                  : BaseMemRefType();
    if (!isa<MemoryEffects::Read>(effect.getEffect()) || !type)
      return false;
    auto ranked = dyn_cast<MemRefType>(type);
    bool ofWorkgroup = ranked && gpu::GPUDialect::hasWorkgroupMemoryAddressSpace(ranked);
    if (!(ofWorkgroup && inWorkgroup) && !isStable(op))
      return false;
  }
  return true;
}

/// Whether a loop from `lower` to `upper` has a different number of trips for different
/// invocations. If only the start varies, as in a loop from `thread_id` by the workgroup's size,
/// its range may still fix the number.
bool UniformityBuilder::tripsVary(Value lower, Value upper, Value step) {
  if (!anyVaries({lower, upper, step}))
    return false;
  std::optional<ConstantIntRanges> from = getRange(lower), to = getRange(upper),
                                   by = getRange(step);
  if (!from || !to || !by || !to->getConstantValue() || !by->getConstantValue())
    return true;
  auto fits = [](const APInt &value) { return value.getSignificantBits() <= 62; };
  APInt end = *to->getConstantValue(), stride = *by->getConstantValue();
  if (!fits(from->smin()) || !fits(from->smax()) || !fits(end) || !fits(stride) ||
      stride.getSExtValue() <= 0)
    return true;
  auto count = [&](const APInt &start) {
    int64_t distance = end.getSExtValue() - start.getSExtValue();
    return distance <= 0 ? 0 : (distance - 1) / stride.getSExtValue() + 1;
  };
  return count(from->smin()) != count(from->smax());
}

/// Whether invocations that come to a structured op together may take different ways through it.
bool UniformityBuilder::decidesDifferently(Operation *op) {
  if (isa<memref::AllocaScopeOp, scf::ExecuteRegionOp>(op))
    return false;
  if (auto branch = dyn_cast<scf::IfOp>(op))
    return varies(branch.getCondition());
  if (auto branch = dyn_cast<scf::IndexSwitchOp>(op))
    return varies(branch.getArg());
  if (auto loop = dyn_cast<scf::ForOp>(op))
    return tripsVary(loop.getLowerBound(), loop.getUpperBound(), loop.getStep());
  if (auto loop = dyn_cast<scf::WhileOp>(op))
    return varies(loop.getConditionOp().getCondition());
  if (isa<affine::AffineForOp>(op)) {
    auto loop = cast<affine::AffineForOp>(op);
    return anyVaries(loop.getLowerBoundOperands()) || anyVaries(loop.getUpperBoundOperands());
  }
  if (isa<affine::AffineIfOp>(op))
    return anyVaries(op->getOperands());
  // Iterations without an order, single lanes, and ops that we don't know.
  return true;
}

void UniformityBuilder::visitStructured(RegionBranchOpInterface op) {
  bool divergent = decidesDifferently(op);
  if (divergent) {
    setDivergentBranch(op);
    for (Region &region : op->getRegions())
      for (Block &block : region)
        setDivergent(&block, op);
    setVarying(op->getResults());
  }
  RegionBranchSuccessorMapping mapping;
  op.getSuccessorOperandInputMapping(mapping);
  DenseSet<Value> passed;
  for (auto &[operand, inputs] : mapping) {
    passed.insert(inputs.begin(), inputs.end());
    if (varies(operand->get()))
      setVarying(inputs);
  }
  // Arguments that nothing is passed to: induction variables, and those of ops that we don't know.
  for (Region &region : op->getRegions()) {
    if (region.empty())
      continue;
    for (BlockArgument argument : region.getArguments()) {
      if (passed.contains(argument))
        continue;
      bool varying = true;
      if (auto loop = dyn_cast<scf::ForOp>(op.getOperation()))
        varying = anyVaries({loop.getLowerBound(), loop.getStep()});
      else if (isa<affine::AffineForOp>(op))
        varying = anyVaries(cast<affine::AffineForOp>(op).getLowerBoundOperands());
      else if (isa<scf::ParallelOp, scf::ForallOp, affine::AffineParallelOp>(op))
        varying = anyVaries(op->getOperands());
      if (varying)
        setVarying(argument);
    }
  }
}

void UniformityBuilder::visitCall(Operation *call, FunctionOpInterface callee) {
  auto interface = cast<CallOpInterface>(call);
  for (auto [argument, operand] :
       llvm::zip_equal(callee.getArguments(), interface.getArgOperands()))
    if (varies(operand))
      setVarying(argument);
  if (Operation *branch = result.getDivergence(call->getBlock()))
    setDivergent(&callee.getFunctionBody().front(), branch);
  for (Block &block : callee.getFunctionBody()) {
    Operation *terminator = block.getTerminator();
    if (!terminator->hasTrait<OpTrait::ReturnLike>() ||
        terminator->getNumOperands() != call->getNumResults())
      continue;
    for (auto [value, returned] : llvm::zip_equal(call->getResults(), terminator->getOperands()))
      if (varies(returned) || result.divergence.contains(&block))
        setVarying(value);
  }
}

/// Notes that invocations leave `block` by different ways: until they meet again, no block is
/// reached by all of them.
void UniformityBuilder::split(Block *block) {
  Operation *branch = block->getTerminator();
  setDivergentBranch(branch);
  Region &region = *block->getParent();
  auto *node = postDominance.getDomTree(&region).getNode(block);
  Block *meeting = node && node->getIDom() ? node->getIDom()->getBlock() : nullptr;
  SetVector<Block *> between;
  SmallVector<Block *> pending(block->getSuccessors());
  while (!pending.empty()) {
    Block *reached = pending.pop_back_val();
    if (reached == meeting || !between.insert(reached))
      continue;
    llvm::append_range(pending, reached->getSuccessors());
  }
  // At a join of ways, a block argument tells which way was taken.
  auto setArguments = [&](Block *join) {
    for (BlockArgument argument : join->getArguments()) {
      Value common;
      bool same = true;
      for (auto from = join->pred_begin(); from != join->pred_end(); ++from) {
        auto terminator = dyn_cast<BranchOpInterface>((*from)->getTerminator());
        Value passed =
            terminator
                ? terminator.getSuccessorOperands(from.getSuccessorIndex())[argument.getArgNumber()]
                : Value();
        same &= passed && (!common || common == passed);
        common = passed;
      }
      if (!same)
        setVarying(argument);
    }
  };
  if (meeting)
    setArguments(meeting);
  bool isLoop = between.contains(block);
  for (Block *inner : between) {
    setDivergent(inner, branch);
    setArguments(inner);
    if (!isLoop)
      continue;
    // Invocations leave a loop on different trips with different values.
    auto escape = [&](Value value) {
      for (Operation *user : value.getUsers()) {
        Block *use = region.findAncestorBlockInRegion(*user->getBlock());
        if (!use || !between.contains(use))
          setVarying(value);
      }
    };
    for (BlockArgument argument : inner->getArguments())
      escape(argument);
    for (Operation &op : *inner)
      for (Value value : op.getResults())
        escape(value);
  }
}

void UniformityBuilder::visitBlocks(Region &region) {
  for (Block &block : region) {
    if (block.getNumSuccessors() == 0)
      continue;
    Operation *terminator = block.getTerminator();
    if (auto branch = dyn_cast<BranchOpInterface>(terminator))
      for (auto [index, successor] : llvm::enumerate(block.getSuccessors())) {
        SuccessorOperands operands = branch.getSuccessorOperands(index);
        for (BlockArgument argument : successor->getArguments())
          if (Value passed = operands[argument.getArgNumber()]; !passed || varies(passed))
            setVarying(argument);
      }
    if (block.getNumSuccessors() == 1)
      continue;
    bool varying = true;
    if (auto branch = dyn_cast<cf::CondBranchOp>(terminator))
      varying = varies(branch.getCondition());
    else if (auto branch = dyn_cast<cf::SwitchOp>(terminator))
      varying = varies(branch.getFlag());
    if (varying)
      split(&block);
  }
}

void UniformityBuilder::visit(Operation *op) {
  if (auto it = callees.find(op); it != callees.end())
    return visitCall(op, it->second);
  if (auto structured = dyn_cast<RegionBranchOpInterface>(op)) {
    visitStructured(structured);
  } else if (bool isReduced = isa<gpu::AllReduceOp>(op) && !isSource(op);
             isSource(op) || anyVaries(op->getOperands())) {
    if (!isReduced) // else all invocations get the same result
      setVarying(op->getResults());
    for (Region &region : op->getRegions())
      for (Block &block : region) {
        setDivergent(&block, op);
        setVarying(block.getArguments());
      }
  }
  for (Region &region : op->getRegions())
    visit(region);
}

void UniformityBuilder::visit(Region &region) {
  for (Block &block : region)
    for (Operation &op : block)
      visit(&op);
  if (!region.empty() && !region.hasOneBlock())
    visitBlocks(region);
}

void UniformityBuilder::run() {
  if (kernel.isExternal())
    return;
  collectFunctions();
  ranges.emplace(kernel);
  do {
    changed = false;
    for (Operation *function : functions)
      visit(cast<FunctionOpInterface>(function).getFunctionBody());
  } while (changed);
}

Uniformity::Uniformity(FunctionOpInterface kernel, Scope scope, IsStable isStable) {
  UniformityBuilder(*this, kernel, scope, isStable).run();
}

//===- KernelGraph.cpp - The ways of an invocation past its accesses ------===//

#include "KernelGraph.h"

#include "mlir/Analysis/CFGLoopInfo.h"
#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/NVGPU/IR/NVGPUDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/Dominance.h"
#include "mlir/IR/Matchers.h"
#include "mlir/Interfaces/CallInterfaces.h"
#include "mlir/Interfaces/LoopLikeInterface.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

using namespace mlir;
using namespace weir;

namespace {
using Loops = SmallVector<KernelGraph::Loop, 2>;
using Calls = SmallVector<Operation *, 0>;

class GraphBuilder {
public:
  GraphBuilder(KernelGraph &graph, const AccessMaps &maps, const Uniformity &uniformity,
               const std::vector<bool> &matters, function_ref<bool(FunctionOpInterface)> mayEdit)
      : graph(graph), maps(maps), uniformity(uniformity), mayEdit(mayEdit) {
    for (auto [index, access] : llvm::enumerate(maps.getAccesses())) {
      accessesOf[access.op].push_back(index);
      if (!matters[index])
        ignored.insert(index);
      else
        mark(access.op);
      for (Operation *call : access.calls)
        mark(call);
    }
  }

  void run(FunctionOpInterface kernel) {
    unsigned entry = addNode({}), exit = addNode({});
    markBarriers(kernel);
    build(kernel, {}, {}, entry, exit);
  }

private:
  KernelGraph &graph;
  const AccessMaps &maps;
  const Uniformity &uniformity;
  function_ref<bool(FunctionOpInterface)> mayEdit;

  DenseMap<Operation *, SmallVector<unsigned, 1>> accessesOf;
  DenseSet<unsigned> ignored;
  DenseSet<Operation *> relevant; ///< and what holds something relevant
  DenseSet<Operation *> marked;   ///< functions whose barriers are marked
  DenseMap<Operation *, int> pointOf, barrierOf;
  bool editable = true;
  unsigned numLoops = 0;
  DominanceInfo dominance;
  PostDominanceInfo postDominance;

  void mark(Operation *op) {
    while (op && !isa<FunctionOpInterface>(op) && relevant.insert(op).second)
      op = op->getParentOp();
  }
  bool markBarriers(FunctionOpInterface function);

  unsigned addNode(const Loops &loops) {
    graph.nodes.emplace_back().loops = loops;
    return graph.nodes.size() - 1;
  }
  void addEdge(unsigned from, unsigned to, int depth = -1, unsigned loop = 0) {
    graph.nodes[from].successors.push_back({to, depth, loop});
  }
  /// Adds a node right after `from`.
  unsigned append(unsigned from, const Loops &loops) {
    unsigned node = addNode(loops);
    addEdge(from, node);
    return node;
  }
  unsigned appendPoint(unsigned from, Operation *before, const Loops &loops);

  FunctionOpInterface getCallee(Operation *op, const Calls &calls);
  void build(FunctionOpInterface function, const Calls &calls, const Loops &loops, unsigned entry,
             unsigned exit);
  void build(Region &region, const Calls &calls, const Loops &loops, unsigned entry, unsigned exit);
  unsigned build(Block &block, const Calls &calls, const Loops &loops, unsigned from);
  unsigned buildStructured(Operation *op, const Calls &calls, Loops loops, unsigned from);
  void joinWays(Region &region, const DenseMap<Block *, std::pair<unsigned, unsigned>> &ends);
  void checkReducible(Region &region);
};
} // namespace

/// Marks the barriers, and what orders copies, of a function and of those it calls. Returns whether
/// there are any.
bool GraphBuilder::markBarriers(FunctionOpInterface function) {
  if (function.isExternal() || !marked.insert(function).second)
    return false;
  bool found = false;
  function->walk([&](Operation *op) {
    if (isa<gpu::BarrierOp, nvgpu::DeviceAsyncCreateGroupOp, nvgpu::DeviceAsyncWaitOp,
            NVVM::WgmmaGroupSyncAlignedOp, NVVM::WgmmaWaitGroupSyncOp, NVVM::FenceProxyOp,
            schedule::MBarrierWaitOp>(op) ||
        (isa<CallOpInterface>(op) && getCallee(op, {}) && markBarriers(getCallee(op, {})))) {
      mark(op);
      found = true;
    }
  });
  return found;
}

FunctionOpInterface GraphBuilder::getCallee(Operation *op, const Calls &calls) {
  auto call = dyn_cast<CallOpInterface>(op);
  auto symbol = call ? dyn_cast<SymbolRefAttr>(call.getCallableForCallee()) : SymbolRefAttr();
  auto callee =
      symbol
          ? dyn_cast_or_null<FunctionOpInterface>(SymbolTable::lookupNearestSymbolFrom(op, symbol))
          : FunctionOpInterface();
  if (!callee || callee.isExternal() || callee.getNumArguments() != call.getArgOperands().size())
    return {};
  auto isWithin = [&](Operation *caller) { return callee->isAncestor(caller); };
  return isWithin(op) || llvm::any_of(calls, isWithin) ? FunctionOpInterface() : callee;
}

unsigned GraphBuilder::appendPoint(unsigned from, Operation *before, const Loops &loops) {
  if (!editable || !uniformity.isUniform(before))
    return from;
  auto [it, isNew] = pointOf.try_emplace(before, graph.points.size());
  if (isNew)
    graph.points.push_back({before, unsigned(loops.size())});
  KernelGraph::BarrierPoint &point = graph.points[it->second];
  point.depth = std::max<unsigned>(point.depth, loops.size());
  unsigned node = append(from, loops);
  graph.nodes[node].point = it->second;
  return node;
}

void GraphBuilder::build(FunctionOpInterface function, const Calls &calls, const Loops &loops,
                         unsigned entry, unsigned exit) {
  bool before = editable;
  editable &= mayEdit(function);
  build(function.getFunctionBody(), calls, loops, entry, exit);
  editable = before;
}

/// Whether AccessMaps counts `op` as a loop around the accesses inside.
static bool countsAsLoop(Operation *op) {
  return !isa<scf::IfOp, affine::AffineIfOp, memref::AllocaScopeOp, scf::ExecuteRegionOp,
              gpu::WarpExecuteOnLane0Op, scf::IndexSwitchOp>(op);
}

/// Returns the number of trips of a loop whose bounds are constants.
static std::optional<int64_t> getTrips(Operation *op) {
  if (auto loop = dyn_cast<affine::AffineForOp>(op)) {
    if (!loop.hasConstantBounds())
      return std::nullopt;
    int64_t distance = loop.getConstantUpperBound() - loop.getConstantLowerBound();
    return distance <= 0 ? 0 : (distance - 1) / loop.getStepAsInt() + 1;
  }
  auto loop = dyn_cast<scf::ForOp>(op);
  APInt lower, upper, step;
  if (!loop || !matchPattern(loop.getLowerBound(), m_ConstantInt(&lower)) ||
      !matchPattern(loop.getUpperBound(), m_ConstantInt(&upper)) ||
      !matchPattern(loop.getStep(), m_ConstantInt(&step)) || !step.isStrictlyPositive() ||
      lower.getSignificantBits() > 62 || upper.getSignificantBits() > 62)
    return std::nullopt;
  int64_t distance = upper.getSExtValue() - lower.getSExtValue();
  return distance <= 0 ? 0 : (distance - 1) / step.getSExtValue() + 1;
}

unsigned GraphBuilder::buildStructured(Operation *op, const Calls &calls, Loops loops,
                                       unsigned from) {
  unsigned exit = addNode(loops);
  bool isLoop = countsAsLoop(op);
  if (isLoop)
    loops.push_back({numLoops++, op});
  SmallVector<std::pair<unsigned, unsigned>> ends;
  for (Region &region : op->getRegions()) {
    unsigned begin = addNode(loops), end = addNode(loops);
    ends.push_back({begin, end});
    if (!region.empty())
      build(region, calls, loops, begin, end);
    else
      addEdge(begin, end);
  }
  auto goAround = [&](unsigned end, unsigned begin) {
    addEdge(end, begin, loops.size() - 1, loops.back().number);
  };

  auto branch = dyn_cast<RegionBranchOpInterface>(op);
  if (!branch) {
    addEdge(from, exit);
    for (auto [begin, end] : ends) {
      addEdge(from, begin);
      addEdge(end, exit);
      for (auto [other, otherEnd] : ends)
        goAround(end, other);
    }
    return exit;
  }
  std::optional<int64_t> trips = isLoop ? getTrips(op) : std::nullopt;
  SmallVector<Attribute> operands(op->getNumOperands());
  for (auto [operand, value] : llvm::zip_equal(op->getOperands(), operands))
    matchPattern(operand, m_Constant(&value));
  SmallVector<RegionSuccessor> successors;
  branch.getEntrySuccessorRegions(operands, successors);
  for (const RegionSuccessor &successor : successors)
    if (!successor.isParent())
      addEdge(from, ends[successor.getSuccessor()->getRegionNumber()].first);
    else if (!trips || *trips == 0)
      addEdge(from, exit);
  for (auto [index, region] : llvm::enumerate(op->getRegions())) {
    successors.clear();
    branch.getSuccessorRegions(region, successors);
    DenseSet<Region *> seen;
    for (const RegionSuccessor &successor : successors) {
      if (!seen.insert(successor.getSuccessor()).second)
        continue;
      unsigned end = ends[index].second;
      if (successor.isParent()) {
        addEdge(end, exit);
        continue;
      }
      unsigned target = successor.getSuccessor()->getRegionNumber();
      if (target > index || !isLoop)
        addEdge(end, ends[target].first);
      else if (!trips || *trips > 1)
        goAround(end, ends[target].first);
    }
  }
  if (uniformity.isDivergent(op) && !isLoop)
    for (size_t i = 1; i < ends.size(); ++i)
      addEdge(ends[i - 1].second, ends[i].first);
  return exit;
}

unsigned GraphBuilder::build(Block &block, const Calls &calls, const Loops &loops, unsigned from) {
  for (Operation &op : block) {
    if (&op == &block.back() && op.hasTrait<OpTrait::IsTerminator>())
      from = appendPoint(from, &op, loops);
    if (!relevant.contains(&op))
      continue;
    from = appendPoint(from, &op, loops);
    if (auto barrier = dyn_cast<gpu::BarrierOp>(op)) {
      auto [it, isNew] = barrierOf.try_emplace(barrier, graph.barriers.size());
      if (isNew)
        graph.barriers.push_back(barrier);
      from = append(from, loops);
      graph.nodes[from].barrier = it->second;
      continue;
    }
    if (isa<nvgpu::DeviceAsyncCreateGroupOp>(op)) {
      from = append(from, loops);
      graph.nodes[from].closesGroup = true;
      continue;
    }
    if (auto wait = dyn_cast<nvgpu::DeviceAsyncWaitOp>(op)) {
      from = append(from, loops);
      graph.nodes[from].groupsLeft = wait.getNumGroups().value_or(0);
      continue;
    }
    if (isa<NVVM::WgmmaGroupSyncAlignedOp>(op)) {
      from = append(from, loops);
      graph.nodes[from].closesProducts = true;
      continue;
    }
    if (auto wait = dyn_cast<NVVM::WgmmaWaitGroupSyncOp>(op)) {
      from = append(from, loops);
      graph.nodes[from].productsLeft = int64_t(wait.getGroup());
      continue;
    }
    if (auto fence = dyn_cast<NVVM::FenceProxyOp>(op)) {
      from = append(from, loops);
      graph.nodes[from].fences = fence.getKind() == NVVM::ProxyKind::async ||
                                 fence.getKind() == NVVM::ProxyKind::async_shared;
      continue;
    }
    if (auto wait = dyn_cast<schedule::MBarrierWaitOp>(op)) {
      from = append(from, loops);
      graph.nodes[from].waits = wait;
    }
    SmallVector<unsigned, 1> accesses;
    if (auto it = accessesOf.find(&op); it != accessesOf.end())
      for (unsigned index : it->second)
        if (maps.getAccesses()[index].calls == calls && !ignored.contains(index))
          accesses.push_back(index);
    if (!accesses.empty()) {
      from = append(from, loops);
      for (unsigned access : accesses)
        graph.nodeOf[access] = from;
      graph.nodes[from].accesses = std::move(accesses);
    } else if (FunctionOpInterface callee = getCallee(&op, calls)) {
      Calls inner = calls;
      inner.push_back(&op);
      unsigned begin = append(from, loops), end = addNode(loops);
      build(callee, inner, loops, begin, end);
      from = end;
    } else if (op.getNumRegions()) {
      from = buildStructured(&op, calls, loops, from);
    }
  }
  return from;
}

/// Notes a branch back to a block that does not dominate it, if there is one.
void GraphBuilder::checkReducible(Region &region) {
  enum State { Unseen, Open, Done };
  DenseMap<Block *, State> states;
  SmallVector<std::pair<Block *, unsigned>> stack = {{&region.front(), 0}};
  states[&region.front()] = Open;
  while (!stack.empty()) {
    auto &[block, next] = stack.back();
    if (next == block->getNumSuccessors()) {
      states[block] = Done;
      stack.pop_back();
      continue;
    }
    Block *from = block, *to = block->getSuccessor(next++);
    State state = states.lookup(to);
    if (state == Open && !dominance.dominates(to, from) && !graph.irreducible)
      graph.irreducible = from->getTerminator();
    if (state != Unseen)
      continue;
    states[to] = Open;
    stack.push_back({to, 0});
  }
}

/// Adds edges where invocations part, from the end of each way to the begin of the next.
void GraphBuilder::joinWays(Region &region,
                            const DenseMap<Block *, std::pair<unsigned, unsigned>> &ends) {
  for (Block &block : region) {
    if (!ends.contains(&block) || !uniformity.isDivergent(block.getTerminator()))
      continue;
    auto *node = postDominance.getDomTree(&region).getNode(&block);
    Block *meeting = node && node->getIDom() ? node->getIDom()->getBlock() : nullptr;
    for (unsigned way = 0; way + 1 < block.getNumSuccessors(); ++way) {
      SetVector<Block *> between;
      SmallVector<Block *> pending = {block.getSuccessor(way)};
      while (!pending.empty()) {
        Block *reached = pending.pop_back_val();
        if (reached == meeting || !between.insert(reached))
          continue;
        llvm::append_range(pending, reached->getSuccessors());
      }
      for (Block *inner : between) {
        bool leaves =
            inner->hasNoSuccessors() || llvm::is_contained(inner->getSuccessors(), meeting);
        for (unsigned other = way + 1; leaves && other < block.getNumSuccessors(); ++other)
          if (Block *next = block.getSuccessor(other); next != meeting)
            addEdge(ends.lookup(inner).second, ends.lookup(next).first);
      }
    }
  }
}

void GraphBuilder::build(Region &region, const Calls &calls, const Loops &loops, unsigned entry,
                         unsigned exit) {
  if (region.hasOneBlock()) {
    addEdge(build(region.front(), calls, loops, entry), exit);
    return;
  }
  checkReducible(region);
  auto &tree = dominance.getDomTree(&region);
  CFGLoopInfo info(tree);
  DenseMap<CFGLoop *, unsigned> numbers;
  for (CFGLoop *loop : info.getLoopsInPreorder())
    numbers[loop] = numLoops++;
  DenseMap<Block *, std::pair<unsigned, unsigned>> ends;
  for (Block &block : region) {
    if (!tree.isReachableFromEntry(&block))
      continue;
    Loops inner;
    for (CFGLoop *loop = info.getLoopFor(&block); loop; loop = loop->getParentLoop())
      inner.push_back({numbers.lookup(loop), nullptr});
    inner.append(loops.rbegin(), loops.rend());
    std::reverse(inner.begin(), inner.end());
    unsigned begin = addNode(inner);
    ends[&block] = {begin, build(block, calls, inner, begin)};
  }
  addEdge(entry, ends.lookup(&region.front()).first);
  for (Block &block : region) {
    if (!ends.contains(&block))
      continue;
    unsigned end = ends.lookup(&block).second;
    if (block.hasNoSuccessors())
      addEdge(end, exit);
    for (Block *successor : block.getSuccessors()) {
      CFGLoop *loop = info.getLoopFor(successor);
      bool isBack = loop && loop->getHeader() == successor && loop->contains(&block);
      addEdge(end, ends.lookup(successor).first,
              isBack ? int(loops.size() + loop->getLoopDepth()) - 1 : -1,
              isBack ? numbers.lookup(loop) : 0);
    }
  }
  joinWays(region, ends);
}

KernelGraph::KernelGraph(FunctionOpInterface kernel, const AccessMaps &maps,
                         const Uniformity &uniformity, const std::vector<bool> &matters,
                         function_ref<bool(FunctionOpInterface)> mayEdit) {
  if (!kernel.isExternal())
    GraphBuilder(*this, maps, uniformity, matters, mayEdit).run(kernel);
}

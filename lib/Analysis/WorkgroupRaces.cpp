//===- WorkgroupRaces.cpp - Races inside a kernel and their cure ----------===//
//
// From each access every way through the kernel is followed until a barrier, together with how
// often it went around which loop. If it comes to an access that may touch the same bytes from
// another invocation, some point on the way needs a barrier. The cheapest set of points that meets
// all such ways is found lazily: ways that the barriers chosen so far leave open are added until
// there are none.
//
//===----------------------------------------------------------------------===//

#include "weir/Analysis/WorkgroupRaces.h"

#include "KernelGraph.h"

#include "dialects/Schedule/Schedule.h"
#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/NVGPU/IR/NVGPUDialect.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/Matchers.h"
#include "mlir/IR/OpDefinition.h"
#include "weir/Order/Cover.h"
#include "llvm/ADT/MapVector.h"

#include <set>

using namespace mlir;
using namespace weir;
using Invocations = Instances::Invocations;

//===----------------------------------------------------------------------===//
// Relations of two executions
//===----------------------------------------------------------------------===//

// A relation is a number:
//   0              the same trips of all common loops
//   1 + 2 * depth  the same trips down to the loop at `depth`, where the second is one trip later
//   2 + 2 * depth  the same, but the second is any number of trips later

static std::optional<unsigned> getDepth(unsigned relation) {
  return relation == 0 ? std::nullopt : std::optional((relation - 1) / 2);
}

static unsigned goAround(unsigned relation, unsigned depth) {
  std::optional<unsigned> before = getDepth(relation);
  if (!before || *before > depth)
    return 1 + 2 * depth;
  return *before == depth ? 2 + 2 * depth : relation;
}

static Instances getInstances(unsigned relation, unsigned commonLoops) {
  Instances instances;
  std::optional<unsigned> depth = getDepth(relation);
  instances.trips.assign(depth ? *depth : commonLoops, Instances::Trip::Same);
  if (depth)
    instances.trips.push_back(relation % 2 ? Instances::Trip::Next : Instances::Trip::Later);
  return instances;
}

//===----------------------------------------------------------------------===//
// Setting up
//===----------------------------------------------------------------------===//

/// Returns for each access whether it could conflict with another or itself, judged only by the
/// memory that they are on.
static std::vector<bool> findThoseThatMatter(const AccessMaps &maps) {
  ArrayRef<MemoryAccess> accesses = maps.getAccesses();
  llvm::MapVector<Value, std::pair<bool, bool>> roots; // accessed at all, written
  for (const MemoryAccess &access : accesses) {
    auto &[any, written] = roots[access.root];
    any = true;
    written |= access.writes;
  }
  DenseMap<Value, std::pair<bool, bool>> meets; // any other access, a write
  for (auto &[root, self] : roots)
    for (auto &[other, state] : roots) {
      if (maps.isPrivate(root) || maps.compareRoots(root, other) == Sharing::Disjoint)
        continue;
      meets[root].first |= state.first;
      meets[root].second |= state.second;
    }
  std::vector<bool> matters;
  for (const MemoryAccess &access : accesses) {
    auto [any, written] = meets.lookup(access.root);
    matters.push_back(access.writes ? any : written);
  }
  return matters;
}

WorkgroupRaces::WorkgroupRaces(FunctionOpInterface kernel, const LaunchSizes &sizes,
                               GetArgumentSharing getSharing,
                               std::function<bool(FunctionOpInterface)> mayEdit)
    : kernel(kernel), sizes(sizes), maps(kernel, sizes), getSharing(std::move(getSharing)),
      mayEdit(std::move(mayEdit)) {}

WorkgroupRaces::~WorkgroupRaces() = default;

void WorkgroupRaces::makeUniformity() const {
  DenseMap<Operation *, SmallVector<unsigned, 1>> accessesOf;
  for (auto [index, access] : llvm::enumerate(maps.getAccesses()))
    accessesOf[access.op].push_back(index);
  DenseMap<Operation *, bool> stable;
  auto isStable = [&](Operation *op) {
    auto [it, isNew] = stable.try_emplace(op, false);
    if (!isNew || !accessesOf.contains(op))
      return it->second;
    Instances others;
    others.invocations = Invocations::DifferentWorkgroup;
    for (unsigned load : accessesOf.lookup(op))
      for (auto [index, access] : llvm::enumerate(maps.getAccesses())) {
        Value root = maps.getAccesses()[load].root;
        if (!root || maps.isPrivate(root) ||
            (access.writes && compare(index, load, others) != Sharing::Disjoint))
          return false;
      }
    return stable[op] = true;
  };
  uniformity = std::make_unique<Uniformity>(kernel, Scope::Workgroup, isStable);
}

const Uniformity &WorkgroupRaces::getUniformity() const {
  if (!uniformity)
    makeUniformity();
  return *uniformity;
}

KernelGraph &WorkgroupRaces::getGraph() const {
  if (!graph)
    graph = std::make_unique<KernelGraph>(kernel, maps, getUniformity(), findThoseThatMatter(maps),
                                          mayEdit);
  return *graph;
}

ArrayRef<gpu::BarrierOp> WorkgroupRaces::getBarriers() const { return getGraph().barriers; }

Operation *WorkgroupRaces::getIrreducible() const { return getGraph().irreducible; }

/// Whether some invocations of a workgroup may touch a common byte, and one write it, whatever
/// stands between the two.
bool WorkgroupRaces::mayInvocationsMeet() const {
  if (llvm::all_of(sizes.workgroup, [](std::optional<int64_t> size) { return size == 1; }))
    return false;
  ArrayRef<MemoryAccess> accesses = maps.getAccesses();
  std::vector<bool> matters = findThoseThatMatter(maps);
  Instances instances; // in any trips
  for (unsigned first = 0; first < accesses.size(); ++first)
    for (unsigned second = first; second < accesses.size(); ++second) {
      const MemoryAccess &a = accesses[first], &b = accesses[second];
      if (matters[first] && matters[second] && (a.writes || b.writes) && !(a.atomic && b.atomic) &&
          compare(first, second, instances) != Sharing::Disjoint)
        return true;
    }
  return false;
}

bool WorkgroupRaces::matters() const {
  auto isControl = [](Operation *op) {
    return isa<gpu::BarrierOp, CallOpInterface, nvgpu::DeviceAsyncCopyOp, schedule::GroupProductOp,
               schedule::TileCopyOp>(op) ||
                   op->getNumSuccessors() > 0
               ? WalkResult::interrupt()
               : WalkResult::advance();
  };
  if (!mayMeet)
    mayMeet = mayInvocationsMeet();
  FunctionOpInterface function = kernel;
  return *mayMeet || function->walk(isControl).wasInterrupted();
}

//===----------------------------------------------------------------------===//
// Whether two accesses meet
//===----------------------------------------------------------------------===//

Sharing WorkgroupRaces::compare(unsigned first, unsigned second, const Instances &instances) const {
  const MemoryAccess &a = maps.getAccesses()[first], &b = maps.getAccesses()[second];
  FunctionOpInterface function = kernel;
  auto getArgument = [&](Value root) -> std::optional<unsigned> {
    auto argument = dyn_cast_or_null<BlockArgument>(root);
    if (!argument || argument.getOwner() != &function.getFunctionBody().front() ||
        argument.getArgNumber() >= function.getNumArguments())
      return std::nullopt;
    return argument.getArgNumber();
  };
  std::optional<unsigned> i = getArgument(a.root), j = getArgument(b.root);
  std::optional<ArgumentSharing> sharing =
      i && j && *i != *j && getSharing ? getSharing(*i, *j) : std::nullopt;
  auto isUniform = [&](Value value) { return getUniformity().isUniform(value); };
  if (!sharing)
    return maps.compare(a, b, instances, std::nullopt, isUniform);
  if (sharing->unknown)
    return Sharing::Unknown;
  Sharing result = Sharing::Disjoint;
  for (int64_t shift : sharing->shifts) {
    Sharing one = maps.compare(a, b, instances, shift, isUniform);
    if (one == Sharing::Unknown)
      return one;
    if (one == Sharing::Overlap)
      result = one;
  }
  return result;
}

/// Whether both write the same value to the same bytes, so that it doesn't matter which is last:
/// one instruction with operands that all invocations agree on, in one instance or, from the loop
/// at `depth` on, in different ones.
bool WorkgroupRaces::isHarmless(unsigned first, unsigned second, const Uniformity &within,
                                std::optional<unsigned> depth) const {
  const MemoryAccess &a = maps.getAccesses()[first], &b = maps.getAccesses()[second];
  if (a.op != b.op || a.calls != b.calls || a.reads || b.reads)
    return false;
  Value stored, memory;
  if (auto store = dyn_cast<memref::StoreOp>(a.op)) {
    stored = store.getValueToStore();
    memory = store.getMemRef();
  } else if (auto store = dyn_cast<affine::AffineStoreOp>(a.op)) {
    stored = store.getValueToStore();
    memory = store.getMemRef();
  } else if (!isa<vector::StoreOp, vector::TransferWriteOp>(a.op) &&
             !(isa<memref::CopyOp>(a.op) && !depth)) {
    return false;
  }
  SmallVector<Value> operands(a.op->getOperands());
  // A whole element is stored: different indices share no bytes, so indices need not agree.
  if (stored)
    operands = {stored, memory};
  auto isConstant = [](Value value) {
    auto argument = dyn_cast<BlockArgument>(value);
    return matchPattern(value, m_Constant()) ||
           (argument && isa<FunctionOpInterface>(argument.getOwner()->getParentOp()) &&
            argument.getOwner()->isEntryBlock());
  };
  auto isInvariant = [&](Value value) {
    if (!depth || isConstant(value))
      return true;
    if (!a.calls.empty())
      return false;
    Operation *parent = value.getParentRegion()->getParentOp();
    return llvm::all_of(
        ArrayRef(getGraph().getLoops(first)).drop_front(*depth),
        [&](const KernelGraph::Loop &loop) { return loop.op && !loop.op->isAncestor(parent); });
  };
  return llvm::all_of(operands,
                      [&](Value value) { return within.isUniform(value) && isInvariant(value); });
}

Sharing WorkgroupRaces::meet(unsigned first, unsigned second, unsigned relation) {
  auto [it, isNew] = known.try_emplace({first, second, relation}, Sharing::Disjoint);
  if (!isNew)
    return it->second;
  Sharing sharing = computeMeeting(first, second, relation);
  return known[{first, second, relation}] = sharing;
}

Sharing WorkgroupRaces::computeMeeting(unsigned first, unsigned second, unsigned relation) {
  const MemoryAccess &a = maps.getAccesses()[first], &b = maps.getAccesses()[second];
  if ((!a.writes && !b.writes) || (a.atomic && b.atomic))
    return Sharing::Disjoint;
  // If maps and graph count loops differently, trips say nothing.
  bool sameLoops = getGraph().getLoops(first).size() == a.loops.size() &&
                   getGraph().getLoops(second).size() == b.loops.size();
  Instances instances =
      sameLoops ? getInstances(relation, maps.countCommonLoops(a, b)) : Instances();
  Sharing sharing = compare(first, second, instances);
  bool isHarm = sharing != Sharing::Disjoint &&
                !isHarmless(first, second, getUniformity(), getDepth(relation));
  return isHarm ? sharing : Sharing::Disjoint;
}

AccessHazard WorkgroupRaces::makeHazard(unsigned first, unsigned second, Sharing sharing) const {
  const MemoryAccess &a = maps.getAccesses()[first], &b = maps.getAccesses()[second];
  HazardKind kind = !a.writes ? HazardKind::WAR : b.reads ? HazardKind::RAW : HazardKind::WAW;
  return {kind, first, second, sharing == Sharing::Overlap};
}

/// Whether the two touch the same bytes in each invocation, and the one that writes them may also
/// meet itself in another invocation. Then that write races with itself, and a barrier between the
/// two does not help.
bool WorkgroupRaces::isBeyondCure(unsigned first, unsigned second, unsigned relation) {
  const MemoryAccess &a = maps.getAccesses()[first], &b = maps.getAccesses()[second];
  if (relation != 0 || a.op->getBlock() != b.op->getBlock() || a.calls != b.calls ||
      a.root != b.root || !a.begin || a.begin != b.begin || a.bytes != b.bytes)
    return false;
  unsigned writer = a.writes ? first : second;
  return meet(writer, writer, 0) != Sharing::Disjoint;
}

//===----------------------------------------------------------------------===//
// Ways without a barrier
//===----------------------------------------------------------------------===//

/// As `meet`, of a second execution that comes later. A copy meets its own invocation, too.
Sharing WorkgroupRaces::meetOnWay(unsigned first, unsigned second, unsigned relation) {
  Sharing sharing = meet(first, second, relation);
  const MemoryAccess &a = maps.getAccesses()[first], &b = maps.getAccesses()[second];
  if (sharing != Sharing::Disjoint || !a.late || (!a.writes && !b.writes))
    return sharing;
  Instances instances = getInstances(relation, maps.countCommonLoops(a, b));
  instances.invocations = Invocations::Same;
  return compare(first, second, instances);
}

/// Groups of copies that were closed since a copy began, or of products since a product did, if
/// that is in flight; else one of these. Where a product reads what was written, it is as if in
/// flight before a fence.
static constexpr int hasLanded = -2, isUnfenced = -1;
/// Numbers of groups beyond this one are not told apart; a wait that leaves as many is no wait.
static constexpr int maxGroups = 64;

/// Follows a copy, product or store past a node, up to where a product may read, or another access
/// may touch, the same bytes.
static int passNode(const KernelGraph::Node &node, const MemoryAccess &access, bool needsFence,
                    int groups) {
  if (groups == hasLanded)
    return groups;
  // The bytes of a box are written by the proxy that products read by.
  if (auto copy = dyn_cast<schedule::TileCopyOp>(access.op)) {
    schedule::MBarrierWaitOp wait = node.waits;
    const bool isOwn =
        wait && wait.getBarriers() == copy.getBarriers() && wait.getNumber() == copy.getNumber();
    return isOwn ? hasLanded : groups;
  }
  if (groups == isUnfenced)
    return node.fences ? hasLanded : groups;
  const std::optional<int64_t> left = access.product ? node.productsLeft : node.groupsLeft;
  if (left)
    return *left >= groups ? groups : needsFence ? isUnfenced : hasLanded;
  return std::min(groups + int(access.product ? node.closesProducts : node.closesGroup), maxGroups);
}

/// Returns, for each access, the first accesses that it meets on every way up to passages where
/// `stops` holds.
std::vector<WorkgroupRaces::Way> WorkgroupRaces::findWays(function_ref<bool(Passage)> stops,
                                                          function_ref<Cures(Passage)> getCures,
                                                          bool all) {
  std::vector<Way> ways;
  struct State {
    unsigned node, relation;
    int groups, before;
  };
  // First what is by the invocations' own proxy, then products and copies of boxes, which see a
  // write only behind a fence.
  auto find = [&](size_t start, unsigned first, bool isOfProducts) {
    const KernelGraph::Node &startNode = getGraph().nodes[start];
    const MemoryAccess &access = maps.getAccesses()[first];
    unsigned relations = 1 + 2 * startNode.loops.size();
    const bool isTile = isa<schedule::TileCopyOp>(access.op) && access.late,
               needsFence = isOfProducts && access.writes;
    // A wait for all copies and products, which a barrier may have before it, is none for boxes.
    auto isCurable = [&](int groups) { return !isTile || groups == hasLanded; };
    const int begin = access.late ? 0 : needsFence ? isUnfenced : hasLanded;
    const unsigned flights = begin == hasLanded ? 1 : maxGroups + 3;
    std::vector<bool> seen(getGraph().nodes.size() * relations * flights);
    std::vector<State> states;
    auto leave = [&](unsigned node, unsigned relation, int groups, int before) {
      for (const KernelGraph::Edge &edge : getGraph().nodes[node].successors) {
        unsigned next = relation;
        if (edge.depth >= 0 && unsigned(edge.depth) < startNode.loops.size() &&
            startNode.loops[edge.depth].number == edge.loop)
          next = goAround(relation, edge.depth);
        const size_t key = (size_t(edge.to) * relations + next) * flights + groups - hasLanded;
        if (!seen[key]) {
          seen[key] = true;
          states.push_back({edge.to, next, groups, before});
        }
      }
    };
    leave(start, 0, begin, -1);
    for (unsigned i = 0; i < states.size(); ++i) {
      auto [node, relation, groups, before] = states[i];
      if (isCurable(groups) && stops({node, groups != hasLanded}))
        continue;
      bool cut = false;
      for (unsigned second : getGraph().nodes[node].accesses) {
        if (maps.getAccesses()[second].product != isOfProducts)
          continue;
        Sharing sharing = meetOnWay(first, second, relation);
        if (sharing == Sharing::Disjoint || (!all && isBeyondCure(first, second, relation)))
          continue;
        Way way{makeHazard(first, second, sharing), {}};
        way.hazard.late = groups != hasLanded;
        for (int at = i; at >= 0; at = states[at].before)
          if (isCurable(states[at].groups))
            llvm::append_range(way.cures,
                               getCures({states[at].node, states[at].groups != hasLanded}));
        llvm::sort(way.cures);
        way.cures.erase(llvm::unique(way.cures), way.cures.end());
        // A barrier between these two also separates the first from all accesses beyond.
        cut |= !way.cures.empty();
        ways.push_back(std::move(way));
      }
      if (!cut)
        leave(node, relation, passNode(getGraph().nodes[node], access, needsFence, groups), i);
    }
  };
  const bool hasProducts =
      llvm::any_of(maps.getAccesses(), [](const MemoryAccess &access) { return access.product; });
  for (size_t start = 0; start < getGraph().nodes.size(); ++start)
    for (unsigned first : SmallVector<unsigned, 1>(getGraph().nodes[start].accesses)) {
      find(start, first, false);
      if (hasProducts)
        find(start, first, true);
    }
  return ways;
}

std::vector<AccessHazard> WorkgroupRaces::findSelfRaces() {
  std::vector<AccessHazard> races;
  for (const KernelGraph::Node &node : getGraph().nodes) {
    std::optional<AccessHazard> worst;
    for (auto [index, first] : llvm::enumerate(node.accesses))
      for (unsigned second : ArrayRef(node.accesses).drop_front(index)) {
        Sharing sharing = meet(first, second, 0);
        if (sharing != Sharing::Disjoint && (!worst || !worst->proved))
          worst = makeHazard(first, second, sharing);
      }
    if (worst)
      races.push_back(*worst);
  }
  return races;
}

/// Returns the cost of a barrier inside `depth` loops, where it runs more often.
static int64_t getCost(unsigned depth) { return int64_t(1) << (32 + 3 * std::min(depth, 6u)); }

WorkgroupRaces::Plan WorkgroupRaces::plan() {
  Plan result;
  if (!matters())
    return result;
  result.unordered = findSelfRaces();
  // A barrier at point i is cure i; behind a wait for all copies it is cure i + the number of
  // points.
  const unsigned numPoints = getGraph().points.size();
  auto getCures = [&](Passage passage) -> Cures {
    int point = getGraph().nodes[passage.node].point;
    if (point < 0)
      return {};
    return passage.isFlying ? Cures{numPoints + point} : Cures{unsigned(point), numPoints + point};
  };
  Cover cover;
  auto findOpen = [&](std::optional<unsigned> without) {
    return findWays(
        [&](Passage passage) {
          return (getGraph().nodes[passage.node].barrier >= 0 && !passage.isFlying) ||
                 llvm::any_of(getCures(passage), [&](unsigned cure) {
                   return cure != without && llvm::is_contained(cover.chosen, cure);
                 });
        },
        getCures, /*all=*/false);
  };
  // One hazard for two instructions, even if each makes several accesses.
  auto add = [&](std::vector<AccessHazard> &hazards, const AccessHazard &hazard) {
    ArrayRef<MemoryAccess> accesses = maps.getAccesses();
    auto same = llvm::find_if(hazards, [&](const AccessHazard &other) {
      return accesses[other.first].op == accesses[hazard.first].op &&
             accesses[other.second].op == accesses[hazard.second].op && other.kind == hazard.kind &&
             other.late == hazard.late;
    });
    if (same == hazards.end())
      hazards.push_back(hazard);
    else
      same->proved |= hazard.proved;
  };
  DenseSet<Operation *> needy;
  std::vector<int64_t> costs(2 * numPoints);
  std::vector<std::vector<unsigned>> sets;
  for (bool open = true; open;) {
    open = false;
    for (const Way &way : findOpen(std::nullopt)) {
      needy.insert(maps.getAccesses()[way.hazard.second].op);
      if (way.cures.empty()) {
        add(result.unordered, way.hazard);
        continue;
      }
      sets.emplace_back(way.cures.begin(), way.cures.end());
      open = true;
    }
    // Among points of equal depth, one in the kernel itself is preferred, then one just before an
    // access that needs it, then the latest.
    for (auto [index, point] : llvm::enumerate(getGraph().points)) {
      costs[index] = getCost(point.depth) + int64_t(getGraph().points.size() - index) +
                     (kernel->isAncestor(point.before) ? 0 : int64_t(1) << 21) +
                     (needy.contains(point.before) ? 0 : int64_t(1) << 20);
      costs[numPoints + index] = costs[index] + (int64_t(1) << 31);
    }
    if (open)
      cover = findCover(sets, costs);
  }
  result.cheapest = cover.cheapest;
  for (unsigned cure : std::vector<unsigned>(cover.chosen)) {
    PlannedBarrier barrier{getGraph().points[cure % numPoints].before, cure >= numPoints, {}};
    for (const Way &way : findOpen(cure))
      if (!way.cures.empty())
        add(barrier.hazards, way.hazard);
    if (barrier.hazards.empty()) // only where the search was given up
      llvm::erase(cover.chosen, cure);
    else
      result.barriers.push_back(std::move(barrier));
  }
  return result;
}

std::vector<gpu::BarrierOp> WorkgroupRaces::findRedundant() {
  if (!matters())
    return {};
  SmallVector<unsigned> depths(getGraph().barriers.size());
  for (const KernelGraph::Node &node : getGraph().nodes)
    if (node.barrier >= 0)
      depths[node.barrier] = std::max<unsigned>(depths[node.barrier], node.loops.size());
  std::vector<int64_t> costs;
  for (auto [index, depth] : llvm::enumerate(depths))
    costs.push_back(getCost(depth) + int64_t(depths.size() - index));

  auto getCures = [&](Passage passage) -> Cures {
    int barrier = getGraph().nodes[passage.node].barrier;
    return barrier < 0 || passage.isFlying ? Cures() : Cures{unsigned(barrier)};
  };
  Cover cover;
  std::vector<std::vector<unsigned>> sets;
  for (bool open = true; open;) {
    open = false;
    for (const Way &way : findWays(
             [&](Passage passage) {
               return llvm::any_of(getCures(passage), [&](unsigned barrier) {
                 return llvm::is_contained(cover.chosen, barrier);
               });
             },
             getCures, /*all=*/true)) {
      if (way.cures.empty())
        continue; // not separated in the first place
      sets.emplace_back(way.cures.begin(), way.cures.end());
      open = true;
    }
    if (open)
      cover = findCover(sets, costs);
  }
  std::vector<gpu::BarrierOp> redundant;
  for (auto [index, barrier] : llvm::enumerate(getGraph().barriers))
    if (!llvm::is_contained(cover.chosen, unsigned(index)))
      redundant.push_back(barrier);
  return redundant;
}

std::vector<AccessHazard> WorkgroupRaces::findGridRaces() {
  std::vector<AccessHazard> races;
  if (llvm::all_of(sizes.grid, [](std::optional<int64_t> size) { return size == 1; }))
    return races;
  ArrayRef<MemoryAccess> accesses = maps.getAccesses();
  Instances instances;
  instances.invocations = Invocations::DifferentWorkgroup;
  std::set<std::pair<const void *, const void *>> told;
  auto isWritten = [&](Value root) {
    return llvm::any_of(accesses, [&](const MemoryAccess &access) {
      return access.writes && maps.compareRoots(access.root, root) != Sharing::Disjoint;
    });
  };
  auto isStable = [&](Operation *op) {
    return llvm::all_of(accesses, [&](const MemoryAccess &access) {
      return access.op != op ||
             (access.root && !maps.isPrivate(access.root) && !isWritten(access.root));
    });
  };
  for (auto [first, a] : llvm::enumerate(accesses))
    for (auto [offset, b] : llvm::enumerate(accesses.drop_front(first))) {
      unsigned second = first + offset;
      if ((!a.writes && !b.writes) || (a.atomic && b.atomic))
        continue;
      Sharing sharing = compare(first, second, instances);
      if (sharing == Sharing::Disjoint)
        continue;
      if (first == second) {
        if (!gridUniformity)
          gridUniformity = std::make_unique<Uniformity>(kernel, Scope::Grid, isStable);
        std::optional<unsigned> depth;
        if (!a.loops.empty())
          depth = 0;
        if (isHarmless(first, second, *gridUniformity, depth))
          continue;
      }
      auto key = std::minmax(a.root.getAsOpaquePointer(), b.root.getAsOpaquePointer());
      if (told.insert(key).second || sharing == Sharing::Overlap)
        races.push_back(makeHazard(first, second, sharing));
    }
  return races;
}

//===- AccessMapBuilder.cpp - Walk a kernel for its memory accesses -------===//
//
// One walk over the body carries the loops and conditions around each instruction. It uses these
// parts, each of which knows only those above it in this list:
//
//   BodyFrame           bodies of functions, as calls and unrolled trips reach them
//   AddressValues       integers and conditions as affine expressions
//   MemoryReferences    memrefs as places in memory
//   MemoryInstructions  instructions as accesses
//
//===----------------------------------------------------------------------===//

#include "MemoryInstructions.h"

#include "mlir/Analysis/CFGLoopInfo.h"
#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/ControlFlow/IR/ControlFlowOps.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/Index/IR/IndexOps.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/IntegerSet.h"
#include "mlir/IR/Matchers.h"
#include "mlir/Interfaces/LoopLikeInterface.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "llvm/Support/MathExtras.h"

#include <memory>

using namespace mlir;
using namespace weir;

class weir::AccessMapBuilder {
public:
  explicit AccessMapBuilder(AccessMaps &result)
      : maps(result), values(maps.kernel, maps.sizes, dominance), references(values, dominance),
        instructions(maps.kernel, values, references) {}

  void run() {
    BodyFrame &frame = makeFrame();
    frame.function = maps.kernel;
    if (!maps.kernel.isExternal())
      walk(maps.kernel.getFunctionBody(), frame, Surroundings());
    maps.loopTrips = values.getTrips(frame);
    maps.headerTrips = frame.headers;
    maps.variables = values.takeVariables();
    maps.accesses = instructions.takeAccesses();
  }

private:
  AccessMaps &maps;
  std::vector<std::unique_ptr<BodyFrame>> frames;
  DominanceInfo dominance;
  AddressValues values;
  MemoryReferences references;
  MemoryInstructions instructions;
  DenseSet<unsigned> seenLoops; ///< trip variables
  int64_t unrolled = 1;         ///< trips of the loops around that are walked one by one

  BodyFrame &makeFrame() { return *frames.emplace_back(std::make_unique<BodyFrame>()); }
  BodyFrame &makeTrip(Operation *loop, const BodyFrame &outer);
  void pass(ValueRange passed, const BodyFrame &from, ValueRange arguments, const BodyFrame &trip);

  void walk(Region &region, BodyFrame &frame, const Surroundings &at);
  void walk(Block &block, BodyFrame &frame, const Surroundings &at);
  void visit(Operation *op, BodyFrame &frame, const Surroundings &at);
  void visitAffineIf(affine::AffineIfOp branch, BodyFrame &frame, const Surroundings &at);
  bool visitCall(CallOpInterface call, BodyFrame &frame, const Surroundings &at);
  void visitLoop(Operation *op, BodyFrame &frame, Surroundings at);
  void setTrips(unsigned trip, AffineExpr first, AffineExpr end, int64_t step);
  bool unroll(Operation *op, BodyFrame &frame, const Surroundings &at);
  bool unrollFor(scf::ForOp loop, BodyFrame &frame, const Surroundings &at);
  bool unrollWhile(scf::WhileOp loop, BodyFrame &frame, const Surroundings &at);
  void setUnrolledTrips(unsigned trip, int64_t count);
  Surroundings enterTrip(unsigned trip, int64_t number, Surroundings at);
};

//===----------------------------------------------------------------------===//
// Loops walked trip by trip
//===----------------------------------------------------------------------===//

/// Makes the frame of one more trip of `loop`.
BodyFrame &AccessMapBuilder::makeTrip(Operation *loop, const BodyFrame &outer) {
  BodyFrame &trip = makeFrame();
  trip.caller = outer.caller;
  trip.call = outer.call;
  trip.function = outer.function;
  trip.outer = &outer;
  trip.loop = loop;
  return trip;
}

/// Gives `arguments` of a trip the values that `passed` have in `from`.
void AccessMapBuilder::pass(ValueRange passed, const BodyFrame &from, ValueRange arguments,
                            const BodyFrame &trip) {
  for (auto [value, argument] : llvm::zip_equal(passed, arguments))
    if (isa<BaseMemRefType>(value.getType()))
      references.set(argument, trip, references.resolve(value, from));
    else if (value.getType().isIntOrIndex())
      values.set(argument, trip, values.evaluate(value, from));
}

/// The max number of trips that are walked one by one.
static constexpr int64_t maxUnrolled = 16;

/// Whether a loop computes values that are not affine in its trip: it passes memrefs around, or
/// shifts or multiplies by a value that changes from trip to trip.
static bool needsUnrolling(Operation *loop) {
  auto isPassed = [](Value value) { return isa<BaseMemRefType>(value.getType()); };
  if (llvm::any_of(loop->getOperands(), isPassed))
    return true;
  auto changes = [&](Value value) {
    return loop->isAncestor(value.getParentRegion()->getParentOp()) &&
           !matchPattern(value, m_Constant());
  };
  return loop
      ->walk([&](Operation *op) {
        bool shifts = isa<arith::ShLIOp, arith::ShRUIOp, arith::ShRSIOp, arith::DivUIOp,
                          arith::DivSIOp, arith::RemUIOp, arith::RemSIOp, index::ShlOp,
                          index::ShrUOp, index::DivUOp, index::RemUOp>(op) &&
                      changes(op->getOperand(1));
        bool multiplies = isa<arith::MulIOp, index::MulOp>(op) && changes(op->getOperand(0)) &&
                          changes(op->getOperand(1));
        bool carries = isa<scf::YieldOp>(op) && op->getParentOp() == loop &&
                       llvm::any_of(op->getOperands(), [&](Value value) {
                         Operation *next = value.getDefiningOp();
                         return value.getType().isIntOrIndex() && next &&
                                !isa<arith::AddIOp, arith::SubIOp>(next) && changes(value);
                       });
        return shifts || multiplies || carries ? WalkResult::interrupt() : WalkResult::advance();
      })
      .wasInterrupted();
}

/// Returns what holds in trip `number` of the loop of a trip variable.
Surroundings AccessMapBuilder::enterTrip(unsigned trip, int64_t number, Surroundings at) {
  at.loops.push_back(trip);
  at.zero.push_back(values.dim(trip) - number);
  return at;
}

/// Lets a trip variable reach the last of `count` trips.
void AccessMapBuilder::setUnrolledTrips(unsigned trip, int64_t count) {
  values.setUpper(trip,
                  std::max(values.getUpper(trip).value_or(0), std::max<int64_t>(count - 1, 0)));
}

bool AccessMapBuilder::unrollFor(scf::ForOp loop, BodyFrame &frame, const Surroundings &at) {
  unsigned variable = values.getTrip(loop, frame);
  auto first = dyn_cast<AffineConstantExpr>(values.evaluate(loop.getLowerBound(), frame));
  auto end = dyn_cast<AffineConstantExpr>(values.evaluate(loop.getUpperBound(), frame));
  auto step = dyn_cast<AffineConstantExpr>(values.evaluate(loop.getStep(), frame));
  if (!first || !end || !step || step.getValue() <= 0)
    return false;
  int64_t distance;
  if (llvm::SubOverflow(end.getValue(), first.getValue(), distance))
    return false;
  int64_t trips = std::max<int64_t>(llvm::divideCeilSigned(distance, step.getValue()), 0);
  if (trips * unrolled > maxUnrolled)
    return false;
  setUnrolledTrips(variable, trips);
  int64_t before = unrolled;
  unrolled *= std::max<int64_t>(trips, 1);
  BodyFrame *last = nullptr;
  for (int64_t number = 0; number < trips; ++number) {
    BodyFrame &trip = makeTrip(loop, frame);
    values.set(loop.getInductionVar(), trip,
               values.constant(first.getValue() + number * step.getValue()));
    pass(last ? ValueRange(loop.getYieldedValues()) : ValueRange(loop.getInitArgs()),
         last ? *last : frame, loop.getRegionIterArgs(), trip);
    walk(loop.getRegion(), trip, enterTrip(variable, number, at));
    last = &trip;
  }
  unrolled = before;
  return true;
}

bool AccessMapBuilder::unrollWhile(scf::WhileOp loop, BodyFrame &frame, const Surroundings &at) {
  unsigned variable = values.getTrip(loop, frame);
  // The number of trips must be known before anything is walked.
  SmallVector<BodyFrame *> trips;
  while (true) {
    BodyFrame &trip = makeTrip(loop, frame);
    pass(trips.empty() ? ValueRange(loop.getInits()) : ValueRange(loop.getYieldOp().getOperands()),
         trips.empty() ? frame : *trips.back(), loop.getBeforeArguments(), trip);
    trips.push_back(&trip);
    std::optional<bool> goesOn = values.decide(loop.getConditionOp().getCondition(), trip);
    if (!goesOn || int64_t(trips.size()) * unrolled > maxUnrolled)
      return false;
    if (!*goesOn)
      break;
    pass(loop.getConditionOp().getArgs(), trip, loop.getAfterArguments(), trip);
  }
  setUnrolledTrips(variable, trips.size());
  int64_t before = unrolled;
  unrolled *= trips.size();
  for (auto [number, trip] : llvm::enumerate(trips)) {
    Surroundings here = enterTrip(variable, number, at);
    walk(loop.getBefore(), *trip, here);
    if (trip != trips.back())
      walk(loop.getAfter(), *trip, here);
  }
  unrolled = before;
  return true;
}

/// Walks each trip of a loop by itself, if it needs that, has few trips and all are known. Returns
/// whether it did.
bool AccessMapBuilder::unroll(Operation *op, BodyFrame &frame, const Surroundings &at) {
  if (!needsUnrolling(op) || unrolled * 2 > maxUnrolled)
    return false;
  if (auto loop = dyn_cast<scf::ForOp>(op))
    return unrollFor(loop, frame, at);
  if (auto loop = dyn_cast<scf::WhileOp>(op))
    return unrollWhile(loop, frame, at);
  return false;
}

//===----------------------------------------------------------------------===//
// The walk
//===----------------------------------------------------------------------===//

void AccessMapBuilder::walk(Region &region, BodyFrame &frame, const Surroundings &at) {
  if (region.empty())
    return;
  if (region.hasOneBlock())
    return walk(region.front(), frame, at);
  auto &tree = dominance.getDomTree(&region);
  CFGLoopInfo loops(tree);
  for (CFGLoop *loop : loops.getLoopsInPreorder()) {
    MapVariable variable;
    variable.kind = MapVariable::Kind::Trip;
    variable.header = loop->getHeader();
    variable.lower = 0;
    frame.headers[loop->getHeader()] = values.addVariable(std::move(variable));
  }
  for (Block &block : region) {
    if (!tree.isReachableFromEntry(&block))
      continue;
    Surroundings here = at;
    SmallVector<unsigned> inner;
    for (CFGLoop *loop = loops.getLoopFor(&block); loop; loop = loop->getParentLoop())
      inner.push_back(frame.headers.lookup(loop->getHeader()));
    llvm::append_range(here.loops, llvm::reverse(inner));
    here.certain &= inner.empty();
    for (Block *reached = &block; !reached->isEntryBlock();) {
      Block *from = tree.getNode(reached)->getIDom()->getBlock();
      auto branch = dyn_cast<cf::CondBranchOp>(from->getTerminator());
      if (branch && reached->getSinglePredecessor() == from)
        values.addCondition(branch.getCondition(), reached == branch.getTrueDest(), here, frame);
      else if (!isa<cf::BranchOp>(from->getTerminator()))
        here.certain = false;
      reached = from;
    }
    walk(block, frame, here);
  }
}

void AccessMapBuilder::walk(Block &block, BodyFrame &frame, const Surroundings &at) {
  for (Operation &op : block)
    visit(&op, frame, at);
}

/// Limits a trip variable to the trips of a loop from `first` to below `end`. Of a loop that is met
/// in several trips of a loop around it, the longest counts.
void AccessMapBuilder::setTrips(unsigned trip, AffineExpr first, AffineExpr end, int64_t step) {
  Interval distance = values.getRange(end - first);
  std::optional<int64_t> upper = values.getUpper(trip);
  bool isFirst = seenLoops.insert(trip).second;
  if (!distance.upper || step <= 0)
    values.setUpper(trip, std::nullopt);
  else if (isFirst || upper)
    values.setUpper(trip, std::max<int64_t>(llvm::divideCeilSigned(*distance.upper, step) - 1,
                                            isFirst ? 0 : *upper));
}

/// Walks the body of a loop, or of an op that may execute its regions in any way.
void AccessMapBuilder::visitLoop(Operation *op, BodyFrame &frame, Surroundings at) {
  if (unroll(op, frame, at))
    return;
  unsigned trip = values.getTrip(op, frame);
  at.loops.push_back(trip);
  if (auto loop = dyn_cast<scf::ForOp>(op)) {
    AffineExpr end = values.evaluate(loop.getUpperBound(), frame);
    if (auto step = dyn_cast<AffineConstantExpr>(values.evaluate(loop.getStep(), frame)))
      setTrips(trip, values.evaluate(loop.getLowerBound(), frame), end, step.getValue());
    at.nonNegative.push_back(end - values.evaluate(loop.getInductionVar(), frame) - 1);
  } else if (auto loop = dyn_cast<affine::AffineForOp>(op)) {
    auto evaluateBound = [&](AffineMap map, ValueRange operands, unsigned result) {
      return values.replaceDims(map, operands, result, frame);
    };
    for (unsigned i = 0; i < loop.getUpperBoundMap().getNumResults(); ++i) {
      AffineExpr end = evaluateBound(loop.getUpperBoundMap(), loop.getUpperBoundOperands(), i);
      if (!end) {
        at.certain = false;
        continue;
      }
      if (i == 0 && loop.getLowerBoundMap().getNumResults() == 1)
        if (AffineExpr first =
                evaluateBound(loop.getLowerBoundMap(), loop.getLowerBoundOperands(), 0))
          setTrips(trip, first, end, loop.getStepAsInt());
      at.nonNegative.push_back(end - values.evaluate(loop.getInductionVar(), frame) - 1);
    }
  } else {
    at.certain = false;
  }
  for (Region &region : op->getRegions())
    walk(region, frame, at);
}

/// Walks the function that is called. Returns whether it is known.
bool AccessMapBuilder::visitCall(CallOpInterface call, BodyFrame &frame, const Surroundings &at) {
  auto symbol = dyn_cast<SymbolRefAttr>(call.getCallableForCallee());
  auto callee = symbol ? dyn_cast_or_null<FunctionOpInterface>(
                             SymbolTable::lookupNearestSymbolFrom(call, symbol))
                       : FunctionOpInterface();
  if (!callee || callee.isExternal() || callee.getNumArguments() != call.getArgOperands().size())
    return false;
  for (const BodyFrame *caller = &frame; caller; caller = caller->caller)
    if (caller->function == callee)
      return false; // recursion
  BodyFrame &inner = makeFrame();
  inner.caller = &frame;
  inner.call = call;
  inner.function = callee;
  walk(callee.getFunctionBody(), inner, at);
  return true;
}

void AccessMapBuilder::visitAffineIf(affine::AffineIfOp branch, BodyFrame &frame,
                                     const Surroundings &at) {
  Surroundings inner = at;
  IntegerSet set = branch.getIntegerSet();
  for (auto [index, constraint] : llvm::enumerate(set.getConstraints())) {
    AffineMap map = AffineMap::get(set.getNumDims(), set.getNumSymbols(), constraint);
    AffineExpr expr = values.replaceDims(map, branch.getOperands(), 0, frame);
    if (!expr)
      inner.certain = false;
    else
      (set.isEq(index) ? inner.zero : inner.nonNegative).push_back(expr);
  }
  walk(branch.getThenRegion(), frame, inner);
  Surroundings other = at;
  other.certain = false;
  walk(branch.getElseRegion(), frame, other);
}

void AccessMapBuilder::visit(Operation *op, BodyFrame &frame, const Surroundings &at) {
  if (auto branch = dyn_cast<scf::IfOp>(op)) {
    for (bool holds : {true, false}) {
      Surroundings inner = at;
      values.addCondition(branch.getCondition(), holds, inner, frame);
      walk(holds ? branch.getThenRegion() : branch.getElseRegion(), frame, inner);
    }
    return;
  }
  if (auto branch = dyn_cast<affine::AffineIfOp>(op))
    return visitAffineIf(branch, frame, at);
  if (isa<memref::AllocaScopeOp, scf::ExecuteRegionOp>(op))
    return walk(op->getRegion(0), frame, at);
  if (isa<gpu::WarpExecuteOnLane0Op, scf::IndexSwitchOp>(op)) {
    Surroundings inner = at;
    inner.certain = false;
    for (Region &region : op->getRegions())
      walk(region, frame, inner);
    return;
  }
  if (isa<LoopLikeOpInterface>(op))
    return visitLoop(op, frame, at);
  if (auto call = dyn_cast<CallOpInterface>(op); call && visitCall(call, frame, at))
    return;
  // An op that states its effects on memory stands for its regions.
  if (op->getNumRegions() && !isa<MemoryEffectOpInterface>(op) &&
      !isa<memref::GenericAtomicRMWOp, gpu::AllReduceOp>(op))
    return visitLoop(op, frame, at);
  instructions.visit(op, frame, at);
}

AccessMaps::AccessMaps(FunctionOpInterface kernel, const LaunchSizes &sizes)
    : kernel(kernel), sizes(sizes) {
  AccessMapBuilder(*this).run();
}

//===- AccessMapBuilder.cpp - Follow addresses to what they are made of ----===//
//
// One walk over the body carries the loops and conditions around it; addresses
// are evaluated backwards from each instruction, through views and arithmetic,
// to the ids, trips and values they are made of. A value that isn't understood
// becomes a variable of its own, so what is computed from it keeps its form.
//
// Arithmetic on `index` is taken not to wrap: an address beyond 2^63 is in no
// memory.
//
//===----------------------------------------------------------------------===//

#include "Interval.h"

#include "dialects/Schedule/Schedule.h"
#include "mlir/Analysis/CFGLoopInfo.h"
#include "mlir/Analysis/DataFlow/IntegerRangeAnalysis.h"
#include "mlir/Analysis/DataFlow/Utils.h"
#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/ControlFlow/IR/ControlFlowOps.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/Index/IR/IndexOps.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/Dominance.h"
#include "mlir/IR/IntegerSet.h"
#include "mlir/IR/Matchers.h"
#include "mlir/Interfaces/CallInterfaces.h"
#include "mlir/Interfaces/LoopLikeInterface.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "mlir/Interfaces/ViewLikeInterface.h"
#include "weir/Analysis/Uniformity.h"
#include "llvm/ADT/TypeSwitch.h"
#include "llvm/Support/MathExtras.h"

#include <map>
#include <memory>

using namespace mlir;
using namespace weir;

using Kind = MapVariable::Kind;
using Scope = MapVariable::Scope;

//===----------------------------------------------------------------------===//
// What the walk carries
//===----------------------------------------------------------------------===//

namespace {
/// A memref seen from one of the pieces of memory it may be in.
struct Reference {
  Value root;                         ///< null: not known
  AffineExpr offset;                  ///< in bytes; null: not known
  SmallVector<AffineExpr, 4> strides; ///< in bytes
  /// It is in this piece only where the first are at least 0 and the second 0.
  SmallVector<AffineExpr, 0> nonNegative, zero;
  bool certain = true; ///< and then it surely is
};

/// A function's body as reached by one chain of calls, or one trip of a loop.
struct Frame {
  Frame *caller = nullptr;
  CallOpInterface call;
  Frame *outer = nullptr; ///< around `loop`, of which this is one trip
  Operation *loop = nullptr;
  FunctionOpInterface function;
  DenseMap<Value, AffineExpr> exprs;
  DenseMap<Value, SmallVector<Reference, 1>> references;
  DenseMap<Operation *, unsigned> trips;
  DenseMap<Block *, unsigned> headers;
};

/// What holds at a place of the text.
struct Context {
  SmallVector<unsigned, 4> loops;
  SmallVector<AffineExpr, 0> nonNegative, zero;
  bool certain = true;
};
} // namespace

class weir::AccessMapBuilder {
public:
  AccessMapBuilder(AccessMaps &result, MLIRContext *context) : maps(result), context(context) {}

  void run() {
    Frame &frame = makeFrame();
    frame.function = maps.kernel;
    if (!maps.kernel.isExternal())
      walk(maps.kernel.getFunctionBody(), frame, Context());
    maps.loopTrips = frame.trips;
    maps.headerTrips = frame.headers;
  }

private:
  AccessMaps &maps;
  MLIRContext *context;
  std::vector<std::unique_ptr<Frame>> frames;
  std::map<std::pair<Kind, unsigned>, unsigned> ids;
  DenseMap<StringAttr, Value> globals;
  Value dynamicShared;
  DominanceInfo dominance;
  std::optional<DataFlowSolver> ranges; ///< of the kernel's integers; made when asked for
  DenseSet<unsigned> seenLoops;         ///< trip variables
  int64_t unrolled = 1;                 ///< trips of the loops around that are walked one by one

  Frame &makeFrame() { return *frames.emplace_back(std::make_unique<Frame>()); }

  AffineExpr constant(int64_t value) { return getAffineConstantExpr(value, context); }
  AffineExpr dim(unsigned variable) { return getAffineDimExpr(variable, context); }
  Interval interval(AffineExpr expr) { return getInterval(expr, maps.variables); }
  bool isNonNegative(AffineExpr expr) {
    std::optional<int64_t> lower = interval(expr).lower;
    return lower && *lower >= 0;
  }

  unsigned addVariable(MapVariable variable) {
    maps.variables.push_back(std::move(variable));
    return maps.variables.size() - 1;
  }
  AffineExpr addOpaque(Value value, Frame &frame, Interval range = {}) {
    if (!range.lower || !range.upper) {
      Interval inferred = inferRange(value);
      range.lower = range.lower ? range.lower : inferred.lower;
      range.upper = range.upper ? range.upper : inferred.upper;
    }
    return addUnbounded(value, frame, range);
  }
  AffineExpr addUnbounded(Value value, Frame &frame, Interval range = {}) {
    MapVariable variable;
    variable.value = value;
    Origin origin = getOrigin(value, frame);
    variable.scope = origin.scope;
    variable.varies = origin.varies;
    variable.lower = range.lower;
    variable.upper = range.upper;
    return dim(addVariable(std::move(variable)));
  }
  Interval inferRange(Value value);
  bool isNeverNegative(Value value, Frame &frame);
  AffineExpr getId(Kind kind, unsigned axis, std::optional<int64_t> size);
  unsigned getTrip(Operation *loop, Frame &frame);

  AffineExpr evaluate(Value value, Frame &frame);
  AffineExpr compute(Value value, Frame &frame);
  AffineExpr computeArgument(BlockArgument argument, Frame &frame);
  AffineExpr computeCarriedArgument(BlockArgument argument, AffineExpr self, Frame &frame);
  AffineExpr computeArith(Operation *op, Frame &frame);
  bool fits(AffineExpr expr, Type type);
  AffineExpr computeCarried(BlockArgument argument, AffineExpr init, Value next, AffineExpr trip,
                            Frame &frame);
  AffineExpr matchGlobalId(Operation *sum, Frame &frame);
  AffineExpr flipBits(AffineExpr expr, int64_t mask);
  AffineExpr getBit(Value condition, Frame &frame);
  AffineExpr replaceDims(AffineMap map, ValueRange operands, unsigned result, Frame &frame);
  struct Origin {
    Scope scope = Scope::Grid;
    bool varies = false;
  };
  Origin getOrigin(Value value, Frame &frame);
  /// What a loop of blocks passes to an argument of its header: first, then
  /// around. Nothing where its edges disagree.
  std::optional<std::pair<Value, Value>> getCarried(BlockArgument argument, Frame &frame);

  ArrayRef<Reference> resolve(Value memref, Frame &frame);
  std::optional<SmallVector<Reference, 1>> resolveChoice(Value memref, Frame &frame);
  SmallVector<Reference, 1> computeReferences(Value memref, Frame &frame);
  std::optional<SmallVector<Value>> getChoices(Value memref, Frame &frame);
  bool isViewOf(Value view, const DenseSet<Value> &values, Frame &frame);
  SmallVector<Value> getRoots(Value memref, Frame &frame);
  void shift(Reference &reference, ArrayRef<OpFoldResult> offsets, Frame &frame);
  AffineExpr evaluate(OpFoldResult value, Frame &frame);
  SmallVector<AffineExpr, 4> getStrides(MemRefType type, Value memref, Frame &frame);

  void addCondition(Value condition, bool holds, Context &at, Frame &frame);
  void addComparison(arith::CmpIPredicate predicate, AffineExpr left, AffineExpr right,
                     Context &at);

  void walk(Region &region, Frame &frame, const Context &at);
  void walk(Block &block, Frame &frame, const Context &at);
  void visit(Operation *op, Frame &frame, const Context &at);
  void visitLoop(Operation *op, Frame &frame, Context at);
  bool unroll(Operation *op, Frame &frame, const Context &at);
  Frame &makeTrip(Operation *loop, Frame &outer);
  void pass(ValueRange passed, Frame &from, ValueRange arguments, Frame &trip);
  std::optional<bool> decide(Value condition, Frame &frame);
  bool visitCall(CallOpInterface call, Frame &frame, const Context &at);
  void visitMemory(Operation *op, Frame &frame, const Context &at);
  bool addressesEscape();
  std::optional<bool> escape;

  struct Effect {
    bool reads = false, writes = false, atomic = false, certain = true;
  };
  /// Elements [indices, last + elements) of a memref.
  void addAccess(Operation *op, Value memref, ArrayRef<AffineExpr> indices, int64_t elements,
                 int64_t elementBytes, Effect effect, Frame &frame, const Context &at);
  void addWhole(Operation *op, Value memref, Effect effect, Frame &frame, const Context &at);
  void addAnywhere(Operation *op, Value root, Effect effect, Frame &frame, const Context &at);
  void add(MemoryAccess access, Operation *op, Effect effect, Frame &frame, const Context &at);
};

//===----------------------------------------------------------------------===//
// Values
//===----------------------------------------------------------------------===//

/// What integer range inference says of a value of the kernel's own body.
Interval AccessMapBuilder::inferRange(Value value) {
  if (!value.getType().isIntOrIndex())
    return {};
  if (!ranges) {
    ranges.emplace(DataFlowConfig().setInterprocedural(false));
    dataflow::loadBaselineAnalyses(*ranges);
    ranges->load<dataflow::IntegerRangeAnalysis>();
    (void)ranges->initializeAndRun(maps.kernel);
  }
  auto *state = ranges->lookupState<dataflow::IntegerValueRangeLattice>(value);
  if (!state || state->getValue().isUninitialized())
    return {};
  const ConstantIntRanges &range = state->getValue().getValue();
  Interval interval;
  if (!range.smin().isMinSignedValue() || range.smin().getBitWidth() == 1)
    interval.lower = range.smin().getSExtValue();
  if (!range.smax().isMaxSignedValue() || range.smax().getBitWidth() == 1)
    interval.upper = range.smax().getSExtValue();
  return interval;
}

AffineExpr AccessMapBuilder::getId(Kind kind, unsigned axis, std::optional<int64_t> size) {
  auto [it, isNew] = ids.try_emplace({kind, axis});
  if (isNew) {
    MapVariable variable;
    variable.kind = kind;
    variable.axis = axis;
    variable.lower = 0;
    if (size)
      variable.upper = *size - 1;
    it->second = addVariable(std::move(variable));
  }
  return dim(it->second);
}

unsigned AccessMapBuilder::getTrip(Operation *loop, Frame &frame) {
  if (frame.outer) // one variable for the loop, whatever trip it is met in
    return getTrip(loop, *frame.outer);
  auto [it, isNew] = frame.trips.try_emplace(loop);
  if (isNew) {
    MapVariable variable;
    variable.kind = Kind::Trip;
    variable.loop = loop;
    variable.lower = 0;
    it->second = addVariable(std::move(variable));
  }
  return it->second;
}

/// The frame that knows the value: a trip knows what the loop's body makes.
static Frame &getHome(Value value, Frame &frame) {
  Operation *parent = value.getParentRegion()->getParentOp();
  Frame *home = &frame;
  while (home->outer && !home->loop->isAncestor(parent))
    home = home->outer;
  return *home;
}

AffineExpr AccessMapBuilder::evaluate(Value value, Frame &inner) {
  Frame &frame = getHome(value, inner);
  if (auto it = frame.exprs.find(value); it != frame.exprs.end())
    return it->second;
  // A value that is computed from itself around a loop is opaque within.
  AffineExpr expr = compute(value, frame);
  if (!expr)
    expr = addOpaque(value, frame);
  return frame.exprs[value] = expr;
}

AffineExpr AccessMapBuilder::evaluate(OpFoldResult value, Frame &frame) {
  if (auto attribute = dyn_cast<Attribute>(value))
    return constant(cast<IntegerAttr>(attribute).getInt());
  return evaluate(cast<Value>(value), frame);
}

AffineExpr AccessMapBuilder::replaceDims(AffineMap map, ValueRange operands, unsigned result,
                                         Frame &frame) {
  SmallVector<AffineExpr> dims, symbols;
  for (auto [index, operand] : llvm::enumerate(operands))
    (index < map.getNumDims() ? dims : symbols).push_back(evaluate(operand, frame));
  AffineExpr expr = map.getResult(result).replaceDimsAndSymbols(dims, symbols);
  return expr.isPureAffine() ? expr : AffineExpr();
}

/// Whether a value, read as signed, is at least 0 on every trip of every loop:
/// so it began, and so what is carried around keeps it.
bool AccessMapBuilder::isNeverNegative(Value value, Frame &frame) {
  SmallVector<Value> open = {value};
  DenseSet<Value> seen;
  while (!open.empty()) {
    Value part = open.pop_back_val();
    if (!seen.insert(part).second)
      continue;
    if (isNonNegative(evaluate(part, frame)))
      continue;
    if (std::optional<int64_t> lower = inferRange(part).lower; lower && *lower >= 0)
      continue;
    if (auto argument = dyn_cast<BlockArgument>(part)) {
      // Only what a loop carries; an induction variable is not among it.
      std::optional<SmallVector<Value>> passed = getChoices(argument, frame);
      if (!passed || llvm::is_contained(*passed, Value()))
        return false;
      llvm::append_range(open, *passed);
      continue;
    }
    Operation *op = part.getDefiningOp();
    APInt literal;
    auto isAtLeast = [&](int64_t least) {
      return matchPattern(op->getOperand(1), m_ConstantInt(&literal)) && literal.sge(least);
    };
    if (isa<arith::ShRUIOp>(op) ? isAtLeast(1) : isa<arith::DivUIOp>(op) && isAtLeast(2))
      continue;
    bool keeps = isa<arith::SelectOp, arith::AndIOp, arith::OrIOp, arith::XOrIOp, arith::MinSIOp,
                     arith::MaxSIOp, arith::ShRUIOp, arith::ShRSIOp, arith::DivUIOp, arith::DivSIOp,
                     arith::RemUIOp, arith::RemSIOp>(op) ||
                 (isa<arith::AddIOp, arith::MulIOp, arith::ShLIOp>(op) && part.getType().isIndex());
    if (!keeps)
      return false;
    llvm::append_range(open, isa<arith::SelectOp>(op) ? op->getOperands().drop_front()
                                                      : op->getOperands());
  }
  return true;
}

/// What distinguishes the executions that see different values of `value`: all
/// that it is computed from, around loops as well.
AccessMapBuilder::Origin AccessMapBuilder::getOrigin(Value value, Frame &frame) {
  Origin origin;
  SmallVector<std::pair<Value, Frame *>> open = {{value, &frame}};
  DenseSet<std::pair<Value, Frame *>> seen;
  auto meet = [&](Scope scope, bool varies) {
    origin.scope = std::min(origin.scope, scope);
    origin.varies |= varies;
  };
  while (!open.empty()) {
    auto [part, at] = open.pop_back_val();
    if (!part || !seen.insert({part, at}).second)
      continue;
    auto push = [&, at = at](ValueRange values) {
      for (Value source : values)
        open.push_back({source, at});
    };
    if (auto argument = dyn_cast<BlockArgument>(part)) {
      Block *block = argument.getOwner();
      unsigned index = argument.getArgNumber();
      Operation *parent = block->getParentOp();
      if (parent == at->function.getOperation() && block->isEntryBlock()) {
        if (at->caller)
          open.push_back({at->call.getArgOperands()[index], at->caller});
      } else if (auto loop = dyn_cast<scf::WhileOp>(parent)) {
        meet(Scope::Grid, true);
        if (block == loop.getBeforeBody())
          push({loop.getInits()[index], loop.getYieldOp().getOperand(index)});
        else
          push(loop.getConditionOp().getArgs()[index]);
      } else if (auto loop = dyn_cast<LoopLikeOpInterface>(parent);
                 loop && isa<scf::ForOp, affine::AffineForOp>(parent)) {
        meet(Scope::Grid, true);
        if (OpOperand *init = loop.getTiedLoopInit(argument))
          push({init->get(), loop.getTiedLoopYieldedValue(argument)->get()});
        else if (auto simple = dyn_cast<scf::ForOp>(parent))
          push({simple.getLowerBound(), simple.getStep()});
        else
          push(cast<affine::AffineForOp>(parent).getLowerBoundOperands());
      } else {
        std::optional<std::pair<Value, Value>> carried = getCarried(argument, *at);
        meet(carried ? Scope::Grid : Scope::Invocation, true);
        if (carried)
          push({carried->first, carried->second});
      }
      continue;
    }
    Operation *op = part.getDefiningOp();
    if (isa<gpu::GridDimOp, gpu::BlockDimOp, gpu::NumSubgroupsOp, gpu::SubgroupSizeOp>(op))
      continue;
    if (isa<gpu::BlockIdOp>(op)) {
      meet(Scope::Workgroup, false);
    } else if (auto loop = dyn_cast<scf::ForOp>(op)) {
      unsigned index = cast<OpResult>(part).getResultNumber();
      meet(Scope::Grid, true);
      push({loop.getLowerBound(), loop.getUpperBound(), loop.getStep(), loop.getInitArgs()[index],
            loop.getYieldedValues()[index]});
    } else if (auto branch = dyn_cast<scf::IfOp>(op)) {
      unsigned index = cast<OpResult>(part).getResultNumber();
      push({branch.getCondition(), branch.thenYield().getOperand(index),
            branch.elseYield().getOperand(index)});
    } else if (!dependsOnOperandsOnly(op)) {
      meet(Scope::Invocation, true);
    } else {
      for (Value operand : op->getOperands())
        if (!isa<BaseMemRefType>(operand.getType()))
          push(operand);
        else if (!isa<BlockArgument>(operand))
          meet(Scope::Invocation, true);
    }
  }
  return origin;
}

AffineExpr AccessMapBuilder::compute(Value value, Frame &frame) {
  if (!value.getType().isIntOrIndex())
    return {};
  APInt literal;
  if (matchPattern(value, m_ConstantInt(&literal)))
    return literal.getSignificantBits() <= 64 ? constant(literal.getSExtValue()) : AffineExpr();
  if (auto argument = dyn_cast<BlockArgument>(value))
    return computeArgument(argument, frame);
  Operation *op = value.getDefiningOp();
  const LaunchSizes &sizes = maps.sizes;
  auto bound = [&](std::optional<int64_t> known, std::optional<APInt> stated) {
    std::optional<int64_t> size = known;
    if (stated && stated->getActiveBits() < 63 &&
        (!size || int64_t(stated->getZExtValue()) < *size))
      size = stated->getZExtValue();
    return size;
  };
  if (auto id = dyn_cast<gpu::BlockIdOp>(op)) {
    unsigned axis = unsigned(id.getDimension());
    return getId(Kind::Workgroup, axis, bound(sizes.grid[axis], id.getUpperBound()));
  }
  if (auto id = dyn_cast<gpu::ThreadIdOp>(op)) {
    unsigned axis = unsigned(id.getDimension());
    return getId(Kind::Invocation, axis, bound(sizes.workgroup[axis], id.getUpperBound()));
  }
  if (auto id = dyn_cast<gpu::LaneIdOp>(op))
    return getId(Kind::Lane, 0, bound(sizes.subgroup, id.getUpperBound()));
  std::optional<int64_t> subgroups = sizes.countSubgroups();
  if (auto id = dyn_cast<gpu::SubgroupIdOp>(op))
    return getId(Kind::Subgroup, 0, bound(subgroups, id.getUpperBound()));
  if (auto id = dyn_cast<gpu::GlobalIdOp>(op)) {
    unsigned axis = unsigned(id.getDimension());
    if (sizes.workgroup[axis])
      return getId(Kind::Workgroup, axis, sizes.grid[axis]) * *sizes.workgroup[axis] +
             getId(Kind::Invocation, axis, sizes.workgroup[axis]);
    return getId(Kind::Global, axis, bound(std::nullopt, id.getUpperBound()));
  }
  auto size = [&](std::optional<int64_t> known) {
    return known ? constant(*known) : addOpaque(value, frame, {1, std::nullopt});
  };
  if (auto dim = dyn_cast<gpu::BlockDimOp>(op))
    return size(sizes.workgroup[unsigned(dim.getDimension())]);
  if (auto dim = dyn_cast<gpu::GridDimOp>(op))
    return size(sizes.grid[unsigned(dim.getDimension())]);
  if (isa<gpu::SubgroupSizeOp>(op))
    return size(sizes.subgroup);
  if (isa<gpu::NumSubgroupsOp>(op))
    return size(subgroups);
  if (auto dim = dyn_cast<memref::DimOp>(op)) {
    std::optional<int64_t> index = dim.getConstantIndex();
    auto type = dyn_cast<MemRefType>(dim.getSource().getType());
    if (index && type && *index >= 0 && *index < type.getRank() && !type.isDynamicDim(*index))
      return constant(type.getDimSize(*index));
    return addOpaque(value, frame, {0, std::nullopt});
  }
  if (auto metadata = dyn_cast<memref::ExtractStridedMetadataOp>(op)) {
    auto [strides, offset] = metadata.getSource().getType().getStridesAndOffset();
    ArrayRef<int64_t> sizes = metadata.getSource().getType().getShape();
    unsigned rank = sizes.size(), result = cast<OpResult>(value).getResultNumber();
    int64_t known = result == 1         ? offset
                    : result < 2 + rank ? sizes[result - 2]
                                        : strides[result - 2 - rank];
    return ShapedType::isDynamic(known) ? AffineExpr() : constant(known);
  }
  if (auto apply = dyn_cast<affine::AffineApplyOp>(op))
    return replaceDims(apply.getAffineMap(), apply.getMapOperands(), 0, frame);
  if (auto delinearize = dyn_cast<affine::AffineDelinearizeIndexOp>(op)) {
    unsigned result = cast<OpResult>(value).getResultNumber();
    SmallVector<int64_t> basis;
    for (OpFoldResult size : delinearize.getEffectiveBasis()) {
      std::optional<int64_t> known = getConstantIntValue(size);
      if (!known || *known <= 0)
        return {};
      basis.push_back(*known);
    }
    AffineExpr rest = evaluate(delinearize.getLinearIndex(), frame);
    // Without an outer bound the first result takes all that is left.
    bool outer = basis.size() == delinearize.getNumResults();
    for (unsigned i = delinearize.getNumResults(); --i > result;)
      rest = rest.floorDiv(basis[outer ? i : i - 1]);
    return result == 0 ? rest : rest % basis[outer ? result : result - 1];
  }
  if (auto linearize = dyn_cast<affine::AffineLinearizeIndexOp>(op)) {
    SmallVector<OpFoldResult> basis = linearize.getMixedBasis();
    unsigned count = linearize.getMultiIndex().size();
    bool outer = basis.size() == count;
    AffineExpr sum = constant(0);
    for (auto [index, part] : llvm::enumerate(linearize.getMultiIndex())) {
      if (index > 0) {
        std::optional<int64_t> known = getConstantIntValue(basis[outer ? index : index - 1]);
        if (!known)
          return {};
        sum = sum * *known;
      }
      sum = sum + evaluate(part, frame);
    }
    return sum;
  }
  return computeArith(op, frame);
}

/// `block_id * block_dim + thread_id` where the product is no affine term.
AffineExpr AccessMapBuilder::matchGlobalId(Operation *sum, Frame &frame) {
  for (bool swapped : {false, true}) {
    auto product = sum->getOperand(swapped).getDefiningOp();
    auto thread = sum->getOperand(!swapped).getDefiningOp<gpu::ThreadIdOp>();
    if (!isa_and_nonnull<arith::MulIOp, index::MulOp>(product) || !thread)
      continue;
    unsigned axis = unsigned(thread.getDimension());
    if (maps.sizes.workgroup[axis])
      return {};
    auto isId = [&](Value value) {
      auto id = value.getDefiningOp<gpu::BlockIdOp>();
      return id && id.getDimension() == thread.getDimension();
    };
    auto isSize = [&](Value value) {
      auto size = value.getDefiningOp<gpu::BlockDimOp>();
      return size && size.getDimension() == thread.getDimension();
    };
    if ((isId(product->getOperand(0)) && isSize(product->getOperand(1))) ||
        (isId(product->getOperand(1)) && isSize(product->getOperand(0))))
      return getId(Kind::Global, axis, std::nullopt);
  }
  return {};
}

/// `expr ^ mask`: each run of ones in the mask turns a field round.
AffineExpr AccessMapBuilder::flipBits(AffineExpr expr, int64_t mask) {
  if (mask == -1)
    return constant(-1) - expr;
  if (mask < 0 || !isNonNegative(expr))
    return {};
  for (AffineExpr field = expr; mask;) {
    unsigned low = llvm::countr_zero(uint64_t(mask));
    unsigned size = llvm::countr_one(uint64_t(mask) >> low);
    int64_t unit = int64_t(1) << low, count = int64_t(1) << size;
    mask -= unit * (count - 1);
    expr = expr + unit * (constant(count - 1) - field.floorDiv(unit) % count * 2);
  }
  return expr;
}

/// A condition as 0 or 1; null where that is no affine expression.
AffineExpr AccessMapBuilder::getBit(Value condition, Frame &frame) {
  auto within = [&](AffineExpr expr, int64_t lower, int64_t upper) {
    Interval range = interval(expr);
    return range.lower && range.upper && *range.lower >= lower && *range.upper <= upper;
  };
  auto compare = condition.getDefiningOp<arith::CmpIOp>();
  if (!compare || !compare.getLhs().getType().isIntOrIndex()) {
    AffineExpr expr = evaluate(condition, frame);
    return within(expr, -1, 0) ? -expr : AffineExpr();
  }
  bool isEqual = compare.getPredicate() == arith::CmpIPredicate::eq;
  if (!isEqual && compare.getPredicate() != arith::CmpIPredicate::ne)
    return {};
  AffineExpr difference = evaluate(compare.getLhs(), frame) - evaluate(compare.getRhs(), frame);
  if (within(difference, -1, 0))
    difference = -difference;
  else if (!within(difference, 0, 1))
    return {};
  return isEqual ? constant(1) - difference : difference;
}

/// Whether `expr` never wraps in `type`: integers of fixed width do unless their
/// range says that they don't.
bool AccessMapBuilder::fits(AffineExpr expr, Type type) {
  if (type.isIndex())
    return true;
  Interval range = interval(expr);
  unsigned width = type.getIntOrFloatBitWidth();
  return width <= 64 && range.lower && range.upper &&
         (width == 64 || (llvm::isIntN(width, *range.lower) && llvm::isIntN(width, *range.upper)));
}

AffineExpr AccessMapBuilder::computeArith(Operation *op, Frame &frame) {
  Value value = op->getResult(0);
  auto operand = [&](unsigned index) { return evaluate(op->getOperand(index), frame); };
  auto literal = [&](unsigned index) -> std::optional<int64_t> {
    auto expr = dyn_cast<AffineConstantExpr>(operand(index));
    return expr ? std::optional(expr.getValue()) : std::nullopt;
  };
  auto fit = [&](AffineExpr expr) {
    return expr && fits(expr, value.getType()) ? expr : AffineExpr();
  };

  if (isa<arith::IndexCastOp, arith::ExtSIOp, index::CastSOp>(op))
    return fit(operand(0));
  if (isa<arith::IndexCastUIOp, arith::ExtUIOp, arith::TruncIOp, index::CastUOp>(op))
    return isNonNegative(operand(0)) ? fit(operand(0)) : AffineExpr();
  if (isa<arith::AddIOp, index::AddOp>(op)) {
    if (AffineExpr global = matchGlobalId(op, frame))
      return global;
    return fit(operand(0) + operand(1));
  }
  if (isa<arith::SubIOp, index::SubOp>(op))
    return fit(operand(0) - operand(1));
  if (isa<arith::MulIOp, index::MulOp>(op)) {
    if (std::optional<int64_t> factor = literal(1))
      return fit(operand(0) * *factor);
    if (std::optional<int64_t> factor = literal(0))
      return fit(operand(1) * *factor);
    return {};
  }
  if (isa<arith::ShLIOp, index::ShlOp>(op)) {
    std::optional<int64_t> bits = literal(1);
    return bits && *bits >= 0 && *bits < 62 ? fit(operand(0) * (int64_t(1) << *bits))
                                            : AffineExpr();
  }
  bool isShift = isa<arith::ShRUIOp, arith::ShRSIOp, index::ShrUOp, index::ShrSOp>(op);
  bool isQuotient = isa<arith::DivUIOp, arith::DivSIOp, arith::FloorDivSIOp, index::DivUOp,
                        index::DivSOp, index::FloorDivSOp>(op);
  bool isCeiling =
      isa<arith::CeilDivUIOp, arith::CeilDivSIOp, index::CeilDivUOp, index::CeilDivSOp>(op);
  bool isRemainder = isa<arith::RemUIOp, arith::RemSIOp, index::RemUOp, index::RemSOp>(op);
  if (isShift || isQuotient || isCeiling || isRemainder) {
    std::optional<int64_t> divisor = literal(1);
    if (isShift && divisor)
      divisor =
          *divisor >= 0 && *divisor < 62 ? std::optional(int64_t(1) << *divisor) : std::nullopt;
    if (!divisor || *divisor <= 0)
      return {};
    AffineExpr dividend = operand(0);
    if (!isNonNegative(dividend) && !isa<arith::ShRSIOp, arith::FloorDivSIOp, arith::CeilDivSIOp,
                                         index::ShrSOp, index::FloorDivSOp, index::CeilDivSOp>(op))
      return {};
    if (isRemainder)
      return dividend % *divisor;
    return isCeiling ? dividend.ceilDiv(*divisor) : dividend.floorDiv(*divisor);
  }
  if (isa<arith::AndIOp, index::AndOp>(op)) {
    std::optional<int64_t> mask = literal(1);
    AffineExpr other = operand(0);
    if (!mask) {
      mask = literal(0);
      other = operand(1);
    }
    if (!mask)
      return {};
    if (*mask >= 0 && llvm::isMask_64(*mask))
      return other % (*mask + 1);
    if (*mask < 0 && llvm::isPowerOf2_64(-uint64_t(*mask)))
      return fit(other - other % -*mask);
    return *mask >= 0 ? addOpaque(value, frame, {0, *mask}) : AffineExpr();
  }
  if (isa<arith::OrIOp, arith::XOrIOp>(op)) {
    // Where no bit is set in both it is a sum.
    for (bool swapped : {false, true}) {
      AffineExpr high = operand(swapped), low = operand(!swapped);
      Interval range = interval(low);
      int64_t step = high.getLargestKnownDivisor();
      if (range.lower && *range.lower >= 0 && range.upper && step > 0 &&
          llvm::isPowerOf2_64(step & -step) && *range.upper < (step & -step))
        return fit(high + low);
    }
    for (bool swapped : {false, true})
      if (std::optional<int64_t> mask = literal(!swapped); mask && isa<arith::XOrIOp>(op))
        return flipBits(operand(swapped), *mask);
    return {};
  }
  auto makeBetween = [&](ArrayRef<AffineExpr> below, ArrayRef<AffineExpr> above, Interval range) {
    AffineExpr expr = addOpaque(value, frame, range);
    auto &known = maps.variables.back().nonNegative;
    for (AffineExpr bound : below)
      known.push_back(expr - bound);
    for (AffineExpr bound : above)
      known.push_back(bound - expr);
    return expr;
  };
  auto least = [](std::optional<int64_t> a, std::optional<int64_t> b) {
    return a && b ? std::optional(std::min(*a, *b)) : std::nullopt;
  };
  auto most = [](std::optional<int64_t> a, std::optional<int64_t> b) {
    return a && b ? std::optional(std::max(*a, *b)) : std::nullopt;
  };
  if (isa<arith::MinSIOp, arith::MinUIOp, arith::MaxSIOp, arith::MaxUIOp, index::MinSOp,
          index::MinUOp, index::MaxSOp, index::MaxUOp>(op)) {
    AffineExpr a = operand(0), b = operand(1);
    bool isUnsigned = isa<arith::MinUIOp, arith::MaxUIOp, index::MinUOp, index::MaxUOp>(op);
    if (isUnsigned && !(isNonNegative(a) && isNonNegative(b)))
      return {};
    Interval x = interval(a), y = interval(b);
    if (isa<arith::MinSIOp, arith::MinUIOp, index::MinSOp, index::MinUOp>(op)) {
      std::optional<int64_t> upper = x.upper && y.upper ? least(x.upper, y.upper)
                                     : x.upper          ? x.upper
                                                        : y.upper;
      return makeBetween({}, {a, b}, {least(x.lower, y.lower), upper});
    }
    std::optional<int64_t> lower = x.lower && y.lower ? most(x.lower, y.lower)
                                   : x.lower          ? x.lower
                                                      : y.lower;
    return makeBetween({a, b}, {}, {lower, most(x.upper, y.upper)});
  }
  if (auto minimum = dyn_cast<affine::AffineMinOp>(op)) {
    SmallVector<AffineExpr> bounds;
    Interval range;
    for (unsigned i = 0; i < minimum.getAffineMap().getNumResults(); ++i) {
      AffineExpr bound = replaceDims(minimum.getAffineMap(), minimum.getOperands(), i, frame);
      if (!bound)
        return {};
      Interval one = interval(bound);
      range.lower = i ? least(range.lower, one.lower) : one.lower;
      if (one.upper)
        range.upper = range.upper ? std::min(*range.upper, *one.upper) : *one.upper;
      bounds.push_back(bound);
    }
    return makeBetween({}, bounds, range);
  }
  if (isa<arith::SelectOp>(op)) {
    AffineExpr a = operand(1), b = operand(2);
    if (a == b)
      return a;
    if (auto distance = dyn_cast<AffineConstantExpr>(a - b))
      if (AffineExpr bit = getBit(op->getOperand(0), frame))
        return b + bit * distance.getValue();
    Interval x = interval(a), y = interval(b);
    return addOpaque(value, frame, {least(x.lower, y.lower), most(x.upper, y.upper)});
  }
  return {};
}

/// A value that a loop carries: `init` on the first trip, then `next`.
AffineExpr AccessMapBuilder::computeCarried(BlockArgument argument, AffineExpr init, Value next,
                                            AffineExpr trip, Frame &frame) {
  if (next == argument)
    return init;
  Operation *op = next.getDefiningOp();
  if (!op || op->getNumOperands() != 2)
    return {};
  APInt literal;
  auto isConstant = [&](unsigned index) {
    return matchPattern(op->getOperand(index), m_ConstantInt(&literal)) &&
           literal.getSignificantBits() <= 64;
  };
  Type type = argument.getType();
  // A loop of unknown length is taken not to count 32 bits or more full.
  auto count = [&](int64_t step) {
    AffineExpr expr = init + trip * step;
    Interval range = interval(expr);
    bool isLong = !type.isIndex() && type.getIntOrFloatBitWidth() >= 32;
    bool isKnown = range.lower && range.upper;
    return (isLong && !isKnown) || fits(expr, type) ? expr : AffineExpr();
  };
  auto start = dyn_cast<AffineConstantExpr>(init);
  if (isa<arith::AddIOp>(op) && ((op->getOperand(0) == argument && isConstant(1)) ||
                                 (op->getOperand(1) == argument && isConstant(0))))
    return count(literal.getSExtValue());
  if (isa<arith::SubIOp>(op) && op->getOperand(0) == argument && isConstant(1))
    return count(-literal.getSExtValue());
  if (!start)
    return {};
  // Two values in turn.
  auto alternate = [&](int64_t other) {
    return fits(constant(other), type) ? init + trip % 2 * (other - start.getValue())
                                       : AffineExpr();
  };
  if (isa<arith::SubIOp>(op) && isConstant(0) && op->getOperand(1) == argument)
    return alternate(literal.getSExtValue() - start.getValue());
  if (isa<arith::XOrIOp>(op) && op->getOperand(0) == argument && isConstant(1))
    return alternate(start.getValue() ^ literal.getSExtValue());
  // One of n values in turn.
  if (isa<arith::RemUIOp, arith::RemSIOp>(op) && isConstant(1)) {
    int64_t modulus = literal.getSExtValue();
    auto sum = op->getOperand(0).getDefiningOp<arith::AddIOp>();
    if (!sum || sum.getLhs() != argument || !matchPattern(sum.getRhs(), m_ConstantInt(&literal)) ||
        modulus <= 0 || start.getValue() < 0 || start.getValue() >= modulus ||
        literal.isNegative() || !fits(constant(modulus - 1) + literal.getSExtValue(), type))
      return {};
    return (init + trip * literal.getSExtValue()) % modulus;
  }
  return {};
}

std::optional<std::pair<Value, Value>> AccessMapBuilder::getCarried(BlockArgument argument,
                                                                    Frame &frame) {
  Block *block = argument.getOwner();
  if (!frame.headers.contains(block))
    return std::nullopt;
  Value init, next;
  for (auto edge = block->pred_begin(); edge != block->pred_end(); ++edge) {
    auto branch = dyn_cast<BranchOpInterface>((*edge)->getTerminator());
    if (!branch)
      return std::nullopt;
    Value passed = branch.getSuccessorOperands(edge.getSuccessorIndex())[argument.getArgNumber()];
    Value &value = dominance.dominates(block, *edge) ? next : init;
    if (!passed || (value && value != passed))
      return std::nullopt;
    value = passed;
  }
  return init && next ? std::optional(std::pair(init, next)) : std::nullopt;
}

AffineExpr AccessMapBuilder::computeArgument(BlockArgument argument, Frame &frame) {
  Block *block = argument.getOwner();
  Operation *parent = block->getParentOp();
  if (parent == frame.function.getOperation() && block->isEntryBlock()) {
    if (!frame.caller)
      return {};
    return evaluate(frame.call.getArgOperands()[argument.getArgNumber()], *frame.caller);
  }
  // Nothing yet: what is computed from it around the loop must not come back. Its range is inferred
  // where it stays so, which is rare, and costs more than all else.
  AffineExpr self = frame.exprs[argument] = addUnbounded(argument, frame);
  AffineExpr expr = computeCarriedArgument(argument, self, frame);
  MapVariable &variable = maps.variables[cast<AffineDimExpr>(self).getPosition()];
  if (expr == self && (!variable.lower || !variable.upper)) {
    Interval range = inferRange(argument);
    variable.lower = variable.lower ? variable.lower : range.lower;
    variable.upper = variable.upper ? variable.upper : range.upper;
  }
  return expr;
}

/// Returns what a block's argument is in each trip of the loop that carries it; `self` where that
/// is not known.
AffineExpr AccessMapBuilder::computeCarriedArgument(BlockArgument argument, AffineExpr self,
                                                    Frame &frame) {
  Block *block = argument.getOwner();
  Operation *parent = block->getParentOp();
  auto carry = [&](Value init, Value next, AffineExpr trip) {
    AffineExpr first = evaluate(init, frame);
    if (AffineExpr expr = computeCarried(argument, first, next, trip, frame))
      return expr;
    // What is halved from trip to trip, or the like, stays between 0 and its start.
    Interval range = interval(first);
    Operation *op = next.getDefiningOp();
    if (range.lower && *range.lower >= 0 && op && op->getNumOperands() == 2 &&
        op->getOperand(0) == argument &&
        isa<arith::ShRUIOp, arith::ShRSIOp, arith::DivUIOp, arith::RemUIOp, arith::MinUIOp,
            arith::AndIOp, index::ShrUOp, index::ShrSOp, index::DivUOp, index::RemUOp,
            index::MinUOp, index::AndOp>(op)) {
      MapVariable &variable = maps.variables[cast<AffineDimExpr>(self).getPosition()];
      variable.lower = std::max<int64_t>(variable.lower.value_or(0), 0);
      if (range.upper)
        variable.upper = std::min(variable.upper.value_or(*range.upper), *range.upper);
    }
    return self;
  };
  if (auto loop = dyn_cast<scf::ForOp>(parent)) {
    AffineExpr trip = dim(getTrip(loop, frame));
    if (argument == loop.getInductionVar()) {
      auto step = dyn_cast<AffineConstantExpr>(evaluate(loop.getStep(), frame));
      AffineExpr first = evaluate(loop.getLowerBound(), frame);
      if (step)
        return first + trip * step.getValue();
      MapVariable &variable = maps.variables[cast<AffineDimExpr>(self).getPosition()];
      variable.lower = interval(first).lower;
      variable.nonNegative.push_back(self - first);
      return self;
    }
    unsigned index = argument.getArgNumber() - loop.getNumInductionVars();
    return carry(loop.getInitArgs()[index], loop.getYieldedValues()[index], trip);
  }
  if (auto loop = dyn_cast<affine::AffineForOp>(parent)) {
    AffineExpr trip = dim(getTrip(loop, frame));
    if (argument == loop.getInductionVar()) {
      AffineMap lower = loop.getLowerBoundMap();
      if (lower.getNumResults() == 1)
        if (AffineExpr first = replaceDims(lower, loop.getLowerBoundOperands(), 0, frame))
          return first + trip * loop.getStepAsInt();
      return self;
    }
    unsigned index = argument.getArgNumber() - 1;
    return carry(loop.getInits()[index], loop.getYieldedValues()[index], trip);
  }
  if (auto loop = dyn_cast<scf::ParallelOp>(parent)) {
    // A trip for all its dimensions says nothing; each has its own range.
    unsigned index = argument.getArgNumber();
    AffineExpr first = evaluate(loop.getLowerBound()[index], frame);
    AffineExpr last = evaluate(loop.getUpperBound()[index], frame);
    MapVariable &variable = maps.variables[cast<AffineDimExpr>(self).getPosition()];
    variable.lower = interval(first).lower;
    variable.upper = addBounds(interval(last).upper, -1);
    return self;
  }
  if (auto carried = getCarried(argument, frame))
    return carry(carried->first, carried->second, dim(frame.headers.lookup(block)));
  return self;
}

//===----------------------------------------------------------------------===//
// Memrefs
//===----------------------------------------------------------------------===//

/// Bytes of an element that whole bytes hold; 0 of others.
static int64_t getElementBytes(Type element) {
  std::optional<int64_t> bytes = schedule::getElementBytes(element);
  if (!bytes ||
      (element.isIntOrFloat() && !element.isInteger(1) && element.getIntOrFloatBitWidth() % 8 != 0))
    return 0;
  return *bytes;
}

SmallVector<AffineExpr, 4> AccessMapBuilder::getStrides(MemRefType type, Value memref,
                                                        Frame &frame) {
  SmallVector<int64_t> strides;
  int64_t offset;
  SmallVector<AffineExpr, 4> result;
  int64_t element = getElementBytes(type.getElementType());
  if (!element || failed(type.getStridesAndOffset(strides, offset)))
    return result;
  for (auto [index, stride] : llvm::enumerate(strides)) {
    if (!ShapedType::isDynamic(stride)) {
      result.push_back(constant(stride * element));
      continue;
    }
    MapVariable variable;
    variable.value = memref;
    variable.scope = isa<BlockArgument>(memref) && !frame.caller ? Scope::Grid : Scope::Invocation;
    result.push_back(dim(addVariable(std::move(variable))) * element);
  }
  return result;
}

/// The values of which `memref` is one; nothing where it is just itself.
std::optional<SmallVector<Value>> AccessMapBuilder::getChoices(Value memref, Frame &frame) {
  if (auto argument = dyn_cast<BlockArgument>(memref)) {
    Block *block = argument.getOwner();
    Operation *parent = block->getParentOp();
    if (parent == frame.function.getOperation() && block->isEntryBlock())
      return std::nullopt;
    if (auto loop = dyn_cast<scf::WhileOp>(parent)) {
      unsigned index = argument.getArgNumber();
      if (block == loop.getBeforeBody())
        return SmallVector<Value>{loop.getInits()[index], loop.getYieldOp().getOperand(index)};
      return SmallVector<Value>{loop.getConditionOp().getArgs()[index]};
    }
    if (auto loop = dyn_cast<LoopLikeOpInterface>(parent)) {
      OpOperand *init = loop.getTiedLoopInit(argument);
      OpOperand *yielded = loop.getTiedLoopYieldedValue(argument);
      if (!init || !yielded)
        return std::nullopt;
      return SmallVector<Value>{init->get(), yielded->get()};
    }
    if (block->isEntryBlock())
      return std::nullopt;
    SmallVector<Value> passed;
    for (auto edge = block->pred_begin(); edge != block->pred_end(); ++edge) {
      auto branch = dyn_cast<BranchOpInterface>((*edge)->getTerminator());
      passed.push_back(
          branch ? branch.getSuccessorOperands(edge.getSuccessorIndex())[argument.getArgNumber()]
                 : Value());
    }
    return passed;
  }
  Operation *op = memref.getDefiningOp();
  unsigned index = cast<OpResult>(memref).getResultNumber();
  if (isa<arith::SelectOp>(op))
    return SmallVector<Value>{op->getOperand(1), op->getOperand(2)};
  if (auto branch = dyn_cast<scf::IfOp>(op))
    return SmallVector<Value>{branch.thenYield().getOperand(index),
                              branch.elseYield().getOperand(index)};
  if (auto loop = dyn_cast<scf::WhileOp>(op))
    return SmallVector<Value>{loop.getConditionOp().getArgs()[index]};
  if (auto loop = dyn_cast<LoopLikeOpInterface>(op);
      loop && index < loop.getInits().size() && index < loop.getYieldedValues().size())
    return SmallVector<Value>{loop.getInits()[index], loop.getYieldedValues()[index]};
  return std::nullopt;
}

ArrayRef<Reference> AccessMapBuilder::resolve(Value memref, Frame &inner) {
  Frame &frame = getHome(memref, inner);
  if (auto it = frame.references.find(memref); it != frame.references.end())
    return it->second;
  if (std::optional<SmallVector<Reference, 1>> chosen = resolveChoice(memref, frame))
    return frame.references[memref] = std::move(*chosen);
  SmallVector<Reference, 1> found;
  // All that it may be, seen through choices.
  SmallVector<Value> open = {memref}, leaves;
  DenseSet<Value> seen;
  bool lost = false;
  while (!open.empty()) {
    Value value = open.pop_back_val();
    if (!value)
      lost = true;
    else if (!seen.insert(value).second)
      continue;
    else if (getHome(value, frame).references.contains(value))
      leaves.push_back(value);
    else if (std::optional<SmallVector<Value>> choices = getChoices(value, frame))
      llvm::append_range(open, *choices);
    else
      leaves.push_back(value);
  }
  // A view of itself moves on with every trip: somewhere in the same roots.
  bool moves = llvm::any_of(leaves, [&](Value leaf) { return isViewOf(leaf, seen, frame); });
  if (!moves && leaves.size() == 1 && leaves.front() == memref) {
    found = computeReferences(memref, frame);
  } else {
    SmallVector<Reference, 1> parts;
    if (lost)
      parts.push_back(Reference());
    for (Value leaf : leaves) {
      if (!moves) {
        llvm::append_range(parts, resolve(leaf, frame));
        continue;
      }
      for (Value root : getRoots(leaf, frame)) {
        Reference somewhere;
        somewhere.root = root;
        parts.push_back(somewhere);
      }
    }
    for (Reference &part : parts) {
      auto same =
          llvm::find_if(found, [&](const Reference &other) { return other.root == part.root; });
      if (same == found.end())
        found.push_back(std::move(part));
      else if (same->offset != part.offset || same->strides != part.strides)
        same->offset = {};
    }
    for (Reference &reference : found) {
      reference.nonNegative.clear();
      reference.zero.clear();
      reference.certain &= found.size() == 1;
    }
  }
  return frame.references[memref] = std::move(found);
}

/// Where it is known when a memref is which: chosen by a condition, or handed
/// around by a loop that passes on what it got.
std::optional<SmallVector<Reference, 1>> AccessMapBuilder::resolveChoice(Value memref,
                                                                         Frame &frame) {
  SmallVector<Reference, 1> found;
  auto add = [&](Value value, function_ref<void(Context &)> addConditions) {
    Context when;
    addConditions(when);
    for (Reference reference : SmallVector<Reference, 1>(resolve(value, frame))) {
      llvm::append_range(reference.nonNegative, when.nonNegative);
      llvm::append_range(reference.zero, when.zero);
      reference.certain &= when.certain;
      found.push_back(std::move(reference));
    }
  };
  auto choose = [&](Value condition, Value first, Value second) {
    for (bool holds : {true, false})
      add(holds ? first : second,
          [&](Context &when) { addCondition(condition, holds, when, frame); });
    return found;
  };
  if (auto select = memref.getDefiningOp<arith::SelectOp>())
    return choose(select.getCondition(), select.getTrueValue(), select.getFalseValue());
  if (auto branch = memref.getDefiningOp<scf::IfOp>()) {
    unsigned index = cast<OpResult>(memref).getResultNumber();
    return choose(branch.getCondition(), branch.thenYield().getOperand(index),
                  branch.elseYield().getOperand(index));
  }

  auto argument = dyn_cast<BlockArgument>(memref);
  if (!argument)
    return std::nullopt;
  Block *block = argument.getOwner();
  auto loop = dyn_cast<LoopLikeOpInterface>(block->getParentOp());
  bool isOfBlocks = frame.headers.contains(block);
  if (!isOfBlocks && !(isa<scf::ForOp, affine::AffineForOp>(block->getParentOp())))
    return std::nullopt;
  // On trip n it is what the n-th step back around the cycle began with.
  SmallVector<Value> begins;
  for (BlockArgument step = argument; begins.empty() || step != argument;) {
    std::optional<std::pair<Value, Value>> carried;
    if (isOfBlocks)
      carried = getCarried(step, frame);
    else if (OpOperand *init = loop.getTiedLoopInit(step))
      carried = {init->get(), loop.getTiedLoopYieldedValue(step)->get()};
    auto next = carried ? dyn_cast<BlockArgument>(carried->second) : BlockArgument();
    if (!next || next.getOwner() != block || begins.size() == 8)
      return std::nullopt;
    begins.push_back(carried->first);
    step = next;
  }
  AffineExpr trip =
      dim(isOfBlocks ? frame.headers.lookup(block) : getTrip(loop.getOperation(), frame));
  for (auto [number, begin] : llvm::enumerate(begins))
    add(begin, [&, number = number](Context &when) {
      when.zero.push_back(trip % int64_t(begins.size()) - int64_t(number));
    });
  return found;
}

/// Whether `view` is cut, through any choices, from one of `values`.
bool AccessMapBuilder::isViewOf(Value view, const DenseSet<Value> &values, Frame &frame) {
  SmallVector<Value> open = {view};
  DenseSet<Value> seen;
  while (!open.empty()) {
    Value value = open.pop_back_val();
    if (!value || !seen.insert(value).second)
      continue;
    if (value != view && values.contains(value))
      return true;
    if (getHome(value, frame).references.contains(value))
      continue; // known before any of them
    if (std::optional<SmallVector<Value>> choices = getChoices(value, frame))
      llvm::append_range(open, *choices);
    else if (auto op = value.getDefiningOp<ViewLikeOpInterface>())
      open.push_back(op.getViewSource());
  }
  return false;
}

/// The memory that `memref` may be in; null among it when not all is known.
SmallVector<Value> AccessMapBuilder::getRoots(Value memref, Frame &frame) {
  SmallVector<Value> open = {memref}, roots;
  DenseSet<Value> seen;
  while (!open.empty()) {
    Value value = open.pop_back_val();
    if (!value) {
      roots.push_back(value);
      continue;
    }
    if (!seen.insert(value).second)
      continue;
    bool known = getHome(value, frame).references.contains(value);
    std::optional<SmallVector<Value>> choices;
    if (!known && (choices = getChoices(value, frame)))
      llvm::append_range(open, *choices);
    else if (auto op = value.getDefiningOp<ViewLikeOpInterface>(); op && !known)
      open.push_back(op.getViewSource());
    else
      for (const Reference &reference : resolve(value, frame))
        roots.push_back(reference.root);
  }
  return roots;
}

void AccessMapBuilder::shift(Reference &reference, ArrayRef<OpFoldResult> offsets, Frame &frame) {
  if (!reference.offset || reference.strides.size() != offsets.size()) {
    reference.offset = {};
    return;
  }
  for (auto [offset, stride] : llvm::zip_equal(offsets, reference.strides)) {
    AffineExpr index = evaluate(offset, frame);
    if (!isa<AffineConstantExpr>(stride) && !isa<AffineConstantExpr>(index)) {
      reference.offset = {};
      return;
    }
    reference.offset = reference.offset + index * stride;
  }
}

/// Whether the base pointer of `memref` is where the bytes of `root` count from.
static bool isAtBase(Value memref, Value root) {
  while (auto view = memref.getDefiningOp<ViewLikeOpInterface>()) {
    if (isa<memref::ViewOp>(view.getOperation()))
      return false;
    memref = view.getViewSource();
  }
  auto type = dyn_cast_or_null<MemRefType>(root ? root.getType() : Type());
  if (!type || ShapedType::isDynamic(type.getStridesAndOffset().second))
    return false;
  return memref == root || memref.getDefiningOp<memref::GetGlobalOp>();
}

SmallVector<Reference, 1> AccessMapBuilder::computeReferences(Value memref, Frame &frame) {
  SmallVector<Reference, 1> result;
  auto type = dyn_cast<MemRefType>(memref.getType());
  auto addUnknown = [&] { result = {Reference()}; };
  auto addRoot = [&] {
    Reference reference;
    reference.root = memref;
    if (type) {
      auto [strides, offset] = type.getStridesAndOffset();
      int64_t element = getElementBytes(type.getElementType());
      // An argument of dynamic offset begins there: nothing else tells where.
      reference.offset = constant(ShapedType::isDynamic(offset) ? 0 : offset * element);
      reference.strides = getStrides(type, memref, frame);
      if (!element)
        reference.offset = {};
    }
    result.push_back(std::move(reference));
  };
  if (auto argument = dyn_cast<BlockArgument>(memref)) {
    bool isEntry = argument.getOwner()->isEntryBlock() &&
                   argument.getOwner()->getParentOp() == frame.function.getOperation();
    if (!isEntry)
      addUnknown();
    else if (!frame.caller)
      addRoot();
    else
      llvm::append_range(
          result, resolve(frame.call.getArgOperands()[argument.getArgNumber()], *frame.caller));
    return result;
  }

  Operation *op = memref.getDefiningOp();
  if (isa<memref::AllocaOp, memref::AllocOp>(op)) {
    addRoot();
    return result;
  }
  if (auto global = dyn_cast<memref::GetGlobalOp>(op)) {
    auto [it, isNew] = globals.try_emplace(global.getNameAttr().getAttr(), memref);
    addRoot();
    result.back().root = it->second;
    return result;
  }
  if (isa<gpu::DynamicSharedMemoryOp>(op)) {
    if (!dynamicShared)
      dynamicShared = memref;
    addRoot();
    result.back().root = dynamicShared;
    return result;
  }
  auto view = dyn_cast<ViewLikeOpInterface>(op);
  if (!view || !isa<BaseMemRefType>(view.getViewSource().getType())) {
    addUnknown();
    return result;
  }
  llvm::append_range(result, resolve(view.getViewSource(), frame));
  for (Reference &reference : result) {
    if (auto subview = dyn_cast<memref::SubViewOp>(op)) {
      SmallVector<AffineExpr, 4> strides = reference.strides;
      shift(reference, subview.getMixedOffsets(), frame);
      reference.strides.clear();
      llvm::SmallBitVector dropped = subview.getDroppedDims();
      if (strides.size() == subview.getMixedStrides().size())
        for (auto [index, step] : llvm::enumerate(subview.getMixedStrides())) {
          if (dropped.test(index))
            continue;
          AffineExpr factor = evaluate(step, frame);
          AffineExpr stride = strides[index];
          reference.strides.push_back(isa<AffineConstantExpr>(factor)   ? stride * factor
                                      : isa<AffineConstantExpr>(stride) ? factor * stride
                                                                        : addOpaque(memref, frame));
        }
    } else if (auto bytes = dyn_cast<memref::ViewOp>(op)) {
      if (reference.offset)
        reference.offset = reference.offset + evaluate(bytes.getByteShift(), frame);
      reference.strides = getStrides(type, memref, frame);
    } else if (auto cast = dyn_cast<memref::ReinterpretCastOp>(op)) {
      // Its numbers count from the base, which is the allocation's unless a
      // `memref.view` moved it.
      int64_t element = getElementBytes(type.getElementType());
      reference.offset = element && isAtBase(cast.getSource(), reference.root)
                             ? evaluate(cast.getMixedOffsets()[0], frame) * element
                             : AffineExpr();
      reference.strides.clear();
      for (OpFoldResult stride : cast.getMixedStrides())
        reference.strides.push_back(evaluate(stride, frame) * std::max<int64_t>(element, 1));
    } else if (isa<memref::CastOp, memref::MemorySpaceCastOp, memref::AssumeAlignmentOp>(op)) {
      if (!type)
        reference.strides.clear();
    } else if (isa<memref::ExpandShapeOp, memref::CollapseShapeOp, memref::TransposeOp>(op)) {
      reference.strides = type ? getStrides(type, memref, frame) : SmallVector<AffineExpr, 4>();
    } else {
      reference.offset = {};
      reference.strides.clear();
    }
  }
  return result;
}

//===----------------------------------------------------------------------===//
// Conditions
//===----------------------------------------------------------------------===//

void AccessMapBuilder::addComparison(arith::CmpIPredicate predicate, AffineExpr left,
                                     AffineExpr right, Context &at) {
  using Predicate = arith::CmpIPredicate;
  switch (predicate) {
  case Predicate::eq:
    at.zero.push_back(left - right);
    return;
  case Predicate::ne: {
    // One side of it, where the other cannot be.
    Interval difference = interval(left - right);
    if (difference.lower && *difference.lower >= 0)
      at.nonNegative.push_back(left - right - 1);
    else if (difference.upper && *difference.upper <= 0)
      at.nonNegative.push_back(right - left - 1);
    else
      at.certain = false;
    return;
  }
  case Predicate::slt:
  case Predicate::ult:
    at.nonNegative.push_back(right - left - 1);
    return;
  case Predicate::sle:
  case Predicate::ule:
    at.nonNegative.push_back(right - left);
    return;
  case Predicate::sgt:
  case Predicate::ugt:
    at.nonNegative.push_back(left - right - 1);
    return;
  case Predicate::sge:
  case Predicate::uge:
    at.nonNegative.push_back(left - right);
    return;
  }
}

void AccessMapBuilder::addCondition(Value condition, bool holds, Context &at, Frame &frame) {
  APInt literal;
  if (matchPattern(condition, m_ConstantInt(&literal))) {
    if (literal.isZero() == holds) // never executed
      at.zero.push_back(constant(1));
    return;
  }
  Operation *op = condition.getDefiningOp();
  if (auto compare = dyn_cast_or_null<arith::CmpIOp>(op);
      compare && compare.getLhs().getType().isIntOrIndex()) {
    using Predicate = arith::CmpIPredicate;
    Predicate predicate =
        holds ? compare.getPredicate() : arith::invertPredicate(compare.getPredicate());
    bool isSigned = predicate != Predicate::ult && predicate != Predicate::ule &&
                    predicate != Predicate::ugt && predicate != Predicate::uge;
    if (!isSigned &&
        (!isNeverNegative(compare.getLhs(), frame) || !isNeverNegative(compare.getRhs(), frame)))
      at.certain = false;
    else
      addComparison(predicate, evaluate(compare.getLhs(), frame), evaluate(compare.getRhs(), frame),
                    at);
    return;
  }
  if (isa_and_nonnull<arith::XOrIOp>(op) &&
      matchPattern(op->getOperand(1), m_ConstantInt(&literal)))
    return addCondition(op->getOperand(0), literal.isZero() == holds, at, frame);
  if (isa_and_nonnull<arith::AndIOp, arith::OrIOp>(op) && isa<arith::AndIOp>(op) == holds) {
    addCondition(op->getOperand(0), holds, at, frame);
    addCondition(op->getOperand(1), holds, at, frame);
    return;
  }
  // A flag is one wherever it is asked for.
  if (isa_and_nonnull<arith::AndIOp, arith::OrIOp>(op)) {
    at.certain = false;
    return;
  }
  if (AffineExpr bit = getBit(condition, frame))
    at.zero.push_back(bit - (holds ? 1 : 0));
  else
    at.certain = false;
}

//===----------------------------------------------------------------------===//
// The walk
//===----------------------------------------------------------------------===//

void AccessMapBuilder::walk(Region &region, Frame &frame, const Context &at) {
  if (region.empty())
    return;
  if (region.hasOneBlock())
    return walk(region.front(), frame, at);
  auto &tree = dominance.getDomTree(&region);
  CFGLoopInfo loops(tree);
  for (CFGLoop *loop : loops.getLoopsInPreorder()) {
    MapVariable variable;
    variable.kind = Kind::Trip;
    variable.header = loop->getHeader();
    variable.lower = 0;
    frame.headers[loop->getHeader()] = addVariable(std::move(variable));
  }
  for (Block &block : region) {
    if (!tree.isReachableFromEntry(&block))
      continue;
    Context here = at;
    SmallVector<unsigned> inner;
    for (CFGLoop *loop = loops.getLoopFor(&block); loop; loop = loop->getParentLoop())
      inner.push_back(frame.headers.lookup(loop->getHeader()));
    llvm::append_range(here.loops, llvm::reverse(inner));
    here.certain &= inner.empty();
    for (Block *reached = &block; !reached->isEntryBlock();) {
      Block *from = tree.getNode(reached)->getIDom()->getBlock();
      auto branch = dyn_cast<cf::CondBranchOp>(from->getTerminator());
      if (branch && reached->getSinglePredecessor() == from)
        addCondition(branch.getCondition(), reached == branch.getTrueDest(), here, frame);
      else if (!isa<cf::BranchOp>(from->getTerminator()))
        here.certain = false;
      reached = from;
    }
    walk(block, frame, here);
  }
}

void AccessMapBuilder::walk(Block &block, Frame &frame, const Context &at) {
  for (Operation &op : block)
    visit(&op, frame, at);
}

Frame &AccessMapBuilder::makeTrip(Operation *loop, Frame &outer) {
  Frame &trip = makeFrame();
  trip.caller = outer.caller;
  trip.call = outer.call;
  trip.function = outer.function;
  trip.outer = &outer;
  trip.loop = loop;
  return trip;
}

/// Gives `arguments` of a trip the values that `passed` have in `from`.
void AccessMapBuilder::pass(ValueRange passed, Frame &from, ValueRange arguments, Frame &trip) {
  for (auto [value, argument] : llvm::zip_equal(passed, arguments)) {
    if (isa<BaseMemRefType>(value.getType())) {
      SmallVector<Reference, 1> references(resolve(value, from));
      trip.references[argument] = std::move(references);
    } else if (value.getType().isIntOrIndex()) {
      trip.exprs[argument] = evaluate(value, from);
    }
  }
}

std::optional<bool> AccessMapBuilder::decide(Value condition, Frame &frame) {
  auto compare = condition.getDefiningOp<arith::CmpIOp>();
  if (!compare || !compare.getLhs().getType().isIntOrIndex())
    return std::nullopt;
  auto left = dyn_cast<AffineConstantExpr>(evaluate(compare.getLhs(), frame));
  auto right = dyn_cast<AffineConstantExpr>(evaluate(compare.getRhs(), frame));
  if (!left || !right)
    return std::nullopt;
  return arith::applyCmpPredicate(compare.getPredicate(), APInt(64, left.getValue(), true),
                                  APInt(64, right.getValue(), true));
}

/// The most trips that are looked at one by one.
static constexpr int64_t maxUnrolled = 16;

/// Whether a loop computes what no affine map says: it passes memrefs around, or
/// shifts and multiplies by what changes from trip to trip.
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

/// Walks each trip of a loop by itself, where there are few and all is known.
bool AccessMapBuilder::unroll(Operation *op, Frame &frame, const Context &at) {
  if (!needsUnrolling(op) || unrolled * 2 > maxUnrolled)
    return false;
  unsigned variable = getTrip(op, frame);
  auto atTrip = [&](int64_t number) {
    Context here = at;
    here.loops.push_back(variable);
    here.zero.push_back(dim(variable) - number);
    return here;
  };
  auto setTrips = [&](int64_t trips) {
    MapVariable &trip = maps.variables[variable];
    trip.upper = std::max(trip.upper.value_or(0), std::max<int64_t>(trips - 1, 0));
  };
  int64_t before = unrolled;
  if (auto loop = dyn_cast<scf::ForOp>(op)) {
    auto first = dyn_cast<AffineConstantExpr>(evaluate(loop.getLowerBound(), frame));
    auto end = dyn_cast<AffineConstantExpr>(evaluate(loop.getUpperBound(), frame));
    auto step = dyn_cast<AffineConstantExpr>(evaluate(loop.getStep(), frame));
    if (!first || !end || !step || step.getValue() <= 0)
      return false;
    int64_t distance;
    if (llvm::SubOverflow(end.getValue(), first.getValue(), distance))
      return false;
    int64_t trips = std::max<int64_t>(llvm::divideCeilSigned(distance, step.getValue()), 0);
    if (trips * unrolled > maxUnrolled)
      return false;
    setTrips(trips);
    unrolled *= std::max<int64_t>(trips, 1);
    Frame *last = nullptr;
    for (int64_t number = 0; number < trips; ++number) {
      Frame &trip = makeTrip(op, frame);
      trip.exprs[loop.getInductionVar()] = constant(first.getValue() + number * step.getValue());
      pass(last ? ValueRange(loop.getYieldedValues()) : ValueRange(loop.getInitArgs()),
           last ? *last : frame, loop.getRegionIterArgs(), trip);
      walk(loop.getRegion(), trip, atTrip(number));
      last = &trip;
    }
    unrolled = before;
    return true;
  }
  auto loop = dyn_cast<scf::WhileOp>(op);
  if (!loop)
    return false;
  // How often it runs must be known before anything is walked.
  SmallVector<Frame *> trips;
  while (true) {
    Frame &trip = makeTrip(op, frame);
    pass(trips.empty() ? ValueRange(loop.getInits()) : ValueRange(loop.getYieldOp().getOperands()),
         trips.empty() ? frame : *trips.back(), loop.getBeforeArguments(), trip);
    trips.push_back(&trip);
    std::optional<bool> goesOn = decide(loop.getConditionOp().getCondition(), trip);
    if (!goesOn || int64_t(trips.size()) * unrolled > maxUnrolled)
      return false;
    if (!*goesOn)
      break;
    pass(loop.getConditionOp().getArgs(), trip, loop.getAfterArguments(), trip);
  }
  setTrips(trips.size());
  unrolled *= trips.size();
  for (auto [number, trip] : llvm::enumerate(trips)) {
    walk(loop.getBefore(), *trip, atTrip(number));
    if (trip != trips.back())
      walk(loop.getAfter(), *trip, atTrip(number));
  }
  unrolled = before;
  return true;
}

void AccessMapBuilder::visitLoop(Operation *op, Frame &frame, Context at) {
  if (unroll(op, frame, at))
    return;
  unsigned trip = getTrip(op, frame);
  at.loops.push_back(trip);
  auto setTrips = [&](AffineExpr first, AffineExpr end, int64_t step) {
    Interval distance = interval(end - first);
    std::optional<int64_t> &upper = maps.variables[trip].upper;
    bool isFirst = seenLoops.insert(trip).second;
    if (!distance.upper || step <= 0)
      upper = std::nullopt;
    else if (isFirst || upper) // met in several trips, the longest counts
      upper = std::max<int64_t>(llvm::divideCeilSigned(*distance.upper, step) - 1,
                                isFirst ? 0 : *upper);
  };
  if (auto loop = dyn_cast<scf::ForOp>(op)) {
    AffineExpr end = evaluate(loop.getUpperBound(), frame);
    if (auto step = dyn_cast<AffineConstantExpr>(evaluate(loop.getStep(), frame)))
      setTrips(evaluate(loop.getLowerBound(), frame), end, step.getValue());
    at.nonNegative.push_back(end - evaluate(loop.getInductionVar(), frame) - 1);
  } else if (auto loop = dyn_cast<affine::AffineForOp>(op)) {
    for (unsigned i = 0; i < loop.getUpperBoundMap().getNumResults(); ++i) {
      AffineExpr end = replaceDims(loop.getUpperBoundMap(), loop.getUpperBoundOperands(), i, frame);
      if (!end) {
        at.certain = false;
        continue;
      }
      if (i == 0 && loop.getLowerBoundMap().getNumResults() == 1)
        if (AffineExpr first =
                replaceDims(loop.getLowerBoundMap(), loop.getLowerBoundOperands(), 0, frame))
          setTrips(first, end, loop.getStepAsInt());
      at.nonNegative.push_back(end - evaluate(loop.getInductionVar(), frame) - 1);
    }
  } else {
    at.certain = false;
  }
  for (Region &region : op->getRegions())
    walk(region, frame, at);
}

bool AccessMapBuilder::visitCall(CallOpInterface call, Frame &frame, const Context &at) {
  auto symbol = dyn_cast<SymbolRefAttr>(call.getCallableForCallee());
  auto callee = symbol ? dyn_cast_or_null<FunctionOpInterface>(
                             SymbolTable::lookupNearestSymbolFrom(call, symbol))
                       : FunctionOpInterface();
  if (!callee || callee.isExternal() || callee.getNumArguments() != call.getArgOperands().size())
    return false;
  for (Frame *caller = &frame; caller; caller = caller->caller)
    if (caller->function == callee)
      return false; // recursion
  Frame &inner = makeFrame();
  inner.caller = &frame;
  inner.call = call;
  inner.function = callee;
  walk(callee.getFunctionBody(), inner, at);
  return true;
}

void AccessMapBuilder::visit(Operation *op, Frame &frame, const Context &at) {
  if (auto branch = dyn_cast<scf::IfOp>(op)) {
    for (bool holds : {true, false}) {
      Context inner = at;
      addCondition(branch.getCondition(), holds, inner, frame);
      walk(holds ? branch.getThenRegion() : branch.getElseRegion(), frame, inner);
    }
    return;
  }
  if (auto branch = dyn_cast<affine::AffineIfOp>(op)) {
    Context inner = at;
    IntegerSet set = branch.getIntegerSet();
    for (auto [index, constraint] : llvm::enumerate(set.getConstraints())) {
      AffineExpr expr =
          replaceDims(AffineMap::get(set.getNumDims(), set.getNumSymbols(), constraint),
                      branch.getOperands(), 0, frame);
      if (!expr)
        inner.certain = false;
      else
        (set.isEq(index) ? inner.zero : inner.nonNegative).push_back(expr);
    }
    walk(branch.getThenRegion(), frame, inner);
    Context other = at;
    other.certain = false;
    walk(branch.getElseRegion(), frame, other);
    return;
  }
  if (isa<memref::AllocaScopeOp, scf::ExecuteRegionOp>(op))
    return walk(op->getRegion(0), frame, at);
  if (isa<gpu::WarpExecuteOnLane0Op, scf::IndexSwitchOp>(op)) {
    Context inner = at;
    inner.certain = false;
    for (Region &region : op->getRegions())
      walk(region, frame, inner);
    return;
  }
  if (isa<LoopLikeOpInterface>(op))
    return visitLoop(op, frame, at);
  if (auto call = dyn_cast<CallOpInterface>(op); call && visitCall(call, frame, at))
    return;
  // An op that keeps its own account of memory stands for its regions.
  if (op->getNumRegions() && !isa<MemoryEffectOpInterface>(op) &&
      !isa<memref::GenericAtomicRMWOp, gpu::AllReduceOp>(op))
    return visitLoop(op, frame, at);
  visitMemory(op, frame, at);
}

//===----------------------------------------------------------------------===//
// Memory instructions
//===----------------------------------------------------------------------===//

void AccessMapBuilder::add(MemoryAccess access, Operation *op, Effect effect, Frame &frame,
                           const Context &at) {
  access.op = op;
  for (Frame *inner = &frame; inner->caller; inner = inner->caller)
    access.calls.insert(access.calls.begin(), inner->call);
  access.reads = effect.reads;
  access.writes = effect.writes;
  access.atomic = effect.atomic;
  access.certain =
      effect.certain && at.certain && access.root && (access.begin || !access.indices.empty());
  access.nonNegative = at.nonNegative;
  access.zero = at.zero;
  access.loops = at.loops;
  maps.accesses.push_back(std::move(access));
}

void AccessMapBuilder::addAnywhere(Operation *op, Value root, Effect effect, Frame &frame,
                                   const Context &at) {
  MemoryAccess access;
  access.root = root;
  add(std::move(access), op, effect, frame, at);
}

void AccessMapBuilder::addAccess(Operation *op, Value memref, ArrayRef<AffineExpr> indices,
                                 int64_t elements, int64_t elementBytes, Effect effect,
                                 Frame &frame, const Context &at) {
  SmallVector<Reference, 1> references(resolve(memref, frame));
  auto type = dyn_cast<MemRefType>(memref.getType());
  for (const Reference &reference : references) {
    Context here = at;
    llvm::append_range(here.nonNegative, reference.nonNegative);
    llvm::append_range(here.zero, reference.zero);
    here.certain &= reference.certain;
    MemoryAccess access;
    access.root = reference.root;
    AffineExpr begin = elementBytes ? reference.offset : AffineExpr();
    if (reference.strides.size() != indices.size())
      begin = {};
    for (size_t i = 0; begin && i < indices.size(); ++i) {
      AffineExpr index = indices[i], stride = reference.strides[i];
      bool affine = isa<AffineConstantExpr>(index) || isa<AffineConstantExpr>(stride);
      begin = affine ? begin + index * stride : AffineExpr();
    }
    bool packed = elements == 1 || (!reference.strides.empty() &&
                                    reference.strides.back() == constant(elementBytes));
    if (begin && packed) {
      access.begin = begin;
      access.bytes = elements * elementBytes;
    } else if (reference.root && type && type.getLayout().isIdentity() && elementBytes) {
      access.view = memref;
      access.indices.assign(indices.begin(), indices.end());
      access.elements = elements;
    }
    add(std::move(access), op, effect, frame, here);
  }
}

void AccessMapBuilder::addWhole(Operation *op, Value memref, Effect effect, Frame &frame,
                                const Context &at) {
  auto type = dyn_cast<MemRefType>(memref.getType());
  int64_t elementBytes = type ? getElementBytes(type.getElementType()) : 0;
  if (!type || !type.hasStaticShape() || !elementBytes) {
    for (const Reference &reference : SmallVector<Reference, 1>(resolve(memref, frame)))
      addAnywhere(op, reference.root, effect, frame, at);
    return;
  }
  if (type.getNumElements() == 0)
    return;
  SmallVector<AffineExpr> indices;
  for (int64_t size : type.getShape()) {
    MapVariable variable;
    variable.kind = Kind::Element;
    variable.lower = 0;
    variable.upper = size - 1;
    indices.push_back(size == 1 ? constant(0) : dim(addVariable(std::move(variable))));
  }
  addAccess(op, memref, indices, 1, elementBytes, effect, frame, at);
}

/// Ops that ask about a memref and touch nothing.
static bool onlyLooks(Operation *op) {
  return isa<memref::DimOp, memref::RankOp, memref::AssumeAlignmentOp, memref::PrefetchOp,
             memref::ExtractStridedMetadataOp>(op);
}

/// Whether an op near the kernel makes a pointer or a token from a memref: who
/// gets that may touch the memory later.
bool AccessMapBuilder::addressesEscape() {
  if (!escape) {
    auto escapes = [](Operation *op) {
      auto isMemRef = [](Type type) { return isa<BaseMemRefType>(type); };
      if (isa<CallOpInterface, ViewLikeOpInterface>(op) || op->getNumRegions() || onlyLooks(op) ||
          llvm::none_of(op->getOperandTypes(), isMemRef) ||
          llvm::all_of(op->getResultTypes(), isMemRef))
        return WalkResult::advance();
      SmallVector<MemoryEffects::EffectInstance> effects;
      if (auto interface = dyn_cast<MemoryEffectOpInterface>(op))
        interface.getEffects(effects);
      // A type of its own may be a token of a transfer that goes on.
      bool isToken = llvm::any_of(op->getResultTypes(), [](Type type) {
        return !isa<BuiltinDialect, gpu::GPUDialect>(type.getDialect());
      });
      return effects.empty() || isToken ? WalkResult::interrupt() : WalkResult::advance();
    };
    Operation *scope = SymbolTable::getNearestSymbolTable(maps.kernel->getParentOp());
    escape = (scope ? scope : maps.kernel)->walk(escapes).wasInterrupted();
  }
  return *escape;
}

void AccessMapBuilder::visitMemory(Operation *op, Frame &frame, const Context &at) {
  if (isa<gpu::BarrierOp, gpu::ShuffleOp, gpu::AllReduceOp, gpu::SubgroupReduceOp, gpu::PrintfOp,
          cf::AssertOp, arith::SelectOp>(op) ||
      onlyLooks(op))
    return;
  auto evaluateAll = [&](ValueRange values) {
    return llvm::map_to_vector(values, [&](Value value) { return evaluate(value, frame); });
  };
  auto access = [&](Value memref, ArrayRef<AffineExpr> indices, Type moved, Effect effect) {
    auto type = cast<MemRefType>(memref.getType());
    int64_t elementBytes = getElementBytes(type.getElementType()), elements = 1;
    auto vector = dyn_cast<VectorType>(moved);
    if (elementBytes && vector && vector != type.getElementType()) {
      if (vector.getRank() != 1 || vector.isScalable())
        return addWhole(op, memref, {effect.reads, effect.writes, effect.atomic, false}, frame, at);
      int64_t part = getElementBytes(vector.getElementType());
      if (!part || part * vector.getNumElements() % elementBytes)
        elementBytes = 0;
      else
        elements = part * vector.getNumElements() / elementBytes;
    }
    addAccess(op, memref, indices, elements, elementBytes, effect, frame, at);
  };
  Effect read, write, update, atomic;
  read.reads = write.writes = true;
  update.reads = update.writes = true;
  atomic.reads = atomic.writes = atomic.atomic = true;
  auto unsure = [](Effect effect) {
    effect.certain = false;
    return effect;
  };

  if (auto load = dyn_cast<memref::LoadOp>(op))
    return access(load.getMemRef(), evaluateAll(load.getIndices()), load.getType(), read);
  if (auto store = dyn_cast<memref::StoreOp>(op))
    return access(store.getMemRef(), evaluateAll(store.getIndices()),
                  store.getValueToStore().getType(), write);
  if (auto copy = dyn_cast<memref::CopyOp>(op)) {
    addWhole(op, copy.getSource(), read, frame, at);
    return addWhole(op, copy.getTarget(), write, frame, at);
  }
  if (auto rmw = dyn_cast<memref::AtomicRMWOp>(op))
    return access(rmw.getMemref(), evaluateAll(rmw.getIndices()), rmw.getType(), atomic);
  if (auto rmw = dyn_cast<memref::GenericAtomicRMWOp>(op))
    return access(rmw.getMemref(), evaluateAll(rmw.getIndices()), rmw.getType(), atomic);
  if (auto load = dyn_cast<vector::LoadOp>(op))
    return access(load.getBase(), evaluateAll(load.getIndices()), load.getType(), read);
  if (auto store = dyn_cast<vector::StoreOp>(op))
    return access(store.getBase(), evaluateAll(store.getIndices()), store.getVectorType(), write);
  if (auto load = dyn_cast<vector::MaskedLoadOp>(op))
    return access(load.getBase(), evaluateAll(load.getIndices()), load.getType(), unsure(read));
  if (auto store = dyn_cast<vector::MaskedStoreOp>(op))
    return access(store.getBase(), evaluateAll(store.getIndices()), store.getVectorType(),
                  unsure(write));
  auto accessAffine = [&](Value memref, AffineMap map, ValueRange operands, Type moved,
                          Effect effect) {
    SmallVector<AffineExpr> indices;
    for (unsigned i = 0; i < map.getNumResults(); ++i) {
      AffineExpr index = replaceDims(map, operands, i, frame);
      if (!index)
        return addWhole(op, memref, unsure(effect), frame, at);
      indices.push_back(index);
    }
    access(memref, indices, moved, effect);
  };
  if (isa<affine::AffineReadOpInterface>(op)) {
    auto load = cast<affine::AffineReadOpInterface>(op);
    return accessAffine(load.getMemRef(), load.getAffineMap(), load.getMapOperands(),
                        load.getValue().getType(), read);
  }
  if (isa<affine::AffineWriteOpInterface>(op)) {
    auto store = cast<affine::AffineWriteOpInterface>(op);
    return accessAffine(store.getMemRef(), store.getAffineMap(), store.getMapOperands(),
                        store.getValueToStore().getType(), write);
  }
  if (auto transfer = dyn_cast<VectorTransferOpInterface>(op);
      transfer && isa<MemRefType>(transfer.getBase().getType())) {
    Effect effect = isa<vector::TransferReadOp>(op) ? read : write;
    if (!transfer.getPermutationMap().isMinorIdentity())
      return addWhole(op, transfer.getBase(), unsure(effect), frame, at);
    bool whole = !transfer.getMask() && !transfer.hasOutOfBoundsDim();
    return access(transfer.getBase(), evaluateAll(transfer.getIndices()), transfer.getVectorType(),
                  whole ? effect : unsure(effect));
  }

  // Anything else, by what it says of itself. What passes a memref on without
  // touching it is followed where the result is used.
  if (isa<ViewLikeOpInterface>(op) || op->hasTrait<OpTrait::IsTerminator>())
    return;
  SmallVector<MemoryEffects::EffectInstance> effects;
  auto interface = dyn_cast<MemoryEffectOpInterface>(op);
  if (interface)
    interface.getEffects(effects);
  Effect elsewhere;
  llvm::MapVector<Value, Effect> known;
  for (const MemoryEffects::EffectInstance &instance : effects) {
    if (isa<MemoryEffects::Allocate, MemoryEffects::Free>(instance.getEffect()))
      continue;
    Value value = instance.getValue();
    Effect &effect = value ? known[value] : elsewhere;
    effect.reads |= isa<MemoryEffects::Read>(instance.getEffect());
    effect.writes |= isa<MemoryEffects::Write>(instance.getEffect());
    if (value && !isa<BaseMemRefType>(value.getType())) // a pointer: to where?
      addAnywhere(op, Value(), unsure(effect), frame, at);
  }
  bool isSilent = interface && effects.empty();
  // With an address that left our sight an unknown op may touch anything.
  if (!interface && !isa<CallOpInterface>(op) && addressesEscape())
    addAnywhere(op, Value(), unsure(update), frame, at);
  for (Value operand : op->getOperands()) {
    if (!isa<BaseMemRefType>(operand.getType()) || known.contains(operand))
      continue;
    if (elsewhere.reads || elsewhere.writes)
      known[operand] = unsure(elsewhere);
    else if (!interface || isSilent)
      known[operand] = unsure(update); // its address leaves our sight
  }
  for (auto &[value, effect] : known)
    if (isa<BaseMemRefType>(value.getType()))
      addWhole(op, value, unsure(effect), frame, at);
  if (isa<CallOpInterface>(op))
    addAnywhere(op, Value(), unsure(update), frame, at);
  else if (elsewhere.reads || elsewhere.writes)
    addAnywhere(op, Value(), unsure(elsewhere), frame, at);
}

AccessMaps::AccessMaps(FunctionOpInterface kernel, const LaunchSizes &sizes)
    : kernel(kernel), sizes(sizes) {
  AccessMapBuilder(*this, kernel->getContext()).run();
}

//===- AccessMap.cpp - Whether two memory instructions can meet -----------===//
//
// Two executions touch a common byte where a system of affine constraints has
// an integer point: ranges and conditions of both, the relation of their
// invocations and trips, and the bytes. MLIR's Presburger library decides it.
//
//===----------------------------------------------------------------------===//

#include "Distance.h"
#include "Interval.h"

#include "mlir/Analysis/FlatLinearValueConstraints.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/MathExtras.h"

#include <map>

using namespace mlir;
using namespace weir;

using Kind = MapVariable::Kind;
using Scope = MapVariable::Scope;

//===----------------------------------------------------------------------===//
// Ranges of expressions
//===----------------------------------------------------------------------===//

std::optional<int64_t> weir::addBounds(std::optional<int64_t> a, std::optional<int64_t> b) {
  int64_t sum;
  if (!a || !b || llvm::AddOverflow(*a, *b, sum))
    return std::nullopt;
  return sum;
}

std::optional<int64_t> weir::scaleBound(std::optional<int64_t> bound, int64_t factor) {
  int64_t product;
  if (!bound || llvm::MulOverflow(*bound, factor, product))
    return std::nullopt;
  return product;
}

Interval weir::getInterval(AffineExpr expr, ArrayRef<MapVariable> variables) {
  if (auto constant = dyn_cast<AffineConstantExpr>(expr))
    return {constant.getValue(), constant.getValue()};
  if (auto dim = dyn_cast<AffineDimExpr>(expr))
    return {variables[dim.getPosition()].lower, variables[dim.getPosition()].upper};
  auto binary = dyn_cast<AffineBinaryOpExpr>(expr);
  if (!binary)
    return {};
  Interval left = getInterval(binary.getLHS(), variables);
  if (expr.getKind() == AffineExprKind::Add) {
    Interval right = getInterval(binary.getRHS(), variables);
    return {addBounds(left.lower, right.lower), addBounds(left.upper, right.upper)};
  }
  auto constant = dyn_cast<AffineConstantExpr>(binary.getRHS());
  if (!constant)
    return {};
  int64_t factor = constant.getValue();
  switch (expr.getKind()) {
  case AffineExprKind::Mul:
    if (factor < 0)
      std::swap(left.lower, left.upper);
    return {scaleBound(left.lower, factor), scaleBound(left.upper, factor)};
  case AffineExprKind::Mod:
    if (left.lower && left.upper && *left.lower >= 0 && *left.upper < factor)
      return left;
    return {0, factor - 1};
  case AffineExprKind::FloorDiv:
  case AffineExprKind::CeilDiv: {
    auto divide = [&](std::optional<int64_t> value) -> std::optional<int64_t> {
      if (!value)
        return std::nullopt;
      return expr.getKind() == AffineExprKind::FloorDiv ? llvm::divideFloorSigned(*value, factor)
                                                        : llvm::divideCeilSigned(*value, factor);
    };
    if (factor <= 0)
      return {};
    return {divide(left.lower), divide(left.upper)};
  }
  default:
    return {};
  }
}

std::optional<unsigned> AccessMaps::getTripVariable(Operation *loop) const {
  auto it = loopTrips.find(loop);
  return it == loopTrips.end() ? std::nullopt : std::optional(it->second);
}

std::optional<unsigned> AccessMaps::getTripVariable(Block *header) const {
  auto it = headerTrips.find(header);
  return it == headerTrips.end() ? std::nullopt : std::optional(it->second);
}

unsigned AccessMaps::countCommonLoops(const MemoryAccess &first, const MemoryAccess &second) const {
  auto [a, b] = std::mismatch(first.loops.begin(), first.loops.end(), second.loops.begin(),
                              second.loops.end());
  return a - first.loops.begin();
}

//===----------------------------------------------------------------------===//
// Roots
//===----------------------------------------------------------------------===//

static bool isWorkgroupMemory(Value root) {
  auto type = dyn_cast<MemRefType>(root.getType());
  return type && gpu::GPUDialect::hasWorkgroupMemoryAddressSpace(type);
}

bool AccessMaps::isPrivate(Value root) const {
  if (!root || isWorkgroupMemory(root))
    return false;
  if (root.getDefiningOp<memref::AllocaOp>() || root.getDefiningOp<memref::AllocOp>())
    return true;
  auto type = dyn_cast<MemRefType>(root.getType());
  auto space = dyn_cast_or_null<gpu::AddressSpaceAttr>(type ? type.getMemorySpace() : Attribute());
  auto function = dyn_cast<gpu::GPUFuncOp>(kernel.getOperation());
  return (space && space.getValue() == gpu::AddressSpace::Private) ||
         (function && llvm::is_contained(function.getPrivateAttributions(), root));
}

Sharing AccessMaps::compareRoots(Value first, Value second) const {
  if (first && first == second)
    return Sharing::Overlap;
  if ((first && isPrivate(first)) || (second && isPrivate(second)))
    return Sharing::Disjoint;
  if (!first || !second)
    return Sharing::Unknown;
  // Two pieces of workgroup memory of one kernel, and workgroup memory and
  // global memory, share nothing; a passed pointer may be anything of its space.
  bool isShared = isWorkgroupMemory(first);
  if (isShared != isWorkgroupMemory(second))
    return Sharing::Disjoint;
  auto getArgument = [&](Value root) -> std::optional<unsigned> {
    auto argument = dyn_cast<BlockArgument>(root);
    if (!argument || argument.getArgNumber() >= kernel.getNumArguments())
      return std::nullopt;
    return argument.getArgNumber();
  };
  std::optional<unsigned> a = getArgument(first), b = getArgument(second);
  if (!a && !b)
    return Sharing::Disjoint; // two allocations of the kernel or the module
  for (std::optional<unsigned> argument : {a, b})
    if (argument && kernel.getArgAttr(*argument, LLVM::LLVMDialect::getNoAliasAttrName()))
      return Sharing::Disjoint;
  bool isOwn = (!a && isShared) || (!b && isShared);
  return isOwn ? Sharing::Disjoint : Sharing::Unknown;
}

//===----------------------------------------------------------------------===//
// Queries
//===----------------------------------------------------------------------===//

namespace {
using KnownAnswers = std::map<std::vector<const void *>, bool>;

/// The integer points at which two executions touch a common byte.
class Question {
public:
  Question(ArrayRef<MapVariable> variables, KnownAnswers &known)
      : variables(variables), known(known) {}

  /// Makes columns for the variables of `access`, seen from side 0 or 1.
  void addSide(unsigned side, const MemoryAccess &access) {
    auto addAll = [&](ArrayRef<AffineExpr> exprs) {
      for (AffineExpr expr : exprs)
        addColumns(side, expr);
    };
    if (access.begin)
      addColumns(side, access.begin);
    addAll(access.indices);
    addAll(access.nonNegative);
    addAll(access.zero);
  }
  void addColumn(unsigned side, unsigned variable) {
    if (!columns[side].try_emplace(variable, next).second)
      return;
    ++next;
    for (AffineExpr known : variables[variable].nonNegative)
      addColumns(side, known);
  }
  bool has(unsigned side, unsigned variable) const { return columns[side].contains(variable); }
  /// Both sides see one value.
  void share(unsigned variable) { shared.push_back(variable); }

  AffineExpr onSide(unsigned side, AffineExpr expr) const {
    SmallVector<AffineExpr> dims(variables.size());
    for (auto [variable, column] : columns[side])
      dims[variable] = getAffineDimExpr(column, expr.getContext());
    for (AffineExpr &dim : dims)
      if (!dim)
        dim = getAffineConstantExpr(0, expr.getContext());
    return expr.replaceDims(dims);
  }
  AffineExpr column(unsigned side, unsigned variable, MLIRContext *context) const {
    return getAffineDimExpr(columns[side].find(variable)->second, context);
  }

  void requireNonNegative(AffineExpr expr) { inequalities.push_back(expr); }
  void requireZero(AffineExpr expr) { equalities.push_back(expr); }

  /// States what holds of the variables and conditions of a side.
  void close(unsigned side, const MemoryAccess &access) {
    for (AffineExpr expr : access.nonNegative)
      requireNonNegative(onSide(side, expr));
    for (AffineExpr expr : access.zero)
      requireZero(onSide(side, expr));
  }
  void closeVariables(MLIRContext *context) {
    for (unsigned side : {0u, 1u})
      for (auto [variable, at] : columns[side]) {
        AffineExpr self = getAffineDimExpr(at, context);
        if (variables[variable].lower)
          requireNonNegative(self - *variables[variable].lower);
        if (variables[variable].upper)
          requireNonNegative(getAffineConstantExpr(*variables[variable].upper, context) - self);
        for (AffineExpr known : variables[variable].nonNegative)
          requireNonNegative(onSide(side, known));
      }
    for (unsigned variable : shared)
      if (has(0, variable) && has(1, variable))
        requireZero(column(0, variable, context) - column(1, variable, context));
  }

  /// Whether some point also satisfies these; true when that can't be told.
  bool holds(ArrayRef<AffineExpr> nonNegative, ArrayRef<AffineExpr> zero) {
    SmallVector<AffineExpr> exprs(equalities);
    llvm::append_range(exprs, zero);
    size_t numEqualities = exprs.size();
    llvm::append_range(exprs, inequalities);
    llvm::append_range(exprs, nonNegative);
    if (exprs.empty())
      return true;
    // An answer takes up to many milliseconds, and rows of a tile and lanes of a
    // vector ask the same again and again.
    KnownAnswers::key_type key = {reinterpret_cast<const void *>(uintptr_t(next)),
                                  reinterpret_cast<const void *>(uintptr_t(numEqualities))};
    for (AffineExpr expr : exprs)
      key.push_back(expr.getAsOpaquePointer());
    auto [answer, isNew] = known.try_emplace(std::move(key), true);
    if (isNew)
      answer->second = solve(exprs, numEqualities);
    return answer->second;
  }

private:
  bool solve(ArrayRef<AffineExpr> exprs, size_t numEqualities) const {
    FlatLinearConstraints set;
    std::vector<SmallVector<int64_t, 8>> rows;
    AffineMap map = AffineMap::get(next, 0, exprs, exprs.front().getContext());
    if (failed(getFlattenedAffineExprs(map, &rows, &set)))
      return true;
    for (auto [index, row] : llvm::enumerate(rows))
      index < numEqualities ? set.addEquality(row) : set.addInequality(row);
    return !set.isIntegerEmpty();
  }

  void addColumns(unsigned side, AffineExpr expr) {
    expr.walk([&](AffineExpr part) {
      if (auto dim = dyn_cast<AffineDimExpr>(part))
        addColumn(side, dim.getPosition());
    });
  }

  ArrayRef<MapVariable> variables;
  KnownAnswers &known;
  llvm::MapVector<unsigned, unsigned> columns[2];
  unsigned next = 0;
  SmallVector<unsigned> shared;
  SmallVector<AffineExpr> equalities, inequalities;
};
} // namespace

static bool isId(const MapVariable &variable) {
  switch (variable.kind) {
  case Kind::Workgroup:
  case Kind::Invocation:
  case Kind::Global:
  case Kind::Subgroup:
  case Kind::Lane:
    return true;
  default:
    return false;
  }
}

Sharing AccessMaps::compare(const MemoryAccess &first, const MemoryAccess &second,
                            const Instances &instances, std::optional<int64_t> shift) const {
  using Invocations = Instances::Invocations;
  if (!shift) {
    if (first.root && first.root == second.root && isPrivate(first.root) &&
        instances.invocations != Invocations::Same)
      return Sharing::Disjoint;
    if (first.root && first.root == second.root && isWorkgroupMemory(first.root) &&
        instances.invocations == Invocations::DifferentWorkgroup)
      return Sharing::Disjoint;
    Sharing roots = compareRoots(first.root, second.root);
    if (roots != Sharing::Overlap)
      return roots;
  }
  bool byBytes = first.begin && second.begin;
  // Most pairs are told apart without a system of constraints.
  auto mayMeet = [&](const Differences &known) {
    return !byBytes || std::abs(shift.value_or(0)) >= (int64_t(1) << 32) ||
           mayDifferBy(first.begin, second.begin, 1 - second.bytes - shift.value_or(0),
                       first.bytes - 1 - shift.value_or(0), variables, known);
  };
  if (!mayMeet({}))
    return Sharing::Disjoint;
  bool byIndices = !byBytes && !shift && first.view && first.view == second.view &&
                   first.indices.size() == second.indices.size() && first.calls == second.calls;
  MLIRContext *context = kernel->getContext();
  Question question(variables, answers);
  question.addSide(0, first);
  question.addSide(1, second);

  // Which ids tell invocations apart: those that the accesses are made of.
  // Several systems of ids at once say nothing simple about each other.
  SmallVector<unsigned> workgroupIds, threadIds, laneIds, globalIds;
  for (auto [index, variable] : llvm::enumerate(variables)) {
    if (!question.has(0, index) && !question.has(1, index))
      continue;
    if (variable.kind == Kind::Workgroup)
      workgroupIds.push_back(index);
    else if (variable.kind == Kind::Invocation)
      threadIds.push_back(index);
    else if (variable.kind == Kind::Subgroup || variable.kind == Kind::Lane)
      laneIds.push_back(index);
    else if (variable.kind == Kind::Global)
      globalIds.push_back(index);
  }
  for (ArrayRef<unsigned> ids :
       {ArrayRef(workgroupIds), ArrayRef(threadIds), ArrayRef(laneIds), ArrayRef(globalIds)})
    for (unsigned id : ids) {
      question.addColumn(0, id);
      question.addColumn(1, id);
    }

  // Which variables have one value on both sides, or by how much it differs.
  Differences known;
  // A value computed in one's own loop of blocks may be used outside of it.
  unsigned common = countCommonLoops(first, second);
  auto isOfBlocks = [&](unsigned trip) { return variables[trip].header != nullptr; };
  bool leaks = llvm::any_of(ArrayRef(first.loops).drop_front(common), isOfBlocks) ||
               llvm::any_of(ArrayRef(second.loops).drop_front(common), isOfBlocks);
  bool sameTrips = true;
  for (unsigned i = 0; i < common; ++i) {
    Instances::Trip relation =
        i < instances.trips.size() ? instances.trips[i] : Instances::Trip::Any;
    sameTrips &= relation == Instances::Trip::Same;
  }
  for (auto [index, variable] : llvm::enumerate(variables)) {
    bool one = false;
    if (isId(variable))
      one =
          instances.invocations == Invocations::Same ||
          (instances.invocations == Invocations::SameWorkgroup && variable.kind == Kind::Workgroup);
    else if (variable.kind == Kind::Opaque)
      one = (variable.scope == Scope::Grid || instances.invocations == Invocations::Same ||
             (variable.scope == Scope::Workgroup &&
              instances.invocations == Invocations::SameWorkgroup)) &&
            (!variable.varies || (sameTrips && !leaks));
    if (variable.kind == Kind::Opaque && isUniform &&
        instances.invocations == Invocations::SameWorkgroup && isUniform(variable.value))
      one |= sameTrips && !leaks;
    if (one) {
      question.share(index);
      known[index] = {0, 0};
    }
  }
  for (unsigned i = 0; i < common; ++i) {
    unsigned variable = first.loops[i];
    Instances::Trip relation =
        i < instances.trips.size() ? instances.trips[i] : Instances::Trip::Any;
    if (relation == Instances::Trip::Any)
      continue;
    question.addColumn(0, variable);
    question.addColumn(1, variable);
    AffineExpr distance =
        question.column(1, variable, context) - question.column(0, variable, context);
    if (relation == Instances::Trip::Same) {
      question.requireZero(distance);
      known[variable] = {0, 0};
    } else if (relation == Instances::Trip::Next) {
      question.requireZero(distance - 1);
      known[variable] = {1, 1};
    } else {
      question.requireNonNegative(distance - 1);
      known[variable] = {1, std::nullopt};
    }
  }
  question.close(0, first);
  question.close(1, second);
  question.closeVariables(context);
  if (byBytes) {
    AffineExpr distance = getDifference(question.onSide(0, first.begin),
                                        question.onSide(1, second.begin) + shift.value_or(0));
    question.requireNonNegative(distance + (second.bytes - 1));
    question.requireNonNegative(-distance + (first.bytes - 1));
  } else if (byIndices) {
    for (size_t i = 0; i < first.indices.size(); ++i) {
      AffineExpr a = question.onSide(0, first.indices[i]);
      AffineExpr b = question.onSide(1, second.indices[i]);
      bool last = i + 1 == first.indices.size();
      question.requireNonNegative(b - a + ((last ? second.elements : 1) - 1));
      question.requireNonNegative(a - b + ((last ? first.elements : 1) - 1));
    }
  }

  // Two executions by invocations that differ: the first id that does so is
  // less or greater.
  SmallVector<unsigned> telling;
  bool mayDifferElsewhere = false; // in an id that neither access is made of
  auto mayDiffer = [&](std::optional<int64_t> size) { return !size || *size > 1; };
  auto countMissing = [&](ArrayRef<unsigned> ids,
                          const std::array<std::optional<int64_t>, 3> &extents) {
    for (unsigned axis = 0; axis < 3; ++axis)
      if (llvm::none_of(ids, [&](unsigned id) { return variables[id].axis == axis; }))
        mayDifferElsewhere |= mayDiffer(extents[axis]);
  };
  auto decideFound = [&] { return decide(first, second, instances, byBytes || byIndices); };
  switch (instances.invocations) {
  case Invocations::Same:
    return mayMeet(known) && question.holds({}, {}) ? decideFound() : Sharing::Disjoint;
  case Invocations::SameWorkgroup: {
    unsigned systems = !threadIds.empty() + !laneIds.empty() + !globalIds.empty();
    if (systems > 1) {
      mayDifferElsewhere = true;
    } else if (!laneIds.empty()) {
      telling = laneIds;
      bool hasLane =
          llvm::any_of(laneIds, [&](unsigned id) { return variables[id].kind == Kind::Lane; });
      bool hasSubgroup = laneIds.size() > unsigned(hasLane);
      std::optional<int64_t> subgroups = sizes.countSubgroups();
      mayDifferElsewhere =
          (!hasLane && mayDiffer(sizes.subgroup)) || (!hasSubgroup && mayDiffer(subgroups));
    } else if (!globalIds.empty()) {
      telling = globalIds;
      countMissing(globalIds, sizes.workgroup);
    } else {
      telling = threadIds;
      countMissing(threadIds, sizes.workgroup);
    }
    break;
  }
  case Invocations::DifferentWorkgroup:
    if (!globalIds.empty() && workgroupIds.empty()) {
      telling = globalIds; // of two workgroups, hence of two invocations
      countMissing(globalIds, sizes.grid);
    } else {
      telling = workgroupIds;
      countMissing(workgroupIds, sizes.grid);
    }
    break;
  }
  SmallVector<AffineExpr> equal;
  for (unsigned id : telling) {
    AffineExpr difference = question.column(1, id, context) - question.column(0, id, context);
    known[id] = {1, std::nullopt};
    if (mayMeet(known) && question.holds({difference - 1}, equal))
      return decideFound();
    known[id] = {std::nullopt, -1};
    if (mayMeet(known) && question.holds({-difference - 1}, equal))
      return decideFound();
    known[id] = {0, 0};
    equal.push_back(difference);
  }
  if (mayDifferElsewhere && mayMeet(known) && question.holds({}, equal))
    return decideFound();
  return Sharing::Disjoint;
}

/// A point was found at which both are executed on a common byte: whether it
/// surely exists.
Sharing AccessMaps::decide(const MemoryAccess &first, const MemoryAccess &second,
                           const Instances &instances, bool exact) const {
  auto isSure = [&](const MemoryAccess &access) {
    bool sure = access.certain;
    auto check = [&](AffineExpr expr) {
      expr.walk([&](AffineExpr part) {
        auto dim = dyn_cast<AffineDimExpr>(part);
        if (!dim)
          return;
        const MapVariable &variable = variables[dim.getPosition()];
        sure &= variable.kind != Kind::Opaque && !(isId(variable) && !variable.upper);
      });
    };
    if (access.begin)
      check(access.begin);
    llvm::for_each(access.indices, check);
    llvm::for_each(access.nonNegative, check);
    llvm::for_each(access.zero, check);
    return sure;
  };
  // That there is a second invocation or workgroup at all must be known, too.
  using Invocations = Instances::Invocations;
  auto isKnown = [](std::optional<int64_t> size) { return size.has_value(); };
  if (instances.invocations == Invocations::SameWorkgroup)
    exact &= llvm::all_of(sizes.workgroup, isKnown);
  else if (instances.invocations == Invocations::DifferentWorkgroup)
    exact &= llvm::all_of(sizes.grid, isKnown);
  return exact && isSure(first) && isSure(second) ? Sharing::Overlap : Sharing::Unknown;
}

//===----------------------------------------------------------------------===//
// Coverage
//===----------------------------------------------------------------------===//

/// The values of a sum of multiples of variables that vary freely: every
/// multiple of `step` from `first` to `last`.
namespace {
struct Progression {
  int64_t first = 0, last = 0, step = 0;
};
} // namespace

/// Returns the progression that `expr` runs through, or nothing when it has
/// gaps, repeats nothing simple or isn't linear.
static std::optional<Progression> getProgression(AffineExpr expr, ArrayRef<MapVariable> variables) {
  SmallVector<int64_t, 8> row;
  FlatLinearConstraints locals;
  if (failed(getFlattenedAffineExpr(expr, variables.size(), 0, &row, &locals)) ||
      locals.getNumLocalVars())
    return std::nullopt;
  SmallVector<std::pair<int64_t, int64_t>> terms; // coefficient, values
  Progression values{row.back(), row.back(), 0};
  for (auto [index, coefficient] : llvm::enumerate(ArrayRef(row).drop_back())) {
    if (coefficient == 0)
      continue;
    const MapVariable &variable = variables[index];
    if (coefficient < 0 || variable.kind == Kind::Opaque || !variable.lower || !variable.upper ||
        !variable.nonNegative.empty() || *variable.upper < *variable.lower)
      return std::nullopt;
    int64_t first, size = *variable.upper - *variable.lower + 1;
    if (llvm::MulOverflow(coefficient, *variable.lower, first) ||
        llvm::AddOverflow(values.first, first, values.first))
      return std::nullopt;
    if (size > 1)
      terms.push_back({coefficient, size});
  }
  llvm::sort(terms);
  values.last = values.first;
  for (auto [coefficient, size] : terms) {
    if (!values.step)
      values.step = coefficient;
    int64_t reach; // the next term must begin no later than one step on
    if (coefficient % values.step || coefficient > values.last - values.first + values.step ||
        llvm::MulOverflow(coefficient, size - 1, reach) ||
        llvm::AddOverflow(values.last, reach, values.last))
      return std::nullopt;
  }
  return values;
}

bool AccessMaps::coversAll(Value root, int64_t bytes) const {
  SmallVector<std::pair<int64_t, int64_t>> covered;
  for (const MemoryAccess &access : accesses) {
    if (access.root != root || !access.writes || !access.certain || !access.begin ||
        !access.zero.empty())
      continue;
    std::optional<Progression> begin = getProgression(access.begin, variables);
    bool ok = begin && begin->step <= access.bytes;
    for (AffineExpr condition : access.nonNegative) {
      Interval range = getInterval(condition, variables);
      if (!ok || (range.lower && *range.lower >= 0))
        continue;
      // A limit on the address itself cuts off the end.
      ok = false;
      for (int64_t factor = 1; factor <= access.bytes && !ok; ++factor) {
        auto rest = dyn_cast<AffineConstantExpr>(
            simplifyAffineExpr(access.begin + condition * factor, variables.size(), 0));
        if (!rest)
          continue;
        ok = rest.getValue() >= begin->first;
        if (begin->step)
          begin->last = std::min(begin->last, begin->first + (rest.getValue() - begin->first) /
                                                                 begin->step * begin->step);
      }
    }
    if (ok)
      covered.push_back({begin->first, begin->last + access.bytes});
  }
  llvm::sort(covered);
  int64_t end = 0;
  for (auto [first, last] : covered)
    if (first <= end)
      end = std::max(end, last);
  return end >= bytes;
}

//===----------------------------------------------------------------------===//
// For people
//===----------------------------------------------------------------------===//

std::string AccessMaps::getName(unsigned variable) const {
  const MapVariable &known = variables[variable];
  std::string axis(1, "xyz"[known.axis]);
  switch (known.kind) {
  case Kind::Workgroup:
    return "workgroup." + axis;
  case Kind::Invocation:
    return "invocation." + axis;
  case Kind::Global:
    return "global." + axis;
  case Kind::Subgroup:
    return "subgroup";
  case Kind::Lane:
    return "lane";
  case Kind::Trip:
    return "trip" + std::to_string(variable);
  case Kind::Element:
    return "element" + std::to_string(variable);
  case Kind::Opaque:
    return "opaque" + std::to_string(variable);
  }
  llvm_unreachable("no such kind");
}

void AccessMaps::print(raw_ostream &os, AffineExpr expr) const {
  std::string text;
  llvm::raw_string_ostream(text) << expr;
  for (size_t at = 0; at < text.size(); ++at) {
    if (text[at] != 'd' || at + 1 == text.size() || !llvm::isDigit(text[at + 1])) {
      os << text[at]; // "mod", "floordiv" and the rest
      continue;
    }
    unsigned variable = 0;
    for (; at + 1 < text.size() && llvm::isDigit(text[at + 1]); ++at)
      variable = variable * 10 + (text[at + 1] - '0');
    os << getName(variable);
  }
}

void AccessMaps::print(raw_ostream &os, const MemoryAccess &access) const {
  os << (access.atomic ? "atomic" : access.reads ? access.writes ? "update" : "read" : "write");
  if (auto argument = dyn_cast_or_null<BlockArgument>(access.root))
    os << " argument " << argument.getArgNumber();
  else if (access.root)
    os << " " << access.root.getDefiningOp()->getName();
  else
    os << " unknown memory";
  if (access.begin) {
    os << " at ";
    print(os, access.begin);
    os << " for " << access.bytes;
  } else if (access.view) {
    os << " at [";
    llvm::interleaveComma(access.indices, os, [&](AffineExpr expr) { print(os, expr); });
    os << "] for " << access.elements << " elements";
  } else {
    os << " anywhere";
  }
  auto printAll = [&](ArrayRef<AffineExpr> exprs, const char *relation) {
    for (AffineExpr expr : exprs) {
      os << " if ";
      print(os, expr);
      os << relation;
    }
  };
  printAll(access.nonNegative, " >= 0");
  printAll(access.zero, " == 0");
  if (!access.certain)
    os << " perhaps";
}

//===- AccessMap.cpp - Whether two memory instructions can meet -----------===//

#include "Interval.h"
#include "Meeting.h"

#include "mlir/Analysis/FlatLinearValueConstraints.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "weir/Analysis/KnownAnswers.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace weir;

using Kind = MapVariable::Kind;

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

Interval weir::intersect(Interval a, Interval b) {
  if (!a.lower || (b.lower && *b.lower > *a.lower))
    a.lower = b.lower;
  if (!a.upper || (b.upper && *b.upper < *a.upper))
    a.upper = b.upper;
  return a;
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

unsigned AccessMaps::countCommonLoops(const MemoryAccess &first, const MemoryAccess &second) {
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
  // Two pieces of workgroup memory of one kernel share nothing, and neither do workgroup memory and
  // global memory. A passed pointer may be to any memory of its address space.
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

Sharing AccessMaps::compareMemory(const MemoryAccess &first, const MemoryAccess &second,
                                  Instances::Invocations invocations) const {
  if (first.root && first.root == second.root) {
    using Invocations = Instances::Invocations;
    if (invocations != Invocations::Same && isPrivate(first.root))
      return Sharing::Disjoint;
    if (invocations == Invocations::DifferentWorkgroup && isWorkgroupMemory(first.root))
      return Sharing::Disjoint;
  }
  return compareRoots(first.root, second.root);
}

/// Splits a constant off a sum, or off a multiple of one. Errors: the whole, and 0, if the constant
/// is too large.
static std::pair<AffineExpr, int64_t> splitConstant(AffineExpr expr) {
  auto binary = dyn_cast<AffineBinaryOpExpr>(expr);
  // Sums and products have their constant on the right.
  auto constant = binary ? dyn_cast<AffineConstantExpr>(binary.getRHS()) : AffineConstantExpr();
  if (!constant)
    return {expr, 0};
  if (expr.getKind() == AffineExprKind::Add)
    return {binary.getLHS(), constant.getValue()};
  int64_t product;
  if (expr.getKind() != AffineExprKind::Mul)
    return {expr, 0};
  auto [rest, part] = splitConstant(binary.getLHS());
  if (part == 0 || llvm::MulOverflow(part, constant.getValue(), product))
    return {expr, 0};
  return {rest * constant.getValue(), product};
}

/// Returns numbers that say all that decides whether the two meet: of the addresses' constants only
/// their distance. Errors: std::nullopt if an address is not known or the distance is too large.
static std::optional<std::vector<int64_t>> getQuestion(const MemoryAccess &first,
                                                       const MemoryAccess &second,
                                                       const Instances &instances,
                                                       std::optional<int64_t> shift) {
  if (!first.begin || !second.begin)
    return std::nullopt;
  auto [from, fromConstant] = splitConstant(first.begin);
  auto [to, toConstant] = splitConstant(second.begin);
  int64_t distance;
  if (llvm::SubOverflow(toConstant, fromConstant, distance) ||
      llvm::AddOverflow(distance, shift.value_or(0), distance))
    return std::nullopt;
  auto getNumber = [](AffineExpr expr) { return int64_t(expr.getAsOpaquePointer()); };
  std::vector<int64_t> question = {getNumber(from), getNumber(to), distance,
                                   int64_t(instances.invocations)};
  auto add = [&](const auto &list, auto toNumber) {
    question.push_back(list.size());
    for (const auto &each : list)
      question.push_back(toNumber(each));
  };
  auto cast = [](auto number) { return int64_t(number); };
  for (const MemoryAccess *access : {&first, &second}) {
    question.insert(question.end(), {access->bytes, access->certain});
    add(access->nonNegative, getNumber);
    add(access->zero, getNumber);
    add(access->loops, cast);
  }
  add(instances.trips, cast);
  return question;
}

Sharing AccessMaps::compare(const MemoryAccess &first, const MemoryAccess &second,
                            const Instances &instances, std::optional<int64_t> shift,
                            IsUniform isUniform) const {
  if (!shift) {
    Sharing memory = compareMemory(first, second, instances.invocations);
    if (memory != Sharing::Overlap)
      return memory;
  }
  // Only for invocations of one workgroup could the caller's knowledge matter.
  bool knowsMore = isUniform && instances.invocations == Instances::Invocations::SameWorkgroup;
  std::optional<std::vector<int64_t>> question;
  if (!knowsMore)
    question = getQuestion(first, second, instances, shift);
  if (!question)
    return findMeetings(first, second, instances, shift, isUniform);
  auto [known, isNew] = meetings.try_emplace(std::move(*question), Sharing::Unknown);
  if (isNew)
    known->second = findMeetings(first, second, instances, shift, isUniform);
  return known->second;
}

/// Returns whether the two meet in some such executions, in roots that are the same memory.
Sharing AccessMaps::findMeetings(const MemoryAccess &first, const MemoryAccess &second,
                                 const Instances &instances, std::optional<int64_t> shift,
                                 IsUniform isUniform) const {
  Differences differences = getDifferences(first, second, instances, variables, isUniform);
  std::vector<Differences> cases = {differences};
  if (instances.invocations != Instances::Invocations::Same) {
    llvm::SmallBitVector used = findVariables(first, variables);
    used |= findVariables(second, variables);
    cases = getCases(differences, getTellingIds(used, variables, sizes, instances.invocations));
  }
  const KnownAnswers *answers = KnownAnswers::get(kernel->getContext());
  Sharing result = Sharing::Disjoint;
  for (const Differences &each : cases) {
    Meeting meeting = mayMeet(first, second, shift, each, variables, answers);
    if (meeting.answer == Meeting::Answer::None)
      continue;
    result = Sharing::Unknown;
    if (meeting.answer == Meeting::Answer::Found && meeting.isExact &&
        isSure(first, second, instances.invocations))
      return Sharing::Overlap;
  }
  return result;
}

/// Whether both touch the bytes that their maps state wherever their conditions hold, and
/// invocations that relate like this exist.
bool AccessMaps::isSure(const MemoryAccess &first, const MemoryAccess &second,
                        Instances::Invocations invocations) const {
  for (const MemoryAccess *access : {&first, &second}) {
    if (!access->certain)
      return false;
    llvm::SmallBitVector used = findVariables(*access, variables);
    for (unsigned index : used.set_bits()) {
      const MapVariable &variable = variables[index];
      if (variable.kind == Kind::Opaque || (isId(variable) && !variable.upper))
        return false;
    }
  }
  // It must also be known that there is a second invocation or workgroup at all.
  auto isKnown = [](std::optional<int64_t> size) { return size.has_value(); };
  using Invocations = Instances::Invocations;
  return (invocations != Invocations::SameWorkgroup || llvm::all_of(sizes.workgroup, isKnown)) &&
         (invocations != Invocations::DifferentWorkgroup || llvm::all_of(sizes.grid, isKnown));
}

//===----------------------------------------------------------------------===//
// Coverage
//===----------------------------------------------------------------------===//

/// The numbers `first`, `first + step`... up to `last`.
namespace {
struct Progression {
  int64_t first = 0, last = 0, step = 0;
};
} // namespace

/// Returns the progression that `expr` runs through as its variables vary freely, or nothing when
/// it has gaps or isn't linear.
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

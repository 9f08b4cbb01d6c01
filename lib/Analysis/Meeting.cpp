//===- Meeting.cpp - Whether two executions can touch one byte ------------===//

#include "Meeting.h"

#include "weir/Analysis/KnownAnswers.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/Support/MathExtras.h"

#include <map>

using namespace mlir;
using namespace weir;

using Kind = MapVariable::Kind;
using Invocations = Instances::Invocations;
using Trip = Instances::Trip;

//===----------------------------------------------------------------------===//
// Variables
//===----------------------------------------------------------------------===//

static void addVariables(AffineExpr expr, ArrayRef<MapVariable> variables,
                         llvm::SmallBitVector &found) {
  expr.walk([&](AffineExpr part) {
    auto dim = dyn_cast<AffineDimExpr>(part);
    if (!dim || found.test(dim.getPosition()))
      return;
    found.set(dim.getPosition());
    for (AffineExpr known : variables[dim.getPosition()].nonNegative)
      addVariables(known, variables, found);
  });
}

llvm::SmallBitVector weir::findVariables(const MemoryAccess &access,
                                         ArrayRef<MapVariable> variables) {
  llvm::SmallBitVector found(variables.size());
  if (access.begin)
    addVariables(access.begin, variables, found);
  for (const auto &exprs : {access.indices, access.nonNegative, access.zero})
    for (AffineExpr expr : exprs)
      addVariables(expr, variables, found);
  return found;
}

bool weir::isId(const MapVariable &variable) {
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

//===----------------------------------------------------------------------===//
// Differences
//===----------------------------------------------------------------------===//

Differences weir::getDifferences(const MemoryAccess &first, const MemoryAccess &second,
                                 const Instances &instances, ArrayRef<MapVariable> variables,
                                 function_ref<bool(Value)> isUniform) {
  unsigned common = AccessMaps::countCommonLoops(first, second);
  auto getTrip = [&](unsigned depth) {
    return depth < instances.trips.size() ? instances.trips[depth] : Trip::Any;
  };
  // A value of a loop of blocks may be used outside of it. Then its trip is not known.
  auto isOfBlocks = [&](unsigned trip) { return variables[trip].header != nullptr; };
  bool leaks = llvm::any_of(ArrayRef(first.loops).drop_front(common), isOfBlocks) ||
               llvm::any_of(ArrayRef(second.loops).drop_front(common), isOfBlocks);
  bool isSameTrip = !leaks;
  for (unsigned depth = 0; depth < common; ++depth)
    isSameTrip &= getTrip(depth) == Trip::Same;

  bool isOne = instances.invocations == Invocations::Same;
  bool isOneWorkgroup = isOne || instances.invocations == Invocations::SameWorkgroup;
  auto isSame = [&](const MapVariable &variable) {
    if (isId(variable))
      return isOne || (isOneWorkgroup && variable.kind == Kind::Workgroup);
    if (variable.kind != Kind::Opaque)
      return false;
    bool isShared = variable.scope == Scope::Grid || isOne ||
                    (isOneWorkgroup && variable.scope == Scope::Workgroup);
    if (isShared && (!variable.varies || isSameTrip))
      return true;
    return isOneWorkgroup && !isOne && isSameTrip && isUniform && isUniform(variable.value);
  };
  Differences differences;
  for (auto [index, variable] : llvm::enumerate(variables))
    if (isSame(variable))
      differences[index] = {0, 0};
  for (unsigned depth = 0; depth < common; ++depth)
    if (Trip trip = getTrip(depth); trip == Trip::Same)
      differences[first.loops[depth]] = {0, 0};
    else if (trip == Trip::Next)
      differences[first.loops[depth]] = {1, 1};
    else if (trip == Trip::Later)
      differences[first.loops[depth]] = {1, std::nullopt};
  return differences;
}

TellingIds weir::getTellingIds(const llvm::SmallBitVector &used, ArrayRef<MapVariable> variables,
                               const LaunchSizes &sizes, Invocations invocations) {
  auto getIds = [&](std::initializer_list<Kind> kinds) {
    SmallVector<unsigned> ids;
    for (unsigned index : used.set_bits())
      if (llvm::is_contained(kinds, variables[index].kind))
        ids.push_back(index);
    return ids;
  };
  SmallVector<unsigned> workgroup = getIds({Kind::Workgroup}), global = getIds({Kind::Global}),
                        invocation = getIds({Kind::Invocation}),
                        lane = getIds({Kind::Subgroup, Kind::Lane});
  auto mayDiffer = [](std::optional<int64_t> size) { return !size || *size > 1; };
  // Two invocations may also differ along an axis of which there is no id.
  auto ofAxes = [&](ArrayRef<unsigned> ids, const std::array<std::optional<int64_t>, 3> &extents) {
    TellingIds telling{SmallVector<unsigned>(ids)};
    for (unsigned axis = 0; axis < 3; ++axis)
      if (llvm::none_of(ids, [&](unsigned id) { return variables[id].axis == axis; }))
        telling.orElsewhere |= mayDiffer(extents[axis]);
    return telling;
  };
  switch (invocations) {
  case Invocations::Same:
    return {};
  case Invocations::DifferentWorkgroup:
    // Two workgroups have different invocations.
    return !global.empty() && workgroup.empty() ? ofAxes(global, sizes.grid)
                                                : ofAxes(workgroup, sizes.grid);
  case Invocations::SameWorkgroup:
    break;
  }
  // The ids of different systems have no simple relation.
  if (!invocation.empty() + !lane.empty() + !global.empty() > 1)
    return {{}, true};
  if (!global.empty())
    return ofAxes(global, sizes.workgroup);
  if (lane.empty())
    return ofAxes(invocation, sizes.workgroup);
  bool hasLane = llvm::any_of(lane, [&](unsigned id) { return variables[id].kind == Kind::Lane; });
  bool hasSubgroup = lane.size() > unsigned(hasLane);
  return {lane, (!hasLane && mayDiffer(sizes.subgroup)) ||
                    (!hasSubgroup && mayDiffer(sizes.countSubgroups()))};
}

std::vector<Differences> weir::getCases(const Differences &differences, const TellingIds &telling) {
  std::vector<Differences> cases;
  Differences equal = differences;
  for (unsigned id : telling.ids) {
    equal[id] = {1, std::nullopt};
    cases.push_back(equal);
    equal[id] = {std::nullopt, -1};
    cases.push_back(equal);
    equal[id] = {0, 0};
  }
  if (telling.orElsewhere)
    cases.push_back(std::move(equal));
  return cases;
}

//===----------------------------------------------------------------------===//
// The question
//===----------------------------------------------------------------------===//

namespace {
/// Turns two accesses into one system.
///
/// The second value of a variable is written as the first plus a difference, so terms that both
/// addresses have alike leave no trace in their distance. The same is done for quotient and rest of
/// a division that both make. The distance is also written in digits: a number that is divided is
/// replaced by quotient and rest, and a sum that a condition limits by one variable of that range.
/// In
///
///   column = 16 * (id mod 2) + lane <= 27, address = 28 * (id floordiv 2) + column
///
/// the column is a digit of the address, though 16 * (id mod 2) + lane alone may be 31.
class SystemBuilder {
public:
  SystemBuilder(ArrayRef<MapVariable> variables, const Differences &differences)
      : variables(variables), differences(differences) {}

  /// Adds the variables of an access; side 0 comes first.
  void addSide(unsigned side, const llvm::SmallBitVector &used);
  /// Requires the conditions of both. Those that are not affine are left out.
  void addConditions(const MemoryAccess &first, const MemoryAccess &second);
  /// Requires `second - first` to be in `range`; after the conditions.
  void addDistance(AffineExpr first, AffineExpr second, Interval range);

  IntegerSystem system;
  bool isExact = true; ///< whether all that was added is in the system
  /// The distance of the addresses, if one was added.
  std::optional<LinearSum> distance;

private:
  /// Quotient and rest of a division, on both sides as far as they are known.
  struct Digits {
    std::optional<LinearSum> quotients[2], rests[2];
  };
  /// `factor` times a variable is `by`.
  struct Rewrite {
    LinearSum::Term pivot;
    LinearSum by;
  };

  Interval getRange(unsigned index) const;
  LinearSum addVariable(Interval range) { return LinearSum::ofVariable(system.addVariable(range)); }
  LinearSum addTo(LinearSum first, const LinearSum &difference, Interval range);
  LinearSum addNumber(const LinearSum &first, Interval range);
  std::optional<LinearSum> express(unsigned side, AffineExpr expr);
  const Digits *divide(unsigned side, AffineExpr number, int64_t divisor);
  void require(unsigned side, AffineExpr expr, Interval range);
  void addLimited(AffineExpr first, AffineExpr second);
  void equate(const LinearSum &sum, const LinearSum &digits);
  using Rewrites = std::vector<Rewrite>;
  static void addRewrite(Rewrites &rewrites, const LinearSum &sum, LinearSum digits);
  static std::optional<LinearSum> rewrite(LinearSum sum, const Rewrites &rewrites, size_t first);

  ArrayRef<MapVariable> variables;
  const Differences &differences;
  std::map<unsigned, LinearSum> values[2]; ///< of variables, on each side
  llvm::MapVector<std::pair<AffineExpr, int64_t>, Digits> divisions;
  Rewrites ofSide[2];    ///< of values
  Rewrites ofDifference; ///< of differences between second and first values
};
} // namespace

/// Returns how far apart the two values of a variable can be.
Interval SystemBuilder::getRange(unsigned index) const {
  const MapVariable &variable = variables[index];
  std::optional<int64_t> span = addBounds(variable.upper, scaleBound(variable.lower, -1));
  Interval range = {scaleBound(span, -1), span};
  auto known = differences.find(index);
  return known == differences.end() ? range : intersect(known->second, range);
}

void SystemBuilder::addSide(unsigned side, const llvm::SmallBitVector &used) {
  for (unsigned index : used.set_bits()) {
    const MapVariable &variable = variables[index];
    Interval range = {variable.lower, variable.upper};
    auto first = values[0].find(index);
    if (side == 0 || first == values[0].end()) {
      values[side][index] = addVariable(range);
      continue;
    }
    Interval difference = getRange(index);
    if (difference.lower == 0 && difference.upper == 0) {
      values[1][index] = first->second;
      continue;
    }
    bool isConstant = difference.lower && difference.lower == difference.upper;
    values[1][index] =
        addTo(first->second,
              isConstant ? LinearSum{{}, *difference.lower} : addVariable(difference), range);
  }
  for (auto &[index, value] : values[side])
    for (AffineExpr known : variables[index].nonNegative)
      require(side, known, {0, std::nullopt});
}

/// Returns `first` plus a difference, which is in `range`.
LinearSum SystemBuilder::addTo(LinearSum first, const LinearSum &difference, Interval range) {
  if (!first.add(difference, 1)) {
    isExact = false; // of their relation nothing is known
    return addVariable(range);
  }
  system.require(first, range);
  return first;
}

/// Returns a number in `range` that is `first` plus some difference.
LinearSum SystemBuilder::addNumber(const LinearSum &first, Interval range) {
  std::optional<int64_t> span = addBounds(range.upper, scaleBound(range.lower, -1));
  return addTo(first, addVariable({scaleBound(span, -1), span}), range);
}

/// States that two sums are equal.
void SystemBuilder::equate(const LinearSum &sum, const LinearSum &digits) {
  LinearSum difference = sum;
  if (difference.add(digits, -1))
    system.require(difference, {0, 0});
  else
    isExact = false;
}

/// Adds a rewrite for the finest term of `sum`, which equals `digits`.
void SystemBuilder::addRewrite(Rewrites &rewrites, const LinearSum &sum, LinearSum digits) {
  if (sum.isConstant())
    return;
  LinearSum::Term pivot = *llvm::min_element(
      sum.terms, [](auto a, auto b) { return std::abs(a.factor) < std::abs(b.factor); });
  // factor * variable = digits - the rest of the sum
  LinearSum rest = sum;
  llvm::erase(rest.terms, pivot);
  if (digits.add(rest, -1))
    rewrites.push_back({pivot, std::move(digits)});
}

/// Returns quotient and rest of a division. Errors: null where the number is not affine.
const SystemBuilder::Digits *SystemBuilder::divide(unsigned side, AffineExpr number,
                                                   int64_t divisor) {
  if (divisor < 1)
    return nullptr;
  if (auto known = divisions.find({number, divisor});
      known != divisions.end() && known->second.rests[side])
    return &known->second;
  std::optional<LinearSum> sum = express(side, number); // may divide, too
  if (!sum)
    return nullptr;
  Digits &digits = divisions[{number, divisor}];
  Interval range = getInterval(number, variables);
  auto divideBound = [&](std::optional<int64_t> bound) {
    return bound ? std::optional(llvm::divideFloorSigned(*bound, divisor)) : std::nullopt;
  };
  Interval quotients = {divideBound(range.lower), divideBound(range.upper)};
  if (quotients.lower && quotients.lower == quotients.upper) {
    LinearSum quotient{{}, *quotients.lower}, rest = *sum;
    if (!rest.add(quotient, -divisor))
      return nullptr;
    digits.quotients[side] = quotient;
    digits.rests[side] = rest;
    return &digits;
  }
  Interval rests = {0, divisor - 1};
  bool isPaired = side == 1 && digits.rests[0];
  LinearSum quotient =
      isPaired ? addNumber(*digits.quotients[0], quotients) : addVariable(quotients);
  LinearSum rest = isPaired ? addNumber(*digits.rests[0], rests) : addVariable(rests);
  digits.quotients[side] = quotient;
  digits.rests[side] = rest;
  LinearSum whole = rest;
  if (!whole.add(quotient, divisor))
    return nullptr;
  addRewrite(ofSide[side], *sum, whole);
  if (isPaired) {
    // With the equation of the first side, it is enough that the differences are equal.
    std::optional<LinearSum> first = express(0, number);
    if (!first || !sum->add(*first, -1) || !whole.add(*digits.rests[0], -1) ||
        !whole.add(*digits.quotients[0], -divisor))
      return nullptr;
    addRewrite(ofDifference, *sum, whole);
  }
  equate(*sum, whole);
  return &digits;
}

/// Returns the value of `expr` on a side. Errors: std::nullopt where it is not affine, or a number
/// is too large.
std::optional<LinearSum> SystemBuilder::express(unsigned side, AffineExpr expr) {
  if (auto constant = dyn_cast<AffineConstantExpr>(expr))
    return LinearSum{{}, constant.getValue()};
  if (auto dim = dyn_cast<AffineDimExpr>(expr))
    return values[side].at(dim.getPosition());
  auto binary = dyn_cast<AffineBinaryOpExpr>(expr);
  if (!binary)
    return std::nullopt;
  AffineExpr left = binary.getLHS(), right = binary.getRHS();
  if (expr.getKind() == AffineExprKind::Add) {
    std::optional<LinearSum> sum = express(side, left), more = express(side, right);
    return sum && more && sum->add(*more, 1) ? sum : std::nullopt;
  }
  auto constant = dyn_cast<AffineConstantExpr>(right);
  if (!constant)
    return std::nullopt;
  int64_t by = constant.getValue();
  if (expr.getKind() == AffineExprKind::Mul) {
    std::optional<LinearSum> sum = express(side, left);
    LinearSum product;
    return sum && product.add(*sum, by) ? std::optional(product) : std::nullopt;
  }
  if (expr.getKind() == AffineExprKind::CeilDiv)
    left = left + (by - 1);
  const Digits *digits = divide(side, left, by);
  if (!digits)
    return std::nullopt;
  return expr.getKind() == AffineExprKind::Mod ? digits->rests[side] : digits->quotients[side];
}

void SystemBuilder::require(unsigned side, AffineExpr expr, Interval range) {
  if (std::optional<LinearSum> sum = express(side, expr))
    system.require(*sum, range);
  else
    isExact = false;
}

/// Adds one variable for a sum that a condition of each side limits, and rewrites to it.
void SystemBuilder::addLimited(AffineExpr first, AffineExpr second) {
  std::optional<LinearSum> a = express(0, first), b = express(1, second);
  if (!a || !b || a->terms.size() < 2)
    return;
  // The conditions are limit - sum >= 0. No sum is negative if no condition can exceed its limit.
  std::optional<int64_t> mostOfFirst = getInterval(first, variables).upper,
                         mostOfSecond = getInterval(second, variables).upper;
  if (!mostOfFirst || *mostOfFirst > a->constant || !mostOfSecond || *mostOfSecond > b->constant)
    return;
  LinearSum sum, difference;
  if (!sum.add(*a, -1) || !difference.add(*b, -1) || !difference.add(sum, -1))
    return;
  // The sums must have the same terms, so that they differ by variables for differences only.
  auto isOfDifference = [&](LinearSum::Term term) {
    return llvm::any_of(difference.terms,
                        [&](LinearSum::Term other) { return other.variable == term.variable; });
  };
  if (llvm::any_of(sum.terms, isOfDifference))
    return;
  sum.constant = difference.constant = 0;
  LinearSum number = addVariable({0, a->constant});
  LinearSum more = addVariable({-a->constant, b->constant});
  equate(sum, number);
  equate(difference, more);
  addRewrite(ofDifference, difference, more);
  addRewrite(ofSide[0], sum, number);
  if (sum.add(difference, 1) && number.add(more, 1))
    addRewrite(ofSide[1], sum, number);
}

void SystemBuilder::addConditions(const MemoryAccess &first, const MemoryAccess &second) {
  for (auto [side, access] : llvm::enumerate(ArrayRef<const MemoryAccess *>{&first, &second})) {
    for (AffineExpr expr : access->nonNegative)
      require(side, expr, {0, std::nullopt});
    for (AffineExpr expr : access->zero)
      require(side, expr, {0, 0});
  }
  for (AffineExpr a : first.nonNegative)
    for (AffineExpr b : second.nonNegative)
      addLimited(a, b);
}

/// Returns `sum` after all rewrites that apply, the one at `first` before the others; nothing if
/// none applies.
std::optional<LinearSum> SystemBuilder::rewrite(LinearSum sum, const Rewrites &rewrites,
                                                size_t first) {
  bool changes = false;
  auto apply = [&](const Rewrite &rewrite) {
    auto term = llvm::find_if(
        sum.terms, [&](LinearSum::Term term) { return term.variable == rewrite.pivot.variable; });
    if (term == sum.terms.end() || term->factor % rewrite.pivot.factor != 0)
      return true;
    int64_t times = term->factor / rewrite.pivot.factor;
    sum.terms.erase(term);
    changes = true;
    return sum.add(rewrite.by, times);
  };
  if (first < rewrites.size() && !apply(rewrites[first]))
    return std::nullopt;
  for (const auto &[index, rewrite] : llvm::enumerate(rewrites))
    if (index != first && !apply(rewrite))
      return std::nullopt;
  return changes ? std::optional(sum) : std::nullopt;
}

void SystemBuilder::addDistance(AffineExpr first, AffineExpr second, Interval range) {
  std::optional<LinearSum> from = express(0, first), to = express(1, second);
  LinearSum sum;
  if (!from || !to || !sum.add(*to, 1) || !sum.add(*from, -1)) {
    isExact = false;
    return;
  }
  system.require(sum, range);
  // The order of two rewrites of one variable matters: each is tried first.
  for (size_t start = 0; start < ofDifference.size(); ++start)
    if (std::optional<LinearSum> digits = rewrite(sum, ofDifference, start))
      system.require(*digits, range);
  for (size_t start = 0; start < std::max(ofSide[0].size(), ofSide[1].size()); ++start) {
    std::optional<LinearSum> a = rewrite(*from, ofSide[0], start),
                             b = rewrite(*to, ofSide[1], start);
    LinearSum digits;
    if ((a || b) && digits.add(b.value_or(*to), 1) && digits.add(a.value_or(*from), -1))
      system.require(digits, range);
  }
  distance = std::move(sum);
}

/// The max number of steps of one search: a few milliseconds.
static constexpr int64_t maxSteps = 4000;

Meeting weir::mayMeet(const MemoryAccess &first, const MemoryAccess &second,
                      std::optional<int64_t> shift, const Differences &differences,
                      ArrayRef<MapVariable> variables, const KnownAnswers *answers) {
  using Answer = Meeting::Answer;
  bool byBytes = first.begin && second.begin;
  bool byIndices = !byBytes && !shift && first.view && first.view == second.view &&
                   first.indices.size() == second.indices.size() && first.calls == second.calls;

  SystemBuilder builder(variables, differences);
  llvm::SmallBitVector used[2] = {findVariables(first, variables),
                                  findVariables(second, variables)};
  // Differences of ids and trips count on both sides, whichever of them has the variable.
  llvm::SmallBitVector either = used[0];
  either |= used[1];
  for (const auto &[variable, difference] : differences)
    if ((difference.lower != 0 || difference.upper != 0) || either.test(variable))
      either.set(variable);
  for (llvm::SmallBitVector &side : used)
    for (const auto &[variable, difference] : differences)
      if (either.test(variable)) {
        side.set(variable);
        for (AffineExpr known : variables[variable].nonNegative)
          addVariables(known, variables, side);
      }
  builder.addSide(0, used[0]);
  builder.addSide(1, used[1]);
  builder.addConditions(first, second);
  builder.isExact &= byBytes || byIndices;
  Interval near = {1 - second.bytes, first.bytes - 1};
  if (byBytes) {
    builder.addDistance(first.begin, second.begin + shift.value_or(0), near);
  } else if (byIndices) {
    for (size_t i = 0; i < first.indices.size(); ++i) {
      bool isLast = i + 1 == first.indices.size();
      builder.addDistance(first.indices[i], second.indices[i],
                          {isLast ? 1 - second.elements : 0, isLast ? first.elements - 1 : 0});
    }
  }

  int64_t steps = maxSteps;
  auto decide = [&](Answer answer, Decision decision) {
    if (answers) {
      answers->count(decision, maxSteps - steps);
      if (decision == Decision::Digits || decision == Decision::Search ||
          decision == Decision::GivenUp)
        answers->add(builder.system.getKey(), KnownAnswers::Answer(answer));
    }
    return Meeting{answer, builder.isExact && builder.system.hasAllBounds()};
  };
  if (byBytes && builder.distance) {
    const LinearSum &distance = *builder.distance;
    if (distance.isConstant() &&
        (distance.constant < *near.lower || distance.constant > *near.upper))
      return decide(Answer::None, Decision::Identity);
    if (!builder.system.mayBeIn(distance, near))
      return decide(Answer::None, Decision::Intervals);
  }
  if (answers)
    if (auto known = answers->find(builder.system.getKey()))
      return decide(Answer(*known), Decision::Repeated);
  // Unlike a search, this knows that quotients of one number are digits of it.
  if (byBytes && std::abs(shift.value_or(0)) < int64_t(1) << 32 &&
      !mayDifferBy(first.begin, second.begin, *near.lower - shift.value_or(0),
                   *near.upper - shift.value_or(0), variables, differences))
    return decide(Answer::None, Decision::Digits);
  Answer found = builder.system.findPoint(steps);
  return decide(found, found == Answer::Unknown ? Decision::GivenUp : Decision::Search);
}

//===- KnownFunctions.cpp - Functions recognised by value -----------------===//

#include "passes/graph/KnownFunctions.h"

#include "dialects/Norm/Norm.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/Matchers.h"
#include "mlir/IR/TypeUtilities.h"
#include "llvm/ADT/TypeSwitch.h"

#include <cmath>
#include <numbers>

using namespace mlir;
using namespace weir;
using namespace weir::elements;

// More than any front end takes for one, and no deep recursion: JAX's GELU by polynomials takes
// 347.
static constexpr unsigned maxVisits = 1000;
// JAX's erfc has three.
static constexpr unsigned maxSeeds = 8;
// Max number of ops in the graph from the last seed to the end of a function.
static constexpr unsigned maxDistance = 16;

// The square root of 2 / pi, and torch-mlir's.
static constexpr double tanhFactors[] = {std::numbers::inv_sqrtpi * std::numbers::sqrt2, 0.797724};

static double gelu(double x) { return x / 2 * std::erfc(-x / std::numbers::sqrt2); }
template <int factor> static double geluByTanh(double x) {
  return x / 2 * (1 + std::tanh(tanhFactors[factor] * (x + 0.044715 * x * x * x)));
}
static double silu(double x) { return x / (1 + std::exp(-x)); }

static Value buildGelu(OpBuilder &builder, Location loc, Value x) {
  return norm::GeluOp::create(builder, loc, x.getType(), x, FloatAttr());
}
template <int factor> static Value buildGeluByTanh(OpBuilder &builder, Location loc, Value x) {
  return norm::GeluOp::create(builder, loc, x.getType(), x,
                              builder.getF64FloatAttr(tanhFactors[factor]));
}
static Value buildSilu(OpBuilder &builder, Location loc, Value x) {
  return norm::SiluOp::create(builder, loc, x.getType(), x);
}
template <typename Op> static Value buildMap(OpBuilder &builder, Location loc, Value x) {
  auto type = cast<RankedTensorType>(x.getType());
  Value empty = tensor::EmptyOp::create(builder, loc, type.getShape(), type.getElementType());
  return linalg::MapOp::create(builder, loc, x, empty,
                               [](OpBuilder &body, Location loc, ValueRange in) {
                                 linalg::YieldOp::create(body, loc,
                                                         ValueRange(Op::create(body, loc, in[0])));
                               })
      .getResult()[0];
}

namespace {
struct Known {
  double (*function)(double);
  Value (*build)(OpBuilder &, Location, Value x);
};
} // namespace

static constexpr Known knownFunctions[] = {{gelu, buildGelu},
                                           {geluByTanh<0>, buildGeluByTanh<0>},
                                           {geluByTanh<1>, buildGeluByTanh<1>},
                                           {silu, buildSilu},
                                           {std::erf, buildMap<math::ErfOp>},
                                           {std::erfc, buildMap<math::ErfcOp>},
                                           {std::asinh, buildMap<math::AsinhOp>}};

/// Returns the points at which functions are compared: densely on either side of 0, then
/// ever farther apart.
static SmallVector<double> makePoints() {
  SmallVector<double> points = {0.0};
  for (int step = 1; step <= 160; ++step)
    points.append({step * 0.0627, step * -0.0627});
  for (int exponent = -40; exponent <= 100; exponent += 4)
    points.append({std::ldexp(1.0, exponent), -std::ldexp(1.0, exponent)});
  return points;
}

/// Whether `op` leaves the polynomials.
static bool isSeed(Operation &op) {
  if (auto quotient = dyn_cast<arith::DivFOp>(op))
    return !matchPattern(quotient.getRhs(), m_Constant());
  return isa<math::ExpOp, math::Exp2Op, math::ExpM1Op, math::LogOp, math::Log1pOp, math::TanhOp,
             math::ErfOp, math::ErfcOp>(op);
}

llvm::DenseSet<Operation *> KnownFunction::findRoots(Block &block) {
  llvm::DenseMap<Operation *, unsigned> distances;
  llvm::DenseSet<Operation *> roots;
  for (Operation &op : block) {
    unsigned distance = maxDistance + 1;
    auto generic = dyn_cast<linalg::GenericOp>(op);
    if (generic && llvm::any_of(*generic.getBody(), isSeed))
      distance = 0;
    for (Value operand : op.getOperands())
      if (auto known = distances.find(operand.getDefiningOp()); known != distances.end())
        distance = std::min(distance, known->second + 1);
    if (distance > maxDistance)
      continue;
    distances[&op] = distance;
    roots.insert(&op);
  }
  return roots;
}

std::optional<double> KnownFunction::compute(Operation *op, ArrayRef<double> in) const {
  Type made = op->getResult(0).getType();
  if (!isWide(made) && !made.isInteger(1))
    return std::nullopt;
  using namespace arith;
  using namespace math;
  using Result = std::optional<double>;
  return llvm::TypeSwitch<Operation *, Result>(op)
      .Case([&](AddFOp) { return in[0] + in[1]; })
      .Case([&](SubFOp) { return in[0] - in[1]; })
      .Case([&](MulFOp) { return in[0] * in[1]; })
      .Case([&](DivFOp) { return in[0] / in[1]; })
      .Case([&](NegFOp) { return -in[0]; })
      .Case([&](FmaOp) { return in[0] * in[1] + in[2]; })
      .Case<ExtFOp, TruncFOp>([&](Operation *) { return in[0]; })
      .Case<MaximumFOp, MaxNumFOp>([&](Operation *) { return std::fmax(in[0], in[1]); })
      .Case<MinimumFOp, MinNumFOp>([&](Operation *) { return std::fmin(in[0], in[1]); })
      .Case([&](ClampFOp) { return std::fmin(std::fmax(in[0], in[1]), in[2]); })
      .Case([&](SelectOp) { return in[0] != 0 ? in[1] : in[2]; })
      .Case([&](CmpFOp compare) {
        return double(applyCmpPredicate(compare.getPredicate(), APFloat(in[0]), APFloat(in[1])));
      })
      .Case([&](AndIOp) { return in[0] * in[1]; })
      .Case([&](OrIOp) { return std::fmax(in[0], in[1]); })
      .Case([&](UIToFPOp cast) {
        return cast.getIn().getType().isInteger(1) ? Result(in[0]) : Result();
      })
      .Case([&](AbsFOp) { return std::fabs(in[0]); })
      .Case([&](CopySignOp) { return std::copysign(in[0], in[1]); })
      .Case([&](ExpOp) { return std::exp(in[0]); })
      .Case([&](Exp2Op) { return std::exp2(in[0]); })
      .Case([&](ExpM1Op) { return std::expm1(in[0]); })
      .Case([&](LogOp) { return std::log(in[0]); })
      .Case([&](Log1pOp) { return std::log1p(in[0]); })
      .Case([&](TanhOp) { return std::tanh(in[0]); })
      .Case([&](ErfOp) { return std::erf(in[0]); })
      .Case([&](ErfcOp) { return std::erfc(in[0]); })
      .Case([&](SqrtOp) { return std::sqrt(in[0]); })
      .Case<PowFOp, FPowIOp>([&](Operation *) { return std::pow(in[0], in[1]); })
      .Default(Result());
}

KnownFunction::KnownFunction(Value root)
    : Matcher(getElementTypeOrSelf(root)), root(cast<TypedValue<RankedTensorType>>(root)) {}

std::optional<unsigned> KnownFunction::addElement(Term term) {
  for (const auto &[known, node] : elements[term.value])
    if (llvm::equal(*known.coords, *term.coords, [](const Coord &a, const Coord &b) {
          return !a.computed.value && !b.computed.value && ArrayRef(a.digits) == ArrayRef(b.digits);
        }))
      return node;
  Node node;
  if (term.value.getType() == root.getType() && term.value != root && isAt(*term.coords, point))
    node.tensor = term.value;
  if (std::optional<double> constant = floatConstant(term)) {
    node.constant = *constant;
    node.isConstant = true;
  } else if (std::optional<Term> next = unfolder.step(term)) {
    if (std::optional<unsigned> inner = add(*next))
      node.operands.push_back(*inner);
  }
  nodes.push_back(node);
  elements[term.value].emplace_back(term, nodes.size() - 1);
  return nodes.size() - 1;
}

std::optional<unsigned> KnownFunction::addScalar(Term term) {
  Node node;
  Attribute attribute;
  if (matchPattern(term.value, m_Constant(&attribute))) {
    node.isConstant = true;
    if (auto number = dyn_cast<FloatAttr>(attribute))
      node.constant = *floatConstant(term);
    else if (auto integer = dyn_cast<IntegerAttr>(attribute))
      node.constant = integer.getType().isInteger(1) ? double(integer.getValue().getBoolValue())
                                                     : double(*integerConstant(term));
    else
      return std::nullopt;
  } else if (Operation *op = term.value.getDefiningOp(); op && term.scope) {
    if (isSeed(*op) && ++seeds > maxSeeds)
      return std::nullopt;
    node.op = op;
    for (unsigned index = 0; index < op->getNumOperands(); ++index) {
      std::optional<unsigned> operand = add(unfolder.getOperand(term, index));
      if (!operand)
        return std::nullopt;
      node.operands.push_back(*operand);
    }
  } else if (std::optional<Term> next = unfolder.step(term)) {
    return add(*next);
  } else {
    return std::nullopt;
  }
  nodes.push_back(node);
  return nodes.size() - 1;
}

std::optional<unsigned> KnownFunction::add(Term term) {
  if (++visits > maxVisits)
    return std::nullopt;
  if (term.isElement())
    return addElement(term);
  std::pair key(term.value, term.scope.get());
  if (auto known = scalars.find(key); known != scalars.end())
    return known->second.second;
  std::optional<unsigned> node = addScalar(term);
  if (node)
    scalars[key] = {term, *node};
  return node;
}

std::optional<SmallVector<unsigned>> KnownFunction::getPath(unsigned from) const {
  llvm::SmallBitVector needed(nodes.size());
  needed.set(nodes.size() - 1);
  SmallVector<unsigned> path;
  for (unsigned node = nodes.size() - 1; node > 0 || needed.test(0); --node) {
    if (needed.test(node) && node != from) {
      const Node &own = nodes[node];
      if (own.operands.empty() && !own.isConstant)
        return std::nullopt;
      for (unsigned operand : own.operands)
        needed.set(operand);
      path.push_back(node);
    }
    if (node == 0)
      break;
  }
  if (!needed.test(from))
    return std::nullopt;
  std::reverse(path.begin(), path.end());
  return path;
}

double KnownFunction::evaluate(ArrayRef<unsigned> path, unsigned from, double value) const {
  SmallVector<double> values(nodes.size());
  values[from] = value;
  for (unsigned number : path) {
    const Node &node = nodes[number];
    SmallVector<double, 3> in;
    for (unsigned operand : node.operands)
      in.push_back(values[operand]);
    if (!node.op)
      values[number] = node.isConstant ? node.constant : in.front();
    else if (std::optional<double> result = compute(node.op, in))
      values[number] = *result;
    else
      return NAN;
  }
  return values.back();
}

bool KnownFunction::matchFunction(unsigned from) {
  static const SmallVector<double> points = makePoints();
  std::optional<SmallVector<unsigned>> path = getPath(from);
  if (!path)
    return false;
  // A polynomial that rounds well is as far off as this; the tanh's GELU is 5e-4 away.
  double tolerance = type.isF64() ? 2e-15 : 6e-7;
  SmallVector<unsigned> left = llvm::to_vector(llvm::seq<unsigned>(std::size(knownFunctions)));
  for (double point : points) {
    double found = evaluate(*path, from, point);
    llvm::erase_if(left, [&](unsigned candidate) {
      double expected = knownFunctions[candidate].function(point);
      return !(std::fabs(found - expected) <= tolerance * std::fmax(1.0, std::fabs(expected)));
    });
    if (left.empty())
      return false;
  }
  function = left.front();
  return true;
}

bool KnownFunction::match() {
  // The last step of each is a product, a quotient, a choice or a limit.
  Term element = unfolder.makeElement(root), last = element;
  if (!isa_and_present<arith::MulFOp, arith::DivFOp, arith::SelectOp, arith::MinimumFOp,
                       arith::MaximumFOp>(unfolder.getOp(last)))
    return false;
  for (const Coord &coord : *element.coords)
    point.push_back(coord.variable);
  if (!add(element))
    return false;
  // Several copies of x may match: the first one has the lowest number.
  for (auto [number, node] : llvm::enumerate(nodes))
    if (node.tensor && matchFunction(number)) {
      x = node.tensor;
      return !isShared(x, root);
    }
  return false;
}

Value KnownFunction::build(OpBuilder &builder) {
  return knownFunctions[function].build(builder, root.getLoc(), x);
}

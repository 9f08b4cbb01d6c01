//===- GradientCheck.cpp - Gradients against central differences ----------===//

#include "driver/Reference/GradientCheck.h"

#include "driver/Reference/Reference.h"
#include "weir/Artifact/Error.h"
#include "weir/Artifact/Floats.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <functional>
#include <limits>
#include <random>

using namespace weir;

static bool haveSameTypes(const std::vector<TensorSpec> &a, const std::vector<TensorSpec> &b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [](const TensorSpec &left, const TensorSpec &right) {
                      return left.dtype == right.dtype && left.shape == right.shape;
                    });
}

static std::vector<double> getValues(const Tensor &tensor) {
  std::vector<double> values(tensor.data.size() / sizeof(double));
  if (!values.empty())
    std::memcpy(values.data(), tensor.data.data(), tensor.data.size());
  return values;
}

static void setValues(Tensor &tensor, const std::vector<double> &values) {
  if (!values.empty())
    std::memcpy(tensor.data.data(), values.data(), tensor.data.size());
}

static double getNorm(const std::vector<double> &values) {
  double sum = 0;
  for (double value : values)
    sum += value * value;
  return std::sqrt(sum);
}

/// Returns the indices of element `place` of `spec` as text: "2,0", or "scalar" for rank 0.
static std::string printIndex(const TensorSpec &spec, int64_t place) {
  std::string text;
  for (size_t i = spec.shape.size(); i-- > 0; place /= spec.shape[i])
    text = std::to_string(place % spec.shape[i]) + (text.empty() ? "" : ",") + text;
  return text.empty() ? "scalar" : text;
}

GradientCheck::GradientCheck(const std::string &graphText, const std::string &vjpText,
                             const std::string &entry)
    : forward(std::make_unique<Reference>(graphText, entry, ReferencePrecision::Float64)),
      vjp(std::make_unique<Reference>(vjpText, entry + ".vjp", ReferencePrecision::Float64)) {
  std::vector<TensorSpec> arguments = forward->getArguments(), results = forward->getResults();
  for (const TensorSpec &result : forward->getResults())
    if (isFloat(result.dtype))
      arguments.push_back(result);
  for (const TensorSpec &argument : forward->getArguments())
    if (isFloat(argument.dtype))
      results.push_back(argument);
  if (!haveSameTypes(arguments, vjp->getArguments()) || !haveSameTypes(results, vjp->getResults()))
    throw Error("function '" + entry + ".vjp' must take the arguments of '" + entry +
                "' and a cotangent for each of its float results, and give its results and a "
                "gradient for each float argument");
}

GradientCheck::~GradientCheck() = default;

const std::vector<TensorSpec> &GradientCheck::getArguments() const {
  return forward->getArguments();
}

namespace {
/// The value of the function at a point of a line, and the sum of its terms' magnitudes.
struct LineValue {
  double sum = 0, magnitude = 0;
};
using Line = std::function<LineValue(double)>; ///< by the distance from the point

/// A slope of a line and a bound of its rounding error.
struct Slope {
  double value = 0, rounding = 0;
};

/// One difference and the gradient that it is compared with.
struct Difference {
  double gradient = 0; ///< along the line
  Slope slope;
  bool isKink = false;

  /// Returns the distance of the slope from the gradient, infinite if one is not finite.
  double getDistance() const {
    double apart = std::abs(gradient - slope.value);
    return std::isfinite(apart) ? apart : std::numeric_limits<double>::infinity();
  }
};
} // namespace

static Slope getSlope(const Line &line, double from, double to) {
  LineValue first = line(from), last = line(to);
  double magnitude = std::max(first.magnitude, last.magnitude);
  return {(last.sum - first.sum) / (to - from),
          2 * magnitude * std::numeric_limits<double>::epsilon() / (to - from)};
}

/// The ratio of a refined step to the one before.
static constexpr double shrink = 1.0 / 8;
static constexpr int maxShrinks = 6;

/// Whether the rounding error of a slope is so far below the distance of `difference` that
/// it cannot make a wrong gradient agree.
static bool isPrecise(const Slope &slope, const Difference &difference) {
  return slope.rounding <= difference.getDistance() / 10;
}

/// Looks for a kink that explains why the distance of `difference`, taken with `step`, is
/// more than `allowed`.
static void explain(const Line &line, double step, double allowed, Difference &difference) {
  const Difference departs = difference;
  auto agrees = [&](const Slope &slope) {
    return std::abs(departs.gradient - slope.value) <= allowed + slope.rounding;
  };
  double smallest = step;
  for (int i = 0; i < maxShrinks; ++i) {
    double smaller = smallest * shrink;
    Slope slope = getSlope(line, -smaller, smaller);
    if (!isPrecise(slope, departs))
      break;
    smallest = smaller;
    if (agrees(slope)) {
      difference.slope = slope;
      difference.isKink = true;
      return;
    }
  }

  Slope left = getSlope(line, -smallest, 0), right = getSlope(line, 0, smallest);
  if (!isPrecise(left, departs) || !isPrecise(right, departs))
    return;
  // At a jump the slope grows as the step shrinks.
  double gap = std::abs(right.value - left.value);
  auto converges = [&](const Slope &slope, const Slope &longer) {
    return std::abs(slope.value - longer.value) <= allowed + gap / 10;
  };
  bool leftIs = converges(left, getSlope(line, -smallest / shrink, 0));
  bool rightIs = converges(right, getSlope(line, 0, smallest / shrink));
  bool between = leftIs && rightIs && gap > allowed + left.rounding + right.rounding &&
                 departs.gradient >= std::min(left.value, right.value) - allowed &&
                 departs.gradient <= std::max(left.value, right.value) + allowed;
  difference.isKink = between || (leftIs && agrees(left)) || (rightIs && agrees(right));
}

/// Returns the norm of the distances, without kinks, divided by `scale`. Sets `scale` to the
/// largest of the gradients' norm, the slopes' norm and a bound of the rounding errors.
static double getError(const std::vector<Difference> &differences, double rounding, double &scale) {
  std::vector<double> gradients, slopes, apart;
  for (const Difference &difference : differences) {
    if (!difference.isKink)
      apart.push_back(difference.getDistance());
    gradients.push_back(difference.gradient);
    slopes.push_back(difference.slope.value);
  }
  // Differences cannot resolve gradients below their rounding error.
  scale = std::max({getNorm(gradients), getNorm(slopes),
                    1e6 * rounding * std::sqrt(double(differences.size())),
                    std::numeric_limits<double>::min()});
  double error = getNorm(apart) / scale;
  return std::isfinite(error) ? error : std::numeric_limits<double>::infinity();
}

namespace {
/// A source of vectors of normal numbers.
class Normals {
public:
  explicit Normals(uint64_t seed) : random(seed) {}

  std::vector<double> make(size_t size) {
    std::vector<double> values(size);
    for (double &value : values)
      value = normal(random);
    return values;
  }

private:
  std::mt19937_64 random;
  std::normal_distribution<double> normal;
};

/// Compares the gradient of one argument with differences: one per element, or along random
/// directions if there are many elements.
class ArgumentCheck {
public:
  /// `evaluate` returns the function at the current value of `argument`, which the check
  /// moves and restores.
  ArgumentCheck(Tensor &argument, std::vector<double> gradient, std::function<LineValue()> evaluate)
      : argument(argument), gradient(std::move(gradient)), values(getValues(argument)),
        evaluate(std::move(evaluate)), each(values.size() <= maxElements) {}

  GradientRow run(Normals &normals, double tolerance);

private:
  static constexpr size_t maxElements = 256;
  static constexpr int64_t maxDirections = 16;

  Tensor &argument;
  std::vector<double> gradient, values;
  std::function<LineValue()> evaluate;
  bool each; ///< whether each element has a difference
  std::vector<std::vector<double>> directions;
  std::vector<Difference> differences;

  double chooseStep() const;
  Line getLine(size_t number);
  double takeDifferences(int64_t count, double step, Normals &normals);
  std::string printPlace(size_t number) const {
    return each ? printIndex(argument.spec, int64_t(number))
                : "direction " + std::to_string(number);
  }
  void findWorst(GradientRow &row) const;
};
} // namespace

/// Returns a power of two near 1e-5 of the values, so that adding it is exact.
double ArgumentCheck::chooseStep() const {
  double size = values.empty() ? 1 : getNorm(values) / std::sqrt(double(values.size()));
  return std::exp2(std::round(std::log2(1e-5 * (std::isfinite(size) && size > 0 ? size : 1))));
}

/// Returns the function along direction `number`.
Line ArgumentCheck::getLine(size_t number) {
  return [this, number](double distance) {
    std::vector<double> moved = values;
    for (size_t i = 0; i < values.size(); ++i)
      moved[i] += distance * directions[number][i];
    setValues(argument, moved);
    LineValue value = evaluate();
    setValues(argument, values);
    return value;
  };
}

/// Takes `count` differences. Returns their largest rounding error.
double ArgumentCheck::takeDifferences(int64_t count, double step, Normals &normals) {
  double rounding = 0;
  for (int64_t number = 0; number < count; ++number) {
    directions.push_back(each ? std::vector<double>(values.size(), 0.0)
                              : normals.make(values.size()));
    std::vector<double> &direction = directions.back();
    if (each)
      direction[size_t(number)] = 1;
    Difference difference;
    for (size_t i = 0; i < values.size(); ++i)
      difference.gradient += direction[i] == 0 ? 0 : gradient[i] * direction[i];
    difference.slope = getSlope(getLine(size_t(number)), -step, step);
    rounding = std::max(rounding, difference.slope.rounding);
    differences.push_back(difference);
  }
  return rounding;
}

/// Sets the kinks of `row` and the difference with the largest distance.
void ArgumentCheck::findWorst(GradientRow &row) const {
  double max = -1;
  for (size_t i = 0; i < differences.size(); ++i) {
    const Difference &difference = differences[i];
    if (difference.isKink && !row.kinks++)
      row.firstKink = printPlace(i);
    double distance = difference.isKink ? 0 : difference.getDistance();
    if (distance > max) {
      max = distance;
      row.gradient = difference.gradient;
      row.difference = difference.slope.value;
      row.worst = printPlace(i);
    }
  }
}

GradientRow ArgumentCheck::run(Normals &normals, double tolerance) {
  GradientRow row;
  row.argument = argument.spec.name;
  row.elements = int64_t(values.size());
  row.differences = each ? row.elements : maxDirections;
  row.step = chooseStep();
  double rounding = takeDifferences(row.differences, row.step, normals), scale = 0;
  row.error = getError(differences, rounding, scale);
  if (row.error > tolerance) {
    double allowed = tolerance * scale / std::sqrt(double(differences.size()));
    for (size_t i = 0; i < differences.size(); ++i)
      if (differences[i].getDistance() > allowed)
        explain(getLine(i), row.step, allowed, differences[i]);
    row.error = getError(differences, rounding, scale);
  }
  findWorst(row);
  return row;
}

std::vector<GradientRow> GradientCheck::run(std::vector<Tensor> arguments, uint64_t seed,
                                            double tolerance) const {
  // Widened once, so that steps are f64's.
  std::vector<Tensor> results = forward->run(arguments);
  for (size_t i = 0; i < arguments.size(); ++i) {
    const TensorSpec &spec = getArguments()[i];
    if (isFloat(spec.dtype) && arguments[i].spec.dtype != spec.dtype)
      arguments[i] = convertFloats(arguments[i], spec.dtype);
  }
  Normals normals(seed);
  std::vector<std::vector<double>> weights; // the cotangents
  std::vector<Tensor> all = arguments;
  for (const Tensor &result : results) {
    if (!isFloat(result.spec.dtype))
      continue;
    Tensor cotangent = result;
    weights.push_back(normals.make(getValues(result).size()));
    setValues(cotangent, weights.back());
    all.push_back(cotangent);
  }
  // The sum of the products of cotangents and results.
  auto evaluate = [&] {
    LineValue value;
    size_t number = 0;
    for (const Tensor &result : forward->run(arguments))
      if (isFloat(result.spec.dtype)) {
        std::vector<double> values = getValues(result);
        for (size_t i = 0; i < values.size(); ++i) {
          value.sum += weights[number][i] * values[i];
          value.magnitude += std::abs(weights[number][i] * values[i]);
        }
        ++number;
      }
    return value;
  };

  std::vector<Tensor> gradients = vjp->run(all);
  gradients.erase(gradients.begin(), gradients.begin() + results.size());
  std::vector<GradientRow> rows;
  size_t next = 0;
  for (Tensor &argument : arguments)
    if (isFloat(argument.spec.dtype))
      rows.push_back(
          ArgumentCheck(argument, getValues(gradients[next++]), evaluate).run(normals, tolerance));
  return rows;
}

//===- GradientCheck.cpp - Gradients against central differences ----------===//

#include "driver/Reference/GradientCheck.h"

#include "weir/Artifact/Error.h"
#include "weir/Artifact/Floats.h"
#include "driver/Reference/Reference.h"

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

/// The numbers of `spec`'s element `place`: "2,0"; "scalar" of rank 0.
static std::string printIndex(const TensorSpec &spec, int64_t place) {
  std::string text;
  for (size_t i = spec.shape.size(); i-- > 0; place /= spec.shape[i])
    text = std::to_string(place % spec.shape[i]) + (text.empty() ? "" : ",") + text;
  return text.empty() ? "scalar" : text;
}

GradientCheck::GradientCheck(const std::string &graphText, const std::string &vjpText,
                             const std::string &entry)
    : forward(std::make_unique<Reference>(graphText, entry, Precision::Float64)),
      vjp(std::make_unique<Reference>(vjpText, entry + ".vjp", Precision::Float64)) {
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
/// The function along a line: its value, and the sum of its terms' magnitudes.
struct LineValue {
  double sum = 0, magnitude = 0;
};
using Line = std::function<LineValue(double)>; ///< by the distance from the point

/// A slope of a line, and what rounding may have made of it.
struct Slope {
  double value = 0, rounding = 0;
};

/// One difference and the gradient that it is compared with.
struct Difference {
  double gradient = 0; ///< along the line
  Slope slope;
  bool isKink = false;

  /// Infinite where one of them is not finite.
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

/// Each step of a refinement is a part of the one before.
static constexpr double shrink = 1.0 / 8;
static constexpr int mostShrinks = 6;

/// Whether rounding of a slope is far below what `difference` departs by, so that it can't
/// make a wrong gradient agree.
static bool isPrecise(const Slope &slope, const Difference &difference) {
  return slope.rounding <= difference.getDistance() / 10;
}

/// Looks for a kink that explains why `difference`, taken with `step`, departs by more
/// than `allowed`.
static void explain(const Line &line, double step, double allowed, Difference &difference) {
  const Difference departs = difference;
  auto agrees = [&](const Slope &slope) {
    return std::abs(departs.gradient - slope.value) <= allowed + slope.rounding;
  };
  double smallest = step;
  for (int i = 0; i < mostShrinks; ++i) {
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

/// Returns the norm of what the differences depart by, kinks apart, over the larger of the
/// gradients' and the slopes' norms, or over what rounding may leave where that is larger.
/// `scale` becomes what it is over.
static double getError(const std::vector<Difference> &differences, double rounding, double &scale) {
  std::vector<double> gradients, slopes, apart;
  for (const Difference &difference : differences) {
    if (!difference.isKink)
      apart.push_back(difference.getDistance());
    gradients.push_back(difference.gradient);
    slopes.push_back(difference.slope.value);
  }
  // Differences can't tell gradients apart that are smaller than their rounding.
  scale = std::max({getNorm(gradients), getNorm(slopes),
                    1e6 * rounding * std::sqrt(double(differences.size())),
                    std::numeric_limits<double>::min()});
  double error = getNorm(apart) / scale;
  return std::isfinite(error) ? error : std::numeric_limits<double>::infinity();
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
  std::mt19937_64 random(seed);
  std::normal_distribution<double> normal;
  auto makeNormal = [&](size_t size) {
    std::vector<double> values(size);
    for (double &value : values)
      value = normal(random);
    return values;
  };

  std::vector<std::vector<double>> weights; // the cotangents
  std::vector<Tensor> all = arguments;
  for (const Tensor &result : results) {
    if (!isFloat(result.spec.dtype))
      continue;
    Tensor cotangent = result;
    weights.push_back(makeNormal(getValues(result).size()));
    setValues(cotangent, weights.back());
    all.push_back(cotangent);
  }
  /// The sum of cotangent times result.
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
  for (Tensor &argument : arguments) {
    if (!isFloat(argument.spec.dtype))
      continue;
    constexpr int64_t mostElements = 256, mostDirections = 16;
    std::vector<double> gradient = getValues(gradients[next++]), values = getValues(argument);
    GradientRow row;
    row.argument = argument.spec.name;
    row.elements = int64_t(values.size());
    bool each = row.elements <= mostElements;
    row.differences = each ? row.elements : mostDirections;
    // A power of two near 1e-5 of the values: what is added is what was meant.
    double size = values.empty() ? 1 : getNorm(values) / std::sqrt(double(values.size()));
    row.step =
        std::exp2(std::round(std::log2(1e-5 * (std::isfinite(size) && size > 0 ? size : 1))));

    std::vector<std::vector<double>> directions;
    std::vector<Difference> differences;
    auto getLine = [&](size_t number) -> Line {
      return [&, number](double distance) {
        std::vector<double> moved = values;
        for (size_t i = 0; i < values.size(); ++i)
          moved[i] += distance * directions[number][i];
        setValues(argument, moved);
        LineValue value = evaluate();
        setValues(argument, values);
        return value;
      };
    };
    double rounding = 0;
    for (int64_t number = 0; number < row.differences; ++number) {
      directions.push_back(each ? std::vector<double>(values.size(), 0.0)
                                : makeNormal(values.size()));
      std::vector<double> &direction = directions.back();
      if (each)
        direction[size_t(number)] = 1;
      Difference difference;
      for (size_t i = 0; i < values.size(); ++i)
        difference.gradient += direction[i] == 0 ? 0 : gradient[i] * direction[i];
      difference.slope = getSlope(getLine(size_t(number)), -row.step, row.step);
      rounding = std::max(rounding, difference.slope.rounding);
      differences.push_back(difference);
    }

    auto printPlace = [&](size_t number) {
      return each ? printIndex(argument.spec, int64_t(number))
                  : "direction " + std::to_string(number);
    };
    double scale = 0;
    row.error = getError(differences, rounding, scale);
    if (row.error > tolerance) {
      double allowed = tolerance * scale / std::sqrt(double(differences.size()));
      for (size_t i = 0; i < differences.size(); ++i)
        if (differences[i].getDistance() > allowed)
          explain(getLine(i), row.step, allowed, differences[i]);
      row.error = getError(differences, rounding, scale);
    }
    double most = -1;
    for (size_t i = 0; i < differences.size(); ++i) {
      const Difference &difference = differences[i];
      if (difference.isKink && !row.kinks++)
        row.firstKink = printPlace(i);
      double distance = difference.isKink ? 0 : difference.getDistance();
      if (distance > most) {
        most = distance;
        row.gradient = difference.gradient;
        row.difference = difference.slope.value;
        row.worst = printPlace(i);
      }
    }
    rows.push_back(row);
  }
  return rows;
}

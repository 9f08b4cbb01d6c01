//===- GradientCheck.cpp - Gradients against central differences ----------===//

#include "weir/Reference/GradientCheck.h"

#include "weir/Artifact/Error.h"
#include "weir/Artifact/Floats.h"
#include "weir/Reference/Reference.h"

#include <algorithm>
#include <cmath>
#include <cstring>
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

std::vector<GradientRow> GradientCheck::run(std::vector<Tensor> arguments, uint64_t seed) const {
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
  /// The sum of cotangent times result, and of the magnitudes.
  auto evaluate = [&](double &magnitude) {
    double sum = 0;
    size_t number = 0;
    magnitude = 0;
    for (const Tensor &result : forward->run(arguments))
      if (isFloat(result.spec.dtype)) {
        std::vector<double> values = getValues(result);
        for (size_t i = 0; i < values.size(); ++i) {
          sum += weights[number][i] * values[i];
          magnitude += std::abs(weights[number][i] * values[i]);
        }
        ++number;
      }
    return sum;
  };

  std::vector<Tensor> gradients = vjp->run(all);
  gradients.erase(gradients.begin(), gradients.begin() + results.size());
  std::vector<GradientRow> rows;
  size_t next = 0;
  for (Tensor &argument : arguments) {
    if (!isFloat(argument.spec.dtype))
      continue;
    constexpr int64_t mostElements = 256, directions = 16;
    std::vector<double> gradient = getValues(gradients[next++]), values = getValues(argument);
    GradientRow row;
    row.argument = argument.spec.name;
    row.elements = int64_t(values.size());
    bool each = row.elements <= mostElements;
    row.differences = each ? row.elements : directions;
    // A power of two near 1e-5 of the values: what is added is what was meant.
    double size = values.empty() ? 1 : getNorm(values) / std::sqrt(double(values.size()));
    row.step =
        std::exp2(std::round(std::log2(1e-5 * (std::isfinite(size) && size > 0 ? size : 1))));

    std::vector<double> found, expected;
    double rounding = 0;
    for (int64_t number = 0; number < row.differences; ++number) {
      std::vector<double> direction(values.size(), 0.0);
      if (each)
        direction[number] = 1;
      else
        direction = makeNormal(values.size());
      double ends[2], magnitude = 0, along = 0;
      for (int side : {0, 1}) {
        std::vector<double> moved = values;
        for (size_t i = 0; i < values.size(); ++i)
          moved[i] += (side ? row.step : -row.step) * direction[i];
        setValues(argument, moved);
        ends[side] = evaluate(magnitude);
      }
      setValues(argument, values);
      for (size_t i = 0; i < values.size(); ++i)
        along += direction[i] == 0 ? 0 : gradient[i] * direction[i];
      found.push_back(along);
      expected.push_back((ends[1] - ends[0]) / (2 * row.step));
      rounding = std::max(rounding, magnitude * std::numeric_limits<double>::epsilon() / row.step);
    }

    std::vector<double> apart;
    double most = -1;
    for (size_t i = 0; i < found.size(); ++i) {
      apart.push_back(found[i] - expected[i]);
      double distance =
          std::isfinite(apart[i]) ? std::abs(apart[i]) : std::numeric_limits<double>::infinity();
      if (distance > most) {
        most = distance;
        row.gradient = found[i];
        row.difference = expected[i];
        row.worst = each ? printIndex(argument.spec, int64_t(i)) : "direction " + std::to_string(i);
      }
    }
    // Differences can't tell gradients apart that are smaller than their rounding.
    double scale = std::max({getNorm(found), getNorm(expected),
                             1e6 * rounding * std::sqrt(double(found.size())),
                             std::numeric_limits<double>::min()});
    row.error = getNorm(apart) / scale;
    if (!std::isfinite(most) || !std::isfinite(row.error))
      row.error = std::numeric_limits<double>::infinity();
    rows.push_back(row);
  }
  return rows;
}

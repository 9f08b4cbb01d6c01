//===- Tensors.cpp - A run's inputs, and its results judged ---------------===//

#include "Tensors.h"

#include "Output.h"
#include "Verbs.h"
#include "weir/Artifact/Floats.h"

#include <cmath>
#include <cstdio>
#include <cstring>
#include <limits>

using namespace weir;
using namespace weir::tool;

std::string tool::describe(const TensorSpec &spec) {
  return spec.dtype + " " + printShape(spec.shape);
}

/// With digits enough to tell neighbours of the narrower type apart.
static std::string describeDifference(const Tensor &result, const Tensor &expected, size_t index) {
  int digits = std::min(getDigits(result.spec.dtype), getDigits(expected.spec.dtype));
  char text[96];
  std::snprintf(text, sizeof(text), "is %.*g, expected is %.*g", digits, getFloat(result, index),
                digits, getFloat(expected, index));
  return text;
}

template <typename Spec, typename Get>
static const Spec *findNamed(const std::vector<Spec> &items, const std::string &name, Get getName) {
  for (const Spec &item : items)
    if (getName(item) == name)
      return &item;
  return nullptr;
}

static std::string listNames(const std::vector<TensorSpec> &specs) {
  std::string names;
  for (const TensorSpec &spec : specs)
    names += (names.empty() ? "'" : ", '") + spec.name + "'";
  return names.empty() ? "none" : names;
}

//===----------------------------------------------------------------------===//
// Inputs
//===----------------------------------------------------------------------===//

static uint64_t mix(uint64_t &state) {
  uint64_t z = state += 0x9e3779b97f4a7c15;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
  z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
  return z ^ (z >> 31);
}

Tensor tool::makeRandom(const TensorSpec &spec, uint64_t seed) {
  Tensor tensor{spec, Bytes(getByteSize(spec))};
  uint64_t state = seed;
  for (unsigned char c : spec.name)
    state = mix(state) ^ c;
  int64_t width = getDTypeBytes(spec.dtype);
  bool integer = spec.dtype[0] == 'I' || spec.dtype[0] == 'U' || spec.dtype == "BOOL";
  if (!integer && !isFloat(spec.dtype))
    throw Error("'" + spec.name + "' is " + describe(spec) +
                ": there are no random values of this dtype; give it with --input");
  for (size_t at = 0; at < tensor.data.size(); at += width) {
    if (integer) {
      tensor.data[at] = mix(state) & 1; // little-endian
      continue;
    }
    double sum = 0;
    for (int i = 0; i < 4; ++i)
      sum += double(mix(state) >> 11) * 0x1p-53 - 0.5;
    setFloat(tensor, at / width, sum * std::sqrt(3.0));
  }
  return tensor;
}

std::vector<Tensor> tool::gatherInputs(const EntrySpec &entry,
                                       const std::vector<std::string> &paths,
                                       std::optional<uint64_t> seed, bool widen) {
  std::vector<std::string> problems;
  std::vector<std::optional<Tensor>> given(entry.arguments.size());
  for (const std::string &path : paths) {
    for (Tensor &tensor : readSafetensors(path)) {
      const TensorSpec *wanted = findNamed(entry.arguments, tensor.spec.name,
                                           [](const TensorSpec &spec) { return spec.name; });
      if (!wanted) {
        problems.push_back(path + ": entry '" + entry.name + "' has no argument '" +
                           tensor.spec.name + "'; it has " + listNames(entry.arguments));
        continue;
      }
      std::optional<Tensor> &place = given[wanted - entry.arguments.data()];
      bool fits = tensor.spec.dtype == wanted->dtype ||
                  (widen && isFloat(tensor.spec.dtype) && isFloat(wanted->dtype));
      if (tensor.spec.shape != wanted->shape || !fits)
        problems.push_back(path + ": '" + wanted->name + "' is " + describe(tensor.spec) +
                           ", entry '" + entry.name + "' takes " + describe(*wanted));
      else if (place)
        problems.push_back(path + ": '" + wanted->name + "' is given a second time");
      place = std::move(tensor);
    }
  }
  std::vector<Tensor> inputs;
  for (size_t i = 0; i < given.size(); ++i) {
    const TensorSpec &wanted = entry.arguments[i];
    if (given[i])
      inputs.push_back(std::move(*given[i]));
    else if (seed)
      inputs.push_back(makeRandom(wanted, *seed));
    else
      problems.push_back("argument '" + wanted.name + "' (" + describe(wanted) + ") of entry '" +
                         entry.name + "' is missing; give it with --input, or use --random-inputs");
  }
  if (!problems.empty())
    throw Problems(problems);
  return inputs;
}

//===----------------------------------------------------------------------===//
// Results
//===----------------------------------------------------------------------===//

std::vector<Tensor> tool::readExpected(const std::string &path, const std::string &entry,
                                       const std::vector<TensorSpec> &results) {
  std::vector<std::string> problems;
  std::vector<Tensor> file = readSafetensors(path), expected;
  auto getName = [](const auto &item) {
    if constexpr (requires { item.spec; })
      return item.spec.name;
    else
      return item.name;
  };
  for (const Tensor &tensor : file)
    if (!findNamed(results, tensor.spec.name, getName))
      problems.push_back(path + ": entry '" + entry + "' has no result '" + tensor.spec.name +
                         "'; it has " + listNames(results));
  for (const TensorSpec &result : results) {
    const Tensor *tensor = findNamed(file, result.name, getName);
    if (!tensor)
      problems.push_back(path + ": result '" + result.name + "' (" + describe(result) +
                         ") is not among the expected tensors");
    else if (tensor->spec.shape != result.shape ||
             (tensor->spec.dtype != result.dtype &&
              !(isFloat(tensor->spec.dtype) && isFloat(result.dtype))))
      problems.push_back(path + ": '" + result.name + "' is " + describe(tensor->spec) +
                         ", the result of entry '" + entry + "' is " + describe(result));
    else
      expected.push_back(*tensor);
  }
  if (!problems.empty())
    throw Problems(problems);
  return expected;
}

Comparison tool::compare(const Tensor &result, const Tensor &expected, double tolerance) {
  Comparison comparison;
  auto fail = [&](size_t index, const std::string &what) {
    if (comparison.passes)
      comparison.reason = "element " + std::to_string(index) + " " + what;
    comparison.passes = false;
  };
  if (!isFloat(result.spec.dtype)) {
    size_t width = getDTypeBytes(result.spec.dtype);
    for (size_t at = 0; at < result.data.size(); at += width)
      if (std::memcmp(result.data.data() + at, expected.data.data() + at, width)) {
        int64_t values[2] = {0, 0};
        std::memcpy(&values[0], result.data.data() + at, width);
        std::memcpy(&values[1], expected.data.data() + at, width);
        comparison.largestError =
            std::max(comparison.largestError, std::abs(double(values[0]) - double(values[1])));
        fail(at / width, "differs; integers must be equal");
      }
    return comparison;
  }

  size_t count = result.data.size() / getDTypeBytes(result.spec.dtype), worst = 0;
  double largest = 0, infinity = std::numeric_limits<double>::infinity();
  for (size_t i = 0; i < count; ++i)
    if (double value = getFloat(expected, i); std::isfinite(value))
      largest = std::max(largest, std::abs(value));
  for (size_t i = 0; i < count; ++i) {
    double found = getFloat(result, i), wanted = getFloat(expected, i);
    if (found == wanted || (std::isnan(found) && std::isnan(wanted)))
      continue;
    double error = std::abs(found - wanted);
    if (!std::isfinite(error)) {
      fail(i, describeDifference(result, expected, i));
      error = infinity;
    }
    if (error > comparison.largestError) {
      comparison.largestError = error;
      worst = i;
    }
  }
  comparison.relativeError =
      largest > 0 ? comparison.largestError / largest : comparison.largestError;
  if (comparison.largestError > tolerance * (largest > 0 ? largest : 1))
    fail(worst, describeDifference(result, expected, worst));
  return comparison;
}

//===- Tensors.cpp - A run's inputs, and its results judged ---------------===//

#include "Tensors.h"

#include "Invocation.h"
#include "Output.h"
#include "Verbs.h"
#include "weir/Artifact/Floats.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <limits>
#include <set>

using namespace weir;
using namespace weir::tool;

std::string tool::describe(const TensorSpec &spec) {
  return spec.dtype + " " + printShape(spec.shape);
}

/// Describes a difference, with enough digits to distinguish values of the narrower type.
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

static std::string getName(const TensorSpec &spec) { return spec.name; }

std::string tool::listNames(const std::vector<TensorSpec> &specs) {
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

namespace {
using Given = std::vector<std::pair<size_t, Tensor>>;
} // namespace

/// Returns the tensors of a file of `--input`, with their names.
static std::vector<Tensor> readTensors(const std::string &file, const EntrySpec &entry) {
  size_t equals = file.find('=');
  std::string name = file.substr(0, equals), suffix = ".npy";
  if (equals != file.npos &&
      (findNamed(entry.arguments, name, getName) || file.ends_with(suffix))) {
    Tensor tensor = readNpy(file.substr(equals + 1));
    tensor.spec.name = name;
    return {tensor};
  }
  if (file.ends_with(suffix))
    throw Error(file + ": an .npy file does not name its array; write --input=NAME=" + file +
                ", with one of " + listNames(entry.arguments));
  return readSafetensors(file);
}

/// Returns the arguments of a file, including those that do not fit. Adds a sentence to
/// `problems` for each of these and for each tensor that is not an argument.
static Given readArguments(const std::string &file, const EntrySpec &entry, bool widen,
                           std::vector<std::string> &problems) {
  Given given;
  for (Tensor &tensor : readTensors(file, entry)) {
    const TensorSpec *wanted = findNamed(entry.arguments, tensor.spec.name, getName);
    if (!wanted) {
      problems.push_back(file + ": entry '" + entry.name + "' has no argument '" +
                         tensor.spec.name + "'; it has " + listNames(entry.arguments));
      continue;
    }
    bool fits = tensor.spec.dtype == wanted->dtype ||
                (widen && isFloat(tensor.spec.dtype) && isFloat(wanted->dtype));
    if (tensor.spec.shape != wanted->shape || !fits)
      problems.push_back(file + ": '" + wanted->name + "' is " + describe(tensor.spec) +
                         ", entry '" + entry.name + "' takes " + describe(*wanted));
    given.emplace_back(wanted - entry.arguments.data(), std::move(tensor));
  }
  return given;
}

/// Parses `number`. Returns whether all of `text` is a number that `Number` can hold.
template <typename Number> static bool parse(const std::string &text, Number &number) {
  auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), number);
  return code == std::errc() && end == text.data() + text.size();
}

/// Returns a tensor of rank 0, or none if `text` is not a number of its type.
static std::optional<Tensor> parseScalar(const TensorSpec &spec, const std::string &text) {
  Tensor tensor{spec, Bytes(getByteSize(spec))};
  if (isFloat(spec.dtype)) {
    double value = 0;
    if (!parse(text, value))
      return std::nullopt;
    setFloat(tensor, 0, value);
    if (std::isfinite(value) && !std::isfinite(getFloat(tensor, 0)))
      return std::nullopt;
    return tensor;
  }
  if (spec.dtype == "BOOL") {
    tensor.data[0] = text == "true" || text == "1";
    return tensor.data[0] || text == "false" || text == "0" ? std::optional(tensor) : std::nullopt;
  }
  int bits = int(8 * tensor.data.size());
  uint64_t bytes = 0;
  if (spec.dtype[0] == 'U') {
    if (!parse(text, bytes) || (bits < 64 && bytes >> bits))
      return std::nullopt;
  } else {
    int64_t value = 0;
    if (!parse(text, value) || (bits < 64 && value >> (bits - 1) != 0 && value >> (bits - 1) != -1))
      return std::nullopt;
    bytes = uint64_t(value);
  }
  std::memcpy(tensor.data.data(), &bytes, tensor.data.size()); // little-endian
  return tensor;
}

/// Returns the argument that "NAME=NUMBER" sets; if there is none, adds a sentence to
/// `problems`.
static Given readSetting(const std::string &text, const EntrySpec &entry,
                         std::vector<std::string> &problems) {
  size_t equals = text.rfind('=');
  std::string option = "--set=" + text, name = text.substr(0, equals);
  const TensorSpec *wanted = findNamed(entry.arguments, name, getName);
  std::optional<Tensor> tensor;
  if (equals == text.npos)
    problems.push_back(option + ": write --set=NAME=NUMBER");
  else if (!wanted)
    problems.push_back(option + ": entry '" + entry.name + "' has no argument '" + name +
                       "'; it has " + listNames(entry.arguments));
  else if (!wanted->shape.empty())
    problems.push_back(option + ": argument '" + name + "' is " + describe(*wanted) +
                       ", not a scalar; give it with --input");
  else if (!(tensor = parseScalar(*wanted, text.substr(equals + 1))))
    problems.push_back(option + ": \"" + text.substr(equals + 1) + "\" is no " + wanted->dtype);
  Given given;
  if (tensor)
    given.emplace_back(wanted - entry.arguments.data(), std::move(*tensor));
  return given;
}

/// Returns a state's value before the first step, but for one that starts as another argument.
static Tensor makeStart(const TensorSpec &spec) {
  Tensor tensor{spec, Bytes(getByteSize(spec))};
  if (spec.startsAt != 0)
    for (size_t i = 0; i < tensor.data.size() / size_t(getDTypeBytes(spec.dtype)); ++i)
      setFloat(tensor, i, spec.startsAt);
  return tensor;
}

/// Copies the elements of `from`, of another float type, say.
static void copyFloats(const Tensor &from, Tensor &to) {
  for (size_t i = 0; i < to.data.size() / size_t(getDTypeBytes(to.spec.dtype)); ++i)
    setFloat(to, i, getFloat(from, i));
}

std::vector<Tensor> tool::gatherInputs(const EntrySpec &entry, const InputOptions &options) {
  std::vector<std::string> problems;
  std::vector<std::optional<Tensor>> given(entry.arguments.size());
  auto add = [&](const std::string &where, Given arguments) {
    for (auto &[index, tensor] : arguments) {
      if (given[index])
        problems.push_back(where + ": '" + entry.arguments[index].name +
                           "' is given a second time");
      given[index] = std::move(tensor);
    }
  };
  for (const std::string &file : options.files)
    add(file, readArguments(file, entry, options.widen, problems));
  for (const std::string &setting : options.settings)
    add("--set=" + setting, readSetting(setting, entry, problems));
  std::vector<Tensor> inputs;
  std::vector<bool> isGiven;
  for (size_t i = 0; i < given.size(); ++i) {
    const TensorSpec &wanted = entry.arguments[i];
    isGiven.push_back(given[i] || !options.startState);
    if (given[i])
      inputs.push_back(std::move(*given[i]));
    else if (options.startState && wanted.kind == "state")
      inputs.push_back(makeStart(wanted));
    else if (options.seed)
      inputs.push_back(makeRandom(wanted, *options.seed));
    else
      problems.push_back("argument '" + wanted.name + "' (" + describe(wanted) + ") of entry '" +
                         entry.name + "' is missing; give it with " +
                         (wanted.shape.empty() ? "--set=" + wanted.name + "=NUMBER or " : "") +
                         "--input, or use --random-inputs");
  }
  if (!problems.empty())
    throw Problems(problems);
  for (size_t i = 0; i < given.size(); ++i)
    if (const std::string &other = entry.arguments[i].startsAs; !isGiven[i] && !other.empty())
      copyFloats(inputs[findNamed(entry.arguments, other, getName) - entry.arguments.data()],
                 inputs[i]);
  return inputs;
}

Batches::Batches(const std::string &folder, const EntrySpec &entry, bool widen)
    : entry(entry), widen(widen) {
  std::error_code code;
  for (const auto &item : std::filesystem::directory_iterator(folder, code))
    if (item.path().extension() == ".safetensors")
      files.push_back(item.path().string());
  if (code)
    throw Error("--batches=" + folder + ": " + code.message());
  if (files.empty())
    throw Error("--batches=" + folder + ": the folder has no file that ends in .safetensors");
  std::sort(files.begin(), files.end());

  std::vector<std::string> problems;
  std::vector<int64_t> carried = getCarried(entry);
  std::set<size_t> first;
  for (const std::string &file : files) {
    std::set<size_t> here;
    for (auto &[index, tensor] : readArguments(file, entry, widen, problems)) {
      here.insert(index);
      if (std::find(carried.begin(), carried.end(), int64_t(index)) != carried.end())
        problems.push_back(file + ": '" + tensor.spec.name + "' of a step is a result of the one " +
                           "before; give its first value with --input");
    }
    if (file == files.front())
      first = here;
    for (size_t index : first)
      if (!here.count(index))
        problems.push_back(file + ": '" + entry.arguments[index].name + "' is missing, which " +
                           files.front() + " has");
    for (size_t index : here)
      if (!first.count(index))
        problems.push_back(file + ": has '" + entry.arguments[index].name + "', which " +
                           files.front() + " has not");
  }
  if (!problems.empty())
    throw Problems(problems);
}

std::vector<std::pair<size_t, Tensor>> Batches::read(size_t step) const {
  std::vector<std::string> problems;
  Given given = readArguments(files[step % files.size()], entry, widen, problems);
  if (!problems.empty())
    throw Problems(problems); // the file was replaced since the check
  return given;
}

//===----------------------------------------------------------------------===//
// Elements
//===----------------------------------------------------------------------===//

static std::string printInteger(const Tensor &tensor, size_t index) {
  size_t width = size_t(getDTypeBytes(tensor.spec.dtype));
  uint64_t bits = 0;
  std::memcpy(&bits, tensor.data.data() + index * width, width);
  if (tensor.spec.dtype[0] != 'I')
    return std::to_string(bits);
  int unused = 64 - int(8 * width);
  return std::to_string(int64_t(bits << unused) >> unused);
}

std::vector<std::string> tool::printElements(const Tensor &tensor) {
  std::vector<std::string> elements(tensor.data.size() / size_t(getDTypeBytes(tensor.spec.dtype)));
  for (size_t i = 0; i < elements.size(); ++i)
    if (isFloat(tensor.spec.dtype)) {
      char text[32];
      std::snprintf(text, sizeof(text), "%.*g", getDigits(tensor.spec.dtype), getFloat(tensor, i));
      elements[i] = text;
    } else {
      elements[i] = printInteger(tensor, i);
    }
  return elements;
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

Comparison tool::compareWithReference(const Tensor &result, const Tensor &written,
                                      const Tensor &wide, double tolerance) {
  Comparison comparison = compare(result, wide, tolerance);
  if (!comparison.passes && std::isfinite(comparison.largestError))
    comparison.passes =
        comparison.largestError <= 8 * compare(written, wide, tolerance).largestError;
  return comparison;
}

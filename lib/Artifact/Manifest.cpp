//===- Manifest.cpp - The manifest of an artifact -------------------------===//

#include "Parts.h"
#include "weir/Artifact/Error.h"
#include "weir/Artifact/Floats.h"
#include "weir/Artifact/StoredBytes.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <set>

using namespace weir;
using ordered_json = nlohmann::ordered_json;

//===----------------------------------------------------------------------===//
// Tensors
//===----------------------------------------------------------------------===//

int64_t weir::getDTypeBytes(const DType &dtype) {
  static const std::map<std::string, int64_t> sizes = {
      {"BOOL", 1}, {"U8", 1},  {"I8", 1},  {"F8_E4M3", 1}, {"F8_E5M2", 1},
      {"U16", 2},  {"I16", 2}, {"F16", 2}, {"BF16", 2},    {"U32", 4},
      {"I32", 4},  {"F32", 4}, {"U64", 8}, {"I64", 8},     {"F64", 8}};
  auto found = sizes.find(dtype);
  if (found == sizes.end())
    throw Error("\"" + dtype + "\" is not a supported element type of safetensors");
  return found->second;
}

int64_t weir::getByteSize(const TensorSpec &spec) {
  int64_t bytes = getDTypeBytes(spec.dtype);
  bool empty = false;
  for (int64_t size : spec.shape) {
    if (size < 0)
      throw Error("tensor \"" + spec.name + "\" has the negative size " + std::to_string(size));
    empty |= size == 0;
  }
  if (empty)
    return 0;
  for (int64_t size : spec.shape)
    if (__builtin_mul_overflow(bytes, size, &bytes))
      throw Error("the bytes of tensor \"" + spec.name + "\" exceed 64 bits");
  return bytes;
}

int64_t weir::getStoredBytes(int64_t bytes, int64_t elementBytes, const Profile &profile) {
  constexpr int64_t wordBytes = 4;
  bool isInWords =
      (elementBytes == 1 && !profile.storage8) || (elementBytes == 2 && !profile.storage16);
  return isInWords ? (bytes + wordBytes - 1) / wordBytes * wordBytes : bytes;
}

int64_t weir::getStoredBytes(const TensorSpec &spec, const Profile &profile) {
  return getStoredBytes(getByteSize(spec), getDTypeBytes(spec.dtype), profile);
}

static ordered_json toJson(const TensorSpec &spec) {
  return {{"name", spec.name}, {"dtype", spec.dtype}, {"shape", spec.shape}};
}

static TensorSpec readTensor(const JsonNode &node) {
  TensorSpec spec;
  spec.name = node["name"].name();
  spec.dtype = node["dtype"].name();
  spec.shape = node["shape"].list([](const JsonNode &size) { return size.bytes(); });
  try {
    if (getByteSize(spec) > maxBytes)
      throw Error("tensor \"" + spec.name + "\" has more than 2^56 bytes");
  } catch (const Error &error) {
    node.fail(std::string("is not a valid tensor: ") + error.what());
  }
  return spec;
}

/// Returns the shortest text that reads back as `number`.
static std::string printNumber(double number) {
  char text[32];
  auto [end, error] = std::to_chars(text, text + sizeof(text), number);
  return {text, end};
}

/// Returns a finite number from a text as `printNumber` writes it.
static double readNumber(const JsonNode &node) {
  std::string text = node.string();
  double number = 0;
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size() || !std::isfinite(number))
    node.fail("is \"" + text + "\", which is no finite number");
  return number;
}

/// Reads what a state holds before the first step.
static void readStart(const JsonNode &node, TensorSpec &spec) {
  if (node.has("starts_as"))
    spec.startsAs = node["starts_as"].name();
  if (node.has("starts_at"))
    spec.startsAt = readNumber(node["starts_at"]);
  bool starts = node.has("starts_as") || node.has("starts_at");
  if (node.has("starts_as") && node.has("starts_at"))
    node.fail("starts both as an argument and at a number");
  if (starts && (spec.kind != "state" || !isFloat(spec.dtype)))
    node.fail("says what it starts with, and is no state of floats");
}

/// Checks that each state starts with an argument of its shape that starts with none itself.
static void checkStarts(const JsonNode &node, const std::vector<TensorSpec> &arguments) {
  for (const TensorSpec &argument : arguments) {
    if (argument.startsAs.empty())
      continue;
    auto other = std::find_if(arguments.begin(), arguments.end(), [&](const TensorSpec &spec) {
      return spec.name == argument.startsAs;
    });
    if (other == arguments.end() || !other->startsAs.empty() || other->shape != argument.shape ||
        !isFloat(other->dtype))
      node.fail("has \"" + argument.name + "\", which starts as \"" + argument.startsAs +
                "\": no other argument of floats of its shape that itself starts as none");
  }
}

/// Reads where the buffer of an argument should lie.
static void readMemory(const JsonNode &node, TensorSpec &spec) {
  if (!node.has("memory"))
    return;
  node["memory"].choice({"device", "host"});
  spec.isInHost = node["memory"].string() == "host";
  if (spec.isInHost && (spec.kind != "state" || !spec.donate))
    node.fail("lies in host memory, and is no donated state");
}

static TensorSpec readArgument(const JsonNode &node) {
  node.object({"name", "dtype", "shape", "kind", "donate"}, {"starts_as", "starts_at", "memory"});
  TensorSpec spec = readTensor(node);
  node["kind"].choice({"", "input", "target", "param", "state"});
  spec.kind = node["kind"].string();
  spec.donate = node["donate"].boolean();
  readStart(node, spec);
  readMemory(node, spec);
  return spec;
}

static TensorSpec readResult(const JsonNode &node) {
  return readTensor(node.object({"name", "dtype", "shape"}));
}

static ConstantSpec readConstant(const JsonNode &node) {
  node.object({"name", "dtype", "shape", "offset"});
  ConstantSpec constant{readTensor(node), node["offset"].bytes()};
  if (constant.offset % 256)
    node["offset"].fail("is " + std::to_string(constant.offset) + ", it must be a multiple of 256");
  return constant;
}

/// Fails when two of `items` have the same name.
template <typename Items, typename GetName>
static void checkUnique(const JsonNode &node, const Items &items, GetName getName) {
  std::set<std::string> names;
  for (const auto &item : items)
    if (!names.insert(getName(item)).second)
      node.fail("holds two of the name \"" + getName(item) + "\"");
}

//===----------------------------------------------------------------------===//
// The manifest
//===----------------------------------------------------------------------===//

bool weir::isFileName(std::string_view name) {
  return !name.empty() && name.size() <= 200 && name.front() != '.' &&
         std::all_of(name.begin(), name.end(), [](char letter) {
           return (letter >= 'A' && letter <= 'Z') || (letter >= 'a' && letter <= 'z') ||
                  (letter >= '0' && letter <= '9') ||
                  std::string_view("_.$-").find(letter) != std::string_view::npos;
         });
}

std::string weir::readFileName(const JsonNode &node) {
  const std::string &text = node.name();
  if (!isFileName(text))
    node.fail("is \"" + text +
              "\", which cannot name a file in an artifact; rename it: at most 200 letters, "
              "digits, '_', '.', '$' and '-', no '.' in front");
  return text;
}

std::array<int64_t, 3> weir::readTriple(const JsonNode &node) {
  node.tuple(3);
  std::array<int64_t, 3> result;
  for (size_t i = 0; i < 3; ++i)
    result[i] = node.element(i).integer(1, std::numeric_limits<uint32_t>::max());
  return result;
}

void weir::readSchemaVersion(const JsonNode &node) {
  int64_t version = node["schema_version"].integer(1);
  if (version != schemaVersion)
    node["schema_version"].fail("is " + std::to_string(version) + ", this version of Weir reads " +
                                std::to_string(schemaVersion) + "; compile the graph again");
}

static EntrySpec readEntry(const JsonNode &node) {
  node.object({"name", "arguments", "results"});
  EntrySpec entry;
  entry.name = readFileName(node["name"]);
  entry.arguments = node["arguments"].list(readArgument);
  entry.results = node["results"].list(readResult);
  auto getName = [](const TensorSpec &spec) { return spec.name; };
  checkUnique(node["arguments"], entry.arguments, getName);
  checkStarts(node["arguments"], entry.arguments);
  checkUnique(node["results"], entry.results, getName);
  for (TensorSpec &result : entry.results)
    result.isInHost =
        std::any_of(entry.arguments.begin(), entry.arguments.end(), [&](const TensorSpec &spec) {
          return spec.isInHost && spec.name == result.name;
        });
  return entry;
}

static void checkConstants(const JsonNode &node, const std::vector<ConstantSpec> &constants) {
  checkUnique(node, constants, [](const ConstantSpec &constant) { return constant.tensor.name; });
  std::vector<std::pair<int64_t, int64_t>> ranges;
  for (const ConstantSpec &constant : constants)
    if (int64_t bytes = getByteSize(constant.tensor))
      ranges.emplace_back(constant.offset, constant.offset + bytes);
  std::sort(ranges.begin(), ranges.end());
  for (size_t i = 1; i < ranges.size(); ++i)
    if (ranges[i].first < ranges[i - 1].second)
      node.fail("overlap: bytes [" + std::to_string(ranges[i - 1].first) + ", " +
                std::to_string(ranges[i - 1].second) + ") and [" + std::to_string(ranges[i].first) +
                ", " + std::to_string(ranges[i].second) + ")");
}

Manifest weir::parseManifest(const std::string &json, const std::string &where) {
  Json tree = parseJson(json, where);
  JsonNode node(tree, where);
  // A newer version may have other keys: look at the version first.
  readSchemaVersion(node);
  node.object({"schema_version", "producer", "entries", "targets", "constants"});
  Manifest manifest;
  manifest.producer = node["producer"].string();
  manifest.entries = node["entries"].list(readEntry);
  manifest.targets = node["targets"].list(readProfile);
  manifest.constants = node["constants"].list(readConstant);
  checkUnique(node["entries"], manifest.entries, [](const EntrySpec &entry) { return entry.name; });
  checkUnique(node["targets"], manifest.targets,
              [](const Profile &profile) { return profile.target; });
  checkConstants(node["constants"], manifest.constants);
  return manifest;
}

std::string weir::printManifest(const Manifest &manifest) {
  ordered_json entries = ordered_json::array(), targets = ordered_json::array(),
               constants = ordered_json::array();
  for (const EntrySpec &entry : manifest.entries) {
    ordered_json arguments = ordered_json::array(), results = ordered_json::array();
    for (const TensorSpec &argument : entry.arguments) {
      arguments.push_back(::toJson(argument));
      arguments.back()["kind"] = argument.kind;
      arguments.back()["donate"] = argument.donate;
      if (!argument.startsAs.empty())
        arguments.back()["starts_as"] = argument.startsAs;
      if (argument.startsAt != 0)
        arguments.back()["starts_at"] = printNumber(argument.startsAt);
      if (argument.isInHost)
        arguments.back()["memory"] = "host";
    }
    for (const TensorSpec &result : entry.results)
      results.push_back(::toJson(result));
    entries.push_back({{"name", entry.name}, {"arguments", arguments}, {"results", results}});
  }
  for (const Profile &profile : manifest.targets)
    targets.push_back(toJson(profile));
  for (const ConstantSpec &constant : manifest.constants) {
    constants.push_back(::toJson(constant.tensor));
    constants.back()["offset"] = constant.offset;
  }
  return printJson({{"schema_version", schemaVersion},
                    {"producer", manifest.producer},
                    {"entries", entries},
                    {"targets", targets},
                    {"constants", constants}});
}

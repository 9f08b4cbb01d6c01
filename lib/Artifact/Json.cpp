//===- Json.cpp - Strict JSON for hostile input ---------------------------===//

#include "Json.h"

#include "weir/Artifact/Error.h"

#include <algorithm>

using namespace weir;
using ordered_json = nlohmann::ordered_json;

//===----------------------------------------------------------------------===//
// Parsing
//===----------------------------------------------------------------------===//

namespace {

/// Builds the tree. nlohmann's parser keeps its own stack, so depth is bounded
/// here alone. The parser owns the names of these functions.
class TreeBuilder : public nlohmann::json_sax<nlohmann::json> {
public:
  TreeBuilder(Json &root, const std::string &where) : root(root), where(where) {}

  bool null() override { fail("null has no meaning here; remove it"); }
  bool boolean(bool value) override { return add(value); }
  bool number_integer(int64_t value) override { return add(value); }
  bool number_unsigned(uint64_t value) override {
    if (value > uint64_t(std::numeric_limits<int64_t>::max()))
      fail("the number " + std::to_string(value) + " exceeds 64 bits with a sign");
    return add(int64_t(value));
  }
  bool number_float(double, const std::string &text) override {
    fail("the number " + text + " is not an integer of 64 bits");
  }
  bool string(std::string &text) override {
    checkText(text);
    return add(std::move(text));
  }
  bool binary(nlohmann::json::binary_t &) override { fail("binary values are not JSON"); }

  bool start_object(size_t) override { return open(Json::Object()); }
  bool key(std::string &text) override {
    checkText(text);
    std::get<Json::Object>(open_.back()->value).members.push_back({std::move(text), Json()});
    return true;
  }
  bool end_object() override {
    std::vector<std::string_view> keys;
    for (const auto &[name, value] : std::get<Json::Object>(open_.back()->value).members)
      keys.push_back(name);
    std::sort(keys.begin(), keys.end());
    auto twice = std::adjacent_find(keys.begin(), keys.end());
    if (twice != keys.end())
      fail("the key \"" + std::string(*twice) + "\" stands twice in one object");
    open_.pop_back();
    return true;
  }
  bool start_array(size_t) override { return open(Json::Array()); }
  bool end_array() override {
    open_.pop_back();
    return true;
  }

  bool parse_error(size_t position, const std::string &,
                   const nlohmann::detail::exception &error) override {
    // "[json.exception.parse_error.101] parse error at ...": drop the class.
    std::string text = error.what();
    if (size_t bracket = text.find("] "); text.starts_with("[") && bracket != text.npos)
      text = text.substr(bracket + 2);
    fail("malformed JSON near byte " + std::to_string(position) + ": " + text);
  }

private:
  static constexpr size_t maxDepth = 32;

  [[noreturn]] void fail(const std::string &complaint) const {
    throw Error(where + ": " + complaint);
  }
  void checkText(const std::string &text) const {
    if (text.find('\0') != text.npos)
      fail("a string contains the character NUL");
  }
  template <typename T> bool add(T value) {
    place().value = std::move(value);
    return true;
  }
  template <typename T> bool open(T value) {
    if (open_.size() == maxDepth)
      fail("values are nested more than " + std::to_string(maxDepth) + " levels deep");
    Json &here = place();
    here.value = std::move(value);
    open_.push_back(&here);
    return true;
  }
  /// Where the next value goes. A container grows only while nothing inside it
  /// is open, so the pointers of `open_` stay valid.
  Json &place() {
    if (open_.empty())
      return root;
    if (auto *array = std::get_if<Json::Array>(&open_.back()->value))
      return array->elements.emplace_back();
    return std::get<Json::Object>(open_.back()->value).members.back().value;
  }

  Json &root;
  const std::string &where;
  std::vector<Json *> open_;
};

} // namespace

Json weir::parseJson(std::string_view text, const std::string &where) {
  Json root;
  TreeBuilder builder(root, where);
  nlohmann::json::sax_parse(text.begin(), text.end(), &builder);
  return root;
}

//===----------------------------------------------------------------------===//
// Reading
//===----------------------------------------------------------------------===//

std::string JsonNode::path() const {
  if (!parent)
    return "";
  std::string prefix = parent->path();
  if (key.data() == nullptr)
    return prefix + "[" + std::to_string(index) + "]";
  return prefix.empty() ? std::string(key) : prefix + "." + std::string(key);
}

void JsonNode::fail(const std::string &complaint) const {
  std::string place = path();
  throw Error(where + ": " + (place.empty() ? "the file" : "\"" + place + "\"") + " " + complaint);
}

const Json::Object &JsonNode::members() const {
  if (auto *object = std::get_if<Json::Object>(&json.value))
    return *object;
  fail("must be an object");
}

const Json::Array &JsonNode::array() const {
  if (auto *array = std::get_if<Json::Array>(&json.value))
    return *array;
  fail("must be an array");
}

const JsonNode &JsonNode::object(std::initializer_list<std::string_view> keys,
                                 std::initializer_list<std::string_view> optional) const {
  for (const auto &[name, value] : members().members)
    if (std::find(keys.begin(), keys.end(), name) == keys.end() &&
        std::find(optional.begin(), optional.end(), name) == optional.end())
      fail("has the unknown key \"" + name + "\"");
  for (std::string_view required : keys)
    if (!has(required))
      fail("lacks the key \"" + std::string(required) + "\"");
  return *this;
}

bool JsonNode::has(std::string_view wanted) const {
  for (const auto &[name, value] : members().members)
    if (name == wanted)
      return true;
  return false;
}

JsonNode JsonNode::operator[](std::string_view wanted) const {
  for (const auto &[name, value] : members().members)
    if (name == wanted)
      return JsonNode(value, *this, name, 0);
  fail("lacks the key \"" + std::string(wanted) + "\"");
}

const JsonNode &JsonNode::tuple(size_t count) const {
  if (array().elements.size() != count)
    fail("must have " + std::to_string(count) + " elements, it has " +
         std::to_string(array().elements.size()));
  return *this;
}

JsonNode JsonNode::element(size_t position) const {
  return JsonNode(array().elements[position], *this, std::string_view(), position);
}

bool JsonNode::boolean() const {
  if (auto *flag = std::get_if<bool>(&json.value))
    return *flag;
  fail("must be true or false");
}

const std::string &JsonNode::string() const {
  if (auto *text = std::get_if<std::string>(&json.value))
    return *text;
  fail("must be a string");
}

const std::string &JsonNode::name() const {
  const std::string &text = string();
  if (text.empty())
    fail("must not be empty");
  for (unsigned char letter : text)
    if (letter < 0x20 || letter == 0x7f)
      fail("must not contain control characters");
  return text;
}

int64_t JsonNode::integer(int64_t min, int64_t max) const {
  auto *number = std::get_if<int64_t>(&json.value);
  if (!number)
    fail("must be an integer");
  if (*number < min)
    fail("is " + std::to_string(*number) + ", it must be at least " + std::to_string(min));
  if (*number > max)
    fail("is " + std::to_string(*number) + ", it must be at most " + std::to_string(max));
  return *number;
}

int64_t JsonNode::bytes() const { return integer(0, maxBytes); }

int64_t JsonNode::alignment() const {
  int64_t value = integer(1, maxBytes);
  if (value & (value - 1))
    fail("is " + std::to_string(value) + ", it must be a power of two");
  return value;
}

size_t JsonNode::choice(std::initializer_list<std::string_view> names) const {
  const std::string &text = string();
  std::string all;
  size_t position = 0;
  for (std::string_view candidate : names) {
    if (text == candidate)
      return position;
    all += (position++ ? ", \"" : "\"") + std::string(candidate) + "\"";
  }
  fail("is \"" + text + "\", it must be one of " + all);
}

//===----------------------------------------------------------------------===//
// Printing
//===----------------------------------------------------------------------===//

std::string weir::printJson(const ordered_json &object) {
  std::string text = "{";
  try {
    const char *separator = "\n";
    for (const auto &[key, value] : object.items()) {
      text += separator + ordered_json(key).dump() + ": ";
      separator = ",\n";
      if (!value.is_array() || value.empty() || !value.front().is_object()) {
        text += value.dump();
        continue;
      }
      const char *start = "[\n  ";
      for (const ordered_json &element : value) {
        text += start + element.dump();
        start = ",\n  ";
      }
      text += "\n]";
    }
  } catch (const ordered_json::exception &) {
    throw Error("a name or location holds bytes that are not UTF-8, so it cannot be written as "
                "JSON; rename it");
  }
  return text + "\n}\n";
}

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

/// Lines up the values. nlohmann's parser keeps its own stack, so depth is bounded
/// here alone. The parser owns the names of these functions.
class Builder : public nlohmann::json_sax<nlohmann::json> {
public:
  Builder(Json &json, const std::string &where, JsonReaders readers)
      : json(json), where(where), readers(readers) {}

  bool null() override { fail("null has no meaning here; remove it"); }
  bool boolean(bool value) override { return addWhole(Json::Kind::Boolean, value); }
  bool number_integer(int64_t value) override { return addWhole(Json::Kind::Integer, value); }
  bool number_unsigned(uint64_t value) override {
    if (value > uint64_t(std::numeric_limits<int64_t>::max()))
      fail("the number " + std::to_string(value) + " exceeds 64 bits with a sign");
    return addWhole(Json::Kind::Integer, int64_t(value));
  }
  bool number_float(double, const std::string &text) override {
    fail("the number " + text + " is not an integer of 64 bits");
  }
  bool string(std::string &text) override { return addText(text) && pass(); }
  bool binary(nlohmann::json::binary_t &) override { fail("binary values are not JSON"); }

  bool start_object(size_t) override { return open(Json::Kind::Object); }
  bool key(std::string &text) override {
    addText(text);
    --json.values[open_.back()].size; // it counts with its value
    return true;
  }
  bool end_object() override {
    uint32_t object = open_.back();
    keys.clear();
    for (uint32_t member = object + 1; member < json.values.size();
         member = json.getEnd(member + 1))
      keys.push_back(json.getText(json.values[member]));
    std::sort(keys.begin(), keys.end());
    auto twice = std::adjacent_find(keys.begin(), keys.end());
    if (twice != keys.end())
      fail("the key \"" + std::string(*twice) + "\" stands twice in one object");
    return close();
  }
  bool start_array(size_t) override {
    open(Json::Kind::Array);
    if (open_.size() != 2 || json.values[open_.front()].kind != Json::Kind::Object)
      return true;
    std::string_view key = json.getText(json.values[open_.back() - 1]);
    for (const auto &[name, read] : readers)
      if (name == key)
        reader = &read;
    taken = 0;
    textBefore = json.text.size();
    return true;
  }
  bool end_array() override { return close(); }

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
  bool addText(const std::string &text) {
    if (text.find('\0') != text.npos)
      fail("a string contains the character NUL");
    if (text.size() > std::numeric_limits<uint32_t>::max())
      fail("a string has more than 2^32 - 1 characters");
    add(Json::Kind::String, int64_t(json.text.size()));
    json.values.back().size = uint32_t(text.size());
    json.text += text;
    return true;
  }
  bool add(Json::Kind kind, int64_t payload) {
    if (json.values.size() == std::numeric_limits<uint32_t>::max())
      fail("there are more than 2^32 - 1 values");
    if (!open_.empty())
      ++json.values[open_.back()].size;
    json.values.push_back({payload, 0, kind});
    return true;
  }
  bool open(Json::Kind kind) {
    if (open_.size() == maxDepth)
      fail("values are nested more than " + std::to_string(maxDepth) + " levels deep");
    add(kind, 0);
    open_.push_back(uint32_t(json.values.size() - 1));
    return true;
  }
  bool close() {
    json.values[open_.back()].payload = int64_t(json.values.size());
    open_.pop_back();
    if (reader && open_.size() == 1)
      reader = nullptr; // the array itself ends
    return pass();
  }
  bool addWhole(Json::Kind kind, int64_t payload) { return add(kind, payload) && pass(); }

  /// Passes on the value that ends here, where it is an element that a reader takes.
  bool pass() {
    if (!reader || open_.size() != 2)
      return true;
    uint32_t array = open_.back();
    JsonNode root(json, where);
    JsonNode list(json, array, root, json.getText(json.values[array - 1]), 0);
    (*reader)(JsonNode(json, array + 1, list, std::string_view(), taken++));
    json.values.resize(array + 1);
    json.values[array].size = 0;
    json.text.resize(textBefore);
    return true;
  }

  Json &json;
  const std::string &where;
  JsonReaders readers;
  const std::function<void(const JsonNode &)> *reader = nullptr; ///< of the array that is open
  size_t taken = 0;                                              ///< its elements so far
  size_t textBefore = 0; ///< in `json.text`, before they came
  std::vector<uint32_t> open_;
  std::vector<std::string_view> keys; ///< of the object that ends
};

} // namespace

Json weir::parseJson(std::string_view text, const std::string &where, JsonReaders readers) {
  Json json;
  Builder builder(json, where, readers);
  nlohmann::json::sax_parse(text.begin(), text.end(), &builder);
  return json;
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

const JsonNode &JsonNode::object(std::initializer_list<std::string_view> keys,
                                 std::initializer_list<std::string_view> optional) const {
  size_t found = 0;
  forEachMember([&](std::string_view name, const JsonNode &) {
    if (std::find(keys.begin(), keys.end(), name) != keys.end())
      ++found; // once: no key stands twice
    else if (std::find(optional.begin(), optional.end(), name) == optional.end())
      fail("has the unknown key \"" + std::string(name) + "\"");
  });
  if (found == keys.size())
    return *this;
  for (std::string_view required : keys)
    if (!has(required))
      fail("lacks the key \"" + std::string(required) + "\"");
  return *this;
}

std::optional<uint32_t> JsonNode::find(std::string_view wanted) const {
  uint32_t member = at + 1;
  for (uint32_t left = get(Json::Kind::Object, "an object").size; left > 0; --left) {
    if (json.getText(json.values[member]) == wanted)
      return member;
    member = json.getEnd(member + 1);
  }
  return std::nullopt;
}

bool JsonNode::has(std::string_view wanted) const { return find(wanted).has_value(); }

JsonNode JsonNode::operator[](std::string_view wanted) const {
  std::optional<uint32_t> member = find(wanted);
  if (!member)
    fail("lacks the key \"" + std::string(wanted) + "\"");
  return JsonNode(json, *member + 1, *this, json.getText(json.values[*member]), 0);
}

const JsonNode &JsonNode::tuple(size_t count) const {
  if (size() != count)
    fail("must have " + std::to_string(count) + " elements, it has " + std::to_string(size()));
  return *this;
}

JsonNode JsonNode::element(size_t position) const {
  uint32_t element = at + 1;
  for (size_t i = 0; i < position; ++i)
    element = json.getEnd(element);
  return JsonNode(json, element, *this, std::string_view(), position);
}

bool JsonNode::boolean() const { return get(Json::Kind::Boolean, "true or false").payload; }

std::string JsonNode::string() const {
  return std::string(json.getText(get(Json::Kind::String, "a string")));
}

std::string JsonNode::name() const {
  std::string text = string();
  if (text.empty())
    fail("must not be empty");
  for (unsigned char letter : text)
    if (letter < 0x20 || letter == 0x7f)
      fail("must not contain control characters");
  return text;
}

int64_t JsonNode::integer(int64_t min, int64_t max) const {
  int64_t number = get(Json::Kind::Integer, "an integer").payload;
  if (number < min)
    fail("is " + std::to_string(number) + ", it must be at least " + std::to_string(min));
  if (number > max)
    fail("is " + std::to_string(number) + ", it must be at most " + std::to_string(max));
  return number;
}

int64_t JsonNode::bytes() const { return integer(0, maxBytes); }

int64_t JsonNode::alignment() const {
  int64_t value = integer(1, maxBytes);
  if (value & (value - 1))
    fail("is " + std::to_string(value) + ", it must be a power of two");
  return value;
}

size_t JsonNode::choice(std::initializer_list<std::string_view> names) const {
  std::string_view text = json.getText(get(Json::Kind::String, "a string"));
  std::string all;
  size_t position = 0;
  for (std::string_view candidate : names) {
    if (text == candidate)
      return position;
    all += (position++ ? ", \"" : "\"") + std::string(candidate) + "\"";
  }
  fail("is \"" + std::string(text) + "\", it must be one of " + all);
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
      if (!value.is_array() || value.empty() || !value.front().is_structured()) {
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

//===- Json.cpp - Strict JSON for hostile input ---------------------------===//

#include "Json.h"

#include "simdjson.h"
#include "weir/Artifact/Error.h"

#include <algorithm>

using namespace weir;
using ordered_json = nlohmann::ordered_json;

//===----------------------------------------------------------------------===//
// Parsing
//===----------------------------------------------------------------------===//

namespace {

constexpr size_t maxDepth = 32;
const std::string tooDeep =
    "values are nested more than " + std::to_string(maxDepth) + " levels deep";

/// Receives nlohmann's message about the first syntax error.
class Mistake : public nlohmann::json_sax<nlohmann::json> {
public:
  std::string complaint;

  bool null() override { return true; }
  bool boolean(bool) override { return true; }
  bool number_integer(int64_t) override { return true; }
  bool number_unsigned(uint64_t) override { return true; }
  bool number_float(double, const std::string &text) override {
    complaint = "the number " + text + " is not an integer of 64 bits";
    return false;
  }
  bool string(std::string &) override { return true; }
  bool binary(nlohmann::json::binary_t &) override { return true; }
  bool start_object(size_t) override { return open(); }
  bool key(std::string &) override { return true; }
  bool end_object() override { return close(); }
  bool start_array(size_t) override { return open(); }
  bool end_array() override { return close(); }
  bool parse_error(size_t position, const std::string &,
                   const nlohmann::detail::exception &error) override {
    // "[json.exception.parse_error.101] parse error at ...": drop the class.
    std::string text = error.what();
    if (size_t bracket = text.find("] "); text.starts_with("[") && bracket != text.npos)
      text = text.substr(bracket + 2);
    // It quotes bytes that may be no text.
    std::replace_if(text.begin(), text.end(), [](char c) { return c < ' ' || c > '~'; }, '?');
    complaint = "malformed JSON near byte " + std::to_string(position) + ": " + text;
    return false;
  }

private:
  size_t depth = 0;

  bool open() {
    if (++depth > maxDepth)
      complaint = tooDeep;
    return complaint.empty();
  }
  bool close() {
    --depth;
    return true;
  }
};

/// Builds the list of values from simdjson's output.
class Builder {
public:
  Builder(std::string_view text, Json &json, const std::string &where, JsonReaders readers)
      : text(text), json(json), where(where), readers(readers) {}

  void run() {
    simdjson::dom::parser parser;
    simdjson::dom::element root;
    simdjson::error_code error = parser.parse(text.data(), text.size()).get(root);
    if (error)
      failAt(error);
    add(root);
  }

private:
  [[noreturn]] void fail(const std::string &complaint) const {
    throw Error(where + ": " + complaint);
  }
  /// Reports a syntax error. simdjson is fast but vague, so nlohmann's parser finds the place.
  [[noreturn]] void failAt(simdjson::error_code error) const {
    Mistake mistake;
    nlohmann::json::sax_parse(text.begin(), text.end(), &mistake);
    fail(!mistake.complaint.empty()
             ? mistake.complaint
             : "malformed JSON: " + std::string(simdjson::error_message(error)));
  }

  void add(simdjson::dom::element value) {
    using Type = simdjson::dom::element_type;
    switch (value.type()) {
    case Type::OBJECT:
      return addObject(value.get_object().value_unsafe());
    case Type::ARRAY:
      return addArray(value.get_array().value_unsafe());
    case Type::STRING:
      return addText(value.get_string().value_unsafe());
    case Type::INT64:
      return add(Json::Kind::Integer, value.get_int64().value_unsafe());
    case Type::UINT64: // only those beyond 63 bits
      fail("the number " + std::to_string(value.get_uint64().value_unsafe()) +
           " exceeds 64 bits with a sign");
    case Type::DOUBLE:
      failAt(simdjson::NUMBER_ERROR);
    case Type::BOOL:
      return add(Json::Kind::Boolean, value.get_bool().value_unsafe());
    case Type::NULL_VALUE:
      fail("null has no meaning here; remove it");
    }
  }

  void addObject(simdjson::dom::object object) {
    uint32_t at = open(Json::Kind::Object);
    for (auto [key, value] : object) {
      addText(key);
      --json.values[at].size; // it counts with its value
      add(value);
    }
    keys.clear();
    for (uint32_t member = at + 1; member < json.values.size(); member = json.getEnd(member + 1))
      keys.push_back(json.getText(json.values[member]));
    std::sort(keys.begin(), keys.end());
    auto twice = std::adjacent_find(keys.begin(), keys.end());
    if (twice != keys.end())
      fail("the key \"" + std::string(*twice) + "\" is repeated in one object");
    close(at);
  }

  void addArray(simdjson::dom::array array) {
    uint32_t at = open(Json::Kind::Array);
    const std::function<void(const JsonNode &)> *reader = getReader(at);
    size_t taken = 0, textBefore = json.text.size();
    for (simdjson::dom::element element : array) {
      add(element);
      if (!reader)
        continue;
      JsonNode root(json, where);
      JsonNode list(json, at, root, json.getText(json.values[at - 1]), 0);
      (*reader)(JsonNode(json, at + 1, list, std::string_view(), taken++));
      json.values.resize(at + 1);
      json.values[at].size = 0;
      json.text.resize(textBefore);
    }
    close(at);
  }

  /// Returns the reader of the array that was just opened, or null.
  const std::function<void(const JsonNode &)> *getReader(uint32_t array) const {
    if (depth == 2 && json.values.front().kind == Json::Kind::Object)
      for (const auto &[name, read] : readers)
        if (name == json.getText(json.values[array - 1]))
          return &read;
    return nullptr;
  }

  void addText(std::string_view string) {
    if (string.find('\0') != string.npos)
      fail("a string contains the character NUL");
    if (string.size() > std::numeric_limits<uint32_t>::max())
      fail("a string has more than 2^32 - 1 characters");
    add(Json::Kind::String, int64_t(json.text.size()));
    json.values.back().size = uint32_t(string.size());
    json.text += string;
  }
  void add(Json::Kind kind, int64_t payload) {
    if (json.values.size() == std::numeric_limits<uint32_t>::max())
      fail("there are more than 2^32 - 1 values");
    if (depth > 0)
      ++json.values[parent].size;
    json.values.push_back({payload, 0, kind});
  }

  /// Opens a container. Until it is closed, its payload is its parent container.
  uint32_t open(Json::Kind kind) {
    if (depth == maxDepth)
      fail(tooDeep);
    add(kind, parent);
    ++depth;
    return parent = uint32_t(json.values.size() - 1);
  }
  void close(uint32_t at) {
    parent = uint32_t(json.values[at].payload);
    json.values[at].payload = int64_t(json.values.size());
    --depth;
  }

  std::string_view text;
  Json &json;
  const std::string &where;
  JsonReaders readers;
  uint32_t parent = 0;                ///< the innermost open container
  size_t depth = 0;                   ///< nesting depth; 0: none is open
  std::vector<std::string_view> keys; ///< keys of the object being closed
};

} // namespace

Json weir::parseJson(std::string_view text, const std::string &where, JsonReaders readers) {
  Json json;
  Builder(text, json, where, readers).run();
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

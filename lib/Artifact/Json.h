//===- Json.h - Strict JSON for hostile input -------------------*- C++ -*-===//
//
// The formats of this room use a part of JSON: objects without duplicate keys,
// arrays, strings, booleans and 64-bit integers, nested a few levels deep. What
// a reader asks for and what a text holds must agree key by key.
//
//===----------------------------------------------------------------------===//

#ifndef WEIR_LIB_ARTIFACT_JSON_H
#define WEIR_LIB_ARTIFACT_JSON_H

#include "nlohmann/json.hpp"

#include <cstdint>
#include <functional>
#include <initializer_list>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace weir {

/// A parsed text: its values one after the other, a container before what it holds.
/// A plan has millions of them, so none has memory of its own.
struct Json {
  enum class Kind : uint8_t { Null, Boolean, Integer, String, Array, Object };
  struct Value {
    /// The number, 0 or 1, where in `text` the string begins, or the first value
    /// behind a container and all that it holds.
    int64_t payload = 0;
    uint32_t size = 0; ///< characters, elements, or members
    Kind kind = Kind::Null;
  };
  /// An object holds keys, unique strings, and values in turn.
  std::vector<Value> values;
  std::string text; ///< of all strings

  /// The first value behind this one and all that it holds.
  uint32_t getEnd(uint32_t at) const {
    bool isContainer = values[at].kind == Kind::Array || values[at].kind == Kind::Object;
    return isContainer ? uint32_t(values[at].payload) : at + 1;
  }
  std::string_view getText(const Value &value) const {
    return std::string_view(text).substr(size_t(value.payload), value.size);
  }
};

/// A place in a parsed text: what readers walk. Every wrong answer is an
/// `Error` that names the text and the path, "plan.json: commands[3].grid...".
/// A node refers to its parent node; keep it no longer than that.
class JsonNode {
public:
  JsonNode(const Json &json, const std::string &where) : json(json), where(where) {}
  /// The same place, as the root of a text that errors call `where`.
  JsonNode(const JsonNode &node, const std::string &where)
      : json(node.json), where(where), at(node.at) {}
  /// Value `at`, which `parent` has under `key`, or as element `index`: then there is
  /// no key.
  JsonNode(const Json &json, uint32_t at, const JsonNode &parent, std::string_view key,
           size_t index)
      : json(json), where(parent.where), at(at), parent(&parent), key(key), index(index) {}

  /// Checks that this is an object with all of `keys`, any of `optional`, and
  /// no others.
  const JsonNode &object(std::initializer_list<std::string_view> keys,
                         std::initializer_list<std::string_view> optional = {}) const;
  bool has(std::string_view key) const;
  JsonNode operator[](std::string_view key) const;

  /// Calls `visit(std::string_view, const JsonNode &)` for each member of an object.
  template <typename Visit> void forEachMember(Visit visit) const {
    uint32_t member = at + 1;
    for (uint32_t left = get(Json::Kind::Object, "an object").size; left > 0; --left) {
      std::string_view name = json.getText(json.values[member]);
      visit(name, JsonNode(json, member + 1, *this, name, 0));
      member = json.getEnd(member + 1);
    }
  }
  /// Reads each element of an array with `read(const JsonNode &)`.
  template <typename Read> auto list(Read read) const {
    std::vector<decltype(read(*this))> result;
    result.reserve(size());
    uint32_t element = at + 1;
    for (size_t i = 0, count = size(); i < count; ++i) {
      result.push_back(read(JsonNode(json, element, *this, std::string_view(), i)));
      element = json.getEnd(element);
    }
    return result;
  }
  /// Checks that this is an array of `count` elements.
  const JsonNode &tuple(size_t count) const;
  /// Elements of an array.
  size_t size() const { return get(Json::Kind::Array, "an array").size; }
  /// One of them. Cost: linear in `index`.
  JsonNode element(size_t index) const;

  bool boolean() const;
  std::string string() const;
  /// A string that is not empty and has no control characters.
  std::string name() const;
  int64_t integer(int64_t min, int64_t max = std::numeric_limits<int64_t>::max()) const;
  /// A size or offset in bytes. Sums of a few of them do not overflow.
  int64_t bytes() const;
  /// A power of two.
  int64_t alignment() const;
  /// One of `names`, as its index.
  size_t choice(std::initializer_list<std::string_view> names) const;

  [[noreturn]] void fail(const std::string &complaint) const;

private:
  /// The value, which must be of this kind, "an object".
  const Json::Value &get(Json::Kind kind, const char *what) const {
    const Json::Value &value = json.values[at];
    if (value.kind != kind)
      fail(std::string("must be ") + what);
    return value;
  }
  std::optional<uint32_t> find(std::string_view key) const;
  std::string path() const;

  const Json &json;
  const std::string &where;
  uint32_t at = 0;
  const JsonNode *parent = nullptr;
  std::string_view key; ///< in an object; empty in an array
  size_t index = 0;
};

/// What takes the elements of an array as they come, by the key that the text's
/// object has it under.
using JsonReaders =
    std::initializer_list<std::pair<std::string_view, std::function<void(const JsonNode &)>>>;

/// Parses `text`, UTF-8. Arrays that `readers` has are empty in the result: a plan's
/// are most of it, and each element is needed once.
/// Errors: `Error` naming `where` on a syntax error, a duplicate key, more than
///         32 levels, NUL in a string, null, numbers that are no integers of 64
///         bits, and 2^32 values or more; those of the readers.
Json parseJson(std::string_view text, const std::string &where, JsonReaders readers = {});

/// Prints an object: one key a line, and one element a line of the arrays that
/// hold objects or arrays. Errors: `Error` on strings that are not UTF-8.
std::string printJson(const nlohmann::ordered_json &object);

/// Largest size or offset that a file may state.
inline constexpr int64_t maxBytes = int64_t(1) << 56;

} // namespace weir

#endif // WEIR_LIB_ARTIFACT_JSON_H

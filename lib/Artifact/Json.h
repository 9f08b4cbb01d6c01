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
#include <initializer_list>
#include <limits>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace weir {

struct JsonMember;

/// A parsed value. Object keys keep their order and are unique.
struct Json {
  struct Array {
    std::vector<Json> elements;
  };
  struct Object {
    std::vector<JsonMember> members;
  };
  std::variant<std::monostate, bool, int64_t, std::string, Array, Object> value;
};

struct JsonMember {
  std::string name;
  Json value;
};

/// Parses `text`, UTF-8.
/// Errors: `Error` naming `where` on a syntax error, a duplicate key, more than
///         32 levels, NUL in a string, null, and numbers that are no integers
///         of 64 bits.
Json parseJson(std::string_view text, const std::string &where);

/// A place in a parsed text: what readers walk. Every wrong answer is an
/// `Error` that names the text and the path, "plan.json: commands[3].grid...".
/// A node refers to its parent node; keep it no longer than that.
class JsonNode {
public:
  JsonNode(const Json &json, const std::string &where) : json(json), where(where) {}

  /// Checks that this is an object with all of `keys`, any of `optional`, and
  /// no others.
  const JsonNode &object(std::initializer_list<std::string_view> keys,
                         std::initializer_list<std::string_view> optional = {}) const;
  bool has(std::string_view key) const;
  JsonNode operator[](std::string_view key) const;
  const Json::Object &members() const;

  /// Reads each element of an array with `read(const JsonNode &)`.
  template <typename Read> auto list(Read read) const {
    std::vector<decltype(read(*this))> result;
    size_t count = array().elements.size();
    result.reserve(count);
    for (size_t i = 0; i < count; ++i)
      result.push_back(read(element(i)));
    return result;
  }
  /// Checks that this is an array of `count` elements.
  const JsonNode &tuple(size_t count) const;
  /// Elements of an array.
  size_t size() const { return array().elements.size(); }
  JsonNode element(size_t index) const;

  bool boolean() const;
  const std::string &string() const;
  /// A string that is not empty and has no control characters.
  const std::string &name() const;
  int64_t integer(int64_t min, int64_t max = std::numeric_limits<int64_t>::max()) const;
  /// A size or offset in bytes. Sums of a few of them do not overflow.
  int64_t bytes() const;
  /// A power of two.
  int64_t alignment() const;
  /// One of `names`, as its index.
  size_t choice(std::initializer_list<std::string_view> names) const;

  [[noreturn]] void fail(const std::string &complaint) const;

private:
  JsonNode(const Json &json, const JsonNode &parent, std::string_view key, size_t index)
      : json(json), where(parent.where), parent(&parent), key(key), index(index) {}
  const Json::Array &array() const;
  std::string path() const;

  const Json &json;
  const std::string &where;
  const JsonNode *parent = nullptr;
  std::string_view key; ///< in an object; empty in an array
  size_t index = 0;
};

/// Prints an object: one key a line, and one element a line of the arrays that
/// hold objects. Errors: `Error` on strings that are not UTF-8.
std::string printJson(const nlohmann::ordered_json &object);

/// Largest size or offset that a file may state.
inline constexpr int64_t maxBytes = int64_t(1) << 56;

} // namespace weir

#endif // WEIR_LIB_ARTIFACT_JSON_H

//===- Json.h - Strict JSON for hostile input -------------------*- C++ -*-===//
//
// The formats of this room use a subset of JSON: objects without duplicate keys, arrays,
// strings, booleans and 64-bit integers, nested a few levels deep. A text must have exactly the
// keys that its reader asks for.
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

/// A parsed text as a flat list of values, each container before its contents. A plan has
/// millions of values, so none owns memory.
struct Json {
  enum class Kind : uint8_t { Null, Boolean, Integer, String, Array, Object };
  struct Value {
    /// The integer; 0 or 1; the begin of a string in `text`; or the index of the first value
    /// after a container's contents.
    int64_t payload = 0;
    uint32_t size = 0; ///< characters, elements, or members
    Kind kind = Kind::Null;
  };
  /// An object's contents alternate keys (unique strings) and values.
  std::vector<Value> values;
  std::string text; ///< characters of all strings

  /// Returns the index of the first value after this one and its contents.
  uint32_t getEnd(uint32_t at) const {
    bool isContainer = values[at].kind == Kind::Array || values[at].kind == Kind::Object;
    return isContainer ? uint32_t(values[at].payload) : at + 1;
  }
  std::string_view getText(const Value &value) const {
    return std::string_view(text).substr(size_t(value.payload), value.size);
  }
};

/// A position in a parsed text. Every mismatch is an `Error` that names the text and the path,
/// "plan.json: commands[3].grid...". A node refers to its parent node and must not outlive it.
class JsonNode {
public:
  JsonNode(const Json &json, const std::string &where) : json(json), where(where) {}
  /// Makes the same position the root of a text that errors call `where`.
  JsonNode(const JsonNode &node, const std::string &where)
      : json(node.json), where(where), at(node.at) {}
  /// Makes value `at` a member of `parent` under `key`, or element `index` if `key` is empty.
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
  /// Returns the number of elements of an array.
  size_t size() const { return get(Json::Kind::Array, "an array").size; }
  /// Returns one element. Cost: linear in `index`.
  JsonNode element(size_t index) const;

  bool boolean() const;
  std::string string() const;
  /// Returns a string that is not empty and has no control characters.
  std::string name() const;
  int64_t integer(int64_t min, int64_t max = std::numeric_limits<int64_t>::max()) const;
  /// Returns a size or offset in bytes, small enough that sums of a few do not overflow.
  int64_t bytes() const;
  /// Returns a power of two.
  int64_t alignment() const;
  /// Returns the index of the string in `names`.
  size_t choice(std::initializer_list<std::string_view> names) const;

  [[noreturn]] void fail(const std::string &complaint) const;

private:
  /// Returns the value; fails with "must be `what`" unless it is of `kind`.
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

/// Readers of the elements of large arrays, by the array's key in the top-level object.
using JsonReaders =
    std::initializer_list<std::pair<std::string_view, std::function<void(const JsonNode &)>>>;

/// Parses `text`, UTF-8. Arrays with a reader in `readers` are read element by element and left
/// empty in the result: they are most of a plan, and each element is needed once.
/// Errors: `Error` naming `where` on a syntax error, a duplicate key, more than 32 levels, NUL
///         in a string, null, numbers that are not 64-bit integers, and 2^32 values or more;
///         those of the readers.
Json parseJson(std::string_view text, const std::string &where, JsonReaders readers = {});

/// Prints an object, one key per line, and arrays of objects or arrays with one element per
/// line. Errors: `Error` on strings that are not UTF-8.
std::string printJson(const nlohmann::ordered_json &object);

/// Largest size or offset that a file may state.
inline constexpr int64_t maxBytes = int64_t(1) << 56;

} // namespace weir

#endif // WEIR_LIB_ARTIFACT_JSON_H

//===- TextScan.cpp - Texts that break the parser -------------------------===//

#include "TextScan.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <unordered_map>
#include <vector>

namespace {
/// The sizes behind names such as `#map`: aliases of aliases double with each line.
class Aliases {
public:
  /// `text[at]` is '#' or '!', outside of brackets when `depth` is 0. False where a
  /// name stands for too much.
  bool read(std::string_view text, size_t at, size_t depth) {
    size_t end = at + 1;
    while (end < text.size() && (std::isalnum(static_cast<unsigned char>(text[end])) ||
                                 text[end] == '_' || text[end] == '$' || text[end] == '.'))
      ++end;
    std::string_view name = text.substr(at, end - at);
    while (end < text.size() && std::isspace(static_cast<unsigned char>(text[end])))
      ++end;
    if (depth == 0 && end < text.size() && text[end] == '=') {
      close();
      open = name;
      opened = end;
      return true;
    }
    if (auto known = sizes.find(name); known != sizes.end() && !open.empty())
      size = std::min(maxSize + 1, size + known->second);
    return size <= maxSize;
  }

  /// Ends a value that has begun, at the end of a line outside of brackets.
  void endLine(std::string_view text, size_t at) {
    auto isSpace = [](unsigned char c) { return std::isspace(c); };
    if (!open.empty() && at > opened &&
        !std::all_of(text.begin() + opened + 1, text.begin() + at, isSpace))
      close();
  }

private:
  static constexpr size_t maxSize = 1000000;

  void close() {
    if (!open.empty())
      sizes[open] = size;
    open = {};
    size = 1;
  }

  std::unordered_map<std::string_view, size_t> sizes;
  std::string_view open; ///< the name whose value is being read
  size_t opened = 0;     ///< where its '=' stands
  size_t size = 1;
};
} // namespace

/// Returns the first place from `at` on that is no blank and in no comment.
static size_t skipBlanks(std::string_view text, size_t at) {
  while (at < text.size()) {
    if (text.substr(at, 2) == "//")
      at = std::min(text.find('\n', at), text.size());
    else if (!std::isspace(static_cast<unsigned char>(text[at])))
      break;
    else
      ++at;
  }
  return at;
}

namespace {
/// The names of values, by the regions that they stand in. Where a name is used, and then first
/// defined in a region that the use is not in, the parser lets the use refer to that. If the region
/// cannot be parsed, it is freed before the use is, and the parser writes to what it has freed.
class ValueNames {
public:
  struct Place {
    size_t line = 0, column = 0;
  };

  void open(char bracket, bool isOfLabel) {
    brackets.push_back(isOfLabel ? '^' : bracket);
    if (bracket == '{') {
      parents.push_back(region);
      isOpen.push_back(true);
      region = parents.size() - 1;
    }
  }

  void close() {
    if (brackets.empty())
      return;
    if (brackets.back() == '{') {
      isOpen[region] = false;
      region = parents[region];
    }
    brackets.pop_back();
  }

  /// `text[at]` is '%'. Returns the place of a use that this definition of the name cannot be for.
  std::optional<Place> read(std::string_view text, size_t at, Place place) {
    size_t end = skipName(text, at);
    std::string_view name = text.substr(at, end - at);
    Kind kind = getKind(text, at, end);
    auto [known, isNew] = names.try_emplace(name, Name{region, kind, place});
    Name &first = known->second;
    if (isNew)
      return std::nullopt;
    if (first.kind == Kind::Use && kind == Kind::Definition) {
      if (!isInside(first.region))
        return first.place;
      first = {region, kind, place};
    } else if (first.kind != Kind::Use && !isOpen[first.region]) {
      first = {region, kind, place};
    }
    return std::nullopt;
  }

private:
  /// In parentheses stand operands and, of some ops, arguments of the region that follows.
  enum class Kind { Use, Definition, Either };
  struct Name {
    size_t region;
    Kind kind;
    Place place;
  };

  static size_t skipName(std::string_view text, size_t at) {
    for (++at; at < text.size(); ++at)
      if (unsigned char c = text[at];
          !std::isalnum(c) && c != '_' && c != '$' && c != '.' && c != '-')
        break;
    return at;
  }

  /// Whether the region lies in the one that is open innermost.
  bool isInside(size_t inner) const {
    while (inner > region)
      inner = parents[inner];
    return inner == region;
  }

  Kind getKind(std::string_view text, size_t at, size_t end) {
    char bracket = brackets.empty() ? '{' : brackets.back();
    if (bracket == '^')
      return Kind::Definition;
    if (bracket == '(') {
      size_t next = skipBlanks(text, end);
      bool isDefined = text.substr(end, 1) == ":" || text.substr(next, 1) == "=";
      return isDefined ? Kind::Definition : Kind::Either;
    }
    if (bracket != '{')
      return Kind::Use;
    // Results of an op, such as %a, %b:2 = ...
    if (at >= listEnd) {
      listEnd = end;
      for (isListOfResults = false;;) {
        size_t next = skipBlanks(text, listEnd);
        if (text.substr(next, 1) == ":")
          for (next = skipBlanks(text, next + 1);
               next < text.size() && std::isdigit(static_cast<unsigned char>(text[next]));)
            ++next;
        next = skipBlanks(text, next);
        isListOfResults = text.substr(next, 1) == "=" && text.substr(next, 2) != "==";
        if (text.substr(next, 1) != ",")
          break;
        next = skipBlanks(text, next + 1);
        if (text.substr(next, 1) != "%")
          break;
        listEnd = skipName(text, next);
      }
    }
    return isListOfResults ? Kind::Definition : Kind::Use;
  }

  std::unordered_map<std::string_view, Name> names; ///< by where each stands first while that can
                                                    ///< be seen
  std::vector<char> brackets;                       ///< that are open; '^' for those of a label
  std::vector<size_t> parents = {0};                ///< of the regions, the text itself first
  std::vector<bool> isOpen = {true};
  size_t region = 0;  ///< the innermost that is open
  size_t listEnd = 0; ///< of the list of names that was looked at last
  bool isListOfResults = false;
};
} // namespace

/// Whether a word that is an operator of affine expressions begins at `at`.
static bool isOperatorWord(std::string_view text, size_t at) {
  if (at > 0 && (std::isalnum(static_cast<unsigned char>(text[at - 1])) || text[at - 1] == '_'))
    return false;
  std::string_view rest = text.substr(at, 9);
  return rest.starts_with("mod ") || rest.starts_with("floordiv ") || rest.starts_with("ceildiv ");
}

static bool isWordSign(unsigned char c) { return std::isalnum(c) || c == '_' || c == '.'; }

/// Whether `text[at]` opens the dictionary of a `linalg.generic` in its own syntax, or one that has
/// a name, which may be such a dictionary.
static bool isOfGeneric(std::string_view text, size_t at) {
  while (at > 0 && std::isspace(static_cast<unsigned char>(text[at - 1])))
    --at;
  std::string_view before = text.substr(0, at);
  return before.ends_with('=') || before.ends_with("linalg.generic");
}

/// Whether a label such as ^bb0 ends before `at`.
static bool isAfterLabel(std::string_view text, size_t at) {
  while (at > 0 && (isWordSign(text[at - 1]) || text[at - 1] == '$' || text[at - 1] == '-'))
    --at;
  return at > 0 && text[at - 1] == '^';
}

/// Whether what follows `iterator_types` is a list of strings, or where `takesEnums` of
/// such as #linalg.iterator_type<parallel>. What the parser refuses itself counts as one.
static bool isListOfStrings(std::string_view text, size_t at, bool takesEnums) {
  auto has = [&](char c) { return at < text.size() && text[at] == c; };
  at = skipBlanks(text, at);
  if (!has('='))
    return true;
  at = skipBlanks(text, at + 1);
  if (!has('['))
    return !has('#');
  do {
    at = skipBlanks(text, at + 1);
    if (has(']'))
      return true;
    if (has('"'))
      at = text.find('"', at + 1);
    else if (takesEnums && (text.substr(at).starts_with("#linalg.iterator_type<") ||
                            text.substr(at).starts_with("#vector.iterator_type<")))
      at = text.find('>', at);
    else
      return false;
    at = at == text.npos ? text.size() : skipBlanks(text, at + 1);
  } while (has(','));
  return true;
}

/// Whether what follows the name of an op's own list of dimensions is one, such as [0, 1]. What the
/// parser refuses itself counts as one, and what stands in a dictionary.
static bool isListOfIntegers(std::string_view text, size_t begin, size_t at) {
  auto has = [&](char c) { return at < text.size() && text[at] == c; };
  while (begin > 0 && std::isspace(static_cast<unsigned char>(text[begin - 1])))
    --begin;
  at = skipBlanks(text, at);
  if (begin == 0 || text[begin - 1] == '{' || text[begin - 1] == ',' || !has('='))
    return true;
  at = skipBlanks(text, at + 1);
  if (!has('['))
    return false;
  at = skipBlanks(text, at + 1);
  if (has(']'))
    return true;
  for (constexpr size_t most = 16;;) { // what fits 64 bits, in decimal or hexadecimal
    at = skipBlanks(text, has('-') ? at + 1 : at);
    size_t digits = 0;
    for (; at < text.size() && (std::isxdigit(static_cast<unsigned char>(text[at])) || has('x'));
         ++at)
      ++digits;
    at = skipBlanks(text, at);
    if (digits == 0 || digits > most || !(has(',') || has(']')))
      return false;
    if (has(']'))
      return true;
    at = skipBlanks(text, at + 1);
  }
}

std::optional<std::string> weir::scanText(std::string_view text, const std::string &where) {
  constexpr size_t deepest = 1000, longest = size_t(1) << 20;
  size_t line = 1, lineStart = 0, depth = 0, literal = 0, signs = 0, operators = 0, sizes = 0;
  Aliases aliases;
  ValueNames values;
  std::array<bool, deepest + 1> isGeneric = {}; // by depth
  auto problem = [&](size_t at, const std::string &what) {
    return where + ":" + std::to_string(line) + ":" + std::to_string(at - lineStart + 1) + ": " +
           what;
  };
  for (size_t i = 0; i < text.size(); ++i) {
    unsigned char c = text[i];
    if (c == '\n') {
      if (depth == 0)
        aliases.endLine(text, i);
      ++line;
      lineStart = i + 1;
      literal = 0;
      continue;
    }
    // Each sign of -(-(-x)) is a call of the parser's, too.
    signs = c == '-' ? signs + 1 : c == ' ' || c == '\t' ? signs : 0;
    if (signs > deepest)
      return problem(i, "more than 1,000 signs in a row");
    // An affine expression is parsed and walked by calls, one for each operator.
    if (c == '+' || c == '*' || c == '-' || isOperatorWord(text, i)) {
      if (++operators > deepest)
        return problem(i, "an expression of more than 1,000 operators");
    } else if (std::string_view(",()[]{}<>=:\"").find(c) != std::string_view::npos) {
      operators = 0;
    }
    // Every dimension of a shape is compared with every other.
    bool isSize = c == '?' || std::isdigit(c);
    bool isBetween = c == 'x' && i > 0 && (text[i - 1] == '?' || std::isdigit(text[i - 1]));
    sizes = isBetween ? sizes + 1 : isSize ? sizes : 0;
    if (sizes > deepest)
      return problem(i, "a shape of more than 1,000 dimensions");
    if ((c == '#' || c == '!') && !aliases.read(text, i, depth))
      return problem(i, "a name that stands for more than 1,000,000 attributes");
    // The parser takes each element for a string without looking.
    constexpr std::string_view iterators = "iterator_types";
    if (c == 'i' && text.substr(i).starts_with(iterators) && (i == 0 || !isWordSign(text[i - 1])) &&
        !isListOfStrings(text, i + iterators.size(), !isGeneric[depth]))
      return problem(i, "iterator_types must be a list of strings such as \"parallel\"");
    // Neither does it look whether these were read.
    for (std::string_view list : {"dimensions", "permutation"})
      if (c == list[0] && text.substr(i).starts_with(list) &&
          (i == 0 || !isWordSign(text[i - 1])) && !isListOfIntegers(text, i, i + list.size()))
        return problem(i, std::string(list) + " must be a list of integers such as [0, 1]");
    if ((c < ' ' && c != '\t' && c != '\r') || c == 0x7f)
      return problem(i, "the text holds a control byte; an .mlir file is plain text");
    if (i - lineStart - literal >= longest)
      return problem(i, "the line is longer than 1 MiB; break it up, or keep large constants in "
                        "dense_resource blobs");
    if (c == '/' && i + 1 < text.size() && text[i + 1] == '/') {
      while (i + 1 < text.size() && text[i + 1] != '\n')
        ++i;
    } else if (c == '"') {
      // Blobs are one long literal each; they nest nothing.
      size_t begin = i;
      for (++i; i < text.size() && text[i] != '"' && text[i] != '\n'; ++i)
        if (text[i] == '\\')
          ++i;
      if (i < text.size() && text[i] == '\n') {
        --i;
        continue; // the parser reports it
      }
      literal += i - begin;
    } else if ((c == '<' || c == '>') && i + 1 < text.size() && text[i + 1] == '=') {
      ++i; // a comparison in an integer set
    } else if (c == '(' || c == '[' || c == '{' || c == '<') {
      if (++depth > deepest)
        return problem(i, "brackets are nested deeper than 1,000");
      isGeneric[depth] = c == '{' && isOfGeneric(text, i);
      values.open(c, c == '(' && isAfterLabel(text, i));
    } else if (c == ')' || c == ']' || c == '}' || (c == '>' && i && text[i - 1] != '-')) {
      depth -= depth > 0;
      values.close();
    } else if (c == '%') {
      if (auto use = values.read(text, i, {line, i - lineStart + 1}))
        return where + ":" + std::to_string(use->line) + ":" + std::to_string(use->column) +
               ": this value is defined only in a region that this is not in, in line " +
               std::to_string(line);
    }
  }
  return std::nullopt;
}

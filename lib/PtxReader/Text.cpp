//===- Text.cpp - PTX text to statements ----------------------------------===//
//
// One pass over the text. Inner blocks may declare registers again, so names are looked up in the
// innermost block that declares them.
//
//===----------------------------------------------------------------------===//

#include "Text.h"

#include "weir/Artifact/Error.h"

#include <algorithm>
#include <bit>
#include <cstdlib>
#include <unordered_map>

using namespace weir;
using namespace weir::ptx;

/// Max numbers that bound time and memory; code by compilers has far fewer.
static constexpr size_t maxText = size_t(1) << 26, maxRegisters = 1 << 20, maxOperands = 160,
                        maxStatements = 1 << 20, maxLabels = 1 << 17, maxSymbols = 4096,
                        maxRanges = 64, maxDepth = 64;

void ptx::fail(const std::string &where, uint32_t line, const std::string &problem) {
  throw Error(where + ":" + std::to_string(line) + ": " + problem);
}

bool Statement::has(std::string_view part) const {
  return std::find(name.begin(), name.end(), part) != name.end();
}

std::string Statement::getName() const {
  std::string text;
  for (std::string_view part : name)
    text += (text.empty() ? "" : ".") + std::string(part);
  return text;
}

static bool isName(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
         c == '$' || c == '%';
}

static bool isDigit(char c) { return c >= '0' && c <= '9'; }

namespace {
class Parser {
public:
  Parser(std::string_view text, const std::string &where) : text(text), where(where) {}
  std::optional<Entry> run(const std::string &name);

private:
  struct Variable {
    bool isRegister;
    uint32_t number;
  };
  using Scope = std::unordered_map<std::string_view, Variable>;

  [[noreturn]] void fail(const std::string &problem) const { ptx::fail(where, line, problem); }

  // Characters.
  void skipSpace();
  bool accept(char c);
  void expect(char c);
  std::string_view readName();
  std::string_view readWord(); ///< a name with dots
  void skipLine();
  void skipBlock();
  void skipUntil(char end);
  uint64_t readNumber();

  // Declarations.
  void readParameters();
  void readDirectives();
  void readRegisters();
  void readVariable(Symbol::Space space);
  void declareSymbol(std::string_view name, Symbol symbol);
  uint32_t declareRegister(uint32_t width);
  const Variable *find(std::string_view name);

  // Statements.
  void readBody();
  void readDirective(std::string_view word);
  void readStatement(std::string_view word);
  Operand readOperand(size_t depth);
  Operand readLiteral();

  std::string_view text;
  const std::string &where;
  size_t at = 0;
  uint32_t line = 1;
  Entry entry;
  std::vector<Scope> scopes;
  /// Declared by a count: `%r<67>` is %r0 to %r66.
  struct Range {
    std::string_view prefix;
    uint32_t first, count;
  };
  std::vector<std::vector<Range>> ranges; ///< by scope
};
} // namespace

//===----------------------------------------------------------------------===//
// Characters
//===----------------------------------------------------------------------===//

void Parser::skipSpace() {
  while (at < text.size()) {
    char c = text[at];
    if (c == '\n') {
      ++line;
      ++at;
    } else if (c == ' ' || c == '\t' || c == '\r' || c == '\f' || c == '\v') {
      ++at;
    } else if (text.substr(at, 2) == "//") {
      at = std::min(text.find('\n', at), text.size());
    } else if (text.substr(at, 2) == "/*") {
      size_t end = text.find("*/", at + 2);
      if (end == text.npos)
        fail("a comment does not end");
      line += uint32_t(std::count(text.begin() + at, text.begin() + end, '\n'));
      at = end + 2;
    } else {
      return;
    }
  }
}

bool Parser::accept(char c) {
  skipSpace();
  if (at >= text.size() || text[at] != c)
    return false;
  ++at;
  return true;
}

void Parser::expect(char c) {
  if (!accept(c))
    fail(std::string("expected '") + c + "'" +
         (at < text.size() ? std::string(", found '") + text[at] + "'" : ", the text ends"));
}

std::string_view Parser::readName() {
  skipSpace();
  size_t begin = at;
  while (at < text.size() && isName(text[at]))
    ++at;
  return text.substr(begin, at - begin);
}

std::string_view Parser::readWord() {
  skipSpace();
  size_t begin = at;
  while (at < text.size() &&
         (isName(text[at]) || text[at] == '.' || (text[at] == ':' && text.substr(at, 2) == "::"))) {
    at += text[at] == ':' ? 2 : 1;
  }
  return text.substr(begin, at - begin);
}

void Parser::skipLine() { at = std::min(text.find('\n', at), text.size()); }

/// Skips what is between braces; the first one is read.
void Parser::skipBlock() {
  for (size_t depth = 1; depth > 0;) {
    skipSpace();
    if (at >= text.size())
      fail("a '{' has no '}'");
    depth += text[at] == '{' ? 1 : text[at] == '}' ? -1 : 0;
    if (text[at] == '"')
      at = std::min(text.find('"', at + 1), text.size() - 1);
    ++at;
  }
}

void Parser::skipUntil(char end) {
  while (!accept(end)) {
    if (at >= text.size())
      fail(std::string("expected '") + end + "', the text ends");
    if (text[at++] == '{')
      skipBlock();
  }
}

uint64_t Parser::readNumber() {
  Operand number = readLiteral();
  if (number.kind != Operand::Kind::Integer)
    fail("expected a number");
  return number.bits;
}

//===----------------------------------------------------------------------===//
// Declarations
//===----------------------------------------------------------------------===//

/// Returns the bits of a type such as "u32"; 0 if it is none.
static uint32_t getTypeWidth(std::string_view type) {
  if (type == "pred")
    return 1;
  size_t digits = type.find_first_of("0123456789");
  if (digits == type.npos)
    return 0;
  std::string_view kind = type.substr(0, digits), width = type.substr(digits);
  if (kind != "b" && kind != "u" && kind != "s" && kind != "f" && kind != "bf")
    return 0;
  for (auto [text, bits] : {std::pair("8", 8u),
                            {"16", 16u},
                            {"32", 32u},
                            {"64", 64u},
                            {"128", 128u},
                            {"16x2", 32u},
                            {"32x2", 64u}})
    if (width == text)
      return bits;
  return 0;
}

void Parser::declareSymbol(std::string_view name, Symbol symbol) {
  if (entry.symbols.size() >= maxSymbols)
    fail("declares more than " + std::to_string(maxSymbols) + " variables");
  if (name.empty() ||
      !scopes.back().try_emplace(name, Variable{false, uint32_t(entry.symbols.size())}).second)
    fail("declares '" + std::string(name) + "' a second time");
  entry.symbols.push_back(symbol);
}

uint32_t Parser::declareRegister(uint32_t width) {
  if (entry.widths.size() >= maxRegisters)
    fail("declares more than " + std::to_string(maxRegisters) + " registers");
  entry.widths.push_back(width);
  return uint32_t(entry.widths.size() - 1);
}

/// Finds what a name means, in the innermost block that declares it.
const Parser::Variable *Parser::find(std::string_view name) {
  size_t digits = name.size();
  while (digits > 0 && isDigit(name[digits - 1]))
    --digits;
  uint64_t number = name.size() - digits <= 9 ? 0 : maxRegisters;
  for (char c : name.substr(digits, 9))
    number = number * 10 + uint64_t(c - '0');
  for (size_t i = scopes.size(); i-- > 0;) {
    if (auto found = scopes[i].find(name); found != scopes[i].end())
      return &found->second;
    if (digits == name.size() || (name[digits] == '0' && digits + 1 < name.size()))
      continue;
    for (const Range &range : ranges[i])
      if (name.substr(0, digits) == range.prefix && number < range.count)
        return &scopes[i]
                    .try_emplace(name, Variable{true, range.first + uint32_t(number)})
                    .first->second;
  }
  return nullptr;
}

/// Reads the parameters of an entry, up to the ')'.
void Parser::readParameters() {
  if (accept(')'))
    return;
  do {
    std::string_view word = readWord();
    if (word != ".param")
      fail("expected a parameter, found '" + std::string(word) + "'");
    Symbol symbol;
    symbol.parameter = entry.numParameters++;
    std::string_view name;
    while (true) {
      word = readWord();
      if (word.empty())
        fail("a parameter has no name");
      if (word == ".align")
        symbol.alignment = int64_t(std::min<uint64_t>(readNumber(), uint64_t(1) << 20));
      else if (word.front() != '.')
        break;
      else if (uint32_t width = getTypeWidth(word.substr(1)))
        symbol.width = width;
    }
    name = word;
    if (accept('[')) {
      symbol.bytes = symbol.width / 8;
      symbol.width = 0;
      const uint64_t count = readNumber();
      if (count > uint64_t(1) << 31)
        fail("has a parameter of 2^31 bytes or more");
      symbol.bytes *= int64_t(count);
      expect(']');
    }
    declareSymbol(name, symbol);
  } while (accept(','));
  expect(')');
}

/// Reads what is between an entry's parameters and its body.
void Parser::readDirectives() {
  while (!accept('{')) {
    std::string_view word = readWord();
    if (word == ".reqntid") {
      entry.workgroup = {1, 1, 1};
      for (size_t axis = 0; axis < 3; ++axis) {
        uint64_t size = readNumber();
        if (size < 1 || size > 1024)
          fail("requires a workgroup size that is not in [1, 1024]");
        entry.workgroup[axis] = uint32_t(size);
        if (axis < 2 && !accept(','))
          break;
      }
    } else if (word == ".maxntid" || word == ".minnctapersm" || word == ".maxnreg" ||
               word == ".maxnctapersm") {
      do
        readNumber();
      while (accept(','));
    } else if (word != ".noreturn" && word != ".blocksareclusters") {
      fail("has the directive '" + std::string(word) + "', which the reader does not know");
    }
  }
}

/// Reads a declaration of registers behind ".reg".
void Parser::readRegisters() {
  std::string_view type = readWord();
  uint32_t width = type.empty() ? 0 : getTypeWidth(type.substr(1));
  if (width == 0)
    fail("declares registers of type '" + std::string(type) + "'");
  do {
    std::string_view name = readName();
    if (name.empty())
      fail("declares a register without a name");
    if (accept('<')) {
      uint64_t count = readNumber();
      expect('>');
      if (count > maxRegisters - entry.widths.size())
        fail("declares more than " + std::to_string(maxRegisters) + " registers");
      if (ranges.back().size() >= maxRanges || isDigit(name.back()))
        fail("declares registers '" + std::string(name) + "' in a way that is not followed");
      ranges.back().push_back({name, uint32_t(entry.widths.size()), uint32_t(count)});
      entry.widths.resize(entry.widths.size() + count, width);
    } else if (!scopes.back().try_emplace(name, Variable{true, declareRegister(width)}).second) {
      fail("declares '" + std::string(name) + "' a second time");
    }
  } while (accept(','));
  expect(';');
}

/// Reads a declaration of variables behind ".shared", for instance.
void Parser::readVariable(Symbol::Space space) {
  uint32_t width = 0;
  uint64_t alignment = 1;
  std::string_view word;
  while (true) {
    word = readWord();
    if (word.empty())
      fail("declares a variable without a name");
    if (word.front() != '.')
      break;
    if (word == ".align")
      alignment = std::min<uint64_t>(readNumber(), uint64_t(1) << 20);
    else if (word == ".v2" || word == ".v4")
      width = word == ".v2" ? 2 : 4;
    else if (uint32_t bits = getTypeWidth(word.substr(1)))
      width = std::max(width, 1u) * std::max(bits, 8u);
    else
      fail("declares a variable with '" + std::string(word) + "'");
  }
  Symbol symbol;
  symbol.space = space;
  symbol.alignment = int64_t(alignment);
  symbol.bytes = width / 8;
  while (accept('[')) {
    if (accept(']')) {
      symbol.bytes = 0;
      continue;
    }
    uint64_t count = readNumber();
    expect(']');
    if (count > (uint64_t(1) << 31) || symbol.bytes * int64_t(count) > (int64_t(1) << 31))
      fail("declares a variable of more than 2^31 bytes");
    symbol.bytes *= int64_t(count);
  }
  declareSymbol(word, symbol);
  skipUntil(';'); // an initializer
}

//===----------------------------------------------------------------------===//
// Statements
//===----------------------------------------------------------------------===//

/// Reads an integer or a float.
Operand Parser::readLiteral() {
  Operand operand;
  bool isMinus = false;
  while (accept('-'))
    isMinus = !isMinus;
  skipSpace();
  size_t begin = at;
  while (at < text.size() &&
         (isName(text[at]) || text[at] == '.' ||
          ((text[at] == '-' || text[at] == '+') && at > begin &&
           (text[at - 1] == 'e' || text[at - 1] == 'E') && text.substr(begin, 2) != "0x")))
    ++at;
  std::string digits(text.substr(begin, at - begin));
  if (digits.empty() || !isDigit(digits[0]) || digits.size() > 64)
    fail("expected a number, found '" + digits.substr(0, 64) + "'");
  char *end = nullptr;
  bool isHexFloat = digits.size() > 2 && digits[0] == '0' &&
                    (digits[1] == 'f' || digits[1] == 'F' || digits[1] == 'd' || digits[1] == 'D');
  if (isHexFloat) {
    operand.kind = Operand::Kind::Float;
    operand.width = digits[1] == 'f' || digits[1] == 'F' ? 32 : 64;
    operand.bits = std::strtoull(digits.c_str() + 2, &end, 16);
    if (isMinus || digits.size() != 2 + operand.width / 4)
      fail("has the float '" + digits + "'");
  } else if (digits.find_first_of(".eE") != digits.npos && digits.substr(0, 2) != "0x" &&
             digits.substr(0, 2) != "0X") {
    operand.kind = Operand::Kind::Float;
    operand.width = 64;
    double value = std::strtod(digits.c_str(), &end);
    operand.bits = std::bit_cast<uint64_t>(isMinus ? -value : value);
  } else {
    operand.kind = Operand::Kind::Integer;
    if (digits.back() == 'U')
      digits.pop_back();
    bool isBinary = digits.size() > 2 && digits[0] == '0' && (digits[1] == 'b' || digits[1] == 'B');
    errno = 0;
    operand.bits = std::strtoull(digits.c_str() + (isBinary ? 2 : 0), &end, isBinary ? 2 : 0);
    if (errno)
      fail("has the number '" + digits + "', which needs more than 64 bits");
    operand.bits = isMinus ? -operand.bits : operand.bits;
  }
  if (*end)
    fail("expected a number, found '" + digits + "'");
  return operand;
}

Operand Parser::readOperand(size_t depth) {
  Operand operand;
  if (depth > 4)
    fail("has operands nested too deeply");
  skipSpace();
  char first = at < text.size() ? text[at] : '\0';
  if (first == '{') {
    ++at;
    operand.kind = Operand::Kind::Vector;
    if (accept('}'))
      return operand;
    do
      operand.parts.push_back(readOperand(depth + 1));
    while (operand.parts.size() < maxOperands && accept(','));
    expect('}');
    return operand;
  }
  if (first == '[') {
    ++at;
    operand.kind = Operand::Kind::Address;
    operand.parts.push_back(readOperand(depth + 1));
    while (accept('+'))
      operand.bits += readNumber();
    skipSpace();
    if (at < text.size() && text[at] == '-')
      operand.bits += readNumber();
    if (accept(',')) // a tensor map and coordinates
      operand.parts.push_back(readOperand(depth + 1));
    expect(']');
    return operand;
  }
  if (accept('!')) {
    operand = readOperand(depth + 1);
    operand.isNegated = !operand.isNegated;
    return operand;
  }
  if (isDigit(first) || first == '-')
    return readLiteral();
  std::string_view name = readName();
  if (name.empty())
    fail(std::string("expected an operand") +
         (first ? ", found '" + std::string(1, first) + "'" : ""));
  if (name == "_")
    return operand;
  operand.name = name;
  const Variable *known = find(name);
  if (known) {
    operand.kind = known->isRegister ? Operand::Kind::Register : Operand::Kind::Symbol;
    operand.number = known->number;
    operand.width = known->isRegister ? entry.widths[known->number] : 0;
  } else if (name.front() == '%') {
    operand.kind = Operand::Kind::Special;
    if (at < text.size() && text[at] == '.') {
      size_t begin = at - name.size();
      ++at;
      readName();
      operand.name = text.substr(begin, at - begin);
    }
  } else {
    operand.kind = Operand::Kind::Name;
  }
  skipSpace();
  if (depth == 0 && at < text.size() && text[at] == '|') {
    ++at;
    Operand pair;
    pair.kind = Operand::Kind::Pair;
    pair.parts = {std::move(operand), readOperand(depth + 1)};
    return pair;
  }
  return operand;
}

/// Reads a directive inside of a body.
void Parser::readDirective(std::string_view word) {
  if (word == ".reg")
    return readRegisters();
  if (word == ".shared")
    return readVariable(Symbol::Space::Shared);
  if (word == ".local")
    return readVariable(Symbol::Space::Local);
  if (word == ".pragma")
    return skipUntil(';');
  if (word == ".loc")
    return skipLine();
  if (word == ".param")
    fail("calls a function, which the reader does not follow");
  if (word == ".branchtargets")
    fail("jumps by a table, which the reader does not follow");
  fail("has the directive '" + std::string(word) + "', which the reader does not know");
}

void Parser::readStatement(std::string_view word) {
  if (entry.statements.size() >= maxStatements)
    fail("has more than " + std::to_string(maxStatements) + " instructions");
  Statement statement;
  statement.line = line;
  if (word.empty()) { // a predicate
    expect('@');
    Operand guard = readOperand(1);
    if (guard.kind != Operand::Kind::Register || guard.width != 1)
      fail("has a predicate that is no register of type .pred");
    statement.guard = guard.number;
    statement.isGuardNegated = guard.isNegated;
    word = readWord();
  }
  for (size_t begin = 0; begin <= word.size();) {
    size_t end = std::min(word.find('.', begin), word.size());
    statement.name.push_back(word.substr(begin, end - begin));
    begin = end + 1;
  }
  if (word.empty() || statement.name.front().empty() || statement.name.size() > 24)
    fail("expected an instruction");
  if (statement.name.front() == "call")
    fail("calls a function, which the reader does not follow");
  if (!accept(';')) {
    do
      statement.operands.push_back(readOperand(0));
    while (statement.operands.size() < maxOperands && accept(','));
    expect(';');
  }
  entry.statements.push_back(std::move(statement));
}

/// Reads the body of an entry, behind its '{'.
void Parser::readBody() {
  size_t outer = scopes.size();
  auto open = [&] {
    if (scopes.size() > maxDepth)
      fail("has blocks nested too deeply");
    scopes.emplace_back();
    ranges.emplace_back();
  };
  for (open(); scopes.size() > outer;) {
    skipSpace();
    if (at >= text.size())
      fail("the entry has no end");
    if (accept('{')) {
      open();
    } else if (accept('}')) {
      scopes.pop_back();
      ranges.pop_back();
    } else if (text[at] == '@') {
      readStatement({});
    } else if (accept(';')) {
    } else {
      std::string_view word = readWord();
      if (word.empty())
        fail(std::string("found '") + text[at] + "'");
      if (word.front() == '.')
        readDirective(word);
      else if (accept(':')) {
        if (entry.labels.size() >= maxLabels)
          fail("has more than " + std::to_string(maxLabels) + " labels");
        entry.labels.emplace_back(word, uint32_t(entry.statements.size()));
      } else
        readStatement(word);
    }
  }
}

std::optional<Entry> Parser::run(const std::string &name) {
  if (text.size() > maxText)
    fail("has more than 64 MiB");
  scopes.emplace_back();
  ranges.emplace_back();
  bool hasVersion = false;
  while (skipSpace(), at < text.size()) {
    std::string_view word = readWord();
    if (word == ".version") {
      uint64_t major = 0;
      skipSpace();
      for (; at < text.size() && isDigit(text[at]) && major < 1000; ++at)
        major = major * 10 + uint64_t(text[at] - '0');
      if (major < 3 || major > 9)
        fail("is of PTX version " + std::to_string(major) + ", the reader knows 3 to 9");
      hasVersion = true;
      skipLine();
    } else if (word == ".target" || word == ".address_size" || word == ".file" || word == ".loc") {
      skipLine();
    } else if (word == ".section") {
      skipUntil('{');
      skipBlock();
    } else if (word == ".pragma") {
      skipUntil(';');
    } else if (word == ".visible" || word == ".extern" || word == ".weak" || word == ".common") {
    } else if (word == ".func") {
      while (!accept(';')) {
        if (at >= text.size())
          fail("a function has no end");
        if (text[at++] == '{') {
          skipBlock();
          break;
        }
      }
    } else if (word == ".entry") {
      if (!hasVersion)
        fail("has no .version");
      if (readName() != name) {
        while (!accept('{')) {
          if (at >= text.size())
            fail("an entry has no body");
          ++at;
        }
        skipBlock();
        continue;
      }
      entry.line = line;
      scopes.emplace_back();
      ranges.emplace_back();
      if (accept('('))
        readParameters();
      readDirectives();
      readBody();
      return std::move(entry);
    } else if (word == ".shared" || word == ".global" || word == ".const") {
      readVariable(word == ".shared"   ? Symbol::Space::Shared
                   : word == ".global" ? Symbol::Space::Global
                                       : Symbol::Space::Const);
    } else {
      fail("found '" + std::string(word.empty() ? text.substr(at, 1) : word.substr(0, 64)) +
           "' outside of an entry");
    }
  }
  return std::nullopt;
}

std::optional<Entry> ptx::parseEntry(std::string_view text, const std::string &entry,
                                     const std::string &where) {
  return Parser(text, where).run(entry);
}

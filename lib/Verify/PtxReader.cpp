//===- PtxReader.cpp - Which parameters lead to loads and stores ----------===//

#include "Code.h"

#include <algorithm>
#include <string_view>
#include <unordered_map>

using namespace weir;
using namespace weir::verifier;

namespace {

/// Bit set of the parameters from which a number may be derived.
using Origins = uint64_t;
constexpr size_t maxParameters = 64;

/// One instruction: the parts of its name, and its operands as text.
struct Statement {
  std::vector<std::string_view> name, operands;
  bool has(std::string_view part) const {
    return std::find(name.begin(), name.end(), part) != name.end();
  }
};

/// Thrown with the reason why the code cannot be followed.
struct Lost {
  std::string problem;
};

} // namespace

static std::string_view trim(std::string_view text) {
  size_t begin = text.find_first_not_of(" \t\r\n"), end = text.find_last_not_of(" \t\r\n");
  return begin == text.npos ? std::string_view() : text.substr(begin, end - begin + 1);
}

/// Splits at separators outside of brackets.
static std::vector<std::string_view> split(std::string_view text, char separator) {
  std::vector<std::string_view> pieces;
  size_t begin = 0, depth = 0;
  for (size_t i = 0; i <= text.size(); ++i) {
    if (i < text.size() && (text[i] == '[' || text[i] == '{' || text[i] == '('))
      ++depth;
    if (i < text.size() && (text[i] == ']' || text[i] == '}' || text[i] == ')'))
      depth -= depth > 0;
    if (i == text.size() || (text[i] == separator && depth == 0)) {
      pieces.push_back(trim(text.substr(begin, i - begin)));
      begin = i + 1;
    }
  }
  return pieces;
}

static std::string removeComments(const std::string &text) {
  std::string plain;
  for (size_t i = 0; i < text.size();) {
    size_t end = text.compare(i, 2, "//") == 0   ? text.find('\n', i)
                 : text.compare(i, 2, "/*") == 0 ? text.find("*/", i)
                                                 : 0;
    if (end == 0) {
      plain += text[i++];
      continue;
    }
    plain += ' ';
    i = end == text.npos ? text.size() : text[i + 1] == '*' ? end + 2 : end;
  }
  return plain;
}

static bool isName(char c) {
  return isalnum(static_cast<unsigned char>(c)) || c == '_' || c == '$' || c == '%' || c == '.';
}

/// Returns the registers named in an operand.
static std::vector<std::string_view> getRegisters(std::string_view operand) {
  std::vector<std::string_view> names;
  for (size_t i = 0; i < operand.size();) {
    size_t end = i;
    while (end < operand.size() && isName(operand[end]))
      ++end;
    if (operand[i] == '%')
      names.push_back(operand.substr(i, end - i));
    i = std::max(end, i + 1);
  }
  return names;
}

namespace {

class PtxWalk {
public:
  explicit PtxWalk(PtxKernel &kernel) : kernel(kernel) {}

  /// Reads an entry of the module. Errors: `Lost`.
  void run(std::string_view text, const std::string &entry);

private:
  void readHead(std::string_view head, std::string_view directives);
  void readBody(std::string_view body);
  bool step(const Statement &statement, bool records);
  Origins getOrigins(std::string_view operand) const;
  bool assign(std::string_view target, Origins origins);
  void touch(const Statement &statement, std::string_view address, bool reads, bool writes);

  PtxKernel &kernel;
  std::unordered_map<std::string_view, size_t> parameters;
  std::unordered_map<std::string_view, Origins> origins; ///< of registers
};

} // namespace

void PtxWalk::run(std::string_view text, const std::string &entry) {
  // ".entry NAME ( parameters ) directives { body }"
  for (size_t at = 0; (at = text.find(".entry", at)) != text.npos; ++at) {
    size_t open = text.find('(', at);
    if (open == text.npos || trim(text.substr(at + 6, open - at - 6)) != entry)
      continue;
    size_t close = text.find(')', open);
    size_t begin = close == text.npos ? text.npos : text.find('{', close);
    if (begin == text.npos)
      throw Lost{"its entry does not end"};
    size_t end = begin, depth = 0;
    do
      depth += text[end] == '{' ? 1 : text[end] == '}' ? -1 : 0;
    while (depth > 0 && ++end < text.size());
    if (depth > 0)
      throw Lost{"its entry does not end"};
    readHead(text.substr(open + 1, close - open - 1), text.substr(close + 1, begin - close - 1));
    readBody(text.substr(begin + 1, end - begin - 1));
    return;
  }
  throw Lost{"it has no entry of this name"};
}

void PtxWalk::readHead(std::string_view head, std::string_view directives) {
  if (!trim(head).empty())
    for (std::string_view parameter : split(head, ',')) {
      size_t begin = parameter.find_last_of(" \t\n");
      if (parameter.find(".u64") == parameter.npos || begin == parameter.npos)
        throw Lost{"a parameter is not an address"};
      parameters[parameter.substr(begin + 1)] = kernel.parameters.size();
      kernel.parameters.emplace_back();
    }
  if (kernel.parameters.size() > maxParameters)
    throw Lost{"it has more than 64 parameters"};
  if (size_t at = directives.find(".reqntid"); at != directives.npos) {
    kernel.workgroup = {1, 1, 1};
    std::vector<std::string_view> sizes = split(directives.substr(at + 8), ',');
    for (size_t i = 0; i < std::min<size_t>(sizes.size(), 3); ++i)
      kernel.workgroup[i] = std::strtoll(std::string(sizes[i].substr(0, 12)).c_str(), nullptr, 10);
  }
}

/// Skips labels, directives, ends of inner blocks and the predicate.
static std::string_view skipToInstruction(std::string_view line) {
  while (!line.empty()) {
    size_t end = 0;
    while (end < line.size() && isName(line[end]))
      ++end;
    bool isLabel = end > 0 && end < line.size() && line[end] == ':' &&
                   (end + 1 == line.size() || line[end + 1] != ':');
    if (isLabel || line.front() == '{' || line.front() == '}')
      line = trim(line.substr(isLabel ? end + 1 : 1));
    else if (line.front() == '.') // a directive ends with its line
      line = trim(line.substr(std::min(line.find('\n'), line.size())));
    else if (line.front() == '@')
      line = trim(line.substr(std::min(line.find_first_of(" \t"), line.size())));
    else
      break;
  }
  return line;
}

void PtxWalk::readBody(std::string_view body) {
  std::vector<Statement> statements;
  // Ignore inner blocks: names are unique in the whole entry.
  for (size_t begin = 0; begin < body.size();) {
    size_t end = begin;
    for (size_t depth = 0; end < body.size() && (depth > 0 || body[end] != ';'); ++end)
      depth += body[end] == '[' ? 1 : body[end] == ']' && depth > 0 ? -1 : 0;
    std::string_view line = trim(body.substr(begin, end - begin));
    begin = end + 1;
    line = skipToInstruction(line);
    if (line.empty())
      continue;
    size_t space = std::min(line.find_first_of(" \t"), line.size());
    Statement statement;
    statement.name = split(line.substr(0, space), '.');
    if (std::string_view rest = trim(line.substr(space)); !rest.empty())
      statement.operands = split(rest, ',');
    statements.push_back(std::move(statement));
  }
  // Each round may propagate an address by one register against the order of the text.
  size_t rounds = 0;
  for (bool changes = true; changes;) {
    changes = false;
    for (const Statement &statement : statements)
      changes |= step(statement, /*records=*/false);
    if (++rounds > 64)
      throw Lost{"its registers form too long cycles"};
  }
  for (const Statement &statement : statements)
    step(statement, /*records=*/true);
}

Origins PtxWalk::getOrigins(std::string_view operand) const {
  Origins from = 0;
  for (std::string_view name : getRegisters(operand))
    if (auto found = origins.find(name); found != origins.end())
      from |= found->second;
  return from;
}

/// Adds origins to a register; returns whether any is new.
bool PtxWalk::assign(std::string_view target, Origins from) {
  bool changes = false;
  for (std::string_view name : getRegisters(target)) {
    Origins &known = origins[name];
    changes |= (known | from) != known;
    known |= from;
  }
  return changes;
}

/// Records an access to memory that other invocations see.
void PtxWalk::touch(const Statement &statement, std::string_view address, bool reads, bool writes) {
  if (statement.has("shared") || statement.has("local") || statement.has("const"))
    return;
  Origins from = getOrigins(address);
  if (!from)
    throw Lost{"an address comes from no parameter: " + std::string(address)};
  bool isOne = (from & (from - 1)) == 0;
  for (size_t i = 0; i < kernel.parameters.size(); ++i) {
    if (!(from >> i & 1))
      continue;
    auto note = [&](Answer &answer) {
      answer = isOne || answer == Answer::Yes ? Answer::Yes : Answer::Unknown;
    };
    if (reads)
      note(kernel.parameters[i].reads);
    if (writes)
      note(kernel.parameters[i].writes);
  }
}

/// Follows one instruction; returns whether any register has new origins.
bool PtxWalk::step(const Statement &statement, bool records) {
  const std::vector<std::string_view> &operands = statement.operands;
  std::string_view name = statement.name.front();
  auto isMemory = [](std::string_view operand) { return operand.find('[') != operand.npos; };
  bool isLoad = name == "ld" || name == "ldu", isStore = name == "st" || name == "red";
  bool isAtomic = name == "atom";
  size_t address = isStore ? 0 : 1;
  if (isLoad || isStore || isAtomic) {
    if (operands.size() <= address || !isMemory(operands[address]))
      throw Lost{"it has a load or store without an address"};
    if (isLoad && statement.has("param")) {
      std::string_view symbol = trim(operands[1].substr(1, operands[1].size() - 2));
      auto found = parameters.find(symbol);
      if (found == parameters.end())
        throw Lost{"it loads " + std::string(operands[1]) + ", which is not a whole parameter"};
      return assign(operands[0], Origins(1) << found->second);
    }
    if (records)
      touch(statement, operands[address], !isStore || name == "red", !isLoad);
    return false; // a loaded number is not an address
  }
  if (name == "call" || name == "tex" || name == "tld4" ||
      std::any_of(operands.begin(), operands.end(), isMemory))
    throw Lost{"it has an instruction that is not followed: " + std::string(name)};
  Origins from = 0;
  for (size_t i = 1; i < operands.size(); ++i)
    from |= getOrigins(operands[i]);
  return operands.size() > 1 && from && assign(operands[0], from);
}

PtxKernel verifier::readPtx(const std::string &text, const std::string &entry) {
  PtxKernel kernel;
  try {
    std::string plain = removeComments(text);
    PtxWalk(kernel).run(plain, entry);
  } catch (const Lost &lost) {
    kernel.problem = lost.problem;
  }
  return kernel;
}

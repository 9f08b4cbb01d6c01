//===- Csv.cpp - MiniMalloc's CSV, in and out -----------------------------===//

#include "weir/Artifact/Error.h"
#include "weir/Planner/Planner.h"

#include <algorithm>
#include <charconv>
#include <unordered_map>
#include <unordered_set>

using namespace weir;

/// Splits at every `separator`; an empty text is one empty field.
static void split(std::string_view text, char separator, std::vector<std::string_view> &fields) {
  fields.clear();
  while (true) {
    size_t end = text.find(separator);
    fields.push_back(text.substr(0, end));
    if (end == std::string_view::npos)
      return;
    text.remove_prefix(end + 1);
  }
}

/// Calls `visit(line, its number)` for each line that is not empty.
template <typename Visit> static void forEachLine(std::string_view text, Visit visit) {
  for (size_t number = 1; !text.empty(); ++number) {
    size_t end = text.find('\n');
    std::string_view line = text.substr(0, end);
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
    if (line.ends_with('\r'))
      line.remove_suffix(1);
    if (!line.empty())
      visit(line, number);
  }
}

namespace {
enum Column { Id, Lower, Upper, Size, Alignment, Hint, Gaps, Offset, Space, Chain, Group, Count };

class Parser {
public:
  Parser(const std::string &where, size_t rows) : where(where) {
    problem.buffers.reserve(rows);
    ids.reserve(rows);
  }
  void parse(std::string_view line, size_t number);
  PlanProblem finish() &&;

private:
  [[noreturn]] void fail(const std::string &complaint) const {
    throw Error(where + ":" + std::to_string(number) + ": " + complaint);
  }
  void parseHead(std::string_view line);
  int64_t parseInteger(std::string_view text, const char *what) const;
  std::string_view get(Column column) const {
    return columns[column] < 0 ? std::string_view() : fields[size_t(columns[column])];
  }
  void parseLife(Buffer &buffer);

  const std::string &where;
  size_t number = 0;
  std::vector<std::string_view> fields;
  bool hasHead = false;
  size_t width = 0;
  std::vector<int> columns = std::vector<int>(Count, -1);
  bool isInclusive = false; ///< the column of upper ends is "end"
  PlanProblem problem;
  std::unordered_set<std::string_view> ids;
  std::unordered_map<std::string_view, size_t> spaces, chains, groups;
};
} // namespace

int64_t Parser::parseInteger(std::string_view text, const char *what) const {
  int64_t value = 0;
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error == std::errc::result_out_of_range)
    fail(std::string(what) + " \"" + std::string(text) + "\" needs more than 64 bits");
  if (error != std::errc() || end != text.data() + text.size() || text.empty())
    fail(std::string(what) + " \"" + std::string(text) + "\" is not an integer");
  return value;
}

void Parser::parseHead(std::string_view line) {
  static constexpr std::pair<std::string_view, Column> names[] = {
      {"id", Id},       {"buffer", Id},     {"buffer_id", Id},        {"lower", Lower},
      {"begin", Lower}, {"start", Lower},   {"upper", Upper},         {"end", Upper},
      {"size", Size},   {"hint", Hint},     {"alignment", Alignment}, {"gaps", Gaps},
      {"space", Space}, {"offset", Offset}, {"chain", Chain},         {"group", Group}};
  split(line, ',', fields);
  width = fields.size();
  for (size_t i = 0; i < fields.size(); ++i) {
    auto known = std::find_if(std::begin(names), std::end(names),
                              [&](const auto &name) { return name.first == fields[i]; });
    if (known == std::end(names))
      fail("column \"" + std::string(fields[i]) +
           "\" is not known; there are id, lower, upper, size, alignment, hint, gaps, offset, "
           "space, chain and group");
    if (columns[known->second] >= 0)
      fail("column \"" + std::string(fields[i]) + "\" is repeated");
    columns[known->second] = int(i);
    isInclusive |= fields[i] == "end";
  }
  for (auto [column, name] :
       {std::pair(Id, "id"), {Lower, "lower"}, {Upper, "upper"}, {Size, "size"}})
    if (columns[column] < 0)
      fail(std::string("column ") + name + " is missing");
}

/// Parses the live ranges: the waves from lower to upper without the gaps.
void Parser::parseLife(Buffer &buffer) {
  int64_t lower = parseInteger(get(Lower), "lower"), upper = parseInteger(get(Upper), "upper");
  int64_t after = isInclusive ? 1 : 0;
  if (upper == std::numeric_limits<int64_t>::max() || upper + after <= lower)
    fail("buffer \"" + buffer.name + "\" lives from " + std::to_string(lower) + " to " +
         std::to_string(upper) + ", which is not a range of waves");
  upper += after;
  struct Gap {
    int64_t lower, upper;
    int64_t begin = 0, end = 0; ///< bytes that stay in use
  };
  std::vector<Gap> gaps;
  std::vector<std::string_view> texts, parts;
  split(get(Gaps), ' ', texts);
  for (std::string_view text : texts) {
    if (text.empty())
      continue;
    std::string_view waves = text.substr(0, text.find('@'));
    size_t dash = waves.find('-', 1);
    if (dash == std::string_view::npos)
      fail("gap \"" + std::string(text) + "\" is not of the form a-b or a-b@lo:hi");
    Gap gap{parseInteger(waves.substr(0, dash), "a gap's begin"),
            parseInteger(waves.substr(dash + 1), "a gap's end")};
    if (gap.upper > upper || (gap.upper += after) > upper || gap.lower < lower ||
        gap.lower >= gap.upper)
      fail("gap \"" + std::string(text) + "\" is not within the life of its buffer");
    if (waves.size() < text.size()) {
      split(text.substr(waves.size() + 1), ':', parts);
      if (parts.size() != 2)
        fail("gap \"" + std::string(text) + "\" is not of the form a-b or a-b@lo:hi");
      gap.begin = parseInteger(parts[0], "the begin of a gap's bytes");
      gap.end = parseInteger(parts[1], "the end of a gap's bytes");
      if (gap.begin < 0 || gap.end < gap.begin || gap.end > buffer.bytes)
        fail("gap \"" + std::string(text) + "\" leaves bytes outside of its buffer");
    }
    gaps.push_back(gap);
  }
  std::sort(gaps.begin(), gaps.end(), [](const Gap &a, const Gap &b) { return a.lower < b.lower; });
  int64_t from = lower;
  for (const Gap &gap : gaps) {
    if (gap.lower < from)
      fail("buffer \"" + buffer.name + "\" has gaps that overlap");
    if (from < gap.lower)
      buffer.live.push_back({from, gap.lower - 1});
    if (gap.begin < gap.end)
      buffer.live.push_back({gap.lower, gap.upper - 1, gap.begin, gap.end});
    from = gap.upper;
  }
  if (from < upper)
    buffer.live.push_back({from, upper - 1});
  if (buffer.live.empty())
    fail("buffer \"" + buffer.name + "\" lives from " + std::to_string(lower) + " to " +
         std::to_string(upper) + ", all of it gaps");
}

void Parser::parse(std::string_view line, size_t lineNumber) {
  number = lineNumber;
  if (!hasHead) {
    parseHead(line);
    hasHead = true;
    return;
  }
  split(line, ',', fields);
  if (fields.size() != width)
    fail("has " + std::to_string(fields.size()) + " fields, the head has " + std::to_string(width));
  if (!ids.insert(get(Id)).second)
    fail("buffer \"" + std::string(get(Id)) + "\" is repeated");
  size_t index = problem.buffers.size();
  Buffer &buffer = problem.buffers.emplace_back();
  buffer.name = get(Id);
  buffer.bytes = parseInteger(get(Size), "size");
  if (buffer.bytes < 0)
    fail("buffer \"" + buffer.name + "\" has size " + std::to_string(buffer.bytes) +
         "; sizes begin at 0");
  if (!get(Alignment).empty())
    buffer.alignment = parseInteger(get(Alignment), "alignment");
  if (buffer.alignment < 1)
    fail("buffer \"" + buffer.name + "\" has alignment " + std::to_string(buffer.alignment) +
         "; alignments begin at 1");
  parseLife(buffer);
  if (!get(Hint).empty())
    if (int64_t hint = parseInteger(get(Hint), "hint"); hint >= 0)
      buffer.hint = hint;
  if (!get(Offset).empty()) {
    buffer.fixed = parseInteger(get(Offset), "offset");
    if (*buffer.fixed < 0)
      fail("buffer \"" + buffer.name + "\" has offset " + std::to_string(*buffer.fixed) +
           "; offsets begin at 0");
  }
  auto [space, isNew] = spaces.try_emplace(get(Space), spaces.size());
  buffer.space = space->second;
  if (isNew && space->second > 0)
    problem.spaces.emplace_back();
  problem.spaces[space->second].name = get(Space);
  if (!get(Chain).empty()) {
    auto [chain, isFirst] = chains.try_emplace(get(Chain), problem.chains.size());
    if (isFirst)
      problem.chains.emplace_back();
    problem.chains[chain->second].push_back(index);
  }
  if (!get(Group).empty()) {
    auto [group, isFirst] = groups.try_emplace(get(Group), problem.groups.size());
    if (isFirst)
      problem.groups.emplace_back();
    problem.groups[group->second].buffers.push_back(index);
  }
}

PlanProblem Parser::finish() && {
  if (!hasHead)
    throw Error(where + " is empty; its first line names the columns: id,lower,upper,size");
  return std::move(problem);
}

PlanProblem weir::parsePlanCsv(std::string_view text, const std::string &where) {
  Parser parser(where, size_t(std::count(text.begin(), text.end(), '\n')));
  forEachLine(text, [&](std::string_view line, size_t number) { parser.parse(line, number); });
  return std::move(parser).finish();
}

std::string weir::printPlanCsv(std::string_view csv, const BufferPlan &plan) {
  std::string result;
  result.reserve(csv.size() + plan.offsets.size() * 8);
  std::vector<std::string_view> fields;
  size_t row = 0, offset = std::string_view::npos; // begin of the column "offset", if there is one
  bool isHead = true;
  forEachLine(csv, [&](std::string_view line, size_t) {
    split(line, ',', fields);
    std::string value = isHead ? "offset" : std::to_string(plan.offsets[row++]);
    if (isHead) {
      auto known = std::find(fields.begin(), fields.end(), "offset");
      if (known != fields.end())
        offset = size_t(known - fields.begin());
      isHead = false;
    }
    if (offset == std::string_view::npos)
      fields.push_back(value);
    else
      fields[offset] = value;
    for (size_t i = 0; i < fields.size(); ++i) {
      result += i ? "," : "";
      result += fields[i];
    }
    result += '\n';
  });
  return result;
}

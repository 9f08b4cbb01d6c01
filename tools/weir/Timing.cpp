//===- Timing.cpp - Times of compilation steps ----------------------------===//

#include "Timing.h"
#include "Output.h"
#include "weir/Artifact/Artifact.h"

#include <algorithm>
#include <cstdio>
#include <sys/resource.h>
#include <tuple>

using namespace weir;
using namespace weir::tool;

void Timing::end() {
  seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  rusage usage = {};
  getrusage(RUSAGE_SELF, &usage);
  peakMegabytes = double(usage.ru_maxrss) * 1024 / 1e6; // Linux counts KiB
}

/// Returns the steps in the order of their begins, each before its parts.
std::vector<CompileStep> Timing::sortSteps() const {
  std::vector<CompileStep> sorted = steps;
  std::sort(sorted.begin(), sorted.end(), [](const auto &a, const auto &b) {
    return std::tuple(a.begin, a.depth, a.seconds) < std::tuple(b.begin, b.depth, b.seconds);
  });
  return sorted;
}

namespace {
/// A line of the table.
struct Row {
  std::string name;
  double seconds = 0;
  bool hasOps = false;
  int64_t opsBefore = 0, opsAfter = 0;
};

/// A step and its parts.
struct Group {
  Row whole;
  std::vector<Row> parts;
};
} // namespace

/// Adds a part to a group; a pass that ran before on another function shares its row.
static void addPart(Group &group, const CompileStep &step) {
  bool isPass = step.kind == CompileStep::Kind::Pass;
  auto row = std::find_if(group.parts.begin(), group.parts.end(),
                          [&](const Row &other) { return other.name == step.name; });
  if (row == group.parts.end())
    row = group.parts.insert(row, {step.name, 0, isPass, 0, 0});
  row->seconds += step.seconds;
  if (!isPass)
    return;
  if (!group.whole.hasOps) {
    group.whole.hasOps = true;
    group.whole.opsBefore = step.opsBefore;
  }
  group.whole.opsAfter = step.opsAfter;
  row->opsAfter += step.opsAfter - step.opsBefore; // the change, until all parts are added
}

/// Sets each pass's number of ops before it to that after the previous pass. Function passes
/// run function by function.
static void chainOps(Group &group) {
  int64_t ops = group.whole.opsBefore;
  for (Row &row : group.parts)
    if (row.hasOps) {
      row.opsBefore = ops;
      ops += row.opsAfter;
      row.opsAfter = ops;
    }
}

void Timing::print(std::ostream &out) const {
  std::vector<Group> groups;
  double rest = seconds;
  for (const CompileStep &step : sortSteps()) {
    if (step.depth == 0) {
      groups.push_back({{step.name, step.seconds}, {}});
      rest -= step.seconds;
    } else if (step.depth == 1) {
      addPart(groups.back(), step);
    }
  }

  std::vector<std::vector<std::string>> rows;
  auto format = [](const char *pattern, double number) {
    char text[32];
    std::snprintf(text, sizeof(text), pattern, number);
    return std::string(text);
  };
  auto add = [&](const Row &row, const char *indent) {
    rows.push_back({indent + row.name, format("%.3f", row.seconds),
                    format("%.1f%%", seconds > 0 ? row.seconds / seconds * 100 : 0),
                    row.hasOps ? std::to_string(row.opsBefore) : "",
                    row.hasOps ? std::to_string(row.opsAfter) : "", ""});
  };
  for (Group &group : groups) {
    chainOps(group);
    add(group.whole, "");
    double inside = group.whole.seconds;
    for (const Row &part : group.parts) {
      add(part, "  ");
      inside -= part.seconds;
    }
    if (!group.parts.empty())
      add({"other", std::max(inside, 0.0)}, "  ");
  }
  add({"other", std::max(rest, 0.0)}, "");
  add({"total", seconds}, "");
  rows.back().back() = format("%.1f", peakMegabytes);
  printTable({"step", "seconds", "share", "ops before", "ops after", "peak MB"}, rows, out);
}

void Timing::writeTrace(const std::string &path) const {
  auto event = [](const std::string &name, const char *category, double begin, double seconds) {
    return Json{{"name", name},         {"cat", category}, {"ph", "X"}, {"ts", begin * 1e6},
                {"dur", seconds * 1e6}, {"pid", 0},        {"tid", 0},  {"args", Json::object()}};
  };
  Json events = Json::array();
  events.push_back(event("total", "step", 0, seconds));
  events.back()["args"]["peak memory in MB"] = peakMegabytes;
  for (const CompileStep &step : sortSteps()) {
    bool isPass = step.kind == CompileStep::Kind::Pass;
    bool isLevel = step.kind == CompileStep::Kind::Level;
    const char *category = isPass ? "pass" : isLevel ? "level" : "step";
    events.push_back(event(step.name, category, step.begin, step.seconds));
    if (isPass)
      events.back()["args"] = {{"ops before", step.opsBefore}, {"ops after", step.opsAfter}};
  }
  // Names come from files: replace invalid UTF-8.
  writeText(path, Json({{"traceEvents", events}, {"displayTimeUnit", "ms"}})
                          .dump(1, ' ', false, Json::error_handler_t::replace) +
                      "\n");
}

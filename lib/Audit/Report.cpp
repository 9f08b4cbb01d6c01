//===- Report.cpp - Prints findings for people and programs ---------------===//

#include "weir/Audit/Audit.h"

#include "nlohmann/json.hpp"

using namespace weir;
using namespace weir::audit;

static const char *getName(HazardKind kind) {
  static const char *const names[] = {"RAW", "WAR", "WAW"};
  return names[size_t(kind)];
}

static const char *getReason(const Finding &finding) {
  if (!finding.isOrdered)
    return "nothing orders the two";
  return "the order does not make it visible";
}

static std::string join(const std::vector<std::string> &names) {
  std::string text;
  for (const std::string &name : names)
    text += (text.empty() ? "" : " | ") + name;
  return text;
}

/// Returns "from COMPUTE_SHADER (SHADER_STORAGE_WRITE) to COMPUTE_SHADER (SHADER_STORAGE_READ)".
static std::string describe(const Scopes &scopes) {
  auto name = [](Stages stages, Accesses accesses) {
    return join(nameStages(stages)) +
           (accesses ? " (" + join(nameAccesses(accesses)) + ")" : std::string());
  };
  return "from " + name(scopes.from, scopes.fromAccess) + " to " + name(scopes.to, scopes.toAccess);
}

static std::string describe(const BufferRange &range) {
  return "bytes [" + std::to_string(range.begin) + ", " + std::to_string(range.end) + ") of " +
         range.buffer->name;
}

static nlohmann::ordered_json makeJson(const Scopes &scopes) {
  return {{"from_stages", nameStages(scopes.from)},
          {"from_accesses", nameAccesses(scopes.fromAccess)},
          {"to_stages", nameStages(scopes.to)},
          {"to_accesses", nameAccesses(scopes.toAccess)}};
}

static std::string count(int64_t number, const std::string &noun) {
  return std::to_string(number) + " " + noun + (number == 1 ? "" : "s");
}

std::string weir::audit::print(const Summary &summary, const std::string &device,
                               const std::map<std::string, int64_t> &unseen) {
  std::string text;
  auto add = [&](const std::string &line) { text += "weir-audit: " + line + "\n"; };
  for (const Finding &finding : summary.findings) {
    bool doesWrite = finding.kind != HazardKind::RAW, didWrite = finding.kind != HazardKind::WAR;
    add(std::string(finding.isCertain ? "missing " : "possible ") + getName(finding.kind) + ": " +
        finding.to->name + (doesWrite ? " writes" : " reads") + " bytes [" +
        std::to_string(finding.begin) + ", " + std::to_string(finding.end) + ") of " +
        finding.buffer->name + " that " + finding.from->name + (didWrite ? " writes" : " reads") +
        ": " + getReason(finding) +
        (finding.times > 1 ? " (" + std::to_string(finding.times) + " times)" : "") +
        (finding.isOfOneQueue
             ? "; a barrier " + describe(finding.scopes) + " for these bytes suffices"
             : "; they are on two queues, which a semaphore orders: signalled after " +
                   join(nameStages(finding.scopes.from)) + ", waited for in " +
                   join(nameStages(finding.scopes.to))));
  }
  for (const WideBarrier &barrier : summary.wideBarriers) {
    std::string ranges;
    for (const BufferRange &range : barrier.ranges)
      ranges += (ranges.empty() ? "" : " and ") + describe(range);
    add("too wide: " + barrier.name + " names stages that nothing needs; a barrier " +
        describe(barrier.scopes) + " for " + ranges + " suffices");
  }
  for (const std::string &name : summary.needlessNames)
    add("needless: " + name);
  if (summary.unsignalled)
    add("not looked at: who signals what " + count(summary.unsignalled, "submission") +
        " waited for");
  for (const auto &[what, times] : unseen)
    add("not looked at: " + what + " (" + count(times, "time") + ")");
  add(device + ": " + std::to_string(summary.missing) + " missing, " +
      std::to_string(summary.possible) + " possible, " + std::to_string(summary.needless) +
      " needless of " + count(summary.barriers, "barrier") + " (" +
      std::to_string(summary.notJudged) + " not judged" +
      (summary.tooWide ? ", " + std::to_string(summary.tooWide) + " too wide" : std::string()) +
      "), in " + std::to_string(summary.dispatches) + " dispatches and " +
      count(summary.transfers, "transfer"));
  return text;
}

std::string weir::audit::printJson(const Summary &summary, const std::string &device,
                                   const std::map<std::string, int64_t> &unseen) {
  nlohmann::ordered_json json;
  json["device"] = device;
  json["dispatches"] = summary.dispatches;
  json["transfers"] = summary.transfers;
  json["barriers"] = summary.barriers;
  json["not_judged"] = summary.notJudged;
  json["missing"] = summary.missing;
  json["possible"] = summary.possible;
  json["needless"] = summary.needless;
  json["findings"] = nlohmann::ordered_json::array();
  for (const Finding &finding : summary.findings)
    json["findings"].push_back({{"kind", getName(finding.kind)},
                                {"certain", finding.isCertain},
                                {"ordered", finding.isOrdered},
                                {"from", finding.from->name},
                                {"to", finding.to->name},
                                {"buffer", finding.buffer->name},
                                {"bytes", {finding.begin, finding.end}},
                                {"times", finding.times},
                                {"one_queue", finding.isOfOneQueue},
                                {"suffices", makeJson(finding.scopes)}});
  json["needless_barriers"] = summary.needlessNames;
  json["too_wide"] = summary.tooWide;
  json["wide_barriers"] = nlohmann::ordered_json::array();
  for (const WideBarrier &barrier : summary.wideBarriers) {
    nlohmann::ordered_json ranges = nlohmann::ordered_json::array();
    for (const BufferRange &range : barrier.ranges)
      ranges.push_back({{"buffer", range.buffer->name}, {"bytes", {range.begin, range.end}}});
    json["wide_barriers"].push_back(
        {{"barrier", barrier.name}, {"suffices", makeJson(barrier.scopes)}, {"ranges", ranges}});
  }
  json["unsignalled"] = summary.unsignalled;
  json["not_looked_at"] = unseen;
  // Names are an application's, and may be anything.
  return json.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
}

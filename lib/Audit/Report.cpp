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
        (finding.times > 1 ? " (" + std::to_string(finding.times) + " times)" : ""));
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
      std::to_string(summary.notJudged) + " not judged), in " + std::to_string(summary.dispatches) +
      " dispatches and " + count(summary.transfers, "transfer"));
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
                                {"times", finding.times}});
  json["needless_barriers"] = summary.needlessNames;
  json["unsignalled"] = summary.unsignalled;
  json["not_looked_at"] = unseen;
  // Names are an application's, and may be anything.
  return json.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
}

//===- Explain.cpp - weir explain -----------------------------------------===//

#include "ExplainPage.h"
#include "Explanation.h"
#include "Invocation.h"
#include "Verbs.h"

#include <algorithm>
#include <iostream>
#include <memory>

using namespace weir;
using namespace weir::tool;

namespace {
struct ExplainOptions {
  std::string input, entry, target, diff, html, trace;
  bool dispatches = false, barriers = false, memory = false, donation = false, kernels = false;
  bool json = false;

  bool hasTable() const { return dispatches || barriers || memory || donation || kernels; }
};
} // namespace

/// Returns the plans of the requested entry and target; "" means all. Errors: `Error` when
/// there is none.
static std::vector<PlanStory> explainPlans(const Artifact &artifact, const std::string &entry,
                                           const std::string &target) {
  if (!entry.empty())
    findEntry(artifact, entry);
  std::vector<PlanStory> stories;
  std::string known;
  for (const Profile &profile : artifact.manifest.targets)
    known += (known.empty() ? "'" : ", '") + profile.target + "'";
  for (const Plan &plan : artifact.plans)
    if ((entry.empty() || plan.entry == entry) && (target.empty() || plan.target == target))
      stories.push_back(explainPlan(artifact, plan));
  if (stories.empty())
    throw Error(target.empty() ? "the artifact has no entries"
                               : "the artifact has no target '" + target + "'; it has " + known);
  return stories;
}

//===----------------------------------------------------------------------===//
// Text
//===----------------------------------------------------------------------===//

static std::string printBytes(int64_t bytes) { return std::to_string(bytes) + " bytes"; }

/// Returns the saving as a cell of the table; "-" if there is none.
static std::string printSaving(const std::optional<int64_t> &saving) {
  return saving ? std::to_string(*saving) : "-";
}

static std::string getHeading(const PlanStory &story) {
  return "entry " + story.plan->entry + ", target " + story.plan->target;
}

static void printSummary(const PlanStory &story) {
  Json summary = summarize(story);
  auto get = [&](const char *key) { return summary[key].dump(); };
  std::vector<std::vector<std::string>> rows = {
      {"kernels", get("kernels")},
      {"dispatches", get("dispatches") + " in " + printCount(story.waves.size(), "wave")},
      {"barriers", get("barriers")},
      {"queues", get("queues")},
      {"arena", get("arena_bytes") + " bytes; " + get("pinned_bytes") +
                    " if every value had bytes of its own"}};
  if (story.queues > 1)
    rows[3][1] += ", " + get("signals") + " signals, " + get("waits") + " waits";
  if (!summary["memory_limit"].is_null())
    rows.push_back({"limit", get("memory_limit") + " bytes of arena"});
  for (const auto &[kind, bytes] : summary["argument_bytes"].items())
    rows.push_back({"arguments, " + kind, bytes.dump() + " bytes"});
  rows.push_back({"results", get("result_bytes") + " bytes"});
  rows.push_back({"constants", get("constant_bytes") + " bytes"});
  if (!story.donations.empty())
    rows.push_back({"donated", get("donations_accepted") + " of " + get("donated") +
                                   " arguments give their bytes to a result"});
  if (!story.peak.empty())
    rows.push_back({"peak", get("most_live_bytes") + " bytes of " +
                                printCount(story.peak.size(), "value") + ", in wave " +
                                get("peak_wave") + "; the largest:"});
  printTable({getHeading(story), ""}, rows);
  rows.clear();
  for (size_t i = 0; i < std::min<size_t>(story.peak.size(), 5); ++i) {
    const Residence &residence = story.residences[story.peak[i].residence];
    rows.push_back({"  " + story.getValueName(residence.value), printBytes(residence.bytes),
                    story.getSource(residence)});
  }
  if (!rows.empty())
    printTable({"  value", "size", "source"}, rows);
}

static void printOverview(const std::vector<PlanStory> &stories) {
  std::vector<std::vector<std::string>> rows;
  for (const PlanStory &story : stories) {
    const Plan &plan = *story.plan;
    rows.push_back({plan.entry, plan.target, std::to_string(plan.kernels.size()),
                    std::to_string(story.dispatches.size()), std::to_string(story.barriers.size()),
                    std::to_string(story.queues), std::to_string(plan.arenaBytes),
                    std::to_string(plan.pinnedBytes),
                    std::to_string(summarize(story)["donations_accepted"].get<size_t>()) + " of " +
                        std::to_string(story.donations.size())});
  }
  printTable({"entry", "target", "kernels", "dispatches", "barriers", "queues", "arena bytes",
              "all pinned", "donated"},
             rows);
  std::cout << "--entry and --target choose one, and show what is live at its peak\n";
}

static std::string printMicroseconds(double time) {
  char text[32];
  std::snprintf(text, sizeof(text), "%.1f", time);
  return text;
}

static std::string join(const Json &names) {
  std::string text;
  for (const Json &name : names)
    text += (text.empty() ? "" : ", ") + name.get<std::string>();
  return text;
}

static void printDispatches(const PlanStory &story, const std::vector<double> &times) {
  std::vector<std::vector<std::string>> rows;
  for (const Json &row : listDispatches(story)) {
    rows.push_back({row["dispatch"].dump(), row["wave"].dump(), row["queue"].dump(), row["kernel"],
                    row["source"], row["bytes"].dump(), join(row["reads"]), join(row["writes"])});
    if (!times.empty())
      rows.back().insert(rows.back().begin() + 3, printMicroseconds(times[row["dispatch"]]));
  }
  std::vector<std::string> head = {"dispatch", "wave",  "queue", "kernel",
                                   "source",   "bytes", "reads", "writes"};
  if (!times.empty())
    head.insert(head.begin() + 3, "us");
  printTable(head, rows);
}

static void printMemory(const PlanStory &story) {
  if (story.peak.empty())
    std::cout << "no value lives in the arena\n";
  else
    std::cout << "peak: " << printBytes(story.getPeakBytes()) << " of "
              << printCount(story.peak.size(), "value") << " are live in wave "
              << story.waves[story.peakWave] << "; the arena has "
              << printBytes(story.plan->arenaBytes) << "\n\n";
  std::vector<const PeakValue *> atPeak(story.residences.size());
  std::vector<size_t> order;
  for (const PeakValue &value : story.peak) {
    atPeak[value.residence] = &value;
    order.push_back(value.residence);
  }
  for (size_t i = 0; i < story.residences.size(); ++i)
    if (!atPeak[i])
      order.push_back(i);
  if (order.empty())
    return;
  std::vector<std::vector<std::string>> rows;
  for (size_t i : order) {
    const Residence &residence = story.residences[i];
    rows.push_back({story.getValueName(residence.value), std::to_string(residence.bytes),
                    std::to_string(residence.offset),
                    std::to_string(story.waves[residence.firstWave]) + " to " +
                        std::to_string(story.waves[residence.lastWave]),
                    std::to_string(residence.readers.size()), atPeak[i] ? "yes" : "",
                    atPeak[i] ? printSaving(atPeak[i]->repeatSaves) : "",
                    atPeak[i] ? printSaving(atPeak[i]->moveSaves) : "",
                    story.getSource(residence)});
  }
  printTable({"value", "bytes", "at", "waves", "readers", "at peak", "repeat saves", "move saves",
              "source"},
             rows);
  std::cout
      << "\n'repeat saves': max decrease of the peak in bytes, if the value is dropped between "
         "its uses around\nthe peak and recomputed. 'move saves': the same, if its writer "
         "runs as late, or its last reader as\nearly, as dependences allow. Both count live "
         "bytes; they do not plan the arena again.\n";
}

static void printKernels(const PlanStory &story) {
  if (!story.notes || story.notes->kernels.empty())
    std::cout << "the artifact has no notes on kernels; compile it from the graph level\n";
  for (const Json &kernel : listKernels(story)) {
    std::cout << kernel["kernel"].get<std::string>() << ": runs "
              << printCount(kernel["dispatches"].size(), "time") << ", "
              << kernel["code_bytes"].dump() << " bytes of code\n";
    if (!kernel.contains("ops"))
      continue;
    for (const Json &op : kernel["ops"])
      std::cout << "  " << op["op"].get<std::string>() << " (" << op["source"].get<std::string>()
                << ")\n";
    for (const Json &other : kernel["apart_from"])
      std::cout << "  not fused with "
                << (other["reads_from_it"].get<bool>() ? "its reader " : "its producer ")
                << other["kernel"].get<std::string>() << ": " << other["why"].get<std::string>()
                << "\n";
  }
}

//===----------------------------------------------------------------------===//
// The verb
//===----------------------------------------------------------------------===//

static Json getDifferences(const std::vector<PlanChange> &changes) {
  Json list = Json::array();
  for (const PlanChange &change : changes) {
    Json rows = Json::array();
    for (const Difference &difference : change.differences)
      rows.push_back({{"what", difference.what}, {"sentence", difference.sentence}});
    list.push_back({{"entry", change.entry}, {"target", change.target}, {"differences", rows}});
  }
  return list;
}

/// Compares the plans with those that another artifact has for the same entries and targets.
static std::vector<PlanChange> compareArtifacts(const std::vector<PlanStory> &stories,
                                                const Artifact &other, const std::string &path) {
  std::vector<PlanChange> changes;
  for (const PlanStory &story : stories)
    if (const Plan *plan = other.findPlan(story.plan->entry, story.plan->target))
      changes.push_back(
          {story.plan->entry, story.plan->target, comparePlans(story, explainPlan(other, *plan))});
  if (changes.empty())
    throw Error("--diff=" + path +
                " has no plan of the same entry and target to compare with; "
                "choose artifacts of one graph");
  return changes;
}

static Json toJson(const ExplainOptions &options, const std::vector<PlanStory> &stories,
                   const std::vector<PlanChange> &changes, const PlanTimes &times) {
  Json plans = Json::array();
  for (const PlanStory &story : stories) {
    Json plan = {{"summary", summarize(story)}};
    if (options.dispatches) {
      plan["dispatches"] = listDispatches(story);
      if (times.plan == story.plan)
        for (size_t i = 0; i < times.microseconds.size(); ++i)
          plan["dispatches"][i]["microseconds"] = tool::toJson(times.microseconds[i]);
    }
    if (options.barriers)
      plan["barriers"] = listBarriers(story);
    if (options.memory)
      plan["memory"] = listMemory(story);
    if (options.donation)
      plan["donation"] = listDonations(story);
    if (options.kernels)
      plan["kernels"] = listKernels(story);
    plans.push_back(std::move(plan));
  }
  Json json = {{"artifact", options.input},
               {"producer", stories.front().artifact->manifest.producer},
               {"plans", plans}};
  if (!options.diff.empty())
    json["diff"] = {{"artifact", options.diff}, {"plans", getDifferences(changes)}};
  return json;
}

static void printTables(const ExplainOptions &options, const PlanStory &story,
                        const PlanTimes &times) {
  std::cout << getHeading(story) << "\n";
  if (options.dispatches) {
    std::cout << "\n";
    printDispatches(story, times.plan == story.plan ? times.microseconds : std::vector<double>());
  }
  if (options.barriers) {
    std::cout << "\n";
    for (const BarrierStory &barrier : story.barriers)
      std::cout << barrier.sentence << "\n";
    if (story.barriers.empty())
      std::cout << "no barriers\n";
  }
  if (options.memory) {
    std::cout << "\n";
    printMemory(story);
  }
  if (options.donation) {
    std::cout << "\n";
    for (const DonationStory &donation : story.donations)
      std::cout << donation.sentence << "\n";
    if (story.donations.empty())
      std::cout << "no argument is donated\n";
  }
  if (options.kernels) {
    std::cout << "\n";
    printKernels(story);
  }
}

static int runExplain(const ExplainOptions &options) {
  Artifact artifact = readArtifact(options.input);
  std::vector<PlanStory> stories = explainPlans(artifact, options.entry, options.target);
  std::vector<PlanChange> changes;
  std::optional<Artifact> other;
  if (!options.diff.empty()) {
    other = readArtifact(options.diff);
    changes = compareArtifacts(stories, *other, options.diff);
  }
  PlanTimes times;
  if (!options.trace.empty()) {
    if (options.html.empty() && !options.dispatches)
      throw Error("--trace is for --html and --dispatches, which show times");
    times = readTrace(options.trace, stories);
  }
  if (!options.html.empty()) {
    refuseOverwriting("--html", options.html, {options.input, options.diff, options.trace});
    writePage(options.html, options.input, stories, changes, options.diff, times);
  }

  if (options.json)
    printJson(toJson(options, stories, changes, times));
  else if (options.hasTable())
    for (size_t i = 0; i < stories.size(); ++i) {
      std::cout << (i ? "\n" : "");
      printTables(options, stories[i], times);
    }
  else if (!options.html.empty())
    return Done;
  else if (!options.diff.empty())
    for (const PlanChange &change : changes) {
      std::cout << "entry " << change.entry << ", target " << change.target << ", from "
                << options.input << " to " << options.diff << "\n";
      for (const Difference &difference : change.differences)
        std::cout << "  " << difference.sentence << "\n";
      if (change.differences.empty())
        std::cout << "  nothing changed\n";
    }
  else {
    std::cout << options.input << ", made by " << artifact.manifest.producer << "\n\n";
    if (stories.size() > 1)
      printOverview(stories);
    else
      printSummary(stories.front());
  }
  return Done;
}

void tool::addExplain(CLI::App &app, Verb &chosen) {
  auto options = std::make_shared<ExplainOptions>();
  CLI::App *verb = app.add_subcommand(
      "explain", "Explain the memory, barriers, donations and kernels of a plan");
  verb->add_option("artifact", options->input, "The artifact")->required()->type_name("X.weir");
  verb->add_option("--entry", options->entry, "The entry (default all)")->type_name("ENTRY");
  verb->add_option("--target", options->target, "The target (default all)")->type_name("TARGET");
  verb->add_flag("--dispatches", options->dispatches, "List the dispatches");
  verb->add_flag("--barriers", options->barriers,
                 "List the barriers, each with the two accesses that force it");
  verb->add_flag("--memory", options->memory,
                 "List the values in the arena, those live at the peak first");
  verb->add_flag("--donation", options->donation,
                 "List the donated arguments, and why no result reuses their bytes");
  verb->add_flag(
      "--kernels", options->kernels,
      "List the kernels with their ops, and why they are not fused with their neighbours");
  verb->add_option("--diff", options->diff, "List the changes from X.weir to Y.weir")
      ->type_name("Y.weir");
  verb->add_option("--html", options->html, "Write everything as one self-contained page")
      ->type_name("FILE.html");
  verb->add_option("--trace", options->trace,
                   "A trace by 'weir run --profile' with times for --html and --dispatches")
      ->type_name("TRACE.json");
  verb->add_flag("--json", options->json, "Print JSON");
  verb->callback([options, &chosen] { chosen = [options] { return runExplain(*options); }; });
}

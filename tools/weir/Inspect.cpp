//===- Inspect.cpp - weir inspect -----------------------------------------===//

#include "Output.h"
#include "Verbs.h"
#include "weir/Artifact/Artifact.h"

#include <algorithm>
#include <iostream>
#include <memory>

using namespace weir;
using namespace weir::tool;

namespace {
/// What a plan has.
struct PlanCounts {
  explicit PlanCounts(const Plan &plan) : kernels(plan.kernels.size()), slots(plan.slots.size()) {
    for (const Command &command : plan.commands)
      ++(command.kind == Command::Kind::Barrier ? barriers : dispatches);
  }
  size_t kernels, slots, dispatches = 0, barriers = 0;
};
} // namespace

static Json toJson(const std::vector<TensorSpec> &tensors) {
  Json list = Json::array();
  for (const TensorSpec &tensor : tensors) {
    Json item = {{"name", tensor.name}, {"dtype", tensor.dtype}, {"shape", tensor.shape}};
    if (!tensor.kind.empty())
      item["kind"] = tensor.kind;
    if (tensor.donate)
      item["donate"] = true;
    list.push_back(std::move(item));
  }
  return list;
}

static void printAsJson(const Artifact &artifact) {
  Json entries = Json::array(), plans = Json::array(), targets = Json::array();
  for (const EntrySpec &entry : artifact.manifest.entries)
    entries.push_back({{"name", entry.name},
                       {"arguments", toJson(entry.arguments)},
                       {"results", toJson(entry.results)}});
  for (const Plan &plan : artifact.plans) {
    PlanCounts counts(plan);
    plans.push_back({{"entry", plan.entry},
                     {"target", plan.target},
                     {"kernels", counts.kernels},
                     {"dispatches", counts.dispatches},
                     {"barriers", counts.barriers},
                     {"slots", counts.slots},
                     {"arena_bytes", plan.arenaBytes},
                     {"pinned_bytes", plan.pinnedBytes}});
  }
  for (const Profile &profile : artifact.manifest.targets)
    targets.push_back(Json::parse(printProfile(profile)));
  printJson({{"producer", artifact.manifest.producer},
             {"entries", entries},
             {"plans", plans},
             {"constant_bytes", artifact.constants.size()},
             {"requires", targets}});
}

static void printAsTables(const Artifact &artifact) {
  std::cout << "made by " << artifact.manifest.producer << "; "
            << artifact.manifest.constants.size() << " constants, " << artifact.constants.size()
            << " bytes\n\n";
  std::vector<std::vector<std::string>> rows;
  for (const EntrySpec &entry : artifact.manifest.entries) {
    for (const TensorSpec &tensor : entry.arguments)
      rows.push_back({entry.name, "argument", tensor.name, tensor.dtype, printShape(tensor.shape),
                      tensor.kind + (tensor.donate ? " (donated)" : "")});
    for (const TensorSpec &tensor : entry.results)
      rows.push_back(
          {entry.name, "result", tensor.name, tensor.dtype, printShape(tensor.shape), ""});
  }
  printTable({"entry", "", "name", "dtype", "shape", "kind"}, rows);
  std::cout << "\n";

  rows.clear();
  for (const Plan &plan : artifact.plans) {
    PlanCounts counts(plan);
    rows.push_back({plan.entry, plan.target, std::to_string(counts.kernels),
                    std::to_string(counts.dispatches), std::to_string(counts.barriers),
                    std::to_string(counts.slots), std::to_string(plan.arenaBytes),
                    std::to_string(plan.pinnedBytes)});
  }
  printTable(
      {"entry", "target", "kernels", "dispatches", "barriers", "slots", "peak bytes", "all pinned"},
      rows);
  for (const Profile &profile : artifact.manifest.targets)
    std::cout << "\nrequires, for target " << profile.target << ":\n" << printProfile(profile);
}

void tool::addInspect(CLI::App &app, Verb &chosen) {
  auto path = std::make_shared<std::string>();
  auto json = std::make_shared<bool>(false);
  CLI::App *verb = app.add_subcommand("inspect", "Show what an artifact holds and requires");
  verb->footer("'peak bytes' is the arena as planned; 'all pinned' is what it would be if every\n"
               "value had bytes of its own. Arguments, results and constants come on top.");
  verb->add_option("artifact", *path, "The artifact")->required()->type_name("X.weir");
  verb->add_flag("--json", *json, "Print JSON");
  verb->callback([path, json, &chosen] {
    chosen = [path, json] {
      Artifact artifact = readArtifact(*path);
      (*json ? printAsJson : printAsTables)(artifact);
      return Done;
    };
  });
}

//===- Inspect.cpp - weir inspect -----------------------------------------===//

#include "Model.h"
#include "Output.h"
#include "Verbs.h"
#include "WithCompiler.h"
#include "weir/Artifact/Artifact.h"
#include "weir/Artifact/Loops.h"

#include <algorithm>
#include <iostream>
#include <memory>
#include <set>

using namespace weir;
using namespace weir::tool;

namespace {
/// The size of a plan.
struct PlanCounts {
  explicit PlanCounts(const Plan &plan) : kernels(plan.kernels.size()), slots(plan.slots.size()) {
    for (const Command &command : plan.commands) {
      dispatches += command.kind == Command::Kind::Dispatch;
      barriers += command.kind == Command::Kind::Barrier;
      waits += command.kind == Command::Kind::Wait;
      queues = std::max(queues, size_t(command.queue) + 1);
    }
  }
  size_t kernels, slots, dispatches = 0, barriers = 0, waits = 0, queues = 1;
};
} // namespace

static const EntrySpec &getEntry(const Artifact &artifact, const Plan &plan) {
  return *std::find_if(artifact.manifest.entries.begin(), artifact.manifest.entries.end(),
                       [&](const EntrySpec &entry) { return entry.name == plan.entry; });
}

namespace {
/// The bytes that a run takes in each memory: arguments and results, constants and the arena.
struct MemoryBytes {
  MemoryBytes(const Artifact &artifact, const Plan &plan)
      : onDevice(plan.arenaBytes + int64_t(artifact.constants.size())) {
    const EntrySpec &entry = getEntry(artifact, plan);
    for (const TensorSpec &argument : entry.arguments)
      add(argument);
    std::vector<bool> isInArgument(entry.results.size());
    for (const Allocation &allocation : plan.allocations)
      if (allocation.kind == AllocationKind::Argument && allocation.result >= 0)
        isInArgument[size_t(allocation.result)] = true;
    for (size_t i = 0; i < entry.results.size(); ++i)
      if (!isInArgument[i])
        add(entry.results[i]);
  }
  void add(const TensorSpec &tensor) {
    (tensor.isInHost ? inHost : onDevice) += getByteSize(tensor);
  }
  int64_t onDevice, inHost = 0;
};

/// A donated argument and the result that reuses its bytes.
struct Donation {
  std::string argument, result; ///< "": no result
};
} // namespace

static std::vector<Donation> getDonations(const Plan &plan, const EntrySpec &entry) {
  std::vector<Donation> donations;
  for (size_t i = 0; i < entry.arguments.size(); ++i) {
    if (!entry.arguments[i].donate)
      continue;
    donations.push_back({entry.arguments[i].name, ""});
    for (const Allocation &allocation : plan.allocations)
      if (allocation.kind == AllocationKind::Argument && allocation.index == int64_t(i) &&
          allocation.result >= 0)
        donations.back().result = entry.results[allocation.result].name;
  }
  return donations;
}

/// Returns the names of the values that each slot holds, in the order of their use.
static std::vector<std::vector<std::string>> getSlotValues(const Plan &plan) {
  std::vector<std::vector<std::string>> names(plan.slots.size());
  std::set<std::pair<int64_t, size_t>> seen; // a recomputed value has two slots
  for (const Command &command : plan.commands)
    for (const PlanOperand &operand : command.operands) {
      if (operand.value < 0 || plan.allocations[operand.allocation].kind != AllocationKind::Arena)
        continue;
      auto slot = std::find_if(plan.slots.begin(), plan.slots.end(), [&](const Slot &slot) {
        return slot.offset <= operand.offset &&
               operand.offset + operand.bytes <= slot.offset + slot.bytes &&
               slot.firstWave <= command.wave && command.wave <= slot.lastWave;
      });
      if (slot != plan.slots.end() &&
          seen.insert({operand.value, size_t(slot - plan.slots.begin())}).second)
        names[slot - plan.slots.begin()].push_back(plan.values[operand.value].name);
    }
  return names;
}

namespace {
/// A loop of a plan for people: its dispatches and its trips.
struct LoopCounts {
  int64_t firstDispatch = 0, dispatches = 0;

  LoopCounts(const Plan &plan, const Loop &loop) {
    for (int64_t i = 0; i < loop.end; ++i)
      if (plan.commands[size_t(i)].kind == Command::Kind::Dispatch)
        ++(i < loop.first ? firstDispatch : dispatches);
  }
};
} // namespace

static Json listLoops(const Plan &plan) {
  Json list = Json::array();
  for (const Loop &loop : plan.loops) {
    LoopCounts counts(plan, loop);
    list.push_back({{"first_dispatch", counts.firstDispatch},
                    {"dispatches", counts.dispatches},
                    {"trips", loop.trips},
                    {"decided_by_data", loop.flag.has_value()}});
  }
  return list;
}

static Json toJson(const std::vector<TensorSpec> &tensors) {
  Json list = Json::array();
  for (const TensorSpec &tensor : tensors) {
    Json item = {{"name", tensor.name}, {"dtype", tensor.dtype}, {"shape", tensor.shape}};
    if (!tensor.kind.empty())
      item["kind"] = tensor.kind;
    if (tensor.donate)
      item["donate"] = true;
    if (!tensor.startsAs.empty())
      item["starts_as"] = tensor.startsAs;
    if (tensor.startsAt != 0)
      item["starts_at"] = tensor.startsAt;
    if (tensor.isInHost)
      item["memory"] = "host";
    list.push_back(std::move(item));
  }
  return list;
}

namespace {
struct InspectOptions {
  std::string artifact, target, model;
  bool json = false, assembly = false;
};

/// The times of plans by the model of a device.
class ModelledTimes {
public:
  ModelledTimes(const Artifact &artifact, const InspectOptions &options) : artifact(artifact) {
    if (options.model.empty())
      return;
    device = &model::getDevice(options.model);
    profile = &findModelledProfile(artifact, options.artifact, *device);
  }
  bool areWanted() const { return device; }
  /// Returns the prediction for a plan; none if its code is not what the device would run.
  std::optional<ModelledPlan> get(const Plan &plan) const {
    if (!device || plan.target != profile->target)
      return std::nullopt;
    return predictPlan(artifact, plan, *profile, *device, "ptxas", countRuns(plan));
  }
  std::string getHead() const { return std::string("us on ") + device->name; }

private:
  const Artifact &artifact;
  const model::Device *device = nullptr;
  const Profile *profile = nullptr;
};
} // namespace

static void printAsJson(const Artifact &artifact, const ModelledTimes &times) {
  Json entries = Json::array(), plans = Json::array(), targets = Json::array();
  for (const EntrySpec &entry : artifact.manifest.entries)
    entries.push_back({{"name", entry.name},
                       {"arguments", toJson(entry.arguments)},
                       {"results", toJson(entry.results)}});
  for (const Plan &plan : artifact.plans) {
    PlanCounts counts(plan);
    MemoryBytes memory(artifact, plan);
    Json donations = Json::array(), slots = Json::array();
    for (const Donation &donation : getDonations(plan, getEntry(artifact, plan)))
      donations.push_back({{"argument", donation.argument},
                           {"result", donation.result.empty() ? Json() : Json(donation.result)}});
    std::vector<std::vector<std::string>> values = getSlotValues(plan);
    for (size_t i = 0; i < values.size(); ++i)
      slots.push_back({{"offset", plan.slots[i].offset},
                       {"bytes", plan.slots[i].bytes},
                       {"first_wave", plan.slots[i].firstWave},
                       {"last_wave", plan.slots[i].lastWave},
                       {"values", values[i]}});
    plans.push_back({{"entry", plan.entry},
                     {"target", plan.target},
                     {"kernels", counts.kernels},
                     {"dispatches", counts.dispatches},
                     {"barriers", counts.barriers},
                     {"queues", counts.queues},
                     {"waits", counts.waits},
                     {"slots", counts.slots},
                     {"arena_bytes", plan.arenaBytes},
                     {"pinned_bytes", plan.pinnedBytes},
                     {"device_bytes", memory.onDevice},
                     {"host_bytes", memory.inHost},
                     {"donations", donations},
                     {"slot_values", slots},
                     {"loops", listLoops(plan)}});
    if (std::optional<ModelledPlan> modelled = times.get(plan)) {
      plans.back()["modelled_seconds"] = modelled->getSeconds();
      if (std::vector<std::string> notes = getLoopNotes(*modelled); !notes.empty())
        plans.back()["modelled_assumptions"] = notes;
    }
  }
  for (const Profile &profile : artifact.manifest.targets)
    targets.push_back(Json::parse(printProfile(profile)));
  printJson({{"producer", artifact.manifest.producer},
             {"entries", entries},
             {"plans", plans},
             {"constant_bytes", artifact.constants.size()},
             {"requires", targets}});
}

static void printAsTables(const Artifact &artifact, const ModelledTimes &times) {
  std::cout << "made by " << artifact.manifest.producer << "; "
            << artifact.manifest.constants.size() << " constants, " << artifact.constants.size()
            << " bytes\n\n";
  std::vector<std::vector<std::string>> rows;
  for (const EntrySpec &entry : artifact.manifest.entries)
    rows.push_back(
        {entry.name, std::to_string(entry.arguments.size()), std::to_string(entry.results.size())});
  printTable({"entry", "arguments", "results"}, rows);
  std::cout << "\n";

  rows.clear();
  for (const Plan &plan : artifact.plans) {
    PlanCounts counts(plan);
    MemoryBytes memory(artifact, plan);
    rows.push_back({plan.entry, plan.target, std::to_string(counts.kernels),
                    std::to_string(counts.dispatches), std::to_string(counts.barriers),
                    std::to_string(counts.queues), std::to_string(counts.waits),
                    std::to_string(counts.slots), std::to_string(plan.arenaBytes),
                    std::to_string(plan.pinnedBytes), std::to_string(memory.onDevice),
                    std::to_string(memory.inHost)});
    if (!times.areWanted())
      continue;
    std::optional<ModelledPlan> modelled = times.get(plan);
    rows.back().push_back(
        !modelled ? ""
        : modelled->unknown
            ? "not known"
            : printNumber(modelled->getSeconds() * 1e6) +
                  (getLoopNotes(*modelled).empty() ? "" : ", one trip of each loop that data end"));
  }
  std::vector<std::string> head = {"entry",      "target",     "kernels",      "dispatches",
                                   "barriers",   "queues",     "waits",        "slots",
                                   "peak bytes", "all pinned", "device bytes", "host bytes"};
  if (times.areWanted())
    head.push_back(times.getHead());
  printTable(head, rows);

  rows.clear();
  for (const Plan &plan : artifact.plans)
    for (const Loop &loop : plan.loops) {
      LoopCounts counts(plan, loop);
      rows.push_back({plan.entry, plan.target, std::to_string(counts.firstDispatch),
                      std::to_string(counts.dispatches),
                      (loop.flag ? "decided by data, at most " : "") + std::to_string(loop.trips)});
    }
  if (!rows.empty()) {
    std::cout << "\n";
    printTable({"entry", "target", "loop from dispatch", "dispatches", "trips"}, rows);
  }

  rows.clear();
  for (const Profile &profile : artifact.manifest.targets)
    rows.push_back({profile.target, profile.name, profile.api});
  std::cout << "\n";
  printTable({"target", "requires", "api"}, rows);
  for (const Profile &profile : artifact.manifest.targets)
    if (profile.precision == Precision::Tf32)
      std::cout << "\nOn target " << profile.target
                << " products of f32 round their factors to tf32 (--precision=tf32).\n";
}

/// Prints the instructions of a target's code, or of all code for processors.
static void printAssembly(const Artifact &artifact, const InspectOptions &options) {
  std::vector<const Profile *> profiles = artifact.findProfiles("cpu");
  if (profiles.empty())
    throw Error(options.artifact + " has no code for cpu; compile it with --target=cpu");
  std::string known;
  for (const Profile *profile : profiles)
    known += (known.empty() ? "" : ", ") + profile->target;
  if (!options.target.empty())
    std::erase_if(profiles, [&](const Profile *each) { return each->target != options.target; });
  if (profiles.empty())
    throw Error("--target=" + options.target + ": " + options.artifact + " has machine code for " +
                known);
  for (const Profile *profile : profiles)
    for (const auto &[name, code] : artifact.code)
      if (name.starts_with("code/" + profile->target + "/")) {
        if (profiles.size() > 1)
          std::cout << "target " << profile->target << "\n\n";
        std::cout << disassemble(code);
      }
}

static int inspect(const InspectOptions &options) {
  Artifact artifact = readArtifact(options.artifact);
  if (options.assembly) {
    printAssembly(artifact, options);
    return Done;
  }
  ModelledTimes times(artifact, options);
  if (options.json)
    printAsJson(artifact, times);
  else
    printAsTables(artifact, times);
  return Done;
}

void tool::addInspect(CLI::App &app, Verb &chosen) {
  auto options = std::make_shared<InspectOptions>();
  CLI::App *verb =
      app.add_subcommand("inspect", "Show the contents and requirements of an artifact");
  verb->footer(
      "'peak bytes' is the planned size of the arena; 'all pinned' is its size if no two values\n"
      "shared bytes. 'device bytes' has arguments, results and constants, too, but for those in "
      "the\n"
      "host's memory, 'host bytes', where --offload=state of weir compile puts state.\n"
      "--json has each argument, result, slot and requirement; 'weir explain' has reasons.");
  verb->add_option("artifact", options->artifact, "The artifact")->required()->type_name("X.weir");
  CLI::Option *json = verb->add_flag("--json", options->json, "Print JSON");
  CLI::Option *assembly =
      verb->add_flag("--asm", options->assembly, "Print the instructions of the code for cpu")
          ->excludes(json);
  verb->add_option("--target", options->target,
                   "With --asm: the target, such as cpu.x86-64-v4 (default all for cpu)")
      ->needs(assembly)
      ->type_name("TARGET");
  verb->add_option("--model", options->model,
                   "Show the time of each plan by the model of a device, as weir bench --model")
      ->excludes(assembly)
      ->type_name("DEVICE");
  verb->callback([options, &chosen] { chosen = [options] { return inspect(*options); }; });
}

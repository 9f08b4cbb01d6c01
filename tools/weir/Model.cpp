//===- Model.cpp - Times of an entry by the model of a device -------------===//

#include "Model.h"

#include "Output.h"
#include "Profile.h"
#include "Ptxas.h"

#include "weir/Artifact/Loops.h"
#include "weir/PtxReader/PtxReader.h"

#include <algorithm>
#include <map>

using namespace weir;
using namespace weir::tool;

/// Returns the sizes of a device's subgroups, "32" or "32 to 64".
static std::string printSizes(const model::Device &device) {
  std::string min = printNumber(device.minSubgroup.orZero());
  std::string max = printNumber(device.maxSubgroup.orZero());
  return min == max ? min : min + " to " + max;
}

const Profile &tool::findModelledProfile(const Artifact &artifact, const std::string &path,
                                         const model::Device &device) {
  const Profile *best = nullptr;
  int64_t newest = 0;
  for (const Profile *profile : artifact.findProfiles(device.target)) {
    newest = std::max(newest, profile->sm);
    const bool runs = profile->isSmExact ? profile->sm == device.sm : profile->sm <= device.sm;
    if (runs && (!best || getRank(*profile) > getRank(*best)))
      best = profile;
  }
  const std::string target = device.target;
  if (newest == 0 && !best)
    throw Error("--model=" + std::string(device.name) + ": " + path + " has no code for " + target +
                "; compile it with --target=" + target);
  if (!best)
    throw Error("--model=" + std::string(device.name) + ": the code of " + path +
                " needs a newer GPU than " + device.title +
                "; compile it with --target=cuda:sm_80");
  auto isOutside = [&](const model::Figure &limit, bool isMin) {
    return limit &&
           (isMin ? double(best->subgroupSize) < *limit : double(best->subgroupSize) > *limit);
  };
  if (isOutside(device.minSubgroup, true) || isOutside(device.maxSubgroup, false))
    throw Error("--model=" + std::string(device.name) + ": the code of " + path +
                " is for subgroups of " + std::to_string(best->subgroupSize) +
                " invocations, and " + device.title + " has those of " + printSizes(device) +
                "; compile it for a profile that has such a subgroup_size");
  return *best;
}

namespace {
/// Code as words, and what an assembler says of it.
struct ReadCode {
  std::optional<spv::Module> module;
  std::optional<model::Resources> resources;
  std::string problem, unassembled;
};
} // namespace

static ReadCode readText(std::string_view text, const std::string &entry,
                         const std::array<uint32_t, 3> &workgroup, const std::string &where,
                         const model::Device &device, const std::string &ptxas,
                         int64_t launchMemory = 0, const std::vector<TensorMap> &tensorMaps = {}) {
  ReadCode code;
  try {
    code.module = ptx::readEntry(text, entry, workgroup, where, launchMemory, tensorMaps);
    if (!code.module)
      code.problem = where + ": has no entry point \"" + entry + "\"";
  } catch (const Error &error) {
    code.problem = error.what();
  }
  if (code.module)
    code.resources = assemble(ptxas, text, device.sm, entry, code.unassembled);
  return code;
}

static ReadCode readKernel(const Artifact &artifact, const Kernel &kernel,
                           const model::Device &device, const std::string &ptxas) {
  const Bytes &bytes = artifact.code.at(kernel.code);
  if (kernel.code.ends_with(".ptx")) {
    std::array<uint32_t, 3> workgroup;
    std::copy(kernel.workgroup.begin(), kernel.workgroup.end(), workgroup.begin());
    return readText({reinterpret_cast<const char *>(bytes.data()), bytes.size()}, kernel.name,
                    workgroup, kernel.code, device, ptxas, kernel.workgroupMemory,
                    kernel.tensorMaps);
  }
  ReadCode code;
  code.unassembled = "only ptxas says how many registers code takes, and it is not for SPIR-V";
  try {
    code.module.emplace(bytes, kernel.code);
  } catch (const Error &error) {
    code.problem = error.what();
  }
  return code;
}

/// Predicts one launch into `result`.
static void predictLaunch(const ReadCode &code, const std::string &entry, model::Launch launch,
                          const model::Device &device, const std::string &where,
                          ModelledKernel &result) {
  result.problem = code.problem;
  result.unassembled = code.unassembled;
  if (!code.module)
    return;
  launch.resources = code.resources;
  try {
    result.prediction = model::predict(*code.module, entry, launch, device, where);
  } catch (const Error &error) {
    result.problem = error.what();
  }
}

static double getSeconds(const ModelledKernel &kernel) {
  return kernel.prediction ? kernel.prediction->seconds * double(kernel.dispatches) : 0;
}

static void finish(ModelledPlan &plan, const model::Device &device) {
  for (const ModelledKernel &kernel : plan.kernels) {
    plan.dispatches += kernel.dispatches;
    plan.kernelSeconds += getSeconds(kernel);
    if (!kernel.prediction)
      plan.unknown += kernel.dispatches;
  }
  plan.launchSeconds = device.launch.orZero() * double(plan.dispatches);
  std::sort(plan.kernels.begin(), plan.kernels.end(), [](const auto &a, const auto &b) {
    return std::tuple(-getSeconds(a), a.name, a.grid) < std::tuple(-getSeconds(b), b.name, b.grid);
  });
}

/// Returns what a trip of each loop takes; `seconds` are those of a run of each command.
static std::vector<ModelledLoop> sumTrips(const Plan &plan, const std::vector<double> &seconds,
                                          const model::Device &device) {
  std::vector<ModelledLoop> loops;
  for (size_t i = 0; i < plan.loops.size(); ++i) {
    const Loop &loop = plan.loops[i];
    ModelledLoop trip = {loop.flag ? 1 : loop.trips, loop.flag.has_value()};
    std::vector<double> runs(size_t(loop.end - loop.first), 1);
    for (size_t inner = i + 1; inner < plan.loops.size(); ++inner)
      for (int64_t k = plan.loops[inner].first; k < std::min(plan.loops[inner].end, loop.end); ++k)
        if (!plan.loops[inner].flag)
          runs[size_t(k - loop.first)] *= double(plan.loops[inner].trips);
    for (int64_t k = loop.first; k < loop.end; ++k) {
      if (plan.commands[size_t(k)].kind != Command::Kind::Dispatch)
        continue;
      trip.dispatches += runs[size_t(k - loop.first)];
      trip.seconds += runs[size_t(k - loop.first)] * seconds[size_t(k)];
    }
    trip.launchSeconds = trip.dispatches * device.launch.orZero();
    loops.push_back(trip);
  }
  return loops;
}

ModelledPlan tool::predictPlan(const Artifact &artifact, const Plan &plan, const Profile &profile,
                               const model::Device &device, const std::string &ptxas,
                               const std::vector<int64_t> &runs) {
  ModelledPlan result;
  std::vector<double> seconds(plan.commands.size()); // of a run of each command
  const std::vector<int64_t> around = findLoops(plan);
  std::map<std::pair<int64_t, std::array<int64_t, 3>>, size_t> known;
  std::map<int64_t, ReadCode> codes;
  for (const Command *dispatch : getDispatches(plan)) {
    const size_t place = size_t(dispatch - plan.commands.data());
    const int64_t times = runs[place];
    auto [at, isNew] =
        known.try_emplace(std::pair(dispatch->kernel, dispatch->grid), result.kernels.size());
    auto add = [&](const ModelledKernel &modelled) {
      seconds[place] = modelled.prediction ? modelled.prediction->seconds : 0;
      if (around[place] >= 0)
        return;
      ++result.outsideDispatches;
      result.outsideSeconds += seconds[place];
    };
    if (!isNew) {
      ModelledKernel &modelled = result.kernels[at->second];
      modelled.dispatches += times;
      add(modelled);
      continue;
    }
    const Kernel &kernel = plan.kernels[size_t(dispatch->kernel)];
    auto code = codes.find(dispatch->kernel);
    if (code == codes.end())
      code = codes.emplace(dispatch->kernel, readKernel(artifact, kernel, device, ptxas)).first;
    ModelledKernel modelled;
    modelled.name = kernel.name;
    modelled.source = dispatch->location;
    modelled.grid = dispatch->grid;
    modelled.dispatches = times;
    model::Launch launch;
    launch.grid = dispatch->grid;
    launch.subgroupSize = profile.subgroupSize;
    for (const KernelOperand &operand : kernel.operands)
      launch.operandBytes.push_back(operand.bytes);
    predictLaunch(code->second, kernel.name, launch, device, kernel.code, modelled);
    add(modelled);
    result.kernels.push_back(std::move(modelled));
  }
  result.loops = sumTrips(plan, seconds, device);
  finish(result, device);
  return result;
}

//===----------------------------------------------------------------------===//
// Reports
//===----------------------------------------------------------------------===//

static std::string printPercent(double share) { return printNumber(share * 100) + "%"; }

static std::string printTime(double seconds) {
  return seconds < 1e-3 ? printNumber(seconds * 1e6) + " us" : printNumber(seconds * 1e3) + " ms";
}

/// Returns the share of the bytes of all requests to operands that invocations want.
static double getUse(const model::Prediction &prediction) {
  double wanted = 0, moved = 0;
  for (const model::Access &access : prediction.accesses)
    if (access.memory.starts_with("operand")) {
      wanted += std::min(access.wantedBytes, access.movedBytes);
      moved += access.movedBytes;
    }
  return moved > 0 ? wanted / moved : 1;
}

/// Returns the turns of workgroup memory over those without conflicts.
static double getWays(const model::Prediction &prediction) {
  double turns = 0, ideal = 0;
  for (const model::Access &access : prediction.accesses) {
    turns += access.turns;
    ideal += access.idealTurns;
  }
  return ideal > 0 ? turns / ideal : 0;
}

static std::vector<std::string> getRow(const ModelledKernel &kernel, double sum) {
  if (!kernel.prediction)
    return {kernel.name, std::to_string(kernel.dispatches), "not known: " + kernel.problem};
  const model::Prediction &p = *kernel.prediction;
  const std::string none = "not known";
  return {kernel.name,
          std::to_string(kernel.dispatches),
          printTime(p.seconds * double(kernel.dispatches)),
          sum > 0 ? printPercent(getSeconds(kernel) / sum) : "",
          p.terms.empty() ? none : p.terms.front().name,
          printTime(p.bound * double(kernel.dispatches)),
          p.boundBy,
          p.seconds > 0 ? printPercent(p.bound / p.seconds) : none,
          printPercent(getUse(p)),
          getWays(p) > 0 ? printNumber(getWays(p)) : "",
          p.resources ? std::to_string(p.resources->registers) : none,
          p.resources ? std::to_string(p.resources->spilledBytes) : none,
          p.occupancy.share > 0
              ? (p.resources ? "" : "at most ") + printPercent(p.occupancy.share) + " (" +
                    p.occupancy.limit + ")"
              : none,
          p.bytesNeeded > 0 ? printPercent(p.bytesInFlight / p.bytesNeeded) : none,
          printNumber(p.fills)};
}

static const std::vector<std::string> head = {
    "kernel",  "dispatches", "predicted", "share",  "limited by", "bound",     "by",   "of bound",
    "sectors", "ways",       "registers", "spills", "occupancy",  "in flight", "fills"};

static Json toJson(const ModelledKernel &kernel) {
  Json json = {{"kernel", kernel.name},
               {"grid", kernel.grid},
               {"dispatches", kernel.dispatches},
               {"source", kernel.source}};
  if (!kernel.prediction) {
    json["problem"] = kernel.problem;
    return json;
  }
  const model::Prediction &p = *kernel.prediction;
  Json terms = Json::array(), accesses = Json::array();
  for (const model::Term &term : p.terms)
    terms.push_back({{"name", term.name}, {"seconds", term.seconds}});
  for (const model::Access &access : p.accesses)
    accesses.push_back({{"place", access.place},
                        {"kind", access.kind},
                        {"memory", access.memory},
                        {"width", access.width},
                        {"requests", access.requests},
                        {"wanted_bytes", access.wantedBytes},
                        {"moved_bytes", access.movedBytes},
                        {"missed_bytes", access.missedBytes},
                        {"turns", access.turns},
                        {"ideal_turns", access.idealTurns},
                        {"worst_ways", access.worstWays}});
  json["seconds"] = p.seconds;
  json["bound"] = {{"seconds", p.bound}, {"by", p.boundBy}};
  json["terms"] = terms;
  json["flops"] = p.flops;
  json["matrix_flops"] = p.matrixFlops;
  json["bytes_once"] = p.bytesOnce;
  json["dram_bytes"] = p.dramBytes;
  json["l2_bytes"] = p.l2Bytes;
  json["sectors_used"] = getUse(p);
  json["conflict_ways"] = getWays(p);
  json["occupancy"] = {{"workgroups", p.occupancy.workgroups},
                       {"subgroups", p.occupancy.subgroups},
                       {"share", p.occupancy.share},
                       {"limit", p.occupancy.limit}};
  json["resources"] = p.resources ? Json({{"registers", p.resources->registers},
                                          {"spilled_bytes", p.resources->spilledBytes},
                                          {"stack_bytes", p.resources->stackBytes},
                                          {"shared_bytes", p.resources->sharedBytes}})
                                  : Json(kernel.unassembled);
  json["fills"] = p.fills;
  json["tail"] = p.tail;
  json["bytes_in_flight"] = p.bytesInFlight;
  json["bytes_needed_in_flight"] = p.bytesNeeded;
  json["chain_clocks"] = p.chainClocks;
  json["fma_clocks"] = p.fmaClocks;
  json["matrix_clocks"] = p.matrixClocks;
  json["accesses"] = accesses;
  json["assumptions"] = p.assumptions;
  json["unknown"] = p.unknown;
  return json;
}

static void printAccesses(const ModelledPlan &plan) {
  for (const ModelledKernel &kernel : plan.kernels) {
    if (!kernel.prediction)
      continue;
    std::cout << "\n" << kernel.name << "\n\n";
    std::vector<std::vector<std::string>> rows;
    for (const model::Access &access : kernel.prediction->accesses) {
      const bool isShared = access.memory == "workgroup";
      rows.push_back({access.place, access.kind, access.memory, std::to_string(access.width),
                      printNumber(access.requests), printNumber(access.wantedBytes),
                      printNumber(access.movedBytes), isShared ? "" : printPercent(access.getUse()),
                      isShared ? "" : printNumber(access.missedBytes),
                      isShared ? printNumber(access.turns / access.idealTurns) : "",
                      isShared ? printNumber(access.worstWays) : ""});
    }
    printTable({"place", "kind", "memory", "width", "requests", "wanted", "moved", "used", "missed",
                "ways", "worst"},
               rows);
  }
}

/// Prints what a trip of each loop takes, and all that is in none.
static void printLoops(const ModelledPlan &plan, const model::Device &device) {
  if (plan.loops.empty())
    return;
  auto print = [](const std::string &what, double dispatches, double seconds, double launches) {
    std::cout << what << ": " << printTime(seconds + launches) << ", of which "
              << printTime(launches) << " are launches of " << printNumber(dispatches)
              << " dispatches";
  };
  for (size_t i = 0; i < plan.loops.size(); ++i) {
    const ModelledLoop &loop = plan.loops[i];
    print("a trip of loop " + std::to_string(i), loop.dispatches, loop.seconds, loop.launchSeconds);
    if (loop.isDecided)
      std::cout << "; data decide how many there are, and one is counted\n";
    else
      std::cout << "; there are " << loop.trips << "\n";
  }
  print("outside of loops", double(plan.outsideDispatches), plan.outsideSeconds,
        device.launch.orZero() * double(plan.outsideDispatches));
  std::cout << "\n";
}

std::vector<std::string> tool::getLoopNotes(const ModelledPlan &plan) {
  std::vector<std::string> notes;
  for (size_t i = 0; i < plan.loops.size(); ++i)
    if (plan.loops[i].isDecided)
      notes.push_back("loop " + std::to_string(i) +
                      ": data decide how often it runs, assumed is one trip each time that it "
                      "comes up");
  return notes;
}

/// Prints each sentence once.
static void printNotes(const ModelledPlan &plan) {
  std::set<std::string> notes;
  for (const std::string &note : getLoopNotes(plan))
    notes.insert(note);
  for (const ModelledKernel &kernel : plan.kernels) {
    if (!kernel.unassembled.empty())
      notes.insert("registers are not known: " + kernel.unassembled);
    if (!kernel.prediction)
      continue;
    for (const std::string &each : kernel.prediction->assumptions)
      notes.insert(kernel.name + ", " + each);
    for (const std::string &each : kernel.prediction->unknown)
      notes.insert("of the device is not known: " + each);
  }
  for (const std::string &note : notes)
    std::cout << "note: " << note << "\n";
}

static void report(const ModelledPlan &plan, const std::string &what, const model::Device &device,
                   const ModelOptions &options) {
  if (options.json) {
    Json kernels = Json::array();
    for (const ModelledKernel &kernel : plan.kernels)
      kernels.push_back(toJson(kernel));
    Json json = {{"entry", what},
                 {"model", device.name},
                 {"device", device.title},
                 {"seconds", plan.getSeconds()},
                 {"kernel_seconds", plan.kernelSeconds},
                 {"launch_seconds", plan.launchSeconds},
                 {"dispatches", plan.dispatches},
                 {"dispatches_not_known", plan.unknown},
                 {"kernels", kernels}};
    Json loops = Json::array();
    for (const ModelledLoop &loop : plan.loops)
      loops.push_back({{"trips", loop.trips},
                       {"data_decide", loop.isDecided},
                       {"dispatches", loop.dispatches},
                       {"seconds", loop.seconds + loop.launchSeconds}});
    if (!loops.empty()) {
      json["loops"] = loops;
      json["outside"] = {{"dispatches", plan.outsideDispatches},
                         {"seconds", plan.outsideSeconds +
                                         device.launch.orZero() * double(plan.outsideDispatches)}};
      json["assumptions"] = getLoopNotes(plan);
    }
    return printJson(json);
  }
  std::vector<std::vector<std::string>> rows;
  for (const ModelledKernel &kernel : plan.kernels)
    rows.push_back(getRow(kernel, plan.kernelSeconds));
  for (std::vector<std::string> &row : rows)
    row.resize(head.size());
  printTable(head, rows);
  if (options.accesses)
    printAccesses(plan);
  std::cout << "\n"
            << what << " by the model of " << device.title << ": " << printTime(plan.getSeconds())
            << ", of which " << printTime(plan.launchSeconds) << " are launches of "
            << plan.dispatches << " dispatches";
  if (plan.unknown)
    std::cout << "; " << plan.unknown << " of them are not known and count as 0";
  std::cout << "\n";
  printLoops(plan, device);
  printNotes(plan);
}

static void listDevices(bool json) {
  Json list = Json::array();
  std::vector<std::vector<std::string>> rows;
  for (const model::Device &device : model::getDevices()) {
    Json figures = Json::object();
    size_t known = 0;
    std::vector<model::NamedFigure> all = model::getFigures(device);
    for (const model::NamedFigure &each : all) {
      known += bool(*each.figure);
      figures[each.name] = {{"number", *each.figure ? Json(**each.figure) : Json()},
                            {"unit", each.unit},
                            {"source", each.figure->source}};
    }
    rows.push_back({device.name, device.title, device.target,
                    std::to_string(known) + " of " + std::to_string(all.size())});
    list.push_back({{"model", device.name},
                    {"device", device.title},
                    {"target", device.target},
                    {"figures", figures}});
  }
  if (json)
    return printJson(list);
  printTable({"model", "device", "target", "figures"}, rows);
}

//===----------------------------------------------------------------------===//
// PTX
//===----------------------------------------------------------------------===//

/// Returns the entry of a text: the named one, or the only one.
static std::string findTextEntry(const std::string &text, const ModelOptions &options) {
  if (!options.entry.empty())
    return options.entry;
  std::vector<std::string> names;
  for (size_t at = 0; (at = text.find(".entry ", at)) != std::string::npos;) {
    at += 7;
    size_t end = text.find_first_of("( \t\r\n", at);
    names.push_back(text.substr(at, end == std::string::npos ? end : end - at));
  }
  if (names.size() != 1)
    throw Error(options.artifact + " has " + std::to_string(names.size()) +
                " entries; name one with --entry=E");
  return names.front();
}

static ModelledPlan predictText(const ModelOptions &options, const model::Device &device,
                                std::string &entry) {
  if (options.grid.empty())
    throw Error(options.artifact + " is PTX, which has no grid; say --grid=X[,Y[,Z]]");
  if (std::string(device.target) != "cuda")
    throw Error("--model=" + std::string(device.name) + ": " + device.title +
                " does not run the PTX of " + options.artifact + "; name a model for cuda");
  Bytes bytes = readFile(options.artifact, "PTX");
  std::string text(bytes.begin(), bytes.end());
  entry = findTextEntry(text, options);
  std::array<uint32_t, 3> workgroup = {1, 1, 1};
  model::Launch launch;
  for (size_t i = 0; i < options.grid.size(); ++i)
    launch.grid[i] = options.grid[i];
  for (size_t i = 0; i < options.workgroup.size(); ++i)
    workgroup[i] = uint32_t(options.workgroup[i]);
  launch.operandBytes = options.bytes;
  ReadCode code = readText(text, entry, workgroup, options.artifact, device, options.ptxas);
  if (code.module && !options.workgroup.empty() &&
      code.module->findEntryPoint(entry)->localSize != workgroup)
    throw Error("--workgroup: entry " + entry + " of " + options.artifact +
                " requires workgroups of another size");
  ModelledPlan plan;
  ModelledKernel kernel;
  kernel.name = entry;
  kernel.grid = launch.grid;
  kernel.dispatches = 1;
  predictLaunch(code, entry, launch, device, options.artifact, kernel);
  if (!kernel.prediction)
    throw Error(kernel.problem);
  plan.kernels.push_back(std::move(kernel));
  finish(plan, device);
  return plan;
}

void tool::benchModel(const ModelOptions &options) {
  if (options.model == "list")
    return listDevices(options.json);
  const model::Device &device = model::getDevice(options.model);
  Progress progress;
  progress.begin("reading " + options.artifact);
  if (options.artifact.ends_with(".ptx")) {
    std::string entry;
    ModelledPlan plan = predictText(options, device, entry);
    return report(plan, "kernel " + entry, device, options);
  }
  if (!options.grid.empty() || !options.workgroup.empty() || !options.bytes.empty())
    throw Error("--grid, --workgroup and --bytes are for a PTX file; " + options.artifact +
                " has its own");
  Artifact artifact = readArtifact(options.artifact);
  const EntrySpec &entry = findEntry(artifact, options.entry);
  const Profile &profile = findModelledProfile(artifact, options.artifact, device);
  progress.begin("computing the model of " + entry.name);
  const Plan &modelled = *artifact.findPlan(entry.name, profile.target);
  ModelledPlan plan =
      predictPlan(artifact, modelled, profile, device, options.ptxas, countRuns(modelled));
  report(plan, "entry " + entry.name, device, options);
}

//===- Predict.cpp - The time of a launch ---------------------------------===//

#include "Sample.h"

#include "weir/Artifact/Error.h"
#include "weir/Model/Memory.h"

#include <algorithm>
#include <cmath>
#include <string_view>

using namespace weir;
using namespace weir::model;

/// The share of L2 that the operands of a launch may take before they count as larger than it.
static constexpr double usableL2 = 0.8;

namespace {
/// Puts a prediction together.
class Predictor {
public:
  Predictor(const Code &code, const Launch &launch, const Device &device)
      : code(code), launch(launch), device(device) {}
  Prediction run();

private:
  void findOccupancy();
  void listAccesses();
  void findDramBytes(Sampler &sampler);
  void findTerms();
  void sortTerms();
  void findBound();
  /// Adds a term if the device's figure is known, else names the figure.
  void addTerm(const char *name, double amount, const Figure &rate, const char *what,
               double parallel);
  double getClocks(double clocks) const { return device.clock ? clocks / *device.clock : 0; }

  const Code &code;
  const Launch &launch;
  const Device &device;
  GroupSums mean;
  Prediction result;
};
} // namespace

void Predictor::findOccupancy() {
  const auto &local = code.entry.localSize;
  const int64_t invocations = int64_t(local[0]) * local[1] * local[2];
  int64_t shared = code.sharedBytes;
  std::optional<int64_t> registers;
  if (launch.resources) {
    registers = launch.resources->registers;
    shared = std::max(shared, launch.resources->sharedBytes);
  }
  try {
    result.occupancy = getOccupancy(device, invocations, launch.subgroupSize, registers, shared);
  } catch (const Error &error) {
    throw Error(code.where + ": " + error.what());
  }
  result.resources = launch.resources;
  result.workgroups = double(launch.grid[0]) * double(launch.grid[1]) * double(launch.grid[2]);
  result.subgroups =
      result.workgroups * std::ceil(double(invocations) / double(launch.subgroupSize));
  const double places = device.units.orZero() * double(result.occupancy.workgroups);
  if (places > 0) {
    result.fills = result.workgroups / places;
    result.tail = 1 - result.fills / std::ceil(result.fills);
  }
}

void Predictor::listAccesses() {
  for (size_t i = 0; i < code.sites.size(); ++i) {
    const SiteSums &sums = mean.sites[i];
    const Site &site = code.sites[i];
    if (sums.requests == 0)
      continue;
    Access access;
    const spv::SourceLine &source = site.instruction->source;
    access.place = source.line ? "line " + std::to_string(source.line)
                               : "word " + std::to_string(site.instruction->word);
    const bool isCopy =
        site.instruction->op == Op::CopyAsync || site.instruction->op == Op::CopyTile;
    access.kind = isCopy                      ? "copy"
                  : site.reads && site.writes ? "update"
                  : site.reads                ? "load"
                                              : "store";
    if (sums.isShared)
      access.memory = "workgroup";
    else if (sums.isOwn)
      access.memory = "own";
    else
      for (int64_t binding : sums.bindings)
        access.memory += (access.memory.empty() ? "operand " : ", ") + std::to_string(binding);
    access.width = site.bytes;
    access.requests = sums.requests * result.workgroups;
    access.wantedBytes = sums.wanted * result.workgroups;
    access.movedBytes = sums.moved * result.workgroups;
    access.missedBytes = sums.missed * result.workgroups;
    access.turns = sums.turns * result.workgroups;
    access.idealTurns = sums.ideal * result.workgroups;
    access.worstWays = sums.worst;
    result.accesses.push_back(std::move(access));
  }
}

/// Finds the bytes of memory: each once if L2 holds all. Else each workgroup that runs has a part
/// of L2, and what it lacks is fetched, once for those workgroups that share it.
void Predictor::findDramBytes(Sampler &sampler) {
  auto getOnce = [&](int64_t binding, double bytes) {
    bytes *= result.workgroups;
    if (binding >= 0 && binding < int64_t(launch.operandBytes.size())) {
      double whole = double(launch.operandBytes[size_t(binding)] + sectorBytes - 1);
      bytes = std::min(bytes, std::floor(whole / sectorBytes) * sectorBytes);
    }
    return bytes;
  };
  double read = 0, written = 0;
  for (auto [binding, bytes] : mean.written)
    written += getOnce(binding, bytes);
  for (auto [binding, bytes] : mean.read)
    read += getOnce(binding, bytes);
  result.bytesOnce = result.dramBytes = read + written;
  if (!device.l2)
    result.unknown.push_back("the size of L2: each byte is assumed to come from memory once");
  // Bytes that are read again pass L2 twice.
  if (!device.l2 || result.bytesOnce <= usableL2 * *device.l2 ||
      mean.l2Bytes * result.workgroups <= 1.1 * result.bytesOnce)
    return;
  const double places = std::max(1.0, device.units.orZero() * double(result.occupancy.workgroups));
  const double running = std::min(places, result.workgroups);
  std::map<int64_t, double> shares = sampler.getDistinctShares(int64_t(running));
  double distinct = 0, all = 0;
  for (auto [binding, bytes] : mean.read) {
    distinct += bytes * shares[binding];
    all += bytes;
  }
  const double part = usableL2 * *device.l2 / running * (all / std::max(1.0, distinct));
  result.dramBytes = written;
  shares[ownBinding] = 1;
  for (auto [binding, bytes] : sampler.getMean(int64_t(part) / lineBytes).fetched)
    result.dramBytes +=
        std::max(getOnce(binding, mean.read[binding]), bytes * result.workgroups * shares[binding]);
}

void Predictor::addTerm(const char *name, double amount, const Figure &rate, const char *what,
                        double parallel) {
  if (amount <= 0)
    return;
  if (!rate || !device.clock || parallel <= 0) {
    result.unknown.push_back(what);
    return;
  }
  result.terms.push_back({name, getClocks(amount / *rate) / parallel});
}

void Predictor::sortTerms() {
  std::sort(result.terms.begin(), result.terms.end(),
            [](const Term &a, const Term &b) { return a.seconds > b.seconds; });
}

void Predictor::findTerms() {
  // The unit with the most workgroups is the last to finish.
  const double units = std::max(1.0, device.units.orZero());
  const double rounds = std::ceil(result.workgroups / units);
  const double lanes = double(launch.subgroupSize);
  auto addUnit = [&](const char *name, double amount, const Figure &rate, const char *what) {
    addTerm(name, amount * rounds, rate, what, 1);
  };
  const Work &work = mean.busiestWork;
  auto getPipe = [&](Pipe pipe) { return work.pipes[size_t(pipe)] * lanes; };
  addUnit("issue", work.issue, device.issue, "instructions a clock");
  addUnit("fma", getPipe(Pipe::Fma), device.fma, "fma lanes");
  addUnit("integer", getPipe(Pipe::Integer), device.integer, "integer lanes");
  addUnit("f64", getPipe(Pipe::Fma64), device.fma64, "f64 lanes");
  addUnit("special", getPipe(Pipe::Special), device.special, "lanes for special functions");
  addUnit("matrix", work.matrixFlops, device.matrix, "flops of matrix instructions");
  addUnit("matrix", work.tf32Flops, device.matrixTf32, "flops of tf32 instructions");
  // Loads, workgroup memory and shuffles go through one door.
  double clocks = mean.busiestL1Clocks;
  if (device.shuffle)
    clocks += getPipe(Pipe::Shuffle) / *device.shuffle;
  if (!device.l1Bytes)
    result.unknown.push_back("bytes a clock of L1 and workgroup memory: 128 are assumed");
  result.terms.push_back({"L1", getClocks(clocks * rounds)});
  addTerm("L2", mean.l2Bytes * result.workgroups, device.l2Bytes, "bytes a clock of L2", 1);
  if (device.dramBytes)
    result.terms.push_back(
        {"memory", result.dramBytes / (*device.dramBytes * device.dramShare.number.value_or(1))});
  else
    result.unknown.push_back("bytes a second of memory");
  if (device.dramBytes && !device.dramShare)
    result.unknown.push_back("the share of the memory's rate that a copy gets: all is assumed");
  // Before a barrier a workgroup waits for memory, behind it it computes: that overlaps with what
  // others do, if the unit holds others, or with what it copies meanwhile.
  double moving = 0, computing = 0;
  for (const Term &term : result.terms) {
    const std::string_view name = term.name;
    double &longer = name == "memory" || name == "L2" ? moving : computing;
    longer = std::max(longer, term.seconds);
  }
  const double held = std::max<double>(
      1, std::min(rounds, double(std::max<int64_t>(1, result.occupancy.workgroups))));
  double longest = std::max(moving, computing);
  if (code.hasBarriers && !code.copiesAsync)
    longest += std::min(moving, computing) / held;
  if (device.clock && device.dramLatency && device.aluLatency) {
    const double fills =
        std::ceil(rounds / std::max<double>(1, double(result.occupancy.workgroups)));
    const double latency = getClocks(mean.chain) * fills;
    result.terms.push_back({"latency", latency});
    // A pipeline of two stages, waiting and moving: all but one of the rounds overlap. What is
    // loaded behind a barrier is not on its way before it, unless it is copied across it. Where
    // computing takes longer than moving, its own chain is waited for, which no copy shortens.
    double ofGroup = std::max(1.0, mean.rounds);
    if (code.hasBarriers)
      ofGroup = moving >= computing ? 1 + mean.roundsAhead : 1;
    const double repeats = ofGroup * fills;
    longest = std::max(longest, latency) + std::min(longest, latency) / repeats;
    // Little's law, with the loads that a subgroup has on its way.
    const double running = std::min(units * double(result.occupancy.workgroups), result.workgroups);
    if (mean.chain > 0)
      result.bytesInFlight = mean.waitedBytes / mean.chain * running;
    if (device.dramBytes)
      result.bytesNeeded = *device.dramBytes * getClocks(*device.dramLatency);
  } else {
    result.unknown.push_back("latencies");
  }
  sortTerms();
  result.seconds = longest;
  if (device.fma)
    result.fmaClocks = getPipe(Pipe::Fma) / *device.fma * rounds;
  if (device.matrix)
    result.matrixClocks = work.matrixFlops / *device.matrix * rounds;
}

/// Finds the time below which no code could come: each byte once at the memory's full rate, and the
/// flops on all lanes of all units.
void Predictor::findBound() {
  auto raise = [&](double seconds, const char *name) {
    if (seconds > result.bound) {
      result.bound = seconds;
      result.boundBy = name;
    }
  };
  if (device.dramBytes)
    raise(result.bytesOnce / *device.dramBytes, "memory");
  result.flops = mean.work.flops * double(launch.subgroupSize) * result.workgroups;
  const double matrix = mean.work.matrixFlops * result.workgroups;
  const double tf32 = mean.work.tf32Flops * result.workgroups;
  result.matrixFlops = matrix + tf32;
  if (!device.clock || !device.units)
    return;
  const double clocks = *device.clock * *device.units;
  if (device.fma)
    raise(result.flops / (2 * *device.fma) / clocks, "fma");
  if (device.matrix && device.matrixTf32)
    raise((matrix / *device.matrix + tf32 / *device.matrixTf32) / clocks, "matrix");
}

Prediction Predictor::run() {
  findOccupancy();
  double l1 = device.l1.orZero();
  const int64_t shared =
      std::max(code.sharedBytes, launch.resources ? launch.resources->sharedBytes : int64_t(0));
  if (device.isShared)
    l1 -= double(result.occupancy.workgroups * shared);
  const double share = l1 / double(std::max<int64_t>(1, result.occupancy.workgroups));
  Sampler sampler(code, launch, device, int64_t(std::max(0.0, share)) / lineBytes);
  mean = sampler.getMean(0);
  result.chainClocks = mean.chain;
  result.l2Bytes = mean.l2Bytes * result.workgroups;
  listAccesses();
  findDramBytes(sampler);
  findTerms();
  findBound();
  result.assumptions.assign(sampler.assumptions.begin(), sampler.assumptions.end());
  return std::move(result);
}

Prediction model::predict(const spv::Module &module, const std::string &entry, const Launch &launch,
                          const Device &device, const std::string &where) {
  const spv::EntryPoint *found = module.findEntryPoint(entry);
  if (!found)
    throw Error(where + ": has no entry point \"" + entry + "\"");
  if (launch.subgroupSize < 1 || launch.subgroupSize > 64)
    throw Error(where + ": subgroups of " + std::to_string(launch.subgroupSize) +
                " invocations are not modelled, only those of 1 to 64");
  constexpr int64_t maxInvocations = 4096, maxWorkgroups = int64_t(1) << 40;
  int64_t workgroups = 1;
  for (int64_t size : launch.grid)
    if (size < 1 || __builtin_mul_overflow(workgroups, size, &workgroups) ||
        workgroups > maxWorkgroups)
      throw Error(where + ": a grid has 1 to 2^40 workgroups");
  int64_t invocations = 1;
  for (uint32_t size : found->localSize)
    if (size < 1 || __builtin_mul_overflow(invocations, int64_t(size), &invocations) ||
        invocations > maxInvocations)
      throw Error(where + ": workgroups of 1 to " + std::to_string(maxInvocations) +
                  " invocations are modelled");
  Code code(module, *found, where);
  return Predictor(code, launch, device).run();
}

//===- Sample.cpp - Requests of a few workgroups --------------------------===//

#include "Sample.h"

#include "weir/Artifact/Error.h"
#include "weir/Model/Memory.h"

#include <algorithm>
#include <memory>

using namespace weir;
using namespace weir::model;

/// Max number of lanes' computations in one workgroup: beyond, enumeration takes too long.
static constexpr uint64_t maxLaneSteps = uint64_t(1) << 27;
/// Workgroups that are enumerated, if a launch has more.
static constexpr int64_t sampledWorkgroups = 4;
/// Max number of further ones, where those differ.
static constexpr int64_t moreWorkgroups = 12;
/// Workgroups, and requests of each subgroup, whose sectors are compared with each other.
static constexpr int64_t comparedWorkgroups = 256;
static constexpr uint64_t comparedRequests = 48;

bool Cache::touch(int64_t sector) {
  const int64_t number = sector / (lineBytes / sectorBytes);
  const uint32_t bit = 1u << (sector % (lineBytes / sectorBytes));
  if (capacity <= 0)
    return false;
  auto [place, isNew] = placeOf.try_emplace(number);
  if (isNew)
    place->second = lines.insert(lines.end(), {number, 0});
  else
    lines.splice(lines.end(), lines, place->second);
  const bool isThere = place->second->sectors & bit;
  place->second->sectors |= bit;
  if (isNew && int64_t(lines.size()) > capacity) {
    placeOf.erase(lines.front().number);
    lines.pop_front();
  }
  return isThere;
}

namespace {
/// Adds up the requests of a workgroup.
class Meter : public Listener {
public:
  Meter(const Code &code, const Device &device, int64_t l1Lines, int64_t l2Lines)
      : code(code), device(device), l1(l1Lines), l2(l2Lines) {
    sums.sites.resize(code.sites.size());
  }
  double request(const Request &request) override;

  GroupSums sums;
  uint64_t requests = 0;
  std::map<int64_t, std::unordered_set<int64_t>> read, written; ///< sectors, by binding

private:
  double requestShared(const Request &request, SiteSums &site);
  double requestOwn(const Request &request, SiteSums &site);
  /// Adds the clocks of turns of 128 bytes; a request takes its lanes' addresses as well.
  void addClocks(const Request &request, double turns);

  const Code &code;
  const Device &device;
  Cache l1, l2;
};
} // namespace

void Meter::addClocks(const Request &request, double turns) {
  double clocks = device.l1Bytes ? turns * double(lineBytes) / *device.l1Bytes : turns;
  if (device.addresses)
    clocks = std::max(clocks, double(request.lanes) / *device.addresses);
  sums.l1Clocks += clocks;
}

double Meter::requestShared(const Request &request, SiteSums &site) {
  const int64_t turns = countTurns(request.addresses, request.bytes);
  const int64_t ideal = countIdealTurns(request.addresses.size(), request.bytes);
  site.isShared = true;
  site.moved += double(int64_t(request.addresses.size()) * request.bytes);
  site.turns += double(turns);
  site.ideal += double(ideal);
  site.worst = std::max(site.worst, double(turns) / double(ideal));
  addClocks(request, double(turns));
  return device.sharedLatency.orZero() + double(turns - 1);
}

/// The memory of invocations' own lies so that the words at one offset are a line. It passes the
/// caches as operands do.
double Meter::requestOwn(const Request &request, SiteSums &site) {
  constexpr int64_t wordBytes = 4, wordsOfSubgroup = 1 << 24,
                    sectorsOfLine = lineBytes / sectorBytes;
  const double wanted = double(int64_t(request.addresses.size()) * request.bytes);
  site.isOwn = true;
  site.moved += wanted;
  double missed = 0, clocks = request.reads ? device.l1Latency.orZero() : 0;
  const int64_t first = (request.addresses.front() - int64_t(Code::ownBase)) / wordBytes;
  for (int64_t word = first; word < first + (request.bytes + wordBytes - 1) / wordBytes; ++word)
    for (int64_t i = 0; i < sectorsOfLine; ++i) {
      const int64_t sector = int64_t(Code::ownBase) / sectorBytes +
                             (request.subgroup * wordsOfSubgroup + word) * sectorsOfLine + i;
      if (l1.touch(sector))
        continue;
      missed += double(sectorBytes);
      if (request.reads)
        clocks = device.l2Latency.orZero();
      if (!l2.touch(sector) && request.reads)
        sums.fetched[ownBinding] += double(sectorBytes);
    }
  site.missed += missed;
  sums.l2Bytes += missed;
  addClocks(request, std::max(1.0, wanted / double(lineBytes)));
  return clocks;
}

double Meter::request(const Request &request) {
  SiteSums &site = sums.sites[request.site];
  ++requests;
  ++site.requests;
  const double wanted = double(int64_t(request.addresses.size()) * request.bytes);
  site.wanted += wanted;
  if (request.space == Space::Shared)
    return requestShared(request, site);
  if (request.space == Space::Own)
    return requestOwn(request, site);
  const std::vector<int64_t> sectors = getSectors(request.addresses, request.bytes);
  int64_t lines = 0, last = -1;
  double missed = 0, clocks = request.reads ? device.l1Latency.orZero() : 0;
  const int64_t binding = request.addresses.front() / int64_t(Code::bindingBase) - 1;
  site.bindings.insert(binding);
  for (int64_t sector : sectors) {
    const int64_t line = sector / (lineBytes / sectorBytes);
    lines += line != last;
    last = line;
    bool isThere = false;
    if (request.reads) {
      isThere = !request.passesL1 && l1.touch(sector);
      const bool isNew = read[binding].insert(sector).second;
      if (!isThere && !l2.touch(sector))
        sums.fetched[binding] += double(sectorBytes);
      if (!isThere)
        clocks = std::max(clocks, (isNew ? device.dramLatency : device.l2Latency).orZero());
    }
    if (request.writes)
      written[binding].insert(sector);
    if (!isThere || request.writes)
      missed += double(sectorBytes);
  }
  site.moved += double(int64_t(sectors.size()) * sectorBytes);
  site.missed += missed;
  sums.l2Bytes += missed;
  if (request.reads)
    sums.waitedBytes += missed * clocks;
  // A turn looks up one line and moves at most 128 bytes. What is copied past L1 moves once, on its
  // way to workgroup memory.
  const bool moves = !code.sites[request.site].isCopied;
  addClocks(request, moves ? std::max(double(lines), wanted / double(lineBytes)) : 0);
  return clocks + double(std::max<int64_t>(lines - 1, 0));
}

GroupSums Sampler::run(int64_t number, int64_t l2Lines, uint64_t maxRequests,
                       std::map<int64_t, std::unordered_set<int64_t>> *sectors) {
  const auto &local = code.entry.localSize;
  const uint32_t size = uint32_t(launch.subgroupSize);
  const uint32_t invocations = local[0] * local[1] * local[2];
  Place place;
  place.subgroupSize = size;
  for (size_t i = 0; i < 3; ++i)
    place.grid[i] = uint32_t(launch.grid[i]);
  place.workgroup = {uint32_t(number % launch.grid[0]),
                     uint32_t(number / launch.grid[0] % launch.grid[1]),
                     uint32_t(number / launch.grid[0] / launch.grid[1])};
  Latencies latencies = {};
  for (Pipe pipe : {Pipe::Fma, Pipe::Integer, Pipe::Fma64})
    latencies[size_t(pipe)] = device.aluLatency.orZero();
  latencies[size_t(Pipe::Special)] = device.specialLatency.orZero();
  latencies[size_t(Pipe::Shuffle)] = device.shuffleLatency.orZero();
  latencies[size_t(Pipe::Matrix)] = device.matrixLatency.orZero();
  Meter meter(code, device, l1Lines, l2Lines);
  std::vector<std::unique_ptr<Warp>> warps;
  for (place.subgroup = 0; place.subgroup * size < invocations; ++place.subgroup)
    warps.push_back(std::make_unique<Warp>(code, place, latencies, meter));
  std::vector<uint64_t> requests(warps.size());
  uint64_t laneSteps = 0;
  for (bool isRunning = true; isRunning;) {
    isRunning = false;
    for (size_t i = 0; i < warps.size(); ++i) { // in turn, as a unit does
      if (warps[i]->isDone() || requests[i] >= maxRequests)
        continue;
      isRunning = true;
      const uint64_t before = meter.requests, steps = warps[i]->getLaneSteps();
      warps[i]->step();
      requests[i] += meter.requests - before;
      laneSteps += warps[i]->getLaneSteps() - steps;
    }
    if (laneSteps > maxLaneSteps)
      throw Error(code.where + ": runs for so long that the model gives up; use smaller sizes");
  }
  GroupSums sums = std::move(meter.sums);
  for (const auto &warp : warps) {
    sums.work.add(warp->getWork(), 1);
    sums.chain = std::max(sums.chain, warp->getClock());
    sums.rounds = std::max(sums.rounds, double(warp->getRounds()));
    sums.roundsAhead = std::max(sums.roundsAhead, warp->getRoundsAhead());
    assumptions.insert(warp->getAssumptions().begin(), warp->getAssumptions().end());
  }
  for (auto &[binding, all] : meter.read)
    sums.read[binding] = double(all.size()) * sectorBytes;
  for (auto &[binding, all] : meter.written)
    sums.written[binding] = double(all.size()) * sectorBytes;
  if (sectors)
    for (auto &[binding, all] : meter.read)
      (*sectors)[binding].merge(all);
  return sums;
}

static void add(GroupSums &to, const GroupSums &from, double times) {
  to.sites.resize(from.sites.size());
  for (size_t i = 0; i < from.sites.size(); ++i) {
    SiteSums &a = to.sites[i];
    const SiteSums &b = from.sites[i];
    a.requests += times * b.requests;
    a.wanted += times * b.wanted;
    a.moved += times * b.moved;
    a.missed += times * b.missed;
    a.turns += times * b.turns;
    a.ideal += times * b.ideal;
    a.worst = std::max(a.worst, b.worst);
    a.bindings.insert(b.bindings.begin(), b.bindings.end());
    a.isShared |= b.isShared;
    a.isOwn |= b.isOwn;
  }
  to.work.add(from.work, times);
  to.l1Clocks += times * from.l1Clocks;
  to.l2Bytes += times * from.l2Bytes;
  to.waitedBytes += times * from.waitedBytes;
  to.chain = std::max(to.chain, from.chain);
  to.rounds = std::max(to.rounds, from.rounds);
  to.roundsAhead = std::max(to.roundsAhead, from.roundsAhead);
  for (auto [binding, bytes] : from.read)
    to.read[binding] += times * bytes;
  for (auto [binding, bytes] : from.fetched)
    to.fetched[binding] += times * bytes;
  for (auto [binding, bytes] : from.written)
    to.written[binding] += times * bytes;
}

/// Whether two workgroups have about as much to do.
static bool isAlike(const GroupSums &a, const GroupSums &b) {
  constexpr double share = 0.02;
  auto isNear = [](double x, double y) { return std::abs(x - y) <= share * std::max(x, y); };
  return isNear(a.work.issue, b.work.issue) &&
         isNear(a.work.matrixFlops + a.work.tf32Flops, b.work.matrixFlops + b.work.tf32Flops);
}

std::vector<Sampler::Stratum> Sampler::sample(int64_t l2Lines) {
  const int64_t count = launch.grid[0] * launch.grid[1] * launch.grid[2];
  auto runOne = [&](int64_t number) { return run(number, l2Lines, UINT64_MAX, nullptr); };
  std::vector<Stratum> strata;
  if (count <= sampledWorkgroups) {
    for (int64_t i = 0; i < count; ++i)
      strata.push_back({i, i + 1, runOne(i)});
    return strata;
  }
  // The first and the last may be special, and stand for themselves.
  strata.push_back({0, 1, runOne(0)});
  std::map<int64_t, GroupSums> others;
  for (int64_t i = 0; i < sampledWorkgroups - 2; ++i) {
    const int64_t number = 1 + (count - 2) * (2 * i + 1) / (2 * (sampledWorkgroups - 2));
    others.emplace(number, runOne(number));
  }
  others.emplace(count - 1, runOne(count - 1));
  // Halve the widest range whose ends differ.
  for (int64_t more = 0; more < moreWorkgroups; ++more) {
    int64_t widest = 1, middle = 0;
    for (auto left = others.begin(), right = std::next(left); right != others.end(); left = right++)
      if (const int64_t width = right->first - left->first;
          width > widest && !isAlike(left->second, right->second)) {
        widest = width;
        middle = left->first + width / 2;
      }
    if (widest == 1)
      break;
    others.emplace(middle, runOne(middle));
  }
  for (auto each = others.begin(); each != others.end(); ++each) {
    const auto next = std::next(each);
    // Up to the middle between two, but the last one stands for itself.
    const int64_t end = next == others.end()       ? count
                        : next->first == count - 1 ? count - 1
                                                   : (each->first + next->first + 1) / 2;
    strata.push_back({strata.back().end, end, std::move(each->second)});
  }
  return strata;
}

GroupSums Sampler::getMean(int64_t l2Lines) {
  const int64_t count = launch.grid[0] * launch.grid[1] * launch.grid[2],
                units = std::max<int64_t>(1, int64_t(device.units.orZero())),
                whole = count / units * units;
  // The rounds of the units up to a workgroup. The last one takes as long as if it were whole.
  auto getRounds = [&](int64_t number) {
    if (number <= whole)
      return double(number) / double(units);
    return double(whole / units) + double(number - whole) / double(count - whole);
  };
  GroupSums mean;
  for (const Stratum &stratum : sample(l2Lines)) {
    add(mean, stratum.sums, double(stratum.end - stratum.begin) / double(count));
    const double share = (getRounds(stratum.end) - getRounds(stratum.begin)) / getRounds(count);
    mean.busiestWork.add(stratum.sums.work, share);
    mean.busiestL1Clocks += share * stratum.sums.l1Clocks;
  }
  return mean;
}

std::map<int64_t, double> Sampler::getDistinctShares(int64_t workgroups) {
  workgroups = std::min(workgroups, launch.grid[0] * launch.grid[1] * launch.grid[2]);
  const int64_t count = std::min(workgroups, comparedWorkgroups), half = count / 2;
  std::map<int64_t, std::unordered_set<int64_t>> all;
  std::map<int64_t, double> sum, atHalf, shares;
  for (int64_t i = 0; i < count; ++i) {
    if (i == half)
      for (const auto &[binding, sectors] : all)
        atHalf[binding] = double(sectors.size());
    for (auto [binding, bytes] : run(i, 0, comparedRequests, &all).read)
      sum[binding] += bytes;
  }
  for (auto [binding, bytes] : sum) {
    // Beyond those that are compared, it grows as it did in their second half.
    double distinct = double(all[binding].size());
    const double growth = (distinct - atHalf[binding]) / double(count - half);
    distinct += growth * double(workgroups - count);
    bytes *= double(workgroups) / double(count);
    shares[binding] = distinct * sectorBytes / bytes;
  }
  return shares;
}

//===- Sample.h - Requests of a few workgroups ------------------*- C++ -*-===//

#ifndef WEIR_LIB_MODEL_SAMPLE_H
#define WEIR_LIB_MODEL_SAMPLE_H

#include "Warp.h"

#include "weir/Model/Model.h"

#include <list>
#include <unordered_map>
#include <unordered_set>

namespace weir::model {

/// A cache of lines of which each sector is valid or not; the line that was used longest ago goes
/// first.
class Cache {
public:
  explicit Cache(int64_t lines) : capacity(lines) {}
  /// Whether the sector is there; afterwards it is.
  bool touch(int64_t sector);

private:
  struct Line {
    int64_t number = 0;
    uint32_t sectors = 0;
  };
  int64_t capacity;
  std::list<Line> lines; ///< the one used last is last
  std::unordered_map<int64_t, std::list<Line>::iterator> placeOf;
};

/// The number that stands for memory of invocations' own among those of bindings.
inline constexpr int64_t ownBinding = -1;

/// Sums over workgroups.
struct SiteSums {
  double requests = 0, wanted = 0, moved = 0, missed = 0, turns = 0, ideal = 0, worst = 0;
  std::set<int64_t> bindings; ///< that it touches
  bool isShared = false, isOwn = false;
};

/// The work of one workgroup, or the mean of many.
struct GroupSums {
  std::vector<SiteSums> sites;
  Work work;
  double l1Clocks = 0;    ///< of the path to L1 and workgroup memory
  double l2Bytes = 0;     ///< that go between the unit and L2
  double waitedBytes = 0; ///< bytes from L2 and memory, times the clocks that each takes
  double chain = 0;       ///< clocks of the slowest subgroup
  double rounds = 0;      ///< blocks in turn that read operands
  double roundsAhead = 0; ///< `Warp::getRoundsAhead`
  std::map<int64_t, double> read, written; ///< distinct bytes, by binding
  std::map<int64_t, double> fetched;       ///< bytes that its part of L2 lacks, by binding
  /// Of the workgroups that the busiest unit has, of which the last one may be of another kind than
  /// most.
  Work busiestWork;
  double busiestL1Clocks = 0;
};

/// Enumerates sampled workgroups.
class Sampler {
public:
  Sampler(const Code &code, const Launch &launch, const Device &device, int64_t l1Lines)
      : code(code), launch(launch), device(device), l1Lines(l1Lines) {}

  /// Returns the mean over the workgroups of the launch, from the first, the last, and some
  /// between: more of them where they differ. Each has so many lines of L2 for itself.
  GroupSums getMean(int64_t l2Lines);
  /// Returns, for each binding, which share of the bytes that workgroups running at a time read is
  /// distinct among them.
  std::map<int64_t, double> getDistinctShares(int64_t workgroups);

  std::set<std::string> assumptions;

private:
  /// Workgroups that one of them stands for.
  struct Stratum {
    int64_t begin = 0, end = 0;
    GroupSums sums;
  };
  std::vector<Stratum> sample(int64_t l2Lines);
  GroupSums run(int64_t workgroup, int64_t l2Lines, uint64_t maxRequests,
                std::map<int64_t, std::unordered_set<int64_t>> *sectors);

  const Code &code;
  const Launch &launch;
  const Device &device;
  int64_t l1Lines;
};

} // namespace weir::model

#endif // WEIR_LIB_MODEL_SAMPLE_H

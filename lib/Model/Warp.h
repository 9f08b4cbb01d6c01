//===- Warp.h - A subgroup, lane by lane ------------------------*- C++ -*-===//
//
// Computes the addresses of all lanes of a subgroup, block by block, and the time at which each
// instruction could run if the subgroup were alone. What depends on loaded data is a number of its
// own: equal for lanes that load from one place, plus an offset that is known.
//
//===----------------------------------------------------------------------===//

#ifndef WEIR_LIB_MODEL_WARP_H
#define WEIR_LIB_MODEL_WARP_H

#include "Code.h"

#include <map>
#include <set>

namespace weir::model {

struct Device;

enum class Space { Global, Shared, Own };

/// One request of a subgroup.
struct Request {
  uint32_t site = 0;
  Space space = Space::Global;
  std::span<const int64_t> addresses; ///< of the lanes that take part
  int64_t bytes = 0;                  ///< of a lane
  uint32_t subgroup = 0, lanes = 0;   ///< in the workgroup; of the subgroup
  bool reads = false, writes = false, passesL1 = false;
};

/// Receives requests in their order.
class Listener {
public:
  virtual ~Listener() = default;
  /// Returns the clocks until what is read is there.
  virtual double request(const Request &request) = 0;
};

/// Latencies of instructions in clocks, by pipe.
using Latencies = std::array<double, numPipes>;

/// A launch, and a subgroup in it.
struct Place {
  std::array<uint32_t, 3> grid = {1, 1, 1}, workgroup = {0, 0, 0};
  uint32_t subgroup = 0, subgroupSize = 32;
};

class Warp {
public:
  Warp(const Code &code, const Place &place, const Latencies &latencies, Listener &listener);

  bool isDone() const { return live == 0; }
  /// Runs a block for all lanes that are there.
  void step();

  double getClock() const { return clock; }
  const Work &getWork() const { return work; }
  /// Returns how many blocks it ran that read operands.
  uint64_t getRounds() const { return rounds; }
  /// Returns how many waits were for copies that had been on their way across a barrier, each by
  /// the share of the copies' latency that was over by then.
  double getRoundsAhead() const { return roundsAhead; }
  uint64_t getLaneSteps() const { return laneSteps; }
  /// Sentences about what was assumed because it depends on loaded data.
  const std::set<std::string> &getAssumptions() const { return assumptions; }

private:
  /// A number; one that depends on loaded data is `bits` more than a number called `tag`.
  struct Number {
    uint64_t bits = 0, tag = 0;
    bool operator==(const Number &) const = default;
  };
  using Mask = uint64_t;

  Number *at(uint32_t slot) { return values.data() + size_t(slot) * size; }
  const Number &get(Id id, uint32_t part, uint32_t lane);
  void enter(const CodeBlock &block, Mask mask);
  void run(const Step &step, Mask mask);
  void compute(const Step &step, Mask mask);
  Number computeLane(const Step &step, uint32_t part, uint32_t lane);
  Number computeBinary(Op op, const Number &a, const Number &b, uint32_t width);
  Number makeUnknown(uint64_t op, std::initializer_list<Number> from);
  Number computeAddress(const Instruction &instruction, uint32_t lane);
  Number readBuiltIn(uint64_t address, uint32_t part, uint32_t lane);
  void load(const Step &step, Mask mask);
  double access(uint32_t site, Id pointer, Mask mask, uint32_t words = 1);
  void branch(const CodeBlock &block, Mask mask);
  void schedule(const Step &step, double latency);
  void multiply(const Step &step);
  void copyTile(const Step &step, uint32_t lane);
  void waitForCopies(int64_t groupsLeft);
  double getReady(const Step &step) const;
  void assume(const Instruction &instruction, const std::string &what);
  bool isExchange(const Instruction &instruction) const;
  std::optional<Number> getShared(Id id, uint32_t part);

  const Code &code;
  const Place place;
  const Latencies &latencies;
  Listener &listener;
  uint32_t size = 0;
  Mask live = 0;
  std::vector<Number> values; ///< by slot and lane
  std::vector<uint32_t> blockOf;
  std::vector<Id> cameFrom;
  std::vector<uint32_t> visits; ///< of blocks whose branch is not known
  Work work;
  uint64_t rounds = 0, laneSteps = 0;
  bool hasRead = false; ///< whether the block has read an operand
  std::set<std::string> assumptions;
  std::vector<int64_t> addresses;

  // Time: what needs no other result of its block may run ahead of it, as ptxas orders it.
  double clock = 0, ahead = 0;
  std::vector<double> ready; ///< by id
  double joinedLatency = 0;  ///< of the last load
  double copies = 0;         ///< when all copies of the open group are there
  /// Asynchronous copies that are waited for together.
  struct CopyGroup {
    double begun = 0, landed = 0;
    uint64_t barriers = 0; ///< that were passed before
    bool isEmpty = true;
  };
  std::vector<CopyGroup> groups;
  size_t landedGroups = 0; ///< the first ones, that were waited for
  bool hasCopied = false;  ///< since the last group
  uint64_t barriers = 0;   ///< that were passed
  double roundsAhead = 0;
  double products = 0; ///< when all products by four subgroups have ended
  std::vector<double> productGroups;
  std::map<uint64_t, double> tiles; ///< by mbarrier: when all copies of boxes are there
};

} // namespace weir::model

#endif // WEIR_LIB_MODEL_WARP_H

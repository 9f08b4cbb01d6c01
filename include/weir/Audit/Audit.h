//===- Audit.h - Missing and needless barriers of what was recorded *- C++ -*-===//
//
// Follows the commands that an application submits, byte by byte: the last accesses to each
// byte, and the stages of each queue that are ordered after them. Independent of Vulkan's
// headers; tools/audit-layer translates. docs/audit.md defines the words.
//
//===----------------------------------------------------------------------===//

#ifndef WEIR_AUDIT_AUDIT_H
#define WEIR_AUDIT_AUDIT_H

#include "weir/Artifact/ByteMap.h"
#include "weir/Artifact/Plan.h"
#include "weir/Audit/Scopes.h"

#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <vector>

namespace weir::audit {

/// A named range of an allocation.
struct Buffer {
  uint64_t memory = 0; ///< unique id of the allocation, never reused
  int64_t offset = 0;  ///< in the allocation
  int64_t bytes = 0;
  std::string name;
};

/// One access of a command to bytes of a buffer.
struct Touch {
  std::shared_ptr<const Buffer> buffer;
  int64_t begin = 0, end = 0; ///< of the buffer
  Stages stage = 0;           ///< one bit
  Accesses access = 0;        ///< one bit
  bool writes = false;
  bool isCertain = false; ///< whether each of the bytes is touched; else some may be

  bool operator==(const Touch &) const = default;
};

/// A dependency between two scopes: commands before it, in stages `from`, are ordered before
/// commands after it, in stages `to`, and their accesses `fromAccess` become visible to
/// `toAccess`.
struct Dependency {
  Stages from = 0, to = 0; ///< expanded
  Accesses fromAccess = 0, toAccess = 0;
  bool hasMemory = true;                ///< if false, only execution is ordered
  std::shared_ptr<const Buffer> buffer; ///< bytes that become visible; null: all memory
  int64_t begin = 0, end = 0;           ///< of the buffer

  bool operator==(const Dependency &) const = default;
};

struct Command {
  enum class Kind { Touches, Barrier, SetEvent, ResetEvent, WaitEvents } kind = Kind::Touches;
  std::string name; ///< "dispatch 3 ("add") of command buffer "step""
  bool isDispatch = false;
  std::vector<Touch> touches;
  std::vector<Dependency> dependencies; ///< of barriers and of waits for events
  /// Barriers: whether everything it orders is tracked, so that it can be called needless.
  bool isJudged = true;
  std::vector<uint64_t> events;
  Stages eventStages = 0; ///< SetEvent: stages that it waits for, expanded

  bool operator==(const Command &) const = default;
};

/// The contents of a command buffer, with its secondary command buffers inlined.
struct Recording {
  std::vector<std::shared_ptr<const Command>> commands;
  bool hasUnseen = false; ///< whether it has commands that are not tracked

  /// Whether both hold equal commands.
  bool operator==(const Recording &other) const;
};

/// The stages and accesses of hazards, on both sides: those that a barrier must name. Where only
/// reads come before writes, it need not name accesses.
struct Scopes {
  Stages from = 0, to = 0;
  Accesses fromAccess = 0, toAccess = 0;
};

/// Bytes [begin, end) of a buffer.
struct BufferRange {
  std::shared_ptr<const Buffer> buffer;
  int64_t begin = 0, end = 0;
};

/// A semaphore's value to wait for or to signal; 0 for a binary semaphore.
struct SemaphorePoint {
  uint64_t semaphore = 0;
  bool isTimeline = false;
  uint64_t value = 0;
  Stages stages = 0; ///< expanded: the stages that wait, or are waited for
};

/// One batch of a queue submission.
struct Batch {
  std::vector<SemaphorePoint> waits;
  std::vector<std::shared_ptr<const Recording>> recordings;
  std::vector<SemaphorePoint> signals;
  uint64_t fence = 0; ///< 0: none
};

/// Two commands that access the same bytes, at least one writing, without a dependency that
/// orders them and makes the first's accesses visible to the second.
struct Finding {
  size_t number = 0; ///< index in the order of discovery
  HazardKind kind = HazardKind::RAW;
  bool isCertain = false; ///< whether both surely touch the bytes; else they may
  bool isOrdered = false; ///< whether execution is ordered, and only visibility missing
  std::shared_ptr<const Command> from, to;
  std::shared_ptr<const Buffer> buffer; ///< the second command's
  int64_t begin = 0, end = 0;           ///< smallest range of the buffer with all such bytes
  int64_t times = 1;                    ///< number of executions with this finding
  Scopes scopes;                        ///< those that suffice for a barrier between the two
  bool isOfOneQueue = true;             ///< else only a semaphore can order the two
};

/// A needed barrier that names stages which no hazard needs.
struct WideBarrier {
  std::string name;
  Scopes scopes; ///< those that suffice
  std::vector<BufferRange> ranges;
};

struct Summary {
  int64_t dispatches = 0, transfers = 0; ///< executed
  /// Barriers of executed command buffers, each counted once per recording.
  int64_t barriers = 0, notJudged = 0, needless = 0;
  std::vector<std::string> needlessNames; ///< the first ones
  int64_t tooWide = 0;
  std::vector<WideBarrier> wideBarriers; ///< the first ones
  std::vector<Finding> findings;         ///< the first ones, certain ones before others
  int64_t missing = 0, possible = 0;     ///< all findings
  int64_t unsignalled = 0;               ///< batches that wait for a signal never seen here
};

/// Checks the commands of all queues; a queue is named by a number.
class Checker {
public:
  /// Adds a batch. Needs: `resetFence` between two batches with the same fence.
  void submit(uint32_t queue, const Batch &batch);

  // Actions of the host, and what it learns by waiting.
  void resetFence(uint64_t fence);
  void finishFence(uint64_t fence);
  void finishQueue(uint32_t queue);
  void finishAll();
  void setTimeline(uint64_t semaphore,
                   uint64_t value); ///< at creation, or by a signal from the host
  void finishTimeline(uint64_t semaphore, uint64_t value);
  void resetEvent(uint64_t event); ///< or set: set by the host, it orders no commands

  void freeMemory(uint64_t memory);
  void freeSemaphore(uint64_t semaphore);
  /// Forgets a recording that will not run again.
  void forget(const Recording &recording);

  Summary getSummary() const;

private:
  /// Stages of a queue that are ordered after an access, from a moment on.
  struct After {
    uint32_t queue = 0;
    uint64_t since = 0;
    Stages stages = 0;
    Accesses accesses = 0; ///< accesses of these stages to which it is visible
    bool isShown = false;  ///< whether it is available
    bool usesBarriers = false;
  };
  struct Access {
    std::shared_ptr<const Command> command;
    uint32_t queue = 0;
    uint64_t moment = 0;
    Stages stage = 0;
    Accesses access = 0;
    bool writes = false, isCertain = false;
    std::vector<After> after;
  };
  /// The accesses to a run of bytes since its last certain write, and that write. An access
  /// ordered after these is ordered after all earlier ones, whose order was checked when they
  /// were added. Of accesses that every barrier treats alike, only the last is kept.
  struct LastAccesses {
    std::vector<Access> writers, readers;
  };
  /// All commands of a queue in a scope, up to a moment.
  struct Point {
    uint32_t queue = 0;
    uint64_t moment = 0;
    Stages stages = allStages;
  };
  struct Timeline {
    uint64_t value = 0;
    std::map<uint64_t, Point> signals; ///< by value
  };
  struct Barrier {
    std::shared_ptr<const Command> command;
    bool isInner = false, isNeeded = false;
    /// Whether it orders accesses only together with other barriers; then its scopes stay.
    bool isPartOfChain = false;
    Scopes scopes; ///< of the hazards that it orders by itself
    std::vector<BufferRange> ranges;
  };
  struct Passed {
    uint64_t moment = 0;
    const Command *barrier = nullptr;
  };
  struct Queue {
    std::vector<Batch> waiting; ///< batches that wait for a value not yet signalled
    std::vector<Passed> barriers;
  };

  void runWaiting();
  void runAll(uint32_t number, Queue &queue);
  bool canRun(const Batch &batch) const;
  void run(uint32_t queue, const Batch &batch);
  void run(uint32_t queue, const Recording &recording);
  void touch(uint32_t queue, const std::shared_ptr<const Command> &command);
  void require(const Access &from, const Access &to, const Touch &touch, int64_t begin,
               int64_t end);
  void report(HazardKind kind, bool isOrdered, const Access &from, const Access &to,
              const Touch &touch, int64_t begin, int64_t end);
  static void judge(const Barrier &barrier, Summary &summary);
  static void addScopes(Scopes &scopes, const Access &from, const Access &to);
  void need(const Access &from, const Access &to, const Touch &touch, int64_t begin, int64_t end);
  /// Orders commands of `queue` after the dependency behind everything before `point`.
  void apply(const Dependency &dependency, const Point &point, uint32_t queue, bool isBarrier);
  void finish(const Point &point);
  template <typename Drop> void drop(Drop drop);

  std::map<uint64_t, ByteMap<LastAccesses>> memory;
  std::map<uint32_t, Queue> queues;
  std::map<uint64_t, Timeline> timelines;
  std::map<uint64_t, Point> binaries, fences, events;
  uint64_t now = 1;

  std::map<const Command *, Barrier> barriers;
  using Key = std::tuple<const Command *, const Command *, HazardKind, bool, const Buffer *>;
  std::map<Key, Finding> findings;
  Summary summary; ///< counts, and findings of forgotten recordings
};

/// Prints for people: one line per finding, one with the counts. `unseen` maps what was not
/// tracked to the number of times.
std::string print(const Summary &summary, const std::string &device,
                  const std::map<std::string, int64_t> &unseen);
/// Prints one JSON object on one line, see docs/audit.md.
std::string printJson(const Summary &summary, const std::string &device,
                      const std::map<std::string, int64_t> &unseen);

} // namespace weir::audit

#endif // WEIR_AUDIT_AUDIT_H

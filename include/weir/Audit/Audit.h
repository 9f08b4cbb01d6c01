//===- Audit.h - Missing and needless barriers of what was recorded *- C++ -*-===//
//
// What an application gave its queues, followed byte by byte: who touched a byte last, and
// which stages of which queue come after that. No Vulkan in here; tools/audit-layer
// translates. What the words mean is in docs/audit.md.
//
//===----------------------------------------------------------------------===//

#ifndef WEIR_AUDIT_AUDIT_H
#define WEIR_AUDIT_AUDIT_H

#include "weir/Artifact/Plan.h"
#include "weir/Audit/Scopes.h"
#include "weir/Artifact/ByteMap.h"

#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <vector>

namespace weir::audit {

/// A range of an allocation that has a name for people.
struct Buffer {
  uint64_t memory = 0; ///< names the allocation; never used again for another
  int64_t offset = 0;  ///< bytes from the allocation's begin
  int64_t bytes = 0;
  std::string name;
};

/// Bytes that a command touches.
struct Touch {
  std::shared_ptr<const Buffer> buffer;
  int64_t begin = 0, end = 0; ///< of the buffer
  Stages stage = 0;           ///< one bit
  Accesses access = 0;        ///< one bit
  bool writes = false;
  bool isCertain = false; ///< it touches each of the bytes; else it may
};

/// What comes before, in the first scope, is ordered before what comes after, in the
/// second, and is visible there.
struct Dependency {
  Stages from = 0, to = 0; ///< expanded
  Accesses fromAccess = 0, toAccess = 0;
  bool hasMemory = true;                ///< else execution alone is ordered
  std::shared_ptr<const Buffer> buffer; ///< whose bytes become visible; null: all memory's
  int64_t begin = 0, end = 0;           ///< of the buffer
};

struct Command {
  enum class Kind { Touches, Barrier, SetEvent, ResetEvent, WaitEvents } kind = Kind::Touches;
  std::string name; ///< "dispatch 3 ("add") of command buffer "step""
  bool isDispatch = false;
  std::vector<Touch> touches;
  std::vector<Dependency> dependencies; ///< of barriers, and what waiting for events does
  /// All that it does is looked at; else nobody knows whether a barrier is needed.
  bool isJudged = true;
  std::vector<uint64_t> events;
  Stages eventStages = 0; ///< SetEvent: what it comes after, expanded
};

/// A command buffer's contents. Those that it executes are written out in it.
struct Recording {
  std::vector<std::shared_ptr<const Command>> commands;
  bool hasUnseen = false; ///< it has commands that are not looked at
};

/// A semaphore's value to wait for, or to signal. Of a binary one the value is 0.
struct SemaphorePoint {
  uint64_t semaphore = 0;
  bool isTimeline = false;
  uint64_t value = 0;
  Stages stages = 0; ///< expanded: who waits, or what is waited for
};

/// What is given to a queue in one go.
struct Batch {
  std::vector<SemaphorePoint> waits;
  std::vector<std::shared_ptr<const Recording>> recordings;
  std::vector<SemaphorePoint> signals;
  uint64_t fence = 0; ///< 0: none
};

/// Two commands that touch the same bytes, one writing, and nothing makes the second see
/// what the first did.
struct Finding {
  size_t number = 0; ///< in the order that they were found in
  HazardKind kind = HazardKind::RAW;
  bool isCertain = false; ///< both touch the bytes; else they may
  bool isOrdered = false; ///< the second begins after the first, which is not visible to it
  std::shared_ptr<const Command> from, to;
  std::shared_ptr<const Buffer> buffer; ///< of the second
  int64_t begin = 0, end = 0;           ///< of the buffer: the first and the last such byte
  int64_t times = 1;                    ///< that they were executed so
};

struct Summary {
  int64_t dispatches = 0, transfers = 0; ///< executed
  /// Barriers of command buffers that were executed, each counted once for each
  /// recording.
  int64_t barriers = 0, notJudged = 0, needless = 0;
  std::vector<std::string> needlessNames; ///< the first ones
  std::vector<Finding> findings;          ///< the first ones, the certain ones before others
  int64_t missing = 0, possible = 0;      ///< all findings
  int64_t unsignalled = 0;                ///< batches that wait for what nobody has signalled here
};

/// Follows queues, each known by a number.
class Checker {
public:
  /// Needs: a fence is not given to two batches unless `resetFence` is between.
  void submit(uint32_t queue, const Batch &batch);

  // What the host does, or learns.
  void resetFence(uint64_t fence);
  void finishFence(uint64_t fence);
  void finishQueue(uint32_t queue);
  void finishAll();
  void setTimeline(uint64_t semaphore, uint64_t value); ///< when made, or by a host's signal
  void finishTimeline(uint64_t semaphore, uint64_t value);
  void resetEvent(uint64_t event); ///< or set: by the host it orders nothing of commands

  void freeMemory(uint64_t memory);
  void freeSemaphore(uint64_t semaphore);
  /// It will not run again.
  void forget(const Recording &recording);

  Summary getSummary() const;

private:
  /// Stages of a queue that come after an access, from a moment on.
  struct After {
    uint32_t queue = 0;
    uint64_t since = 0;
    Stages stages = 0;
    Accesses accesses = 0; ///< to which it is visible there
    bool isShown = false;  ///< it is available
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
  /// Who touched a run of bytes since it was surely written, and who did that. Whoever
  /// comes after these comes after all earlier ones, whose own order was checked when
  /// they came. Of accesses that every barrier treats alike the last one is kept.
  struct Touched {
    std::vector<Access> writers, readers;
  };
  /// Everything in a scope on a queue, up to a moment.
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
  };
  struct Passed {
    uint64_t moment = 0;
    const Command *barrier = nullptr;
  };
  struct Queue {
    std::vector<Batch> waiting; ///< for values that nobody has signalled
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
  void need(const Access &from, const Access &to, const Touch &touch, int64_t begin, int64_t end);
  /// What is behind the dependency on the queue comes after what is before the point.
  void apply(const Dependency &dependency, const Point &point, uint32_t queue, bool isBarrier);
  void finish(const Point &point);
  template <typename Drop> void drop(Drop drop);

  std::map<uint64_t, ByteMap<Touched>> memory;
  std::map<uint32_t, Queue> queues;
  std::map<uint64_t, Timeline> timelines;
  std::map<uint64_t, Point> binaries, fences, events;
  uint64_t now = 1;

  std::map<const Command *, Barrier> barriers;
  using Key = std::tuple<const Command *, const Command *, HazardKind, bool, const Buffer *>;
  std::map<Key, Finding> findings;
  Summary summary; ///< of what is forgotten, and the counts
};

/// For people: a line for each finding, one with the counts. `unseen` says what was not
/// looked at, and how often.
std::string print(const Summary &summary, const std::string &device,
                  const std::map<std::string, int64_t> &unseen);
/// One object of JSON in one line, see docs/audit.md.
std::string printJson(const Summary &summary, const std::string &device,
                      const std::map<std::string, int64_t> &unseen);

} // namespace weir::audit

#endif // WEIR_AUDIT_AUDIT_H

//===- ThreadPool.h - Shares a run's work among threads ---------*- C++ -*-===//

#ifndef WEIR_LIB_RUNTIME_THREADPOOL_H
#define WEIR_LIB_RUNTIME_THREADPOOL_H

#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <random>
#include <thread>
#include <vector>

namespace weir::runtime {

/// The work of a run, in steps: pieces of one step may run at the same time, in any order, and the
/// next step begins when all have ended.
class Work {
public:
  virtual ~Work() = default;
  virtual size_t getStepCount() const = 0;
  virtual size_t getPieceCount(size_t step) const = 0;
  /// Does one piece. Throws nothing.
  virtual void run(size_t step, size_t piece) const noexcept = 0;
};

/// The way in which a pool works.
struct PoolOptions {
  size_t threads = 1;
  /// Whether each thread that the pool starts stays on one core.
  bool pins = false;
  /// Seed of a schedule that runs pieces in any order, for tests.
  std::optional<uint64_t> seed = std::nullopt;
};

/// Returns the options that the environment sets: `WEIR_THREADS` (default: one for each core that
/// this process may use), `WEIR_PIN` and `WEIR_SCHEDULE_SEED`.
/// Errors: `Error` where a variable is not a number in its range.
PoolOptions readPoolOptions();

/// Threads that share out runs with the thread that asks for them. One run at a time.
///
/// A step of one piece costs no exchange with another thread. Between two steps the others spin, so
/// that a step begins within a microsecond; between two runs they sleep after a while.
///
/// The threads take no signals but those of faults, so handlers run on the caller's own threads.
/// With a seed, pieces of a step run in an order and on threads that are drawn from it, with
/// pauses: what lacks a barrier gets other bits under some seeds.
/// In a child that `fork` made, only the caller's thread is left and does everything.
class ThreadPool {
public:
  /// Starts one thread less than `options` say: the caller's is the first. Errors: `Error` where
  /// one cannot be started or pinned; none is left then.
  explicit ThreadPool(const PoolOptions &options);
  ~ThreadPool();
  ThreadPool(const ThreadPool &) = delete;
  ThreadPool &operator=(const ThreadPool &) = delete;

  size_t getThreadCount() const { return threads.size() + 1; }
  /// Whether the schedule comes from a seed.
  bool hasSeed() const { return random.has_value(); }

  /// Does all of `work` and returns when it has ended.
  void run(const Work &work);

private:
  /// The state of a step that threads share; each on a line of its own in the cache.
  struct alignas(64) Step {
    std::atomic<size_t> next{0};  ///< piece to be taken
    std::atomic<size_t> ended{0}; ///< pieces
  };

  /// A piece of a step, with the thread that does it and how often that yields first.
  struct Turn {
    size_t piece, thread;
    unsigned yields;
  };

  /// Words that threads sleep by.
  struct Sleep {
    std::mutex mutex;
    std::condition_variable wakeUp;
  };

  void start(size_t count);
  void pin();
  /// Forgets the threads in a child of `fork`, which has none of them.
  void forgetLostThreads();
  void serve(size_t thread);
  void help(const Work &work, size_t thread);
  /// Whether threads share out a step of `pieces` pieces.
  bool isShared(size_t pieces) const { return hasSeed() || (!threads.empty() && pieces > 1); }
  /// Takes pieces of a step until there are none.
  void takePieces(const Work &work, size_t number, size_t thread);
  /// Does as `takePieces`, by a schedule from the seed.
  void takeTurns(const Work &work, size_t number, size_t thread);
  void drawTurns(const Work &work);
  void stop() noexcept;

  std::vector<std::thread> threads;
  std::vector<Step> steps;
  std::optional<std::mt19937_64> random; ///< if the schedule comes from a seed
  std::vector<std::vector<Turn>> turns;  ///< of each step, then
  std::atomic<size_t> step{0}; ///< that is under way; the count of steps when all have ended
  std::atomic<size_t> helpers{0};
  std::atomic<const Work *> current{nullptr};
  std::atomic<uint64_t> runs{0}; ///< that began
  std::atomic<size_t> sleepers{0};
  std::atomic<bool> isStopping{false};
  std::unique_ptr<Sleep> sleep = std::make_unique<Sleep>();
  unsigned forks; ///< of this process before the threads started
};

} // namespace weir::runtime

#endif // WEIR_LIB_RUNTIME_THREADPOOL_H

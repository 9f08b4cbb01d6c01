//===- ThreadPool.h - Shares a run's work among threads ---------*- C++ -*-===//

#ifndef WEIR_RUNTIME_THREADPOOL_H
#define WEIR_RUNTIME_THREADPOOL_H

#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <mutex>
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

/// Threads that share out runs with the thread that asks for them. One run at a time.
///
/// A step of one piece costs no exchange with another thread. Between two steps the others spin, so
/// that a step begins within a microsecond; between two runs they sleep after a while.
class ThreadPool {
public:
  /// Starts `threads` - 1 threads. Errors: `Error` where one cannot be started; none is left then.
  explicit ThreadPool(size_t threads);
  ~ThreadPool();
  ThreadPool(const ThreadPool &) = delete;
  ThreadPool &operator=(const ThreadPool &) = delete;

  size_t getThreadCount() const { return threads.size() + 1; }

  /// Does all of `work` and returns when it has ended.
  void run(const Work &work);

private:
  /// The state of a step that threads share; each on a line of its own in the cache.
  struct alignas(64) Step {
    std::atomic<size_t> next{0};  ///< piece to be taken
    std::atomic<size_t> ended{0}; ///< pieces
  };

  void serve();
  void help(const Work &work);
  /// Takes pieces of a step until there are none.
  void takePieces(const Work &work, size_t number);
  void stop() noexcept;

  std::vector<std::thread> threads;
  std::vector<Step> steps;
  std::atomic<size_t> step{0}; ///< that is under way; the count of steps when all have ended
  std::atomic<size_t> helpers{0};
  std::atomic<const Work *> current{nullptr};
  std::atomic<uint64_t> runs{0}; ///< that began
  std::atomic<size_t> sleepers{0};
  std::atomic<bool> isStopping{false};
  std::mutex mutex;
  std::condition_variable wakeUp;
};

/// Returns how many threads share out runs: `WEIR_THREADS`, or one for each core that this process
/// may use. Errors: `Error` where the variable is not a number from 1 to 1024.
size_t chooseThreadCount();

} // namespace weir::runtime

#endif // WEIR_RUNTIME_THREADPOOL_H

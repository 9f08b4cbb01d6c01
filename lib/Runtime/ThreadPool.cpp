//===- ThreadPool.cpp - Shares a run's work among threads -----------------===//

#include "ThreadPool.h"

#include "weir/Artifact/Error.h"

#include <charconv>
#include <cstdlib>
#include <cstring>
#include <sched.h>
#include <string>
#include <system_error>

namespace weir::runtime {

// Some tens of microseconds: what lies between two calls of a loop that reads each result.
static constexpr int spinsBeforeSleep = 4000;
// A thread that waits this long within a run lets others of its core work.
static constexpr int spinsBeforeYield = 1000;

static void pause() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

/// Spins until `isDone` says so.
template <typename Condition> static void spinUntil(Condition isDone) {
  for (int spins = 0; !isDone(); ++spins) {
    if (spins < spinsBeforeYield)
      pause();
    else
      std::this_thread::yield();
  }
}

size_t chooseThreadCount() {
  constexpr size_t maxThreads = 1024;
  if (const char *text = std::getenv("WEIR_THREADS")) {
    size_t count = 0;
    const char *end = text + std::strlen(text);
    auto [rest, error] = std::from_chars(text, end, count);
    if (error != std::errc() || rest != end || count < 1 || count > maxThreads)
      throw Error("WEIR_THREADS is '" + std::string(text) + "'; expected a number from 1 to " +
                  std::to_string(maxThreads));
    return count;
  }
  cpu_set_t cores;
  if (sched_getaffinity(0, sizeof(cores), &cores) == 0)
    return size_t(CPU_COUNT(&cores));
  return std::max(1u, std::thread::hardware_concurrency());
}

ThreadPool::ThreadPool(size_t count) {
  try {
    for (size_t i = 1; i < count; ++i)
      threads.emplace_back([this] { serve(); });
  } catch (const std::system_error &error) {
    size_t started = threads.size() + 1;
    stop();
    throw Error("the system started " + std::to_string(started) + " of " + std::to_string(count) +
                " threads: " + error.what() + "; set WEIR_THREADS to fewer");
  }
}

ThreadPool::~ThreadPool() { stop(); }

void ThreadPool::stop() noexcept {
  {
    std::lock_guard lock(mutex);
    isStopping = true;
  }
  wakeUp.notify_all();
  for (std::thread &thread : threads)
    thread.join();
  threads.clear();
}

void ThreadPool::takePieces(const Work &work, size_t number) {
  Step &shared = steps[number];
  size_t count = work.getPieceCount(number);
  for (size_t piece; (piece = shared.next.fetch_add(1, std::memory_order_relaxed)) < count;) {
    work.run(number, piece);
    shared.ended.fetch_add(1, std::memory_order_release);
  }
}

void ThreadPool::run(const Work &work) {
  size_t count = work.getStepCount();
  bool isShared = false;
  for (size_t number = 0; number < count && !threads.empty() && !isShared; ++number)
    isShared = work.getPieceCount(number) > 1;
  if (!isShared) {
    for (size_t number = 0; number < count; ++number)
      for (size_t piece = 0; piece < work.getPieceCount(number); ++piece)
        work.run(number, piece);
    return;
  }

  // No helper is in a run here, so nobody looks at the steps.
  if (steps.size() < count)
    steps = std::vector<Step>(count);
  for (size_t number = 0; number < count; ++number) {
    steps[number].next.store(0, std::memory_order_relaxed);
    steps[number].ended.store(0, std::memory_order_relaxed);
  }
  step = 0;
  current = &work;
  ++runs;
  if (sleepers > 0) {
    std::lock_guard lock(mutex); // one that is about to sleep has it, or sleeps
    wakeUp.notify_all();
  }
  for (size_t number = 0; number < count; ++number) {
    size_t pieces = work.getPieceCount(number);
    if (pieces == 1) {
      work.run(number, 0);
    } else {
      takePieces(work, number);
      spinUntil([&] { return steps[number].ended.load(std::memory_order_acquire) == pieces; });
    }
    step.store(number + 1, std::memory_order_release);
  }
  // A helper counts itself before it looks at `current`: it is seen here, or sees none there.
  current = nullptr;
  spinUntil([&] { return helpers == 0; });
}

void ThreadPool::help(const Work &work) {
  size_t count = work.getStepCount();
  for (size_t number = step.load(std::memory_order_acquire); number < count;) {
    if (work.getPieceCount(number) > 1)
      takePieces(work, number);
    size_t next = number;
    spinUntil([&] { return (next = step.load(std::memory_order_acquire)) != number; });
    number = next;
  }
}

void ThreadPool::serve() {
  for (uint64_t seen = 0;;) {
    auto hasWork = [&] { return runs != seen || isStopping; };
    int spins = 0;
    while (!hasWork() && ++spins < spinsBeforeSleep)
      pause();
    if (!hasWork()) {
      std::unique_lock lock(mutex);
      ++sleepers;
      wakeUp.wait(lock, hasWork);
      --sleepers;
    }
    if (isStopping)
      return;
    seen = runs;
    ++helpers;
    if (const Work *work = current)
      help(*work);
    --helpers;
  }
}

} // namespace weir::runtime

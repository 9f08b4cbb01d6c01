//===- ThreadPool.cpp - Shares a run's work among threads -----------------===//

#include "ThreadPool.h"

#include "weir/Artifact/Error.h"

#include <algorithm>
#include <charconv>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <pthread.h>
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

//===----------------------------------------------------------------------===//
// Options
//===----------------------------------------------------------------------===//

/// Returns the number that a variable of the environment has. Errors: `Error` if it is another.
static std::optional<uint64_t> readNumber(const std::string &name, uint64_t min, uint64_t max) {
  const char *text = std::getenv(name.c_str());
  if (!text)
    return std::nullopt;
  uint64_t number = 0;
  const char *end = text + std::strlen(text);
  auto [rest, error] = std::from_chars(text, end, number);
  if (error != std::errc() || rest != end || number < min || number > max)
    throw Error(name + " is '" + text + "'; expected a number from " + std::to_string(min) +
                " to " + std::to_string(max));
  return number;
}

/// Returns the cores that this process may use; none if the system does not tell.
static std::vector<int> listCores() {
  cpu_set_t allowed;
  std::vector<int> cores;
  if (sched_getaffinity(0, sizeof(allowed), &allowed) == 0)
    for (int core = 0; core < CPU_SETSIZE; ++core)
      if (CPU_ISSET(core, &allowed))
        cores.push_back(core);
  return cores;
}

PoolOptions readPoolOptions() {
  constexpr uint64_t maxThreads = 1024;
  PoolOptions options;
  options.threads = listCores().size();
  if (options.threads == 0)
    options.threads = std::max(1u, std::thread::hardware_concurrency());
  options.threads = size_t(readNumber("WEIR_THREADS", 1, maxThreads).value_or(options.threads));
  options.pins = readNumber("WEIR_PIN", 0, 1).value_or(0) == 1;
  options.seed = readNumber("WEIR_SCHEDULE_SEED", 0, UINT64_MAX);
  return options;
}

//===----------------------------------------------------------------------===//
// Starting and stopping
//===----------------------------------------------------------------------===//

namespace {
/// Keeps signals from this thread, and from those that it starts, but for those of faults and
/// those that profilers send.
class WithoutSignals {
public:
  WithoutSignals() {
    sigset_t blocked;
    sigfillset(&blocked);
    for (int signal : {SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGTRAP, SIGSYS, SIGABRT, SIGPROF})
      sigdelset(&blocked, signal);
    pthread_sigmask(SIG_SETMASK, &blocked, &before);
  }
  ~WithoutSignals() { pthread_sigmask(SIG_SETMASK, &before, nullptr); }

private:
  sigset_t before;
};
} // namespace

/// Returns how many calls of `fork` lie between the first process that asked and this one.
static unsigned countForks() {
  static std::atomic<unsigned> forks{0};
  static const int registered = pthread_atfork(nullptr, nullptr, [] { ++forks; });
  (void)registered;
  return forks.load(std::memory_order_relaxed);
}

ThreadPool::ThreadPool(const PoolOptions &options) : forks(countForks()) {
  if (options.seed)
    random.emplace(*options.seed);
  try {
    start(options.threads);
    if (options.pins)
      pin();
  } catch (...) {
    stop();
    throw;
  }
}

void ThreadPool::start(size_t count) {
  WithoutSignals blocked;
  try {
    for (size_t i = 1; i < count; ++i)
      threads.emplace_back([this, i] { serve(i); });
  } catch (const std::system_error &error) {
    throw Error("the system started " + std::to_string(getThreadCount()) + " of " +
                std::to_string(count) + " threads: " + error.what() +
                "; set WEIR_THREADS to fewer");
  }
}

void ThreadPool::pin() {
  std::vector<int> cores = listCores();
  if (cores.empty())
    throw Error("the system does not tell which cores this process may use; set WEIR_PIN to 0");
  for (size_t i = 0; i < threads.size(); ++i) {
    // The first core is left to the caller's thread, whose cores are the caller's to choose.
    int core = cores[(i + 1) % cores.size()];
    cpu_set_t chosen;
    CPU_ZERO(&chosen);
    CPU_SET(core, &chosen);
    if (int error = pthread_setaffinity_np(threads[i].native_handle(), sizeof(chosen), &chosen))
      throw Error("the system did not pin a thread to core " + std::to_string(core) + ": " +
                  std::strerror(error) + "; set WEIR_PIN to 0");
  }
}

ThreadPool::~ThreadPool() { stop(); }

void ThreadPool::forgetLostThreads() {
  if (forks == countForks())
    return;
  forks = countForks();
  // None can be joined, and what they held when the process was copied stays held: leave both.
  new std::vector<std::thread>(std::move(threads));
  threads.clear();
  (void)sleep.release();
  sleep = std::make_unique<Sleep>();
  sleepers = 0;
  helpers = 0;
}

void ThreadPool::stop() noexcept {
  forgetLostThreads();
  {
    std::lock_guard lock(sleep->mutex);
    isStopping = true;
  }
  sleep->wakeUp.notify_all();
  for (std::thread &thread : threads)
    thread.join();
  threads.clear();
}

//===----------------------------------------------------------------------===//
// Running
//===----------------------------------------------------------------------===//

void ThreadPool::drawTurns(const Work &work) {
  turns.assign(work.getStepCount(), {});
  for (size_t number = 0; number < turns.size(); ++number) {
    std::vector<Turn> &step = turns[number];
    for (size_t piece = 0; piece < work.getPieceCount(number); ++piece) {
      // One turn of four comes late.
      unsigned yields = (*random)() % 4 == 0 ? unsigned((*random)() % 32) : 0;
      step.push_back({piece, size_t((*random)() % getThreadCount()), yields});
    }
    std::shuffle(step.begin(), step.end(), *random);
  }
}

void ThreadPool::takeTurns(const Work &work, size_t number, size_t thread) {
  Step &shared = steps[number];
  const std::vector<Turn> &step = turns[number];
  while (true) {
    size_t next = 0;
    spinUntil([&] {
      next = shared.next.load(std::memory_order_acquire);
      return next >= step.size() || step[next].thread == thread;
    });
    if (next >= step.size())
      return;
    shared.next.store(next + 1, std::memory_order_release);
    for (unsigned i = 0; i < step[next].yields; ++i)
      std::this_thread::yield();
    work.run(number, step[next].piece);
    shared.ended.fetch_add(1, std::memory_order_release);
  }
}

void ThreadPool::takePieces(const Work &work, size_t number, size_t thread) {
  if (hasSeed())
    return takeTurns(work, number, thread);
  Step &shared = steps[number];
  size_t count = work.getPieceCount(number);
  for (size_t piece; (piece = shared.next.fetch_add(1, std::memory_order_relaxed)) < count;) {
    work.run(number, piece);
    shared.ended.fetch_add(1, std::memory_order_release);
  }
}

void ThreadPool::run(const Work &work) {
  forgetLostThreads();
  size_t count = work.getStepCount();
  bool isAnyShared = false;
  for (size_t number = 0; number < count && !isAnyShared; ++number)
    isAnyShared = isShared(work.getPieceCount(number));
  if (!isAnyShared) {
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
  if (hasSeed())
    drawTurns(work);
  step = 0;
  current = &work;
  ++runs;
  if (sleepers > 0) {
    std::lock_guard lock(sleep->mutex); // one that is about to sleep has it, or sleeps
    sleep->wakeUp.notify_all();
  }
  for (size_t number = 0; number < count; ++number) {
    size_t pieces = work.getPieceCount(number);
    if (isShared(pieces)) {
      takePieces(work, number, 0);
      spinUntil([&] { return steps[number].ended.load(std::memory_order_acquire) == pieces; });
    } else {
      work.run(number, 0);
    }
    step.store(number + 1, std::memory_order_release);
  }
  // A helper counts itself before it looks at `current`: it is seen here, or sees none there.
  current = nullptr;
  spinUntil([&] { return helpers == 0; });
}

void ThreadPool::help(const Work &work, size_t thread) {
  size_t count = work.getStepCount();
  for (size_t number = step.load(std::memory_order_acquire); number < count;) {
    if (isShared(work.getPieceCount(number)))
      takePieces(work, number, thread);
    size_t next = number;
    spinUntil([&] { return (next = step.load(std::memory_order_acquire)) != number; });
    number = next;
  }
}

void ThreadPool::serve(size_t thread) {
  for (uint64_t seen = 0;;) {
    auto hasWork = [&] { return runs != seen || isStopping; };
    int spins = 0;
    while (!hasWork() && ++spins < spinsBeforeSleep)
      pause();
    if (!hasWork()) {
      std::unique_lock lock(sleep->mutex);
      ++sleepers;
      sleep->wakeUp.wait(lock, hasWork);
      --sleepers;
    }
    if (isStopping)
      return;
    seen = runs;
    ++helpers;
    if (const Work *work = current)
      help(*work, thread);
    --helpers;
  }
}

} // namespace weir::runtime

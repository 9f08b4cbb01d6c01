//===- Program.cpp - Loads an artifact, runs its entries ------------------===//

#include "Program.h"

#include "LoopRecording.h"

#include <algorithm>
#include <utility>

namespace weir::runtime {

// Max number of recordings kept. Each holds objects of the driver. A training loop needs a few
// sets of buffers, and a caller that always makes new buffers gains nothing from old
// recordings.
static constexpr size_t maxRecordings = 64;

//===----------------------------------------------------------------------===//
// Loading
//===----------------------------------------------------------------------===//

static std::string quote(const std::string &text) { return "'" + text + "'"; }

static bool isWrite(Access access) { return access == Access::Write || access == Access::Update; }

static std::vector<bool> findWrittenArguments(const EntrySpec &spec, const Plan &plan) {
  std::vector<bool> written(spec.arguments.size(), false);
  for (const Command &command : plan.commands) {
    if (command.kind != Command::Kind::Dispatch)
      continue;
    const Kernel &kernel = plan.kernels[size_t(command.kernel)];
    for (size_t i = 0; i < command.operands.size(); ++i) {
      const Allocation &allocation = plan.allocations[size_t(command.operands[i].allocation)];
      if (allocation.kind == AllocationKind::Argument && isWrite(kernel.operands[i].access))
        written[size_t(allocation.index)] = true;
    }
  }
  return written;
}

Program::Program(std::shared_ptr<Device> owner, const Artifact &artifact, const Profile &profile)
    : device(std::move(owner)), target(profile.target) {
  for (const EntrySpec &spec : artifact.manifest.entries) {
    Entry &entry = entries[spec.name];
    entry.spec = spec;
    // `readArtifact` checked that there is a plan for every entry and target.
    entry.plan = *artifact.findPlan(spec.name, profile.target);
    entry.writesArgument = findWrittenArguments(spec, entry.plan);
    entry.resultInArgument.assign(spec.arguments.size(), -1);
    for (const Allocation &allocation : entry.plan.allocations)
      if (allocation.kind == AllocationKind::Argument)
        entry.resultInArgument[size_t(allocation.index)] = allocation.result;
  }

  constants = device->allocate(int64_t(artifact.constants.size()), Placement::Shared);
  try {
    if (constants.bytes > 0)
      device->write(constants, 0, artifact.constants.data(), constants.bytes);
  } catch (...) {
    device->waitNoThrow(); // a part may be on its way to memory that is about to be freed
    throw;
  }
  device->users.push_back(this);
}

Program::~Program() {
  std::erase(device->users, this);
  device->waitNoThrow();
}

//===----------------------------------------------------------------------===//
// Running
//===----------------------------------------------------------------------===//

static void checkCount(const EntrySpec &spec, const char *what, size_t expected, size_t given) {
  if (expected != given)
    throw BadArgument("entry '" + spec.name + "' has " + std::to_string(expected) + " " + what +
                      ", but " + std::to_string(given) + " were given");
}

static void checkSizes(const EntrySpec &spec, const char *what,
                       const std::vector<TensorSpec> &tensors,
                       const std::vector<const Storage *> &buffers) {
  for (size_t i = 0; i < tensors.size(); ++i) {
    int64_t bytes = getByteSize(tensors[i]);
    int64_t given = buffers[i] ? buffers[i]->bytes : 0;
    if (bytes == given)
      continue;
    std::string has = buffers[i] ? "has " + std::to_string(given) : "is null";
    throw BadArgument("entry '" + spec.name + "': " + what + " '" + tensors[i].name + "' has " +
                      std::to_string(bytes) + " bytes, but its buffer " + has);
  }
}

void Program::checkBuffers(const Entry &entry, const std::vector<const Storage *> &arguments,
                           const std::vector<const Storage *> &results) const {
  const EntrySpec &spec = entry.spec;
  checkCount(spec, "arguments", spec.arguments.size(), arguments.size());
  checkCount(spec, "results", spec.results.size(), results.size());
  checkSizes(spec, "argument", spec.arguments, arguments);
  checkSizes(spec, "result", spec.results, results);

  // The plan's barriers are correct only for disjoint allocations.
  struct User {
    std::string name;
    bool written;
  };
  std::map<const Storage *, User> users;
  auto use = [&](const Storage *storage, const std::string &name, bool write) {
    if (!storage || storage->bytes == 0)
      return;
    auto [found, isNew] = users.try_emplace(storage, User{name, write});
    if (!isNew && (write || found->second.written))
      throw BadArgument("entry '" + spec.name + "': " + found->second.name + " and " + name +
                        " are the same buffer, but a run writes it; give each "
                        "its own");
  };
  // A donated argument shares a buffer with its result, or is copied and unchanged.
  std::vector<bool> isInArgument(results.size(), false);
  for (size_t i = 0; i < arguments.size(); ++i) {
    int64_t result = entry.resultInArgument[i];
    bool inPlace = result >= 0 && arguments[i] == results[size_t(result)];
    if (inPlace)
      isInArgument[size_t(result)] = true;
    use(arguments[i], "argument " + quote(spec.arguments[i].name),
        result < 0 ? entry.writesArgument[i] : inPlace);
  }
  for (size_t i = 0; i < results.size(); ++i)
    if (!isInArgument[i])
      use(results[i], "result " + quote(spec.results[i].name), true);
}

void Program::growArena(int64_t bytes) {
  if (bytes <= arena.bytes)
    return;
  if (arena.bytes > 0) {
    device->wait();
    recordings.clear(); // they use the old arena
    arena = Storage();  // freed first, so that old and new need not fit together
  }
  arena = device->allocate(bytes, Placement::Device);
}

const Program::Entry &Program::findEntry(const std::string &name) const {
  auto found = entries.find(name);
  if (found != entries.end())
    return found->second;
  std::string known;
  for (const auto &[other, entry] : entries)
    known += (known.empty() ? "" : ", ") + quote(other);
  throw BadArgument("the program has no entry '" + name + "'; it has " +
                    (known.empty() ? "none" : known));
}

int64_t Program::getResultIn(const std::string &name, size_t argument) const {
  const Entry &entry = findEntry(name);
  if (argument >= entry.resultInArgument.size())
    throw BadArgument("entry '" + name + "' has no argument " + std::to_string(argument) +
                      ": it has " + std::to_string(entry.resultInArgument.size()) +
                      ", counted from 0");
  return entry.resultInArgument[argument];
}

std::vector<StorageCopy> Program::getCopies(const Entry &entry,
                                            const std::vector<const Storage *> &arguments,
                                            const std::vector<const Storage *> &results) const {
  std::vector<StorageCopy> copies;
  for (size_t i = 0; i < arguments.size(); ++i)
    if (int64_t result = entry.resultInArgument[i]; result >= 0 &&
                                                    arguments[i] != results[size_t(result)] &&
                                                    arguments[i] && arguments[i]->bytes > 0)
      copies.push_back({arguments[i], results[size_t(result)]});
  return copies;
}

std::vector<const Storage *>
Program::getAllocations(const Entry &entry, const std::vector<const Storage *> &arguments,
                        const std::vector<const Storage *> &results) const {
  std::vector<const Storage *> allocations;
  for (const Allocation &allocation : entry.plan.allocations) {
    switch (allocation.kind) {
    case AllocationKind::Argument:
      allocations.push_back(allocation.result < 0 ? arguments[size_t(allocation.index)]
                                                  : results[size_t(allocation.result)]);
      break;
    case AllocationKind::Result:
      allocations.push_back(results[size_t(allocation.index)]);
      break;
    case AllocationKind::Constants:
      allocations.push_back(&constants);
      break;
    case AllocationKind::Arena:
      allocations.push_back(&arena);
      break;
    }
  }
  return allocations;
}

static size_t countDispatches(const Plan &plan) {
  return size_t(
      std::count_if(plan.commands.begin(), plan.commands.end(), [](const Command &command) {
        return command.kind == Command::Kind::Dispatch;
      }));
}

size_t Program::countDispatches(const std::string &entry) const {
  return runtime::countDispatches(findEntry(entry).plan);
}

const Recording *Program::submit(const std::string &name,
                                 const std::vector<const Storage *> &arguments,
                                 const std::vector<const Storage *> &results, bool isTimed) {
  const Entry &entry = findEntry(name);
  checkBuffers(entry, arguments, results);
  std::vector<StorageCopy> copies = getCopies(entry, arguments, results);
  if (copies.empty() && runtime::countDispatches(entry.plan) == 0)
    return nullptr;
  growArena(entry.plan.arenaBytes);
  return submit(entry, {0, entry.plan.commands.size()}, arguments, results, copies, isTimed);
}

/// Returns the plan with a range of its commands, without waits for signals before them: all that
/// was submitted before has ended.
static Plan cut(const Plan &whole, size_t begin, size_t end) {
  Plan plan = whole;
  plan.commands.clear();
  std::vector<int64_t> signals;
  for (size_t i = begin; i < end; ++i) {
    const Command &command = whole.commands[i];
    bool isKnown = std::find(signals.begin(), signals.end(), command.signal) != signals.end();
    if (command.kind == Command::Kind::Wait && !isKnown)
      continue;
    if (command.kind == Command::Kind::Signal)
      signals.push_back(command.signal);
    plan.commands.push_back(command);
  }
  return plan;
}

const Recording *Program::submit(const Entry &entry, Range range,
                                 const std::vector<const Storage *> &arguments,
                                 const std::vector<const Storage *> &results,
                                 std::vector<StorageCopy> copies, bool isTimed) {
  Key key = {&entry, range, arguments};
  key.storages.insert(key.storages.end(), results.begin(), results.end());
  auto kept = recordings.find(key);
  if (kept == recordings.end()) {
    if (recordings.size() >= maxRecordings) {
      auto oldest =
          std::min_element(recordings.begin(), recordings.end(), [](const auto &a, const auto &b) {
            return a.second.lastUse < b.second.lastUse;
          });
      device->wait(); // it may be running
      recordings.erase(oldest);
    }
    bool isWhole = range == Range{0, entry.plan.commands.size()};
    std::vector<const Storage *> allocations = getAllocations(entry, arguments, results);
    std::unique_ptr<Recording> recording;
    auto record = [&](const Plan &part) {
      return makeRecording(entry, part, allocations, std::exchange(copies, {}),
                           RecordingKind::Replay);
    };
    if (entry.plan.loops.empty())
      recording = record(isWhole ? entry.plan : cut(entry.plan, range.begin, range.end));
    else
      recording = std::make_unique<LoopRecording>(*device, entry.plan, allocations,
                                                  /*startsOutside=*/!copies.empty(),
                                                  /*isProfiled=*/false, record);
    kept = recordings.try_emplace(std::move(key)).first;
    kept->second.recording = std::move(recording);
  }
  kept->second.lastUse = ++uses;
  kept->second.recording->submit(isTimed);
  for (const Storage *storage : kept->first.storages)
    if (storage)
      storage->lastUse = device->submissions;
  return kept->second.recording.get();
}

/// Refuses what follows single dispatches, which run many times in a loop.
static void refuseLoops(const Plan &plan, const std::string &what) {
  if (!plan.loops.empty())
    throw BadArgument("entry '" + plan.entry + "' has loops, whose dispatches run many times; " +
                      what + " an entry without, or the loop's body as an entry of its own");
}

void Program::watch(const std::string &name, const std::vector<const Storage *> &arguments,
                    const std::vector<const Storage *> &results, const std::vector<int64_t> &waves,
                    const std::function<void(int64_t)> &watcher) {
  const Entry &entry = findEntry(name);
  refuseLoops(entry.plan, "watch");
  checkBuffers(entry, arguments, results);
  for (size_t i = 1; i < waves.size(); ++i)
    if (waves[i] <= waves[i - 1])
      throw BadArgument("wave " + std::to_string(waves[i]) + " comes behind wave " +
                        std::to_string(waves[i - 1]) + "; list waves once, in rising order");
  std::vector<StorageCopy> copies = getCopies(entry, arguments, results);
  growArena(entry.plan.arenaBytes);
  // The next piece is submitted before the host waits for one.
  std::vector<std::pair<int64_t, uint64_t>> pending; // a wave, and what was submitted up to it
  auto tell = [&](size_t left) {
    while (pending.size() > left) {
      device->waitFor(pending.front().second);
      watcher(pending.front().first);
      pending.erase(pending.begin());
    }
  };
  const std::vector<Command> &commands = entry.plan.commands;
  size_t begin = 0;
  auto run = [&](size_t end) {
    if (end > begin || !copies.empty())
      submit(entry, {begin, end}, arguments, results, std::exchange(copies, {}),
             /*isTimed=*/false);
    begin = std::max(begin, end);
  };
  for (int64_t wave : waves) {
    size_t end = begin;
    for (size_t i = begin; i < commands.size(); ++i)
      if (commands[i].kind == Command::Kind::Dispatch && commands[i].wave <= wave)
        end = i + 1;
    run(end);
    tell(1);
    pending.emplace_back(wave, device->submissions);
    if (!device->isGpu()) // what is submitted has ended
      tell(0);
  }
  run(commands.size());
  tell(0);
  device->wait();
}

std::vector<weir_dispatch_time> Program::profile(const std::string &name,
                                                 const std::vector<const Storage *> &arguments,
                                                 const std::vector<const Storage *> &results) {
  const Entry &entry = findEntry(name);
  checkBuffers(entry, arguments, results);
  if (!device->hasTimestamps())
    throw Error("the device '" + device->getName() +
                "' has no timestamps, so the times of dispatches are not known");
  std::vector<StorageCopy> copies = getCopies(entry, arguments, results);
  if (copies.empty() && runtime::countDispatches(entry.plan) == 0)
    return {};
  growArena(entry.plan.arenaBytes);
  std::vector<const Storage *> allocations = getAllocations(entry, arguments, results);
  auto record = [&](const Plan &part) {
    return makeRecording(entry, part, allocations, std::exchange(copies, {}),
                         RecordingKind::Profiled);
  };
  std::unique_ptr<Recording> recording;
  if (entry.plan.loops.empty())
    recording = record(entry.plan);
  else
    recording = std::make_unique<LoopRecording>(*device, entry.plan, allocations, !copies.empty(),
                                                /*isProfiled=*/true, record);
  recording->submit(/*isTimed=*/true);
  device->wait();
  return recording->readDispatchTimes();
}

/// Visits commands [first, end) in the order in which they run; the loops from `next` on begin
/// there. `isSet` reads a flag. Errors: `Error` if a loop makes more trips than the plan allows.
static void runCommands(const Plan &plan, int64_t first, int64_t end, size_t next,
                        const std::function<bool(const PlanView &)> &isSet,
                        const std::function<void(int64_t)> &visit) {
  while (first < end) {
    if (next == plan.loops.size() || plan.loops[next].first != first) {
      visit(first++);
      continue;
    }
    const Loop &loop = plan.loops[next];
    int64_t trip = 0;
    for (; trip < loop.trips && (!loop.flag || isSet(*loop.flag)); ++trip)
      runCommands(plan, first, loop.end, next + 1, isSet, visit);
    if (loop.flag && trip == loop.trips && isSet(*loop.flag))
      throw Error("a loop did not end within its " + std::to_string(trip) + " trips");
    first = loop.end;
    while (next < plan.loops.size() && plan.loops[next].first < first)
      ++next;
  }
}

void Program::observe(const std::string &name, const std::vector<const Storage *> &arguments,
                      const std::vector<const Storage *> &results,
                      const std::function<void(size_t, size_t, const Bytes &)> &observer) {
  const Entry &entry = findEntry(name);
  checkBuffers(entry, arguments, results);
  std::vector<StorageCopy> copies = getCopies(entry, arguments, results);
  growArena(entry.plan.arenaBytes);
  std::vector<const Storage *> allocations = getAllocations(entry, arguments, results);
  std::vector<size_t> numbers; // by command: of dispatches before it
  for (size_t count = 0; const Command &command : entry.plan.commands)
    numbers.push_back(command.kind == Command::Kind::Dispatch ? count++ : count);
  Plan step = entry.plan;
  step.loops.clear();
  auto run = [&](std::vector<Command> commands) {
    step.commands = std::move(commands);
    auto recording =
        makeRecording(entry, step, allocations, std::exchange(copies, {}), RecordingKind::Replay);
    recording->submit();
    device->wait();
  };
  auto observe = [&](int64_t place) {
    const Command &command = entry.plan.commands[size_t(place)];
    if (command.kind != Command::Kind::Dispatch)
      return;
    const size_t number = numbers[size_t(place)];
    Command alone = command;
    alone.queue = 0;
    run({alone});
    const Kernel &kernel = entry.plan.kernels[size_t(command.kernel)];
    for (size_t i = 0; i < command.operands.size(); ++i) {
      const PlanView &view = command.operands[i];
      Access access = kernel.operands[i].access;
      if (access == Access::None || access == Access::Read)
        continue;
      Bytes data(size_t(view.bytes));
      device->read(*allocations[size_t(view.allocation)], view.offset, data.data(), view.bytes);
      observer(number, i, data);
    }
  };
  auto isSet = [&](const PlanView &flag) {
    unsigned char byte = 0;
    device->read(*allocations[size_t(flag.allocation)], flag.offset, &byte, 1);
    return byte != 0;
  };
  const Plan &plan = entry.plan;
  if (!plan.loops.empty() && plan.loops.front().first == 0 && !copies.empty())
    run({}); // a flag may be copied
  runCommands(plan, 0, int64_t(plan.commands.size()), 0, isSet, observe);
  if (!copies.empty()) // there is no dispatch
    run({});
}

void Program::forget(const Storage &storage) {
  std::erase_if(recordings, [&](const auto &item) {
    const std::vector<const Storage *> &used = item.first.storages;
    return std::find(used.begin(), used.end(), &storage) != used.end();
  });
}

} // namespace weir::runtime

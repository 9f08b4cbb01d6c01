//===- Checker.cpp - Follows accesses and what orders them ----------------===//

#include "weir/Audit/Audit.h"

#include <algorithm>

namespace weir::audit {

/// Max number of findings, and of names of needless barriers, kept; all are counted.
static constexpr size_t maxKept = 1000;

bool Recording::operator==(const Recording &other) const {
  return hasUnseen == other.hasUnseen &&
         std::equal(commands.begin(), commands.end(), other.commands.begin(), other.commands.end(),
                    [](const auto &a, const auto &b) { return a == b || *a == *b; });
}

//===----------------------------------------------------------------------===//
// Dependencies
//===----------------------------------------------------------------------===//

void Checker::apply(const Dependency &dependency, const Point &point, uint32_t queue,
                    bool isBarrier) {
  const Stages from = dependency.from & point.stages;
  auto extend = [&](Access &access, bool isShown) {
    bool isFirst =
        access.queue == point.queue && access.moment < point.moment && access.stage & from;
    // A write is available once a dependency names its stage and access, and stays so.
    bool isOrdered = isFirst, becomesShown = isFirst && dependency.fromAccess & access.access;
    bool usesBarriers = isBarrier || !isFirst, shownByBarriers = isBarrier || !becomesShown;
    for (const After &after : access.after) {
      if (after.queue != point.queue || after.since >= point.moment || !(after.stages & from))
        continue;
      isOrdered = true;
      usesBarriers &= isBarrier || after.usesBarriers;
      if (after.isShown) {
        becomesShown = true;
        shownByBarriers &= isBarrier || after.usesBarriers;
      }
    }
    isShown &= becomesShown;
    if (!isOrdered)
      return;
    After next{queue,         now,
               dependency.to, isShown ? dependency.toAccess : Accesses(0),
               isShown,       isShown ? shownByBarriers : usesBarriers};
    bool isKnown = std::any_of(access.after.begin(), access.after.end(), [&](const After &old) {
      return old.queue == next.queue && !(next.stages & ~old.stages) &&
             !(next.accesses & ~old.accesses) && old.isShown >= next.isShown &&
             old.usesBarriers <= next.usesBarriers;
    });
    if (!isKnown)
      access.after.push_back(next);
  };
  auto extendAll = [&](LastAccesses &bytes, bool isShown) {
    for (Access &access : bytes.writers)
      extend(access, isShown);
    // Reads need no visibility.
    for (Access &access : bytes.readers)
      extend(access, false);
  };
  if (dependency.buffer && dependency.hasMemory)
    if (auto bytes = memory.find(dependency.buffer->memory); bytes != memory.end())
      bytes->second.visit(dependency.buffer->offset + dependency.begin,
                          dependency.buffer->offset + dependency.end,
                          [&](LastAccesses &run, int64_t, int64_t) { extendAll(run, true); });
  for (auto &[allocation, bytes] : memory)
    bytes.visit(0, ByteMap<LastAccesses>::end, [&](LastAccesses &run, int64_t, int64_t) {
      extendAll(run, dependency.hasMemory && !dependency.buffer);
    });
}

template <typename Drop> void Checker::drop(Drop drop) {
  uint64_t oldest = now;
  for (auto &[allocation, bytes] : memory)
    bytes.visit(0, ByteMap<LastAccesses>::end, [&](LastAccesses &run, int64_t, int64_t) {
      std::erase_if(run.writers, drop);
      std::erase_if(run.readers, drop);
      for (const auto *accesses : {&run.writers, &run.readers})
        for (const Access &access : *accesses)
          oldest = std::min(oldest, access.moment);
    });
  for (auto &[number, queue] : queues)
    std::erase_if(queue.barriers, [&](const Passed &passed) { return passed.moment < oldest; });
}

void Checker::finish(const Point &point) {
  drop([&](const Access &access) {
    return (access.queue == point.queue && access.moment < point.moment &&
            access.stage & point.stages) ||
           std::any_of(access.after.begin(), access.after.end(), [&](const After &after) {
             return after.queue == point.queue && after.since < point.moment &&
                    after.stages & point.stages;
           });
  });
}

//===----------------------------------------------------------------------===//
// Accesses
//===----------------------------------------------------------------------===//

static bool areAlike(const auto &a, const auto &b) {
  return a.queue == b.queue && a.stage == b.stage && a.access == b.access &&
         a.isCertain == b.isCertain;
}

void Checker::touch(uint32_t queue, const std::shared_ptr<const Command> &command) {
  auto forEach = [&](bool writes, auto visit) {
    for (const Touch &touch : command->touches)
      if (touch.writes == writes && touch.begin < touch.end)
        visit(touch, memory[touch.buffer->memory], touch.buffer->offset + touch.begin,
              touch.buffer->offset + touch.end,
              Access{command, queue, now, touch.stage, touch.access, writes, touch.isCertain, {}});
  };
  // Check all touches before recording any: conflicts inside one command are not checked.
  for (bool writes : {false, true})
    forEach(writes, [&](const Touch &touch, ByteMap<LastAccesses> &bytes, int64_t begin,
                        int64_t end, const Access &access) {
      bytes.visit(begin, end, [&](LastAccesses &run, int64_t first, int64_t last) {
        for (const Access &writer : run.writers)
          require(writer, access, touch, first, last);
        if (writes)
          for (const Access &reader : run.readers)
            require(reader, access, touch, first, last);
      });
    });
  auto add = [](std::vector<Access> &accesses, const Access &access) {
    auto old = std::find_if(accesses.begin(), accesses.end(),
                            [&](const Access &other) { return areAlike(other, access); });
    if (old == accesses.end())
      accesses.push_back(access);
    else
      *old = access;
  };
  forEach(false, [&](const Touch &, ByteMap<LastAccesses> &bytes, int64_t begin, int64_t end,
                     const Access &access) {
    bytes.visit(begin, end, [&](LastAccesses &run, int64_t, int64_t) { add(run.readers, access); });
  });
  forEach(true, [&](const Touch &touch, ByteMap<LastAccesses> &bytes, int64_t begin, int64_t end,
                    const Access &access) {
    if (touch.isCertain)
      bytes.assign(begin, end, {{access}, {}});
    else
      bytes.visit(begin, end,
                  [&](LastAccesses &run, int64_t, int64_t) { add(run.writers, access); });
  });
}

void Checker::require(const Access &from, const Access &to, const Touch &touch, int64_t begin,
                      int64_t end) {
  bool isOrdered = false, isSeen = false, withoutBarriers = false;
  for (const After &after : from.after) {
    if (after.queue != to.queue || !(after.stages & to.stage))
      continue;
    isOrdered = true;
    if (from.writes && !(after.isShown && after.accesses & to.access))
      continue;
    isSeen = true;
    withoutBarriers |= !after.usesBarriers;
  }
  if (!isSeen)
    report(!to.writes    ? HazardKind::RAW
           : from.writes ? HazardKind::WAW
                         : HazardKind::WAR,
           isOrdered, from, to, touch, begin, end);
  else if (!withoutBarriers)
    need(from, to, touch, begin, end);
}

void Checker::report(HazardKind kind, bool isOrdered, const Access &from, const Access &to,
                     const Touch &touch, int64_t begin, int64_t end) {
  bool isCertain = from.isCertain && to.isCertain;
  begin -= touch.buffer->offset;
  end -= touch.buffer->offset;
  Key key(from.command.get(), to.command.get(), kind, isCertain, touch.buffer.get());
  auto found = findings.find(key);
  if (found != findings.end()) {
    Finding &known = found->second;
    addScopes(known.scopes, from, to);
    known.isOfOneQueue &= from.queue == to.queue;
    known.times += known.begin == begin;
    known.begin = std::min(known.begin, begin);
    known.end = std::max(known.end, end);
    return;
  }
  ++(isCertain ? summary.missing : summary.possible);
  if (findings.size() >= maxKept)
    return;
  Finding &made = findings[key];
  made = {findings.size() - 1, kind,  isCertain, isOrdered, from.command, to.command,
          touch.buffer,        begin, end,       1,         {},           from.queue == to.queue};
  addScopes(made.scopes, from, to);
}

/// Adds the scopes that a barrier between two accesses must name.
void Checker::addScopes(Scopes &scopes, const Access &from, const Access &to) {
  scopes.from |= from.stage;
  scopes.to |= to.stage;
  if (!from.writes)
    return;
  scopes.fromAccess |= from.access;
  scopes.toAccess |= to.access;
}

//===----------------------------------------------------------------------===//
// Needed barriers
//===----------------------------------------------------------------------===//

/// Whether a barrier alone orders two accesses of one queue.
static bool orders(const Command &barrier, const auto &from, const auto &to, const Buffer &buffer,
                   int64_t begin, int64_t end) {
  return std::any_of(barrier.dependencies.begin(), barrier.dependencies.end(),
                     [&](const Dependency &dependency) {
                       if (!(dependency.from & from.stage) || !(dependency.to & to.stage))
                         return false;
                       if (!from.writes)
                         return true;
                       const Buffer *shown = dependency.buffer.get();
                       return dependency.hasMemory && dependency.fromAccess & from.access &&
                              dependency.toAccess & to.access &&
                              (!shown || (shown->memory == buffer.memory &&
                                          shown->offset + dependency.begin <= begin &&
                                          shown->offset + dependency.end >= end));
                     });
}

/// Adds bytes of a memory to ranges of buffers: to the one of its buffer, if there is one.
static void addRange(std::vector<BufferRange> &ranges, const std::shared_ptr<const Buffer> &buffer,
                     int64_t begin, int64_t end) {
  begin -= buffer->offset;
  end -= buffer->offset;
  for (BufferRange &range : ranges)
    if (range.buffer == buffer) {
      range.begin = std::min(range.begin, begin);
      range.end = std::max(range.end, end);
      return;
    }
  ranges.push_back({buffer, begin, end});
}

/// Marks the barriers that two accesses with a hazard need. Pairs come in the order of their later
/// accesses; each uses a barrier already in use, or else the last one that suits. If every barrier
/// covers everything, this greedy choice uses the min number of barriers.
void Checker::need(const Access &from, const Access &to, const Touch &touch, int64_t begin,
                   int64_t end) {
  std::vector<Passed> &passed = queues[to.queue].barriers;
  if (from.queue == to.queue)
    for (bool taken : {true, false})
      for (auto barrier = passed.rbegin();
           barrier != passed.rend() && barrier->moment > from.moment; ++barrier) {
        Barrier &info = barriers[barrier->barrier];
        if (info.isNeeded >= taken &&
            orders(*barrier->barrier, from, to, *touch.buffer, begin, end)) {
          info.isNeeded = true;
          addScopes(info.scopes, from, to);
          addRange(info.ranges, touch.buffer, begin, end);
          return;
        }
      }
  // No single barrier suits: several together do, so all between are needed.
  for (uint32_t queue : {from.queue, to.queue})
    for (const Passed &barrier : queues[queue].barriers)
      if (barrier.moment > from.moment) {
        Barrier &info = barriers[barrier.barrier];
        info.isNeeded = info.isPartOfChain = true;
      }
}

void Checker::judge(const Barrier &barrier, Summary &summary) {
  const Command &command = *barrier.command;
  ++summary.barriers;
  if (barrier.isNeeded) {
    Stages excess = 0;
    for (const Dependency &dependency : command.dependencies)
      excess |= findExcess(dependency.from, barrier.scopes.from) |
                findExcess(dependency.to, barrier.scopes.to);
    if (!excess || !command.isJudged || !barrier.isInner || barrier.isPartOfChain)
      return;
    ++summary.tooWide;
    if (summary.wideBarriers.size() < maxKept)
      summary.wideBarriers.push_back({command.name, barrier.scopes, barrier.ranges});
    return;
  }
  if (!command.isJudged || !barrier.isInner) {
    ++summary.notJudged;
    return;
  }
  ++summary.needless;
  if (summary.needlessNames.size() < maxKept)
    summary.needlessNames.push_back(command.name);
}

void Checker::forget(const Recording &recording) {
  for (const auto &command : recording.commands) {
    auto found = barriers.find(command.get());
    if (found == barriers.end())
      continue;
    judge(found->second, summary);
    barriers.erase(found);
    for (auto &[number, queue] : queues)
      std::erase_if(queue.barriers,
                    [&](const Passed &passed) { return passed.barrier == command.get(); });
  }
}

Summary Checker::getSummary() const {
  Summary all = summary;
  for (const auto &[command, barrier] : barriers)
    judge(barrier, all);
  for (const auto &[key, finding] : findings)
    all.findings.push_back(finding);
  std::sort(all.findings.begin(), all.findings.end(), [](const Finding &a, const Finding &b) {
    return std::pair(b.isCertain, a.number) < std::pair(a.isCertain, b.number);
  });
  for (const auto &[number, queue] : queues)
    all.unsignalled += int64_t(queue.waiting.size());
  return all;
}

//===----------------------------------------------------------------------===//
// Queues
//===----------------------------------------------------------------------===//

void Checker::submit(uint32_t queue, const Batch &batch) {
  queues[queue].waiting.push_back(batch);
  runWaiting();
}

/// Whether everything that a batch waits for is signalled, which may be after its submission. A
/// binary semaphore that nobody here signals is ignored.
bool Checker::canRun(const Batch &batch) const {
  auto isPending = [&](uint64_t semaphore) {
    for (const auto &[number, queue] : queues)
      for (const Batch &other : queue.waiting)
        for (const SemaphorePoint &signal : other.signals)
          if (&other != &batch && signal.semaphore == semaphore)
            return true;
    return false;
  };
  return std::all_of(batch.waits.begin(), batch.waits.end(), [&](const SemaphorePoint &wait) {
    if (!wait.isTimeline)
      return binaries.contains(wait.semaphore) || !isPending(wait.semaphore);
    auto timeline = timelines.find(wait.semaphore);
    return timeline != timelines.end() && timeline->second.value >= wait.value;
  });
}

void Checker::runWaiting() {
  for (bool isStuck = false; !isStuck;) {
    isStuck = true;
    for (auto &[number, queue] : queues)
      while (!queue.waiting.empty() && canRun(queue.waiting.front())) {
        Batch batch = std::move(queue.waiting.front());
        queue.waiting.erase(queue.waiting.begin());
        run(number, batch);
        isStuck = false;
      }
  }
}

void Checker::run(uint32_t queue, const Batch &batch) {
  for (const SemaphorePoint &wait : batch.waits) {
    // A semaphore's memory dependency covers all memory.
    Dependency all{allStages, wait.stages, allAccesses, allAccesses, true, nullptr, 0, 0};
    if (wait.isTimeline) {
      // The first signal with at least this value reached it.
      for (const auto &[value, point] : timelines[wait.semaphore].signals) {
        apply(all, point, queue, /*isBarrier=*/false);
        if (value >= wait.value)
          break;
      }
    } else if (auto point = binaries.find(wait.semaphore); point != binaries.end()) {
      apply(all, point->second, queue, /*isBarrier=*/false);
      binaries.erase(point);
    }
  }
  ++now;
  for (const auto &recording : batch.recordings)
    run(queue, *recording);
  for (const SemaphorePoint &signal : batch.signals) {
    Point point{queue, now, signal.stages};
    if (!signal.isTimeline) {
      binaries[signal.semaphore] = point;
      continue;
    }
    Timeline &timeline = timelines[signal.semaphore];
    timeline.value = std::max(timeline.value, signal.value);
    timeline.signals[signal.value] = point;
  }
  if (batch.fence)
    fences[batch.fence] = {queue, now};
}

void Checker::run(uint32_t queue, const Recording &recording) {
  auto isTouching = [](const auto &command) { return command->kind == Command::Kind::Touches; };
  auto first = std::find_if(recording.commands.begin(), recording.commands.end(), isTouching);
  auto last = std::find_if(recording.commands.rbegin(), recording.commands.rend(), isTouching);
  for (auto place = recording.commands.begin(); place != recording.commands.end(); ++place) {
    const std::shared_ptr<const Command> &command = *place;
    switch (command->kind) {
    case Command::Kind::Touches:
      ++(command->isDispatch ? summary.dispatches : summary.transfers);
      touch(queue, command);
      break;
    case Command::Kind::Barrier: {
      Barrier &barrier = barriers[command.get()];
      barrier.command = command;
      barrier.isInner |= first < place && place + 1 < last.base() && !recording.hasUnseen;
      queues[queue].barriers.push_back({now, command.get()});
      for (const Dependency &dependency : command->dependencies)
        apply(dependency, {queue, now}, queue, /*isBarrier=*/true);
      break;
    }
    case Command::Kind::SetEvent:
      for (uint64_t event : command->events)
        events[event] = {queue, now, command->eventStages};
      break;
    case Command::Kind::ResetEvent:
      for (uint64_t event : command->events)
        events.erase(event);
      break;
    case Command::Kind::WaitEvents:
      for (uint64_t event : command->events)
        if (auto point = events.find(event); point != events.end())
          for (const Dependency &dependency : command->dependencies)
            apply(dependency, point->second, queue, /*isBarrier=*/false);
      break;
    }
    ++now;
  }
}

//===----------------------------------------------------------------------===//
// The host
//===----------------------------------------------------------------------===//

void Checker::resetFence(uint64_t fence) { fences.erase(fence); }

void Checker::finishFence(uint64_t fence) {
  if (auto point = fences.find(fence); point != fences.end()) {
    finish(point->second);
    fences.erase(point); // asking again gives nothing new
  }
}

/// Runs all waiting batches: the host has waited for them, so their signals were sent.
void Checker::runAll(uint32_t number, Queue &queue) {
  std::vector<Batch> waiting = std::move(queue.waiting);
  queue.waiting.clear();
  summary.unsignalled += int64_t(waiting.size());
  for (const Batch &batch : waiting)
    run(number, batch);
}

void Checker::finishQueue(uint32_t queue) {
  runAll(queue, queues[queue]);
  runWaiting();
  finish({queue, now});
}

void Checker::finishAll() {
  for (auto &[number, queue] : queues)
    runAll(number, queue);
  memory.clear();
  for (auto &[number, queue] : queues)
    queue.barriers.clear();
  for (auto &[semaphore, timeline] : timelines)
    timeline.signals.clear();
}

void Checker::setTimeline(uint64_t semaphore, uint64_t value) {
  timelines[semaphore].value = value;
  runWaiting();
}

void Checker::finishTimeline(uint64_t semaphore, uint64_t value) {
  auto timeline = timelines.find(semaphore);
  if (timeline == timelines.end())
    return;
  std::map<uint64_t, Point> &signals = timeline->second.signals;
  auto end = signals.lower_bound(value);
  if (end != signals.end())
    ++end;
  for (auto signal = signals.begin(); signal != end; signal = signals.erase(signal))
    finish(signal->second);
}

void Checker::resetEvent(uint64_t event) { events.erase(event); }

void Checker::freeMemory(uint64_t allocation) { memory.erase(allocation); }

void Checker::freeSemaphore(uint64_t semaphore) {
  timelines.erase(semaphore);
  binaries.erase(semaphore);
}

} // namespace weir::audit

//===- CheckerTest.cpp - Orders of all kinds, and lists made at random ----===//

#include "weir/Audit/Audit.h"

#include "gtest/gtest.h"

#include <random>

namespace weir::audit {
namespace {

std::shared_ptr<const Buffer> makeBuffer(uint64_t memory, int64_t offset = 0, int64_t bytes = 64) {
  return std::make_shared<Buffer>(Buffer{memory, offset, bytes, "b"});
}
const std::shared_ptr<const Buffer> a = makeBuffer(1), b = makeBuffer(2);

Touch read(std::shared_ptr<const Buffer> buffer, int64_t begin = 0, int64_t end = 64) {
  return {std::move(buffer), begin, end, stageCompute, accessStorageRead, false, true};
}
Touch write(std::shared_ptr<const Buffer> buffer, int64_t begin = 0, int64_t end = 64) {
  return {std::move(buffer), begin, end, stageCompute, accessStorageWrite, true, true};
}
/// Returns a touch that may or may not access the bytes.
Touch maybe(Touch touch) {
  touch.isCertain = false;
  return touch;
}
Touch at(Stages stage, Touch touch) {
  touch.stage = stage;
  return touch;
}

Dependency order(Stages from = allStages, Stages to = allStages, Accesses fromAccess = allAccesses,
                 Accesses toAccess = allAccesses) {
  return {from, to, fromAccess, toAccess, true, nullptr, 0, 0};
}
Dependency execution(Stages from = allStages, Stages to = allStages) {
  return {from, to, 0, 0, false, nullptr, 0, 0};
}

/// Makes a command buffer.
struct List {
  Recording recording;

  List &touch(std::vector<Touch> touches) {
    Command command;
    command.touches = std::move(touches);
    return add(std::move(command));
  }
  List &barrier(std::vector<Dependency> dependencies = {order()}, bool isJudged = true) {
    Command command;
    command.kind = Command::Kind::Barrier;
    command.dependencies = std::move(dependencies);
    command.isJudged = isJudged;
    return add(std::move(command));
  }
  List &event(Command::Kind kind, std::vector<Dependency> dependencies = {},
              Stages stages = allStages) {
    Command command;
    command.kind = kind;
    command.events = {9};
    command.dependencies = std::move(dependencies);
    command.eventStages = stages;
    return add(std::move(command));
  }
  List &add(Command command) {
    command.name = std::to_string(recording.commands.size());
    recording.commands.push_back(std::make_shared<const Command>(std::move(command)));
    return *this;
  }
  std::shared_ptr<const Recording> get() const { return std::make_shared<Recording>(recording); }
};

Batch makeBatch(const List &list, std::vector<SemaphorePoint> waits = {},
                std::vector<SemaphorePoint> signals = {}, uint64_t fence = 0) {
  return {std::move(waits), {list.get()}, std::move(signals), fence};
}
SemaphorePoint binary(Stages stages = allStages) { return {5, false, 0, stages}; }
SemaphorePoint timeline(uint64_t value, Stages stages = allStages) {
  return {6, true, value, stages};
}

/// Returns "WAW 0 1" for each finding, with "?" if it is only possible and "~" if the two are
/// ordered.
std::string print(const Summary &summary) {
  static const char *const names[] = {"RAW", "WAR", "WAW"};
  std::string text;
  for (const Finding &finding : summary.findings)
    text += (text.empty() ? "" : ", ") + std::string(names[size_t(finding.kind)]) +
            (finding.isCertain ? "" : "?") + (finding.isOrdered ? "~" : "") + " " +
            finding.from->name + " " + finding.to->name;
  return text;
}
Summary check(const List &list) {
  Checker checker;
  checker.submit(0, makeBatch(list));
  return checker.getSummary();
}
std::string find(const List &list) { return print(check(list)); }

//===----------------------------------------------------------------------===//
// One queue
//===----------------------------------------------------------------------===//

TEST(Checker, FindsEachKind) {
  EXPECT_EQ(find(List().touch({write(a)}).touch({read(a)})), "RAW 0 1");
  EXPECT_EQ(find(List().touch({read(a)}).touch({write(a)})), "WAR 0 1");
  EXPECT_EQ(find(List().touch({write(a)}).touch({write(a)})), "WAW 0 1");
  EXPECT_EQ(find(List().touch({read(a)}).touch({read(a)})), "");
}

TEST(Checker, IsSilentWhereOrdered) {
  EXPECT_EQ(find(List().touch({write(a)}).barrier().touch({read(a)})), "");
  EXPECT_EQ(find(List().touch({read(a)}).barrier().touch({write(a)})), "");
  EXPECT_EQ(find(List().touch({write(a)}).barrier().touch({write(a)})), "");
}

TEST(Checker, ComparesBytes) {
  EXPECT_EQ(find(List().touch({write(a, 0, 32)}).touch({write(a, 32, 64)})), "");
  EXPECT_EQ(find(List().touch({write(a, 0, 33)}).touch({write(a, 32, 64)})), "WAW 0 1");
  EXPECT_EQ(find(List().touch({write(a)}).touch({write(b)})), "");
  // Buffers of the same memory.
  EXPECT_EQ(find(List().touch({write(makeBuffer(3))}).touch({read(makeBuffer(3, 63))})), "RAW 0 1");
  EXPECT_EQ(find(List().touch({write(makeBuffer(3))}).touch({read(makeBuffer(3, 64))})), "");
}

TEST(Checker, SaysWhichBytes) {
  Summary summary = check(List().touch({write(makeBuffer(3))}).touch({read(makeBuffer(3, 16))}));
  ASSERT_EQ(summary.findings.size(), 1u);
  EXPECT_EQ(summary.findings[0].begin, 0);
  EXPECT_EQ(summary.findings[0].end, 48);
}

TEST(Checker, ExecutionAloneOrdersReadsBeforeWrites) {
  EXPECT_EQ(find(List().touch({read(a)}).barrier({execution()}).touch({write(a)})), "");
  EXPECT_EQ(find(List().touch({write(a)}).barrier({execution()}).touch({read(a)})), "RAW~ 0 2");
  EXPECT_EQ(find(List().touch({write(a)}).barrier({execution()}).touch({write(a)})), "WAW~ 0 2");
}

TEST(Checker, ScopesAreStages) {
  EXPECT_EQ(find(List().touch({read(a)}).barrier({order(stageCopy)}).touch({write(a)})), "WAR 0 2");
  EXPECT_EQ(find(List().touch({read(a)}).barrier({order(allStages, stageCopy)}).touch({write(a)})),
            "WAR 0 2");
  EXPECT_EQ(
      find(List().touch({read(a)}).barrier({order(stageCompute, stageCompute)}).touch({write(a)})),
      "");
}

TEST(Checker, ScopesAreAccesses) {
  auto with = [](Accesses from, Accesses to) {
    return find(
        List().touch({write(a)}).barrier({order(allStages, allStages, from, to)}).touch({read(a)}));
  };
  EXPECT_EQ(with(accessStorageWrite, accessStorageRead), "");
  EXPECT_EQ(with(accessTransferWrite, accessStorageRead), "RAW~ 0 2");
  EXPECT_EQ(with(accessStorageWrite, accessStorageWrite), "RAW~ 0 2");
}

TEST(Checker, ScopesAreBytes) {
  Dependency half = order();
  half.buffer = a;
  half.end = 32;
  Summary summary = check(List().touch({write(a)}).barrier({half}).touch({read(a)}));
  ASSERT_EQ(print(summary), "RAW~ 0 2");
  EXPECT_EQ(summary.findings[0].begin, 32);
  half.end = 64;
  EXPECT_EQ(find(List().touch({write(a)}).barrier({half}).touch({read(a)})), "");
  // All execution is ordered, whatever the bytes.
  EXPECT_EQ(find(List().touch({read(b)}).barrier({half}).touch({write(b)})), "");
}

TEST(Checker, BarriersChainWhereTheirStagesMeet) {
  auto with = [](Stages second) {
    return find(List()
                    .touch({write(a)})
                    .barrier({order(stageCompute, stageCopy)})
                    .barrier({order(second, stageCompute, 0, accessStorageRead)})
                    .touch({read(a)}));
  };
  EXPECT_EQ(with(stageCopy), "");
  EXPECT_EQ(with(stageClear), "RAW 0 3");
  // Dependencies of one barrier do not.
  EXPECT_EQ(find(List()
                     .touch({write(a)})
                     .barrier({order(stageCompute, stageCopy), order(stageCopy, stageCompute)})
                     .touch({read(a)})),
            "RAW 0 2");
}

TEST(Checker, WhatIsOnlyPossibleIsToldApart) {
  EXPECT_EQ(find(List().touch({maybe(write(a))}).touch({read(a)})), "RAW? 0 1");
  EXPECT_EQ(find(List().touch({write(a)}).touch({maybe(read(a))})), "RAW? 0 1");
  Summary summary = check(List().touch({maybe(write(a))}).touch({read(a)}));
  EXPECT_EQ(summary.missing, 0);
  EXPECT_EQ(summary.possible, 1);
  // A write that may not happen leaves the earlier one.
  EXPECT_EQ(find(List().touch({write(a)}).touch({maybe(write(b))}).touch({read(a)})), "RAW 0 2");
  EXPECT_EQ(find(List()
                     .touch({write(a)})
                     .barrier({order(stageCompute, stageCopy)})
                     .touch({at(stageCopy, maybe(write(a)))})
                     .touch({read(a)})),
            "RAW 0 3, RAW? 2 3");
}

TEST(Checker, LaterRunsAreCounted) {
  Checker checker;
  List list = List().touch({write(a)}).touch({write(a)}).barrier();
  checker.submit(0, makeBatch(list));
  checker.submit(0, {{}, {list.get()}, {}, 0});
  Summary summary = checker.getSummary();
  ASSERT_EQ(print(summary), "WAW 0 1");
  EXPECT_EQ(summary.findings[0].times, 2);
  EXPECT_EQ(summary.transfers, 4);
}

TEST(Checker, SubmissionsOfAQueueAreNotOrdered) {
  Checker checker;
  checker.submit(0, makeBatch(List().touch({write(a)})));
  checker.submit(0, makeBatch(List().touch({read(a)})));
  EXPECT_EQ(print(checker.getSummary()), "RAW 0 0");
}

//===----------------------------------------------------------------------===//
// Several queues, events, the host
//===----------------------------------------------------------------------===//

TEST(Checker, BinarySemaphores) {
  auto with = [](std::vector<SemaphorePoint> waits, SemaphorePoint signal) {
    Checker checker;
    checker.submit(0, makeBatch(List().touch({write(a)}), {}, {signal}));
    checker.submit(1, makeBatch(List().touch({read(a)}), std::move(waits)));
    return print(checker.getSummary());
  };
  EXPECT_EQ(with({binary()}, binary()), "");
  EXPECT_EQ(with({}, binary()), "RAW 0 0");
  EXPECT_EQ(with({binary(stageCopy)}, binary()), "RAW 0 0");
  EXPECT_EQ(with({binary()}, binary(stageCopy)), "RAW 0 0");
}

TEST(Checker, SemaphoresCoverWhatComesBefore) {
  // Earlier submissions, and those that another queue has waited for; not later ones.
  Checker checker;
  checker.submit(0, makeBatch(List().touch({write(a)})));
  checker.submit(0, makeBatch(List(), {}, {binary()}));
  checker.submit(0, makeBatch(List().touch({write(b)})));
  checker.submit(1, makeBatch(List(), {binary()}, {timeline(1)}));
  checker.submit(2, makeBatch(List().touch({read(a)}).touch({read(b)}), {timeline(1)}));
  EXPECT_EQ(print(checker.getSummary()), "RAW 0 1");
}

TEST(Checker, TimelinesAreWaitedForBeforeTheyAreSignalled) {
  for (uint64_t value : {1, 2}) {
    Checker checker;
    checker.setTimeline(6, 0);
    checker.submit(1, makeBatch(List().touch({read(a)}), {timeline(value)}));
    checker.submit(0, makeBatch(List(), {}, {timeline(1)}));
    checker.submit(0, makeBatch(List().touch({write(a)}), {}, {timeline(2)}));
    // With value 1 it may run before the write, or with it.
    EXPECT_EQ(print(checker.getSummary()), value == 1 ? "WAR 0 0" : "");
    EXPECT_EQ(checker.getSummary().transfers, 2);
  }
}

TEST(Checker, BinarySemaphoresOfWhatWaitsItself) {
  Checker checker;
  checker.setTimeline(6, 0);
  checker.submit(0, makeBatch(List().touch({write(a)}), {timeline(1)}, {binary()}));
  checker.submit(1, makeBatch(List().touch({read(a)}), {binary()}));
  EXPECT_EQ(checker.getSummary().transfers, 0);
  checker.setTimeline(6, 1);
  EXPECT_EQ(checker.getSummary().transfers, 2);
  EXPECT_EQ(print(checker.getSummary()), "");
}

TEST(Checker, TimelinesThatTheHostSignals) {
  Checker checker;
  checker.setTimeline(6, 0);
  checker.submit(0, makeBatch(List().touch({write(a)}), {timeline(1)}));
  EXPECT_EQ(checker.getSummary().transfers, 0);
  EXPECT_EQ(checker.getSummary().unsignalled, 1);
  checker.setTimeline(6, 1);
  EXPECT_EQ(checker.getSummary().transfers, 1);
  EXPECT_EQ(checker.getSummary().unsignalled, 0);
}

TEST(Checker, WhatTheHostWaitedForHasRun) {
  Checker checker;
  checker.submit(0, makeBatch(List().touch({write(a)}), {timeline(1)}));
  checker.finishQueue(0);
  EXPECT_EQ(checker.getSummary().transfers, 1);
  EXPECT_EQ(checker.getSummary().unsignalled, 1);
}

TEST(Checker, TheHostEndsWhatItWaitsFor) {
  auto with = [](auto wait) {
    Checker checker;
    checker.setTimeline(6, 0);
    checker.submit(0, makeBatch(List().touch({write(a)}), {}, {timeline(1)}, 7));
    checker.submit(0, makeBatch(List().touch({write(b)}), {}, {timeline(2)}, 8));
    wait(checker);
    checker.submit(1, makeBatch(List().touch({read(a)}).touch({read(b)})));
    return print(checker.getSummary());
  };
  EXPECT_EQ(with([](Checker &) {}), "RAW 0 0, RAW 0 1");
  EXPECT_EQ(with([](Checker &checker) { checker.finishFence(7); }), "RAW 0 1");
  EXPECT_EQ(with([](Checker &checker) { checker.finishFence(8); }), "");
  EXPECT_EQ(with([](Checker &checker) { checker.finishTimeline(6, 1); }), "RAW 0 1");
  EXPECT_EQ(with([](Checker &checker) { checker.finishTimeline(6, 2); }), "");
  EXPECT_EQ(with([](Checker &checker) { checker.finishQueue(0); }), "");
  EXPECT_EQ(with([](Checker &checker) { checker.finishQueue(1); }), "RAW 0 0, RAW 0 1");
  EXPECT_EQ(with([](Checker &checker) { checker.finishAll(); }), "");
  EXPECT_EQ(with([](Checker &checker) { checker.freeMemory(1); }), "RAW 0 1");
}

TEST(Checker, AFenceCoversWhatItsQueueWaitedFor) {
  for (bool waits : {true, false}) {
    Checker checker;
    checker.submit(0, makeBatch(List().touch({write(a)}), {}, {binary()}));
    std::vector<SemaphorePoint> points;
    if (waits)
      points.push_back(binary());
    checker.submit(1, makeBatch(List(), points, {}, 7));
    checker.finishFence(7);
    checker.submit(2, makeBatch(List().touch({read(a)})));
    EXPECT_EQ(print(checker.getSummary()), waits ? "" : "RAW 0 0");
  }
}

TEST(Checker, Events) {
  auto with = [](List list) { return find(list.touch({read(a)})); };
  using Kind = Command::Kind;
  List written = List().touch({write(a)});
  EXPECT_EQ(with(List(written).event(Kind::SetEvent).event(Kind::WaitEvents, {order()})), "");
  EXPECT_EQ(with(List(written).event(Kind::WaitEvents, {order()})), "RAW 0 2");
  EXPECT_EQ(with(List().event(Kind::SetEvent).touch({write(a)}).event(Kind::WaitEvents, {order()})),
            "RAW 1 3");
  EXPECT_EQ(
      with(List(written).event(Kind::SetEvent, {}, stageCopy).event(Kind::WaitEvents, {order()})),
      "RAW 0 3");
  EXPECT_EQ(with(List(written)
                     .event(Kind::SetEvent)
                     .event(Kind::ResetEvent)
                     .event(Kind::WaitEvents, {order()})),
            "RAW 0 4");
}

//===----------------------------------------------------------------------===//
// Needless barriers
//===----------------------------------------------------------------------===//

TEST(Checker, ABarrierWithoutAHazardIsNeedless) {
  Summary summary = check(List().touch({write(a)}).barrier().touch({read(b)}));
  EXPECT_EQ(summary.barriers, 1);
  EXPECT_EQ(summary.needless, 1);
  EXPECT_EQ(check(List().touch({write(a)}).barrier().touch({read(a)})).needless, 0);
  // Also one that is only possible.
  EXPECT_EQ(check(List().touch({write(a)}).barrier().touch({maybe(read(a))})).needless, 0);
}

TEST(Checker, TwoHazardsShareABarrier) {
  List list = List().touch({write(a)}).barrier().touch({write(b)}).barrier().touch({read(a)});
  EXPECT_EQ(check(list).needless, 1);
  // The second pair's stretch does not meet the first one's.
  EXPECT_EQ(check(List(list).barrier().touch({read(b)})).needless, 2);
  EXPECT_EQ(check(List(list).barrier().touch({write(a)})).needless, 1);
}

TEST(Checker, ScopesDecideWhatABarrierIsGoodFor) {
  Summary summary = check(List()
                              .touch({write(a), at(stageCopy, write(b))})
                              .barrier({order(stageCompute)})
                              .barrier({order(stageCopy)})
                              .touch({read(a), read(b)}));
  EXPECT_EQ(summary.needless, 0);
  EXPECT_EQ(print(summary), "");
}

TEST(Checker, AChainIsNeeded) {
  EXPECT_EQ(check(List()
                      .touch({write(a)})
                      .barrier({order(stageCompute, stageCopy)})
                      .barrier({order(stageCopy, stageCompute)})
                      .touch({read(a)}))
                .needless,
            0);
}

TEST(Checker, EdgesAreNotJudged) {
  Summary summary = check(List().barrier().touch({write(a)}).barrier().touch({read(a)}).barrier());
  EXPECT_EQ(summary.barriers, 3);
  EXPECT_EQ(summary.notJudged, 2);
  EXPECT_EQ(summary.needless, 0);
}

TEST(Checker, WhatIsNotSeenIsNotJudged) {
  EXPECT_EQ(check(List().touch({write(a)}).barrier({order()}, false).touch({read(b)})).notJudged,
            1);
  List list = List().touch({write(a)}).barrier().touch({read(b)});
  list.recording.hasUnseen = true;
  EXPECT_EQ(check(list).notJudged, 1);
  EXPECT_EQ(check(list).needless, 0);
}

TEST(Checker, ABarrierThatASemaphoreReplacesIsNeedless) {
  Checker checker;
  checker.submit(0, makeBatch(List().touch({write(a)}), {}, {binary()}));
  checker.submit(0, makeBatch(List().touch({read(b)}).barrier().touch({read(a)}), {binary()}));
  EXPECT_EQ(print(checker.getSummary()), "");
  EXPECT_EQ(checker.getSummary().needless, 1);
}

TEST(Checker, SaysWhichScopesSuffice) {
  const Finding raw =
      check(List().touch({at(stageCopy, write(a))}).touch({read(a)})).findings.at(0);
  EXPECT_EQ(raw.scopes.from, stageCopy);
  EXPECT_EQ(raw.scopes.fromAccess, accessStorageWrite);
  EXPECT_EQ(raw.scopes.to, stageCompute);
  EXPECT_EQ(raw.scopes.toAccess, accessStorageRead);
  EXPECT_TRUE(raw.isOfOneQueue);
  const Finding war = check(List().touch({read(a)}).touch({write(a)})).findings.at(0);
  EXPECT_EQ(war.scopes.fromAccess, 0u);
  EXPECT_EQ(war.scopes.toAccess, 0u);
}

TEST(Checker, BarriersTooWide) {
  const Dependency wide = order(stageCompute | stageCopy, stageCompute);
  auto list = [](Dependency first, Stages stage) {
    return List()
        .touch({at(stage, write(a, 0, 32)), write(a, 32, 64)})
        .barrier({first})
        .touch({read(a)});
  };
  const Summary found = check(list(wide, stageCompute));
  EXPECT_EQ(found.tooWide, 1);
  ASSERT_EQ(found.wideBarriers.size(), 1u);
  EXPECT_EQ(found.wideBarriers[0].name, "1");
  EXPECT_EQ(found.wideBarriers[0].scopes.from, stageCompute);
  ASSERT_EQ(found.wideBarriers[0].ranges.size(), 1u);
  EXPECT_EQ(found.wideBarriers[0].ranges[0].begin, 0);
  EXPECT_EQ(found.wideBarriers[0].ranges[0].end, 64);
  // Both stages are needed; Vulkan 1.0 has one stage for copies and fills.
  EXPECT_EQ(check(list(wide, stageCopy)).tooWide, 0);
  EXPECT_EQ(
      check(list(order(stageCompute | stageCopy | stageClear, stageCompute), stageCopy)).tooWide,
      0);
  // Two barriers together order the two: neither may name less.
  EXPECT_EQ(check(List()
                      .touch({write(a)})
                      .barrier({order(stageCompute, stageCopy)})
                      .barrier({order(stageCopy, stageCompute)})
                      .touch({read(a)}))
                .tooWide,
            0);
}

TEST(Checker, RecordingsAreComparedByTheirCommands) {
  auto make = [](Touch touch) {
    return List().touch({touch}).barrier().touch({read(b)}).recording;
  };
  EXPECT_TRUE(make(write(a)) == make(write(a)));
  EXPECT_FALSE(make(write(a)) == make(write(a, 0, 32)));
  EXPECT_FALSE(make(write(a)) == make(write(b)));
  EXPECT_FALSE(make(write(a)) == List().touch({write(a)}).barrier().recording);
}

TEST(Checker, AnyRunMayNeedABarrier) {
  List list = List().touch({read(a)}).barrier().touch({write(b)});
  EXPECT_EQ(check(list).needless, 1);
  Checker checker;
  auto recording = list.get();
  checker.submit(0, makeBatch(List().touch({read(b)})));
  checker.submit(0, {{}, {recording}, {}, 0});
  EXPECT_EQ(checker.getSummary().needless, 0);
  checker.forget(*recording);
  EXPECT_EQ(checker.getSummary().needless, 0);
  EXPECT_EQ(checker.getSummary().barriers, 1);
}

//===----------------------------------------------------------------------===//
// Random lists
//===----------------------------------------------------------------------===//

/// Whether the barriers between two commands order the first before the second, tried pair by
/// pair.
bool isOrdered(const Recording &list, size_t from, size_t to) {
  Stages own = list.commands[from]->touches[0].stage, reached = 0;
  for (size_t i = from + 1; i < to; ++i) {
    Stages next = reached;
    for (const Dependency &dependency : list.commands[i]->dependencies)
      if (dependency.from & (own | reached))
        next |= dependency.to;
    reached = next;
  }
  return reached & list.commands[to]->touches[0].stage;
}

bool doConflict(const Command &first, const Command &second) {
  const Touch &x = first.touches[0], &y = second.touches[0];
  return (x.writes || y.writes) && x.buffer == y.buffer && x.begin < y.end && y.begin < x.end;
}

bool isClean(const Recording &list) {
  for (size_t to = 0; to < list.commands.size(); ++to)
    for (size_t from = 0; from < to; ++from)
      if (!list.commands[from]->touches.empty() && !list.commands[to]->touches.empty() &&
          doConflict(*list.commands[from], *list.commands[to]) && !isOrdered(list, from, to))
        return false;
  return true;
}

Recording leaveOut(const Recording &list, const std::set<std::string> &names) {
  Recording rest;
  for (const auto &command : list.commands)
    if (!names.contains(command->name))
      rest.commands.push_back(command);
  return rest;
}

Summary check(const Recording &list) {
  Checker checker;
  checker.submit(0, {{}, {std::make_shared<Recording>(list)}, {}, 0});
  return checker.getSummary();
}

TEST(Checker, RandomLists) {
  int clean = 0, dirty = 0, needless = 0;
  for (unsigned seed = 0; seed < 3000; ++seed) {
    std::mt19937 random(seed);
    auto pick = [&](int count) { return int(random() % unsigned(count)); };
    const bool isFull = seed % 2; // barriers cover everything
    static const Stages stages[] = {stageCompute, stageCopy, stageClear};
    auto pickStages = [&] {
      Stages some = 0;
      for (Stages stage : stages)
        some |= pick(3) ? stage : 0;
      return isFull ? allStages : some;
    };
    List list;
    for (int i = 0, size = 3 + pick(10); i < size; ++i)
      if (pick(2)) {
        list.barrier({order(pickStages(), pickStages())});
      } else {
        int64_t begin = pick(8) * 8, end = begin + 8 + pick(4) * 8;
        list.touch(
            {at(isFull ? stageCompute : stages[pick(3)],
                (pick(2) ? write : read)(pick(2) ? a : b, begin, std::min<int64_t>(end, 64)))});
      }
    Summary summary = check(list.recording);
    ASSERT_EQ(summary.missing == 0, isClean(list.recording)) << "seed " << seed;
    ASSERT_EQ(summary.possible, 0);
    ++(summary.missing ? dirty : clean);
    if (summary.missing)
      continue;
    // All of them go at once, and where barriers cover everything no other may.
    needless += int(summary.needless);
    std::set<std::string> names(summary.needlessNames.begin(), summary.needlessNames.end());
    Recording rest = leaveOut(list.recording, names);
    EXPECT_EQ(check(rest).missing, 0) << "seed " << seed;
    EXPECT_EQ(check(rest).needless, 0) << "seed " << seed;
    if (!isFull)
      continue;
    size_t needed = 0;
    for (const auto &command : rest.commands)
      if (command->kind == Command::Kind::Barrier)
        needed += check(leaveOut(rest, {command->name})).missing > 0;
    EXPECT_EQ(needed, size_t(summary.barriers - summary.needless - summary.notJudged))
        << "seed " << seed;
  }
  EXPECT_GT(clean, 500);
  EXPECT_GT(dirty, 500);
  EXPECT_GT(needless, 500);
}

} // namespace
} // namespace weir::audit

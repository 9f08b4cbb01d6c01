//===- Order.cpp - Proves order, waves and barriers -----------------------===//

#include "Checks.h"

#include "weir/Artifact/Loops.h"

#include <algorithm>
#include <set>
#include <tuple>

using namespace weir;
using namespace weir::verifier;

//===----------------------------------------------------------------------===//
// Order
//===----------------------------------------------------------------------===//

Clocks::Clocks(const Plan &plan, bool barriers) {
  size_t queues = 1;
  for (const Command &command : plan.commands)
    queues = std::max(queues, size_t(command.queue) + 1);
  pasts.emplace_back(queues);
  std::vector<size_t> past(queues), recorded(queues);
  std::map<int64_t, Moment> signals;
  // Starts a new clock for the queue in which all its commands so far have ended.
  auto endAll = [&](size_t queue) {
    std::vector<size_t> next = pasts[past[queue]];
    next[queue] = recorded[queue];
    pasts.push_back(std::move(next));
    return pasts.size() - 1;
  };
  for (const Command &command : plan.commands) {
    size_t queue = size_t(command.queue);
    Moment moment = {queue, recorded[queue], past[queue]};
    if (command.kind == Command::Kind::Signal) {
      moment.past = endAll(queue);
      signals[command.signal] = moment;
      ++recorded[queue];
    } else if (command.kind == Command::Kind::Barrier && barriers) {
      moment.past = endAll(queue);
      ++recorded[queue];
      past[queue] = endAll(queue);
    } else {
      ++recorded[queue];
    }
    if (command.kind == Command::Kind::Wait) {
      const Moment &signal = signals.at(command.signal);
      std::vector<size_t> next = pasts[past[queue]];
      for (size_t i = 0; i < queues; ++i)
        next[i] = std::max(next[i], pasts[signal.past][i]);
      next[signal.queue] = std::max(next[signal.queue], signal.number + 1);
      past[queue] = pasts.size();
      pasts.push_back(std::move(next));
    }
    moments.push_back(moment);
  }
}

namespace {

/// The latest accesses to a run of bytes: the last writer and, per queue, the last reader
/// since. An access ordered after these is ordered after all earlier ones, whose order was
/// checked when they were added.
struct LastAccesses {
  const Use *writer = nullptr;
  std::vector<const Use *> readers;
  /// Barriers and signals after the writer that cover the bytes: per queue, the index of the
  /// first among the commands.
  std::vector<size_t> shown;
};

class OrderCheck {
public:
  explicit OrderCheck(const Subject &subject)
      : subject(subject), clocks(subject.plan, /*barriers=*/true),
        memory(subject.plan.allocations.size()) {}

  /// Number of pairs that were checked.
  size_t countPairs() const { return pairs; }

  std::string run() {
    size_t dispatch = 0, waits = 0;
    for (size_t i = 0; i < subject.plan.commands.size(); ++i) {
      const Command &command = subject.plan.commands[i];
      if (command.kind == Command::Kind::Dispatch)
        record(dispatch++);
      else
        makeVisible(i);
      waits += command.kind == Command::Kind::Wait;
    }
    std::string proved = count(pairs, "conflicting pair") + " of accesses, each with a barrier ";
    if (!waits)
      return proved + "between";
    return proved + "or wait between; " + count(waits, "wait") +
           ", each for a signal recorded before it";
  }

private:
  void makeVisible(size_t number) {
    const Command &command = subject.plan.commands[number];
    for (const PlanView &view : command.memory)
      if (view.bytes)
        memory[view.allocation].visit(
            view.offset, view.offset + view.bytes, [&](LastAccesses &bytes, int64_t, int64_t) {
              auto isSameQueue = [&](size_t other) {
                return subject.plan.commands[other].queue == command.queue;
              };
              if (bytes.writer && clocks.isOrdered(subject.place[bytes.writer->dispatch], number) &&
                  std::none_of(bytes.shown.begin(), bytes.shown.end(), isSameQueue))
                bytes.shown.push_back(number);
            });
  }

  /// Checks all uses of a dispatch before recording any: `checkInPlace` checks conflicts inside
  /// one dispatch.
  void record(size_t dispatch) {
    auto first = subject.uses.begin() + subject.firstUse[dispatch];
    auto last = subject.uses.begin() + subject.firstUse[dispatch + 1];
    for (auto use = first; use != last; ++use)
      memory[use->view.allocation].visit(use->begin(), use->end(),
                                         [&](LastAccesses &bytes, int64_t begin, int64_t end) {
                                           if (bytes.writer)
                                             require(*bytes.writer, *use, begin, end, &bytes.shown);
                                           if (use->writes)
                                             for (const Use *reader : bytes.readers)
                                               require(*reader, *use, begin, end, nullptr);
                                         });
    for (auto use = first; use != last; ++use)
      if (use->reads)
        memory[use->view.allocation].visit(use->begin(), use->end(),
                                           [&](LastAccesses &bytes, int64_t, int64_t) {
                                             for (const Use *&reader : bytes.readers)
                                               if (getQueue(*reader) == getQueue(*use)) {
                                                 reader = &*use;
                                                 return;
                                               }
                                             bytes.readers.push_back(&*use);
                                           });
    for (auto use = first; use != last; ++use)
      if (use->writes)
        memory[use->view.allocation].assign(use->begin(), use->end(), {&*use, {}, {}});
  }

  int64_t getQueue(const Use &use) const { return subject.dispatches[use.dispatch]->queue; }

  /// Checks that two conflicting uses are ordered and visible. `shown` is null if `from` did
  /// not write.
  void require(const Use &from, const Use &to, int64_t begin, int64_t end,
               const std::vector<size_t> *shown) {
    ++pairs;
    size_t place = subject.place[to.dispatch];
    bool ordered = clocks.isOrdered(subject.place[from.dispatch], place);
    if (ordered && (!shown || std::any_of(shown->begin(), shown->end(), [&](size_t shower) {
          return clocks.isOrdered(shower, place);
        })))
      return;
    std::string between = getQueue(from) == getQueue(to) ? "barrier" : "wait";
    throw Counterexample{subject.describe(to.dispatch) + (to.writes ? " writes " : " reads ") +
                         subject.describe(to.view.allocation, begin, end) + " that " +
                         subject.describe(from.dispatch) + (shown ? " writes" : " reads") + ", " +
                         (ordered ? "and no " + between + " between makes them visible"
                                  : "with no " + between + " between")};
  }

  const Subject &subject;
  Clocks clocks;
  std::vector<ByteMap<LastAccesses>> memory; ///< by allocation
  size_t pairs = 0;
};

} // namespace

/// Returns the sets of loops that may run while all others end before their first trip, which not
/// all can. For each two dispatches there is a set that has the loops around them and, of others,
/// only those that must run: then no other dispatch or barrier is between them that need not be.
static std::set<std::vector<int64_t>> getLoopChoices(const Plan &plan) {
  std::vector<std::vector<int64_t>> around(1, std::vector<int64_t>(plan.loops.size()));
  for (size_t i = 0; i < plan.loops.size(); ++i)
    for (size_t outer = 0; outer < plan.loops.size(); ++outer)
      if (!plan.loops[outer].flag)
        around.front()[outer] = 2;
  for (size_t i = 0; i < plan.loops.size(); ++i) {
    std::vector<int64_t> trips = around.front();
    for (size_t outer = 0; outer <= i; ++outer)
      if (plan.loops[outer].first <= plan.loops[i].first &&
          plan.loops[outer].end >= plan.loops[i].end)
        trips[outer] = 2;
    around.push_back(std::move(trips));
  }
  std::set<std::vector<int64_t>> choices;
  for (const std::vector<int64_t> &one : around)
    for (const std::vector<int64_t> &other : around) {
      std::vector<int64_t> both = one;
      for (size_t i = 0; i < both.size(); ++i)
        both[i] = std::max(both[i], other[i]);
      choices.insert(std::move(both));
    }
  return choices;
}

std::string verifier::checkOrder(const Subject &subject) {
  if (subject.plan.loops.empty())
    return OrderCheck(subject).run();
  // Two trips are enough. What a dispatch does in one trip it does in all. So if it writes bytes,
  // its own write of the next trip is between the first one and whatever touches the bytes two
  // trips later, and each of the two steps is checked.
  size_t pairs = 0;
  for (const std::vector<int64_t> &trips : getLoopChoices(subject.plan)) {
    UnrolledPlan unrolled = unrollLoops(subject.plan, trips);
    Subject written(subject.artifact, unrolled.plan, subject.entry, subject.profile);
    written.stated = unrolled.dispatches;
    written.spreadEffects();
    OrderCheck check(written);
    check.run();
    pairs = std::max(pairs, check.countPairs());
  }
  return count(pairs, "conflicting pair") + " of accesses, each with a barrier between; " +
         count(subject.plan.loops.size(), "loop") + ", of each trip and the next one, too";
}

//===----------------------------------------------------------------------===//
// Conflicts among dispatches that nothing orders
//===----------------------------------------------------------------------===//

static bool isEarlierInMemory(const Use *a, const Use *b) {
  return std::make_tuple(a->view.allocation, a->begin(), a->end(), a->dispatch, a->operand) <
         std::make_tuple(b->view.allocation, b->begin(), b->end(), b->dispatch, b->operand);
}

static std::string describeConflict(const Subject &subject, const Use &a, const Use &b) {
  return subject.describe(a.view.allocation, std::max(a.begin(), b.begin()),
                          std::min(a.end(), b.end()));
}

static bool isSameRange(const PlanView &a, const PlanView &b) { return a == b; }

std::string verifier::checkInPlace(const Subject &subject) {
  size_t pairs = 0;
  auto refuse = [&](const Use &a, const Use &b, const std::string &why) {
    throw Counterexample{"operands " + std::to_string(a.operand) + " and " +
                         std::to_string(b.operand) + " of " + subject.describe(a.dispatch) +
                         " share " + describeConflict(subject, a, b) + ", " + why};
  };
  std::vector<const Use *> uses;
  for (size_t dispatch = 0; dispatch < subject.dispatches.size(); ++dispatch) {
    uses.clear();
    for (size_t i = subject.firstUse[dispatch]; i < subject.firstUse[dispatch + 1]; ++i)
      uses.push_back(&subject.uses[i]);
    std::sort(uses.begin(), uses.end(), isEarlierInMemory);

    // Among the operands so far: the one that ends last, and the written one that ends last.
    const Use *furthest = nullptr, *furthestWrite = nullptr;
    for (size_t i = 0; i < uses.size();) {
      size_t next = i;
      const Use *write = nullptr;
      for (; next < uses.size() && isSameRange(uses[next]->view, uses[i]->view); ++next) {
        if (!uses[next]->writes)
          continue;
        if (write)
          refuse(*write, *uses[next], "and both write them");
        write = uses[next];
      }
      const Use &here = *uses[i];
      const Use *other = write ? furthest : furthestWrite;
      if (other && other->view.allocation == here.view.allocation && other->end() > here.begin())
        refuse(*other, write ? *write : here, "one of them writes, and the ranges differ");
      if (write && next - i > 1) {
        if (write->reads)
          refuse(*(write == uses[i] ? uses[i + 1] : uses[i]), *write, "and one updates them");
        const auto &allowed = subject.getKernel(dispatch).inPlace;
        for (size_t source = i; source < next; ++source)
          if (uses[source] != write &&
              std::find(allowed.begin(), allowed.end(),
                        std::pair<int64_t, int64_t>(uses[source]->operand, write->operand)) ==
                  allowed.end())
            refuse(*uses[source], *write,
                   "and its kernel states no proof that operand " + std::to_string(write->operand) +
                       " may be written over operand " + std::to_string(uses[source]->operand));
        pairs += next - i - 1;
      }
      auto extend = [&](const Use *&last, const Use *use) {
        if (!last || last->view.allocation != use->view.allocation || last->end() < use->end())
          last = use;
      };
      extend(furthest, &here);
      if (write)
        extend(furthestWrite, write);
      i = next;
    }
  }
  if (!pairs)
    return "no dispatch writes over its own operands";
  return count(pairs, "operand") + " written over in place, each as its kernel permits";
}

namespace {

/// The uses of two different dispatches that end last.
struct Furthest {
  const Use *first = nullptr, *second = nullptr;

  void add(const Use *use) {
    if (first && first->view.allocation != use->view.allocation)
      first = second = nullptr;
    if (!first || use->end() > first->end()) {
      if (first && first->dispatch != use->dispatch)
        second = first;
      first = use;
    } else if (use->dispatch != first->dispatch && (!second || use->end() > second->end())) {
      second = use;
    }
  }
  /// Returns a use by another dispatch that overlaps `use`, or null. Needs: `use` begins no
  /// earlier.
  const Use *findOverlap(const Use &use) const {
    for (const Use *other : {first, second})
      if (other && other->dispatch != use.dispatch &&
          other->view.allocation == use.view.allocation && other->end() > use.begin())
        return other;
    return nullptr;
  }
};

} // namespace

std::optional<std::pair<int64_t, int64_t>> verifier::getWaves(const Subject &subject,
                                                              const Loop &loop) {
  std::optional<std::pair<int64_t, int64_t>> waves;
  for (int64_t i = loop.first; i < loop.end; ++i) {
    const Command &command = subject.plan.commands[i];
    if (command.kind != Command::Kind::Dispatch)
      continue;
    waves = waves ? std::pair(std::min(waves->first, command.wave),
                              std::max(waves->second, command.wave))
                  : std::pair(command.wave, command.wave);
  }
  return waves;
}

std::string verifier::checkWaves(const Subject &subject) {
  for (size_t i = 0; i < subject.plan.loops.size(); ++i) {
    const Loop &loop = subject.plan.loops[i];
    auto range = getWaves(subject, loop);
    for (size_t dispatch = 0; range && dispatch < subject.dispatches.size(); ++dispatch) {
      const int64_t place = int64_t(subject.place[dispatch]);
      const int64_t wave = subject.dispatches[dispatch]->wave;
      if ((place < loop.first || place >= loop.end) && wave >= range->first &&
          wave <= range->second)
        throw Counterexample{subject.describe(dispatch) + " of wave " + std::to_string(wave) +
                             " is outside of loop " + std::to_string(i) + ", which has waves " +
                             std::to_string(range->first) + " to " + std::to_string(range->second)};
    }
  }
  std::map<int64_t, std::vector<const Use *>> waves;
  for (const Use &use : subject.uses)
    waves[subject.dispatches[use.dispatch]->wave].push_back(&use);
  for (auto &[wave, uses] : waves) {
    std::sort(uses.begin(), uses.end(), isEarlierInMemory);
    Furthest touched, written;
    for (const Use *use : uses) {
      if (const Use *other = (use->writes ? touched : written).findOverlap(*use))
        throw Counterexample{subject.describe(other->dispatch) + " and " +
                             subject.describe(use->dispatch) + ", both of wave " +
                             std::to_string(wave) + ", share " +
                             describeConflict(subject, *other, *use) + ", and one of them writes"};
      touched.add(use);
      if (use->writes)
        written.add(use);
    }
  }
  return count(waves.size(), "wave") + ", no conflict inside one";
}

//===----------------------------------------------------------------------===//
// Parts of results
//===----------------------------------------------------------------------===//

/// Returns the index of the allocation that a result lies in.
static int64_t findAllocation(const Subject &subject, int64_t result) {
  const std::vector<Allocation> &allocations = subject.plan.allocations;
  auto found = std::find_if(allocations.begin(), allocations.end(), [&](const Allocation &place) {
    return place.kind == AllocationKind::Result ? place.index == result : place.result == result;
  });
  if (found == allocations.end())
    throw Counterexample{"result " + std::to_string(result) + ", which has parts, is nowhere"};
  return found - allocations.begin();
}

std::string verifier::checkParts(const Subject &subject) {
  std::vector<const ResultPart *> parts;
  for (const ResultPart &part : subject.plan.parts)
    parts.push_back(&part);
  std::sort(parts.begin(), parts.end(), [](const ResultPart *a, const ResultPart *b) {
    return std::tie(a->result, a->from) < std::tie(b->result, b->from);
  });
  for (size_t i = 0; i < parts.size(); ++i) {
    const ResultPart &part = *parts[i];
    if (i && parts[i - 1]->result == part.result &&
        parts[i - 1]->from + parts[i - 1]->bytes > part.from)
      throw Counterexample{"parts \"" + parts[i - 1]->name + "\" and \"" + part.name +
                           "\" share byte " + std::to_string(part.from) + " of result " +
                           std::to_string(part.result)};
    int64_t allocation = findAllocation(subject, part.result);
    const Use *last = nullptr;
    for (const Use &use : subject.uses)
      if (use.writes && use.view.allocation == allocation && use.begin() < part.from + part.bytes &&
          part.from < use.end() &&
          (!last ||
           subject.dispatches[use.dispatch]->wave > subject.dispatches[last->dispatch]->wave))
        last = &use;
    std::string stated =
        "part \"" + part.name + "\" is stated to be final after wave " + std::to_string(part.wave);
    if (!last)
      throw Counterexample{stated + ", but no dispatch writes it"};
    if (int64_t wave = subject.dispatches[last->dispatch]->wave; wave != part.wave)
      throw Counterexample{stated + ", but " + subject.describe(last->dispatch) + " of wave " +
                           std::to_string(wave) + " is the last that writes it"};
  }
  return count(parts.size(), "part") + " of results, each written last in its wave";
}

//===----------------------------------------------------------------------===//
// Barriers
//===----------------------------------------------------------------------===//

/// Whether dispatches `from` and `to` are both of a loop that ends at command `end`: a barrier just
/// before is between them, as they are in a trip and the next one.
static bool isRoundLoop(const Subject &subject, size_t end, size_t from, size_t to) {
  const std::vector<Loop> &loops = subject.plan.loops;
  return std::any_of(loops.begin(), loops.end(), [&](const Loop &loop) {
    auto isInside = [&](size_t dispatch) {
      return int64_t(subject.place[dispatch]) >= loop.first &&
             int64_t(subject.place[dispatch]) < loop.end;
    };
    return size_t(loop.end) == end && isInside(from) && isInside(to);
  });
}

/// Checks a hazard of the barrier that is command `place`, behind `recorded` dispatches.
static void checkHazard(const Subject &subject, const Hazard &hazard, size_t place, size_t recorded,
                        size_t barrier) {
  static const char *const kinds[] = {"RAW", "WAR", "WAW"};
  auto refuse = [&](const std::string &why) {
    throw Counterexample{std::string(kinds[size_t(hazard.kind)]) + " of barrier " +
                         std::to_string(barrier) + ", dispatch " + std::to_string(hazard.from) +
                         " operand " + std::to_string(hazard.fromOperand) + " to dispatch " +
                         std::to_string(hazard.to) + " operand " +
                         std::to_string(hazard.toOperand) + ", " + why};
  };
  auto find = [&](int64_t dispatch, int64_t operand) -> const Use & {
    if (dispatch >= 0 && size_t(dispatch) < subject.dispatches.size())
      for (size_t i = subject.firstUse[dispatch]; i < subject.firstUse[dispatch + 1]; ++i)
        if (int64_t(subject.uses[i].operand) == operand)
          return subject.uses[i];
    refuse("is of an operand that touches nothing");
    __builtin_unreachable();
  };
  const Use &from = find(hazard.from, hazard.fromOperand);
  const Use &to = find(hazard.to, hazard.toOperand);
  if (hazard.kind == HazardKind::WAR ? !from.reads : !from.writes)
    refuse("is not what the first operand's effect says");
  if (hazard.kind == HazardKind::RAW ? !to.reads : !to.writes)
    refuse("is not what the second operand's effect says");
  if (from.view.allocation != to.view.allocation || from.end() <= to.begin() ||
      to.end() <= from.begin())
    refuse("is between operands that share no bytes");
  if ((from.dispatch >= recorded || to.dispatch < recorded) &&
      !isRoundLoop(subject, place + 1, from.dispatch, to.dispatch))
    refuse("does not cross the barrier");
}

std::string verifier::checkBarriers(const Subject &subject) {
  // Each barrier's first hazard needs a barrier in the interval after `from` and before `to`.
  // If these intervals are disjoint, each needs a barrier of its own, so the number is minimal.
  // A wait that orders the two by itself would do as well, so it must not exist. Barriers at the
  // edges of loops are not counted: before a loop, and at the end of a trip.
  const std::vector<Loop> &loops = subject.plan.loops;
  auto isAtEdge = [&](size_t place) {
    return std::any_of(loops.begin(), loops.end(), [&](const Loop &loop) {
      return size_t(loop.first) == place + 1 || size_t(loop.end) == place + 1;
    });
  };
  Clocks waits(subject.plan, /*barriers=*/false);
  size_t barriers = 0, hazards = 0, recorded = 0;
  std::map<int64_t, int64_t> ends; // by queue: end of its last interval
  for (size_t place = 0; place < subject.plan.commands.size(); ++place) {
    const Command &command = subject.plan.commands[place];
    recorded += command.kind == Command::Kind::Dispatch;
    if (command.kind != Command::Kind::Barrier)
      continue;
    if (command.hazards.empty())
      throw Counterexample{"barrier " + std::to_string(barriers) + " states no hazard"};
    for (const Hazard &hazard : command.hazards)
      checkHazard(subject, hazard, place, recorded, barriers);
    if (isAtEdge(place)) {
      ++barriers;
      hazards += command.hazards.size();
      continue;
    }
    const Hazard &forcing = command.hazards.front();
    std::string pair = "the hazard that forced barrier " + std::to_string(barriers) +
                       ", from dispatch " + std::to_string(forcing.from) + " to " +
                       std::to_string(forcing.to);
    if (subject.dispatches[forcing.from]->queue != command.queue ||
        subject.dispatches[forcing.to]->queue != command.queue)
      throw Counterexample{pair + ", is not inside the barrier's queue"};
    if (waits.isOrdered(subject.place[forcing.from], subject.place[forcing.to]))
      throw Counterexample{pair + ", is ordered by waits: the count is not proved minimal"};
    int64_t &end = ends[command.queue];
    if (forcing.from < end)
      throw Counterexample{pair + ", could share the barrier before, which serves up to dispatch " +
                           std::to_string(end) + ": the count is not proved minimal"};
    end = forcing.to;
    ++barriers;
    hazards += command.hazards.size();
  }
  return count(barriers, "barrier") + " for " + count(hazards, "stated hazard") +
         ", proved minimal for this order: the pairs that forced them are disjoint";
}

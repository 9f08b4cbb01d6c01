//===- Order.cpp - What runs before what, and why -------------------------===//

#include "Checks.h"

#include <algorithm>

using namespace weir;
using namespace weir::verifier;

//===----------------------------------------------------------------------===//
// Order
//===----------------------------------------------------------------------===//

namespace {

/// Who touched a run of bytes last. The last writer and the last reader since
/// suffice: a barrier that orders a later dispatch after them orders it after
/// all earlier ones, whose own order was checked when they came.
struct Touched {
  const Use *writer = nullptr;
  bool visible = false; ///< a barrier after the writer covers the bytes
  const Use *reader = nullptr;
};

class OrderCheck {
public:
  explicit OrderCheck(const Subject &subject)
      : subject(subject), memory(subject.plan.allocations.size()) {}

  std::string run() {
    size_t dispatch = 0;
    for (const Command &command : subject.plan.commands) {
      if (command.kind == Command::Kind::Barrier)
        makeVisible(command);
      else
        record(dispatch++);
    }
    return count(pairs, "conflicting pair") + " of accesses, each with a barrier between";
  }

private:
  void makeVisible(const Command &barrier) {
    for (const PlanView &view : barrier.memory)
      if (view.bytes)
        memory[view.allocation].visit(
            view.offset, view.offset + view.bytes,
            [](Touched &bytes, int64_t, int64_t) { bytes.visible = true; });
  }

  /// Checks all uses of a dispatch before it counts itself: what operands of
  /// one dispatch may share is `checkInPlace`'s business.
  void record(size_t dispatch) {
    auto first = subject.uses.begin() + subject.firstUse[dispatch];
    auto last = subject.uses.begin() + subject.firstUse[dispatch + 1];
    for (auto use = first; use != last; ++use)
      memory[use->view.allocation].visit(
          use->begin(), use->end(), [&](Touched &bytes, int64_t begin, int64_t end) {
            if (bytes.writer)
              require(*bytes.writer, *use, begin, end, &bytes.visible);
            if (use->writes && bytes.reader)
              require(*bytes.reader, *use, begin, end, nullptr);
          });
    for (auto use = first; use != last; ++use)
      if (use->reads)
        memory[use->view.allocation].visit(
            use->begin(), use->end(),
            [&](Touched &bytes, int64_t, int64_t) { bytes.reader = &*use; });
    for (auto use = first; use != last; ++use)
      if (use->writes)
        memory[use->view.allocation].assign(use->begin(), use->end(), {&*use, false, nullptr});
  }

  void require(const Use &from, const Use &to, int64_t begin, int64_t end, const bool *visible) {
    ++pairs;
    bool ordered = subject.epoch[from.dispatch] < subject.epoch[to.dispatch];
    if (ordered && (!visible || *visible))
      return;
    throw Counterexample{
        subject.describe(to.dispatch) + (to.writes ? " writes " : " reads ") +
        subject.describe(to.view.allocation, begin, end) + " that " +
        subject.describe(from.dispatch) + (visible ? " writes" : " reads") + ", " +
        (ordered ? "and no barrier between makes them visible" : "with no barrier between")};
  }

  const Subject &subject;
  std::vector<ByteMap<Touched>> memory; ///< by allocation
  size_t pairs = 0;
};

} // namespace

std::string verifier::checkOrder(const Subject &subject) { return OrderCheck(subject).run(); }

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

    // Of the operands so far, the one that ends last, and the written one.
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
  return count(pairs, "operand") +
         " written over in place, each by a pair that the kernel's access maps allow (taken from "
         "compiler)";
}

namespace {

/// The uses that end last, of two different dispatches.
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
  /// One that overlaps `use`, which begins no earlier, from another dispatch.
  const Use *findOverlap(const Use &use) const {
    for (const Use *other : {first, second})
      if (other && other->dispatch != use.dispatch &&
          other->view.allocation == use.view.allocation && other->end() > use.begin())
        return other;
    return nullptr;
  }
};

} // namespace

std::string verifier::checkWaves(const Subject &subject) {
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
// Barriers
//===----------------------------------------------------------------------===//

static void checkHazard(const Subject &subject, const Hazard &hazard, size_t recorded,
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
  if (from.dispatch >= recorded || to.dispatch < recorded)
    refuse("does not cross the barrier");
}

std::string verifier::checkBarriers(const Subject &subject) {
  // Each barrier's first hazard needs a barrier after `from` and before `to`.
  // Where these stretches are disjoint, there must be as many barriers as they.
  size_t barriers = 0, hazards = 0, recorded = 0;
  int64_t end = 0;
  for (const Command &command : subject.plan.commands) {
    if (command.kind == Command::Kind::Dispatch) {
      ++recorded;
      continue;
    }
    if (command.hazards.empty())
      throw Counterexample{"barrier " + std::to_string(barriers) + " states no hazard"};
    for (const Hazard &hazard : command.hazards)
      checkHazard(subject, hazard, recorded, barriers);
    const Hazard &forcing = command.hazards.front();
    if (forcing.from < end)
      throw Counterexample{"the hazard that forced barrier " + std::to_string(barriers) +
                           ", from dispatch " + std::to_string(forcing.from) + " to " +
                           std::to_string(forcing.to) +
                           ", could share the barrier before, which serves up to dispatch " +
                           std::to_string(end) + ": the count is not proved minimal"};
    end = forcing.to;
    ++barriers;
    hazards += command.hazards.size();
  }
  return count(barriers, "barrier") + " for " + count(hazards, "stated hazard") +
         ", proved minimal for this order: the pairs that forced them are disjoint";
}

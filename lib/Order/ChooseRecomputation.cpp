//===- ChooseRecomputation.cpp - The step that saves most for its work ----===//
//
// Hundreds of steps are considered before one is taken. None is carried out for that: what a step
// does to the live bytes follows from the lives of the few allocations that it changes.
//
//===----------------------------------------------------------------------===//

#include "weir/Order/Recompute.h"

#include <algorithm>
#include <numeric>
#include <span>

using namespace weir;

namespace {
/// Lists of numbers, by number.
class Lists {
public:
  /// `forEach` calls its argument with each pair of a list and what to add to it.
  template <typename ForEach> Lists(size_t count, ForEach forEach) : begins(count + 2) {
    // Counted two places further on, so that filling moves each begin into its place.
    forEach([&](int64_t list, int64_t) { ++begins[list + 2]; });
    std::partial_sum(begins.begin(), begins.end(), begins.begin());
    numbers.resize(begins.back());
    forEach([&](int64_t list, int64_t number) { numbers[begins[list + 1]++] = number; });
  }

  std::span<const int64_t> operator[](int64_t list) const {
    return std::span(numbers).subspan(begins[list], begins[list + 1] - begins[list]);
  }

private:
  std::vector<int64_t> begins, numbers;
};

/// The max number of live bytes among some commands, and how many have it.
struct Peak {
  int64_t bytes = -1, count = 0;

  void join(Peak other) {
    if (other.bytes > bytes)
      *this = other;
    else if (other.bytes == bytes)
      count += other.count;
  }
};

/// The peaks of all ranges of commands, as a tree over the commands.
class Peaks {
public:
  explicit Peaks(const std::vector<int64_t> &live) : nodes(2 * live.size()) {
    for (size_t number = 0; number < live.size(); ++number)
      nodes[live.size() + number] = {live[number], 1};
    for (size_t node = live.size(); node-- > 1;) {
      nodes[node] = nodes[2 * node];
      nodes[node].join(nodes[2 * node + 1]);
    }
  }

  /// Returns the peak of commands [begin, end).
  Peak get(int64_t begin, int64_t end) const {
    int64_t leaves = nodes.size() / 2;
    Peak peak;
    for (begin += leaves, end += leaves; begin < end; begin /= 2, end /= 2) {
      if (begin % 2)
        peak.join(nodes[begin++]);
      if (end % 2)
        peak.join(nodes[--end]);
    }
    return peak;
  }

private:
  std::vector<Peak> nodes;
};

/// A problem with what is asked about it for each step.
struct State {
  State(const RecomputeProblem &problem, const LiveProfile &profile);

  static constexpr int64_t none = -1, several = -2;

  const Computation &getComputation(const Repetition &repetition) const {
    return (repetition.isRecipe ? problem.recipes : problem.commands)[repetition.number];
  }

  const RecomputeProblem &problem;
  const LiveProfile &profile;
  Peaks peaks;
  Lists users;                   ///< commands by allocation, in order, each once
  int64_t peak = 0;              ///< the first command at it
  std::vector<int64_t> writer;   ///< by allocation
  std::vector<int64_t> giver;    ///< by allocation, the one whose bytes it takes, or none
  std::vector<int64_t> crossing; ///< by command, bytes that live at it and at the one before it
};
} // namespace

static Lists listUsers(const RecomputeProblem &problem) {
  std::vector<int64_t> last(problem.allocations.size());
  return Lists(problem.allocations.size(), [&](auto add) {
    std::fill(last.begin(), last.end(), -1);
    for (int64_t number = 0; number < int64_t(problem.commands.size()); ++number)
      for (const auto *list : {&problem.commands[number].reads, &problem.commands[number].writes})
        for (int64_t allocation : *list)
          if (last[allocation] != number) {
            last[allocation] = number;
            add(allocation, number);
          }
  });
}

State::State(const RecomputeProblem &problem, const LiveProfile &profile)
    : problem(problem), profile(profile), peaks(profile.live), users(listUsers(problem)) {
  peak = std::find(profile.live.begin(), profile.live.end(), profile.peak) - profile.live.begin();
  size_t allocations = problem.allocations.size(), commands = problem.commands.size();
  writer.assign(allocations, none);
  giver.assign(allocations, none);
  for (size_t number = 0; number < commands; ++number)
    for (int64_t allocation : problem.commands[number].writes)
      writer[allocation] = writer[allocation] == none ? int64_t(number) : several;
  crossing.resize(commands + 2);
  for (size_t number = 0; number < allocations; ++number) {
    const BufferLife &life = profile.lives[number];
    if (life.taker >= 0)
      giver[life.taker] = number;
    if (!life.inArena)
      continue;
    crossing[life.first + 1] += problem.allocations[number].bytes;
    crossing[life.last + 1] -= problem.allocations[number].bytes;
  }
  std::partial_sum(crossing.begin(), crossing.end(), crossing.begin());
}

//===----------------------------------------------------------------------===//
// The effect of a step
//===----------------------------------------------------------------------===//

namespace {
/// The effect of a step on a state. Commands are counted as they stand behind it, as if none were
/// dropped: that is a command's place.
class Trial {
public:
  Trial(const State &state, const Recomputation &step);

  bool dropsPeak() const { return isDropped(state.peak); }
  int64_t getSavedAtPeak() const;
  double getWork() const;
  Peak getPeak() const;

private:
  struct Change {
    int64_t allocation = 0;
    BufferLife before, after;
    bool isNew = false;
  };

  int64_t getPlace(int64_t command) const {
    return command < step.before ? command : command + repetitions;
  }
  bool isDropped(int64_t command) const {
    return std::find(dropped.begin(), dropped.end(), command) != dropped.end();
  }
  int64_t getReplacement(int64_t allocation) const;
  Buffered getBuffer(int64_t allocation) const;
  bool isUnread(int64_t allocation) const;
  void dropUnread();
  BufferLife findLife(int64_t allocation) const;
  BufferLife getLife(int64_t allocation) const;
  BufferLife &change(int64_t allocation, bool isUsedElsewhere);
  void chooseTakers(int64_t place);
  bool isInArena(int64_t allocation) const;
  Peak getPeak(int64_t begin, int64_t end) const;
  template <typename Visit> void forEachPair(int64_t place, Visit visit) const;
  template <typename Visit> void forEachRange(Visit visit) const;

  const State &state;
  const Recomputation &step;
  int64_t repetitions;
  std::vector<int64_t> dropped; ///< commands
  std::vector<Change> changes;
};
} // namespace

Trial::Trial(const State &state, const Recomputation &step)
    : state(state), step(step), repetitions(step.repetitions.size()) {
  dropUnread();
  for (auto [from, to] : step.replaced)
    change(from, true);
  for (const Repetition &repetition : step.repetitions)
    for (const auto *list : {&repetition.reads, &repetition.writes})
      for (int64_t allocation : *list)
        change(allocation, true);
  for (int64_t command : dropped)
    for (const auto *list :
         {&state.problem.commands[command].reads, &state.problem.commands[command].writes})
      for (int64_t allocation : *list)
        change(allocation, true);
  std::vector<int64_t> places; // where an allocation begins or ends now, or did
  for (const Change &change : changes) {
    if (!change.isNew && change.before.first >= 0)
      for (int64_t command : {change.before.first, change.before.last})
        places.push_back(getPlace(command));
    if (change.after.first >= 0)
      for (int64_t place : {change.after.first, change.after.last})
        places.push_back(place);
  }
  std::sort(places.begin(), places.end());
  places.erase(std::unique(places.begin(), places.end()), places.end());
  for (int64_t place : places)
    chooseTakers(place);
  // An allocation leaves the arena, or comes into it, with the one that takes its bytes.
  for (size_t number = 0; number < changes.size(); ++number) {
    int64_t allocation = changes[number].allocation;
    bool inArena = changes[number].after.inArena = isInArena(allocation);
    if (!changes[number].isNew && inArena != changes[number].before.inArena)
      if (int64_t giver = state.giver[allocation]; giver >= 0)
        change(giver, false);
  }
}

/// Returns what readers behind the repetitions read in the place of `allocation`.
int64_t Trial::getReplacement(int64_t allocation) const {
  for (auto [from, to] : step.replaced)
    if (from == allocation)
      return to;
  return allocation;
}

Buffered Trial::getBuffer(int64_t allocation) const {
  if (allocation < int64_t(state.problem.allocations.size()))
    return state.problem.allocations[allocation];
  for (const Repetition &repetition : step.repetitions)
    for (size_t i = 0; i < repetition.writes.size(); ++i)
      if (repetition.writes[i] == allocation)
        return getCopy(state.problem.allocations[state.getComputation(repetition).writes[i]]);
  return {};
}

/// Whether nobody but its writer uses the allocation.
bool Trial::isUnread(int64_t allocation) const {
  bool isReplaced = getReplacement(allocation) != allocation;
  for (int64_t user : state.users[allocation])
    if (user != state.writer[allocation] && !isDropped(user) &&
        !(isReplaced && user >= step.before))
      return false;
  return std::none_of(step.repetitions.begin(), step.repetitions.end(),
                      [&](const Repetition &repetition) {
                        return std::find(repetition.reads.begin(), repetition.reads.end(),
                                         allocation) != repetition.reads.end();
                      });
}

/// Finds the commands that go, beginning with those whose readers read something else now.
void Trial::dropUnread() {
  std::vector<int64_t> open;
  for (auto [from, to] : step.replaced)
    open.push_back(state.writer[from]);
  while (!open.empty()) {
    int64_t number = open.back();
    open.pop_back();
    if (number < 0 || isDropped(number))
      continue;
    const Computation &command = state.problem.commands[number];
    if (!command.mayRepeat ||
        !std::all_of(command.writes.begin(), command.writes.end(), [&](int64_t allocation) {
          return state.problem.allocations[allocation].mayCopy &&
                 state.writer[allocation] == number && isUnread(allocation);
        }))
      continue;
    dropped.push_back(number);
    for (int64_t read : command.reads)
      open.push_back(state.writer[read]);
  }
}

/// Returns from where to where an allocation is used behind the step.
BufferLife Trial::findLife(int64_t allocation) const {
  BufferLife life;
  auto use = [&](int64_t place) {
    life.first = life.first < 0 ? place : std::min(life.first, place);
    life.last = std::max(life.last, place);
  };
  if (allocation < int64_t(state.problem.allocations.size())) {
    bool isReplaced = getReplacement(allocation) != allocation;
    for (int64_t user : state.users[allocation])
      if (!isDropped(user) && !(isReplaced && user >= step.before))
        use(getPlace(user));
  }
  for (auto [from, to] : step.replaced)
    if (to == allocation)
      for (int64_t user : state.users[from])
        if (user >= step.before)
          use(getPlace(user));
  for (int64_t number = 0; number < repetitions; ++number)
    for (const auto *list : {&step.repetitions[number].reads, &step.repetitions[number].writes})
      if (std::find(list->begin(), list->end(), allocation) != list->end())
        use(step.before + number);
  return life;
}

/// Returns the life of an allocation, by places.
BufferLife Trial::getLife(int64_t allocation) const {
  for (const Change &change : changes)
    if (change.allocation == allocation)
      return change.after;
  BufferLife life = state.profile.lives[allocation];
  life.first = getPlace(life.first);
  life.last = getPlace(life.last);
  return life;
}

/// Returns the life of an allocation to change it. If it is used elsewhere behind the step, nobody
/// has its bytes yet.
BufferLife &Trial::change(int64_t allocation, bool isUsedElsewhere) {
  for (Change &change : changes)
    if (change.allocation == allocation)
      return change.after;
  Change change = {allocation, {}, {}, allocation >= int64_t(state.problem.allocations.size())};
  if (!change.isNew)
    change.before = state.profile.lives[allocation];
  change.after = isUsedElsewhere ? findLife(allocation) : getLife(allocation);
  return changes.emplace_back(change).after;
}

/// Calls `visit` with each pair of allocations that share bytes in place, if one ends at the place
/// and the other begins there.
template <typename Visit> void Trial::forEachPair(int64_t place, Visit visit) const {
  int64_t number = place - step.before;
  if (number >= 0 && number < repetitions) {
    const Repetition &repetition = step.repetitions[number];
    const Computation &own = state.getComputation(repetition);
    for (auto [source, target] : own.inPlace)
      visit(repetition
                .reads[std::find(own.reads.begin(), own.reads.end(), source) - own.reads.begin()],
            repetition.writes[std::find(own.writes.begin(), own.writes.end(), target) -
                              own.writes.begin()]);
    return;
  }
  number = number < 0 ? place : place - repetitions;
  if (isDropped(number))
    return;
  for (auto [source, target] : state.problem.commands[number].inPlace)
    visit(number < step.before ? source : getReplacement(source), target);
}

/// Chooses anew whose bytes are passed on at a place, as `getLiveProfile` does.
void Trial::chooseTakers(int64_t place) {
  std::vector<int64_t> taken;
  forEachPair(place, [&](int64_t source, int64_t) {
    if (getLife(source).last == place)
      change(source, false).taker = State::none;
  });
  for (int turn : {0, 1, 2})
    forEachPair(place, [&](int64_t source, int64_t target) {
      if (getTurn(getBuffer(source), getBuffer(target)) != turn || getLife(target).first != place ||
          std::find(taken.begin(), taken.end(), target) != taken.end())
        return;
      BufferLife life = getLife(source);
      if (life.last != place || life.taker >= 0)
        return;
      change(source, false).taker = target;
      taken.push_back(target);
    });
}

bool Trial::isInArena(int64_t allocation) const {
  if (getBuffer(allocation).bytes == 0 || getLife(allocation).first < 0)
    return false;
  int64_t last = allocation;
  for (int64_t next = last; next >= 0; next = getLife(last).taker)
    last = next;
  return !getBuffer(last).isResult;
}

/// Calls `visit` with places [begin, end) and the bytes that the step adds to those live there.
template <typename Visit> void Trial::forEachRange(Visit visit) const {
  for (const Change &change : changes) {
    int64_t bytes = getBuffer(change.allocation).bytes;
    const auto &[allocation, before, after, isNew] = change;
    if (before.inArena)
      visit(getPlace(before.first), getPlace(before.last) + (before.taker < 0), -bytes);
    if (after.inArena)
      visit(after.first, after.last + (after.taker < 0), bytes);
  }
}

int64_t Trial::getSavedAtPeak() const {
  int64_t saved = 0, place = getPlace(state.peak);
  forEachRange([&](int64_t begin, int64_t end, int64_t bytes) {
    saved -= begin <= place && place < end ? bytes : 0;
  });
  return saved;
}

double Trial::getWork() const {
  double work = 0;
  for (const Repetition &repetition : step.repetitions)
    work += state.getComputation(repetition).work;
  for (int64_t number : dropped)
    work -= state.problem.commands[number].work;
  return work;
}

/// Returns the peak of places [begin, end), all before, among or behind the repetitions, without
/// what the step changes. A dropped command has a range of its own.
Peak Trial::getPeak(int64_t begin, int64_t end) const {
  if (begin >= step.before + repetitions) {
    begin -= repetitions;
    end -= repetitions;
  } else if (begin >= step.before) {
    return {state.crossing[step.before], end - begin};
  }
  return isDropped(begin) ? Peak() : state.peaks.get(begin, end);
}

Peak Trial::getPeak() const {
  std::vector<std::pair<int64_t, int64_t>> edges; // place, bytes more from there on
  forEachRange([&](int64_t begin, int64_t end, int64_t bytes) {
    edges.emplace_back(begin, bytes);
    edges.emplace_back(end, -bytes);
  });
  for (int64_t place : {step.before, step.before + repetitions,
                        int64_t(state.problem.commands.size()) + repetitions})
    edges.emplace_back(place, 0);
  for (int64_t number : dropped) {
    edges.emplace_back(getPlace(number), 0);
    edges.emplace_back(getPlace(number) + 1, 0);
  }
  std::sort(edges.begin(), edges.end());
  Peak peak;
  int64_t place = 0, more = 0;
  for (auto [next, bytes] : edges) {
    if (next > place) {
      Peak part = getPeak(place, next);
      if (part.count > 0)
        peak.join({part.bytes + more, part.count});
      place = next;
    }
    more += bytes;
  }
  return peak;
}

StepEffect weir::getEffect(const RecomputeProblem &problem, const LiveProfile &profile,
                           const Recomputation &step) {
  State state(problem, profile);
  Trial trial(state, step);
  Peak peak = trial.getPeak();
  return {peak.bytes, peak.count, trial.getWork()};
}

//===----------------------------------------------------------------------===//
// Choosing
//===----------------------------------------------------------------------===//

namespace {
class Chooser {
public:
  Chooser(const RecomputeProblem &problem, const LiveProfile &profile);

  std::optional<Recomputation> choose() const;

private:
  static constexpr size_t maxRepetitions = 16; ///< in one step

  /// A step that is being made.
  struct Draft {
    Recomputation step;
    int64_t end = 0;                               ///< the number of the next new allocation
    std::vector<std::pair<int64_t, int64_t>> made; ///< (value, new allocation)
  };

  int64_t getNextUse(int64_t allocation, int64_t after) const;
  bool isIdle(int64_t allocation, int64_t command) const;
  bool addRepetition(Draft &draft, bool isRecipe, int64_t number, bool deep) const;
  std::optional<int64_t> findSource(Draft &draft, int64_t allocation, bool deep) const;
  std::optional<Recomputation> draft(int64_t allocation, int64_t before, bool isRecipe,
                                     int64_t number, bool deep) const;
  double getBound(const Recomputation &step) const;
  double getScore(const Recomputation &step) const;

  const RecomputeProblem &problem;
  const LiveProfile &profile;
  State state;
  std::vector<int64_t> byFirstUse; ///< allocations; no choice depends on their numbers
  Lists holders;                   ///< allocations by value
  Lists recipes;                   ///< by value
};
} // namespace

static size_t countValues(const RecomputeProblem &problem) {
  int64_t count = 0;
  for (const Buffered &buffer : problem.allocations)
    count = std::max(count, buffer.value + 1);
  return count;
}

Chooser::Chooser(const RecomputeProblem &problem, const LiveProfile &profile)
    : problem(problem), profile(profile), state(problem, profile),
      byFirstUse(profile.orderByFirstUse()),
      holders(countValues(problem),
              [&](auto add) {
                for (int64_t number : byFirstUse)
                  add(problem.allocations[number].value, number);
              }),
      recipes(countValues(problem), [&](auto add) {
        for (size_t number = 0; number < problem.recipes.size(); ++number)
          add(problem.allocations[problem.recipes[number].writes.front()].value, number);
      }) {}

/// Returns the first command behind `after` that uses the allocation; the end: none.
int64_t Chooser::getNextUse(int64_t allocation, int64_t after) const {
  std::span<const int64_t> users = state.users[allocation];
  auto next = std::upper_bound(users.begin(), users.end(), after);
  return next == users.end() ? problem.commands.size() : *next;
}

/// Whether the allocation is live at a command that does not use it.
bool Chooser::isIdle(int64_t allocation, int64_t command) const {
  const BufferLife &life = profile.lives[allocation];
  return life.first >= 0 && life.first < command && command < life.last &&
         getNextUse(allocation, command - 1) > command;
}

/// Returns what to read in the place of `allocation` where the draft stands, if there is any.
std::optional<int64_t> Chooser::findSource(Draft &draft, int64_t allocation, bool deep) const {
  int64_t value = problem.allocations[allocation].value;
  auto findMade = [&]() -> std::optional<int64_t> {
    for (auto [made, number] : draft.made)
      if (made == value)
        return number;
    return std::nullopt;
  };
  if (std::optional<int64_t> made = findMade())
    return made;
  // Of those that hold it by then, the one that is alive for the longest.
  int64_t before = draft.step.before, source = -1;
  for (int64_t holder : holders[value]) {
    int64_t writer = state.writer[holder];
    bool isThere = problem.allocations[holder].isGiven ? writer == State::none
                                                       : writer >= 0 && writer < before;
    if (isThere && (source < 0 || profile.lives[holder].last > profile.lives[source].last))
      source = holder;
  }
  if (source < 0)
    return std::nullopt;
  int64_t last = profile.lives[source].last;
  if (problem.allocations[source].isDonated && last < before)
    return std::nullopt;
  if (!deep || last >= state.peak || !profile.lives[source].inArena)
    return source; // is kept
  bool isMade = false;
  for (int64_t recipe : recipes[value])
    if ((isMade = addRepetition(draft, /*isRecipe=*/true, recipe, deep)))
      break;
  if (!isMade && !addRepetition(draft, /*isRecipe=*/false, state.writer[source], deep))
    return std::nullopt;
  return findMade();
}

bool Chooser::addRepetition(Draft &draft, bool isRecipe, int64_t number, bool deep) const {
  if (number < 0 || draft.step.repetitions.size() >= maxRepetitions)
    return false;
  const Computation &own = (isRecipe ? problem.recipes : problem.commands)[number];
  if (!own.mayRepeat)
    return false;
  Repetition repetition = {isRecipe, number, {}, {}};
  for (int64_t read : own.reads) {
    std::optional<int64_t> source = findSource(draft, read, deep);
    if (!source)
      return false;
    repetition.reads.push_back(*source);
  }
  if (draft.step.repetitions.size() >= maxRepetitions)
    return false;
  for (int64_t write : own.writes) {
    draft.made.push_back({problem.allocations[write].value, draft.end});
    repetition.writes.push_back(draft.end++);
  }
  draft.step.repetitions.push_back(std::move(repetition));
  return true;
}

std::optional<Recomputation> Chooser::draft(int64_t allocation, int64_t before, bool isRecipe,
                                            int64_t number, bool deep) const {
  Draft draft;
  draft.step.before = before;
  draft.end = problem.allocations.size();
  if (!addRepetition(draft, isRecipe, number, deep))
    return std::nullopt;
  // Others that were made along need not be kept either.
  for (auto [value, made] : draft.made)
    for (int64_t holder : holders[value])
      if (problem.allocations[holder].mayCopy && state.writer[holder] >= 0 &&
          state.writer[holder] < state.peak && profile.lives[holder].last >= before &&
          getNextUse(holder, state.peak - 1) >= before)
        draft.step.replaced.push_back({holder, made});
  return std::move(draft.step);
}

/// Returns a bound on what a step saves at the peak for its work. It may save more if it drops the
/// commands that made the same values.
double Chooser::getBound(const Recomputation &step) const {
  double saved = 0, work = 0;
  for (auto [from, to] : step.replaced)
    saved += profile.lives[from].inArena ? double(problem.allocations[from].bytes) : 0;
  for (const Repetition &repetition : step.repetitions)
    work += state.getComputation(repetition).work;
  return saved / std::max(work, 1.0);
}

/// Returns the bytes that the step saves at the peak for its work; negative if it is no help.
double Chooser::getScore(const Recomputation &step) const {
  Trial trial(state, step);
  int64_t saved = trial.getSavedAtPeak();
  if (saved <= 0 || trial.dropsPeak())
    return -1;
  Peak peak = trial.getPeak();
  if (std::pair(peak.bytes, peak.count) >= std::pair(profile.peak, profile.atPeak))
    return -1;
  return double(saved) / std::max(trial.getWork(), 1.0);
}

std::optional<Recomputation> Chooser::choose() const {
  if (profile.peak == 0)
    return std::nullopt;
  std::vector<std::pair<double, Recomputation>> steps;
  for (int64_t allocation : byFirstUse) {
    const Buffered &buffer = problem.allocations[allocation];
    int64_t writer = state.writer[allocation];
    if (!buffer.mayCopy || !profile.lives[allocation].inArena || writer < 0 ||
        writer >= state.peak || !isIdle(allocation, state.peak))
      continue;
    int64_t before = getNextUse(allocation, state.peak);
    auto consider = [&](bool isRecipe, int64_t way) {
      for (bool deep : {false, true}) {
        std::optional<Recomputation> step = draft(allocation, before, isRecipe, way, deep);
        if (step && !(deep && step->repetitions.size() == 1)) // deep is the same
          steps.emplace_back(getBound(*step), std::move(*step));
      }
    };
    for (int64_t recipe : recipes[buffer.value])
      consider(true, recipe);
    consider(false, writer);
  }
  // The most promising ones, and more only where none of these helps.
  constexpr size_t atOnce = 64;
  std::vector<size_t> byBound(steps.size());
  std::iota(byBound.begin(), byBound.end(), 0);
  std::sort(byBound.begin(), byBound.end(), [&](size_t a, size_t b) {
    return std::pair(-steps[a].first, a) < std::pair(-steps[b].first, b);
  });
  std::optional<Recomputation> best;
  double most = 0;
  for (size_t number = 0; number < steps.size(); ++number) {
    if (number % atOnce == 0 && best)
      break;
    const Recomputation &step = steps[byBound[number]].second;
    if (double score = getScore(step); score > most) {
      most = score;
      best = step;
    }
  }
  return best;
}

std::optional<Recomputation> weir::chooseRecomputation(const RecomputeProblem &problem,
                                                       const LiveProfile &profile) {
  return Chooser(problem, profile).choose();
}

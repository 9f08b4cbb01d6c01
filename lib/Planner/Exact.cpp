//===- Exact.cpp - Branch and bound for a capacity ------------------------===//
//
// If a plan fits, then so does one in which every item lies on the ground or on another:
// floating items can sink. So the search builds plans upwards. `low` of an item is its lowest
// base on top of the placed items. A node decides one item: either it lies at `low`, so that
// all its conflicts placed later lie above it, or it is *raised*: an item placed later lies
// below it. It follows:
//
// - *Sections* are the largest sets of items that are live together. The items of a section are
// stacked, so the lowest of them lies no higher than the capacity minus all their bytes.
// - A raised item lies on one of the items that may end below it. If there is none, it could
// sink, so the node is *dominated* by another.
// - Remaining items are split into parts that share no wave; each is searched on its own.
// - The remaining items and their lowest bases determine the rest of the search. States that
// failed are stored and not entered again.
//
// The item that is decided first determines how early a plan is found. So many short searches run
// with growing limits, each with another rule of choice and order of items. Moffitt's
// MiniMalloc (ASPLOS 2023) describes sinking, sections, domination and decomposition.
//
//===----------------------------------------------------------------------===//

#include "Solvers.h"

#include <algorithm>
#include <limits>
#include <numeric>
#include <random>

using namespace weir;
using namespace weir::planner;

//===----------------------------------------------------------------------===//
// Tables of an instance
//===----------------------------------------------------------------------===//

namespace {
struct Section {
  uint32_t begin, end; ///< range of its items in `sectionItems`
  int64_t bytes;       ///< of all its items, rounded up to the alignment
};

/// Measures by which items are preferred.
struct Measures {
  double lifetime, area, contention, height;
};
} // namespace

struct Exact::Tables {
  Tables(const Instance &instance, const Conflicts &conflicts);
  void addSections();

  const Instance &instance;
  const Conflicts &conflicts;
  int64_t grain; ///< bases are multiples of this; so are all alignments
  std::vector<Section> sections;
  std::vector<std::pair<uint32_t, int64_t>> sectionItems;            ///< with their bytes there
  std::vector<std::vector<std::pair<uint32_t, int64_t>>> sectionsOf; ///< by item, with bytes
  std::vector<Measures> measures;
};

static constexpr size_t maxIncidences = 2'000'000;
static constexpr size_t maxItems = 4096;

/// Calls `visit` with each maximal set of parts that are live together.
template <typename Visit> static void forEachSection(const Instance &instance, Visit visit) {
  struct Event {
    int64_t wave;
    bool begins;
    uint32_t item;
    const Part *part;
  };
  std::vector<Event> events;
  for (size_t i = 0; i < instance.items.size(); ++i)
    for (const Part &part : instance.getParts(i)) {
      events.push_back({part.first, true, uint32_t(i), &part});
      events.push_back({part.last, false, uint32_t(i), &part});
    }
  std::sort(events.begin(), events.end(), [](const Event &a, const Event &b) {
    return std::tuple(a.wave, !a.begins, a.item, a.part) <
           std::tuple(b.wave, !b.begins, b.item, b.part);
  });
  std::vector<std::pair<uint32_t, const Part *>> live;
  bool grown = false;
  for (const Event &event : events) {
    if (event.begins) {
      live.push_back({event.item, event.part});
      grown = true;
      continue;
    }
    if (grown && !visit(live))
      return;
    grown = false;
    live.erase(std::find(live.begin(), live.end(), std::pair(event.item, event.part)));
  }
}

bool Exact::canSearch(const Instance &instance) {
  if (instance.items.size() > maxItems)
    return false;
  size_t incidences = 0;
  forEachSection(instance, [&](const auto &live) {
    incidences += live.size();
    return incidences <= maxIncidences;
  });
  return incidences <= maxIncidences;
}

Exact::Tables::Tables(const Instance &instance, const Conflicts &conflicts)
    : instance(instance), conflicts(conflicts), sectionsOf(instance.items.size()) {
  grain = 0;
  for (const Item &item : instance.items)
    grain = std::gcd(grain, item.alignment);
  if (!conflicts.isFlat())
    grain = 1;
  addSections();
  std::vector<int64_t> contentions = getContentions(instance);
  for (size_t i = 0; i < instance.items.size(); ++i) {
    Measures measure{0, 0, double(contentions[i]), double(instance.items[i].height)};
    for (const Part &part : instance.getParts(i)) {
      double waves = double(part.last) - double(part.first) + 1;
      measure.lifetime += waves;
      measure.area += waves * double(part.end - part.begin);
    }
    measures.push_back(measure);
  }
}

void Exact::Tables::addSections() {
  forEachSection(instance, [&](const auto &live) {
    Section section{uint32_t(sectionItems.size()), 0, 0};
    for (auto [item, part] : live) {
      int64_t bytes = alignUp(part->end - part->begin, grain);
      // A group has several parts in a wave.
      auto known = std::find_if(sectionItems.begin() + section.begin, sectionItems.end(),
                                [&](const auto &other) { return other.first == item; });
      if (known != sectionItems.end())
        known->second += bytes;
      else
        sectionItems.push_back({item, bytes});
      section.bytes += bytes;
    }
    section.end = uint32_t(sectionItems.size());
    for (uint32_t k = section.begin; k < section.end; ++k)
      sectionsOf[sectionItems[k].first].push_back(
          {uint32_t(sections.size()), sectionItems[k].second});
    sections.push_back(section);
    return true;
  });
}

//===----------------------------------------------------------------------===//
// States that lead nowhere
//===----------------------------------------------------------------------===//

namespace {
struct State {
  uint64_t a = 0, b = 0; ///< 128 bits, so that states do not collide
  bool operator==(const State &) const = default;
};

class DeadEnds {
public:
  bool contains(State state) const { return slots[find(state)] == state; }
  void add(State state) {
    if (count == maxStates)
      return;
    if (++count * 2 > slots.size()) {
      std::vector<State> old(slots.size() * 2);
      old.swap(slots);
      for (State other : old)
        if (other != State())
          slots[find(other)] = other;
    }
    slots[find(state)] = state;
  }

private:
  static constexpr size_t maxStates = size_t(1) << 21;

  size_t find(State state) const {
    size_t slot = state.a & (slots.size() - 1);
    while (slots[slot] != State() && slots[slot] != state)
      slot = (slot + 1) & (slots.size() - 1);
    return slot;
  }

  std::vector<State> slots = std::vector<State>(1 << 12);
  size_t count = 0;
};
} // namespace

static uint64_t mix(uint64_t x) {
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}

//===----------------------------------------------------------------------===//
// One search
//===----------------------------------------------------------------------===//

namespace {
/// The item to decide next: the lowest, or one in the section with the min of ...
enum class Rule { Lowest, Slack, Floor, Choices, Failures };

using Answer = Exact::Answer;
constexpr uint32_t none = std::numeric_limits<uint32_t>::max();

class Search {
public:
  Search(const Exact::Tables &tables, int64_t capacity, DeadEnds &deadEnds, Rule rule,
         std::vector<uint32_t> ranks, int64_t limit);

  Answer run();
  int64_t getSteps() const { return steps; }
  const Bases &getBases() const { return bases; }

private:
  enum class Change : uint8_t { Low, Raised, Placed };
  struct Undo {
    Change change;
    bool raised;
    uint32_t item;
    int64_t low;
  };

  Answer solveParts(std::span<const uint32_t> items);
  Answer solve(std::span<const uint32_t> items);
  bool raiseFloors(std::span<const uint32_t> items);
  /// Returns false if some section has no item that can be its lowest. Otherwise sets `pick` to
  /// the section preferred by the rule.
  bool checkSections(std::span<const uint32_t> items, const std::vector<uint32_t> &sections,
                     uint32_t &pick);
  uint32_t descend(uint32_t item) const;
  uint32_t getLowest(std::span<const uint32_t> items) const;
  bool place(uint32_t item);
  void undo(size_t mark);
  State getState(std::span<const uint32_t> items) const;
  bool isBefore(uint32_t a, uint32_t b) const {
    return b == none || std::pair(floors[a], ranks[a]) < std::pair(floors[b], ranks[b]);
  }

  const Exact::Tables &tables;
  const Instance &instance;
  const Conflicts &conflicts;
  const int64_t capacity;
  const int64_t alignedCapacity;
  DeadEnds &deadEnds;
  const Rule rule;
  const std::vector<uint32_t> ranks;
  const int64_t limit;
  int64_t steps = 0;

  Bases bases;
  std::vector<int64_t> lows;   ///< the lowest base above the placed items
  std::vector<int64_t> floors; ///< as `lows`, raised items included
  std::vector<char> placed, raised;
  std::vector<int64_t> left;     ///< bytes yet to be placed, by section
  std::vector<int64_t> failures; ///< by section
  std::vector<Undo> trail;
  std::vector<uint32_t> marks; ///< by section: equals `mark` if seen at this node
  uint32_t mark = 0;
};
} // namespace

Search::Search(const Exact::Tables &tables, int64_t capacity, DeadEnds &deadEnds, Rule rule,
               std::vector<uint32_t> ranks, int64_t limit)
    : tables(tables), instance(tables.instance), conflicts(tables.conflicts), capacity(capacity),
      alignedCapacity(alignUp(capacity, tables.grain)), deadEnds(deadEnds), rule(rule),
      ranks(std::move(ranks)), limit(limit) {
  size_t count = instance.items.size();
  bases.assign(count, 0);
  lows.assign(count, 0);
  placed.assign(count, 0);
  raised.assign(count, 0);
  for (size_t i = 0; i < count; ++i)
    lows[i] = instance.items[i].fixed.value_or(0);
  floors = lows;
  for (const Section &section : tables.sections)
    left.push_back(section.bytes);
  failures.assign(left.size(), 1);
  marks.assign(left.size(), 0);
}

Answer Search::run() {
  std::vector<uint32_t> items;
  for (size_t i = 0; i < instance.items.size(); ++i) {
    if (lows[i] + instance.items[i].height > capacity)
      return Answer::None;
    items.push_back(uint32_t(i));
  }
  std::sort(items.begin(), items.end(), [&](uint32_t a, uint32_t b) {
    return std::pair(instance.items[a].first, a) < std::pair(instance.items[b].first, b);
  });
  return solveParts(items);
}

/// Solves the remaining `items`, which are in order of their first waves.
Answer Search::solveParts(std::span<const uint32_t> items) {
  std::vector<uint32_t> open;
  std::vector<std::pair<size_t, size_t>> parts; // of `open`: size and begin
  int64_t last = 0;
  for (uint32_t i : items) {
    if (placed[i])
      continue;
    const Item &item = instance.items[i];
    if (open.empty() || item.first > last) {
      parts.push_back({0, open.size()});
      last = item.last;
    }
    last = std::max(last, item.last);
    open.push_back(i);
    ++parts.back().first;
  }
  std::sort(parts.begin(), parts.end());
  for (auto [size, begin] : parts)
    if (Answer answer = solve(std::span(open).subspan(begin, size)); answer != Answer::Found)
      return answer;
  return Answer::Found;
}

State Search::getState(std::span<const uint32_t> items) const {
  State state{1, 1};
  for (uint32_t i : items) {
    uint64_t key = mix(mix(i + 1) + uint64_t(lows[i]) * 2 + uint64_t(raised[i]));
    state.a += key;
    state.b += mix(key + 0x9e3779b97f4a7c15u);
  }
  return state;
}

/// Raises floors: a raised item lies on an item that may end below it. Returns false if some
/// item has no place.
bool Search::raiseFloors(std::span<const uint32_t> items) {
  for (uint32_t i : items)
    floors[i] = lows[i];
  for (uint32_t i : items) {
    if (!raised[i])
      continue;
    const Item &item = instance.items[i];
    int64_t min = std::numeric_limits<int64_t>::max();
    std::span<const uint32_t> others = conflicts.of(i);
    for (size_t k = 0; k < others.size(); ++k)
      if (uint32_t other = others[k];
          !placed[other] && lows[other] < lows[i] + conflicts.above(i, k))
        min = std::min(min, floors[other] + conflicts.below(i, k));
    if (min > capacity)
      return false;
    floors[i] = std::max(alignUp(min, item.alignment), lows[i] + 1);
    if (floors[i] + item.height > capacity)
      return false;
  }
  return true;
}

bool Search::checkSections(std::span<const uint32_t> items, const std::vector<uint32_t> &sections,
                           uint32_t &pick) {
  uint32_t chosen = none;
  std::pair<double, double> bestScore;
  for (uint32_t s : sections) {
    const Section &section = tables.sections[s];
    int64_t highest = alignedCapacity - left[s], lowest = std::numeric_limits<int64_t>::max();
    uint32_t open = 0, choices = 0;
    for (uint32_t k = section.begin; k < section.end; ++k) {
      uint32_t i = tables.sectionItems[k].first;
      if (placed[i])
        continue;
      ++open;
      choices += floors[i] <= highest;
      lowest = std::min(lowest, floors[i]);
    }
    if (open == 0)
      continue;
    if (choices == 0) {
      ++failures[s];
      return false;
    }
    if (open == 1)
      continue;
    std::pair<double, double> score;
    switch (rule) {
    case Rule::Lowest:
      continue;
    case Rule::Slack:
      score = {double(highest - lowest), choices};
      break;
    case Rule::Floor:
      score = {double(lowest), choices};
      break;
    case Rule::Choices:
      score = {choices, double(highest - lowest)};
      break;
    case Rule::Failures:
      score = {double(choices) / double(failures[s]), 0};
      break;
    }
    if (chosen == none || score < bestScore) {
      chosen = s;
      bestScore = score;
    }
  }
  if (chosen == none) {
    pick = getLowest(items);
    return true;
  }
  const Section &section = tables.sections[chosen];
  for (uint32_t k = section.begin; k < section.end; ++k) {
    uint32_t i = tables.sectionItems[k].first;
    if (!placed[i] && floors[i] <= alignedCapacity - left[chosen] && isBefore(i, pick))
      pick = i;
  }
  pick = descend(pick);
  if (pick == none)
    pick = getLowest(items);
  return true;
}

/// Follows the items that could lie below `item` down to one that has none; returns that, or
/// none if the way is cyclic.
uint32_t Search::descend(uint32_t item) const {
  for (int step = 0; step < 50; ++step) {
    uint32_t below = none;
    std::span<const uint32_t> others = conflicts.of(item);
    for (size_t k = 0; k < others.size(); ++k) {
      uint32_t other = others[k];
      bool canSupport = raised[item] ? lows[other] < lows[item] + conflicts.above(item, k)
                                     : floors[other] + conflicts.below(item, k) <= lows[item];
      if (!placed[other] && canSupport && isBefore(other, below))
        below = other;
    }
    if (below == none)
      return item;
    item = below;
  }
  return none;
}

uint32_t Search::getLowest(std::span<const uint32_t> items) const {
  uint32_t lowest = none;
  for (uint32_t i : items)
    if (!raised[i] && isBefore(i, lowest))
      lowest = i;
  return lowest;
}

bool Search::place(uint32_t i) {
  placed[i] = 1;
  bases[i] = lows[i];
  trail.push_back({Change::Placed, false, i, 0});
  for (auto [section, bytes] : tables.sectionsOf[i])
    left[section] -= bytes;
  bool fits = true;
  std::span<const uint32_t> others = conflicts.of(i);
  for (size_t k = 0; k < others.size(); ++k) {
    uint32_t other = others[k];
    if (placed[other])
      continue;
    const Item &item = instance.items[other];
    int64_t low = alignUp(std::max<int64_t>(bases[i] + conflicts.above(i, k), 0), item.alignment);
    if (low <= lows[other])
      continue;
    trail.push_back({Change::Low, bool(raised[other]), other, lows[other]});
    lows[other] = low;
    raised[other] = 0;
    fits &= low + item.height <= capacity && !item.fixed;
  }
  return fits;
}

void Search::undo(size_t to) {
  for (; trail.size() > to; trail.pop_back()) {
    const Undo &last = trail.back();
    switch (last.change) {
    case Change::Low:
      lows[last.item] = last.low;
      raised[last.item] = last.raised;
      break;
    case Change::Raised:
      raised[last.item] = 0;
      break;
    case Change::Placed:
      placed[last.item] = 0;
      for (auto [section, bytes] : tables.sectionsOf[last.item])
        left[section] += bytes;
      break;
    }
  }
}

Answer Search::solve(std::span<const uint32_t> items) {
  if (items.size() == 1) {
    if (raised[items[0]])
      return Answer::None;
    place(items[0]);
    return Answer::Found;
  }
  State state = getState(items);
  if (deadEnds.contains(state))
    return Answer::None;
  std::vector<uint32_t> sections;
  ++mark;
  size_t incidences = 0;
  for (uint32_t i : items) {
    incidences += tables.sectionsOf[i].size();
    for (auto [section, bytes] : tables.sectionsOf[i])
      if (marks[section] != mark) {
        marks[section] = mark;
        sections.push_back(section);
      }
  }
  const size_t start = trail.size();
  while (true) {
    uint32_t pick = none;
    if (!raiseFloors(items) || !checkSections(items, sections, pick) || pick == none)
      break;
    if (steps >= limit)
      return Answer::Unknown;
    steps += 1 + int64_t(incidences / 32768); // large instances cost more per node
    size_t before = trail.size();
    if (place(pick))
      if (Answer answer = solveParts(items); answer != Answer::None)
        return answer;
    undo(before);
    if (instance.items[pick].fixed)
      break;
    raised[pick] = 1;
    trail.push_back({Change::Raised, false, pick, 0});
  }
  undo(start);
  deadEnds.add(state);
  return Answer::None;
}

//===----------------------------------------------------------------------===//
// Many searches
//===----------------------------------------------------------------------===//

Exact::Exact(const Instance &instance, const Conflicts &conflicts)
    : tables(std::make_unique<Tables>(instance, conflicts)) {}
Exact::~Exact() = default;

namespace {
using Measure = double Measures::*;
struct Preference {
  Measure first, second;
};
} // namespace

/// Orders items by decreasing measures, each perturbed by up to the fraction `noise`.
static std::vector<uint32_t> rank(const std::vector<Measures> &measures, Preference preference,
                                  double noise, std::mt19937_64 &random) {
  std::vector<std::pair<double, double>> keys;
  for (const Measures &measure : measures) {
    double factor = 1 + noise * (double(random() >> 11) / double(1ull << 53) - 0.5);
    keys.push_back({measure.*preference.first * factor, measure.*preference.second * factor});
  }
  std::vector<uint32_t> order(measures.size()), ranks(measures.size());
  std::iota(order.begin(), order.end(), 0);
  std::sort(order.begin(), order.end(),
            [&](uint32_t a, uint32_t b) { return keys[a] != keys[b] ? keys[a] > keys[b] : a < b; });
  for (size_t k = 0; k < order.size(); ++k)
    ranks[order[k]] = uint32_t(k);
  return ranks;
}

Exact::Result Exact::search(int64_t capacity, int64_t &steps) {
  static constexpr Rule rules[] = {Rule::Slack, Rule::Choices, Rule::Floor, Rule::Lowest,
                                   Rule::Failures};
  static constexpr Preference preferences[] = {
      {&Measures::lifetime, &Measures::area},   {&Measures::contention, &Measures::lifetime},
      {&Measures::contention, &Measures::area}, {&Measures::area, &Measures::lifetime},
      {&Measures::height, &Measures::lifetime}, {&Measures::lifetime, &Measures::height}};
  DeadEnds deadEnds;
  std::mt19937_64 random; // fixed seed: plans are reproducible
  double limit = 2000;
  for (double noise = 0; steps > 0; noise = 0.2, limit *= 1.5)
    for (Preference preference : preferences) {
      std::vector<uint32_t> ranks = rank(tables->measures, preference, noise, random);
      for (Rule rule : rules) {
        Search search(*tables, capacity, deadEnds, rule, ranks, std::min(steps, int64_t(limit)));
        Answer answer = search.run();
        steps -= search.getSteps();
        if (answer == Answer::Found)
          return {answer, search.getBases()};
        // Interlocking items have plans that no upward order builds, so failure proves nothing.
        if (answer == Answer::None)
          return {tables->conflicts.isFlat() ? answer : Answer::Unknown, {}};
        if (steps <= 0)
          return {};
      }
    }
  return {};
}

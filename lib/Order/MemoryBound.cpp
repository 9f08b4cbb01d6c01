//===- MemoryBound.cpp - Bytes that no order can go below -----------------===//

#include "weir/Order/MemoryBound.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

using namespace weir;

namespace {
/// A set of commands.
class CommandSet {
public:
  explicit CommandSet(size_t commands) : words((commands + 63) / 64) {}

  void add(int64_t command) { words[command / 64] |= uint64_t(1) << command % 64; }
  bool has(int64_t command) const { return words[command / 64] >> command % 64 & 1; }
  void add(const CommandSet &other) {
    for (size_t i = 0; i < words.size(); ++i)
      words[i] |= other.words[i];
  }
  void keep(const CommandSet &other) {
    for (size_t i = 0; i < words.size(); ++i)
      words[i] &= other.words[i];
  }

  template <typename Visit> void forEach(Visit visit) const {
    for (size_t i = 0; i < words.size(); ++i)
      for (uint64_t left = words[i]; left != 0; left &= left - 1)
        visit(int64_t(64 * i) + std::countr_zero(left));
  }

  bool operator==(const CommandSet &) const = default;

private:
  std::vector<uint64_t> words;
};

/// An allocation that one command makes, and that needs bytes of the arena in any plan.
struct Value {
  int64_t writer = -1, bytes = 0;
  double price = std::numeric_limits<double>::infinity(); ///< of a byte that is made again
  std::vector<int64_t> readers;
};
} // namespace

/// Returns the allocations that have no bytes of the arena in some plan, since they may lie in
/// those of a result.
static std::vector<bool> findElsewhere(const RecomputeProblem &problem,
                                       const std::vector<bool> &takesArgument) {
  std::vector<std::pair<int64_t, int64_t>> pairs;
  for (const Computation &command : problem.commands)
    pairs.insert(pairs.end(), command.inPlace.begin(), command.inPlace.end());
  std::vector<bool> elsewhere(problem.allocations.size());
  for (size_t number = 0; number < elsewhere.size(); ++number)
    elsewhere[number] = problem.allocations[number].isResult && !takesArgument[number];
  // A target is made behind its source, so mostly one walk from the end finds all.
  for (bool isChanged = true; isChanged;) {
    isChanged = false;
    for (auto pair = pairs.rbegin(); pair != pairs.rend(); ++pair)
      if (elsewhere[pair->second] && !elsewhere[pair->first])
        isChanged = elsewhere[pair->first] = true;
  }
  return elsewhere;
}

static std::vector<Value> listValues(const RecomputeProblem &problem,
                                     const std::vector<bool> &takesArgument) {
  std::vector<bool> elsewhere = findElsewhere(problem, takesArgument);
  std::vector<Value> values(problem.allocations.size());
  std::vector<int64_t> writers(values.size());
  for (size_t number = 0; number < problem.commands.size(); ++number) {
    for (int64_t read : problem.commands[number].reads)
      values[read].readers.push_back(number);
    for (int64_t write : problem.commands[number].writes)
      values[write].writer = writers[write]++ == 0 ? int64_t(number) : -1;
  }
  for (size_t number = 0; number < values.size(); ++number)
    if (const Buffered &buffer = problem.allocations[number];
        values[number].writer >= 0 && !buffer.isResult && !elsewhere[number])
      values[number].bytes = buffer.bytes;
  // The work of a command is spread over the bytes that it makes.
  for (const auto *list : {&problem.commands, &problem.recipes})
    for (const Computation &command : *list) {
      int64_t bytes = 0;
      for (int64_t write : command.writes)
        bytes += values[write].bytes;
      if (!command.mayRepeat || bytes == 0)
        continue;
      for (int64_t write : command.writes)
        if (problem.allocations[write].mayCopy)
          values[write].price = std::min(values[write].price, command.work / double(bytes));
    }
  return values;
}

/// Returns for each command those that run before it does for the first time, in every order.
static std::vector<CommandSet> findNeeded(const RecomputeProblem &problem,
                                          const std::vector<Value> &values) {
  size_t count = problem.commands.size();
  std::vector<std::vector<const Computation *>> recipes(values.size()); // by allocation
  for (const Computation &recipe : problem.recipes)
    recipes[recipe.writes.front()].push_back(&recipe);
  std::vector<CommandSet> needed(count, CommandSet(count)),
      ofValues(values.size(), CommandSet(count));
  auto getNeeded = [&](const Computation &command) {
    CommandSet all(count);
    for (int64_t read : command.reads)
      all.add(ofValues[read]);
    return all;
  };
  for (size_t number = 0; number < count; ++number) {
    needed[number] = getNeeded(problem.commands[number]);
    const std::vector<int64_t> &writes = problem.commands[number].writes;
    for (int64_t write : writes)
      if (values[write].writer == int64_t(number)) {
        ofValues[write] = needed[number];
        ofValues[write].add(number);
      }
    // A recipe may be the first to make a value, and may read what the same command writes.
    for (bool isChanged = true; isChanged;) {
      isChanged = false;
      for (int64_t write : writes)
        for (const Computation *recipe : recipes[write]) {
          CommandSet before = ofValues[write];
          ofValues[write].keep(getNeeded(*recipe));
          isChanged |= !(ofValues[write] == before);
        }
    }
  }
  return needed;
}

MemoryBound::MemoryBound(const RecomputeProblem &problem, const std::vector<bool> &takesArgument) {
  size_t count = problem.commands.size();
  std::vector<Value> values = listValues(problem, takesArgument);
  std::vector<CommandSet> needed = findNeeded(problem, values), needing(count, CommandSet(count));
  // Recipes may make all that a command makes, if nothing else needs it.
  CommandSet certain(count);
  for (size_t number = 0; number < count; ++number)
    if (const Computation &command = problem.commands[number];
        !command.mayRepeat ||
        std::any_of(command.writes.begin(), command.writes.end(),
                    [&](int64_t allocation) { return !problem.allocations[allocation].mayCopy; })) {
      certain.add(needed[number]);
      certain.add(number);
    }
  for (const Computation &command : problem.commands)
    spareWork += command.work;
  certain.forEach([&](int64_t number) { spareWork -= problem.commands[number].work; });
  for (size_t number = 0; number < count; ++number)
    needed[number].forEach([&](int64_t other) { needing[other].add(number); });
  std::vector<std::vector<int64_t>> kept(count); // values by command
  for (size_t number = 0; number < values.size(); ++number) {
    const Value &value = values[number];
    if (value.bytes == 0)
      continue;
    CommandSet between(count); // commands that a reader needs
    for (int64_t reader : value.readers)
      if (certain.has(reader))
        between.add(needed[reader]);
    between.keep(needing[value.writer]);
    between.forEach([&](int64_t command) { kept[command].push_back(number); });
  }
  for (size_t number = 0; number < count; ++number) {
    if (!certain.has(number))
      continue;
    const Computation &command = problem.commands[number];
    Need need;
    std::vector<int64_t> own = command.reads; // and what it writes
    own.insert(own.end(), command.writes.begin(), command.writes.end());
    std::sort(own.begin(), own.end());
    own.erase(std::unique(own.begin(), own.end()), own.end());
    for (int64_t allocation : own) {
      bool mayTake = std::any_of(command.inPlace.begin(), command.inPlace.end(),
                                 [&](auto pair) { return pair.second == allocation; });
      need.bytes += mayTake ? 0 : values[allocation].bytes;
    }
    std::vector<std::pair<double, int64_t>> byPrice; // and bytes
    for (int64_t value : kept[number])
      if (!std::binary_search(own.begin(), own.end(), value)) {
        need.bytes += values[value].bytes;
        if (std::isfinite(values[value].price))
          byPrice.emplace_back(values[value].price, values[value].bytes);
      }
    std::sort(byPrice.begin(), byPrice.end());
    need.sums.push_back({});
    for (auto [price, bytes] : byPrice)
      need.sums.push_back(
          {need.sums.back().work + price * double(bytes), need.sums.back().bytes + bytes});
    needs.push_back(std::move(need));
  }
}

int64_t MemoryBound::get(double moreWork) const {
  moreWork += spareWork;
  int64_t most = 0;
  for (const Need &need : needs) {
    if (need.bytes <= most)
      continue;
    auto next = std::upper_bound(need.sums.begin() + 1, need.sums.end(), moreWork,
                                 [](double work, const Sum &sum) { return work < sum.work; });
    double spared = double(next[-1].bytes);
    if (next != need.sums.end())
      spared += (moreWork - next[-1].work) / (next->work - next[-1].work) *
                double(next->bytes - next[-1].bytes);
    most = std::max(most, need.bytes - int64_t(std::ceil(spared)));
  }
  return most;
}

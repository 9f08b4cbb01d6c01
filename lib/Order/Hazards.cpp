//===- Hazards.cpp - Which dispatches must not overlap --------------------===//
//
// One forward walk keeps, for each allocation, its bytes cut into segments,
// each with the last writer and the readers since. A dispatch asks the segments
// it touches, then becomes a writer or reader of them.
//
// An access that leaves out bytes of its range is kept beside the segments: it
// hides nobody who used the bytes between its own.
//
//===----------------------------------------------------------------------===//

#include "weir/Order/Hazards.h"

#include <algorithm>
#include <limits>
#include <map>
#include <tuple>

using namespace weir;

namespace {
struct User {
  int64_t dispatch = -1, operand = 0;
};

/// The users of bytes: the last writer, and those who read them since.
struct Users {
  User writer;                  ///< dispatch -1: none
  ShortVector<User, 2> readers; ///< in order
};

struct Segment : Users {
  int64_t end = 0;
};

struct StridedUsers : Users {
  int64_t end = 0;
  int64_t strided = -1;
};

/// The bytes of one allocation that were touched so far.
class History {
public:
  template <typename Function> void forEach(ByteRange range, Function function) const {
    auto it = segments.upper_bound(range.begin);
    if (it != segments.begin() && std::prev(it)->second.end > range.begin)
      --it;
    for (; it != segments.end() && it->first < range.end; ++it)
      function(ByteRange{it->first, it->second.end}, it->second);
  }

  template <typename Function> void forEachStrided(ByteRange range, Function function) const {
    if (strided.empty())
      return;
    for (auto it = strided.lower_bound({range.begin - std::min(range.begin, longest), 0});
         it != strided.end() && it->first.first < range.end; ++it)
      if (it->second.end > range.begin)
        function(ByteRange{it->first.first, it->second.end}, it->second);
  }

  /// The users of exactly these bytes; null when there are none.
  const StridedUsers *find(const OperandAccess &access) const {
    auto it = strided.find({access.range.begin, access.strided});
    return it == strided.end() ? nullptr : &it->second;
  }

  void writeStrided(const OperandAccess &access, User user) {
    StridedUsers &users = getStrided(access);
    users.writer = user;
    users.readers.clear();
  }

  void readStrided(const OperandAccess &access, User user) {
    getStrided(access).readers.push_back(user);
  }

  void write(ByteRange range, User user) {
    cut(range.begin);
    cut(range.end);
    segments.erase(segments.lower_bound(range.begin), segments.lower_bound(range.end));
    segments[range.begin] = {{user, {}}, range.end};
    for (auto it = strided.lower_bound({range.begin, 0});
         it != strided.end() && it->first.first < range.end;)
      it = it->second.end <= range.end ? strided.erase(it) : std::next(it);
  }

  void read(ByteRange range, User user) {
    cut(range.begin);
    cut(range.end);
    int64_t at = range.begin;
    for (auto it = segments.lower_bound(at); at < range.end; ++it) {
      if (it == segments.end() || it->first > at) { // bytes nobody touched yet
        int64_t next = it == segments.end() ? range.end : std::min(it->first, range.end);
        it = segments.insert(it, {at, Segment{{}, next}});
      }
      it->second.readers.push_back(user);
      at = it->second.end;
    }
  }

private:
  void cut(int64_t at) {
    auto it = segments.lower_bound(at);
    if (it == segments.begin())
      return;
    Segment &segment = std::prev(it)->second;
    if (segment.end <= at)
      return;
    Segment rest = segment;
    segment.end = at;
    segments.emplace_hint(it, at, std::move(rest));
  }

  StridedUsers &getStrided(const OperandAccess &access) {
    StridedUsers &users = strided[{access.range.begin, access.strided}];
    users.end = access.range.end;
    users.strided = access.strided;
    longest = std::max(longest, access.range.end - access.range.begin);
    return users;
  }

  std::map<int64_t, Segment> segments; ///< by first byte
  /// By first byte and which bytes.
  std::map<std::pair<int64_t, int64_t>, StridedUsers> strided;
  int64_t longest = 0; ///< range of the strided ones
};
} // namespace

/// Whether bytes of two ranges, all of them or those of a strided view, may meet.
static bool mayMeet(const CommandAccesses &list, int64_t strided, ByteRange range,
                    int64_t otherStrided, ByteRange other) {
  if (strided == otherStrided || !range.overlaps(other))
    return range.overlaps(other);
  auto getBytes = [&](int64_t strided, ByteRange range) {
    return strided < 0 ? StridedBytes{range.begin, range.end - range.begin, {}}
                       : list.strided[strided];
  };
  return compare(getBytes(strided, range), getBytes(otherStrided, other)) != Sharing::Disjoint;
}

bool CommandAccesses::mayOverlap(const OperandAccess &first, const OperandAccess &second) const {
  if (first.allocation != second.allocation) {
    const std::vector<int64_t> &others = mayShare[first.allocation];
    return std::find(others.begin(), others.end(), second.allocation) != others.end();
  }
  return mayMeet(*this, first.strided, first.range, second.strided, second.range);
}

static bool comesBefore(const Hazard &a, const Hazard &b) {
  return std::tie(a.to, a.kind, a.from, a.fromOperand, a.toOperand) <
         std::tie(b.to, b.kind, b.from, b.fromOperand, b.toOperand);
}

static void addHazards(const CommandAccesses &list, const History &history,
                       const OperandAccess &access, int64_t to, std::vector<Hazard> &hazards) {
  // Those who used the bytes before dispatch `since` wrote them are hidden.
  auto addAll = [&](const Users &users, int64_t since) {
    auto add = [&](HazardKind kind, User from) {
      hazards.push_back({kind, from.dispatch, from.operand, to, access.operand});
    };
    if (users.writer.dispatch >= std::max<int64_t>(since, 0)) {
      if (access.reads)
        add(HazardKind::RAW, users.writer);
      if (access.writes)
        add(HazardKind::WAW, users.writer);
    }
    if (access.writes)
      for (size_t left = users.readers.size();
           left > 0 && users.readers[left - 1].dispatch >= since; --left)
        add(HazardKind::WAR, users.readers[left - 1]);
  };
  auto touches = [&](ByteRange range, int64_t strided) {
    return mayMeet(list, access.strided, access.range, strided, range);
  };
  int64_t since = -1;
  if (access.strided >= 0)
    if (const StridedUsers *same = history.find(access))
      since = same->writer.dispatch;
  history.forEach(access.range, [&](ByteRange range, const Segment &segment) {
    if (touches(range, -1))
      addAll(segment, since);
  });
  history.forEachStrided(access.range, [&](ByteRange range, const StridedUsers &users) {
    if (!touches(range, users.strided))
      return;
    // Where the two may meet, all bytes were written since then.
    ByteRange both = {std::max(range.begin, access.range.begin),
                      std::min(range.end, access.range.end)};
    int64_t covered = both.begin, rewritten = to;
    history.forEach(both, [&](ByteRange piece, const Segment &segment) {
      if (piece.begin <= covered)
        covered = piece.end;
      rewritten = std::min(rewritten, segment.writer.dispatch);
    });
    addAll(users, std::max(since, covered < both.end ? -1 : rewritten));
  });
}

std::vector<Hazard> weir::findHazards(const CommandAccesses &accesses) {
  constexpr ByteRange everywhere = {0, std::numeric_limits<int64_t>::max()};
  std::vector<History> histories(accesses.mayShare.size());
  std::vector<Hazard> hazards;
  for (int64_t to = 0; to < int64_t(accesses.dispatches.size()); ++to) {
    const DispatchAccesses &dispatch = accesses.dispatches[to];
    size_t first = hazards.size();
    for (const OperandAccess &access : dispatch)
      addHazards(accesses, histories[access.allocation], access, to, hazards);
    std::sort(hazards.begin() + first, hazards.end(), comesBefore);
    hazards.erase(std::unique(hazards.begin() + first, hazards.end()), hazards.end());

    // Reads first: a kernel that reads what it writes is remembered as the
    // writer.
    for (bool write : {false, true})
      for (const OperandAccess &access : dispatch) {
        if (write ? !access.writes : !access.reads)
          continue;
        User user = {to, access.operand};
        auto record = [&](History &history, ByteRange range) {
          write ? history.write(range, user) : history.read(range, user);
        };
        History &own = histories[access.allocation];
        if (access.strided < 0)
          record(own, access.range);
        else
          write ? own.writeStrided(access, user) : own.readStrided(access, user);
        for (int64_t other : accesses.mayShare[access.allocation])
          record(histories[other], everywhere);
      }
  }
  return hazards;
}

void weir::moveAccesses(CommandAccesses &accesses, const std::vector<Spot> &spots) {
  std::map<std::pair<int64_t, int64_t>, int64_t> numbers; // of strided bytes and their shift
  for (DispatchAccesses &dispatch : accesses.dispatches)
    for (OperandAccess &access : dispatch) {
      auto [allocation, shift] = spots[access.allocation];
      access.allocation = allocation;
      if (shift == 0 || access.range.end == std::numeric_limits<int64_t>::max())
        continue; // not known: anywhere in the allocation
      access.range.begin += shift;
      access.range.end += shift;
      if (access.strided < 0)
        continue;
      auto [moved, isNew] = numbers.try_emplace({access.strided, shift}, accesses.strided.size());
      if (isNew) {
        accesses.strided.push_back(accesses.strided[access.strided]);
        accesses.strided.back().begin += shift;
      }
      access.strided = moved->second;
    }
}

CommandAccesses weir::permute(const CommandAccesses &accesses, const std::vector<int64_t> &order) {
  CommandAccesses result;
  result.mayShare = accesses.mayShare;
  result.strided = accesses.strided;
  for (int64_t number : order)
    result.dispatches.push_back(accesses.dispatches[number]);
  return result;
}

std::vector<int64_t> weir::getWaves(int64_t dispatches, const std::vector<Hazard> &hazards) {
  std::vector<int64_t> waves(dispatches);
  int64_t wave = 0;
  auto hazard = hazards.begin();
  for (int64_t dispatch = 0; dispatch < dispatches; ++dispatch) {
    bool next = false;
    for (; hazard != hazards.end() && hazard->to == dispatch; ++hazard)
      next |= waves[hazard->from] == wave;
    waves[dispatch] = wave += next;
  }
  return waves;
}

namespace {
/// Walks the dispatches and keeps, for each queue, how many of every queue's
/// dispatches have ended before its next one.
class OrderPlanner {
public:
  OrderPlanner(const std::vector<Hazard> &hazards, const std::vector<int64_t> &queues)
      : hazards(hazards), queues(queues) {
    for (int64_t queue : queues)
      count = std::max(count, size_t(queue) + 1);
  }

  PlannedOrder plan();

private:
  using Iterator = std::vector<Hazard>::const_iterator;

  int64_t &known(int64_t queue, int64_t of) { return clocks[now[queue] + of]; }
  bool isOpen(const Hazard &hazard) {
    return known(queues[hazard.to], queues[hazard.from]) <= numbers[hazard.from];
  }
  /// Gives the queue a clock of its own, which dispatches so far don't share.
  void change(int64_t queue) {
    size_t clock = clocks.size();
    clocks.resize(clock + count);
    std::copy_n(clocks.begin() + now[queue], count, clocks.begin() + clock);
    now[queue] = clock;
  }
  void addWaits(int64_t to, Iterator begin, Iterator end);
  size_t getSignal(int64_t after);
  void serve();

  const std::vector<Hazard> &hazards;
  const std::vector<int64_t> &queues;
  size_t count = 1;                               ///< of queues
  std::vector<int64_t> clocks;                    ///< `count` entries each
  std::vector<size_t> now;                        ///< by queue: its clock
  std::vector<size_t> atStart;                    ///< by dispatch: what it begins with
  std::vector<int64_t> numbers;                   ///< of each dispatch among its queue's
  std::vector<std::map<int64_t, size_t>> signals; ///< by queue: after which, index
  std::vector<Iterator> forcing;                  ///< by barrier
  PlannedOrder order;
};
} // namespace

size_t OrderPlanner::getSignal(int64_t after) {
  auto &known = signals[queues[after]];
  auto found = known.lower_bound(after);
  if (found != known.end())
    return found->second;
  order.signals.push_back({after, {}});
  return known[after] = order.signals.size() - 1;
}

void OrderPlanner::addWaits(int64_t to, Iterator begin, Iterator end) {
  int64_t queue = queues[to];
  std::vector<int64_t> others;
  for (Iterator hazard = begin; hazard != end; ++hazard)
    if (queues[hazard->from] != queue && isOpen(*hazard))
      others.push_back(hazard->from);
  // The last first: what it waited for itself may be all that is needed.
  std::sort(others.begin(), others.end(), std::greater<>());
  for (int64_t from : others) {
    if (known(queue, queues[from]) > numbers[from])
      continue;
    size_t index = getSignal(from);
    int64_t after = order.signals[index].after, other = queues[after];
    change(queue);
    for (size_t i = 0; i < count; ++i)
      known(queue, i) = std::max(known(queue, i), clocks[atStart[after] + i]);
    known(queue, other) = std::max(known(queue, other), numbers[after] + 1);
    order.waits.push_back({to, int64_t(index)});
  }
}

void OrderPlanner::serve() {
  // In each queue, by twice the number of the dispatch that stands before it,
  // signals before barriers.
  std::vector<std::map<int64_t, std::vector<Hazard> *>> servers(count);
  for (PlannedSignal &signal : order.signals)
    servers[queues[signal.after]][2 * numbers[signal.after]] = &signal.hazards;
  for (PlannedBarrier &barrier : order.barriers)
    servers[queues[barrier.before]][2 * numbers[barrier.before] - 1] = &barrier.hazards;
  auto forced = forcing.begin();
  for (Iterator hazard = hazards.begin(); hazard != hazards.end(); ++hazard)
    if (forced != forcing.end() && hazard == *forced)
      ++forced; // is its barrier's already
    else
      servers[queues[hazard->from]]
          .lower_bound(2 * numbers[hazard->from])
          ->second->push_back(*hazard);
}

PlannedOrder OrderPlanner::plan() {
  clocks.resize(count);
  now.resize(count);
  signals.resize(count);
  std::vector<int64_t> recorded(count);
  Iterator begin = hazards.begin();
  for (int64_t to = 0; to < int64_t(queues.size()); ++to) {
    int64_t queue = queues[to];
    Iterator end = std::find_if(begin, hazards.end(), [&](const Hazard &h) { return h.to != to; });
    numbers.push_back(recorded[queue]);
    addWaits(to, begin, end);
    Iterator forced = std::find_if(begin, end, [&](const Hazard &h) { return isOpen(h); });
    if (forced != end) {
      order.barriers.push_back({to, {*forced}});
      forcing.push_back(forced);
      change(queue);
      known(queue, queue) = recorded[queue];
    }
    atStart.push_back(now[queue]);
    ++recorded[queue];
    begin = end;
  }
  serve();
  return std::move(order);
}

PlannedOrder weir::planOrder(const std::vector<Hazard> &hazards,
                             const std::vector<int64_t> &queues) {
  return OrderPlanner(hazards, queues).plan();
}

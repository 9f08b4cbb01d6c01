//===- Explanation.cpp - Explains a plan ----------------------------------===//

#include "Explanation.h"
#include "Profile.h"

#include <algorithm>
#include <bit>
#include <map>
#include <tuple>

using namespace weir;
using namespace weir::tool;

std::string tool::getPrintable(std::string text) {
  for (char &c : text)
    if (static_cast<unsigned char>(c) < ' ' || c == '\x7f')
      c = ' ';
  return text;
}

std::string PlanStory::getSource(size_t dispatch) const {
  return getPrintable(dispatches[dispatch]->location);
}

std::string PlanStory::describe(size_t dispatch) const {
  std::string source = getSource(dispatch);
  return getKernelName(dispatch) + (source.empty() ? "" : " (" + source + ")");
}

std::string PlanStory::getValueName(int64_t value) const {
  return value < 0 ? "a constant" : getPrintable(plan->values[value].name);
}

std::string tool::printCount(size_t number, const std::string &what) {
  return std::to_string(number) + " " + what + (number == 1 ? "" : "s");
}

//===----------------------------------------------------------------------===//
// Values in the arena
//===----------------------------------------------------------------------===//

/// Adds the values that each slot holds over time. Walks slots and dispatches wave by wave; an
/// operand's slot is the last live one that begins at or before it.
static void addResidences(PlanStory &story) {
  const Plan &plan = *story.plan;
  std::vector<size_t> order(story.dispatches.size()), starts;
  for (size_t i = 0; i < order.size(); ++i)
    order[i] = i;
  std::sort(order.begin(), order.end(), [&](size_t a, size_t b) {
    return std::tie(story.waveOf[a], a) < std::tie(story.waveOf[b], b);
  });
  for (size_t i = 0; i < plan.slots.size(); ++i)
    if (plan.slots[i].bytes > 0)
      starts.push_back(i);
  std::sort(starts.begin(), starts.end(), [&](size_t a, size_t b) {
    return std::tie(plan.slots[a].firstWave, a) < std::tie(plan.slots[b].firstWave, b);
  });

  std::map<int64_t, size_t> live; // offset -> slot
  std::map<std::pair<size_t, int64_t>, Residence> found;
  auto next = starts.begin();
  for (size_t dispatch : order) {
    const Command &command = *story.dispatches[dispatch];
    for (; next != starts.end() && plan.slots[*next].firstWave <= command.wave; ++next)
      live[plan.slots[*next].offset] = *next;
    const Kernel &kernel = plan.kernels[command.kernel];
    for (size_t i = 0; i < command.operands.size(); ++i) {
      const PlanOperand &operand = command.operands[i];
      Access access = kernel.operands[i].access;
      if (operand.value < 0 || plan.allocations[operand.allocation].kind != AllocationKind::Arena ||
          access == Access::None)
        continue;
      auto place = live.upper_bound(operand.offset);
      if (place == live.begin())
        continue;
      size_t at = std::prev(place)->second;
      const Slot &slot = plan.slots[at];
      if (slot.lastWave < command.wave || operand.offset - slot.offset > slot.bytes - operand.bytes)
        continue;
      auto touch = [&](int64_t value, bool writes) {
        auto [entry, isNew] = found.try_emplace({at, value});
        Residence &residence = entry->second;
        if (isNew) {
          residence.slot = at;
          residence.value = value;
          residence.offset = slot.offset;
          residence.bytes = slot.bytes;
          residence.firstWave = story.waveOf[dispatch];
        }
        residence.lastWave = story.waveOf[dispatch];
        std::vector<size_t> &list = writes ? residence.writers : residence.readers;
        if (list.empty() || list.back() != dispatch)
          list.push_back(dispatch);
      };
      if (access != Access::Write)
        touch(operand.value, false);
      if (access != Access::Read)
        touch(operand.value, true);
      if (operand.before >= 0)
        touch(operand.before, false);
    }
  }
  for (auto &[key, residence] : found)
    story.residences.push_back(std::move(residence));
  std::sort(story.residences.begin(), story.residences.end(),
            [](const Residence &a, const Residence &b) {
              return std::tie(a.slot, a.firstWave, a.lastWave, a.value) <
                     std::tie(b.slot, b.firstWave, b.lastWave, b.value);
            });
}

namespace {
/// The waves in which a slot is live, as indices.
struct Stretch {
  size_t first = 0, last = 0;
  bool isEmpty = true;
};

/// Answers queries for the max number of live bytes in ranges of waves. Numbers of a wrong plan
/// may wrap around.
class LiveBytes {
public:
  explicit LiveBytes(const std::vector<int64_t> &bytes) : table{bytes} {
    for (size_t width = 1; 2 * width <= bytes.size(); width *= 2) {
      const std::vector<int64_t> &half = table.back();
      std::vector<int64_t> whole(bytes.size() - 2 * width + 1);
      for (size_t i = 0; i < whole.size(); ++i)
        whole[i] = std::max(half[i], half[i + width]);
      table.push_back(std::move(whole));
    }
  }

  /// Returns the max in waves [begin, end); 0 if the range is empty.
  int64_t getMax(size_t begin, size_t end) const {
    if (begin >= end)
      return 0;
    size_t level = std::bit_width(end - begin) - 1;
    return std::max(table[level][begin], table[level][end - (size_t(1) << level)]);
  }

  /// Returns the decrease of the max if `bytes` were not live in waves [begin, end).
  int64_t getSaving(size_t begin, size_t end, int64_t bytes) const {
    size_t all = table.front().size();
    int64_t rest = std::max(getMax(0, begin), getMax(end, all));
    return getMax(0, all) - std::max(rest, getMax(begin, end) - bytes);
  }

private:
  std::vector<std::vector<int64_t>> table; ///< table[i][w]: max of 2^i waves from w on
};

/// The waves that each dispatch could move to alone: after those that it depends on, before
/// those that depend on it. Ignores dependences from sharing of memory.
struct Mobility {
  std::vector<size_t> earliest, latest;
};
} // namespace

static Stretch getStretch(const PlanStory &story, const Slot &slot) {
  auto begin = std::lower_bound(story.waves.begin(), story.waves.end(), slot.firstWave);
  auto end = std::upper_bound(begin, story.waves.end(), slot.lastWave);
  if (begin == end)
    return {};
  return {size_t(begin - story.waves.begin()), size_t(end - story.waves.begin()) - 1, false};
}

static Mobility getMobility(const PlanStory &story) {
  const Plan &plan = *story.plan;
  struct Use {
    size_t dispatch;
    bool writes;
  };
  // Uses of each value in a slot and of each other allocation, in recorded order.
  std::vector<std::vector<Use>> uses;
  for (const Residence &residence : story.residences) {
    std::vector<Use> &list = uses.emplace_back();
    for (size_t dispatch : residence.writers)
      list.push_back({dispatch, true});
    for (size_t dispatch : residence.readers)
      list.push_back({dispatch, false});
    std::sort(list.begin(), list.end(), [](const Use &a, const Use &b) {
      return std::tie(a.dispatch, a.writes) < std::tie(b.dispatch, b.writes);
    });
  }
  size_t offset = uses.size();
  uses.resize(offset + plan.allocations.size());
  for (size_t dispatch = 0; dispatch < story.dispatches.size(); ++dispatch) {
    const Command &command = *story.dispatches[dispatch];
    for (size_t i = 0; i < command.operands.size(); ++i) {
      const PlanOperand &operand = command.operands[i];
      Access access = plan.kernels[command.kernel].operands[i].access;
      if (plan.allocations[operand.allocation].kind != AllocationKind::Arena &&
          access != Access::None)
        uses[offset + operand.allocation].push_back({dispatch, access != Access::Read});
    }
  }

  Mobility mobility;
  mobility.earliest.assign(story.dispatches.size(), 0);
  mobility.latest.assign(story.dispatches.size(), story.waves.size() - 1);
  for (const std::vector<Use> &list : uses) {
    // A dispatch's own uses of a value do not bound it, so each bound comes from other
    // dispatches.
    size_t written = 0, used = 0; // first wave after all earlier writes; after all earlier uses
    for (size_t i = 0, j; i < list.size(); i = j) {
      size_t dispatch = list[i].dispatch;
      bool writes = false;
      for (j = i; j < list.size() && list[j].dispatch == dispatch; ++j)
        writes |= list[j].writes;
      size_t &earliest = mobility.earliest[dispatch];
      earliest = std::max(earliest, writes ? used : written);
      size_t behind = story.waveOf[dispatch] + 1;
      used = std::max(used, behind);
      written = writes ? std::max(written, behind) : written;
    }
    written = used = story.waves.size(); // first wave of all later writes; of all later uses
    for (size_t i = list.size(), j; i > 0; i = j) {
      size_t dispatch = list[i - 1].dispatch;
      bool writes = false;
      for (j = i; j > 0 && list[j - 1].dispatch == dispatch; --j)
        writes |= list[j - 1].writes;
      size_t &latest = mobility.latest[dispatch];
      size_t limit = writes ? used : written;
      latest = std::min(latest, limit ? limit - 1 : 0);
      used = std::min(used, story.waveOf[dispatch]);
      written = writes ? std::min(written, story.waveOf[dispatch]) : written;
    }
  }
  return mobility;
}

/// Finds the wave with the max number of live bytes, the values live there, and possible
/// savings.
static void explainPeak(PlanStory &story) {
  const Plan &plan = *story.plan;
  if (story.waves.empty())
    return;
  std::vector<Stretch> stretches;
  std::vector<uint64_t> changes(story.waves.size() + 1); // modulo 2^64
  for (const Slot &slot : plan.slots) {
    Stretch stretch = stretches.emplace_back(getStretch(story, slot));
    if (stretch.isEmpty)
      continue;
    changes[stretch.first] += uint64_t(slot.bytes);
    changes[stretch.last + 1] -= uint64_t(slot.bytes);
  }
  uint64_t live = 0;
  for (size_t wave = 0; wave < story.waves.size(); ++wave)
    story.liveBytes.push_back(int64_t(live += changes[wave]));
  size_t peak =
      std::max_element(story.liveBytes.begin(), story.liveBytes.end()) - story.liveBytes.begin();
  story.peakWave = peak;

  LiveBytes bytes(story.liveBytes);
  Mobility mobility = getMobility(story);
  for (size_t begin = 0, end; begin < story.residences.size(); begin = end) {
    size_t slot = story.residences[begin].slot;
    std::map<size_t, std::vector<size_t>> uses; // dispatches by wave
    PeakValue value;
    for (end = begin; end < story.residences.size() && story.residences[end].slot == slot; ++end) {
      const Residence &residence = story.residences[end];
      if (end == begin || residence.firstWave <= peak)
        value.residence = end;
      for (const std::vector<size_t> &list : {residence.writers, residence.readers})
        for (size_t dispatch : list)
          uses[story.waveOf[dispatch]].push_back(dispatch);
    }
    const Stretch &stretch = stretches[slot];
    if (stretch.isEmpty || peak < stretch.first || stretch.last < peak)
      continue;
    int64_t size = plan.slots[slot].bytes;
    auto later = uses.upper_bound(peak);
    if (!uses.contains(peak) && later != uses.end() && later != uses.begin())
      value.repeatSaves = bytes.getSaving(std::prev(later)->first + 1, later->first, size);

    auto &[firstUse, firstDispatches] = *uses.begin();
    size_t latest = story.waves.size();
    for (size_t dispatch : firstDispatches)
      latest = std::min(latest, mobility.latest[dispatch]);
    auto &[lastUse, lastDispatches] = *uses.rbegin();
    size_t earliest = uses.size() > 1 ? std::next(uses.rbegin())->first : firstUse;
    for (size_t dispatch : lastDispatches)
      earliest = std::max(earliest, mobility.earliest[dispatch]);
    if (peak < latest && uses.size() > 1)
      value.moveSaves = bytes.getSaving(stretch.first, latest, size);
    else if (earliest < peak && uses.size() > 1)
      value.moveSaves = bytes.getSaving(earliest + 1, stretch.last + 1, size);
    story.peak.push_back(value);
  }
  std::sort(story.peak.begin(), story.peak.end(), [&](const PeakValue &a, const PeakValue &b) {
    return std::tie(story.residences[b.residence].bytes, a.residence) <
           std::tie(story.residences[a.residence].bytes, b.residence);
  });
}

//===----------------------------------------------------------------------===//
// Barriers
//===----------------------------------------------------------------------===//

/// Returns the description of a hazard: the first access, the second, and the kind.
static std::string describeHazard(const PlanStory &story, const Hazard &hazard) {
  const PlanOperand &from = story.dispatches[hazard.from]->operands[hazard.fromOperand];
  const PlanOperand &to = story.dispatches[hazard.to]->operands[hazard.toOperand];
  std::string first = story.describe(hazard.from), second = story.describe(hazard.to);
  std::string a = "`" + story.getValueName(from.value) + "`";
  std::string b = "`" + story.getValueName(to.value) + "`";
  bool isSame = from.value == to.value;
  if (!isSame && a == b)
    b = "the next " + b;
  switch (hazard.kind) {
  case HazardKind::RAW:
    return first + " to have written " + a + ", before " + second + " reads " +
           (isSame ? "it" : b + " there") + ": RAW";
  case HazardKind::WAR:
    return first + " to have read " + a + ", before " + second + " writes " +
           (isSame ? "it" : b + " over it") + ": WAR";
  case HazardKind::WAW:
    return first + " to have written " + a + ", before " + second + " writes " +
           (isSame ? "more of it" : b + " over it") + ": WAW";
  }
  return "";
}

/// Returns the number of bytes that both operands of a hazard share.
static int64_t getSharedBytes(const PlanStory &story, const Hazard &hazard) {
  const PlanView &a = story.dispatches[hazard.from]->operands[hazard.fromOperand];
  const PlanView &b = story.dispatches[hazard.to]->operands[hazard.toOperand];
  if (a.allocation != b.allocation)
    return 0;
  return std::max<int64_t>(0, std::min(a.offset + a.bytes, b.offset + b.bytes) -
                                  std::max(a.offset, b.offset));
}

static void explainCommands(PlanStory &story) {
  size_t position = 0;
  for (const Command &command : story.plan->commands) {
    story.queues = std::max(story.queues, size_t(command.queue) + 1);
    position += command.kind == Command::Kind::Dispatch;
    story.signals += command.kind == Command::Kind::Signal;
    story.waits += command.kind == Command::Kind::Wait;
    if (command.kind != Command::Kind::Barrier)
      continue;
    BarrierStory barrier;
    barrier.number = story.barriers.size();
    barrier.position = position;
    barrier.queue = command.queue;
    barrier.hazard = command.hazards.front();
    barrier.hazards = command.hazards.size();
    barrier.bytes = getSharedBytes(story, barrier.hazard);
    barrier.sentence = "barrier " + std::to_string(barrier.number) + ": waits for " +
                       describeHazard(story, barrier.hazard) + ", " +
                       std::to_string(barrier.bytes) + " bytes" +
                       (size_t(barrier.hazard.to) < position ? ", of the next trip" : "");
    story.barriers.push_back(std::move(barrier));
  }
}

PlanStory tool::explainPlan(const Artifact &artifact, const Plan &plan) {
  PlanStory story;
  story.artifact = &artifact;
  story.plan = &plan;
  story.entry = &findEntry(artifact, plan.entry);
  story.dispatches = getDispatches(plan);
  for (const Command *dispatch : story.dispatches)
    story.waves.push_back(dispatch->wave);
  std::sort(story.waves.begin(), story.waves.end());
  story.waves.erase(std::unique(story.waves.begin(), story.waves.end()), story.waves.end());
  for (const Command *dispatch : story.dispatches)
    story.waveOf.push_back(
        std::lower_bound(story.waves.begin(), story.waves.end(), dispatch->wave) -
        story.waves.begin());
  const EntryNotes *notes = artifact.findNotes(plan.entry, plan.target);
  if (notes && notes->dispatchKernels.size() == story.dispatches.size())
    story.notes = notes;
  addResidences(story);
  explainPeak(story);
  explainCommands(story);
  explainDonations(story);
  return story;
}

//===- ExplainForms.cpp - An explanation as JSON --------------------------===//

#include "Explanation.h"
#include "Profile.h"

#include <algorithm>
#include <map>

using namespace weir;
using namespace weir::tool;

static Json toNullable(const std::optional<int64_t> &number) {
  return number ? Json(*number) : Json();
}

/// Returns the bytes of all arguments by kind; "other" for those without a kind.
static Json getArgumentBytes(const EntrySpec &entry) {
  std::map<std::string, int64_t> bytes;
  for (const TensorSpec &argument : entry.arguments)
    bytes[argument.kind.empty() ? "other" : argument.kind] += getByteSize(argument);
  return bytes;
}

Json tool::summarize(const PlanStory &story) {
  const Plan &plan = *story.plan;
  Json largest = Json::array();
  for (size_t i = 0; i < std::min<size_t>(story.peak.size(), 5); ++i) {
    const Residence &residence = story.residences[story.peak[i].residence];
    largest.push_back({{"value", story.getValueName(residence.value)},
                       {"bytes", residence.bytes},
                       {"source", story.getSource(residence)}});
  }
  int64_t resultBytes = 0;
  for (const TensorSpec &result : story.entry->results)
    resultBytes += getByteSize(result);
  size_t accepted =
      std::count_if(story.donations.begin(), story.donations.end(),
                    [](const DonationStory &donation) { return donation.result >= 0; });
  std::optional<int64_t> limit = story.notes ? story.notes->memoryLimit : std::nullopt;
  return {{"entry", plan.entry},
          {"target", plan.target},
          {"kernels", plan.kernels.size()},
          {"dispatches", story.dispatches.size()},
          {"waves", story.waves.size()},
          {"barriers", story.barriers.size()},
          {"queues", story.queues},
          {"signals", story.signals},
          {"waits", story.waits},
          {"arena_bytes", plan.arenaBytes},
          {"pinned_bytes", plan.pinnedBytes},
          {"memory_limit", toNullable(limit)},
          {"most_live_bytes", story.getPeakBytes()},
          {"peak_wave", story.waves.empty() ? Json() : Json(story.waves[story.peakWave])},
          {"values_at_peak", story.peak.size()},
          {"largest_at_peak", largest},
          {"constant_bytes", story.artifact->constants.size()},
          {"argument_bytes", getArgumentBytes(*story.entry)},
          {"result_bytes", resultBytes},
          {"donated", story.donations.size()},
          {"donations_accepted", accepted}};
}

Json tool::listDispatches(const PlanStory &story) {
  Json list = Json::array();
  for (size_t i = 0; i < story.dispatches.size(); ++i) {
    const Command &dispatch = *story.dispatches[i];
    const Kernel &kernel = story.plan->kernels[dispatch.kernel];
    Json reads = Json::array(), writes = Json::array();
    for (size_t operand = 0; operand < dispatch.operands.size(); ++operand) {
      Access access = kernel.operands[operand].access;
      std::string name = story.getValueName(dispatch.operands[operand].value);
      if (access == Access::Read || access == Access::Update)
        reads.push_back(name);
      if (access == Access::Write || access == Access::Update)
        writes.push_back(name);
    }
    list.push_back({{"dispatch", i},
                    {"wave", dispatch.wave},
                    {"queue", dispatch.queue},
                    {"kernel", kernel.name},
                    {"source", story.getSource(i)},
                    {"grid", dispatch.grid},
                    {"reads", reads},
                    {"writes", writes},
                    {"bytes", getBytesMoved(*story.plan, dispatch)}});
  }
  return list;
}

Json tool::listBarriers(const PlanStory &story) {
  static constexpr const char *kinds[] = {"RAW", "WAR", "WAW"};
  Json list = Json::array();
  for (const BarrierStory &barrier : story.barriers)
    list.push_back({{"barrier", barrier.number},
                    {"queue", barrier.queue},
                    {"before_dispatch", barrier.position},
                    {"kind", kinds[size_t(barrier.hazard.kind)]},
                    {"from", barrier.hazard.from},
                    {"to", barrier.hazard.to},
                    {"from_source", story.getSource(barrier.hazard.from)},
                    {"to_source", story.getSource(barrier.hazard.to)},
                    {"bytes", barrier.bytes},
                    {"hazards", barrier.hazards},
                    {"why", barrier.sentence}});
  return list;
}

Json tool::listMemory(const PlanStory &story) {
  Json values = Json::array(), peak = Json::array();
  for (const Residence &residence : story.residences)
    values.push_back({{"value", story.getValueName(residence.value)},
                      {"slot", residence.slot},
                      {"offset", residence.offset},
                      {"bytes", residence.bytes},
                      {"first_wave", story.waves[residence.firstWave]},
                      {"last_wave", story.waves[residence.lastWave]},
                      {"source", story.getSource(residence)},
                      {"written_by", residence.writers},
                      {"read_by", residence.readers}});
  for (const PeakValue &value : story.peak) {
    const Residence &residence = story.residences[value.residence];
    peak.push_back({{"value", story.getValueName(residence.value)},
                    {"of_values", value.residence},
                    {"bytes", residence.bytes},
                    {"source", story.getSource(residence)},
                    {"repeat_saves", toNullable(value.repeatSaves)},
                    {"move_saves", toNullable(value.moveSaves)}});
  }
  return {{"arena_bytes", story.plan->arenaBytes},
          {"pinned_bytes", story.plan->pinnedBytes},
          {"most_live_bytes", story.getPeakBytes()},
          {"peak_wave", story.waves.empty() ? Json() : Json(story.waves[story.peakWave])},
          {"waves", story.waves},
          {"live_bytes", story.liveBytes},
          {"values", values},
          {"peak", peak}};
}

Json tool::listDonations(const PlanStory &story) {
  Json list = Json::array();
  for (const DonationStory &donation : story.donations)
    list.push_back(
        {{"argument", story.entry->arguments[donation.argument].name},
         {"bytes", donation.bytes},
         {"result",
          donation.result < 0 ? Json() : Json(story.entry->results[donation.result].name)},
         {"why", donation.sentence}});
  return list;
}

/// Returns the first dispatch of each kernel in the notes; -1 if there is none.
static std::vector<int64_t> getFirstDispatches(const EntryNotes &notes) {
  std::vector<int64_t> first(notes.kernels.size(), -1);
  for (size_t i = notes.dispatchKernels.size(); i-- > 0;)
    if (int64_t kernel = notes.dispatchKernels[i]; kernel >= 0)
      first[kernel] = int64_t(i);
  return first;
}

Json tool::listKernels(const PlanStory &story) {
  std::map<size_t, std::vector<size_t>> dispatches;
  for (size_t i = 0; i < story.dispatches.size(); ++i)
    dispatches[story.dispatches[i]->kernel].push_back(i);
  // By kernel in the notes: the kernels that it reads from and those that read it.
  std::map<int64_t, std::vector<std::pair<int64_t, const ApartNote *>>> apart;
  std::vector<int64_t> first;
  if (story.notes) {
    first = getFirstDispatches(*story.notes);
    for (const ApartNote &note : story.notes->apart)
      if (first[note.producer] >= 0 && first[note.reader] >= 0) {
        apart[note.producer].push_back({first[note.reader], &note});
        apart[note.reader].push_back({first[note.producer], &note});
      }
  }
  Json list = Json::array();
  for (size_t i = 0; i < story.plan->kernels.size(); ++i) {
    const Kernel &kernel = story.plan->kernels[i];
    Json row = {{"kernel", kernel.name},
                {"workgroup", kernel.workgroup},
                {"code_bytes", story.artifact->code.at(kernel.code).size()},
                {"dispatches", dispatches[i]}};
    int64_t formed =
        story.notes && !dispatches[i].empty() ? story.notes->dispatchKernels[dispatches[i][0]] : -1;
    if (formed >= 0) {
      Json ops = Json::array(), others = Json::array();
      for (const OpNote &op : story.notes->kernels[formed])
        ops.push_back({{"op", getPrintable(op.what)}, {"source", getPrintable(op.source)}});
      for (auto [other, note] : apart[formed])
        others.push_back({{"reads_from_it", note->producer == formed},
                          {"dispatch", other},
                          {"kernel", story.describe(other)},
                          {"why", getPrintable(note->why)}});
      row["ops"] = std::move(ops);
      row["apart_from"] = std::move(others);
    }
    list.push_back(std::move(row));
  }
  return list;
}

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

/// Returns the bytes of all arguments of each kind; "other" are those without.
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

//===- ExplainDonation.cpp - Use of donated bytes -------------------------===//
//
// The plan shows which dispatches read an argument and write a result, which explains most
// refusals.
//
//===----------------------------------------------------------------------===//

#include "Explanation.h"

#include <algorithm>

using namespace weir;
using namespace weir::tool;

namespace {
/// The dispatches that use an allocation, in recorded order.
struct AllocationUses {
  std::vector<size_t> readers, writers;
};
} // namespace

static AllocationUses getUses(const PlanStory &story, size_t allocation) {
  AllocationUses uses;
  for (size_t dispatch = 0; dispatch < story.dispatches.size(); ++dispatch) {
    const Command &command = *story.dispatches[dispatch];
    for (size_t i = 0; i < command.operands.size(); ++i) {
      if (size_t(command.operands[i].allocation) != allocation)
        continue;
      Access access = story.plan->kernels[command.kernel].operands[i].access;
      if (access == Access::Read || access == Access::Update)
        uses.readers.push_back(dispatch);
      if (access == Access::Write || access == Access::Update)
        uses.writers.push_back(dispatch);
    }
  }
  return uses;
}

/// Returns the index of the allocation, or nothing.
static std::optional<size_t> findAllocation(const Plan &plan, AllocationKind kind, size_t index) {
  for (size_t i = 0; i < plan.allocations.size(); ++i)
    if (plan.allocations[i].kind == kind && size_t(plan.allocations[i].index) == index)
      return i;
  return std::nullopt;
}

/// Whether the dispatch's kernel may write its operand in allocation `to` over the one that it
/// reads in `from`.
static bool isProved(const PlanStory &story, size_t dispatch, size_t from, size_t to) {
  const Command &command = *story.dispatches[dispatch];
  for (auto [source, target] : story.plan->kernels[command.kernel].inPlace)
    if (size_t(command.operands[source].allocation) == from &&
        size_t(command.operands[target].allocation) == to)
      return true;
  return false;
}

/// Returns why result `result`, which has its own bytes, does not reuse the argument's.
static std::string explainRefusal(const PlanStory &story, size_t argument, size_t result,
                                  const std::string &name) {
  const std::string resultName = "result `" + story.entry->results[result].name + "`";
  std::optional<size_t> from = findAllocation(*story.plan, AllocationKind::Argument, argument);
  std::optional<size_t> to = findAllocation(*story.plan, AllocationKind::Result, result);
  AllocationUses ofResult = to ? getUses(story, *to) : AllocationUses();
  if (!from || ofResult.writers.empty())
    return name + " has no use in the plan, so no dispatch could write " + resultName +
           " over it; it keeps its bytes";
  AllocationUses ofArgument = getUses(story, *from);
  size_t writer = ofResult.writers.front();
  auto later = std::upper_bound(ofArgument.readers.begin(), ofArgument.readers.end(), writer);
  if (later != ofArgument.readers.end())
    return name + " keeps its bytes: " + story.describe(*later) + " still reads it after " +
           story.describe(writer) + " has written " + resultName;
  if (std::find(ofArgument.readers.begin(), ofArgument.readers.end(), writer) ==
      ofArgument.readers.end())
    return name + " keeps its bytes: " + story.describe(writer) + ", which writes " + resultName +
           ", does not read it, and only what a dispatch reads can be written over by it";
  if (isProved(story, writer, *from, *to))
    return name + " keeps its bytes, although " + story.describe(writer) + " could write " +
           resultName + " over it";
  return name + " keeps its bytes: " + story.describe(writer) + " reads it and writes " +
         resultName + ", and the plan has no proof that each byte is read before it is written";
}

/// Returns the result that reuses the argument's bytes, or why none does.
static std::string explainDonation(const PlanStory &story, const DonationStory &donation) {
  const EntrySpec &entry = *story.entry;
  const std::string &argument = entry.arguments[donation.argument].name;
  const std::string name = "`" + argument + "`";
  if (donation.result >= 0)
    return name + " gives its " + std::to_string(donation.bytes) + " bytes to result `" +
           entry.results[donation.result].name + "`";
  if (donation.bytes == 0)
    return name + " has no bytes to give";
  // Prefer the result of the same name, its next value; else any of the same size.
  std::optional<size_t> candidate, taken;
  for (size_t i = 0; i < entry.results.size(); ++i) {
    if (getByteSize(entry.results[i]) != donation.bytes)
      continue;
    bool isOwn = findAllocation(*story.plan, AllocationKind::Result, i).has_value();
    std::optional<size_t> &place = isOwn ? candidate : taken;
    if (!place || entry.results[i].name == argument)
      place = i;
  }
  if (candidate)
    return explainRefusal(story, donation.argument, *candidate, name);
  if (taken)
    return name + " keeps its bytes: each result of its " + std::to_string(donation.bytes) +
           " bytes lives in another argument, such as `" + entry.results[*taken].name + "`";
  return name + " keeps its bytes: no result has its size, " + std::to_string(donation.bytes) +
         " bytes";
}

/// Returns the compiler's note on the refusal, or "".
static std::string getCompilersReason(const PlanStory &story, const DonationStory &donation) {
  if (!story.notes || donation.result >= 0)
    return "";
  for (const RefusalNote &note : story.notes->refusals)
    if (size_t(note.argument) == donation.argument)
      return "; the compiler's reason: " + note.reason +
             (note.source.empty() ? "" : ", at " + note.source) +
             (note.detail.empty() ? "" : ", " + note.detail);
  return "";
}

void tool::explainDonations(PlanStory &story) {
  const EntrySpec &entry = *story.entry;
  for (size_t i = 0; i < entry.arguments.size(); ++i) {
    if (!entry.arguments[i].donate)
      continue;
    DonationStory donation;
    donation.argument = i;
    donation.bytes = getByteSize(entry.arguments[i]);
    if (std::optional<size_t> at = findAllocation(*story.plan, AllocationKind::Argument, i))
      donation.result = story.plan->allocations[*at].result;
    donation.sentence =
        explainDonation(story, donation) + getPrintable(getCompilersReason(story, donation));
    story.donations.push_back(std::move(donation));
  }
}

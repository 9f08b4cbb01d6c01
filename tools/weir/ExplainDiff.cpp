//===- ExplainDiff.cpp - Differences between two plans --------------------===//

#include "Explanation.h"

#include <map>

using namespace weir;
using namespace weir::tool;

namespace {
/// The dispatches of a kernel, and its code.
struct KernelUse {
  size_t dispatches = 0;
  const Bytes *code = nullptr;
  std::string name; ///< with the source of the first dispatch
};

/// The values of a source line that are live at the peak.
struct PeakShare {
  size_t values = 0;
  int64_t bytes = 0;
};
} // namespace

static std::map<std::string, KernelUse> getKernelUses(const PlanStory &story) {
  std::map<std::string, KernelUse> uses;
  for (size_t i = 0; i < story.dispatches.size(); ++i) {
    KernelUse &use = uses[story.getKernelName(i)];
    if (++use.dispatches > 1)
      continue;
    use.code = &story.artifact->code.at(story.plan->kernels[story.dispatches[i]->kernel].code);
    use.name = story.describe(i);
  }
  return uses;
}

static std::map<std::string, PeakShare> getPeakShares(const PlanStory &story) {
  std::map<std::string, PeakShare> shares;
  for (const PeakValue &value : story.peak) {
    const Residence &residence = story.residences[value.residence];
    std::string place = story.getSource(residence);
    PeakShare &share = shares[place.empty() ? "an unknown place" : place];
    ++share.values;
    share.bytes += residence.bytes;
  }
  return shares;
}

std::vector<Difference> tool::comparePlans(const PlanStory &before, const PlanStory &after) {
  std::vector<Difference> differences;
  auto compare = [&](const std::string &what, int64_t old, int64_t now) {
    if (old != now)
      differences.push_back({what, what + ": " + std::to_string(now) + ", was " +
                                       std::to_string(old) + " (" + (now > old ? "+" : "") +
                                       std::to_string(now - old) + ")"});
  };
  compare("dispatches", before.dispatches.size(), after.dispatches.size());
  compare("kernels", before.plan->kernels.size(), after.plan->kernels.size());
  compare("waves", before.waves.size(), after.waves.size());
  compare("barriers", before.barriers.size(), after.barriers.size());
  compare("queues", before.queues, after.queues);
  compare("signals", before.signals, after.signals);
  compare("waits", before.waits, after.waits);
  compare("arena bytes", before.plan->arenaBytes, after.plan->arenaBytes);
  compare("bytes of all values pinned", before.plan->pinnedBytes, after.plan->pinnedBytes);
  compare("most live bytes", before.getPeakBytes(), after.getPeakBytes());
  compare("bytes of constants", before.artifact->constants.size(),
          after.artifact->constants.size());

  std::map<std::string, KernelUse> old = getKernelUses(before), now = getKernelUses(after);
  for (const auto &[name, use] : now)
    if (!old.contains(name))
      differences.push_back({"kernel added", "kernel " + use.name + " is new and runs " +
                                                 printCount(use.dispatches, "time")});
  for (const auto &[name, use] : old) {
    auto found = now.find(name);
    if (found == now.end()) {
      differences.push_back({"kernel removed", "kernel " + use.name + " is gone"});
      continue;
    }
    if (*use.code != *found->second.code)
      differences.push_back({"kernel changed", "kernel " + found->second.name + " has other code"});
    if (use.dispatches != found->second.dispatches)
      differences.push_back({"kernel runs", "kernel " + found->second.name + " runs " +
                                                printCount(found->second.dispatches, "time") +
                                                ", was " + std::to_string(use.dispatches)});
  }

  auto oldShares = getPeakShares(before), newShares = getPeakShares(after);
  for (const auto &[place, share] : newShares) {
    PeakShare was = oldShares.contains(place) ? oldShares[place] : PeakShare();
    if (was.values != share.values || was.bytes != share.bytes)
      differences.push_back(
          {"value at the peak", place + " has " + printCount(share.values, "value") + " of " +
                                    std::to_string(share.bytes) + " bytes at the peak, was " +
                                    printCount(was.values, "value") + " of " +
                                    std::to_string(was.bytes) + " bytes"});
  }
  for (const auto &[place, was] : oldShares)
    if (!newShares.contains(place))
      differences.push_back({"value at the peak", place + " has no value at the peak, was " +
                                                      printCount(was.values, "value") + " of " +
                                                      std::to_string(was.bytes) + " bytes"});
  return differences;
}

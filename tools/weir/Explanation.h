//===- Explanation.h - What a plan does, in terms of values -----*- C++ -*-===//
//
// Plans say what queues do. This says why: which value is where and when, what is
// live where most is, which accesses force a barrier, where donated bytes go. All of
// it is derived from the artifact; nothing here checks a plan (`weir verify` does), and
// a plan that is wrong is explained as far as it goes.
//
//===----------------------------------------------------------------------===//

#ifndef WEIR_TOOLS_WEIR_EXPLANATION_H
#define WEIR_TOOLS_WEIR_EXPLANATION_H

#include "Output.h"
#include "weir/Artifact/Artifact.h"

#include <optional>
#include <string>
#include <vector>

namespace weir::tool {

/// The time that one value spends in one slot of the arena.
struct Residence {
  size_t slot = 0;
  int64_t value = -1;
  int64_t offset = 0, bytes = 0;        ///< of the slot
  size_t firstWave = 0, lastWave = 0;   ///< indices into `PlanStory::waves`, both included
  std::vector<size_t> writers, readers; ///< dispatches
};

/// A slot that is live where the live bytes are most.
struct PeakValue {
  size_t residence = 0; ///< what it holds there
  /// By how much the most live bytes would fall, had the value been dropped between the
  /// uses around the peak and computed again. Nothing where a dispatch uses it there.
  std::optional<int64_t> repeatSaves;
  /// The same, had the slot's first writer run as late, or its last reader as early, as
  /// dependences on values allow it to alone. Nothing where it would be live there still.
  std::optional<int64_t> moveSaves;
};

/// A barrier and the hazard that forced it.
struct BarrierStory {
  size_t number = 0;   ///< of barriers alone
  size_t position = 0; ///< dispatches recorded before it
  int64_t queue = 0;
  Hazard hazard;
  int64_t bytes = 0;  ///< that both operands have
  size_t hazards = 0; ///< that it orders
  std::string sentence;
};

/// A donated argument.
struct DonationStory {
  size_t argument = 0;
  int64_t bytes = 0;
  int64_t result = -1; ///< that takes its bytes
  std::string sentence;
};

/// What happens on one target when an entry runs.
struct PlanStory {
  const Artifact *artifact = nullptr;
  const Plan *plan = nullptr;
  const EntrySpec *entry = nullptr;
  const EntryNotes *notes = nullptr; ///< that fit the plan, or null

  std::vector<const Command *> dispatches; ///< in recorded order
  std::vector<int64_t> waves;              ///< that dispatches are in, ascending
  std::vector<size_t> waveOf;              ///< by dispatch: index into `waves`
  std::vector<Residence> residences;       ///< by slot, then by wave
  std::vector<int64_t> liveBytes;          ///< by wave, of slots
  size_t peakWave = 0;                     ///< the first with the most live bytes
  std::vector<PeakValue> peak;             ///< the largest first
  std::vector<BarrierStory> barriers;
  std::vector<DonationStory> donations;
  size_t signals = 0, waits = 0, queues = 1;

  int64_t getPeakBytes() const { return liveBytes.empty() ? 0 : liveBytes[peakWave]; }
  const std::string &getKernelName(size_t dispatch) const {
    return plan->kernels[dispatches[dispatch]->kernel].name;
  }
  /// Returns "model.py:12"; "" where it is not known.
  std::string getSource(size_t dispatch) const;
  /// Returns the place that a value comes from: that of the first dispatch to write it.
  std::string getSource(const Residence &residence) const {
    return residence.writers.empty() ? "" : getSource(residence.writers.front());
  }
  /// Returns "ln_rows (model.py:12)"; the kernel alone where the place is not known.
  std::string describe(size_t dispatch) const;
  /// Returns the value's name; "a constant" for -1.
  std::string getValueName(int64_t value) const;
};

/// Returns "1 value", "2 values".
std::string printCount(size_t number, const std::string &what);

/// Returns a text of a file that is for people, without what a terminal would obey.
std::string getPrintable(std::string text);

/// Derives all of the above. `artifact`, which holds the plan, must outlive the story.
PlanStory explainPlan(const Artifact &artifact, const Plan &plan);

/// Derives `DonationStory` of each donated argument. Part of `explainPlan`.
void explainDonations(PlanStory &story);

/// One difference between two plans.
struct Difference {
  std::string what; ///< "dispatches", "kernel added"...
  std::string sentence;
};

/// Returns what changed from `before` to `after`, plans of one entry and target.
std::vector<Difference> comparePlans(const PlanStory &before, const PlanStory &after);

// The forms that --json and the page have. Waves are numbered as in the plan.

Json summarize(const PlanStory &story);
Json listDispatches(const PlanStory &story);
Json listBarriers(const PlanStory &story);
Json listMemory(const PlanStory &story);
Json listDonations(const PlanStory &story);
/// What each kernel computes, and why those that it exchanges values with are others: of the
/// first dispatch that runs it. Without notes neither is known.
Json listKernels(const PlanStory &story);

} // namespace weir::tool

#endif // WEIR_TOOLS_WEIR_EXPLANATION_H

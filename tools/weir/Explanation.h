//===- Explanation.h - Explains a plan --------------------------*- C++ -*-===//
//
// Explains a plan: where each value is and when, the values live at the peak, the accesses that
// force a barrier, and the use of donated bytes. Everything is derived from the artifact.
// Nothing here checks a plan (`weir verify` does); a wrong plan is explained as far as
// possible.
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

/// A slot that is live in the wave with the max number of live bytes.
struct PeakValue {
  size_t residence = 0; ///< index of the value that it holds there
  /// Bytes by which the max of live bytes would fall if the value were dropped between the uses
  /// around the peak and recomputed. None if a dispatch at the peak uses it.
  std::optional<int64_t> repeatSaves;
  /// The same if the slot's first writer ran as late, or its last reader as early, as its data
  /// dependences allow. None if it would still be live at the peak.
  std::optional<int64_t> moveSaves;
};

/// A barrier and the hazard that forced it.
struct BarrierStory {
  size_t number = 0;   ///< index among the barriers
  size_t position = 0; ///< number of dispatches recorded before it
  int64_t queue = 0;
  Hazard hazard;
  int64_t bytes = 0;  ///< bytes that both operands share
  size_t hazards = 0; ///< number of hazards that it orders
  std::string sentence;
};

/// A donated argument.
struct DonationStory {
  size_t argument = 0;
  int64_t bytes = 0;
  int64_t result = -1; ///< the result that takes its bytes, or -1
  std::string sentence;
};

/// The explanation of an entry's plan on one target.
struct PlanStory {
  const Artifact *artifact = nullptr;
  const Plan *plan = nullptr;
  const EntrySpec *entry = nullptr;
  const EntryNotes *notes = nullptr; ///< notes that fit the plan, or null

  std::vector<const Command *> dispatches; ///< in recorded order
  std::vector<int64_t> waves;              ///< waves that have dispatches, ascending
  std::vector<size_t> waveOf;              ///< by dispatch: index into `waves`
  std::vector<Residence> residences;       ///< by slot, then by wave
  std::vector<int64_t> liveBytes;          ///< by wave: live bytes of slots
  size_t peakWave = 0;                     ///< the first with the max number of live bytes
  std::vector<PeakValue> peak;             ///< the largest first
  std::vector<BarrierStory> barriers;
  std::vector<DonationStory> donations;
  size_t signals = 0, waits = 0, queues = 1;

  int64_t getPeakBytes() const { return liveBytes.empty() ? 0 : liveBytes[peakWave]; }
  const std::string &getKernelName(size_t dispatch) const {
    return plan->kernels[dispatches[dispatch]->kernel].name;
  }
  /// Returns "model.py:12", or "" if it is unknown.
  std::string getSource(size_t dispatch) const;
  /// Returns the source of a value: that of the first dispatch that writes it.
  std::string getSource(const Residence &residence) const {
    return residence.writers.empty() ? "" : getSource(residence.writers.front());
  }
  /// Returns "ln_rows (model.py:12)", or only the kernel if the source is unknown.
  std::string describe(size_t dispatch) const;
  /// Returns the value's name; "a constant" for -1.
  std::string getValueName(int64_t value) const;
};

/// Returns "1 value", "2 values".
std::string printCount(size_t number, const std::string &what);

/// Returns text from a file for printing, without control characters of terminals.
std::string getPrintable(std::string text);

/// Derives the story of a plan. Needs: `artifact` holds the plan and outlives the story.
PlanStory explainPlan(const Artifact &artifact, const Plan &plan);

/// Derives the `DonationStory` of each donated argument. Part of `explainPlan`.
void explainDonations(PlanStory &story);

/// One difference between two plans.
struct Difference {
  std::string what; ///< "dispatches", "kernel added"...
  std::string sentence;
};

/// Returns the changes from `before` to `after`. Needs: plans of one entry and target.
std::vector<Difference> comparePlans(const PlanStory &before, const PlanStory &after);

// Return the JSON of --json and of the page. Waves are numbered as in the plan.

Json summarize(const PlanStory &story);
Json listDispatches(const PlanStory &story);
Json listBarriers(const PlanStory &story);
Json listMemory(const PlanStory &story);
Json listDonations(const PlanStory &story);
/// Returns what each kernel computes, and why it is not fused with kernels that it exchanges
/// values with, for the first dispatch that runs it. Without notes both are unknown.
Json listKernels(const PlanStory &story);

} // namespace weir::tool

#endif // WEIR_TOOLS_WEIR_EXPLANATION_H

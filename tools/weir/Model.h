//===- Model.h - Times of an entry by the model of a device -----*- C++ -*-===//

#ifndef WEIR_TOOLS_WEIR_MODEL_H
#define WEIR_TOOLS_WEIR_MODEL_H

#include "weir/Artifact/Artifact.h"
#include "weir/Model/Model.h"

namespace weir::tool {

/// A kernel on one grid, and all dispatches that run it so.
struct ModelledKernel {
  std::string name, source;
  std::array<int64_t, 3> grid = {};
  int64_t dispatches = 0;
  std::optional<model::Prediction> prediction; ///< of one dispatch
  std::string problem;                         ///< why there is none
  std::string unassembled;                     ///< why its registers are not known
};

/// A trip of a loop. Of a loop inside of it that data decide, one trip is counted.
struct ModelledLoop {
  int64_t trips = 1;                                     ///< that are counted
  bool isDecided = false;                                ///< whether data decide how many there are
  double dispatches = 0, seconds = 0, launchSeconds = 0; ///< of a trip; seconds without launches
};

/// The predictions for one plan.
struct ModelledPlan {
  std::vector<ModelledKernel> kernels; ///< the slowest in sum first
  std::vector<ModelledLoop> loops;     ///< as the plan has them
  double outsideSeconds = 0;           ///< of what runs outside of all loops, without launches
  int64_t outsideDispatches = 0;
  double kernelSeconds = 0, launchSeconds = 0;
  int64_t dispatches = 0, unknown = 0; ///< unknown: dispatches without a prediction
  double getSeconds() const { return kernelSeconds + launchSeconds; }
};

/// Returns the target of an artifact whose code a device runs best.
/// Errors: `Error` with the remedy if there is none.
const Profile &findModelledProfile(const Artifact &artifact, const std::string &path,
                                   const model::Device &device);

/// Predicts all dispatches of a plan, of which each command runs as often as `runs` says.
ModelledPlan predictPlan(const Artifact &artifact, const Plan &plan, const Profile &profile,
                         const model::Device &device, const std::string &ptxas,
                         const std::vector<int64_t> &runs);

/// Returns what is assumed of the loops that data decide, a sentence for each.
std::vector<std::string> getLoopNotes(const ModelledPlan &plan);

struct ModelOptions {
  std::string artifact, entry, model, ptxas = "ptxas";
  std::vector<int64_t> grid, workgroup, bytes; ///< of a PTX file
  bool json = false, accesses = false;
};

/// Prints the predictions for an entry, or for a PTX file.
void benchModel(const ModelOptions &options);

} // namespace weir::tool

#endif // WEIR_TOOLS_WEIR_MODEL_H

//===- Model.h - Times of kernels, computed from their code -----*- C++ -*-===//
//
// Enumerates the lanes of sampled workgroups of a launch, and computes from their requests and
// instructions how long it takes on a device, and what bounds it. docs/model.md has the formulas.
//
//===----------------------------------------------------------------------===//

#ifndef WEIR_MODEL_MODEL_H
#define WEIR_MODEL_MODEL_H

#include "weir/Device/Device.h"
#include "weir/Model/Occupancy.h"
#include "weir/SpirvReader/Module.h"

#include <array>

namespace weir::model {

/// A kernel on a grid.
struct Launch {
  std::array<int64_t, 3> grid = {1, 1, 1};
  int64_t subgroupSize = 32;
  std::vector<int64_t> operandBytes;  ///< by binding
  std::optional<Resources> resources; ///< none: not known
};

/// A load, store or copy in the code, over the whole launch.
struct Access {
  std::string place;                ///< "line 54"
  std::string kind;                 ///< "load", "store", "update" or "copy"
  std::string memory;               ///< "operand 0", "workgroup" or "own"
  int64_t width = 0;                ///< bytes of an invocation's access
  double requests = 0;              ///< of subgroups
  double wantedBytes = 0;           ///< of all invocations
  double movedBytes = 0;            ///< sectors of all requests; of workgroup memory, as wanted
  double missedBytes = 0;           ///< those that L1 does not have, and all that is stored
  double turns = 0, idealTurns = 0; ///< of workgroup memory
  double worstWays = 0;             ///< turns of the worst request, over those without conflicts
  /// Share of the bytes moved that are wanted, at most 1; 0 if nothing moves.
  double getUse() const { return movedBytes > 0 ? std::min(1.0, wantedBytes / movedBytes) : 0; }
};

/// A reason for the time of a launch.
struct Term {
  std::string name; ///< "memory", "fma", "latency"...
  double seconds = 0;
};

/// The time of a launch, and where it comes from.
struct Prediction {
  std::vector<Access> accesses;
  std::vector<std::string> assumptions; ///< sentences
  std::vector<std::string> unknown;     ///< figures of the device that would be needed

  std::optional<Resources> resources;
  Occupancy occupancy;
  double workgroups = 0, subgroups = 0;
  double fills = 0; ///< workgroups over those that run at a time
  double tail = 0;  ///< share of the last fill's places that are empty
  double flops = 0, matrixFlops = 0;
  double bytesOnce = 0; ///< each byte of each operand once
  double dramBytes = 0, l2Bytes = 0;
  double bytesInFlight = 0, bytesNeeded = 0; ///< of all units; bandwidth times latency
  double chainClocks = 0;                    ///< one subgroup alone
  double fmaClocks = 0, matrixClocks = 0;    ///< of a unit, all its workgroups
  std::vector<Term> terms;                   ///< the longest first
  double bound = 0;                          ///< seconds: each byte once, and the code's flops
  std::string boundBy;                       ///< "memory", "fma" or "matrix"
  double seconds = 0;
};

/// Predicts the time of a launch. Errors: `Error` that begins with `where`, if the code is not
/// followed, does not fit the device, or takes too long to enumerate.
Prediction predict(const spv::Module &module, const std::string &entry, const Launch &launch,
                   const Device &device, const std::string &where);

} // namespace weir::model

#endif // WEIR_MODEL_MODEL_H

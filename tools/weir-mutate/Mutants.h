//===- Mutants.h - Artifacts with one fact changed --------------*- C++ -*-===//

#ifndef WEIR_TOOLS_WEIR_MUTATE_MUTANTS_H
#define WEIR_TOOLS_WEIR_MUTATE_MUTANTS_H

#include "Judge.h"

#include <functional>
#include <string>
#include <vector>

namespace weir::mutate {

struct Mutant {
  /// "ENTRY:KIND:NUMBERS", with the target before the kind unless it is "vulkan"; the same each
  /// time the artifact is listed.
  std::string id;
  std::string kind; ///< "drop-barrier"
  std::string what; ///< a sentence about the change
  std::function<void(Artifact &)> apply;
  size_t plan = 0; ///< index of the changed plan in the artifact
};

/// Returns all mutants of an artifact's plans for Vulkan and CUDA.
/// Errors: `Error` when there is no such plan, or its code cannot be enumerated.
std::vector<Mutant> listMutants(const Artifact &artifact, Judge &judge);

} // namespace weir::mutate

#endif // WEIR_TOOLS_WEIR_MUTATE_MUTANTS_H

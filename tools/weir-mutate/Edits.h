//===- Edits.h - Plans edited by bytes --------------------------*- C++ -*-===//
//
// Any bytes are edits of an artifact's plans, so a fuzzer may make them up. No edit changes the
// dataflow: docs/verification.md, "Edited plans", says what that is.
//
//===----------------------------------------------------------------------===//

#ifndef WEIR_TOOLS_WEIR_MUTATE_EDITS_H
#define WEIR_TOOLS_WEIR_MUTATE_EDITS_H

#include "weir/Artifact/Artifact.h"

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace weir::mutate {

/// Number of bytes of one edit: its kind, three choices, an amount and its unit.
inline constexpr size_t editBytes = 6;
/// Max number of edits of one artifact.
inline constexpr size_t maxEdits = 8;

/// Applies edits to one plan of an artifact: the first byte chooses the plan by its lower half,
/// each `editBytes` that follow are an edit. An edit that the plan has no place for does nothing,
/// and bytes beyond `maxEdits` are not read.
///
/// Returns the index of the plan, and a sentence on each edit that changed something.
/// Needs: the artifact has a plan; it may say anything that `readArtifact` accepts.
std::pair<size_t, std::vector<std::string>> applyEdits(Artifact &artifact, const uint8_t *bytes,
                                                       size_t size);

} // namespace weir::mutate

#endif // WEIR_TOOLS_WEIR_MUTATE_EDITS_H

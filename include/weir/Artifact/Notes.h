//===- Notes.h - What the compiler said while it made a plan ----*- C++ -*-===//
//
// For people: no plan depends on it, and no claim is proved from it.
//
//===----------------------------------------------------------------------===//

#ifndef WEIR_ARTIFACT_NOTES_H
#define WEIR_ARTIFACT_NOTES_H

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace weir {

/// Name of the result that says whether an index left its tensor: an I32 of rank 0, 0 or a
/// number that `EntryNotes::checks` explains (`weir compile --check-indices`).
inline constexpr const char *statusName = "weir.status";

/// An op of the graph that a kernel computes.
struct OpNote {
  std::string what;   ///< "map: addf, mulf"
  std::string source; ///< "model.py:12", or ""
  bool operator==(const OpNote &) const = default;
};

/// Two kernels of which one reads what the other makes, and why they are not one.
struct ApartNote {
  int64_t producer = 0, reader = 0; ///< indices into `EntryNotes::kernels`
  std::string why;
  bool operator==(const ApartNote &) const = default;
};

/// A donated argument that no result may take.
struct RefusalNote {
  int64_t argument = 0;
  std::string reason, detail; ///< `reason` as in docs/donation.md
  std::string source;         ///< of what stands in the way
  bool operator==(const RefusalNote &) const = default;
};

struct EntryNotes {
  std::string entry;
  std::optional<int64_t> memoryLimit;       ///< bytes that the arena was to fit into
  std::vector<std::vector<OpNote>> kernels; ///< ops of each, in program order
  std::vector<ApartNote> apart;
  std::vector<int64_t> dispatchKernels; ///< by dispatch of the plan: index into `kernels`, or -1
  std::vector<RefusalNote> refusals;
  /// In words, what the numbers of the result `statusName` stand for, from 1 on.
  std::vector<std::string> checks;
  bool operator==(const EntryNotes &) const = default;
};

/// What there is to say of the plans of one target.
struct Notes {
  std::vector<EntryNotes> entries;
  bool operator==(const Notes &) const = default;
};

/// Text forms, as of plans. What they say of a plan is not checked against it.
std::string printNotes(const Notes &notes);
Notes parseNotes(const std::string &json, const std::string &where);

} // namespace weir

#endif // WEIR_ARTIFACT_NOTES_H

//===- Notes.h - The compiler's notes on its plans --------------*- C++ -*-===//
//
// Notes are for people: no plan and no claim depends on them.
//
//===----------------------------------------------------------------------===//

#ifndef WEIR_ARTIFACT_NOTES_H
#define WEIR_ARTIFACT_NOTES_H

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace weir {

/// Name of the result that reports an index out of range: an I32 of rank 0 that is 0 or a
/// number explained by `EntryNotes::checks` (`weir compile --check-indices`).
inline constexpr const char *statusName = "weir.status";

/// An op of the graph that a kernel computes.
struct OpNote {
  std::string what;   ///< "map: addf, mulf"
  std::string source; ///< "model.py:12", or ""
  bool operator==(const OpNote &) const = default;
};

/// Two kernels, one reading the other's result, and the reason why they were not fused.
struct ApartNote {
  int64_t producer = 0, reader = 0; ///< indices into `EntryNotes::kernels`
  std::string why;
  bool operator==(const ApartNote &) const = default;
};

/// A donated argument that no result can reuse.
struct RefusalNote {
  int64_t argument = 0;
  std::string reason, detail; ///< `reason` as in docs/donation.md
  std::string source;         ///< location of the op that prevents it
  bool operator==(const RefusalNote &) const = default;
};

struct EntryNotes {
  std::string entry;
  std::optional<int64_t> memoryLimit;       ///< the arena's requested limit in bytes
  std::vector<std::vector<OpNote>> kernels; ///< ops of each, in program order
  std::vector<ApartNote> apart;
  std::vector<int64_t> dispatchKernels; ///< by dispatch: index into `kernels`, or -1
  std::vector<RefusalNote> refusals;
  /// Explanations of the values 1, 2... of the result `statusName`.
  std::vector<std::string> checks;
  bool operator==(const EntryNotes &) const = default;
};

/// The notes on all plans of one target.
struct Notes {
  std::vector<EntryNotes> entries;
  bool operator==(const Notes &) const = default;
};

/// Prints and parses notes as JSON. Parsing does not compare them with the plan.
std::string printNotes(const Notes &notes);
Notes parseNotes(const std::string &json, const std::string &where);

} // namespace weir

#endif // WEIR_ARTIFACT_NOTES_H

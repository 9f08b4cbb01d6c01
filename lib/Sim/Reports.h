//===- Reports.h - Errors, each pair reported once --------------*- C++ -*-===//

#ifndef WEIR_LIB_SIM_REPORTS_H
#define WEIR_LIB_SIM_REPORTS_H

#include "weir/Sim/Sim.h"

#include <array>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace weir::sim {

enum class ReportKind {
  Race,
  Invisible,
  Late,
  NonCoherent,
  Dead,
  NeverWritten,
  OutOfBounds,
  Misaligned,
  ReadOnly,
  Effect,
  Divergent,
  Hang,
  Endless,
  Undefined,
  Result,
  Repeat
};

class Reports {
public:
  /// Counts a report. `key` identifies the pair; `describe` makes the sentence of a new pair.
  template <typename Describe>
  void add(ReportKind kind, const std::array<int64_t, 4> &key, Describe describe) {
    auto found = reports.find({kind, key});
    if (found == reports.end()) {
      if (reports.size() == maxPairs) {
        isCut = true;
        return;
      }
      found = reports.emplace(std::pair(kind, key), Report{describe(), 0}).first;
    }
    ++found->second.count;
  }

  /// Whether a run's results may depend on the order.
  bool haveRaces() const;

  /// Returns the sentences, races first, by dispatch.
  std::vector<std::string> print() const;
  /// Returns what each report is about.
  std::vector<SimFinding> list() const;

private:
  static constexpr size_t maxPairs = 1000; ///< max number of pairs reported

  struct Report {
    std::string sentence;
    uint64_t count = 0;
  };
  std::map<std::pair<ReportKind, std::array<int64_t, 4>>, Report> reports;
  bool isCut = false;
};

} // namespace weir::sim

#endif // WEIR_LIB_SIM_REPORTS_H

//===- Hazard.h - Two dispatches that must keep their order -----*- C++ -*-===//

#ifndef WEIR_ARTIFACT_HAZARD_H
#define WEIR_ARTIFACT_HAZARD_H

#include <cstdint>

namespace weir {

enum class HazardKind { RAW, WAR, WAW };

struct Hazard {
  HazardKind kind = HazardKind::RAW;
  int64_t from = 0, fromOperand = 0; ///< index among the dispatches, operand
  int64_t to = 0, toOperand = 0;
  bool operator==(const Hazard &) const = default;
};

} // namespace weir

#endif // WEIR_ARTIFACT_HAZARD_H

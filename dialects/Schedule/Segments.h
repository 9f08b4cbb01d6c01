//===- Segments.h - Attributes of entries with loops ------------*- C++ -*-===//

#ifndef WEIR_DIALECTS_SCHEDULE_SEGMENTS_H
#define WEIR_DIALECTS_SCHEDULE_SEGMENTS_H

#include "llvm/ADT/StringRef.h"

namespace weir::schedule {

/// Of a module: its entries with loops, a dictionary each, as weir-split-loops writes them.
inline constexpr llvm::StringLiteral programsAttrName = "weir.programs";
/// Of a function: unit; it is a part of such an entry.
inline constexpr llvm::StringLiteral segmentAttrName = "weir.segment";

} // namespace weir::schedule

#endif // WEIR_DIALECTS_SCHEDULE_SEGMENTS_H

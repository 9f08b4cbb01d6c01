//===- Promises.h - What ops promise of their operands ----------*- C++ -*-===//

#ifndef WEIR_DIALECTS_SCHEDULE_PROMISES_H
#define WEIR_DIALECTS_SCHEDULE_PROMISES_H

#include "llvm/ADT/StringRef.h"

namespace weir::schedule {

/// A unit attribute of `math.exp` whose operand is at most 0 or a NaN.
inline constexpr llvm::StringLiteral notPositiveAttrName = "weir.not_positive";

} // namespace weir::schedule

#endif // WEIR_DIALECTS_SCHEDULE_PROMISES_H

//===- PrintSharing.h - An answer about shared bytes, in a word -*- C++ -*-===//

#ifndef WEIR_TEST_LIB_ANALYSIS_PRINTSHARING_H
#define WEIR_TEST_LIB_ANALYSIS_PRINTSHARING_H

#include "weir/Analysis/Aliasing.h"

namespace weir::test {

inline const char *print(Sharing sharing) {
  switch (sharing) {
  case Sharing::Disjoint:
    return "disjoint";
  case Sharing::Overlap:
    return "overlap";
  case Sharing::Unknown:
    return "unknown";
  }
  llvm_unreachable("no such answer");
}

} // namespace weir::test

#endif // WEIR_TEST_LIB_ANALYSIS_PRINTSHARING_H

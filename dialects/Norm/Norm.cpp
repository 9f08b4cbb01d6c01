//===- Norm.cpp - The norm dialect -----------------------------------------===//

#include "dialects/Norm/Norm.h"

using namespace mlir;
using namespace weir::norm;

#include "dialects/Norm/NormDialect.cpp.inc"
#define GET_OP_CLASSES
#include "dialects/Norm/NormOps.cpp.inc"

void NormDialect::initialize() {
  addOperations<
#define GET_OP_LIST
#include "dialects/Norm/NormOps.cpp.inc"
      >();
}

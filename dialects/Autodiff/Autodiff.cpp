//===- Autodiff.cpp - The autodiff dialect -----------------------------------------===//

#include "dialects/Autodiff/Autodiff.h"

using namespace mlir;
using namespace weir::autodiff;

#include "dialects/Autodiff/AutodiffDialect.cpp.inc"
#define GET_OP_CLASSES
#include "dialects/Autodiff/AutodiffOps.cpp.inc"

void AutodiffDialect::initialize() {
  addOperations<
#define GET_OP_LIST
#include "dialects/Autodiff/AutodiffOps.cpp.inc"
      >();
}

//===- Random.cpp - The random dialect ------------------------------------===//

#include "dialects/Random/Random.h"

#include "mlir/IR/Builders.h"

using namespace mlir;
using namespace weir::random;

#include "dialects/Random/RandomDialect.cpp.inc"
#define GET_OP_CLASSES
#include "dialects/Random/RandomOps.cpp.inc"

void RandomDialect::initialize() {
  addOperations<
#define GET_OP_LIST
#include "dialects/Random/RandomOps.cpp.inc"
      >();
}

LogicalResult UniformOp::verify() {
  if (int64_t stream = getStream(); stream < 0 || stream >= int64_t(1) << 32) // C1
    return emitOpError() << "stream is " << stream << "; expected one in [0, 4294967296)";
  constexpr int64_t maxElements = int64_t(1) << 34;
  int64_t elements = 1;
  for (int64_t size : getType().getShape())
    if (size > 0 && elements > maxElements / size) // C2
      return emitOpError() << "has a result of " << getType() << "; expected at most "
                           << maxElements << " elements";
    else
      elements *= size;
  return success();
}

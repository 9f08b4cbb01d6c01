//===- fuzz-plan.cpp - A plan from JSON and back ------------------------===//

#include "Fuzz.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  return weir::fuzz::expectRoundTrip(data, size, weir::parsePlan, weir::printPlan);
}

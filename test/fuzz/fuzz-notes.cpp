//===- fuzz-notes.cpp - Notes from JSON and back ------------------------===//

#include "Fuzz.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  return weir::fuzz::expectRoundTrip(data, size, weir::parseNotes, weir::printNotes);
}

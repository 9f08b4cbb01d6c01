//===- fuzz-npy.cpp - NumPy's arrays ------------------------------------===//

#include "Fuzz.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  return weir::fuzz::expectAnswer([&] { weir::parseNpy({data, data + size}, "input.npy"); });
}

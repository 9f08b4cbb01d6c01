//===- fuzz-safetensors.cpp - safetensors -------------------------------===//

#include "Fuzz.h"

using namespace weir;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  return fuzz::expectAnswer([&] {
    Bytes printed = printSafetensors(parseSafetensors({data, data + size}, "input.safetensors"));
    fuzz::expect(printSafetensors(parseSafetensors(printed, "printed.safetensors")) == printed,
                 "printing changes what is read");
  });
}

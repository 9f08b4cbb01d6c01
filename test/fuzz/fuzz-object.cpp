//===- fuzz-object.cpp - Machine code, which is mapped and never run ----===//

#include "Fuzz.h"
#include "lib/Runtime/CodeImage.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  return weir::fuzz::expectAnswer([&] {
    weir::runtime::CodeImage image({data, data + size}, "code/cpu/kernels.so");
    image.find("map_0");
  });
}

//===- fuzz-text.cpp - Texts before MLIR's parser -----------------------===//

#include "Fuzz.h"
#include "driver/Compiler/TextScan.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  std::string text(data, data + size);
  if (std::optional<std::string> complaint = weir::scanText(text, "input.mlir"))
    weir::fuzz::expectReadable(*complaint);
  return 0;
}

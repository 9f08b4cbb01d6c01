//===- fuzz-archive.cpp - ZIP files -------------------------------------===//

#include "Fuzz.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  weir::fuzz::InputFile file(data, size);
  return weir::fuzz::expectAnswer([&] { weir::readArchive(file.path); });
}

//===- fuzz-ptx.cpp - PTX, and what is proved of it ---------------------===//

#include "Fuzz.h"
#include "Prove.h"
#include "weir/PtxReader/PtxReader.h"

/// Returns the name behind the first ".entry".
static std::string findEntry(std::string_view text) {
  constexpr std::string_view blank = " \t\n", before = ".entry";
  size_t at = text.find(before);
  size_t begin = at == text.npos ? at : text.find_first_not_of(blank, at + before.size());
  if (begin == text.npos)
    return "input";
  return std::string(text.substr(begin, text.find_first_of(" \t\n(", begin) - begin));
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  std::string_view text(reinterpret_cast<const char *>(data), size);
  return weir::fuzz::expectAnswer([&] {
    auto module = weir::ptx::readEntry(text, findEntry(text), {32, 1, 1}, "code/cuda/input.ptx");
    if (module)
      weir::fuzz::proveAll(*module, module->getEntryPoints().front());
  });
}

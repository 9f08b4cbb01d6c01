//===- fuzz-spirv.cpp - SPIR-V, and what is proved of it ----------------===//

#include "Fuzz.h"
#include "Prove.h"
#include "weir/Device/Validity.h"

#include <cstring>

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  std::vector<uint32_t> words(size / sizeof(uint32_t));
  if (!words.empty())
    std::memcpy(words.data(), data, words.size() * sizeof(uint32_t));
  const weir::spv::Validity validity = weir::spv::validate(words, "vulkan1.3");
  if (validity.isValid != true)
    weir::fuzz::expectReadable(weir::makeReadable(validity.detail));
  return weir::fuzz::expectAnswer([&] {
    weir::spv::Module module({data, size}, "code/vulkan/input.spv");
    for (const weir::spv::EntryPoint &entry : module.getEntryPoints())
      weir::fuzz::proveAll(module, entry);
  });
}

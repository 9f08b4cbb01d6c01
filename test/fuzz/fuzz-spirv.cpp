//===- fuzz-spirv.cpp - SPIR-V, and what is proved of it ----------------===//

#include "Fuzz.h"
#include "Prove.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  return weir::fuzz::expectAnswer([&] {
    weir::spv::Module module({data, size}, "code/vulkan/input.spv");
    for (const weir::spv::EntryPoint &entry : module.getEntryPoints())
      weir::fuzz::proveAll(module, entry);
  });
}

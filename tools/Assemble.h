//===- Assemble.h - SPIR-V from text ----------------------------*- C++ -*-===//

#ifndef WEIR_TOOLS_ASSEMBLE_H
#define WEIR_TOOLS_ASSEMBLE_H

#include "weir/Artifact/Artifact.h"

#include <spirv-tools/libspirv.hpp>

namespace weir {

/// Assembles and validates for Vulkan 1.3. Errors: `Error` with the messages of
/// SPIRV-Tools.
inline Bytes assemble(const std::string &text) {
  spvtools::SpirvTools tools(SPV_ENV_VULKAN_1_3);
  std::string messages;
  tools.SetMessageConsumer(
      [&](spv_message_level_t, const char *, const spv_position_t &at, const char *message) {
        messages += std::to_string(at.line + 1) + ": " + message + "\n";
      });
  std::vector<uint32_t> words;
  if (!tools.Assemble(text, &words) || !tools.Validate(words))
    throw Error("the SPIR-V text is wrong: " + messages + text);
  const auto *bytes = reinterpret_cast<const unsigned char *>(words.data());
  return Bytes(bytes, bytes + words.size() * sizeof(uint32_t));
}

} // namespace weir

#endif // WEIR_TOOLS_ASSEMBLE_H

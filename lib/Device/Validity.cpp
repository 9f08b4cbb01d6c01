//===- Validity.cpp - SPIR-V as its environment takes it ------------------===//

#include "weir/Device/Validity.h"

#ifdef WEIR_HAS_SPIRV_TOOLS
#include <spirv-tools/libspirv.hpp>

#include <vector>
#endif

using namespace weir;
using namespace weir::spv;

#ifndef WEIR_HAS_SPIRV_TOOLS

Validity spv::validate(std::span<const uint32_t>, const std::string &) {
  return {std::nullopt, "this program was built without SPIRV-Tools"};
}

#else

/// Whether the validator is too old for a module: versions before 2023.3 have no cooperative
/// matrices, and refuse all modules with such.
static bool isBeyond(std::span<const uint32_t> words, spv_target_env environment) {
  constexpr uint32_t magic = 0x07230203, capability = 2 << 16 | 17, cooperativeMatrix = 6022;
  const bool isSwapped = !words.empty() && words[0] == __builtin_bswap32(magic);
  auto get = [&](size_t at) { return isSwapped ? __builtin_bswap32(words[at]) : words[at]; };
  bool declares = false;
  // Capabilities come first.
  for (size_t at = 5; at + 1 < words.size() && get(at) == capability; at += 2)
    declares |= get(at + 1) == cooperativeMatrix;
  std::vector<uint32_t> unused;
  return declares &&
         !spvtools::SpirvTools(environment).Assemble("OpCapability CooperativeMatrixKHR", &unused);
}

Validity spv::validate(std::span<const uint32_t> words, const std::string &environment) {
  spv_target_env parsed;
  if (!spvParseTargetEnv(environment.c_str(), &parsed))
    return {false, "the validator knows no environment " + environment};
  spvtools::SpirvTools tools(parsed);
  if (isBeyond(words, parsed))
    return {std::nullopt, "this SPIRV-Tools is from before cooperative matrices"};
  std::string problems;
  tools.SetMessageConsumer(
      [&](spv_message_level_t, const char *, const spv_position_t &, const char *message) {
        problems += problems.empty() ? "" : "\n";
        problems += message;
      });
  if (tools.Validate(words.data(), words.size()))
    return {true, ""};
  return {false, problems.empty() ? "the validator refuses it" : problems};
}

#endif

//===- Shaders.h - Claims on other people's compute shaders -----*- C++ -*-===//
//
// Checks a SPIR-V module by itself, without a plan: what can be proved of its code is proved; of
// the rest the simulator looks for a counterexample on a few made-up contents of the buffers.
// docs/shaders.md has the rules.
//
//===----------------------------------------------------------------------===//

#ifndef WEIR_SHADERS_SHADERS_H
#define WEIR_SHADERS_SHADERS_H

#include "weir/SpirvReader/Pipeline.h"

#include <array>
#include <map>
#include <span>
#include <string>
#include <vector>

namespace weir {

struct ShaderOptions {
  std::array<int64_t, 3> workgroups = {1, 1, 1};
  std::string entry; ///< empty: the only one
  std::vector<spv::Specialization> constants;
  std::map<spv::DescriptorSlot, int64_t> sizes; ///< bytes of buffers
};

struct ShaderClaim {
  enum class Answer { Proved, Refuted, Unknown } answer = Answer::Unknown;
  std::string what;    ///< "races", "barriers", "bounds" or "initialized"
  std::string subject; ///< "buffer 0.1 (out)", "workgroup memory", "barriers"
  std::string detail;  ///< Refuted: a counterexample; Unknown: the reason
};

struct ShaderReport {
  std::string entry;
  std::array<int64_t, 3> workgroupSize = {1, 1, 1};
  std::vector<ShaderClaim> claims;
};

/// Checks an entry point. Errors: `Error` when the words are no SPIR-V module, there is no such
/// entry, or a size or constant is of none of its buffers or constants.
ShaderReport checkShader(std::span<const uint32_t> words, const ShaderOptions &options,
                         const std::string &where);

} // namespace weir

#endif // WEIR_SHADERS_SHADERS_H

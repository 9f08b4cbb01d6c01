//===- Validity.h - SPIR-V as its environment takes it ----------*- C++ -*-===//
//
// Khronos' validator, SPIRV-Tools. The reader follows what a module does and takes words that no
// driver would.
//
//===----------------------------------------------------------------------===//

#ifndef WEIR_DEVICE_VALIDITY_H
#define WEIR_DEVICE_VALIDITY_H

#include <cstdint>
#include <optional>
#include <span>
#include <string>

namespace weir::spv {

struct Validity {
  std::optional<bool> isValid; ///< none if the validator cannot say
  std::string detail;          ///< if it is not valid: its sentences; if nobody can say: why
};

/// Returns whether words are a module that an environment takes, such as "vulkan1.3" (the
/// `api` of a profile). Accepts hostile input. Nobody can say if this program was built without
/// SPIRV-Tools, or with one from before 2023.3 and the module has cooperative matrices.
Validity validate(std::span<const uint32_t> words, const std::string &environment);

} // namespace weir::spv

#endif // WEIR_DEVICE_VALIDITY_H

//===- Pipeline.h - Other people's SPIR-V as the reader follows it *- C++ -*-===//
//
// Rewrites the words of a module for one pipeline, so that `Module` and what is built on it can
// follow them. Accepts any words: what it does not understand stays as it is.
//
//===----------------------------------------------------------------------===//

#ifndef WEIR_SPIRVREADER_PIPELINE_H
#define WEIR_SPIRVREADER_PIPELINE_H

#include "weir/SpirvReader/Module.h"

#include <compare>

namespace weir::spv {

/// Set and binding of a descriptor.
struct DescriptorSlot {
  uint32_t set = 0, binding = 0;
  auto operator<=>(const DescriptorSlot &) const = default;
};

/// The value of a specialization constant.
struct Specialization {
  uint32_t id = 0;   ///< its SpecId
  uint64_t bits = 0; ///< the constant's bits, low ones first; a Bool is true unless 0
};

/// Facts on a buffer by its declarations, whatever the code does.
struct DeclaredBuffer {
  std::string name;       ///< of the variable, or else of its block; "" if neither has one
  bool isArray = false;   ///< whether it is an array of descriptors
  bool isUniform = false; ///< whether it is a uniform buffer, which nothing writes
  bool mayRead = false, mayWrite = false;
};

/// A module with the constants and descriptors of one pipeline.
struct PipelineModule {
  std::vector<uint32_t> words;
  bool isWhole = false;              ///< whether the words are instructions up to their end
  std::vector<DescriptorSlot> slots; ///< by binding of `words`
  std::map<uint32_t, DeclaredBuffer> buffers; ///< storage and uniform buffers by binding
  std::set<uint32_t> capabilities;
  std::set<uint32_t> specIds;  ///< of its specialization constants
  bool asksForLengths = false; ///< whether it has OpArrayLength
};

/// Rewrites a module for a pipeline. Specialization constants, and what is computed from them,
/// become constants; a workgroup size set by a constant becomes an execution mode; descriptors of
/// all sets become bindings of set 0, numbered by (set, binding). Instructions that say nothing on
/// what the code does are dropped. Words keep their places.
PipelineModule specialize(std::span<const uint32_t> words,
                          const std::vector<Specialization> &constants);

/// Makes uniform buffers and push constants storage buffers, which the simulator has alone. Push
/// constants get `pushBinding` of set 0. Returns whether there are any.
bool makeStorageBuffers(std::vector<uint32_t> &words, uint32_t pushBinding);

/// Replaces OpArrayLength by the number, for buffers whose bytes are given by binding.
std::vector<uint32_t> setLengths(std::span<const uint32_t> words,
                                 const std::map<uint32_t, int64_t> &bytes);

/// Returns the words of a module with the blocks of functions in place of their calls, as far as
/// that keeps control flow structured: of functions that return once, at their end. Errors: as
/// `Module`'s.
std::vector<uint32_t> inlineCalls(std::span<const uint32_t> words, const std::string &where);

/// Returns the words of a module without the variables of its functions that hold a scalar or
/// vector and are only loaded and stored as a whole: values and phis take their place. Compilers of
/// GLSL leave that to the driver. Needs: `module` was read from `words`.
std::vector<uint32_t> promoteVariables(const Module &module, std::span<const uint32_t> words);

} // namespace weir::spv

#endif // WEIR_SPIRVREADER_PIPELINE_H

//===- Integers.h - Results of integer instructions -------------*- C++ -*-===//

#ifndef WEIR_SPIRVREADER_INTEGERS_H
#define WEIR_SPIRVREADER_INTEGERS_H

#include "weir/SpirvReader/Opcodes.h"

#include <optional>

namespace weir::spv {

/// Returns the low `width` bits as a signed number.
inline int64_t extend(uint64_t bits, uint32_t width) {
  return int64_t(bits << (64 - width)) >> (64 - width);
}

/// Returns the low `width` bits.
inline uint64_t cut(uint64_t bits, uint32_t width) {
  return width >= 64 ? bits : bits & ((uint64_t(1) << width) - 1);
}

/// Returns the result of an operation on `width`-bit integers, not yet cut to its width; none if it
/// is undefined or not modelled.
std::optional<uint64_t> computeBinary(Op op, uint64_t a, uint64_t b, uint32_t width);
std::optional<uint64_t> computeGlsl(Glsl function, uint64_t a, uint64_t b, uint32_t width);

} // namespace weir::spv

#endif // WEIR_SPIRVREADER_INTEGERS_H

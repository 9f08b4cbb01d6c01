//===- Words.h - Kernels in words of 32 bits --------------------*- C++ -*-===//

#ifndef WEIR_NUMERICS_WORDS_H
#define WEIR_NUMERICS_WORDS_H

#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "weir/Artifact/Profile.h"

namespace weir {

/// The integers that a target lacks, in memory and in arithmetic. f16 and bf16 count as i16.
struct LackingIntegers {
  explicit LackingIntegers(const Profile &profile)
      : has8(profile.storage8), has16(profile.storage16), has64(profile.int64) {}

  bool has8, has16, has64;

  bool hasAll() const { return has8 && has16 && has64; }
  /// Whether elements of memory, or those of its vectors, are smaller than a word, and lack.
  bool isShort(mlir::Type type) const;
  /// Whether they are integers of 64 bits, and lack.
  bool isWide(mlir::Type type) const;
};

/// Memory of short elements: several in a word, the first in the lowest bits as in bytes, or each
/// in the lowest bits of a word of its own.
enum class WordForm { Packed, Apart };

/// Whether every store of the kernel to this argument, of short elements, writes whole words.
bool storesWholeWords(mlir::gpu::GPUFuncOp kernel, unsigned argument);

/// Rewrites loads and stores of a kernel to words of 32 bits, then all integers that the target
/// lacks: short ones become words without bits above theirs, wide ones pairs of words.
///
/// Shapes: `forms` has one form for each argument; those of elements that are not short are
///         ignored. Stores to a packed one must be of whole words: `storesWholeWords`.
/// Errors: failure, with a diagnostic for each op that has no form in words.
mlir::LogicalResult storeInWords(mlir::gpu::GPUFuncOp kernel, llvm::ArrayRef<WordForm> forms,
                                 const LackingIntegers &lacking);

} // namespace weir

#endif // WEIR_NUMERICS_WORDS_H

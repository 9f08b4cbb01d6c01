//===- Tensors.h - A run's inputs, and its results judged -------*- C++ -*-===//

#ifndef WEIR_TOOLS_WEIR_TENSORS_H
#define WEIR_TOOLS_WEIR_TENSORS_H

#include "weir/Artifact/Artifact.h"

#include <optional>

namespace weir::tool {

/// "F32 2x3".
std::string describe(const TensorSpec &spec);

/// Returns the entry's arguments, in its order: from the files `paths`, and,
/// with a seed, random ones for those that no file has. `widen` lets an F32
/// argument come as F64.
/// Errors: `Problems`, a sentence for every argument that is missing, of the
///         wrong shape or dtype or given twice, and every tensor that is no
///         argument; `Error` on a file that cannot be read.
std::vector<Tensor> gatherInputs(const EntrySpec &entry, const std::vector<std::string> &paths,
                                 std::optional<uint64_t> seed, bool widen);

/// A tensor of values that depend on the seed, the name and the place alone, by
/// splitmix64: floats are sums of four uniform numbers, of mean 0 and variance
/// 1; integers and booleans are 0 or 1.
/// Errors: `Error` on other dtypes.
Tensor makeRandom(const TensorSpec &spec, uint64_t seed);

/// How a result differs from what is expected.
struct Comparison {
  double largestError = 0;  ///< of any element; infinite where only one is finite
  double relativeError = 0; ///< over the largest finite |expected|, unless all are 0
  bool passes = true;
  std::string reason; ///< of a comparison that doesn't pass
};

/// Floats pass when every |result - expected| is at most `tolerance` times the
/// largest finite |expected| of the tensor (times 1 where all are 0), NaNs are
/// at the same places and infinities are equal. Integers must be equal.
/// Both have the same shape; floats may differ in width.
Comparison compare(const Tensor &result, const Tensor &expected, double tolerance);

/// Returns for each result its expected tensor from the file.
/// Errors: `Problems`, a sentence for every result that the file lacks or has
///         with another shape or kind of element, and every tensor that is no
///         result.
std::vector<Tensor> readExpected(const std::string &path, const std::string &entry,
                                 const std::vector<TensorSpec> &results);

} // namespace weir::tool

#endif // WEIR_TOOLS_WEIR_TENSORS_H

//===- Tensors.h - A run's inputs, and its results judged -------*- C++ -*-===//

#ifndef WEIR_TOOLS_WEIR_TENSORS_H
#define WEIR_TOOLS_WEIR_TENSORS_H

#include "weir/Artifact/Artifact.h"

#include <optional>

namespace weir::tool {

/// "F32 2x3".
std::string describe(const TensorSpec &spec);

/// "'x', 'y'"; "none" where there are none.
std::string listNames(const std::vector<TensorSpec> &specs);

/// Where arguments come from.
struct InputOptions {
  std::vector<std::string> files;    ///< "A.safetensors", or "NAME=FILE.npy" of one argument
  std::vector<std::string> settings; ///< "NAME=NUMBER" of an argument of rank 0
  std::optional<uint64_t> seed = {}; ///< of random values for all others
  bool widen = false;                ///< an F32 argument may come as F64
  /// Whether an argument of kind state that is not given is 0, with a seed, too.
  bool zeroState = false;
};

/// Returns the entry's arguments, in its order.
/// Errors: `Problems`, a sentence for every argument that is missing, of the
///         wrong shape or dtype or given twice, and everything that is no
///         argument; `Error` on a file that cannot be read.
std::vector<Tensor> gatherInputs(const EntrySpec &entry, const InputOptions &options);

/// The files of a folder, each with the arguments of one step.
class Batches {
public:
  /// Reads and checks all files X.safetensors of `folder`; they are steps in the order of
  /// their names, and start again after the last.
  /// Errors: `Error` where there is none or one cannot be read; `Problems`, as of
  ///         `gatherInputs`, and where a file lacks an argument of the first, or has one
  ///         that a step's result is for the next.
  Batches(const std::string &folder, const EntrySpec &entry, bool widen);

  size_t size() const { return files.size(); }
  const std::string &getFirst() const { return files.front(); }

  /// Returns the arguments of a step, counted from 0: their indices and values.
  std::vector<std::pair<size_t, Tensor>> read(size_t step) const;

private:
  EntrySpec entry;
  bool widen;
  std::vector<std::string> files;
};

/// Returns the elements as text, as many as tell values of this type apart.
std::vector<std::string> printElements(const Tensor &tensor);

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

//===- Tensors.h - A run's inputs, and its results judged -------*- C++ -*-===//

#ifndef WEIR_TOOLS_WEIR_TENSORS_H
#define WEIR_TOOLS_WEIR_TENSORS_H

#include "weir/Artifact/Artifact.h"

#include <optional>

namespace weir::tool {

/// Returns "F32 2x3".
std::string describe(const TensorSpec &spec);

/// Returns "'x', 'y'", or "none" if there are none.
std::string listNames(const std::vector<TensorSpec> &specs);

/// Sources of arguments.
struct InputOptions {
  std::vector<std::string> files;    ///< "A.safetensors", or "NAME=FILE.npy" for one argument
  std::vector<std::string> settings; ///< "NAME=NUMBER" for an argument of rank 0
  std::optional<uint64_t> seed = {}; ///< if set, all others are random with this seed
  bool widen = false;                ///< accept F64 values for F32 arguments
  /// Whether an argument of kind state that is not given has its value from before the first
  /// step, even with a seed: 0, where the artifact names no other.
  bool startState = false;
};

/// Returns the entry's arguments, in its order. Errors: `Problems` with a sentence for every
/// argument that is missing, has the wrong shape or dtype or is given twice, and for every
/// tensor that is not an argument; `Error` on a file that cannot be read.
std::vector<Tensor> gatherInputs(const EntrySpec &entry, const InputOptions &options);

/// A folder of files, each with the arguments of one step.
class Batches {
public:
  /// Reads and checks all files X.safetensors of `folder`. They are the steps in the order of
  /// their names, starting again after the last. Errors: `Error` when there is none or one
  /// cannot be read; `Problems` as `gatherInputs`, and when a file lacks an argument of the
  /// first file, or has one that is a result of the step before.
  Batches(const std::string &folder, const EntrySpec &entry, bool widen);

  size_t size() const { return files.size(); }
  const std::string &getFirst() const { return files.front(); }

  /// Returns the arguments of a step, counted from 0, as (index, value).
  std::vector<std::pair<size_t, Tensor>> read(size_t step) const;

private:
  EntrySpec entry;
  bool widen;
  std::vector<std::string> files;
};

/// Returns the elements as text, with enough digits to distinguish values of this type.
std::vector<std::string> printElements(const Tensor &tensor);

/// Returns a tensor of random values that depend only on the seed, the name and the index, by
/// splitmix64: floats are sums of four uniform numbers, with mean 0 and variance 1; integers
/// and booleans are 0 or 1.
/// Errors: `Error` on other dtypes.
Tensor makeRandom(const TensorSpec &spec, uint64_t seed);

/// The difference of a result from its expected tensor.
struct Comparison {
  double largestError = 0;  ///< max over all elements; infinite if only one of two is finite
  double relativeError = 0; ///< divided by the largest finite |expected|, unless all are 0
  bool passes = true;
  std::string reason; ///< why the comparison fails; else empty
};

/// Compares two tensors. Floats pass if every |result - expected| is at most `tolerance` times
/// the largest finite |expected| of the tensor (times 1 where all are 0), NaNs are at the same
/// places and infinities are equal. Integers must be equal. Both have the same shape; floats
/// may differ in width.
Comparison compare(const Tensor &result, const Tensor &expected, double tolerance);

/// Compares a tensor with the reference in the graph's types, `written`, and in f64, `wide`. A
/// float fails if its distance from `wide` exceeds both `tolerance` times the tensor's largest
/// magnitude and eight times the error of `written`: if terms cancel, any order of summation has
/// an error.
Comparison compareWithReference(const Tensor &result, const Tensor &written, const Tensor &wide,
                                double tolerance);

/// Returns the expected tensor of each result from the file. Errors: `Problems` with a sentence
/// for every result that the file lacks or has with another shape or kind of element, and for
/// every tensor that is not a result.
std::vector<Tensor> readExpected(const std::string &path, const std::string &entry,
                                 const std::vector<TensorSpec> &results);

} // namespace weir::tool

#endif // WEIR_TOOLS_WEIR_TENSORS_H

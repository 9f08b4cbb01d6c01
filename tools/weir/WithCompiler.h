//===- WithCompiler.h - What verbs need the compiler for --------*- C++ -*-===//
//
// `weir` has the compiler; `weir-device`, which runs what others compiled, has not,
// nor LLVM: there these functions say so.
//
//===----------------------------------------------------------------------===//

#ifndef WEIR_TOOLS_WEIR_WITHCOMPILER_H
#define WEIR_TOOLS_WEIR_WITHCOMPILER_H

#include "Tensors.h"
#include "Verbs.h"

namespace weir::tool {

/// Adds the verbs that compile; has the compiler's crashes reported as the tool's.
void addCompilerVerbs(CLI::App &app, Verb &chosen);

/// Runs an entry of a graph on the host. Errors: `Error`; `Problems` of the text.
std::vector<Tensor> runGraph(const std::string &text, const std::string &entry,
                             const std::vector<Tensor> &inputs, bool float64);

/// What a graph's kernels make, by the reference.
struct ReferenceValues {
  std::vector<Tensor> written; ///< in the types of the graph
  std::vector<Tensor> wide;    ///< in f64
};

/// Runs an entry of a graph on the host for its results and, behind them, the values
/// that its kernels for a profile make (see `exposeValues`).
/// Errors: `Error`; `Problems` of the text.
ReferenceValues runValues(const std::string &text, const std::string &entry, const Profile &profile,
                          const std::vector<Tensor> &inputs);

/// Compiles the graph in file `input` for a profile to the artifact `output`.
void compileFor(const Profile &profile, const std::string &input, const std::string &output);

} // namespace weir::tool

#endif // WEIR_TOOLS_WEIR_WITHCOMPILER_H

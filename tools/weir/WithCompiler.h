//===- WithCompiler.h - Calls of the compiler -------------------*- C++ -*-===//
//
// The functions that need the compiler. `weir` links it; `weir-device`, which only runs
// artifacts, has neither compiler nor LLVM: there these functions refuse.
//
//===----------------------------------------------------------------------===//

#ifndef WEIR_TOOLS_WEIR_WITHCOMPILER_H
#define WEIR_TOOLS_WEIR_WITHCOMPILER_H

#include "Tensors.h"
#include "Verbs.h"
#include "driver/Compiler/Exposed.h"

#include <functional>

namespace weir::tool {

/// Adds the verbs that compile, and reports the compiler's crashes as internal errors of the
/// tool.
void addCompilerVerbs(CLI::App &app, Verb &chosen);

/// Refuses `what` where there is no compiler. Errors: `Error`.
void requireCompiler(const std::string &what);

/// Runs an entry of a graph on the host. Errors: `Error`; `Problems` of the text.
std::vector<Tensor> runGraph(const std::string &text, const std::string &entry,
                             const std::vector<Tensor> &inputs, bool float64);

/// Values of a graph by the reference.
struct ReferenceValues {
  std::vector<Tensor> written; ///< in the graph's types
  std::vector<Tensor> wide;    ///< in f64
};

/// Returns a function that runs an entry of a graph on the host, for which it compiles it once.
/// Errors of both: `Error`; `Problems` of the text.
std::function<ReferenceValues(const std::vector<Tensor> &)> makeReference(const std::string &text,
                                                                          const std::string &entry);

/// Returns the functions of an entry, with the values that their kernels for a profile make (see
/// `exposeValues`). Errors: `Error`; `Problems` of the text.
ExposedGraph exposeGraph(const std::string &text, const std::string &entry, const Profile &profile);

/// Returns the types of a function's results. Errors: `Error`.
std::vector<TensorSpec> getFunctionTypes(const std::string &text, const std::string &function);

/// Returns the instructions of the kernels in an artifact's code for processors, as text.
/// Errors: `Error`.
std::string disassemble(const Bytes &code);

/// Compiles the graph in file `input` for a profile to the artifact `output`.
void compileFor(const Profile &profile, const std::string &input, const std::string &output);

} // namespace weir::tool

#endif // WEIR_TOOLS_WEIR_WITHCOMPILER_H

//===- Compiler.h - The pipelines as a library ------------------*- C++ -*-===//
//
// No LLVM or MLIR header is included here: the tools need none.
//
//===----------------------------------------------------------------------===//

#ifndef WEIR_COMPILER_COMPILER_H
#define WEIR_COMPILER_COMPILER_H

#include "weir/Artifact/Error.h"

#include <string>
#include <vector>

namespace weir {

struct CompileOptions {
  std::string input;                 ///< path of the .mlir; "-" is standard input
  std::string output;                ///< path of the .weir, or of the .mlir with `stopAfter`
  std::vector<std::string> targets = {"vulkan"}; ///< "vulkan", "vulkan:PROFILE"
  std::vector<std::string> entries;  ///< empty: every public function
  std::string startFrom = "graph";
  std::string stopAfter;             ///< empty: write an artifact
  std::string saveLevels;            ///< folder for LEVEL.mlir files; empty: none
  bool noReuse = false;
};

/// Problems found in the input, each one sentence with a location.
class CompileError : public Error {
public:
  explicit CompileError(std::vector<std::string> problems);
  std::vector<std::string> problems;
};

/// Compiles. Writes the output only when everything went well.
/// Errors: `CompileError` for problems of the input, `Error` for the rest.
void compile(const CompileOptions &options);

/// The names of the levels, in order.
std::vector<std::string> getLevelNames();

} // namespace weir

#endif // WEIR_COMPILER_COMPILER_H

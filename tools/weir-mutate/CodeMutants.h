//===- CodeMutants.h - Kernels with one instruction changed -----*- C++ -*-===//

#ifndef WEIR_TOOLS_WEIR_MUTATE_CODEMUTANTS_H
#define WEIR_TOOLS_WEIR_MUTATE_CODEMUTANTS_H

#include "weir/Artifact/Artifact.h"

#include <functional>
#include <string>
#include <vector>

namespace weir::mutate {

struct CodeChange {
  std::string kind;            ///< "drop-code-barrier"
  std::vector<size_t> numbers; ///< the instruction's, among those of its kind
  std::string what;            ///< a sentence about the change
  std::function<void(Bytes &)> apply;
};

/// Returns all changes of a kernel's code. Errors: `Error` when the code is not read.
std::vector<CodeChange> listCodeChanges(const Kernel &kernel, const Bytes &code);

std::vector<CodeChange> listSpirvChanges(const Kernel &kernel, const Bytes &code);
std::vector<CodeChange> listPtxChanges(const Kernel &kernel, const Bytes &code);

} // namespace weir::mutate

#endif // WEIR_TOOLS_WEIR_MUTATE_CODEMUTANTS_H

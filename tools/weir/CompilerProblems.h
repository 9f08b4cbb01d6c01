//===- CompilerProblems.h - The compiler's problems as the tool's -*- C++ -*-===//

#ifndef WEIR_TOOLS_WEIR_COMPILERPROBLEMS_H
#define WEIR_TOOLS_WEIR_COMPILERPROBLEMS_H

#include "Verbs.h"
#include "driver/Compiler/Compiler.h"

namespace weir::tool {

/// Calls `function`; each problem that the compiler reports becomes a line.
template <typename Function> auto reportProblems(Function function) {
  try {
    return function();
  } catch (const CompileError &error) {
    throw Problems(error.problems);
  }
}

} // namespace weir::tool

#endif // WEIR_TOOLS_WEIR_COMPILERPROBLEMS_H

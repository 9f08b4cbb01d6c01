//===- Pareto.h - Files of bytes against work -------------------*- C++ -*-===//

#ifndef WEIR_TOOLS_WEIR_PARETO_H
#define WEIR_TOOLS_WEIR_PARETO_H

#include "driver/Compiler/Compiler.h"

namespace weir::tool {

/// Checks that `writePareto` can write to `path` without losing one of the other files.
/// Errors: `Error` that names --pareto.
void checkPareto(const std::string &path, const std::vector<std::string> &others);

/// Writes the curves to `path`, FILE.json, and a picture of them to FILE.svg.
/// Errors: `Error`.
void writePareto(const std::string &path, const std::vector<MemoryCurve> &curves);

} // namespace weir::tool

#endif // WEIR_TOOLS_WEIR_PARETO_H

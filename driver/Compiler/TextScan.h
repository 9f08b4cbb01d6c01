//===- TextScan.h - Texts that break the parser -----------------*- C++ -*-===//

#ifndef WEIR_DRIVER_COMPILER_TEXTSCAN_H
#define WEIR_DRIVER_COMPILER_TEXTSCAN_H

#include <optional>
#include <string>
#include <string_view>

namespace weir {

/// Looks for text on which MLIR's parser crashes or hangs, or that it echoes: brackets nested
/// deeper than 1,000, more than 1,000 signs in a row, operators in an expression or dimensions of a
/// shape, names of attributes that stand for more than 1,000,000 of them, a line of 1 MiB or more
/// outside of string literals, control bytes, iterator types that are no strings, dimensions that
/// are no integers, names that a region uses and only one beside it defines. Returns one sentence
/// with `where`, line and column, or nothing. Linear in the text; strings and comments are skipped.
std::optional<std::string> scanText(std::string_view text, const std::string &where);

} // namespace weir

#endif // WEIR_DRIVER_COMPILER_TEXTSCAN_H

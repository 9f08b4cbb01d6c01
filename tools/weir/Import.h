//===- Import.h - Models of other formats ---------------------------------===//
//
// Turns ONNX models, StableHLO and PyTorch's exported programs into graphs, by
// the Python package `weir`, whose front ends know these formats.
//
//===----------------------------------------------------------------------===//

#ifndef WEIR_TOOLS_WEIR_IMPORT_H
#define WEIR_TOOLS_WEIR_IMPORT_H

#include <string>
#include <vector>

namespace weir::tool {

/// Options of `weir compile` for models of other formats.
struct ImportOptions {
  std::vector<std::string> shapes; // NAME=SIZE,SIZE... or NAME=SIZE, for ONNX
  std::string parameters;          // the file for the model's parameters; none by default
};

/// Returns whether `path` names a model that is no graph yet: *.onnx, *.pt2, *.stablehlo.mlir.
bool isModel(const std::string &path);

/// Writes the graph of the model `input` to `output`, by `python -m weir.importing`.
///
/// The interpreter is the one that the environment variable WEIR_PYTHON names, or that of the
/// checkout which this program was built in, or python3 of PATH.
/// Errors: Error if there is no such interpreter, or with what it says.
void importModel(const std::string &input, const std::string &output, const ImportOptions &options);

} // namespace weir::tool

#endif // WEIR_TOOLS_WEIR_IMPORT_H

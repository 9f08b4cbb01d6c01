//===- FileKind.h - The kind of a file, by its content ----------*- C++ -*-===//

#ifndef WEIR_ARTIFACT_FILEKIND_H
#define WEIR_ARTIFACT_FILEKIND_H

#include <string>
#include <string_view>

namespace weir {

/// The kinds of files that users may pass to Weir by mistake or on purpose.
enum class FileKind {
  Unknown,
  Empty,
  Artifact,    ///< a ZIP that begins as Weir writes it
  PyTorch,     ///< weights, TorchScript or an exported program: a ZIP or a pickle
  OtherZip,    ///< any other ZIP
  Bytecode,    ///< MLIR bytecode
  StableHlo,   ///< StableHLO's portable MLIR bytecode
  Onnx,        ///< an ONNX model
  MlirText,    ///< MLIR text, recognised by a few keywords
  Safetensors, ///< tensors
  Npy          ///< an array of NumPy
};

/// Returns the kind of the file that starts with `beginning`; 64 KiB are enough.
FileKind findFileKind(std::string_view beginning);

/// Returns the end of an error about a file that should be an artifact, such as "it is MLIR
/// text; compile it first: weir compile g.mlir -o X.weir". Returns "" for an artifact or an
/// unknown kind.
std::string describeNoArtifact(FileKind kind, const std::string &path);

/// Returns the same for a file that should be a graph as MLIR text, "" for such a text.
std::string describeNoGraph(FileKind kind, const std::string &path);

/// Returns the same for a file that should be safetensors, "" for such a file.
std::string describeNoTensors(FileKind kind);

} // namespace weir

#endif // WEIR_ARTIFACT_FILEKIND_H

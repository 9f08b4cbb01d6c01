//===- FileKind.h - What a file is, by its content --------------*- C++ -*-===//

#ifndef WEIR_ARTIFACT_FILEKIND_H
#define WEIR_ARTIFACT_FILEKIND_H

#include <string>
#include <string_view>

namespace weir {

/// The kinds of files that users of Weir have at hand.
enum class FileKind {
  Unknown,
  Empty,
  Artifact,    ///< a ZIP that begins as Weir writes it
  PyTorch,     ///< weights, TorchScript or an exported program: a ZIP or a pickle
  OtherZip,    ///< any other ZIP
  Bytecode,    ///< MLIR bytecode
  StableHlo,   ///< StableHLO's portable MLIR bytecode
  Onnx,        ///< an ONNX model
  MlirText,    ///< MLIR as text, by a few words of it
  Safetensors, ///< tensors
  Npy          ///< an array of NumPy
};

/// Returns the kind of a file by its beginning; 64 KiB are enough.
FileKind findFileKind(std::string_view beginning);

/// Returns the end of a sentence on a file that was to be an artifact, such as "it is MLIR
/// text; compile it first: weir compile g.mlir -o X.weir", or "" for an artifact and where
/// the kind is not known.
std::string describeNoArtifact(FileKind kind, const std::string &path);

/// Returns the same on a file that was to be a graph as MLIR text, or "" for such a text.
std::string describeNoGraph(FileKind kind, const std::string &path);

/// Returns the same on a file that was to be safetensors, or "" for such a file.
std::string describeNoTensors(FileKind kind);

} // namespace weir

#endif // WEIR_ARTIFACT_FILEKIND_H

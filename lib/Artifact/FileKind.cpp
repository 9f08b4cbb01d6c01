//===- FileKind.cpp - The kind of a file, by its content ------------------===//

#include "weir/Artifact/FileKind.h"

#include <algorithm>
#include <cstdint>

using namespace weir;

/// Returns the name of the first file of a ZIP, "" if it is cut off.
static std::string_view getFirstName(std::string_view zip) {
  constexpr size_t lengthAt = 26, nameAt = 30; // APPNOTE 4.3.7
  if (zip.size() < nameAt)
    return "";
  size_t length = uint8_t(zip[lengthAt]) | size_t(uint8_t(zip[lengthAt + 1])) << 8;
  return length > zip.size() - nameAt ? "" : zip.substr(nameAt, length);
}

static FileKind findZipKind(std::string_view zip) {
  std::string_view name = getFirstName(zip);
  for (std::string_view folder : {"code/", "ir/", "plan/"})
    if (name.starts_with(folder))
      return FileKind::Artifact;
  if (name == "manifest.json")
    return FileKind::Artifact;
  // torch.save, torch.jit.save and torch.export.save write a folder named like the file, and
  // one of these first in it.
  std::string_view inside = name.substr(std::min(name.find('/'), name.size()));
  if (inside.starts_with("/data/") || inside == "/data.pkl" || inside == "/archive_format")
    return FileKind::PyTorch;
  return FileKind::OtherZip;
}

/// Reads a varint of protobuf's wire format. Returns false if it is cut off or too long.
static bool readVarint(std::string_view &bytes, uint64_t &value) {
  value = 0;
  for (int shift = 0; shift < 64 && !bytes.empty(); shift += 7) {
    uint8_t byte = uint8_t(bytes.front());
    bytes.remove_prefix(1);
    value |= uint64_t(byte & 0x7f) << shift;
    if (byte < 0x80)
      return true;
  }
  return false;
}

/// Whether `bytes` begin as an onnx.ModelProto: IR version, producer, and then the graph.
/// Fields are written in the order of their numbers.
static bool isOnnx(std::string_view bytes) {
  enum WireType { Varint = 0, Length = 2 };
  enum Field { IrVersion = 1, ModelVersion = 5, Graph = 7 };
  for (uint64_t last = 0;;) {
    uint64_t tag = 0, value = 0;
    if (!readVarint(bytes, tag) || !readVarint(bytes, value))
      return false;
    uint64_t field = tag >> 3;
    if (field <= last || (last == 0 && (field != IrVersion || value == 0 || value > 1000)))
      return false;
    bool isNumber = field == IrVersion || field == ModelVersion;
    if (field > Graph || (tag & 7) != uint64_t(isNumber ? Varint : Length))
      return false;
    if (field == Graph)
      return value > 0;
    if (!isNumber && value > bytes.size())
      return false;
    if (!isNumber)
      bytes.remove_prefix(value);
    last = field;
  }
}

static bool isMlirText(std::string_view text) {
  if (text.find('\0') != text.npos)
    return false;
  for (std::string_view word : {"func.func", "builtin.module", "module {", "module @", "tensor<"})
    if (text.find(word) != text.npos)
      return true;
  return false;
}

FileKind weir::findFileKind(std::string_view beginning) {
  using namespace std::string_view_literals;
  constexpr size_t enough = 1 << 16;
  beginning = beginning.substr(0, enough);
  if (beginning.empty())
    return FileKind::Empty;
  if (beginning.starts_with("PK\3\4"sv))
    return findZipKind(beginning);
  if (beginning.starts_with("ML\xEFR"sv)) // then a version and who produced it
    return beginning.substr(0, 100).find("StableHLO_v") != beginning.npos ? FileKind::StableHlo
                                                                          : FileKind::Bytecode;
  if (beginning.starts_with("\x93NUMPY"sv))
    return FileKind::Npy;
  if (beginning.starts_with("\x80\x02\x8A\x0A"sv)) // a pickle of a long number, torch's magic
    return FileKind::PyTorch;
  if (beginning.size() > 9 && beginning[8] == '{' && (beginning[9] == '"' || beginning[9] == '}'))
    return FileKind::Safetensors;
  if (isOnnx(beginning))
    return FileKind::Onnx;
  return isMlirText(beginning) ? FileKind::MlirText : FileKind::Unknown;
}

std::string weir::describeNoArtifact(FileKind kind, const std::string &path) {
  std::string notCompiled = ", which is not compiled; see docs/front-ends.md";
  switch (kind) {
  case FileKind::Unknown:
  case FileKind::Artifact:
    return "";
  case FileKind::Empty:
    return "it is empty; compile it again";
  case FileKind::PyTorch:
    return "it is a file of PyTorch" + notCompiled;
  case FileKind::OtherZip:
    return "it is a ZIP that Weir did not write; name a file that weir compile wrote";
  case FileKind::Bytecode:
  case FileKind::StableHlo:
    return "it is MLIR bytecode" + notCompiled;
  case FileKind::Onnx:
    return "it is an ONNX model" + notCompiled;
  case FileKind::MlirText:
    return "it is MLIR text; compile it first: weir compile " + path + " -o X.weir";
  case FileKind::Safetensors:
    return "it holds tensors, which --input takes; name a file that weir compile wrote";
  case FileKind::Npy:
    return "it is an array of NumPy, which --input=NAME=FILE takes; name a file that weir compile "
           "wrote";
  }
  return "";
}

std::string weir::describeNoGraph(FileKind kind, const std::string &path) {
  switch (kind) {
  case FileKind::Unknown:
  case FileKind::Empty:
  case FileKind::MlirText:
    return "";
  case FileKind::Artifact:
    return "is an artifact, compiled already; run it with weir run, or compile the graph that it "
           "was made of";
  case FileKind::PyTorch:
    return "is a file of PyTorch; make a graph of the module with weir.torch: see docs/pytorch.md";
  case FileKind::OtherZip:
    return "is a ZIP; name an .mlir file";
  case FileKind::Bytecode:
    return "is MLIR bytecode; make text of it: mlir-opt " + path + " -o OUT.mlir";
  case FileKind::StableHlo:
    return "is StableHLO as bytecode; make text of it and lower it to linalg: see "
           "docs/front-ends.md";
  case FileKind::Onnx:
    return "is an ONNX model; make a graph of it with torch-mlir's importer: see "
           "docs/front-ends.md";
  case FileKind::Safetensors:
  case FileKind::Npy:
    return "holds tensors, not a graph; name an .mlir file";
  }
  return "";
}

std::string weir::describeNoTensors(FileKind kind) {
  switch (kind) {
  case FileKind::Unknown:
  case FileKind::Safetensors:
    return "";
  case FileKind::Empty:
    return "is empty; name a safetensors file";
  case FileKind::Artifact:
    return "is an artifact; name a safetensors file";
  case FileKind::PyTorch:
    return "is a file of PyTorch; write its tensors with safetensors.torch.save_file";
  case FileKind::Npy:
    return "is an array of NumPy without a name; give it as --input=NAME=FILE.npy, or write it "
           "with safetensors.numpy.save_file";
  case FileKind::OtherZip:
  case FileKind::Bytecode:
  case FileKind::StableHlo:
  case FileKind::Onnx:
  case FileKind::MlirText:
    return "holds no tensors; name a safetensors file";
  }
  return "";
}

//===- FileKindTest.cpp - Files known by their content --------------------===//

#include "weir/Artifact/FileKind.h"

#include <gtest/gtest.h>

using namespace weir;
using namespace std::string_literals;

/// Returns the beginning of a ZIP whose first file is `name`.
static std::string makeZip(const std::string &name) {
  std::string zip = "PK\3\4" + std::string(22, '\0');
  zip += char(name.size());
  return zip + "\0\0\0"s + name + "content";
}

TEST(FileKind, knows_beginnings) {
  struct Case {
    std::string text;
    FileKind kind;
  };
  const Case cases[] = {
      {"", FileKind::Empty},
      {"hello", FileKind::Unknown},
      {makeZip("code/vulkan/a.spv"), FileKind::Artifact},
      {makeZip("manifest.json"), FileKind::Artifact},
      {makeZip("model/data.pkl"), FileKind::PyTorch},
      {makeZip("model/archive_format"), FileKind::PyTorch},
      {makeZip("model/data/weights/weight_0"), FileKind::PyTorch},
      {makeZip("data.pkl"), FileKind::OtherZip},
      {makeZip("readme.txt"), FileKind::OtherZip},
      {"PK\3\4", FileKind::OtherZip},
      {"ML\xEFR\x0DMLIR22.1.8\0"s, FileKind::Bytecode},
      {"ML\xEFR\x0DStableHLO_v1.9.0\0"s, FileKind::StableHlo},
      {"\x93NUMPY\1\0"s, FileKind::Npy},
      {"\x80\x02\x8A\x0Al\xFC\x9C\x46"s, FileKind::PyTorch},
      {"\x02\0\0\0\0\0\0\0{}"s, FileKind::Safetensors},
      {"// A graph.\nfunc.func @f() { return }\n", FileKind::MlirText},
      {"func.func @f() { return }\n\0"s, FileKind::Unknown},
  };
  for (const Case &c : cases)
    EXPECT_EQ(findFileKind(c.text), c.kind) << c.text;
}

TEST(FileKind, knows_onnx_by_its_fields) {
  // ir_version 8, producer_name "pytorch", producer_version "2", a graph of 300 bytes.
  std::string model = "\x08\x08\x12\x07pytorch\x1A\x01"s + "2\x3A\xAC\x02"s;
  EXPECT_EQ(findFileKind(model + std::string(300, 'x')), FileKind::Onnx);
  EXPECT_EQ(findFileKind("\x08\x07\x3A\x05"s), FileKind::Onnx);
  // Twins: no version, no graph, fields out of order, a wire type that is another.
  EXPECT_EQ(findFileKind("\x12\x07pytorch\x3A\x05"s), FileKind::Unknown);
  EXPECT_EQ(findFileKind("\x08\x08\x12\x07pytorch"s), FileKind::Unknown);
  EXPECT_EQ(findFileKind("\x08\x08\x1A\x01"s + "2\x12\x01"s + "x\x3A\x05"s), FileKind::Unknown);
  EXPECT_EQ(findFileKind("\x08\x08\x38\x05"s), FileKind::Unknown);
  EXPECT_EQ(findFileKind("\x08\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF"s), FileKind::Unknown);
}

TEST(FileKind, any_beginning_of_a_file_has_one) {
  for (const std::string &text :
       {makeZip("model/data.pkl"), "\x08\x08\x12\x07pytorch\x3A\xAC\x02xxxx"s})
    for (size_t size = 0; size <= text.size(); ++size)
      findFileKind(std::string_view(text).substr(0, size));
}

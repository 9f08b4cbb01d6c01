//===- SpirvCheckTest.cpp - Refusals of the check of emitted SPIR-V -------===//
//
// One module, assembled from text, which every case changes in one place.
//
//===----------------------------------------------------------------------===//

#include "weir/Target/Spirv.h"

#include "spirv-tools/libspirv.hpp"
#include "gtest/gtest.h"

using namespace weir;

/// One storage buffer of eight floats.
static const std::string text = R"(
  OpCapability Shader
  OpMemoryModel Logical GLSL450
  OpEntryPoint GLCompute %main "k" %buffer
  OpExecutionMode %main LocalSize 8 1 1
  OpDecorate %array ArrayStride 4
  OpDecorate %struct Block
  OpMemberDecorate %struct 0 Offset 0
  OpDecorate %buffer DescriptorSet 0
  OpDecorate %buffer Binding 0
  %void = OpTypeVoid
  %function = OpTypeFunction %void
  %uint = OpTypeInt 32 0
  %float = OpTypeFloat 32
  %eight = OpConstant %uint 8
  %array = OpTypeArray %float %eight
  %struct = OpTypeStruct %array
  %pointer = OpTypePointer StorageBuffer %struct
  %buffer = OpVariable %pointer StorageBuffer
  %main = OpFunction %void None %function
  %entry = OpLabel
  OpReturn
  OpFunctionEnd
)";

static std::vector<uint32_t> assemble(const std::string &from = "", const std::string &to = "") {
  std::string changed = text;
  if (!from.empty()) {
    size_t at = changed.find(from);
    EXPECT_NE(at, std::string::npos) << from;
    changed.replace(at, from.size(), to);
  }
  std::vector<uint32_t> words;
  EXPECT_TRUE(spvtools::SpirvTools(SPV_ENV_UNIVERSAL_1_5).Assemble(changed, &words));
  return words;
}

static std::string findError(const std::vector<uint32_t> &words,
                             std::vector<int64_t> operandBytes = {32},
                             const Profile &profile = Profile()) {
  return findSpirvError(words, profile, "k", operandBytes).value_or("");
}

TEST(SpirvCheck, TakesWhatIsRight) { EXPECT_EQ(findError(assemble()), ""); }

TEST(SpirvCheck, RefusesWhatTheValidatorRefuses) {
  EXPECT_NE(findError(assemble("OpDecorate %struct Block", "")), "");
  EXPECT_NE(findError({}), "");
  EXPECT_NE(findError({0x07230203}), "");
}

TEST(SpirvCheck, RefusesAnotherEntryPoint) {
  EXPECT_EQ(findError(assemble("\"k\"", "\"other\"")), "the entry point is not called k");
}

TEST(SpirvCheck, RefusesAnotherLength) {
  const char *error = "binding 0 declares 64 bytes, the operand spans 32";
  EXPECT_EQ(findError(assemble("OpConstant %uint 8", "OpConstant %uint 16")), error);
}

TEST(SpirvCheck, RefusesAnotherStride) {
  const char *error = "binding 0 declares 64 bytes, the operand spans 32";
  EXPECT_EQ(findError(assemble("ArrayStride 4", "ArrayStride 8")), error);
}

TEST(SpirvCheck, RefusesBindingsThatAreNoOperands) {
  EXPECT_EQ(findError(assemble("Binding 0", "Binding 1")),
            "a storage buffer is bound to no operand of its own");
  EXPECT_EQ(findError(assemble(), {}), "a storage buffer is bound to no operand of its own");
  EXPECT_EQ(findError(assemble(), {32, 32}), "operand 1 has no storage buffer");
}

TEST(SpirvCheck, RefusesCapabilitiesThatTheProfileLacks) {
  Profile narrow;
  narrow.float64 = narrow.int64 = narrow.storage8 = narrow.storage16 = false;
  for (auto [capability, error] : {std::pair("Float64", "declares Float64"),
                                   {"Int64", "declares Int64"},
                                   {"Int8", "declares 8-bit integers"},
                                   {"StorageBuffer8BitAccess", "declares 8-bit integers"},
                                   {"Int16", "declares 16-bit integers"},
                                   {"StorageBuffer16BitAccess", "declares 16-bit integers"}}) {
    std::string both = std::string("OpCapability Shader\nOpCapability ") + capability;
    std::vector<uint32_t> words = assemble("OpCapability Shader", both);
    EXPECT_EQ(findError(words), "") << capability;
    EXPECT_EQ(findError(words, {32}, narrow), std::string(error) + ", which target lavapipe lacks");
  }
}

TEST(SpirvCheck, RefusesAnUnknownEnvironment) {
  Profile other;
  other.api = "direct3d";
  EXPECT_EQ(findError(assemble(), {32}, other), "the validator knows no environment direct3d");
}

TEST(SpirvDisassemble, PrintsWordsAndRefusesOthers) {
  mlir::FailureOr<std::string> printed = disassembleSpirv(assemble());
  ASSERT_TRUE(mlir::succeeded(printed));
  EXPECT_NE(printed->find("OpEntryPoint GLCompute"), std::string::npos);
  EXPECT_TRUE(mlir::failed(disassembleSpirv({1, 2, 3, 4, 5, 6})));
}

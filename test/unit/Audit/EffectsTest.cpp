//===- EffectsTest.cpp - Pipelines of other people's SPIR-V ---------------===//

#include "weir/Audit/Effects.h"

#include "gtest/gtest.h"

#include <spirv-tools/libspirv.hpp>

namespace weir::audit {
namespace {

/// Assembles a kernel that computes out[id * stride + base] = 1 for sizes and constants of SpecIds
/// 1, 2, 3, where `index` computes %index from %id, %base and %stride.
std::vector<uint32_t> assemble(const std::string &decorations, const std::string &constants,
                               const std::string &index, const std::string &variable = "%block",
                               const std::string &first = "%0") {
  std::string text = R"(
               OpCapability Shader
               OpMemoryModel Logical GLSL450
               OpEntryPoint GLCompute %main "main" %id
               OpExecutionMode %main LocalSize 4 1 1
               OpDecorate %id BuiltIn GlobalInvocationId
               OpDecorate %words ArrayStride 4
               OpDecorate %block BufferBlock
               OpMemberDecorate %block 0 Offset 0
               OpDecorate %out DescriptorSet 2
               OpDecorate %out Binding 5
)" + decorations + R"(
       %void = OpTypeVoid
         %fn = OpTypeFunction %void
       %uint = OpTypeInt 32 0
      %uint3 = OpTypeVector %uint 3
      %words = OpTypeRuntimeArray %uint
      %block = OpTypeStruct %words
          %0 = OpConstant %uint 0
          %4 = OpConstant %uint 4
     %blocks = OpTypeArray %block %4
    %toBlock = OpTypePointer Uniform )" +
                     variable + R"(
     %toWord = OpTypePointer Uniform %uint
    %toUint3 = OpTypePointer Input %uint3
     %toUint = OpTypePointer Input %uint
)" + constants + R"(
        %out = OpVariable %toBlock Uniform
         %id = OpVariable %toUint3 Input
       %main = OpFunction %void None %fn
      %start = OpLabel
         %at = OpAccessChain %toUint %id %0
          %i = OpLoad %uint %at
)" + index + R"(
          %q = OpAccessChain %toWord %out )" +
                     first + R"( %index
               OpStore %q %4
               OpReturn
               OpFunctionEnd
)";
  std::vector<uint32_t> words;
  spvtools::SpirvTools tools(SPV_ENV_VULKAN_1_0);
  EXPECT_TRUE(tools.Assemble(text, &words)) << text;
  return words;
}

const std::string plain = "%index = OpCopyObject %uint %i";

std::vector<spv::ByteRange> getWritten(Kernel &kernel, int64_t groups) {
  const KernelEffects &effects = kernel.getEffects({groups, 1, 1});
  EXPECT_EQ(effects.problem, "");
  return effects.slots.at({2, 5}).written.certain;
}

using Ranges = std::vector<spv::ByteRange>;

TEST(Effects, OfASetByAGrid) {
  Kernel kernel(assemble("", "", plain), "main", {}, {});
  EXPECT_EQ(getWritten(kernel, 3), (Ranges{{0, 48}}));
  EXPECT_EQ(getWritten(kernel, 1), (Ranges{{0, 16}}));
  const SlotEffects &slot = kernel.getEffects({1, 1, 1}).slots.at({2, 5});
  EXPECT_TRUE(slot.read.possible && slot.read.possible->empty());
  EXPECT_EQ(kernel.getEffects({1, 1, 1}).slots.size(), 1u);
  EXPECT_FALSE(kernel.usesAddresses());
}

TEST(Effects, SpecializationConstants) {
  std::vector<uint32_t> words =
      assemble("OpDecorate %stride SpecId 2", "%stride = OpSpecConstant %uint 2",
               "%index = OpIMul %uint %i %stride");
  Kernel byDefault(words, "main", {}, {}), given(words, "main", {{2, 4}}, {}),
      other(words, "main", {{3, 4}}, {});
  EXPECT_EQ(getWritten(byDefault, 1), (Ranges{{0, 4}, {8, 12}, {16, 20}, {24, 28}}));
  EXPECT_EQ(getWritten(given, 1), (Ranges{{0, 4}, {16, 20}, {32, 36}, {48, 52}}));
  EXPECT_EQ(getWritten(other, 1), getWritten(byDefault, 1));
}

TEST(Effects, SpecializedBranches) {
  std::vector<uint32_t> words =
      assemble("OpDecorate %is SpecId 1", "%bool = OpTypeBool\n%is = OpSpecConstantFalse %bool",
               R"(
      OpSelectionMerge %on None
      OpBranchConditional %is %on %end
%end = OpLabel
      OpReturn
%on = OpLabel
%index = OpCopyObject %uint %i)");
  Kernel off(words, "main", {}, {}), on(words, "main", {{1, 1}}, {});
  const SlotEffects &none = off.getEffects({1, 1, 1}).slots.at({2, 5});
  EXPECT_EQ(none.written.certain, Ranges());
  EXPECT_EQ(on.getEffects({1, 1, 1}).problem, "");
}

TEST(Effects, AConstantSetsTheWorkgroup) {
  std::vector<uint32_t> words =
      assemble("OpDecorate %x SpecId 1\nOpDecorate %size BuiltIn WorkgroupSize",
               "%x = OpSpecConstant %uint 2\n%1 = OpConstant %uint 1\n"
               "%size = OpSpecConstantComposite %uint3 %x %1 %1",
               plain);
  Kernel byDefault(words, "main", {}, {}), given(words, "main", {{1, 8}}, {});
  EXPECT_EQ(getWritten(byDefault, 3), (Ranges{{0, 24}}));
  EXPECT_EQ(getWritten(given, 3), (Ranges{{0, 96}}));
}

TEST(Effects, ArraysOfDescriptors) {
  // The first index says which buffer, and nothing of where in it.
  Kernel kernel(assemble("", "", plain, "%blocks", "%0 %0"), "main", {}, {});
  const SlotEffects &slot = kernel.getEffects({1, 1, 1}).slots.at({2, 5});
  EXPECT_EQ(slot.written.certain, Ranges());
  EXPECT_FALSE(slot.written.possible);
  EXPECT_TRUE(slot.read.possible && slot.read.possible->empty());
}

TEST(Effects, OfAnUnknownGrid) {
  Kernel kernel(assemble("", "", plain), "main", {}, {});
  const KernelEffects &effects = kernel.getEffects();
  EXPECT_NE(effects.problem, "");
  EXPECT_TRUE(effects.areSlotsKnown);
  EXPECT_FALSE(effects.slots.at({2, 5}).written.possible);
}

TEST(Effects, OfAnUnknownGridAsDecorated) {
  auto getWritten = [](const std::string &decorations) {
    Kernel kernel(assemble(decorations, "", plain), "main", {}, {});
    return kernel.getEffects().slots.at({2, 5}).written.possible;
  };
  EXPECT_FALSE(getWritten("OpMemberDecorate %block 0 NonReadable"));
  EXPECT_EQ(getWritten("OpMemberDecorate %block 0 NonWritable"), Ranges());
  EXPECT_EQ(getWritten("OpDecorate %out NonWritable"), Ranges());
}

TEST(Effects, WhatCannotBeRead) {
  std::vector<uint32_t> words = assemble("", "", plain);
  EXPECT_NE(Kernel(words, "other", {}, {}).getEffects({1, 1, 1}).problem, "");
  EXPECT_FALSE(Kernel({}, "main", {}, {}).getEffects({1, 1, 1}).areSlotsKnown);
  // Whatever words there are, it ends in effects or in a problem.
  for (size_t i = 5; i < words.size(); ++i)
    for (uint32_t wrong : {0u, ~0u, words[i] + 1, words[i] ^ 0x10000}) {
      std::vector<uint32_t> changed = words;
      changed[i] = wrong;
      Kernel(changed, "main", {{1, 8}}, {}).getEffects({2, 1, 1});
    }
  words.resize(words.size() / 2);
  EXPECT_NE(Kernel(words, "main", {}, {}).getEffects({1, 1, 1}).problem, "");
}

TEST(Effects, Addresses) {
  std::vector<uint32_t> words = assemble("", "", plain);
  const uint32_t capability[] = {2u << 16 | 17, 5347}; // PhysicalStorageBufferAddresses
  words.insert(words.begin() + 5, std::begin(capability), std::end(capability));
  EXPECT_TRUE(Kernel(words, "main", {}, {}).usesAddresses());
}

TEST(Effects, SubgroupsOfAnySize) {
  std::vector<uint32_t> words = assemble("", "", plain);
  EXPECT_EQ(Kernel(words, "main", {}, {8, false, true}).getEffects({1, 1, 1}).problem, "");
  const uint32_t capability[] = {2u << 16 | 17, 61}; // GroupNonUniform
  words.insert(words.begin() + 5, std::begin(capability), std::end(capability));
  EXPECT_NE(Kernel(words, "main", {}, {8, false, true}).getEffects({1, 1, 1}).problem, "");
  EXPECT_EQ(Kernel(words, "main", {}, {8, true, true}).getEffects({1, 1, 1}).problem, "");
}

} // namespace
} // namespace weir::audit

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
  // It says the size even where no execution mode does.
  for (size_t at = 5; at < words.size(); at += words[at] >> 16)
    if ((words[at] & 0xffff) == uint32_t(spv::Op::ExecutionMode))
      std::fill_n(words.begin() + ptrdiff_t(at), words[at] >> 16, 1u << 16); // OpNop
  Kernel alone(words, "main", {}, {});
  EXPECT_EQ(getWritten(alone, 3), (Ranges{{0, 24}}));
}

TEST(Effects, OperationsOnConstants) {
  // stride = (2 + 1) * (9 % 5 > 3 ? 1 : 7) = 3, by default.
  std::vector<uint32_t> words = assemble("OpDecorate %two SpecId 2", R"(
      %bool = OpTypeBool
      %two = OpSpecConstant %uint 2
      %1 = OpConstant %uint 1
      %3 = OpConstant %uint 3
      %5 = OpConstant %uint 5
      %7 = OpConstant %uint 7
      %9 = OpConstant %uint 9
      %sum = OpSpecConstantOp %uint IAdd %two %1
      %rest = OpSpecConstantOp %uint UMod %9 %5
      %is = OpSpecConstantOp %bool UGreaterThan %rest %3
      %one = OpSpecConstantOp %uint Select %is %1 %7
      %all = OpSpecConstantComposite %uint3 %one %sum %7
      %factor = OpSpecConstantOp %uint CompositeExtract %all 1
      %stride = OpSpecConstantOp %uint IMul %factor %one)",
                                         "%index = OpIMul %uint %i %stride");
  Kernel byDefault(words, "main", {}, {}), given(words, "main", {{2, 4}}, {});
  EXPECT_EQ(getWritten(byDefault, 1), (Ranges{{0, 4}, {12, 16}, {24, 28}, {36, 40}}));
  EXPECT_EQ(getWritten(given, 1), (Ranges{{0, 4}, {20, 24}, {40, 44}, {60, 64}}));
}

TEST(Effects, LengthsOfArrays) {
  // if (i < out.length()) out[i] = 4
  std::vector<uint32_t> words = assemble("", "%bool = OpTypeBool", R"(
      %length = OpArrayLength %uint %out 0
      %in = OpULessThan %bool %i %length
      OpSelectionMerge %end None
      OpBranchConditional %in %on %end
%end = OpLabel
      OpReturn
%on = OpLabel
%index = OpCopyObject %uint %i)");
  Kernel kernel(words, "main", {}, {});
  EXPECT_EQ(kernel.getSized(), (std::vector<DescriptorSlot>{{2, 5}}));
  const KernelEffects &unsized = kernel.getEffects({4, 1, 1});
  EXPECT_EQ(unsized.problem, "");
  EXPECT_EQ(unsized.slots.at({2, 5}).written.certain, Ranges());
  EXPECT_EQ(unsized.slots.at({2, 5}).written.possible, (Ranges{{0, 64}}));
  const KernelEffects &sized = kernel.getEffects({4, 1, 1}, {{{2, 5}, 40}});
  EXPECT_EQ(sized.slots.at({2, 5}).written.certain, (Ranges{{0, 40}}));
  EXPECT_EQ(sized.slots.at({2, 5}).written.possible, (Ranges{{0, 40}}));
}

TEST(Effects, AtomicSumsOfFloats) {
  std::vector<uint32_t> words =
      assemble("", "%1 = OpConstant %uint 1", R"(%index = OpCopyObject %uint %i
      %p = OpAccessChain %toWord %out %0 %index
      %old = OpAtomicIAdd %uint %p %1 %0 %1)");
  for (uint32_t &word : words)
    if (word == (7u << 16 | uint32_t(spv::Op::AtomicIAdd)))
      word = 7u << 16 | 6035; // OpAtomicFAddEXT
  Kernel kernel(words, "main", {}, {});
  const KernelEffects &effects = kernel.getEffects({1, 1, 1});
  EXPECT_EQ(effects.problem, "");
  EXPECT_EQ(effects.slots.at({2, 5}).read.certain, (Ranges{{0, 16}}));
  EXPECT_EQ(effects.slots.at({2, 5}).written.certain, (Ranges{{0, 16}}));
}

TEST(Effects, VariablesOfFunctions) {
  // for (k = 0; k < 4; k++) out[i * 4 + k] = 4, as compilers of GLSL leave it.
  std::vector<uint32_t> words = assemble("", R"(
      %bool = OpTypeBool
      %1 = OpConstant %uint 1
      %local = OpTypePointer Function %uint)",
                                         R"(
      %k = OpVariable %local Function
      OpStore %k %0
      OpBranch %head
%head = OpLabel
      OpLoopMerge %end %next None
      OpBranch %test
%test = OpLabel
      %k1 = OpLoad %uint %k
      %in = OpULessThan %bool %k1 %4
      OpBranchConditional %in %body %end
%body = OpLabel
      %k2 = OpLoad %uint %k
      %row = OpIMul %uint %i %4
      %place = OpIAdd %uint %row %k2
      %r = OpAccessChain %toWord %out %0 %place
      OpStore %r %4
      OpBranch %next
%next = OpLabel
      %k3 = OpLoad %uint %k
      %k4 = OpIAdd %uint %k3 %1
      OpStore %k %k4
      OpBranch %head
%end = OpLabel
      %index = OpCopyObject %uint %i)");
  Kernel kernel(words, "main", {}, {});
  EXPECT_EQ(getWritten(kernel, 2), (Ranges{{0, 128}}));
}

/// Assembles out[scale(i)] = 4 with uint scale(uint *x), called by a caller of its own.
std::vector<uint32_t> assembleCalls(const std::string &scale) {
  std::vector<uint32_t> words;
  spvtools::SpirvTools tools(SPV_ENV_VULKAN_1_0);
  const std::string text = R"(
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
       %void = OpTypeVoid
         %fn = OpTypeFunction %void
       %uint = OpTypeInt 32 0
       %bool = OpTypeBool
      %uint3 = OpTypeVector %uint 3
      %words = OpTypeRuntimeArray %uint
      %block = OpTypeStruct %words
          %0 = OpConstant %uint 0
          %1 = OpConstant %uint 1
          %4 = OpConstant %uint 4
    %toBlock = OpTypePointer Uniform %block
     %toWord = OpTypePointer Uniform %uint
    %toUint3 = OpTypePointer Input %uint3
      %local = OpTypePointer Function %uint
     %scaler = OpTypeFunction %uint %local
     %writer = OpTypeFunction %void %uint
        %out = OpVariable %toBlock Uniform
         %id = OpVariable %toUint3 Input
       %main = OpFunction %void None %fn
      %start = OpLabel
        %ids = OpLoad %uint3 %id
          %i = OpCompositeExtract %uint %ids 0
         %no = OpFunctionCall %void %write %i
               OpReturn
               OpFunctionEnd
      %write = OpFunction %void None %writer
     %number = OpFunctionParameter %uint
       %from = OpLabel
       %copy = OpVariable %local Function
               OpStore %copy %number
      %index = OpFunctionCall %uint %scale %copy
          %q = OpAccessChain %toWord %out %0 %index
               OpStore %q %4
               OpReturn
               OpFunctionEnd
      %scale = OpFunction %uint None %scaler
          %x = OpFunctionParameter %local
     %scaled = OpLabel
)" + scale + "OpFunctionEnd\n";
  EXPECT_TRUE(tools.Assemble(text, &words)) << text;
  return words;
}

TEST(Effects, FunctionsThatAreCalled) {
  // return x < 1 ? 0 : x * 4, with an `if` that assigns.
  const std::string once = R"(
     %result = OpVariable %local Function %0
         %x1 = OpLoad %uint %x
         %is = OpULessThan %bool %x1 %1
               OpSelectionMerge %end None
               OpBranchConditional %is %end %else
       %else = OpLabel
         %x2 = OpLoad %uint %x
      %times = OpIMul %uint %x2 %4
               OpStore %result %times
               OpBranch %end
        %end = OpLabel
         %r1 = OpLoad %uint %result
               OpReturnValue %r1
)";
  Kernel kernel(
      assembleCalls("%r = OpLoad %uint %x\n%r4 = OpIMul %uint %r %4\nOpReturnValue %r4\n"), "main",
      {}, {});
  EXPECT_EQ(getWritten(kernel, 1), (Ranges{{0, 4}, {16, 20}, {32, 36}, {48, 52}}));
  Kernel selected(assembleCalls(once), "main", {}, {});
  const KernelEffects &effects = selected.getEffects({1, 1, 1});
  EXPECT_EQ(effects.problem, "");
  // Two returns are not copied.
  Kernel twice(assembleCalls(R"(
         %x1 = OpLoad %uint %x
         %is = OpULessThan %bool %x1 %1
               OpSelectionMerge %end None
               OpBranchConditional %is %then %end
       %then = OpLabel
               OpReturnValue %0
        %end = OpLabel
               OpReturnValue %x1
)"),
               "main", {}, {});
  EXPECT_NE(twice.getEffects({1, 1, 1}).problem, "");
}

TEST(Effects, DeclarationsHoldWhateverElseFails) {
  // An opcode that is not read, and a module that is cut off.
  auto check = [](const std::string &decorations, bool isWritten) {
    Kernel kernel(assemble(decorations, "%sampler = OpTypeSampler", plain), "main", {}, {});
    const KernelEffects &effects = kernel.getEffects({1, 1, 1});
    EXPECT_NE(effects.problem, "");
    ASSERT_TRUE(effects.areSlotsKnown);
    EXPECT_EQ(!effects.slots.at({2, 5}).written.possible, isWritten);
    EXPECT_FALSE(effects.slots.at({2, 5}).read.possible);
  };
  check("", true);
  check("OpDecorate %out NonWritable", false);
  check("OpMemberDecorate %block 0 NonWritable", false);
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

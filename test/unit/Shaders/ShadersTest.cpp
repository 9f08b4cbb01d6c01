//===- ShadersTest.cpp - Claims on small shaders, each with a twin --------===//

#include "weir/Shaders/Shaders.h"

#include "tools/Assemble.h"

#include "gtest/gtest.h"

#include <cstring>

namespace weir {
namespace {

/// A shader of workgroups of 8 invocations. `%i` is the global invocation's number, `%l` that in
/// its workgroup, `%w` the workgroup's; buffers 0.0 `%in` and 1.2 `%out` are open arrays of uint,
/// and
/// `%tile` is workgroup memory of 8.
std::vector<uint32_t> assembleShader(const std::string &body, const std::string &more = "",
                                     const std::string &variables = "",
                                     const std::string &decorations = "") {
  const Bytes bytes = assemble(R"(
               OpCapability Shader
               OpMemoryModel Logical GLSL450
               OpEntryPoint GLCompute %main "main" %vi %vl %vw %in %out %tile
               OpExecutionMode %main LocalSize 8 1 1
       %file = OpString "a.comp"
               OpName %out "out"
               OpDecorate %vi BuiltIn GlobalInvocationId
               OpDecorate %vl BuiltIn LocalInvocationId
               OpDecorate %vw BuiltIn WorkgroupId
               OpDecorate %words ArrayStride 4
               OpDecorate %block Block
               OpMemberDecorate %block 0 Offset 0
               OpDecorate %in DescriptorSet 0
               OpDecorate %in Binding 0
               OpDecorate %out DescriptorSet 1
               OpDecorate %out Binding 2
)" + decorations + R"(
       %void = OpTypeVoid
       %bool = OpTypeBool
       %uint = OpTypeInt 32 0
         %v3 = OpTypeVector %uint 3
        %pv3 = OpTypePointer Input %v3
         %n0 = OpConstant %uint 0
         %n1 = OpConstant %uint 1
         %n2 = OpConstant %uint 2
         %n4 = OpConstant %uint 4
         %n8 = OpConstant %uint 8
        %n31 = OpConstant %uint 31
         %n7 = OpConstant %uint 7
        %n72 = OpConstant %uint 72
       %n264 = OpConstant %uint 264
      %words = OpTypeRuntimeArray %uint
      %block = OpTypeStruct %words
     %pblock = OpTypePointer StorageBuffer %block
      %pword = OpTypePointer StorageBuffer %uint
       %row8 = OpTypeArray %uint %n8
      %ptile = OpTypePointer Workgroup %row8
      %pcell = OpTypePointer Workgroup %uint
     %plocal = OpTypePointer Function %uint
         %vi = OpVariable %pv3 Input
         %vl = OpVariable %pv3 Input
         %vw = OpVariable %pv3 Input
         %in = OpVariable %pblock StorageBuffer
        %out = OpVariable %pblock StorageBuffer
       %tile = OpVariable %ptile Workgroup
)" + more + R"(
         %fn = OpTypeFunction %void
       %main = OpFunction %void None %fn
      %begin = OpLabel
)" + variables + R"(
        %ids = OpLoad %v3 %vi
          %i = OpCompositeExtract %uint %ids 0
     %locals = OpLoad %v3 %vl
          %l = OpCompositeExtract %uint %locals 0
     %groups = OpLoad %v3 %vw
          %w = OpCompositeExtract %uint %groups 0
)" + body + R"(
               OpReturn
               OpFunctionEnd
)");
  std::vector<uint32_t> words(bytes.size() / 4);
  std::memcpy(words.data(), bytes.data(), bytes.size());
  return words;
}

/// Returns the text of "buffer[index] = value". `name` makes its ids unique.
std::string store(const std::string &name, const std::string &buffer, const std::string &index,
                  const std::string &value) {
  const std::string place = "%s" + name;
  return place +
         (buffer == "%tile" ? " = OpAccessChain %pcell %tile "
                            : " = OpAccessChain %pword " + buffer + " %n0 ") +
         index + "\nOpStore " + place + " " + value + "\n";
}
/// Returns the text of "%name = buffer[index]".
std::string load(const std::string &name, const std::string &buffer, const std::string &index) {
  return "%p" + name +
         (buffer == "%tile" ? " = OpAccessChain %pcell %tile "
                            : " = OpAccessChain %pword " + buffer + " %n0 ") +
         index + "\n%" + name + " = OpLoad %uint %p" + name + "\n";
}
std::string line(int number) { return "OpLine %file " + std::to_string(number) + " 1\n"; }
const std::string barrier = "OpControlBarrier %n2 %n2 %n264\n";      // AcquireRelease, workgroup
const std::string bufferBarrier = "OpControlBarrier %n2 %n2 %n72\n"; // AcquireRelease, buffers
const std::string neighbour = "%k0 = OpIAdd %uint %l %n1\n%k = OpBitwiseAnd %uint %k0 %n7\n";

ShaderReport check(const std::vector<uint32_t> &words, int64_t workgroups = 2, int64_t bytes = 64,
                   std::vector<spv::Specialization> constants = {}) {
  ShaderOptions options;
  options.workgroups = {workgroups, 1, 1};
  options.constants = std::move(constants);
  if (bytes > 0)
    options.sizes = {{{0, 0}, bytes}, {{1, 2}, bytes}};
  return checkShader(words, options, "a.spv");
}

/// Returns "proved", or "refuted: " or "unknown: " with the detail.
std::string find(const ShaderReport &report, const std::string &what, const std::string &subject) {
  for (const ShaderClaim &claim : report.claims)
    if (claim.what == what && claim.subject == subject)
      return claim.answer == ShaderClaim::Answer::Proved    ? "proved"
             : claim.answer == ShaderClaim::Answer::Refuted ? "refuted: " + claim.detail
                                                            : "unknown: " + claim.detail;
  return "no such claim";
}
const std::string out = "buffer 1.2 (out)", in = "buffer 0.0", memory = "workgroup memory";

::testing::AssertionResult has(const std::string &text, const std::string &part) {
  if (text.find(part) != std::string::npos)
    return ::testing::AssertionSuccess();
  return ::testing::AssertionFailure() << "'" << part << "' is not in: " << text;
}

TEST(Shaders, OwnElementsAreProved) {
  const ShaderReport report =
      check(assembleShader(load("x", "%in", "%i") + store("y", "%out", "%i", "%x")));
  EXPECT_EQ(report.entry, "main");
  EXPECT_EQ(report.workgroupSize, (std::array<int64_t, 3>{8, 1, 1}));
  for (const ShaderClaim &claim : report.claims)
    EXPECT_EQ(find(report, claim.what, claim.subject), "proved") << claim.what << claim.subject;
}

TEST(Shaders, RacesOfBuffersAreRefutedWithInvocationsAndLines) {
  const auto words = assembleShader(line(12) + store("y", "%out", "%n0", "%i"));
  const std::string answer = find(check(words), "races", out);
  EXPECT_TRUE(has(answer, "refuted: WAW"));
  EXPECT_TRUE(has(answer, "thread 0 of workgroup 0 at a.comp:12:1"));
  EXPECT_TRUE(has(answer, "thread 1 of workgroup 0 at a.comp:12:1"));
  EXPECT_TRUE(has(answer, "byte 0 of argument \"buffer 1.2 (out)\""));
  // One element for each workgroup: only the invocations of a workgroup race, and the first alone
  // does not.
  EXPECT_TRUE(has(find(check(assembleShader(store("y", "%out", "%w", "%i"))), "races", out),
                  "no barrier in the kernel orders the two"));
  const std::string one = "%first = OpIEqual %bool %l %n0\nOpSelectionMerge %end None\n"
                          "OpBranchConditional %first %then %end\n%then = OpLabel\n" +
                          store("y", "%out", "%w", "%i") + "OpBranch %end\n%end = OpLabel\n";
  EXPECT_EQ(find(check(assembleShader(one)), "races", out), "proved");
}

TEST(Shaders, WorkgroupsRace) {
  const auto words = assembleShader(store("y", "%out", "%l", "%i"));
  EXPECT_TRUE(has(find(check(words, 2), "races", out), "nothing orders workgroups"));
  EXPECT_EQ(find(check(words, 1), "races", out), "proved");
}

TEST(Shaders, BarriersOrderWorkgroupMemory) {
  auto get = [](const std::string &between, const char *what) {
    return find(check(assembleShader(store("a", "%tile", "%l", "%i") + between + neighbour +
                                     load("x", "%tile", "%k") + store("y", "%out", "%i", "%x"))),
                what, memory);
  };
  EXPECT_TRUE(has(get("", "races"), "refuted: RAW"));
  EXPECT_EQ(get(barrier, "races"), "proved");
  EXPECT_TRUE(has(get(bufferBarrier, "races"), "refuted: RAW"));
  EXPECT_EQ(get(barrier, "initialized"), "proved");
  EXPECT_EQ(get(barrier, "bounds"), "proved");
}

TEST(Shaders, BarriersOrderBuffersThatTheyName) {
  auto get = [](const std::string &between) {
    return find(check(assembleShader(store("a", "%out", "%l", "%i") + between + neighbour +
                                     load("x", "%out", "%k") + store("y", "%in", "%l", "%x")),
                      1),
                "races", out);
  };
  EXPECT_EQ(get(bufferBarrier), "proved");
  EXPECT_TRUE(has(get(barrier), "refuted: RAW"));
  // GLSL's memoryBarrierBuffer() before barrier().
  EXPECT_TRUE(has(get("OpMemoryBarrier %n1 %n72\n" + barrier), "unknown: "));
  EXPECT_TRUE(has(get("OpMemoryBarrier %n1 %n72\n" + barrier), "memory barriers"));
}

TEST(Shaders, DivergentBarriers) {
  auto get = [](const std::string &condition) {
    return find(check(assembleShader(condition +
                                     "OpSelectionMerge %end None\n"
                                     "OpBranchConditional %c %then %end\n"
                                     "%then = OpLabel\n" +
                                     barrier + "OpBranch %end\n%end = OpLabel\n")),
                "barriers", "barriers");
  };
  EXPECT_TRUE(has(get("%c = OpULessThan %bool %l %n4\n"), "refuted: "));
  EXPECT_EQ(get("%c = OpULessThan %bool %w %n1\n"), "proved");
  // Memory decides, the same for all, or not.
  EXPECT_EQ(get(load("x", "%in", "%n4") + "%c = OpUGreaterThan %bool %x %n264\n"), "proved");
  EXPECT_TRUE(has(get(load("x", "%in", "%n4") + "%c = OpUGreaterThan %bool %x %n264\n" +
                      store("z", "%in", "%i", "%i")),
                  "unknown: "));
  EXPECT_TRUE(has(get(load("x", "%in", "%i") + "%c = OpULessThan %bool %x %n4\n"),
                  "(on buffers whose words count from 0)"));
  EXPECT_TRUE(
      has(get(load("x", "%in", "%i") + "%c = OpUGreaterThan %bool %x %n264\n"), "unknown: "));
}

TEST(Shaders, BoundsNeedSizes) {
  const auto words = assembleShader(store("y", "%out", "%i", "%i"));
  EXPECT_EQ(find(check(words, 2, 64), "bounds", out), "proved");
  EXPECT_TRUE(has(find(check(words, 3, 64), "bounds", out), "refuted: "));
  EXPECT_TRUE(has(find(check(words, 3, 64), "bounds", out), "has 64"));
  EXPECT_EQ(find(check(words, 2, 0), "bounds", out),
            "unknown: its size is not known; --sizes gives it");
  // Only what lies in the buffer, by its length.
  const auto guarded =
      assembleShader("%n = OpArrayLength %uint %out 0\n%c = OpULessThan %bool %i %n\n"
                     "OpSelectionMerge %end None\nOpBranchConditional %c %then %end\n"
                     "%then = OpLabel\n" +
                     store("y", "%out", "%i", "%i") + "OpBranch %end\n%end = OpLabel\n");
  EXPECT_EQ(find(check(guarded, 3, 64), "bounds", out), "proved");
  EXPECT_EQ(find(check(guarded, 3, 0), "races", out), "proved");
  const auto tile = [](const std::string &index) {
    return find(check(assembleShader(index + store("a", "%tile", "%at", "%i"))), "bounds", memory);
  };
  EXPECT_EQ(tile("%at = OpCopyObject %uint %l\n"), "proved");
  EXPECT_TRUE(has(tile("%at = OpIAdd %uint %l %n1\n"), "refuted: "));
}

TEST(Shaders, WorkgroupMemoryThatNothingWrote) {
  auto get = [](const std::string &before) {
    return find(
        check(assembleShader(before + load("x", "%tile", "%l") + store("y", "%out", "%i", "%x"))),
        "initialized", memory);
  };
  EXPECT_TRUE(has(get(""), "refuted: never written"));
  EXPECT_EQ(get(store("a", "%tile", "%l", "%i")), "proved");
  // By half of the workgroup, and a barrier.
  const std::string half = "%c = OpULessThan %bool %l %n4\nOpSelectionMerge %end None\n"
                           "OpBranchConditional %c %then %end\n%then = OpLabel\n" +
                           store("a", "%tile", "%l", "%i") + "OpBranch %end\n%end = OpLabel\n" +
                           barrier;
  EXPECT_TRUE(has(get(half), "refuted: never written"));
  const std::string both = "%c = OpULessThan %bool %l %n4\nOpSelectionMerge %end None\n"
                           "OpBranchConditional %c %then %end\n%then = OpLabel\n" +
                           store("a", "%tile", "%l", "%i") + "%l4 = OpIAdd %uint %l %n4\n" +
                           store("b", "%tile", "%l4", "%i") + "OpBranch %end\n%end = OpLabel\n" +
                           barrier;
  EXPECT_EQ(get(both), "proved");
  // Only the first workgroup writes.
  const std::string first = "%c = OpULessThan %bool %w %n1\nOpSelectionMerge %end None\n"
                            "OpBranchConditional %c %then %end\n%then = OpLabel\n" +
                            store("a", "%tile", "%l", "%i") + "OpBranch %end\n%end = OpLabel\n" +
                            barrier;
  EXPECT_TRUE(has(get(first), "refuted: never written"));
}

TEST(Shaders, WhatDataDecides) {
  // A scatter; an atomic one; one that no contents of ours refute.
  auto get = [](const std::string &body) {
    return find(check(assembleShader(load("x", "%in", "%i") + body)), "races", out);
  };
  const std::string scatter = get(store("y", "%out", "%x", "%i"));
  EXPECT_TRUE(has(scatter, "refuted: WAW"));
  EXPECT_TRUE(has(scatter, "(on buffers of zeros)"));
  EXPECT_EQ(get("%p = OpAccessChain %pword %out %n0 %x\n"
                "%old = OpAtomicIAdd %uint %p %n1 %n0 %n1\n"),
            "proved");
  EXPECT_TRUE(has(get("%high = OpShiftRightLogical %uint %x %n31\n%at = OpIAdd %uint %i %high\n" +
                      store("y", "%out", "%at", "%i")),
                  "unknown: "));
}

TEST(Shaders, LoopsOnLocalVariables) {
  // for (k = 0; k < 2; ++k) out[i * stride + k] = i
  const auto words = assembleShader(
      R"(        OpStore %k %n0
                 OpBranch %head
         %head = OpLabel
                 OpLoopMerge %end %next None
                 OpBranch %test
         %test = OpLabel
           %k1 = OpLoad %uint %k
           %c = OpULessThan %bool %k1 %n2
                 OpBranchConditional %c %body %end
         %body = OpLabel
          %row = OpIMul %uint %i %stride
           %k2 = OpLoad %uint %k
           %at = OpIAdd %uint %row %k2
)" + store("y", "%out", "%at", "%i") +
          R"(    OpBranch %next
         %next = OpLabel
           %k3 = OpLoad %uint %k
           %k4 = OpIAdd %uint %k3 %n1
                 OpStore %k %k4
                 OpBranch %head
          %end = OpLabel
)",
      "%stride = OpSpecConstant %uint 2", "%k = OpVariable %plocal Function",
      "OpDecorate %stride SpecId 5");
  EXPECT_EQ(find(check(words, 1), "races", out), "proved");
  EXPECT_EQ(find(check(words, 1), "bounds", out), "proved");
  EXPECT_TRUE(has(find(check(words, 1, 64, {{5, 1}}), "races", out), "refuted: WAW"));
  EXPECT_THROW(check(words, 1, 64, {{6, 1}}), Error);
}

TEST(Shaders, SubgroupsAreUnknown) {
  auto words = assembleShader(store("y", "%out", "%i", "%i"));
  const uint32_t capability[] = {2u << 16 | 17, 61}; // GroupNonUniform
  words.insert(words.begin() + 5, std::begin(capability), std::end(capability));
  EXPECT_TRUE(has(find(check(words), "races", out), "unknown: it has operations on subgroups"));
}

TEST(Shaders, WhatIsNotThere) {
  const auto words = assembleShader(store("y", "%out", "%i", "%i"));
  ShaderOptions options;
  options.entry = "other";
  EXPECT_THROW(checkShader(words, options, "a.spv"), Error);
  options.entry = "main";
  EXPECT_NO_THROW(checkShader(words, options, "a.spv"));
  options.sizes = {{{0, 2}, 64}};
  EXPECT_THROW(checkShader(words, options, "a.spv"), Error);
  // Whatever words there are, it ends in a report or in an error.
  for (size_t i = 5; i < words.size(); i += 3)
    for (uint32_t wrong : {0u, ~0u, words[i] + 1, words[i] ^ 0x10000}) {
      std::vector<uint32_t> changed = words;
      changed[i] = wrong;
      try {
        check(changed);
      } catch (const Error &) {
      }
    }
}

} // namespace
} // namespace weir

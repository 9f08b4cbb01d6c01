//===- CodeTest.cpp - Plans against the code of their kernels -------------===//

#include "weir/Verify/Verify.h"

#include "test/unit/Artifact/Sample.h"
#include "tools/Assemble.h"

#include "gtest/gtest.h"

#include <algorithm>
#include <cstring>

using namespace weir;
using namespace weir::test;

namespace {
/// An access to `count` words of a binding from word `first` on; each of 8 invocations accesses
/// every eighth.
struct Part {
  int binding, first, count = 64;
};
struct Code {
  std::string name;
  std::vector<int> words; ///< of each binding
  std::vector<Part> loads;
  Part stored;
  bool storesFirst = false;
  int invocations = 8;
};
} // namespace

static Bytes assembleKernel(const Code &code) {
  std::string size = std::to_string(code.invocations), variables;
  for (size_t i = 0; i < code.words.size(); ++i)
    variables += " %b" + std::to_string(i);
  std::string text = R"(
  OpCapability Shader
  OpMemoryModel Logical GLSL450
  OpEntryPoint GLCompute %main ")" +
                     code.name + "\" %local" + variables + "\nOpExecutionMode %main LocalSize " +
                     size + " 1 1\n%file = OpString \"graph.mlir\"\n" +
                     "OpDecorate %local BuiltIn LocalInvocationId\n";
  std::string types = R"(
  %void = OpTypeVoid
  %bool = OpTypeBool
  %uint = OpTypeInt 32 0
  %v3 = OpTypeVector %uint 3
  %pin = OpTypePointer Input %v3
  %local = OpVariable %pin Input
  %p = OpTypePointer StorageBuffer %uint
  %signature = OpTypeFunction %void
)";
  for (int i : {0, 1, 2, 3, 4, 8, 16, 32, 64, 128})
    types += "%c" + std::to_string(i) + " = OpConstant %uint " + std::to_string(i) + "\n";
  for (size_t i = 0; i < code.words.size(); ++i) {
    std::string n = std::to_string(i);
    text += "OpDecorate %a" + n + " ArrayStride 4\nOpMemberDecorate %s" + n +
            " 0 Offset 0\nOpDecorate %s" + n + " Block\nOpDecorate %b" + n +
            " DescriptorSet 0\nOpDecorate %b" + n + " Binding " + n + "\n";
    types += "%n" + n + " = OpConstant %uint " + std::to_string(code.words[i]) + "\n%a" + n +
             " = OpTypeArray %uint %n" + n + "\n%s" + n + " = OpTypeStruct %a" + n + "\n%p" + n +
             " = OpTypePointer StorageBuffer %s" + n + "\n%b" + n + " = OpVariable %p" + n +
             " StorageBuffer\n";
  }
  std::string body = R"(
  %main = OpFunction %void None %signature
  %entry = OpLabel
  %ids = OpLoad %v3 %local
  %l = OpCompositeExtract %uint %ids 0
)";
  int number = 0;
  auto emit = [&](const Part &part, bool isStore) {
    std::string n = std::to_string(number),
                before = number ? "%done" + std::to_string(number - 1) : "%entry";
    ++number;
    std::string binding = std::to_string(part.binding);
    body += "OpBranch %head" + n + "\n%head" + n + " = OpLabel\n%k" + n + " = OpPhi %uint %c0 " +
            before + " %next" + n + " %body" + n + "\n%t" + n + " = OpULessThan %bool %k" + n +
            " %c" + std::to_string(part.count) + "\nOpLoopMerge %done" + n + " %body" + n +
            " None\nOpBranchConditional %t" + n + " %body" + n + " %done" + n + "\n%body" + n +
            " = OpLabel\n%m" + n + " = OpIAdd %uint %k" + n + " %l\n%i" + n + " = OpIAdd %uint %m" +
            n + " %c" + std::to_string(part.first) + "\nOpLine %file 7 1\n%x" + n +
            " = OpAccessChain %p %b" + binding + " %c0 %i" + n + "\n" +
            (isStore ? "OpStore %x" + n + " %c0\n" : "%v" + n + " = OpLoad %uint %x" + n + "\n") +
            "%next" + n + " = OpIAdd %uint %k" + n + " %c8\nOpBranch %head" + n + "\n%done" + n +
            " = OpLabel\n";
  };
  if (code.storesFirst)
    emit(code.stored, true);
  for (const Part &part : code.loads)
    emit(part, false);
  if (!code.storesFirst)
    emit(code.stored, true);
  return assemble(text + types + body + "OpReturn\nOpFunctionEnd\n");
}

/// Returns code whose operand 1 is not a whole number of eights: one invocation of it would do.
static Code makeScale() { return {"scale", {64, 8, 64}, {{0, 0}, {1, 0, 0}}, {2, 0}}; }
static Code makeAdd() { return {"add", {64, 64, 64}, {{0, 0}, {1, 0}}, {2, 0}}; }

/// Returns the sample with code that does not read its constants.
static Artifact makeArtifact(const Code &scale = makeScale(), const Code &add = makeAdd()) {
  Artifact artifact = makeSample();
  artifact.code["code/vulkan/scale.spv"] = assembleKernel(scale);
  artifact.code["code/vulkan/add.spv"] = assembleKernel(add);
  Plan &plan = artifact.plans[0];
  plan.kernels[0].operands[1].access = Access::None;
  for (Kernel &kernel : plan.kernels)
    for (KernelOperand &operand : kernel.operands)
      operand.alignment = 4;
  return artifact;
}

static Claim find(const Artifact &artifact, const std::string &what) {
  for (const Claim &claim : verify(artifact))
    if (claim.what == what)
      return claim;
  throw std::logic_error("no claim " + what);
}

static void expectRefused(const Artifact &artifact, const std::string &what,
                          const std::string &why) {
  Claim claim = find(artifact, what);
  EXPECT_FALSE(claim.holds) << claim.detail;
  EXPECT_NE(claim.detail.find(why), std::string::npos) << claim.detail;
}

TEST(VerifyCode, all_is_proved) {
  for (const Claim &claim : verify(makeArtifact())) {
    EXPECT_TRUE(claim.holds) << claim.what << ": " << claim.detail;
    EXPECT_EQ(claim.taken, 0u) << claim.what << ": " << claim.detail;
  }
  EXPECT_EQ(find(makeArtifact(), "effects").proved, 8u); // six accesses, two covers
  EXPECT_EQ(find(makeArtifact(), "bounds").proved, 6u);
  EXPECT_EQ(find(makeArtifact(), "needs").proved, 3u);
  EXPECT_EQ(find(makeArtifact(), "order").proved, 0u);
}

TEST(VerifyCode, understated_effects) {
  Artifact artifact = makeArtifact();
  artifact.plans[0].kernels[1].operands[0].access = Access::None;
  expectRefused(artifact, "effects", "the code of @add reads operand 0 (word ");
  expectRefused(artifact, "effects", ", graph.mlir:7), the plan says that it does not");
  artifact = makeArtifact();
  artifact.plans[0].kernels[1].operands[2] = {Access::Read, false, 256, 4};
  expectRefused(artifact, "effects", "the code of @add writes operand 2 (word ");
}

TEST(VerifyCode, overstated_effects_are_taken) {
  Artifact artifact = makeArtifact();
  artifact.plans[0].kernels[1].operands[2].access = Access::Update;
  Claim claim = find(artifact, "effects");
  EXPECT_TRUE(claim.holds);
  EXPECT_EQ(claim.proved, 7u);
  EXPECT_EQ(claim.taken, 1u);
  EXPECT_NE(claim.detail.find("the access of operand 2 of @add"), std::string::npos);
}

TEST(VerifyCode, covers_less) {
  Code add = makeAdd();
  add.stored.first = 8; // the last eight are written beyond
  add.stored.count = 32;
  expectRefused(makeArtifact(makeScale(), add), "effects",
                "the code of @add never writes byte 0 of operand 2, the plan says that it covers "
                "all 256");
  Artifact artifact = makeArtifact(makeScale(), add);
  artifact.plans[0].kernels[1].operands[2].coversAll = false;
  EXPECT_TRUE(find(artifact, "effects").holds);
}

TEST(VerifyCode, writes_another_slice) {
  Code add = makeAdd();
  add.stored.first = 8; // the last eight are written beyond
  add.stored.count = 32;
  Artifact artifact = makeArtifact(makeScale(), add);
  KernelOperand &operand = artifact.plans[0].kernels[1].operands[2];
  operand.coversAll = false;
  size_t proved = find(artifact, "effects").proved;
  operand.slice = {32, 128, 192, 1};
  EXPECT_EQ(find(artifact, "effects").proved, proved + 1);
  operand.slice = {28, 132, 192, 1};
  expectRefused(
      artifact, "effects",
      "the code of @add never writes byte 28 of operand 2, the plan says otherwise of its "
      "slice");
  operand.slice = {32, 124, 128, 1};
  expectRefused(
      artifact, "effects",
      "the code of @add writes byte 156 of operand 2, the plan says otherwise of its slice");
  operand.slice = {32, 16, 32, 4};
  expectRefused(artifact, "effects", "the code of @add writes byte 48 of operand 2");
}

TEST(VerifyCode, other_code) {
  Artifact artifact = makeArtifact();
  artifact.plans[0].kernels[1].workgroup = {4, 1, 1};
  expectRefused(artifact, "effects",
                "the code of @add is for workgroups of 8 x 1 x 1, the plan's are 4 x 1 x 1");
  Code add = makeAdd();
  add.name = "subtract";
  expectRefused(makeArtifact(makeScale(), add), "effects",
                "the code of @add has no entry point of this name");
  add = makeAdd();
  add.words.push_back(64);
  add.stored.binding = 3;
  expectRefused(makeArtifact(makeScale(), add), "effects", "the code of @add touches binding 3");
}

TEST(VerifyCode, out_of_bounds) {
  Code add = makeAdd();
  add.words[0] = 128;
  add.loads[0].first = 1;
  expectRefused(makeArtifact(makeScale(), add), "bounds",
                "the code of @add reaches byte 259 of the 256 of operand 0 (word ");
  Artifact artifact = makeArtifact();
  artifact.plans[0].kernels[1].operands[1].alignment = 2;
  expectRefused(artifact, "bounds", "needs an alignment of 4 where the plan says 2");
}

TEST(VerifyCode, permissions) {
  Artifact artifact = makeArtifact();
  artifact.plans[0].kernels[1].inPlace = {{0, 2}, {1, 2}};
  Claim claim = find(artifact, "permissions");
  EXPECT_TRUE(claim.holds) << claim.detail;
  EXPECT_EQ(claim.proved, 2u);
  // Stored before it is read.
  Code add = makeAdd();
  add.storesFirst = true;
  artifact.code["code/vulkan/add.spv"] = assembleKernel(add);
  expectRefused(artifact, "permissions", "the plan says that @add may write operand 2 over");
  // Read by others than who stores.
  add = makeAdd();
  add.loads[1] = {1, 1, 32};
  artifact.code["code/vulkan/add.spv"] = assembleKernel(add);
  expectRefused(artifact, "permissions", "over operand 1, but its code may read byte 4 (word ");
}

TEST(VerifyCode, barriers_between_what_shares_no_byte) {
  Code scale = makeScale(), add = makeAdd();
  scale.stored.count = 32;
  Artifact artifact = makeArtifact(scale, add);
  EXPECT_TRUE(find(artifact, "needs").holds);
  EXPECT_EQ(find(artifact, "needs").proved, 3u);
  add.loads[0] = {0, 32, 32};
  expectRefused(makeArtifact(scale, add), "needs",
                "the hazard that forced barrier 0, from dispatch 0 to 2, is between kernels whose "
                "code touches no common byte");
  // Bytes that go from one value to another go as a whole.
  Artifact reused = makeArtifact(scale, add);
  Plan &plan = reused.plans[0];
  ASSERT_EQ(plan.commands[0].kind, Command::Kind::Dispatch);
  for (Command &command : plan.commands)
    if (command.kind == Command::Kind::Barrier) {
      std::vector<Command *> dispatches;
      for (Command &other : plan.commands)
        if (other.kind == Command::Kind::Dispatch)
          dispatches.push_back(&other);
      const Hazard &hazard = command.hazards.front();
      dispatches[hazard.to]->operands[hazard.toOperand].value = -1;
      break;
    }
  EXPECT_TRUE(find(reused, "needs").holds);
  EXPECT_EQ(find(reused, "needs").proved, 1u);
}

/// Returns a kernel in which each invocation stores to a tile and loads what its neighbour did,
/// with a barrier between; all but `comers` invocations go around it.
static Bytes makeTile(const std::string &semantics, int comers = 8) {
  std::string barrier = "OpLine %file 4 1\nOpControlBarrier %c2 %c2 " + semantics + "\n";
  if (comers < 8)
    barrier = "%few = OpULessThan %bool %l %c" + std::to_string(comers) +
              "\nOpSelectionMerge %all None\nOpBranchConditional %few %some %all\n"
              "%some = OpLabel\n" +
              barrier + "OpBranch %all\n%all = OpLabel\n";
  return assemble(R"(
  OpCapability Shader
  OpMemoryModel Logical GLSL450
  OpEntryPoint GLCompute %main "add" %local %tile %out
  OpExecutionMode %main LocalSize 8 1 1
  %file = OpString "graph.mlir"
  OpDecorate %local BuiltIn LocalInvocationId
  OpDecorate %array ArrayStride 4
  OpMemberDecorate %buffer 0 Offset 0
  OpDecorate %buffer Block
  OpDecorate %out DescriptorSet 0
  OpDecorate %out Binding 2
  %void = OpTypeVoid
  %bool = OpTypeBool
  %uint = OpTypeInt 32 0
  %v3 = OpTypeVector %uint 3
  %pin = OpTypePointer Input %v3
  %local = OpVariable %pin Input
  %c0 = OpConstant %uint 0
  %c1 = OpConstant %uint 1
  %c2 = OpConstant %uint 2
  %c3 = OpConstant %uint 3
  %c7 = OpConstant %uint 7
  %c8 = OpConstant %uint 8
  %buffers = OpConstant %uint 72
  %both = OpConstant %uint 328
  %row = OpTypeArray %uint %c8
  %ptile = OpTypePointer Workgroup %row
  %pt = OpTypePointer Workgroup %uint
  %tile = OpVariable %ptile Workgroup
  %array = OpTypeArray %uint %c8
  %buffer = OpTypeStruct %array
  %pbuffer = OpTypePointer StorageBuffer %buffer
  %p = OpTypePointer StorageBuffer %uint
  %out = OpVariable %pbuffer StorageBuffer
  %signature = OpTypeFunction %void
  %main = OpFunction %void None %signature
  %entry = OpLabel
  %ids = OpLoad %v3 %local
  %l = OpCompositeExtract %uint %ids 0
  %to = OpAccessChain %pt %tile %l
  OpLine %file 3 1
  OpStore %to %l
)" + barrier + R"(
  %next = OpIAdd %uint %l %c1
  %turned = OpBitwiseAnd %uint %next %c7
  %from = OpAccessChain %pt %tile %turned
  OpLine %file 5 1
  %x = OpLoad %uint %from
  %at = OpAccessChain %p %out %c0 %l
  OpStore %at %x
  OpReturn
  OpFunctionEnd
)");
}

/// Returns a kernel in which each invocation stores behind a place that it loads, and maybe to
/// the operand that it loads that from.
static Bytes makeShifted(bool writesOperand) {
  std::string store = writesOperand ? "%next = OpIAdd %uint %l %c1\n"
                                      "%beside = OpAccessChain %p %in %c0 %next\n"
                                      "OpStore %beside %l\n"
                                    : "";
  return assemble(R"(
  OpCapability Shader
  OpMemoryModel Logical GLSL450
  OpEntryPoint GLCompute %main "add" %local %in %out
  OpExecutionMode %main LocalSize 8 1 1
  OpDecorate %local BuiltIn LocalInvocationId
  OpDecorate %array ArrayStride 4
  OpMemberDecorate %buffer 0 Offset 0
  OpDecorate %buffer Block
  OpDecorate %in DescriptorSet 0
  OpDecorate %in Binding 0
  OpDecorate %out DescriptorSet 0
  OpDecorate %out Binding 2
  %void = OpTypeVoid
  %uint = OpTypeInt 32 0
  %v3 = OpTypeVector %uint 3
  %pin = OpTypePointer Input %v3
  %local = OpVariable %pin Input
  %c0 = OpConstant %uint 0
  %c1 = OpConstant %uint 1
  %c2 = OpConstant %uint 2
  %c8 = OpConstant %uint 8
  %array = OpTypeArray %uint %c8
  %buffer = OpTypeStruct %array
  %pbuffer = OpTypePointer StorageBuffer %buffer
  %p = OpTypePointer StorageBuffer %uint
  %in = OpVariable %pbuffer StorageBuffer
  %out = OpVariable %pbuffer StorageBuffer
  %signature = OpTypeFunction %void
  %main = OpFunction %void None %signature
  %entry = OpLabel
  %ids = OpLoad %v3 %local
  %l = OpCompositeExtract %uint %ids 0
  %place = OpAccessChain %p %in %c0 %c0
  %loaded = OpLoad %uint %place
)" + store + R"(
  %low = OpBitwiseAnd %uint %loaded %c1
  %base = OpIMul %uint %low %c2
  %to = OpIAdd %uint %base %l
  %at = OpAccessChain %p %out %c0 %to
  OpStore %at %l
  OpReturn
  OpFunctionEnd
)");
}

TEST(VerifyCode, places_that_all_invocations_load) {
  Artifact artifact = makeArtifact();
  Bytes &code = artifact.code["code/vulkan/add.spv"];
  code = makeShifted(/*writesOperand=*/false);
  Claim claim = find(artifact, "races");
  EXPECT_TRUE(claim.holds) << claim.detail;
  EXPECT_EQ(claim.taken, 0u) << claim.detail;
  // The written values may not be the same for all.
  code = makeShifted(/*writesOperand=*/true);
  claim = find(artifact, "races");
  EXPECT_TRUE(claim.holds) << claim.detail;
  EXPECT_EQ(claim.taken, 1u) << claim.detail;
  EXPECT_NE(claim.detail.find("operand 2 of @add"), std::string::npos) << claim.detail;
}

TEST(VerifyCode, races) {
  Claim claim = find(makeArtifact(), "races");
  EXPECT_TRUE(claim.holds) << claim.detail;
  EXPECT_EQ(claim.proved, 6u) << claim.detail; // operands
  Artifact artifact = makeArtifact();
  Bytes &code = artifact.code["code/vulkan/add.spv"];
  code = makeTile("%both");
  claim = find(artifact, "races");
  EXPECT_TRUE(claim.holds) << claim.detail;
  EXPECT_EQ(claim.proved, 7u) << claim.detail; // a tile
  EXPECT_EQ(find(artifact, "uniform barriers").proved, 1u);
  for (const char *semantics : {"%c0", "%buffers"}) {
    code = makeTile(semantics);
    expectRefused(artifact, "races", "(@add, sample.mlir:2:1) an invocation reads (word ");
    std::string detail = find(artifact, "races").detail;
    EXPECT_NE(detail.find(", graph.mlir:5) byte "), std::string::npos) << detail;
    EXPECT_NE(detail.find(" of workgroup memory of @add and another writes (word "),
              std::string::npos)
        << detail;
    EXPECT_NE(detail.find(", graph.mlir:3) it, and no barrier of the kernel orders the two"),
              std::string::npos)
        << detail;
  }
  // Of a launch of two workgroups, both write all of the operand.
  code = makeTile("%both");
  for (Command &command : artifact.plans[0].commands)
    command.grid = {2, 1, 1};
  expectRefused(artifact, "races", "of operand 2 of @");
}

TEST(VerifyCode, divergent_barriers) {
  Artifact artifact = makeArtifact();
  artifact.code["code/vulkan/add.spv"] = makeTile("%both", 3);
  expectRefused(artifact, "uniform barriers",
                "some invocations of a workgroup reach the barrier of @add (word ");
  expectRefused(artifact, "uniform barriers", ", graph.mlir:4), others don't");
}

TEST(VerifyCode, unknown_code_is_taken) {
  Artifact artifact = makeArtifact();
  artifact.code["code/vulkan/add.spv"] = test::makeUnknownCode();
  Claim claim = find(artifact, "effects");
  EXPECT_TRUE(claim.holds);
  EXPECT_EQ(claim.taken, 4u); // three accesses, one cover
  EXPECT_NE(claim.detail.find("operand 0 of @add (code/vulkan/add.spv: word 25: opcode 26 is not"),
            std::string::npos)
      << claim.detail;
  EXPECT_EQ(find(artifact, "bounds").taken, 3u);
  EXPECT_EQ(find(artifact, "races").taken, 3u);
  EXPECT_EQ(find(artifact, "uniform barriers").taken, 1u);
}

/// Changes a word of a module behind a given sequence.
static void changeBehind(Bytes &code, std::vector<uint32_t> sequence, uint32_t word) {
  std::vector<uint32_t> words(code.size() / 4);
  std::memcpy(words.data(), code.data(), code.size());
  auto found = std::search(words.begin(), words.end(), sequence.begin(), sequence.end());
  ASSERT_NE(found, words.end());
  found[int64_t(sequence.size())] = word;
  std::memcpy(code.data(), words.data(), code.size());
}

TEST(VerifyCode, code_that_its_environment_does_not_take_is_refused) {
  EXPECT_EQ(find(makeArtifact(), "validity").proved, 2u); // two modules
  // OpMemoryModel with physical addresses, of which the reader makes nothing.
  Artifact artifact = makeArtifact();
  changeBehind(artifact.code["code/vulkan/add.spv"], {3 << 16 | 14}, 1);
  expectRefused(artifact, "validity", "the code of @add is no SPIR-V that vulkan1.3 takes: ");
  for (const Claim &claim : verify(artifact))
    EXPECT_EQ(claim.holds, claim.what != "validity") << claim.what << ": " << claim.detail;
  // A later version than the environment takes.
  artifact = makeArtifact();
  artifact.manifest.targets[0].api = "vulkan1.0";
  expectRefused(artifact, "validity", "the code of @scale is no SPIR-V that vulkan1.0 takes: ");
  artifact.manifest.targets[0].api = "direct3d";
  expectRefused(artifact, "validity", "the validator knows no environment direct3d");
  // A kernel that no dispatch runs is loaded, too.
  artifact = makeArtifact();
  artifact.code["code/vulkan/idle.spv"] = {3, 2, 35, 7};
  artifact.plans[0].kernels.push_back({"idle", "code/vulkan/idle.spv", {8, 1, 1}, {}});
  expectRefused(artifact, "validity", "the code of @idle is no SPIR-V");
}

TEST(VerifyCode, code_that_the_validator_does_not_know_is_taken) {
  Artifact artifact = makeArtifact();
  Bytes &code = artifact.code["code/vulkan/add.spv"];
  std::vector<uint32_t> more = {2 << 16 | 17, 6022}; // OpCapability CooperativeMatrixKHR
  const auto *bytes = reinterpret_cast<const unsigned char *>(more.data());
  code.insert(code.begin() + 20, bytes, bytes + 8);
  Claim claim = find(artifact, "validity");
  // A later SPIRV-Tools says that the capability needs an extension.
  EXPECT_EQ(claim.holds, claim.taken == 1) << claim.detail;
  EXPECT_NE(claim.detail.find(claim.holds ? "from before cooperative matrices" : "is no SPIR-V"),
            std::string::npos)
      << claim.detail;
}

TEST(VerifyCode, code_that_no_device_could_read_is_refused) {
  Artifact artifact = makeArtifact();
  Bytes &code = artifact.code["code/vulkan/add.spv"];
  const Bytes whole = code;
  code = {};
  expectRefused(artifact, "effects",
                "the code of @add cannot be read: code/vulkan/add.spv: is not a SPIR-V module");
  code.assign(whole.begin(), whole.end() - 4);
  expectRefused(artifact, "effects", "no OpFunctionEnd");
  code = {'w', 'e', 'i', 'r'};
  expectRefused(artifact, "effects", "4 bytes");
}

//===----------------------------------------------------------------------===//
// PTX
//===----------------------------------------------------------------------===//

/// Returns instructions by which each of 8 invocations copies every eighth word of one parameter
/// to another, a trip for each of them.
static std::string copyWords(int from, int to, const std::string &load = "ld.global.b32") {
  std::string n = std::to_string(from);
  return "mul.wide.u32 %rd3, %r9, 4;\nadd.s64 %rd4, %rd" + n + ", %rd3;\nadd.s64 %rd5, %rd" +
         std::to_string(to) + ", %rd3;\nmov.b32 %r8, 0;\n$L" + n + ":\n" + load +
         " %r1, [%rd4];\nst.global.b32 [%rd5], %r1;\nadd.s64 %rd4, %rd4, 32;\n"
         "add.s64 %rd5, %rd5, 32;\nadd.s32 %r8, %r8, 1;\nsetp.ne.b32 %p1, %r8, 8;\n@%p1 bra $L" +
         n + ";\n";
}

/// Returns the sample for cuda, with a PTX body for @add. Operands 0 to 2 are in %rd0 to %rd2, the
/// invocation is in %r9.
static Artifact makePtx(const std::string &body, const std::string &size = "8, 1, 1") {
  Artifact artifact = makeArtifact();
  artifact.manifest.targets[0].target = artifact.plans[0].target = "cuda";
  auto getText = [&](const std::string &name, const std::string &instructions) {
    std::string text =
        ".version 8.0\n.target sm_80\n.address_size 64\n\n.visible .entry " + name + "(\n";
    for (int i = 0; i < 3; ++i)
      text += "\t.param .u64 .ptr .global .align 1 " + name + "_param_" + std::to_string(i) +
              (i < 2 ? ",\n" : "\n");
    text += ")\n.reqntid " + size +
            "\n{\n\t.reg .b64 %rd<9>;\n\t.reg .b32 %r<10>;\n\t.reg .pred %p<3>;\n";
    for (int i = 0; i < 3; ++i)
      text += "\tld.param.b64 %rd" + std::to_string(i) + ", [" + name + "_param_" +
              std::to_string(i) + "];\n";
    text += "\tmov.u32 %r9, %tid.x; // of the group\n\t.loc 1 7 3\n";
    text += instructions + "\tret;\n}\n";
    return Bytes(text.begin(), text.end());
  };
  artifact.code = {{"code/cuda/scale.ptx", getText("scale", copyWords(0, 2))},
                   {"code/cuda/add.ptx", getText("add", body)}};
  artifact.plans[0].kernels[0].code = "code/cuda/scale.ptx";
  artifact.plans[0].kernels[1].code = "code/cuda/add.ptx";
  return artifact;
}

static std::string ptxAdd() { return copyWords(0, 2) + "ld.global.b32 %r1, [%rd1+16];\n"; }

TEST(VerifyCode, all_of_ptx_is_proved) {
  for (const Claim &claim : verify(makePtx(ptxAdd()))) {
    EXPECT_TRUE(claim.holds) << claim.what << ": " << claim.detail;
    // The plan needs no order for the other kernel's reads of its constants.
    EXPECT_EQ(claim.taken, 0u) << claim.what << ": " << claim.detail;
  }
  EXPECT_EQ(find(makePtx(ptxAdd()), "effects").proved, 8u); // six accesses, two covers
  EXPECT_EQ(find(makePtx(ptxAdd()), "bounds").proved, 6u);
}

TEST(VerifyCode, ptx_reads_and_writes) {
  Artifact artifact = makePtx(ptxAdd());
  artifact.plans[0].kernels[1].operands[1].access = Access::None;
  expectRefused(artifact, "effects", "the code of @add reads operand 1 (line 32), the plan");
  artifact = makePtx(ptxAdd() + "st.global.b32 [%rd1+4], %r1;\n");
  expectRefused(artifact, "effects", "the code of @add writes operand 1 (line 33), the plan");
  artifact = makePtx(ptxAdd() + "red.global.add.u32 [%rd0], %r1;\n");
  expectRefused(artifact, "effects", "the code of @add writes operand 0 (line 33), the plan");
  artifact = makePtx(ptxAdd() + "ld.global.b32 %r1, [%rd0+256];\n");
  expectRefused(artifact, "bounds", "reaches byte 259 of the 256 of operand 0 (line 33)");
}

TEST(VerifyCode, ptx_races) {
  std::string shared = ".shared .align 4 .b8 s[32];\nmov.b32 %r2, s;\nshl.b32 %r3, %r9, 2;\n"
                       "add.s32 %r4, %r2, %r3;\nst.shared.b32 [%r4], %r9;\n";
  std::string load = "ld.shared.b32 %r5, [s+12];\n";
  EXPECT_EQ(find(makePtx(ptxAdd() + shared + "bar.sync 0;\n" + load), "races").taken, 0u);
  expectRefused(makePtx(ptxAdd() + shared + load), "races", "workgroup memory of @add");
  // A place that is rotated: the highest bit of a rest is turned round, and a row is put before.
  std::string rotated =
      "shr.u32 %r3, %r9, 1;\nand.b32 %r5, %r9, 1;\nadd.s32 %r3, %r3, %r5;\nand.b32 %r3, %r3, 3;\n"
      "xor.b32 %r3, %r3, 2;\nshl.b32 %r3, %r3, 2;\nand.b32 %r5, %r9, 4;\nshl.b32 %r5, %r5, 2;\n"
      "or.b32 %r3, %r3, %r5;\nadd.s32 %r3, %r3, %r2;\nld.shared.b32 %r5, [%r3];\n";
  EXPECT_EQ(find(makePtx(ptxAdd() + shared + "bar.sync 0;\n" + rotated), "races").taken, 0u);
  expectRefused(makePtx(ptxAdd() + shared + rotated), "races", "workgroup memory of @add");
  // A barrier for a part of the warp orders something, but not what is followed.
  Claim claim = find(makePtx(ptxAdd() + shared + "bar.warp.sync 255;\n" + load), "races");
  EXPECT_TRUE(claim.holds) << claim.detail;
  EXPECT_EQ(claim.taken, 1u) << claim.detail;
  // It orders no other warps.
  Artifact warps = makePtx(ptxAdd() + shared + "bar.warp.sync 255;\n" + load);
  warps.manifest.targets[0].subgroupSize = 4;
  expectRefused(warps, "races", "workgroup memory of @add");
  // All invocations reach the barrier, or only some.
  std::string leave = "setp.gt.u32 %p2, %r9, ";
  claim = find(makePtx(ptxAdd() + shared + leave + "7;\n@%p2 ret;\nbar.sync 0;\n" + load), "races");
  EXPECT_EQ(claim.taken, 0u) << claim.detail;
  expectRefused(makePtx(ptxAdd() + shared + leave + "6;\n@%p2 ret;\nbar.sync 0;\n"),
                "uniform barriers",
                "some invocations of a workgroup reach the barrier of @add (line 40)");
}

//===----------------------------------------------------------------------===//
// Copies that land later
//===----------------------------------------------------------------------===//

/// Returns the sample with a body that finds its word of operand 0 at %rd5, of operand 2 at %rd6,
/// and two slabs of 32 bytes: its own word of the first is at %r4, its neighbour's at %r5.
static Artifact makeCopies(const std::string &body) {
  return makePtx(ptxAdd() +
                 ".shared .align 4 .b8 s[32];\n.shared .align 4 .b8 u[32];\nmov.b32 %r2, s;\n"
                 "mov.b32 %r6, u;\nshl.b32 %r3, %r9, 2;\nadd.s32 %r4, %r2, %r3;\n"
                 "xor.b32 %r5, %r3, 4;\nadd.s32 %r7, %r6, %r5;\nadd.s32 %r5, %r2, %r5;\n"
                 "add.s32 %r6, %r6, %r3;\ncvt.u64.u32 %rd3, %r3;\nadd.s64 %rd5, %rd0, %rd3;\n"
                 "add.s64 %rd6, %rd2, %rd3;\n" +
                 body);
}

/// The two slabs in turn, each copied while the other is read.
static std::string makePipeline(const std::string &first, const std::string &second,
                                const std::string &barrier) {
  const std::string wait = "cp.async.wait_group ";
  return "cp.async.ca.shared.global [%r4], [%rd5], 4;\ncp.async.commit_group;\n"
         "mov.b32 %r8, 0;\n$Lcopies:\n" +
         wait + first + ";\n" + barrier +
         "cp.async.ca.shared.global [%r6], [%rd5], 4;\ncp.async.commit_group;\n"
         "ld.shared.b32 %r1, [%r5];\n" +
         wait + second + ";\n" + barrier +
         "cp.async.ca.shared.global [%r4], [%rd5], 4;\ncp.async.commit_group;\n"
         "ld.shared.b32 %r1, [%r7];\n"
         "add.s32 %r8, %r8, 1;\nsetp.ne.b32 %p1, %r8, 5;\n@%p1 bra $Lcopies;\n"
         "cp.async.wait_all;\nbar.sync 0;\nld.shared.b32 %r1, [%r5];\n";
}

TEST(VerifyCode, ptx_copies) {
  const std::string copy = "cp.async.ca.shared.global [%r4], [%rd5], 4;\n",
                    commit = "cp.async.commit_group;\n", none = "cp.async.wait_group 0;\n",
                    one = "cp.async.wait_group 1;\n", barrier = "bar.sync 0;\n",
                    load = "ld.shared.b32 %r1, [%r5];\n";
  auto expectProved = [](const std::string &body) {
    Claim claim = find(makeCopies(body), "races");
    EXPECT_TRUE(claim.holds) << claim.detail;
    EXPECT_EQ(claim.taken, 0u) << claim.detail;
  };
  expectProved(copy + "cp.async.wait_all;\n" + barrier + load);
  expectProved(copy + commit + none + barrier + load);
  expectProved(copy + commit + commit + one + barrier + load);
  expectProved(makePipeline("0", "0", barrier));
  auto expectRace = [](const std::string &body) {
    expectRefused(makeCopies(body), "races", "workgroup memory of @add");
  };
  expectRace(copy + commit + none + load);                    // no barrier
  expectRace(copy + commit + barrier + load);                 // no wait
  expectRace(copy + commit + barrier + none + load);          // the wrong order
  expectRace(copy + none + barrier + load);                   // the copy is in no group
  expectRace(copy + commit + one + barrier + load);           // a wait for older groups
  expectRace(copy + barrier + "ld.shared.b32 %r1, [%r4];\n"); // not even its own
  expectRace(makePipeline("1", "0", barrier));
  expectRace(makePipeline("0", "1", barrier));
  expectRace(makePipeline("0", "0", ""));
}

TEST(VerifyCode, ptx_copies_on_some_ways) {
  auto make = [](const std::string &wait) {
    return makeCopies("cp.async.ca.shared.global [%r4], [%rd5], 4;\ncp.async.commit_group;\n"
                      "ld.global.b32 %r1, [%rd1];\nsetp.eq.b32 %p1, %r1, 0;\n@%p1 bra $Lskip;\n" +
                      wait + "$Lskip:\nbar.sync 0;\nld.shared.b32 %r1, [%r5];\n");
  };
  // A wait that data decide of proves nothing, and disproves nothing.
  EXPECT_EQ(find(make("cp.async.wait_all;\n"), "races").taken, 1u);
  expectRefused(make(""), "races", "workgroup memory of @add");
}

/// A copy reads until it has landed: what it reads must not be written before.
TEST(VerifyCode, ptx_copies_and_permissions) {
  auto make = [](const std::string &wait) {
    Artifact artifact = makeCopies("cp.async.ca.shared.global [%r4], [%rd5], 4;\n" + wait +
                                   "mov.b32 %r1, 1;\nst.global.b32 [%rd6], %r1;\n");
    std::string text(artifact.code["code/cuda/add.ptx"].begin(),
                     artifact.code["code/cuda/add.ptx"].end());
    // Without the loop that copies by itself.
    size_t begin = text.find("mul.wide"), end = text.find("ld.global.b32 %r1, [%rd1+16]");
    text.erase(begin, end - begin);
    artifact.code["code/cuda/add.ptx"] = Bytes(text.begin(), text.end());
    artifact.plans[0].kernels[1].inPlace = {{0, 2}};
    return artifact;
  };
  EXPECT_EQ(find(make("cp.async.wait_all;\nbar.sync 0;\n"), "permissions").proved, 1u);
  expectRefused(make("bar.sync 0;\n"), "permissions", "may read byte");
}

TEST(VerifyCode, ptx_lanes) {
  auto make = [](const std::string &mask) {
    Artifact artifact = makePtx(ptxAdd() + "setp.gt.u32 %p2, %r9, 3;\n@%p2 bra $Lend;\n" +
                                "shfl.sync.bfly.b32 %r5, %r9, 1, 31, " + mask + ";\n$Lend:\n" +
                                "shfl.sync.bfly.b32 %r6, %r9, 1, 31, -1;\nbar.warp.sync 255;\n");
    artifact.manifest.targets[0].subgroupSize = 32;
    return artifact;
  };
  Claim claim = find(make("15"), "uniform barriers");
  EXPECT_TRUE(claim.holds) << claim.detail;
  EXPECT_EQ(claim.proved, 3u) << claim.detail;
  EXPECT_EQ(claim.taken, 0u) << claim.detail;
  EXPECT_EQ(find(make("%r9"), "uniform barriers").taken, 1u);
  for (const char *mask : {"7", "31", "-1"})
    expectRefused(
        make(mask), "uniform barriers",
        "the lanes in the mask of the shuffle or barrier of @add (line 35) are not those");
}

TEST(VerifyCode, ptx_loads_past_stores) {
  // An operand that may be written over must not be read by a cache that stores do not reach.
  auto make = [](const std::string &load) {
    Artifact artifact = makePtx(copyWords(0, 2, load) + "ld.global.b32 %r1, [%rd1+16];\n");
    artifact.plans[0].kernels[1].inPlace = {{0, 2}};
    return artifact;
  };
  EXPECT_EQ(find(make("ld.global.b32"), "permissions").proved, 1u);
  expectRefused(make("ld.global.nc.b32"), "permissions", "may read byte");
  // Without such a pair it may.
  EXPECT_EQ(
      find(makePtx(copyWords(0, 2, "ld.global.nc.b32") + "ld.global.b32 %r1, [%rd1];\n"), "races")
          .taken,
      0u);
}

TEST(VerifyCode, ptx_of_either_parameter) {
  expectRefused(makePtx(ptxAdd() + "setp.gt.u32 %p1, %r9, 3;\nselp.b64 %rd8, %rd0, %rd2, %p1;\n"
                                   "st.global.b32 [%rd8], %r1;\n"),
                "effects", "the code of @add writes operand 0 (line 35)");
  Claim claim =
      find(makePtx(ptxAdd() + "setp.gt.u32 %p1, %r9, 7;\nselp.b64 %rd8, %rd0, %rd2, %p1;\n"
                              "st.global.b32 [%rd8], %r1;\n"),
           "effects");
  EXPECT_TRUE(claim.holds) << claim.detail;
  EXPECT_EQ(claim.taken, 0u) << claim.detail;
  // The difference of two addresses leads from one operand to another.
  claim = find(makePtx(ptxAdd() + "sub.s64 %rd3, %rd1, %rd0;\nadd.s64 %rd8, %rd0, %rd3;\n"
                                  "st.global.b32 [%rd8], %r1;\n"),
               "effects");
  EXPECT_NE(claim.detail.find("the access of operand 1 of @add"), std::string::npos)
      << claim.detail;
}

TEST(VerifyCode, ptx_that_is_not_followed) {
  for (const char *body : {"ld.global.b64 %rd8, [%rd0];\nst.global.b32 [%rd8], %r1;\n",
                           "call helper, (%rd0);\n", "cp.async.ca.global [%rd0], [%rd1], 4;\n",
                           "st.global.b32 %rd0, %r1;\n", "ld.param.b64 %rd0, [add_param_9];\n",
                           "st.global.b64 [%rd0], %rd1;\n", "bar.sync 0, 4;\n"}) {
    Claim claim = find(makePtx(body), "effects");
    EXPECT_TRUE(claim.holds) << claim.detail;
    EXPECT_EQ(claim.proved, 4u) << claim.detail; // of the other kernel
    EXPECT_NE(claim.detail.find("operand 0 of @add ("), std::string::npos) << claim.detail;
  }
}

TEST(VerifyCode, ptx_of_another_kernel) {
  expectRefused(makePtx(ptxAdd(), "16, 1, 1"), "effects",
                "the code of @scale is for workgroups of 16 x 1 x 1");
  Artifact artifact = makePtx(ptxAdd());
  artifact.plans[0].kernels[1].code = "code/cuda/scale.ptx";
  expectRefused(artifact, "effects", "the code of @add has no entry point of this name");
}

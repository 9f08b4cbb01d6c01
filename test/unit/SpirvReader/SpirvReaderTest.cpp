//===- SpirvReaderTest.cpp - Modules that read, and words that don't ------===//

#include "weir/SpirvReader/Module.h"

#include "tools/Assemble.h"

#include "gtest/gtest.h"

#include <cstring>
#include <random>

using namespace weir;
using namespace weir::spv;

static const char *const sample = R"(
  OpCapability Shader
  OpCapability Int64
  %glsl = OpExtInstImport "GLSL.std.450"
  OpMemoryModel Logical GLSL450
  OpEntryPoint GLCompute %main "scale" %x %local %tile
  OpExecutionMode %main LocalSize 8 2 1
  %file = OpString "graph.mlir"
  OpDecorate %array ArrayStride 16
  OpMemberDecorate %buffer 0 Offset 0
  OpDecorate %buffer Block
  OpDecorate %x Binding 3
  OpDecorate %x DescriptorSet 0
  OpDecorate %local BuiltIn LocalInvocationId
  OpDecorate %sum NoContraction
  %void = OpTypeVoid
  %bool = OpTypeBool
  %uint = OpTypeInt 32 0
  %long = OpTypeInt 64 0
  %float = OpTypeFloat 32
  %v3 = OpTypeVector %uint 3
  %v4 = OpTypeVector %float 4
  %zero = OpConstant %uint 0
  %one = OpConstant %uint 1
  %count = OpConstant %uint 100
  %large = OpConstant %long 0x123456789a
  %half = OpConstant %float 0.5
  %halves = OpConstantComposite %v4 %half %half %half %half
  %none = OpConstantNull %v4
  %array = OpTypeArray %v4 %count
  %buffer = OpTypeStruct %array
  %plain = OpTypeArray %float %count
  %mixed = OpTypeStruct %uint %long %uint
  %pbuffer = OpTypePointer StorageBuffer %buffer
  %pv4 = OpTypePointer StorageBuffer %v4
  %pin = OpTypePointer Input %v3
  %ptile = OpTypePointer Workgroup %plain
  %pmixed = OpTypePointer Function %mixed
  %x = OpVariable %pbuffer StorageBuffer
  %local = OpVariable %pin Input
  %tile = OpVariable %ptile Workgroup
  %signature = OpTypeFunction %void
  %main = OpFunction %void None %signature
  %entry = OpLabel
  %own = OpVariable %pmixed Function
  %id = OpLoad %v3 %local
  %i = OpCompositeExtract %uint %id 0
  OpBranch %head
  %head = OpLabel
  %n = OpPhi %uint %zero %entry %next %body
  %more = OpULessThan %bool %n %i
  OpLoopMerge %done %body None
  OpBranchConditional %more %body %done
  %body = OpLabel
  OpLine %file 7 3
  %place = OpAccessChain %pv4 %x %zero %n
  %value = OpLoad %v4 %place
  OpNoLine
  %sum = OpFAdd %v4 %value %halves
  OpStore %place %sum
  %next = OpIAdd %uint %n %one
  OpBranch %head
  %done = OpLabel
  OpReturn
  OpFunctionEnd
)";

static Module read(const Bytes &bytes) { return Module(bytes, "sample.spv"); }

/// Returns the instructions of an opcode, in order.
static std::vector<Instruction> find(const Module &module, Op op) {
  std::vector<Instruction> found;
  for (const Function &function : module.getFunctions())
    for (const Block &block : function.blocks)
      for (const Instruction &instruction : block.instructions)
        if (instruction.op == op)
          found.push_back(instruction);
  return found;
}

TEST(SpirvReader, entry_point) {
  Module module = read(assemble(sample));
  const EntryPoint *entry = module.findEntryPoint("scale");
  ASSERT_TRUE(entry);
  EXPECT_EQ(entry->model, ExecutionModel::GLCompute);
  EXPECT_EQ(entry->localSize, (std::array<uint32_t, 3>{8, 2, 1}));
  EXPECT_EQ(&module.getFunction(entry->function), &module.getFunctions().front());
  EXPECT_FALSE(module.findEntryPoint("main"));
  EXPECT_TRUE(module.getCapabilities().contains(11)); // Int64
}

TEST(SpirvReader, variables_have_their_decorations) {
  Module module = read(assemble(sample));
  ASSERT_EQ(module.getVariables().size(), 3u);
  const Variable &x = module.getVariables()[0], &local = module.getVariables()[1];
  EXPECT_EQ(x.storage, StorageClass::StorageBuffer);
  EXPECT_EQ(x.binding, 3u);
  EXPECT_EQ(x.set, 0u);
  EXPECT_FALSE(x.builtIn);
  EXPECT_EQ(local.builtIn, BuiltIn::LocalInvocationId);
  EXPECT_FALSE(local.binding);
}

TEST(SpirvReader, layouts) {
  Module module = read(assemble(sample));
  const Type &buffer = module.getType(module.getType(module.getVariables()[0].type).element);
  EXPECT_EQ(buffer.bytes, 1600);
  const Type &array = module.getType(buffer.members[0]);
  EXPECT_EQ(array.stride, 16);
  EXPECT_EQ(array.count, 100u);
  EXPECT_EQ(module.getType(array.element).kind, Type::Kind::Vector);
  const Type &tile = module.getType(module.getType(module.getVariables()[2].type).element);
  EXPECT_EQ(tile.bytes, 400);
  EXPECT_EQ(tile.stride, 4);
  const Type &own = module.getType(module.getType(find(module, Op::Variable)[0].type).element);
  EXPECT_EQ(own.offsets, (std::vector<int64_t>{0, 8, 16}));
  EXPECT_EQ(own.bytes, 20);
  EXPECT_EQ(own.alignment, 8);
}

TEST(SpirvReader, constants) {
  Module module = read(assemble(sample));
  Instruction sum = find(module, Op::FAdd)[0];
  const Constant &halves = module.getConstant(sum.operands[1]);
  ASSERT_EQ(halves.kind, Constant::Kind::Composite);
  EXPECT_EQ(module.getConstant(halves.parts[3]).bits, 0x3f000000u);
  EXPECT_FALSE(module.findConstant(sum.result));
  EXPECT_TRUE(module.isDecorated(sum.result, Decoration::NoContraction));
  EXPECT_FALSE(module.isDecorated(sum.operands[0], Decoration::NoContraction));
  EXPECT_EQ(module.getTypeOf(sum.result), sum.type);
  bool hasLarge = false;
  for (Id id = 1; id < module.getBound(); ++id)
    if (const Constant *constant = module.findConstant(id))
      hasLarge |= constant->bits == 0x123456789a;
  EXPECT_TRUE(hasLarge);
}

TEST(SpirvReader, blocks) {
  Module module = read(assemble(sample));
  const Function &main = module.getFunctions()[0];
  ASSERT_EQ(main.blocks.size(), 4u);
  EXPECT_EQ(main.blocks[1].successors, (std::vector<uint32_t>{2, 3}));
  EXPECT_EQ(main.blocks[2].successors, (std::vector<uint32_t>{1}));
  EXPECT_EQ(main.getBlock(main.blocks[1].merge), 3u);
  EXPECT_EQ(main.getBlock(main.blocks[1].continueTarget), 2u);
  EXPECT_EQ(main.blocks[0].merge, 0u);
}

TEST(SpirvReader, lines) {
  Module module = read(assemble(sample));
  SourceLine load = find(module, Op::Load)[1].source;
  EXPECT_EQ(module.getString(load.file), "graph.mlir");
  EXPECT_EQ(load.line, 7u);
  EXPECT_EQ(load.column, 3u);
  EXPECT_EQ(find(module, Op::Load)[0].source.line, 0u);
  EXPECT_EQ(find(module, Op::FAdd)[0].source.line, 0u);
}

TEST(SpirvReader, either_byte_order) {
  Bytes bytes = assemble(sample);
  for (size_t i = 0; i < bytes.size(); i += 4)
    std::reverse(bytes.begin() + i, bytes.begin() + i + 4);
  EXPECT_TRUE(read(bytes).findEntryPoint("scale"));
}

//===----------------------------------------------------------------------===//
// Words that are wrong
//===----------------------------------------------------------------------===//

static std::string getError(const Bytes &bytes) {
  try {
    read(bytes);
    return "";
  } catch (const Error &error) {
    return error.what();
  }
}

/// Returns the sample with one word changed.
static Bytes change(size_t word, uint32_t value) {
  static const Bytes assembled = assemble(sample);
  Bytes bytes = assembled;
  std::memcpy(bytes.data() + word * 4, &value, 4);
  return bytes;
}

TEST(SpirvReader, refuses_headers) {
  EXPECT_EQ(getError(assemble(sample)), "");
  EXPECT_NE(getError({}).find("sample.spv: is not a SPIR-V module: 0 bytes"), std::string::npos);
  EXPECT_NE(getError(Bytes(21)).find("21 bytes"), std::string::npos);
  EXPECT_NE(getError(Bytes(20)).find("the first word"), std::string::npos);
  EXPECT_NE(getError(change(1, 0x20000)).find("the version"), std::string::npos);
  EXPECT_NE(getError(change(3, 0)).find("the bound"), std::string::npos);
  EXPECT_NE(getError(change(3, 0xffffffff)).find("the bound"), std::string::npos);
  EXPECT_NE(getError(change(3, 5)).find("not below the bound"), std::string::npos);
}

TEST(SpirvReader, names_the_opcode_that_it_does_not_know) {
  EXPECT_EQ(getError(change(5, 2 << 16 | 5000)),
            "sample.spv: word 5: opcode 5000 is not supported by Weir's reader");
}

TEST(SpirvReader, refuses_lengths) {
  EXPECT_NE(getError(change(5, 0 << 16 | 17)).find("too few"), std::string::npos);
  EXPECT_NE(getError(change(5, 1 << 16 | 17)).find("OpCapability has 1 words, too few"),
            std::string::npos);
  EXPECT_NE(getError(change(5, 0xffffu << 16 | 17)).find("more than the module"),
            std::string::npos);
}

TEST(SpirvReader, refuses_modules_that_end_early) {
  Bytes bytes = assemble(sample);
  // All but the last instruction.
  EXPECT_NE(getError(Bytes(bytes.begin(), bytes.end() - 4)).find("no OpFunctionEnd"),
            std::string::npos);
  for (size_t size = 20; size + 8 < bytes.size(); size += 4)
    getError(Bytes(bytes.begin(), bytes.begin() + size));
}

TEST(SpirvReader, refuses_workgroups_beyond_32_bits) {
  for (const char *sizes :
       {"65536 65536 1", "4294967295 4294967295 4294967295", "2 1 2147483648"}) {
    std::string text = sample;
    text.replace(text.find("8 2 1"), 5, sizes);
    EXPECT_EQ(getError(assemble(text.c_str())),
              "sample.spv: a workgroup has more than 2^32 - 1 invocations");
  }
}

TEST(SpirvReader, refuses_workgroups_without_invocations) {
  std::string text = sample;
  text.replace(text.find("8 2 1"), 5, "8 0 1");
  EXPECT_EQ(getError(assemble(text.c_str())),
            "sample.spv: a local size is 0, and a workgroup needs an invocation");
}

/// A pointer that is made of itself, or of what is behind it, has no variable.
TEST(SpirvReader, refuses_pointers_in_circles) {
  Module module = read(assemble(sample));
  const Instruction chain = find(module, Op::AccessChain).front();
  const Id later = find(module, Op::FAdd).front().result;
  for (Id from : {chain.result, later, Id(0), Id(100000)})
    EXPECT_NE(getError(change(chain.word + 3, from))
                  .find("OpAccessChain uses %" + std::to_string(from) +
                        ", which is not defined before it"),
              std::string::npos);
}

/// Changes any word at random: the reader answers or refuses.
TEST(SpirvReader, survives_any_word) {
  Bytes bytes = assemble(sample);
  std::mt19937_64 random(1);
  size_t refused = 0;
  const uint32_t interesting[] = {0, 1, 2, 0xffff, 0x10000, 0x7fffffff, 0xffffffff};
  for (size_t word = 0; word < bytes.size() / 4; ++word) {
    for (int i = 0; i < 24; ++i) {
      uint32_t value;
      std::memcpy(&value, bytes.data() + word * 4, 4);
      if (i < 7)
        value = interesting[i];
      else if (i < 16)
        value ^= 1u << random() % 32;
      else
        value = uint32_t(random()) % 64 | (i % 2 ? value & 0xffff0000 : 0);
      refused += !getError(change(word, value)).empty();
    }
  }
  EXPECT_GT(refused, bytes.size() / 4);
}

/// Sizes multiply; they must not overflow.
TEST(SpirvReader, refuses_types_beyond_memory) {
  std::string types = R"(
  OpCapability Shader
  OpMemoryModel Logical GLSL450
  %uint = OpTypeInt 32 0
  %many = OpConstant %uint 4294967295
  %a0 = OpTypeArray %uint %many
)";
  std::string nested = types + "%s0 = OpTypeStruct %uint\n";
  for (int i = 1; i < 300; ++i)
    nested += "%s" + std::to_string(i) + " = OpTypeStruct %s" + std::to_string(i - 1) + "\n";
  std::string deep = types;
  for (int i = 1; i < 8; ++i)
    deep += "%a" + std::to_string(i) + " = OpTypeArray %a" + std::to_string(i - 1) + " %many\n";
  spvtools::SpirvTools tools(SPV_ENV_VULKAN_1_3);
  auto assemble = [&](const std::string &text) {
    std::vector<uint32_t> words;
    EXPECT_TRUE(tools.Assemble(text, &words));
    const auto *bytes = reinterpret_cast<const unsigned char *>(words.data());
    return Bytes(bytes, bytes + words.size() * 4);
  };
  EXPECT_EQ(getError(assemble(types)), "");
  EXPECT_NE(getError(assemble(deep)).find("more than 2^48 bytes"), std::string::npos);
  EXPECT_NE(getError(assemble(nested)).find("nested more than 255 deep"), std::string::npos);
}

TEST(SpirvReader, kinds_of_opcodes) {
  for (uint32_t opcode = 0; opcode < 512; ++opcode) {
    OpKind kind = getKind(Op(opcode));
    std::string name = findOpInfo(opcode) ? getName(Op(opcode)) : "";
    EXPECT_EQ(kind == OpKind::Atomic, name.starts_with("OpAtomic")) << name;
    if (kind == OpKind::Shuffle || kind == OpKind::Reduction) {
      EXPECT_TRUE(name.starts_with("OpGroupNonUniform")) << name;
    }
  }
  EXPECT_EQ(getKind(Op::GroupNonUniformBroadcastFirst), OpKind::Shuffle);
  EXPECT_EQ(getKind(Op::GroupNonUniformFMax), OpKind::Reduction);
  EXPECT_EQ(getKind(Op::GroupNonUniformElect), OpKind::Plain);
  EXPECT_EQ(getKind(Op::Load), OpKind::Plain);
}

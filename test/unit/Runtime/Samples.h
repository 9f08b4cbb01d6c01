//===- Samples.h - Small artifacts that run on any device -------*- C++ -*-===//
//
// All tensors have 64 f32 unless said otherwise; kernels have one invocation an
// element and 8 a workgroup.
//
//===----------------------------------------------------------------------===//

#ifndef WEIR_TEST_UNIT_RUNTIME_SAMPLES_H
#define WEIR_TEST_UNIT_RUNTIME_SAMPLES_H

#include "test/unit/Artifact/Sample.h"
#include "tools/Assemble.h"

#include <cstring>

namespace weir::test {

inline constexpr int64_t elements = 64;
inline constexpr int64_t tensorBytes = elements * 4;

/// Makes an elementwise kernel that loads %v0... from all bindings but the last, runs `body`,
/// which defines %result, and stores to the last binding.
inline Bytes makeKernel(const std::string &name, int bindings, const std::string &body,
                        const std::string &extra = "", const std::string &decoration = "",
                        const std::string &types = "") {
  std::string interface, decorations, variables, loads;
  for (int i = 0; i < bindings; ++i) {
    std::string n = std::to_string(i);
    interface += " %b" + n;
    decorations += "OpDecorate %b" + n + " DescriptorSet 0\n";
    decorations += "OpDecorate %b" + n + " Binding " + n + "\n";
    if (!decoration.empty())
      decorations += "OpDecorate %b" + n + " " + decoration + "\n";
    variables += "%b" + n + " = OpVariable %block_ptr StorageBuffer\n";
    if (i + 1 < bindings)
      loads += "%p" + n + " = OpAccessChain %f32_ptr %b" + n + " %zero %i\n" + "%v" + n +
               " = OpLoad %f32 %p" + n + "\n";
  }
  std::string last = std::to_string(bindings - 1);
  return assemble("OpCapability Shader\n" + extra +
                  "OpMemoryModel Logical GLSL450\n"
                  "OpEntryPoint GLCompute %main \"" +
                  name + "\" %id" + interface +
                  "\n"
                  "OpExecutionMode %main LocalSize 8 1 1\n"
                  "OpDecorate %id BuiltIn GlobalInvocationId\n"
                  "OpDecorate %array ArrayStride 4\n"
                  "OpDecorate %block Block\n"
                  "OpMemberDecorate %block 0 Offset 0\n" +
                  decorations +
                  "%void = OpTypeVoid\n"
                  "%void_fn = OpTypeFunction %void\n"
                  "%u32 = OpTypeInt 32 0\n"
                  "%f32 = OpTypeFloat 32\n"
                  "%v3u32 = OpTypeVector %u32 3\n"
                  "%id_ptr = OpTypePointer Input %v3u32\n"
                  "%id = OpVariable %id_ptr Input\n"
                  "%zero = OpConstant %u32 0\n"
                  "%one = OpConstant %f32 1\n"
                  "%two = OpConstant %f32 2\n"
                  "%length = OpConstant %u32 64\n"
                  "%array = OpTypeArray %f32 %length\n"
                  "%block = OpTypeStruct %array\n"
                  "%block_ptr = OpTypePointer StorageBuffer %block\n"
                  "%f32_ptr = OpTypePointer StorageBuffer %f32\n" +
                  types + variables +
                  "%main = OpFunction %void None %void_fn\n"
                  "%entry = OpLabel\n"
                  "%id_value = OpLoad %v3u32 %id\n"
                  "%i = OpCompositeExtract %u32 %id_value 0\n" +
                  loads + body + "%out = OpAccessChain %f32_ptr %b" + last +
                  " %zero %i\n"
                  "OpStore %out %result\n"
                  "OpReturn\n"
                  "OpFunctionEnd\n");
}

/// Lets all code declare the capability GroupNonUniform, as code that asks for its subgroup does.
inline void declareSubgroups(Artifact &artifact) {
  constexpr uint32_t headerWords = 5, words[] = {2 << 16 | 17, 61};
  auto *bytes = reinterpret_cast<const unsigned char *>(words);
  for (auto &[path, code] : artifact.code)
    code.insert(code.begin() + headerWords * sizeof(uint32_t), bytes, bytes + sizeof(words));
}

inline Artifact makeEmptyArtifact() {
  Artifact artifact;
  artifact.manifest.producer = "weir test";
  artifact.manifest.targets = {Profile()};
  return artifact;
}

inline TensorSpec makeTensor(const std::string &name, std::vector<int64_t> shape = {elements}) {
  return {name, "F32", std::move(shape), "", false};
}

inline Command makeDispatch(int64_t kernel, int64_t wave, std::vector<PlanOperand> operands) {
  Command command = dispatch(kernel, wave, std::move(operands));
  command.grid = {elements / 8, 1, 1};
  return command;
}

inline const KernelOperand readOperand{Access::Read, false, tensorBytes, 4};
inline const KernelOperand writeOperand{Access::Write, true, tensorBytes, 4};

/// Returns four entries. chain(x) -> (y): t = 2x in the arena, y = t + c with c[i] = i / 2.
/// increment(s) -> (): s += 1 in place, its reading and its writing two
/// bindings. sum(a, b) -> (y): y = a + b. nothing(e) -> (r): no bytes, no
/// commands. `withBarrier`: off makes `chain` wrong, for a validation layer to
/// find.
inline Artifact makeArtifact(bool withBarrier = true) {
  Artifact artifact = makeEmptyArtifact();
  artifact.code = {
      {"code/vulkan/twice.spv", makeKernel("twice", 2, "%result = OpFMul %f32 %two %v0\n")},
      {"code/vulkan/add.spv", makeKernel("add", 3, "%result = OpFAdd %f32 %v0 %v1\n")},
      {"code/vulkan/increment.spv",
       makeKernel("increment", 2, "%result = OpFAdd %f32 %v0 %one\n", "", "Aliased")}};
  const Kernel twice{"twice", "code/vulkan/twice.spv", {8, 1, 1}, {readOperand, writeOperand}};
  const Kernel add{
      "add", "code/vulkan/add.spv", {8, 1, 1}, {readOperand, readOperand, writeOperand}};
  const Kernel increment{
      "increment", "code/vulkan/increment.spv", {8, 1, 1}, {readOperand, writeOperand}, {{0, 1}}};

  artifact.manifest.constants = {{makeTensor("c"), 0}};
  std::vector<float> c(elements);
  for (int64_t i = 0; i < elements; ++i)
    c[size_t(i)] = float(i) / 2;
  artifact.constants.resize(tensorBytes);
  std::memcpy(artifact.constants.data(), c.data(), tensorBytes);

  Plan chain;
  chain.entry = "chain";
  chain.target = "vulkan";
  chain.arenaBytes = chain.pinnedBytes = 512; // so that views have offsets
  chain.allocations = {{AllocationKind::Argument, 0, tensorBytes},
                       {AllocationKind::Result, 0, tensorBytes},
                       {AllocationKind::Constants, 0, tensorBytes},
                       {AllocationKind::Arena, 0, 512}};
  chain.slots = {{"t", 256, tensorBytes, 256, 0, 1}};
  chain.kernels = {twice, add};
  chain.values = {{"x", tensorBytes}, {"y", tensorBytes}, {"t", tensorBytes}};
  chain.argumentValues = {0};
  chain.resultValues = {1};
  const PlanOperand x{{0, 0, tensorBytes}, 0}, y{{1, 0, tensorBytes}, 1},
      constant{{2, 0, tensorBytes}}, t{{3, 256, tensorBytes}, 2};
  chain.commands = {makeDispatch(0, 0, {x, t}), barrier({{HazardKind::RAW, 0, 1, 1, 0}}, {t}),
                    makeDispatch(1, 1, {t, constant, y})};
  if (!withBarrier)
    chain.commands.erase(chain.commands.begin() + 1);

  Plan step;
  step.entry = "increment";
  step.target = "vulkan";
  step.allocations = {{AllocationKind::Argument, 0, tensorBytes}};
  step.values = {{"s", tensorBytes}, {"more", tensorBytes}};
  step.argumentValues = {0};
  step.kernels = {increment};
  step.commands = {makeDispatch(0, 0, {{{0, 0, tensorBytes}, 0}, {{0, 0, tensorBytes}, 1}})};

  Plan sum;
  sum.entry = "sum";
  sum.target = "vulkan";
  sum.allocations = {{AllocationKind::Argument, 0, tensorBytes},
                     {AllocationKind::Argument, 1, tensorBytes},
                     {AllocationKind::Result, 0, tensorBytes}};
  sum.values = {{"a", tensorBytes}, {"b", tensorBytes}, {"y", tensorBytes}};
  sum.argumentValues = {0, 1};
  sum.resultValues = {2};
  sum.kernels = {add};
  sum.commands = {makeDispatch(
      0, 0, {{{0, 0, tensorBytes}, 0}, {{1, 0, tensorBytes}, 1}, {{2, 0, tensorBytes}, 2}})};

  Plan nothing;
  nothing.entry = "nothing";
  nothing.target = "vulkan";
  nothing.argumentValues = nothing.resultValues = {-1};

  artifact.manifest.entries = {{"chain", {makeTensor("x")}, {makeTensor("y")}},
                               {"increment", {makeTensor("s")}, {}},
                               {"sum", {makeTensor("a"), makeTensor("b")}, {makeTensor("y")}},
                               {"nothing", {makeTensor("e", {4, 0})}, {makeTensor("r", {0})}}};
  artifact.plans = {chain, step, sum, nothing};
  return artifact;
}

/// Returns one entry. reuse(x) -> (y, z): t = 2x; y = t + x; then t's bytes are written again, t =
/// x + x; z = t + y. Needs RAW, WAR and RAW barriers; `withWar` off leaves out
/// the second.
inline Artifact makeReuseArtifact(bool withWar = true) {
  Artifact artifact = makeEmptyArtifact();
  artifact.code = {
      {"code/vulkan/twice.spv", makeKernel("twice", 2, "%result = OpFMul %f32 %two %v0\n")},
      {"code/vulkan/add.spv", makeKernel("add", 3, "%result = OpFAdd %f32 %v0 %v1\n")}};
  Plan plan;
  plan.entry = "reuse";
  plan.target = "vulkan";
  plan.arenaBytes = plan.pinnedBytes = tensorBytes;
  plan.allocations = {{AllocationKind::Argument, 0, tensorBytes},
                      {AllocationKind::Result, 0, tensorBytes},
                      {AllocationKind::Result, 1, tensorBytes},
                      {AllocationKind::Arena, 0, tensorBytes}};
  plan.slots = {{"t", 0, tensorBytes, 256, 0, 1}, {"u", 0, tensorBytes, 256, 2, 3}};
  plan.kernels = {
      {"twice", "code/vulkan/twice.spv", {8, 1, 1}, {readOperand, writeOperand}},
      {"add", "code/vulkan/add.spv", {8, 1, 1}, {readOperand, readOperand, writeOperand}}};
  plan.values = {{"x", tensorBytes},
                 {"y", tensorBytes},
                 {"z", tensorBytes},
                 {"t", tensorBytes},
                 {"u", tensorBytes}};
  plan.argumentValues = {0};
  plan.resultValues = {1, 2};
  const PlanOperand x{{0, 0, tensorBytes}, 0}, y{{1, 0, tensorBytes}, 1}, z{{2, 0, tensorBytes}, 2},
      t{{3, 0, tensorBytes}, 3}, u{{3, 0, tensorBytes}, 4};
  plan.commands = {makeDispatch(0, 0, {x, t}), barrier({{HazardKind::RAW, 0, 1, 1, 0}}, {t}),
                   makeDispatch(1, 1, {t, x, y})};
  if (withWar)
    plan.commands.push_back(barrier({{HazardKind::WAR, 1, 0, 2, 2}}, {}));
  plan.commands.push_back(makeDispatch(1, 2, {x, x, u}));
  plan.commands.push_back(
      barrier({{HazardKind::RAW, 2, 2, 3, 0}, {HazardKind::RAW, 1, 2, 3, 1}}, {u, y}));
  plan.commands.push_back(makeDispatch(1, 3, {u, y, z}));
  artifact.manifest.entries = {{"reuse", {makeTensor("x")}, {makeTensor("y"), makeTensor("z")}}};
  artifact.plans = {plan};
  return artifact;
}

/// Returns two entries. step(s, g) -> (t): s is donated to t, which is s + g + 1, computed over s's
/// bytes by two dispatches. keep(x) -> (y): x is donated to y and is y.
inline Artifact makeDonatingArtifact() {
  Artifact artifact = makeEmptyArtifact();
  artifact.code = {{"code/vulkan/add.spv",
                    makeKernel("add", 3, "%result = OpFAdd %f32 %v0 %v1\n", "", "Aliased")},
                   {"code/vulkan/increment.spv",
                    makeKernel("increment", 2, "%result = OpFAdd %f32 %v0 %one\n", "", "Aliased")}};
  Plan step;
  step.entry = "step";
  step.target = "vulkan";
  step.allocations = {{AllocationKind::Argument, 0, tensorBytes, 0},
                      {AllocationKind::Argument, 1, tensorBytes}};
  step.values = {{"s", tensorBytes}, {"g", tensorBytes}, {"sum", tensorBytes}, {"t", tensorBytes}};
  step.argumentValues = {0, 1};
  step.resultValues = {3};
  step.kernels = {
      {"add", "code/vulkan/add.spv", {8, 1, 1}, {readOperand, readOperand, writeOperand}, {{0, 2}}},
      {"increment", "code/vulkan/increment.spv", {8, 1, 1}, {readOperand, writeOperand}, {{0, 1}}}};
  const PlanOperand s{{0, 0, tensorBytes}, 0}, g{{1, 0, tensorBytes}, 1},
      sum{{0, 0, tensorBytes}, 2}, t{{0, 0, tensorBytes}, 3};
  step.commands = {makeDispatch(0, 0, {s, g, sum}), barrier({{HazardKind::RAW, 0, 2, 1, 0}}, {sum}),
                   makeDispatch(1, 1, {sum, t})};
  Plan keep;
  keep.entry = "keep";
  keep.target = "vulkan";
  keep.allocations = {{AllocationKind::Argument, 0, tensorBytes, 0}};
  keep.values = {{"x", tensorBytes}};
  keep.argumentValues = keep.resultValues = {0};
  artifact.manifest.entries = {{"step", {makeTensor("s"), makeTensor("g")}, {makeTensor("t")}},
                               {"keep", {makeTensor("x")}, {makeTensor("y")}}};
  for (EntrySpec &entry : artifact.manifest.entries)
    entry.arguments[0].donate = true;
  artifact.plans = {step, keep};
  return artifact;
}

} // namespace weir::test

#endif // WEIR_TEST_UNIT_RUNTIME_SAMPLES_H

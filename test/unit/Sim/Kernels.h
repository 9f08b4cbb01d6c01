//===- Kernels.h - Small kernels and plans for the simulator ----*- C++ -*-===//
//
// Kernels are SPIR-V text. `%i` is the global invocation's number along x, `%l` that
// in its workgroup, `%w` the workgroup's; `%n3` is the unsigned 3, `%b0`, `%b1`... are
// the operands, arrays of f32 unless said otherwise.
//
//===----------------------------------------------------------------------===//

#ifndef WEIR_TEST_UNIT_SIM_KERNELS_H
#define WEIR_TEST_UNIT_SIM_KERNELS_H

#include "tools/Assemble.h"

#include "weir/Sim/Sim.h"

#include <cctype>
#include <cstring>
#include <set>

namespace weir::test {

struct KernelText {
  std::string body = "";
  int operands = 2;
  int elements = 8;              ///< of each operand
  uint32_t invocations = 8;      ///< of a workgroup
  std::string variables = "";    ///< of the function
  std::string declarations = ""; ///< types, constants, variables...
  std::string interface = "";    ///< declared variables of the interface
  std::string element = "%float";
  int stride = 4;
  std::string capabilities = "";
  std::string functions = ""; ///< functions that it calls
  std::string line = "";      ///< OpLine before the first instruction
};

inline std::string print(const KernelText &kernel) {
  std::string head = "OpCapability Shader\nOpCapability GroupNonUniform\n"
                     "OpCapability GroupNonUniformShuffle\n" +
                     kernel.capabilities +
                     "%glsl = OpExtInstImport \"GLSL.std.450\"\n"
                     "OpMemoryModel Logical GLSL450\n"
                     "OpEntryPoint GLCompute %main \"kernel\" %vi %vl %vw " +
                     kernel.interface;
  std::string decorations = "OpExecutionMode %main LocalSize " +
                            std::to_string(kernel.invocations) +
                            " 1 1\n"
                            "%file = OpString \"source.mlir\"\n"
                            "OpDecorate %vi BuiltIn GlobalInvocationId\n"
                            "OpDecorate %vl BuiltIn LocalInvocationId\n"
                            "OpDecorate %vw BuiltIn WorkgroupId\n"
                            "OpDecorate %array ArrayStride " +
                            std::to_string(kernel.stride) +
                            "\nOpMemberDecorate %buffer 0 Offset 0\nOpDecorate %buffer Block\n";
  std::string types = "%void = OpTypeVoid\n%bool = OpTypeBool\n%uint = OpTypeInt 32 0\n"
                      "%float = OpTypeFloat 32\n%v3 = OpTypeVector %uint 3\n"
                      "%pv3 = OpTypePointer Input %v3\n";
  std::string text = kernel.body + kernel.declarations + kernel.functions;
  std::set<int> numbers = {0, kernel.elements};
  for (size_t at = text.find("%n"); at != std::string::npos; at = text.find("%n", at + 1))
    if (std::isdigit(text[at + 2]))
      numbers.insert(std::stoi(text.substr(at + 2)));
  for (int number : numbers)
    types += "%n" + std::to_string(number) + " = OpConstant %uint " + std::to_string(number) + "\n";
  types += "%f1 = OpConstant %float 1\n%f2 = OpConstant %float 2\n";
  // Types of elements other than %float are declared before the array.
  types += kernel.declarations;
  types += "%array = OpTypeArray " + kernel.element + " %n" + std::to_string(kernel.elements) +
           "\n%buffer = OpTypeStruct %array\n"
           "%pbuffer = OpTypePointer StorageBuffer %buffer\n%pelement = OpTypePointer "
           "StorageBuffer " +
           kernel.element +
           "\n%vi = OpVariable %pv3 Input\n%vl = OpVariable %pv3 Input\n"
           "%vw = OpVariable %pv3 Input\n";
  for (int i = 0; i < kernel.operands; ++i) {
    std::string name = "%b" + std::to_string(i);
    head += " " + name;
    decorations += "OpDecorate " + name + " DescriptorSet 0\nOpDecorate " + name + " Binding " +
                   std::to_string(i) + "\n";
    types += name + " = OpVariable %pbuffer StorageBuffer\n";
  }
  return head + "\n" + decorations + types +
         "%signature = OpTypeFunction %void\n%main = OpFunction %void None %signature\n"
         "%entry = OpLabel\n" +
         kernel.variables + kernel.line +
         "%ids = OpLoad %v3 %vi\n%i = OpCompositeExtract %uint %ids 0\n"
         "%locals = OpLoad %v3 %vl\n%l = OpCompositeExtract %uint %locals 0\n"
         "%groups = OpLoad %v3 %vw\n%w = OpCompositeExtract %uint %groups 0\n" +
         kernel.body + "OpReturn\nOpFunctionEnd\n" + kernel.functions;
}

/// Returns "%x = b[index]".
inline std::string load(const std::string &x, const std::string &b, const std::string &index,
                        const std::string &type = "%float") {
  return "%p_" + x + " = OpAccessChain %pelement " + b + " %n0 " + index + "\n%" + x +
         " = OpLoad " + type + " %p_" + x + "\n";
}

/// Returns "b[index] = x". `name` makes the ids of a store unique.
inline std::string store(const std::string &name, const std::string &b, const std::string &index,
                         const std::string &x) {
  return "%s_" + name + " = OpAccessChain %pelement " + b + " %n0 " + index + "\nOpStore %s_" +
         name + " " + x + "\n";
}

inline Command dispatch(int64_t kernel, int64_t wave, std::vector<PlanOperand> operands,
                        int64_t workgroups = 1, int64_t queue = 0) {
  Command command;
  command.kernel = kernel;
  command.wave = wave;
  command.queue = queue;
  command.grid = {workgroups, 1, 1};
  command.operands = std::move(operands);
  command.location = "graph.mlir:" + std::to_string(wave + 1);
  return command;
}

inline Command barrier(std::vector<PlanView> memory, int64_t queue = 0) {
  Command command;
  command.kind = Command::Kind::Barrier;
  command.memory = std::move(memory);
  command.queue = queue;
  return command;
}

inline Command signal(int64_t number, std::vector<PlanView> memory, int64_t queue) {
  Command command;
  command.kind = Command::Kind::Signal;
  command.signal = number;
  command.memory = std::move(memory);
  command.queue = queue;
  return command;
}

inline Command wait(int64_t number, int64_t queue) {
  Command command;
  command.kind = Command::Kind::Wait;
  command.signal = number;
  command.queue = queue;
  return command;
}

/// One entry: argument "x", which may be donated, result "y", and an arena, all of
/// `elements` f32: allocations 0, 1, 2 and values 0, 1, 2; the arena holds value 2 ("t")
/// and, from the same byte on, value 3 ("u").
struct Sample {
  Artifact artifact;
  Plan plan;
  int64_t bytes;

  PlanOperand x, y, t, u;

  explicit Sample(int64_t elements = 8, const std::string &dtype = "F32") {
    bytes = elements * getDTypeBytes(dtype);
    artifact.manifest.producer = "weir test";
    artifact.manifest.targets = {Profile()};
    artifact.manifest.entries = {
        {"main", {{"x", dtype, {elements}, "", false}}, {{"y", dtype, {elements}, "", false}}}};
    plan.entry = "main";
    plan.target = "vulkan";
    plan.arenaBytes = plan.pinnedBytes = bytes;
    plan.allocations = {{AllocationKind::Argument, 0, bytes},
                        {AllocationKind::Result, 0, bytes},
                        {AllocationKind::Arena, 0, bytes}};
    plan.values = {{"x", bytes}, {"y", bytes}, {"t", bytes}, {"u", bytes}};
    plan.argumentValues = {0};
    plan.resultValues = {1};
    plan.slots = {{"t", 0, bytes, 4, 0, 100}};
    x = operand(0, 0);
    y = operand(1, 1);
    t = operand(2, 2);
    u = operand(2, 3);
  }

  PlanOperand operand(int64_t allocation, int64_t value) const {
    PlanOperand operand;
    operand.allocation = allocation;
    operand.bytes = bytes;
    operand.value = value;
    return operand;
  }

  /// Sets the accesses by letters: r, w or u.
  void addKernel(const KernelText &text, const std::string &accesses) {
    std::string path = "code/vulkan/k" + std::to_string(plan.kernels.size()) + ".spv";
    artifact.code[path] = assemble(print(text));
    Kernel kernel{"kernel", path, {text.invocations, 1, 1}, {}};
    for (char access : accesses)
      kernel.operands.push_back({access == 'r'   ? Access::Read
                                 : access == 'w' ? Access::Write
                                                 : Access::Update,
                                 access == 'w', bytes, 4});
    plan.kernels.push_back(kernel);
  }

  SimOutcome run(const SimOptions &options = {}) const { return run(getInput(), options); }

  SimOutcome run(const Bytes &data, const SimOptions &options) const {
    Artifact copy = artifact;
    copy.plans = {plan};
    const EntrySpec &entry = copy.manifest.entries[0];
    return simulate(copy, entry, {{entry.arguments[0], data}}, options);
  }

  /// Returns 0, 1, 2... as f32.
  Bytes getInput() const {
    Bytes data(static_cast<size_t>(bytes));
    for (size_t i = 0; i + 4 <= data.size(); i += 4) {
      auto number = float(i / 4);
      std::memcpy(&data[i], &number, 4);
    }
    return data;
  }
};

//===----------------------------------------------------------------------===//
// Kernels that several tests run
//===----------------------------------------------------------------------===//

/// Computes b1[i] = 2 b0[i].
inline const KernelText doubled = {.body = load("x", "%b0", "%i") + "%y = OpFMul %float %x %f2\n" +
                                           store("y", "%b1", "%i", "%y")};

inline const char *const tile = "%tiles = OpTypeArray %float %n16\n"
                                "%ptile = OpTypePointer Workgroup %tiles\n"
                                "%pcell = OpTypePointer Workgroup %float\n"
                                "%tile = OpVariable %ptile Workgroup\n";
inline const char *const fence = "OpControlBarrier %n2 %n2 %full\n";

/// Returns a kernel that computes y[i] = x[15 - i] by way of workgroup memory, with `between`
/// between the store and the load, and `after` behind the load.
inline KernelText reverse(const std::string &between, const std::string &after = "",
                          uint32_t semantics = 0x148) {
  return {.body = load("x", "%b0", "%i") +
                  "%mine = OpAccessChain %pcell %tile %l\nOpStore %mine %x\n" + between +
                  "%other = OpISub %uint %n15 %l\n"
                  "%place = OpAccessChain %pcell %tile %other\n%y = OpLoad %float %place\n" +
                  after + store("y", "%b1", "%i", "%y"),
          .elements = 16,
          .invocations = 16,
          .declarations =
              tile + std::string("%full = OpConstant %uint ") + std::to_string(semantics) + "\n",
          .interface = "%tile"};
}

/// Returns a kernel that computes y[i] = i + 5, then runs `update` on the element `%p` of y.
inline KernelText makeUpdate(const std::string &update, const std::string &element = "%i") {
  return {.body = "%start = OpIAdd %uint %i %n5\n" + store("z", "%b1", "%i", "%start") + fence +
                  "%p = OpAccessChain %pelement %b1 %n0 " + element + "\n" + update,
          .declarations = "%full = OpConstant %uint 328\n",
          .element = "%uint"};
}

/// A function that returns 1 for x < 2, else 2x.
inline const char *const twice = "%twice = OpFunction %float None %ftype\n"
                                 "%v = OpFunctionParameter %float\n%fentry = OpLabel\n"
                                 "%small = OpFOrdLessThan %bool %v %f2\n"
                                 "OpSelectionMerge %fend None\n"
                                 "OpBranchConditional %small %fthen %fend\n%fthen = OpLabel\n"
                                 "OpReturnValue %f1\n%fend = OpLabel\n"
                                 "%v2 = OpFMul %float %v %f2\nOpReturnValue %v2\nOpFunctionEnd\n";

/// Returns a kernel that computes y[i] = 1 + x[0] + ... + x[bound - 1]: each invocation has trips
/// of its own.
inline KernelText sum(const std::string &bound) {
  return {.body = "OpBranch %head\n%head = OpLabel\n"
                  "%k = OpPhi %uint %n0 %entry %next %body\n"
                  "%s = OpPhi %float %f1 %entry %t %body\n"
                  "%more = OpULessThan %bool %k " +
                  bound +
                  "\nOpLoopMerge %done %body None\nOpBranchConditional %more %body %done\n"
                  "%body = OpLabel\n" +
                  load("x", "%b0", "%k") +
                  "%t = OpFAdd %float %s %x\n%next = OpIAdd %uint %k %n1\nOpBranch %head\n"
                  "%done = OpLabel\n" +
                  store("y", "%b1", "%i", "%s")};
}

inline Sample makeOne(const KernelText &kernel, int64_t workgroups = 1, int64_t elements = 8,
                      const std::string &accesses = "rw") {
  Sample sample(elements);
  sample.addKernel(kernel, accesses);
  sample.plan.commands = {dispatch(0, 0, {sample.x, sample.y}, workgroups)};
  return sample;
}

} // namespace weir::test

#endif // WEIR_TEST_UNIT_SIM_KERNELS_H

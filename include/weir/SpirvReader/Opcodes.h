//===- Opcodes.h - Numbers of the SPIR-V specification ----------*- C++ -*-===//

#ifndef WEIR_SPIRVREADER_OPCODES_H
#define WEIR_SPIRVREADER_OPCODES_H

#include <cstdint>

namespace weir::spv {

enum class Op : uint16_t {
#define WEIR_SPIRV_OP(name, number, hasType, hasResult, words, kind) name = number,
#include "weir/SpirvReader/Opcodes.def"
#undef WEIR_SPIRV_OP
};

/// From here on opcodes are Weir's own.
inline constexpr uint32_t firstOwnOpcode = 0xf000;

/// A group of opcodes that are handled alike.
enum class OpKind {
  Plain,
  Atomic,   ///< a load, store or update of memory
  Shuffle,  ///< of a value among the lanes of a subgroup
  Reduction ///< of a value over the lanes of a subgroup
};

/// Returns the kind of an opcode; Plain if it is unknown.
constexpr OpKind getKind(Op op) {
  switch (op) {
#define WEIR_SPIRV_OP(name, number, hasType, hasResult, words, kind)                               \
  case Op::name:                                                                                   \
    return OpKind::kind;
#include "weir/SpirvReader/Opcodes.def"
#undef WEIR_SPIRV_OP
  }
  return OpKind::Plain;
}

/// The layout of an opcode's words.
struct OpInfo {
  const char *name; ///< "OpIAdd"
  bool hasType, hasResult;
  uint32_t words; ///< min number of words after type and result
};

/// Returns the layout of an opcode, or null if it is unknown.
const OpInfo *findOpInfo(uint32_t opcode);

/// Returns "OpIAdd".
const char *getName(Op op);

enum class StorageClass : uint32_t {
  UniformConstant = 0,
  Input = 1,
  Uniform = 2,
  Output = 3,
  Workgroup = 4,
  CrossWorkgroup = 5,
  Private = 6,
  Function = 7,
  Generic = 8,
  PushConstant = 9,
  StorageBuffer = 12,
  PhysicalStorageBuffer = 5349
};

enum class Decoration : uint32_t {
  SpecId = 1,
  Block = 2,
  ArrayStride = 6,
  BuiltIn = 11,
  Restrict = 19,
  Aliased = 20,
  Volatile = 21,
  Coherent = 23,
  NonWritable = 24,
  NonReadable = 25,
  Binding = 33,
  DescriptorSet = 34,
  Offset = 35,
  NoContraction = 42
};

enum class BuiltIn : uint32_t {
  NumWorkgroups = 24,
  WorkgroupSize = 25,
  WorkgroupId = 26,
  LocalInvocationId = 27,
  GlobalInvocationId = 28,
  LocalInvocationIndex = 29,
  SubgroupSize = 36,
  NumSubgroups = 38,
  SubgroupId = 40,
  SubgroupLocalInvocationId = 41
};

enum class ExecutionMode : uint32_t { LocalSize = 17, LocalSizeId = 38 };

enum class ExecutionModel : uint32_t { GLCompute = 5 };

enum class Scope : uint32_t {
  CrossDevice = 0,
  Device = 1,
  Workgroup = 2,
  Subgroup = 3,
  Invocation = 4,
  QueueFamily = 5
};

/// Bits of the memory operand of a load.
enum MemoryOperand : uint32_t {
  NonPrivatePointer = 0x20, ///< other invocations may see it, in the Vulkan memory model
  ReadOnly = 0x80000000     ///< Weir's own: nothing writes the bytes while the kernel runs
};

/// Bits of memory semantics.
enum MemorySemantics : uint32_t {
  Acquire = 0x2,
  Release = 0x4,
  AcquireRelease = 0x8,
  SequentiallyConsistent = 0x10,
  UniformMemory = 0x40,
  SubgroupMemory = 0x80,
  WorkgroupMemory = 0x100,
  MakeAvailable = 0x2000,
  MakeVisible = 0x4000
};

enum class MemoryModel : uint32_t { Vulkan = 3 };

enum class CooperativeLayout : uint32_t { RowMajor = 0, ColumnMajor = 1 };

enum class CooperativeUse : uint32_t { MatrixA = 0, MatrixB = 1, Accumulator = 2 };

/// Instructions of the extended set GLSL.std.450.
enum class Glsl : uint32_t {
  Round = 1,
  RoundEven = 2,
  Trunc = 3,
  FAbs = 4,
  SAbs = 5,
  FSign = 6,
  SSign = 7,
  Floor = 8,
  Ceil = 9,
  Fract = 10,
  Sin = 13,
  Cos = 14,
  Tan = 15,
  Asin = 16,
  Acos = 17,
  Atan = 18,
  Sinh = 19,
  Cosh = 20,
  Tanh = 21,
  Atan2 = 25,
  Pow = 26,
  Exp = 27,
  Log = 28,
  Exp2 = 29,
  Log2 = 30,
  Sqrt = 31,
  InverseSqrt = 32,
  FMin = 37,
  UMin = 38,
  SMin = 39,
  FMax = 40,
  UMax = 41,
  SMax = 42,
  FClamp = 43,
  UClamp = 44,
  SClamp = 45,
  FMix = 46,
  Fma = 50,
  Ldexp = 53,
  FindILsb = 73,
  FindSMsb = 74,
  FindUMsb = 75,
  NMin = 79,
  NMax = 80,
  NClamp = 81
};

} // namespace weir::spv

#endif // WEIR_SPIRVREADER_OPCODES_H

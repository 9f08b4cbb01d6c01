//===- Module.h - A SPIR-V module as types, constants, blocks ---*- C++ -*-===//
//
// Accepts hostile input: for any words, reading gives a module with the properties stated here,
// or an error. It does not check the types of instructions' operands, nor that values are
// defined before they are used.
//
//===----------------------------------------------------------------------===//

#ifndef WEIR_SPIRVREADER_MODULE_H
#define WEIR_SPIRVREADER_MODULE_H

#include "weir/Artifact/Error.h"
#include "weir/SpirvReader/Opcodes.h"

#include <array>
#include <cstddef>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

namespace weir::spv {

/// The id of a type, constant, variable, value, block...; 0: none.
using Id = uint32_t;

/// The source of an instruction, from OpLine.
struct SourceLine {
  Id file = 0; ///< an OpString, see `Module::getString`; 0 if there is none, or the line is 0
  uint32_t line = 0, column = 0;
};

struct Instruction {
  Op op = Op::Nop;
  Id type = 0, result = 0;            ///< 0 where the opcode has none
  std::span<const uint32_t> operands; ///< the words after type and result
  uint32_t word = 0;                  ///< index of its first word in the module
  SourceLine source;
};

struct Type {
  enum class Kind {
    Void,
    Bool,
    Int,
    Float,
    Vector,
    Array,
    RuntimeArray,
    Struct,
    Pointer,
    Function,
    CooperativeMatrix ///< of the invocations of a subgroup
  } kind = Kind::Void;
  uint32_t width = 0;             ///< Int, Float: bits; 8, 16, 32 or 64
  Id element = 0;                 ///< of several; Pointer: the type that it points to
  uint32_t count = 0;             ///< Vector, Array
  uint32_t rows = 0, columns = 0; ///< CooperativeMatrix
  CooperativeUse use = {};        ///< CooperativeMatrix
  std::vector<Id> members;        ///< Struct
  StorageClass storage = {};      ///< Pointer
  /// Bytes in memory: as decorated, or else packed with each scalar aligned to its size. 4 for
  /// a Bool; 0 for a runtime array and for types that are no data.
  int64_t bytes = 0;
  uint32_t depth = 0;           ///< nesting depth; max 255, as specified
  int64_t alignment = 1;        ///< bytes; that of the largest scalar in it
  int64_t stride = 0;           ///< Vector, Array, RuntimeArray: bytes between elements
  std::vector<int64_t> offsets; ///< Struct: bytes, one per member
};

struct Constant {
  enum class Kind { Scalar, Composite, Null, Undef } kind = Kind::Scalar;
  Id type = 0;
  uint64_t bits = 0;          ///< Scalar: the low bits, others 0; a Bool is 0 or 1
  std::vector<Id> parts;      ///< Composite: constants
  bool isSpecialized = false; ///< whether it is a default that a pipeline may replace
};

/// A variable of the module. Variables of a function are instructions.
struct Variable {
  Id id = 0;
  Id type = 0; ///< type of the pointer
  StorageClass storage = {};
  Id initializer = 0;
  std::optional<uint32_t> set, binding;
  std::optional<BuiltIn> builtIn;
};

struct Block {
  Id label = 0;
  std::vector<Instruction> instructions; ///< phis first; only the last one is a terminator
  Id merge = 0;                          ///< of OpSelectionMerge, OpLoopMerge
  Id continueTarget = 0;                 ///< of OpLoopMerge
  std::vector<uint32_t> successors;      ///< indices of blocks, in the order of the terminator
};

struct Function {
  Id id = 0, type = 0;
  std::vector<Id> parameters;
  std::vector<Block> blocks; ///< the first one is the entry

  /// Returns the index of the block with a label. Errors: `Error` when there is none.
  uint32_t getBlock(Id label) const;

  std::map<Id, uint32_t> blockOfLabel;
};

struct EntryPoint {
  std::string name;
  Id function = 0;
  ExecutionModel model = {};
  std::array<uint32_t, 3> localSize = {1, 1, 1};
};

/// Says that a module has something that Weir's reader does not know. It may be valid.
class Unsupported : public Error {
public:
  using Error::Error;
};

/// Whether a module may have opcodes that are Weir's own, and addresses that are numbers.
enum class Opcodes { Standard, Own };

class Module {
public:
  /// Reads a module, in either byte order.
  /// Errors: `Error` that begins with `where` and names the word at fault, when it
  ///         is malformed; `Unsupported` when it has an opcode that `findOpInfo` does not know, or
  ///         addresses that are not logical.
  Module(std::span<const unsigned char> bytes, const std::string &where,
         Opcodes opcodes = Opcodes::Standard);
  Module(Module &&) = default;
  Module &operator=(Module &&) = default;

  // Return the object that an id names. Errors of `get...`: `Error` if the id names another kind.
  const Type &getType(Id id) const;
  const Constant &getConstant(Id id) const;
  const Constant *findConstant(Id id) const;
  const Variable *findVariable(Id id) const;
  /// Returns the text of an OpString, "" for other ids.
  const std::string &getString(Id id) const;
  /// Returns the type of a constant, variable, parameter or instruction's result.
  Id getTypeOf(Id id) const;
  /// Returns the name of an OpExtInstImport, "GLSL.std.450"; "" for other ids.
  const std::string &getInstructionSet(Id id) const;
  bool isDecorated(Id id, Decoration decoration) const;
  /// Returns a sentence on the first decoration that Vulkan demands of buffers and this module
  /// lacks, or "": DescriptorSet and Binding (VUID-StandaloneSpirv-UniformConstant-06677), Block,
  /// and the layout, Offset and ArrayStride (SPIR-V, section 2.16.2).
  std::string findUndecorated() const;
  /// Returns the upper bound of ids.
  Id getBound() const { return Id(kindOf.size()); }

  const std::vector<Variable> &getVariables() const { return variables; }
  const std::vector<Function> &getFunctions() const { return functions; }
  const std::vector<EntryPoint> &getEntryPoints() const { return entryPoints; }
  /// Whether other invocations see only accesses that are marked for them.
  bool hasVulkanMemoryModel() const { return isVulkan; }
  const std::set<uint32_t> &getCapabilities() const { return capabilities; }
  const Function &getFunction(Id id) const;
  /// Returns the entry point of that name, or null.
  const EntryPoint *findEntryPoint(const std::string &name) const;

  /// Throws an error about a word of the module.
  [[noreturn]] void fail(uint32_t word, const std::string &problem) const;
  /// Throws `Unsupported` about a word of the module.
  [[noreturn]] void refuse(uint32_t word, const std::string &problem) const;

private:
  friend class Reader;
  enum class Kind : uint8_t { None, Type, Constant, Variable, Function, Block, Value, Other };

  std::string where;
  std::vector<uint32_t> words;
  // By id: its kind; its index among those of its kind, or the id of its type.
  std::vector<Kind> kindOf;
  std::vector<uint32_t> placeOf;
  std::vector<Type> types;
  std::vector<Constant> constants;
  std::vector<Variable> variables;
  std::vector<Function> functions;
  std::vector<EntryPoint> entryPoints;
  std::set<uint32_t> capabilities;
  bool isVulkan = false;
  std::map<Id, std::string> strings, instructionSets;
  std::map<std::pair<Id, Decoration>, uint32_t> decorations; ///< first operand
  std::map<std::pair<Id, uint32_t>, uint32_t> memberOffsets; ///< by struct and member
};

} // namespace weir::spv

#endif // WEIR_SPIRVREADER_MODULE_H

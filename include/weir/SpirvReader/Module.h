//===- Module.h - A SPIR-V module as types, constants, blocks ---*- C++ -*-===//
//
// Words are hostile: whatever they are, reading ends in a module that holds what is
// said here, or in an error. What it does not check are the types of instructions'
// operands and that a value is made before it is used.
//
//===----------------------------------------------------------------------===//

#ifndef WEIR_SPIRVREADER_MODULE_H
#define WEIR_SPIRVREADER_MODULE_H

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

/// Names a type, constant, variable, value, block...; 0 is none.
using Id = uint32_t;

/// Where an instruction came from, by OpLine.
struct SourceLine {
  Id file = 0; ///< an OpString, see `Module::getString`; 0 when there is none, or of line 0
  uint32_t line = 0, column = 0;
};

struct Instruction {
  Op op = Op::Nop;
  Id type = 0, result = 0;            ///< 0 where the opcode has none
  std::span<const uint32_t> operands; ///< the words after those two
  uint32_t word = 0;                  ///< its place in the module, counted in words
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
    Function
  } kind = Kind::Void;
  uint32_t width = 0;        ///< Int, Float: bits; 8, 16, 32 or 64
  Id element = 0;            ///< Vector, Array, RuntimeArray; Pointer: what it points to
  uint32_t count = 0;        ///< Vector, Array
  std::vector<Id> members;   ///< Struct
  StorageClass storage = {}; ///< Pointer
  /// Bytes in memory, by decorations where there are some, else packed with each
  /// scalar aligned to its size. A Bool has 4. 0 for a runtime array, and for what
  /// is no data.
  int64_t bytes = 0;
  uint32_t depth = 0;           ///< of types inside types; at most 255, as specified
  int64_t alignment = 1;        ///< Bytes, of the largest scalar inside
  int64_t stride = 0;           ///< Vector, Array, RuntimeArray: bytes between elements
  std::vector<int64_t> offsets; ///< Struct: bytes, of each member
};

struct Constant {
  enum class Kind { Scalar, Composite, Null, Undef } kind = Kind::Scalar;
  Id type = 0;
  uint64_t bits = 0;          ///< Scalar: the low bits, others 0; a Bool is 0 or 1
  std::vector<Id> parts;      ///< Composite: constants
  bool isSpecialized = false; ///< a default, which a pipeline may replace
};

/// A variable of the module. Those of a function are instructions.
struct Variable {
  Id id = 0;
  Id type = 0; ///< of the pointer
  StorageClass storage = {};
  Id initializer = 0;
  std::optional<uint32_t> set, binding;
  std::optional<BuiltIn> builtIn;
};

struct Block {
  Id label = 0;
  std::vector<Instruction> instructions; ///< phis first; the last one ends it, no other does
  Id merge = 0;                          ///< of OpSelectionMerge, OpLoopMerge
  Id continueTarget = 0;                 ///< of OpLoopMerge
  std::vector<uint32_t> successors;      ///< numbers of blocks, as the last names them
};

struct Function {
  Id id = 0, type = 0;
  std::vector<Id> parameters;
  std::vector<Block> blocks; ///< the first one is the entry

  /// The number of the block with a label. Errors: `Error` when there is none.
  uint32_t getBlock(Id label) const;

  std::map<Id, uint32_t> blockOfLabel;
};

struct EntryPoint {
  std::string name;
  Id function = 0;
  ExecutionModel model = {};
  std::array<uint32_t, 3> localSize = {1, 1, 1};
};

class Module {
public:
  /// Reads a module, in either byte order.
  /// Errors: `Error` that begins with `where` and names the word at fault, when it
  ///         is malformed or has an opcode that `findOpInfo` does not know.
  Module(std::span<const unsigned char> bytes, const std::string &where);
  Module(Module &&) = default;
  Module &operator=(Module &&) = default;

  // What ids name. Errors of `get`: `Error` when the id is something else.
  const Type &getType(Id id) const;
  const Constant &getConstant(Id id) const;
  const Constant *findConstant(Id id) const;
  const Variable *findVariable(Id id) const;
  /// "" for ids without OpString.
  const std::string &getString(Id id) const;
  /// The type of a constant, variable, parameter or instruction's result.
  Id getTypeOf(Id id) const;
  /// "GLSL.std.450" for what OpExtInstImport named so; "" for other ids.
  const std::string &getInstructionSet(Id id) const;
  bool isDecorated(Id id, Decoration decoration) const;
  /// Numbers below this.
  Id getBound() const { return Id(kindOf.size()); }

  const std::vector<Variable> &getVariables() const { return variables; }
  const std::vector<Function> &getFunctions() const { return functions; }
  const std::vector<EntryPoint> &getEntryPoints() const { return entryPoints; }
  const std::set<uint32_t> &getCapabilities() const { return capabilities; }
  const Function &getFunction(Id id) const;
  /// Null when there is none of that name.
  const EntryPoint *findEntryPoint(const std::string &name) const;

  /// An error about a place in the module.
  [[noreturn]] void fail(uint32_t word, const std::string &problem) const;

private:
  friend class Reader;
  enum class Kind : uint8_t { None, Type, Constant, Variable, Function, Block, Value, Other };

  std::string where;
  std::vector<uint32_t> words;
  // By id: what it is, its place among those of its kind or the id of its type.
  std::vector<Kind> kindOf;
  std::vector<uint32_t> placeOf;
  std::vector<Type> types;
  std::vector<Constant> constants;
  std::vector<Variable> variables;
  std::vector<Function> functions;
  std::vector<EntryPoint> entryPoints;
  std::set<uint32_t> capabilities;
  std::map<Id, std::string> strings, instructionSets;
  std::map<std::pair<Id, Decoration>, uint32_t> decorations; ///< first word
  std::map<std::pair<Id, uint32_t>, uint32_t> memberOffsets; ///< by struct and member
};

} // namespace weir::spv

#endif // WEIR_SPIRVREADER_MODULE_H

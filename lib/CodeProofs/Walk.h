//===- Walk.h - Follows an entry point, block by block ----------*- C++ -*-===//

#ifndef WEIR_LIB_SPIRVREADER_WALK_H
#define WEIR_LIB_SPIRVREADER_WALK_H

#include "weir/CodeProofs/AddressMap.h"

#include <set>
#include <unordered_map>

namespace weir::spv {

/// The value of an id, as far as it can be followed.
struct Value {
  enum class Kind { Unknown, Number, BuiltIn, Pointer, Condition, Vector } kind = Kind::Unknown;
  /// Number: congruent to the true value modulo 2^width. Pointer: bytes from the root's begin.
  std::optional<Affine> number;
  BuiltIn builtIn = {}; ///< BuiltIn: the vector
  // Pointer.
  enum class Root { Binding, Shared, Private, BuiltIn, Unknown } root = Root::Unknown;
  uint32_t binding = 0; ///< Shared: the variable
  Id pointee = 0;       ///< a type
  // Condition: holds if and only if all of these are at least 0.
  std::vector<Affine> constraints;
  std::vector<Value> lanes; ///< Vector
};

/// The conditions under which a block runs.
struct Context {
  std::vector<Affine> guards;
  bool isCertain = true;
  std::vector<uint32_t> loops;
};

/// A loop that is being walked.
struct OpenLoop {
  uint32_t number;
  uint32_t header, merge, continueTarget; ///< blocks
};

/// Thrown with the reason why the whole entry point cannot be followed.
struct Lost {
  std::string problem;
};

class Walk {
public:
  Walk(const Module &module, const EntryPoint &entry, const Launch &launch, AddressMap &map)
      : module(module), entry(entry), launch(launch), map(map),
        function(module.getFunction(entry.function)), isVisited(function.blocks.size()) {}
  void run();

private:
  enum class End { Merge, Left };

  // Control flow.
  End walk(uint32_t block, std::optional<uint32_t> merge, Context &context, bool isSelected);
  std::optional<uint32_t> branch(const Block &block, Context &context, bool isSelected);
  uint32_t walkLoop(uint32_t header, Context &context);
  void countTrips(const Block &header, OpenLoop loop, bool staysIfTrue, Context &inside);
  void leave(Context &context);
  void makeIds();
  bool usesBothIds(const MemoryAccess &access) const;
  Affine negate(const Affine &constraint) { return Affine::of(-1) - constraint; }
  void require(Context &context, const Value &condition, bool isTrue);

  // Instructions.
  void visit(const Instruction &instruction, const Context &context);
  Value evaluate(const Instruction &instruction);
  Value evaluateLane(const Instruction &instruction);
  Value evaluateBinary(const Instruction &instruction);
  Value evaluateBits(const Instruction &instruction);
  Value evaluateComparison(const Instruction &instruction);
  Value evaluateGlsl(const Instruction &instruction);
  Value evaluateChain(const Instruction &instruction);
  std::optional<Affine> follow(const Instruction &chain, Id &at, std::optional<Affine> address);
  Value evaluateLoad(const Instruction &instruction);
  Value getVariable(const Variable &variable);
  Value getBuiltIn(BuiltIn builtIn, uint32_t axis);
  void record(const Instruction &instruction, Id type, bool reads, bool writes,
              const Context &context);
  void recordBarrier(const Instruction &instruction, const Context &context);

  /// Returns the value of `id`; of a vector, the lane being evaluated, if any.
  Value get(Id id);
  void define(Id id, const Value &value);
  void findWrites();
  bool isUniform(const Instruction &instruction);
  std::optional<Affine> getUnsigned(Id id);
  std::optional<Affine> getSigned(Id id);
  std::optional<int64_t> getConstant(Id id);
  std::optional<Affine> wrap(const Affine &number, uint32_t width, __int128 min);
  uint32_t getWidth(Id id) const;
  const Type &getLaneType(Id id) const;
  Value makeNumber(const Affine &number);
  Value makeOther(Interval range);
  Value makeOther(Id type);

  const Module &module;
  const EntryPoint &entry;
  const Launch &launch;
  AddressMap &map;
  const Function &function;
  std::vector<bool> isVisited;
  std::unordered_map<Id, Value> values;
  std::vector<Id> made; ///< values in the order of definition
  std::set<Id> uniform; ///< values that are the same in all executions
  std::set<Id> written; ///< variables that stores go to
  bool writesAnywhere = false;
  std::unordered_map<Id, const Instruction *> definitions;
  std::vector<OpenLoop> open;
  size_t depth = 0;
  bool isInHeader = false; ///< whether in the header, which runs once more than the body
  bool hasReturned = false;
  uint32_t position = 0;
  std::optional<uint32_t> lane;
};

} // namespace weir::spv

#endif // WEIR_LIB_SPIRVREADER_WALK_H

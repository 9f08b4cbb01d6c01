//===- Walk.h - Follows an entry point, block by block ----------*- C++ -*-===//

#ifndef WEIR_LIB_CODEPROOFS_WALK_H
#define WEIR_LIB_CODEPROOFS_WALK_H

#include "weir/CodeProofs/AddressMap.h"

#include <map>
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
  std::optional<uint32_t> test = {};      ///< the block that alone says whether it goes on
  std::optional<Affine> left = {};  ///< a counted loop goes on behind its test while this is >= 0
  std::optional<int64_t> last = {}; ///< the last trip, if their number is always the same
};

/// Max number of selections that an address is made by.
inline constexpr size_t maxChoices = 3;

/// Thrown with the reason why the whole entry point cannot be followed.
struct Lost {
  std::string problem;
};

/// Whether a load or store is not marked as one that other invocations may see, as the Vulkan
/// memory model asks for.
bool isPrivateAccess(const Instruction &instruction);

/// How a product of matrices has its factors in workgroup memory.
struct GroupMatrix {
  struct Side {
    int64_t elements = 0; ///< rows or columns
    int64_t leading = 0, stride = 0;
    bool isTransposed = false; ///< whether elements, not products, are neighbours
  };
  Side sides[2];

  GroupMatrix(const Module &module, const Instruction &instruction);
  int64_t getReach(size_t side) const;
};

/// Returns the numbers that are sums of products of matrices, under all names.
std::set<Id> findSums(const Function &function);

/// Whether an instruction reads sums other than to hand them on or to add to them.
bool usesSums(const Instruction &instruction, const std::set<Id> &sums);

/// An instruction that uses an mbarrier.
struct MBarrierSite {
  std::optional<int64_t> address; ///< none: unknown
  Id variable = 0;
  int64_t number = 0;      ///< bytes that are expected or copied; parity that is waited for
  bool isFirst = false;    ///< whether the first invocation alone runs it
  bool isTogether = false; ///< whether all invocations run it, as often as each other
  std::vector<uint32_t> loops;
  SourceLine source;

  std::optional<std::pair<Id, int64_t>> getKey() const {
    return address ? std::optional(std::pair(variable, *address)) : std::nullopt;
  }
};

/// Whether an instruction of that name orders what its invocation wrote for products of matrices.
bool isFenceForProducts(const std::string &name);

class Walk {
public:
  Walk(const Module &module, const EntryPoint &entry, const Launch &launch, AddressMap &map)
      : module(module), entry(entry), launch(launch), map(map),
        function(module.getFunction(entry.function)), visitOf(function.blocks.size()) {}
  void run();

private:
  enum class End { Merge, Left };

  // Control flow.
  End walk(uint32_t block, std::optional<uint32_t> merge, Context &context, bool isSelected);
  std::optional<uint32_t> branch(const Block &block, Context &context, bool isSelected);
  uint32_t walkLoop(uint32_t header, Context &context);
  bool isSameInTrips(const Affine &sum, uint32_t loop) const;
  bool takeLastTrip(Value &value, const OpenLoop &loop) const;
  bool isKnownBehind(const Value &value, uint32_t loop) const;
  /// A number that grows by `step` in each trip of a loop: `offset` plus a phi of its header.
  struct Induction {
    const Instruction *phi = nullptr;
    int64_t offset = 0;
  };
  std::optional<Induction> findInduction(Id id, const Block &header, bool mayTruncate) const;
  std::optional<std::pair<Id, int64_t>> findStep(const Instruction &phi, const Block &header,
                                                 const OpenLoop &loop) const;
  /// The trips of a loop: it goes on while distance - step * trip is more than 0.
  struct Trips {
    Affine distance;
    int64_t step = 1;
  };
  std::optional<uint32_t> findTest(const OpenLoop &loop) const;
  std::optional<Trips> findTrips(const Block &header, const OpenLoop &loop);
  std::optional<Trips> compareTrips(Op op, const Instruction &test, bool isSwapped,
                                    const Block &header, const OpenLoop &loop);
  void countTrips(const Block &header, OpenLoop &loop, Context &inside);
  void leave(Context &context);
  void makeIds();
  bool usesBothIds(const MemoryAccess &access) const;
  bool canDataAllow(const std::vector<Affine> &guards) const;
  Affine negate(const Affine &constraint) { return Affine::of(-1) - constraint; }
  void addGuard(Context &context, const Affine &guard);
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
  Value evaluateAddress(const Instruction &instruction);
  Value addAddresses(const Instruction &instruction, const Value &a, const Value &b);
  std::optional<Affine> follow(const Instruction &chain, Id &at, std::optional<Affine> address);
  Value evaluateLoad(const Instruction &instruction);
  Value getVariable(const Variable &variable);
  Value getBuiltIn(BuiltIn builtIn, uint32_t axis);
  void record(const Instruction &instruction, Id pointer, bool reads, bool writes,
              const Context &context);
  void recordOne(const Instruction &instruction, Id pointer, bool reads, bool writes,
                 const Context &context);
  void recordMatrix(const Instruction &instruction, const Context &context);
  void recordGroup(const Instruction &instruction, const Context &context);
  void recordTile(const Instruction &instruction, const Context &context);
  void recordMBarrier(const Instruction &instruction, const Context &context, int64_t number);
  bool isOfFirst(const Affine &guard) const;
  bool isSameForAll(const Affine &guard) const;
  void findFirstWay(const Block &block, const Value &condition);
  void followMBarriers();
  bool staysInVariable(const MemoryAccess &access) const;
  void recordBarrier(const Instruction &instruction, const Context &context);
  void recordLanes(const Instruction &instruction, const Context &context);
  void findFlights();

  /// Returns the value of `id`; of a vector, the lane being evaluated, if any.
  Value get(Id id);
  void define(Id id, const Value &value);
  Interval getRange(const Affine &sum);
  bool hasOthers(const Affine &sum) const;
  std::optional<Affine> getQuotient(Id id, uint32_t shift);
  std::optional<Affine> getMasked(Id id, uint64_t mask, uint32_t width, size_t depth);
  /// A number that is one of two others, by a condition.
  struct Selection {
    Id condition = 0, first = 0, second = 0; ///< `first` where the condition holds
  };
  std::optional<Selection> findSelection(Id id) const;
  std::vector<Id> listParts(Id id) const;
  void findChoices(Id id, std::vector<Id> &found, size_t depth) const;
  void joinArms(const Instruction &phi);
  void refine(Id id, std::vector<std::pair<Id, Value>> &before, size_t depth);
  Value getUnder(Id id, const std::vector<Affine> &guards);
  void findWrites();
  void findOrigins();
  bool isUniform(const Instruction &instruction);
  std::optional<Affine> getUnsigned(Id id);
  std::optional<Affine> getSigned(Id id);
  std::optional<int64_t> getConstant(Id id);
  std::optional<Affine> wrap(const Affine &number, uint32_t width, __int128 min);
  std::optional<Affine> cut(Id id, bool isSigned);
  std::optional<Affine> getTruth(const Value &condition);
  Value makeCondition(std::vector<Affine> constraints);
  Value evaluateLogic(const Instruction &instruction);
  Value evaluateSelect(const Selection &selection, Id type);
  Affine flip(const Affine &number, uint64_t mask);
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
  std::vector<uint32_t> visitOf; ///< by block: the number of its visit, from 1 on; 0: none yet
  uint32_t visits = 0;
  std::unordered_map<Id, Value> values;
  std::vector<Id> made; ///< values in the order of definition
  std::set<Id> uniform; ///< values that are the same in all executions
  std::set<Id> written; ///< variables that stores go to
  bool writesAnywhere = false;
  bool leavesVariables = false; ///< whether an access may leave its variable of workgroup memory
  std::unordered_map<Id, const Instruction *> definitions;
  /// Numbers that are made of a variable's address, which one; 0 if the number may be another
  /// address.
  std::unordered_map<Id, Id> origins;
  /// Numbers that were not followed, and what is computed from them; guards may make them known.
  std::set<Id> vague;
  bool isVague = false;                          ///< whether the instruction was not followed
  const std::vector<Affine> *refining = nullptr; ///< the guards that hold
  /// The two arms of the branch that was walked last, if both lead to `merge`.
  struct Arms {
    uint32_t merge = 0, branch = 0;          ///< blocks
    size_t direct = 0;                       ///< the arm without blocks, if there is one
    Id condition = 0;                        ///< the first arm runs where it holds
    uint32_t begin = 0, middle = 0, end = 0; ///< numbers of visits: of the first arm, the second
  };
  std::optional<Arms> arms;
  std::map<Id, Selection> joins; ///< phis of numbers that come from two arms
  /// By selection, whether the use of a number that is followed takes its first value.
  std::map<Id, bool> choices;
  size_t looks = 0;
  std::vector<OpenLoop> open;
  std::map<uint32_t, MBarrierSite> mbarriers; ///< by word
  /// By block that branches on the number of the invocation: where the first one goes, an index
  /// among its successors.
  std::map<const Block *, size_t> firstWays;
  size_t depth = 0;
  bool isInHeader = false; ///< whether in the header, which runs once more than the body
  bool hasReturned = false;
  uint32_t position = 0;
  std::optional<uint32_t> lane;
};

} // namespace weir::spv

#endif // WEIR_LIB_CODEPROOFS_WALK_H

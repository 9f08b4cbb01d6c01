//===- Decoder.h - Instructions to steps ------------------------*- C++ -*-===//
//
// Decoding checks the types of all operands, so that steps need not: decoded code never
// accesses anything outside of its registers.
//
//===----------------------------------------------------------------------===//

#ifndef WEIR_LIB_SIM_DECODER_H
#define WEIR_LIB_SIM_DECODER_H

#include "Steps.h"

#include "weir/Artifact/Error.h"

#include <span>
#include <unordered_map>
#include <unordered_set>

namespace weir::sim {

using spv::Id;
using spv::Instruction;

/// Max scalars of a value: bounds what words can request, far beyond Weir's own kernels.
inline constexpr size_t maxScalars = 4096;

/// A scalar of a type and its offset in memory.
struct Scalar {
  spv::Type::Kind kind = spv::Type::Kind::Int; ///< Bool, Int, Float
  uint32_t width = 32;                         ///< 32 for Bool
  int64_t offset = 0;

  bool isWide() const { return width == 64; }
  bool isNarrow() const { return width < 32; }
};

struct Value {
  Id type = 0;
  std::vector<Register> scalars;
};

/// The target of a pointer.
struct PointerTarget {
  Space space = Space::Storage;
  bool isInput = false;
  std::vector<Register> inputs; ///< isInput: registers of the scalars
  uint32_t binding = 0;
  int64_t begin = 0, end = 0; ///< bytes of the variable in its space; not for Storage
  Id type = 0;
  int64_t offset = 0;
  Register dynamic = noRegister;
  int64_t stride = 0; ///< greatest common divisor of the dynamic strides
  bool isAddressed = false;
};

/// A function being decoded, once for each call.
struct Body {
  const spv::Function &function;
  const Body *caller = nullptr;          ///< null for an entry point
  const Value *result = nullptr;         ///< the call's result, if it has one
  std::vector<uint32_t> order = {};      ///< its blocks in program order
  std::vector<uint32_t> positionOf = {}; ///< by number of block: index in the program
  std::vector<uint32_t> lastOf = {}; ///< by number of block: index of the part after its last call
};

class Decoder {
public:
  Decoder(const spv::Module &module, const DecodeOptions &options, const std::string &where)
      : module(module), options(options), where(where) {
    program.subgroupSize = options.subgroupSize;
    program.width = (options.subgroupSize + 7) / 8 * 8;
  }
  Program decode(const std::string &entryPoint);

private:
  [[noreturn]] void fail(const Instruction &instruction, const std::string &problem) const;
  void need(const Instruction &instruction, bool holds, const char *problem) const {
    if (!holds)
      fail(instruction, problem);
  }

  const std::vector<Scalar> &getScalars(Id type);
  void collectScalars(Id type, int64_t offset, std::vector<Scalar> &scalars);
  Register makeRegister(bool isWide);
  Value makeValue(Id type);
  void preset(Register to, const Scalar &scalar, uint64_t bits);
  const Value &getConstantValue(Id id);
  void fillConstant(Id id, std::vector<uint64_t> &bits);
  const Value &use(const Instruction &instruction, size_t operand);
  const Value &useAs(const Instruction &instruction, size_t operand, Id type);
  uint32_t useConstant(const Instruction &instruction, size_t operand);
  const Value &define(const Instruction &instruction, std::vector<Register> scalars);

  Step &emit(StepFunction run, Register to, Register a, Register b = 0, Register c = 0,
             int64_t number = 0);
  Register convert(Convert convert, bool isWide, Register a, int64_t number = 0);
  Register widen(const Scalar &scalar, Register value, bool isSigned, bool toDouble);
  Register narrow(const Scalar &scalar, Register value, bool isDouble);
  template <typename Opcode>
  Register compute(const Instruction &instruction, Opcode op, const Scalar &result,
                   const Scalar &operand, std::span<const Register> operands, bool isSigned);

  void declareVariables();
  void declareInput(const spv::Variable &variable);
  PointerTarget makeLocal(Id pointerType, Space space, int64_t &bytes);
  void decodeBody(Body &called);
  void decodeCall(const Instruction &instruction);
  void decodeBlock(const spv::Block &block);
  void decodeEdges(const spv::Block &block, CodeBlock &code);
  void decodeReturn(const Instruction &instruction, CodeBlock &code);
  Edge decodeEdge(const spv::Block &from, uint32_t to);
  void decodeInstruction(const Instruction &instruction);
  void decodeArithmetic(const Instruction &instruction);
  void decodeExtended(const Instruction &instruction);
  void decodeWithCarry(const Instruction &instruction);
  void decodeConversion(const Instruction &instruction);
  void decodeBitcast(const Instruction &instruction);
  void decodeSelect(const Instruction &instruction);
  void decodeComposite(const Instruction &instruction);
  void decodeDynamic(const Instruction &instruction);
  void decodeAccessChain(const Instruction &instruction);
  void decodeAccess(const Instruction &instruction);
  void decodeAtomic(const Instruction &instruction);
  void decodeBarrier(const Instruction &instruction);
  void decodeShuffle(const Instruction &instruction);
  void decodeReduction(const Instruction &instruction);

  // Of matrices that a subgroup shares, in Cooperative.cpp.
  void collectElements(Id type, int64_t offset, std::vector<Scalar> &scalars) const;
  void checkVisible(const Instruction &instruction, const PointerTarget &target,
                    size_t memoryOperand) const;
  void decodeCooperativeAccess(const Instruction &instruction);
  void decodeCooperativeProduct(const Instruction &instruction);
  void decodeCooperativeSplat(const Instruction &instruction);
  void needSubgroup(const Instruction &instruction, Register uniform);

  // Of PTX, in DecodePtx.cpp.
  void requireLocal(const spv::Variable &variable) const;
  void findUnwritten(const spv::Function &function);
  void findRoots(const spv::Function &function);
  void decodeAddress(const Instruction &instruction);
  void decodePointer(const Instruction &instruction);
  void decodeOwn(const Instruction &instruction);
  void decodeNamed(const Instruction &instruction, const std::string &name);
  void decodeSpecial(const Instruction &instruction, const std::string &name);
  void findMatrices(const spv::Function &function);
  void decodeMatrix(const Instruction &instruction, const std::string &name);
  void decodeMeeting(const Instruction &instruction, const std::string &name);
  spv::Op getAtomic(const Instruction &instruction) const;
  void decodeCopy(const Instruction &instruction);
  void decodeGroup(const Instruction &instruction, const std::string &name);
  void decodeGroupMatrix(const Instruction &instruction);
  uint16_t addTileSite(const Instruction &instruction, size_t operand, bool reads);
  void decodeTile(const Instruction &instruction);
  bool decodeProductOrder(const Instruction &instruction, const std::string &name);
  void emitProduct(GroupProduct product);
  void findSums(const spv::Function &function);
  void checkSums(const Instruction &instruction);
  /// A number of an instruction by its PTX name: a register and its bits.
  struct Sized {
    Register value = 0;
    uint32_t bits = 32;
    bool isSigned = false;
  };
  Sized useNumber(const Instruction &instruction, size_t operand);
  Register resize(const Sized &number, uint32_t bits);
  Sized compute(const Instruction &instruction, const std::string &name,
                std::vector<Sized> operands);
  Register computeU32(spv::Op op, Register a, Register b);
  Register getBuiltIn(spv::BuiltIn builtIn);

  AccessSite makeAccess(const Instruction &instruction, const PointerTarget &target);
  /// Adds an access by a pointer, and those that it may be instead. Returns its site.
  uint16_t addAccess(const Instruction &instruction, AccessSite access, Id pointer);
  /// Finds a member by literals. Returns its first scalar and its type.
  std::pair<size_t, Id> findMember(const Instruction &instruction, Id type, size_t firstLiteral);
  const PointerTarget &getTarget(const Instruction &instruction, Id pointer);

  const spv::Module &module;
  DecodeOptions options;
  std::string where;
  Program program;
  std::unordered_map<Id, std::vector<Scalar>> scalarsOf;
  std::unordered_map<Id, Value> values;
  std::unordered_map<Id, PointerTarget> targets;
  /// Other targets that a pointer made of a number may have.
  std::unordered_map<Id, std::vector<PointerTarget>> otherTargets;
  /// The variables that a number may be an address in.
  std::unordered_map<Id, std::vector<Id>> roots;
  std::unordered_map<Id, uint32_t> matrixRows; ///< loads of rows: the lanes that have one
  std::unordered_set<Id> unwritten;            ///< phis of registers that nothing writes
  const Body *body = nullptr;                  ///< the innermost one
  std::unordered_set<Id> sums;                 ///< of products by four warps, under all names
};

} // namespace weir::sim

#endif // WEIR_LIB_SIM_DECODER_H

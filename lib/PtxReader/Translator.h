//===- Translator.h - Statements to instructions ----------------*- C++ -*-===//

#ifndef WEIR_LIB_PTXREADER_TRANSLATOR_H
#define WEIR_LIB_PTXREADER_TRANSLATOR_H

#include "Flow.h"
#include "Registers.h"
#include "Words.h"

#include "weir/Artifact/Plan.h"

namespace weir::ptx {

/// Makes one statement of each loop that does nothing but wait for an mbarrier.
void joinWaits(Entry &entry);

/// A number's type, "u32".
struct NumberType {
  enum class Kind { Bits, Unsigned, Signed, Float, Predicate } kind = Kind::Bits;
  uint32_t width = 0; ///< bits

  bool isSigned() const { return kind == Kind::Signed; }
  bool isInteger() const { return kind != Kind::Float && kind != Kind::Predicate; }
};

/// Translates an entry, block by block, each behind its dominator.
class Translator {
public:
  Translator(const Entry &entry, const Flow &flow, const std::array<uint32_t, 3> &workgroup,
             const std::vector<TensorMap> &tensorMaps, const std::string &where)
      : entry(entry), flow(flow), registers(entry, flow, where), workgroup(workgroup),
        tensorMaps(tensorMaps), where(where) {}
  std::vector<uint32_t> run(const std::string &name);

private:
  [[noreturn]] void fail(const std::string &problem) const;
  [[noreturn]] void refuse() const; ///< the instruction is not known
  void need(bool holds, const char *problem) const {
    if (!holds)
      fail(problem);
  }
  const Operand &getOperand(size_t i) const;
  NumberType getType() const;                        ///< of the instruction, by the end of its name
  std::optional<uint64_t> getNumber(size_t i) const; ///< an operand, if it is a constant integer
  bool hasName(std::string_view part) const { return statement->has(part); }

  // Instructions.
  void put(Op op, std::initializer_list<uint32_t> operands);
  Id make(Op op, Id type, std::vector<uint32_t> operands);
  Id makeInteger(Op op, uint32_t width, std::initializer_list<uint32_t> operands) {
    return make(op, words.getInteger(width), operands);
  }
  Id makeNamed(Id type, std::string_view name, const std::vector<Id> &operands);
  Id resize(Id value, uint32_t from, uint32_t to, bool isSigned);

  // Values.
  Id getRegister(uint32_t number);
  Id getOrigin(Registers::Origin origin, uint32_t number);
  Id use(const Operand &operand, uint32_t width, bool isSigned = false);
  Id usePredicate(const Operand &operand);
  void useAll(const Operand &operand, uint32_t width, std::vector<Id> &values);
  Id useSpecial(const Operand &operand, uint32_t &width);
  Id useSymbol(uint32_t number, uint32_t width);
  void set(const Operand &to, Id value, uint32_t width, bool isSigned = false);
  Id getAddress(const Operand &operand, spv::StorageClass storage, Id type);
  spv::StorageClass getSpace() const;
  uint32_t getScope() const;

  // Statements.
  void translateBlock(uint32_t block);
  void translate();
  void translateArithmetic();
  void translateMultiply();
  void translateMinMax();
  void translateLogic();
  void translateShift();
  void translateExtract();
  void translateInsert();
  void translateFunnel();
  void translatePermute();
  void translateTable();
  void translateShortProduct();
  Id shift(Op op, uint32_t width, Id value, uint64_t by);
  Id mask(uint32_t width, Id value, uint64_t bits);
  void translateConvert();
  void translateCompare();
  void translateMove();
  void translateLoad();
  void translateStore();
  void translateAtomic();
  void translateBarrier();
  void translateObject();
  void translateMBarrier();
  void translateTile();
  void needSwizzledBlocks() const;
  std::optional<size_t> getTensorMap(const Symbol &symbol) const;
  void translateCopy();
  void translateMatrix();
  void translateGroupMatrix();
  void readDescriptor(const Operand &operand, Id &pointer, std::vector<Id> &strides);
  void translateNamed();
  void loadParameter();
  void loadPart();
  void putPhi(uint32_t block, uint32_t number);

  /// A number that describes a matrix in workgroup memory: its address over 16, and other bits.
  struct Described {
    Id address = 0;
    uint64_t constants = 0;
    uint32_t width = 64; ///< of the address
  };
  std::optional<Described> describe();

  const Entry &entry;
  const Flow &flow;
  const Registers registers;
  const std::array<uint32_t, 3> workgroup;
  const std::vector<TensorMap> &tensorMaps;
  const std::string &where;
  Words words;
  const Statement *statement = nullptr;
  uint32_t block = 0, line = 0;
  std::vector<std::vector<uint32_t>> heads, bodies; ///< words, by block
  std::vector<uint32_t> *body = nullptr;
  std::vector<Id> labels, variables, bindings;
  std::vector<Id> current; ///< by register; 0: what it held at the block's begin
  using Place = std::pair<uint32_t, uint32_t>; ///< block and register
  std::map<Place, Id> ends, phis;
  std::vector<Place> usedPhis;
  std::map<Id, Described> described;
  std::map<Id, size_t> mapOf; ///< addresses of tensor maps
};

} // namespace weir::ptx

#endif // WEIR_LIB_PTXREADER_TRANSLATOR_H

//===- Registers.h - The values that registers hold -------------*- C++ -*-===//

#ifndef WEIR_LIB_PTXREADER_REGISTERS_H
#define WEIR_LIB_PTXREADER_REGISTERS_H

#include "Flow.h"

namespace weir::ptx {

/// Says for each block where the values of registers come from, with the min number of phis.
class Registers {
public:
  /// Errors: `Error`, when there are too many.
  Registers(const Entry &entry, const Flow &flow, const std::string &where);

  /// The origin of a value: none, what a block leaves in a register, or a phi at its begin.
  struct Origin {
    enum class Kind { Undefined, Block, Phi } kind = Kind::Undefined;
    uint32_t block = 0, number = 0;
  };
  /// Return the origin of a register's value at the begin, or at the end, of a block.
  Origin atBegin(uint32_t block, uint32_t number) const;
  Origin atEnd(uint32_t block, uint32_t number) const;

private:
  using Token = uint32_t; ///< place of block and register, with a bit for phis
  static constexpr Token phiBit = 1u << 31;

  size_t getPlace(uint32_t block, uint32_t number) const { return size_t(block) * count + number; }
  Token resolve(Token token) const;
  Origin explain(Token token) const;
  void findLive(const Entry &entry, const Flow &flow);
  void place(const Flow &flow);
  void simplify(const Flow &flow);

  size_t count;
  std::vector<bool> isLive, isWritten; ///< at a block's begin; in a block
  std::vector<Token> begins;
  std::vector<Token> sameAs; ///< of phis, by place; none: it is needed
};

} // namespace weir::ptx

#endif // WEIR_LIB_PTXREADER_REGISTERS_H

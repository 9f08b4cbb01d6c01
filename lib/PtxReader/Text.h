//===- Text.h - PTX text to statements --------------------------*- C++ -*-===//

#ifndef WEIR_LIB_PTXREADER_TEXT_H
#define WEIR_LIB_PTXREADER_TEXT_H

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace weir::ptx {

struct Operand {
  enum class Kind {
    Register, ///< `number`
    Special,  ///< a special register, `name`
    Integer,  ///< `bits`
    Float,    ///< `bits` of an f32 or f64, by `width`
    Symbol,   ///< `number` of a variable
    Address,  ///< `parts[0]` plus `bits` bytes
    Vector,   ///< `parts`
    Pair,     ///< `parts`, d|p
    Name,     ///< of a label or function
    Sink      ///< _
  } kind = Kind::Sink;
  uint32_t number = 0;
  uint32_t width = 0;
  uint64_t bits = 0;
  bool isNegated = false;
  std::string_view name;
  std::vector<Operand> parts;
};

struct Statement {
  uint32_t line = 0;
  std::optional<uint32_t> guard; ///< the register of its predicate
  bool isGuardNegated = false;
  std::vector<std::string_view> name; ///< "ld", "global", "v4", "b32"
  std::vector<Operand> operands;

  bool has(std::string_view part) const;
  std::string getName() const;
};

/// A symbol that stands for memory.
struct Symbol {
  enum class Space { Param, Shared, Local, Global, Const } space = Space::Param;
  uint32_t parameter = 0;
  uint32_t width = 0; ///< Param: bits; 0 if it is no number
  int64_t bytes = 0;  ///< 0: unknown
  int64_t alignment = 1;
};

/// An entry as it is written.
struct Entry {
  std::array<uint32_t, 3> workgroup = {0, 0, 0}; ///< 0 where none is required
  uint32_t line = 0;
  uint32_t numParameters = 0;
  std::vector<Symbol> symbols;
  std::vector<uint32_t> widths; ///< of registers; 1 for a predicate
  std::vector<Statement> statements;
  /// The labels in front of each statement number, by name.
  std::vector<std::pair<std::string_view, uint32_t>> labels;
};

/// Reads an entry; none if there is no such entry. The result refers to `text`. Errors: `Error`.
std::optional<Entry> parseEntry(std::string_view text, const std::string &entry,
                                const std::string &where);

/// Throws an error about a line.
[[noreturn]] void fail(const std::string &where, uint32_t line, const std::string &problem);

} // namespace weir::ptx

#endif // WEIR_LIB_PTXREADER_TEXT_H

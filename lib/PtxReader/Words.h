//===- Words.h - Makes the words of a module --------------------*- C++ -*-===//

#ifndef WEIR_LIB_PTXREADER_WORDS_H
#define WEIR_LIB_PTXREADER_WORDS_H

#include "weir/SpirvReader/Opcodes.h"

#include <array>
#include <cstddef>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace weir::ptx {

using Id = uint32_t;
using spv::Op;

/// Makes types and constants once each, and puts a module together.
class Words {
public:
  Id makeId() { return next++; }
  Id getVoid() { return getType(Op::TypeVoid, {}); }
  Id getBool() { return getType(Op::TypeBool, {}); }
  /// Returns the type of integers; of Bool for 1 bit.
  Id getInteger(uint32_t width);
  Id getVector(Id element, uint32_t count) { return getType(Op::TypeVector, {element, count}); }
  Id getPointer(spv::StorageClass storage, Id element) {
    return getType(Op::TypePointer, {uint32_t(storage), element});
  }
  Id getConstant(uint32_t width, uint64_t bits);
  Id getUndefined(Id type);
  Id getString(std::string_view text);
  Id getGlsl() { return glsl; }
  /// Returns a new variable of so many bytes; of any number for 0.
  Id makeVariable(spv::StorageClass storage, int64_t bytes);
  Id makeBinding(uint32_t binding);
  /// Returns a built-in number; for `isVector`, a vector of three.
  Id getBuiltIn(spv::BuiltIn builtIn, bool isVector);

  /// Appends an instruction to `to`.
  static void put(std::vector<uint32_t> &to, Op op, std::span<const uint32_t> operands);
  /// Returns the module, with one function of type void that has these words.
  std::vector<uint32_t> finish(const std::string &entry, const std::array<uint32_t, 3> &workgroup,
                               std::span<const uint32_t> function);

private:
  Id getType(Op op, std::vector<uint32_t> operands);
  void putText(std::vector<uint32_t> &words, std::string_view text);

  Id next = 2;
  const Id glsl = 1;
  std::vector<uint32_t> strings, decorations, types;
  std::map<std::pair<Op, std::vector<uint32_t>>, Id> known;
  std::map<std::string, Id, std::less<>> knownStrings;
};

} // namespace weir::ptx

#endif // WEIR_LIB_PTXREADER_WORDS_H

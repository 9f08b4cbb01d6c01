//===- Words.h - Instructions of a module as words --------------*- C++ -*-===//

#ifndef WEIR_LIB_SPIRVREADER_WORDS_H
#define WEIR_LIB_SPIRVREADER_WORDS_H

#include "weir/SpirvReader/Opcodes.h"

#include <algorithm>
#include <cstddef>
#include <initializer_list>
#include <span>
#include <string>
#include <vector>

namespace weir::spv {

/// Calls `visit` with the opcode and the words of each instruction, in order. Returns whether the
/// words are instructions up to their end; else it stops at the first without an end.
template <typename Word, typename Visit>
bool forEachInstruction(std::span<Word> words, Visit visit) {
  for (size_t at = 5; at < words.size();) {
    size_t count = words[at] >> 16;
    if (count == 0 || count > words.size() - at)
      return false;
    visit(uint32_t(words[at] & 0xffff), words.subspan(at, count));
    at += count;
  }
  return words.size() > 5;
}

/// Makes an instruction's words do nothing.
inline void drop(std::span<uint32_t> all) {
  std::fill(all.begin(), all.end(), 1u << 16 | uint32_t(Op::Nop)); // one a word
}

/// Adds an instruction to words.
inline void add(std::vector<uint32_t> &words, Op op, std::initializer_list<uint32_t> operands) {
  words.push_back(uint32_t(operands.size() + 1) << 16 | uint32_t(op));
  words.insert(words.end(), operands);
}

/// Returns the text at the begin of the words.
inline std::string readText(std::span<const uint32_t> words) {
  std::string text;
  for (uint32_t word : words)
    for (uint32_t byte = 0; byte < 4; ++byte) {
      char c = char(word >> (8 * byte));
      if (!c)
        return text;
      text += c;
    }
  return text;
}

} // namespace weir::spv

#endif // WEIR_LIB_SPIRVREADER_WORDS_H

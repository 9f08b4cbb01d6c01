//===- Error.cpp - The one error type of the rooms without LLVM -----------===//

#include "weir/Artifact/Error.h"

#include <algorithm>
#include <string_view>

/// Returns the number of bytes of the character that `text` begins with; 0 if it is no character of
/// UTF-8. Source: the Unicode Standard, table 3-7.
static size_t measureCharacter(std::string_view text) {
  auto isIn = [&](size_t at, unsigned low, unsigned high) {
    auto byte = at < text.size() ? static_cast<unsigned char>(text[at]) : 0u;
    return byte >= low && byte <= high;
  };
  const auto first = static_cast<unsigned char>(text.front());
  if (first < 0x80)
    return 1;
  if (first >= 0xc2 && first <= 0xdf)
    return isIn(1, 0x80, 0xbf) ? 2 : 0;
  if (first >= 0xe0 && first <= 0xef)
    return isIn(1, first == 0xe0 ? 0xa0 : 0x80, first == 0xed ? 0x9f : 0xbf) && isIn(2, 0x80, 0xbf)
               ? 3
               : 0;
  if (first >= 0xf0 && first <= 0xf4)
    return isIn(1, first == 0xf0 ? 0x90 : 0x80, first == 0xf4 ? 0x8f : 0xbf) &&
                   isIn(2, 0x80, 0xbf) && isIn(3, 0x80, 0xbf)
               ? 4
               : 0;
  return 0;
}

static bool isControl(unsigned char byte) {
  return (byte < ' ' && byte != '\n' && byte != '\t') || byte == 0x7f;
}

/// Returns the text without what a terminal would obey.
static std::string escape(std::string_view text) {
  constexpr char digits[] = "0123456789abcdef";
  std::string escaped;
  while (!text.empty()) {
    const auto first = static_cast<unsigned char>(text.front());
    size_t size = isControl(first) ? 0 : measureCharacter(text);
    if (size == 0)
      escaped += {'\\', 'x', digits[first / 16], digits[first % 16]};
    else
      escaped += text.substr(0, size);
    text.remove_prefix(std::max<size_t>(size, 1));
  }
  return escaped;
}

std::string weir::makeReadable(const std::string &text) {
  constexpr size_t maxBytes = 4000, part = maxBytes / 2 - 40; // and what says so
  if (text.size() <= maxBytes)
    return escape(text);
  auto isInside = [&](size_t at) { return (static_cast<unsigned char>(text[at]) & 0xc0) == 0x80; };
  // A character is not cut. Where no character is, it does not matter.
  size_t end = part, begin = text.size() - part;
  for (int i = 0; i < 3 && isInside(end); ++i)
    --end;
  for (int i = 0; i < 3 && isInside(begin); ++i)
    ++begin;
  return escape(std::string_view(text).substr(0, end)) + " [" + std::to_string(begin - end) +
         " bytes left out] " + escape(std::string_view(text).substr(begin));
}

weir::Error::~Error() = default;

//===- TextScan.cpp - What no text may do to the parser -------------------===//

#include "TextScan.h"

std::optional<std::string> weir::scanText(std::string_view text, const std::string &where) {
  constexpr size_t deepest = 1000, longest = size_t(1) << 20;
  size_t line = 1, lineStart = 0, depth = 0, literal = 0, signs = 0;
  auto problem = [&](size_t at, const std::string &what) {
    return where + ":" + std::to_string(line) + ":" + std::to_string(at - lineStart + 1) + ": " +
           what;
  };
  for (size_t i = 0; i < text.size(); ++i) {
    unsigned char c = text[i];
    if (c == '\n') {
      ++line;
      lineStart = i + 1;
      literal = 0;
      continue;
    }
    // Each sign of -(-(-x)) is a call of the parser's, too.
    signs = c == '-' ? signs + 1 : c == ' ' || c == '\t' ? signs : 0;
    if (signs > deepest)
      return problem(i, "more than 1,000 signs in a row");
    if ((c < ' ' && c != '\t' && c != '\r') || c == 0x7f)
      return problem(i, "the text holds a control byte; an .mlir file is plain text");
    if (i - lineStart - literal >= longest)
      return problem(i, "the line is longer than 1 MiB; break it up, or keep large constants in "
                        "dense_resource blobs");
    if (c == '/' && i + 1 < text.size() && text[i + 1] == '/') {
      while (i + 1 < text.size() && text[i + 1] != '\n')
        ++i;
    } else if (c == '"') {
      // Blobs are one long literal each; they nest nothing.
      size_t begin = i;
      for (++i; i < text.size() && text[i] != '"' && text[i] != '\n'; ++i)
        if (text[i] == '\\')
          ++i;
      if (i < text.size() && text[i] == '\n') {
        --i;
        continue; // the parser reports it
      }
      literal += i - begin;
    } else if ((c == '<' || c == '>') && i + 1 < text.size() && text[i + 1] == '=') {
      ++i; // a comparison in an integer set
    } else if (c == '(' || c == '[' || c == '{' || c == '<') {
      if (++depth > deepest)
        return problem(i, "brackets are nested deeper than 1,000");
    } else if (c == ')' || c == ']' || c == '}' || (c == '>' && i && text[i - 1] != '-')) {
      depth -= depth > 0;
    }
  }
  return std::nullopt;
}

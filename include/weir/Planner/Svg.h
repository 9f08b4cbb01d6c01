//===- Svg.h - Pieces of pictures -------------------------------*- C++ -*-===//

#ifndef WEIR_PLANNER_SVG_H
#define WEIR_PLANNER_SVG_H

#include <cstdio>
#include <string>
#include <string_view>

namespace weir::svg {

/// Returns a piece of up to 511 bytes, as `printf` makes it.
std::string print(const char *format, auto... values) {
  char text[512];
  std::snprintf(text, sizeof(text), format, values...);
  return text;
}

/// Returns up to 100 bytes of a text as XML.
inline std::string escape(std::string_view text) {
  std::string result;
  for (char c : text.substr(0, 100))
    switch (c) {
    case '&':
      result += "&amp;";
      break;
    case '<':
      result += "&lt;";
      break;
    case '>':
      result += "&gt;";
      break;
    case '"':
      result += "&quot;";
      break;
    default: // XML has no control characters, and non-ASCII bytes may be invalid UTF-8
      result += c < 0x20 || c == 0x7f ? '?' : c;
    }
  return result;
}

/// Returns the begin of a picture of this size, on white.
inline std::string begin(double width, double height) {
  return print("<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %g %g\" "
               "font-family=\"sans-serif\" font-size=\"11\">\n"
               "<rect width=\"100%%\" height=\"100%%\" fill=\"white\"/>\n",
               width, height);
}

} // namespace weir::svg

#endif // WEIR_PLANNER_SVG_H

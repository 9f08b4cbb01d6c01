//===- Error.h - The one error type of the rooms without LLVM ---*- C++ -*-===//

#ifndef WEIR_ARTIFACT_ERROR_H
#define WEIR_ARTIFACT_ERROR_H

#include <stdexcept>
#include <string>

namespace weir {

/// Returns `text` as a terminal or a log can take it: bytes that are no UTF-8 and control
/// characters other than line feed and tab become "\\x1b", and of more than 4,000 bytes the middle
/// is left out. What a file names may be anything.
std::string makeReadable(const std::string &text);

/// An error with one sentence that names the thing, the place and the remedy. Thrown by the
/// rooms without LLVM; caught at the C ABI, in the tools, and in passes around the call.
class Error : public std::runtime_error {
public:
  explicit Error(const std::string &sentence) : std::runtime_error(makeReadable(sentence)) {}
  ~Error() override; // anchors the type's identity in one library
};

} // namespace weir

#endif // WEIR_ARTIFACT_ERROR_H

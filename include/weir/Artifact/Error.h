//===- Error.h - The one error type of the rooms without LLVM ---*- C++ -*-===//

#ifndef WEIR_ARTIFACT_ERROR_H
#define WEIR_ARTIFACT_ERROR_H

#include <stdexcept>
#include <string>

namespace weir {

/// One clear sentence that names the thing, the place and the remedy. Thrown by
/// the rooms without LLVM; caught at the C ABI, by the tools, and by passes at
/// the call.
class Error : public std::runtime_error {
public:
  explicit Error(const std::string &sentence) : std::runtime_error(sentence) {}
  ~Error() override; // anchors the type's identity in one library
};

} // namespace weir

#endif // WEIR_ARTIFACT_ERROR_H

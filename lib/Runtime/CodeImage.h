//===- CodeImage.h - Machine code in memory ---------------------*- C++ -*-===//

#ifndef WEIR_LIB_RUNTIME_CODEIMAGE_H
#define WEIR_LIB_RUNTIME_CODEIMAGE_H

#include "weir/Artifact/Artifact.h"

#include <cstddef>
#include <map>
#include <string>

namespace weir::runtime {

/// The code of an ELF object of this machine's kind, mapped for reading and running.
///
/// The object is one that `weir compile` writes: position-independent, without relocations, symbols
/// of elsewhere, writable data or code that runs on loading. All of it is checked before the first
/// byte is mapped, so that no dynamic linker is needed and none is trusted with it.
/// Source: Tool Interface Standard ELF 1.2; System V gABI, chapter 5.
class CodeImage {
public:
  /// `where` names the object in errors.
  /// Errors: `Error` saying what is wrong with the object, or that memory is short.
  CodeImage(const Bytes &object, const std::string &where);
  ~CodeImage();
  CodeImage(const CodeImage &) = delete;
  CodeImage &operator=(const CodeImage &) = delete;

  /// Returns the address of a function. Errors: `Error` where the object has none of that name.
  void *find(const std::string &name) const;

private:
  std::string where;
  void *base = nullptr;
  size_t span = 0;
  std::map<std::string, void *> functions;
};

} // namespace weir::runtime

#endif // WEIR_LIB_RUNTIME_CODEIMAGE_H

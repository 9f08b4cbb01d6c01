//===- NoteTaker.h - Remarks of passes, kept for people ---------*- C++ -*-===//

#ifndef WEIR_DRIVER_COMPILER_NOTETAKER_H
#define WEIR_DRIVER_COMPILER_NOTETAKER_H

#include "mlir/IR/BuiltinOps.h"
#include "weir/Artifact/Notes.h"

#include <map>
#include <memory>

namespace weir {

/// Collects the remarks of a context's passes that say how kernels were formed.
class NoteTaker {
public:
  /// Takes over the context's remarks.
  explicit NoteTaker(mlir::MLIRContext &context);

  /// Returns the notes on the entries of a module at the emitted level, and forgets them: of
  /// what the passes said since the last call, and of what the module says of donations.
  Notes take(mlir::ModuleOp emitted, std::optional<int64_t> memoryLimit);

  /// Notes by function; also those of functions that became no entries.
  using ByFunction = std::map<std::string, EntryNotes>;

private:
  std::shared_ptr<ByFunction> taken; ///< the context's streamer has it, too
};

} // namespace weir

#endif // WEIR_DRIVER_COMPILER_NOTETAKER_H

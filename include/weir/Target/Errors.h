//===- Errors.h - Where exceptions become diagnostics -----------*- C++ -*-===//
//
// The rooms without LLVM throw `weir::Error`; passes and libraries on MLIR return
// `LogicalResult` or `FailureOr` and report diagnostics. No exception may pass through a frame of
// MLIR, which is built without them, so every call from the second world into the first that may
// throw goes through `catchErrors`. docs/errors.md describes both worlds.
//
//===----------------------------------------------------------------------===//

#ifndef WEIR_TARGET_ERRORS_H
#define WEIR_TARGET_ERRORS_H

#include "mlir/IR/Diagnostics.h"
#include "weir/Artifact/Error.h"

namespace weir {

/// Returns what `function` returns. If it throws a `weir::Error`, appends the error's sentence to
/// the diagnostic that `emit` begins, and returns failure.
template <typename Emit, typename Function>
auto catchErrors(Emit emit, Function function) -> mlir::FailureOr<decltype(function())> {
  try {
    return function();
  } catch (const Error &error) {
    emit() << error.what();
    return mlir::failure();
  }
}

} // namespace weir

#endif // WEIR_TARGET_ERRORS_H

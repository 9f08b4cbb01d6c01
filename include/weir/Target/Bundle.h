//===- Bundle.h - From an emitted module to an artifact ---------*- C++ -*-===//

#ifndef WEIR_TARGET_BUNDLE_H
#define WEIR_TARGET_BUNDLE_H

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/BuiltinOps.h"
#include "weir/Artifact/Artifact.h"

namespace weir {

/// Returns what the manifest says of the module: its entries, its target and
/// the constants that its entries use, laid out in the constant segment.
/// Errors: failure, with a diagnostic, on a module without a profile, an
///         argument or constant whose type no tensor file can hold, or names
///         that repeat.
mlir::FailureOr<Manifest> getManifest(mlir::ModuleOp module);

/// Returns the entries that consist of segments, by name: the dictionaries of `weir.programs`.
llvm::ArrayRef<mlir::NamedAttribute> getPrograms(mlir::ModuleOp module);

/// Returns the plan of an entry whose dispatches launch `gpu.binary` kernels.
/// The module must pass weir-verify-ordered but for its kernels.
/// Errors: failure, with a diagnostic, when a kernel's binary does not state
///         its workgroup and operands, or an operand has no known place.
mlir::FailureOr<Plan> getPlan(mlir::func::FuncOp entry, const Manifest &manifest);

/// Returns the artifact of a module at the `emitted` level: manifest and plans
/// as the module states them, constants and code from its operations, and
/// `graphText`, unless empty, as "ir/graph.mlir".
/// Errors: failure, with a diagnostic, when the module is not at that level.
mlir::FailureOr<Artifact> buildArtifact(mlir::ModuleOp emitted, llvm::StringRef graphText);

/// Returns "file:line" where the location has one, else a name, else "".
std::string printSource(mlir::Location location);

} // namespace weir

#endif // WEIR_TARGET_BUNDLE_H

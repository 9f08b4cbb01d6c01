//===- Backend.h - LLVM's passes and code generation ------------*- C++ -*-===//

#ifndef WEIR_LIB_TARGET_BACKEND_H
#define WEIR_LIB_TARGET_BACKEND_H

#include "mlir/IR/Operation.h"
#include "mlir/Support/LLVM.h"
#include "llvm/IR/Module.h"
#include "llvm/Target/TargetMachine.h"

namespace weir {

/// Options of LLVM's passes.
struct BackendOptions {
  llvm::StringRef passes = "default<O3>"; ///< as `opt --passes` takes them
  bool hasLibrary = true;                 ///< whether functions of a C library may be called
};

/// Turns a module of LLVM's dialect into a file of the machine's language, in process. `prepare`
/// changes the LLVM module before any pass runs.
///
/// Errors: failure, with a diagnostic where MLIR has one.
mlir::FailureOr<std::string> runBackend(mlir::Operation *module, llvm::TargetMachine &machine,
                                        llvm::CodeGenFileType fileType,
                                        const BackendOptions &options,
                                        llvm::function_ref<void(llvm::Module &)> prepare);

} // namespace weir

#endif // WEIR_LIB_TARGET_BACKEND_H

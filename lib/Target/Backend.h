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

/// Code in LLVM's IR, alone in a context, so that another thread may take it.
struct BackendCode {
  std::unique_ptr<llvm::LLVMContext> context;
  std::unique_ptr<llvm::Module> module;
};

/// Turns a module of LLVM's dialect into LLVM's IR for `machine`.
///
/// Errors: failure, with a diagnostic.
mlir::FailureOr<BackendCode> translateForBackend(mlir::Operation *module,
                                                 const llvm::TargetMachine &machine);

/// Turns code into a file of the machine's language, in process. Returns nothing when the machine
/// writes no such file. Threads may run this at once, each with a machine and code of its own.
std::string runBackend(BackendCode code, llvm::TargetMachine &machine,
                       llvm::CodeGenFileType fileType, const BackendOptions &options);

} // namespace weir

#endif // WEIR_LIB_TARGET_BACKEND_H

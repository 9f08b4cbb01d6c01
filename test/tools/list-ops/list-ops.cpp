//===- list-ops.cpp - The ops that graphs may be made of ------------------===//
//
// Prints the names of all registered ops of the dialects that are named, one a
// line. A test has a case for each, so one that a newer MLIR adds is noticed.
//
//===----------------------------------------------------------------------===//

#include "mlir/IR/DialectRegistry.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/IR/OperationSupport.h"
#include "mlir/InitAllDialects.h"
#include "llvm/Support/raw_ostream.h"

int main(int argc, char **argv) {
  mlir::DialectRegistry registry;
  mlir::registerAllDialects(registry);
  mlir::MLIRContext context(registry, mlir::MLIRContext::Threading::DISABLED);
  for (int index = 1; index < argc; ++index)
    if (!context.getOrLoadDialect(argv[index])) {
      llvm::errs() << "no dialect is named '" << argv[index] << "'\n";
      return 2;
    }
  // Loading one loads those that it depends on.
  for (mlir::RegisteredOperationName op : context.getRegisteredOperations())
    for (int index = 1; index < argc; ++index)
      if (op.getDialectNamespace() == argv[index])
        llvm::outs() << op.getStringRef() << "\n";
  return 0;
}

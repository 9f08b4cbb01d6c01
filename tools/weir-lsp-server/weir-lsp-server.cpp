//===- weir-lsp-server.cpp - Weir's dialects in an editor -----------------===//
//
// Speaks the Language Server Protocol on standard input and output, as upstream's
// mlir-lsp-server does: definitions, references, hover, diagnostics of every level.
//
//===----------------------------------------------------------------------===//

#include "passes/Registration.h"

#include "mlir/InitAllDialects.h"
#include "mlir/Tools/mlir-lsp-server/MlirLspServerMain.h"

int main(int argc, char **argv) {
  mlir::DialectRegistry registry;
  mlir::registerAllDialects(registry);
  weir::registerEverything(registry);
  return failed(mlir::MlirLspServerMain(argc, argv, registry));
}

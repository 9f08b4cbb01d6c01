//===- weir-opt.cpp - Runs Weir's passes one by one -----------------------===//

#include "passes/Registration.h"
#include "tools/Allocation.h"

#include "mlir/Dialect/Linalg/Passes.h"
#include "mlir/InitAllDialects.h"
#include "mlir/Tools/mlir-opt/MlirOptMain.h"
#include "mlir/Transforms/Passes.h"

// Defined in test/lib, which links itself to this tool: no tool depends on tests.
namespace weir::test {
void registerTestPasses();
} // namespace weir::test

int main(int argc, char **argv) {
  weir::keepFreedMemory();
  mlir::DialectRegistry registry;
  // Kernels and hosts from elsewhere may use any dialect.
  mlir::registerAllDialects(registry);
  weir::registerEverything(registry);
  weir::registerPasses();
  weir::test::registerTestPasses();
  mlir::registerCanonicalizerPass();
  mlir::registerCSEPass();
  mlir::registerLinalgPasses();
  return mlir::asMainReturnCode(
      mlir::MlirOptMain(argc, argv, "Weir's passes, one by one\n", registry));
}

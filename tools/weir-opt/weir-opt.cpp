//===- weir-opt.cpp - Runs Weir's passes one by one -----------------------===//

#include "driver/Compiler/Compiler.h"
#include "passes/Registration.h"
#include "tools/Allocation.h"

#include "mlir/Dialect/Linalg/Passes.h"
#include "mlir/InitAllDialects.h"
#include "mlir/Support/FileUtilities.h"
#include "mlir/Tools/mlir-opt/MlirOptMain.h"
#include "mlir/Transforms/Passes.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/ToolOutputFile.h"

using namespace mlir;

// Defined in test/lib, which links itself to this tool: no tool depends on tests.
namespace weir::test {
void registerTestPasses();
} // namespace weir::test

/// Runs the tool of upstream on a file that `weir compile` would parse, too: the parser crashes on
/// some other texts.
static LogicalResult run(const std::string &input, const std::string &output,
                         DialectRegistry &registry) {
  std::unique_ptr<llvm::MemoryBuffer> text;
  try {
    text = llvm::MemoryBuffer::getMemBufferCopy(weir::readGraph(input),
                                                input == "-" ? "<stdin>" : input);
  } catch (const weir::Error &error) {
    llvm::errs() << "error: " << error.what() << "\n";
    return failure();
  }
  std::string problem;
  std::unique_ptr<llvm::ToolOutputFile> file = openOutputFile(output, &problem);
  if (!file) {
    llvm::errs() << "error: " << problem << "\n";
    return failure();
  }
  MlirOptMainConfig config = MlirOptMainConfig::createFromCLOptions();
  if (failed(MlirOptMain(file->os(), std::move(text), registry, config)))
    return failure();
  file->keep();
  return success();
}

int main(int argc, char **argv) {
  weir::keepFreedMemory();
  DialectRegistry registry;
  // Kernels and hosts from elsewhere may use any dialect.
  registerAllDialects(registry);
  weir::registerEverything(registry);
  weir::registerPasses();
  weir::test::registerTestPasses();
  registerCanonicalizerPass();
  registerCSEPass();
  registerLinalgPasses();

  auto [input, output] =
      registerAndParseCLIOptions(argc, argv, "Weir's passes, one by one\n", registry);
  MlirOptMainConfig config = MlirOptMainConfig::createFromCLOptions();
  // These print what there is and read nothing.
  if (config.shouldShowDialects() || config.shouldListPasses())
    return asMainReturnCode(MlirOptMain(argc, argv, input, output, registry));
  return asMainReturnCode(run(input, output, registry));
}

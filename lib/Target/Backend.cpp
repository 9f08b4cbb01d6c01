//===- Backend.cpp - LLVM's passes and code generation --------------------===//

#include "Backend.h"

#include "mlir/Target/LLVMIR/Export.h"
#include "llvm/Analysis/TargetLibraryInfo.h"
#include "llvm/IR/LegacyPassManager.h"
#include "llvm/Passes/PassBuilder.h"

using namespace mlir;
using namespace weir;

static void optimize(llvm::Module &module, llvm::TargetMachine &machine,
                     const BackendOptions &options) {
  llvm::TargetLibraryInfoImpl none(machine.getTargetTriple());
  none.disableAllFunctions();
  llvm::LoopAnalysisManager loops;
  llvm::FunctionAnalysisManager functions;
  if (!options.hasLibrary)
    functions.registerPass([&] { return llvm::TargetLibraryAnalysis(none); });
  llvm::CGSCCAnalysisManager calls;
  llvm::ModuleAnalysisManager modules;
  llvm::PassBuilder builder(&machine);
  builder.registerModuleAnalyses(modules);
  builder.registerCGSCCAnalyses(calls);
  builder.registerFunctionAnalyses(functions);
  builder.registerLoopAnalyses(loops);
  builder.crossRegisterProxies(loops, functions, calls, modules);
  llvm::ModulePassManager passes;
  llvm::cantFail(builder.parsePassPipeline(passes, options.passes));
  passes.run(module, modules);
}

FailureOr<BackendCode> weir::translateForBackend(Operation *module,
                                                 const llvm::TargetMachine &machine) {
  BackendCode code;
  code.context = std::make_unique<llvm::LLVMContext>();
  code.module = translateModuleToLLVMIR(module, *code.context);
  if (!code.module)
    return failure();
  code.module->setTargetTriple(machine.getTargetTriple());
  code.module->setDataLayout(machine.createDataLayout());
  return code;
}

std::string weir::runBackend(BackendCode code, llvm::TargetMachine &machine,
                             llvm::CodeGenFileType fileType, const BackendOptions &options) {
  optimize(*code.module, machine, options);
  SmallString<0> text;
  llvm::raw_svector_ostream stream(text);
  llvm::legacy::PassManager passes;
  if (machine.addPassesToEmitFile(passes, stream, nullptr, fileType, /*DisableVerify=*/true))
    return {};
  passes.run(*code.module);
  return text.str().str();
}

//===- plugin.cpp - Weir's passes and dialects for stock mlir-opt ---------===//

#include "passes/Registration.h"

#include "mlir/Tools/Plugins/DialectPlugin.h"
#include "mlir/Tools/Plugins/PassPlugin.h"

extern "C" LLVM_ATTRIBUTE_WEAK mlir::PassPluginLibraryInfo mlirGetPassPluginInfo() {
  return {MLIR_PLUGIN_API_VERSION, "WeirPasses", LLVM_VERSION_STRING, weir::registerPasses};
}

extern "C" LLVM_ATTRIBUTE_WEAK mlir::DialectPluginLibraryInfo mlirGetDialectPluginInfo() {
  return {MLIR_PLUGIN_API_VERSION, "WeirPasses", LLVM_VERSION_STRING,
          [](mlir::DialectRegistry *registry) { weir::registerEverything(*registry); }};
}

//===- Registration.h - Dialects, external models and passes ----*- C++ -*-===//

#ifndef WEIR_PASSES_REGISTRATION_H
#define WEIR_PASSES_REGISTRATION_H

#include "mlir/IR/DialectRegistry.h"

namespace weir {

/// Registers every dialect and external model that Weir uses.
void registerEverything(mlir::DialectRegistry &registry);

/// Registers every pass of Passes.td, for command lines.
void registerPasses();

} // namespace weir

#endif // WEIR_PASSES_REGISTRATION_H

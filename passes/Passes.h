//===- Passes.h - Makes every pass of Passes.td -----------------*- C++ -*-===//
//
// For those that build pipelines, and for a pass that has options. Other passes
// include `Passes.h.inc` alone, by the name of their base class.
//
//===----------------------------------------------------------------------===//

#ifndef WEIR_PASSES_PASSES_H
#define WEIR_PASSES_PASSES_H

#include "mlir/Pass/Pass.h"

namespace weir {
#define GEN_PASS_DECL
#include "passes/Passes.h.inc"
} // namespace weir

#endif // WEIR_PASSES_PASSES_H

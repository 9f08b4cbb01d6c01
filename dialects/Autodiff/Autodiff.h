//===- Autodiff.h - The autodiff dialect ------------------------------------*- C++ -*-===//

#ifndef WEIR_DIALECTS_AUTODIFF_AUTODIFF_H
#define WEIR_DIALECTS_AUTODIFF_AUTODIFF_H

#include "mlir/Bytecode/BytecodeOpInterface.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/Dialect.h"
#include "mlir/IR/OpDefinition.h"
#include "mlir/IR/OpImplementation.h"
#include "mlir/IR/SymbolTable.h"

#include "dialects/Autodiff/AutodiffDialect.h.inc"
#define GET_OP_CLASSES
#include "dialects/Autodiff/AutodiffOps.h.inc"

#endif // WEIR_DIALECTS_AUTODIFF_AUTODIFF_H

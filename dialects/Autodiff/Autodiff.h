//===- Autodiff.h - The autodiff dialect ------------------------------------*- C++ -*-===//

#ifndef WEIR_DIALECTS_AUTODIFF_AUTODIFF_H
#define WEIR_DIALECTS_AUTODIFF_AUTODIFF_H

#include "mlir/Bytecode/BytecodeOpInterface.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/Dialect.h"
#include "mlir/IR/OpDefinition.h"
#include "mlir/IR/OpImplementation.h"
#include "mlir/IR/SymbolTable.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

#include "dialects/Autodiff/AutodiffDialect.h.inc"
#include "dialects/Autodiff/AutodiffEnums.h.inc"
#define GET_OP_CLASSES
#include "dialects/Autodiff/AutodiffOps.h.inc"

namespace weir::autodiff {

/// On a function: how many of its arguments and results are those of the function whose
/// forward and backward it holds, a `DenseI64ArrayAttr` of two numbers.
inline constexpr llvm::StringLiteral splitAttrName = "autodiff.split";

/// On an argument: nobody wants a gradient by it, a unit.
inline constexpr llvm::StringLiteral frozenAttrName = "weir.frozen";

} // namespace weir::autodiff

#endif // WEIR_DIALECTS_AUTODIFF_AUTODIFF_H

//===- Matrix.h - The matrix dialect ----------------------------*- C++ -*-===//

#ifndef WEIR_DIALECTS_MATRIX_MATRIX_H
#define WEIR_DIALECTS_MATRIX_MATRIX_H

#include "dialects/Autodiff/Differentiable.h"
#include "mlir/Bytecode/BytecodeOpInterface.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/Dialect.h"
#include "mlir/IR/OpDefinition.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

#include "dialects/Matrix/MatrixDialect.h.inc"
#define GET_OP_CLASSES
#include "dialects/Matrix/MatrixOps.h.inc"

#endif // WEIR_DIALECTS_MATRIX_MATRIX_H

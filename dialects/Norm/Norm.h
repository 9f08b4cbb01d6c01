//===- Norm.h - The norm dialect --------------------------------*- C++ -*-===//

#ifndef WEIR_DIALECTS_NORM_NORM_H
#define WEIR_DIALECTS_NORM_NORM_H

#include "dialects/Autodiff/Differentiable.h"
#include "mlir/Bytecode/BytecodeOpInterface.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/Dialect.h"
#include "mlir/IR/OpDefinition.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

#include "dialects/Norm/NormDialect.h.inc"
#include "dialects/Norm/NormEnums.h.inc"
#define GET_OP_CLASSES
#include "dialects/Norm/NormOps.h.inc"

#endif // WEIR_DIALECTS_NORM_NORM_H

//===- Random.h - The random dialect ----------------------------*- C++ -*-===//

#ifndef WEIR_DIALECTS_RANDOM_RANDOM_H
#define WEIR_DIALECTS_RANDOM_RANDOM_H

#include "mlir/Bytecode/BytecodeOpInterface.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/Dialect.h"
#include "mlir/IR/OpDefinition.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

#include "dialects/Random/RandomDialect.h.inc"
#define GET_OP_CLASSES
#include "dialects/Random/RandomOps.h.inc"

#endif // WEIR_DIALECTS_RANDOM_RANDOM_H

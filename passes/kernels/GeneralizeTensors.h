//===- GeneralizeTensors.h - Parts of weir-generalize-tensors ---*- C++ -*-===//

#ifndef WEIR_PASSES_KERNELS_GENERALIZETENSORS_H
#define WEIR_PASSES_KERNELS_GENERALIZETENSORS_H

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "weir/Artifact/Profile.h"

namespace weir {

/// Whether some kernel makes the tensor anyway: it is computed by a reduction, or several
/// ops read it.
bool hasOwnKernel(mlir::Value value);

/// Moves the computation of a tensor into the body that reads its elements at computed
/// places, if that body is its only reader and a kernel of its own is not needed. Never
/// exceeds the number of buffers that the profile allows a kernel.
void computeWhereRead(mlir::func::FuncOp function, const Profile &profile);

} // namespace weir

#endif // WEIR_PASSES_KERNELS_GENERALIZETENSORS_H

//===- Floats.h - Elements of all float types as f64 ------------*- C++ -*-===//

#ifndef WEIR_ARTIFACT_FLOATS_H
#define WEIR_ARTIFACT_FLOATS_H

#include "weir/Artifact/Artifact.h"

namespace weir {

/// Whether elements are F64, F32, F16 or BF16.
bool isFloat(const DType &dtype);

/// Returns the number of decimal digits that distinguish any two values of the type.
int getDigits(const DType &dtype);

/// Reads and writes element `index` (row-major) of a tensor of floats. Writing rounds to the
/// nearest value, ties to even (IEEE 754-2019, section 4.3.1).
double getFloat(const Tensor &tensor, size_t index);
void setFloat(Tensor &tensor, size_t index, double value);

/// Returns the tensor of floats converted to another float type.
Tensor convertFloats(const Tensor &tensor, const DType &dtype);

} // namespace weir

#endif // WEIR_ARTIFACT_FLOATS_H

//===- Floats.h - Elements of all float types as f64 ------------*- C++ -*-===//

#ifndef WEIR_ARTIFACT_FLOATS_H
#define WEIR_ARTIFACT_FLOATS_H

#include "weir/Artifact/Artifact.h"

namespace weir {

/// Whether elements are F64, F32, F16 or BF16.
bool isFloat(const DType &dtype);

/// Decimal digits that tell neighbours of the type apart.
int getDigits(const DType &dtype);

/// The element in row-major order of a tensor of floats, and the same written: to the
/// nearest, ties to even (IEEE 754-2019, section 4.3.1).
double getFloat(const Tensor &tensor, size_t index);
void setFloat(Tensor &tensor, size_t index, double value);

/// The tensor of floats with elements of another float type.
Tensor convertFloats(const Tensor &tensor, const DType &dtype);

} // namespace weir

#endif // WEIR_ARTIFACT_FLOATS_H

//===- StoredBytes.h - Bytes of tensors on a device -------------*- C++ -*-===//

#ifndef WEIR_ARTIFACT_STOREDBYTES_H
#define WEIR_ARTIFACT_STOREDBYTES_H

#include "weir/Artifact/Plan.h"
#include "weir/Artifact/Profile.h"

namespace weir {

/// Returns the bytes that an argument or result of `bytes`, of elements of `elementBytes`, has on a
/// device: whole words of 32 bits, if the device loads such elements as parts of words. The bytes
/// behind the tensor are nobody's: they are never part of a value.
int64_t getStoredBytes(int64_t bytes, int64_t elementBytes, const Profile &profile);

/// Returns those of a tensor. Errors: `Error` as `getByteSize`.
int64_t getStoredBytes(const TensorSpec &spec, const Profile &profile);

} // namespace weir

#endif // WEIR_ARTIFACT_STOREDBYTES_H

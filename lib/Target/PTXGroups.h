//===- PTXGroups.h - What four subgroups do together, as PTX ----*- C++ -*-===//

#ifndef WEIR_LIB_TARGET_PTXGROUPS_H
#define WEIR_LIB_TARGET_PTXGROUPS_H

#include "mlir/Conversion/LLVMCommon/TypeConverter.h"
#include "mlir/Transforms/DialectConversion.h"

namespace weir {

/// Adds patterns for products of matrices in workgroup memory, copies of boxes to it, and
/// mbarriers.
void populateGroupPatterns(const mlir::LLVMTypeConverter &types, mlir::RewritePatternSet &patterns);

} // namespace weir

#endif // WEIR_LIB_TARGET_PTXGROUPS_H

//===- KernelGate.h - What both targets refuse ------------------*- C++ -*-===//

#ifndef WEIR_LIB_TARGET_KERNELGATE_H
#define WEIR_LIB_TARGET_KERNELGATE_H

#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "weir/Artifact/Profile.h"

namespace weir {

/// Checks one kernel and reports every problem. This class has the checks of all targets;
/// each target adds its own.
class KernelGate {
public:
  KernelGate(mlir::gpu::GPUFuncOp kernel, const Profile &profile)
      : kernel(kernel), profile(profile) {}
  virtual ~KernelGate() = default;

  mlir::LogicalResult check();

protected:
  /// Returns the target's name for errors.
  virtual llvm::StringRef getLanguage() const = 0;
  /// Returns the problem with a scalar type that not every target has, as text behind its
  /// name; empty when there is none.
  virtual std::string findScalarError(mlir::Type type) const = 0;
  /// Returns why the target does not lower `op` exactly, empty when it does.
  virtual std::string findOperationError(mlir::Operation *op) = 0;

  /// Returns the max number of elements of a vector, a power of two.
  virtual int64_t getMaxLanes() const { return 4; }
  /// Whether the target has values of a type that is no number and no vector.
  virtual bool isOwnType(mlir::Type) const { return false; }
  /// Whether the target has vectors of this type that are longer, or of higher rank.
  virtual bool isOwnVector(mlir::VectorType) const { return false; }
  /// Whether the target lowers `access`, a load or store of a vector of consecutive elements.
  virtual bool isVectorAccess(mlir::Operation *) const { return false; }

  /// Returns the problem with a function that the target does not compute exactly.
  static std::string getMissingFunction(mlir::Operation *op);

  mlir::gpu::GPUFuncOp kernel;
  const Profile &profile;

private:
  mlir::InFlightDiagnostic fail(mlir::Operation *op);
  void checkSignature();
  void checkOperation(mlir::Operation *op);
  void checkMemory(mlir::Operation *op, mlir::MemRefType type);
  std::string findTypeError(mlir::Type type) const;
  std::string getMissing(llvm::StringRef capability, mlir::Type type) const;

  bool failed = false;
};

} // namespace weir

#endif // WEIR_LIB_TARGET_KERNELGATE_H

//===- UpdateRule.h - Optimizers as graph text ------------------*- C++ -*-===//

#ifndef WEIR_LIB_AUTODIFF_UPDATERULE_H
#define WEIR_LIB_AUTODIFF_UPDATERULE_H

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/BuiltinOps.h"

namespace weir::autodiff {

/// The meaning of a rule's argument.
struct RuleArgument {
  enum class Kind { Parameter, Gradient, State, Scalar } kind;
  std::string name;                ///< of a state or a scalar
  llvm::SmallVector<int64_t> dims; ///< of a state: the parameter's dimensions that it has
  mlir::Attribute initial;         ///< of a state: its value before the first step, or null
};

/// A function of a rule.
struct RuleFunction {
  mutable mlir::func::FuncOp op; ///< a handle, whose methods are not const
  llvm::SmallVector<RuleArgument> arguments;

  /// Whether it computes what all parameters share.
  bool isShared() const;
  /// Whether it is written for one element, of a parameter of any rank.
  bool isElementwise() const;
  /// Whether a result behind the states has this name.
  bool gives(llvm::StringRef name) const;
  /// Returns the name of a result, or "".
  llvm::StringRef getResultName(unsigned result) const;
  /// Returns the type of an argument for a parameter of this shape, updated in `element`.
  mlir::RankedTensorType getType(unsigned argument, llvm::ArrayRef<int64_t> shape,
                                 mlir::Type element) const;
};

/// The update rule of an optimizer. Source: "Update rules" in docs/training.md.
class UpdateRule {
public:
  /// Reads the functions of a module, which must outlive the rule.
  /// Errors: a diagnostic where they are no rule.
  static mlir::FailureOr<UpdateRule> read(mlir::ModuleOp module);

  /// Returns the function of what all parameters share, or null.
  const RuleFunction *getShared() const;
  /// Returns the function for parameters of a rank, or null.
  const RuleFunction *find(int64_t rank) const;

private:
  llvm::SmallVector<RuleFunction> functions;
};

/// Builds `function` on `arguments`, tensors in its order; returns its results. Elements of type
/// f32 in the text become `element`.
/// Errors: a diagnostic where a size does not follow from the parameter's.
mlir::FailureOr<llvm::SmallVector<mlir::Value>> buildRule(mlir::OpBuilder &builder,
                                                          const RuleFunction &function,
                                                          llvm::ArrayRef<mlir::Value> arguments,
                                                          mlir::Type element);

} // namespace weir::autodiff

#endif // WEIR_LIB_AUTODIFF_UPDATERULE_H

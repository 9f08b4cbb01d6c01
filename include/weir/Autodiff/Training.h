//===- Training.h - Entries that update parameters --------------*- C++ -*-===//

#ifndef WEIR_AUTODIFF_TRAINING_H
#define WEIR_AUTODIFF_TRAINING_H

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/BuiltinOps.h"
#include "llvm/Support/GlobPattern.h"

namespace weir::autodiff {

/// Parameters with hyperparameters of their own.
struct ParameterGroup {
  std::string name;
  std::vector<llvm::GlobPattern> patterns; ///< of the parameters' names
};

/// Options of a training step, beside its update rule. Source: docs/training.md.
struct TrainOptions {
  std::vector<ParameterGroup> groups; ///< a parameter is in the first that has a fitting pattern
  bool accumulates = false;           ///< adds entry F.accumulate
  bool clipsNorm = false;             ///< of all gradients together
  bool maximizes = false;             ///< goes up the gradient
  bool scalesLoss = false;            ///< and skips steps with a gradient that is not finite
  bool averages = false;              ///< keeps a moving average of each parameter
  bool offloadsState = false;         ///< state of parameters lies in host memory
  bool inPieces = false;              ///< adds entries F.grad and F.update
  int64_t shards = 1; ///< adds entries F.update.I for so many parts of the parameters
};

/// Returns the text of the update rule `name` that Weir ships, or nothing.
std::optional<llvm::StringRef> findUpdateRule(llvm::StringRef name);
/// Returns the names of all of them, in order.
llvm::SmallVector<llvm::StringRef> getUpdateRuleNames();

/// Adds entry `F.step`: a step of the optimizer `rule` down the gradient of F's float result of
/// rank 0, for the arguments of kind `param`. It takes the arguments of F, the hyperparameters,
/// which have rank 0, then the optimizer's state. It gives the results of F, then the parameters
/// and the state updated, each named like the argument it is of, which is donated. With
/// `accumulates` adds entry `F.accumulate`, too; with `inPieces` the gradients alone, `F.grad`, and
/// the update alone, `F.update`. Returns the entries.
///
/// Errors: a diagnostic unless there is exactly one such result; for parameters that are not all
///         f64, or each f32, f16 or bf16; where a name would stand for two values; where `rule` is
///         no update rule, or has none for a parameter's rank; for a group without a parameter.
mlir::FailureOr<llvm::SmallVector<mlir::func::FuncOp>>
addTrainEntries(mlir::func::FuncOp function, mlir::ModuleOp rule, const TrainOptions &options);

} // namespace weir::autodiff

#endif // WEIR_AUTODIFF_TRAINING_H

//===- Step.h - Builds the entries of a training step -----------*- C++ -*-===//

#ifndef WEIR_LIB_AUTODIFF_STEP_H
#define WEIR_LIB_AUTODIFF_STEP_H

#include "UpdateRule.h"

#include "dialects/Autodiff/Number.h"
#include "weir/Autodiff/Sharding.h"
#include "weir/Autodiff/Training.h"
#include "llvm/ADT/StringMap.h"

namespace weir::autodiff {

/// A parameter that is trained.
struct Parameter {
  std::string name, group; ///< group: "" or "NAME."
  mlir::Value value;       ///< of the type that F takes
  mlir::Value gradient;    ///< of that type, or of the type that updates are computed in
  mlir::Value master;      ///< the value to update; `value`, but for 16-bit parameters
  const RuleFunction *rule = nullptr;
  llvm::SmallVector<mlir::Value> states; ///< of the rule
  mlir::Value accumulated, average;
};

/// The bytes of the gradients of all parameters in one buffer. Source: "In pieces" in
/// docs/training.md.
struct GradientLayout {
  struct Part {
    size_t parameter = 0;         ///< its place among the parameters
    int64_t begin = 0, count = 0; ///< elements of the buffer
  };
  std::vector<Part> parts; ///< in their order in the buffer; parameters without elements have none
  int64_t count = 0;       ///< elements of the buffer

  /// Each part begins at a multiple of this number of elements: of 256 bytes, where every device
  /// can bind a buffer.
  static constexpr int64_t alignment = 64;

  explicit GradientLayout(llvm::ArrayRef<mlir::RankedTensorType> types);
  /// Returns the elements of a part, and those up to the next one.
  static int64_t getPadded(int64_t count) { return llvm::alignTo(count, alignment); }
};

/// Adds arguments and results to an entry that gives gradients.
class Step {
public:
  /// Takes an entry whose results are `numOwnResults`, and then a gradient for each argument
  /// numbered in `trained`.
  Step(mlir::func::FuncOp entry, unsigned numOwnResults, llvm::ArrayRef<int64_t> trained,
       const TrainOptions &options);

  /// Makes the entry add gradients to what was accumulated before.
  void accumulate();
  /// Makes the entry update parameters by a rule. Errors: a diagnostic.
  mlir::LogicalResult update(const UpdateRule &rule);
  /// The same for gradients that are sums over the hyperparameter `microbatches`. State that
  /// parameters share gets the prefix `shard`; where that is not empty, the entry has some of the
  /// parameters only. Errors: a diagnostic.
  mlir::LogicalResult updateBySums(const UpdateRule &rule, llvm::StringRef shard);
  /// Makes the entry give gradients, with what was accumulated before, as one buffer.
  void gather(const GradientLayout &layout);

  /// Returns the type of the value that a rule updates: of a parameter of 16 bits a longer one.
  mlir::RankedTensorType getUpdatedType(const Parameter &parameter) const;
  /// Returns the axes along which a parameter differs by rank.
  GridAxes getAxes(const Parameter &parameter);
  llvm::ArrayRef<Parameter> getParameters() const { return parameters; }

private:
  /// Builds new elements from those that an op reads.
  using Formula = llvm::function_ref<llvm::SmallVector<Number>(llvm::ArrayRef<Number>)>;

  mlir::func::FuncOp entry;
  unsigned numOwnResults;
  const TrainOptions &options;
  mlir::OpBuilder builder;
  mlir::Type element;            ///< that updates are computed in
  mlir::RankedTensorType scalar; ///< the type of hyperparameters
  llvm::SmallVector<Parameter> parameters;
  bool takesSums = false; ///< gradients are sums that were made by other entries
  std::string shard;      ///< prefix of shared state
  /// Hyperparameters and what a rule shares, by group and name; and the states that it shares.
  llvm::StringMap<mlir::Value> scalars, sharedStates;
  /// Pairs of an argument and its new value.
  llvm::SmallVector<std::pair<mlir::Value, mlir::Value>> updates, sharedUpdates;
  mlir::Value lossScale, goodSteps;
  /// The largest magnitude in any gradient, NaN included, where steps may be skipped. Of several
  /// ranks 0, or an infinity if a gradient is not finite.
  mlir::Value largest;

  mlir::Value addArgument(const llvm::Twine &name, mlir::Type type, llvm::StringRef kind,
                          mlir::Attribute initial = {});
  mlir::Value addState(const llvm::Twine &name, mlir::Type type, mlir::Attribute initial = {}) {
    return addArgument(name, type, "state", initial);
  }
  mlir::Value addParameterState(const Parameter &parameter, const llvm::Twine &suffix,
                                mlir::Type type, mlir::Attribute initial = {});
  mlir::Attribute getNumber(double number) { return builder.getFloatAttr(element, number); }
  mlir::Value addHyperparameter(const std::string &name);
  llvm::SmallVector<std::string> listGroups() const;

  llvm::SmallVector<mlir::Value> compute(llvm::ArrayRef<mlir::Value> points,
                                         llvm::ArrayRef<mlir::Value> scalars, unsigned numResults,
                                         Formula formula);
  mlir::Value reduce(llvm::ArrayRef<mlir::Value> tensors,
                     llvm::function_ref<Number(Number result, Number value)> combine);
  mlir::Value convert(mlir::Value tensor, mlir::RankedTensorType type);

  void addLossScale();
  mlir::LogicalResult chooseRules(const UpdateRule &rule);
  void addHyperparameters(const UpdateRule &rule);
  void addSharedStates(const UpdateRule &rule);
  void addParameterStates(Parameter &parameter);
  void averageGradients();
  mlir::Value combine(llvm::function_ref<mlir::Value(llvm::ArrayRef<mlir::Value>)> find);
  void findLargest();
  void clip();
  void negateGradients();
  mlir::LogicalResult buildShared(const RuleFunction &shared, const std::string &group);
  mlir::LogicalResult buildUpdate(const Parameter &parameter);
  void resetAccumulated(const Parameter &parameter);
  void updateLossScale();
  void addUpdate(mlir::Value argument, mlir::Value updated);
  void replaceResults();
};

} // namespace weir::autodiff

#endif // WEIR_LIB_AUTODIFF_STEP_H

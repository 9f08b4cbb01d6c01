//===- Pipelines.h - The table of levels ------------------------*- C++ -*-===//

#ifndef WEIR_PASSES_PIPELINES_H
#define WEIR_PASSES_PIPELINES_H

#include "mlir/Pass/PassManager.h"

namespace weir {

/// The options of `weir compile` that the pipelines take.
struct PipelineOptions {
  /// A built-in profile's name or the path of a profile file; empty: the module has one.
  std::string profile = "lavapipe";
  /// The target of the profile: "vulkan" or "cuda".
  std::string target = "vulkan";
  /// How factors of products in f32 may be rounded: "f32" or "tf32"; empty: as the profile says.
  std::string precision;
  /// Every value gets bytes of its own.
  bool noReuse = false;
  bool requireDonation = false;
  /// Max growth of the arena when commands are reordered for fewer barriers: see `parseReorder`.
  std::string reorder = "safe";
  /// The most bytes that an entry's arena may have; 0: any.
  int64_t memoryLimit = 0;
  /// Dispatches are repeated as long as that saves a larger share of bytes than it adds work.
  bool checkpoint = false;
  /// Entries get the attribute `weir.curve` at the placed level.
  bool curve = false;

  /// Whether dispatches may be repeated, or it is asked what that would do.
  bool mayRepeat() const { return memoryLimit > 0 || checkpoint || curve; }
};

/// Reads how far commands may change places: "off" is nothing, "safe" 0 and "N%" N,
/// by how many percent the arena may grow for it, at most 10^6.
/// Errors: failure on other text.
mlir::FailureOr<std::optional<int64_t>> parseReorder(llvm::StringRef text);

/// A level: ordinary MLIR that prints, parses, and can start or end a compilation.
struct Level {
  llvm::StringLiteral name;
  /// Adds the passes that turn the level before into this one.
  void (*addPasses)(mlir::OpPassManager &, const PipelineOptions &);
  /// Adds the gate that rejects what should be gone.
  void (*addGate)(mlir::OpPassManager &);
};

/// Returns the levels from `graph` to `emitted`, in order. The first has passes too: they turn a
/// front end's output into the graph that the rest expects.
llvm::ArrayRef<Level> getLevels();

/// Adds the passes from what a front end wrote to the `gradient` level.
void addGradientPasses(mlir::OpPassManager &manager);

} // namespace weir

#endif // WEIR_PASSES_PIPELINES_H

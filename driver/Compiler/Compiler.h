//===- Compiler.h - The pipelines as a library ------------------*- C++ -*-===//
//
// No LLVM or MLIR header is included here: the tools need none.
//
//===----------------------------------------------------------------------===//

#ifndef WEIR_DRIVER_COMPILER_COMPILER_H
#define WEIR_DRIVER_COMPILER_COMPILER_H

#include "weir/Artifact/Error.h"
#include "weir/Artifact/Profile.h"

#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace weir {

/// A part of a compilation that took time: a level, a pass of it, reading, writing...
/// Parts lie within others: passes within their level.
struct CompileStep {
  std::string name; ///< "parse"; of levels "ordered", with several targets "cuda/ordered"
  enum class Kind { Level, Pass, Other } kind = Kind::Other;
  unsigned depth = 0; ///< how many others it lies within
  double begin = 0;   ///< in seconds since the compilation began
  double seconds = 0;
  /// Of passes: the ops in the module; of a pass that another pass runs on an op, those in
  /// that op.
  int64_t opsBefore = 0, opsAfter = 0;
};

struct CompileOptions {
  std::string input;  ///< path of the .mlir; "-" is standard input
  std::string output; ///< path of the .weir, or of the .mlir with `stopAfter`
  std::vector<std::string> targets = {"vulkan"}; ///< "vulkan", "cuda", "cuda:PROFILE"
  std::vector<std::string> entries;              ///< empty: every public function
  std::vector<std::string> vjp;                  ///< functions F to add entry F.vjp of
  std::vector<std::string> grad;                 ///< functions F to add entry F.grad of
  std::vector<std::string> split; ///< functions F to add entries F.forward, F.backward_... of
  std::vector<std::string> train; ///< "sgd:F", "momentum:F", "adamw:F": to add entry F.step of F
  std::string startFrom = "graph";
  std::string stopAfter; ///< empty: write an artifact
  /// Folder for LEVEL.mlir files, with several targets in a folder each once they
  /// part; empty: none.
  std::string saveLevels;
  bool noReuse = false;
  bool checkIndices = false;    ///< entries say by a result whether an index left its tensor
  bool requireDonation = false; ///< a donated argument that no result takes is an error
  /// How far dispatches may change places for fewer barriers: "off"; "safe", the
  /// arena grows by nothing; "N%", it may grow by N percent. Empty: safe.
  std::string reorder;
  /// The most bytes that the arena of an entry may have: dispatches change places
  /// and are repeated until it does.
  std::optional<int64_t> memoryLimit;
  /// Called, when set, with a sentence on what was done for `memoryLimit`, for each
  /// entry and target.
  std::function<void(const std::string &)> onReport;
  /// Called, when set, with what is about to be done, "level 6 of 7: ordered, pass 1 of
  /// 4: weir-insert-barriers".
  std::function<void(const std::string &)> onProgress;
  /// Called, when set, with each step as it ends. Ops are counted only then.
  std::function<void(const CompileStep &)> onStep;
};

/// Problems found in the input, each one sentence with a location.
class CompileError : public Error {
public:
  explicit CompileError(std::vector<std::string> problems);
  std::vector<std::string> problems;
};

/// Compiles. Writes only when everything went well: first the levels, then the
/// output, which replaces what was there at once.
/// Errors: `CompileError` for problems of the input, `Error` for the rest: a
///         file that cannot be read or written, an unknown level or target, an
///         option that the chosen levels leave without effect, a plan that does
///         not verify.
void compile(const CompileOptions &options);

/// Returns the text of an .mlir file; "-" is standard input.
/// Errors: `Error` when it can't be read, `CompileError` for text that no parser
///         should be given.
std::string readGraph(const std::string &path);

/// Returns a graph that has the gradients F.vjp of `entry`, F: as `--vjp=F` derives
/// them, or as the graph has them. `text` is what `readGraph` gave of `path`.
/// Errors: `CompileError` where there is no F, or the gradient meets an op without
///         a rule.
std::string deriveVjp(const std::string &text, const std::string &path, const std::string &entry);

/// Returns a graph whose function `entry` gives, behind its own results, every value
/// of more than 0 bytes that its kernels for `profile` make and that is no result:
/// in the order of the kernels, which is that of the values of a plan. `text` is an
/// artifact's graph.
/// Errors: `CompileError` where it has no function `entry` or doesn't compile.
std::string exposeValues(const std::string &text, const std::string &entry, const Profile &profile);

/// The names of the levels, in order.
std::vector<std::string> getLevelNames();

} // namespace weir

#endif // WEIR_DRIVER_COMPILER_COMPILER_H

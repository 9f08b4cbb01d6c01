//===- Compiler.h - The pipelines as a library ------------------*- C++ -*-===//
//
// No LLVM or MLIR header is included here: the tools need none.
//
//===----------------------------------------------------------------------===//

#ifndef WEIR_DRIVER_COMPILER_COMPILER_H
#define WEIR_DRIVER_COMPILER_COMPILER_H

#include "driver/Compiler/Exposed.h"
#include "weir/Artifact/Error.h"
#include "weir/Artifact/Profile.h"
#include "weir/Order/Limit.h"

#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace weir {

/// A timed part of a compilation: a level, a pass, reading, writing... Parts may lie within
/// others: passes within their level.
struct CompileStep {
  std::string name; ///< "parse"; of levels "ordered", with several targets "cuda/ordered"
  enum class Kind { Level, Pass, Other } kind = Kind::Other;
  unsigned depth = 0; ///< number of parts around it
  double begin = 0;   ///< in seconds since the compilation began
  double seconds = 0;
  /// The number of ops in the module before and after a pass, or in the op that a nested
  /// pass runs on.
  int64_t opsBefore = 0, opsAfter = 0;
};

/// The choices between bytes and work that an entry has.
struct MemoryCurve {
  std::string entry, target; ///< the target's name in the artifact
  std::vector<CurvePoint> points;
};

struct CompileOptions {
  std::string input;  ///< path of the .mlir; "-" is standard input
  std::string output; ///< path of the .weir, or of the .mlir with `stopAfter`
  std::vector<std::string> targets = {"vulkan"}; ///< "vulkan", "cuda", "cuda:PROFILE"
  std::vector<std::string> entries;              ///< empty: every public function
  std::vector<std::string> vjp;                  ///< functions F to add entry F.vjp of
  std::vector<std::string> grad;                 ///< functions F to add entry F.grad of
  std::vector<std::string> split; ///< functions F to add entries F.forward, F.backward_... of
  /// "adamw:F", "FILE.mlir:F": to add entry F.step of F, with an update rule that Weir ships or a
  /// file has.
  std::vector<std::string> train;
  std::vector<std::string> trainGroups; ///< "NAME=PATTERN,PATTERN": have their own hyperparameters
  bool accumulate = false;              ///< training entries: adds F.accumulate
  bool clipNorm = false;                ///< training entries: clip the gradients' norm
  bool maximize = false;                ///< training entries: go up the gradient
  bool lossScale = false;               ///< training entries: scale the loss, skip steps
  bool ema = false;                     ///< training entries: keep averages of the parameters
  bool offloadState = false;            ///< training entries: state lies in host memory
  bool pieces = false;                  ///< training entries: adds F.grad and F.update
  int64_t shards = 1;                   ///< training entries: adds F.update.I if more than 1
  std::string startFrom = "graph";
  std::string stopAfter; ///< empty: write an artifact
  /// Folder for LEVEL.mlir files. With several targets, levels from `kernels` on go to one
  /// folder per target. Empty: none.
  std::string saveLevels;
  /// How factors of products in f32 may be rounded: "f32", not at all; "tf32". Empty: as each
  /// profile says.
  std::string precision;
  bool noReuse = false;
  bool checkIndices = false;    ///< adds a result that tells whether an index left its tensor
  bool requireDonation = false; ///< a donated argument that no result takes is an error
  /// The reordering of dispatches for fewer barriers: "off"; "safe", without a larger
  /// arena; "N%", with an arena up to N percent larger. Empty: safe.
  std::string reorder;
  /// Max number of bytes of an entry's arena. Dispatches are reordered and recomputed to
  /// keep it.
  std::optional<int64_t> memoryLimit;
  /// The extent of recomputation without a limit: "off"; "auto", as long as that saves a
  /// larger share of the arena than it adds to the work. Empty: off.
  std::string checkpoint;
  /// Gets the curve of each entry and target. May be null: then none is computed.
  std::function<void(const MemoryCurve &)> onCurve;
  /// Gets a sentence on the effect of `memoryLimit` or `checkpoint` for each entry and target. May
  /// be null.
  std::function<void(const std::string &)> onReport;
  /// Gets the path of the artifact before it has its final name. An `Error` keeps it from getting
  /// that name. May be null.
  std::function<void(const std::string &)> onWritten;
  /// Gets the step that begins: "level 6 of 7: ordered, pass 1 of 4: weir-insert-barriers".
  /// May be null.
  std::function<void(const std::string &)> onProgress;
  /// Gets each step when it ends. May be null: then ops are not counted.
  std::function<void(const CompileStep &)> onStep;
};

/// Problems found in the input, each one sentence with a location.
class CompileError : public Error {
public:
  explicit CompileError(std::vector<std::string> problems);
  std::vector<std::string> problems;
};

/// Compiles. Writes only after everything went well: first the levels, then the output,
/// which replaces an existing file atomically.
/// Errors: `CompileError` for problems of the input, `Error` for the rest: a
///         file that cannot be read or written, an unknown level or target, an
///         option without effect for the chosen levels, a plan that does not
///         verify.
void compile(const CompileOptions &options);

/// Returns the text of an .mlir file; "-" is standard input.
/// Errors: `Error` if it cannot be read, `CompileError` for text that would break the
///         parser.
std::string readGraph(const std::string &path);

/// Returns a graph with the gradients F.vjp of `entry`, F: those that the graph has, or else
/// those that `--vjp=F` derives. `text` is the result of `readGraph(path)`.
/// Errors: `CompileError` if there is no F, or the gradient meets an op without a rule.
std::string deriveVjp(const std::string &text, const std::string &path, const std::string &entry);

/// Returns the functions of an entry, with the values that their kernels for `profile` make. `text`
/// is an artifact's graph.
/// Errors: `CompileError` if there is no function `entry` or the graph does not compile.
ExposedGraph exposeValues(const std::string &text, const std::string &entry,
                          const Profile &profile);

/// Returns the names of the levels, in order.
std::vector<std::string> getLevelNames();

} // namespace weir

#endif // WEIR_DRIVER_COMPILER_COMPILER_H

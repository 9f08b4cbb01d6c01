//===- Steps.h - Report and time the steps of a compilation -----*- C++ -*-===//

#ifndef WEIR_DRIVER_COMPILER_STEPS_H
#define WEIR_DRIVER_COMPILER_STEPS_H

#include "driver/Compiler/Compiler.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/Pass/PassManager.h"

#include <chrono>

namespace weir {

/// Reports steps to the options' `onProgress` and `onStep`. Watches nothing if neither is
/// set.
class Steps {
public:
  explicit Steps(const CompileOptions &options) : options(options) {}

  /// Runs `body` as one step and returns its result. A body that throws is not reported.
  template <typename Body> auto run(const std::string &name, Body body) {
    if (depth == 0)
      report(name);
    return time(name, CompileStep::Kind::Other, body);
  }

  /// Sets the number of calls of `runLevel` to come.
  void setLevels(unsigned count) { levels = count; }
  template <typename Body> void runLevel(const std::string &name, Body body) {
    level = "level " + std::to_string(++number) + " of " + std::to_string(levels) + ": " + name;
    report(level);
    time(name, CompileStep::Kind::Level, body);
  }

  /// Watches the passes that `manager`, which is complete, will run on `module`.
  void watch(mlir::PassManager &manager, mlir::ModuleOp module);

private:
  class Watch;
  const CompileOptions &options;
  const std::chrono::steady_clock::time_point start = std::chrono::steady_clock::now();
  unsigned depth = 0;
  unsigned number = 0, levels = 0;
  std::string level; ///< the current one and its number

  double now() const {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  }
  void report(const std::string &what) const {
    if (options.onProgress)
      options.onProgress(what);
  }
  CompileStep begin(const std::string &name, CompileStep::Kind kind) {
    return {name, kind, depth++, now()};
  }
  void end(CompileStep &step) {
    step.seconds = now() - step.begin;
    --depth;
    if (options.onStep)
      options.onStep(step);
  }
  template <typename Body>
  auto time(const std::string &name, CompileStep::Kind kind, Body &body) -> decltype(body()) {
    CompileStep step = begin(name, kind);
    if constexpr (std::is_void_v<decltype(body())>) {
      body();
      end(step);
    } else {
      auto result = body();
      end(step);
      return result;
    }
  }
};

} // namespace weir

#endif // WEIR_DRIVER_COMPILER_STEPS_H

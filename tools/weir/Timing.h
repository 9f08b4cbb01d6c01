//===- Timing.h - Times of compilation steps --------------------*- C++ -*-===//

#ifndef WEIR_TOOLS_WEIR_TIMING_H
#define WEIR_TOOLS_WEIR_TIMING_H

#include "driver/Compiler/Compiler.h"

#include <chrono>
#include <ostream>

namespace weir::tool {

/// The timed steps of one compilation, which begins at construction.
class Timing {
public:
  void add(const CompileStep &step) { steps.push_back(step); }
  /// Marks the end of the compilation.
  void end();

  /// Prints a table of steps, nested by indentation, and their sum. A pass that runs on several
  /// functions is one row.
  void print(std::ostream &out) const;

  /// Writes a file of trace events for Chrome's viewer and Perfetto (Trace Event Format,
  /// complete events, microseconds). Errors: `Error`.
  void writeTrace(const std::string &path) const;

private:
  std::vector<CompileStep> steps; ///< in the order of their ends
  std::chrono::steady_clock::time_point start = std::chrono::steady_clock::now();
  double seconds = 0;
  double peakMegabytes = 0; ///< peak memory of the process

  std::vector<CompileStep> sortSteps() const;
};

} // namespace weir::tool

#endif // WEIR_TOOLS_WEIR_TIMING_H

//===- Timing.h - Where a compilation's time goes, told ----------*- C++ -*-===//

#ifndef WEIR_TOOLS_WEIR_TIMING_H
#define WEIR_TOOLS_WEIR_TIMING_H

#include "driver/Compiler/Compiler.h"

#include <chrono>
#include <ostream>

namespace weir::tool {

/// The steps of one compilation, which begins with this.
class Timing {
public:
  void add(const CompileStep &step) { steps.push_back(step); }
  /// The compilation is over.
  void end();

  /// Prints a table: steps, indented below each what it consists of, and their sum.
  /// Passes on several functions are one row.
  void print(std::ostream &out) const;

  /// Writes a file of trace events, as Chrome's viewer and Perfetto open it (Trace
  /// Event Format, complete events, microseconds). Errors: `Error`.
  void writeTrace(const std::string &path) const;

private:
  std::vector<CompileStep> steps; ///< as they ended
  std::chrono::steady_clock::time_point start = std::chrono::steady_clock::now();
  double seconds = 0;
  double peakMegabytes = 0; ///< of the process

  std::vector<CompileStep> sortSteps() const;
};

} // namespace weir::tool

#endif // WEIR_TOOLS_WEIR_TIMING_H

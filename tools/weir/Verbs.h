//===- Verbs.h - The verbs of the command line ------------------*- C++ -*-===//

#ifndef WEIR_TOOLS_WEIR_VERBS_H
#define WEIR_TOOLS_WEIR_VERBS_H

#include "weir/Artifact/Error.h"

#include <CLI/CLI.hpp>

#include <functional>
#include <string>
#include <vector>

namespace weir::tool {

/// Exit statuses.
enum Status { Done = 0, CheckFailed = 1, BadInput = 2, Undecided = 3 };

/// Several problems; each becomes a line.
class Problems : public Error {
public:
  explicit Problems(std::vector<std::string> sentences)
      : Error(sentences.front()), sentences(std::move(sentences)) {}
  std::vector<std::string> sentences;
};

/// The action of the chosen verb; returns the exit status.
using Verb = std::function<int()>;

/// Adds a verb to `app`, which sets `chosen` if the command line names it.
void addCompile(CLI::App &app, Verb &chosen);
void addRun(CLI::App &app, Verb &chosen);
void addInspect(CLI::App &app, Verb &chosen);
void addExplain(CLI::App &app, Verb &chosen);
void addBench(CLI::App &app, Verb &chosen);
void addVerify(CLI::App &app, Verb &chosen);
void addCheckShader(CLI::App &app, Verb &chosen);
void addPlan(CLI::App &app, Verb &chosen);
void addGradCheck(CLI::App &app, Verb &chosen);
void addDevices(CLI::App &app, Verb &chosen);

} // namespace weir::tool

#endif // WEIR_TOOLS_WEIR_VERBS_H

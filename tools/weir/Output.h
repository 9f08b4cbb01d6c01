//===- Output.h - Tables, JSON and progress ---------------------*- C++ -*-===//

#ifndef WEIR_TOOLS_WEIR_OUTPUT_H
#define WEIR_TOOLS_WEIR_OUTPUT_H

#include <nlohmann/json.hpp>

#include <chrono>
#include <condition_variable>
#include <iostream>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

namespace weir::tool {

using Json = nlohmann::ordered_json;

/// Prints `rows` below `head`, columns aligned.
void printTable(const std::vector<std::string> &head,
                const std::vector<std::vector<std::string>> &rows, std::ostream &out = std::cout);

void printJson(const Json &json);

/// Prints an error as one line on standard error.
void printError(std::string sentence);

/// Checks, before long work starts, that the file of `option` can be written and is not "-",
/// since the verb's report is on standard output. Does nothing if `path` is "".
/// Errors: `Error`.
void checkOutput(const std::string &option, const std::string &path);

/// Refuses to write `path` if it is one of `inputs`; "" is no file.
/// Errors: `Error` that names the option.
void refuseOverwriting(const std::string &option, const std::string &path,
                       const std::vector<std::string> &inputs);

/// Returns "8192x1024", or "scalar" for rank 0.
std::string printShape(const std::vector<int64_t> &shape);

/// Returns a number as JSON; infinities and NaN, which JSON lacks, become words.
Json toJson(double number);

/// Returns the number with four digits.
std::string printNumber(double number);

/// Returns the progress line of `what` for a terminal with `columns` columns; "" in the first
/// second. It never fills the last column, where some terminals break the line.
std::string printProgress(const std::string &what, std::chrono::duration<double> elapsed,
                          unsigned columns);

/// A progress line on standard error, shown after one second; silent if standard error is not a
/// terminal.
class Progress {
public:
  Progress();
  ~Progress();
  void begin(const std::string &what);

  /// Prints a line on standard output immediately, in place of the progress line.
  void print(const std::string &line);

private:
  void show();

  std::mutex mutex;
  std::condition_variable changed;
  std::string current;
  bool over = false, shown = false;
  std::thread shower;
};

} // namespace weir::tool

#endif // WEIR_TOOLS_WEIR_OUTPUT_H

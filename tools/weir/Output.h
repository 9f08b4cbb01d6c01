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

/// Prints an error, one line, on standard error.
void printError(std::string sentence);

/// Checks, before there is much to do, that the file of `option` can be written: it is not
/// "-", since the verb's report is on standard output. Does nothing where `path` is "".
/// Errors: `Error`.
void checkOutput(const std::string &option, const std::string &path);

/// Refuses to write `path` where it is one of `inputs`, "" being none.
/// Errors: `Error` that names the option.
void refuseOverwriting(const std::string &option, const std::string &path,
                       const std::vector<std::string> &inputs);

/// "8192x1024"; "scalar" of rank 0.
std::string printShape(const std::vector<int64_t> &shape);

/// JSON has no infinities and no NaN; they become words.
Json toJson(double number);

/// Four digits.
std::string printNumber(double number);

/// Returns the line that a terminal of so many columns shows of `what`, which goes on
/// since then: nothing in the first second. It never fills the last column, where some
/// terminals break a line.
std::string printProgress(const std::string &what, std::chrono::duration<double> elapsed,
                          unsigned columns);

/// Says on a terminal what is going on, from the second second on; silent where standard
/// error is no terminal.
class Progress {
public:
  Progress();
  ~Progress();
  void begin(const std::string &what);

  /// Prints a line on standard output, at once, in the place of what is shown.
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

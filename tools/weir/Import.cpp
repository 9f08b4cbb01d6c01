//===- Import.cpp - Models of other formats -------------------------------===//

#include "Import.h"

#include "weir/Artifact/Artifact.h"

#include <cstdlib>
#include <fcntl.h>
#include <filesystem>
#include <spawn.h>
#include <sys/wait.h>

using namespace weir;
using namespace weir::tool;
namespace fs = std::filesystem;

extern char **environ;

bool tool::isModel(const std::string &path) {
  return path.ends_with(".onnx") || path.ends_with(".pt2") || path.ends_with(".stablehlo.mlir");
}

/// Returns the checkout that this program was built in, as ROOT/build/PRESET/bin/weir, or nothing.
static fs::path findCheckout() {
  std::error_code ignored;
  fs::path bin = fs::read_symlink("/proc/self/exe", ignored).parent_path();
  fs::path root = bin.parent_path().parent_path().parent_path();
  return fs::exists(root / "python/weir/importing.py", ignored) ? root : fs::path();
}

static std::string findPython(const fs::path &checkout) {
  if (const char *named = std::getenv("WEIR_PYTHON"))
    return named;
  std::error_code ignored;
  fs::path own = checkout / "build/venv/bin/python";
  return !checkout.empty() && fs::exists(own, ignored) ? own.string() : "python3";
}

/// Returns the environment, in which Python finds the package of `checkout`, if there is one.
static std::vector<std::string> makeEnvironment(const fs::path &checkout) {
  std::vector<std::string> variables;
  std::string path = checkout.empty() ? "" : (checkout / "python").string();
  for (char **variable = environ; *variable; ++variable) {
    std::string text = *variable;
    if (path.empty() || !text.starts_with("PYTHONPATH="))
      variables.push_back(text);
    else
      path += ":" + text.substr(text.find('=') + 1);
  }
  if (!path.empty())
    variables.push_back("PYTHONPATH=" + path);
  return variables;
}

static std::vector<char *> getPointers(std::vector<std::string> &words) {
  std::vector<char *> pointers;
  for (std::string &word : words)
    pointers.push_back(word.data());
  pointers.push_back(nullptr);
  return pointers;
}

void tool::importModel(const std::string &input, const std::string &output,
                       const ImportOptions &options) {
  fs::path checkout = findCheckout();
  const std::string python = findPython(checkout);
  std::vector<std::string> words = {python, "-m", "weir.importing", input, "-o", output};
  for (const std::string &shape : options.shapes)
    words.push_back("--shape=" + shape);
  if (!options.parameters.empty())
    words.push_back("--parameters=" + options.parameters);
  std::vector<std::string> variables = makeEnvironment(checkout);
  ScratchFolder folder;
  const std::string log = folder.path / "log";
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, 2, log.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
  pid_t child = 0;
  int error = posix_spawnp(&child, python.c_str(), &actions, nullptr, getPointers(words).data(),
                           getPointers(variables).data());
  posix_spawn_file_actions_destroy(&actions);
  int status = 0;
  if (error != 0 || waitpid(child, &status, 0) != child ||
      (WIFEXITED(status) && WEXITSTATUS(status) == 127))
    throw Error(input + ": models of this format are read by the Python package weir, but " +
                python + " is not there; install Python, or set WEIR_PYTHON to its path");
  if (WIFEXITED(status) && WEXITSTATUS(status) == 0)
    return;
  Bytes bytes = readFile(log, "log");
  std::string said(bytes.begin(), bytes.end());
  while (!said.empty() && said.back() == '\n')
    said.pop_back();
  if (said.find("No module named weir") != std::string::npos ||
      said.find("No module named 'weir'") != std::string::npos)
    throw Error(input + ": models of this format are read by the Python package weir, which " +
                python + " lacks; install weir, or set WEIR_PYTHON to a Python that has it");
  if (said.empty())
    said = python + " ended with status " + std::to_string(status);
  throw Error(input + ": " + said);
}

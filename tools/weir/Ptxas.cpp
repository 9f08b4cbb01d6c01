//===- Ptxas.cpp - What NVIDIA's assembler says of kernels ----------------===//

#include "Ptxas.h"

#include "weir/Artifact/Artifact.h"

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>

extern char **environ;

using namespace weir;
using namespace weir::tool;

/// Returns the GPU to assemble for: one with a suffix, such as sm_90a, if the text is for that.
static std::string getArchitecture(std::string_view text, int sm) {
  std::string name = "sm_" + std::to_string(sm);
  size_t at = text.find(".target " + name + "a");
  return at == std::string_view::npos ? name : name + "a";
}

std::optional<model::Resources> tool::assemble(const std::string &ptxas, std::string_view text,
                                               int sm, const std::string &entry,
                                               std::string &problem) {
  ScratchFolder folder;
  const std::string source = folder.path / "kernel.ptx", output = folder.path / "kernel.cubin",
                    log = folder.path / "log";
  writeText(source, text);
  std::vector<std::string> words = {ptxas, "-v",   "-arch=" + getArchitecture(text, sm),
                                    "-o",  output, source};
  std::vector<char *> arguments;
  for (std::string &word : words)
    arguments.push_back(word.data());
  arguments.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, 1, log.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
  posix_spawn_file_actions_adddup2(&actions, 1, 2);
  pid_t child = 0;
  int error = posix_spawnp(&child, ptxas.c_str(), &actions, nullptr, arguments.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  int status = 0;
  if (error != 0 || waitpid(child, &status, 0) != child ||
      (WIFEXITED(status) && WEXITSTATUS(status) == 127)) {
    problem = ptxas + " is not there; --ptxas=PATH says where it is";
    return std::nullopt;
  }
  Bytes bytes = readFile(log, "log");
  std::string said(bytes.begin(), bytes.end());
  if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) {
    problem = ptxas + " refuses the text: " + said.substr(0, said.find('\n'));
    return std::nullopt;
  }
  std::optional<model::Resources> resources = model::parseResources(said, entry);
  if (!resources)
    problem = ptxas + " says nothing of the registers of " + entry;
  return resources;
}

//===- weir.cpp - The command line ----------------------------------------===//
//
// Exit status: 0 done, 1 a check failed, 2 bad usage or bad input, 3 a check decided nothing.
// Errors go to standard error, one line a problem. Nothing here prints a stack trace.
//
//===----------------------------------------------------------------------===//

#include "weir/weir.h"
#include "CommandLine.h"
#include "Output.h"
#include "Verbs.h"
#include "WithCompiler.h"
#include "tools/Allocation.h"
#include "weir/Artifact/Artifact.h"

#include <csignal>
#include <cstring>
#include <iostream>
#include <new>
#include <string_view>
#include <unistd.h>

using namespace weir;
using namespace weir::tool;

/// Writes to standard error as handlers of signals may.
static void writeError(std::string_view text) {
  [[maybe_unused]] ssize_t written = write(STDERR_FILENO, text.data(), text.size());
}

static void endOnSignal(int) {
  removeUnfinishedFiles();
  const char *call = weir_driver_call();
  if (!call) {
    writeError("error: internal error in weir; please report this with its input\n");
    _exit(CheckFailed);
  }
  writeError("error: the driver crashed while ");
  writeError(call);
  writeError("; update it, or run on another device, which `weir devices` lists\n");
  _exit(BadInput);
}

/// Reports crashes, on a separate stack: deep recursion leaves no room on the usual one.
static void catchCrashes() {
  static char stack[1 << 16];
  stack_t alternate = {};
  alternate.ss_sp = stack;
  alternate.ss_size = sizeof(stack);
  sigaltstack(&alternate, nullptr);
  struct sigaction action = {};
  action.sa_handler = endOnSignal;
  action.sa_flags = SA_ONSTACK;
  for (int signal : {SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGABRT})
    sigaction(signal, &action, nullptr);
}

static void endUnfinished(int signal) {
  removeUnfinishedFiles();
  raise(signal); // the handler is gone, so the signal ends the program
}

/// Lets Ctrl-C and its like end the program as ever, but for files that are half written.
static void catchInterrupts() {
  struct sigaction action = {}, before;
  action.sa_handler = endUnfinished;
  action.sa_flags = SA_RESETHAND | SA_NODEFER;
  for (int signal : {SIGINT, SIGTERM, SIGHUP})
    if (sigaction(signal, nullptr, &before) == 0 && before.sa_handler != SIG_IGN)
      sigaction(signal, &action, nullptr);
}

static int runVerb(const Verb &verb) {
  try {
    int status = verb();
    if (!std::cout.flush())
      throw Error("standard output cannot be written");
    return status;
  } catch (const Problems &error) {
    for (const std::string &problem : error.sentences)
      printError(problem);
  } catch (const std::bad_alloc &) {
    printError("out of memory");
  } catch (const std::exception &error) {
    printError(error.what());
  }
  return BadInput;
}

/// Whether the library that was found is of this program's version; else says so.
static bool hasItsRuntime() {
  std::string found = weir_version();
  if (found == WEIR_VERSION)
    return true;
  printError("the library libweir_runtime is of version " + found +
             ", " WEIR_TOOL " of " WEIR_VERSION
             "; install both of one version, or mend LD_LIBRARY_PATH");
  return false;
}

int main(int argc, char **argv) {
  if (!hasItsRuntime())
    return BadInput;
  keepFreedMemory();
  catchCrashes();
  catchInterrupts();
  CLI::App app("Weir compiles model graphs to GPU kernels, and runs and checks the result.");
  app.name(WEIR_TOOL);
  app.set_version_flag("--version", WEIR_TOOL " " WEIR_VERSION);
  app.require_subcommand(1);
  app.footer("Exit status: 0 done, 1 a check failed, 2 bad usage or bad input.\n"
             "3: check-shader neither proved nor refuted a claim.\n"
             "'" WEIR_TOOL " help VERB' explains a verb.");
  Verb verb;
  addCompilerVerbs(app, verb);
  addRun(app, verb);
  addBench(app, verb);
  addInspect(app, verb);
  addExplain(app, verb);
  addVerify(app, verb);
  addCheckShader(app, verb);
  addPlan(app, verb);
  addDevices(app, verb);
  addHelp(app, verb);
  finishVerbs(app);
  try {
    refuseSingleDashes(app, argc, argv);
    app.parse(argc, argv);
  } catch (const Error &error) {
    printError(error.what());
    return BadInput;
  } catch (const CLI::ParseError &error) {
    if (error.get_exit_code() == static_cast<int>(CLI::ExitCodes::Success))
      return app.exit(error);
    for (const std::string &sentence : describeUsage(app, error))
      printError(sentence);
    return BadInput;
  }
  return runVerb(verb);
}

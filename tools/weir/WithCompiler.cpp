//===- WithCompiler.cpp - Calls of the compiler ---------------------------===//

#include "WithCompiler.h"
#include "CompilerProblems.h"
#include "Output.h"
#include "driver/Reference/Reference.h"
#include "weir/Target/Cpu.h"
#include "llvm/Support/ErrorHandling.h"

#include <unistd.h>

using namespace weir;
using namespace weir::tool;

static void endOnFatalError(void *, const char *reason, bool) {
  removeUnfinishedFiles();
  printError("internal error in weir: " + std::string(reason) +
             "; please report this with its input");
  _exit(CheckFailed);
}

void tool::addCompilerVerbs(CLI::App &app, Verb &chosen) {
  llvm::install_fatal_error_handler(endOnFatalError);
  addCompile(app, chosen);
  addGradCheck(app, chosen);
}

void tool::requireCompiler(const std::string &) {}

std::vector<Tensor> tool::runGraph(const std::string &text, const std::string &entry,
                                   const std::vector<Tensor> &inputs, bool float64) {
  return reportProblems([&] {
    return runReference(text, entry, inputs,
                        float64 ? ReferencePrecision::Float64 : ReferencePrecision::AsWritten);
  });
}

std::vector<ReferenceValues> tool::runGraphOn(const std::string &text, const std::string &entry,
                                              const std::vector<std::vector<Tensor>> &inputs) {
  return reportProblems([&] {
    Reference written(text, entry, ReferencePrecision::AsWritten);
    Reference wide(text, entry, ReferencePrecision::Float64);
    std::vector<ReferenceValues> values;
    for (const std::vector<Tensor> &given : inputs)
      values.push_back({written.run(given), wide.run(given)});
    return values;
  });
}

std::vector<TensorSpec> tool::getValueTypes(const std::string &text, const std::string &entry,
                                            const Profile &profile) {
  return reportProblems([&] { return getResultTypes(exposeValues(text, entry, profile), entry); });
}

ReferenceValues tool::runValues(const std::string &text, const std::string &entry,
                                const Profile &profile, const std::vector<Tensor> &inputs) {
  return reportProblems([&]() -> ReferenceValues {
    std::string exposed = exposeValues(text, entry, profile);
    return {runReference(exposed, entry, inputs, ReferencePrecision::AsWritten),
            runReference(exposed, entry, inputs, ReferencePrecision::Float64)};
  });
}

std::string tool::disassemble(const Bytes &code) {
  return disassembleCpu({reinterpret_cast<const char *>(code.data()), code.size()});
}

void tool::compileFor(const Profile &profile, const std::string &input, const std::string &output) {
  CompileOptions options;
  options.input = input;
  options.output = output;
  std::string file = input + ".profile.json";
  Profile only = profile; // in the new artifact
  only.target = getBaseTarget(profile.target);
  writeText(file, printProfile(only));
  options.targets = {only.target + ":" + file};
  reportProblems([&] { compile(options); });
}

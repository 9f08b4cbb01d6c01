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

std::function<ReferenceValues(const std::vector<Tensor> &)>
tool::makeReference(const std::string &text, const std::string &entry) {
  return reportProblems([&]() -> std::function<ReferenceValues(const std::vector<Tensor> &)> {
    auto written = std::make_shared<Reference>(text, entry, ReferencePrecision::AsWritten);
    auto wide = std::make_shared<Reference>(text, entry, ReferencePrecision::Float64);
    return [written, wide](const std::vector<Tensor> &inputs) -> ReferenceValues {
      return {written->run(inputs), wide->run(inputs)};
    };
  });
}

ExposedGraph tool::exposeGraph(const std::string &text, const std::string &entry,
                               const Profile &profile) {
  return reportProblems([&] { return exposeValues(text, entry, profile); });
}

std::vector<TensorSpec> tool::getFunctionTypes(const std::string &text,
                                               const std::string &function) {
  return getResultTypes(text, function);
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

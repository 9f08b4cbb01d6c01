//===- WithoutCompiler.cpp - Refuses what needs the compiler --------------===//

#include "tools/weir/WithCompiler.h"

using namespace weir;
using namespace weir::tool;

void tool::addCompilerVerbs(CLI::App &, Verb &) {}

[[noreturn]] static void refuse(const std::string &what) {
  throw Error(what + " needs the compiler, which weir-device is without; use weir");
}

void tool::requireCompiler(const std::string &what) { refuse(what); }

std::vector<Tensor> tool::runGraph(const std::string &, const std::string &,
                                   const std::vector<Tensor> &, bool) {
  refuse("--device=reference");
}

std::function<ReferenceValues(const std::vector<Tensor> &)>
tool::makeReference(const std::string &, const std::string &) {
  refuse("--against-graph");
}

ExposedGraph tool::exposeGraph(const std::string &, const std::string &, const Profile &) {
  refuse("--check-values");
}

std::vector<TensorSpec> tool::getFunctionTypes(const std::string &, const std::string &) {
  refuse("--check-values");
}

std::string tool::disassemble(const Bytes &) { refuse("--asm"); }

void tool::compileFor(const Profile &, const std::string &, const std::string &) {
  refuse("compiling a copy, which --copy=COPY.weir makes needless,");
}

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

std::vector<ReferenceValues> tool::runGraphOn(const std::string &, const std::string &,
                                              const std::vector<std::vector<Tensor>> &) {
  refuse("--against-graph");
}

std::vector<TensorSpec> tool::getValueTypes(const std::string &, const std::string &,
                                            const Profile &) {
  refuse("--check-values");
}

ReferenceValues tool::runValues(const std::string &, const std::string &, const Profile &,
                                const std::vector<Tensor> &) {
  refuse("--check-values");
}

std::string tool::disassemble(const Bytes &) { refuse("--asm"); }

void tool::compileFor(const Profile &, const std::string &, const std::string &) {
  refuse("compiling a copy, which --copy=COPY.weir makes needless,");
}

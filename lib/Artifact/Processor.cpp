//===- Processor.cpp - Instruction sets of this processor -----------------===//

#include "weir/Artifact/Processor.h"

std::vector<std::string> weir::getProcessorIsas() {
  std::vector<std::string> isas;
#if defined(__x86_64__)
  __builtin_cpu_init();
  if (__builtin_cpu_supports("x86-64-v2"))
    isas.push_back("x86-64-v2");
  if (__builtin_cpu_supports("x86-64-v3"))
    isas.push_back("x86-64-v3");
  if (__builtin_cpu_supports("x86-64-v4"))
    isas.push_back("x86-64-v4");
#elif defined(__aarch64__)
  isas.push_back("aarch64");
#endif
  return isas;
}

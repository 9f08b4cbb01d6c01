//===- Processor.h - Instruction sets of this processor ---------*- C++ -*-===//

#ifndef WEIR_ARTIFACT_PROCESSOR_H
#define WEIR_ARTIFACT_PROCESSOR_H

#include <string>
#include <vector>

namespace weir {

/// Returns those of the instruction sets with a built-in profile that the processor has which this
/// code runs on, the best last. Empty if it has none.
/// Source: the levels of the x86-64 psABI, section 3.1.1.
std::vector<std::string> getProcessorIsas();

} // namespace weir

#endif // WEIR_ARTIFACT_PROCESSOR_H

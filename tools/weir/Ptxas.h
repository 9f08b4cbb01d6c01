//===- Ptxas.h - What NVIDIA's assembler says of kernels --------*- C++ -*-===//

#ifndef WEIR_TOOLS_WEIR_PTXAS_H
#define WEIR_TOOLS_WEIR_PTXAS_H

#include "weir/Model/Occupancy.h"

#include <string_view>

namespace weir::tool {

/// Runs `ptxas -v` on PTX text for a compute capability and returns the resources of an entry.
/// None, with the reason in `problem`, if `ptxas` is not there or refuses the text.
std::optional<model::Resources> assemble(const std::string &ptxas, std::string_view text, int sm,
                                         const std::string &entry, std::string &problem);

} // namespace weir::tool

#endif // WEIR_TOOLS_WEIR_PTXAS_H

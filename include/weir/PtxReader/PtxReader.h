//===- PtxReader.h - PTX text to a module -----------------------*- C++ -*-===//
//
// Reads an entry of PTX text into the form that `SpirvReader` makes of words, so that proofs are
// written once: registers become values with phis, predicates become branches, loops and
// selections get merge blocks, parameters become bindings, and addresses become pointers by
// ConvertPtrToU and ConvertUToPtr. Instructions that SPIR-V lacks are opcodes of their own.
//
// Accepts hostile input: any text gives a module or an error. An instruction that the reader
// does not know is an error, since it might do anything.
//
//===----------------------------------------------------------------------===//

#ifndef WEIR_PTXREADER_PTXREADER_H
#define WEIR_PTXREADER_PTXREADER_H

#include "weir/Artifact/Plan.h"
#include "weir/SpirvReader/Module.h"

#include <string_view>

namespace weir::ptx {

/// Returns the entry as a module with that one entry point; none if there is no such entry.
/// Parameters are bindings in set 0, by their order; lines are those of the text, in a file called
/// `where`. `workgroup` is its size where the text requires none. `launchMemory`
/// is the size in bytes of a variable of workgroup memory that is declared without, if there is
/// just one. `tensorMaps` are the last parameters, which are no bindings; copies by them, and
/// mbarriers, are followed only with such. Errors: `Error` that begins with
/// `where` and the line at fault, if the text is malformed, has an
///         instruction that is not known, or loops that are not followed.
std::optional<spv::Module> readEntry(std::string_view text, const std::string &entry,
                                     const std::array<uint32_t, 3> &workgroup,
                                     const std::string &where, int64_t launchMemory = 0,
                                     const std::vector<TensorMap> &tensorMaps = {});

} // namespace weir::ptx

#endif // WEIR_PTXREADER_PTXREADER_H

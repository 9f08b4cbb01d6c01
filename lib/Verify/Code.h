//===- Code.h - Facts read from kernels' code -------------------*- C++ -*-===//
//
// One view of both kinds of code: for SPIR-V every address is read, for PTX only the parameters
// that loads and stores use.
//
//===----------------------------------------------------------------------===//

#ifndef WEIR_LIB_VERIFY_CODE_H
#define WEIR_LIB_VERIFY_CODE_H

#include "weir/Artifact/Artifact.h"
#include "weir/CodeProofs/Footprint.h"
#include "weir/CodeProofs/Races.h"

#include <memory>

namespace weir::verifier {

using spv::Answer;

/// A kernel's code on one grid.
struct KernelCode {
  struct Operand {
    Answer reads = Answer::Unknown, writes = Answer::Unknown;
    spv::TouchedBytes read, written; ///< bytes of the operand
  };
  /// Why nothing is known about the code; else empty.
  std::string problem;
  /// An error in the code that is independent of the plan's effects; else empty.
  std::string fault;
  std::vector<Operand> operands;
  /// Only for SPIR-V.
  std::optional<spv::AddressMap> map;

  /// Returns "word 312", with the source line if the code has one.
  std::string describe(const spv::MemoryAccess &access) const {
    return describe(access.word, access.source);
  }
  std::string describe(uint32_t word, const spv::SourceLine &source) const;
  std::map<spv::Id, std::string> files; ///< names of the files in the accesses' source lines
};

/// Reads code once per kernel and grid, up to a max number of them.
class CodeCache {
public:
  explicit CodeCache(const Artifact &artifact) : artifact(artifact) {}
  ~CodeCache();

  /// Returns the code of a kernel on a grid; the same object for the same code. Valid as long
  /// as this cache.
  const KernelCode &get(const Kernel &kernel, const std::array<int64_t, 3> &grid,
                        const Profile &profile);

private:
  std::unique_ptr<KernelCode> read(const Kernel &kernel, const std::array<int64_t, 3> &grid,
                                   const Profile &profile);
  void readSpirv(const Kernel &kernel, const spv::Launch &launch, KernelCode &code);

  using Key = std::tuple<std::string, std::string, std::array<int64_t, 3>, int64_t, size_t,
                         std::array<int64_t, 3>>;
  const Artifact &artifact;
  std::map<Key, std::unique_ptr<KernelCode>> known;
  std::map<size_t, KernelCode> unread; ///< beyond the limit, by number of operands
  std::map<std::string, std::unique_ptr<spv::Module>> modules; ///< null: unreadable
  std::map<std::string, std::string> problems;                 ///< why a module is unreadable
};

/// The use of a PTX parameter.
struct PtxParameter {
  Answer reads = Answer::No, writes = Answer::No;
};
struct PtxKernel {
  std::string problem;                          ///< why nothing is known; else empty
  std::array<int64_t, 3> workgroup = {0, 0, 0}; ///< required size; 0 if none is required
  std::vector<PtxParameter> parameters;
};

/// Follows addresses from an entry's parameters through its registers, for any order of
/// instructions. The cost is bounded.
PtxKernel readPtx(const std::string &text, const std::string &entry);

} // namespace weir::verifier

#endif // WEIR_LIB_VERIFY_CODE_H

//===- Code.h - What kernels' code says of them -----------------*- C++ -*-===//
//
// The same questions for SPIR-V, of which every address is read, and for PTX, of which
// it is read which parameters lead to loads and stores.
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

/// A kernel's code, as run on one grid.
struct KernelCode {
  struct Operand {
    Answer reads = Answer::Unknown, writes = Answer::Unknown;
    spv::Touched read, written; ///< bytes of the operand
  };
  /// Not empty: why nothing is known of it.
  std::string problem;
  /// Not empty: what is wrong with it whatever the plan says of effects.
  std::string fault;
  std::vector<Operand> operands;
  /// Of SPIR-V alone.
  std::optional<spv::AddressMap> map;

  /// "word 312", with the source's line where the code has one.
  std::string describe(const spv::MemoryAccess &access) const {
    return describe(access.word, access.source);
  }
  std::string describe(uint32_t word, const spv::SourceLine &source) const;
  std::map<spv::Id, std::string> files; ///< of the accesses' lines
};

/// Reads each code once for each grid that it runs on. What is asked for too often is
/// not read.
class CodeCache {
public:
  explicit CodeCache(const Artifact &artifact) : artifact(artifact) {}
  ~CodeCache();

  /// The same object for the same code. Kept while this is.
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
  std::map<std::string, std::unique_ptr<spv::Module>> modules; ///< null: unreadable
  std::map<std::string, std::string> problems;                 ///< of those
};

/// What PTX says of its parameters.
struct PtxParameter {
  Answer reads = Answer::No, writes = Answer::No;
};
struct PtxKernel {
  std::string problem;                          ///< not empty: why nothing is known
  std::array<int64_t, 3> workgroup = {0, 0, 0}; ///< as required; 0 when it isn't
  std::vector<PtxParameter> parameters;
};

/// Follows addresses from an entry's parameters through its registers, whatever the
/// order of the instructions. The work is bounded.
PtxKernel readPtx(const std::string &text, const std::string &entry);

} // namespace weir::verifier

#endif // WEIR_LIB_VERIFY_CODE_H

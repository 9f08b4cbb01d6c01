//===- Code.h - Facts read from kernels' code -------------------*- C++ -*-===//
//
// One view of both kinds of code, SPIR-V and PTX.
//
//===----------------------------------------------------------------------===//

#ifndef WEIR_LIB_VERIFY_CODE_H
#define WEIR_LIB_VERIFY_CODE_H

#include "weir/Artifact/Artifact.h"
#include "weir/CodeProofs/Footprint.h"
#include "weir/CodeProofs/Races.h"
#include "weir/Device/Validity.h"

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
  std::optional<spv::AddressMap> map; ///< none if the code cannot be read
  bool isText = false;                ///< whether it has lines instead of words

  /// Returns "word 312", with the source line if the code has one; of text, its line.
  std::string describe(const spv::MemoryAccess &access) const {
    return describe(access.word, access.source);
  }
  std::string describe(uint32_t word, const spv::SourceLine &source) const;
  /// Bytes of the variables in workgroup memory, where the launch states how much there is.
  std::map<spv::Id, int64_t> workgroupBytes;
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

  /// Returns what the validator says of a kernel's code; null if that is not SPIR-V. Valid as long
  /// as this cache.
  const spv::Validity *validate(const Kernel &kernel, const Profile &profile);

private:
  std::unique_ptr<KernelCode> read(const Kernel &kernel, const std::array<int64_t, 3> &grid,
                                   const Profile &profile);
  struct ReadModule {
    std::unique_ptr<spv::Module> module; ///< null: unreadable
    std::string problem;                 ///< why
    bool isBroken = false;               ///< whether no device could read it, either
  };
  const ReadModule &getModule(const Kernel &kernel);
  void follow(const Kernel &kernel, const spv::Launch &launch, KernelCode &code);

  using Key = std::tuple<std::string, std::string, std::array<int64_t, 3>, int64_t, size_t,
                         std::array<int64_t, 3>, int64_t, std::vector<TensorMap>>;
  const Artifact &artifact;
  std::map<Key, std::unique_ptr<KernelCode>> known;
  std::map<size_t, KernelCode> unread; ///< beyond the limit, by number of operands
  /// By code; for text, by entry and how that is launched as well.
  std::map<
      std::tuple<std::string, std::string, std::array<int64_t, 3>, int64_t, std::vector<TensorMap>>,
      ReadModule>
      modules;
  std::map<std::string, spv::Validity> validities; ///< by code: its target has one profile
};

} // namespace weir::verifier

#endif // WEIR_LIB_VERIFY_CODE_H

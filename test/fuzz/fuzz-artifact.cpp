//===- fuzz-artifact.cpp - Artifacts, and what verify says of them ------===//

#include "Fuzz.h"
#include "weir/Verify/Verify.h"

#include <algorithm>
#include <cstring>
#include <random>

using namespace weir;
using namespace weir::fuzz;

extern "C" size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t maxSize);

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  InputFile file(data, size);
  return expectAnswer([&] {
    for (const Claim &claim : verify(readArtifact(file.path)))
      expectReadable(claim.detail);
  });
}

/// Changes one part of an artifact. Bytes of the file itself are covered by checksums, so changing
/// those would seldom reach the readers of its parts.
extern "C" size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t maxSize,
                                          unsigned seed) {
  static const ScratchFolder folder;
  const std::string path = folder.path / "changed.weir";
  std::minstd_rand random(seed);
  try {
    Files files = readArchive(InputFile(data, size).path);
    if (files.empty())
      return LLVMFuzzerMutate(data, size, maxSize);
    Bytes &part = std::next(files.begin(), std::ptrdiff_t(random() % files.size()))->second;
    const size_t before = part.size(), room = before + (maxSize - std::min(size, maxSize));
    part.resize(std::max<size_t>(room, 1));
    part.resize(LLVMFuzzerMutate(part.data(), before, part.size()));
    writeArchive(path, files);
    Bytes changed = readFile(path, "artifact");
    if (changed.size() <= maxSize) {
      std::memcpy(data, changed.data(), changed.size());
      return changed.size();
    }
  } catch (const Error &) {
    // The input is no archive: its bytes are changed as they are.
  }
  return LLVMFuzzerMutate(data, size, maxSize);
}

//===- fuzz-edits.cpp - Edited plans, judged by the simulator -----------===//
//
// An input edits the plan of a small artifact without changing its dataflow. If `weir verify`
// proves all of it, the simulator must compute what it does without the edits, and report nothing.
//
//===----------------------------------------------------------------------===//

#include "Bases.h"
#include "Fuzz.h"
#include "tools/weir-mutate/Edits.h"
#include "weir/Verify/Verify.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <random>

using namespace weir;
using namespace weir::fuzz;

/// Whether all claims hold and all facts are proved: what is taken from the compiler, nobody
/// vouches for. The environment may name a claim that is left out, so that a test sees what is
/// found without it.
static bool isProved(const Artifact &artifact) {
  static const char *const ignored = std::getenv("WEIR_FUZZ_IGNORE");
  const std::vector<Claim> claims = verify(artifact);
  for (const Claim &claim : claims)
    expectReadable(claim.detail);
  return std::all_of(claims.begin(), claims.end(), [](const Claim &claim) {
    return (claim.holds && claim.taken == 0) || (ignored && claim.what == ignored);
  });
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  static const std::vector<Base> &bases = getBases();
  static const bool areProved = std::all_of(
      bases.begin(), bases.end(), [](const Base &base) { return isProved(base.artifact); });
  expect(areProved, "an artifact that nothing is changed of is not proved");
  static const ScratchFolder folder;
  const std::string path = folder.path / "edited.weir";
  if (size == 0)
    return -1; // is not kept
  const Base &base = bases[data[0] / 16 % bases.size()];
  Artifact artifact = base.artifact;
  const auto [number, sentences] = mutate::applyEdits(artifact, data, size);
  if (sentences.empty())
    return -1;
  for (const std::string &sentence : sentences)
    expectReadable(sentence);
  return expectAnswer([&] {
    // A reader refuses parts that do not fit.
    writeArtifact(path, artifact);
    artifact = readArtifact(path);
    if (!isProved(artifact))
      return;
    try {
      expect(run(artifact, artifact.plans[number], base.arguments[number]) == base.results[number],
             "a proved plan computes something else");
    } catch (const Error &error) {
      std::fprintf(stderr, "%s\n", error.what());
      expect(false, "a proved plan does not run");
    }
  });
}

/// Changes, adds or removes a whole edit, or chooses another artifact.
extern "C" size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t maxSize,
                                          unsigned seed) {
  std::minstd_rand random(seed);
  const size_t most = std::min(mutate::maxEdits, (maxSize - 1) / mutate::editBytes);
  size_t edits = size ? std::min((size - 1) / mutate::editBytes, most) : 0;
  auto get = [&](size_t edit) { return data + 1 + edit * mutate::editBytes; };
  auto fill = [&](uint8_t *begin, uint8_t *end) {
    std::generate(begin, end, [&] { return uint8_t(random() >> 8); });
  };
  if (size == 0)
    fill(data, data + 1);
  switch (edits == 0 ? 0 : random() % 6) {
  case 0:
  case 1: // one more
    if (edits < most)
      ++edits;
    fill(get(edits - 1), get(edits));
    break;
  case 2: { // another one
    const size_t edit = random() % edits;
    fill(get(edit), get(edit + 1));
    break;
  }
  case 3: { // one less
    const size_t edit = random() % edits;
    std::copy(get(edit + 1), get(edits), get(edit));
    --edits;
    break;
  }
  case 4:
    fill(data, data + 1);
    break;
  default: { // one byte
    uint8_t *byte = get(0) + random() % (edits * mutate::editBytes);
    *byte = uint8_t(*byte + (random() % 2 ? 1 : -1) * (1 << random() % 8));
  }
  }
  return 1 + edits * mutate::editBytes;
}

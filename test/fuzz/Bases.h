//===- Bases.h - Small artifacts that are run -------------------*- C++ -*-===//

#ifndef WEIR_TEST_FUZZ_BASES_H
#define WEIR_TEST_FUZZ_BASES_H

#include "weir/Artifact/Artifact.h"
#include "weir/Sim/Sim.h"

#include <vector>

namespace weir::fuzz {

/// An artifact, and what each of its plans computes.
struct Base {
  Artifact artifact;
  std::vector<std::vector<Tensor>> arguments; ///< by plan; no two are alike
  std::vector<std::vector<Bytes>> results;    ///< by plan
};

/// Reads those of WEIR_FUZZ_BASES, in the order of their names.
const std::vector<Base> &getBases();

/// Returns the bytes of a plan's results. The simulator must report nothing.
std::vector<Bytes> run(const Artifact &artifact, const Plan &plan,
                       const std::vector<Tensor> &arguments,
                       SimStrategy strategy = SimStrategy::Random, uint64_t seed = 1);

} // namespace weir::fuzz

#endif // WEIR_TEST_FUZZ_BASES_H

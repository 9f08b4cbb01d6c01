//===- fuzz-orders.cpp - Plans in orders that they permit ---------------===//
//
// An input chooses an artifact, a strategy and a seed. In whatever order the simulator runs what
// may overlap, the results have the same bits, and nothing is reported.
//
//===----------------------------------------------------------------------===//

#include "Bases.h"
#include "Fuzz.h"

#include <cstring>

using namespace weir;
using namespace weir::fuzz;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  const std::vector<Base> &bases = getBases();
  uint64_t seed = 0;
  if (size < 2 || size > 2 + sizeof(seed))
    return -1; // is not kept
  std::memcpy(&seed, data + 2, size - 2);
  constexpr SimStrategy strategies[] = {SimStrategy::Random, SimStrategy::Recorded,
                                        SimStrategy::LatestFirst, SimStrategy::WriterFirst,
                                        SimStrategy::Split};
  const Base &base = bases[data[0] % bases.size()];
  for (size_t i = 0; i < base.artifact.plans.size(); ++i)
    expect(run(base.artifact, base.artifact.plans[i], base.arguments[i],
               strategies[data[1] % std::size(strategies)], seed) == base.results[i],
           "another order computes something else");
  return 0;
}

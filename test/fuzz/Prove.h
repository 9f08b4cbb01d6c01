//===- Prove.h - Asks all questions about code ------------------*- C++ -*-===//

#ifndef WEIR_TEST_FUZZ_PROVE_H
#define WEIR_TEST_FUZZ_PROVE_H

#include "weir/CodeProofs/Footprint.h"
#include "weir/CodeProofs/Races.h"

namespace weir::fuzz {

/// Asks what `lib/Verify` may ask about an entry of code, on a small grid. The answers do not
/// matter: the code may be anything.
inline void proveAll(const spv::Module &module, const spv::EntryPoint &entry) {
  const spv::AddressMap map = spv::readAddressMap(module, entry, {{3, 2, 1}, 8});
  if (!map.problem.empty())
    return;
  constexpr uint32_t bindings = 3;
  for (const spv::MemoryAccess &access : map.accesses)
    if (access.root == spv::MemoryAccess::Root::Binding)
      spv::getReach(map, access, 256);
  for (uint32_t binding = 0; binding < bindings; ++binding) {
    for (bool reads : {false, true})
      spv::getTouched(map, binding, reads);
    spv::isFreeOfRaces(map, spv::MemoryAccess::Root::Binding, binding);
    for (uint32_t target = 0; target < bindings; ++target)
      if (target != binding)
        spv::mayOverwrite(map, binding, target);
  }
  spv::isFreeOfRaces(map, spv::MemoryAccess::Root::Shared, 0);
  for (const spv::BarrierSite &barrier : map.barriers)
    spv::isUniform(map, barrier);
  for (const spv::LaneSite &site : map.laneSites)
    spv::doLanesMeet(map, site);
}

} // namespace weir::fuzz

#endif // WEIR_TEST_FUZZ_PROVE_H

//===- Simulation.h - Counterexamples by the simulator ----------*- C++ -*-===//

#ifndef WEIR_LIB_SHADERS_SIMULATION_H
#define WEIR_LIB_SHADERS_SIMULATION_H

#include "weir/Sim/Sim.h"
#include "weir/SpirvReader/Module.h"

#include <functional>

namespace weir::shaders {

struct Simulation {
  std::vector<uint32_t> words; ///< with bindings of set 0 alone, see `makeStorageBuffers`
  const spv::EntryPoint *entry = nullptr;
  std::array<int64_t, 3> workgroups = {1, 1, 1};
  std::vector<int64_t> bytes;     ///< of the buffers, by binding
  std::vector<std::string> names; ///< of the buffers
};

/// Runs a shader on several contents of its buffers and calls `visit` with each finding and the
/// contents, "buffers of zeros", until it returns false. Returns why the simulator cannot run it;
/// else "".
std::string simulateAll(const Simulation &simulation,
                        const std::function<bool(const SimFinding &, const std::string &)> &visit);

} // namespace weir::shaders

#endif // WEIR_LIB_SHADERS_SIMULATION_H

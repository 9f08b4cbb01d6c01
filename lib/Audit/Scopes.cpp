//===- Scopes.cpp - Stages and accesses as sets of bits -------------------===//

#include "weir/Audit/Scopes.h"

#include <utility>

using namespace weir::audit;

// Vulkan specification 1.3, section 7.1.2 (Pipeline Stages) and 7.1.3 (Access Types).
static constexpr Stages topOfPipe = 0x1, transfer = 0x1000, bottomOfPipe = 0x2000, host = 0x4000,
                        allGraphics = 0x8000, allCommands = 0x10000;
static constexpr Stages transfers = 0xf00000000; // copy, resolve, blit, clear
static constexpr Stages graphics = 0x7fe;        // indirect to color output; more do no harm
static constexpr Accesses shaderRead = 0x20, shaderWrite = 0x40, memoryRead = 0x8000,
                          memoryWrite = 0x10000;

Stages weir::audit::expandStages(Stages mask, bool isFirst) {
  Stages stages = mask & ~(topOfPipe | bottomOfPipe | transfer | allGraphics | allCommands);
  // The host is not a command.
  if (mask & allCommands || mask & (isFirst ? bottomOfPipe : topOfPipe))
    stages |= allStages & ~(topOfPipe | bottomOfPipe | host);
  if (mask & transfer)
    stages |= transfers;
  if (mask & allGraphics)
    stages |= graphics;
  return stages;
}

Stages weir::audit::findExcess(Stages mask, Stages needed) {
  return mask & ~(needed & transfers ? needed | transfers : needed);
}

std::vector<std::string> weir::audit::nameStages(Stages mask) {
  static constexpr std::pair<Stages, const char *> all[] = {{stageIndirect, "DRAW_INDIRECT"},
                                                            {stageCompute, "COMPUTE_SHADER"},
                                                            {stageCopy, "COPY"},
                                                            {stageClear, "CLEAR"}};
  std::vector<std::string> names;
  for (auto [bit, name] : all)
    if (mask & bit)
      names.emplace_back(name);
  return names;
}

std::vector<std::string> weir::audit::nameAccesses(Accesses mask) {
  static constexpr std::pair<Accesses, const char *> all[] = {
      {accessIndirectRead, "INDIRECT_COMMAND_READ"}, {accessUniformRead, "UNIFORM_READ"},
      {accessTransferRead, "TRANSFER_READ"},         {accessTransferWrite, "TRANSFER_WRITE"},
      {accessStorageRead, "SHADER_STORAGE_READ"},    {accessStorageWrite, "SHADER_STORAGE_WRITE"}};
  std::vector<std::string> names;
  for (auto [bit, name] : all)
    if (mask & bit)
      names.emplace_back(name);
  return names;
}

Accesses weir::audit::expandAccesses(Accesses mask) {
  Accesses accesses = mask;
  // SHADER_READ includes reads of uniform buffers, as in Vulkan 1.0.
  if (mask & shaderRead)
    accesses |= accessStorageRead | accessUniformRead;
  if (mask & shaderWrite)
    accesses |= accessStorageWrite;
  if (mask & memoryRead)
    accesses |= accessIndirectRead | accessUniformRead | accessTransferRead | accessStorageRead;
  if (mask & memoryWrite)
    accesses |= accessTransferWrite | accessStorageWrite;
  return accesses;
}

//===- CodeCache.cpp - Reads kernels' code once ---------------------------===//

#include "Code.h"

#include "weir/Artifact/Error.h"
#include "weir/PtxReader/PtxReader.h"

#include <algorithm>
#include <cstring>

using namespace weir;
using namespace weir::verifier;

/// Max number of (kernel, grid) pairs that are read; plans have few.
static constexpr size_t maxLaunches = 4096;

CodeCache::~CodeCache() = default;

std::string KernelCode::describe(uint32_t word, const spv::SourceLine &source) const {
  if (isText)
    return "line " + std::to_string(source.line);
  std::string text = "word " + std::to_string(word);
  if (auto file = files.find(source.file); file != files.end())
    text += ", " + file->second + ":" + std::to_string(source.line);
  return text;
}

const KernelCode &CodeCache::get(const Kernel &kernel, const std::array<int64_t, 3> &grid,
                                 const Profile &profile) {
  Key key(kernel.code, kernel.name, grid, profile.subgroupSize, kernel.operands.size(),
          kernel.workgroup, kernel.workgroupMemory, kernel.tensorMaps);
  if (known.size() >= maxLaunches && !known.contains(key)) {
    KernelCode &code = unread[kernel.operands.size()];
    code.problem = "the plans run more than " + std::to_string(maxLaunches) + " kernels and grids";
    code.operands.resize(kernel.operands.size());
    return code;
  }
  std::unique_ptr<KernelCode> &code = known[key];
  if (!code)
    code = read(kernel, grid, profile);
  return *code;
}

const spv::Validity *CodeCache::validate(const Kernel &kernel, const Profile &profile) {
  auto found = artifact.code.find(kernel.code);
  if (found == artifact.code.end() || !kernel.code.ends_with(".spv"))
    return nullptr;
  auto [place, isNew] = validities.try_emplace(kernel.code);
  if (isNew && found->second.size() % sizeof(uint32_t)) {
    place->second = {false, "its bytes are not whole words"};
  } else if (isNew) {
    std::vector<uint32_t> words(found->second.size() / sizeof(uint32_t));
    if (!words.empty())
      std::memcpy(words.data(), found->second.data(), found->second.size());
    place->second = spv::validate(words, profile.api);
  }
  return &place->second;
}

/// Whether code has a variable of workgroup memory without a size.
static bool hasLaunchVariable(const spv::Module &module) {
  const std::vector<spv::Variable> &variables = module.getVariables();
  return std::any_of(variables.begin(), variables.end(), [&](const spv::Variable &variable) {
    return variable.storage == spv::StorageClass::Workgroup &&
           module.getType(module.getType(variable.type).element).bytes == 0;
  });
}

std::unique_ptr<KernelCode>
CodeCache::read(const Kernel &kernel, const std::array<int64_t, 3> &grid, const Profile &profile) {
  auto code = std::make_unique<KernelCode>();
  auto found = artifact.code.find(kernel.code);
  auto printSizes = [](const auto &sizes) {
    return std::to_string(sizes[0]) + " x " + std::to_string(sizes[1]) + " x " +
           std::to_string(sizes[2]);
  };
  if (found == artifact.code.end()) {
    code->problem = "it is not there";
  } else if (kernel.code.ends_with(".so")) {
    code->problem = "machine code is not read";
  } else {
    follow(kernel, {grid, profile.subgroupSize}, *code);
    const ReadModule &read = getModule(kernel);
    if (code->isText && read.module && !kernel.workgroupMemory && hasLaunchVariable(*read.module))
      code->fault = "has workgroup memory whose size its launch states, the plan states none";
    if (code->map && code->fault.empty() && code->map->localSize != kernel.workgroup)
      code->fault = "is for workgroups of " + printSizes(code->map->localSize) +
                    ", the plan's are " + printSizes(kernel.workgroup);
  }
  code->operands.resize(kernel.operands.size());
  if (!code->problem.empty())
    std::fill(code->operands.begin(), code->operands.end(), KernelCode::Operand());
  return code;
}

/// Reads the code of a kernel once. The module is null if it has no such entry, or is unreadable.
const CodeCache::ReadModule &CodeCache::getModule(const Kernel &kernel) {
  const bool isText = kernel.code.ends_with(".ptx");
  auto [place, isNew] =
      modules.try_emplace(isText ? std::tuple(kernel.code, kernel.name, kernel.workgroup,
                                              kernel.workgroupMemory, kernel.tensorMaps)
                                 : std::tuple(kernel.code, std::string(), std::array<int64_t, 3>(),
                                              int64_t(0), std::vector<TensorMap>()));
  ReadModule &read = place->second;
  if (isNew) {
    const std::vector<unsigned char> &bytes = artifact.code.at(kernel.code);
    try {
      if (isText) {
        std::array<uint32_t, 3> workgroup;
        std::copy(kernel.workgroup.begin(), kernel.workgroup.end(), workgroup.begin());
        std::string_view text(reinterpret_cast<const char *>(bytes.data()), bytes.size());
        if (auto module = ptx::readEntry(text, kernel.name, workgroup, kernel.code,
                                         kernel.workgroupMemory, kernel.tensorMaps))
          read.module = std::make_unique<spv::Module>(std::move(*module));
      } else {
        read.module = std::make_unique<spv::Module>(bytes, kernel.code);
      }
    } catch (const Error &error) {
      read.problem = error.what();
      // Text that the PTX reader refuses may be such as it does not follow. Words are followed or
      // Unsupported.
      read.isBroken = !isText && !dynamic_cast<const spv::Unsupported *>(&error);
    }
  }
  return read;
}

/// Follows the addresses of a kernel's code.
void CodeCache::follow(const Kernel &kernel, const spv::Launch &launch, KernelCode &code) {
  code.isText = kernel.code.ends_with(".ptx");
  const ReadModule &read = getModule(kernel);
  code.problem = read.problem;
  if (read.isBroken)
    code.fault = "cannot be read: " + read.problem;
  if (!code.problem.empty())
    return;
  const spv::EntryPoint *entry = read.module ? read.module->findEntryPoint(kernel.name) : nullptr;
  if (!entry) {
    code.fault = "has no entry point of this name";
    code.problem = "it has no entry point of this name";
    return;
  }
  const spv::Module &module = *read.module;
  if (code.isText) {
    size_t parameters = std::count_if(module.getVariables().begin(), module.getVariables().end(),
                                      [](const auto &each) { return each.binding.has_value(); });
    if (parameters != kernel.operands.size())
      code.fault = "has " + std::to_string(parameters) + " parameters for " +
                   std::to_string(kernel.operands.size()) + " operands";
  }
  if (std::string gap = code.isText ? "" : module.findUndecorated(); !gap.empty())
    code.fault = "is none that Vulkan takes: " + gap;
  if (kernel.workgroupMemory)
    for (const spv::Variable &variable : module.getVariables())
      if (variable.storage == spv::StorageClass::Workgroup)
        code.workgroupBytes[variable.id] =
            module.getType(module.getType(variable.type).element).bytes;
  code.map = spv::readAddressMap(module, *entry, launch);
  code.problem = code.map->problem;
  if (!code.problem.empty())
    return;
  code.operands.resize(kernel.operands.size(), {Answer::No, Answer::No, {}, {}});
  auto nameFile = [&](const spv::SourceLine &source) {
    if (source.file)
      code.files.try_emplace(source.file, module.getString(source.file));
  };
  for (const spv::BarrierSite &barrier : code.map->barriers)
    nameFile(barrier.source);
  for (const spv::MemoryAccess &access : code.map->accesses) {
    nameFile(access.source);
    if (access.root == spv::MemoryAccess::Root::Shared)
      continue;
    if (access.root == spv::MemoryAccess::Root::Unknown) {
      for (KernelCode::Operand &operand : code.operands) {
        if (access.reads && operand.reads == Answer::No)
          operand.reads = Answer::Unknown;
        if (access.writes && operand.writes == Answer::No)
          operand.writes = Answer::Unknown;
      }
      continue;
    }
    if (access.binding >= code.operands.size()) {
      code.fault = "touches binding " + std::to_string(access.binding) + " (" +
                   code.describe(access) + "), the plan binds " +
                   std::to_string(code.operands.size());
      return;
    }
    KernelCode::Operand &operand = code.operands[access.binding];
    operand.reads = access.reads ? Answer::Yes : operand.reads;
    operand.writes = access.writes ? Answer::Yes : operand.writes;
  }
  for (size_t i = 0; i < code.operands.size(); ++i) {
    code.operands[i].read = spv::getTouched(*code.map, uint32_t(i), /*reads=*/true);
    code.operands[i].written = spv::getTouched(*code.map, uint32_t(i), /*reads=*/false);
  }
}

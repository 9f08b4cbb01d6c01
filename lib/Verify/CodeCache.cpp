//===- CodeCache.cpp - Reads kernels' code once ---------------------------===//

#include "Code.h"

#include "weir/Artifact/Error.h"

#include <algorithm>

using namespace weir;
using namespace weir::verifier;

/// Max number of (kernel, grid) pairs that are read; plans have few.
static constexpr size_t maxLaunches = 4096;

CodeCache::~CodeCache() = default;

std::string KernelCode::describe(uint32_t word, const spv::SourceLine &source) const {
  std::string text = "word " + std::to_string(word);
  if (auto file = files.find(source.file); file != files.end())
    text += ", " + file->second + ":" + std::to_string(source.line);
  return text;
}

const KernelCode &CodeCache::get(const Kernel &kernel, const std::array<int64_t, 3> &grid,
                                 const Profile &profile) {
  Key key(kernel.code, kernel.name, grid, profile.subgroupSize, kernel.operands.size(),
          kernel.workgroup);
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
  } else if (kernel.code.ends_with(".ptx")) {
    PtxKernel ptx = readPtx(std::string(found->second.begin(), found->second.end()), kernel.name);
    code->problem = ptx.problem;
    if (code->problem.empty() && ptx.parameters.size() != kernel.operands.size())
      code->fault = "has " + std::to_string(ptx.parameters.size()) + " parameters for " +
                    std::to_string(kernel.operands.size()) + " operands";
    else if (code->problem.empty() && ptx.workgroup[0] && ptx.workgroup != kernel.workgroup)
      code->fault = "is for workgroups of " + printSizes(ptx.workgroup) + ", the plan's are " +
                    printSizes(kernel.workgroup);
    for (const PtxParameter &parameter : ptx.parameters)
      code->operands.push_back({parameter.reads, parameter.writes, {}, {}});
  } else {
    readSpirv(kernel, {grid, profile.subgroupSize}, *code);
    if (code->map && code->fault.empty() && code->map->localSize != kernel.workgroup)
      code->fault = "is for workgroups of " + printSizes(code->map->localSize) +
                    ", the plan's are " + printSizes(kernel.workgroup);
  }
  code->operands.resize(kernel.operands.size());
  if (!code->problem.empty())
    std::fill(code->operands.begin(), code->operands.end(), KernelCode::Operand());
  return code;
}

void CodeCache::readSpirv(const Kernel &kernel, const spv::Launch &launch, KernelCode &code) {
  auto [place, isNew] = modules.try_emplace(kernel.code);
  if (isNew) {
    try {
      place->second = std::make_unique<spv::Module>(artifact.code.at(kernel.code), kernel.code);
    } catch (const Error &error) {
      problems[kernel.code] = error.what();
    }
  }
  if (!place->second) {
    code.problem = problems[kernel.code];
    return;
  }
  const spv::Module &module = *place->second;
  const spv::EntryPoint *entry = module.findEntryPoint(kernel.name);
  if (!entry) {
    code.fault = "has no entry point of this name";
    code.problem = "it has no entry point of this name";
    return;
  }
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

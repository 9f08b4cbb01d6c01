//===- Machine.cpp - One plan's dispatches in flight ----------------------===//

#include "Machine.h"

#include "weir/PtxReader/PtxReader.h"

#include <algorithm>
#include <cstring>

using namespace weir;
using namespace weir::sim;

//===----------------------------------------------------------------------===//
// Kernels and allocations
//===----------------------------------------------------------------------===//

Machine::Machine(const Artifact &artifact, const EntrySpec &entry, const Plan &plan,
                 const Profile &profile, bool fusesFma, std::function<void(double)> progress)
    : entry(entry), plan(plan), profile(profile), artifact(artifact), progress(std::move(progress)),
      order(plan) {
  if (profile.subgroupSize > maxLanes)
    throw Error("the simulator supports subgroups of up to " + std::to_string(maxLanes) +
                " invocations, profile " + profile.name + " has " +
                std::to_string(profile.subgroupSize));
  decodeKernels(fusesFma);
  makeStores();
}

/// Reads the code of a kernel, which is SPIR-V or PTX.
spv::Module Machine::readModule(const Kernel &kernel) const {
  const Bytes &bytes = artifact.code.at(kernel.code);
  if (getBaseTarget(profile.target) != "cuda")
    return spv::Module(bytes, kernel.code);
  std::array<uint32_t, 3> workgroup;
  std::copy(kernel.workgroup.begin(), kernel.workgroup.end(), workgroup.begin());
  std::string_view text(reinterpret_cast<const char *>(bytes.data()), bytes.size());
  std::optional<spv::Module> module = ptx::readEntry(text, kernel.name, workgroup, kernel.code,
                                                     kernel.workgroupMemory, kernel.tensorMaps);
  if (!module)
    throw Error(kernel.code + ": has no entry '" + kernel.name + "'");
  return std::move(*module);
}

void Machine::decodeKernels(bool fusesFma) {
  const bool isPtx = getBaseTarget(profile.target) == "cuda";
  DecodeOptions options = {uint32_t(profile.subgroupSize), fusesFma, isPtx};
  if (isPtx && profile.subgroupSize != warpLanes)
    throw Error("profile " + profile.name + " has subgroups of " +
                std::to_string(profile.subgroupSize) + " invocations, those of PTX have 32");
  modules.reserve(plan.kernels.size());
  for (const Kernel &kernel : plan.kernels) {
    modules.push_back(readModule(kernel));
    const Program &program =
        programs.emplace_back(decode(modules.back(), kernel.name, options, kernel.code));
    const std::array<uint32_t, 3> &size = program.localSize;
    if (!std::equal(size.begin(), size.end(), kernel.workgroup.begin()) ||
        std::find(size.begin(), size.end(), 0u) != size.end())
      throw Error(kernel.code + ": has a workgroup that differs from the plan's for kernel '" +
                  kernel.name + "'");
    if (uint64_t(size[0]) * size[1] > UINT16_MAX ||
        uint64_t(size[0]) * size[1] * size[2] > UINT16_MAX)
      throw Error(kernel.code + ": has a workgroup of more than 65535 invocations");
    for (const AccessSite &access : program.accesses)
      if (access.site && access.space == Space::Storage && access.binding >= kernel.operands.size())
        throw Error(kernel.code + ": uses binding " + std::to_string(access.binding) +
                    ", but the plan gives kernel '" + kernel.name + "' " +
                    std::to_string(kernel.operands.size()) + " operands");
  }
}

template <typename T> static Lazy<T> allocate(int64_t count) {
  Lazy<T> lazy;
  lazy.items.reset(static_cast<T *>(std::calloc(size_t(count) + 1, sizeof(T))));
  if (!lazy.items)
    throw Error("the host has no memory for a shadow of " + std::to_string(count) + " cells");
  return lazy;
}

void Machine::makeStores() {
  std::vector<int64_t> granules(plan.allocations.size(), 16);
  // Makes cells small enough that none crosses `border`.
  auto cut = [&](int64_t allocation, int64_t border) {
    int64_t &granule = granules[size_t(allocation)];
    int64_t common = granule | border;
    granule = std::min(granule, common & -common);
  };
  for (size_t i = 0; i < plan.allocations.size(); ++i)
    for (const Slot &slot : plan.slots)
      if (plan.allocations[i].kind == AllocationKind::Arena) {
        cut(int64_t(i), slot.offset);
        cut(int64_t(i), slot.offset + slot.bytes);
      }
  size_t numDispatches = 0;
  for (const Command &command : plan.commands) {
    for (const PlanView &view : command.memory) {
      cut(view.allocation, view.offset);
      cut(view.allocation, view.offset + view.bytes);
    }
    if (command.kind != Command::Kind::Dispatch)
      continue;
    for (const PlanOperand &operand : command.operands)
      if (operand.before >= 0) {
        cut(operand.allocation, operand.offset);
        cut(operand.allocation, operand.offset + operand.bytes);
        insertions.push_back({numDispatches, &operand});
      }
    ++numDispatches;
    for (const AccessSite &access : programs[size_t(command.kernel)].accesses) {
      if (!access.site || access.space != Space::Storage)
        continue;
      const PlanOperand &operand = command.operands[access.binding];
      cut(operand.allocation, access.granule | operand.offset);
    }
  }
  for (size_t i = 0; i < plan.allocations.size(); ++i) {
    const Allocation &allocation = plan.allocations[i];
    Store &store = stores.emplace_back();
    store.bytes = allocation.bytes;
    while (int64_t(1) << store.shift < granules[i])
      ++store.shift;
    store.values = allocate<unsigned char>(store.bytes);
    store.stale = allocate<unsigned char>(store.bytes);
    store.cells = allocate<Cell>((store.bytes >> store.shift) + 1);
    if (std::any_of(programs.begin(), programs.end(),
                    [](const Program &program) { return program.hasReadOnly; }))
      store.readOnly = allocate<uint32_t>((store.bytes >> store.shift) + 1);
    store.isArena = allocation.kind == AllocationKind::Arena;
    if (allocation.kind == AllocationKind::Argument) {
      store.initialValue = plan.argumentValues[size_t(allocation.index)];
      store.isWritable = entry.arguments[size_t(allocation.index)].donate;
    }
    if (allocation.kind == AllocationKind::Constants) {
      store.isWritable = false;
      std::memcpy(&store.values[0], artifact.constants.data(), artifact.constants.size());
    }
  }
}

//===----------------------------------------------------------------------===//
// A run
//===----------------------------------------------------------------------===//

void Machine::begin(const std::vector<Tensor> &arguments) {
  for (size_t i = 0; i < stores.size(); ++i) {
    const Allocation &allocation = plan.allocations[i];
    Store &store = stores[i];
    switch (allocation.kind) {
    case AllocationKind::Argument: {
      const Bytes &data = arguments[size_t(allocation.index)].data;
      if (int64_t(data.size()) != getByteSize(entry.arguments[size_t(allocation.index)]))
        throw Error("argument '" + entry.arguments[size_t(allocation.index)].name + "' has " +
                    std::to_string(data.size()) + " bytes, its allocation " +
                    std::to_string(store.bytes));
      if (!hasRun || store.isWritable || replaced.count(size_t(allocation.index)))
        std::memcpy(&store.values[0], data.data(), data.size());
      break;
    }
    case AllocationKind::Result:
    case AllocationKind::Arena:
      std::memset(&store.values[0], poison, size_t(store.bytes));
      break;
    case AllocationKind::Constants:
      break;
    }
  }

  if (uint64_t(firstSerial) + 2 * order.countDispatches() > UINT32_MAX)
    throw Error("so many runs in a row are more than the simulator can number");
  firstSerial += uint32_t(dispatches.size());
  dispatches.clear();
  dispatches.reserve(order.countDispatches());
  byQueue.assign(order.countQueues(), {});
  unfinished.clear();
  readers.assign(1, {});
  isPoisoned.assign(plan.slots.size(), false);
  workgroups = endedWorkgroups = 0;
  for (const Command &command : plan.commands) {
    if (command.kind != Command::Kind::Dispatch)
      continue;
    DispatchRun &dispatch = dispatches.emplace_back();
    dispatch.number = dispatches.size() - 1;
    dispatch.serial = firstSerial + uint32_t(dispatches.size());
    dispatch.command = &command;
    dispatch.program = &programs[size_t(command.kernel)];
    bind(dispatch);
    byQueue[size_t(command.queue)].push_back(dispatch.number);
    ++unfinished[command.wave];
    workgroups += dispatch.workgroups;
  }
  admitted.assign(byQueue.size(), 0);
  ended.assign(byQueue.size(), 0);
  active.clear();
}

/// Max number of workgroups of a dispatch, a hundred times that of large models and hours of time.
static constexpr uint64_t maxGrid = uint64_t(1) << 24;

void Machine::bind(DispatchRun &dispatch) {
  const Command &command = *dispatch.command;
  dispatch.workgroups = uint64_t(command.grid[0]);
  for (size_t axis : {1, 2})
    if (__builtin_mul_overflow(dispatch.workgroups, uint64_t(command.grid[axis]),
                               &dispatch.workgroups))
      dispatch.workgroups = UINT64_MAX;
  if (dispatch.workgroups > maxGrid)
    throw Error(describe(dispatch) + " has more than " + std::to_string(maxGrid) +
                " workgroups, too many to be run one after the other; run it on a device");
  for (const PlanOperand &operand : command.operands) {
    Binding &binding = dispatch.bindings.emplace_back();
    binding.store = &stores[size_t(operand.allocation)];
    binding.offset = operand.offset;
    binding.bytes = operand.bytes;
    binding.value = operand.value;
    binding.begin = operand.offset - operand.from;
    if (binding.store->isArena)
      binding.isLive = std::any_of(plan.slots.begin(), plan.slots.end(), [&](const Slot &slot) {
        return slot.offset <= operand.offset &&
               operand.offset + operand.bytes <= slot.offset + slot.bytes &&
               slot.firstWave <= command.wave && command.wave <= slot.lastWave;
      });
  }
  checkEffects(dispatch);
}

/// Checks that the code accesses operands as the plan states; otherwise its order means
/// nothing.
void Machine::checkEffects(const DispatchRun &dispatch) {
  const Kernel &kernel = plan.kernels[size_t(dispatch.command->kernel)];
  for (const AccessSite &access : dispatch.program->accesses) {
    if (!access.site || access.space != Space::Storage)
      continue;
    Access declared = kernel.operands[access.binding].access;
    for (bool isWrite : {false, true}) {
      if (!(isWrite ? access.isWrite : access.isRead) || declared == Access::Update ||
          declared == (isWrite ? Access::Write : Access::Read))
        continue;
      reports.add(ReportKind::Effect,
                  {dispatch.command->kernel, int64_t(access.binding), isWrite, 0}, [&] {
                    return "effect: the code of " + describe(dispatch) +
                           (isWrite ? " writes" : " reads") + " operand " +
                           std::to_string(access.binding) + ", but the plan says that it does not";
                  });
    }
  }
}

std::vector<Tensor> Machine::invoke(const std::vector<Tensor> &arguments, SimStrategy how,
                                    uint64_t seed) {
  strategy = how;
  random.seed(seed);
  begin(arguments);
  admit();
  while (!active.empty())
    advance(pick());
  hasRun = true;
  replaced.clear();
  return readResults();
}

std::vector<Tensor> Machine::readResults() {
  std::vector<Tensor> results;
  for (const TensorSpec &spec : entry.results)
    results.push_back({spec, Bytes(size_t(getByteSize(spec)))});
  for (size_t i = 0; i < stores.size(); ++i) {
    const Allocation &allocation = plan.allocations[i];
    bool isResult = allocation.kind == AllocationKind::Result;
    int64_t index = isResult ? allocation.index : allocation.result;
    if (!isResult && (allocation.kind != AllocationKind::Argument || index < 0))
      continue;
    const Store &store = stores[i];
    Bytes &data = results[size_t(index)].data;
    std::memcpy(data.data(), &store.values[0], std::min(data.size(), size_t(store.bytes)));
    int64_t wanted = plan.resultValues[size_t(index)];
    for (int64_t cell = 0; cell << store.shift < store.bytes; ++cell) {
      Holder holder = findHolder(store, cell, std::nullopt);
      if (holder.value == wanted && holder.begin == 0)
        continue;
      reports.add(ReportKind::Result, {index, 0, 0, 0}, [&] {
        return "result: in the end " + describeByte(store, cell << store.shift) + " holds " +
               (holder.value < 0 ? "nothing" : describeValue(holder.value)) + " instead of " +
               describeValue(wanted);
      });
    }
  }
  return results;
}

//===----------------------------------------------------------------------===//
// Turns of dispatches
//===----------------------------------------------------------------------===//

/// Max number of dispatches that run interleaved; each holds workgroups.
static constexpr size_t maxMixed = 32;

/// Starts all dispatches whose predecessors in the plan have ended.
void Machine::admit() {
  auto hasEnded = [&](size_t queue, uint32_t commands) {
    return ended[queue] == byQueue[queue].size() ||
           order.getPlace(byQueue[queue][ended[queue]]) >= commands;
  };
  for (size_t queue = 0; queue < byQueue.size(); ++queue)
    for (size_t &next = admitted[queue]; next < byQueue[queue].size(); ++next) {
      size_t number = byQueue[queue][next];
      const std::vector<uint32_t> &past = order.getPast(number);
      bool isReady = true;
      for (size_t other = 0; isReady && other < past.size(); ++other)
        isReady = hasEnded(other, past[other]);
      if (!isReady)
        break;
      DispatchRun *dispatch = &dispatches[number];
      active.insert(std::upper_bound(active.begin(), active.end(), dispatch), dispatch);
    }
  if (strategy == SimStrategy::WriterFirst)
    rankWriters();
}

/// Marks dispatches that write bytes which another one reads.
void Machine::rankWriters() {
  auto writesWhatIsRead = [&](const DispatchRun &writer, const DispatchRun &reader) {
    const Kernel &from = plan.kernels[size_t(writer.command->kernel)];
    const Kernel &to = plan.kernels[size_t(reader.command->kernel)];
    for (size_t i = 0; i < writer.bindings.size(); ++i)
      for (size_t k = 0; k < reader.bindings.size(); ++k) {
        const Binding &a = writer.bindings[i], &b = reader.bindings[k];
        if (a.store == b.store && a.offset < b.offset + b.bytes && b.offset < a.offset + a.bytes &&
            from.operands[i].access != Access::Read && to.operands[k].access != Access::Write)
          return true;
      }
    return false;
  };
  size_t first = active.size() - std::min(active.size(), maxMixed);
  for (size_t i = first; i < active.size(); ++i) {
    active[i]->isWriter = false;
    for (size_t k = first; k < active.size(); ++k)
      active[i]->isWriter |= i != k && writesWhatIsRead(*active[i], *active[k]);
  }
}

DispatchRun &Machine::pick() {
  switch (strategy) {
  case SimStrategy::Random: {
    size_t number = random() % std::min(active.size(), maxMixed);
    return *active[random() % 2 ? number : active.size() - 1 - number];
  }
  case SimStrategy::Recorded:
    return *active.front();
  case SimStrategy::WriterFirst:
    for (size_t i = active.size(); i-- > 0;)
      if (active[i]->isWriter)
        return *active[i];
    return *active.back();
  case SimStrategy::Split:
    for (size_t i = 0; i < std::min(active.size(), maxMixed); ++i)
      if (active[i]->begun * 2 < active[i]->workgroups)
        return *active[i];
    return *active.back();
  case SimStrategy::LatestFirst:
    break;
  }
  return *active.back();
}

void Machine::advance(DispatchRun &dispatch) {
  bool isMixed = strategy == SimStrategy::Random || strategy == SimStrategy::Split;
  size_t maxWorkgroups = isMixed ? 4 : 1;
  auto &running = dispatch.running;
  auto &idle = idleWorkgroups[dispatch.program];
  while (running.size() < maxWorkgroups && dispatch.begun < dispatch.workgroups) {
    if (idle.empty())
      idle.push_back(std::make_unique<Workgroup>(*this, *dispatch.program));
    bool isForward = isMixed || strategy == SimStrategy::Recorded;
    idle.back()->start(dispatch,
                       isForward ? dispatch.begun : dispatch.workgroups - 1 - dispatch.begun);
    ++dispatch.begun;
    running.push_back(std::move(idle.back()));
    idle.pop_back();
  }
  size_t turn = strategy == SimStrategy::Random  ? random() % running.size()
                : strategy == SimStrategy::Split ? dispatch.turn++ % running.size()
                                                 : 0;
  uint64_t accesses = strategy == SimStrategy::Random  ? 1 + random() % 64
                      : strategy == SimStrategy::Split ? 1
                                                       : UINT64_MAX;
  running[turn]->advance(accesses);
  if (!running[turn]->isOver())
    return;
  idle.push_back(std::move(running[turn]));
  running.erase(running.begin() + int64_t(turn));
  ++dispatch.ended;
  if (++endedWorkgroups % 64 == 0 && progress)
    progress(double(endedWorkgroups) / double(workgroups));
  if (dispatch.ended == dispatch.workgroups)
    end(dispatch);
}

void Machine::end(DispatchRun &dispatch) {
  active.erase(std::find(active.begin(), active.end(), &dispatch));
  size_t queue = order.getQueue(dispatch.number);
  auto isOver = [&](size_t number) {
    return dispatches[number].ended == dispatches[number].workgroups;
  };
  while (ended[queue] < byQueue[queue].size() && isOver(byQueue[queue][ended[queue]]))
    ++ended[queue];
  auto wave = unfinished.find(dispatch.command->wave);
  if (--wave->second == 0)
    unfinished.erase(wave);
  if (onWrite)
    tellWrites(dispatch);
  poisonDead();
  admit();
}

void Machine::tellWrites(const DispatchRun &dispatch) const {
  const Kernel &kernel = plan.kernels[size_t(dispatch.command->kernel)];
  for (size_t i = 0; i < dispatch.bindings.size(); ++i) {
    Access access = kernel.operands[i].access;
    const Binding &binding = dispatch.bindings[i];
    if (access != Access::Write && access != Access::Update)
      continue;
    const unsigned char *bytes = &binding.store->values[size_t(binding.offset)];
    onWrite(dispatch.number, i, Bytes(bytes, bytes + binding.bytes));
  }
}

/// Poisons the slots that no further dispatch may use.
void Machine::poisonDead() {
  for (size_t i = 0; i < plan.slots.size(); ++i) {
    const Slot &slot = plan.slots[i];
    if (isPoisoned[i] || (!unfinished.empty() && unfinished.begin()->first <= slot.lastWave))
      continue;
    isPoisoned[i] = true;
    for (Store &store : stores) {
      if (!store.isArena)
        continue;
      int64_t end = std::min(slot.offset + slot.bytes, store.bytes);
      int64_t bytes = int64_t(1) << store.shift;
      for (int64_t at = slot.offset; at + bytes <= end; at += bytes) {
        DispatchRun *writer = findDispatch(store.cells[size_t(at >> store.shift)].writer);
        if (!writer || writer->command->wave > slot.lastWave)
          continue;
        std::memset(&store.values[size_t(at)], poison, size_t(bytes));
        std::memset(&store.stale[size_t(at)], poison, size_t(bytes));
      }
    }
  }
}

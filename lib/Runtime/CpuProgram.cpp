//===- CpuProgram.cpp - Kernels' code, plans as steps ---------------------===//

#include "CpuProgram.h"

#include "Requirements.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <utility>

namespace weir::runtime {

static const Profile &chooseTarget(const CpuDevice &device, const Artifact &artifact) {
  Profile limits = device.getProfile();
  auto check = [&](const Profile &profile, Missing &missing) {
    missing.require(device.hasIsa(profile.isa),
                    "the instruction set " + profile.isa + " where the device has " + limits.isa);
    checkPlans(artifact, profile.target, limits, missing);
  };
  return chooseTarget(artifact, "cpu", device.getName(), check);
}

CpuProgram::CpuProgram(std::shared_ptr<CpuDevice> device, const Artifact &artifact)
    : CpuProgram(device, artifact, chooseTarget(*device, artifact)) {}

CpuProgram::CpuProgram(std::shared_ptr<CpuDevice> device, const Artifact &artifact,
                       const Profile &profile)
    : Program(device, artifact, profile), cpu(std::move(device)) {
  for (const auto &[name, entry] : entries)
    for (const Kernel &kernel : entry.plan.kernels) {
      std::unique_ptr<CodeImage> &image = images[kernel.code];
      if (!image)
        image = std::make_unique<CodeImage>(artifact.code.at(kernel.code), kernel.code);
      functions[&entry].push_back(reinterpret_cast<CpuFunction>(image->find(kernel.name)));
    }
}

namespace {
/// An argument or a result, which the caller may have placed anywhere. `storage` is null for one
/// without bytes, and for other allocations.
struct Place {
  const Storage *storage = nullptr;
  std::string name;
  bool isWritten = false;

  uintptr_t getBegin() const { return reinterpret_cast<uintptr_t>(getHostBytes(*storage)); }
  uintptr_t getEnd() const { return getBegin() + uintptr_t(storage->bytes); }
};
} // namespace

/// Checks that what a run writes overlaps nothing else of it. Errors: `BadArgument`.
static void refuseOverlaps(const std::string &entry, std::vector<Place> places) {
  std::erase_if(places, [](const Place &place) { return !place.storage; });
  std::sort(places.begin(), places.end(),
            [](const Place &a, const Place &b) { return a.getBegin() < b.getBegin(); });
  for (size_t i = 0; i < places.size(); ++i)
    for (size_t j = i + 1; j < places.size() && places[j].getBegin() < places[i].getEnd(); ++j)
      if (places[i].storage != places[j].storage && (places[i].isWritten || places[j].isWritten))
        throw BadArgument("entry '" + entry + "': " + places[i].name + " and " + places[j].name +
                          " share bytes, but a run writes them; give each its own");
}

void CpuProgram::checkAddresses(const Entry &entry, const Plan &plan,
                                const std::vector<const Storage *> &allocations,
                                const std::vector<StorageCopy> &copies) const {
  const EntrySpec &spec = entry.spec;
  std::vector<Place> places;
  for (size_t i = 0; i < allocations.size(); ++i) {
    const Allocation &allocation = plan.allocations[i];
    Place &place = places.emplace_back();
    bool isArgument = allocation.kind == AllocationKind::Argument;
    if ((!isArgument && allocation.kind != AllocationKind::Result) || allocation.bytes == 0)
      continue;
    const TensorSpec &tensor =
        (isArgument ? spec.arguments : spec.results)[size_t(allocation.index)];
    place = {allocations[i], (isArgument ? "argument '" : "result '") + tensor.name + "'",
             !isArgument || allocation.result >= 0};
  }
  for (const Command &command : plan.commands)
    for (size_t i = 0; i < command.operands.size(); ++i) {
      const KernelOperand &operand = plan.kernels[size_t(command.kernel)].operands[i];
      Place &place = places[size_t(command.operands[i].allocation)];
      place.isWritten |= operand.access == Access::Write || operand.access == Access::Update;
      if (place.storage &&
          (place.getBegin() + uintptr_t(command.operands[i].offset)) % uintptr_t(operand.alignment))
        throw BadArgument("entry '" + spec.name + "': the address of " + place.name +
                          " is no multiple of " + std::to_string(operand.alignment));
    }
  for (const StorageCopy &copy : copies)
    places.push_back({copy.from, "a donated argument"});
  refuseOverlaps(spec.name, std::move(places));
}

std::unique_ptr<Recording>
CpuProgram::makeRecording(const Entry &entry, const Plan &plan,
                          const std::vector<const Storage *> &allocations,
                          const std::vector<StorageCopy> &copies, RecordingKind kind) {
  checkAddresses(entry, plan, allocations, copies);
  return std::make_unique<CpuRecording>(*cpu, plan, functions[&entry], allocations, copies, kind);
}

//===----------------------------------------------------------------------===//
// Recordings
//===----------------------------------------------------------------------===//

void CpuRecording::addPieces(const Dispatch &dispatch, std::vector<Piece> &step) const {
  // Sharing out costs a microsecond or so, in which a thread moves some 10 kB.
  constexpr int64_t minBytes = 16384;
  // At the end, a thread that is done waits for a piece of another: of a part of this of its work.
  constexpr int64_t smallestPart = 32;
  // Of a schedule from a seed, so that workgroups meet in many orders.
  constexpr int64_t seededPieces = 64;
  const int64_t workgroups = dispatch.getWorkgroups();
  const int64_t threads = int64_t(device.getPool().getThreadCount());
  auto add = [&](int64_t first, int64_t last) {
    step.push_back({&dispatch, first, last, nullptr});
  };
  if (device.getPool().hasSeed()) {
    int64_t count = std::clamp<int64_t>(workgroups, 1, seededPieces);
    for (int64_t i = 0; i < count; ++i)
      add(workgroups * i / count, workgroups * (i + 1) / count);
    return;
  }
  int64_t most = threads == 1 ? 1 : std::min(dispatch.bytes / minBytes, threads * smallestPart);
  auto divideUp = [](int64_t all, int64_t parts) { return (all + parts - 1) / parts; };
  int64_t smallest = std::max<int64_t>(divideUp(workgroups, std::max<int64_t>(most, 1)), 1);
  // Half of what is left to a thread: one that starts late, or has a slow core, takes fewer.
  for (int64_t first = 0; first < workgroups;) {
    int64_t size = std::max(divideUp(workgroups - first, 2 * threads), smallest);
    add(first, std::min(first + size, workgroups));
    first += size;
  }
}

CpuRecording::CpuRecording(CpuDevice &device, const Plan &plan,
                           const std::vector<CpuFunction> &functions,
                           const std::vector<const Storage *> &allocations,
                           const std::vector<StorageCopy> &given, RecordingKind kind)
    : device(device), copies(given), kind(kind) {
  for (const Command &command : plan.commands) {
    if (command.kind != Command::Kind::Dispatch)
      continue;
    Dispatch dispatch{functions[size_t(command.kernel)], {}, command.grid};
    for (const PlanView &view : command.operands) {
      dispatch.operands.push_back(getHostBytes(*allocations[size_t(view.allocation)]) +
                                  view.offset);
      dispatch.bytes += view.bytes;
    }
    dispatches.push_back(std::move(dispatch));
  }
  std::vector<Piece> step;
  auto endStep = [&] {
    if (!step.empty())
      steps.push_back(std::exchange(step, {}));
  };
  for (const StorageCopy &copy : copies)
    step.push_back({nullptr, 0, 0, &copy});
  endStep();
  size_t next = 0;
  for (const Command &command : plan.commands) {
    if (command.kind == Command::Kind::Dispatch)
      addPieces(dispatches[next++], step);
    if (command.kind != Command::Kind::Dispatch || kind == RecordingKind::Profiled)
      endStep();
  }
  endStep();
}

void CpuRecording::run(size_t step, size_t number) const noexcept {
  const Piece &piece = steps[step][number];
  if (piece.copy)
    std::memcpy(getHostBytes(*piece.copy->to), getHostBytes(*piece.copy->from),
                size_t(piece.copy->from->bytes));
  else
    piece.dispatch->function(piece.dispatch->operands.data(), piece.dispatch->grid.data(),
                             piece.first, piece.last);
}

namespace {
/// One step of a run.
class OneStep : public Work {
public:
  OneStep(const Work &all, size_t step) : all(all), step(step) {}
  size_t getStepCount() const override { return 1; }
  size_t getPieceCount(size_t) const override { return all.getPieceCount(step); }
  void run(size_t, size_t piece) const noexcept override { all.run(step, piece); }

private:
  const Work &all;
  size_t step;
};
} // namespace

void CpuRecording::submit(bool /*isTimed*/) {
  using Clock = std::chrono::steady_clock;
  auto begin = Clock::now();
  auto getTime = [&] {
    return std::chrono::duration<double, std::nano>(Clock::now() - begin).count();
  };
  if (kind == RecordingKind::Profiled) {
    times.clear();
    for (size_t step = 0; step < steps.size(); ++step) {
      double start = getTime();
      device.getPool().run(OneStep(*this, step));
      if (!steps[step].front().copy)
        times.push_back({start, getTime(), 1});
    }
  } else {
    device.getPool().run(*this);
  }
  nanoseconds = getTime();
  ++device.submissions;
}

} // namespace weir::runtime

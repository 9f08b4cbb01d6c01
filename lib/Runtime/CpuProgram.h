//===- CpuProgram.h - An artifact on the processor --------------*- C++ -*-===//

#ifndef WEIR_LIB_RUNTIME_CPUPROGRAM_H
#define WEIR_LIB_RUNTIME_CPUPROGRAM_H

#include "CodeImage.h"
#include "CpuDevice.h"
#include "Program.h"

namespace weir::runtime {

/// A kernel's code: runs workgroups [first, last) of a grid, counted with x fastest.
using CpuFunction = void (*)(void *const *operands, const int64_t *grid, int64_t first,
                             int64_t last);

class CpuProgram : public Program {
public:
  /// Errors: `BadArgument` where the artifact has no code that this processor runs, `Error` where
  /// an
  ///         object is broken.
  CpuProgram(std::shared_ptr<CpuDevice> device, const Artifact &artifact);

private:
  CpuProgram(std::shared_ptr<CpuDevice> device, const Artifact &artifact, const Profile &profile);
  std::unique_ptr<Recording> makeRecording(const Entry &entry, const Plan &plan,
                                           const std::vector<const Storage *> &allocations,
                                           const std::vector<StorageCopy> &copies,
                                           RecordingKind kind) override;
  /// Checks addresses that the caller chose: that what a run writes overlaps nothing else of it,
  /// and that operands are aligned. Errors: `BadArgument`.
  void checkAddresses(const Entry &entry, const Plan &plan,
                      const std::vector<const Storage *> &allocations,
                      const std::vector<StorageCopy> &copies) const;

  std::shared_ptr<CpuDevice> cpu;
  std::map<std::string, std::unique_ptr<CodeImage>> images;    ///< by code path
  std::map<const Entry *, std::vector<CpuFunction>> functions; ///< as Plan::kernels
};

/// A plan as steps: each barrier, signal and wait ends one.
class CpuRecording : public Recording, private Work {
public:
  /// As Program::makeRecording; `functions` are as Plan::kernels.
  CpuRecording(CpuDevice &device, const Plan &plan, const std::vector<CpuFunction> &functions,
               const std::vector<const Storage *> &allocations,
               const std::vector<StorageCopy> &copies, RecordingKind kind);

  void submit(bool isTimed) override;
  double readNanoseconds() const override { return nanoseconds; }
  std::vector<weir_dispatch_time> readDispatchTimes() const override { return times; }

private:
  struct Dispatch {
    CpuFunction function;
    std::vector<void *> operands;
    std::array<int64_t, 3> grid;
    int64_t bytes = 0; ///< of the operands
    int64_t getWorkgroups() const { return grid[0] * grid[1] * grid[2]; }
  };
  /// Some workgroups of a dispatch, or a copy.
  struct Piece {
    const Dispatch *dispatch = nullptr;
    int64_t first = 0, last = 0;
    const StorageCopy *copy = nullptr;
  };

  size_t getStepCount() const override { return steps.size(); }
  size_t getPieceCount(size_t step) const override { return steps[step].size(); }
  void run(size_t step, size_t piece) const noexcept override;
  void addPieces(const Dispatch &dispatch, std::vector<Piece> &step) const;

  CpuDevice &device;
  std::vector<StorageCopy> copies;
  std::vector<Dispatch> dispatches;
  std::vector<std::vector<Piece>> steps;
  RecordingKind kind;
  double nanoseconds = -1;
  mutable std::vector<weir_dispatch_time> times; ///< when profiled; of each step
};

} // namespace weir::runtime

#endif // WEIR_LIB_RUNTIME_CPUPROGRAM_H

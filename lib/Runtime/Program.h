//===- Program.h - An artifact on a device ----------------------*- C++ -*-===//
//
// Pipelines, the constant segment and one arena for all entries of an artifact,
// and the recordings of its invocations.
//
//===----------------------------------------------------------------------===//

#ifndef WEIR_RUNTIME_PROGRAM_H
#define WEIR_RUNTIME_PROGRAM_H

#include "Recording.h"
#include "VulkanDevice.h"

#include "weir/Artifact/Artifact.h"

#include <map>
#include <memory>
#include <string>
#include <vector>

namespace weir::runtime {

class Program : public StorageUser {
public:
  /// Builds all pipelines and uploads the constants.
  /// Errors: `BadArgument` when the artifact has no code for the device or
  ///         needs what it lacks (all of it is listed), `Error` when Vulkan
  ///         fails.
  Program(std::shared_ptr<Device> device, const Artifact &artifact);
  ~Program() override;

  /// Submits one run of an entry. A null storage stands for a tensor without
  /// bytes. `arguments` and `results` belong to this program's device.
  /// Returns the recording that was submitted, valid until the next call here,
  /// or null when the entry has no command.
  /// Errors: `BadArgument` when names, counts, sizes or overlaps are wrong.
  const Recording *submit(const std::string &entry, const std::vector<const Storage *> &arguments,
                          const std::vector<const Storage *> &results);

  /// Errors: `BadArgument` when there is no such entry.
  size_t countDispatches(const std::string &entry) const;

  /// Runs an entry once, its dispatches one after the other, and waits. Returns the
  /// time of each. Errors: as `submit`, and `Error` where the device has no timestamps.
  std::vector<weir_dispatch_time> profile(const std::string &entry,
                                          const std::vector<const Storage *> &arguments,
                                          const std::vector<const Storage *> &results);

  void forget(const Storage &storage) override;

  const std::shared_ptr<Device> device;

private:
  struct Entry {
    EntrySpec spec;
    Plan plan;
    std::vector<KernelCode> kernels; ///< as Plan::kernels
    std::vector<bool> writesArgument;
    std::vector<int64_t> resultInArgument; ///< that each argument holds, or -1
  };
  /// Entry, then its arguments and results.
  using Key = std::pair<const Entry *, std::vector<const Storage *>>;
  struct Kept {
    std::unique_ptr<Recording> recording;
    uint64_t lastUse = 0;
  };

  void buildKernels(Entry &entry, const Artifact &artifact, const Profile &profile);
  VkPipelineLayout getLayout(size_t operands, VkDescriptorSetLayout &setLayout);
  VkPipeline buildPipeline(const Kernel &kernel, const Bytes &code, const Profile &profile,
                           VkPipelineLayout layout);
  void checkBuffers(const Entry &entry, const std::vector<const Storage *> &arguments,
                    const std::vector<const Storage *> &results) const;
  void growArena(int64_t bytes);
  const Entry &findEntry(const std::string &name) const;
  std::vector<StorageCopy> getCopies(const Entry &entry,
                                     const std::vector<const Storage *> &arguments,
                                     const std::vector<const Storage *> &results) const;
  std::unique_ptr<Recording> record(const Entry &entry, const std::vector<StorageCopy> &copies,
                                    const std::vector<const Storage *> &arguments,
                                    const std::vector<const Storage *> &results,
                                    RecordingKind kind) const;

  struct Layout {
    Owned<VkDescriptorSetLayout> set;
    Owned<VkPipelineLayout> pipeline; // destroyed before its set layout
  };

  std::map<std::string, Entry> entries;
  std::map<size_t, Layout> layouts; ///< by operand count
  /// By code path, entry point and operand count: entries share kernels.
  std::map<std::tuple<std::string, std::string, size_t>, Owned<VkPipeline>> pipelines;
  Storage constants, arena;

  std::map<Key, Kept> recordings;
  uint64_t uses = 0;
};

} // namespace weir::runtime

#endif // WEIR_RUNTIME_PROGRAM_H

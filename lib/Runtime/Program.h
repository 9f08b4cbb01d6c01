//===- Program.h - An artifact on a device ----------------------*- C++ -*-===//
//
// Holds the constant segment, one arena for all entries of an artifact, and the recordings of
// its invocations. Subclasses of each device hold the code.
//
//===----------------------------------------------------------------------===//

#ifndef WEIR_LIB_RUNTIME_PROGRAM_H
#define WEIR_LIB_RUNTIME_PROGRAM_H

#include "Device.h"

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

namespace weir::runtime {

class Program : public StorageUser {
public:
  ~Program() override;

  /// Returns the index of the result that an argument of an entry holds, or -1. Errors:
  /// `BadArgument` when there is no such entry or argument.
  int64_t getResultIn(const std::string &entry, size_t argument) const;

  /// Submits one run of an entry. A null storage stands for a tensor without bytes. `arguments`
  /// and `results` belong to this program's device. Returns the submitted recording, valid
  /// until the next call, or null if the entry has no command.
  /// Errors: `BadArgument` when names, counts, sizes or overlaps are wrong.
  const Recording *submit(const std::string &entry, const std::vector<const Storage *> &arguments,
                          const std::vector<const Storage *> &results, bool isTimed = false);

  /// Submits one run in pieces, and calls `watcher` with each of `waves`, which rise, once all
  /// dispatches up to that wave have ended; those behind it may run meanwhile. Waits for the run.
  /// Errors: as `submit`.
  void watch(const std::string &entry, const std::vector<const Storage *> &arguments,
             const std::vector<const Storage *> &results, const std::vector<int64_t> &waves,
             const std::function<void(int64_t)> &watcher);

  /// Returns the number of dispatches of an entry. Errors: `BadArgument` when there is no such
  /// entry.
  size_t countDispatches(const std::string &entry) const;

  /// Runs an entry once, one dispatch after the other, and waits. Returns the time of each.
  /// Errors: as `submit`, and `Error` where the device has no timestamps.
  std::vector<weir_dispatch_time> profile(const std::string &entry,
                                          const std::vector<const Storage *> &arguments,
                                          const std::vector<const Storage *> &results);

  /// Runs an entry once, one dispatch after the other, and passes each operand that a dispatch
  /// may have written to `observer`. Errors: as `submit`.
  void observe(const std::string &name, const std::vector<const Storage *> &arguments,
               const std::vector<const Storage *> &results,
               const std::function<void(size_t, size_t, const Bytes &)> &observer);

  void forget(const Storage &storage) override;

  const std::shared_ptr<Device> device;
  const std::string target; ///< whose plans run, "cpu" or "cpu.x86-64-v4"

protected:
  struct Entry {
    EntrySpec spec;
    Plan plan;
    std::vector<bool> writesArgument;
    std::vector<int64_t> resultInArgument; ///< by argument: the result that it holds, or -1
  };

  /// Uploads the constants. `profile` is the target whose plans run.
  Program(std::shared_ptr<Device> device, const Artifact &artifact, const Profile &profile);

  /// Records `plan`, which is the entry's or has a part of its commands. `allocations[i]` backs
  /// Plan::allocations[i]; null if no view uses it. `copies` run before the plan's commands.
  virtual std::unique_ptr<Recording> makeRecording(const Entry &entry, const Plan &plan,
                                                   const std::vector<const Storage *> &allocations,
                                                   const std::vector<StorageCopy> &copies,
                                                   RecordingKind kind) = 0;

  std::map<std::string, Entry> entries;

private:
  /// A range of an entry's commands.
  struct Range {
    size_t begin = 0, end = 0;
    auto operator<=>(const Range &) const = default;
  };
  /// Commands of an entry, with its arguments and results.
  struct Key {
    const Entry *entry;
    Range range;
    std::vector<const Storage *> storages;
    auto operator<=>(const Key &) const = default;
  };
  struct Kept {
    std::unique_ptr<Recording> recording;
    uint64_t lastUse = 0;
  };

  /// Submits a range of commands, and `copies` before them.
  const Recording *submit(const Entry &entry, Range range,
                          const std::vector<const Storage *> &arguments,
                          const std::vector<const Storage *> &results,
                          std::vector<StorageCopy> copies, bool isTimed);
  void checkBuffers(const Entry &entry, const std::vector<const Storage *> &arguments,
                    const std::vector<const Storage *> &results) const;
  void growArena(int64_t bytes);
  const Entry &findEntry(const std::string &name) const;
  std::vector<StorageCopy> getCopies(const Entry &entry,
                                     const std::vector<const Storage *> &arguments,
                                     const std::vector<const Storage *> &results) const;
  std::vector<const Storage *> getAllocations(const Entry &entry,
                                              const std::vector<const Storage *> &arguments,
                                              const std::vector<const Storage *> &results) const;

  Storage constants, arena;

  std::map<Key, Kept> recordings;
  uint64_t uses = 0;
};

} // namespace weir::runtime

#endif // WEIR_LIB_RUNTIME_PROGRAM_H

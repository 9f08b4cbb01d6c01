//===- Artifact.cpp - A whole `.weir` -------------------------------------===//

#include "weir/Artifact/Artifact.h"

#include "Parts.h"
#include "weir/Artifact/FileKind.h"
#include "weir/Artifact/StoredBytes.h"

#include <algorithm>
#include <set>

using namespace weir;

static constexpr const char *manifestPath = "manifest.json";
static constexpr const char *weightsPath = "weights.safetensors";

static std::string getPlanPath(const Plan &plan) {
  return "plan/" + plan.target + "/" + plan.entry + ".json";
}

static std::string getNotesPath(const std::string &target) { return "notes/" + target + ".json"; }

static Bytes toBytes(const std::string &text) { return Bytes(text.begin(), text.end()); }
static std::string toText(const Bytes &bytes) { return std::string(bytes.begin(), bytes.end()); }

const Profile *Artifact::findProfile(const std::string &target) const {
  for (const Profile &profile : manifest.targets)
    if (profile.target == target)
      return &profile;
  return nullptr;
}

std::vector<const Profile *> Artifact::findProfiles(const std::string &baseTarget) const {
  std::vector<const Profile *> profiles;
  for (const Profile &profile : manifest.targets)
    if (getBaseTarget(profile.target) == baseTarget)
      profiles.push_back(&profile);
  return profiles;
}

const Plan *Artifact::findPlan(const std::string &entry, const std::string &target) const {
  for (const Plan &plan : plans)
    if (plan.entry == entry && plan.target == target)
      return &plan;
  return nullptr;
}

const EntryNotes *Artifact::findNotes(const std::string &entry, const std::string &target) const {
  auto found = notes.find(target);
  if (found == notes.end())
    return nullptr;
  for (const EntryNotes &each : found->second.entries)
    if (each.entry == entry)
      return &each;
  return nullptr;
}

//===----------------------------------------------------------------------===//
// Constants
//===----------------------------------------------------------------------===//

/// Returns the bytes of the constant segment, which ends with its last constant. Holes are
/// bounded, so that offsets alone cannot make it large. Errors: `Error`.
static int64_t getSegmentBytes(const Manifest &manifest, const std::string &where) {
  int64_t end = 0, inARow = 0;
  for (const ConstantSpec &constant : manifest.constants) {
    int64_t bytes = getByteSize(constant.tensor);
    end = std::max(end, constant.offset + bytes);
    inARow += (bytes + 255) / 256 * 256;
  }
  if (end > inARow)
    throw Error(where + ": the constant segment has " + std::to_string(end) +
                " bytes, more than its constants in a row need, " + std::to_string(inARow));
  return end;
}

/// Splits the segment into its tensors. Errors: `Error` when it has other bytes, which a reader
/// could not restore.
static std::vector<Tensor> splitConstants(const Artifact &artifact, const std::string &where) {
  const Bytes &segment = artifact.constants;
  int64_t bytes = getSegmentBytes(artifact.manifest, where);
  if (int64_t(segment.size()) != bytes)
    throw Error(where + ": the constant segment has " + std::to_string(segment.size()) +
                " bytes, its last constant ends at " + std::to_string(bytes));
  Bytes holes = segment;
  std::vector<Tensor> tensors;
  for (const ConstantSpec &constant : artifact.manifest.constants) {
    int64_t bytes = getByteSize(constant.tensor);
    auto begin = segment.begin() + constant.offset;
    Tensor tensor{constant.tensor, Bytes(begin, begin + bytes)};
    std::fill_n(holes.begin() + constant.offset, bytes, 0);
    tensors.push_back(std::move(tensor));
  }
  if (std::any_of(holes.begin(), holes.end(), [](unsigned char byte) { return byte != 0; }))
    throw Error(where + ": the constant segment holds bytes that belong to no constant");
  return tensors;
}

static Bytes joinConstants(const Manifest &manifest, const std::vector<Tensor> &tensors,
                           const std::string &where) {
  std::map<std::string, const Tensor *> byName;
  for (const Tensor &tensor : tensors)
    byName[tensor.spec.name] = &tensor;
  if (tensors.size() != manifest.constants.size())
    throw Error(where + " holds " + std::to_string(tensors.size()) + " tensors, the manifest " +
                std::to_string(manifest.constants.size()) + " constants");
  for (const ConstantSpec &constant : manifest.constants) {
    auto found = byName.find(constant.tensor.name);
    if (found == byName.end())
      throw Error(where + " lacks the constant \"" + constant.tensor.name + "\"");
    if (found->second->spec.dtype != constant.tensor.dtype ||
        found->second->spec.shape != constant.tensor.shape)
      throw Error(where + ": tensor \"" + constant.tensor.name +
                  "\" does not have the type and shape that the manifest states");
  }
  // Every tensor exists, so the file's sizes bound those of the manifest.
  Bytes segment(getSegmentBytes(manifest, where));
  for (const ConstantSpec &constant : manifest.constants) {
    const Bytes &data = byName[constant.tensor.name]->data;
    std::copy(data.begin(), data.end(), segment.begin() + constant.offset);
  }
  return segment;
}

//===----------------------------------------------------------------------===//
// Checks across the parts
//===----------------------------------------------------------------------===//

static void checkAllocations(const Plan &plan, const EntrySpec &entry, const Profile &profile,
                             int64_t constantBytes, const std::string &where) {
  bool hasArena = false;
  for (size_t i = 0; i < plan.allocations.size(); ++i) {
    const Allocation &allocation = plan.allocations[i];
    auto fail = [&](const std::string &complaint) {
      throw Error(where + ": allocation " + std::to_string(i) + " " + complaint);
    };
    auto checkTensor = [&](const std::vector<TensorSpec> &tensors, const char *what) {
      if (allocation.index < 0 || size_t(allocation.index) >= tensors.size())
        fail(std::string("is ") + what + " " + std::to_string(allocation.index) + ", entry \"" +
             entry.name + "\" has " + std::to_string(tensors.size()));
      return getStoredBytes(tensors[allocation.index], profile);
    };
    int64_t bytes = 0;
    switch (allocation.kind) {
    case AllocationKind::Argument:
      bytes = checkTensor(entry.arguments, "argument");
      if (allocation.result >= int64_t(entry.results.size()))
        fail("holds result " + std::to_string(allocation.result) + ", entry \"" + entry.name +
             "\" has " + std::to_string(entry.results.size()));
      if (allocation.result >= 0 &&
          getStoredBytes(entry.results[allocation.result], profile) != bytes)
        fail("of " + std::to_string(bytes) + " bytes holds result \"" +
             entry.results[allocation.result].name + "\", which has " +
             std::to_string(getStoredBytes(entry.results[allocation.result], profile)));
      break;
    case AllocationKind::Result:
      bytes = checkTensor(entry.results, "result");
      break;
    case AllocationKind::Constants:
      bytes = constantBytes;
      break;
    case AllocationKind::Arena:
      bytes = plan.arenaBytes;
      hasArena = true;
      break;
    }
    if (allocation.bytes != bytes)
      fail("has " + std::to_string(allocation.bytes) + " bytes, its tensor has " +
           std::to_string(bytes));
    bool single =
        allocation.kind == AllocationKind::Constants || allocation.kind == AllocationKind::Arena;
    if (single && allocation.index != 0)
      fail("has index " + std::to_string(allocation.index) + ", there is only 0 of its kind");
  }
  if (plan.arenaBytes && !hasArena)
    throw Error(where + ": the arena has " + std::to_string(plan.arenaBytes) +
                " bytes, but no allocation is the arena");
}

/// Checks that each argument or result has one value of its size.
static void checkValues(const Plan &plan, const std::vector<int64_t> &values,
                        const std::vector<TensorSpec> &tensors, const Profile &profile,
                        const std::string &where) {
  if (values.size() != tensors.size())
    throw Error(where + " have " + std::to_string(values.size()) + " values, there are " +
                std::to_string(tensors.size()));
  for (size_t i = 0; i < values.size(); ++i) {
    int64_t bytes = values[i] < 0 ? 0 : plan.values[values[i]].bytes;
    if (int64_t needed = getStoredBytes(tensors[i], profile); bytes != needed)
      throw Error(where + ": \"" + tensors[i].name + "\" has " + std::to_string(needed) +
                  " bytes, its value " + std::to_string(bytes));
  }
}

static void checkArtifact(const Artifact &artifact, const std::string &where) {
  const Manifest &manifest = artifact.manifest;
  std::set<std::string> planPaths, named;
  for (const Plan &plan : artifact.plans) {
    std::string place = where + ": " + getPlanPath(plan);
    if (!planPaths.insert(getPlanPath(plan)).second)
      throw Error(place + " is repeated");
    auto entry = std::find_if(manifest.entries.begin(), manifest.entries.end(),
                              [&](const EntrySpec &entry) { return entry.name == plan.entry; });
    const Profile *profile = artifact.findProfile(plan.target);
    if (entry == manifest.entries.end() || !profile)
      throw Error(place + " plans entry \"" + plan.entry + "\" on target \"" + plan.target +
                  "\", which the manifest does not have");
    checkAllocations(plan, *entry, *profile, int64_t(artifact.constants.size()), place);
    checkValues(plan, plan.argumentValues, entry->arguments, *profile, place + ": the arguments");
    checkValues(plan, plan.resultValues, entry->results, *profile, place + ": the results");
    std::string folder = "code/" + plan.target + "/";
    for (const Kernel &kernel : plan.kernels) {
      if (!kernel.code.starts_with(folder) || !isFileName(kernel.code.substr(folder.size())))
        throw Error(place + ": kernel \"" + kernel.name + "\" has its code in \"" + kernel.code +
                    "\", it must be a file of " + folder);
      if (!artifact.code.count(kernel.code))
        throw Error(place + ": the code of kernel \"" + kernel.name + "\", " + kernel.code +
                    ", is missing");
      named.insert(kernel.code);
    }
  }
  for (const Profile &profile : manifest.targets)
    for (const EntrySpec &entry : manifest.entries)
      if (!artifact.findPlan(entry.name, profile.target))
        throw Error(where + ": entry \"" + entry.name + "\" has no plan for target \"" +
                    profile.target + "\"");
  for (const auto &[target, notes] : artifact.notes) {
    std::string place = where + ": " + getNotesPath(target);
    std::set<std::string> noted;
    for (const EntryNotes &entry : notes.entries) {
      if (!noted.insert(entry.entry).second)
        throw Error(place + " has notes on entry \"" + entry.entry + "\" twice");
      if (!artifact.findPlan(entry.entry, target))
        throw Error(place + " has notes on entry \"" + entry.entry +
                    "\", which has no plan for target \"" + target + "\"");
    }
  }
  for (const auto &[path, bytes] : artifact.code)
    if (!named.count(path))
      throw Error(where + ": no kernel names \"" + path + "\"");
}

//===----------------------------------------------------------------------===//
// Reading and writing
//===----------------------------------------------------------------------===//

static bool isIRPath(const std::string &path) {
  return path.starts_with("ir/") && path.ends_with(".mlir") && isFileName(path.substr(3));
}

Artifact weir::readArtifact(const std::string &path) {
  // PyTorch's files are ZIPs, too: say so, rather than refuse the first name inside.
  if (FileKind kind = findFileKind(readBeginning(path)); kind == FileKind::PyTorch)
    throw Error("cannot read artifact \"" + path + "\": " + describeNoArtifact(kind, path));
  Files files = readArchive(path);
  auto take = [&](const std::string &name) {
    auto found = files.find(name);
    if (found == files.end())
      throw Error(path + ": " + name + " is missing");
    Bytes bytes = std::move(found->second);
    files.erase(found);
    return bytes;
  };

  Artifact artifact;
  artifact.manifest = parseManifest(toText(take(manifestPath)), path + ": " + manifestPath);
  if (!artifact.manifest.constants.empty()) {
    std::string where = path + ": " + weightsPath;
    artifact.constants =
        joinConstants(artifact.manifest, parseSafetensors(take(weightsPath), where), where);
  }
  for (const Profile &profile : artifact.manifest.targets)
    for (const EntrySpec &entry : artifact.manifest.entries) {
      Plan expected;
      expected.entry = entry.name;
      expected.target = profile.target;
      std::string name = getPlanPath(expected);
      Plan plan = parsePlan(toText(take(name)), path + ": " + name);
      if (plan.entry != entry.name || plan.target != profile.target)
        throw Error(path + ": " + name + " plans entry \"" + plan.entry + "\" on target \"" +
                    plan.target + "\"");
      artifact.plans.push_back(std::move(plan));
    }
  for (const Profile &profile : artifact.manifest.targets)
    if (std::string name = getNotesPath(profile.target); files.count(name))
      artifact.notes[profile.target] = parseNotes(toText(take(name)), path + ": " + name);
  for (auto &[name, bytes] : files) {
    if (name.starts_with("code/"))
      artifact.code[name] = std::move(bytes);
    else if (isIRPath(name))
      artifact.ir[name] = toText(bytes);
    else
      throw Error(path + ": nothing names the file \"" + name + "\"");
  }
  checkArtifact(artifact, path);
  return artifact;
}

void weir::writeArtifact(const std::string &path, const Artifact &artifact,
                         const CheckWritten &check) {
  // Refuse here what a reader would refuse, before anything is written.
  Files files;
  std::string manifest = printManifest(artifact.manifest);
  parseManifest(manifest, path + ": " + manifestPath);
  files[manifestPath] = toBytes(manifest);
  checkArtifact(artifact, path);
  for (const Plan &plan : artifact.plans) {
    std::string text = printPlan(plan);
    parsePlan(text, path + ": " + getPlanPath(plan));
    files[getPlanPath(plan)] = toBytes(text);
  }
  std::vector<Tensor> tensors = splitConstants(artifact, path);
  if (!tensors.empty())
    files[weightsPath] = printSafetensors(tensors);
  for (const auto &[name, bytes] : artifact.code)
    files[name] = bytes;
  for (const auto &[target, notes] : artifact.notes) {
    std::string text = printNotes(notes);
    parseNotes(text, path + ": " + getNotesPath(target));
    files[getNotesPath(target)] = toBytes(text);
  }
  for (const auto &[name, text] : artifact.ir) {
    if (!isIRPath(name))
      throw Error(path + ": \"" + name +
                  "\" is not a name for IR, expected a name like \"ir/graph.mlir\"");
    files[name] = toBytes(text);
  }
  writeArchive(path, files, check);
}

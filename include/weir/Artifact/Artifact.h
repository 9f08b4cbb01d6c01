//===- Artifact.h - Reading and writing `.weir` files -----------*- C++ -*-===//

#ifndef WEIR_ARTIFACT_ARTIFACT_H
#define WEIR_ARTIFACT_ARTIFACT_H

#include "weir/Artifact/Error.h"
#include "weir/Artifact/Notes.h"
#include "weir/Artifact/Plan.h"

#include <cstddef>
#include <filesystem>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace weir {

using Bytes = std::vector<unsigned char>;

/// The contents of a `.weir` file: path -> bytes.
using Files = std::map<std::string, Bytes>;

/// Reads the whole file. `what` names the expected kind of file in errors, "profile". Errors:
/// `Error`.
Bytes readFile(const std::string &path, const std::string &what);

/// Writes `text` to a temporary file in the same folder, then renames it to `path`. A symbolic
/// link is kept and points to the new file. A device such as /dev/null is written to directly,
/// once the text is complete. Nothing is left behind on an error. Errors: `Error`, also when
/// `path` is a folder, a pipe, a socket or "-".
void writeText(const std::string &path, std::string_view text);

/// A new temporary folder, deleted by the destructor. Errors: `Error` when it cannot be
/// created.
class ScratchFolder {
public:
  ScratchFolder();
  ScratchFolder(const ScratchFolder &) = delete;
  ScratchFolder &operator=(const ScratchFolder &) = delete;
  ~ScratchFolder();
  std::filesystem::path path;
};

/// Checks that `writeText` could write to `path`, before long work starts. Leaves nothing
/// behind. Errors: as `writeText`.
void checkWritable(const std::string &path);

/// Removes the temporary files of functions that write, of all threads. For a handler of a signal
/// that ends the program: makes only calls that POSIX and Linux allow there.
void removeUnfinishedFiles() noexcept;

/// Called with the temporary path of a file that is complete but not yet renamed; may throw.
using CheckWritten = std::function<void(const std::string &path)>;

/// Writes a ZIP of uncompressed entries in the map's order, with fixed times, so that the same
/// files give the same bytes. Writes a temporary file in the same folder, calls `check` (if
/// given) with its path, then renames it. Nothing is left behind on an error. Errors: `Error`.
void writeArchive(const std::string &path, const Files &files, const CheckWritten &check = nullptr);

/// Reads a ZIP. Refuses compressed entries, absolute paths and "..", duplicate
/// names, sizes beyond the file, and CRC mismatches. Errors: `Error`.
Files readArchive(const std::string &path);

/// One tensor and its bytes (row-major, little-endian).
struct Tensor {
  TensorSpec spec;
  Bytes data;
};

/// Prints, parses or reads safetensors. The order of tensors is kept. Errors: `Error` on a
/// header that is malformed or longer than the file, offsets that are out of range, overlap,
/// leave holes or contradict shape and dtype, unknown dtypes, and duplicate names.
Bytes printSafetensors(const std::vector<Tensor> &tensors);
std::vector<Tensor> parseSafetensors(const Bytes &bytes, const std::string &where);
std::vector<Tensor> readSafetensors(const std::string &path);
/// Writes a temporary file and renames it, as `writeArchive`.
void writeSafetensors(const std::string &path, const std::vector<Tensor> &tensors);

/// Reads NumPy's .npy format, versions 1.0 to 3.0: one little-endian array of floats, integers
/// or booleans in C order. Returns a tensor without a name. Errors: `Error` on anything else,
/// and when the number of bytes does not fit the shape.
Tensor parseNpy(const Bytes &bytes, const std::string &where);
Tensor readNpy(const std::string &path);

/// A whole artifact in memory.
struct Artifact {
  Manifest manifest;
  std::vector<Plan> plans;           ///< one per target and entry
  std::map<std::string, Bytes> code; ///< by path, "code/vulkan/map_0.spv", "code/cuda/map_0.ptx"
  Bytes constants;                   ///< the constant segment, holes zero
  std::map<std::string, std::string> ir; ///< by path, "ir/graph.mlir"
  std::map<std::string, Notes> notes;    ///< by target

  /// Returns the profile of a target, or null.
  const Profile *findProfile(const std::string &target) const;
  /// Returns the profiles for one kind of device, in the manifest's order.
  std::vector<const Profile *> findProfiles(const std::string &baseTarget) const;
  /// Returns the plan of an entry on a target, or null.
  const Plan *findPlan(const std::string &entry, const std::string &target) const;
  /// Returns the notes on that plan, or null.
  const EntryNotes *findNotes(const std::string &entry, const std::string &target) const;
};

/// Gives the only target of an artifact another name, which its plans, code and notes are under.
void nameTarget(Artifact &artifact, const std::string &target);

/// Adds to `artifact` the plans and code of `other`, which has the same entries for other
/// targets, and those constants of `other` that `artifact` lacks. Needs: `buildArtifact` made
/// both. Does not check the outcome: `writeArtifact` refuses contradictions.
void addTargets(Artifact &artifact, const Artifact &other);

/// Reads an artifact and checks that its parts fit together: every plan's entry is in the
/// manifest, every kernel's code exists, operand counts match, indices are in range, views lie
/// in their allocations, and allocations have the sizes of their tensors. Does not check order
/// and slots: the verifier does. Errors: `Error` naming file and entry.
Artifact readArtifact(const std::string &path);
/// Writes an artifact; `check` sees the temporary file first (see `writeArchive`).
void writeArtifact(const std::string &path, const Artifact &artifact,
                   const CheckWritten &check = nullptr);

} // namespace weir

#endif // WEIR_ARTIFACT_ARTIFACT_H

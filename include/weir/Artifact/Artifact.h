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

/// A named set of byte strings: what a `.weir` holds, path by path.
using Files = std::map<std::string, Bytes>;

/// The whole file. `what` says in an error what it was to be. Errors:
/// `Error`.
Bytes readFile(const std::string &path, const std::string &what);

/// Writes a text as a whole file: to a temporary name in the same folder, then
/// renames. A link stays, and leads to the new file. A device such as /dev/null is
/// written to when all is made. Nothing is left behind on an error.
/// Errors: `Error`, also where a folder, a pipe or a socket is there, and on "-".
void writeText(const std::string &path, std::string_view text);

/// A folder of its own among the temporary files, which goes away with its owner.
/// Errors: `Error` where none can be made.
class ScratchFolder {
public:
  ScratchFolder();
  ScratchFolder(const ScratchFolder &) = delete;
  ScratchFolder &operator=(const ScratchFolder &) = delete;
  ~ScratchFolder();
  std::filesystem::path path;
};

/// Checks that `writeText` could write there now, for who has much to do first. Leaves
/// nothing behind. Errors: `Error`, as of `writeText`.
void checkWritable(const std::string &path);

/// Called with the path of what is written but does not have its name yet; may throw.
using CheckWritten = std::function<void(const std::string &path)>;

/// Writes a ZIP with stored entries in the map's order, with fixed times, so
/// that the same files give the same bytes. Writes `path` + a temporary suffix
/// in the same folder first; `check`, when given, is called with the temporary
/// path and may throw; then renames. Nothing is left behind on an error.
/// Errors: `Error`.
void writeArchive(const std::string &path, const Files &files, const CheckWritten &check = nullptr);

/// Reads a ZIP. Refuses compressed entries, absolute paths and "..", duplicate
/// names, sizes beyond the file, and CRC mismatches. Errors: `Error`.
Files readArchive(const std::string &path);

/// One tensor and its bytes (row-major, little-endian).
struct Tensor {
  TensorSpec spec;
  Bytes data;
};

/// safetensors in memory and on disk. The order is kept. Errors: `Error` on a
/// header that is malformed or longer than the file, offsets that are out of
/// range, overlap, leave holes or contradict shape and dtype, unknown dtypes,
/// and duplicate names.
Bytes printSafetensors(const std::vector<Tensor> &tensors);
std::vector<Tensor> parseSafetensors(const Bytes &bytes, const std::string &where);
std::vector<Tensor> readSafetensors(const std::string &path);
/// Through a temporary file and a rename, as `writeArchive`.
void writeSafetensors(const std::string &path, const std::vector<Tensor> &tensors);

/// NumPy's .npy file, of versions 1.0 to 3.0: one array of floats, integers or booleans,
/// little-endian, in C order. Gives a tensor without a name. Errors: `Error` on all else,
/// and where the elements are not those of the shape.
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

  /// The plan of an entry on a target, or null.
  const Plan *findPlan(const std::string &entry, const std::string &target) const;
  /// The notes on that plan, or null.
  const EntryNotes *findNotes(const std::string &entry, const std::string &target) const;
};

/// Adds the plans and code of another artifact of the same entries for other
/// targets, and its constants where they differ. Both are as `buildArtifact`
/// makes them: what is left contradictory `writeArtifact` refuses.
void addTargets(Artifact &artifact, const Artifact &other);

/// Errors: `Error` naming file and entry. Cross-checks what the parts say of
/// each other (every plan's entry is in the manifest, every kernel's code is
/// there, operand counts match, indices are in range, views lie in their
/// allocations, allocations have the sizes of their tensors); that the *order*
/// and the *slots* are right is the verifier's business.
Artifact readArtifact(const std::string &path);
/// Writes, then runs `check` on the temporary file (see `writeArchive`).
void writeArtifact(const std::string &path, const Artifact &artifact,
                   const CheckWritten &check = nullptr);

} // namespace weir

#endif // WEIR_ARTIFACT_ARTIFACT_H

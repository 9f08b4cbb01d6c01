//===- Profile.h - Limits and habits of a target ----------------*- C++ -*-===//

#ifndef WEIR_ARTIFACT_PROFILE_H
#define WEIR_ARTIFACT_PROFILE_H

#include <algorithm>
#include <array>
#include <cstdint>
#include <string>
#include <vector>

namespace weir {

/// Units of the device that one row of a row kernel is assigned to.
enum class RowMapping { Lane, Subgroup, Workgroup };

/// Returns the kind of device that a target is for, "cpu" of "cpu" and of "cpu.x86-64-v4": in an
/// artifact that has several profiles for one kind, each profile's name follows a dot.
std::string getBaseTarget(const std::string &target);

/// How factors of products in f32 may be rounded first, where that makes them faster: not at all,
/// or to tf32, which has f32's exponents and 10 bits behind the point.
enum class Precision { F32, Tf32 };

/// The shape of the matrices, in f16 with sums in f32, that the invocations of a subgroup multiply
/// together: rows x products times products x columns. No rows: there are none.
struct CooperativeShape {
  int64_t rows = 0, columns = 0, products = 0;
  bool operator==(const CooperativeShape &) const = default;
};

/// The max number of trips of loops on devices that end none early.
inline constexpr int64_t noLoopLimit = INT32_MAX;

/// The limits and habits of a target. Every kernel obeys the limits; the habits tune the code
/// for speed. The compiler hard-codes no limit. Further thresholds, which are alike for all targets
/// of a kind, stand in lib/Kernels/Tuning.h.
struct Profile {
  std::string name = "lavapipe";
  std::string target = "vulkan"; ///< plan and code folder in an artifact: see `getBaseTarget`
  std::string api = "vulkan1.3"; ///< also spirv-val's environment; or "ptx8.0"
  int64_t sm = 0;                ///< of target cuda: the oldest GPU, 80 for sm_80; else 0
  bool isSmExact = false;        ///< the code runs on GPUs of just that `sm`: sm_90a
  std::string isa;               ///< of target cpu: the instruction set, "x86-64-v3"; else empty

  // Limits.
  int64_t subgroupSize = 8;
  int64_t maxWorkgroupSize = 1024;                        ///< invocations
  int64_t workgroupMemory = 32768;                        ///< bytes
  std::array<int64_t, 3> maxGrid = {65535, 65535, 65535}; ///< workgroups per axis
  int64_t storageBuffersPerStage = 32;
  int64_t bytesPerBinding = int64_t(128) << 20;
  int64_t offsetAlignment = 16; ///< bytes, of a binding's offset
  /// Trips of all loops of an invocation together, each end of a loop counted as one more; further
  /// ones are silently left out.
  int64_t maxLoopTrips = 65535;
  bool float64 = true;
  bool int64 = true;
  bool storage8 = true;  ///< 8-bit integers in storage buffers
  bool storage16 = true; ///< 16-bit elements (i16, f16, bf16) in storage buffers

  // Habits.
  RowMapping rowMapping = RowMapping::Subgroup;
  int64_t workgroupSize = 8;          ///< invocations of a map, row or contraction kernel
  int64_t vectorWidth = 4;            ///< 32-bit elements per load: 1 or 4; of target cpu up to 16
  int64_t privateRowBytes = 4096;     ///< row bytes one invocation may hold
  int64_t elementsPerInvocation = 64; ///< of a map kernel
  int64_t contractionRows = 32;       ///< rows of a subgroup's tile of sums
  int64_t contractionColumns = 4;     ///< columns of that tile per invocation
  int64_t contractionSlab = 0; ///< products that a workgroup shares at once; 0: it shares none
  int64_t slabTile = 8;        ///< rows, and columns, of an invocation where a workgroup shares
  /// Rows, and columns, of a subgroup's sums that instructions on matrices compute; 0: none do.
  int64_t matrixTile = 0;
  int64_t matrixSlab = 32; ///< products that a workgroup shares at once for them
  /// Max number of such slabs in workgroup memory; those behind the first are copied meanwhile.
  int64_t matrixStages = 2;
  CooperativeShape cooperative; ///< of target vulkan: VK_KHR_cooperative_matrix
  Precision precision = Precision::F32;
  bool words64 = true;      ///< vectors of 32-bit elements travel as 64-bit integers
  int64_t columnParts = 64; ///< max number of parts of a reduced column, but for long ones
  int64_t units = 0; ///< that run workgroups; 0: not known, and no sum is cut to keep them busy
  bool unrollPrivate = false; ///< unroll loops over private rows
  int64_t streamedBytes = 0;  ///< a result of as many is stored past the caches; 0: none
  /// Bytes that a workgroup keeps of what stages of its kernel hand on; 0: kernels have no stages.
  int64_t stageBytes = 0;
  int64_t stageGroups = 1; ///< fewest groups of a kernel of stages: as many as keep a device busy
  /// Attention over as many keys is computed in blocks, without a tensor of scores; 0: none is.
  int64_t attentionKeys = 1024;
  int64_t queues = 1; ///< number of queues that dispatches are spread over

  /// Whether a vector of any power of two of elements, up to `vectorWidth`, is loaded and stored
  /// at any element: not only one of four that begins at a multiple of four.
  bool hasFreeVectors() const { return getBaseTarget(target) == "cpu"; }

  /// Whether vectors of four elements of 16 bits are loaded and stored at once.
  bool hasShortVectors() const { return getBaseTarget(target) == "cuda"; }

  /// Whether workgroups copy from memory to their own while they compute: `cp.async`.
  bool copiesAsynchronously() const { return sm >= 80; }

  /// Returns the name of the GPU that code of target cuda is for, "sm_90a".
  std::string getChip() const { return "sm_" + std::to_string(sm) + (isSmExact ? "a" : ""); }

  /// Returns the bytes of workgroup memory that code may declare with a size; on CUDA the launch
  /// states larger sizes.
  int64_t getDeclaredMemory() const {
    constexpr int64_t cudaDeclared = 49152;
    return sm ? std::min(workgroupMemory, cudaDeclared) : workgroupMemory;
  }

  /// Whether there is an instruction that rounds a product and a sum together.
  bool hasFma() const { return isa != "x86-64-v2"; }

  bool operator==(const Profile &) const = default;
};

/// Returns how good a profile is among those for one kind of device: the greatest that a device
/// runs is the best. Profiles of one rank are equally good.
int64_t getRank(const Profile &profile);

/// Returns the built-in profile `name`: lavapipe, nvidia, rdna2, rdna3, gcn, xe, gen9, adreno6,
/// adreno7, valhall, apple, v3d, powervr, minimum, vulkan13, sm_80, sm_90, sm_90a, x86-64-v2,
/// x86-64-v3, x86-64-v4 or aarch64. Errors: `Error` naming the built-in ones.
Profile getBuiltinProfile(const std::string &name);

/// Returns the names of the built-in profiles of a target, "vulkan", "cuda" or "cpu".
std::vector<std::string> getBuiltinProfileNames(const std::string &target);

/// Reads a profile that has all keys from JSON text; `where` names it in errors.
/// Errors: `Error` on bad JSON, an unknown or missing key, a wrong type, or a value that no target
/// can have (sizes below 1, a subgroup size or alignment
///         that is not a power of two, a vector width other than 1 or 4, a workgroup that is not
///         a multiple of the subgroup, or larger than the largest, more than 64 rows or 8 columns
///         of a contraction's tile, a slab of more than 64 products or no multiple of 4, a slab's
///         tile other than 4, 8 or 16, a matrix tile other than 0, 32 or 64 or without an `sm` of
///         80, tf32 without a matrix tile, a matrix slab other than 16, 32 or 64, matrix stages
///         other than 2, 3 or 4, `words64` without `int64`, an `sm` missing on cuda or present
///         elsewhere, on cuda more workgroup memory than GPUs of that `sm` have, `sm_exact` with
///         an `sm` other than 90).
Profile parseProfile(const std::string &json, const std::string &where);

/// Writes a profile as JSON: all keys, one a line, in the order above.
std::string printProfile(const Profile &profile);

/// Returns the built-in profile of that name, or for "native" the best one for this processor, with
/// as many `stageGroups` as it has threads; else reads the file of that path. A file with "like"
/// and the name of a built-in profile may leave out keys, which it then has from that profile.
/// Errors: those of `parseProfile`, and `Error` naming the built-in profiles when "like" names
/// none.
Profile loadProfile(const std::string &nameOrPath);

} // namespace weir

#endif // WEIR_ARTIFACT_PROFILE_H

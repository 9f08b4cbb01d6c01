//===- Profile.cpp - Limits and habits of a target ------------------------===//

#include "weir/Artifact/Profile.h"

#include "Json.h"
#include "Parts.h"
#include "VulkanProfiles.h"
#include "weir/Artifact/Error.h"
#include "weir/Artifact/Plan.h"
#include "weir/Artifact/Processor.h"

#include <algorithm>
#include <array>
#include <bit>
#include <string_view>
#include <thread>

using namespace weir;
using ordered_json = nlohmann::ordered_json;

/// Max tile of a contraction: each accumulator has a name in the code, which grows with them.
static constexpr int64_t maxContractionRows = 64, maxContractionColumns = 8;
static constexpr int64_t maxSlab = 64, maxSlabTile = 16, slabVector = 4;
/// Of a subgroup's tile by instructions on matrices, and of the products of one instruction.
static constexpr int64_t maxMatrixTile = 64, matrixTileUnit = 32, matrixProducts = 16;
static constexpr int64_t minMatrixStages = 2, maxMatrixStages = 4;
/// The first GPUs with mma of bf16 and with ldmatrix.
static constexpr int64_t matrixSm = 80;

/// The GPUs with instructions on matrices of four subgroups, which no later GPU has.
static constexpr int64_t groupMatrixSm = 90;

/// Of cooperative matrices: a profile without, the types, and the rows, columns and products.
static constexpr const char *noMatrices = "none", *cooperativeTypes = " f16 f32";
static constexpr int64_t cooperativeSizes[] = {8, 16, 32};

/// A stack has room for them beside the copies of a contraction.
static constexpr int64_t maxStageBytes = int64_t(4) << 20;

static constexpr const char *vulkanTarget = "vulkan";
static constexpr const char *cudaTarget = "cuda";
static constexpr const char *cpuTarget = "cpu";

/// Names the best built-in profile for this processor.
static constexpr const char *nativeName = "native";

/// The better ones of an architecture follow.
static const char *const isas[] = {"x86-64-v2", "x86-64-v3", "x86-64-v4", "aarch64"};

/// Names the built-in profile that has the keys which a profile's own file leaves out.
static constexpr const char *likeKey = "like";

static const char *const rowMappings[] = {"lane", "subgroup", "workgroup"};
static const char *const precisions[] = {"f32", "tf32"};

std::string weir::getBaseTarget(const std::string &target) {
  return target.substr(0, target.find('.'));
}

int64_t weir::getRank(const Profile &profile) {
  // On Vulkan, instructions on matrices are worth most, then larger subgroups.
  constexpr int64_t largerThanSubgroups = int64_t(1) << 32;
  if (getBaseTarget(profile.target) == vulkanTarget)
    return (profile.cooperative.rows ? largerThanSubgroups : 0) + profile.subgroupSize;
  return profile.isa.empty() ? 2 * profile.sm + profile.isSmExact
                             : std::find(std::begin(isas), std::end(isas), profile.isa) - isas;
}

/// Returns "16x16x16 f16 f32": rows, columns and products, the types of factors and sums.
static std::string printCooperative(const CooperativeShape &shape) {
  if (!shape.rows)
    return noMatrices;
  return std::to_string(shape.rows) + "x" + std::to_string(shape.columns) + "x" +
         std::to_string(shape.products) + cooperativeTypes;
}

static CooperativeShape readCooperative(const JsonNode &node, bool isVulkan) {
  std::string text = node.name();
  if (text == noMatrices)
    return {};
  if (!isVulkan)
    node.fail("is \"" + text + "\", which needs target vulkan");
  for (int64_t rows : cooperativeSizes)
    for (int64_t columns : cooperativeSizes)
      for (int64_t products : cooperativeSizes)
        if (CooperativeShape shape = {rows, columns, products}; printCooperative(shape) == text)
          return shape;
  node.fail("is \"" + text +
            "\", expected \"none\" or rows x columns x products and types, such as \"16x16x16 f16 "
            "f32\"; sizes are 8, 16 or 32, factors f16 and sums f32");
}

ordered_json weir::toJson(const Profile &profile) {
  ordered_json object = {{"name", profile.name}, {"target", profile.target}, {"api", profile.api}};
  if (profile.sm)
    object["sm"] = profile.sm;
  if (profile.isSmExact)
    object["sm_exact"] = true;
  if (!profile.isa.empty())
    object["isa"] = profile.isa;
  object.update({{"subgroup_size", profile.subgroupSize},
                 {"max_workgroup_size", profile.maxWorkgroupSize},
                 {"workgroup_memory", profile.workgroupMemory},
                 {"max_grid", profile.maxGrid},
                 {"storage_buffers_per_stage", profile.storageBuffersPerStage},
                 {"bytes_per_binding", profile.bytesPerBinding},
                 {"offset_alignment", profile.offsetAlignment},
                 {"max_loop_trips", profile.maxLoopTrips},
                 {"float64", profile.float64},
                 {"int64", profile.int64},
                 {"storage8", profile.storage8},
                 {"storage16", profile.storage16},
                 {"row_mapping", rowMappings[size_t(profile.rowMapping)]},
                 {"workgroup_size", profile.workgroupSize},
                 {"vector_width", profile.vectorWidth},
                 {"private_row_bytes", profile.privateRowBytes},
                 {"elements_per_invocation", profile.elementsPerInvocation},
                 {"contraction_rows", profile.contractionRows},
                 {"contraction_columns", profile.contractionColumns},
                 {"contraction_slab", profile.contractionSlab},
                 {"slab_tile", profile.slabTile},
                 {"matrix_tile", profile.matrixTile},
                 {"matrix_slab", profile.matrixSlab},
                 {"matrix_stages", profile.matrixStages},
                 {"cooperative_matrix", printCooperative(profile.cooperative)},
                 {"precision", precisions[size_t(profile.precision)]},
                 {"words64", profile.words64},
                 {"column_parts", profile.columnParts},
                 {"units", profile.units},
                 {"unroll_private", profile.unrollPrivate},
                 {"streamed_bytes", profile.streamedBytes},
                 {"stage_bytes", profile.stageBytes},
                 {"stage_groups", profile.stageGroups},
                 {"attention_keys", profile.attentionKeys},
                 {"queues", profile.queues}});
  return object;
}

/// Returns the bytes of workgroup memory that one workgroup may have if its launch asks for them.
/// Source: table "Technical Specifications per Compute Capability", CUDA C++ Programming Guide.
static int64_t getMaxWorkgroupMemory(int64_t sm) {
  constexpr int64_t kib = 1024;
  for (auto [known, size] : {std::pair<int64_t, int64_t>(86, 99), {89, 99}, {120, 99}, {121, 99}})
    if (sm == known)
      return size * kib;
  return (sm < 90 ? 163 : 227) * kib;
}

Profile weir::readProfile(const JsonNode &node) {
  node.object({"name",
               "target",
               "api",
               "subgroup_size",
               "max_workgroup_size",
               "workgroup_memory",
               "max_grid",
               "storage_buffers_per_stage",
               "bytes_per_binding",
               "offset_alignment",
               "max_loop_trips",
               "float64",
               "int64",
               "storage8",
               "storage16",
               "row_mapping",
               "workgroup_size",
               "vector_width",
               "private_row_bytes",
               "elements_per_invocation",
               "contraction_rows",
               "contraction_columns",
               "contraction_slab",
               "slab_tile",
               "matrix_tile",
               "matrix_slab",
               "matrix_stages",
               "cooperative_matrix",
               "precision",
               "words64",
               "column_parts",
               "units",
               "unroll_private",
               "streamed_bytes",
               "stage_bytes",
               "stage_groups",
               "attention_keys",
               "queues"},
              {"sm", "sm_exact", "isa"});
  auto count = [&](std::string_view key) {
    return node[key].integer(1, std::numeric_limits<uint32_t>::max());
  };
  Profile profile;
  profile.name = node["name"].name();
  profile.target = readFileName(node["target"]);
  profile.api = node["api"].name();
  std::string base = getBaseTarget(profile.target);
  bool isCuda = base == cudaTarget, isCpu = base == cpuTarget;
  if (node.has("sm") != isCuda)
    node["target"].fail(isCuda ? "is cuda, which needs \"sm\""
                               : "is not cuda, which alone has \"sm\"");
  if (node.has("isa") != isCpu)
    node["target"].fail(isCpu ? "is cpu, which needs \"isa\""
                              : "is not cpu, which alone has \"isa\"");
  if (node.has("isa"))
    profile.isa = isas[node["isa"].choice({isas[0], isas[1], isas[2], isas[3]})];
  if (node.has("sm"))
    profile.sm = node["sm"].integer(1, 999);
  if (node.has("sm_exact"))
    profile.isSmExact = node["sm_exact"].boolean();
  profile.subgroupSize = node["subgroup_size"].alignment();
  profile.maxWorkgroupSize = count("max_workgroup_size");
  profile.workgroupMemory = count("workgroup_memory");
  profile.maxGrid = readTriple(node["max_grid"]);
  profile.storageBuffersPerStage = count("storage_buffers_per_stage");
  profile.bytesPerBinding = node["bytes_per_binding"].integer(1, maxBytes);
  profile.offsetAlignment = node["offset_alignment"].alignment();
  profile.maxLoopTrips = node["max_loop_trips"].integer(1);
  profile.float64 = node["float64"].boolean();
  profile.int64 = node["int64"].boolean();
  profile.storage8 = node["storage8"].boolean();
  profile.storage16 = node["storage16"].boolean();
  profile.rowMapping =
      RowMapping(node["row_mapping"].choice({rowMappings[0], rowMappings[1], rowMappings[2]}));
  profile.workgroupSize = count("workgroup_size");
  profile.vectorWidth = count("vector_width");
  profile.privateRowBytes = count("private_row_bytes");
  profile.elementsPerInvocation = count("elements_per_invocation");
  profile.contractionRows = node["contraction_rows"].integer(1, maxContractionRows);
  profile.contractionColumns = node["contraction_columns"].integer(1, maxContractionColumns);
  profile.contractionSlab = node["contraction_slab"].integer(0, maxSlab);
  profile.slabTile = node["slab_tile"].integer(1, maxSlabTile);
  profile.matrixTile = node["matrix_tile"].integer(0, maxMatrixTile);
  profile.matrixSlab = node["matrix_slab"].integer(matrixProducts, maxSlab);
  profile.matrixStages = node["matrix_stages"].integer(minMatrixStages, maxMatrixStages);
  profile.cooperative = readCooperative(node["cooperative_matrix"], base == "vulkan");
  profile.precision = Precision(node["precision"].choice({precisions[0], precisions[1]}));
  profile.words64 = node["words64"].boolean();
  profile.columnParts = count("column_parts");
  profile.units = node["units"].integer(0, std::numeric_limits<uint32_t>::max());
  profile.unrollPrivate = node["unroll_private"].boolean();
  profile.streamedBytes = node["streamed_bytes"].integer(0, maxBytes);
  profile.stageBytes = node["stage_bytes"].integer(0, maxStageBytes);
  profile.stageGroups = count("stage_groups");
  profile.attentionKeys = node["attention_keys"].integer(0, std::numeric_limits<uint32_t>::max());
  profile.queues = node["queues"].integer(1, maxQueues);

  if (profile.vectorWidth != 1 && profile.vectorWidth != 4 &&
      !(isCpu && (profile.vectorWidth == 8 || profile.vectorWidth == 16)))
    node["vector_width"].fail("is " + std::to_string(profile.vectorWidth) + ", it must be 1" +
                              (isCpu ? ", 4, 8 or 16" : " or 4"));
  if (profile.contractionSlab % slabVector)
    node["contraction_slab"].fail("is " + std::to_string(profile.contractionSlab) +
                                  ", it must be a multiple of " + std::to_string(slabVector));
  if (profile.slabTile % slabVector || !std::has_single_bit(uint64_t(profile.slabTile)))
    node["slab_tile"].fail("is " + std::to_string(profile.slabTile) + ", it must be 4, 8 or 16");
  if (profile.matrixTile % matrixTileUnit)
    node["matrix_tile"].fail("is " + std::to_string(profile.matrixTile) +
                             ", it must be a multiple of " + std::to_string(matrixTileUnit));
  if (profile.matrixSlab & (profile.matrixSlab - 1))
    node["matrix_slab"].fail("is " + std::to_string(profile.matrixSlab) +
                             ", it must be a power of two");
  if (profile.matrixTile && profile.sm < matrixSm)
    node["matrix_tile"].fail("is " + std::to_string(profile.matrixTile) +
                             ", which needs target cuda and an \"sm\" of " +
                             std::to_string(matrixSm) + " or more");
  if (profile.isSmExact && profile.sm != groupMatrixSm)
    node["sm_exact"].fail("is true, which needs an \"sm\" of " + std::to_string(groupMatrixSm));
  if (isCuda && profile.workgroupMemory > getMaxWorkgroupMemory(profile.sm))
    node["workgroup_memory"].fail("is " + std::to_string(profile.workgroupMemory) +
                                  ", a workgroup has at most " +
                                  std::to_string(getMaxWorkgroupMemory(profile.sm)) +
                                  " bytes on GPUs of sm_" + std::to_string(profile.sm));
  if (profile.precision == Precision::Tf32 && !profile.matrixTile)
    node["precision"].fail("is \"tf32\", which needs a \"matrix_tile\"");
  if (profile.cooperative.rows && !profile.storage16)
    node["cooperative_matrix"].fail("is \"" + printCooperative(profile.cooperative) +
                                    "\", which needs \"storage16\"");
  if (profile.words64 && !profile.int64)
    node["words64"].fail("is true, which needs \"int64\"");
  if (profile.workgroupSize > profile.maxWorkgroupSize)
    node["workgroup_size"].fail("is " + std::to_string(profile.workgroupSize) +
                                ", more than the largest workgroup, " +
                                std::to_string(profile.maxWorkgroupSize));
  if (profile.workgroupSize % profile.subgroupSize)
    node["workgroup_size"].fail("is " + std::to_string(profile.workgroupSize) +
                                ", it must be a multiple of the subgroup size, " +
                                std::to_string(profile.subgroupSize));
  return profile;
}

/// Returns a profile for a compute capability. Its limits hold for all later ones, but that of
/// workgroup memory.
static Profile makeCudaProfile(int64_t sm, bool isExact = false) {
  Profile profile;
  profile.isSmExact = isExact;
  profile.target = cudaTarget;
  profile.api = "ptx8.0";
  profile.sm = sm;
  profile.name = profile.getChip();
  profile.subgroupSize = 32;
  profile.workgroupMemory = getMaxWorkgroupMemory(sm);
  profile.maxGrid = {std::numeric_limits<int32_t>::max(), 65535, 65535};
  profile.storageBuffersPerStage = 512; // 4096 bytes of parameters
  profile.bytesPerBinding = int64_t(1) << 40;
  profile.maxLoopTrips = noLoopLimit;
  profile.rowMapping = RowMapping::Workgroup;
  profile.workgroupSize = 256;
  profile.privateRowBytes = 128;
  profile.elementsPerInvocation = 4;
  profile.contractionRows = 8;
  profile.contractionSlab = 16; // measured on an H200: 13% faster than 8 for 4096 x 4096 x 4096
  profile.attentionKeys = 512;
  profile.matrixTile = maxMatrixTile;
  profile.matrixStages = maxMatrixStages;
  profile.words64 = false;
  profile.columnParts = 1024;
  profile.units = sm < 90 ? 108 : 132; // of an A100, an H100
  profile.unrollPrivate = true;
  return profile;
}

/// One invocation is a workgroup, a thread walks them.
static Profile makeCpuProfile(const char *isa, int64_t vectorWidth, int64_t registers) {
  Profile profile;
  profile.name = isa;
  profile.target = cpuTarget;
  profile.api = "elf";
  profile.isa = isa;
  profile.subgroupSize = 1;
  profile.maxWorkgroupSize = 1;
  profile.workgroupMemory = 262144; // on a thread's stack
  profile.maxGrid.fill(std::numeric_limits<int32_t>::max());
  profile.storageBuffersPerStage = 1024;
  profile.bytesPerBinding = int64_t(1) << 40;
  profile.offsetAlignment = 64; // a line of the cache, and the longest vector
  profile.maxLoopTrips = noLoopLimit;
  profile.rowMapping = RowMapping::Lane;
  profile.workgroupSize = 1;
  profile.privateRowBytes = 65536;      // in L2
  profile.elementsPerInvocation = 4096; // vectors
  profile.vectorWidth = vectorWidth;
  // The sums leave room for a vector of each column, for a row's number and, where product and sum
  // are two instructions, for the product.
  profile.contractionColumns = 2;
  profile.contractionRows = 3 * registers / 8 - (profile.hasFma() ? 0 : 1);
  profile.words64 = false;
  profile.attentionKeys = 512;           // fewer fit the memory of stages
  profile.stageBytes = int64_t(1) << 20; // in L2
  profile.stageGroups = 8;               // this many threads are common
  // Larger than what the caches keep of a kernel's operands and result together. On the processors
  // of aarch64 nothing was measured.
  profile.streamedBytes = profile.isa == "aarch64" ? 0 : int64_t(12) << 20;
  return profile;
}

static const std::vector<Profile> &getBuiltinProfiles() {
  static const std::vector<Profile> profiles = [] {
    std::vector<Profile> made = makeVulkanProfiles();
    made.insert(made.begin(), Profile());
    made.insert(made.end(),
                {makeCudaProfile(80), makeCudaProfile(90), makeCudaProfile(90, /*isExact=*/true),
                 makeCpuProfile(isas[0], /*vectorWidth=*/4, /*registers=*/16),
                 makeCpuProfile(isas[1], /*vectorWidth=*/8, /*registers=*/16),
                 makeCpuProfile(isas[2], /*vectorWidth=*/16, /*registers=*/32),
                 makeCpuProfile(isas[3], /*vectorWidth=*/4, /*registers=*/32)});
    return made;
  }();
  return profiles;
}

static const Profile *findBuiltinProfile(std::string_view name) {
  for (const Profile &profile : getBuiltinProfiles())
    if (profile.name == name)
      return &profile;
  return nullptr;
}

/// Returns "lavapipe, sm_80, ... and aarch64".
static std::string listBuiltinProfiles() {
  std::string names;
  for (const Profile &profile : getBuiltinProfiles()) {
    if (!names.empty())
      names += &profile == &getBuiltinProfiles().back() ? " and " : ", ";
    names += profile.name;
  }
  return names;
}

Profile weir::getBuiltinProfile(const std::string &name) {
  if (const Profile *profile = findBuiltinProfile(name))
    return *profile;
  throw Error("no built-in profile is called \"" + name + "\"; there are " + listBuiltinProfiles() +
              ", and `weir devices --emit-profile` writes one for this machine");
}

std::vector<std::string> weir::getBuiltinProfileNames(const std::string &target) {
  std::vector<std::string> names;
  for (const Profile &profile : getBuiltinProfiles())
    if (profile.target == target)
      names.push_back(profile.name);
  return names;
}

Profile weir::parseProfile(const std::string &json, const std::string &where) {
  Json tree = parseJson(json, where);
  return readProfile(JsonNode(tree, where));
}

/// Reads the text of a profile's own file, which may have "like" in place of keys.
static Profile parseProfileFile(const std::string &json, const std::string &where) {
  Json tree = parseJson(json, where);
  JsonNode node(tree, where);
  if (!node.has(likeKey))
    return readProfile(node);
  const Profile *base = findBuiltinProfile(node[likeKey].string());
  if (!base)
    node[likeKey].fail("is \"" + node[likeKey].string() + "\", the built-in profiles are " +
                       listBuiltinProfiles());
  ordered_json whole = toJson(*base);
  whole.update(ordered_json::parse(json));
  whole.erase(likeKey);
  // Another GPU has as much memory as there is on it, not as the base has.
  if (node.has("sm") && !node.has("workgroup_memory"))
    whole["workgroup_memory"] =
        std::min(base->workgroupMemory, getMaxWorkgroupMemory(node["sm"].integer(0)));
  return parseProfile(whole.dump(), where);
}

std::string weir::printProfile(const Profile &profile) { return printJson(toJson(profile)); }

/// Returns the best profile for this processor.
static Profile getNativeProfile() {
  std::vector<std::string> isas = getProcessorIsas();
  if (isas.empty())
    throw Error("no built-in profile is for this processor");
  Profile profile = getBuiltinProfile(isas.back());
  profile.stageGroups = std::max(1u, std::thread::hardware_concurrency());
  return profile;
}

Profile weir::loadProfile(const std::string &nameOrPath) {
  if (const Profile *profile = findBuiltinProfile(nameOrPath))
    return *profile;
  if (nameOrPath == nativeName)
    return getNativeProfile();
  Bytes text =
      readFile(nameOrPath, "profile (the built-in ones are " + listBuiltinProfiles() + ")");
  return parseProfileFile(std::string(text.begin(), text.end()), nameOrPath);
}

//===- RefusalTest.cpp - Refusals of readers and writers ------------------===//

#include "Refusal.h"
#include "Sample.h"

#include "gtest/gtest.h"

#include <fstream>
#include <functional>
#include <zip.h>

using namespace weir;
using namespace weir::test;

/// Returns `text` with its first `from` replaced; fails if there is none.
static std::string replace(std::string text, const std::string &from, const std::string &to) {
  size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << "no " << from;
  return at == std::string::npos ? text : text.replace(at, from.size(), to);
}

namespace {
/// An edit of a valid text, and the resulting error.
struct TextEdit {
  const char *from, *to, *error;
};
} // namespace

//===----------------------------------------------------------------------===//
// JSON and profiles
//===----------------------------------------------------------------------===//

TEST(Profile, reads_back_what_was_printed) {
  Profile profile;
  profile.name = "other \"quoted\" \xc3\xa9";
  profile.rowMapping = RowMapping::Workgroup;
  profile.maxGrid = {1, 2, 3};
  profile.unrollPrivate = true;
  profile.maxLoopTrips = INT64_MAX;
  EXPECT_EQ(parseProfile(printProfile(profile), "p"), profile);
  EXPECT_EQ(parseProfile(printProfile(Profile()), "p"), Profile());
  EXPECT_EQ(getBuiltinProfile("lavapipe"), Profile());
  for (const char *name : {"sm_80", "sm_90", "sm_90a"}) {
    Profile cuda = getBuiltinProfile(name);
    EXPECT_EQ(cuda.name, name);
    EXPECT_EQ(parseProfile(printProfile(cuda), "p"), cuda);
  }
}

/// A family's limits are those of a device whatever its habits: all of them are valid.
TEST(Profile, of_families_of_gpus) {
  for (const std::string &name : getBuiltinProfileNames("vulkan")) {
    Profile profile = getBuiltinProfile(name);
    EXPECT_EQ(parseProfile(printProfile(profile), "p"), profile);
    EXPECT_EQ(profile.target, "vulkan");
    EXPECT_EQ(profile.contractionSlab > 0, name != "lavapipe");
  }
  EXPECT_EQ(getBuiltinProfileNames("vulkan").size(), 15u);
  EXPECT_EQ(getBuiltinProfileNames("cuda"), (std::vector<std::string>{"sm_80", "sm_90", "sm_90a"}));
}

TEST(Profile, prints_one_key_a_line) {
  std::string text = printProfile(Profile());
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 40);
  EXPECT_TRUE(text.starts_with("{\n\"name\": \"lavapipe\",\n\"target\": \"vulkan\",\n")) << text;
}

/// Loads a profile's own file that has `text`.
static Profile loadText(const std::string &text) {
  TemporaryFolder folder;
  std::ofstream(folder / "p.json") << text;
  return loadProfile(folder / "p.json");
}

TEST(Profile, is_like_a_built_in_one) {
  Profile profile;
  EXPECT_EQ(loadText(R"({"like": "lavapipe"})"), profile);
  profile.name = "mine";
  profile.maxGrid = {1, 2, 3};
  profile.float64 = false;
  std::string text = R"({"name": "mine", "max_grid": [1, 2, 3], "float64": false, )";
  EXPECT_EQ(loadText(text + R"("like": "lavapipe"})"), profile);
  EXPECT_EQ(printProfile(loadText(text + R"("like": "lavapipe"})")), printProfile(profile));
  EXPECT_ERROR(loadText(text + R"("queues": 1})"), "lacks the key \"target\"");

  Profile cuda = getBuiltinProfile("sm_90");
  cuda.sm = 86;
  cuda.workgroupMemory = 101376;
  EXPECT_EQ(loadText(R"({"like": "sm_90", "sm": 86})"), cuda);
}

TEST(Profile, of_cooperative_matrices) {
  EXPECT_EQ(
      loadText(R"({"like": "lavapipe", "cooperative_matrix": "8x16x32 f16 f32"})").cooperative,
      (CooperativeShape{8, 16, 32}));
  EXPECT_EQ(getBuiltinProfile("nvidia").cooperative, (CooperativeShape{16, 16, 16}));
  EXPECT_ERROR(loadText(R"({"like": "sm_80", "cooperative_matrix": "16x16x16 f16 f32"})"),
               "\"cooperative_matrix\" is \"16x16x16 f16 f32\", which needs target vulkan");
  EXPECT_ERROR(loadText(R"({"like": "nvidia", "storage16": false})"),
               "\"cooperative_matrix\" is \"16x16x16 f16 f32\", which needs \"storage16\"");
}

TEST(Profile, of_a_processor_may_have_wide_vectors) {
  EXPECT_EQ(loadText(R"({"like": "x86-64-v4", "vector_width": 8})").vectorWidth, 8);
  EXPECT_ERROR(loadText(R"({"like": "x86-64-v4", "vector_width": 12})"),
               "\"vector_width\" is 12, it must be 1, 4, 8 or 16");
  EXPECT_ERROR(loadText(R"({"like": "lavapipe", "vector_width": 8})"), "it must be 1 or 4");
  EXPECT_ERROR(loadText(R"({"like": "lavapipe", "isa": "x86-64-v3"})"), "which alone has \"isa\"");
  EXPECT_TRUE(loadText(R"({"like": "x86-64-v4", "target": "cpu.wide"})").hasFreeVectors());
  EXPECT_ERROR(loadText(R"({"like": "x86-64-v4", "target": "cpus"})"), "which alone has \"isa\"");
  EXPECT_ERROR(loadText(R"({"like": "x86-64-v3", "isa": "x86-64-v1"})"), "\"isa\"");
}

TEST(Profile, refuses_what_is_like_none) {
  EXPECT_ERROR(loadText(R"({"like": "mesa"})"),
               "p.json: \"like\" is \"mesa\", the built-in profiles are lavapipe, nvidia, rdna2, "
               "rdna3, gcn, xe, gen9, adreno6, adreno7, valhall, apple, v3d, powervr, minimum, "
               "vulkan13, sm_80, sm_90, sm_90a, x86-64-v2, x86-64-v3, x86-64-v4 and aarch64");
  EXPECT_ERROR(loadText(R"({"like": true})"), "p.json: \"like\" must be a string");
  EXPECT_ERROR(loadText(R"({"like": "lavapipe", "nane": "b"})"),
               "p.json: the file has the unknown key \"nane\"");
  EXPECT_ERROR(loadText(R"({"like": "lavapipe", "name": "a", "name": "b"})"), "is repeated");
  EXPECT_ERROR(loadText(R"({"like": "lavapipe", "workgroup_size": 12})"),
               "p.json: \"workgroup_size\" is 12");
  EXPECT_ERROR(loadText(R"({"like": "lavapipe", "target": "cuda"})"), "needs \"sm\"");
  EXPECT_ERROR(loadText(R"({"like": "sm_80", "target": "vulkan"})"), "which alone has \"sm\"");
  EXPECT_ERROR(
      loadText(R"({"like": "sm_80", "sm": 89, "workgroup_memory": 166912})"),
      "\"workgroup_memory\" is 166912, a workgroup has at most 101376 bytes on GPUs of sm_89");
  EXPECT_EQ(loadText(R"({"like": "sm_80", "sm": 89})").workgroupMemory, 101376);
  EXPECT_ERROR(loadText(R"({"like": "sm_90", "workgroup_memory": 232449})"), "at most 232448");
  EXPECT_EQ(loadText(R"({"like": "sm_90", "workgroup_memory": 232448})").workgroupMemory, 232448);
  EXPECT_ERROR(loadText(R"({"like": "sm_80", "sm_exact": true})"),
               "\"sm_exact\" is true, which needs an \"sm\" of 90");
  EXPECT_EQ(getBuiltinProfile("sm_90a").getChip(), "sm_90a");
  // Only in a file of its own.
  EXPECT_ERROR(parseProfile(R"({"like": "lavapipe"})", "p.json"), "unknown key \"like\"");
}

TEST(Profile, loads_by_name_and_by_path) {
  TemporaryFolder folder;
  Profile profile;
  profile.name = "mine";
  std::ofstream(folder / "p.json") << printProfile(profile);
  EXPECT_EQ(loadProfile(folder / "p.json"), profile);
  EXPECT_EQ(loadProfile("lavapipe"), Profile());
  EXPECT_ERROR(loadProfile(folder / "q.json"), "No such file");
  EXPECT_ERROR(loadProfile(folder / ""), "it is a folder");
  EXPECT_ERROR(
      getBuiltinProfile("mine"),
      "there are lavapipe, nvidia, rdna2, rdna3, gcn, xe, gen9, adreno6, adreno7, valhall, apple, "
      "v3d, powervr, minimum, vulkan13, sm_80, sm_90, sm_90a, x86-64-v2, x86-64-v3, x86-64-v4 and "
      "aarch64");
}

static const TextEdit profileEdits[] = {
    {"{", "", "malformed JSON"},
    {"}", "", "malformed JSON"},
    {"}", "} {}", "malformed JSON"},
    {"{", "[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[{", "more than 32 levels"},
    {"\"name\": \"lavapipe\"", "\"name\": null", "null has no meaning"},
    {"\"name\": \"lavapipe\"", "\"name\": \"a\\u0000b\"", "NUL"},
    {"\"name\": \"lavapipe\"", "\"name\": \"a\\nb\"", "\"name\" must not contain control"},
    {"\"name\": \"lavapipe\"", "\"name\": \"\xff\"", "last read: '\"?'"},
    {"\"name\": \"lavapipe\"", "\"name\": \"\"", "\"name\" must not be empty"},
    {"\"name\": \"lavapipe\"", "\"name\": 7", "\"name\" must be a string"},
    {"\"name\": \"lavapipe\"", "\"name\": \"a\", \"name\": \"b\"", "is repeated in one object"},
    {"\"name\": \"lavapipe\"", "\"name\": \"a\", \"nane\": \"b\"", "unknown key \"nane\""},
    {"\"name\": \"lavapipe\",", "", "lacks the key \"name\""},
    {"\"target\": \"vulkan\"", "\"target\": \"../x\"", "cannot name a file"},
    {"\"subgroup_size\": 8", "\"subgroup_size\": 0", "must be at least 1"},
    {"\"subgroup_size\": 8", "\"subgroup_size\": 6", "power of two"},
    {"\"subgroup_size\": 8", "\"subgroup_size\": 8.0", "not an integer"},
    {"\"subgroup_size\": 8", "\"subgroup_size\": 1e999", "malformed JSON"},
    {"\"subgroup_size\": 8", "\"subgroup_size\": NaN", "malformed JSON"},
    {"\"subgroup_size\": 8", "\"subgroup_size\": \"8\"", "must be an integer"},
    {"\"subgroup_size\": 8", "\"subgroup_size\": 18446744073709551615", "exceeds 64 bits"},
    {"\"subgroup_size\": 8", "\"subgroup_size\": 99999999999999999999", "not an integer"},
    {"\"offset_alignment\": 16", "\"offset_alignment\": 24", "power of two"},
    {"\"bytes_per_binding\": 134217728", "\"bytes_per_binding\": 0", "at least 1"},
    {"\"max_grid\": [65535,65535,65535]", "\"max_grid\": [65535,65535]", "must have 3 elements"},
    {"\"max_grid\": [65535,65535,65535]", "\"max_grid\": [1,2,0]", "\"max_grid[2]\" is 0"},
    {"\"max_grid\": [65535,65535,65535]", "\"max_grid\": {}", "must be an array"},
    {"\"float64\": true", "\"float64\": 1", "must be true or false"},
    {"\"subgroup\"", "\"warp\"", "it must be one of \"lane\", \"subgroup\", \"workgroup\""},
    {"\"workgroup_size\": 8", "\"workgroup_size\": 12", "multiple of the subgroup size"},
    {"\"workgroup_size\": 8", "\"workgroup_size\": 2048", "more than the largest workgroup"},
    {"\"vector_width\": 4", "\"vector_width\": 2", "must be 1 or 4"},
    {"\"contraction_rows\": 32", "\"contraction_rows\": -8", "at least 1"},
    {"\"contraction_rows\": 32", "\"contraction_rows\": 65", "at most 64"},
    {"\"contraction_columns\": 4", "\"contraction_columns\": 9", "at most 8"},
    {"\"contraction_slab\": 0", "\"contraction_slab\": 68", "at most 64"},
    {"\"contraction_slab\": 0", "\"contraction_slab\": 6", "it must be a multiple of 4"},
    {"\"cooperative_matrix\": \"none\"", "\"cooperative_matrix\": 16", "must be a string"},
    {"\"cooperative_matrix\": \"none\"", "\"cooperative_matrix\": \"16x16x12 f16 f32\"",
     "expected \"none\" or rows x columns x products and types"},
    {"\"cooperative_matrix\": \"none\"", "\"cooperative_matrix\": \"16x16x16 bf16 f32\"",
     "sizes are 8, 16 or 32, factors f16 and sums f32"},
    {"\"slab_tile\": 8", "\"slab_tile\": 12", "it must be 4, 8 or 16"},
    {"\"slab_tile\": 8", "\"slab_tile\": 2", "it must be 4, 8 or 16"},
    {"\"attention_keys\": 1024", "\"attention_keys\": -1", "at least 0"},
    {"\"attention_keys\": 1024", "\"attention_keys\": 4294967296", "at most 4294967295"},
    {"\"matrix_tile\": 0", "\"matrix_tile\": 48", "it must be a multiple of 32"},
    {"\"matrix_tile\": 0", "\"matrix_tile\": 64", "an \"sm\" of 80 or more"},
    {"\"matrix_slab\": 32", "\"matrix_slab\": 24", "it must be a power of two"},
    {"\"matrix_stages\": 2", "\"matrix_stages\": 1", "at least 2"},
    {"\"matrix_stages\": 2", "\"matrix_stages\": 5", "at most 4"},
    {"\"precision\": \"f32\"", "\"precision\": \"tf32\"", "which needs a \"matrix_tile\""},
    {"\"precision\": \"f32\"", "\"precision\": \"f16\"", "it must be one of \"f32\", \"tf32\""},
    {"\"int64\": true", "\"int64\": false", "is true, which needs \"int64\""},
    {"\"column_parts\": 64", "\"column_parts\": 0", "at least 1"},
    {"\"vulkan\"", "\"cuda\"", "is cuda, which needs \"sm\""},
    {"\"float64\"", "\"sm\": 80, \"float64\"", "is not cuda, which alone has \"sm\""},
};

TEST(Profile, refuses) {
  for (const TextEdit &edit : profileEdits) {
    SCOPED_TRACE(edit.to);
    std::string text = replace(printProfile(Profile()), edit.from, edit.to);
    EXPECT_ERROR(parseProfile(text, "p.json"), edit.error);
    EXPECT_ERROR(parseProfile(text, "p.json"), "p.json: ");
  }
  EXPECT_ERROR(parseProfile("[]", "p.json"), "must be an object");
  EXPECT_ERROR(parseProfile("", "p.json"), "malformed JSON");
}

TEST(Json, deep_nesting_does_not_overflow) {
  EXPECT_ERROR(parsePlan(std::string(10'000'000, '['), "p"), "more than 32 levels");
  std::string objects;
  for (int i = 0; i < 100'000; ++i)
    objects += "{\"a\":";
  EXPECT_ERROR(parsePlan(objects, "p"), "more than 32 levels");
}

//===----------------------------------------------------------------------===//
// Manifests and plans
//===----------------------------------------------------------------------===//

static const TextEdit manifestEdits[] = {
    {"\"schema_version\": 7", "\"schema_version\": 6", "compile the graph again"},
    {"\"schema_version\": 7,", "", "lacks the key \"schema_version\""},
    {"\"producer\"", "\"maker\"", "unknown key \"maker\""},
    {"\"name\":\"main\"", "\"name\":\"../main\"", "\"entries[0].name\" is \"../main\""},
    {"\"name\":\"main\"", "\"name\":\".main\"", "cannot name a file"},
    {"\"name\":\"main\"", "\"name\":\"a/b\"", "cannot name a file"},
    {"\"name\":\"main\"", "\"name\":\"\xc3\xa9\"", "cannot name a file"},
    {"\"dtype\":\"F32\"", "\"dtype\":\"F31\"", "\"F31\" is not a supported element type"},
    {"\"shape\":[8,8]", "\"shape\":[8,-8]", "\"entries[0].arguments[0].shape[1]\" is -8"},
    {"\"shape\":[8,8]", "\"shape\":[4294967296,4294967296]", "exceed 64 bits"},
    {"\"shape\":[8,8]", "\"shape\":[4294967296,8388608]", "more than 2^56"},
    {"\"kind\":\"input\"", "\"kind\":\"inputs\"", "must be one of"},
    {"\"kind\":\"input\"", "\"kind\":\"input\",\"starts_at\":\"1\"", "is no state of floats"},
    {"\"kind\":\"param\"", "\"kind\":\"state\",\"starts_at\":\"1x\"", "is no finite number"},
    {"\"kind\":\"param\"", "\"kind\":\"state\",\"starts_at\":\"inf\"", "is no finite number"},
    {"\"kind\":\"param\"", "\"kind\":\"state\",\"starts_as\":\"x\"", "no other argument of floats"},
    {"\"kind\":\"param\"", "\"kind\":\"state\",\"starts_as\":\"x\",\"starts_at\":\"1\"",
     "starts both as an argument and at a number"},
    {"\"kind\":\"input\"", "\"kind\":\"input\",\"memory\":\"disk\"", "must be one of"},
    {"\"kind\":\"input\"", "\"kind\":\"input\",\"memory\":\"host\"", "is no donated state"},
    {"\"kind\":\"input\"", "\"kind\":\"state\",\"memory\":\"host\"", "is no donated state"},
    {"\"donate\":false", "\"donate\":\"no\"", "true or false"},
    {"\"name\":\"w\"", "\"name\":\"x\"", "two of the name \"x\""},
    {"\"name\":\"c1\"", "\"name\":\"c0\"", "two of the name \"c0\""},
    {"\"offset\":256", "\"offset\":128", "multiple of 256"},
    {"\"offset\":256", "\"offset\":0", "overlap"},
    {"\"offset\":256", "\"offset\":-256", "at least 0"},
    {"\"offset\":256", "\"offset\":9223372036854775807", "at most"},
    {"\"subgroup_size\":8", "\"subgroup_size\":7", "\"targets[0].subgroup_size\" is 7"},
    {"\"subgroup_size\":8", "\"like\":\"lavapipe\"", "unknown key \"like\""},
    {"\"subgroup_size\":8,", "", "\"targets[0]\" lacks the key \"subgroup_size\""},
};

TEST(Manifest, refuses) {
  for (const TextEdit &edit : manifestEdits) {
    SCOPED_TRACE(edit.to);
    std::string text = replace(printManifest(makeSample().manifest), edit.from, edit.to);
    EXPECT_ERROR(parseManifest(text, "m.json"), edit.error);
  }
}

TEST(Manifest, refuses_entries_and_targets_of_one_name) {
  Manifest manifest = makeSample().manifest;
  manifest.entries.push_back(manifest.entries[0]);
  EXPECT_ERROR(parseManifest(printManifest(manifest), "m"), "two of the name \"main\"");
  manifest = makeSample().manifest;
  manifest.targets.push_back(manifest.targets[0]);
  EXPECT_ERROR(parseManifest(printManifest(manifest), "m"), "two of the name \"vulkan\"");
}

TEST(Manifest, byte_sizes) {
  EXPECT_EQ(getByteSize({"x", "F64", {2, 3}, "", false}), 48);
  EXPECT_EQ(getByteSize({"x", "BF16", {}, "", false}), 2);
  EXPECT_EQ(getByteSize({"x", "BOOL", {INT64_MAX, 0, INT64_MAX}, "", false}), 0);
  EXPECT_ERROR(getByteSize({"x", "F32", {INT64_MAX}, "", false}), "exceed 64 bits");
  EXPECT_ERROR(getByteSize({"x", "F32", {0, -1}, "", false}), "negative size");
  EXPECT_ERROR(getDTypeBytes("float"), "not a supported element type");
}

static const TextEdit planEdits[] = {
    {"\"schema_version\": 7", "\"schema_version\": 0", "at least 1"},
    {"\"entry\": \"main\"", "\"entry\": \"a b\"", "cannot name a file"},
    {"\"arena_bytes\": 768", "\"arena_bytes\": -1", "\"arena_bytes\" is -1"},
    {"\"pinned_bytes\": 1024", "\"pinned_bytes\": 72057594037927937", "at most"},
    {"\"kind\":\"arena\"", "\"kind\":\"heap\"", "\"allocations[4].kind\" is \"heap\""},
    {"\"kind\":\"argument\",\"index\":1", "\"kind\":\"argument\",\"index\":0", "two allocations"},
    {"\"index\":1", "\"index\":-1", "at least 0"},
    {"[\"t0\",0,256,256,", "[\"t0\",0,256,3,", "\"slots[0][3]\" is 3"},
    {"256,2,3]", "256,2,1]", "at least 2"},
    {"\"name\":\"add\"", "\"name\":\"scale\"", "two kernels"},
    {"\"workgroup\":[8,1,1]", "\"workgroup\":[8,0,1]", "\"kernels[0].workgroup[1]\" is 0"},
    {"\"access\":\"read\"", "\"access\":\"readwrite\"", "must be one of"},
    {"\"covers_all\":false", "\"covers_all\":true", "not written"},
    {"\"covers_all\":false", "\"covers_all\":false,\"slice\":[0,8,16,2]", "not written in part"},
    {"\"covers_all\":true", "\"covers_all\":true,\"slice\":[0,8,16,2]", "not written in part"},
    {"\"covers_all\":true", "\"covers_all\":false,\"slice\":[0,8,8,2]", "= [0, 8, 8, 2], expected"},
    {"\"covers_all\":true", "\"covers_all\":false,\"slice\":[0,8,16,17]",
     "= [0, 8, 16, 17], expected"},
    {"\"covers_all\":true", "\"covers_all\":false,\"slice\":[0,8,16]", "slice"},
    {"\"command\":\"dispatch\"", "\"command\":\"copy\"", "must be one of"},
    {"\"command\":\"barrier\"", "\"command\":\"dispatch\"", "unknown key \"hazards\""},
    {"\"kernel\":1", "\"kernel\":2", "kernel 2 of 2"},
    {"\"grid\":[1,1,1]", "\"grid\":[1,1,4294967296]", "at most 4294967295"},
    {"\"wave\":1", "\"wave\":-1", "at least 0"},
    {"[[0,0,256,0,0],", "[", "takes 3"},
    {"[3,0,12]", "[3,0]", "must have 5 elements"},
    {"[0,0,256,0,0]", "[0,0,256,0]", "must have 5 elements"},
    {"[0,0,256,0,0]", "[5,0,256,0,0]", "allocation 5 of 5"},
    {"[0,0,256,0,0]", "[0,1,256,0,0]", "beyond the 256 bytes"},
    {"[0,0,256,0,0]", "[0,72057594037927936,256,0,0]", "beyond the 256 bytes"},
    {"[0,0,256,0,0]", "[0,0,256,-1,0]", "\"commands[0].operands[0][3]\" is -1"},
    {"[0,0,256,0,0]", "[0,0,256,7,0]", "operand 0 of dispatch 0 is value 7 of 7"},
    {"[0,0,256,0,0]", "[0,0,256,0,-1]", "at least 0"},
    {"[0,0,256,0,0]", "[0,0,256,0,1]", "too few for its 256"},
    {"[0,0,256,0,0]", "[0,0,256,0,72057594037927936]", "too few for its 256"},
    {"[\"x\",256]", "[\"x\",255]", "too few for its 256"},
    {"[\"x\",256]", "[\"x\",-1]", "at least 0"},
    {"[\"x\",256]", "[\"x\"]", "must have 2 elements"},
    {"[\"x\",256]", "[1,256]", "must be a string"},
    {"\"argument_values\": [0,1],", "", "lacks the key \"argument_values\""},
    {"\"argument_values\": [0,1]", "\"argument_values\": [0,7]", "argument 1 is value 7 of 7"},
    {"\"argument_values\": [0,1]", "\"argument_values\": [0,-2]", "at least -1"},
    {"\"result_values\": [2]", "\"result_values\": [9]", "result 0 is value 9 of 7"},
    {"\"result_values\": [2]", "\"result_values\": 2", "must be an array"},
    {"\"index\":1,\"bytes\":256", "\"index\":1,\"bytes\":256,\"result\":-1", "at least 0"},
    {"\"index\":1,\"bytes\":256", "\"index\":1,\"bytes\":256,\"result\":0",
     "has an allocation too"},
    {"\"kind\":\"result\",", "\"kind\":\"result\",\"result\":0,",
     "but the allocation is not an argument"},
    {"\"kind\":\"result\",", "\"kind\":\"result\",\"donated\":0,", "unknown key \"donated\""},
    {"\"name\":\"add\",", "\"name\":\"add\",\"in_place\":[[0,2,1]],", "must have 2 elements"},
    {"\"name\":\"add\",", "\"name\":\"add\",\"in_place\":[[-1,2]],", "at least 0"},
    {"\"name\":\"add\",", "\"name\":\"add\",\"in_place\":[[3,2]],", "may write operand 2 over 3"},
    {"\"name\":\"add\",", "\"name\":\"add\",\"in_place\":[[0,1]],", "may write operand 1 over 0"},
    {"\"name\":\"add\",", "\"name\":\"add\",\"in_place\":[[2,2]],", "may write operand 2 over 2"},
    {"\"memory\":[[4,0,256]", "\"memory\":[[4,0,769]", "the memory of a barrier"},
    {"[\"war\",", "[\"rar\",", "must be one of"},
    {"[\"raw\",0,2,", "[\"raw\",0,3,", "operand 3 of dispatch 0"},
    {"[\"raw\",0,2,", "[\"raw\",5,2,", "operand 2 of dispatch 5"},
    {"[\"raw\",0,2,", "[\"raw\",0,", "must have 5 elements"},
    {"[[\"war\",2,0,3,2]]", "[]", "states what needs it"},
};

TEST(Plan, refuses) {
  for (const TextEdit &edit : planEdits) {
    SCOPED_TRACE(edit.to);
    std::string text = replace(printPlan(makeSample().plans[0]), edit.from, edit.to);
    EXPECT_ERROR(parsePlan(text, "plan.json"), edit.error);
  }
}

/// These are read as they are parsed, and not kept.
TEST(Plan, long_lists_are_lists_and_stand_once) {
  for (std::string key : {"values", "slots", "commands"}) {
    SCOPED_TRACE(key);
    std::string text = printPlan(makeSample().plans[0]);
    std::string quoted = "\"" + key + "\": ";
    EXPECT_ERROR(parsePlan(replace(text, quoted, quoted + "[], " + quoted), "plan.json"),
                 "\"" + key + "\" is repeated in one object");
    size_t begin = text.find(quoted) + quoted.size();
    size_t end = text.find("\n]", begin) + 2;
    std::string number = std::string(text).replace(begin, end - begin, "7");
    EXPECT_ERROR(parsePlan(number, "plan.json"), "\"" + key + "\" must be an array");
    std::string object = std::string(text).replace(begin, end - begin, "{\"a\": [1]}");
    EXPECT_ERROR(parsePlan(object, "plan.json"), "\"" + key + "\" must be an array");
    std::string nested = std::string(text).replace(begin, end - begin, "[[[]]]");
    EXPECT_ERROR(parsePlan(nested, "plan.json"), "\"" + key + "[0]");
  }
}

TEST(Plan, a_result_lives_in_one_argument) {
  Plan plan = makeSample().plans[0];
  plan.commands.clear();
  plan.allocations = {{AllocationKind::Argument, 0, 256, 0}, {AllocationKind::Argument, 1, 256}};
  EXPECT_EQ(printPlan(parsePlan(printPlan(plan), "p")), printPlan(plan));
  plan.allocations[1].result = 0;
  EXPECT_ERROR(parsePlan(printPlan(plan), "p"), "two arguments are donated to result 0");
}

TEST(Plan, reads_back_tensor_maps) {
  Plan plan = makeSample().plans[0];
  plan.kernels[1].operands[0].alignment = 16;
  plan.kernels[1].tensorMaps = {{0, "F16", {2, 8}, {2, 64}}};
  EXPECT_NE(printPlan(plan).find(
                R"("tensor_maps":[{"operand":0,"dtype":"F16","shape":[2,8],"box":[2,64]}])"),
            std::string::npos);
  EXPECT_EQ(parsePlan(printPlan(plan), "p").kernels[1].tensorMaps, plan.kernels[1].tensorMaps);
  Plan wide = plan;
  wide.kernels[1].tensorMaps = {{0, "F32", {2, 4}, {2, 32}}};
  EXPECT_EQ(parsePlan(printPlan(wide), "p").kernels[1].tensorMaps, wide.kernels[1].tensorMaps);
  auto refuse = [&](TensorMap map, const char *why) {
    Plan other = plan;
    other.kernels[1].tensorMaps = {std::move(map)};
    EXPECT_ERROR(parsePlan(printPlan(other), "p"), why);
  };
  refuse({0, "F64", {2, 8}, {2, 16}}, "dtype");
  refuse({0, "F32", {2, 8}, {2, 64}}, "has lines of 256 bytes, expected 128");
  refuse({0, "F16", {8}, {64}}, "has 1 sizes, expected 2 to 5");
  refuse({0, "F16", {2, 8}, {64}}, "has 1 sizes for a shape of 2");
  refuse({0, "F16", {2, 8}, {2, 32}}, "has lines of 64 bytes, expected 128");
  refuse({0, "F16", {2, 8}, {257, 64}}, "box");
  refuse({0, "F16", {8, 2}, {2, 64}}, "has rows of 4 bytes, expected a multiple of 16");
  refuse({0, "F16", {1 << 30, 1 << 30}, {2, 64}}, "has 2^40 bytes or more");
  refuse({9, "F16", {2, 8}, {2, 64}}, "has a tensor map of operand 9 of");
  refuse({2, "F16", {2, 8}, {2, 64}}, "operand 2, which it does not read alone");
  refuse({0, "F16", {1024, 1024}, {2, 64}}, "of 2097152 bytes; the operand has");
  plan.kernels[1].operands[0].alignment = 8;
  refuse({0, "F16", {2, 8}, {2, 64}}, "whose alignment is 8, expected a multiple of 16");
}

TEST(Plan, reads_back_parts_of_results) {
  Plan plan = makeSample().plans[0];
  plan.parts = {{"a", 0, 0, 16, 3}, {"b", 0, 16, 240, 3}};
  const std::string text = printPlan(plan);
  EXPECT_EQ(text, printPlan(parsePlan(text, "the plan")));
  EXPECT_EQ(2u, parsePlan(text, "the plan").parts.size());
  const std::pair<ResultPart, const char *> refused[] = {
      {{"a", 0, 32, 16, 3}, "two parts of results are called \"a\""},
      {{"c", 1, 0, 16, 3}, "part \"c\" is of result 1 of 1"},
      {{"c", 0, 248, 16, 3}, "part \"c\" has 16 bytes from 248 of a result of 256 bytes"},
      {{"c", 0, 0, 0, 3}, "part \"c\" has 0 bytes"}};
  for (const auto &[part, error] : refused) {
    Plan other = plan;
    other.parts.push_back(part);
    try {
      parsePlan(printPlan(other), "the plan");
      ADD_FAILURE() << error;
    } catch (const Error &caught) {
      EXPECT_NE(std::string::npos, std::string(caught.what()).find(error)) << caught.what();
    }
  }
}

TEST(Plan, reads_back_loops) {
  Plan plan = makeSample().plans[0];
  const PlanView view{4, 512, 256}, flag{4, 512, 1};
  const CarriedValue carried{view, 3, 4, 5, 6};
  plan.loops = {{1, 7, 9, flag, {carried}}, {3, 5, 2}};
  const std::string text = printPlan(plan);
  EXPECT_EQ(text, printPlan(parsePlan(text, "the plan")));
  ASSERT_EQ(2u, parsePlan(text, "the plan").loops.size());
  EXPECT_EQ(512, parsePlan(text, "the plan").loops[0].flag->offset);
  // A part's wave would be that of one trip.
  Plan parted = plan;
  parted.parts = {{"a", 0, 0, 16, 3}};
  const CarriedValue beyond{{4, 513, 256}, 3, 4, 5, 6}, unknown{view, 3, 4, 7, 6};
  const CarriedValue nothing{view, -1, 4, 5, 6}, shorter{{4, 512, 128}, 3, 4, 5, 6};
  const std::pair<std::vector<Loop>, const char *> refused[] = {
      {{{3, 3, 1}}, "loop 0 is of commands [3, 3) of 8"},
      {{{0, 9, 1}}, "loop 0 is of commands [0, 9) of 8"},
      {{{3, 5, 0}}, "trips"},
      {{{1, 4, 2}, {3, 6, 2}}, "loop 1 ends behind loop 0, in which it begins"},
      {{{3, 5, 2}, {1, 7, 2}}, "loop 1 stands out of order"},
      {{{1, 4, 2}, {1, 4, 2}}, "loop 1 stands out of order"},
      {{{1, 7, 2, {}, {beyond}}}, "a carried value of loop 0 has 256 bytes at 513, beyond"},
      {{{1, 7, 2, {}, {unknown}}}, "a carried value of loop 0 is value 7 of 7"},
      {{{1, 7, 2, {}, {nothing}}}, "carried"},
      {{{1, 7, 2, {}, {shorter}}}, "has 128 bytes, which is not what value 3 has"},
      {{{1, 7, 2, PlanView{4, 512, 2}, {carried}}}, "is not the first byte of a carried value"},
      {{{1, 7, 2, PlanView{4, 513, 1}, {carried}}}, "is not the first byte of a carried value"},
      {{{1, 7, 2, PlanView{4, 768, 1}, {carried}}}, "the flag of loop 0 has 1 bytes at 768"}};
  for (const auto &[loops, error] : refused) {
    SCOPED_TRACE(error);
    Plan other = plan;
    other.loops = loops;
    EXPECT_ERROR(parsePlan(printPlan(other), "the plan"), error);
  }
  EXPECT_ERROR(parsePlan(printPlan(parted), "the plan"), "a plan with loops has parts of results");
  plan.commands[3].queue = 1;
  EXPECT_ERROR(parsePlan(printPlan(plan), "the plan"), "one queue");
}

TEST(Plan, reads_back_pairs_in_place) {
  Plan plan = makeSample().plans[0];
  plan.kernels[1].inPlace = {{0, 2}, {1, 2}};
  EXPECT_NE(printPlan(plan).find("\"in_place\":[[0,2],[1,2]]"), std::string::npos);
  EXPECT_EQ(parsePlan(printPlan(plan), "p").kernels[1].inPlace, plan.kernels[1].inPlace);
}

TEST(Plan, refuses_to_print_what_is_no_utf8) {
  Plan plan = makeSample().plans[0];
  plan.commands[0].location = "\xff";
  EXPECT_ERROR(printPlan(plan), "not UTF-8");
}

//===----------------------------------------------------------------------===//
// Whole artifacts
//===----------------------------------------------------------------------===//

namespace {
struct ArtifactEdit {
  const char *error;
  std::function<void(Artifact &)> apply;
};
} // namespace

TEST(Artifact, refuses_to_write_what_does_not_agree) {
  const ArtifactEdit edits[] = {
      {"has no plan", [](Artifact &a) { a.plans.clear(); }},
      {"is repeated", [](Artifact &a) { a.plans.push_back(a.plans[0]); }},
      {"which the manifest does not have", [](Artifact &a) { a.plans[0].entry = "other"; }},
      {"cannot name a file", [](Artifact &a) { a.manifest.entries[0].name = "a/b"; }},
      {"add.spv, is missing", [](Artifact &a) { a.code.erase("code/vulkan/add.spv"); }},
      {"no kernel names", [](Artifact &a) { a.code["code/vulkan/x.spv"] = {1}; }},
      {"must be a file of code/vulkan/",
       [](Artifact &a) { a.plans[0].kernels[0].code = "code/cuda/scale.spv"; }},
      {"must be a file of code/vulkan/",
       [](Artifact &a) { a.plans[0].kernels[0].code = "code/vulkan/../x"; }},
      {"has 260 bytes, its tensor has 256",
       [](Artifact &a) { a.plans[0].allocations[0].bytes = 260; }},
      {"has 2", [](Artifact &a) { a.plans[0].allocations[0].index = 2; }},
      {"holds result 1, entry \"main\" has 1",
       [](Artifact &a) { a.plans[0].allocations[0].result = 1; }},
      {"holds result \"z\", which has 4",
       [](Artifact &a) {
         a.manifest.entries[0].results.push_back({"z", "F32", {1}, "", false});
         a.plans[0].allocations[0].result = 1;
       }},
      {"the arguments have 1 values, there are 2",
       [](Artifact &a) { a.plans[0].argumentValues.pop_back(); }},
      {"the results have 0 values, there are 1",
       [](Artifact &a) { a.plans[0].resultValues.clear(); }},
      {"the results: \"y\" has 256 bytes, its value 0",
       [](Artifact &a) { a.plans[0].resultValues[0] = -1; }},
      {"the results: \"y\" has 256 bytes, its value 260",
       [](Artifact &a) { a.plans[0].values[2].bytes = 260; }},
      {"there is only 0", [](Artifact &a) { a.plans[0].allocations[4].index = 1; }},
      {"its tensor has 1024", [](Artifact &a) { a.plans[0].arenaBytes = 1024; }},
      {"its last constant ends at 268",
       [](Artifact &a) {
         a.constants.push_back(0);
         a.plans[0].allocations[3].bytes = 269;
       }},
      {"more than its constants in a row need",
       [](Artifact &a) {
         a.manifest.constants[1].offset = 512;
         a.constants.resize(524);
         a.plans[0].allocations[3].bytes = 524;
       }},
      {"belong to no constant", [](Artifact &a) { a.constants[100] = 1; }},
      {"is not a name for IR", [](Artifact &a) { a.ir["ir/../x.mlir"] = ""; }},
      {"is not a name for IR", [](Artifact &a) { a.ir["graph.mlir"] = ""; }},
      {"two of the name \"x\"", [](Artifact &a) { a.manifest.entries[0].arguments[1].name = "x"; }},
      {"kernel 9 of 2", [](Artifact &a) { a.plans[0].commands[0].kernel = 9; }},
  };
  for (const ArtifactEdit &edit : edits) {
    SCOPED_TRACE(edit.error);
    TemporaryFolder folder;
    Artifact sample = makeSample();
    edit.apply(sample);
    EXPECT_ERROR(writeArtifact(folder / "a.weir", sample), edit.error);
    EXPECT_EQ(folder.countFiles(), 0u);
  }
}

TEST(Artifact, refuses_to_write_an_arena_without_allocation) {
  TemporaryFolder folder;
  Artifact sample = makeSample();
  Plan &plan = sample.plans[0];
  plan.commands.clear();
  plan.allocations.pop_back();
  EXPECT_ERROR(writeArtifact(folder / "a.weir", sample), "no allocation is the arena");
}

namespace {
struct FilesEdit {
  const char *error;
  std::function<void(Files &)> apply;
};
} // namespace

static std::string toText(const Bytes &bytes) { return std::string(bytes.begin(), bytes.end()); }
static Bytes toBytes(const std::string &text) { return Bytes(text.begin(), text.end()); }

TEST(Artifact, refuses_to_read_what_does_not_agree) {
  const char *plan = "plan/vulkan/main.json", *weights = "weights.safetensors";
  auto edit = [](const char *path, const char *from, const char *to) {
    return [=](Files &f) { f[path] = toBytes(replace(toText(f[path]), from, to)); };
  };
  const FilesEdit edits[] = {
      {"manifest.json is missing", [](Files &f) { f.erase("manifest.json"); }},
      {"plan/vulkan/main.json is missing", [=](Files &f) { f.erase(plan); }},
      {"weights.safetensors is missing", [=](Files &f) { f.erase(weights); }},
      {"scale.spv, is missing", [](Files &f) { f.erase("code/vulkan/scale.spv"); }},
      {"nothing names the file", [](Files &f) { f["readme"] = {1}; }},
      {"nothing names the file", [=](Files &f) { f["plan/vulkan/other.json"] = f[plan]; }},
      {"nothing names the file", [](Files &f) { f["ir/deep/graph.mlir"] = {1}; }},
      {"no kernel names", [](Files &f) { f["code/vulkan/more.spv"] = {1}; }},
      {"plans entry \"other\"", edit(plan, "\"entry\": \"main\"", "\"entry\": \"other\"")},
      {"plans entry \"main\" on target \"cuda\"", edit(plan, ": \"vulkan\"", ": \"cuda\"")},
      {"lacks the constant \"c0\"", edit(weights, "\"c0\"", "\"d0\"")},
      {"holds 1 tensors",
       [=](Files &f) {
         std::vector<Tensor> tensors = parseSafetensors(f[weights], "w");
         tensors.pop_back();
         f[weights] = printSafetensors(tensors);
       }},
      {"type and shape that the manifest",
       edit("manifest.json", "\"c0\",\"dtype\":\"F32\"", "\"c0\",\"dtype\":\"I32\"")},
      {"more than its constants in a row need",
       edit("manifest.json", "\"offset\":256", "\"offset\":512")},
      {"plan/vulkan/main.json: allocation 0 has",
       edit("manifest.json", "\"shape\":[8,8]", "\"shape\":[8,9]")},
  };
  TemporaryFolder folder;
  writeArtifact(folder / "a.weir", makeSample());
  const Files files = readArchive(folder / "a.weir");
  for (const FilesEdit &edit : edits) {
    SCOPED_TRACE(edit.error);
    Files edited = files;
    edit.apply(edited);
    writeArchive(folder / "b.weir", edited);
    EXPECT_ERROR(readArtifact(folder / "b.weir"), edit.error);
    EXPECT_ERROR(readArtifact(folder / "b.weir"), folder / "b.weir");
  }
}

TEST(Artifact, without_constants_needs_no_weights) {
  TemporaryFolder folder;
  Artifact sample = makeSample();
  sample.manifest.constants.clear();
  sample.constants.clear();
  sample.manifest.entries[0].arguments.clear();
  sample.manifest.entries[0].results.clear();
  sample.plans[0] = Plan();
  sample.plans[0].entry = "main";
  sample.plans[0].target = "vulkan";
  sample.code.clear();
  writeArtifact(folder / "a.weir", sample);
  EXPECT_FALSE(readArchive(folder / "a.weir").count("weights.safetensors"));
  EXPECT_TRUE(readArtifact(folder / "a.weir").constants.empty());
}

//===----------------------------------------------------------------------===//
// Archives
//===----------------------------------------------------------------------===//

static Bytes readBytes(const std::string &path) {
  std::ifstream stream(path, std::ios::binary);
  return Bytes(std::istreambuf_iterator<char>(stream), {});
}
static void writeBytes(const std::string &path, const Bytes &bytes) {
  std::ofstream(path, std::ios::binary)
      .write(reinterpret_cast<const char *>(bytes.data()), std::streamsize(bytes.size()));
}

TEST(Archive, keeps_any_bytes) {
  TemporaryFolder folder;
  Files files = {{"a", {}}, {"b/c", Bytes(100'000, 0x55)}, {"b/d.e", {0, 255, 0}}};
  writeArchive(folder / "a", files);
  EXPECT_EQ(readArchive(folder / "a"), files);
}

TEST(Archive, same_files_give_same_bytes_in_any_zone) {
  TemporaryFolder folder;
  Files files = {{"a", {1, 2}}, {"b", {3}}};
  setenv("TZ", "UTC0", 1);
  tzset();
  writeArchive(folder / "a", files);
  setenv("TZ", "XYZ-11", 1);
  tzset();
  writeArchive(folder / "b", files);
  EXPECT_EQ(readBytes(folder / "a"), readBytes(folder / "b"));
}

TEST(Archive, replaces_a_file_only_when_done) {
  TemporaryFolder folder;
  writeArchive(folder / "a", {{"old", {1}}});
  EXPECT_THROW(
      writeArchive(folder / "a", {{"new", {2}}}, [](const std::string &) { throw Error("no"); }),
      Error);
  EXPECT_EQ(readArchive(folder / "a"), (Files{{"old", {1}}}));
  writeArchive(folder / "a", {{"new", {2}}});
  EXPECT_EQ(readArchive(folder / "a"), (Files{{"new", {2}}}));
  EXPECT_EQ(folder.countFiles(), 1u);
}

TEST(Archive, refuses_to_write) {
  TemporaryFolder folder;
  for (const char *name : {"", "/a", "../a", "a/../b", "a//b", "a/", "a\\b", ".a", "a b"}) {
    SCOPED_TRACE(name);
    EXPECT_ERROR(writeArchive(folder / "a", {{name, {1}}}), "cannot be a file's name");
  }
  EXPECT_ERROR(writeArchive(folder / "a", {}), "nothing to write");
  EXPECT_ERROR(writeArchive(folder / "none/a", {{"a", {1}}}), "cannot write");
  EXPECT_EQ(folder.countFiles(), 0u);
  std::filesystem::create_directory(folder / "d");
  EXPECT_ERROR(writeArchive(folder / "d", {{"a", {1}}}), "cannot write");
  EXPECT_EQ(folder.countFiles(), 1u);
}

TEST(Files, refuse_a_dash_and_copy_to_devices) {
  TemporaryFolder folder;
  EXPECT_ERROR(writeText("-", "text"), "cannot write \"-\"");
  EXPECT_ERROR(checkWritable("-"), "cannot write \"-\"");
  writeText("/dev/null", "text");
  writeArchive("/dev/null", {{"a", {1}}});
  EXPECT_TRUE(std::filesystem::is_character_file("/dev/null"));
  EXPECT_ERROR(writeText("/dev/full", "text"), "cannot write \"/dev/full\"");
  EXPECT_ERROR(writeArchive("/dev/full", {{"a", {1}}}), "cannot write \"/dev/full\"");
}

TEST(Files, follow_links) {
  TemporaryFolder folder;
  writeText(folder / "file", "old");
  std::filesystem::create_symlink("file", folder / "link");
  writeText(folder / "link", "new");
  EXPECT_TRUE(std::filesystem::is_symlink(folder / "link"));
  EXPECT_EQ(toText(readFile(folder / "file", "text")), "new");
  EXPECT_EQ(folder.countFiles(), 2u);
}

/// Replaces `from` by `to`, of the same length, in both headers of an entry.
static Bytes rename(const Bytes &bytes, const std::string &from, const std::string &to) {
  std::string text = toText(bytes);
  int found = 0;
  for (size_t at = 0; (at = text.find(from, at)) != text.npos; ++found)
    text.replace(at, from.size(), to);
  EXPECT_EQ(found, 2);
  return toBytes(text);
}

TEST(Archive, refuses_to_read) {
  TemporaryFolder folder;
  EXPECT_ERROR(readArchive(folder / "none"), "No such file");
  EXPECT_ERROR(readArchive(folder / ""), "it is a folder");
  writeBytes(folder / "a", {});
  EXPECT_ERROR(readArchive(folder / "a"), "cannot read artifact");
  writeBytes(folder / "a", toBytes("not a zip, though long enough to hold one's end record"));
  EXPECT_ERROR(readArchive(folder / "a"), "Not a zip");

  writeArchive(folder / "a", {{"aaaaaaa", {1, 2, 3}}, {"bbbbbbb", {4, 5, 6}}});
  const Bytes good = readBytes(folder / "a");
  for (const char *name : {"/aaaaaa", "../aaaa", "aa/../a", "aaaaa//", "aa\\aaaa", ".aaaaaa"}) {
    SCOPED_TRACE(name);
    writeBytes(folder / "b", rename(good, "aaaaaaa", name));
    EXPECT_ERROR(readArchive(folder / "b"), "cannot be a file's name");
  }
  writeBytes(folder / "b", rename(good, "aaaaaaa", "bbbbbbb"));
  EXPECT_ERROR(readArchive(folder / "b"), "two files of one name");
  writeBytes(folder / "b", rename(good, "aaaaaaa", "ccccccc"));
  EXPECT_ERROR(readArchive(folder / "b"), "are in the order of their names");
  Bytes flipped = good;
  *std::search(flipped.begin(), flipped.end(), good.begin() + 37, good.begin() + 40) ^= 1;
  writeBytes(folder / "b", flipped);
  EXPECT_ERROR(readArchive(folder / "b"), "CRC");
}

TEST(Archive, refuses_compressed_entries) {
  TemporaryFolder folder;
  Bytes zeros(1000);
  zip_t *zip = zip_open((folder / "a").c_str(), ZIP_CREATE, nullptr);
  ASSERT_TRUE(zip);
  zip_int64_t index = zip_file_add(zip, "a", zip_source_buffer(zip, zeros.data(), zeros.size(), 0),
                                   ZIP_FL_ENC_UTF_8);
  ASSERT_EQ(zip_set_file_compression(zip, index, ZIP_CM_DEFLATE, 9), 0);
  ASSERT_EQ(zip_close(zip), 0);
  EXPECT_ERROR(readArchive(folder / "a"), "is compressed or encrypted");
}

//===----------------------------------------------------------------------===//
// safetensors
//===----------------------------------------------------------------------===//

static Bytes makeSafetensors(const std::string &header, size_t dataBytes) {
  Bytes bytes(8);
  for (int i = 0; i < 8; ++i)
    bytes[i] = header.size() >> (8 * i) & 0xff;
  bytes.insert(bytes.end(), header.begin(), header.end());
  bytes.resize(bytes.size() + dataBytes);
  return bytes;
}

TEST(Safetensors, keeps_tensors_and_their_order) {
  TemporaryFolder folder;
  std::vector<Tensor> tensors = {{{"z", "F32", {2}, "", false}, {1, 2, 3, 4, 5, 6, 7, 8}},
                                 {{"e1", "F64", {0, 3}, "", false}, {}},
                                 {{"e2", "F64", {0}, "", false}, {}},
                                 {{"a \"\xc3\xa9", "BOOL", {}, "", false}, {1}}};
  writeSafetensors(folder / "t", tensors);
  std::vector<Tensor> read = readSafetensors(folder / "t");
  ASSERT_EQ(read.size(), tensors.size());
  for (size_t i = 0; i < read.size(); ++i) {
    EXPECT_EQ(read[i].spec.name, tensors[i].spec.name);
    EXPECT_EQ(read[i].spec.dtype, tensors[i].spec.dtype);
    EXPECT_EQ(read[i].spec.shape, tensors[i].spec.shape);
    EXPECT_EQ(read[i].data, tensors[i].data);
  }
  EXPECT_EQ((readBytes(folder / "t").size() - 9) % 8, 0u) << "data begins at a multiple of 8";
  EXPECT_EQ(folder.countFiles(), 1u);
  EXPECT_TRUE(parseSafetensors(printSafetensors({}), "t").empty());
}

TEST(Safetensors, takes_metadata_and_any_order_of_data) {
  std::vector<Tensor> read = parseSafetensors(
      makeSafetensors("{\"__metadata__\":{\"format\":\"pt\"},"
                      "\"b\":{\"dtype\":\"U8\",\"shape\":[2],\"data_offsets\":[1,3]},"
                      "\"a\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[0,1]}}",
                      3),
      "t");
  ASSERT_EQ(read.size(), 2u);
  EXPECT_EQ(read[0].spec.name, "b");
}

TEST(Safetensors, refuses) {
  auto one = [](const std::string &dtype, const std::string &shape, const std::string &offsets) {
    return "{\"t\":{\"dtype\":\"" + dtype + "\",\"shape\":" + shape +
           ",\"data_offsets\":" + offsets + "}}";
  };
  auto two = [](const std::string &first, const std::string &second, const char *name) {
    return "{\"t\":{\"dtype\":\"U8\",\"shape\":[2],\"data_offsets\":" + first + "},\"" + name +
           "\":{\"dtype\":\"U8\",\"shape\":[2],\"data_offsets\":" + second + "}}";
  };
  const struct {
    Bytes bytes;
    const char *error;
  } cases[] = {
      {{1, 2, 3}, "at least 8 bytes"},
      {Bytes(8, 0xff), "claims 18446744073709551615 bytes"},
      {makeSafetensors("", 0), "malformed JSON"},
      {makeSafetensors("[]", 0), "must be an object"},
      {makeSafetensors("{\"t\":1}", 0), "must be an object"},
      {makeSafetensors("{\"__metadata__\":{\"a\":1}}", 0), "must be a string"},
      {makeSafetensors(one("Q4", "[2]", "[0,2]"), 2), "\"Q4\" is not a supported element type"},
      {makeSafetensors(one("F32", "[2]", "[0,4]"), 4), "has 4 bytes, its shape needs 8"},
      {makeSafetensors(one("F32", "[-1]", "[0,4]"), 4), "\"shape[0]\" is -1"},
      {makeSafetensors(one("F32", "[4294967296,4294967296]", "[0,4]"), 4), "exceed 64 bits"},
      {makeSafetensors(one("F32", "[1]", "[0,4]"), 3), "must be at most 3"},
      {makeSafetensors(one("F32", "[1]", "[4,0]"), 4), "must be at least 4"},
      {makeSafetensors(one("F32", "[1]", "[0,4]"), 5), "last 1 bytes belong to no tensor"},
      {makeSafetensors(one("F32", "[1]", "[1,5]"), 5), "leave a hole at byte 0"},
      {makeSafetensors(one("F32", "[1]", "[0,4,4]"), 4), "must have 2 elements"},
      {makeSafetensors(one("F32", "[1]", "[0,4]") + "x", 4), "malformed JSON"},
      {makeSafetensors(two("[0,2]", "[1,3]", "u"), 3), "overlap at byte 1"},
      {makeSafetensors(two("[0,2]", "[3,5]", "u"), 5), "leave a hole at byte 2"},
      {makeSafetensors(two("[0,2]", "[2,4]", "t"), 4), "is repeated in one object"},
  };
  for (const auto &[bytes, error] : cases)
    EXPECT_ERROR(parseSafetensors(bytes, "t"), error);
  EXPECT_EQ(parseSafetensors(makeSafetensors(two("[0,2]", "[2,4]", "u"), 4), "t").size(), 2u);
}

TEST(Safetensors, refuses_to_print) {
  Tensor tensor{{"t", "U8", {1}, "", false}, {1}};
  EXPECT_ERROR(printSafetensors({tensor, tensor}), "two tensors called \"t\"");
  tensor.spec.shape = {2};
  EXPECT_ERROR(printSafetensors({tensor}), "has 1 bytes, its shape needs 2");
  EXPECT_ERROR(printSafetensors({{{"__metadata__", "U8", {0}, "", false}, {}}}), "a tensor called");
  EXPECT_ERROR(printSafetensors({{{"\xff", "U8", {0}, "", false}, {}}}), "not UTF-8");
}

//===----------------------------------------------------------------------===//
// Queues
//===----------------------------------------------------------------------===//

static Plan makeQueuePlan() {
  Plan plan = makeSample().plans[0];
  plan.commands[1].queue = 1;
  Command signal, wait;
  signal.kind = Command::Kind::Signal;
  signal.queue = 1;
  signal.signal = 7;
  signal.memory = {{4, 256, 256}};
  wait.kind = Command::Kind::Wait;
  wait.signal = 7;
  plan.commands.insert(plan.commands.begin() + 2, {signal, wait});
  return plan;
}

TEST(Plan, queues_read_back_as_printed) {
  std::string text = printPlan(makeQueuePlan());
  EXPECT_EQ(printPlan(parsePlan(text, "p")), text);
  // Queue 0 is not written.
  EXPECT_EQ(printPlan(makeSample().plans[0]).find("queue"), std::string::npos);
}

TEST(Plan, bad_queues_are_refused) {
  std::string text = printPlan(makeQueuePlan());
  auto parse = [](const std::string &text) { parsePlan(text, "p"); };
  EXPECT_ERROR(parse(replace(text, "\"queue\":1", "\"queue\":64")), "queue");
  EXPECT_ERROR(parse(replace(text, "\"queue\":1", "\"queue\":0")), "queue");
  Plan plan = makeQueuePlan();
  std::swap(plan.commands[2], plan.commands[3]);
  EXPECT_ERROR(parse(printPlan(plan)), "could wait forever");
  plan = makeQueuePlan();
  plan.commands[3].queue = 1;
  EXPECT_ERROR(parse(printPlan(plan)), "is on the signal's own queue");
  plan = makeQueuePlan();
  plan.commands.insert(plan.commands.begin() + 2, plan.commands[2]);
  EXPECT_ERROR(parse(printPlan(plan)), "two signals have the number 7");
  plan = makeQueuePlan();
  plan.commands[2].memory[0].bytes = 1024;
  EXPECT_ERROR(parse(printPlan(plan)), "the memory of a barrier or signal");
}

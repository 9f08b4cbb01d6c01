//===- MutationTest.cpp - Random edits never crash a reader ---------------===//
//
// For any bytes, reading either throws `Error` or gives an artifact that the verifier accepts
// or refuses.
//
//===----------------------------------------------------------------------===//

#include "Sample.h"

#include "nlohmann/json.hpp"
#include "weir/Verify/Verify.h"

#include "gtest/gtest.h"

#include <fstream>
#include <random>

using namespace weir;
using namespace weir::test;
using json = nlohmann::ordered_json;

namespace {
class Mutator {
public:
  explicit Mutator(unsigned seed) : random(seed) {}

  size_t pick(size_t count) { return std::uniform_int_distribution<size_t>(0, count - 1)(random); }

  void mutateBytes(Bytes &bytes) {
    for (size_t i = pick(3) + 1; i > 0 && !bytes.empty(); --i) {
      size_t at = pick(bytes.size());
      switch (pick(5)) {
      case 0:
        bytes[at] ^= 1 << pick(8);
        break;
      case 1:
        bytes[at] = pick(256);
        break;
      case 2:
        bytes.erase(bytes.begin() + at, bytes.begin() + at + pick(bytes.size() - at));
        break;
      case 3:
        bytes.insert(bytes.begin() + at, pick(9), static_cast<unsigned char>(pick(256)));
        break;
      case 4:
        bytes.resize(at);
        break;
      }
    }
  }

  /// Changes one value somewhere in the tree.
  void mutate(json &value) {
    if (value.is_structured() && !value.empty() && pick(12) != 0) {
      size_t at = pick(value.size());
      auto child = std::next(value.begin(), std::ptrdiff_t(at));
      size_t action = pick(24);
      if (action == 0)
        value.erase(child);
      else if (action == 1 && value.is_array())
        value.push_back(*child);
      else if (action == 2 && value.is_object())
        value["key" + std::to_string(pick(3))] = *child;
      else if (action == 3 && value.is_array())
        std::swap(*child, value[pick(value.size())]);
      else
        mutate(*child);
      return;
    }
    static const json values[] = {0,
                                  1,
                                  -1,
                                  2,
                                  3,
                                  4,
                                  5,
                                  7,
                                  8,
                                  16,
                                  64,
                                  128,
                                  255,
                                  256,
                                  257,
                                  512,
                                  768,
                                  1024,
                                  INT64_MAX,
                                  INT64_MIN,
                                  uint64_t(-1),
                                  1.5,
                                  true,
                                  false,
                                  nullptr,
                                  "",
                                  "raw",
                                  "war",
                                  "read",
                                  "write",
                                  "update",
                                  "none",
                                  "arena",
                                  "barrier",
                                  "vulkan",
                                  json::array(),
                                  json::object(),
                                  int64_t(1) << 56,
                                  (int64_t(1) << 56) + 1};
    value = values[pick(std::size(values))];
  }

private:
  std::mt19937 random;
};
} // namespace

/// Whether `path` can be read. Verifies it if so.
static bool readAndVerify(const std::string &path) {
  try {
    Artifact artifact = readArtifact(path);
    EXPECT_FALSE(verify(artifact).empty());
    return true;
  } catch (const Error &error) {
    EXPECT_STRNE(error.what(), "");
    return false;
  }
}

TEST(Mutation, bytes_of_the_file) {
  TemporaryFolder folder;
  writeArtifact(folder / "a.weir", makeSample());
  std::ifstream stream(folder / "a.weir", std::ios::binary);
  const Bytes bytes(std::istreambuf_iterator<char>(stream), {});
  const Files files = readArchive(folder / "a.weir");
  size_t refused = 0;
  for (unsigned seed = 0; seed < 2000; ++seed) {
    Bytes edited = bytes;
    Mutator(seed).mutateBytes(edited);
    std::ofstream(folder / "b.weir", std::ios::binary)
        .write(reinterpret_cast<const char *>(edited.data()), std::streamsize(edited.size()));
    try {
      // Bytes that the archive's checksums cover either are as they were or are refused.
      EXPECT_EQ(readArchive(folder / "b.weir"), files) << "seed " << seed;
    } catch (const Error &) {
      ++refused;
    }
    readAndVerify(folder / "b.weir");
  }
  EXPECT_GT(refused, 1000u);
}

TEST(Mutation, bytes_of_each_part) {
  TemporaryFolder folder;
  writeArtifact(folder / "a.weir", makeSample());
  const Files files = readArchive(folder / "a.weir");
  for (unsigned seed = 0; seed < 2000; ++seed) {
    Mutator mutator(seed);
    Files edited = files;
    mutator.mutateBytes(
        std::next(edited.begin(), std::ptrdiff_t(mutator.pick(files.size())))->second);
    writeArchive(folder / "b.weir", edited);
    readAndVerify(folder / "b.weir");
  }
}

TEST(Mutation, values_of_manifest_plan_and_notes) {
  TemporaryFolder folder;
  Files samples[2];
  for (int i = 0; i < 2; ++i) {
    writeArtifact(folder / "a.weir", i ? makeDonatingSample() : makeSample());
    samples[i] = readArchive(folder / "a.weir");
  }
  size_t read = 0, refused = 0;
  for (unsigned seed = 0; seed < 6000; ++seed) {
    Mutator mutator(seed);
    Files edited = samples[seed % 3 == 0];
    Bytes &part = edited[seed % 4 == 0   ? "manifest.json"
                         : seed % 8 == 1 ? "notes/vulkan.json"
                                         : "plan/vulkan/main.json"];
    json value = json::parse(part.begin(), part.end());
    for (size_t i = mutator.pick(2) + 1; i > 0; --i)
      mutator.mutate(value);
    std::string text = value.dump();
    part.assign(text.begin(), text.end());
    writeArchive(folder / "b.weir", edited);
    ++(readAndVerify(folder / "b.weir") ? read : refused);
  }
  EXPECT_GT(read, 100u) << "edits that reach the verifier";
  EXPECT_GT(refused, 1000u);
}

//===- ArtifactTest.cpp - `.weir` files, written and read back ------------===//

#include "Sample.h"

#include "gtest/gtest.h"

#include <fstream>

using namespace weir;
using namespace weir::test;

static Bytes readBytes(const std::string &path) {
  std::ifstream stream(path, std::ios::binary);
  return Bytes(std::istreambuf_iterator<char>(stream), {});
}

TEST(Artifact, reads_back_what_was_written) {
  TemporaryFolder folder;
  Artifact sample = makeSample();
  writeArtifact(folder / "a.weir", sample);
  Artifact read = readArtifact(folder / "a.weir");
  EXPECT_EQ(printManifest(read.manifest), printManifest(sample.manifest));
  ASSERT_EQ(read.plans.size(), 1u);
  EXPECT_EQ(printPlan(read.plans[0]), printPlan(sample.plans[0]));
  EXPECT_EQ(read.code, sample.code);
  EXPECT_EQ(read.constants, sample.constants);
  EXPECT_EQ(read.ir, sample.ir);
  EXPECT_EQ(read.findPlan("main", "vulkan"), &read.plans[0]);
  EXPECT_EQ(read.findPlan("main", "cuda"), nullptr);
}

TEST(Artifact, same_content_gives_same_bytes) {
  TemporaryFolder folder;
  writeArtifact(folder / "a.weir", makeSample());
  writeArtifact(folder / "b.weir", readArtifact(folder / "a.weir"));
  EXPECT_EQ(readBytes(folder / "a.weir"), readBytes(folder / "b.weir"));
  EXPECT_EQ(folder.countFiles(), 2u);
}

TEST(Artifact, a_failed_check_leaves_nothing) {
  TemporaryFolder folder;
  auto refuse = [](const std::string &path) {
    readArtifact(path);
    throw Error("refused");
  };
  EXPECT_THROW(writeArtifact(folder / "a.weir", makeSample(), refuse), Error);
  EXPECT_EQ(folder.countFiles(), 0u);
}

TEST(Artifact, names_allocations_and_slices) {
  Artifact sample = makeSample();
  std::string names;
  for (const Allocation &allocation : sample.plans[0].allocations)
    names += describeAllocation(allocation, sample.manifest.entries[0]) + ", ";
  EXPECT_EQ(names, "argument \"x\", argument \"w\", result \"y\", the constants, the arena, ");
  EXPECT_EQ(printSlice({0, 8, 16, 4}), "[begin, bytes, stride, count] = [0, 8, 16, 4]");
}

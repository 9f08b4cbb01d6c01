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

TEST(Error, is_readable_whatever_a_file_names) {
  EXPECT_EQ(makeReadable("a \xc3\xa9 \xe2\x82\xac \xf0\x9f\x98\x80\n"),
            "a \xc3\xa9 \xe2\x82\xac \xf0\x9f\x98\x80\n");
  // A terminal's commands, bytes of no character, one cut short, one too long, half of a pair.
  EXPECT_EQ(makeReadable("\x1b[2J\x7f\r"), "\\x1b[2J\\x7f\\x0d");
  EXPECT_EQ(makeReadable("\xff \xe2\x82"), "\\xff \\xe2\\x82");
  EXPECT_EQ(makeReadable("\xc0\x80 \xe0\x80\x80"), "\\xc0\\x80 \\xe0\\x80\\x80");
  EXPECT_EQ(makeReadable("\xed\xa0\x80 \xf4\x90\x80\x80"), "\\xed\\xa0\\x80 \\xf4\\x90\\x80\\x80");
  EXPECT_EQ(makeReadable(std::string(1, '\0')), "\\x00");
  EXPECT_STREQ(Error("\x1b").what(), "\\x1b");
}

TEST(Error, leaves_out_the_middle_of_what_is_long) {
  EXPECT_EQ(makeReadable(std::string(4000, 'a')), std::string(4000, 'a'));
  EXPECT_EQ(makeReadable(std::string(280890, 'a')),
            std::string(1960, 'a') + " [276970 bytes left out] " + std::string(1960, 'a'));
  // Whole characters are kept or left out.
  std::string euros;
  for (int i = 0; i < 2000; ++i)
    euros += "\xe2\x82\xac";
  std::string readable = makeReadable(euros);
  EXPECT_TRUE(makeReadable(readable) == readable);
  EXPECT_EQ(readable.find("\\x"), std::string::npos);
}

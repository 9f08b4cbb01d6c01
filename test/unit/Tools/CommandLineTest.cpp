//===- CommandLineTest.cpp - Words of the command line --------------------===//

#include "tools/weir/CommandLine.h"

#include <gtest/gtest.h>

using namespace weir::tool;

TEST(FindSimilar, AllowsOneMistakeForThreeCharacters) {
  std::vector<std::string> verbs = {"compile", "run", "inspect", "verify"};
  EXPECT_EQ(findSimilar("complie", verbs), "compile");
  EXPECT_EQ(findSimilar("rum", verbs), "run");
  EXPECT_EQ(findSimilar("inspekt", verbs), "inspect");
  EXPECT_EQ(findSimilar("rux", {"fix"}), "");
  EXPECT_EQ(findSimilar("frobnicate", verbs), "");
  EXPECT_EQ(findSimilar("", verbs), "");
}

TEST(FindSimilar, CompletesABeginning) {
  EXPECT_EQ(findSimilar("--random", {"--run", "--random-inputs"}), "--random-inputs");
  EXPECT_EQ(findSimilar("x", {"x-long-name"}), "");
}

TEST(FindSimilar, LeavesWordsThatNoNameIsAsLongAs) {
  EXPECT_EQ(findSimilar(std::string(100'000, 'a'), {"a"}), "");
}

TEST(WrapText, BreaksAtSpaces) {
  EXPECT_EQ(wrapText("one two three", 9, 2), "one two\n  three");
  EXPECT_EQ(wrapText("one two three", 8, 2), "one\n  two\n  three");
  EXPECT_EQ(wrapText("one two", 80, 2), "one two");
  EXPECT_EQ(wrapText("verylongword one", 6, 2), "verylongword\n  one");
  EXPECT_EQ(wrapText("one\ntwo three", 80, 1), "one\n two three");
  EXPECT_EQ(wrapText("", 80, 4), "");
}

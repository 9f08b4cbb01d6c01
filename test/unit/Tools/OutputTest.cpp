//===- OutputTest.cpp - Output of the tool --------------------------------===//

#include "tools/weir/Output.h"

#include <gtest/gtest.h>

using namespace weir::tool;
using namespace std::chrono_literals;

TEST(ProgressLine, IsEmptyInTheFirstSecond) {
  EXPECT_EQ(printProgress("parse", 0ms, 80), "");
  EXPECT_EQ(printProgress("parse", 999ms, 80), "");
  EXPECT_EQ(printProgress("parse", 1s, 80), "parse (1 s)");
}

TEST(ProgressLine, CountsWholeSeconds) {
  EXPECT_EQ(printProgress("level 6 of 7: ordered", 12999ms, 80), "level 6 of 7: ordered (12 s)");
  EXPECT_EQ(printProgress("level 6 of 7: ordered", 3601s, 80), "level 6 of 7: ordered (3601 s)");
}

TEST(ProgressLine, LeavesTheLastColumnFree) {
  // 11 characters with the time.
  EXPECT_EQ(printProgress("abcde", 10s, 13), "abcde (10 s)");
  EXPECT_EQ(printProgress("abcdef", 10s, 13), "ab... (10 s)");
  for (unsigned columns = 0; columns < 12; ++columns) {
    std::string line = printProgress("level 6 of 7: ordered", 10s, columns);
    EXPECT_LT(line.size(), std::max(columns, 8u)) << columns;
    EXPECT_TRUE(line.ends_with(" (10 s)")) << columns;
  }
}

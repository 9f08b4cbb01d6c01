//===- CompilerTest.cpp - Steps that a compilation reports ----------------===//

#include "driver/Compiler/Compiler.h"
#include "weir/Artifact/Artifact.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <unistd.h>

using namespace weir;

namespace {
/// A graph of two functions, in a folder of its own, and the options to compile it.
class Watched : public testing::Test {
protected:
  std::filesystem::path folder;
  CompileOptions options;

  void SetUp() override {
    folder =
        std::filesystem::temp_directory_path() / ("weir-compiler-test-" + std::to_string(getpid()));
    std::filesystem::create_directories(folder);
    options.input = folder / "in.mlir";
    options.output = folder / "out.weir";
    std::string text;
    for (const char *name : {"f", "g"})
      text += "func.func @" + std::string(name) +
              "(%x: tensor<8xf32>) -> tensor<8xf32> {\n"
              "  %y = arith.addf %x, %x : tensor<8xf32>\n"
              "  return %y : tensor<8xf32>\n}\n";
    writeText(options.input, text);
  }
  void TearDown() override { std::filesystem::remove_all(folder); }

  /// Returns the steps reported during compilation.
  std::vector<std::string> watch() {
    std::vector<std::string> told;
    options.onProgress = [&](const std::string &what) { told.push_back(what); };
    compile(options);
    return told;
  }
};
} // namespace

static bool contains(const std::vector<std::string> &told, const std::string &line) {
  return std::find(told.begin(), told.end(), line) != told.end();
}

TEST_F(Watched, TellsLevelsPassesAndKernels) {
  std::vector<std::string> told = watch();
  EXPECT_EQ(told.front(), "read");
  EXPECT_EQ(told.back(), "write");
  EXPECT_TRUE(contains(told, "level 1 of 7: graph"));
  EXPECT_TRUE(contains(told, "level 6 of 7: ordered"));
  EXPECT_TRUE(contains(told, "level 6 of 7: ordered, pass 1 of 4: weir-insert-barriers"));
  EXPECT_TRUE(contains(told, "level 6 of 7: ordered, pass 4 of 4: weir-verify-ordered"));
  // Both functions have the same kernel.
  std::string emission = "level 7 of 7: emitted, pass 1 of 3: weir-emit-spirv";
  EXPECT_TRUE(contains(told, emission + ", kernel 1 of 1"));
  EXPECT_FALSE(contains(told, emission + ", kernel 2 of 1"));
}

TEST_F(Watched, CountsTheLevelsOfEachTarget) {
  options.targets = {"vulkan", "cuda"};
  std::vector<std::string> told = watch();
  EXPECT_TRUE(contains(told, "level 2 of 12: gradient"));
  EXPECT_TRUE(contains(told, "level 3 of 12: cuda/kernels"));
  EXPECT_TRUE(contains(told, "level 12 of 12: vulkan/emitted"));
  EXPECT_TRUE(
      contains(told, "level 7 of 12: cuda/emitted, pass 1 of 3: weir-emit-ptx, kernel 1 of 1"));
}

TEST_F(Watched, CountsTheLevelsThatAreMade) {
  options.stopAfter = "kernels";
  options.output = folder / "out.mlir";
  EXPECT_TRUE(contains(watch(), "level 3 of 3: kernels"));
  options.startFrom = "kernels";
  options.input = options.output;
  options.stopAfter = "placed";
  EXPECT_TRUE(contains(watch(), "level 1 of 3: kernels"));
}

TEST_F(Watched, TimesStepsWithinSteps) {
  std::vector<CompileStep> steps;
  options.onStep = [&](const CompileStep &step) { steps.push_back(step); };
  compile(options);
  auto find = [&](const std::string &name) {
    return *std::find_if(steps.begin(), steps.end(),
                         [&](const CompileStep &step) { return step.name == name; });
  };
  CompileStep level = find("kernels"), pass = find("weir-form-kernels");
  EXPECT_EQ(level.kind, CompileStep::Kind::Level);
  EXPECT_EQ(level.depth, 0u);
  EXPECT_EQ(pass.kind, CompileStep::Kind::Pass);
  EXPECT_EQ(pass.depth, 1u);
  EXPECT_LE(level.begin, pass.begin);
  EXPECT_LE(pass.begin + pass.seconds, level.begin + level.seconds);
  EXPECT_EQ(find("verify the plan").depth, 1u);
  EXPECT_GT(find("weir-lower-kernels").opsBefore, 6);
  // Two functions, of two ops each. A pass on functions runs twice; it tells the ops of the
  // module all the same.
  EXPECT_EQ(find("weir-fold-gathers").opsBefore, 6);
  EXPECT_EQ(std::count_if(steps.begin(), steps.end(),
                          [](const CompileStep &s) { return s.name == "weir-fold-gathers"; }),
            2);
}

//===- MergeTest.cpp - Several targets in one artifact --------------------===//

#include "Sample.h"
#include "weir/Verify/Verify.h"
#include "gtest/gtest.h"

using namespace weir;
using namespace weir::test;

/// Returns the sample for another target.
static Artifact makeCudaSample() {
  Artifact artifact = makeSample();
  artifact.manifest.targets = {getBuiltinProfile("sm_80")};
  artifact.plans[0].target = "cuda";
  artifact.code.clear();
  for (Kernel &kernel : artifact.plans[0].kernels) {
    kernel.code = "code/cuda/" + kernel.name + ".ptx";
    kernel.workgroup = {32, 1, 1};
    artifact.code[kernel.code] = {1};
  }
  return artifact;
}

static Artifact readBack(const Artifact &artifact) {
  TemporaryFolder folder;
  writeArtifact(folder / "a.weir", artifact);
  Artifact read = readArtifact(folder / "a.weir");
  for (const Claim &claim : verify(read))
    EXPECT_TRUE(claim.holds) << claim.target << " " << claim.what << ": " << claim.detail;
  return read;
}

/// Returns the bytes that operand `operand` of a plan's first dispatch reads.
static Bytes getConstant(const Artifact &artifact, const Plan &plan, size_t operand) {
  PlanView view = plan.commands[0].operands[operand];
  auto begin = artifact.constants.begin() + view.offset;
  return Bytes(begin, begin + view.bytes);
}

TEST(Merge, keeps_equal_constants_once) {
  Artifact artifact = makeSample();
  addTargets(artifact, makeCudaSample());
  Artifact read = readBack(artifact);
  EXPECT_EQ(read.plans.size(), 2u);
  EXPECT_EQ(read.code.size(), 4u);
  EXPECT_EQ(read.constants, makeSample().constants);
}

TEST(Merge, adds_constants_that_differ) {
  Artifact artifact = makeSample(), other = makeCudaSample();
  other.constants[0] = 77; // of c0, which dispatches 0 and 3 read
  addTargets(artifact, other);
  Artifact read = readBack(artifact);
  ASSERT_EQ(read.manifest.constants.size(), 3u);
  EXPECT_EQ(read.manifest.constants[2].tensor.name, "c0_0");
  EXPECT_EQ(read.manifest.constants[2].offset, 512);
  EXPECT_EQ(getConstant(read, *read.findPlan("main", "vulkan"), 1)[0], 1);
  EXPECT_EQ(getConstant(read, *read.findPlan("main", "cuda"), 1)[0], 77);
}

/// A plan whose constants lie elsewhere than in the artifact that it joins.
TEST(Merge, moves_views_of_constants) {
  Artifact artifact = makeSample(), other = makeCudaSample();
  std::swap(other.manifest.constants[0].offset, other.manifest.constants[1].offset);
  std::swap_ranges(other.constants.begin(), other.constants.begin() + 12,
                   other.constants.begin() + 256);
  for (Command &command : other.plans[0].commands)
    for (PlanOperand &operand : command.operands)
      if (operand.allocation == 3)
        operand.offset = 256 - operand.offset;
  addTargets(artifact, other);
  Artifact read = readBack(artifact);
  EXPECT_EQ(read.constants, makeSample().constants);
  EXPECT_EQ(getConstant(read, *read.findPlan("main", "cuda"), 1)[0], 1);
}

TEST(Merge, names_several_profiles_of_one_kind) {
  Artifact artifact = makeSample(), other = makeSample();
  other.manifest.targets[0].queues = 2;
  other.notes["vulkan"] = Notes();
  nameTarget(artifact, "vulkan.one");
  nameTarget(other, "vulkan.two");
  addTargets(artifact, other);
  Artifact read = readBack(artifact);
  EXPECT_EQ(read.findProfiles("vulkan").size(), 2u);
  EXPECT_TRUE(read.findProfiles("vulkan.two").empty());
  EXPECT_EQ(read.findProfile("vulkan.two")->queues, 2);
  EXPECT_EQ(read.findProfile("vulkan"), nullptr);
  const Plan *plan = read.findPlan("main", "vulkan.two");
  ASSERT_NE(plan, nullptr);
  EXPECT_TRUE(plan->kernels[0].code.starts_with("code/vulkan.two/"));
  EXPECT_TRUE(read.code.contains(plan->kernels[0].code));
  EXPECT_EQ(read.notes.count("vulkan.two"), 1u);
  EXPECT_EQ(read.constants, makeSample().constants);
}

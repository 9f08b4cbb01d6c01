//===- RequirementsTest.cpp - The choice among an artifact's profiles -----===//

#include "lib/Runtime/Requirements.h"
#include "lib/Runtime/Device.h"
#include "test/unit/Artifact/Sample.h"

#include <gtest/gtest.h>

using namespace weir;
using namespace weir::runtime;

/// Returns an artifact with these profiles, in this order. Their targets are `base` and the name.
static Artifact makeProfiles(const std::string &base, const std::vector<std::string> &names) {
  Artifact artifact = test::makeSample();
  artifact.manifest.targets.clear();
  for (const std::string &name : names) {
    Profile profile = getBuiltinProfile(name);
    profile.target = base + "." + name;
    artifact.manifest.targets.push_back(profile);
  }
  return artifact;
}

/// Returns the target that a processor with `isas` takes, or the error.
static std::string choose(const Artifact &artifact, const std::vector<std::string> &isas) {
  auto check = [&](const Profile &profile, Missing &missing) {
    missing.require(std::find(isas.begin(), isas.end(), profile.isa) != isas.end(),
                    "the instruction set " + profile.isa);
  };
  try {
    return chooseTarget(artifact, "cpu", "chip", check).target;
  } catch (const BadArgument &error) {
    return error.what();
  }
}

TEST(Requirements, takes_the_best_profile_that_runs) {
  Artifact artifact = makeProfiles("cpu", {"aarch64", "x86-64-v2", "x86-64-v4"});
  EXPECT_EQ(choose(artifact, {"x86-64-v2", "x86-64-v3", "x86-64-v4"}), "cpu.x86-64-v4");
  EXPECT_EQ(choose(artifact, {"x86-64-v2", "x86-64-v3"}), "cpu.x86-64-v2");
  EXPECT_EQ(choose(artifact, {"aarch64"}), "cpu.aarch64");
  std::swap(artifact.manifest.targets[1], artifact.manifest.targets[2]);
  EXPECT_EQ(choose(artifact, {"x86-64-v2", "x86-64-v3", "x86-64-v4"}), "cpu.x86-64-v4");
}

TEST(Requirements, ranks_profiles_of_vulkan) {
  auto rank = [](const char *name) { return getRank(getBuiltinProfile(name)); };
  EXPECT_LT(rank("vulkan13"), rank("minimum"));
  EXPECT_LT(rank("minimum"), rank("lavapipe"));
  EXPECT_LT(rank("xe"), rank("rdna2"));
  EXPECT_LT(rank("gcn"), rank("rdna3")); // which has matrices
  EXPECT_EQ(rank("nvidia"), rank("rdna3"));
  Artifact artifact = makeProfiles("vulkan", {"vulkan13", "minimum", "rdna2"});
  EXPECT_EQ(chooseTarget(artifact, "vulkan", "chip",
                         [](const Profile &profile, Missing &missing) {
                           missing.require(profile.name != "rdna2", "more");
                         })
                .target,
            "vulkan.minimum");
}

TEST(Requirements, takes_the_first_of_one_rank) {
  Artifact artifact = makeProfiles("cpu", {"x86-64-v3", "x86-64-v3"});
  artifact.manifest.targets[0].target = "cpu.b";
  artifact.manifest.targets[1].target = "cpu.a";
  EXPECT_EQ(choose(artifact, {"x86-64-v3"}), "cpu.b");
}

TEST(Requirements, says_what_each_profile_lacks) {
  EXPECT_EQ(choose(makeProfiles("cpu", {"x86-64-v4"}), {}),
            "the artifact cannot run on 'chip': it needs the instruction set x86-64-v4; compile it "
            "for the profile that `weir devices --emit-profile` writes here");
  EXPECT_EQ(choose(makeProfiles("cpu", {"aarch64", "x86-64-v4"}), {}),
            "the artifact cannot run on 'chip': its code for cpu.aarch64 needs the instruction set "
            "aarch64; its code for cpu.x86-64-v4 needs the instruction set x86-64-v4; compile it "
            "for the profile that `weir devices --emit-profile` writes here");
}

TEST(Requirements, lists_the_targets_of_an_artifact_for_other_devices) {
  EXPECT_EQ(choose(makeProfiles("cuda", {"sm_80", "sm_90"}), {}),
            "the artifact cannot run on 'chip': it has no code for cpu, but for cuda.sm_80, "
            "cuda.sm_90; compile it with --target=cpu");
}

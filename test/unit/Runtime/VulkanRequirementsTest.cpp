//===- VulkanRequirementsTest.cpp - Devices that lack something -----------===//

#include "lib/Runtime/VulkanRequirements.h"
#include "test/unit/Artifact/Sample.h"

#include <gtest/gtest.h>

using namespace weir;
using namespace weir::runtime;

/// Returns an artifact with one kernel, whose module declares cooperative matrices of 16 x 16 x 16.
static Artifact makeArtifact() {
  Artifact artifact = test::makeSample();
  Profile profile = getBuiltinProfile("nvidia");
  artifact.manifest.targets = {profile};
  artifact.plans.resize(1);
  artifact.plans[0].target = "vulkan";
  artifact.plans[0].kernels.resize(1);
  const std::vector<uint32_t> words = {0x07230203, 0x10600, 0, 1, 0, 2u << 16 | 17, 6022};
  const auto *begin = reinterpret_cast<const unsigned char *>(words.data());
  artifact.code = {{artifact.plans[0].kernels[0].code, Bytes(begin, begin + 4 * words.size())}};
  artifact.plans[0].commands.clear();
  return artifact;
}

static std::string findMissing(const DeviceFacts &facts) {
  Artifact artifact = makeArtifact();
  Missing missing;
  checkRequirements(artifact, artifact.manifest.targets[0], facts, missing);
  return missing.getText();
}

static CooperativeProperties makeOffer(uint32_t rows) {
  CooperativeProperties offer;
  offer.rows = rows;
  offer.columns = offer.products = 16;
  offer.cType = offer.resultType = float32Component;
  offer.scope = subgroupScope;
  return offer;
}

TEST(VulkanRequirements, matrices_must_be_offered) {
  DeviceFacts facts;
  EXPECT_NE(findMissing(facts).find("cooperative matrices of 16x16x16 f16 f32 of subgroups for "
                                    "kernel"),
            std::string::npos)
      << findMissing(facts);
  EXPECT_NE(findMissing(facts).find("where the device has none"), std::string::npos);
  facts.cooperative = {makeOffer(8), makeOffer(16)};
  EXPECT_EQ(findMissing(facts).find("cooperative"), std::string::npos) << findMissing(facts);
}

TEST(VulkanRequirements, shape_types_and_scope_count) {
  DeviceFacts facts;
  auto isRefused = [&](const CooperativeProperties &offer, const char *text) {
    facts.cooperative = {offer};
    std::string missing = findMissing(facts);
    EXPECT_NE(missing.find(std::string("where the device has ") + text), std::string::npos)
        << missing;
  };
  isRefused(makeOffer(8), "8x16x16 f16 f32 of subgroups");
  CooperativeProperties offer = makeOffer(16);
  offer.cType = offer.resultType = float16Component;
  isRefused(offer, "16x16x16 f16 f16 of subgroups");
  offer = makeOffer(16);
  offer.bType = 3;
  isRefused(offer, "16x16x16 f16 f32 of subgroups");
  offer = makeOffer(16);
  offer.scope = 2;
  isRefused(offer, "16x16x16 f16 f32 of workgroups");
}

TEST(VulkanRequirements, a_profile_takes_what_is_offered) {
  DeviceFacts facts;
  facts.int16 = facts.storage16 = true;
  facts.cooperative = {makeOffer(8), makeOffer(16)};
  EXPECT_EQ(makeProfile(facts).cooperative, CooperativeShape());
  facts.float16 = facts.vulkanMemoryModel = true;
  EXPECT_EQ(makeProfile(facts).cooperative, (CooperativeShape{16, 16, 16}));
  facts.cooperative.pop_back();
  EXPECT_EQ(makeProfile(facts).cooperative, (CooperativeShape{8, 16, 16}));
}

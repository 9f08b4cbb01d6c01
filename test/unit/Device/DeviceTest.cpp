//===- DeviceTest.cpp - Figures of devices --------------------------------===//

#include "weir/Device/Device.h"
#include "weir/Artifact/Error.h"

#include "gtest/gtest.h"

#include <set>

using namespace weir;
using namespace weir::model;

TEST(Devices, EachFigureHasASource) {
  for (const Device &device : getDevices())
    for (const NamedFigure &each : getFigures(device)) {
      EXPECT_NE(std::string(each.figure->source), "") << device.name << " " << each.name;
      if (*each.figure) {
        EXPECT_GT(**each.figure, 0) << device.name << " " << each.name;
        EXPECT_NE(std::string(each.figure->source), "not published")
            << device.name << " " << each.name;
      }
    }
}

TEST(Devices, NamesAreDifferentAndListed) {
  std::set<std::string> names;
  for (const Device &device : getDevices()) {
    EXPECT_TRUE(names.insert(device.name).second) << device.name;
    EXPECT_EQ(&getDevice(device.name), &device);
    const std::string target = device.target;
    EXPECT_TRUE(target == "cuda" || target == "vulkan") << device.name;
    EXPECT_EQ(target == "cuda", device.sm != 0) << device.name;
  }
  try {
    getDevice("h10");
    FAIL();
  } catch (const Error &error) {
    EXPECT_NE(std::string(error.what()).find("\"h10\""), std::string::npos);
    EXPECT_NE(std::string(error.what()).find("h100, h200"), std::string::npos);
  }
}

TEST(Devices, TheFirstOfACapabilityIsFound) {
  ASSERT_NE(findDevice(90), nullptr);
  EXPECT_STREQ(findDevice(90)->name, "h100");
  EXPECT_EQ(findDevice(0), nullptr); // not a Vulkan device
  EXPECT_EQ(findDevice(100), nullptr);
}

/// Peaks that vendors state follow from the figures.
TEST(Devices, PeaksAreThoseOfTheVendors) {
  auto getFma = [](const char *name) {
    const Device &device = getDevice(name);
    return *device.units * *device.fma * 2 * *device.clock * 1e-12;
  };
  auto getMatrix = [](const char *name) {
    const Device &device = getDevice(name);
    return *device.units * *device.matrix * *device.clock * 1e-12;
  };
  EXPECT_NEAR(getFma("a100"), 19.5, 0.1);
  EXPECT_NEAR(getMatrix("a100"), 312, 1);
  EXPECT_NEAR(getMatrix("h100"), 989, 1);
  EXPECT_NEAR(getFma("l4"), 30.3, 0.1);
  EXPECT_NEAR(getMatrix("l4"), 121, 1);
  EXPECT_NEAR(getFma("rtx4090"), 82.6, 0.1);
  EXPECT_NEAR(getMatrix("rtx4090"), 165.2, 0.1);
  EXPECT_NEAR(getFma("a6000"), 38.7, 0.1);
  EXPECT_NEAR(getFma("m1max"), 10.6, 0.1);
}

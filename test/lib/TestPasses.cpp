//===- TestPasses.cpp - Registers the passes for tests --------------------===//

#include "test/lib/TestPasses.h"

void weir::test::registerTestPasses() {
  registerTestEffectsPass();
  registerTestAliasingPass();
  registerTestAccessMapsPass();
  registerTestUniformityPass();
  registerTestLoopTripsPass();
  registerTestWorkgroupRacesPass();
  registerTestQuestionCountsPass();
  registerTestHappensBeforePass();
  registerTestPackUncheckedPass();
  registerTestFreeAfterFirstReaderPass();
  registerTestInPlaceByNamePass();
  registerTestInPlacePass();
}

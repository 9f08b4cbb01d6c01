//===- TestPasses.h - Passes for tests alone --------------------*- C++ -*-===//

#ifndef WEIR_TEST_LIB_TESTPASSES_H
#define WEIR_TEST_LIB_TESTPASSES_H

namespace weir::test {

void registerTestEffectsPass();
void registerTestAliasingPass();
void registerTestAccessMapsPass();
void registerTestUniformityPass();
void registerTestLoopTripsPass();
void registerTestWorkgroupRacesPass();
void registerTestQuestionCountsPass();
void registerTestHappensBeforePass();
void registerTestPackUncheckedPass();
void registerTestFreeAfterFirstReaderPass();
void registerTestInPlaceByNamePass();
void registerTestInPlacePass();

/// Registers all of the above.
void registerTestPasses();

} // namespace weir::test

#endif // WEIR_TEST_LIB_TESTPASSES_H

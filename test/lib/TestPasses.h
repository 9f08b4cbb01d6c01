//===- TestPasses.h - Passes that print what analyses answer ----*- C++ -*-===//

#ifndef WEIR_TEST_LIB_TESTPASSES_H
#define WEIR_TEST_LIB_TESTPASSES_H

namespace weir::test {

void registerTestEffectsPass();
void registerTestAliasingPass();
void registerTestAccessMapsPass();
void registerTestUniformityPass();
void registerTestWorkgroupRacesPass();

inline void registerTestPasses() {
  registerTestEffectsPass();
  registerTestAliasingPass();
  registerTestAccessMapsPass();
  registerTestUniformityPass();
  registerTestWorkgroupRacesPass();
}

} // namespace weir::test

#endif // WEIR_TEST_LIB_TESTPASSES_H

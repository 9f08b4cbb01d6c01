//===- fuzz-profile.cpp - A profile from JSON and back ------------------===//

#include "Fuzz.h"
#include "weir/Artifact/Profile.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  return weir::fuzz::expectRoundTrip(data, size, weir::parseProfile, weir::printProfile);
}

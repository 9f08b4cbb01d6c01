//===- Refusal.h - Expects errors by their sentences ------------*- C++ -*-===//

#ifndef WEIR_TEST_UNIT_ARTIFACT_REFUSAL_H
#define WEIR_TEST_UNIT_ARTIFACT_REFUSAL_H

#include "weir/Artifact/Error.h"

#include <gtest/gtest.h>

#include <functional>
#include <string>

namespace weir::test {

/// Runs `act` and returns the error's sentence, or "" when there is none.
inline std::string getError(const std::function<void()> &act) {
  try {
    act();
  } catch (const Error &error) {
    return error.what();
  }
  return "";
}

/// Expects that `act` throws an error whose sentence contains `part`.
inline void expectError(const std::function<void()> &act, const std::string &part) {
  std::string sentence = getError(act);
  EXPECT_NE(sentence.find(part), std::string::npos) << "got: " << sentence;
}
#define EXPECT_ERROR(act, part) expectError([&] { act; }, part)

} // namespace weir::test

#endif // WEIR_TEST_UNIT_ARTIFACT_REFUSAL_H

//===- Expect.h - What runs report, in any schedule -------------*- C++ -*-===//

#ifndef WEIR_TEST_UNIT_SIM_EXPECT_H
#define WEIR_TEST_UNIT_SIM_EXPECT_H

#include "Kernels.h"

#include "gtest/gtest.h"

namespace weir::test {

inline std::vector<SimOptions> getSchedules() {
  std::vector<SimOptions> schedules;
  for (auto strategy : {SimStrategy::Recorded, SimStrategy::LatestFirst, SimStrategy::WriterFirst,
                        SimStrategy::Split})
    schedules.push_back({.strategy = strategy});
  for (uint64_t seed = 0; seed < 20; ++seed)
    schedules.push_back({.strategy = SimStrategy::Random, .seed = seed});
  return schedules;
}

/// Expects exactly one report in any schedule, with these parts.
inline void expectReport(const Sample &sample, const std::vector<std::string> &parts) {
  for (const SimOptions &schedule : getSchedules()) {
    std::vector<std::string> reports = sample.run(schedule).reports;
    ASSERT_EQ(reports.size(), 1u) << testing::PrintToString(reports) << " with strategy "
                                  << int(schedule.strategy) << ", seed " << schedule.seed;
    for (const std::string &part : parts)
      EXPECT_NE(reports[0].find(part), std::string::npos) << reports[0] << "\nlacks " << part;
  }
}

inline void expectSilence(const Sample &sample) {
  for (const SimOptions &schedule : getSchedules())
    EXPECT_EQ(testing::PrintToString(sample.run(schedule).reports), "{}");
}

inline std::vector<float> getFloats(const SimOutcome &outcome) {
  const Bytes &data = outcome.results[0].data;
  std::vector<float> floats(data.size() / 4);
  std::memcpy(floats.data(), data.data(), data.size());
  return floats;
}

inline std::string getError(const Sample &sample) {
  try {
    sample.run();
    return "";
  } catch (const Error &error) {
    return error.what();
  }
}

} // namespace weir::test

#endif // WEIR_TEST_UNIT_SIM_EXPECT_H

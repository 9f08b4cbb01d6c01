//===- Ptx.h - Small kernels of PTX for the simulator -----------*- C++ -*-===//
//
// In a body, `%a` and `%b` are the operands' addresses, `%pa` and `%pb` those of the thread's own
// 32 bits, `%t` is the thread and `%ps` the address of its own 32 bits of `tile`.
//
//===----------------------------------------------------------------------===//

#ifndef WEIR_TEST_UNIT_SIM_PTX_H
#define WEIR_TEST_UNIT_SIM_PTX_H

#include "Expect.h"

namespace weir::test {

inline std::string getPtx(const std::string &body, uint32_t threads) {
  return ".version 8.0\n.target sm_80\n.address_size 64\n"
         ".visible .entry kernel(.param .u64 pa, .param .u64 pb)\n.reqntid " +
         std::to_string(threads) +
         ", 1, 1\n{\n"
         ".reg .pred %p<20>;\n.reg .b16 %h<40>;\n.reg .b32 %t, %g, %r<90>;\n"
         ".reg .b64 %a, %b, %pa, %pb, %ps, %d<40>;\n"
         ".shared .align 16 .b8 tile[4096];\n"
         "ld.param.b64 %a, [pa];\nld.param.b64 %b, [pb];\nmov.u32 %t, %tid.x;\n"
         "mov.u32 %g, %ctaid.x;\nmad.lo.s32 %r88, %g, " +
         std::to_string(threads) +
         ", %t;\nmul.wide.u32 %d39, %r88, 4;\nadd.s64 %pa, %a, %d39;\nadd.s64 %pb, %b, %d39;\n"
         "mov.b64 %ps, tile;\nmul.wide.u32 %d38, %t, 4;\nadd.s64 %ps, %ps, %d38;\n" +
         body + "\nret;\n}\n";
}

/// Returns one dispatch of a kernel that reads x and writes y, 32 bits for each thread.
inline Sample makeText(const std::string &text, uint32_t threads, int64_t workgroups = 1,
                       const std::string &accesses = "rw") {
  Sample sample(int64_t(threads) * workgroups);
  sample.artifact.manifest.targets[0].target = sample.plan.target = "cuda";
  sample.artifact.manifest.targets[0].subgroupSize = 32;
  const std::string path = "code/cuda/kernel.ptx";
  sample.artifact.code[path] = Bytes(text.begin(), text.end());
  Kernel kernel{"kernel", path, {threads, 1, 1}, {}};
  for (char access : accesses)
    kernel.operands.push_back({access == 'r'   ? Access::Read
                               : access == 'w' ? Access::Write
                                               : Access::Update,
                               access == 'w', sample.bytes, 4});
  sample.plan.kernels.push_back(kernel);
  sample.plan.commands = {dispatch(0, 0, {sample.x, sample.y}, workgroups)};
  return sample;
}

inline Sample makePtx(const std::string &body, uint32_t threads = 32, int64_t workgroups = 1,
                      const std::string &accesses = "rw") {
  return makeText(getPtx(body, threads), threads, workgroups, accesses);
}

/// Expects in any schedule at least one report that has all parts.
inline void expectSome(const Sample &sample, const std::vector<std::string> &parts) {
  for (const SimOptions &schedule : getSchedules()) {
    std::vector<std::string> reports = sample.run(schedule).reports;
    bool isThere = false;
    for (const std::string &report : reports) {
      bool hasAll = true;
      for (const std::string &part : parts)
        hasAll &= report.find(part) != std::string::npos;
      isThere |= hasAll;
    }
    EXPECT_TRUE(isThere) << testing::PrintToString(reports) << " with strategy "
                         << int(schedule.strategy) << ", seed " << schedule.seed;
  }
}

inline std::vector<uint32_t> getWords(const Sample &sample, const SimOptions &options = {}) {
  SimOutcome outcome = sample.run(options);
  EXPECT_EQ(testing::PrintToString(outcome.reports), "{}");
  const Bytes &data = outcome.results[0].data;
  std::vector<uint32_t> numbers(data.size() / 4);
  std::memcpy(numbers.data(), data.data(), data.size());
  return numbers;
}

/// Loads x into %r0.
inline const char *const loadX = "ld.global.b32 %r0, [%pa];\n";

} // namespace weir::test

#endif // WEIR_TEST_UNIT_SIM_PTX_H

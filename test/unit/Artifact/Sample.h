//===- Sample.h - A small artifact that holds, for tests --------*- C++ -*-===//

#ifndef WEIR_TEST_UNIT_ARTIFACT_SAMPLE_H
#define WEIR_TEST_UNIT_ARTIFACT_SAMPLE_H

#include "weir/Artifact/Artifact.h"

#include <cstring>
#include <filesystem>
#include <string>
#include <unistd.h>

namespace weir::test {

inline Command dispatch(int64_t kernel, int64_t wave, std::vector<PlanOperand> operands) {
  Command command;
  command.kernel = kernel;
  command.wave = wave;
  command.operands = std::move(operands);
  command.location = "sample.mlir:" + std::to_string(wave + 1) + ":1";
  return command;
}

inline Command barrier(std::vector<Hazard> hazards, std::vector<PlanView> memory) {
  Command command;
  command.kind = Command::Kind::Barrier;
  command.hazards = std::move(hazards);
  command.memory = std::move(memory);
  return command;
}

/// Returns valid SPIR-V of which nothing is known: an entry point that does nothing, and a
/// sampler's type, which the reader does not support.
inline Bytes makeUnknownCode() {
  constexpr uint32_t words[] = {
      0x07230203, 0x10600, 0,       6,       0,  0x20011, 1, 0x3000e, 0,       1, 0x4000f, 5,
      1,          0x6b,    0x60010, 1,       17, 1,       1, 1,       0x20013, 2, 0x30021, 3,
      2,          0x2001a, 4,       0x50036, 2,  1,       0, 3,       0x200f8, 5, 0x100fd, 0x10038};
  Bytes code(sizeof(words));
  std::memcpy(code.data(), words, sizeof(words));
  return code;
}

/// Returns one entry, (x, w) -> (y), of five dispatches and three barriers:
///   0 scale  x, c0 -> t0     slot 0, wave 0
///   1 scale  w, c1 -> t1     slot 1, wave 0
///   2 add    t0, t1 -> t2    slot 2, wave 1; RAW on 0 and 1
///   3 scale  x, c0 -> t3     over t0's bytes, wave 2; WAR on 2 (and WAW on 0)
///   4 add    t2, t3 -> y     wave 3; RAW on 2 and 3
inline Artifact makeSample() {
  Artifact artifact;
  Manifest &manifest = artifact.manifest;
  manifest.producer = "weir test";
  manifest.entries = {{"main",
                       {{"x", "F32", {8, 8}, "input", false}, {"w", "F32", {64}, "param", false}},
                       {{"y", "F32", {64}, "", false}}}};
  manifest.targets = {Profile()};
  manifest.constants = {{{"c0", "F32", {3}, "", false}, 0}, {{"c1", "F32", {3}, "", false}, 256}};
  artifact.constants.assign(268, 0);
  for (int i = 0; i < 12; ++i) {
    artifact.constants[i] = i + 1;
    artifact.constants[256 + i] = 100 + i;
  }

  Plan plan;
  plan.entry = "main";
  plan.target = "vulkan";
  plan.arenaBytes = 768;
  plan.pinnedBytes = 1024;
  plan.allocations = {{AllocationKind::Argument, 0, 256},
                      {AllocationKind::Argument, 1, 256},
                      {AllocationKind::Result, 0, 256},
                      {AllocationKind::Constants, 0, 268},
                      {AllocationKind::Arena, 0, 768}};
  plan.values = {{"x", 256},  {"w", 256},  {"y", 256}, {"t0", 256},
                 {"t1", 256}, {"t2", 256}, {"t3", 256}};
  plan.argumentValues = {0, 1};
  plan.resultValues = {2};
  plan.slots = {{"t0", 0, 256, 256, 0, 1},
                {"t1", 256, 256, 256, 0, 1},
                {"t2", 512, 256, 256, 1, 3},
                {"t3", 0, 256, 256, 2, 3}};
  KernelOperand read{Access::Read, false, 256, 16}, write{Access::Write, true, 256, 16};
  KernelOperand constant{Access::Read, false, 12, 4};
  plan.kernels = {{"scale", "code/vulkan/scale.spv", {8, 1, 1}, {read, constant, write}},
                  {"add", "code/vulkan/add.spv", {8, 1, 1}, {read, read, write}}};
  PlanOperand x{{0, 0, 256}, 0}, w{{1, 0, 256}, 1}, y{{2, 0, 256}, 2}, c0{{3, 0, 12}},
      c1{{3, 256, 12}};
  PlanOperand t0{{4, 0, 256}, 3}, t1{{4, 256, 256}, 4}, t2{{4, 512, 256}, 5}, t3{{4, 0, 256}, 6};
  plan.commands = {
      dispatch(0, 0, {x, c0, t0}),
      dispatch(0, 0, {w, c1, t1}),
      barrier({{HazardKind::RAW, 0, 2, 2, 0}, {HazardKind::RAW, 1, 2, 2, 1}}, {t0, t1}),
      dispatch(1, 1, {t0, t1, t2}),
      barrier({{HazardKind::WAR, 2, 0, 3, 2}}, {}),
      dispatch(0, 2, {x, c0, t3}),
      barrier({{HazardKind::RAW, 3, 2, 4, 1}, {HazardKind::RAW, 2, 2, 4, 0}}, {t3, t2}),
      dispatch(1, 3, {t2, t3, y})};
  artifact.plans = {plan};
  artifact.code = {{"code/vulkan/scale.spv", makeUnknownCode()},
                   {"code/vulkan/add.spv", makeUnknownCode()}};
  artifact.ir = {{"ir/graph.mlir", "module {\n}\n"}};
  EntryNotes notes;
  notes.entry = "main";
  notes.kernels = {{{"map: mulf", "sample.mlir:1"}}, {{"map: addf", "sample.mlir:2"}}};
  notes.apart = {{0, 1, "for the test's sake"}};
  notes.dispatchKernels = {0, 0, 1, 0, 1};
  notes.refusals = {{1, "live-reader", "", "sample.mlir:3"}};
  artifact.notes["vulkan"] = {{notes}};
  return artifact;
}

/// Returns the sample with x donated to y: allocation 0 holds both, constants and arena come one
/// number earlier. Dispatch 4 writes t4 over t2, in place; dispatch 5 copies it to y.
inline Artifact makeDonatingSample() {
  Artifact artifact = makeSample();
  Plan &plan = artifact.plans[0];
  artifact.manifest.entries[0].arguments[0].donate = true;
  plan.allocations.erase(plan.allocations.begin() + 2);
  plan.allocations[0].result = 0;
  for (Command &command : plan.commands) {
    for (PlanOperand &operand : command.operands)
      operand.allocation -= operand.allocation > 2;
    for (PlanView &view : command.memory)
      view.allocation -= view.allocation > 2;
  }
  plan.kernels[1].inPlace = {{0, 2}};
  plan.kernels.push_back({"copy",
                          "code/vulkan/add.spv",
                          {8, 1, 1},
                          {plan.kernels[1].operands[0], plan.kernels[1].operands[2]}});
  PlanOperand y{{0, 0, 256}, 2}, t4{{3, 512, 256}, 7};
  plan.values.push_back({"t4", 256});
  plan.commands[7].operands[2] = t4;
  plan.commands.push_back(
      barrier({{HazardKind::RAW, 4, 2, 5, 0}, {HazardKind::WAR, 3, 0, 5, 1}}, {t4}));
  plan.commands.push_back(dispatch(2, 4, {t4, y}));
  plan.slots[2].lastWave = 4;
  return artifact;
}

/// Returns one entry, (x, w) -> (y), of four dispatches, of which a loop of three trips has two.
/// The carried value begins as t0, is h in a trip, n at its end and e behind the loop, all in slot
/// 0:
///   0 scale  x, c0 -> t0     slot 0, wave 0
///   1 add    h, w  -> t1     slot 1, wave 1; RAW on 0 at the edge
///   2 scale  t1, c0 -> n     slot 0, wave 2; RAW on 1, WAR on 1; then RAW and WAR on it in the
///   next 3 add    e, w -> y       wave 3
inline Artifact makeLoopSample() {
  Artifact artifact = makeSample();
  artifact.notes.clear();
  Plan &plan = artifact.plans[0];
  plan.arenaBytes = 512;
  plan.pinnedBytes = 768;
  plan.allocations[4].bytes = 512;
  plan.values = {{"x", 256}, {"w", 256},  {"y", 256}, {"t0", 256},
                 {"h", 256}, {"t1", 256}, {"n", 256}, {"e", 256}};
  plan.slots = {{"t0", 0, 256, 256, 0, 3}, {"t1", 256, 256, 256, 1, 2}};
  PlanOperand x{{0, 0, 256}, 0}, w{{1, 0, 256}, 1}, y{{2, 0, 256}, 2}, c0{{3, 0, 12}};
  PlanOperand t0{{4, 0, 256}, 3}, h{{4, 0, 256}, 4}, t1{{4, 256, 256}, 5}, n{{4, 0, 256}, 6},
      e{{4, 0, 256}, 7};
  plan.commands = {dispatch(0, 0, {x, c0, t0}),
                   barrier({{HazardKind::RAW, 0, 2, 1, 0}}, {t0}),
                   dispatch(1, 1, {h, w, t1}),
                   barrier({{HazardKind::RAW, 1, 2, 2, 0}, {HazardKind::WAR, 1, 0, 2, 2}}, {t1}),
                   dispatch(0, 2, {t1, c0, n}),
                   barrier({{HazardKind::RAW, 2, 2, 1, 0}, {HazardKind::WAR, 2, 0, 1, 2}}, {n}),
                   dispatch(1, 3, {e, w, y})};
  plan.loops = {{2, 6, 3, {}, {{{4, 0, 256}, 3, 4, 6, 7}}}};
  return artifact;
}

/// Returns one entry, (x, w) -> (y), whose plan begins with a loop of at most three trips. It
/// carries x, which is donated to y, and its first byte is the flag:
///   0 add    h, w -> t1      wave 0
///   1 scale  t1, c0 -> n     over h, wave 1
inline Artifact makeFlagSample() {
  Artifact artifact = makeLoopSample();
  artifact.manifest.entries[0].arguments[0].donate = true;
  Plan &plan = artifact.plans[0];
  plan.allocations = {{AllocationKind::Argument, 0, 256, 0},
                      {AllocationKind::Argument, 1, 256},
                      {AllocationKind::Constants, 0, 268},
                      {AllocationKind::Arena, 0, 256}};
  plan.arenaBytes = plan.pinnedBytes = 256;
  plan.values = {{"x", 256}, {"w", 256}, {"h", 256}, {"t1", 256}, {"n", 256}, {"y", 256}};
  plan.resultValues = {5};
  plan.slots = {{"t1", 0, 256, 256, 0, 1}};
  PlanOperand h{{0, 0, 256}, 2}, w{{1, 0, 256}, 1}, c0{{2, 0, 12}}, t1{{3, 0, 256}, 3},
      n{{0, 0, 256}, 4};
  plan.commands = {dispatch(1, 0, {h, w, t1}),
                   barrier({{HazardKind::RAW, 0, 2, 1, 0}, {HazardKind::WAR, 0, 0, 1, 2}}, {t1}),
                   dispatch(0, 1, {t1, c0, n}),
                   barrier({{HazardKind::RAW, 1, 2, 0, 0}, {HazardKind::WAR, 1, 0, 0, 2}}, {n})};
  plan.loops = {{0, 4, 3, PlanView{0, 0, 1}, {{{0, 0, 256}, 0, 2, 4, 5}}}};
  return artifact;
}

/// A folder that is deleted after the test.
class TemporaryFolder : public ScratchFolder {
public:
  std::string operator/(const std::string &name) const { return (path / name).string(); }
  size_t countFiles() const {
    size_t count = 0;
    for ([[maybe_unused]] const auto &entry : std::filesystem::directory_iterator(path))
      ++count;
    return count;
  }
};

} // namespace weir::test

#endif // WEIR_TEST_UNIT_ARTIFACT_SAMPLE_H

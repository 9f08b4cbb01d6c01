//===- Schedule.cpp - stub ------------------------------------------------------===//

#include "passes/Passes.h"

namespace weir {
#define GEN_PASS_DEF_SCHEDULEPASS
#include "passes/Passes.h.inc"
} // namespace weir

namespace {
struct Schedule : weir::impl::SchedulePassBase<Schedule> {
  using SchedulePassBase::SchedulePassBase;

  void runOnOperation() override {}
};
} // namespace

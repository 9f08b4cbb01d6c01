//===- StandAloneTest.cpp - libweir_planner, linked alone -----------------===//

#include "weir/Artifact/Error.h"
#include "weir/Planner/Planner.h"
#include "gtest/gtest.h"

using namespace weir;

TEST(PlannerLibrary, PlansAndThrowsAcrossItsBorder) {
  PlanProblem problem = parsePlanCsv("id,lower,upper,size\na,0,4,8\nb,4,6,8\n", "a.csv");
  BufferPlan plan = planBuffers(problem);
  validatePlan(problem, plan);
  EXPECT_EQ(plan.spaces[0].peak, 8);
  EXPECT_NE(drawPlan(problem, plan).find("<svg"), std::string::npos);
  EXPECT_EQ(planMemory({{8, 256, 0, 3}, {8, 256, 4, 5}}, false).arenaBytes, 256);
  plan.offsets[0] = -1;
  EXPECT_THROW(validatePlan(problem, plan), Error);
  problem.buffers[0].bytes = -1;
  EXPECT_THROW(planBuffers(problem), Error);
}

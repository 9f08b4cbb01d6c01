//===- fuzz-csv.cpp - The planner's tables ------------------------------===//

#include "Fuzz.h"
#include "weir/Planner/Planner.h"

using namespace weir;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  std::string text(data, data + size);
  return fuzz::expectAnswer([&] {
    PlanProblem problem = parsePlanCsv(text, "input.csv");
    PlanOptions options;
    options.effort = 100;
    BufferPlan plan = planBuffers(problem, options);
    try {
      validatePlan(problem, plan);
    } catch (const Error &error) {
      fuzz::expect(false, error.what());
    }
    // A printed plan has offsets, and can be read.
    parsePlanCsv(printPlanCsv(text, plan), "printed.csv");
    drawPlan(problem, plan);
  });
}

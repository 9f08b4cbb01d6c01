//===- Pipelines.cpp - The table of levels --------------------------------===//

#include "passes/Pipelines.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Transforms/Passes.h"
#include "passes/Passes.h"

using namespace mlir;
using namespace weir;

template <std::unique_ptr<Pass> (*create)()> static void addOne(OpPassManager &manager) {
  manager.addPass(create());
}

static void addToGraph(OpPassManager &manager, const PipelineOptions &) {
  manager.addNestedPass<func::FuncOp>(createUnrollLoopsPass());
  manager.addNestedPass<func::FuncOp>(createFoldGathersPass());
  manager.addNestedPass<func::FuncOp>(createRaiseNormsPass());
  manager.addNestedPass<func::FuncOp>(createNormalizeGraphPass());
  manager.addNestedPass<func::FuncOp>(createWidenArithmeticPass());
  manager.addNestedPass<func::FuncOp>(createDropDilationsPass());
}

static void addToGradient(OpPassManager &manager, const PipelineOptions &) {
  manager.addPass(createDifferentiatePass());
  manager.addPass(createSplitBackwardPass());
  manager.addNestedPass<func::FuncOp>(createExpandRandomPass());
  manager.addNestedPass<func::FuncOp>(createWidenArithmeticPass());
  manager.addNestedPass<func::FuncOp>(createDropDilationsPass());
}

void weir::addGradientPasses(OpPassManager &manager) {
  addToGraph(manager, {});
  addToGradient(manager, {});
}

static void addToKernels(OpPassManager &manager, const PipelineOptions &options) {
  if (!options.profile.empty()) {
    SetProfilePassOptions profile;
    profile.profile = options.profile;
    manager.addPass(createSetProfilePass(profile));
  }
  manager.addNestedPass<func::FuncOp>(createDecomposeNormsPass());
  manager.addNestedPass<func::FuncOp>(createGeneralizeTensorsPass());
  manager.addPass(createCSEPass());
  manager.addPass(createFormKernelsPass());
  if (options.memoryLimit > 0)
    manager.addPass(createAddSparesPass());
}

static void addToDispatches(OpPassManager &manager, const PipelineOptions &) {
  manager.addPass(createLowerKernelsPass());
  manager.addPass(createNarrowArithmeticPass());
  manager.addPass(createExpandMathPass());
}

static void addToPlaced(OpPassManager &manager, const PipelineOptions &options) {
  if (options.memoryLimit > 0) {
    LimitMemoryPassOptions memory;
    memory.limit = options.memoryLimit;
    manager.addPass(createLimitMemoryPass(memory));
  } else {
    manager.addPass(createSchedulePass());
  }
  manager.addPass(createAssignQueuesPass());
  manager.addPass(createDonateBuffersPass());
  PlanMemoryPassOptions plan;
  plan.noReuse = options.noReuse;
  plan.requireDonation = options.requireDonation;
  manager.addPass(createPlanMemoryPass(plan));
}

static void addToOrdered(OpPassManager &manager, const PipelineOptions &options) {
  InsertBarriersPassOptions barriers;
  barriers.reorder = options.reorder;
  barriers.limit = options.memoryLimit;
  manager.addPass(createInsertBarriersPass(barriers));
  manager.addPass(createInsertWorkgroupBarriersPass());
  manager.addPass(createRemoveRedundantWorkgroupBarriersPass());
}

static void addToEmitted(OpPassManager &manager, const PipelineOptions &options) {
  manager.addPass(options.target == "cuda" ? createEmitPtxPass() : createEmitSpirvPass());
  manager.addPass(createPackPass());
}

ArrayRef<Level> weir::getLevels() {
  static const Level levels[] = {
      {"graph", addToGraph, addOne<createVerifyGraphPass>},
      {"gradient", addToGradient, addOne<createVerifyGradientPass>},
      {"kernels", addToKernels, addOne<createVerifyKernelsPass>},
      {"dispatches", addToDispatches, addOne<createVerifyDispatchesPass>},
      {"placed", addToPlaced, addOne<createVerifyPlacedPass>},
      {"ordered", addToOrdered, addOne<createVerifyOrderedPass>},
      {"emitted", addToEmitted, addOne<createVerifyEmittedPass>},
  };
  return levels;
}

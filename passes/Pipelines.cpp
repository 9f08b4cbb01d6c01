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
  // First, since every later pass expects tensors that one op each makes.
  manager.addPass(createUnrollLoopsPass());
  // A norm is matched through reshapes, but not through a gather by a table.
  manager.addNestedPass<func::FuncOp>(createFoldGathersPass());
  // Before indices are clamped and assertions go: a loss is matched with those of its targets.
  manager.addNestedPass<func::FuncOp>(createRaiseNormsPass());
  // Before differentiation, so that forward, backward and the reference read the same elements.
  manager.addNestedPass<func::FuncOp>(createNormalizeGraphPass());
  // Each op of the graph rounds once, which gradients and kernels then take as it is.
  manager.addNestedPass<func::FuncOp>(createWidenArithmeticPass());
  // Front ends write a transposed convolution with zeros between its elements. Gone before
  // differentiation, they are in no gradient.
  manager.addNestedPass<func::FuncOp>(createDropDilationsPass());
}

static void addToGradient(OpPassManager &manager, const PipelineOptions &) {
  manager.addPass(createDifferentiatePass());
  // Needs the total cotangents that differentiation has just marked.
  manager.addPass(createSplitBackwardPass());
  // As one op a random number is a value that forward, backward and the split passes all read.
  manager.addNestedPass<func::FuncOp>(createExpandRandomPass());
  // Both again for what the passes above made: rules compute in the type of their tensors, and
  // the gradient of a convolution with strides dilates the cotangent.
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
    profile.precision = options.precision;
    manager.addPass(createSetProfilePass(profile));
  }
  // Behind gradients, which have rules for whole factorizations. It writes loops, and sorts.
  manager.addNestedPass<func::FuncOp>(createDecomposeMatricesPass());
  // Before loops become segments, and behind gradients, which need loops.
  manager.addNestedPass<func::FuncOp>(createFormSequencesPass());
  // Each segment is a function of its own for all passes behind it. Gradients are there already,
  // which need whole loops.
  manager.addPass(createSplitLoopsPass());
  // Before the sorts that it writes are decomposed; scatters of gradients are there.
  manager.addNestedPass<func::FuncOp>(createFormSegmentsPass());
  // Only now: norms have gradients in closed form, and an expanded one has a dozen ops to match.
  manager.addNestedPass<func::FuncOp>(createDecomposeNormsPass());
  // Expanded norms hold scalars and slices, too.
  manager.addNestedPass<func::FuncOp>(createGeneralizeTensorsPass());
  // The two passes above write equal ops several times, as forward and backward do. Merged here,
  // each is in one kernel; in the regions of two kernels they could not be merged any more.
  manager.addPass(createCSEPass());
  // Gradients of running sums are running sums. Before elements are computed where they are read.
  manager.addNestedPass<func::FuncOp>(createFormScansPass());
  manager.addNestedPass<func::FuncOp>(createPrepareKernelsPass());
  manager.addPass(createFormKernelsPass());
  // Kernels are known now, and what each reads of the others.
  manager.addPass(createJoinKernelsPass());
  // Only weir-limit-memory uses spares; without it they would be lowered for nothing.
  if (options.mayRepeat())
    manager.addPass(createAddSparesPass());
}

static void addToDispatches(OpPassManager &manager, const PipelineOptions &) {
  manager.addPass(createLowerKernelsPass());
  // On kernels, whose sums have their order already, and before math is expanded: functions of f64
  // take values apart by their bits, and pairs are made of square roots of f32.
  manager.addPass(createNarrowArithmeticPass());
  manager.addPass(createExpandMathPass());
  // Behind them: pairs of f32 and functions compute in integers, too. Before the gate and all
  // proofs, for which words are the bytes that an invocation writes.
  manager.addPass(createStoreInWordsPass());
  // All loops are there now, those of divisions among them.
  manager.addPass(createLimitLoopTripsPass());
}

static void addToPlaced(OpPassManager &manager, const PipelineOptions &options) {
  if (!options.mayRepeat()) {
    manager.addPass(createSchedulePass());
  } else {
    // It tries out what the three passes behind it would make of an order: AssignQueues,
    // DonateBuffers and PlanMemory. A change of these three, or a pass between them, must reach it.
    LimitMemoryPassOptions memory;
    memory.limit = options.memoryLimit;
    memory.knee = options.checkpoint;
    memory.curve = options.curve;
    memory.reorder = options.reorder != "off";
    manager.addPass(createLimitMemoryPass(memory));
  }
  // Chains are followed in recorded order, which the pass above has just chosen.
  manager.addPass(createAssignQueuesPass());
  // Lives of values are counted in waves; the plan then chooses among the permissions.
  manager.addPass(createDonateBuffersPass());
  PlanMemoryPassOptions plan;
  plan.noReuse = options.noReuse;
  plan.requireDonation = options.requireDonation;
  manager.addPass(createPlanMemoryPass(plan));
  // Barriers can be counted only once values have places. The gate behind it looks at the order
  // and the places that this leaves.
  ReorderPassOptions order;
  order.reorder = options.reorder;
  order.limit = options.memoryLimit;
  manager.addPass(createReorderPass(order));
}

static void addToOrdered(OpPassManager &manager, const PipelineOptions &) {
  // After placement: reuse of a slot makes hazards that no value knows of.
  manager.addPass(createInsertBarriersPass());
  // Inserts for correctness; the pass behind it removes with proof. Each is easier to check than
  // one that does both, and the barriers of the emitter are judged like any others.
  manager.addPass(createInsertWorkgroupBarriersPass());
  manager.addPass(createRemoveRedundantWorkgroupBarriersPass());
}

static void addToEmitted(OpPassManager &manager, const PipelineOptions &options) {
  manager.addPass(options.target == "vulkan" ? createEmitSpirvPass()
                  : options.target == "cuda" ? createEmitPtxPass()
                                             : createEmitCpuPass());
  // The plan states each kernel's operands, which are known once it is emitted.
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

//===- WorkgroupBarriers.cpp - What both passes on gpu.barrier need -------===//

#include "passes/ordered/WorkgroupBarriers.h"

#include "mlir/Interfaces/CallInterfaces.h"
#include "weir/Analysis/KernelDispatches.h"

using namespace mlir;
using namespace weir;

/// Returns the functions that a kernel calls, directly or not.
static DenseSet<Operation *> getCallees(gpu::GPUFuncOp kernel) {
  DenseSet<Operation *> found;
  SmallVector<Operation *> pending = {kernel};
  while (!pending.empty())
    pending.pop_back_val()->walk([&](CallOpInterface call) {
      auto symbol = dyn_cast<SymbolRefAttr>(call.getCallableForCallee());
      Operation *callee = symbol ? SymbolTable::lookupNearestSymbolFrom(call, symbol) : nullptr;
      if (callee && found.insert(callee).second)
        pending.push_back(callee);
    });
  return found;
}

/// Whether only `kernel` and what it calls use `function`.
static bool isOnlyOf(Operation *function, const DenseSet<Operation *> &callees,
                     gpu::GPUFuncOp kernel, Operation *root) {
  Operation *top = kernel;
  while (top->getParentOp())
    top = top->getParentOp();
  std::optional<SymbolTable::UseRange> uses = SymbolTable::getSymbolUses(function, top);
  return root->isAncestor(function) && uses &&
         llvm::all_of(*uses, [&](const SymbolTable::SymbolUse &use) {
           auto user = use.getUser()->getParentOfType<FunctionOpInterface>();
           return user && (user == kernel || callees.contains(user)) &&
                  isa<CallOpInterface>(use.getUser());
         });
}

static LogicalResult refuse(const WorkgroupRaces &races) {
  if (!races.matters())
    return success();
  if (Operation *branch = races.getIrreducible())
    return branch->emitError("this branch enters a loop that is entered elsewhere, too; such "
                             "control flow is not analysed for races");
  bool failed = false;
  for (gpu::BarrierOp barrier : races.getBarriers()) {
    Operation *branch = races.getUniformity().getDivergence(barrier->getBlock());
    if (!branch)
      continue;
    failed = true;
    barrier.emitError("divergent barrier: not all invocations of a workgroup come to it together")
            .attachNote(branch->getLoc())
        << "invocations take different ways here";
  }
  return failure(failed);
}

LogicalResult
weir::visitKernels(Operation *root,
                   function_ref<bool(gpu::GPUFuncOp, const DenseSet<Operation *> &)> matters,
                   function_ref<LogicalResult(gpu::GPUFuncOp, WorkgroupRaces &)> visit) {
  bool ok = true;
  std::optional<KernelDispatches> dispatches;
  root->walk([&](Operation *op) {
    if (isa<gpu::LaunchOp>(op)) {
      op->emitError("the body of a gpu.launch is not analysed for races; outline it first "
                    "(gpu-kernel-outlining)");
      ok = false;
      return WalkResult::skip();
    }
    auto kernel = dyn_cast<gpu::GPUFuncOp>(op);
    if (!kernel || !kernel.isKernel() || kernel.isExternal())
      return WalkResult::advance();
    DenseSet<Operation *> callees = getCallees(kernel);
    if (!matters(kernel, callees))
      return WalkResult::skip();
    if (!dispatches)
      dispatches.emplace(root);
    auto getSharing = [&](unsigned first, unsigned second) {
      return dispatches->getSharing(kernel, first, second);
    };
    WorkgroupRaces races(kernel, dispatches->getSizes(kernel), getSharing,
                         [&](FunctionOpInterface function) {
                           return function == kernel || isOnlyOf(function, callees, kernel, root);
                         });
    ok &= succeeded(refuse(races)) && succeeded(visit(kernel, races));
    return WalkResult::skip();
  });
  return success(ok);
}

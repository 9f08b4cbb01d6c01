//===- Steps.cpp - Report and time the steps of a compilation -------------===//

#include "Steps.h"

#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Pass/Pass.h"
#include "mlir/Pass/PassInstrumentation.h"

using namespace mlir;
using namespace weir;

/// Returns the number of ops within `op`.
static int64_t countOps(Operation *op) {
  int64_t count = -1; // without itself
  op->walk([&](Operation *) { ++count; });
  return count;
}

/// Watches the passes of one level.
class Steps::Watch : public PassInstrumentation {
public:
  Watch(Steps &steps, ModuleOp module, size_t passes)
      : steps(steps), module(module), passes(passes) {}

  void runBeforePass(Pass *pass, Operation *op) override {
    if (isAdaptor(pass))
      return;
    if (running.empty())
      beginPass(pass);
    else
      nameKernel(op);
    int64_t ops = steps.options.onStep ? countOps(op) : 0;
    running.push_back({steps.begin(pass->getArgument().str(), CompileStep::Kind::Pass), ops});
  }

  void runAfterPass(Pass *pass, Operation *op) override {
    if (isAdaptor(pass))
      return;
    auto [step, ops] = running.pop_back_val();
    step.opsBefore = ops;
    if (steps.options.onStep)
      step.opsAfter = countOps(op);
    if (running.empty()) {
      // A pass on one function leaves the others as they are.
      step.opsBefore = inModule;
      inModule += step.opsAfter - ops;
      step.opsAfter = inModule;
    }
    steps.end(step);
  }

  void runAfterPassFailed(Pass *pass, Operation *) override {
    if (isAdaptor(pass))
      return;
    running.pop_back();
    --steps.depth;
  }

private:
  Steps &steps;
  ModuleOp module;
  size_t passes;
  DenseMap<Pass *, size_t> numbers; // from 1, as they come
  std::string place;                ///< level and pass
  int64_t inModule = 0;
  unsigned kernel = 0, kernels = 0;
  StringAttr kernelName;
  /// A pass that runs, and the ops within what it runs on, before.
  struct Running {
    CompileStep step;
    int64_t ops;
  };
  SmallVector<Running> running;

  /// Whether `pass` is what upstream runs nested passes by.
  static bool isAdaptor(Pass *pass) { return pass->getArgument().empty(); }

  void beginPass(Pass *pass) {
    if (numbers.empty() && steps.options.onStep)
      inModule = countOps(module);
    size_t number = numbers.try_emplace(pass, numbers.size() + 1).first->second;
    place = steps.level + ", pass " + std::to_string(number) + " of " + std::to_string(passes) +
            ": " + pass->getArgument().str();
    steps.report(place);
    kernel = 0;
    kernelName = {};
    kernels = llvm::range_size(module.getOps<gpu::GPUModuleOp>());
  }

  /// Tells which kernel a pass begins to emit: each goes through a module of its own.
  void nameKernel(Operation *op) {
    // Some passes of a kernel run on functions inside of its module.
    auto name = op->getAttrOfType<StringAttr>(SymbolTable::getSymbolAttrName());
    if (!name || name == kernelName || !isa<ModuleOp>(op->getParentOp()))
      return;
    kernelName = name;
    ++kernel;
    steps.report(place + ", kernel " + std::to_string(kernel) + " of " + std::to_string(kernels));
  }
};

void Steps::watch(PassManager &manager, ModuleOp module) {
  if (options.onProgress || options.onStep)
    manager.addInstrumentation(std::make_unique<Watch>(*this, module, manager.size()));
}

//===- TestInPlaceByName.cpp - In place by what a kernel is called --------===//
//
// Background case 3, as ggml #1491 had it: a list of names says which kernels
// write over an operand. Stands where weir-donate-buffers does and proves
// nothing: not what the kernel reads after it wrote, nor who reads the operand
// later.
//
//===----------------------------------------------------------------------===//

#include "test/lib/TestPasses.h"

#include "mlir/Pass/Pass.h"
#include "weir/Analysis/CommandList.h"

using namespace mlir;
using namespace weir;

namespace {
struct TestInPlaceByName : PassWrapper<TestInPlaceByName, OperationPass<ModuleOp>> {
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(TestInPlaceByName)

  TestInPlaceByName() = default;
  TestInPlaceByName(const TestInPlaceByName &other) : PassWrapper(other) {}

  StringRef getArgument() const override { return "weir-test-in-place-by-name"; }
  StringRef getDescription() const override {
    return "Permits kernels of some names to write their results over operands.";
  }

  void runOnOperation() override {
    Effects &effects = getAnalysis<Effects>();
    SymbolTableCollection symbols;
    WalkResult walk = getOperation().walk([&](schedule::DispatchOp dispatch) {
      StringRef name = dispatch.getKernel().getLeafReference();
      if (llvm::none_of(names, [&](StringRef start) { return name.starts_with(start); }))
        return WalkResult::advance();
      FailureOr<ArrayRef<OperandEffect>> known = getEffects(dispatch, symbols, effects);
      if (failed(known))
        return WalkResult::interrupt();
      permit(dispatch, *known);
      return WalkResult::advance();
    });
    if (walk.wasInterrupted())
      signalPassFailure();
  }

private:
  void permit(schedule::DispatchOp dispatch, ArrayRef<OperandEffect> effects);

  ListOption<std::string> names{*this, "names", llvm::cl::desc("How names of kernels begin.")};
};
} // namespace

/// Permits each result over each operand of its type that is a value of the entry's own.
void TestInPlaceByName::permit(schedule::DispatchOp dispatch, ArrayRef<OperandEffect> effects) {
  SmallVector<Attribute> permissions;
  for (OpOperand &target : dispatch->getOpOperands())
    for (OpOperand &source : dispatch->getOpOperands())
      if (effects[target.getOperandNumber()].access == schedule::Access::write &&
          effects[source.getOperandNumber()].access == schedule::Access::read &&
          target.get().getType() == source.get().getType() && !isa<BlockArgument>(source.get()))
        permissions.push_back(schedule::PermissionAttr::get(
            &getContext(), target.getOperandNumber(), source.getOperandNumber()));
  if (!permissions.empty())
    dispatch->setAttr(schedule::permissionsAttrName, ArrayAttr::get(&getContext(), permissions));
}

void weir::test::registerTestInPlaceByNamePass() { PassRegistration<TestInPlaceByName>(); }

//===- TestAliasing.cpp - Print which named views share bytes -------------===//
//
// Looks at arguments with `weir.name` and operations with `test.name`.
//
//===----------------------------------------------------------------------===//

#include "test/lib/Analysis/PrintSharing.h"
#include "test/lib/TestPasses.h"

#include "dialects/Schedule/Schedule.h"
#include "mlir/Interfaces/FunctionInterfaces.h"
#include "mlir/Pass/Pass.h"
#include "weir/Analysis/Aliasing.h"

using namespace mlir;
using namespace weir;
using weir::test::print;

namespace {
struct TestAliasing : PassWrapper<TestAliasing, InterfacePass<FunctionOpInterface>> {
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(TestAliasing)

  StringRef getArgument() const override { return "weir-test-aliasing"; }
  StringRef getDescription() const override { return "Prints which named views share bytes."; }

  void runOnOperation() override {
    SmallVector<std::pair<StringRef, Value>> named;
    FunctionOpInterface function = getOperation();
    for (BlockArgument argument : function.getArguments().take_front(function.getNumArguments()))
      if (auto name = function.getArgAttrOfType<StringAttr>(argument.getArgNumber(),
                                                            schedule::nameAttrName))
        named.push_back({name.getValue(), argument});
    function.walk([&](Operation *op) {
      if (auto name = op->getAttrOfType<StringAttr>("test.name"))
        named.push_back({name.getValue(), op->getResult(0)});
    });
    for (auto [index, first] : llvm::enumerate(named)) {
      View view = getView(first.second);
      InFlightDiagnostic remark = mlir::emitRemark(first.second.getLoc()) << first.first;
      if (view.range)
        remark << " [" << view.range->begin << ", " << view.range->end << ")"
               << (view.exact ? "" : " hull");
      else
        remark << " anywhere";
      remark.report();
      for (auto &second : ArrayRef(named).drop_front(index + 1))
        mlir::emitRemark(second.second.getLoc()) << first.first << " " << second.first << ": "
                                                 << print(compare(view, getView(second.second)));
    }
  }
};
} // namespace

void weir::test::registerTestAliasingPass() { PassRegistration<TestAliasing>(); }

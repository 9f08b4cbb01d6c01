//===- ErrorsTest.cpp - Exceptions as diagnostics -------------------------===//

#include "weir/Target/Errors.h"

#include "mlir/IR/MLIRContext.h"
#include "gtest/gtest.h"

using namespace mlir;
using namespace weir;

namespace {
struct ErrorsTest : ::testing::Test {
  MLIRContext context;
  std::string reported;
  ScopedDiagnosticHandler handler{&context, [this](Diagnostic &diagnostic) {
                                    reported += diagnostic.str();
                                    return success();
                                  }};
  InFlightDiagnostic emit() { return emitError(UnknownLoc::get(&context)) << "cannot be read: "; }
};
} // namespace

TEST_F(ErrorsTest, AnErrorBecomesADiagnostic) {
  FailureOr<int> result =
      catchErrors([&] { return emit(); }, []() -> int { throw Error("the plan has no entry"); });
  EXPECT_TRUE(failed(result));
  EXPECT_EQ(reported, "cannot be read: the plan has no entry");
}

TEST_F(ErrorsTest, AResultIsReturnedAndNothingReported) {
  FailureOr<int> result = catchErrors([&] { return emit(); }, [] { return 3; });
  ASSERT_TRUE(succeeded(result));
  EXPECT_EQ(*result, 3);
  EXPECT_EQ(reported, "");
}

TEST_F(ErrorsTest, OtherExceptionsPass) {
  auto run = [&] {
    return catchErrors([&] { return emit(); }, []() -> int { throw std::bad_alloc(); });
  };
  EXPECT_THROW((void)run(), std::bad_alloc);
}

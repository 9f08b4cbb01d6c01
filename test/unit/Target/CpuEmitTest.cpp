//===- CpuEmitTest.cpp - Tests of the backend for processors --------------===//

#include "mlir/IR/MLIRContext.h"
#include "weir/Target/Cpu.h"
#include "llvm/Support/CommandLine.h"

#include <gtest/gtest.h>

using namespace mlir;
using namespace weir;

/// Whether LLVM's backends leave out loop strength reduction now.
static bool isReductionOff() {
  return static_cast<llvm::cl::opt<bool> *>(llvm::cl::getRegisteredOptions().lookup("disable-lsr"))
      ->getValue();
}

TEST(CpuEmitter, leaves_the_options_of_other_backends_as_they_were) {
  MLIRContext context;
  ASSERT_FALSE(isReductionOff());
  for (auto [name, isOff] : {std::pair("x86-64-v3", true), {"aarch64", false}}) {
    {
      FailureOr<CpuEmitter> emitter =
          CpuEmitter::create(UnknownLoc::get(&context), getBuiltinProfile(name), /*threads=*/1);
      ASSERT_TRUE(succeeded(emitter));
      EXPECT_EQ(isReductionOff(), isOff) << name;
    }
    EXPECT_FALSE(isReductionOff()) << name;
  }
}

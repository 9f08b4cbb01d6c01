//===- UniformityTest.cpp - Who agrees on a value, and on what range ------===//

#include "weir/Analysis/Uniformity.h"

#include "lib/Analysis/BodyFrame.h"
#include "lib/Analysis/IntegerRanges.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Parser/Parser.h"

#include "gtest/gtest.h"

using namespace mlir;
using namespace weir;

static constexpr const char *text = R"(
gpu.module @m {
  gpu.func @k(%n: index, %a: memref<8xindex>) kernel {
    %thread = gpu.thread_id x {name = "thread"}
    %block = gpu.block_id x {name = "block"}
    %cluster = gpu.cluster_id x {name = "cluster"}
    %size = gpu.block_dim x {name = "size"}
    %c0 = arith.constant {name = "zero"} 0 : index
    %c8 = arith.constant {name = "eight"} 8 : index
    %loaded = memref.load %a[%c0] {name = "loaded"} : memref<8xindex>
    %unknown = "others.id"() {name = "unknown"} : () -> index
    %own = arith.addi %thread, %block {name = "own"} : index
    %shared = arith.addi %block, %n {name = "shared"} : index
    %all = arith.muli %size, %n {name = "all"} : index
    %rest = arith.remui %n, %c8 {name = "rest"} : index
    scf.for %i = %c0 to %n step %c8 {
      %moving = arith.addi %i, %block {name = "moving"} : index
    }
    gpu.return
  }
})";

namespace {
class UniformityTest : public testing::Test {
protected:
  void SetUp() override {
    context.loadDialect<arith::ArithDialect, gpu::GPUDialect, memref::MemRefDialect,
                        scf::SCFDialect>();
    context.allowUnregisteredDialects();
    module = parseSourceString<ModuleOp>(text, &context);
    ASSERT_TRUE(module);
    module->walk([&](gpu::GPUFuncOp op) { kernel = op; });
  }

  Operation *find(StringRef name) {
    Operation *found = nullptr;
    kernel.walk([&](Operation *op) {
      if (auto own = op->getAttrOfType<StringAttr>("name"); own && own.getValue() == name)
        found = op;
    });
    EXPECT_TRUE(found) << name.str();
    return found;
  }
  Agreement agree(StringRef name) {
    BodyFrame frame;
    frame.function = kernel;
    DominanceInfo dominance;
    return getAgreement(find(name)->getResult(0), frame, dominance);
  }

  MLIRContext context;
  OwningOpRef<ModuleOp> module;
  gpu::GPUFuncOp kernel;
};
} // namespace

TEST_F(UniformityTest, ResultScope) {
  for (const char *name : {"thread", "loaded", "unknown"})
    EXPECT_EQ(getResultScope(find(name)), Scope::Invocation) << name;
  for (const char *name : {"block", "cluster"})
    EXPECT_EQ(getResultScope(find(name)), Scope::Workgroup) << name;
  for (const char *name : {"size", "zero", "own"})
    EXPECT_EQ(getResultScope(find(name)), Scope::Grid) << name;
}

TEST_F(UniformityTest, AgreementIsThatOfAllOperands) {
  EXPECT_EQ(agree("own").scope, Scope::Invocation);
  EXPECT_EQ(agree("shared").scope, Scope::Workgroup);
  EXPECT_EQ(agree("all").scope, Scope::Grid);
  EXPECT_FALSE(agree("shared").varies);
  EXPECT_EQ(agree("moving").scope, Scope::Workgroup);
  EXPECT_TRUE(agree("moving").varies);
}

TEST_F(UniformityTest, BothWalksReadOneTable) {
  Uniformity workgroup(kernel), grid(kernel, Scope::Grid);
  for (const char *name : {"thread", "block", "cluster", "size", "loaded", "unknown", "own",
                           "shared", "all", "moving"}) {
    Value value = find(name)->getResult(0);
    EXPECT_EQ(workgroup.isUniform(value), agree(name).scope >= Scope::Workgroup) << name;
    EXPECT_EQ(grid.isUniform(value), agree(name).scope >= Scope::Grid) << name;
  }
}

TEST_F(UniformityTest, RangesAreThoseOfTheKernel) {
  IntegerRanges ranges(kernel);
  std::optional<ConstantIntRanges> rest = ranges.get(find("rest")->getResult(0));
  ASSERT_TRUE(rest);
  EXPECT_EQ(rest->umin().getZExtValue(), 0u);
  EXPECT_EQ(rest->umax().getZExtValue(), 7u);
  std::optional<ConstantIntRanges> all = ranges.get(find("all")->getResult(0));
  EXPECT_TRUE(!all || all->smax().isMaxSignedValue());
}

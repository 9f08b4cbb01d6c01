//===- AccessMapTest.cpp - Overlaps in kernels of many variables ----------===//

#include "weir/Analysis/AccessMap.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Parser/Parser.h"
#include "llvm/Support/FormatVariadic.h"

#include "gtest/gtest.h"

using namespace mlir;
using namespace weir;

/// Returns a kernel that writes elements [0, 8) in a loop, runs `loops` more loops that read
/// another array, and reads elements [first, first + 8) in a last one.
static std::string makeKernel(int loops, int first) {
  const char *loop = "scf.for %i = %c0 to %c8 step %c1 {{\n"
                     "  %v = memref.load %{0}[%i] : memref<16xf32>\n}\n";
  std::string text;
  for (int i = 0; i < loops; ++i)
    text += llvm::formatv(loop, "b");
  return llvm::formatv(R"(
gpu.module @m {{
gpu.func @k(%a: memref<16xf32>, %b: memref<16xf32>) kernel
    attributes {{known_block_size = array<i32: 2, 1, 1>, known_grid_size = array<i32: 1, 1, 1>} {{
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  %first = arith.constant {1} : index
  %f = arith.constant 0.0 : f32
  scf.for %i = %c0 to %c8 step %c1 {{
    memref.store %f, %a[%i] : memref<16xf32>
  }
{0}  scf.for %i = %c0 to %c8 step %c1 {{
    %j = arith.addi %i, %first : index
    %v = memref.load %a[%j] : memref<16xf32>
  }
  gpu.return
}
})",
                       text, first);
}

static Sharing compareEnds(int loops, int first) {
  MLIRContext context;
  context
      .loadDialect<arith::ArithDialect, gpu::GPUDialect, memref::MemRefDialect, scf::SCFDialect>();
  OwningOpRef<ModuleOp> module = parseSourceString<ModuleOp>(makeKernel(loops, first), &context);
  gpu::GPUFuncOp kernel;
  module->walk([&](gpu::GPUFuncOp op) { kernel = op; });
  AccessMaps maps(kernel);
  ArrayRef<MemoryAccess> accesses = maps.getAccesses();
  EXPECT_EQ(accesses.size(), size_t(loops) + 2);
  return maps.compare(accesses.front(), accesses.back(), Instances());
}

TEST(AccessMap, OverlapOfFewAndManyVariables) {
  EXPECT_EQ(compareEnds(3, 7), Sharing::Overlap);
  EXPECT_EQ(compareEnds(100, 7), Sharing::Overlap);
}

TEST(AccessMap, NoOverlapOfFewAndManyVariables) {
  EXPECT_EQ(compareEnds(3, 8), Sharing::Disjoint);
  EXPECT_EQ(compareEnds(100, 8), Sharing::Disjoint);
}

//===- MathOpsTest.cpp - Every op of math is expanded or refused ----------===//
//
// Tries every op that MLIR registers, on scalars and vectors: it is expanded, or an instruction
// of the target, or refused by the target's gate and named in the lists below.
//
//===----------------------------------------------------------------------===//

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Parser/Parser.h"
#include "mlir/Transforms/WalkPatternRewriteDriver.h"
#include "weir/Numerics/Math.h"
#include "weir/Target/Ptx.h"
#include "weir/Target/Spirv.h"

#include <gtest/gtest.h>
#include <set>

using namespace mlir;

namespace {

class MathOps : public testing::Test {
protected:
  MathOps() {
    context.loadDialect<arith::ArithDialect, gpu::GPUDialect, math::MathDialect,
                        memref::MemRefDialect, scf::SCFDialect>();
  }

  /// Returns a kernel around `op` of `type`, for the first signature that the op takes; nothing
  /// when it takes none.
  OwningOpRef<ModuleOp> makeKernel(StringRef op, const std::string &type);

  /// Returns the target's error on the expanded kernel; empty if it accepts it.
  std::string findError(ModuleOp module, bool ptx);

  MLIRContext context;
};

OwningOpRef<ModuleOp> MathOps::makeKernel(StringRef op, const std::string &type) {
  ScopedDiagnosticHandler quiet(&context, [](Diagnostic &) { return success(); });
  bool isVector = StringRef(type).starts_with("vector");
  std::string i32 = isVector ? "vector<2xi32>" : "i32", i1 = isVector ? "vector<2xi1>" : "i1";
  std::string twice = type + ", " + type;
  struct Signature {
    std::string operands, types, results;
    int count;
  };
  for (const auto &[operands, types, results, count] :
       {Signature{"%x", type, type, 1}, Signature{"%x", type, i1, 1},
        Signature{"%x", type, "(" + twice + ")", 2}, Signature{"%x, %x", twice, type, 1},
        Signature{"%x, %n", type + ", " + i32, type, 1},
        Signature{"%x, %x, %x", twice + ", " + type, type, 1}}) {
    std::string text = R"(
      gpu.module @m { gpu.func @k(%m: memref<8xTYPE, #gpu.address_space<global>>,
                                  %l: memref<8xINT, #gpu.address_space<global>>)
          kernel attributes {known_block_size = array<i32: 8, 1, 1>} {
        %i = gpu.thread_id x
        %x = memref.load %m[%i] : memref<8xTYPE, #gpu.address_space<global>>
        %n = memref.load %l[%i] : memref<8xINT, #gpu.address_space<global>>
        %r:COUNT = "OP"(OPERANDS) : (TYPES) -> RESULTS
        gpu.return } })";
    for (const auto &[name, value] : {std::pair<StringRef, std::string>{"TYPES", types},
                                      {"TYPE", type},
                                      {"INT", i32},
                                      {"COUNT", std::to_string(count)},
                                      {"OPERANDS", operands},
                                      {"RESULTS", results},
                                      {"OP", op.str()}})
      for (size_t at; (at = text.find(name)) != std::string::npos;)
        text.replace(at, name.size(), value);
    if (auto module = parseSourceString<ModuleOp>(text, &context))
      return module;
  }
  return nullptr;
}

std::string MathOps::findError(ModuleOp module, bool ptx) {
  std::string text;
  ScopedDiagnosticHandler collect(&context, [&](Diagnostic &diagnostic) {
    text += diagnostic.str();
    return success();
  });
  RewritePatternSet patterns(&context);
  weir::populateMathExpansionPatterns(patterns);
  walkAndApplyPatterns(module, std::move(patterns));
  weir::Profile profile = weir::getBuiltinProfile(ptx ? "sm_80" : "lavapipe");
  module.walk([&](gpu::GPUFuncOp kernel) {
    LogicalResult result =
        ptx ? weir::checkPtxKernel(kernel, profile) : weir::checkSpirvKernel(kernel, profile);
    EXPECT_EQ(failed(result), !text.empty());
  });
  return text;
}

TEST_F(MathOps, AreInstructionsOrExpandedOrRefused) {
  std::set<std::string> seen;
  for (bool ptx : {false, true})
    for (const char *type : {"f32", "f64", "vector<2xf32>", "vector<2xf64>", "i32", "i64"}) {
      std::set<std::string> refused;
      for (RegisteredOperationName name : context.getRegisteredOperations()) {
        if (name.getDialectNamespace() != "math")
          continue;
        OwningOpRef<ModuleOp> module = makeKernel(name.getStringRef(), type);
        if (!module)
          continue;
        std::string op = name.stripDialect().str();
        seen.insert(op);
        std::string error = findError(*module, ptx);
        if (error.empty())
          continue;
        EXPECT_NE(error.find("math." + op + " of "), std::string::npos) << error;
        EXPECT_NE(error.find(" has no exact lowering"), std::string::npos) << error;
        refused.insert(op);
      }
      std::set<std::string> expected;
      if (type[0] == 'i') {
        expected = {"ipowi"};
        if (!ptx)
          expected.insert({"ctpop", "cttz"});
        if (!ptx && StringRef(type) == "i64")
          expected.insert("ctlz");
      }
      EXPECT_EQ(refused, expected) << (ptx ? "PTX, " : "SPIR-V, ") << type;
    }
  size_t registered = llvm::count_if(context.getRegisteredOperations(), [](auto name) {
    return name.getDialectNamespace() == "math";
  });
  EXPECT_EQ(seen.size(), registered);
  EXPECT_GT(registered, 40u);
}

TEST_F(MathOps, OfOtherTypesAreRefused) {
  for (bool ptx : {false, true}) {
    EXPECT_NE(findError(*makeKernel("math.sin", "f16"), ptx), "");
    EXPECT_NE(findError(*makeKernel("arith.remf", "f16"), ptx), "");
    EXPECT_EQ(findError(*makeKernel("arith.remf", "f32"), ptx), "");
  }
}

} // namespace

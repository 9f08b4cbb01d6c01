//===- MathTest.cpp - The errors that docs/math.md states ------------------===//
//
// Every function is expanded, compiled for the host and compared with the host's f64
// functions, whose own error does not count. It must keep its bound three ways: with a fused
// math.fma, with one that rounds twice, and with denormals flushed both ways.
//
//===----------------------------------------------------------------------===//

#include "weir/Kernels/Math.h"

#include "mlir/Conversion/ArithToLLVM/ArithToLLVM.h"
#include "mlir/Conversion/FuncToLLVM/ConvertFuncToLLVMPass.h"
#include "mlir/Conversion/MathToLLVM/MathToLLVM.h"
#include "mlir/Conversion/Passes.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/ExecutionEngine/ExecutionEngine.h"
#include "mlir/Parser/Parser.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Target/LLVMIR/Dialect/Builtin/BuiltinToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Dialect/LLVMIR/LLVMToLLVMIRTranslation.h"
#include "mlir/Transforms/WalkPatternRewriteDriver.h"
#include "llvm/Support/TargetSelect.h"

#include <bit>
#include <cfloat>
#include <cmath>
#include <gtest/gtest.h>
#include <limits>
#include <numbers>
#include <random>
#ifdef __SSE__
#include <xmmintrin.h>
#endif

using namespace mlir;

namespace {

enum Variant { fused, split, flushed };

struct Function {
  const char *name;
  double (*reference)(double);
  /// Where samples are dense besides those over all of f32.
  double low, high;
  /// The largest error in units in the last place: fused, and otherwise.
  double boundFused, boundSplit;
};

double reciprocalRoot(double x) { return 1 / std::sqrt(x); }
double bounded(double (*function)(double), double x) {
  return std::abs(x) <= 100000 ? function(x) : std::numeric_limits<double>::quiet_NaN();
}
double boundedSin(double x) { return bounded(std::sin, x); }
double boundedCos(double x) { return bounded(std::cos, x); }

const Function functions[] = {
    {"exp", std::exp, -104, 89, 1, 1},           {"exp2", std::exp2, -150, 128, 0.9, 1.1},
    {"expm1", std::expm1, -3, 3, 1.6, 1.7},      {"log", std::log, 0.5, 2, 0.9, 0.9},
    {"log2", std::log2, 0.5, 2, 1, 1.3},         {"log10", std::log10, 0.5, 2, 1.1, 1.3},
    {"log1p", std::log1p, -1, 2, 1.5, 1.5},      {"sqrt", std::sqrt, 1, 4, 0.55, 0.55},
    {"rsqrt", reciprocalRoot, 1, 4, 0.55, 0.55}, {"tanh", std::tanh, -10, 10, 1.4, 1.4},
    {"erf", std::erf, -4, 4, 1.4, 1.4},          {"sin", boundedSin, -10, 10, 3, 3},
    {"cos", boundedCos, -10, 10, 3, 3},          {"atan", std::atan, -5, 5, 1.5, 1.6},
};

/// The functions above as weir_NAME, expanded and compiled.
class Compiled {
public:
  explicit Compiled(bool splitFma) {
    llvm::InitializeNativeTarget();
    llvm::InitializeNativeTargetAsmPrinter();
    DialectRegistry registry;
    registry.insert<arith::ArithDialect, func::FuncDialect, LLVM::LLVMDialect, math::MathDialect>();
    registerBuiltinDialectTranslation(registry);
    registerLLVMDialectTranslation(registry);
    context = std::make_unique<MLIRContext>(registry);
    std::string text;
    for (const Function &function : functions)
      text += std::string("func.func @weir_") + function.name + "(%x: f32) -> f32 { %y = math." +
              function.name + " %x : f32 return %y : f32 }\n";
    text += "func.func @weir_pow(%x: f32, %y: f32) -> f32 {"
            " %z = math.powf %x, %y : f32 return %z : f32 }\n";
    auto module = parseSourceString<ModuleOp>(text, context.get());
    RewritePatternSet patterns(context.get());
    weir::populateMathExpansionPatterns(patterns);
    walkAndApplyPatterns(*module, std::move(patterns));
    module->walk([&](Operation *op) {
      if (isa<math::MathDialect>(op->getDialect()))
        EXPECT_TRUE((isa<math::FmaOp, math::TruncOp>(op))) << op->getName().getStringRef().str();
    });
    if (splitFma)
      module->walk([](math::FmaOp op) {
        OpBuilder builder(op);
        Value product = arith::MulFOp::create(builder, op.getLoc(), op.getA(), op.getB());
        op.replaceAllUsesWith(
            arith::AddFOp::create(builder, op.getLoc(), product, op.getC()).getResult());
        op.erase();
      });
    PassManager manager(context.get());
    manager.addPass(createConvertMathToLLVMPass());
    manager.addPass(createArithToLLVMConversionPass());
    manager.addPass(createConvertFuncToLLVMPass());
    EXPECT_TRUE(succeeded(manager.run(*module)));
    engine = llvm::cantFail(ExecutionEngine::create(*module));
  }

  template <typename T> T *get(const std::string &name) {
    return reinterpret_cast<T *>(llvm::cantFail(engine->lookup("weir_" + name)));
  }

private:
  std::unique_ptr<MLIRContext> context;
  std::unique_ptr<ExecutionEngine> engine;
};

/// Flushes denormal operands and results while it lives.
struct Flushing {
#ifdef __SSE__
  unsigned before = _mm_getcsr();
  explicit Flushing(bool on) { _mm_setcsr(on ? before | 0x8040 : before); }
  ~Flushing() { _mm_setcsr(before); }
#else
  explicit Flushing(bool) {}
#endif
};

float neighbour(float x, int steps) { return std::bit_cast<float>(std::bit_cast<int>(x) + steps); }

std::vector<float> samples(double low, double high) {
  constexpr float infinity = std::numeric_limits<float>::infinity();
  std::vector<float> xs = {infinity, -infinity, std::nanf(""), -std::nanf(""),
                           0.0f,     -0.0f,     FLT_MAX,       -FLT_MAX};
  for (uint64_t i = 0; i < uint64_t(1) << 32; i += 8363)
    xs.push_back(std::bit_cast<float>(uint32_t(i)));
  for (int i = 0; i <= 400000; ++i)
    xs.push_back(float(low + (high - low) * i / 400000));
  for (int exponent = -149; exponent <= 127; ++exponent)
    for (int steps = -2; steps <= 2; ++steps) {
      float x = neighbour(std::ldexp(1.0f, exponent), steps);
      xs.push_back(x);
      xs.push_back(-x);
    }
  // Where reductions change and where results cross a limit.
  for (int i = -1000; i <= 64000; ++i)
    for (int steps = -1; steps <= 1; ++steps)
      xs.push_back(neighbour(float((i + 0.0) * std::numbers::pi / 2), steps));
  for (int i = -320; i <= 320; ++i)
    for (int steps = -2; steps <= 2; ++steps) {
      xs.push_back(neighbour(float(i * std::numbers::ln2 / 2), steps));
      xs.push_back(neighbour(float(i / 2.0), steps));
      xs.push_back(neighbour(float(i / 20.0), steps));
    }
  return xs;
}

/// The error of `result` in units in the last place of the f32s around `exact`, or
/// infinity for a wrong NaN, infinity or sign of zero.
double error(float result, double exact, bool flushing) {
  constexpr double wrong = std::numeric_limits<double>::infinity();
  if (std::isnan(exact))
    return std::isnan(result) ? 0 : wrong;
  if (std::isnan(result))
    return wrong;
  float nearest = float(exact);
  if (std::isinf(exact))
    return result == nearest ? 0 : wrong;
  if (exact == 0)
    return result == 0 && std::signbit(result) == std::signbit(exact) ? 0 : wrong;
  if (std::isinf(nearest) && std::isinf(result))
    return (result > 0) == (exact > 0) ? 0 : wrong;
  // An infinity one step early counts as the value it stands for.
  double value = std::isinf(result) ? std::copysign(0x1p128, result) : result;
  // erf of the largest denormals is normal.
  if (flushing && std::abs(exact) < 1.13 * FLT_MIN && value == 0)
    return 0;
  int exponent = std::max(std::ilogb(exact), -126);
  return std::abs(value - exact) / std::ldexp(1.0, exponent - 23);
}

struct Worst {
  double error = 0;
  float x = 0, y = 0, result = 0;
};

class Math : public testing::TestWithParam<Variant> {
protected:
  /// Not static: an engine must be gone before LLVM's own globals are.
  Compiled compiled{GetParam() != fused};
};

TEST_P(Math, KeepsStatedBounds) {
  for (const Function &function : functions) {
    auto *compute = compiled.get<float(float)>(function.name);
    std::vector<float> xs = samples(function.low, function.high);
    std::vector<float> results(xs.size());
    {
      Flushing scope(GetParam() == flushed);
      for (size_t i = 0; i < xs.size(); ++i)
        results[i] = compute(xs[i]);
    }
    Worst worst;
    for (size_t i = 0; i < xs.size(); ++i) {
      double now = error(results[i], function.reference(xs[i]), GetParam() == flushed);
      if (now > worst.error)
        worst = {now, xs[i], 0, results[i]};
    }
    RecordProperty(function.name, std::to_string(worst.error));
    EXPECT_LE(worst.error, GetParam() == fused ? function.boundFused : function.boundSplit)
        << function.name << "(" << worst.x << ") = " << worst.result << ", not "
        << function.reference(worst.x);
  }
}

TEST_P(Math, PowKeepsStatedBound) {
  auto *compute = compiled.get<float(float, float)>("pow");
  constexpr float infinity = std::numeric_limits<float>::infinity();
  std::vector<std::pair<float, float>> points;
  // clang-format off
  const float special[] = {0.0f, 1.0f, 0.5f, 2.0f, 3.0f, 2.5f, 1e-40f, FLT_MIN, FLT_MAX,
                           neighbour(1, 1), neighbour(1, -1), 0x1p23f, 0x1p23f + 1, 0x1p24f,
                           0x1p25f, 8388607.5f, 1e30f, infinity, std::nanf("")};
  // clang-format on
  for (float x : special)
    for (float y : special)
      for (float xSign : {1.0f, -1.0f})
        for (float ySign : {1.0f, -1.0f})
          points.push_back({xSign * x, ySign * y});
  std::mt19937 random(1);
  for (int i = 0; i < 700000; ++i) {
    float x = std::bit_cast<float>(uint32_t(random()) & 0x7fffffff);
    float y = std::bit_cast<float>(uint32_t(random()));
    points.push_back({x, y});
    if (!std::isfinite(x) || x == 0 || x == 1)
      continue;
    // Results over all of f32, from any x and from those near 1.
    double result = -152 + random() * (282 / 0x1p32);
    points.push_back({x, float(result / std::log2(double(x)))});
    float near = float(0.5 + random() * (1.5 / 0x1p32));
    if (near != 1)
      points.push_back({near, float(result / std::log2(double(near)))});
    points.push_back({-near * 4, float(int(random() % 129) - 64)});
  }
  std::vector<float> results(points.size());
  {
    Flushing scope(GetParam() == flushed);
    for (size_t i = 0; i < points.size(); ++i)
      results[i] = compute(points[i].first, points[i].second);
  }
  Worst worst;
  for (size_t i = 0; i < points.size(); ++i) {
    auto [x, y] = points[i];
    double now = error(results[i], std::pow(double(x), double(y)), GetParam() == flushed);
    // Where operands are flushed, such an exponent may count as zero.
    if (GetParam() == flushed && std::abs(y) < FLT_MIN && results[i] == 1)
      now = 0;
    if (now > worst.error)
      worst = {now, x, y, results[i]};
  }
  RecordProperty("pow", std::to_string(worst.error));
  EXPECT_LE(worst.error, 5) << worst.x << " ^ " << worst.y << " = " << worst.result << ", not "
                            << std::pow(double(worst.x), double(worst.y));
}

std::string variantName(const testing::TestParamInfo<Variant> &info) {
  return info.param == fused ? "Fused" : info.param == split ? "Split" : "Flushed";
}

INSTANTIATE_TEST_SUITE_P(Fma, Math, testing::Values(fused, split, flushed), variantName);

} // namespace

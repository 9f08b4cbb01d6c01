//===- MathTest.cpp - The errors that docs/math.md states ------------------===//
//
// Every function is expanded, compiled for the host and compared with the host's functions
// of a wider type, whose own error does not count, and with mpmath's values where those of
// f64 are hard. It must keep its bound three ways: with a fused math.fma, with one that
// rounds twice, and with denormals flushed both ways.
//
//===----------------------------------------------------------------------===//

#include "weir/Numerics/Math.h"

#include "mlir/Conversion/ArithToLLVM/ArithToLLVM.h"
#include "mlir/Conversion/ControlFlowToLLVM/ControlFlowToLLVM.h"
#include "mlir/Conversion/FuncToLLVM/ConvertFuncToLLVMPass.h"
#include "mlir/Conversion/MathToLLVM/MathToLLVM.h"
#include "mlir/Conversion/Passes.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
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
#include <random>
#ifdef __SSE__
#include <xmmintrin.h>
#endif

using namespace mlir;

namespace {

enum Variant { fused, split, flushed };

template <typename T> constexpr bool isWide = std::is_same_v<T, double>;
template <typename T> using Wider = std::conditional_t<isWide<T>, long double, double>;
template <typename T> using Bits = std::conditional_t<isWide<T>, uint64_t, uint32_t>;
template <typename T> using Limits = std::numeric_limits<T>;
template <typename T> constexpr T infinity = Limits<T>::infinity();

// The references of f64 must be wider than that.
static_assert(LDBL_MANT_DIG > DBL_MANT_DIG + 4);

/// Max error in units in the last place: with a fused math.fma, and otherwise.
struct Bound {
  double fused, split;
};

struct Function {
  const char *name;
  double (*narrow)(double);
  long double (*wide)(long double);
  /// Ranges with dense samples, in addition to those over the whole type.
  double low, high;
  Bound f32, f64;
};

template <typename T> T reciprocalRoot(T x) { return 1 / std::sqrt(x); }

// clang-format off
const Function functions[] = {
    {"acos",  std::acos,  std::acos,  -1, 1,     {1.2, 1.2},   {1.2, 1.2}},
    {"acosh", std::acosh, std::acosh, 1, 5,      {2.3, 2.3}, {2.3, 2.3}},
    {"asin",  std::asin,  std::asin,  -1, 1,     {2.4, 2.4},   {2.2, 2.2}},
    {"asinh", std::asinh, std::asinh, -5, 5,     {1.9, 1.9},   {1.8, 1.8}},
    {"atan",  std::atan,  std::atan,  -5, 5,     {1.5, 1.6},   {1.5, 1.6}},
    {"atanh", std::atanh, std::atanh, -1, 1,     {2.1, 2.1}, {2.1, 2.1}},
    {"cbrt",  std::cbrt,  std::cbrt,  1, 8,      {0.55, 0.55}, {0.55, 0.55}},
    {"cos",   std::cos,   std::cos,   -10, 10,   {0.8, 0.8},   {0.8, 0.8}},
    {"cosh",  std::cosh,  std::cosh,  -3, 3,     {1.5, 1.5},   {1.5, 1.5}},
    {"erf",   std::erf,   std::erf,   -6, 6,     {1.4, 1.4},   {1.4, 1.4}},
    {"erfc",  std::erfc,  std::erfc,  -6, 28,    {4, 4},       {4, 4}},
    {"exp",   std::exp,   std::exp,   -746, 710, {1, 1},       {1, 1}},
    {"exp2",  std::exp2,  std::exp2,  -1075, 1024, {0.9, 1.1}, {1, 1.2}},
    {"expm1", std::expm1, std::expm1, -3, 3,     {1.6, 1.7},   {1.8, 1.9}},
    {"log",   std::log,   std::log,   0.5, 2,    {0.9, 0.9}, {0.9, 0.9}},
    {"log10", std::log10, std::log10, 0.5, 2,    {1.1, 1.3},   {0.8, 0.8}},
    {"log1p", std::log1p, std::log1p, -1, 2,     {1.5, 1.5}, {1.1, 1.1}},
    {"log2",  std::log2,  std::log2,  0.5, 2,    {1, 1.3},     {0.8, 0.8}},
    {"rsqrt", reciprocalRoot, reciprocalRoot, 1, 4, {0.55, 0.55}, {0.51, 0.51}},
    {"sin",   std::sin,   std::sin,   -10, 10,   {0.8, 0.8},   {0.8, 0.8}},
    {"sinh",  std::sinh,  std::sinh,  -3, 3,     {1.7, 1.7},   {1.7, 1.7}},
    {"sqrt",  std::sqrt,  std::sqrt,  1, 4,      {0.55, 0.55}, {0.51, 0.51}},
    {"tan",   std::tan,   std::tan,   -10, 10,   {2.2, 2.2},   {2.2, 2.2}},
    {"tanh",  std::tanh,  std::tanh,  -20, 20,   {1.4, 1.4},   {1.4, 1.4}},
};
// clang-format on
const Bound powBound[] = {{3, 3}, {1.8, 1.8}}, atan2Bound[] = {{2, 2}, {2, 2}};

/// Exact functions of one number: they round as the host's.
const char *const exactFunctions[] = {"round", "trunc", "floor", "ceil", "roundeven", "absf"};

/// The functions above of both types as NAME_TYPE, expanded and compiled.
class Compiled {
public:
  /// With `fuses` as for a target whose math.fma rounds once.
  explicit Compiled(bool splitFma, bool fuses = false);

  template <typename Signature> Signature *get(const std::string &name, bool wide) {
    return reinterpret_cast<Signature *>(
        llvm::cantFail(engine->lookup(name + (wide ? "_f64" : "_f32"))));
  }

private:
  std::unique_ptr<MLIRContext> context;
  std::unique_ptr<ExecutionEngine> engine;
};

std::string getText() {
  std::string text;
  auto add = [&](const std::string &name, const std::string &arguments, const std::string &result,
                 const std::string &body) {
    for (const char *type : {"f32", "f64"}) {
      std::string function = "func.func @" + name + "_T(" + arguments + ") -> " + result + " { " +
                             body + " return %r : " + result + " }\n";
      for (size_t at; (at = function.find('T')) != std::string::npos;)
        function.replace(at, 1, type);
      text += function;
    }
  };
  for (const Function &function : functions)
    add(function.name, "%x: T", "T", std::string("%r = math.") + function.name + " %x : T");
  for (const char *name : exactFunctions)
    add(name, "%x: T", "T", std::string("%r = math.") + name + " %x : T");
  for (const char *name : {"isfinite", "isinf", "isnan", "isnormal"})
    add(name, "%x: T", "T",
        std::string("%b = math.") + name +
            " %x : T  %0 = arith.constant 0.0 : T  %1 = arith.constant 1.0 : T"
            "  %r = arith.select %b, %1, %0 : T");
  add("powf", "%x: T, %y: T", "T", "%r = math.powf %x, %y : T");
  add("atan2", "%x: T, %y: T", "T", "%r = math.atan2 %x, %y : T");
  add("remf", "%x: T, %y: T", "T", "%r = arith.remf %x, %y : T");
  add("copysign", "%x: T, %y: T", "T", "%r = math.copysign %x, %y : T");
  add("clampf", "%x: T, %y: T, %z: T", "T", "%r = math.clampf %x to [%y, %z] : T");
  add("sin_of_both", "%x: T", "T", "%r, %c = math.sincos %x : T");
  add("cos_of_both", "%x: T", "T", "%s, %r = math.sincos %x : T");
  add("powi32", "%x: T, %n: i32", "T", "%r = math.fpowi %x, %n : T, i32");
  add("powi64", "%x: T, %n: i64", "T", "%r = math.fpowi %x, %n : T, i64");
  add("exp_not_positive", "%x: T", "T", "%r = math.exp %x {weir.not_positive} : T");
  const std::string share =
      "%h = arith.constant 0.5 : T  %c = arith.constant -0.70710678118654752 : T"
      "  %z = arith.mulf %x, %c : T  %e = math.erfc %z : T  %p = arith.mulf %h, %e : T  ";
  add("gelu", "%x: T", "T", share + "%r = arith.mulf %x, %p : T");
  add("gelu_slope", "%x: T", "T",
      share +
          "%s = arith.mulf %x, %x : T  %m = arith.constant -0.5 : T  %y = arith.mulf %m, %s : T"
          "  %w = math.exp %y : T  %d = arith.constant 0.3989422804014327 : T"
          "  %v = arith.mulf %d, %w : T  %u = arith.mulf %x, %v : T  %r = arith.addf %p, %u : T");
  add("fifth", "%x: T", "T", "%n = arith.constant 5 : i32  %r = math.fpowi %x, %n : T, i32");
  return text;
}

Compiled::Compiled(bool splitFma, bool fuses) {
  llvm::InitializeNativeTarget();
  llvm::InitializeNativeTargetAsmPrinter();
  DialectRegistry registry;
  registry.insert<arith::ArithDialect, func::FuncDialect, LLVM::LLVMDialect, math::MathDialect,
                  scf::SCFDialect>();
  registerBuiltinDialectTranslation(registry);
  registerLLVMDialectTranslation(registry);
  context = std::make_unique<MLIRContext>(registry);
  context->loadDialect<scf::SCFDialect>();
  auto module = parseSourceString<ModuleOp>(getText(), context.get());
  if (fuses) {
    RewritePatternSet gelus(context.get());
    weir::populateGeluPatterns(gelus);
    walkAndApplyPatterns(*module, std::move(gelus));
  }
  RewritePatternSet patterns(context.get());
  weir::populateMathExpansionPatterns(patterns, fuses);
  walkAndApplyPatterns(*module, std::move(patterns));
  if (splitFma)
    module->walk([](math::FmaOp op) {
      OpBuilder builder(op);
      Value product = arith::MulFOp::create(builder, op.getLoc(), op.getA(), op.getB());
      op.replaceAllUsesWith(
          arith::AddFOp::create(builder, op.getLoc(), product, op.getC()).getResult());
      op.erase();
    });
  PassManager manager(context.get());
  manager.addPass(createSCFToControlFlowPass());
  manager.addPass(createConvertMathToLLVMPass());
  manager.addPass(createArithToLLVMConversionPass());
  manager.addPass(createConvertControlFlowToLLVMPass());
  manager.addPass(createConvertFuncToLLVMPass());
  manager.addPass(createReconcileUnrealizedCastsPass());
  EXPECT_TRUE(succeeded(manager.run(*module)));
  engine = llvm::cantFail(ExecutionEngine::create(*module));
}

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

template <typename T> T neighbour(T x, int steps) {
  return std::bit_cast<T>(Bits<T>(std::bit_cast<Bits<T>>(x) + steps));
}

/// Returns numbers of every kind.
template <typename T> std::vector<T> getSpecials() {
  std::vector<T> xs;
  for (T x : {T(0),
              T(1),
              T(0.5),
              T(1.5),
              T(2),
              T(2.5),
              T(3),
              Limits<T>::denorm_min(),
              Limits<T>::min(),
              Limits<T>::max(),
              neighbour(T(1), 1),
              neighbour(T(1), -1),
              T(0x1p23),
              T(0x1p23 + 1),
              T(0x1p24),
              T(8388607.5),
              T(0x1p52),
              T(0x1p53),
              T(0x1p53 - 1),
              T(1e-40),
              T(1e30),
              infinity<T>,
              Limits<T>::quiet_NaN()}) {
    xs.push_back(x);
    xs.push_back(-x);
  }
  return xs;
}

template <typename T> std::vector<T> getSamples(double low, double high) {
  std::vector<T> xs = getSpecials<T>();
  constexpr int width = sizeof(T) * 8, dense = isWide<T> ? 40000 : 400000;
  constexpr uint64_t even = isWide<T> ? 60000 : 500000;
  std::mt19937_64 random(1);
  for (uint64_t i = 0; i < even; ++i)
    xs.push_back(std::bit_cast<T>(Bits<T>((i << (width - 19)) + (random() >> (64 - width + 19)))));
  for (int i = 0; i <= dense; ++i)
    xs.push_back(T(low + (high - low) * i / dense));
  for (int exponent = Limits<T>::min_exponent - Limits<T>::digits;
       exponent < Limits<T>::max_exponent; ++exponent)
    for (int steps = -2; steps <= 2; ++steps) {
      T x = neighbour(T(std::ldexp(T(1), exponent)), steps);
      xs.push_back(x);
      xs.push_back(-x);
    }
  // Where reductions change and where results cross a limit.
  constexpr long double halfPi = 1.57079632679489661923132169163975144L;
  for (int i = -1000; i <= (isWide<T> ? 20000 : 64000); ++i)
    for (int steps = -1; steps <= 1; ++steps)
      xs.push_back(neighbour(T(i * halfPi), steps));
  for (int i = -2060; i <= 2060; ++i)
    for (int steps = -2; steps <= 2; ++steps) {
      xs.push_back(neighbour(T(i * (0.693147180559945309L / 2)), steps));
      xs.push_back(neighbour(T(i / 2.0), steps));
      xs.push_back(neighbour(T(i / 20.0), steps));
    }
  return xs;
}

/// Returns the error of `result` in units in the last place of the numbers around `exact`, or
/// infinity for a wrong NaN, infinity or sign of zero.
template <typename T> double error(T result, Wider<T> exact, bool flushing) {
  constexpr double wrong = infinity<double>;
  if (std::isnan(exact))
    return std::isnan(result) ? 0 : wrong;
  if (std::isnan(result))
    return wrong;
  T nearest = T(exact);
  if (std::isinf(exact))
    return result == nearest ? 0 : wrong;
  if (exact == 0)
    return result == 0 && std::signbit(result) == std::signbit(exact) ? 0 : wrong;
  if (std::isinf(nearest) && std::isinf(result))
    return (result > 0) == (exact > 0) ? 0 : wrong;
  // An infinity one step early counts as the value it stands for.
  Wider<T> limit = std::ldexp(Wider<T>(1), Limits<T>::max_exponent);
  Wider<T> value = std::isinf(result) ? std::copysign(limit, Wider<T>(result)) : result;
  // erf of the largest denormals is normal.
  if (flushing && std::abs(exact) < Wider<T>(1.13) * Limits<T>::min() && value == 0)
    return 0;
  int exponent = std::max(std::ilogb(exact), Limits<T>::min_exponent - 1);
  return double(std::abs(value - exact) /
                std::ldexp(Wider<T>(1), exponent - Limits<T>::digits + 1));
}

template <typename T> bool isDenormal(T x) { return std::fpclassify(x) == FP_SUBNORMAL; }

template <typename T> struct Worst {
  double error = 0;
  T x = 0, y = 0, result = 0;

  void update(double now, T x, T y, T result) {
    if (now > error)
      *this = {now, x, y, result};
  }
};

template <typename T> std::ostream &operator<<(std::ostream &out, const Worst<T> &worst) {
  return out << std::hexfloat << "(" << worst.x << ", " << worst.y << ") = " << worst.result;
}

class Math : public testing::TestWithParam<Variant> {
protected:
  bool flushing() const { return GetParam() == flushed; }
  double limit(Bound bound) const { return GetParam() == fused ? bound.fused : bound.split; }

  /// Returns the results of a function of one or more numbers of a type.
  template <typename T, typename... Ts, typename Point>
  std::vector<T> compute(const std::string &name, const std::vector<Point> &points) {
    auto *function = compiled.get<T(Ts...)>(name, isWide<T>);
    std::vector<T> results(points.size());
    Flushing scope(flushing());
    for (size_t i = 0; i < points.size(); ++i)
      if constexpr (sizeof...(Ts) == 1)
        results[i] = function(points[i]);
      else
        results[i] = function(points[i].first, points[i].second);
    return results;
  }

  template <typename T> void checkUnary(const Function &function);
  template <typename T> void checkPow();
  template <typename T, typename N> void checkPowI();
  template <typename T> void checkAtan2();
  template <typename T> void checkRemainder();
  template <typename T> void checkExact();

  /// Not static: an engine must be gone before LLVM's own globals are.
  Compiled compiled{GetParam() != fused};
};

template <typename T> void Math::checkUnary(const Function &function) {
  std::vector<T> xs = getSamples<T>(function.low, function.high);
  std::vector<T> results = compute<T, T>(function.name, xs);
  auto reference = [&](T x) -> Wider<T> {
    if constexpr (isWide<T>)
      return function.wide(x);
    else
      return function.narrow(x);
  };
  Worst<T> worst;
  for (size_t i = 0; i < xs.size(); ++i)
    worst.update(error<T>(results[i], reference(xs[i]), flushing()), xs[i], 0, results[i]);
  RecordProperty(function.name + std::string(isWide<T> ? "_f64" : "_f32"),
                 std::to_string(worst.error));
  EXPECT_LE(worst.error, limit(isWide<T> ? function.f64 : function.f32))
      << function.name << worst << ", not " << double(reference(worst.x));
}

TEST_P(Math, KeepsStatedBoundsOfF32) {
  for (const Function &function : functions)
    checkUnary<float>(function);
}

TEST_P(Math, KeepsStatedBoundsOfF64) {
  for (const Function &function : functions)
    checkUnary<double>(function);
}

struct HardValue {
  const char *name;
  uint64_t x, y, high, low;
};
const HardValue hardValues[] = {
#include "MathValues.inc"
};

TEST_P(Math, KeepsStatedBoundsWhereItIsHard) {
  for (const HardValue &value : hardValues) {
    double x = std::bit_cast<double>(value.x), y = std::bit_cast<double>(value.y), result;
    std::string name = value.name;
    bool isPair = name == "powf" || name == "atan2";
    {
      Flushing scope(flushing());
      result = isPair ? compiled.get<double(double, double)>(name, true)(x, y)
                      : compiled.get<double(double)>(name, true)(x);
    }
    auto exact = static_cast<long double>(std::bit_cast<double>(value.high)) +
                 std::bit_cast<double>(value.low);
    Bound bound = name == "powf" ? powBound[1] : atan2Bound[1];
    for (const Function &function : functions)
      if (name == function.name)
        bound = function.f64;
    if (flushing() && (isDenormal(x) || isDenormal(y)) && result == 0)
      continue;
    EXPECT_LE(error<double>(result, exact, flushing()), limit(bound))
        << name << std::hexfloat << "(" << x << ", " << y << ") = " << result;
  }
}

template <typename T> void Math::checkPow() {
  std::vector<std::pair<T, T>> points;
  for (T x : getSpecials<T>())
    for (T y : getSpecials<T>())
      points.push_back({x, y});
  std::mt19937_64 random(1);
  auto uniform = [&](double low, double high) {
    return low + double(random() >> 11) * 0x1p-53 * (high - low);
  };
  double least = Limits<T>::min_exponent - Limits<T>::digits - 2,
         most = Limits<T>::max_exponent + 2;
  for (int i = 0; i < (isWide<T> ? 30000 : 500000); ++i) {
    T x = std::abs(std::bit_cast<T>(Bits<T>(random())));
    points.push_back({x, std::bit_cast<T>(Bits<T>(random()))});
    if (!std::isfinite(x) || x == 0 || x == 1)
      continue;
    // Results over all of the type, from any x and from those near 1.
    double result = uniform(least, most);
    points.push_back({x, T(result / std::log2(double(x)))});
    T near = T(uniform(0.5, 2));
    if (near != 1)
      points.push_back({near, T(result / std::log2(double(near)))});
    points.push_back({-near * 4, T(int(random() % 129) - 64)});
  }
  std::vector<T> results = compute<T, T, T>("powf", points);
  Worst<T> worst;
  for (size_t i = 0; i < points.size(); ++i) {
    auto [x, y] = points[i];
    // Where operands are flushed, such an exponent may count as zero.
    if (flushing() && isDenormal(y) && results[i] == 1)
      continue;
    worst.update(error<T>(results[i], std::pow(Wider<T>(x), Wider<T>(y)), flushing()), x, y,
                 results[i]);
  }
  RecordProperty(isWide<T> ? "powf_f64" : "powf_f32", std::to_string(worst.error));
  EXPECT_LE(worst.error, limit(powBound[isWide<T>])) << "powf" << worst;
}

TEST_P(Math, PowKeepsStatedBound) {
  checkPow<float>();
  checkPow<double>();
}

template <typename T, typename N> void Math::checkPowI() {
  std::vector<std::pair<T, N>> points;
  for (T x : getSpecials<T>())
    for (N n : {N(0), N(1), N(-1), N(2), N(-2), N(3), N(-3), N(65), N(-66), N(1000001),
                std::numeric_limits<N>::max(), std::numeric_limits<N>::min(),
                N(std::numeric_limits<N>::max() - 1), N(std::numeric_limits<N>::min() + 1)})
      points.push_back({x, n});
  std::mt19937_64 random(1);
  for (int i = 0; i < 30000; ++i) {
    // Results over all of the type, from exponents of every size.
    double exponent = std::exp2(double(random() >> 11) * 0x1p-53 * (sizeof(N) * 8 - 1.01));
    double result = double(random() >> 11) * 0x1p-53 * Limits<T>::max_exponent;
    T x = T(std::exp2(result / exponent));
    points.push_back({x, N(exponent)});
    points.push_back({-x, N(-exponent)});
  }
  std::vector<T> results = compute<T, T, N>(sizeof(N) == 4 ? "powi32" : "powi64", points);
  Worst<T> worst;
  for (size_t i = 0; i < points.size(); ++i) {
    auto [x, n] = points[i];
    // The sign apart: C's function takes the parity of the rounded exponent.
    Wider<T> exact = std::pow(std::abs(Wider<T>(x)), Wider<T>(n));
    if (n & 1)
      exact = std::copysign(exact, Wider<T>(x));
    worst.update(error<T>(results[i], exact, flushing()), x, T(n), results[i]);
  }
  EXPECT_LE(worst.error, limit(powBound[isWide<T>])) << "fpowi" << worst;
}

TEST_P(Math, PowOfIntegersKeepsStatedBound) {
  checkPowI<float, int32_t>();
  checkPowI<float, int64_t>();
  checkPowI<double, int32_t>();
  checkPowI<double, int64_t>();
}

TEST_P(Math, SmallConstantPowersMultiply) {
  float x = 1.1f, square = x * x;
  EXPECT_EQ(compiled.get<float(float)>("fifth", false)(x), x * (square * square));
}

template <typename T> void Math::checkAtan2() {
  std::vector<std::pair<T, T>> points;
  for (T y : getSpecials<T>())
    for (T x : getSpecials<T>())
      points.push_back({y, x});
  std::mt19937_64 random(1);
  for (int i = 0; i < (isWide<T> ? 50000 : 300000); ++i) {
    points.push_back({std::bit_cast<T>(Bits<T>(random())), std::bit_cast<T>(Bits<T>(random()))});
    auto uniform = [&] { return T(double(int64_t(random())) * 0x1p-63); };
    points.push_back({uniform(), uniform()});
  }
  std::vector<T> results = compute<T, T, T>("atan2", points);
  Worst<T> worst;
  for (size_t i = 0; i < points.size(); ++i) {
    auto [y, x] = points[i];
    if (flushing()) { // a denormal may count as zero
      Worst<T> either{infinity<double>};
      for (T yRead : {y, isDenormal(y) ? std::copysign(T(0), y) : y})
        for (T xRead : {x, isDenormal(x) ? std::copysign(T(0), x) : x}) {
          Wider<T> exact = std::atan2(Wider<T>(yRead), Wider<T>(xRead));
          either.error = std::min(either.error, error<T>(results[i], exact, true));
        }
      worst.update(either.error, y, x, results[i]);
      continue;
    }
    worst.update(error<T>(results[i], std::atan2(Wider<T>(y), Wider<T>(x)), false), y, x,
                 results[i]);
  }
  RecordProperty(isWide<T> ? "atan2_f64" : "atan2_f32", std::to_string(worst.error));
  EXPECT_LE(worst.error, limit(atan2Bound[isWide<T>])) << "atan2" << worst;
}

TEST_P(Math, Atan2KeepsStatedBound) {
  checkAtan2<float>();
  checkAtan2<double>();
}

template <typename T> bool isSame(T a, T b) {
  return std::isnan(a) ? std::isnan(b) : std::bit_cast<Bits<T>>(a) == std::bit_cast<Bits<T>>(b);
}

TEST(FusedMath, ExpHasTheSameBits) {
  Compiled usual(/*splitFma=*/false), fused(/*splitFma=*/false, /*fuses=*/true);
  auto *exp = usual.get<float(float)>("exp", false);
  auto *fusedExp = fused.get<float(float)>("exp", false);
  auto *notPositive = fused.get<float(float)>("exp_not_positive", false);
  for (float x : getSamples<float>(-110, 95)) {
    EXPECT_TRUE(isSame(fusedExp(x), exp(x))) << std::hexfloat << x;
    if (!(x > 0))
      EXPECT_TRUE(isSame(notPositive(x), exp(x))) << std::hexfloat << x;
  }
}

TEST(FusedMath, GeluKeepsStatedBound) {
  Compiled fused(/*splitFma=*/false, /*fuses=*/true);
  auto *gelu = fused.get<float(float)>("gelu", false);
  auto *slope = fused.get<float(float)>("gelu_slope", false);
  Worst<float> worst, worstTail, worstBelow;
  double worstSlope = 0;
  for (float x : getSamples<float>(-15, 15)) {
    if (!std::isfinite(x))
      continue;
    double share = std::erfc(-x * M_SQRT1_2) / 2,
           density = std::exp(-0.5 * x * x) * M_SQRT1_2 / std::sqrt(M_PI);
    // Below -12.9 the share is denormal, and x times its error counts.
    (x < -12.9f ? worstBelow : worst)
        .update(error<float>(gelu(x), x * share, false), x, 0, gelu(x));
    double exact = share + x * density;
    worstSlope = std::max(worstSlope, std::abs(slope(x) - exact));
    if (x < -3 && x > -12.9f)
      worstTail.update(error<float>(slope(x), exact, false), x, 0, slope(x));
  }
  EXPECT_LE(worst.error, 9) << "gelu" << worst;
  EXPECT_LE(worstBelow.error, 12) << "gelu" << worstBelow;
  EXPECT_LE(worstSlope, 0x1p-23);
  EXPECT_LE(worstTail.error, 4.5) << "slope" << worstTail;
  EXPECT_EQ(gelu(infinity<float>), infinity<float>);
  EXPECT_EQ(gelu(-infinity<float>), 0);
  EXPECT_TRUE(std::isnan(gelu(Limits<float>::quiet_NaN())));
  EXPECT_EQ(slope(infinity<float>), 1);
  EXPECT_EQ(slope(-infinity<float>), 0);
  EXPECT_TRUE(std::isnan(slope(Limits<float>::quiet_NaN())));
}

template <typename T> void Math::checkRemainder() {
  std::vector<std::pair<T, T>> points;
  for (T x : getSpecials<T>())
    for (T y : getSpecials<T>())
      points.push_back({x, y});
  std::mt19937_64 random(1);
  for (int i = 0; i < (isWide<T> ? 3000 : 20000); ++i) {
    points.push_back({std::bit_cast<T>(Bits<T>(random())), std::bit_cast<T>(Bits<T>(random()))});
    T x = std::bit_cast<T>(Bits<T>(random())), y = T(x / T(1 + random() % 1000));
    points.push_back({x, y});
  }
  std::vector<T> results = compute<T, T, T>("remf", points);
  for (size_t i = 0; i < points.size(); ++i) {
    auto [x, y] = points[i];
    T exact = std::fmod(x, y);
    bool mayFlush = flushing() && (isDenormal(exact) || isDenormal(x));
    EXPECT_TRUE(isSame(results[i], exact) || (mayFlush && results[i] == 0))
        << std::hexfloat << "fmod(" << x << ", " << y << ") = " << results[i] << ", not " << exact;
  }
}

TEST_P(Math, RemainderIsExact) {
  checkRemainder<float>();
  checkRemainder<double>();
}

template <typename T> void Math::checkExact() {
  std::vector<T> xs = getSpecials<T>();
  std::mt19937_64 random(1);
  for (int i = 0; i < 5000; ++i) {
    xs.push_back(std::bit_cast<T>(Bits<T>(random())));
    xs.push_back(T(int(random() % 2001) - 1000) / 4);
  }
  auto *round = compiled.get<T(T)>("round", isWide<T>);
  auto *sin = compiled.get<T(T)>("sin", isWide<T>), *cos = compiled.get<T(T)>("cos", isWide<T>);
  auto *sinOfBoth = compiled.get<T(T)>("sin_of_both", isWide<T>);
  auto *cosOfBoth = compiled.get<T(T)>("cos_of_both", isWide<T>);
  auto *clamp = compiled.get<T(T, T, T)>("clampf", isWide<T>);
  auto test = [&](const char *name, T x) { return compiled.get<T(T)>(name, isWide<T>)(x) != 0; };
  for (T x : xs) {
    if (!flushing() || !isDenormal(x))
      EXPECT_TRUE(isSame(round(x), std::round(x))) << std::hexfloat << x << " to " << round(x);
    EXPECT_TRUE(isSame(sinOfBoth(x), sin(x)) && isSame(cosOfBoth(x), cos(x))) << x;
    EXPECT_TRUE(isSame(clamp(x, -2, 3), std::isnan(x) ? x : std::min(std::max(x, T(-2)), T(3))));
    int kind = std::fpclassify(x);
    EXPECT_EQ(test("isnan", x), kind == FP_NAN) << x;
    EXPECT_EQ(test("isinf", x), kind == FP_INFINITE) << x;
    EXPECT_EQ(test("isfinite", x), kind != FP_NAN && kind != FP_INFINITE) << x;
    EXPECT_EQ(test("isnormal", x), kind == FP_NORMAL) << x;
  }
}

TEST_P(Math, OthersAreExact) {
  Flushing scope(flushing());
  checkExact<float>();
  checkExact<double>();
}

std::string variantName(const testing::TestParamInfo<Variant> &info) {
  return info.param == fused ? "Fused" : info.param == split ? "Split" : "Flushed";
}

INSTANTIATE_TEST_SUITE_P(Fma, Math, testing::Values(fused, split, flushed), variantName);

} // namespace

//===- ReferenceTest.cpp - The reference against arithmetic by hand -------===//

#include "driver/Reference/Reference.h"

#include "gtest/gtest.h"

#include <cmath>
#include <cstring>

using namespace weir;

template <typename T>
static Tensor make(const std::string &dtype, std::vector<int64_t> shape, std::vector<T> values) {
  Tensor tensor;
  tensor.spec.dtype = dtype;
  tensor.spec.shape = std::move(shape);
  tensor.data.resize(values.size() * sizeof(T));
  std::memcpy(tensor.data.data(), values.data(), tensor.data.size());
  return tensor;
}

template <typename T> static std::vector<T> get(const Tensor &tensor) {
  std::vector<T> values(tensor.data.size() / sizeof(T));
  std::memcpy(values.data(), tensor.data.data(), tensor.data.size());
  return values;
}

static std::string errorOf(const std::string &text, const std::vector<Tensor> &arguments,
                           ReferencePrecision precision = ReferencePrecision::AsWritten) {
  try {
    runReference(text, "f", arguments, precision);
  } catch (const Error &error) {
    return error.what();
  }
  return "";
}

static const char *const matmulText = R"(
func.func @other() { return }
func.func @f(%a: tensor<2x3xf32> {weir.name = "a"}, %b: tensor<3x1xf32>) -> (tensor<2x1xf32> {weir.name = "c"}) {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<2x1xf32>
  %z = linalg.fill ins(%zero : f32) outs(%e : tensor<2x1xf32>) -> tensor<2x1xf32>
  %c = linalg.matmul ins(%a, %b : tensor<2x3xf32>, tensor<3x1xf32>) outs(%z : tensor<2x1xf32>) -> tensor<2x1xf32>
  return %c : tensor<2x1xf32>
})";

TEST(Reference, MultipliesInBothPrecisions) {
  std::vector<Tensor> arguments = {make<float>("F32", {2, 3}, {1, 2, 3, 4, 5, 6}),
                                   make<float>("F32", {3, 1}, {1, 10, 100})};
  std::vector<Tensor> narrow =
      runReference(matmulText, "f", arguments, ReferencePrecision::AsWritten);
  ASSERT_EQ(narrow.size(), 1u);
  EXPECT_EQ(narrow[0].spec.name, "c");
  EXPECT_EQ(narrow[0].spec.dtype, "F32");
  EXPECT_EQ(get<float>(narrow[0]), (std::vector<float>{321, 654}));
  std::vector<Tensor> wide = runReference(matmulText, "f", arguments, ReferencePrecision::Float64);
  EXPECT_EQ(wide[0].spec.dtype, "F64");
  EXPECT_EQ(get<double>(wide[0]), (std::vector<double>{321, 654}));
}

TEST(Reference, Float64KeepsWhatFloat32Loses) {
  const char *text = R"(
func.func @f(%x: tensor<1xf32>) -> tensor<1xf32> {
  %tiny = arith.constant 1.0e-12 : f32
  %e = tensor.empty() : tensor<1xf32>
  %y = linalg.generic {indexing_maps = [affine_map<(d) -> (d)>, affine_map<(d) -> (d)>], iterator_types = ["parallel"]}
      ins(%x : tensor<1xf32>) outs(%e : tensor<1xf32>) {
  ^bb0(%a: f32, %o: f32):
    %s = arith.addf %a, %tiny : f32
    %w = arith.extf %s : f32 to f64
    %n = arith.truncf %w : f64 to f32
    %r = arith.subf %n, %a : f32
    linalg.yield %r : f32
  } -> tensor<1xf32>
  return %y : tensor<1xf32>
})";
  std::vector<Tensor> one = {make<float>("F32", {1}, {1})};
  EXPECT_EQ(get<float>(runReference(text, "f", one, ReferencePrecision::AsWritten)[0])[0], 0.0f);
  EXPECT_NEAR(get<double>(runReference(text, "f", one, ReferencePrecision::Float64)[0])[0], 1e-12,
              1e-15);
  // An f64 argument keeps its bits.
  std::vector<Tensor> wide = {make<double>("F64", {1}, {1 + 1e-9})};
  EXPECT_NEAR(get<double>(runReference(text, "f", wide, ReferencePrecision::Float64)[0])[0], 1e-12,
              1e-15);
}

TEST(Reference, OddTensors) {
  const char *text = R"(
func.func @f(%x: tensor<0x4xf32>, %i: tensor<2xi64>, %s: tensor<f32>) -> (tensor<0x4xf32>, tensor<2xi1>, tensor<f32>, tensor<3xf32>, tensor<f32>) {
  %c = arith.constant dense<[1.0, 2.0, 3.0]> : tensor<3xf32>
  %one = arith.constant 1 : i64
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<2xi1>
  %b = linalg.generic {indexing_maps = [affine_map<(d) -> (d)>, affine_map<(d) -> (d)>], iterator_types = ["parallel"]}
      ins(%i : tensor<2xi64>) outs(%e : tensor<2xi1>) {
  ^bb0(%a: i64, %o: i1):
    %r = arith.cmpi sgt, %a, %one : i64
    linalg.yield %r : i1
  } -> tensor<2xi1>
  %e0 = tensor.empty() : tensor<f32>
  %z = linalg.fill ins(%zero : f32) outs(%e0 : tensor<f32>) -> tensor<f32>
  %sum = linalg.generic {indexing_maps = [affine_map<(r, d) -> (r, d)>, affine_map<(r, d) -> ()>], iterator_types = ["reduction", "reduction"]}
      ins(%x : tensor<0x4xf32>) outs(%z : tensor<f32>) {
  ^bb0(%a: f32, %o: f32):
    %r = arith.addf %a, %o : f32
    linalg.yield %r : f32
  } -> tensor<f32>
  return %x, %b, %s, %c, %sum : tensor<0x4xf32>, tensor<2xi1>, tensor<f32>, tensor<3xf32>, tensor<f32>
})";
  std::vector<Tensor> arguments = {make<float>("F32", {0, 4}, {}),
                                   make<int64_t>("I64", {2}, {1, 2}), make<float>("F32", {}, {7})};
  std::vector<Tensor> results = runReference(text, "f", arguments, ReferencePrecision::AsWritten);
  ASSERT_EQ(results.size(), 5u);
  EXPECT_TRUE(results[0].data.empty());
  EXPECT_EQ(results[1].spec.dtype, "BOOL");
  EXPECT_EQ(results[1].data, (Bytes{0, 1}));
  EXPECT_EQ(get<float>(results[2]), std::vector<float>{7});
  EXPECT_EQ(get<float>(results[3]), (std::vector<float>{1, 2, 3}));
  EXPECT_EQ(get<float>(results[4]), std::vector<float>{0});
}

TEST(Reference, RefusesInSentences) {
  std::vector<Tensor> good = {make<float>("F32", {2, 3}, {1, 2, 3, 4, 5, 6}),
                              make<float>("F32", {3, 1}, {1, 10, 100})};
  EXPECT_EQ(errorOf(matmulText, good), "");
  EXPECT_EQ(errorOf("func.func @g() { return }", {}), "the graph has no entry 'f'");
  EXPECT_NE(errorOf("func.func @f(", {}).find("the graph does not parse"), std::string::npos);
  EXPECT_EQ(errorOf(matmulText, {good[0]}), "entry 'f' takes 2 arguments, given are 1");
  EXPECT_EQ(errorOf(matmulText, {good[1], good[1]}),
            "argument 'a' is F32[3,1], the entry takes F32[2,3]");
  std::vector<Tensor> wide = {make<double>("F64", {2, 3}, {1, 2, 3, 4, 5, 6}), good[1]};
  EXPECT_EQ(errorOf(matmulText, wide), "argument 'a' is F64[2,3], the entry takes F32[2,3]");
  EXPECT_EQ(errorOf(matmulText, wide, ReferencePrecision::Float64), "");
}

TEST(Reference, RefusesBitcastsOfFloatsInFloat64) {
  const char *text = R"(
func.func @f(%x: tensor<1xf32>) -> tensor<1xi32> {
  %e = tensor.empty() : tensor<1xi32>
  %y = linalg.generic {indexing_maps = [affine_map<(d) -> (d)>, affine_map<(d) -> (d)>], iterator_types = ["parallel"]}
      ins(%x : tensor<1xf32>) outs(%e : tensor<1xi32>) {
  ^bb0(%a: f32, %o: i32):
    %b = arith.bitcast %a : f32 to i32
    linalg.yield %b : i32
  } -> tensor<1xi32>
  return %y : tensor<1xi32>
})";
  std::vector<Tensor> one = {make<float>("F32", {1}, {1})};
  EXPECT_EQ(errorOf(text, one), "");
  EXPECT_NE(errorOf(text, one, ReferencePrecision::Float64).find("has no f64 counterpart"),
            std::string::npos);
}

TEST(Reference, RefusesDivisionsWithoutQuotient) {
  auto divide = [](const std::string &op) {
    return R"(
func.func @f(%x: tensor<2xi32>, %y: tensor<2xi32>) -> tensor<2xi32> {
  %e = tensor.empty() : tensor<2xi32>
  %r = linalg.generic {indexing_maps = [affine_map<(d) -> (d)>, affine_map<(d) -> (d)>, affine_map<(d) -> (d)>],
                       iterator_types = ["parallel"]}
      ins(%x, %y : tensor<2xi32>, tensor<2xi32>) outs(%e : tensor<2xi32>) {
  ^bb0(%a: i32, %b: i32, %o: i32):
    %q = arith.)" +
           op + R"( %a, %b : i32
    linalg.yield %q : i32
  } -> tensor<2xi32>
  return %r : tensor<2xi32>
})";
  };
  auto with = [](int x, int y) {
    return std::vector<Tensor>{make<int32_t>("I32", {2}, {7, x}),
                               make<int32_t>("I32", {2}, {2, y})};
  };
  const char *sentence = "entry 'f' divides an integer by 0, or the least one by -1, which has no "
                         "quotient; run it with other arguments";
  for (const char *op : {"divsi", "remsi", "divui", "remui"})
    EXPECT_EQ(errorOf(divide(op), with(1, 0)), sentence) << op;
  EXPECT_EQ(errorOf(divide("divsi"), with(INT32_MIN, -1)), sentence);
  EXPECT_EQ(errorOf(divide("divui"), with(INT32_MIN, -1)), "");
  auto run = [&](const char *op, int x, int y) {
    return get<int32_t>(
        runReference(divide(op), "f", with(x, y), ReferencePrecision::AsWritten)[0]);
  };
  EXPECT_EQ(run("divsi", -9, -1), (std::vector<int32_t>{3, 9}));
  EXPECT_EQ(run("remui", -1, 10), (std::vector<int32_t>{1, 5}));
}

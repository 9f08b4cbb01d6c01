//===- PtxCheckTest.cpp - Refusals of the check of emitted PTX ------------===//
//
// One entry that every case changes in one place. ptxas takes nearly all of
// these changes.
//
//===----------------------------------------------------------------------===//

#include "weir/Target/Ptx.h"

#include "gtest/gtest.h"

using namespace weir;

static const std::string text = R"(
// Generated
.version 8.0
.target sm_80
.address_size 64

.visible .entry k(
	.param .u64 .ptr .global .align 1 k_param_0,
	.param .u64 .ptr .global .align 1 k_param_1
)
.reqntid 32, 2, 1
{
	.reg .b32 	%r<4>; // call
	ld.param.b64 	%rd1, [k_param_0];
$L__BB0_2:
	ld.global.b32 	%r1, [%rd1];
	@%p1 mul.rn.f32 	%r2, %r1, %r1;
	fma.rn.f64 	%rd2, %rd3, %rd3, %rd3;
	mul.wide.u32 	%rd2, %r1, 4;
	add.s64 	%rd3, %rd1, %rd2;
	cvt.rzi.f32.f32 	%r3, %r2;
	abs.f32 	%r3, %r2;
	ret;
}
)";

static std::string findError(const std::string &from = "", const std::string &to = "",
                             const Profile &profile = getBuiltinProfile("sm_80"),
                             std::vector<int32_t> workgroup = {32, 2, 1}) {
  std::string changed = text;
  if (!from.empty()) {
    size_t at = changed.find(from);
    EXPECT_NE(at, std::string::npos) << from;
    changed.replace(at, from.size(), to);
  }
  return findPtxError(changed, profile, "k", 2, workgroup).value_or("");
}

TEST(PtxCheck, TakesWhatIsRight) { EXPECT_EQ(findError(), ""); }

TEST(PtxCheck, RefusesFloatsThatAreNotExact) {
  EXPECT_EQ(findError("mul.rn.f32", "mul.f32"), "'mul.f32' does not round to nearest");
  EXPECT_EQ(findError("mul.rn.f32", "mul.f16x2"), "'mul.f16x2' does not round to nearest");
  EXPECT_EQ(findError("fma.rn.f64", "fma.rz.f64"), "'fma.rz.f64' does not round to nearest");
  EXPECT_EQ(findError("fma.rn.f64", "mad.f64"), "'mad.f64' does not round to nearest");
  EXPECT_EQ(findError("mul.rn.f32", "div.full.f32"), "'div.full.f32' does not round to nearest");
  EXPECT_EQ(findError("mul.rn.f32", "mul.rn.ftz.f32"), "'mul.rn.ftz.f32' flushes denormals");
  EXPECT_EQ(findError("abs.f32", "ex2.approx.f32"), "'ex2.approx.f32' is approximate");
  EXPECT_EQ(findError("abs.f32", "sqrt.rn.f32"), "");
}

TEST(PtxCheck, RefusesLoadsThatAreNotCoherent) {
  EXPECT_EQ(findError("ld.global.b32", "ld.global.nc.b32"),
            "'ld.global.nc.b32' reads past what other operands' stores write");
}

TEST(PtxCheck, RefusesOtherSymbols) {
  EXPECT_EQ(findError("abs.f32 \t%r3, %r2", "call.uni (r), __nv_expf, (a)"),
            "'call.uni' calls a function");
  EXPECT_EQ(findError("// Generated", ".extern .func __nv_expf"),
            "it declares a symbol beside the entry: .extern .func __nv_expf");
  EXPECT_EQ(findError("// Generated", ".extern .shared .align 1024 .b8 x[];"),
            "it declares 1 variables whose size its launch states, expected 0");
  EXPECT_EQ(findError("// Generated", ".visible .global .b32 x;"),
            "it declares a symbol beside the entry: .visible .global .b32 x;");
}

TEST(PtxCheck, RefusesAnotherInterface) {
  EXPECT_EQ(findError(".entry k(", ".entry other("), "its one entry is not called k");
  EXPECT_EQ(findError(".visible .entry k(", ""), "its one entry is not called k");
  EXPECT_EQ(findError("// Generated", ".visible .entry k("), "its one entry is not called k");
  EXPECT_EQ(findError("// Generated", "\t.param .u64 more"), "it has 3 parameters for 2 operands");
  EXPECT_EQ(findError(".param .u64", ".param .u32"),
            "a parameter is not an address: .param .u32 .ptr .global .align 1 k_param_0,");
}

TEST(PtxCheck, RefusesAnotherWorkgroup) {
  EXPECT_EQ(findError("", "", getBuiltinProfile("sm_80"), {64, 1, 1}),
            "its workgroup is '32, 2, 1', not '64, 1, 1'");
  EXPECT_EQ(findError(".reqntid", ".maxntid"), "its workgroup is '', not '32, 2, 1'");
}

TEST(PtxCheck, RefusesAnotherTarget) {
  EXPECT_EQ(findError("", "", getBuiltinProfile("sm_90")),
            "it is of PTX 8.0 for sm_80, not of 8.0 for sm_90");
  EXPECT_EQ(findError(".version 8.0", ".version 7.0"),
            "it is of PTX 7.0 for sm_80, not of 8.0 for sm_80");
}

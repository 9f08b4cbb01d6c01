//===- AddressMapTest.cpp - Addresses of loads and stores -----------------===//

#include "weir/CodeProofs/AddressMap.h"
#include "weir/CodeProofs/Footprint.h"
#include "weir/CodeProofs/Races.h"

#include "tools/Assemble.h"

#include "gtest/gtest.h"

#include <cstring>
#include <random>

using namespace weir;
using namespace weir::spv;

/// Makes a kernel of workgroups of 8, with three buffers of 64 floats, a tile, and the global
/// invocation's number `%i`.
static std::string getText(const std::string &body) {
  return R"(
  OpCapability Shader
  OpCapability Int64
  OpCapability GroupNonUniform
  %glsl = OpExtInstImport "GLSL.std.450"
  OpMemoryModel Logical GLSL450
  OpEntryPoint GLCompute %main "main" %x %y %z %group %local %lane %tile
  OpExecutionMode %main LocalSize 8 1 1
  OpDecorate %array ArrayStride 4
  OpMemberDecorate %buffer 0 Offset 0
  OpDecorate %buffer Block
  OpDecorate %x Binding 0
  OpDecorate %x DescriptorSet 0
  OpDecorate %y Binding 1
  OpDecorate %y DescriptorSet 0
  OpDecorate %z Binding 2
  OpDecorate %z DescriptorSet 0
  OpDecorate %group BuiltIn WorkgroupId
  OpDecorate %local BuiltIn LocalInvocationId
  OpDecorate %lane BuiltIn SubgroupLocalInvocationId
  %void = OpTypeVoid
  %bool = OpTypeBool
  %uint = OpTypeInt 32 0
  %long = OpTypeInt 64 0
  %v3 = OpTypeVector %uint 3
  %n0 = OpConstant %uint 0
  %n1 = OpConstant %uint 1
  %n2 = OpConstant %uint 2
  %n3 = OpConstant %uint 3
  %n4 = OpConstant %uint 4
  %n5 = OpConstant %uint 5
  %n7 = OpConstant %uint 7
  %n8 = OpConstant %uint 8
  %n10 = OpConstant %uint 10
  %n12 = OpConstant %uint 12
  %n64 = OpConstant %uint 64
  %n17 = OpConstant %uint 17
  %n85 = OpConstant %uint 85
  %n43691 = OpConstant %uint 43691
  %n264 = OpConstant %uint 264
  %minus1 = OpConstant %uint 4294967295
  %array = OpTypeArray %uint %n64
  %buffer = OpTypeStruct %array
  %pbuffer = OpTypePointer StorageBuffer %buffer
  %p = OpTypePointer StorageBuffer %uint
  %pin = OpTypePointer Input %v3
  %pin1 = OpTypePointer Input %uint
  %ptile = OpTypePointer Workgroup %array
  %pt = OpTypePointer Workgroup %uint
  %pf = OpTypePointer Function %uint
  %x = OpVariable %pbuffer StorageBuffer
  %y = OpVariable %pbuffer StorageBuffer
  %z = OpVariable %pbuffer StorageBuffer
  %group = OpVariable %pin Input
  %local = OpVariable %pin Input
  %lane = OpVariable %pin1 Input
  %tile = OpVariable %ptile Workgroup
  %signature = OpTypeFunction %void
  %main = OpFunction %void None %signature
  %entry = OpLabel
  %own = OpVariable %pf Function
  %groups = OpLoad %v3 %group
  %g = OpCompositeExtract %uint %groups 0
  %locals = OpLoad %v3 %local
  %l = OpCompositeExtract %uint %locals 0
  %g8 = OpIMul %uint %g %n8
  %i = OpIAdd %uint %g8 %l
)" + body +
         "\n OpReturn\n OpFunctionEnd\n";
}

static const EntryPoint &getEntry(const Module &module) { return *module.findEntryPoint("main"); }

/// Returns the map on 8 workgroups with subgroups of 8.
static AddressMap readMap(const std::string &body) {
  Module module(assemble(getText(body)), "test.spv");
  return readAddressMap(module, getEntry(module), {{8, 1, 1}, 8});
}

static std::string print(Interval range) {
  return "[" + std::to_string(range.min) + ", " + std::to_string(range.max) + "]";
}

static std::string print(const AddressMap &map, const Affine &sum) {
  std::string text;
  for (auto [number, factor] : sum.terms) {
    const Atom &atom = map.atoms[number];
    text += (text.empty() ? "" : " + ") + (factor == 1 ? "" : std::to_string(factor) + " ");
    switch (atom.kind) {
    case Atom::Kind::Workgroup:
      text += "group";
      break;
    case Atom::Kind::Local:
      text += "local";
      break;
    case Atom::Kind::Subgroup:
      text += "subgroup";
      break;
    case Atom::Kind::Lane:
      text += "lane";
      break;
    case Atom::Kind::Trip:
      text += "trip" + std::to_string(atom.number);
      break;
    case Atom::Kind::Digit:
      text += "(" + print(map, atom.of) + ")";
      text += atom.divisor == 1 ? "" : " / " + std::to_string(atom.divisor);
      text += atom.modulus == 0 ? "" : " % " + std::to_string(atom.modulus);
      break;
    case Atom::Kind::Clamped:
      text += "(" + print(map, atom.of) + " in " + print(atom.range) + ")";
      break;
    case Atom::Kind::Choice:
      text += "(";
      for (const Affine &condition : atom.conditions)
        text += print(map, condition) + " >= 0, ";
      text += "? " + print(map, atom.of) + " : " + print(map, atom.otherwise) + ")";
      break;
    case Atom::Kind::Other:
      text += print(atom.range);
      break;
    }
  }
  if (sum.constant || text.empty())
    text += (text.empty() ? "" : " + ") + std::to_string(sum.constant);
  return text;
}

/// Prints the last access to binding 0: its address divided by 4, and its guards.
static std::string getLast(const std::string &body) {
  AddressMap map = readMap(body);
  if (!map.problem.empty())
    return map.problem;
  for (size_t i = map.accesses.size(); i--;) {
    const MemoryAccess &access = map.accesses[i];
    if (access.root != MemoryAccess::Root::Binding || access.binding != 0)
      continue;
    std::string text = access.address ? print(map, map.atoms.divide(*access.address, 4)) : "?";
    for (const Affine &guard : access.guards)
      text += ", " + print(map, guard) + " >= 0";
    return text + (access.isCertain ? "" : ", maybe");
  }
  return "none";
}

/// Returns code that stores to element `%at` of binding 0.
static std::string store(const std::string &at) {
  return "%to" + at.substr(1) + " = OpAccessChain %p %x %n0 " + at + "\n OpStore %to" +
         at.substr(1) + " %n0\n";
}

TEST(AddressMap, ids) {
  EXPECT_EQ(getLast(store("%i")), "8 group + local");
  EXPECT_EQ(getLast("%s = OpLoad %uint %lane\n" + store("%s")), "lane");
  EXPECT_EQ(getLast("%q = OpAccessChain %pin1 %group %n0\n %s = OpLoad %uint %q\n" + store("%s")),
            "group");
  // There is one workgroup on axis 1.
  EXPECT_EQ(getLast("%s = OpCompositeExtract %uint %groups 1\n" + store("%s")), "0");
}

TEST(AddressMap, atomics_have_a_scope) {
  for (std::string scope : {"%n1", "%n2"}) { // the device, the workgroup
    bool isOfDevice = scope == "%n1";
    AddressMap map = readMap("%to = OpAccessChain %p %x %n0 %n0\n"
                             "%old = OpAtomicIAdd %uint %to " +
                             scope +
                             " %n0 %l\n"
                             "%cell = OpAccessChain %pt %tile %n0\n"
                             "%was = OpAtomicIAdd %uint %cell " +
                             scope + " %n0 %l\n");
    ASSERT_EQ(map.accesses.size(), 2u);
    EXPECT_EQ(map.accesses[0].isAtomic, isOfDevice);
    EXPECT_TRUE(map.accesses[1].isAtomic);
    EXPECT_EQ(isFreeOfRaces(map, MemoryAccess::Root::Binding, 0).answer,
              isOfDevice ? Answer::Yes : Answer::Unknown);
    EXPECT_EQ(isFreeOfRaces(map, MemoryAccess::Root::Shared, map.accesses[1].binding).answer,
              Answer::Yes);
  }
}

TEST(AddressMap, barriers_order_what_their_semantics_name) {
  auto read = [](const std::string &operands) {
    std::vector<BarrierSite> barriers = readMap("OpControlBarrier " + operands + "\n").barriers;
    std::string text;
    for (const BarrierSite &barrier : barriers)
      text += std::string(barrier.ordersBindings ? "bindings " : "") +
              (barrier.ordersShared ? "shared " : "") + (barrier.isUniform ? "all" : "some");
    return text;
  };
  EXPECT_EQ(read("%n2 %n2 %n264"), "shared all");
  EXPECT_EQ(read("%n2 %n1 %n264"), "shared all");
  EXPECT_EQ(read("%n2 %n3 %n264"), "all"); // memory of the subgroup
  EXPECT_EQ(read("%n2 %n2 %n0"), "all");
  EXPECT_EQ(read("%n3 %n3 %n264"), ""); // of the subgroup
}

TEST(AddressMap, headers_run_once_more) {
  // The load of the last test has no barrier of the loop behind it.
  const std::string fence = "OpControlBarrier %n2 %n2 %n264\n";
  for (std::string behind : {std::string(), fence}) {
    AddressMap map =
        readMap("%cell = OpAccessChain %pt %tile %n0\n"
                "OpBranch %head\n%head = OpLabel\n"
                "%k = OpPhi %uint %n0 %entry %next %body\n"
                "%x0 = OpLoad %uint %cell\n"
                "%more = OpULessThan %bool %k %n4\nOpLoopMerge %done %body None\n"
                "OpBranchConditional %more %body %done\n%body = OpLabel\n" +
                fence + "%next = OpIAdd %uint %k %n1\nOpBranch %head\n%done = OpLabel\n" + behind +
                "%c = OpIEqual %bool %l %n0\nOpSelectionMerge %end None\n"
                "OpBranchConditional %c %then %end\n%then = OpLabel\n"
                "OpStore %cell %n1\nOpBranch %end\n%end = OpLabel\n");
    ASSERT_EQ(map.accesses.size(), 2u);
    EXPECT_TRUE(map.accesses[0].isInHeader);
    EXPECT_EQ(isFreeOfRaces(map, MemoryAccess::Root::Shared, map.accesses[0].binding).answer,
              behind.empty() ? Answer::Unknown : Answer::Yes);
  }
}

TEST(AddressMap, digits) {
  EXPECT_EQ(getLast("%s = OpUMod %uint %i %n10\n" + store("%s")), "(8 group + local) % 10");
  EXPECT_EQ(getLast("%s = OpUDiv %uint %i %n10\n" + store("%s")), "(8 group + local) / 10");
  // Of numbers that a digit is made of, it is one.
  EXPECT_EQ(getLast("%s = OpUDiv %uint %i %n8\n" + store("%s")), "group");
  EXPECT_EQ(getLast("%s = OpUMod %uint %i %n8\n" + store("%s")), "local");
  EXPECT_EQ(getLast("%s = OpBitwiseAnd %uint %i %n7\n" + store("%s")), "local");
  EXPECT_EQ(getLast("%s = OpShiftRightLogical %uint %i %n3\n" + store("%s")), "group");
  EXPECT_EQ(getLast("%s = OpShiftLeftLogical %uint %g %n3\n %t = OpBitwiseOr %uint %s %l\n" +
                    store("%t")),
            "8 group + local");
  // Both have bits there.
  EXPECT_EQ(getLast("%s = OpShiftLeftLogical %uint %g %n2\n %t = OpBitwiseOr %uint %s %l\n" +
                    store("%t")),
            "?");
  EXPECT_EQ(getLast("%s = OpUDiv %uint %l %n2\n %t = OpUDiv %uint %s %n3\n" + store("%t")),
            "(local) / 6");
}

TEST(AddressMap, digits_that_compilers_make) {
  // i / 3 as a product and a shift; i is at most 63.
  EXPECT_EQ(getLast("%m = OpIMul %uint %i %n43691\n %q = OpShiftRightLogical %uint %m %n17\n" +
                    store("%q")),
            "(8 group + local) / 3");
  EXPECT_EQ(
      getLast("%m = OpIMul %uint %i %n85\n %q = OpShiftRightLogical %uint %m %n8\n" + store("%q")),
      "(680 group + 85 local) / 256"); // 0 for 3
  // The rest of a quotient.
  EXPECT_EQ(getLast("%q = OpUDiv %uint %i %n10\n %t = OpIMul %uint %q %n10\n"
                    "%r = OpISub %uint %i %t\n" +
                    store("%r")),
            "(8 group + local) % 10");
  const std::string sum = "%g5 = OpIMul %uint %g %n5\n %m = OpIAdd %uint %g5 %l\n";
  EXPECT_EQ(getLast(sum +
                    "%h = OpUDiv %uint %m %n2\n %q = OpUDiv %uint %m %n10\n"
                    "%t = OpIMul %uint %q %n5\n %r = OpISub %uint %h %t\n" +
                    store("%r")),
            "(5 group + local) / 2 % 5");
  // Two neighbouring digits, put together without common bits.
  EXPECT_EQ(getLast(sum +
                    "%a = OpBitwiseAnd %uint %m %n3\n %b = OpBitwiseAnd %uint %m %n12\n"
                    "%r = OpBitwiseOr %uint %a %b\n" +
                    store("%r")),
            "(5 group + local) % 16");
  // A bit between a small number and multiples of 4, of which one is subtracted.
  auto setBit = [&](const std::string &last, const std::string &bit) {
    return getLast("%g12 = OpIMul %uint %g %n12\n %half = OpUDiv %uint %g %n2\n"
                   "%h8 = OpIMul %uint %half %n8\n %m1 = OpISub %uint %g12 %h8\n"
                   "%l4 = OpIMul %uint %l %n4\n %m = OpIAdd %uint %m1 %l4\n"
                   "%few = OpExtInst %uint %glsl UMin %i " +
                   last + "\n %both = OpIAdd %uint %m %few\n %r = OpBitwiseOr %uint %both " + bit +
                   "\n" + store("%r"));
  };
  EXPECT_EQ(setBit("%n1", "%n2"),
            "12 group + 4 local + -8 (group) / 2 + (8 group + local in [0, 1]) + 2");
  EXPECT_EQ(setBit("%n2", "%n2"), "?"); // it may be set
  EXPECT_EQ(setBit("%n1", "%n4"), "?");
  EXPECT_EQ(setBit("%n1", "%n1"), "?");
}

TEST(AddressMap, numbers_wrap) {
  EXPECT_EQ(getLast("%s = OpIAdd %uint %i %n1\n %t = OpIAdd %uint %s %minus1\n" + store("%t")),
            "8 group + local");
  // Below 0 there is no quotient that is known; a comparison is of the number that it wraps to.
  EXPECT_EQ(getLast("%s = OpISub %uint %i %n1\n %t = OpUDiv %uint %s %n2\n" + store("%t")), "?");
  EXPECT_EQ(getLast("%s = OpISub %uint %i %n1\n %c = OpULessThan %bool %s %n64\n"
                    "OpSelectionMerge %end None\n OpBranchConditional %c %yes %end\n"
                    "%yes = OpLabel\n" +
                    store("%i") + "OpBranch %end\n %end = OpLabel\n"),
            "8 group + local, -1 (8 group + local + 4294967295) % 4294967296 + 63 >= 0");
  EXPECT_EQ(getLast("%s = OpUConvert %long %i\n" + store("%s")), "8 group + local");
}

TEST(AddressMap, clamps) {
  EXPECT_EQ(getLast("%s = OpExtInst %uint %glsl UMin %i %n12\n" + store("%s")),
            "(8 group + local in [0, 12])");
  EXPECT_EQ(getLast("%s = OpExtInst %uint %glsl UMin %i %n64\n" + store("%s")), "8 group + local");
  EXPECT_EQ(getLast("%s = OpExtInst %uint %glsl UMax %i %n5\n" + store("%s")),
            "(8 group + local in [5, 63])");
  EXPECT_EQ(
      getLast("%d = OpISub %uint %i %n5\n %s = OpExtInst %uint %glsl SMax %d %n0\n" + store("%s")),
      "(8 group + local + -5 in [0, 58])");
  EXPECT_EQ(
      getLast("%d = OpISub %uint %i %n5\n %s = OpExtInst %uint %glsl UMax %d %n0\n" + store("%s")),
      "?");
  EXPECT_EQ(getLast("%s = OpExtInst %uint %glsl UMin %i %l\n" + store("%s")), "[0, 7]");
  // A loaded value, of 64 bits.
  EXPECT_EQ(getLast("%q = OpAccessChain %p %y %n0 %i\n %v = OpLoad %uint %q\n"
                    "%w = OpSConvert %long %v\n %long0 = OpSConvert %long %n0\n"
                    "%long12 = OpSConvert %long %n12\n"
                    "%m = OpExtInst %long %glsl SMax %w %long0\n"
                    "%u = OpExtInst %long %glsl SMin %m %long12\n"
                    "%s = OpSConvert %uint %u\n" +
                    store("%s")),
            "([0, 9223372036854775807] in [0, 12])");
}

TEST(AddressMap, vectors) {
  const std::string make = "%s = OpIAdd %uint %i %n1\n %v = OpCompositeConstruct %v3 %i %s %l\n";
  auto extract = [&](const std::string &from, int lane) {
    return "%t = OpCompositeExtract %uint " + from + " " + std::to_string(lane) + "\n" +
           store("%t");
  };
  EXPECT_EQ(getLast(make + extract("%v", 1)), "8 group + local + 1");
  EXPECT_EQ(getLast(make + "%w = OpIAdd %v3 %v %v\n" + extract("%w", 2)), "2 local");
  EXPECT_EQ(getLast(make + "%w = OpExtInst %v3 %glsl UMin %v %locals\n" + extract("%w", 0)),
            "[0, 7]");
  // Lanes of what is not made of lanes.
  EXPECT_EQ(getLast(make + "%w = OpVectorShuffle %v3 %v %v 0 1 2\n" + extract("%w", 0)), "?");
}

static std::string select(const std::string &condition, const std::string &yes,
                          const std::string &no) {
  return condition + "OpSelectionMerge %end None\n OpBranchConditional %c %yes %no\n" +
         "%yes = OpLabel\n" + yes + "%no = OpLabel\n" + no + "%end = OpLabel\n";
}

TEST(AddressMap, guards) {
  const std::string below12 = "%c = OpULessThan %bool %i %n12\n", go = "OpBranch %end\n";
  EXPECT_EQ(getLast(select(below12, store("%i") + go, go)),
            "8 group + local, -8 group + -1 local + 11 >= 0");
  EXPECT_EQ(getLast(select(below12, go, store("%i") + go)),
            "8 group + local, 8 group + local + -12 >= 0");
  EXPECT_EQ(getLast(select(below12, go, go) + store("%i")), "8 group + local");
  // An invocation that returned does not come to the end.
  EXPECT_EQ(getLast(select(below12, "OpReturn\n", go) + store("%i")),
            "8 group + local, 8 group + local + -12 >= 0");
  EXPECT_EQ(getLast(select("%c = OpIEqual %bool %l %n0\n", store("%i") + go, go)),
            "8 group + local, -1 local >= 0"); // the other half always holds
  EXPECT_EQ(getLast(select("%c = OpIEqual %bool %l %n0\n", go, store("%i") + go)),
            "8 group + local, local + -1 >= 0");
  const std::string both = below12 + "%d = OpUGreaterThan %bool %l %n2\n"
                                     "%e = OpLogicalAnd %bool %c %d\n";
  std::string text = select(both, store("%i") + go, go);
  EXPECT_EQ(getLast(text.replace(text.find("Conditional %c"), 14, "Conditional %e")),
            "8 group + local, -8 group + -1 local + 11 >= 0, local + -3 >= 0");
  // One of two is false.
  text = select(both, go, store("%i") + go);
  EXPECT_EQ(getLast(text.replace(text.find("Conditional %c"), 14, "Conditional %e")),
            "8 group + local, -1 (-8 group + -1 local + 11 >= 0, local + -3 >= 0, ? 1 : 0) >= 0");
  // A loaded value decides.
  EXPECT_EQ(getLast(select("%q = OpAccessChain %p %y %n0 %i\n %v = OpLoad %uint %q\n"
                           "%c = OpULessThan %bool %v %n12\n",
                           store("%i") + go, go)),
            "8 group + local, -1 [0, 4294967295] + 11 >= 0, maybe");
}

TEST(AddressMap, which_lane_is_who) {
  const std::string lane = "%s = OpLoad %uint %lane\n", sum = "%t = OpIAdd %uint %s ";
  EXPECT_EQ(getLast(lane + sum + "%g8\n" + store("%t")), "8 group + lane");
  EXPECT_EQ(getLast(lane + sum + "%l\n" + store("%t")), "local + lane, maybe");
}

TEST(AddressMap, returns_deep_inside) {
  const std::string inner = "OpSelectionMerge %deep None\n OpBranchConditional %d %out %deep\n"
                            "%out = OpLabel\n OpReturn\n %deep = OpLabel\n OpBranch %end\n";
  const std::string both = "%c = OpULessThan %bool %i %n12\n %d = OpULessThan %bool %l %n2\n";
  EXPECT_EQ(getLast(select(both, inner, "OpBranch %end\n") + store("%i")),
            "8 group + local, maybe");
}

/// Returns a loop with counter `%k`.
static std::string loop(const std::string &first, const std::string &end, const std::string &step,
                        const std::string &body) {
  return "OpBranch %head\n %head = OpLabel\n %k = OpPhi %uint " + first +
         " %entry %next %more\n %c = OpSLessThan %bool %k " + end +
         "\n OpLoopMerge %done %more None\n OpBranchConditional %c %body %done\n"
         "%body = OpLabel\n" +
         body + "OpBranch %more\n %more = OpLabel\n %next = OpIAdd %uint %k " + step +
         "\n OpBranch %head\n %done = OpLabel\n";
}

TEST(AddressMap, loops) {
  EXPECT_EQ(getLast(loop("%n0", "%n4", "%n1", store("%k"))), "trip0");
  AddressMap map = readMap(loop("%n1", "%n10", "%n4", store("%k")));
  EXPECT_EQ(map.loops[0].maxTrips, 3);
  EXPECT_EQ(getLast(loop("%n1", "%n10", "%n4", store("%k"))), "4 trip0 + 1");
  // Trips that differ between invocations are a guard.
  EXPECT_EQ(getLast(loop("%l", "%n64", "%n8", store("%k"))),
            "local + 8 trip0, -1 local + -8 trip0 + 63 >= 0");
  EXPECT_EQ(getLast(loop("%n4", "%n4", "%n1", store("%k"))), "none");
  // It wraps before it ends.
  EXPECT_EQ(getLast(loop("%n0", "%n4", "%minus1", store("%k"))), "?, maybe");
}

/// Returns a loop whose counter begins at `first` and grows by `step` as long as the sum passes
/// `test`, which comes after the body.
static std::string loopToTest(const std::string &first, const std::string &step,
                              const std::string &test, const std::string &body) {
  return "OpBranch %head\n %head = OpLabel\n %k = OpPhi %uint " + first +
         " %entry %next %more\n %other = OpPhi %uint %i %entry %grown %more\n"
         "OpLoopMerge %done %more None\n OpBranch %more\n %more = OpLabel\n" +
         body + "%next = OpIAdd %uint %k " + step +
         "\n %grown = OpIAdd %uint %other %n64\n %t = " + test +
         "\n OpBranchConditional %t %head %done\n %done = OpLabel\n";
}

TEST(AddressMap, loops_tested_at_their_end) {
  EXPECT_EQ(getLast(loopToTest("%n0", "%n1", "OpULessThan %bool %next %n4", store("%k"))), "trip0");
  EXPECT_EQ(getLast(loopToTest("%n0", "%n4", "OpINotEqual %bool %next %n64", store("%k"))),
            "4 trip0");
  // Other numbers grow with it.
  EXPECT_EQ(getLast(loopToTest("%n0", "%n4", "OpINotEqual %bool %next %n64", store("%other"))),
            "8 group + local + 64 trip0");
  // It comes by the bound without meeting it.
  EXPECT_EQ(getLast(loopToTest("%n1", "%n4", "OpINotEqual %bool %next %n64", store("%k"))),
            "?, maybe");
  // The first trip runs in any case, so no guard may say when.
  EXPECT_EQ(getLast(loopToTest("%l", "%n1", "OpULessThan %bool %next %n4", store("%k"))),
            "local + trip0, maybe");
  EXPECT_EQ(getLast(loopToTest("%l", "%n8", "OpULessThan %bool %next %n64", store("%k"))),
            "local + 8 trip0, -1 local + -8 trip0 + 63 >= 0");
}

TEST(AddressMap, loops_that_may_not_begin) {
  // Whether the loop is reached is loaded, so none of its trips is certain.
  std::string text = loop("%n0", "%n4", "%n1", store("%k")), before = "OpBranch %head\n";
  text.replace(text.find(before), before.size(),
               "%q = OpAccessChain %p %y %n0 %n0\n %v = OpLoad %uint %q\n"
               "%go = OpINotEqual %bool %v %n12\n OpSelectionMerge %end None\n"
               "OpBranchConditional %go %yes %end\n %yes = OpLabel\n OpBranch %head\n");
  text.replace(text.find("%n0 %entry"), 10, "%n0 %yes");
  EXPECT_EQ(getLast(text + "OpBranch %end\n %end = OpLabel\n"), "trip0, maybe");
}

TEST(AddressMap, numbers_that_guards_make_known) {
  // The OR is a sum only where the branch says that its operands have no common bits.
  const std::string either = "%c = OpULessThan %bool %i %n8\n %m = OpIMul %uint %l %n8\n"
                             "%o = OpBitwiseOr %uint %i %m\n",
                    go = "OpBranch %end\n";
  EXPECT_EQ(getLast(select(either, store("%o") + go, go)),
            "8 group + 9 local, -8 group + -1 local + 7 >= 0");
  EXPECT_EQ(getLast(select(either, go, store("%o") + go)), "?, 8 group + local + -8 >= 0");
}

TEST(AddressMap, counters_end_with_their_loops) {
  EXPECT_EQ(getLast(loop("%n0", "%n4", "%n1", "") + store("%k")), "?");
  // Of one trip, too: a test at the begin of a loop is passed once more.
  EXPECT_EQ(getLast(loop("%n0", "%n1", "%n1", "") + store("%k")), "?");
  // In the loop's first block it is 4, too.
  std::string text = loop("%n0", "%n4", "%n1", "");
  text.insert(text.find("OpLoopMerge"), store("%k"));
  EXPECT_EQ(getLast(text), "?, maybe");
}

TEST(AddressMap, what_no_trip_changes_outlasts_its_loop) {
  // LLVM leaves numbers in a loop that it needs behind it.
  auto behind = [](const std::string &number, const std::string &after) {
    return getLast(loopToTest("%n0", "%n1", "OpULessThan %bool %next %n4", number) + after);
  };
  const std::string own = "%o = OpIAdd %uint %i %n8\n", stored = store("%o"),
                    go = "OpBranch %end\n";
  EXPECT_EQ(behind(own, stored), "8 group + local + 8");
  EXPECT_EQ(behind(own + "%c = OpULessThan %bool %o %n12\n", select("", stored + go, go)),
            "8 group + local + 8, -8 group + -1 local + 3 >= 0");
  // The twins: a part of a trip, and what is loaded are others in each trip.
  EXPECT_EQ(behind("%h = OpUDiv %uint %k %n2\n %o = OpIAdd %uint %i %h\n", stored), "?");
  EXPECT_EQ(behind("%q = OpAccessChain %p %y %n0 %n0\n %o = OpLoad %uint %q\n", stored), "?");
  EXPECT_EQ(behind(own + "%c = OpULessThan %bool %k %n2\n", select("", stored + go, go)),
            "8 group + local + 8, maybe");
}

TEST(AddressMap, the_last_trip_is_known_behind) {
  const std::string own = "%o = OpIAdd %uint %i %k\n", stored = store("%o");
  auto behind = [&](const std::string &step, const std::string &test) {
    return getLast(loopToTest("%n0", step, test, own) + stored);
  };
  EXPECT_EQ(behind("%n1", "OpULessThan %bool %next %n4"), "8 group + local + 3");
  EXPECT_EQ(behind("%n4", "OpINotEqual %bool %next %n64"), "8 group + local + 60");
  EXPECT_EQ(behind("%n8", "OpULessThan %bool %next %n12"), "8 group + local + 8");
  EXPECT_EQ(behind("%n8", "OpULessThan %bool %next %n4"), "8 group + local");
  // The twins: the number of trips differs, or another branch ends the loop.
  EXPECT_EQ(behind("%n1", "OpULessThan %bool %next %l"), "?");
  std::string text = loopToTest("%n0", "%n1", "OpULessThan %bool %next %n4", ""),
              begin = "OpBranch %more\n";
  text.replace(text.find(begin), begin.size(),
               "OpBranch %body\n %body = OpLabel\n" + own +
                   "%d = OpIEqual %bool %k %l\n OpBranchConditional %d %done %more\n");
  EXPECT_EQ(getLast(text + stored), "?");
}

TEST(AddressMap, loops_that_end_early) {
  const std::string leaves = "%d = OpIEqual %bool %k %l\n OpSelectionMerge %on None\n"
                             "OpBranchConditional %d %out %on\n %out = OpLabel\n"
                             "OpBranch %done\n %on = OpLabel\n";
  EXPECT_NE(getLast(loop("%n0", "%n4", "%n1", leaves + store("%k"))).find("maybe"),
            std::string::npos);
  EXPECT_NE(getLast(loop("%n0", "%n4", "%n1", store("%k") + leaves)).find("maybe"),
            std::string::npos);
}

TEST(AddressMap, who_reads_and_writes) {
  AddressMap map = readMap(
      "%a = OpAccessChain %p %x %n0 %i\n %b = OpAccessChain %p %y %n0 %i\n"
      "%t = OpAccessChain %pt %tile %i\n %v = OpLoad %uint %a\n OpStore %t %v\n OpStore %own %v\n"
      "OpControlBarrier %n2 %n2 %n264\n %w = OpAtomicIAdd %uint %b %n1 %n0 %v\n");
  ASSERT_EQ(map.problem, "");
  ASSERT_EQ(map.accesses.size(), 3u); // not the invocation's own
  EXPECT_TRUE(map.accesses[0].reads && !map.accesses[0].writes);
  EXPECT_EQ(map.accesses[1].root, MemoryAccess::Root::Shared);
  EXPECT_TRUE(map.accesses[2].reads && map.accesses[2].writes && map.accesses[2].isAtomic);
  EXPECT_EQ(map.accesses[2].binding, 1u);
  EXPECT_EQ(map.accesses[2].bytes, 4);
  ASSERT_EQ(map.barriers.size(), 1u);
  EXPECT_TRUE(map.accesses[1].position < map.barriers[0].position &&
              map.barriers[0].position < map.accesses[2].position);
}

/// Changes any word at random: the map and its bytes are found, in bounded time.
TEST(AddressMap, survives_any_word) {
  const Bytes assembled =
      assemble(getText(loop("%l", "%n64", "%n8",
                            "%s = OpUMod %uint %k %n10\n %q = OpAccessChain %p %y %n0 %s\n"
                            "%v = OpLoad %uint %q\n" +
                                store("%k"))));
  std::mt19937_64 random(1);
  size_t read = 0;
  for (size_t word = 5; word < assembled.size() / 4; ++word)
    for (int i = 0; i < 12; ++i) {
      Bytes bytes = assembled;
      uint32_t value;
      std::memcpy(&value, bytes.data() + word * 4, 4);
      value = i < 4   ? value ^ 1u << random() % 32
              : i < 8 ? uint32_t(random()) % 80
                      : (value & 0xffff0000) | random() % 80;
      std::memcpy(bytes.data() + word * 4, &value, 4);
      try {
        Module module(bytes, "test.spv");
        if (const EntryPoint *entry = module.findEntryPoint("main")) {
          AddressMap map = readAddressMap(module, *entry, {{8, 1, 1}, 8});
          for (const MemoryAccess &access : map.accesses)
            getReach(map, access);
          getTouched(map, 0, false);
          mayOverwrite(map, 1, 0);
          ++read;
        }
      } catch (const Error &) {
      }
    }
  EXPECT_GT(read, assembled.size() / 4);
}

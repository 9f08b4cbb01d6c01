//===- BundleTest.cpp - Artifacts of hand-written emitted modules ---------===//

#include "weir/Target/Bundle.h"

#include "dialects/Schedule/Schedule.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SPIRV/IR/SPIRVDialect.h"
#include "mlir/IR/Diagnostics.h"
#include "mlir/Parser/Parser.h"
#include "weir/Target/ProfileAttr.h"
#include "weir/Verify/Verify.h"
#include "gtest/gtest.h"

using namespace mlir;
using namespace weir;

namespace {
class Bundle : public testing::Test {
protected:
  Bundle() {
    context.loadDialect<arith::ArithDialect, func::FuncDialect, gpu::GPUDialect,
                        memref::MemRefDialect, spirv::SPIRVDialect, schedule::ScheduleDialect>();
  }

  /// Parses, sets the profile, and does what weir-pack does.
  OwningOpRef<ModuleOp> pack(const std::string &text) {
    OwningOpRef<ModuleOp> module = parseSourceString<ModuleOp>(text, &context);
    EXPECT_TRUE(module);
    setProfile(*module, Profile());
    FailureOr<Manifest> manifest = getManifest(*module);
    EXPECT_TRUE(succeeded(manifest));
    Builder builder(&context);
    (*module)->setAttr(schedule::manifestAttrName, builder.getStringAttr(printManifest(*manifest)));
    for (auto function : module->getOps<func::FuncOp>()) {
      FailureOr<Plan> plan = getPlan(function, *manifest);
      EXPECT_TRUE(succeeded(plan));
      function->setAttr(schedule::planAttrName, builder.getStringAttr(printPlan(*plan)));
    }
    return module;
  }

  MLIRContext context;
};
} // namespace

static const char *const emitted = R"mlir(
module {
  gpu.binary @copy {
    weir.workgroup = array<i64: 64, 1, 1>,
    weir.operands = [{effect = #schedule.effect<read>, bytes = 256 : i64, alignment = 16 : i64},
                     {effect = #schedule.effect<write, covers_all = true>, bytes = 256 : i64, alignment = 16 : i64}]
  } [#gpu.object<#spirv.target_env<#spirv.vce<v1.3, [Shader], []>, #spirv.resource_limits<>>, bin = "\03\02\23\07words">]
  gpu.binary @never_launched [#gpu.object<#spirv.target_env<#spirv.vce<v1.3, [Shader], []>, #spirv.resource_limits<>>, bin = "other">]
  memref.global "private" constant @halves : memref<3xf16> = dense<[1.0, 2.0, -2.0]>
  memref.global "private" constant @bits : memref<3xi1> = dense<[true, false, true]>
  memref.global "private" constant @splat : memref<64xi32> = dense<258>
  memref.global "private" constant @blob : memref<2xi16> = dense_resource<blob>
  func.func @f(%x: memref<64xf32> {weir.name = "x"}, %y: memref<64xf32> {weir.result, weir.name = "y"})
      attributes {weir.entry, weir.value_names = ["x", "y", "a"], weir.value_bytes = array<i64: 256, 256, 256>} {
    %arena = memref.alloc() {alignment = 256 : i64, weir.arena} : memref<256xi8>
    %c0 = arith.constant 0 : index
    %h = memref.get_global @halves : memref<3xf16>
    %b = memref.get_global @bits : memref<3xi1>
    %c = memref.get_global @splat : memref<64xi32>
    %r = memref.get_global @blob : memref<2xi16>
    %a = memref.view %arena[%c0][] {weir.slot = #schedule.slot<"a", alignment = 256, waves = 0 to 1>} : memref<256xi8> to memref<64xf32>
    schedule.commands {
      schedule.dispatch @copy::@copy [1, 1, 1] (%c, %a) wave 0 values [-1, 0, 2, 0] : (memref<64xi32>, memref<64xf32>)
      schedule.barrier memory(%a : memref<64xf32>) [#schedule.hazard<raw, 0 operand 1 -> 1 operand 0>]
      schedule.dispatch @copy::@copy [1, 1, 1] (%a, %y) wave 1 values [2, 0, 1, 0] : (memref<64xf32>, memref<64xf32>)
    }
    return
  }
}
{-#
  dialect_resources: { builtin: { blob: "0x0200000001020304" } }
#-}
)mlir";

TEST_F(Bundle, HoldsConstantsCodeAndGraph) {
  OwningOpRef<ModuleOp> module = pack(emitted);
  FailureOr<Artifact> artifact = buildArtifact(*module, "the graph");
  ASSERT_TRUE(succeeded(artifact));

  // Each constant at a multiple of 256, holes zero, i1 a byte each.
  ASSERT_EQ(artifact->constants.size(), 768u + 4);
  EXPECT_EQ(Bytes(artifact->constants.begin(), artifact->constants.begin() + 7),
            (Bytes{0x00, 0x3c, 0x00, 0x40, 0x00, 0xc0, 0}));
  EXPECT_EQ(Bytes(artifact->constants.begin() + 256, artifact->constants.begin() + 260),
            (Bytes{1, 0, 1, 0}));
  for (int64_t i = 512; i < 768; i += 4)
    EXPECT_EQ(Bytes(artifact->constants.begin() + i, artifact->constants.begin() + i + 4),
              (Bytes{2, 1, 0, 0}));
  EXPECT_EQ(Bytes(artifact->constants.begin() + 768, artifact->constants.end()),
            (Bytes{1, 2, 3, 4}));

  // Code that no plan launches is left out.
  ASSERT_EQ(artifact->code.size(), 1u);
  EXPECT_EQ(artifact->code.at("code/vulkan/copy.spv"),
            (Bytes{3, 2, 0x23, 7, 'w', 'o', 'r', 'd', 's'}));
  EXPECT_EQ(artifact->ir.at("ir/graph.mlir"), "the graph");
}

TEST_F(Bundle, PassesTheVerifier) {
  OwningOpRef<ModuleOp> module = pack(emitted);
  FailureOr<Artifact> artifact = buildArtifact(*module, "");
  ASSERT_TRUE(succeeded(artifact));
  EXPECT_TRUE(artifact->ir.empty());
  std::vector<Claim> claims = verify(*artifact);
  EXPECT_FALSE(claims.empty());
  // The nine bytes of code are no module, which only what is said of code depends on.
  for (const Claim &claim : claims)
    EXPECT_EQ(claim.holds, claim.what != "effects" && claim.what != "validity")
        << claim.what << ": " << claim.detail;
}

TEST_F(Bundle, VerifierFindsARemovedBarrier) {
  OwningOpRef<ModuleOp> module = parseSourceString<ModuleOp>(emitted, &context);
  module->walk([](schedule::BarrierOp barrier) { barrier.erase(); });
  std::string text;
  llvm::raw_string_ostream stream(text);
  module->print(stream);
  OwningOpRef<ModuleOp> broken = pack(text);
  FailureOr<Artifact> artifact = buildArtifact(*broken, "");
  ASSERT_TRUE(succeeded(artifact));
  std::vector<Claim> claims = verify(*artifact);
  EXPECT_TRUE(llvm::any_of(
      claims, [](const Claim &claim) { return claim.what == "order" && !claim.holds; }));
}

TEST_F(Bundle, RefusesWhatIsNotEmitted) {
  ScopedDiagnosticHandler quiet(&context, [](Diagnostic &) { return success(); });
  OwningOpRef<ModuleOp> empty = parseSourceString<ModuleOp>("module {}", &context);
  EXPECT_TRUE(failed(buildArtifact(*empty, "")));
  EXPECT_TRUE(failed(getManifest(*empty))); // no profile

  OwningOpRef<ModuleOp> module = pack(emitted);
  module->walk([](func::FuncOp function) { function->removeAttr(schedule::planAttrName); });
  EXPECT_TRUE(failed(buildArtifact(*module, "")));

  module = pack(emitted);
  module->walk([](gpu::BinaryOp binary) { binary.erase(); });
  EXPECT_TRUE(failed(buildArtifact(*module, "")));

  // The manifest names a constant that is gone.
  module = pack(emitted);
  module->walk([](memref::GlobalOp global) {
    if (global.getSymName() == "bits")
      global.erase();
  });
  EXPECT_TRUE(failed(buildArtifact(*module, "")));
}

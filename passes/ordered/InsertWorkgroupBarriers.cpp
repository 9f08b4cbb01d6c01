//===- InsertWorkgroupBarriers.cpp - Cure races inside kernels ------------===//

#include "passes/ordered/WorkgroupBarriers.h"

#include "dialects/Schedule/Schedule.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/NVGPU/IR/NVGPUDialect.h"
#include "mlir/IR/Remarks.h"
#include "mlir/Pass/Pass.h"

namespace weir {
#define GEN_PASS_DEF_INSERTWORKGROUPBARRIERSPASS
#include "passes/Passes.h.inc"
} // namespace weir

using namespace mlir;
using namespace weir;

namespace {
struct InsertWorkgroupBarriers
    : weir::impl::InsertWorkgroupBarriersPassBase<InsertWorkgroupBarriers> {
  using InsertWorkgroupBarriersPassBase::InsertWorkgroupBarriersPassBase;

  /// Waits and fences are of these.
  void getDependentDialects(DialectRegistry &registry) const override {
    InsertWorkgroupBarriersPassBase::getDependentDialects(registry);
    registry.insert<nvgpu::NVGPUDialect, NVVM::NVVMDialect>();
  }

  void runOnOperation() override {
    auto isAny = [](gpu::GPUFuncOp, const DenseSet<Operation *> &) { return true; };
    bool isChanged = false;
    auto cureOne = [&](gpu::GPUFuncOp kernel, WorkgroupRaces &races) {
      return cure(kernel, races, isChanged);
    };
    if (failed(visitKernels(getOperation(), isAny, cureOne)))
      signalPassFailure();
    if (!isChanged)
      markAllAnalysesPreserved();
  }

private:
  static LogicalResult cure(gpu::GPUFuncOp kernel, WorkgroupRaces &races, bool &isChanged);
};
} // namespace

static StringRef spell(HazardKind kind) {
  switch (kind) {
  case HazardKind::RAW:
    return "RAW";
  case HazardKind::WAR:
    return "WAR";
  case HazardKind::WAW:
    return "WAW";
  }
  llvm_unreachable("no such kind");
}

static std::string print(Location location) {
  std::string text;
  llvm::raw_string_ostream(text) << location;
  return text;
}

static LogicalResult reportUnordered(const AccessHazard &hazard, const WorkgroupRaces &races) {
  Operation *first = races.getMaps().getAccesses()[hazard.first].op;
  Operation *second = races.getMaps().getAccesses()[hazard.second].op;
  StringRef sure = hazard.proved ? "" : "may ";
  if (first == second) {
    if (hazard.proved)
      return second->emitError("invocations of one workgroup write the same bytes by this "
                               "instruction; no barrier orders it with itself");
    second->emitRemark("invocations of one workgroup may write the same bytes by this instruction");
    return success();
  }
  InFlightDiagnostic error =
      second->emitError() << spell(hazard.kind) << " hazard between invocations of one workgroup: "
                          << "this " << sure << "meet" << (hazard.proved ? "s" : "")
                          << " the bytes of an earlier access, and not all invocations come to "
                             "any place between the two";
  error.attachNote(first->getLoc()) << "the earlier access";
  for (Operation *access : {second, first})
    if (Operation *branch = races.getUniformity().getDivergence(access->getBlock())) {
      error.attachNote(branch->getLoc()) << "invocations take different ways here";
      break;
    }
  return error;
}

static LogicalResult reportBetweenWorkgroups(const AccessHazard &hazard,
                                             const WorkgroupRaces &races) {
  Operation *first = races.getMaps().getAccesses()[hazard.first].op;
  Operation *second = races.getMaps().getAccesses()[hazard.second].op;
  InFlightDiagnostic diagnostic =
      hazard.proved ? second->emitError("different workgroups race: they touch the same bytes "
                                        "here, and no barrier orders workgroups")
                    : second->emitRemark("different workgroups may race: it can't be told whether "
                                         "they touch the same bytes here");
  if (first != second)
    diagnostic.attachNote(first->getLoc()) << "and here";
  diagnostic.report();
  return failure(hazard.proved);
}

LogicalResult InsertWorkgroupBarriers::cure(gpu::GPUFuncOp kernel, WorkgroupRaces &races,
                                            bool &isChanged) {
  WorkgroupRaces::Plan plan = races.plan();
  bool ok = true;
  for (const AccessHazard &hazard : plan.unordered)
    ok &= succeeded(reportUnordered(hazard, races));
  for (const AccessHazard &hazard : races.findGridRaces())
    ok &= succeeded(reportBetweenWorkgroups(hazard, races));
  if (!ok)
    return failure();
  for (const WorkgroupRaces::PlannedBarrier &barrier : plan.barriers) {
    OpBuilder builder(barrier.before);
    if (barrier.waits) {
      // The group takes in copies that are in none yet, so that the wait is for all.
      Location loc = barrier.before->getLoc();
      Value group = nvgpu::DeviceAsyncCreateGroupOp::create(
          builder, loc, nvgpu::DeviceAsyncTokenType::get(builder.getContext()), ValueRange());
      nvgpu::DeviceAsyncWaitOp::create(builder, loc, group, builder.getI32IntegerAttr(0));
      if (kernel.walk([](schedule::GroupProductOp) { return WalkResult::interrupt(); })
              .wasInterrupted()) {
        NVVM::WgmmaGroupSyncAlignedOp::create(builder, loc);
        NVVM::WgmmaWaitGroupSyncOp::create(builder, loc, 0);
        NVVM::FenceProxyOp::create(
            builder, loc, NVVM::ProxyKind::async_shared,
            NVVM::SharedSpaceAttr::get(builder.getContext(), NVVM::SharedSpace::shared_cta));
      }
    }
    gpu::BarrierOp::create(builder, barrier.before->getLoc());
    isChanged = true;
    for (const AccessHazard &hazard : barrier.hazards)
      remark::passed(barrier.before->getLoc(), remark::RemarkOpts::name("barrier")
                                                   .category("insert-workgroup-barriers")
                                                   .function(kernel.getName()))
          << remark::reason("orders a {0} hazard between {1} and {2}",
                            spell(hazard.kind).str() + (hazard.late ? " (asynchronous copy)" : ""),
                            print(races.getMaps().getAccesses()[hazard.first].op->getLoc()),
                            print(races.getMaps().getAccesses()[hazard.second].op->getLoc()));
  }
  return success();
}

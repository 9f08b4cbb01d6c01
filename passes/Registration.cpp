//===- Registration.cpp - Dialects, external models and passes ------------===//

#include "passes/Passes.h"

#include "dialects/Autodiff/Autodiff.h"
#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/ControlFlow/IR/ControlFlow.h"
#include "mlir/Dialect/Func/Extensions/InlinerExtension.h"
#include "mlir/Target/SPIRV/Target.h"
#include "weir/Autodiff/Autodiff.h"

using namespace mlir;

void weir::registerEverything(DialectRegistry &registry) {
  registry.insert<affine::AffineDialect, arith::ArithDialect, cf::ControlFlowDialect,
                  func::FuncDialect, gpu::GPUDialect, linalg::LinalgDialect, math::MathDialect,
                  memref::MemRefDialect, scf::SCFDialect, spirv::SPIRVDialect,
                  tensor::TensorDialect, vector::VectorDialect, norm::NormDialect,
                  schedule::ScheduleDialect, autodiff::AutodiffDialect>();
  func::registerInlinerExtension(registry);
  autodiff::registerGradientRules(registry);
  spirv::registerSPIRVTargetInterfaceExternalModels(registry);
}

void weir::registerPasses() { registerWeirPasses(); }

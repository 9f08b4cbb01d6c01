//===- Registration.cpp - Dialects, external models and passes ------------===//

#include "passes/Registration.h"

#include "dialects/Autodiff/Autodiff.h"
#include "dialects/Matrix/Matrix.h"
#include "dialects/Norm/Norm.h"
#include "dialects/Random/Random.h"
#include "dialects/Schedule/Schedule.h"
#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/ControlFlow/IR/ControlFlow.h"
#include "mlir/Dialect/Func/Extensions/InlinerExtension.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/NVGPU/IR/NVGPUDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/SPIRV/IR/SPIRVDialect.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/Target/LLVM/NVVM/Target.h"
#include "mlir/Target/LLVMIR/Dialect/Builtin/BuiltinToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Dialect/GPU/GPUToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Dialect/LLVMIR/LLVMToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Dialect/NVVM/NVVMToLLVMIRTranslation.h"
#include "mlir/Target/SPIRV/Target.h"
#include "passes/Passes.h"
#include "weir/Analysis/KnownAnswers.h"
#include "weir/Autodiff/Autodiff.h"

using namespace mlir;

namespace weir {
#define GEN_PASS_REGISTRATION
#include "passes/Passes.h.inc"
} // namespace weir

void weir::registerEverything(DialectRegistry &registry) {
  registry
      .insert<affine::AffineDialect, arith::ArithDialect, cf::ControlFlowDialect, func::FuncDialect,
              gpu::GPUDialect, linalg::LinalgDialect, LLVM::LLVMDialect, math::MathDialect,
              nvgpu::NVGPUDialect, memref::MemRefDialect, NVVM::NVVMDialect, scf::SCFDialect,
              spirv::SPIRVDialect, tensor::TensorDialect, vector::VectorDialect, matrix::MatrixDialect,
              norm::NormDialect, random::RandomDialect, schedule::ScheduleDialect,
              autodiff::AutodiffDialect>();
  func::registerInlinerExtension(registry);
  autodiff::registerGradientRules(registry);
  registerKnownAnswers(registry);
  spirv::registerSPIRVTargetInterfaceExternalModels(registry);
  NVVM::registerNVVMTargetInterfaceExternalModels(registry);
  registerBuiltinDialectTranslation(registry);
  registerGPUDialectTranslation(registry);
  registerLLVMDialectTranslation(registry);
  registerNVVMDialectTranslation(registry);
}

void weir::registerPasses() { registerWeirPasses(); }

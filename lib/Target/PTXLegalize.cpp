//===- PTXLegalize.cpp - Kernels as upstream's NVVM lowering takes them ---===//

#include "KernelLegalize.h"
#include "weir/Target/Ptx.h"

#include "dialects/Schedule/Schedule.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/GPU/Transforms/Passes.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/Matchers.h"
#include "mlir/Transforms/GreedyPatternRewriteDriver.h"

using namespace mlir;
using namespace weir;

/// Alignment of the largest element, a vector of four f64.
static constexpr int64_t vectorAlignment = 32;
/// Of each variable where the launch states the size of all: blocks that a swizzle repeats after.
/// Smaller ones have no swizzle, and lie in lines.
static constexpr int64_t launchAlignment = 1024, lineAlignment = 128;
/// Max bytes of workgroup memory that PTX declares.
static constexpr int64_t maxDeclaredMemory = 49152;

/// Computes subgroup numbers, which upstream does not lower: subgroups are consecutive
/// invocations of a workgroup in their linear order.
static void expandSubgroups(gpu::GPUFuncOp kernel, const Profile &profile) {
  ArrayRef<int32_t> block = *kernel.getKnownBlockSize();
  int64_t invocations = int64_t(block[0]) * block[1] * block[2];
  kernel.walk([&](Operation *op) {
    ImplicitLocOpBuilder b(op->getLoc(), op);
    auto constant = [&](int64_t value) -> Value {
      return arith::ConstantIndexOp::create(b, value);
    };
    Value result;
    if (isa<gpu::SubgroupIdOp>(op)) {
      result = gpu::ThreadIdOp::create(b, gpu::Dimension::x);
      int64_t stride = block[0];
      for (auto [axis, size] :
           {std::pair(gpu::Dimension::y, block[1]), std::pair(gpu::Dimension::z, block[2])}) {
        if (size > 1) {
          Value id = gpu::ThreadIdOp::create(b, axis);
          Value rows = arith::MulIOp::create(b, id, constant(stride));
          result = arith::AddIOp::create(b, result, rows);
        }
        stride *= size;
      }
      result = arith::DivUIOp::create(b, result, constant(profile.subgroupSize));
    } else if (isa<gpu::NumSubgroupsOp>(op)) {
      result = constant(llvm::divideCeil(invocations, profile.subgroupSize));
    } else if (isa<gpu::SubgroupSizeOp>(op)) {
      result = constant(profile.subgroupSize);
    } else {
      return;
    }
    op->replaceAllUsesWith(ValueRange(result));
    op->erase();
  });
}

/// Returns the places of the variables of workgroup memory, one behind the other, and their end.
static SmallVector<int64_t> placeWorkgroupMemory(gpu::GPUFuncOp kernel) {
  SmallVector<int64_t> places;
  int64_t end = 0;
  for (BlockArgument variable : kernel.getWorkgroupAttributions()) {
    int64_t bytes = *schedule::getByteSize(cast<MemRefType>(variable.getType()));
    places.push_back(llvm::alignTo(end, bytes < launchAlignment ? lineAlignment : launchAlignment));
    end = places.back() + bytes;
  }
  places.push_back(llvm::alignTo(end, lineAlignment));
  return places;
}

int64_t weir::getLaunchMemory(gpu::GPUFuncOp kernel) {
  int64_t bytes = placeWorkgroupMemory(kernel).back();
  auto isProduct = [](schedule::GroupProductOp) { return WalkResult::interrupt(); };
  // Products need lines of 128 bytes whose places in blocks are known.
  return bytes > maxDeclaredMemory || kernel.walk(isProduct).wasInterrupted() ? bytes : 0;
}

/// Calls a function with each copy of a box, and the number of its tensor map. Copies of equal
/// boxes of an operand share a map.
static SmallVector<schedule::TileCopyOp>
numberTensorMaps(gpu::GPUFuncOp kernel,
                 function_ref<void(schedule::TileCopyOp, size_t number)> visit) {
  SmallVector<schedule::TileCopyOp> maps;
  kernel.walk([&](schedule::TileCopyOp copy) {
    auto *same = llvm::find_if(maps, [&](schedule::TileCopyOp other) {
      return other.getOperand() == copy.getOperand() && other.getShape() == copy.getShape() &&
             other.getBox() == copy.getBox();
    });
    const size_t number = same - maps.begin();
    if (same == maps.end())
      maps.push_back(copy);
    visit(copy, number);
  });
  return maps;
}

ArrayAttr weir::getTensorMaps(gpu::GPUFuncOp kernel) {
  Builder b(kernel.getContext());
  SmallVector<Attribute> maps;
  for (schedule::TileCopyOp copy : numberTensorMaps(kernel, [](schedule::TileCopyOp, size_t) {})) {
    const unsigned operand = cast<BlockArgument>(copy.getOperand()).getArgNumber();
    maps.push_back(b.getDictionaryAttr(
        {b.getNamedAttr("operand", b.getI64IntegerAttr(operand)),
         b.getNamedAttr("type", TypeAttr::get(copy.getOperand().getType().getElementType())),
         b.getNamedAttr("shape", copy.getShapeAttr()), b.getNamedAttr("box", copy.getBoxAttr())}));
  }
  return b.getArrayAttr(maps);
}

/// Makes the tensor maps parameters behind the operands, and names them where boxes are copied.
static void addTensorMaps(gpu::GPUFuncOp kernel) {
  const unsigned first = kernel.getNumArguments();
  SmallVector<std::pair<schedule::TileCopyOp, size_t>> copies;
  const size_t count = numberTensorMaps(kernel, [&](schedule::TileCopyOp copy, size_t number) {
                         copies.emplace_back(copy, number);
                       }).size();
  auto type = LLVM::LLVMPointerType::get(kernel.getContext());
  for (size_t i = 0; i < count; ++i)
    (void)kernel.insertArgument(first + i, type, DictionaryAttr(), kernel.getLoc());
  for (auto [copy, number] : copies)
    copy.getMapMutable().assign(kernel.getArgument(first + number));
}

/// Makes all variables of workgroup memory parts of the one that the launch gives the kernel.
static void joinWorkgroupMemory(gpu::GPUFuncOp kernel) {
  ImplicitLocOpBuilder b(kernel.getLoc(), kernel.getContext());
  b.setInsertionPointToStart(&kernel.getBody().front());
  SmallVector<int64_t> places = placeWorkgroupMemory(kernel);
  auto space = gpu::AddressSpaceAttr::get(kernel.getContext(), gpu::AddressSpace::Workgroup);
  auto type =
      MemRefType::get({ShapedType::kDynamic}, b.getI8Type(), MemRefLayoutAttrInterface{}, space);
  Value all = gpu::DynamicSharedMemoryOp::create(b, type);
  SmallVector<BlockArgument> variables(kernel.getWorkgroupAttributions());
  for (auto [variable, place] : llvm::zip(variables, places)) {
    Value view = memref::ViewOp::create(b, cast<MemRefType>(variable.getType()), all,
                                        arith::ConstantIndexOp::create(b, place), ValueRange());
    variable.replaceAllUsesWith(view);
  }
  // Attributions are the last arguments of the body.
  const unsigned first = kernel.getNumArguments(), count = kernel.getNumWorkgroupAttributions();
  kernel.getBody().front().eraseArguments(first, count);
  kernel->setAttr(gpu::GPUFuncOp::getNumWorkgroupAttributionsAttrName(), b.getI64IntegerAttr(0));
  kernel.removeWorkgroupAttribAttrsAttr();
}

namespace {
/// Makes a limit that a comparison and a selection set, as math functions have them, one
/// instruction. They differ in NaNs' payloads alone, which no arithmetic of the target keeps.
struct Limit : OpRewritePattern<arith::SelectOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(arith::SelectOp op, PatternRewriter &rewriter) const override {
    auto compared = op.getCondition().getDefiningOp<arith::CmpFOp>();
    Value number = op.getFalseValue(), limit = op.getTrueValue();
    TypedAttr constant;
    if (!compared || compared.getLhs() != number || compared.getRhs() != limit ||
        !getElementTypeOrSelf(number).isF32() || !matchPattern(limit, m_Constant(&constant)))
      return failure();
    auto elements = dyn_cast<DenseFPElementsAttr>(constant);
    if (elements && !elements.isSplat())
      return failure();
    APFloat value =
        elements ? elements.getSplatValue<APFloat>() : cast<FloatAttr>(constant).getValue();
    // Zeros of either sign are equal, but a selection tells them apart.
    if (value.isZero() || value.isNaN())
      return failure();
    if (compared.getPredicate() == arith::CmpFPredicate::OLT)
      rewriter.replaceOpWithNewOp<arith::MaximumFOp>(op, number, limit);
    else if (compared.getPredicate() == arith::CmpFPredicate::OGT)
      rewriter.replaceOpWithNewOp<arith::MinimumFOp>(op, number, limit);
    else
      return failure();
    return success();
  }
};
} // namespace

namespace {
/// Widens vectors of bf16 by their bits: LLVM would take words apart, and convert each half.
struct WidenBrainFloats : OpRewritePattern<arith::ExtFOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(arith::ExtFOp op, PatternRewriter &rewriter) const override {
    auto from = dyn_cast<VectorType>(op.getIn().getType()), to = dyn_cast<VectorType>(op.getType());
    if (!from || from.getRank() != 1 || !from.getElementType().isBF16() ||
        !to.getElementType().isF32() || from.getNumElements() % 2 != 0)
      return failure();
    int64_t count = from.getNumElements();
    Location loc = op.getLoc();
    auto words = VectorType::get({count / 2}, rewriter.getI32Type());
    auto constant = [&](uint32_t bits) -> Value {
      return arith::ConstantOp::create(rewriter, loc,
                                       DenseElementsAttr::get(words, APInt(32, bits)));
    };
    Value both = arith::BitcastOp::create(rewriter, loc, words, op.getIn());
    Value low = arith::ShLIOp::create(rewriter, loc, both, constant(16));
    Value high = arith::AndIOp::create(rewriter, loc, both, constant(0xffff0000));
    SmallVector<int64_t> order;
    for (int64_t word = 0; word < count / 2; ++word)
      order.append({word, count / 2 + word});
    Value all = vector::ShuffleOp::create(rewriter, loc, low, high, order);
    rewriter.replaceOpWithNewOp<arith::BitcastOp>(op, to, all);
    return success();
  }
};
} // namespace

void weir::legalizeForPtx(gpu::GPUFuncOp kernel, const Profile &profile) {
  legalizeForAll(kernel);
  expandSubgroups(kernel, profile);
  RewritePatternSet patterns(kernel.getContext());
  populateGpuShufflePatterns(patterns);
  patterns.add<Limit, WidenBrainFloats>(kernel.getContext());
  (void)applyPatternsGreedily(kernel, std::move(patterns)); // what stays is refused later

  addTensorMaps(kernel);
  if (getLaunchMemory(kernel))
    return joinWorkgroupMemory(kernel);
  // Upstream aligns to the element, LLVM then makes vector accesses of scalars.
  Builder builder(kernel.getContext());
  for (unsigned i = 0; i < kernel.getNumWorkgroupAttributions(); ++i)
    kernel.setWorkgroupAttributionAttr(i, LLVM::LLVMDialect::getAlignAttrName(),
                                       builder.getI64IntegerAttr(vectorAlignment));
}

//===- PTXGroups.cpp - What four subgroups do together, as PTX ------------===//
//
// Each op becomes inline assembly, so that the text has one known form.
//
//===----------------------------------------------------------------------===//

#include "PTXGroups.h"

#include "dialects/Schedule/Schedule.h"

#include "mlir/Conversion/LLVMCommon/Pattern.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/IR/Matchers.h"
#include "llvm/Support/FormatVariadic.h"

using namespace mlir;
using namespace weir;

static LLVM::InlineAsmOp makeAssembly(OpBuilder &b, Location loc, Type result, ValueRange operands,
                                      StringRef text, StringRef constraints) {
  return LLVM::InlineAsmOp::create(
      b, loc, result ? TypeRange(result) : TypeRange(), operands, text, constraints,
      /*has_side_effects=*/true, /*is_align_stack=*/false, LLVM::TailCallKind::None,
      LLVM::AsmDialectAttr::get(b.getContext(), LLVM::AsmDialect::AD_ATT),
      /*operand_attrs=*/ArrayAttr());
}

namespace {
/// Lowers products of four subgroups to wgmma. Products of one factor share a descriptor, to which
/// each adds a constant: ptxas would keep those of all products in registers.
class LowerGroupProduct : public ConvertOpToLLVMPattern<schedule::GroupProductOp> {
public:
  using ConvertOpToLLVMPattern::ConvertOpToLLVMPattern;

  LogicalResult matchAndRewrite(schedule::GroupProductOp op, OpAdaptor adaptor,
                                ConversionPatternRewriter &rewriter) const override;
};
} // namespace

/// Returns the constant part of a descriptor: the strides, and lines of 128 bytes whose runs are
/// exchanged. Source: PTX ISA, "Matrix Descriptor Format" of wgmma.
static uint64_t getDescriptor(int64_t along, int64_t across) {
  constexpr uint64_t swizzle128 = uint64_t(1) << 62;
  return swizzle128 | uint64_t(along / 16) << 16 | uint64_t(across / 16) << 32;
}

LogicalResult LowerGroupProduct::matchAndRewrite(schedule::GroupProductOp op, OpAdaptor adaptor,
                                                 ConversionPatternRewriter &rewriter) const {
  Location loc = op.getLoc();
  Type word = rewriter.getI32Type(), sum = rewriter.getF32Type();
  const int64_t count = op.getSums().getType().getNumElements();
  auto getAddress = [&](TypedValue<MemRefType> memref, Value converted, Value index) -> Value {
    Value pointer = getStridedElementPtr(rewriter, loc, memref.getType(), converted, {index});
    return LLVM::PtrToIntOp::create(rewriter, loc, rewriter.getI64Type(), pointer);
  };
  auto getIndex = [&](int64_t i) -> Value {
    return LLVM::ConstantOp::create(rewriter, loc, word, i);
  };
  ArrayRef<int64_t> strides = op.getStrides();
  auto makeDescriptor = [&](Value address, int64_t along, int64_t across) -> Value {
    auto getConstant = [&](uint64_t number) -> Value {
      return LLVM::ConstantOp::create(rewriter, loc, rewriter.getI64Type(), int64_t(number));
    };
    Value run = LLVM::LShrOp::create(rewriter, loc, address, getConstant(4));
    return LLVM::OrOp::create(rewriter, loc, run, getConstant(getDescriptor(along, across)));
  };
  SmallVector<Value> operands = {
      makeDescriptor(getAddress(op.getRows(), adaptor.getRows(), adaptor.getRow()), strides[0],
                     strides[1]),
      makeDescriptor(getAddress(op.getColumns(), adaptor.getColumns(), adaptor.getColumn()),
                     strides[2], strides[3])};
  std::string sums, outputs, inputs;
  for (int64_t i = 0; i < count; ++i) {
    operands.push_back(
        LLVM::ExtractElementOp::create(rewriter, loc, adaptor.getSums(), getIndex(i)));
    sums += llvm::formatv("{0}${1}", i ? ", " : "", i).str();
    outputs += "=f,";
    inputs += llvm::formatv(",{0}", i).str();
  }
  const Type element = op.getRows().getType().getElementType();
  const bool isTf32 = element.isF32();
  std::string text = "{\n\t.reg .pred p;\n\t.reg .b64 a, b;\n\tsetp.ne.b32 p, 1, 0;\n";
  // 16 bytes, which addresses in descriptors count.
  const int64_t runElements = 128 / element.getIntOrFloatBitWidth();
  for (auto [name, operand, offset] : {std::tuple("a", count, int64_t(op.getRowOffset())),
                                       {"b", count + 1, int64_t(op.getColumnOffset())}})
    text += llvm::formatv("\tadd.s64 {0}, ${1}, {2};\n", name, operand, offset / runElements).str();
  text += llvm::formatv("\twgmma.mma_async.sync.aligned.m64n{0}k{1}.f32.{2}.{2} ", 2 * count,
                        2 * runElements,
                        isTf32             ? "tf32"
                        : element.isBF16() ? "bf16"
                                           : "f16")
              .str();
  text += "{" + sums + "}, a, b, p, 1, 1";
  if (!isTf32) // products alone are neighbours there
    for (bool transposes : {op.getTransposesRows(), op.getTransposesColumns()})
      text += transposes ? ", 1" : ", 0";
  text += ";\n\t}";
  LLVM::InlineAsmOp added =
      makeAssembly(rewriter, loc,
                   LLVM::LLVMStructType::getLiteral(op.getContext(), SmallVector<Type>(count, sum)),
                   operands, text, outputs + "l,l" + inputs + ",~{memory}");
  Value result = LLVM::PoisonOp::create(rewriter, loc, op.getResult().getType());
  for (int64_t i = 0; i < count; ++i)
    result = LLVM::InsertElementOp::create(
        rewriter, loc, result, LLVM::ExtractValueOp::create(rewriter, loc, added.getRes(), i),
        getIndex(i));
  rewriter.replaceOp(op, result);
  return success();
}

namespace {
/// Lowers an op on an mbarrier, whose address is the assembly's operand 0.
template <typename Op> class LowerMBarrier : public ConvertOpToLLVMPattern<Op> {
public:
  using ConvertOpToLLVMPattern<Op>::ConvertOpToLLVMPattern;

  LogicalResult matchAndRewrite(Op op, typename Op::Adaptor adaptor,
                                ConversionPatternRewriter &rewriter) const override;

protected:
  Value getAddress(ConversionPatternRewriter &rewriter, TypedValue<MemRefType> memref,
                   Value converted, Value index) const {
    Location loc = memref.getLoc();
    Value pointer = this->getStridedElementPtr(rewriter, loc, memref.getType(), converted, {index});
    return LLVM::PtrToIntOp::create(rewriter, loc, rewriter.getI64Type(), pointer);
  }
  /// Returns the address of the first mbarrier, which all share; the text adds the rest.
  Value getMBarriers(ConversionPatternRewriter &rewriter, Op op, Value converted) const {
    Value first = LLVM::ConstantOp::create(rewriter, op.getLoc(), rewriter.getI32Type(), 0);
    return getAddress(rewriter, op.getBarriers(), converted, first);
  }
};

/// Lowers copies of boxes.
class LowerTileCopy : public LowerMBarrier<schedule::TileCopyOp> {
public:
  using LowerMBarrier::LowerMBarrier;

  LogicalResult matchAndRewrite(schedule::TileCopyOp op, OpAdaptor adaptor,
                                ConversionPatternRewriter &rewriter) const override;
};
} // namespace

/// Prints the address of an mbarrier.
static std::string printPlace(unsigned operand, int64_t number) {
  constexpr int64_t mbarrierBytes = 8;
  return llvm::formatv("[${0}+{1}]", operand, number * mbarrierBytes);
}

static std::string printAssembly(schedule::MBarrierInitOp op) {
  return "mbarrier.init.shared::cta.b64 " + printPlace(0, op.getNumber()) + ", 1;";
}

static std::string printAssembly(schedule::MBarrierExpectOp op) {
  return llvm::formatv("mbarrier.arrive.expect_tx.shared::cta.b64 _, {0}, {1};",
                       printPlace(0, op.getNumber()), op.getBytes());
}

static std::string printAssembly(schedule::MBarrierWaitOp op) {
  std::string text = "{\n\t.reg .pred p;\nwaits${:uid}:\n";
  text += "\tmbarrier.try_wait.parity.shared::cta.b64 p, " + printPlace(0, op.getNumber()) + ", ";
  return text + (op.getParity() ? "1" : "0") + ";\n\t@!p bra waits${:uid};\n\t}";
}

template <typename Op>
LogicalResult LowerMBarrier<Op>::matchAndRewrite(Op op, typename Op::Adaptor adaptor,
                                                 ConversionPatternRewriter &rewriter) const {
  if constexpr (!std::is_same_v<Op, schedule::TileCopyOp>) {
    makeAssembly(rewriter, op.getLoc(), Type(), getMBarriers(rewriter, op, adaptor.getBarriers()),
                 printAssembly(op), "l,~{memory}");
    rewriter.eraseOp(op);
  }
  return success();
}

LogicalResult LowerTileCopy::matchAndRewrite(schedule::TileCopyOp op, OpAdaptor adaptor,
                                             ConversionPatternRewriter &rewriter) const {
  if (!op.getMap())
    return failure();
  // Copies share the address of the memory, too.
  APInt place;
  Value at = adaptor.getPlace();
  int64_t offset = 0;
  if (matchPattern(at, m_ConstantInt(&place))) {
    offset = place.getSExtValue() * op.getSlab().getType().getElementTypeBitWidth() / 8;
    at = LLVM::ConstantOp::create(rewriter, op.getLoc(), at.getType(), 0);
  }
  SmallVector<Value> operands = {getAddress(rewriter, op.getSlab(), adaptor.getSlab(), at),
                                 getMBarriers(rewriter, op, adaptor.getBarriers()),
                                 adaptor.getMap()};
  std::string coordinates, constraints = "l,l,l";
  for (Value coordinate : llvm::reverse(adaptor.getCoordinates())) { // the innermost comes first
    coordinates += llvm::formatv("{0}${1}", coordinates.empty() ? "" : ", ", operands.size());
    constraints += ",r";
    operands.push_back(coordinate);
  }
  std::string text =
      llvm::formatv("cp.async.bulk.tensor.{0}d.shared::cluster.global.tile.mbarrier::complete_tx::"
                    "bytes [$0+{1}], [$2, {{",
                    op.getCoordinates().size(), offset);
  makeAssembly(rewriter, op.getLoc(), Type(), operands,
               text + coordinates + "}], " + printPlace(1, op.getNumber()) + ";",
               constraints + ",~{memory}");
  rewriter.eraseOp(op);
  return success();
}

void weir::populateGroupPatterns(const LLVMTypeConverter &types, RewritePatternSet &patterns) {
  patterns.add<LowerGroupProduct, LowerMBarrier<schedule::MBarrierInitOp>,
               LowerMBarrier<schedule::MBarrierExpectOp>, LowerMBarrier<schedule::MBarrierWaitOp>,
               LowerTileCopy>(types);
}

//===- CPULegalize.cpp - A kernel as a loop over its workgroups -----------===//

#include "KernelLegalize.h"
#include "dialects/Schedule/Schedule.h"
#include "weir/Target/Cpu.h"
#include "weir/Target/Halves.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;
using namespace weir;

/// Returns what `op` gives in a workgroup of one invocation; nothing where it depends on the
/// workgroup, or is none of these.
static SmallVector<Value> foldForOne(OpBuilder &builder, Operation *op) {
  auto index = [&](int64_t value) -> Value {
    return arith::ConstantIndexOp::create(builder, op->getLoc(), value);
  };
  if (isa<gpu::ThreadIdOp, gpu::LaneIdOp, gpu::SubgroupIdOp>(op))
    return {index(0)};
  if (isa<gpu::BlockDimOp, gpu::NumSubgroupsOp, gpu::SubgroupSizeOp>(op))
    return {index(1)};
  if (auto shuffle = dyn_cast<gpu::ShuffleOp>(op)) // from the only lane there is
    return {shuffle.getValue(), arith::ConstantIntOp::create(builder, op->getLoc(), 1, 1)};
  return {};
}

static void foldInvocations(gpu::GPUFuncOp kernel) {
  kernel.walk([](Operation *op) {
    OpBuilder builder(op);
    if (isa<gpu::BarrierOp>(op)) {
      op->erase();
    } else if (SmallVector<Value> values = foldForOne(builder, op); !values.empty()) {
      op->replaceAllUsesWith(values);
      op->erase();
    }
  });
}

/// Writes out rounding to the nearest, ties away from zero, for which x86 has no instruction.
static void expandRound(math::RoundOp op) {
  ImplicitLocOpBuilder b(op.getLoc(), op);
  Value x = op.getOperand();
  Type type = x.getType();
  auto constant = [&](double value) -> Value {
    Attribute number = b.getFloatAttr(getElementTypeOrSelf(type), value);
    auto shaped = dyn_cast<ShapedType>(type);
    return arith::ConstantOp::create(b, shaped ? TypedAttr(DenseElementsAttr::get(shaped, number))
                                               : cast<TypedAttr>(number));
  };
  // Exact: what follows the point is a number of its own. Not a number for infinities.
  Value whole = math::TruncOp::create(b, x);
  Value rest = math::AbsFOp::create(b, arith::SubFOp::create(b, x, whole));
  Value isUp = arith::CmpFOp::create(b, arith::CmpFPredicate::OGE, rest, constant(0.5));
  Value up = arith::AddFOp::create(b, whole, math::CopySignOp::create(b, constant(1.0), x));
  Value rounded = arith::SelectOp::create(b, isUp, up, whole);
  op.replaceAllUsesWith(rounded);
  op.erase();
}

/// Whether all elements of `value` are this integer.
static bool isInteger(Value value, uint64_t number) {
  APInt found;
  return matchPattern(value, m_ConstantInt(&found)) && found.getZExtValue() == number;
}

/// Returns k if `value` is 2^k in f32, made of its bits; else null.
static Value getExponent(Value value) {
  auto cast = value.getDefiningOp<arith::BitcastOp>();
  auto biased = cast ? cast.getIn().getDefiningOp<arith::AddIOp>() : arith::AddIOp();
  auto shifted = biased ? biased.getLhs().getDefiningOp<arith::ShLIOp>() : arith::ShLIOp();
  if (!shifted || !getElementTypeOrSelf(value).isF32() || !isInteger(biased.getRhs(), 127 << 23) ||
      !isInteger(shifted.getRhs(), 23))
    return {};
  return shifted.getLhs();
}

/// Replaces `y * 2^(k >> 1) * 2^(k - (k >> 1))` of f32 by one instruction where Weir's functions
/// say that y is near 1: then the first product is exact, and both ways round once.
static void fuseScaling(arith::MulFOp second) {
  if (!second->hasAttr(schedule::scalesAttrName))
    return;
  auto first = second.getLhs().getDefiningOp<arith::MulFOp>();
  Value half = first ? getExponent(first.getRhs()) : Value();
  Value rest = half ? getExponent(second.getRhs()) : Value();
  auto halving = half ? half.getDefiningOp<arith::ShRSIOp>() : arith::ShRSIOp();
  auto difference = rest ? rest.getDefiningOp<arith::SubIOp>() : arith::SubIOp();
  if (!halving || !difference || !isInteger(halving.getRhs(), 1) || difference.getRhs() != half ||
      difference.getLhs() != halving.getLhs())
    return;
  ImplicitLocOpBuilder b(second.getLoc(), second);
  auto scaled = LLVM::CallIntrinsicOp::create(b, second.getType(), b.getStringAttr("llvm.ldexp"),
                                              ValueRange{first.getLhs(), halving.getLhs()});
  second.replaceAllUsesWith(scaled.getResult(0));
  second.erase();
}

/// Rounds the product by itself, as no result of Weir's functions hangs on its not being rounded.
static void expandFma(math::FmaOp op) {
  ImplicitLocOpBuilder b(op.getLoc(), op);
  Value product = arith::MulFOp::create(b, op.getA(), op.getB());
  op.replaceAllUsesWith(arith::AddFOp::create(b, product, op.getC()).getResult());
  op.erase();
}

/// Divides by 1 where integers have no quotient, which no graph defines: x86 would end the process.
static void guardDivision(Operation *op) {
  bool isSigned = isa<arith::DivSIOp, arith::RemSIOp>(op);
  if (!isSigned && !isa<arith::DivUIOp, arith::RemUIOp>(op))
    return;
  Value divisor = op->getOperand(1);
  Type type = divisor.getType(), element = getElementTypeOrSelf(type);
  APInt known;
  bool isKnown = matchPattern(divisor, m_ConstantInt(&known));
  if (element.isIndex() || (isKnown && !known.isZero() && !known.isAllOnes()))
    return; // Weir's own divisions of indices have a quotient
  ImplicitLocOpBuilder b(op->getLoc(), op);
  auto constant = [&](const APInt &number) -> Value {
    TypedAttr value = b.getIntegerAttr(element, number);
    if (auto vector = dyn_cast<VectorType>(type))
      value = DenseElementsAttr::get(vector, Attribute(value));
    return arith::ConstantOp::create(b, value);
  };
  auto equals = [&](Value value, const APInt &number) -> Value {
    return arith::CmpIOp::create(b, arith::CmpIPredicate::eq, value, constant(number));
  };
  unsigned bits = element.getIntOrFloatBitWidth();
  Value hasNone = equals(divisor, APInt::getZero(bits));
  if (isSigned) {
    Value isLeast = equals(op->getOperand(0), APInt::getSignedMinValue(bits));
    Value isNegated = equals(divisor, APInt::getAllOnes(bits));
    hasNone = arith::OrIOp::create(b, hasNone, arith::AndIOp::create(b, isLeast, isNegated));
  }
  op->setOperand(1, arith::SelectOp::create(b, hasNone, constant(APInt(bits, 1)), divisor));
}

static SmallVector<vector::StoreOp> getStreams(Operation *code) {
  SmallVector<vector::StoreOp> stores;
  code->walk([&](vector::StoreOp store) {
    if (store.getNontemporal())
      stores.push_back(store);
  });
  return stores;
}

static void keepCached(vector::StoreOp store) {
  store.setNontemporal(false);
  store.removeAlignmentAttr(); // the caches ask for none
}

void weir::keepCached(gpu::GPUFuncOp copy, gpu::GPUFuncOp kernel,
                      const KernelDispatches &dispatches) {
  auto mayShare = [&](unsigned first, unsigned second) {
    std::optional<ArgumentSharing> sharing = dispatches.getSharing(kernel, first, second);
    return first != second && sharing && (sharing->unknown || !sharing->shifts.empty());
  };
  auto operands = llvm::seq(copy.getNumArguments());
  for (vector::StoreOp store : getStreams(copy)) {
    auto written = dyn_cast<BlockArgument>(store.getBase());
    bool isOperand = written && llvm::is_contained(copy.getArguments(), written);
    if (!isOperand || llvm::any_of(operands, [&](unsigned other) {
          return mayShare(written.getArgNumber(), other);
        }))
      ::keepCached(store);
  }
  copy.walk([](memref::StoreOp store) { store.setNontemporal(false); }); // slower so
}

/// Runs `loop` as it is where operands are aligned as stores past the caches need it, and with
/// other stores elsewhere: the caller's own memory begins anywhere.
static void guardStreams(scf::ForOp loop, const Profile &profile) {
  llvm::SmallSetVector<Value, 4> written;
  for (vector::StoreOp store : getStreams(loop))
    written.insert(store.getBase());
  if (written.empty())
    return;
  ImplicitLocOpBuilder b(loop.getLoc(), loop);
  Value bits = arith::ConstantIndexOp::create(b, 0);
  for (Value operand : written)
    bits =
        arith::OrIOp::create(b, bits, memref::ExtractAlignedPointerAsIndexOp::create(b, operand));
  Value rest = arith::AndIOp::create(
      b, bits, arith::ConstantIndexOp::create(b, profile.offsetAlignment - 1));
  Value isAligned = arith::CmpIOp::create(b, arith::CmpIPredicate::eq, rest,
                                          arith::ConstantIndexOp::create(b, 0));
  auto choice = scf::IfOp::create(b, isAligned, /*withElseRegion=*/true);
  b.setInsertionPointToStart(choice.elseBlock());
  for (vector::StoreOp store : getStreams(b.clone(*loop)))
    keepCached(store);
  loop->moveBefore(choice.thenBlock(), choice.thenBlock()->begin());
  // On x86 these stores are not ordered with later ones, such as that by which a thread says that
  // it is done; other threads would read what was there before.
  if (profile.isa != "aarch64") {
    b.setInsertionPointAfter(loop);
    LLVM::CallIntrinsicOp::create(b, b.getStringAttr("llvm.x86.sse.sfence"), ValueRange());
  }
}

void weir::legalizeForCpu(gpu::GPUFuncOp kernel, const Profile &profile) {
  foldInvocations(kernel);
  kernel.walk([](math::RoundOp op) { expandRound(op); });
  if (profile.isa == "x86-64-v4") // the others have no instruction for it
    kernel.walk([](arith::MulFOp op) { fuseScaling(op); });
  if (!profile.hasFma())
    kernel.walk([](math::FmaOp op) { expandFma(op); });
  legalizeForAll(kernel);
  kernel.walk(guardDivision);
  storeHalvesAsIntegers(kernel);

  ImplicitLocOpBuilder b(kernel.getLoc(), kernel->getParentOp());
  SmallVector<Type> types(kernel.getArgumentTypes());
  size_t operands = types.size();
  types.append(4, b.getIndexType());
  auto function =
      func::FuncOp::create(b, (kernel.getName() + ".body").str(), b.getFunctionType(types, {}));
  function.setPrivate();
  Block *entry = function.addEntryBlock();
  b.setInsertionPointToStart(entry);
  auto argument = [&](size_t number) { return entry->getArgument(operands + number); };
  Value first = argument(0), last = argument(1), gridX = argument(2), gridY = argument(3);

  Block &body = kernel.getBody().front();
  for (size_t i = 0; i < operands; ++i) // attributions follow them
    kernel.getArgument(i).replaceAllUsesWith(entry->getArgument(i));
  for (ArrayRef<BlockArgument> attributions :
       {kernel.getWorkgroupAttributions(), kernel.getPrivateAttributions()})
    for (BlockArgument memory : attributions)
      memory.replaceAllUsesWith(
          memref::AllocaOp::create(b, cast<MemRefType>(memory.getType())).getResult());

  Value one = arith::ConstantIndexOp::create(b, 1);
  auto loop = scf::ForOp::create(b, first, last, one);
  b.setInsertionPointToStart(loop.getBody());
  // Unsigned: what an index of the emitter's is, too.
  Value linear = loop.getInductionVar();
  Value x = arith::RemUIOp::create(b, linear, gridX);
  Value rest = arith::DivUIOp::create(b, linear, gridX);
  Value y = arith::RemUIOp::create(b, rest, gridY);
  Value z = arith::DivUIOp::create(b, rest, gridY);
  body.back().erase(); // gpu.return
  loop.getBody()->getOperations().splice(std::prev(loop.getBody()->end()), body.getOperations());
  function.walk([&](Operation *op) {
    if (auto id = dyn_cast<gpu::BlockIdOp>(op)) {
      Value place = id.getDimension() == gpu::Dimension::x   ? x
                    : id.getDimension() == gpu::Dimension::y ? y
                                                             : z;
      id.replaceAllUsesWith(place);
      id.erase();
    } else if (auto alloca = dyn_cast<memref::AllocaOp>(op)) {
      alloca->moveBefore(entry, entry->begin()); // once, not for every workgroup
    }
  });
  guardStreams(loop, profile);
  b.setInsertionPointToEnd(entry);
  func::ReturnOp::create(b);
  kernel->getParentOp()->erase();
}

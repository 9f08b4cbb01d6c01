//===- SPIRVLegalize.cpp - Kernels as upstream's SPIR-V lowering takes them ===//
//
// Rewrites operations that upstream lowers to something other than they mean. It does so on the
// kernel, where that takes one rule of `arith` and not one of SPIR-V.
//
//===----------------------------------------------------------------------===//

#include "KernelLegalize.h"
#include "weir/Target/Halves.h"
#include "weir/Target/Spirv.h"

#include "mlir/Conversion/MemRefToSPIRV/MemRefToSPIRV.h"
#include "mlir/Dialect/SPIRV/IR/TargetAndABI.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;
using namespace weir;

/// Whether `value` is a constant without an element that is zero or NaN.
static bool isNonZeroNumber(Value value) {
  auto good = [](const APFloat &number) { return !number.isZero() && !number.isNaN(); };
  APFloat scalar(0.0);
  if (matchPattern(value, m_ConstantFloat(&scalar)))
    return good(scalar);
  DenseFPElementsAttr elements;
  return matchPattern(value, m_Constant(&elements)) && llvm::all_of(elements, good);
}

/// Expands `maximumf` and `minimumf`, which return a NaN and order -0 below +0: GLSL's FMax and
/// FMin return either operand for a NaN and either zero for two zeros. With `nsz`, either zero will
/// do.
template <typename OpType> static void expandExtremum(OpType op) {
  constexpr bool isMaximum = std::is_same_v<OpType, arith::MaximumFOp>;
  ImplicitLocOpBuilder b(op.getLoc(), op);
  Value lhs = op.getLhs(), rhs = op.getRhs();
  if (isNonZeroNumber(lhs))
    std::swap(lhs, rhs);
  // Unordered comparison: a NaN on the left is kept.
  Value takesLhs = arith::CmpFOp::create(
      b, isMaximum ? arith::CmpFPredicate::UGT : arith::CmpFPredicate::ULT, lhs, rhs);
  Value lhsOrRhs = rhs;
  bool tellsZeros = !bitEnumContainsAny(op.getFastmath(), arith::FastMathFlags::nsz);
  if (tellsZeros && !isNonZeroNumber(rhs)) {
    // Equal operands differ in the sign of a zero at most: `and` keeps +0 if
    // there is one, `or` keeps -0.
    Type type = op.getType();
    unsigned width = getElementTypeOrSelf(type).getIntOrFloatBitWidth();
    Type bits = b.getIntegerType(width);
    if (auto vector = dyn_cast<VectorType>(type))
      bits = vector.clone(bits);
    Value lhsBits = arith::BitcastOp::create(b, bits, lhs);
    Value rhsBits = arith::BitcastOp::create(b, bits, rhs);
    Value joined = isMaximum ? arith::AndIOp::create(b, lhsBits, rhsBits).getResult()
                             : arith::OrIOp::create(b, lhsBits, rhsBits).getResult();
    Value zero = arith::BitcastOp::create(b, type, joined);
    Value equal = arith::CmpFOp::create(b, arith::CmpFPredicate::OEQ, lhs, rhs);
    lhsOrRhs = arith::SelectOp::create(b, equal, zero, rhs);
  }
  Value result = arith::SelectOp::create(b, takesLhs, lhs, lhsOrRhs);
  if (!isNonZeroNumber(rhs)) {
    Value isNaN = arith::CmpFOp::create(b, arith::CmpFPredicate::UNO, rhs, rhs);
    result = arith::SelectOp::create(b, isNaN, rhs, result);
  }
  op.replaceAllUsesWith(result);
  op.erase();
}

/// Expands a signed remainder. Upstream's emulation takes the absolute value of the dividend, which
/// the smallest integer does not have.
static void expandRemainder(arith::RemSIOp op) {
  ImplicitLocOpBuilder b(op.getLoc(), op);
  Value quotient = arith::DivSIOp::create(b, op.getLhs(), op.getRhs());
  Value multiple = arith::MulIOp::create(b, quotient, op.getRhs());
  op.replaceAllUsesWith(arith::SubIOp::create(b, op.getLhs(), multiple).getResult());
  op.erase();
}

static bool isOfBits(Value value) { return getElementTypeOrSelf(value.getType()).isInteger(1); }

template <typename OpType, typename NewType> static void replaceByBitwise(Operation *op) {
  if (!isa<OpType>(op))
    return;
  ImplicitLocOpBuilder b(op->getLoc(), op);
  op->getResult(0).replaceAllUsesWith(
      NewType::create(b, op->getOperand(0), op->getOperand(1)).getResult());
}

/// Expands arithmetic of i1 to operations bit by bit, the only ones that SPIR-V has for booleans;
/// upstream lowers it to invalid code, or not at all. The one bit is the sign: true is -1.
static void expandBits(Operation *op) {
  if (op->getNumOperands() == 0 || !isOfBits(op->getOperand(0)))
    return;
  replaceByBitwise<arith::AddIOp, arith::XOrIOp>(op);
  replaceByBitwise<arith::SubIOp, arith::XOrIOp>(op);
  replaceByBitwise<arith::MulIOp, arith::AndIOp>(op);
  replaceByBitwise<arith::MaxUIOp, arith::OrIOp>(op);
  replaceByBitwise<arith::MinSIOp, arith::OrIOp>(op);
  replaceByBitwise<arith::MinUIOp, arith::AndIOp>(op);
  replaceByBitwise<arith::MaxSIOp, arith::AndIOp>(op);
  if (auto compare = dyn_cast<arith::CmpIOp>(op)) {
    using P = arith::CmpIPredicate;
    switch (compare.getPredicate()) {
    case P::slt:
      return compare.setPredicate(P::ugt);
    case P::sle:
      return compare.setPredicate(P::uge);
    case P::sgt:
      return compare.setPredicate(P::ult);
    case P::sge:
      return compare.setPredicate(P::ule);
    default:
      return;
    }
  }
  if (auto convert = dyn_cast<arith::SIToFPOp>(op)) {
    // Mesa 22.3 makes -0 of a choice between -1.0 and 0.0.
    ImplicitLocOpBuilder b(op->getLoc(), op);
    Type wide = b.getI32Type();
    if (auto vector = dyn_cast<VectorType>(convert.getType()))
      wide = vector.clone(wide);
    Value number = arith::ExtSIOp::create(b, wide, convert.getIn());
    convert.replaceAllUsesWith(arith::SIToFPOp::create(b, convert.getType(), number).getResult());
  }
  if (isOpTriviallyDead(op))
    op->erase();
}

/// Replaces comparisons that are always true or false, which have no instruction.
static void expandComparison(arith::CmpFOp op) {
  bool always = op.getPredicate() == arith::CmpFPredicate::AlwaysTrue;
  if (!always && op.getPredicate() != arith::CmpFPredicate::AlwaysFalse)
    return;
  ImplicitLocOpBuilder b(op.getLoc(), op);
  TypedAttr answer = b.getBoolAttr(always);
  if (auto vector = dyn_cast<VectorType>(op.getType()))
    answer = DenseElementsAttr::get(vector, always);
  op.replaceAllUsesWith(arith::ConstantOp::create(b, answer).getResult());
  op.erase();
}

/// Expands `trunc`, which upstream does not lower.
static void expandTrunc(math::TruncOp op) {
  ImplicitLocOpBuilder b(op.getLoc(), op);
  Value size = math::FloorOp::create(b, math::AbsFOp::create(b, op.getOperand()));
  op.replaceAllUsesWith(math::CopySignOp::create(b, size, op.getOperand()).getResult());
  op.erase();
}

/// Expands `roundeven` of f64, for which Mesa 22.3 truncates. Adding 2^52 rounds to an integer,
/// since a number of that size has no bits for fractions.
static void expandRoundEven64(math::RoundEvenOp op) {
  Type type = op.getType();
  if (!getElementTypeOrSelf(type).isF64())
    return;
  ImplicitLocOpBuilder b(op.getLoc(), op);
  TypedAttr number = b.getF64FloatAttr(0x1p52);
  if (auto vector = dyn_cast<VectorType>(type))
    number = DenseElementsAttr::get(vector, 0x1p52);
  Value large = arith::ConstantOp::create(b, number);
  Value size = math::AbsFOp::create(b, op.getOperand());
  Value sum = arith::AddFOp::create(b, size, large);
  Value rounded = arith::SubFOp::create(b, sum, large);
  rounded = math::CopySignOp::create(b, rounded, op.getOperand());
  // Larger numbers have no fraction; infinities and NaNs stay, too.
  Value isSmall = arith::CmpFOp::create(b, arith::CmpFPredicate::OLT, size, large);
  Value result = arith::SelectOp::create(b, isSmall, rounded, op.getOperand());
  op.replaceAllUsesWith(result);
  op.erase();
}

/// Puts a loop that may have no trips behind a condition. Upstream keeps a loop's results in
/// variables that only the loop's body stores to.
static void guardLoop(scf::ForOp loop) {
  if (loop.getNumResults() == 0)
    return;
  std::optional<int64_t> lower = getConstantIntValue(loop.getLowerBound());
  std::optional<int64_t> upper = getConstantIntValue(loop.getUpperBound());
  if (lower && upper && *lower < *upper)
    return;
  ImplicitLocOpBuilder b(loop.getLoc(), loop);
  Value runs = arith::CmpIOp::create(b, arith::CmpIPredicate::slt, loop.getLowerBound(),
                                     loop.getUpperBound());
  auto guard = scf::IfOp::create(b, loop.getResultTypes(), runs, /*withElseRegion=*/true);
  loop.replaceAllUsesWith(guard.getResults());
  loop->moveBefore(guard.thenBlock(), guard.thenBlock()->end());
  b.setInsertionPointToEnd(guard.thenBlock());
  scf::YieldOp::create(b, loop.getResults());
  b.setInsertionPointToEnd(guard.elseBlock());
  scf::YieldOp::create(b, loop.getInitArgs());
}

/// Turns attributions into allocations: upstream leaves a cast of them behind.
static void replaceAttributions(gpu::GPUFuncOp kernel) {
  Block &entry = kernel.getBody().front();
  ImplicitLocOpBuilder b(kernel.getLoc(), &entry, entry.begin());
  for (BlockArgument attribution : kernel.getWorkgroupAttributions())
    attribution.replaceAllUsesWith(
        memref::AllocOp::create(b, cast<MemRefType>(attribution.getType())));
  for (BlockArgument attribution : kernel.getPrivateAttributions())
    attribution.replaceAllUsesWith(
        memref::AllocaOp::create(b, cast<MemRefType>(attribution.getType())));
  unsigned first = kernel.getFunctionType().getNumInputs();
  entry.eraseArguments(first, entry.getNumArguments() - first);
  kernel->removeAttr("workgroup_attributions");
  kernel.setWorkgroupAttribAttrsAttr(nullptr);
  kernel.setPrivateAttribAttrsAttr(nullptr);
  // A variable in Function storage stands in the function's first block.
  SmallVector<memref::AllocaOp> allocas;
  kernel.walk([&](memref::AllocaOp alloca) { allocas.push_back(alloca); });
  for (memref::AllocaOp alloca : llvm::reverse(allocas))
    alloca->moveBefore(&entry, entry.begin());
}

static void mapAddressSpaces(gpu::GPUFuncOp kernel) {
  auto map = [](Attribute space) -> std::optional<spirv::StorageClass> {
    auto address = dyn_cast_or_null<gpu::AddressSpaceAttr>(space);
    if (!address)
      return std::nullopt;
    switch (address.getValue()) {
    case gpu::AddressSpace::Global:
      return spirv::StorageClass::StorageBuffer;
    case gpu::AddressSpace::Workgroup:
      return spirv::StorageClass::Workgroup;
    case gpu::AddressSpace::Private:
      return spirv::StorageClass::Function;
    default:
      return std::nullopt;
    }
  };
  spirv::MemorySpaceToStorageClassConverter converter(map);
  spirv::convertMemRefTypesAndAttrs(kernel, converter);
}

/// Turns buffers of vectors of two or four 32-bit elements into buffers of one or two 64-bit
/// integers, cast where they are loaded and stored.
static void widenWords(gpu::GPUFuncOp kernel) {
  SmallVector<Type> types;
  Block &entry = kernel.getBody().front();
  for (unsigned i = 0; i < kernel.getFunctionType().getNumInputs(); ++i) {
    BlockArgument argument = entry.getArgument(i);
    auto buffer = dyn_cast<MemRefType>(argument.getType());
    auto vector = buffer ? dyn_cast<VectorType>(buffer.getElementType()) : nullptr;
    bool widens = vector && vector.getElementTypeBitWidth() == 32 && vector.getRank() == 1 &&
                  vector.getNumElements() % 2 == 0 &&
                  llvm::all_of(argument.getUsers(), [](Operation *user) {
                    return isa<memref::LoadOp, memref::StoreOp>(user);
                  });
    if (widens) {
      Type word = IntegerType::get(kernel.getContext(), 64);
      auto words = VectorType::get({vector.getNumElements() / 2}, word);
      bool single = words.getNumElements() == 1;
      for (Operation *user : llvm::make_early_inc_range(argument.getUsers())) {
        ImplicitLocOpBuilder b(user->getLoc(), user);
        if (auto store = dyn_cast<memref::StoreOp>(user)) {
          Value value = vector::BitCastOp::create(b, words, store.getValueToStore());
          if (single)
            value = vector::ExtractOp::create(b, value, 0);
          store.getValueMutable().assign(value);
          continue;
        }
        auto load = cast<memref::LoadOp>(user);
        SmallVector<OpOperand *> uses =
            llvm::map_to_vector(load.getResult().getUses(), [](OpOperand &use) { return &use; });
        b.setInsertionPointAfter(load);
        load.getResult().setType(single ? word : words);
        Value value = load;
        if (single)
          value = vector::FromElementsOp::create(b, words, value);
        value = vector::BitCastOp::create(b, vector, value);
        for (OpOperand *use : uses)
          use->set(value);
      }
      argument.setType(MemRefType::get(buffer.getShape(), single ? word : Type(words),
                                       buffer.getLayout(), buffer.getMemorySpace()));
    }
    types.push_back(argument.getType());
  }
  kernel.setFunctionType(FunctionType::get(kernel.getContext(), types, {}));
}

/// Returns the number of an invocation in its workgroup of `block` invocations.
static Value numberInvocation(OpBuilder &b, Location loc, ArrayRef<int32_t> block) {
  Value number = gpu::ThreadIdOp::create(b, loc, gpu::Dimension::x);
  int64_t factor = block[0];
  for (auto [size, axis] :
       {std::pair(block[1], gpu::Dimension::y), {block[2], gpu::Dimension::z}}) {
    if (size == 1)
      continue;
    Value scale = arith::ConstantIndexOp::create(b, loc, factor);
    Value along = arith::MulIOp::create(b, loc, gpu::ThreadIdOp::create(b, loc, axis), scale);
    number = arith::AddIOp::create(b, loc, number, along);
    factor *= size;
  }
  return number;
}

/// Replaces what asks for the subgroup, where each invocation is one by itself. The code then runs
/// with subgroups of any size.
static void foldSubgroups(gpu::GPUFuncOp kernel, ArrayRef<int32_t> block) {
  kernel.walk([&](Operation *op) {
    OpBuilder b(op);
    SmallVector<Value> values;
    if (isa<gpu::LaneIdOp>(op))
      values = {arith::ConstantIndexOp::create(b, op->getLoc(), 0)};
    else if (isa<gpu::SubgroupSizeOp>(op))
      values = {arith::ConstantIndexOp::create(b, op->getLoc(), 1)};
    else if (isa<gpu::SubgroupIdOp>(op))
      values = {numberInvocation(b, op->getLoc(), block)};
    else if (auto shuffle = dyn_cast<gpu::ShuffleOp>(op)) // from the only lane there is
      values = {shuffle.getValue(), arith::ConstantIntOp::create(b, op->getLoc(), 1, 1)};
    else
      return;
    op->replaceAllUsesWith(values);
    op->erase();
  });
}

void weir::legalizeForSpirv(gpu::GPUFuncOp kernel, const Profile &profile) {
  SmallVector<int32_t> block(*kernel.getKnownBlockSize());
  legalizeForAll(kernel);
  if (profile.subgroupSize == 1)
    foldSubgroups(kernel, block);
  storeHalvesAsIntegers(kernel);
  if (profile.words64)
    widenWords(kernel);
  kernel.walk([](arith::RemSIOp op) { expandRemainder(op); });
  kernel.walk([](Operation *op) { expandBits(op); });
  kernel.walk([](arith::CmpFOp op) { expandComparison(op); });
  kernel.walk([](math::TruncOp op) { expandTrunc(op); });
  kernel.walk([](math::RoundEvenOp op) { expandRoundEven64(op); });
  kernel.walk([](arith::MaximumFOp op) { expandExtremum(op); });
  kernel.walk([](arith::MinimumFOp op) { expandExtremum(op); });
  kernel.walk([](scf::ForOp op) { guardLoop(op); });
  replaceAttributions(kernel);

  kernel.setKnownBlockSizeAttr(nullptr);
  kernel.setKnownGridSizeAttr(nullptr);
  kernel->setAttr(spirv::getEntryPointABIAttrName(),
                  spirv::getEntryPointABIAttr(kernel.getContext(), block));
  mapAddressSpaces(kernel);
}

//===- Schedule.cpp - The schedule dialect --------------------------------===//

#include "dialects/Schedule/Schedule.h"

#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/DialectImplementation.h"
#include "mlir/IR/TypeUtilities.h"
#include "llvm/ADT/TypeSwitch.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace weir::schedule;

#include "dialects/Schedule/ScheduleDialect.cpp.inc"
#include "dialects/Schedule/ScheduleEnums.cpp.inc"

/// Parses `, covers_all = true` and `, slice = [...]`, both optional.
static ParseResult parseExtent(AsmParser &parser, bool &coversAll, SmallVector<int64_t> &slice) {
  bool hasCoversAll = false, hasSlice = false;
  while (succeeded(parser.parseOptionalComma())) {
    if (!hasCoversAll && !hasSlice && succeeded(parser.parseOptionalKeyword("covers_all"))) {
      hasCoversAll = true;
      StringRef value;
      if (parser.parseEqual() || parser.parseKeyword(&value))
        return failure();
      coversAll = value == "true";
      if (!coversAll && value != "false")
        return parser.emitError(parser.getCurrentLocation(),
                                "covers_all is true or false, not " + value);
      continue;
    }
    auto parseNumber = [&] { return parser.parseInteger(slice.emplace_back()); };
    if (hasSlice)
      return parser.emitError(parser.getCurrentLocation(), "nothing follows the slice");
    if (parser.parseKeyword("slice") || parser.parseEqual() ||
        parser.parseCommaSeparatedList(AsmParser::Delimiter::Square, parseNumber))
      return failure();
    hasSlice = true;
  }
  return success();
}

static void printExtent(AsmPrinter &printer, bool coversAll, ArrayRef<int64_t> slice) {
  if (coversAll)
    printer << ", covers_all = true";
  if (!slice.empty())
    printer << ", slice = [" << slice << "]";
}

#define GET_ATTRDEF_CLASSES
#include "dialects/Schedule/ScheduleAttrs.cpp.inc"
#include "dialects/Schedule/ScheduleInterfaces.cpp.inc"
static ParseResult parseHazards(OpAsmParser &parser, SmallVector<int64_t> &numbers) {
  auto parseHazard = [&]() -> ParseResult {
    weir::schedule::HazardAttr hazard;
    if (parser.parseAttribute(hazard))
      return failure();
    weir::schedule::HazardFields{hazard.getKind(), hazard.getFrom(), hazard.getFromOperand(),
                                 hazard.getTo(), hazard.getToOperand()}
        .append(numbers);
    return success();
  };
  return parser.parseCommaSeparatedList(AsmParser::Delimiter::Square, parseHazard);
}

static void printHazards(OpAsmPrinter &printer, weir::schedule::BarrierOp barrier,
                         ArrayRef<int64_t>) {
  printer << "[";
  llvm::interleaveComma(barrier.getHazards(), printer, [&](const auto &hazard) {
    printer << hazard.getAttr(barrier.getContext());
  });
  printer << "]";
}

#define GET_OP_CLASSES
#include "dialects/Schedule/ScheduleOps.cpp.inc"

void ScheduleDialect::initialize() {
  addOperations<
#define GET_OP_LIST
#include "dialects/Schedule/ScheduleOps.cpp.inc"
      >();
  addAttributes<
#define GET_ATTRDEF_LIST
#include "dialects/Schedule/ScheduleAttrs.cpp.inc"
      >();
}

llvm::StringRef weir::schedule::getDType(Type type) {
  if (type.isInteger(1))
    return "BOOL";
  if (auto integer = dyn_cast<IntegerType>(type)) {
    bool isUnsigned = integer.isUnsigned();
    switch (integer.getWidth()) {
    case 8:
      return isUnsigned ? "U8" : "I8";
    case 16:
      return isUnsigned ? "U16" : "I16";
    case 32:
      return isUnsigned ? "U32" : "I32";
    case 64:
      return isUnsigned ? "U64" : "I64";
    default:
      return "";
    }
  }
  if (type.isF64())
    return "F64";
  if (type.isF32())
    return "F32";
  if (type.isF16())
    return "F16";
  if (type.isBF16())
    return "BF16";
  return "";
}

std::optional<int64_t> weir::schedule::getElementBytes(Type type) {
  if (type.isIndex())
    return 8;
  if (auto vector = dyn_cast<VectorType>(type)) {
    std::optional<int64_t> scalar = getElementBytes(vector.getElementType());
    int64_t bytes;
    if (!scalar || vector.isScalable() ||
        llvm::MulOverflow(*scalar, vector.getNumElements(), bytes))
      return std::nullopt;
    return bytes;
  }
  if (!type.isIntOrFloat())
    return std::nullopt;
  return llvm::divideCeil(type.getIntOrFloatBitWidth(), 8);
}

std::optional<int64_t> weir::schedule::getByteSize(ShapedType type) {
  if (!type.hasStaticShape())
    return std::nullopt;
  if (auto memref = dyn_cast<MemRefType>(type))
    if (!memref.getLayout().isIdentity())
      return std::nullopt;
  std::optional<int64_t> bytes = getElementBytes(type.getElementType());
  if (!bytes)
    return std::nullopt;
  // An empty tensor has no bytes, however large its other dimensions are.
  if (llvm::is_contained(type.getShape(), 0))
    return 0;
  for (int64_t size : type.getShape())
    if (llvm::MulOverflow(*bytes, size, *bytes))
      return std::nullopt;
  return bytes;
}

//===----------------------------------------------------------------------===//
// KernelOp
//===----------------------------------------------------------------------===//

LogicalResult KernelOp::verify() {
  Block &block = getBody().front();
  if (!llvm::equal(block.getArgumentTypes(), getInputs().getTypes())) // C1
    return emitOpError("region arguments (")
           << block.getArgumentTypes() << ") differ from the inputs (" << getInputs().getTypes()
           << ")";
  auto yield = dyn_cast_or_null<YieldOp>(block.empty() ? nullptr : &block.back());
  if (!yield)
    return emitOpError("region does not end in schedule.yield");
  if (!llvm::equal(yield.getResults().getTypes(), getResultTypes())) // C2
    return yield.emitOpError("yields (")
           << yield.getResults().getTypes() << "), the kernel's results are (" << getResultTypes()
           << ")";
  if (getGroupDims() && !isa_and_nonnull<KernelOp>((*this)->getParentOp())) // C3
    return emitOpError("has group_dims, but is no stage of a kernel");
  return success();
}

//===----------------------------------------------------------------------===//
// EffectAttr, SlotAttr
//===----------------------------------------------------------------------===//

LogicalResult EffectAttr::verify(llvm::function_ref<InFlightDiagnostic()> emitError, Access access,
                                 bool coversAll, llvm::ArrayRef<int64_t> slice) {
  if (slice.empty())
    return success();
  if (access != Access::write || coversAll) // C1
    return emitError() << "a slice is for an operand that is written in part, got '"
                       << stringifyAccess(access) << "'" << (coversAll ? " that covers all" : "");
  // C2
  constexpr int64_t most = int64_t(1) << 40; // so that no sum overflows
  if (slice.size() != 4 || slice[0] < 0 || slice[1] < 1 || slice[2] <= slice[1] || slice[3] < 1 ||
      slice[0] > most || slice[2] > most || slice[3] > most / slice[2])
    return emitError() << "expected slice = [begin, bytes, stride, count] with 0 <= begin, "
                          "1 <= bytes < stride, 1 <= count, and begin, stride and stride * count "
                          "up to 2^40, got ["
                       << slice << "]";
  return success();
}

LogicalResult SlotAttr::verify(llvm::function_ref<InFlightDiagnostic()> emitError, StringRef,
                               int64_t, int64_t firstWave, int64_t lastWave) {
  if (firstWave < 0 || lastWave < firstWave) // C1
    return emitError() << "expected waves with 0 <= first <= last, got " << firstWave << " to "
                       << lastWave;
  return success();
}

//===----------------------------------------------------------------------===//
// CommandsOp
//===----------------------------------------------------------------------===//

/// Checks constraints that depend on the order of the list, in one walk for all commands.
LogicalResult CommandsOp::verifyRegions() {
  int64_t before = 0;
  llvm::DenseMap<uint64_t, SignalOp> signals;
  for (Operation &op : getBody().front()) {
    if (isa<CommandOpInterface>(op)) {
      ++before;
    } else if (auto barrier = dyn_cast<BarrierOp>(op)) {
      for (const HazardFields &hazard : barrier.getHazards())
        if (hazard.from >= before || hazard.to < before) // C2 of the barrier
          return barrier.emitOpError()
                 << "does not stand between the commands of " << hazard.getAttr(getContext());
    } else if (auto signal = dyn_cast<SignalOp>(op)) {
      auto [first, isNew] = signals.try_emplace(signal.getId(), signal);
      if (!isNew) // C1 of the signal
        return (signal.emitOpError() << "has the id " << signal.getId() << " of an earlier one")
                   .attachNote(first->second.getLoc())
               << "the earlier one";
    } else if (auto wait = dyn_cast<WaitOp>(op)) {
      auto signal = signals.find(wait.getSignal());
      if (signal == signals.end()) // C1 of the wait
        return wait.emitOpError() << "waits on " << wait.getSignal()
                                  << ", which no signal before it has";
      if (signal->second.getQueue() == wait.getQueue()) // C2 of the wait
        return wait.emitOpError() << "waits on a signal of its own queue " << wait.getQueue();
    } else { // C1
      return op.emitOpError("does not belong in a command list, which holds "
                            "dispatches, copies, fills, barriers, signals and waits");
    }
  }
  return success();
}

//===----------------------------------------------------------------------===//
// DispatchOp
//===----------------------------------------------------------------------===//

LogicalResult DispatchOp::verify() {
  if (getGrid().size() != 3) // C1
    return emitOpError("grid has ") << getGrid().size() << " sizes, not 3";
  for (int64_t size : getGrid())
    if (size < 1) // C1
      return emitOpError("grid size ") << size << " is below 1";
  return success();
}

LogicalResult DispatchOp::verifySymbolUses(SymbolTableCollection &symbols) {
  StringAttr root = getKernel().getRootReference();
  Operation *module = symbols.lookupNearestSymbolFrom(*this, root);
  if (isa_and_nonnull<gpu::BinaryOp>(module))
    return success();
  auto kernel = symbols.lookupNearestSymbolFrom<gpu::GPUFuncOp>(*this, getKernel());
  if (!kernel || !kernel.isKernel()) // C2
    return emitOpError() << getKernel() << " is not a kernel of this module";
  std::optional<ArrayRef<int32_t>> grid = kernel.getKnownGridSize();
  if (grid && !llvm::equal(*grid, getGrid())) // C6
    return emitOpError() << "has grid [" << getGrid() << "], " << getKernel() << " states ["
                         << *grid << "]";
  // The block's arguments would count workgroup memory, too.
  ArrayRef<Type> arguments = kernel.getFunctionType().getInputs();
  if (arguments.size() != getOperands().size()) // C3
    return emitOpError() << "has " << getOperands().size() << " operands, " << getKernel()
                         << " takes " << arguments.size();
  for (auto [index, operand, argument] : llvm::enumerate(getOperands(), arguments)) {
    bool bothMemory = isa<BaseMemRefType>(argument) && isa<BaseMemRefType>(operand.getType());
    if (!bothMemory && operand.getType() != argument) // C5
      return emitOpError() << "operand " << index << " is " << operand.getType()
                           << ", the kernel's argument " << argument;
    auto type = dyn_cast<MemRefType>(argument), given = dyn_cast<MemRefType>(operand.getType());
    if (!type || !given)
      continue;
    std::optional<int64_t> want = getByteSize(type), have = getByteSize(given);
    if (want && have && want != have) // C4
      return emitOpError() << "operand " << index << " is " << *have
                           << " bytes long, the kernel's argument " << *want;
  }
  return success();
}

//===----------------------------------------------------------------------===//
// CopyOp, FillOp
//===----------------------------------------------------------------------===//

LogicalResult CopyOp::verify() {
  auto source = cast<ShapedType>(getSource().getType());
  auto target = cast<ShapedType>(getTarget().getType());
  if (source.getElementType() != target.getElementType() ||
      failed(verifyCompatibleShape(source, target))) // C1
    return emitOpError() << "source and target differ: " << source << " vs " << target;
  return success();
}

LogicalResult FillOp::verify() {
  Type element = cast<ShapedType>(getTarget().getType()).getElementType();
  if (getValue().getType() != element) // C1
    return emitOpError() << "value and elements of the target differ: " << getValue().getType()
                         << " vs " << element;
  return success();
}

//===----------------------------------------------------------------------===//
// BarrierOp
//===----------------------------------------------------------------------===//

SmallVector<HazardFields> BarrierOp::getHazards() {
  SmallVector<HazardFields> hazards;
  for (ArrayRef<int64_t> left = getHazardNumbers(); left.size() >= 5; left = left.drop_front(5))
    hazards.push_back({HazardKind(left[0]), left[1], left[2], left[3], left[4]});
  return hazards;
}

LogicalResult BarrierOp::verify() {
  if (getHazardNumbers().empty()) // C1
    return emitOpError("has 0 hazards, expected at least 1");
  if (getHazardNumbers().size() % 5) // C1
    return emitOpError() << "has " << getHazardNumbers().size()
                         << " numbers for its hazards, which have five each";
  for (const HazardFields &hazard : getHazards())
    if (!symbolizeHazardKind(uint32_t(hazard.kind))) // C1
      return emitOpError() << "serves a hazard of kind " << uint32_t(hazard.kind)
                           << ", expected 0 to 2";
  return success();
}

//===----------------------------------------------------------------------===//
// Products of matrices
//===----------------------------------------------------------------------===//

void GroupProductOp::getEffects(
    SmallVectorImpl<SideEffects::EffectInstance<MemoryEffects::Effect>> &effects) {
  effects.emplace_back(MemoryEffects::Read::get(), &getRowsMutable());
  effects.emplace_back(MemoryEffects::Read::get(), &getColumnsMutable());
}

LogicalResult GroupProductOp::verify() {
  int64_t sums = getSums().getType().getNumElements();
  if (sums % 4 || sums > 128) // C1
    return emitOpError() << "has " << sums << " sums, expected a multiple of 4 up to 128";
  Type rows = getRows().getType().getElementType(),
       columns = getColumns().getType().getElementType();
  if (rows != columns) // C2
    return emitOpError() << "has factors of " << rows << " and " << columns;
  if (getStrides().size() != 4) // C3
    return emitOpError() << "has " << getStrides().size() << " strides, expected 4";
  if (rows.isF32() && (getTransposesRows() || getTransposesColumns())) // C5
    return emitOpError() << "transposes a factor of f32";
  const int64_t runElements = 128 / rows.getIntOrFloatBitWidth(); // of 16 bytes
  for (int64_t offset : {int64_t(getRowOffset()), int64_t(getColumnOffset())})
    if (offset < 0 || offset % runElements) // C4
      return emitOpError() << "has a factor " << offset << " elements behind its index, expected a "
                           << "multiple of " << runElements;
  return success();
}

//===----------------------------------------------------------------------===//
// Copies of tiles
//===----------------------------------------------------------------------===//

using Effects = SmallVectorImpl<SideEffects::EffectInstance<MemoryEffects::Effect>>;

static void addUpdate(Effects &effects, OpOperand &memory) {
  effects.emplace_back(MemoryEffects::Read::get(), &memory);
  effects.emplace_back(MemoryEffects::Write::get(), &memory);
}

void MBarrierInitOp::getEffects(Effects &effects) {
  effects.emplace_back(MemoryEffects::Write::get(), &getBarriersMutable());
}

void MBarrierExpectOp::getEffects(Effects &effects) { addUpdate(effects, getBarriersMutable()); }

/// Bytes that were copied in the phase are anywhere in workgroup memory.
void MBarrierWaitOp::getEffects(Effects &effects) {
  addUpdate(effects, getBarriersMutable());
  effects.emplace_back(MemoryEffects::Write::get());
}

void TileCopyOp::getEffects(Effects &effects) {
  effects.emplace_back(MemoryEffects::Read::get(), &getOperandMutable());
  effects.emplace_back(MemoryEffects::Write::get(), &getSlabMutable());
  addUpdate(effects, getBarriersMutable());
}

int64_t TileCopyOp::getElements() {
  int64_t elements = 1;
  for (int64_t size : getBox())
    elements *= size;
  return elements;
}

LogicalResult TileCopyOp::verify() {
  const size_t rank = getCoordinates().size();
  if (rank < 2 || rank > 5 || getShape().size() != rank || getBox().size() != rank) // C1
    return emitOpError() << "has " << rank << " coordinates in a shape of " << getShape().size()
                         << " sizes, and a box of " << getBox().size()
                         << "; expected as many, 2 to 5";
  Type from = getOperand().getType().getElementType(), to = getSlab().getType().getElementType();
  if (from != to) // C2
    return emitOpError() << "copies " << from << " to " << to;
  constexpr int64_t lineBits = 1024, runBits = 128, maxBox = 256;
  const int64_t lineElements = lineBits / from.getIntOrFloatBitWidth(),
                runElements = runBits / from.getIntOrFloatBitWidth();
  if (getBox().back() != lineElements) // C3
    return emitOpError() << "has lines of " << getBox().back() << " elements, expected "
                         << lineElements;
  for (int64_t size : getBox())
    if (size < 1 || size > maxBox) // C3
      return emitOpError() << "has " << size << " in its box, expected 1 to " << maxBox;
  if (getShape().back() % runElements) // C4
    return emitOpError() << "has " << getShape().back()
                         << " elements in a row of its shape, expected a multiple of "
                         << runElements;
  return success();
}

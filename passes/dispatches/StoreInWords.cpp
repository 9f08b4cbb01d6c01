//===- StoreInWords.cpp - Integers that a device lacks, in words ----------===//
//
// lib/Numerics/Words.h rewrites a kernel; this pass chooses the form of each buffer. A buffer of
// short elements is packed, as its bytes are outside, where every kernel that writes it writes
// whole words: then no two invocations share one. Else each element lies in a word of its own, and
// a kernel that owns words packs an argument or a result.
//
//===----------------------------------------------------------------------===//

#include "dialects/Schedule/Schedule.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/UB/IR/UBOps.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/DialectResourceBlobManager.h"
#include "mlir/IR/Dominance.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"
#include "mlir/Pass/Pass.h"
#include "mlir/Transforms/CSE.h"
#include "weir/Numerics/Words.h"
#include "weir/Target/Halves.h"
#include "weir/Target/ProfileAttr.h"

namespace weir {
#define GEN_PASS_DEF_STOREINWORDSPASS
#include "passes/Passes.h.inc"
} // namespace weir

using namespace mlir;
using namespace weir;

static constexpr int64_t wordBytes = 4;

namespace {
/// A use of a buffer by a dispatch.
struct Use {
  schedule::DispatchOp dispatch;
  unsigned operand = 0;
};

struct StoreInWords : weir::impl::StoreInWordsPassBase<StoreInWords> {
  using StoreInWordsPassBase::StoreInWordsPassBase;

  void runOnOperation() override;

private:
  gpu::GPUFuncOp getKernel(schedule::DispatchOp dispatch) {
    auto module = table->lookup<gpu::GPUModuleOp>(dispatch.getKernel().getRootReference());
    return module ? module.lookupSymbol<gpu::GPUFuncOp>(dispatch.getKernel().getLeafReference())
                  : nullptr;
  }
  bool isWritten(const Use &use);
  bool coversAll(const Use &use);
  bool storesWhole(ArrayRef<Use> uses);
  LogicalResult checkFloats(func::FuncOp function);
  LogicalResult chooseForms(func::FuncOp function);
  void placeApart(Value buffer, OpBuilder &builder);
  void stage(BlockArgument argument, ArrayRef<Use> uses, OpBuilder &builder);
  void packGlobals();
  LogicalResult rewriteKernels();
  gpu::GPUFuncOp cloneKernel(gpu::GPUFuncOp kernel);
  gpu::GPUFuncOp getCopyKernel(bool packs, int64_t count, unsigned bits);
  void copy(OpBuilder &builder, Location loc, bool packs, Value from, Value to, int64_t count,
            unsigned bits);

  Profile profile;
  std::optional<LackingIntegers> lacking;
  std::optional<SymbolTable> table;
  DenseSet<Value> apart; ///< buffers, and views of them, with a word for each element
  DenseMap<std::tuple<unsigned, int64_t, unsigned>, gpu::GPUFuncOp> copies; ///< packs, count, bits
};
} // namespace

static unsigned getBits(Value buffer) {
  return getElementTypeOrSelf(cast<MemRefType>(buffer.getType()).getElementType())
      .getIntOrFloatBitWidth();
}

/// Returns all uses of a buffer, through views, in the order of the commands.
static FailureOr<SmallVector<Use>> getUses(Value buffer) {
  SmallVector<Use> uses;
  SmallVector<Value> open = {buffer};
  while (!open.empty()) {
    Value value = open.pop_back_val();
    for (OpOperand &use : value.getUses()) {
      if (auto dispatch = dyn_cast<schedule::DispatchOp>(use.getOwner()))
        uses.push_back({dispatch, use.getOperandNumber()});
      else if (auto view = dyn_cast<memref::SubViewOp>(use.getOwner()))
        open.push_back(view);
      else
        return use.getOwner()->emitOpError("uses a buffer of elements that the target lacks and is "
                                           "no dispatch; compile for a profile that has them");
    }
  }
  llvm::sort(uses, [](const Use &a, const Use &b) {
    return a.dispatch != b.dispatch ? a.dispatch->isBeforeInBlock(b.dispatch)
                                    : a.operand < b.operand;
  });
  return uses;
}

static schedule::EffectAttr getEffect(gpu::GPUFuncOp kernel, unsigned operand) {
  return kernel.getArgAttrOfType<schedule::EffectAttr>(operand, schedule::effectAttrName);
}

bool StoreInWords::isWritten(const Use &use) {
  schedule::EffectAttr effect = getEffect(getKernel(use.dispatch), use.operand);
  return !effect || effect.getAccess() != schedule::Access::read;
}

bool StoreInWords::coversAll(const Use &use) {
  schedule::EffectAttr effect = getEffect(getKernel(use.dispatch), use.operand);
  return effect && effect.getAccess() == schedule::Access::write && effect.getCoversAll();
}

/// Whether all that is written to a buffer is whole words of its own.
bool StoreInWords::storesWhole(ArrayRef<Use> uses) {
  return llvm::all_of(uses, [&](const Use &use) {
    if (!isWritten(use))
      return true;
    gpu::GPUFuncOp kernel = getKernel(use.dispatch);
    schedule::EffectAttr effect = getEffect(kernel, use.operand);
    bool isAligned = !effect || llvm::all_of(effect.getSlice().take_front(3),
                                             [](int64_t bytes) { return bytes % wordBytes == 0; });
    return isAligned && storesWholeWords(kernel, use.operand);
  });
}

/// Lets a buffer, which is to be replaced, have a word for each element.
void StoreInWords::placeApart(Value buffer, OpBuilder &builder) {
  Type word = builder.getI32Type();
  SmallVector<Value> open = {buffer};
  while (!open.empty()) {
    Value value = open.pop_back_val();
    auto type = cast<MemRefType>(value.getType());
    value.setType(MemRefType::get(type.getShape(), word, type.getLayout(), type.getMemorySpace()));
    apart.insert(value);
    for (Operation *user : value.getUsers())
      if (auto view = dyn_cast<memref::SubViewOp>(user))
        open.push_back(view);
  }
}

/// Emits a kernel that packs `count` words into fewer, or takes as many apart. An invocation makes
/// whole words, so it shares none.
gpu::GPUFuncOp StoreInWords::getCopyKernel(bool packs, int64_t count, unsigned bits) {
  gpu::GPUFuncOp &kernel = copies[{unsigned(packs), count, bits}];
  if (kernel)
    return kernel;
  MLIRContext *context = &getContext();
  ImplicitLocOpBuilder b(UnknownLoc::get(context), context);
  int64_t perWord = 32 / bits, packed = llvm::divideCeil(count, perWord);
  int64_t made = packs ? packed : count, size = profile.workgroupSize;
  int64_t groups = std::min<int64_t>(llvm::divideCeil(made, size), profile.maxGrid[0]);
  int64_t share = llvm::divideCeil(made, groups * size);

  std::string name = packs ? "pack_words" : "part_words";
  b.setInsertionPointToStart(getOperation().getBody());
  auto module = gpu::GPUModuleOp::create(b, name);
  table->insert(module);
  b.setInsertionPointToStart(module.getBody());
  auto space = gpu::AddressSpaceAttr::get(context, gpu::AddressSpace::Global);
  auto makeType = [&](int64_t number) {
    return MemRefType::get({number}, b.getI32Type(), MemRefLayoutAttrInterface{}, space);
  };
  auto type = b.getFunctionType({makeType(packs ? count : packed), makeType(made)}, {});
  kernel = gpu::GPUFuncOp::create(b, module.getName(), type);
  kernel->setAttr(gpu::GPUDialect::getKernelFuncAttrName(), b.getUnitAttr());
  kernel.setKnownBlockSizeAttr(b.getDenseI32ArrayAttr({int32_t(size), 1, 1}));
  kernel.setKnownGridSizeAttr(b.getDenseI32ArrayAttr({int32_t(groups), 1, 1}));
  auto setEffect = [&](unsigned index, schedule::Access access, bool coversAll) {
    kernel.setArgAttr(index, schedule::effectAttrName,
                      schedule::EffectAttr::get(context, access, coversAll, {}));
  };
  setEffect(0, schedule::Access::read, false);
  setEffect(1, schedule::Access::write, true);

  Value from = kernel.getArgument(0), to = kernel.getArgument(1);
  b.setInsertionPointToStart(&kernel.getBody().front());
  auto index = [&](int64_t value) -> Value { return arith::ConstantIndexOp::create(b, value); };
  auto word = [&](uint32_t value) -> Value {
    return arith::ConstantOp::create(b, b.getI32IntegerAttr(int32_t(value)));
  };
  Value ones = word((1u << bits) - 1);
  Value group = gpu::BlockIdOp::create(b, gpu::Dimension::x);
  Value thread = gpu::ThreadIdOp::create(b, gpu::Dimension::x);
  Value first = arith::AddIOp::create(b, arith::MulIOp::create(b, group, index(size)), thread);
  auto makeWord = [&](Value place) -> Value {
    if (!packs) {
      Value held = memref::LoadOp::create(
          b, from, ValueRange(arith::DivUIOp::create(b, place, index(perWord)).getResult()));
      Value rest = arith::RemUIOp::create(b, place, index(perWord));
      Value by = arith::MulIOp::create(b, arith::IndexCastUIOp::create(b, b.getI32Type(), rest),
                                       word(bits));
      return arith::AndIOp::create(b, arith::ShRUIOp::create(b, held, by), ones);
    }
    Value joined;
    for (int64_t part = 0; part < perWord; ++part) {
      Value element = arith::MulIOp::create(b, place, index(perWord));
      if (part)
        element = arith::AddIOp::create(b, element, index(part));
      bool mayEnd = count % perWord && part >= count % perWord;
      Value last =
          mayEnd ? arith::MinUIOp::create(b, element, index(count - 1)).getResult() : element;
      Value value = memref::LoadOp::create(b, from, ValueRange(last));
      value = arith::AndIOp::create(b, value, ones);
      if (mayEnd) {
        Value exists = arith::CmpIOp::create(b, arith::CmpIPredicate::ult, element, index(count));
        value = arith::SelectOp::create(b, exists, value, word(0));
      }
      if (part)
        value = arith::ShLIOp::create(b, value, word(uint32_t(part * bits)));
      joined = joined ? arith::OrIOp::create(b, joined, value).getResult() : value;
    }
    return joined;
  };
  auto make = [&](Value place) {
    bool isExact = groups * size * share == made;
    OpBuilder::InsertionGuard guard(b);
    if (!isExact) {
      Value inside = arith::CmpIOp::create(b, arith::CmpIPredicate::ult, place, index(made));
      auto condition = scf::IfOp::create(b, inside, /*withElseRegion=*/false);
      b.setInsertionPointToStart(condition.thenBlock());
    }
    memref::StoreOp::create(b, makeWord(place), to, ValueRange(place));
  };
  if (share == 1) {
    make(first);
  } else {
    auto loop = scf::ForOp::create(b, index(0), index(share), index(1));
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(loop.getBody());
    Value step = arith::MulIOp::create(b, loop.getInductionVar(), index(groups * size));
    make(arith::AddIOp::create(b, first, step));
  }
  b.setInsertionPointToEnd(&kernel.getBody().front());
  gpu::ReturnOp::create(b);
  return kernel;
}

void StoreInWords::copy(OpBuilder &builder, Location loc, bool packs, Value from, Value to,
                        int64_t count, unsigned bits) {
  gpu::GPUFuncOp kernel = getCopyKernel(packs, count, bits);
  StringAttr name = kernel.getNameAttr();
  SmallVector<int64_t> grid(kernel.getKnownGridSize()->begin(), kernel.getKnownGridSize()->end());
  schedule::DispatchOp::create(builder, loc,
                               SymbolRefAttr::get(name, {FlatSymbolRefAttr::get(name)}),
                               builder.getDenseI64ArrayAttr(grid), ValueRange{from, to},
                               /*wave=*/std::nullopt);
}

/// Lets dispatches use a buffer with a word for each element in place of an argument, which is
/// packed after the last that writes it, and taken apart before the first if that keeps bytes.
void StoreInWords::stage(BlockArgument argument, ArrayRef<Use> uses, OpBuilder &builder) {
  auto function = cast<func::FuncOp>(argument.getOwner()->getParentOp());
  auto type = cast<MemRefType>(argument.getType());
  int64_t count = type.getDimSize(0);
  unsigned bits = getBits(argument);
  // Behind the buffers of the graph's values, which tools find by their order.
  auto commands = *function.getOps<schedule::CommandsOp>().begin();
  builder.setInsertionPoint(commands);
  Value buffer = memref::AllocOp::create(builder, argument.getLoc(), type);
  argument.replaceAllUsesWith(buffer);
  placeApart(buffer, builder);
  bool isResult = bool(function.getArgAttr(argument.getArgNumber(), schedule::resultAttrName));
  if (!isResult && !coversAll(uses.front())) {
    schedule::DispatchOp first = uses.front().dispatch;
    builder.setInsertionPoint(first);
    copy(builder, first.getLoc(), /*packs=*/false, argument, buffer, count, bits);
  }
  // A value that was inserted into the argument in place is a result of its own now, which may
  // still take the argument's bytes.
  BlockArgument packed = argument;
  for (BlockArgument other : function.getArguments())
    if (auto lender =
            function.getArgAttrOfType<IntegerAttr>(other.getArgNumber(), schedule::donatedAttrName);
        lender && lender.getInt() == argument.getArgNumber()) {
      function.removeArgAttr(other.getArgNumber(), schedule::donatedAttrName);
      packed = other;
    }
  auto last = llvm::find_if(llvm::reverse(uses), [&](const Use &use) { return isWritten(use); });
  schedule::DispatchOp writer = last->dispatch;
  builder.setInsertionPointAfter(writer);
  copy(builder, writer.getLoc(), /*packs=*/true, buffer, packed, count, bits);
}

/// Refuses arguments and results of f64, for which the functions of its kernels stand in f64, too.
LogicalResult StoreInWords::checkFloats(func::FuncOp function) {
  if (profile.float64)
    return success();
  for (auto [index, type] : llvm::enumerate(function.getArgumentTypes())) {
    auto memory = dyn_cast<MemRefType>(type);
    if (!memory || !memory.getElementType().isF64() || function.getArgument(index).use_empty())
      continue;
    bool isResult = bool(function.getArgAttr(index, schedule::resultAttrName));
    return function.emitError() << "function @" << function.getName() << " has "
                                << (isResult ? "a result" : "an argument")
                                << " of f64, which target " << profile.name
                                << " lacks; convert it in the graph to f32, or compile for a "
                                   "profile with float64";
  }
  return success();
}

LogicalResult StoreInWords::chooseForms(func::FuncOp function) {
  OpBuilder builder(function);
  for (auto alloc : llvm::to_vector(function.getOps<memref::AllocOp>())) {
    if (!lacking->isShort(alloc.getType().getElementType()))
      continue;
    FailureOr<SmallVector<Use>> uses = getUses(alloc);
    if (failed(uses))
      return failure();
    if (*schedule::getByteSize(alloc.getType()) % wordBytes || !storesWhole(*uses))
      placeApart(alloc, builder);
  }
  SmallVector<Type> types;
  for (BlockArgument argument : function.getArguments()) {
    auto type = dyn_cast<MemRefType>(argument.getType());
    if (type && type.getNumElements() && lacking->isShort(type.getElementType())) {
      FailureOr<SmallVector<Use>> uses = getUses(argument);
      if (failed(uses))
        return failure();
      int64_t bytes = *schedule::getByteSize(type);
      if (!storesWhole(*uses))
        stage(argument, *uses, builder);
      if (bytes % wordBytes) // the bytes behind it are nobody's
        argument.setType(MemRefType::get({int64_t(llvm::divideCeil(bytes, wordBytes))},
                                         builder.getI32Type(), type.getLayout(),
                                         type.getMemorySpace()));
    }
    types.push_back(argument.getType());
  }
  function.setFunctionType(builder.getFunctionType(types, {}));
  return success();
}

/// Gives constants whose bytes end within a word the bytes that are missing.
void StoreInWords::packGlobals() {
  for (auto global : getOperation().getOps<memref::GlobalOp>()) {
    auto values = dyn_cast_or_null<ElementsAttr>(global.getInitialValueAttr());
    int64_t bytes = schedule::getByteSize(global.getType()).value_or(0);
    if (!values || !lacking->isShort(global.getType().getElementType()) || bytes % wordBytes == 0)
      continue;
    SmallVector<char> raw;
    if (auto resource = dyn_cast<DenseResourceElementsAttr>(values)) {
      if (AsmResourceBlob *blob = resource.getRawHandle().getBlob())
        llvm::append_range(raw, blob->getData());
    } else if (auto dense = dyn_cast<DenseElementsAttr>(values)) {
      for (int64_t i = dense.isSplat() ? dense.getNumElements() : 1; i > 0; --i)
        llvm::append_range(raw, dense.getRawData());
    }
    raw.resize(llvm::alignTo(bytes, wordBytes));
    Type word = IntegerType::get(&getContext(), 32);
    int64_t count = raw.size() / wordBytes;
    auto type = MemRefType::get({count}, word);
    global.setTypeAttr(TypeAttr::get(type));
    global.setInitialValueAttr(
        DenseElementsAttr::getFromRawBuffer(RankedTensorType::get({count}, word), raw));
    getOperation().walk([&](memref::GetGlobalOp op) {
      if (op.getName() == global.getSymName())
        op.getResult().setType(type);
    });
  }
}

/// Clones a kernel under a free name.
gpu::GPUFuncOp StoreInWords::cloneKernel(gpu::GPUFuncOp kernel) {
  auto module = cast<gpu::GPUModuleOp>(kernel->getParentOp());
  auto clone = cast<gpu::GPUModuleOp>(module->clone());
  table->insert(clone, std::next(module->getIterator()));
  gpu::GPUFuncOp copy = *clone.getOps<gpu::GPUFuncOp>().begin();
  copy.setName(clone.getName());
  return copy;
}

LogicalResult StoreInWords::rewriteKernels() {
  // A kernel by the forms of its operands; the first forms keep its name.
  using Forms = SmallVector<WordForm>;
  llvm::MapVector<Operation *, SmallVector<std::pair<Forms, SmallVector<schedule::DispatchOp>>>>
      variants;
  getOperation().walk([&](gpu::GPUFuncOp kernel) {
    if (!llvm::is_contained(llvm::make_second_range(copies), kernel))
      variants[kernel];
  });
  getOperation().walk([&](schedule::DispatchOp dispatch) {
    gpu::GPUFuncOp kernel = getKernel(dispatch);
    if (!kernel || !variants.count(kernel))
      return;
    Forms forms;
    for (Value operand : dispatch.getOperands())
      forms.push_back(apart.contains(operand) ? WordForm::Apart : WordForm::Packed);
    // Only short elements have a form.
    for (auto [form, type] : llvm::zip(forms, kernel.getFunctionType().getInputs()))
      if (auto memory = dyn_cast<MemRefType>(type);
          !memory || !lacking->isShort(memory.getElementType()))
        form = WordForm::Packed;
    auto &known = variants[kernel];
    auto found = llvm::find_if(known, [&](auto &variant) { return variant.first == forms; });
    if (found == known.end())
      found = known.insert(known.end(), {forms, {}});
    found->second.push_back(dispatch);
  });
  SmallVector<std::pair<gpu::GPUFuncOp, Forms>> work;
  for (auto &[op, known] : variants) {
    auto kernel = cast<gpu::GPUFuncOp>(op);
    if (known.empty())
      known.push_back({Forms(kernel.getFunctionType().getNumInputs(), WordForm::Packed), {}});
    for (auto [number, variant] : llvm::enumerate(known)) {
      gpu::GPUFuncOp own = number ? cloneKernel(kernel) : kernel;
      StringAttr name = own.getNameAttr();
      if (number)
        for (schedule::DispatchOp dispatch : variant.second)
          dispatch.setKernelAttr(SymbolRefAttr::get(name, {FlatSymbolRefAttr::get(name)}));
      work.emplace_back(own, variant.first);
    }
  }
  for (auto &[kernel, forms] : work) {
    if (!lacking->has16) {
      auto computes = kernel.walk([&](Operation *op) {
        if (!computesInHalves(op))
          return WalkResult::advance();
        op->emitError() << "kernel @" << kernel.getName() << ": " << op->getName()
                        << " of f16 or bf16 has no lowering; weir-widen-arithmetic has one for "
                           "graphs";
        return WalkResult::interrupt();
      });
      if (computes.wasInterrupted())
        return failure();
      storeHalvesAsIntegers(kernel);
    }
    if (failed(storeInWords(kernel, forms, *lacking)))
      return failure();
    IRRewriter rewriter(&getContext());
    DominanceInfo dominance(kernel);
    eliminateCommonSubExpressions(rewriter, dominance, kernel);
  }
  return success();
}

void StoreInWords::runOnOperation() {
  FailureOr<Profile> found = getProfile(getOperation());
  if (failed(found))
    return signalPassFailure();
  profile = *found;
  lacking.emplace(profile);
  if (lacking->hasAll())
    return;
  table.emplace(getOperation());
  apart.clear();
  copies.clear();
  for (auto function : getOperation().getOps<func::FuncOp>())
    if (failed(checkFloats(function)))
      return signalPassFailure();
  for (auto function : getOperation().getOps<func::FuncOp>())
    if (!function.isExternal() && failed(chooseForms(function)))
      return signalPassFailure();
  packGlobals();
  if (failed(rewriteKernels()))
    signalPassFailure();
}

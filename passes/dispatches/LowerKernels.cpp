//===- LowerKernels.cpp - Kernels become GPU code and dispatches ----------===//
//
// A function on tensors becomes a function on flat buffers: its arguments, then
// its results, then one allocation per value that lies between kernels. Reshapes
// vanish, constants become globals, equal kernels are emitted once.
//
//===----------------------------------------------------------------------===//

#include "passes/Passes.h"
#include "passes/Spares.h"

#include "dialects/Schedule/Schedule.h"
#include "dialects/Schedule/Segments.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Linalg/Transforms/Transforms.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/NVGPU/IR/NVGPUDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/AsmState.h"
#include "mlir/IR/DialectResourceBlobManager.h"
#include "mlir/IR/Dominance.h"
#include "mlir/Interfaces/LoopLikeInterface.h"
#include "mlir/Pass/Pass.h"
#include "mlir/Transforms/CSE.h"
#include "mlir/Transforms/GreedyPatternRewriteDriver.h"
#include "mlir/Transforms/LoopInvariantCodeMotionUtils.h"
#include "weir/Kernels/Emitter.h"
#include "weir/Order/StridedBytes.h"
#include "weir/Target/ProfileAttr.h"

namespace weir {
#define GEN_PASS_DEF_LOWERKERNELSPASS
#include "passes/Passes.h.inc"
} // namespace weir

using namespace mlir;
using namespace weir;

namespace {
struct LowerKernels : weir::impl::LowerKernelsPassBase<LowerKernels> {
  using LowerKernelsPassBase::LowerKernelsPassBase;

  void runOnOperation() override;

private:
  struct Kernel {
    SymbolRefAttr symbol;
    EmittedKernel launch;
  };
  /// A function under way: where its operations go, and what is known of its values.
  struct Lowering {
    explicit Lowering(schedule::CommandsOp list)
        : allocations(list), commands(OpBuilder::atBlockEnd(&list.getBody().front())) {}

    OpBuilder allocations; // before the commands
    OpBuilder commands;    // behind the last one
    DenseMap<Value, Value> buffers;
    schedule::KernelOp maker;            // the last kernel that is not a spare
    SmallVector<unsigned> makerOperands; // of its launch
  };
  llvm::StringMap<Kernel> kernels; // by text
  llvm::MapVector<Attribute, memref::GlobalOp> globals;
  std::optional<SymbolTable> symbols; // of the module
  llvm::StringMap<unsigned> suffixes; // by name: those below are taken
  Profile profile;

  LogicalResult placeParts(Block &body, OpBuilder &builder, DenseMap<Value, Value> &buffers);
  LogicalResult addDispatch(schedule::KernelOp kernel, Lowering &lowering);
  LogicalResult lowerFunction(func::FuncOp function);
  std::string getFreeName(const std::string &name);
  FailureOr<Kernel> getKernel(schedule::KernelOp op);
  LogicalResult finishKernel(gpu::GPUModuleOp module);
  FailureOr<memref::GlobalOp> getGlobal(arith::ConstantOp constant);
};
} // namespace

/// Returns the type of a tensor's flat buffer.
static MemRefType getFlatType(Type tensor) {
  auto type = cast<RankedTensorType>(tensor);
  return MemRefType::get({type.getNumElements()}, getStorageType(type.getElementType()));
}

/// Returns `name`, with the smallest free number behind it if a symbol has that name.
std::string LowerKernels::getFreeName(const std::string &name) {
  if (!symbols->lookup(name))
    return name;
  unsigned &suffix = suffixes[name];
  while (symbols->lookup(name + "_" + std::to_string(suffix)))
    ++suffix;
  return name + "_" + std::to_string(suffix);
}

FailureOr<LowerKernels::Kernel> LowerKernels::getKernel(schedule::KernelOp op) {
  // Equal text is an equal kernel: names of values are numbers, locations are
  // left out, and what isn't about the code (the name) is printed apart.
  std::string text;
  llvm::raw_string_ostream stream(text);
  stream << op.getInputs().getTypes() << " -> " << op.getResultTypes() << "\n";
  AsmState state(op, OpPrintingFlags().useLocalScope().skipRegions(false));
  op.getBody().front().print(stream, state);
  auto [entry, isNew] = kernels.try_emplace(text);
  if (!isNew)
    return entry->second;

  ModuleOp module = getOperation();
  OpBuilder builder(module.getContext());
  builder.setInsertionPointToStart(module.getBody());
  std::string name;
  for (char c : op.getName())
    name += llvm::isAlnum(c) ? c : '_';
  if (name.empty() || llvm::isDigit(name.front()))
    name = "kernel_" + name;
  name = getFreeName(name);
  auto gpuModule = gpu::GPUModuleOp::create(builder, op.getLoc(), name);
  symbols->insert(gpuModule);
  builder.setInsertionPointToStart(gpuModule.getBody());
  FailureOr<EmittedKernel> launch = emitKernel(op, builder, name, profile);
  if (failed(launch))
    return failure();
  if (!launch->launches)
    symbols->erase(gpuModule);
  else if (failed(finishKernel(gpuModule)))
    return failure();
  StringAttr symbol = builder.getStringAttr(name);
  entry->second = {SymbolRefAttr::get(symbol, {FlatSymbolRefAttr::get(symbol)}), *launch};
  return entry->second;
}

/// Cleans up after the emitter: folds, merges equal operations, hoists them out of loops.
LogicalResult LowerKernels::finishKernel(gpu::GPUModuleOp module) {
  RewritePatternSet patterns(&getContext());
  if (failed(applyPatternsGreedily(module, std::move(patterns))))
    return failure();
  IRRewriter rewriter(&getContext());
  DominanceInfo dominance(module);
  eliminateCommonSubExpressions(rewriter, dominance, module);
  module.walk([](LoopLikeOpInterface loop) { moveLoopInvariantCode(loop); });
  eliminateCommonSubExpressions(rewriter, dominance, module);
  return success();
}

FailureOr<memref::GlobalOp> LowerKernels::getGlobal(arith::ConstantOp constant) {
  auto type = cast<RankedTensorType>(constant.getType());
  auto flat = RankedTensorType::get({type.getNumElements()}, getStorageType(type.getElementType()));
  Attribute value = constant.getValue();
  memref::GlobalOp &global = globals[value];
  if (global)
    return global;
  ElementsAttr initial;
  if (auto dense = dyn_cast<DenseElementsAttr>(value)) {
    if (type.getElementType().isInteger(1)) {
      SmallVector<int8_t> bytes;
      for (bool bit : dense.getValues<bool>())
        bytes.push_back(bit);
      initial = DenseElementsAttr::get(flat, ArrayRef<int8_t>(bytes));
    } else {
      initial = dense.reshape(flat);
    }
  } else if (auto resource = dyn_cast<DenseResourceElementsAttr>(value);
             resource && !type.getElementType().isInteger(1)) {
    initial = DenseResourceElementsAttr::get(flat, resource.getRawHandle());
  } else {
    return constant.emitOpError("holds a constant of a kind that is not supported; use dense or "
                                "dense_resource");
  }
  ModuleOp module = getOperation();
  OpBuilder builder(module.getContext()); // inserts nowhere: the symbol table does
  global = memref::GlobalOp::create(
      builder, constant.getLoc(), getFreeName("constant"), builder.getStringAttr("private"),
      MemRefType::get(flat.getShape(), flat.getElementType()), initial, /*constant=*/true,
      /*alignment=*/nullptr);
  symbols->insert(global, module.getBody()->begin());
  return global;
}

/// Whether a tensor is made by insertions, the first into a tensor that is not a splat.
static bool isOfSlices(Value value) {
  tensor::InsertSliceOp first = getInsertion(getOwner(value));
  return first && !getSplat(first.getDest());
}

/// Checks that insertions into an empty tensor write each byte of it once. `value` is the
/// result of the last insertion.
static LogicalResult checkWhole(Value value) {
  SmallVector<StridedBytes> slices;
  int64_t count = 0;
  Operation *last = value.getDefiningOp();
  while (tensor::InsertSliceOp insertion = getInsertion(value)) {
    SmallVector<int64_t> slice = getSlice(insertion);
    count += insertion.getSourceType().getNumElements();
    if (slice.empty())
      return last->emitOpError()
             << "makes a tensor of slices that are not runs of bytes at equal distances; "
                "weir-generalize-tensors makes no others";
    StridedBytes bytes = *canonicalize({slice[0], slice[1], {{slice[3], slice[2]}}});
    for (const StridedBytes &other : slices)
      if (compare(bytes, other) != Sharing::Disjoint)
        return last->emitOpError() << "makes a tensor of slices that may overlap";
    slices.push_back(bytes);
    Value into = getInsertedInto(value);
    if (!into)
      break;
    value = stripReshapes(into);
  }
  if (count != cast<RankedTensorType>(value.getType()).getNumElements())
    return last->emitOpError() << "makes a tensor of slices that are not all of it, into none";
  return success();
}

/// Checks that a kernel that inserts into a tensor is its last user and may write its bytes.
static LogicalResult checkInsertions(func::FuncOp function) {
  DenseMap<Value, unsigned> results; // how many have a value's bytes
  for (Value value : function.getBody().front().getTerminator()->getOperands())
    ++results[getOwner(value)];
  DenseSet<Value> continued; // results that more is inserted into
  for (auto kernel : function.getOps<schedule::KernelOp>())
    for (Value result : kernel.getResults())
      if (Value into = getInsertedInto(result); into && getInsertion(result))
        continued.insert(stripReshapes(into));
  for (auto kernel : function.getOps<schedule::KernelOp>())
    for (Value result : kernel.getResults()) {
      if (isOfSlices(result) && !continued.contains(result) && failed(checkWhole(result)))
        return failure();
      Value into = getInsertedInto(result);
      if (!into)
        continue;
      auto refuse = [&](StringRef why) {
        return kernel.emitOpError()
               << "inserts into a tensor " << why << "; let it insert into a copy";
      };
      while (into.hasOneUse() && isReshape(into.getDefiningOp()))
        into = into.getDefiningOp()->getOperand(0);
      if (!into.hasOneUse())
        return refuse("that has other uses");
      auto argument = dyn_cast<BlockArgument>(getOwner(into));
      bool isMade = getYieldedScatter(result) && into.getDefiningOp<schedule::KernelOp>();
      if (argument ? results.lookup(argument) != 1 ||
                         !function.getArgAttr(argument.getArgNumber(), schedule::donateAttrName)
                   : !isMade && !isOfSlices(into))
        return refuse("that is not a donated argument on its way to one result");
    }
  return success();
}

/// Gives concatenations buffers, and their parts views of these; the outer ones first.
LogicalResult LowerKernels::placeParts(Block &body, OpBuilder &builder,
                                       DenseMap<Value, Value> &buffers) {
  for (Operation &op : llvm::reverse(body)) {
    auto concat = dyn_cast<tensor::ConcatOp>(op);
    if (!concat)
      continue;
    if (!liesInPlace(concat, profile))
      return concat.emitOpError() << "has operands that do not follow one another in memory where "
                                     "target "
                                  << profile.name
                                  << " can bind them; weir-generalize-tensors "
                                     "gathers them";
    Value &whole = buffers[concat];
    if (!whole)
      whole = memref::AllocOp::create(builder, op.getLoc(), getFlatType(concat.getType()));
    Value buffer = whole;
    int64_t begin = 0;
    for (OpOperand &operand : concat->getOpOperands()) {
      Value part = stripReshapes(operand.get());
      if (!isa_and_nonnull<schedule::KernelOp, tensor::ConcatOp>(part.getDefiningOp()) ||
          getInsertedInto(part) || buffers.contains(part))
        return concat.emitOpError() << "operand " << operand.getOperandNumber()
                                    << " is not a value that a kernel makes for it alone; "
                                       "weir-form-kernels inserts a copy";
      int64_t count = cast<RankedTensorType>(part.getType()).getNumElements();
      Attribute offset = builder.getIndexAttr(begin), size = builder.getIndexAttr(count),
                stride = builder.getIndexAttr(1);
      buffers[part] = memref::SubViewOp::create(builder, op.getLoc(), buffer, OpFoldResult(offset),
                                                OpFoldResult(size), OpFoldResult(stride));
      begin += count;
    }
  }
  return success();
}

/// Creates, before `function`, one of its name on flat buffers with an empty list of commands.
static func::FuncOp createLowered(func::FuncOp function) {
  OpBuilder builder(function);
  SmallVector<Type> types;
  SmallVector<DictionaryAttr> attributes;
  auto addArgument = [&](Type type, DictionaryAttr given, bool isResult) {
    NamedAttrList list(given);
    list.set(schedule::shapeAttrName, TypeAttr::get(type));
    if (isResult)
      list.set(schedule::resultAttrName, builder.getUnitAttr());
    types.push_back(getFlatType(type));
    attributes.push_back(list.getDictionary(function.getContext()));
  };
  for (BlockArgument argument : function.getArguments())
    addArgument(argument.getType(), function.getArgAttrDict(argument.getArgNumber()), false);
  for (auto [index, type] : llvm::enumerate(function.getResultTypes()))
    addArgument(type, function.getResultAttrDict(index), true);
  auto lowered = func::FuncOp::create(builder, function.getLoc(), function.getName(),
                                      builder.getFunctionType(types, {}));
  lowered.setAllArgAttrs(attributes);
  lowered->setAttr(schedule::entryAttrName, builder.getUnitAttr());
  if (Attribute segment = function->getAttr(schedule::segmentAttrName))
    lowered->setAttr(schedule::segmentAttrName, segment);
  builder.setInsertionPointToStart(lowered.addEntryBlock());
  auto commands = schedule::CommandsOp::create(builder, function.getLoc());
  func::ReturnOp::create(builder, function.getBody().front().getTerminator()->getLoc());
  builder.createBlock(&commands.getBody());
  return lowered;
}

/// Gives the arguments of `function`, and the values that it returns, their buffers: arguments
/// of `lowered`.
static LogicalResult bindArguments(func::FuncOp function, func::FuncOp lowered,
                                   DenseMap<Value, Value> &buffers) {
  for (BlockArgument argument : function.getArguments())
    buffers[argument] = lowered.getArgument(argument.getArgNumber());
  Operation *terminator = function.getBody().front().getTerminator();
  for (auto [index, value] : llvm::enumerate(terminator->getOperands())) {
    bool isInserted = getInsertedInto(stripReshapes(value)) != nullptr; // else a bare argument
    unsigned number = function.getNumArguments() + index;
    Value owner = getOwner(value);
    if (auto argument = dyn_cast<BlockArgument>(owner); argument && isInserted) {
      lowered.setArgAttr(number, schedule::donatedAttrName,
                         OpBuilder(lowered).getI64IntegerAttr(argument.getArgNumber()));
      continue;
    }
    if (!isa_and_nonnull<schedule::KernelOp, tensor::ConcatOp>(owner.getDefiningOp()) ||
        buffers.contains(owner))
      return terminator->emitOpError() << "operand " << index
                                       << " is not a value that a kernel "
                                          "makes for it alone; weir-form-kernels inserts a copy";
    buffers[owner] = lowered.getArgument(number);
  }
  return success();
}

/// Adds the dispatch of a kernel, and allocates the results that have no buffer yet. A kernel that
/// launches nothing has no dispatch.
LogicalResult LowerKernels::addDispatch(schedule::KernelOp kernel, Lowering &lowering) {
  FailureOr<Kernel> emitted = getKernel(kernel);
  if (failed(emitted))
    return failure();
  DenseMap<Value, Value> &buffers = lowering.buffers;
  for (Value result : kernel.getResults())
    if (Value into = getInsertedInto(result))
      buffers[result] = buffers.lookup(into);
    else if (!buffers.contains(result))
      buffers[result] = memref::AllocOp::create(lowering.allocations, kernel.getLoc(),
                                                getFlatType(result.getType()));
  auto spare = kernel->getAttrOfType<IntegerAttr>(spareAttrName);
  if (!spare) {
    lowering.maker = kernel;
    lowering.makerOperands = emitted->launch.operands;
  }
  if (!emitted->launch.launches)
    return success();
  SmallVector<Value> operands;
  for (unsigned operand : emitted->launch.operands) {
    unsigned inputs = kernel.getInputs().size();
    operands.push_back(buffers.lookup(operand < inputs ? kernel.getInputs()[operand]
                                                       : kernel.getResult(operand - inputs)));
  }
  OpBuilder &list = lowering.commands;
  auto dispatch = schedule::DispatchOp::create(list, kernel.getLoc(), emitted->symbol,
                                               list.getDenseI64ArrayAttr(emitted->launch.grid),
                                               operands, /*wave=*/std::nullopt);
  if (!spare)
    return success();
  if (!lowering.maker)
    return kernel.emitOpError("is a spare with no kernel before it");
  const unsigned *made = llvm::find(lowering.makerOperands,
                                    unsigned(lowering.maker.getInputs().size() + spare.getInt()));
  dispatch->setAttr(spareAttrName, list.getI64IntegerAttr(made - lowering.makerOperands.begin()));
  return success();
}

LogicalResult LowerKernels::lowerFunction(func::FuncOp function) {
  if (failed(checkInsertions(function)))
    return failure();
  func::FuncOp lowered = createLowered(function);
  Block &body = function.getBody().front();
  Block &block = lowered.getBody().front();
  Lowering lowering(cast<schedule::CommandsOp>(block.front()));
  DenseMap<Value, Value> &buffers = lowering.buffers;
  if (failed(bindArguments(function, lowered, buffers)) ||
      failed(placeParts(body, lowering.allocations, buffers)))
    return failure();
  for (Operation &op : body.without_terminator()) {
    if (isReshape(&op)) {
      buffers[op.getResult(0)] = buffers.lookup(op.getOperand(0));
    } else if (auto constant = dyn_cast<arith::ConstantOp>(op)) {
      FailureOr<memref::GlobalOp> global = getGlobal(constant);
      if (failed(global))
        return failure();
      buffers[constant] = memref::GetGlobalOp::create(lowering.allocations, op.getLoc(),
                                                      global->getType(), global->getSymName());
    } else if (auto kernel = dyn_cast<schedule::KernelOp>(op)) {
      if (failed(addDispatch(kernel, lowering)))
        return failure();
    } else if (!isa<tensor::ConcatOp>(op)) {
      return op.emitOpError("is not a kernel, constant, reshape or concatenation");
    }
  }
  for (Operation &op : llvm::make_early_inc_range(block))
    if (isa<memref::AllocOp, memref::GetGlobalOp, memref::SubViewOp>(op) && op.use_empty())
      op.erase();
  symbols->erase(function);
  symbols->insert(lowered);
  return success();
}

void LowerKernels::runOnOperation() {
  FailureOr<Profile> found = getProfile(getOperation());
  if (failed(found))
    return signalPassFailure();
  profile = *found;
  kernels.clear();
  globals.clear();
  symbols.emplace(getOperation());
  suffixes.clear();
  // Hand-written kernels may hold named ops.
  IRRewriter rewriter(&getContext());
  SmallVector<linalg::LinalgOp> named;
  getOperation().walk([&](linalg::LinalgOp op) {
    if (!isa<linalg::GenericOp>(op))
      named.push_back(op);
  });
  for (linalg::LinalgOp op : named) {
    rewriter.setInsertionPoint(op);
    if (failed(linalg::generalizeNamedOp(rewriter, op))) {
      op->emitOpError("has no generic form, so no kernel computes it");
      return signalPassFailure();
    }
  }
  for (auto function : llvm::make_early_inc_range(getOperation().getOps<func::FuncOp>()))
    if (failed(lowerFunction(function)))
      return signalPassFailure();
  getOperation()->setAttr(gpu::GPUDialect::getContainerModuleAttrName(),
                          UnitAttr::get(&getContext()));
}

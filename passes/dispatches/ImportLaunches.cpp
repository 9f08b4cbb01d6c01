//===- ImportLaunches.cpp - Host code of others becomes a command list ----===//
//
// A function's launches, copies and fills move, in the program's order, into
// one list where the last of them stood. What computes their operands stays
// before it; what frees memory goes behind it. Tokens and waits are dropped:
// they permit overlap, and hazards say later which of it is right.
//
//===----------------------------------------------------------------------===//

#include "dialects/Schedule/Schedule.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Interfaces/CallInterfaces.h"
#include "mlir/Pass/Pass.h"
#include "weir/Analysis/CommandList.h"

#include <array>
#include <deque>
#include <map>

namespace weir {
#define GEN_PASS_DEF_IMPORTLAUNCHESPASS
#include "passes/Passes.h.inc"
} // namespace weir

using namespace mlir;
using namespace weir;

namespace {
using Sizes = std::array<int64_t, 3>;

/// The number of complete commands of each stream at some point. A stream is a run of
/// commands, each complete when the next begins.
using Clock = std::map<int64_t, int64_t>;

/// The order of commands that the source's tokens and waits ask for.
class TokenOrder {
public:
  /// Takes the operations of the source in its order.
  void add(Operation *op, bool isCommand);
  /// Whether command `to` begins only after command `from` is complete. Both
  /// count the commands added.
  bool isOrdered(int64_t from, int64_t to) const;

private:
  struct Start {
    int64_t stream, number; ///< this command's place
    Clock before;
  };
  std::vector<Start> starts;
  std::vector<int64_t> lengths; ///< of the streams
  DenseMap<Value, Clock> ready; ///< by token
  Clock host;
};

/// Sets the sizes that launches give to kernels that state none.
class KernelSizes {
public:
  /// Returns the kernel with workgroups of these sizes: itself, or a copy when another
  /// launch gave it others. It states its grid while all launches agree on it.
  SymbolRefAttr getKernel(gpu::LaunchFuncOp launch, gpu::GPUFuncOp kernel, const Sizes &workgroup,
                          const Sizes &grid);

private:
  DenseMap<Operation *, std::map<Sizes, gpu::GPUFuncOp>> known;
  DenseMap<Operation *, Sizes> grids;
};

class Importer {
public:
  explicit Importer(func::FuncOp function) : function(function) {}

  /// Reports everything that cannot be imported.
  LogicalResult check();
  /// Makes the command list; `check` must have succeeded.
  void import(KernelSizes &kernels);
  /// Warns of hazards that the source leaves unordered; `import` must have run.
  LogicalResult warnOfRaces(Effects &effects);

private:
  InFlightDiagnostic fail(Operation *op) {
    result = failure();
    return op->emitOpError();
  }
  void fold(Operation *op);
  std::optional<int64_t> getConstant(Value value) const;
  void checkShape();
  void checkOther(Operation *op);
  void checkCommand(Operation *op);
  void checkLaunch(gpu::LaunchFuncOp launch);
  std::optional<Sizes> getSizes(gpu::LaunchFuncOp launch, StringRef what, gpu::KernelDim3 values);

  func::FuncOp function;
  LogicalResult result = success();
  SymbolTableCollection symbols;
  DenseMap<Value, Attribute> constants;
  DenseMap<Value, Operation *> freed; ///< by allocation
  SmallVector<Operation *> commands;
  SmallVector<Operation *> others; ///< waits, allocations with tokens, and frees
  size_t before = 0;               ///< of the others, so many stand before the last command
  struct Launch {
    gpu::GPUFuncOp kernel;
    Sizes grid, workgroup;
  };
  DenseMap<Operation *, Launch> launches;
  schedule::CommandsOp list;
  TokenOrder order;
  bool hasTokens = false;
};

struct ImportLaunches : weir::impl::ImportLaunchesPassBase<ImportLaunches> {
  using ImportLaunchesPassBase::ImportLaunchesPassBase;

  void runOnOperation() override;
};
} // namespace

//===----------------------------------------------------------------------===//
// TokenOrder
//===----------------------------------------------------------------------===//

static void join(Clock &clock, const Clock &other) {
  for (auto [stream, number] : other)
    clock[stream] = std::max(clock[stream], number);
}

void TokenOrder::add(Operation *op, bool isCommand) {
  Clock clock = host;
  Value token;
  if (auto async = dyn_cast<gpu::AsyncOpInterface>(op)) {
    for (Value dependency : async.getAsyncDependencies())
      join(clock, ready[dependency]);
    token = async.getAsyncToken();
  }
  if (isCommand) {
    auto whole =
        llvm::find_if(clock, [&](auto entry) { return entry.second == lengths[entry.first]; });
    int64_t stream = whole == clock.end() ? int64_t(lengths.size()) : whole->first;
    if (whole == clock.end())
      lengths.push_back(0);
    starts.push_back({stream, lengths[stream], clock});
    clock[stream] = ++lengths[stream];
  }
  if (token)
    ready[token] = std::move(clock);
  else
    host = std::move(clock);
}

bool TokenOrder::isOrdered(int64_t from, int64_t to) const {
  auto complete = starts[to].before.find(starts[from].stream);
  return complete != starts[to].before.end() && starts[from].number < complete->second;
}

//===----------------------------------------------------------------------===//
// KernelSizes
//===----------------------------------------------------------------------===//

static DenseI32ArrayAttr toAttribute(MLIRContext *context, const Sizes &sizes) {
  return DenseI32ArrayAttr::get(context, {int32_t(sizes[0]), int32_t(sizes[1]), int32_t(sizes[2])});
}

SymbolRefAttr KernelSizes::getKernel(gpu::LaunchFuncOp launch, gpu::GPUFuncOp kernel,
                                     const Sizes &workgroup, const Sizes &grid) {
  MLIRContext *context = kernel.getContext();
  auto [copies, isFirst] = known.try_emplace(kernel);
  gpu::GPUFuncOp &sized = copies->second[workgroup];
  if (!sized) {
    sized = kernel;
    if (!isFirst) {
      sized = kernel.clone();
      SymbolTable(kernel->getParentOp()).insert(sized);
    }
    sized.setKnownBlockSizeAttr(toAttribute(context, workgroup));
  }
  auto [stated, isNew] = grids.try_emplace(sized, grid);
  if (isNew)
    sized.setKnownGridSizeAttr(toAttribute(context, grid));
  else if (stated->second != grid)
    sized.setKnownGridSizeAttr(nullptr);
  return SymbolRefAttr::get(launch.getKernelModuleName(),
                            {FlatSymbolRefAttr::get(sized.getNameAttr())});
}

//===----------------------------------------------------------------------===//
// Operations that can be imported
//===----------------------------------------------------------------------===//

static bool isCommand(Operation *op) {
  return isa<gpu::LaunchFuncOp, gpu::MemcpyOp, gpu::MemsetOp, memref::CopyOp>(op);
}

static bool isToken(Type type) { return isa<gpu::AsyncTokenType>(type); }

/// Remembers what `op` computes from constants: grids are often computed.
void Importer::fold(Operation *op) {
  if (op->getNumRegions() || !isMemoryEffectFree(op) ||
      !llvm::all_of(op->getResultTypes(), [](Type type) { return type.isIntOrIndex(); }))
    return;
  SmallVector<Attribute> operands;
  for (Value operand : op->getOperands())
    operands.push_back(constants.lookup(operand));
  SmallVector<OpFoldResult> folded;
  if (failed(op->fold(operands, folded)) || folded.size() != op->getNumResults())
    return;
  for (auto [value, fold] : llvm::zip_equal(op->getResults(), folded))
    if (Attribute constant =
            isa<Attribute>(fold) ? cast<Attribute>(fold) : constants.lookup(cast<Value>(fold)))
      constants[value] = constant;
}

std::optional<int64_t> Importer::getConstant(Value value) const {
  auto constant = dyn_cast_or_null<IntegerAttr>(constants.lookup(value));
  return constant ? std::optional(constant.getValue().getSExtValue()) : std::nullopt;
}

/// Checks that the function is one block with all launches in it.
void Importer::checkShape() {
  if (!function.getBody().hasOneBlock())
    fail(function) << "launches kernels or copies, and has "
                   << function.getBody().getBlocks().size()
                   << " blocks; only a straight-line function becomes a command list";
  function.walk([&](Operation *op) {
    if (auto present = dyn_cast<schedule::CommandsOp>(op))
      fail(present) << "stands beside launches; a function has one command list";
    if (isa<gpu::LaunchOp>(op))
      fail(op) << "has its kernel inside; run gpu-kernel-outlining first";
    Operation *parent = op->getParentOp();
    if (isCommand(op) && parent != function)
      (fail(op) << "is inside another operation; only a straight-line function becomes a command "
                   "list")
              .attachNote(parent->getLoc())
          << "inside this '" << parent->getName() << "'";
  });
}

std::optional<Sizes> Importer::getSizes(gpu::LaunchFuncOp launch, StringRef what,
                                        gpu::KernelDim3 values) {
  Sizes sizes = {1, 1, 1};
  bool ok = true;
  std::array<Value, 3> axes = {values.x, values.y, values.z};
  for (auto [axis, value, size] : llvm::zip_equal(StringRef("xyz"), axes, sizes)) {
    std::optional<int64_t> constant = getConstant(value);
    if (constant && *constant >= 1 && *constant <= std::numeric_limits<int32_t>::max()) {
      size = *constant;
      continue;
    }
    ok = false;
    InFlightDiagnostic error = fail(launch) << what << " size " << Twine(axis);
    if (constant)
      error << " is " << *constant << ", not in [1, 2^31)";
    else
      error << " is not a constant";
    error.attachNote(value.getLoc()) << "it is this value";
  }
  return ok ? std::optional(sizes) : std::nullopt;
}

void Importer::checkLaunch(gpu::LaunchFuncOp launch) {
  if (launch.hasClusterSize())
    fail(launch) << "has a cluster size, which a dispatch does not";
  if (launch.getAsyncObject())
    fail(launch) << "is given a stream, of whose other users nothing is known";
  if (Value bytes = launch.getDynamicSharedMemorySize(); bytes && getConstant(bytes) != 0)
    fail(launch) << "has dynamic workgroup memory, which a dispatch does not";
  for (auto [index, operand] : llvm::enumerate(launch.getKernelOperands())) {
    Type type = operand.getType();
    if (!isa<BaseMemRefType>(type) && !getElementTypeOrSelf(type).isIntOrIndexOrFloat())
      fail(launch) << "operand " << index << " is " << type << ", neither a memref nor a scalar";
  }
  std::optional<Sizes> grid = getSizes(launch, "grid", launch.getGridSizeOperandValues());
  std::optional<Sizes> sizes = getSizes(launch, "workgroup", launch.getBlockSizeOperandValues());
  auto kernel = symbols.lookupNearestSymbolFrom<gpu::GPUFuncOp>(launch, launch.getKernel());
  if (!kernel) {
    fail(launch) << "launches " << launch.getKernel()
                 << ", which is not a gpu.func; its effects are not known";
    return;
  }
  if (!grid || !sizes)
    return;
  auto agree = [&](StringRef what, std::optional<ArrayRef<int32_t>> stated, const Sizes &given) {
    if (stated && !llvm::equal(*stated, given))
      fail(launch) << "has a " << what << " of [" << ArrayRef(given) << "], its kernel states ["
                   << *stated << "]";
  };
  agree("grid", kernel.getKnownGridSize(), *grid);
  agree("workgroup", kernel.getKnownBlockSize(), *sizes);
  launches[launch] = {kernel, *grid, *sizes};
}

void Importer::checkCommand(Operation *op) {
  commands.push_back(op);
  before = others.size();
  if (auto launch = dyn_cast<gpu::LaunchFuncOp>(op))
    checkLaunch(launch);
  for (Value operand : op->getOperands()) {
    if (!isa<BaseMemRefType>(operand.getType()))
      continue;
    auto found = freed.find(getView(operand).allocation.value);
    if (found != freed.end())
      (fail(op) << "uses memory that was freed").attachNote(found->second->getLoc())
          << "it is freed here";
  }
}

/// Checks that every other operation can stay before all commands, or, if it frees memory,
/// go behind them.
void Importer::checkOther(Operation *op) {
  if (isa<gpu::WaitOp>(op)) {
    others.push_back(op);
  } else if (isa<gpu::AllocOp>(op)) {
    if (llvm::any_of(op->getOperandTypes(), isToken) || llvm::any_of(op->getResultTypes(), isToken))
      others.push_back(op);
  } else if (isa<memref::DeallocOp, gpu::DeallocOp>(op)) {
    for (Value operand : op->getOperands())
      if (isa<BaseMemRefType>(operand.getType()))
        freed[getView(operand).allocation.value] = op;
    others.push_back(op);
  } else if (isa<CallOpInterface>(op)) {
    fail(op) << "may launch, and touch any memory; inline it first";
  } else if (llvm::any_of(op->getOperandTypes(), isToken) ||
             llvm::any_of(op->getResultTypes(), isToken)) {
    fail(op) << "takes part in the order of launches and cannot be imported";
  } else if (!isMemoryEffectFree(op) && !hasSingleEffect<MemoryEffects::Allocate>(op) &&
             !isa<gpu::HostRegisterOp>(op)) {
    // Before the first command it stays where it is.
    if (!commands.empty())
      (fail(op) << "is host code that may touch memory, which a command list does not hold")
              .attachNote(commands.back()->getLoc())
          << "it stands after this command";
    else if (!getEffectsRecursively(op))
      fail(op) << "may do anything, launch included, and cannot stand beside a command list";
  }
}

LogicalResult Importer::check() {
  checkShape();
  if (failed(result))
    return failure();
  for (Operation &op : function.getBody().front()) {
    fold(&op);
    isCommand(&op) ? checkCommand(&op) : checkOther(&op);
    if (!isCommand(&op) && !isa<gpu::WaitOp, gpu::AllocOp, gpu::DeallocOp>(op))
      continue;
    order.add(&op, isCommand(&op));
    hasTokens |= llvm::any_of(op.getResultTypes(), isToken);
  }
  return result;
}

//===----------------------------------------------------------------------===//
// The command list
//===----------------------------------------------------------------------===//

void Importer::import(KernelSizes &kernels) {
  OpBuilder builder(commands.back());
  list = schedule::CommandsOp::create(builder, function.getLoc());
  Operation *end = list;
  builder.createBlock(&list.getBody());
  std::optional<int64_t> noWave;
  for (Operation *op : commands) {
    Location loc = op->getLoc();
    if (auto launch = dyn_cast<gpu::LaunchFuncOp>(op)) {
      const Launch &known = launches[op];
      schedule::DispatchOp::create(
          builder, loc, kernels.getKernel(launch, known.kernel, known.workgroup, known.grid),
          builder.getDenseI64ArrayAttr(known.grid), launch.getKernelOperands(), noWave);
    } else if (auto copy = dyn_cast<gpu::MemcpyOp>(op)) {
      schedule::CopyOp::create(builder, loc, copy.getSrc(), copy.getDst(), noWave);
    } else if (auto copy = dyn_cast<memref::CopyOp>(op)) {
      schedule::CopyOp::create(builder, loc, copy.getSource(), copy.getTarget(), noWave);
    } else {
      auto set = cast<gpu::MemsetOp>(op);
      schedule::FillOp::create(builder, loc, set.getValue(), set.getDst(), noWave);
    }
  }
  SmallVector<Operation *> dead(commands);
  for (auto [index, op] : llvm::enumerate(others)) {
    if (isa<memref::DeallocOp, gpu::DeallocOp>(op) && index < before) {
      op->moveAfter(end);
      end = op;
    }
    builder.setInsertionPointAfter(op);
    if (auto alloc = dyn_cast<gpu::AllocOp>(op)) {
      auto plain = gpu::AllocOp::create(builder, op->getLoc(), alloc.getType(), Type(),
                                        ValueRange(), alloc.getDynamicSizes(),
                                        alloc.getSymbolOperands(), alloc.getHostShared());
      alloc.getMemref().replaceAllUsesWith(plain.getMemref());
    } else if (auto dealloc = dyn_cast<gpu::DeallocOp>(op)) {
      end =
          gpu::DeallocOp::create(builder, op->getLoc(), Type(), ValueRange(), dealloc.getMemref());
    }
    if (!isa<memref::DeallocOp>(op))
      dead.push_back(op);
  }
  // Tokens tie them together; everything else lets go of them.
  for (Operation *op : dead)
    op->dropAllUses();
  for (Operation *op : dead)
    op->erase();
}

LogicalResult Importer::warnOfRaces(Effects &effects) {
  if (!hasTokens)
    return success();
  Views views;
  FailureOr<CommandList> commands = collectAccesses(list, effects, views);
  if (failed(commands))
    return failure();
  for (const Hazard &hazard : findHazards(commands->accesses)) {
    const OperandAccess *from = commands->find(hazard.from, hazard.fromOperand);
    const OperandAccess *to = commands->find(hazard.to, hazard.toOperand);
    // Two arguments may be the same bytes, but the source tells us nothing of that.
    if (from->allocation != to->allocation || order.isOrdered(hazard.from, hazard.to))
      continue;
    InFlightDiagnostic warning = emitWarning(commands->dispatches[hazard.to]->getLoc())
                                 << "operand " << hazard.toOperand << " has a "
                                 << stringifyHazardKind(toAttribute(hazard.kind))
                                 << " hazard with an earlier command, and no token orders them: a "
                                    "race in the source, which the program's order settles";
    warning.attachNote(commands->dispatches[hazard.from]->getLoc())
        << "with operand " << hazard.fromOperand << " of this one";
  }
  return success();
}

/// Whether a function of the host does no more than to copy: it has `memref.copy`, and else only
/// allocates, frees and computes. Where other host code touches memory, its copies are host code,
/// too.
static bool onlyCopies(func::FuncOp function) {
  if (!function.getBody().hasOneBlock())
    return false;
  Block &body = function.getBody().front();
  return !body.getOps<memref::CopyOp>().empty() && llvm::all_of(body, [](Operation &op) {
    return isa<memref::CopyOp, memref::DeallocOp, func::ReturnOp>(op) || isMemoryEffectFree(&op) ||
           hasSingleEffect<MemoryEffects::Allocate>(&op);
  });
}

void ImportLaunches::runOnOperation() {
  llvm::SetVector<Operation *> functions;
  bool ok = true;
  getOperation().walk<WalkOrder::PreOrder>([&](Operation *op) {
    if (isa<gpu::GPUModuleOp>(op))
      return WalkResult::skip(); // code of the device
    if (auto function = dyn_cast<func::FuncOp>(op); function && onlyCopies(function))
      functions.insert(function);
    if (!isa<gpu::LaunchFuncOp, gpu::LaunchOp, gpu::MemcpyOp, gpu::MemsetOp>(op))
      return WalkResult::advance();
    if (auto function = op->getParentOfType<func::FuncOp>())
      functions.insert(function);
    else
      ok = (op->emitOpError("is in no func.func and cannot be imported"), false);
    return WalkResult::advance();
  });
  std::deque<Importer> importers; // they don't move
  for (Operation *function : functions)
    ok &= succeeded(importers.emplace_back(cast<func::FuncOp>(function)).check());
  if (!ok)
    return signalPassFailure();
  KernelSizes kernels;
  for (Importer &importer : importers)
    importer.import(kernels);
  Effects effects(getOperation());
  for (Importer &importer : importers)
    if (failed(importer.warnOfRaces(effects)))
      signalPassFailure();
}

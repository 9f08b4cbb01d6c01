//===- StageEmitter.cpp - Kernels of several stages -----------------------===//
//
// A workgroup, which is one invocation, has the number of a group. It computes for it the
// workgroups of each stage, in turn. What another stage reads is in the invocation's own memory,
// the group's elements alone; if it is a result of the kernel as well, it is stored in both places.
//
//===----------------------------------------------------------------------===//

#include "weir/Kernels/Stages.h"

#include "Shapes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"

using namespace mlir;
using namespace weir;

namespace {
class StageEmitter {
public:
  StageEmitter(schedule::KernelOp kernel, const Profile &profile, ArrayRef<Stage> stages);

  /// Emits all code. `known` are the facts of an emission before this one, or empty.
  FailureOr<gpu::GPUFuncOp> emit(OpBuilder &builder, StringRef name, std::vector<Survey> &surveys,
                                 ArrayRef<Survey> known);

  EmittedKernel launch;

private:
  schedule::KernelOp kernel;
  const Profile &profile;
  ArrayRef<Stage> stages;
  SmallVector<int64_t> groupSizes;
  std::vector<KernelDomain> domains; ///< of one group, by stage
  llvm::SmallDenseSet<Value> handed; ///< results of stages that other stages read
  DenseMap<Value, unsigned> results; ///< of the kernel, by the stage's result

  gpu::GPUFuncOp function;
  DenseMap<unsigned, Value> buffers; ///< arguments of the function, by the kernel's operand
  DenseMap<Value, Value> memories;   ///< of a group, by the stage's result

  unsigned getNumInputs() { return kernel.getInputs().size(); }
  void createFunction(OpBuilder &builder, StringRef name, ArrayRef<Survey> known);
  bool isRead(BlockArgument input, ArrayRef<Survey> known) const;
  void allocate(Value result);
  void bind(const Stage &stage, PointEmitter &emitter);
  void setGroup(PointEmitter &emitter);
};
} // namespace

StageEmitter::StageEmitter(schedule::KernelOp kernel, const Profile &profile,
                           ArrayRef<Stage> stages)
    : kernel(kernel), profile(profile), stages(stages), groupSizes(stages.front().getGroupSizes()) {
  launch.grid = {stages.front().getGroups(), 1, 1};
  for (const Stage &stage : stages) {
    domains.push_back(stage.domain);
    domains.back().fixGroup(stage.groupDims);
    for (Value input : stage.kernel.getInputs())
      if (Value made = stripReshapes(input); !isa<BlockArgument>(made))
        handed.insert(made);
  }
  for (auto [number, value] :
       llvm::enumerate(kernel.getBody().front().getTerminator()->getOperands()))
    results[stripReshapes(value)] = number;
}

/// Returns the memref that a tensor, or a group's part of it, lies in.
static MemRefType getMemory(Value tensor, int64_t groups, gpu::AddressSpace space) {
  auto type = cast<RankedTensorType>(tensor.getType());
  return MemRefType::get({type.getNumElements() / groups}, getStorageType(type.getElementType()),
                         MemRefLayoutAttrInterface{},
                         gpu::AddressSpaceAttr::get(tensor.getContext(), space));
}

/// Whether a stage reads an argument of the kernel's region.
bool StageEmitter::isRead(BlockArgument input, ArrayRef<Survey> known) const {
  for (auto [stage, survey] : llvm::zip_equal(stages, known))
    for (auto [number, value] : llvm::enumerate(stage.kernel.getInputs()))
      if (stripReshapes(value) == input && survey.buffers[number].read)
        return true;
  return false;
}

void StageEmitter::createFunction(OpBuilder &builder, StringRef name, ArrayRef<Survey> known) {
  Block &body = kernel.getBody().front();
  launch.operands.clear();
  SmallVector<Type> types;
  SmallVector<schedule::Access> accesses;
  auto add = [&](unsigned buffer, Value tensor, schedule::Access access) {
    launch.operands.push_back(buffer);
    types.push_back(getMemory(tensor, 1, gpu::AddressSpace::Global));
    accesses.push_back(access);
  };
  for (BlockArgument input : body.getArguments())
    if (known.empty() || isRead(input, known))
      add(input.getArgNumber(), input, schedule::Access::read);
  for (auto [number, result] : llvm::enumerate(kernel.getResults()))
    add(getNumInputs() + number, result, schedule::Access::write);
  function = createKernelFunction(builder, kernel, name, types, profile);
  buffers.clear();
  for (auto [index, buffer] : llvm::enumerate(launch.operands)) {
    buffers[buffer] = function.getArgument(index);
    bool writes = accesses[index] == schedule::Access::write;
    function.setArgAttr(index, schedule::effectAttrName,
                        schedule::EffectAttr::get(builder.getContext(), accesses[index],
                                                  /*coversAll=*/writes, /*slice=*/{}));
  }
}

/// Allocates a group's part of what a stage makes.
void StageEmitter::allocate(Value result) {
  OpBuilder b = OpBuilder::atBlockEnd(&function.getBody().front());
  memories[result] = memref::AllocaOp::create(
      b, result.getLoc(), getMemory(result, launch.grid[0], gpu::AddressSpace::Private));
}

/// Lets a stage's operands be in the function's arguments and in the group's memory.
void StageEmitter::bind(const Stage &stage, PointEmitter &emitter) {
  schedule::KernelOp inner = stage.kernel;
  for (auto [input, argument] :
       llvm::zip_equal(inner.getInputs(), inner.getBody().getArguments())) {
    Value made = stripReshapes(input);
    if (auto given = dyn_cast<BlockArgument>(made)) {
      emitter.setMemory(argument.getArgNumber(), buffers.lookup(given.getArgNumber()));
      continue;
    }
    emitter.setMemory(argument.getArgNumber(), memories.lookup(made));
    emitter.setOfGroup(argument, *getGroupedDims(stage, argument));
  }
  unsigned numInputs = inner.getInputs().size();
  for (auto [number, result] : llvm::enumerate(inner.getResults())) {
    auto returned = results.find(result);
    Value whole =
        returned == results.end() ? Value() : buffers.lookup(getNumInputs() + returned->second);
    if (!handed.contains(result)) {
      emitter.setMemory(numInputs + number, whole);
      continue;
    }
    allocate(result);
    emitter.setMemory(numInputs + number, memories.lookup(result));
    emitter.setOfGroup(result, *getGroupedDims(stage, getYielded(result)));
    if (whole)
      emitter.setWhole(number, whole);
  }
}

/// Sets the coordinates of the group: the row-major digits of the workgroup's number.
void StageEmitter::setGroup(PointEmitter &emitter) {
  OpBuilder &b = emitter.builder();
  Location loc = emitter.loc;
  Value rest = gpu::BlockIdOp::create(b, loc, gpu::Dimension::x);
  for (size_t i = groupSizes.size(); i-- > 0;) {
    Value digit = rest;
    if (i > 0) {
      Value size = emitter.indexConstant(groupSizes[i]);
      digit = arith::RemUIOp::create(b, loc, rest, size);
      rest = arith::DivUIOp::create(b, loc, rest, size);
    }
    emitter.setCoordinate(PointEmitter::groupCoordinate + i, digit);
  }
}

FailureOr<gpu::GPUFuncOp> StageEmitter::emit(OpBuilder &builder, StringRef name,
                                             std::vector<Survey> &surveys, ArrayRef<Survey> known) {
  createFunction(builder, name, known);
  Block *body = &function.getBody().front();
  bool hasFailed = false;
  for (auto [number, stage] : llvm::enumerate(stages)) {
    PointEmitter emitter(stage.kernel, domains[number], profile, surveys[number],
                         known.empty() ? nullptr : &known[number]);
    emitter.setStage();
    bind(stage, emitter);
    emitter.pushScope(OpBuilder::atBlockEnd(body));
    setGroup(emitter);
    EmittedKernel ofGroup; // the grid is the kernel's
    emitShape(emitter, ofGroup);
    emitter.popScope();
    hasFailed |= emitter.hasFailed();
  }
  OpBuilder end = OpBuilder::atBlockEnd(body);
  gpu::ReturnOp::create(end, kernel.getLoc());
  if (hasFailed) {
    function.erase();
    return failure();
  }
  function.setKnownGridSizeAttr(builder.getDenseI32ArrayAttr({int32_t(launch.grid[0]), 1, 1}));
  return function;
}

FailureOr<EmittedKernel> weir::emitStages(schedule::KernelOp kernel, OpBuilder &builder,
                                          StringRef name, const Profile &profile) {
  if (!profile.hasFreeVectors())
    return kernel.emitError() << "has stages, which target " << profile.name
                              << " does not compute: a stage is for one invocation";
  FailureOr<Stages> stages = getStages(kernel);
  if (failed(stages))
    return failure();
  StageEmitter emitter(kernel, profile, *stages);
  if (emitter.launch.grid[0] > profile.maxGrid[0])
    return kernel.emitError() << "has " << emitter.launch.grid[0] << " groups, target "
                              << profile.name << " allows " << profile.maxGrid[0];
  std::vector<Survey> surveys(stages->size()), ignored(stages->size());
  FailureOr<gpu::GPUFuncOp> first = emitter.emit(builder, name, surveys, {});
  if (failed(first))
    return failure();
  first->erase();
  if (failed(emitter.emit(builder, name, ignored, surveys)))
    return failure();
  return emitter.launch;
}

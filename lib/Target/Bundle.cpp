//===- Bundle.cpp - From an emitted module to an artifact -----------------===//
//
// Every number of a plan is read off the IR: places by aliasing, effects and
// sizes from what the emitter left on each binary. Nothing is decided here but
// where constants lie in their segment.
//
//===----------------------------------------------------------------------===//

#include "weir/Target/Bundle.h"

#include "weir/Target/Cpu.h"

#include "dialects/Schedule/Schedule.h"
#include "dialects/Schedule/Segments.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/IR/DialectResourceBlobManager.h"
#include "weir/Analysis/Aliasing.h"
#include "weir/Artifact/StoredBytes.h"
#include "weir/Target/Errors.h"
#include "weir/Target/ProfileAttr.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/ADT/TypeSwitch.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace weir;

/// Alignment of constants and values.
static constexpr int64_t packedAlignment = 256;

//===----------------------------------------------------------------------===//
// Tensors
//===----------------------------------------------------------------------===//

/// Returns the tensor that a flat buffer stands for. `shape` is its `weir.shape`, or null. The
/// buffer has the bytes that the tensor has on a device of `profile`, or its own.
static FailureOr<TensorSpec> getTensor(Operation *op, const Twine &what, Type buffer,
                                       TypeAttr shape, const Profile *profile) {
  auto memref = dyn_cast<MemRefType>(buffer);
  ShapedType type = shape ? dyn_cast<RankedTensorType>(shape.getValue()) : ShapedType(memref);
  std::optional<int64_t> bytes = type ? schedule::getByteSize(type) : std::nullopt;
  if (bytes && profile)
    bytes = getStoredBytes(*bytes, *schedule::getElementBytes(type.getElementType()), *profile);
  if (!memref || !bytes || schedule::getByteSize(memref) != bytes)
    return op->emitOpError() << what << " of type " << buffer << " is not a tensor of static shape";
  StringRef dtype = schedule::getDType(type.getElementType());
  if (dtype.empty())
    return op->emitOpError() << what << " holds " << type.getElementType()
                             << ", which tensor files cannot";
  TensorSpec tensor;
  tensor.dtype = dtype.str();
  tensor.shape.assign(type.getShape().begin(), type.getShape().end());
  return tensor;
}

/// Reads what attributes say of an argument.
static void readArgument(llvm::function_ref<Attribute(StringRef)> get, TensorSpec &tensor) {
  if (auto kind = dyn_cast_or_null<StringAttr>(get(schedule::kindAttrName)))
    tensor.kind = kind.str();
  tensor.donate = bool(get(schedule::donateAttrName));
  Attribute initial = get(schedule::initialAttrName);
  if (auto other = dyn_cast_or_null<StringAttr>(initial))
    tensor.startsAs = other.str();
  else if (auto number = dyn_cast_or_null<FloatAttr>(initial))
    tensor.startsAt = number.getValueAsDouble();
  auto memory = dyn_cast_or_null<StringAttr>(get(schedule::memoryAttrName));
  tensor.isInHost = memory && memory == "host";
}

static FailureOr<EntrySpec> getEntry(func::FuncOp function, const Profile &profile) {
  EntrySpec entry;
  entry.name = function.getName().str();
  llvm::StringSet<> names;
  for (BlockArgument argument : function.getArguments()) {
    unsigned index = argument.getArgNumber();
    auto get = [&](StringRef name) { return function.getArgAttr(index, name); };
    FailureOr<TensorSpec> tensor =
        getTensor(function, "argument " + Twine(index), argument.getType(),
                  dyn_cast_or_null<TypeAttr>(get(schedule::shapeAttrName)), &profile);
    if (failed(tensor))
      return failure();
    bool isResult = bool(get(schedule::resultAttrName));
    std::vector<TensorSpec> &list = isResult ? entry.results : entry.arguments;
    auto name = dyn_cast_or_null<StringAttr>(get(schedule::nameAttrName));
    tensor->name = name ? name.str() : (isResult ? "result" : "arg") + std::to_string(list.size());
    if (!names.insert((isResult ? "result " : "argument ") + tensor->name).second)
      return function.emitOpError() << "has two " << (isResult ? "results" : "arguments")
                                    << " of the name '" << tensor->name << "'";
    if (!isResult)
      readArgument(get, *tensor);
    list.push_back(std::move(*tensor));
  }
  return entry;
}

/// Returns an entry that consists of segments, as `weir.programs` describes it.
static EntrySpec getEntry(StringAttr name, DictionaryAttr program) {
  EntrySpec entry;
  entry.name = name.str();
  auto type = cast<FunctionType>(program.getAs<TypeAttr>("type").getValue());
  auto read = [](TypeRange types, ArrayAttr attributes, StringRef prefix, bool isArgument,
                 std::vector<TensorSpec> &list) {
    for (auto [type, attribute] : llvm::zip_equal(types, attributes)) {
      auto tensor = cast<RankedTensorType>(type);
      auto get = [&](StringRef key) { return cast<DictionaryAttr>(attribute).get(key); };
      TensorSpec spec;
      spec.dtype = schedule::getDType(tensor.getElementType()).str();
      spec.shape.assign(tensor.getShape().begin(), tensor.getShape().end());
      auto known = dyn_cast_or_null<StringAttr>(get(schedule::nameAttrName));
      spec.name = known ? known.str() : (prefix + Twine(list.size())).str();
      if (isArgument)
        readArgument(get, spec);
      list.push_back(std::move(spec));
    }
  };
  read(type.getInputs(), program.getAs<ArrayAttr>("arg_attrs"), "arg", true, entry.arguments);
  read(type.getResults(), program.getAs<ArrayAttr>("res_attrs"), "result", false, entry.results);
  return entry;
}

/// Lays out the entries' constants one after the other, in the order of the module.
static FailureOr<std::vector<ConstantSpec>> getConstants(ModuleOp module) {
  llvm::DenseSet<StringAttr> used;
  for (auto function : module.getOps<func::FuncOp>())
    if (function->hasAttr(schedule::entryAttrName))
      function.walk([&](memref::GetGlobalOp op) { used.insert(op.getNameAttr().getAttr()); });
  std::vector<ConstantSpec> constants;
  int64_t end = 0;
  for (auto global : module.getOps<memref::GlobalOp>()) {
    if (!used.contains(global.getSymNameAttr()))
      continue;
    FailureOr<TensorSpec> tensor =
        getTensor(global, "constant", global.getType(),
                  global->getAttrOfType<TypeAttr>(schedule::shapeAttrName), /*profile=*/nullptr);
    if (failed(tensor))
      return failure();
    if (!global.getConstant() || !global.getInitialValue())
      return global.emitOpError("has no value, but a dispatch may read it");
    tensor->name = global.getSymName().str();
    int64_t offset = llvm::alignTo(end, packedAlignment);
    int64_t bytes = *schedule::getByteSize(global.getType());
    if (offset < end || llvm::AddOverflow(offset, bytes, end))
      return global.emitOpError("does not fit: the constants need more than 2^63 - 1 bytes");
    constants.push_back({std::move(*tensor), offset});
  }
  return constants;
}

ArrayRef<NamedAttribute> weir::getPrograms(ModuleOp module) {
  auto programs = module->getAttrOfType<DictionaryAttr>(schedule::programsAttrName);
  return programs ? programs.getValue() : ArrayRef<NamedAttribute>();
}

FailureOr<Manifest> weir::getManifest(ModuleOp module) {
  FailureOr<Profile> profile = getProfile(module);
  if (failed(profile))
    return failure();
  Manifest manifest;
  manifest.producer = "weir 0.1.0";
  manifest.targets.push_back(*profile);
  for (auto function : module.getOps<func::FuncOp>()) {
    if (!function->hasAttr(schedule::entryAttrName) || function->hasAttr(schedule::segmentAttrName))
      continue;
    FailureOr<EntrySpec> entry = getEntry(function, *profile);
    if (failed(entry))
      return failure();
    manifest.entries.push_back(std::move(*entry));
  }
  for (NamedAttribute program : getPrograms(module))
    manifest.entries.push_back(
        getEntry(program.getName(), cast<DictionaryAttr>(program.getValue())));
  FailureOr<std::vector<ConstantSpec>> constants = getConstants(module);
  if (failed(constants))
    return failure();
  manifest.constants = std::move(*constants);
  // Names that no file can have are found by reading.
  return catchErrors([&] { return module.emitError(); },
                     [&] { return parseManifest(printManifest(manifest), "the manifest"); });
}

//===----------------------------------------------------------------------===//
// Plans
//===----------------------------------------------------------------------===//

std::string weir::printSource(Location location) {
  constexpr size_t maxPlaces = 3;
  std::vector<std::string> places;
  std::string file, name;
  auto printPosition = [](FileLineColLoc position) {
    return position.getFilename().str() + ":" + std::to_string(position.getLine());
  };
  location->walk([&](Location inner) {
    if (auto position = dyn_cast<FileLineColLoc>(inner); position && file.empty())
      file = printPosition(position);
    if (auto named = dyn_cast<NameLoc>(inner)) {
      if (name.empty())
        name = named.getName().str();
      if (auto position = dyn_cast<FileLineColLoc>(named.getChildLoc()))
        if (std::string place = named.getName().str() + " (" + printPosition(position) + ")";
            !llvm::is_contained(places, place))
          places.push_back(place);
    }
    return WalkResult::advance();
  });
  if (places.empty())
    return file.empty() ? name : file;
  std::string text = llvm::join(llvm::ArrayRef(places).take_front(maxPlaces), ", ");
  if (size_t number = places.size(); number > maxPlaces)
    text += " and " + std::to_string(number - maxPlaces) + " more";
  return text;
}

/// The CPU's code, one object for all kernels.
static constexpr StringLiteral cpuCode = "code/cpu/kernels.so";

/// Returns the path in the artifact of a kernel's code. For the CPU all kernels are one object.
static std::string getCodePath(StringRef target, StringRef binary) {
  if (target == "cpu")
    return cpuCode.str();
  return ("code/" + target + "/" + binary + (target == "cuda" ? ".ptx" : ".spv")).str();
}

static Access toPlan(schedule::Access access) {
  switch (access) {
  case schedule::Access::none:
    return Access::None;
  case schedule::Access::read:
    return Access::Read;
  case schedule::Access::write:
    return Access::Write;
  case schedule::Access::update:
    return Access::Update;
  }
  llvm_unreachable("no such access");
}

static HazardKind toPlan(schedule::HazardKind kind) {
  switch (kind) {
  case schedule::HazardKind::raw:
    return HazardKind::RAW;
  case schedule::HazardKind::war:
    return HazardKind::WAR;
  case schedule::HazardKind::waw:
    return HazardKind::WAW;
  }
  llvm_unreachable("no such kind");
}

namespace {
class PlanBuilder {
public:
  PlanBuilder(func::FuncOp function, const Manifest &manifest)
      : function(function), manifest(manifest), symbols(function->getParentOfType<ModuleOp>()) {}

  FailureOr<Plan> build();

private:
  LogicalResult addValues();
  LogicalResult addAllocations();
  LogicalResult addSlot(memref::ViewOp view);
  FailureOr<int64_t> getKernel(schedule::DispatchOp dispatch);
  FailureOr<PlanView> getPlace(Operation *op, Value memref);
  FailureOr<Command> getDispatch(schedule::DispatchOp dispatch);
  FailureOr<Command> getBarrier(schedule::BarrierOp barrier);
  FailureOr<Command> getSignal(schedule::SignalOp signal);
  LogicalResult addMemory(Operation *op, ValueRange memory, Command &command);
  LogicalResult addParts();

  func::FuncOp function;
  const Manifest &manifest;
  SymbolTable symbols;
  Plan plan;
  DenseMap<Value, int64_t> allocations; ///< by argument or arena
  std::optional<int64_t> constants;     ///< the allocation of all constants
  llvm::StringMap<int64_t> offsets;     ///< of constants in their segment
  DenseMap<SymbolRefAttr, int64_t> kernels;
};
} // namespace

LogicalResult PlanBuilder::addValues() {
  auto names = function->getAttrOfType<ArrayAttr>(schedule::valueNamesAttrName);
  auto bytes = function->getAttrOfType<DenseI64ArrayAttr>(schedule::valueBytesAttrName);
  if (!names || !bytes || names.size() < function.getNumArguments() ||
      int64_t(names.size()) != bytes.size())
    return function.emitOpError() << "has no " << schedule::valueNamesAttrName << " with as many "
                                  << schedule::valueBytesAttrName << "; run weir-schedule first";
  for (auto [number, attribute] : llvm::enumerate(names)) {
    auto name = dyn_cast<StringAttr>(attribute);
    if (!name)
      return function.emitOpError() << "has " << attribute << " in " << schedule::valueNamesAttrName
                                    << ", which is not a string";
    bool isArgument = number < function.getNumArguments();
    plan.values.push_back({!name.empty() ? name.str()
                           : isArgument
                               ? "argument" + std::to_string(number)
                               : "value" + std::to_string(number - function.getNumArguments()),
                           bytes[number]});
  }
  return success();
}

LogicalResult PlanBuilder::addAllocations() {
  DenseMap<unsigned, int64_t> donated; // by argument, the result in its bytes
  for (BlockArgument argument : function.getArguments()) {
    unsigned index = argument.getArgNumber();
    bool isResult = bool(function.getArgAttr(index, schedule::resultAttrName));
    std::vector<int64_t> &values = isResult ? plan.resultValues : plan.argumentValues;
    auto lender = function.getArgAttrOfType<IntegerAttr>(index, schedule::donatedAttrName);
    if (lender && isResult)
      donated[lender.getInt()] = values.size();
    else {
      allocations[argument] = plan.allocations.size();
      plan.allocations.push_back({isResult ? AllocationKind::Result : AllocationKind::Argument,
                                  int64_t(values.size()),
                                  *schedule::getByteSize(cast<MemRefType>(argument.getType()))});
    }
    values.push_back(index);
  }
  for (auto [argument, result] : donated) {
    auto allocation = argument < function.getNumArguments()
                          ? allocations.find(function.getArgument(argument))
                          : allocations.end();
    if (allocation == allocations.end() ||
        plan.allocations[allocation->second].kind != AllocationKind::Argument)
      return function.emitOpError()
             << "result " << result << " lies in argument " << argument << ", which does not exist";
    plan.allocations[allocation->second].result = result;
  }
  bool usesConstants =
      function
          .walk([](memref::GetGlobalOp op) {
            return op.use_empty() ? WalkResult::advance() : WalkResult::interrupt();
          })
          .wasInterrupted();
  int64_t end = 0;
  for (const ConstantSpec &constant : manifest.constants) {
    offsets[constant.tensor.name] = constant.offset;
    end = std::max(end, constant.offset + getByteSize(constant.tensor));
  }
  if (usesConstants) {
    constants = plan.allocations.size();
    plan.allocations.push_back({AllocationKind::Constants, 0, end});
  }
  for (auto arena : function.getOps<memref::AllocOp>()) {
    std::optional<int64_t> bytes = schedule::getByteSize(arena.getType());
    if (!arena->hasAttr(schedule::arenaAttrName) || !bytes || plan.arenaBytes)
      return arena.emitOpError("is not the one arena; run weir-plan-memory first");
    plan.arenaBytes = *bytes;
    allocations[arena] = plan.allocations.size();
    plan.allocations.push_back({AllocationKind::Arena, 0, *bytes});
  }
  auto pinned = function->getAttrOfType<IntegerAttr>(schedule::pinnedBytesAttrName);
  plan.pinnedBytes = pinned ? pinned.getInt() : plan.arenaBytes;
  return success();
}

FailureOr<PlanView> PlanBuilder::getPlace(Operation *op, Value memref) {
  View view = getView(memref);
  const AllocationRef &from = view.allocation;
  // Its hull would claim bytes of others, and hazards between them that the
  // order does not serve.
  if (view.range && !view.range->isEmpty() && !view.exact)
    return op->emitOpError() << "operand of type " << memref.getType()
                             << " does not lie side by side; a plan holds whole ranges of bytes";
  if (view.range && from.symbol && constants && offsets.count(from.symbol.getValue()))
    return PlanView{*constants, offsets[from.symbol.getValue()] + view.range->begin,
                    view.range->end - view.range->begin};
  auto allocation = allocations.find(from.value);
  if (!view.range || from.symbol || allocation == allocations.end())
    return op->emitOpError() << "operand of type " << memref.getType()
                             << " has no known place in an allocation";
  return PlanView{allocation->second, view.range->begin, view.range->end - view.range->begin};
}

LogicalResult PlanBuilder::addSlot(memref::ViewOp view) {
  auto slot = view->getAttrOfType<schedule::SlotAttr>(schedule::slotAttrName);
  if (!slot)
    return success();
  FailureOr<PlanView> place = getPlace(view, view);
  if (failed(place))
    return failure();
  plan.slots.push_back({slot.getValue().str(), place->offset, place->bytes, slot.getAlignment(),
                        slot.getFirstWave(), slot.getLastWave()});
  return success();
}

FailureOr<int64_t> PlanBuilder::getKernel(schedule::DispatchOp dispatch) {
  SymbolRefAttr name = dispatch.getKernel();
  auto [known, isNew] = kernels.try_emplace(name, plan.kernels.size());
  if (!isNew)
    return known->second;
  auto binary = symbols.lookup<gpu::BinaryOp>(name.getRootReference());
  if (!binary)
    return dispatch.emitOpError() << "launches " << name << ", which was not emitted";
  auto workgroup = binary->getAttrOfType<DenseI64ArrayAttr>(schedule::workgroupAttrName);
  auto operands = binary->getAttrOfType<ArrayAttr>(schedule::operandsAttrName);
  if (!workgroup || workgroup.size() != 3 || !operands)
    return binary.emitOpError() << "does not state " << schedule::workgroupAttrName
                                << " (three sizes) and " << schedule::operandsAttrName;
  Kernel kernel;
  kernel.name = name.getLeafReference().str();
  kernel.code = getCodePath(plan.target, name.getRootReference());
  llvm::copy(workgroup.asArrayRef(), kernel.workgroup.begin());
  if (auto bytes = binary->getAttrOfType<IntegerAttr>(schedule::launchMemoryAttrName))
    kernel.workgroupMemory = bytes.getInt();
  auto maps = binary->getAttrOfType<ArrayAttr>(schedule::tensorMapsAttrName);
  for (Attribute attribute : maps ? maps.getValue() : ArrayRef<Attribute>()) {
    auto map = cast<DictionaryAttr>(attribute);
    const Type type = map.getAs<TypeAttr>("type").getValue();
    kernel.tensorMaps.push_back({map.getAs<IntegerAttr>("operand").getInt(),
                                 type.isF32()    ? "F32"
                                 : type.isBF16() ? "BF16"
                                                 : "F16",
                                 map.getAs<DenseI64ArrayAttr>("shape").asArrayRef().vec(),
                                 map.getAs<DenseI64ArrayAttr>("box").asArrayRef().vec()});
  }
  for (auto [index, attribute] : llvm::enumerate(operands)) {
    auto operand = dyn_cast<DictionaryAttr>(attribute);
    auto effect = operand ? operand.getAs<schedule::EffectAttr>("effect") : nullptr;
    auto bytes = operand ? operand.getAs<IntegerAttr>("bytes") : nullptr;
    auto alignment = operand ? operand.getAs<IntegerAttr>("alignment") : nullptr;
    if (!effect || !bytes || !alignment)
      return binary.emitOpError() << "does not state effect, bytes and alignment of operand "
                                  << index;
    kernel.operands.push_back(
        {toPlan(effect.getAccess()), effect.getCoversAll(), bytes.getInt(), alignment.getInt()});
    if (ArrayRef<int64_t> slice = effect.getSlice(); !slice.empty())
      kernel.operands.back().slice = {slice[0], slice[1], slice[2], slice[3]};
  }
  auto pairs = binary->getAttrOfType<ArrayAttr>(schedule::inPlaceAttrName);
  for (Attribute attribute : pairs ? pairs.getValue() : ArrayRef<Attribute>()) {
    auto pair = dyn_cast<DenseI64ArrayAttr>(attribute);
    if (!pair || pair.size() != 2)
      return binary.emitOpError() << "states " << attribute << " in " << schedule::inPlaceAttrName
                                  << ", which is not a pair of operands";
    kernel.inPlace.push_back({pair[0], pair[1]});
  }
  plan.kernels.push_back(std::move(kernel));
  return known->second;
}

FailureOr<Command> PlanBuilder::getDispatch(schedule::DispatchOp dispatch) {
  FailureOr<int64_t> kernel = getKernel(dispatch);
  if (failed(kernel))
    return failure();
  Command command;
  command.kernel = *kernel;
  llvm::copy(dispatch.getGrid(), command.grid.begin());
  if (!dispatch.getWave())
    return dispatch.emitOpError("has no wave; run weir-schedule first");
  command.wave = *dispatch.getWave();
  command.queue = dispatch.getQueue();
  for (Value operand : dispatch.getOperands()) {
    FailureOr<PlanView> place = getPlace(dispatch, operand);
    if (failed(place))
      return failure();
    command.operands.push_back({*place});
  }
  ArrayRef<int64_t> values = dispatch.getValues();
  if (values.size() != 2 * command.operands.size())
    return dispatch.emitOpError("has no two values for each operand; run weir-schedule first");
  for (auto [index, operand] : llvm::enumerate(command.operands)) {
    operand.value = values[2 * index];
    operand.from = values[2 * index + 1];
    if (index < dispatch.getBefore().size())
      operand.before = dispatch.getBefore()[index];
  }
  command.location = printSource(dispatch.getLoc());
  return command;
}

FailureOr<Command> PlanBuilder::getBarrier(schedule::BarrierOp barrier) {
  Command command;
  command.kind = Command::Kind::Barrier;
  for (const schedule::HazardFields &hazard : barrier.getHazards())
    command.hazards.push_back(
        {toPlan(hazard.kind), hazard.from, hazard.fromOperand, hazard.to, hazard.toOperand});
  command.queue = barrier.getQueue();
  if (failed(addMemory(barrier, barrier.getMemory(), command)))
    return failure();
  return command;
}

FailureOr<Command> PlanBuilder::getSignal(schedule::SignalOp signal) {
  Command command;
  command.kind = Command::Kind::Signal;
  command.queue = signal.getQueue();
  command.signal = signal.getId();
  if (failed(addMemory(signal, signal.getMemory(), command)))
    return failure();
  return command;
}

LogicalResult PlanBuilder::addMemory(Operation *op, ValueRange memory, Command &command) {
  for (Value view : memory) {
    FailureOr<PlanView> place = getPlace(op, view);
    if (failed(place))
      return failure();
    command.memory.push_back(*place);
  }
  return success();
}

static Command getWait(schedule::WaitOp wait) {
  Command command;
  command.kind = Command::Kind::Wait;
  command.queue = wait.getQueue();
  command.signal = wait.getSignal();
  return command;
}

/// Returns the last wave in which a dispatch writes a byte of the view, or -1.
static int64_t findLastWrite(const Plan &plan, const PlanView &view) {
  int64_t last = -1;
  for (const Command &command : plan.commands) {
    if (command.kind != Command::Kind::Dispatch)
      continue;
    for (auto [operand, effect] :
         llvm::zip_equal(command.operands, plan.kernels[command.kernel].operands)) {
      bool writes = effect.access == Access::Write || effect.access == Access::Update;
      if (writes && operand.allocation == view.allocation &&
          operand.offset < view.offset + view.bytes && view.offset < operand.offset + operand.bytes)
        last = std::max(last, command.wave);
    }
  }
  return last;
}

/// Adds the named parts of results, and the waves from which on they are final.
LogicalResult PlanBuilder::addParts() {
  int64_t result = -1;
  for (BlockArgument argument : function.getArguments()) {
    unsigned index = argument.getArgNumber();
    result += bool(function.getArgAttr(index, schedule::resultAttrName));
    auto parts = function.getArgAttrOfType<ArrayAttr>(index, schedule::partsAttrName);
    auto allocation = allocations.find(argument);
    for (Attribute attribute : parts ? parts.getValue() : ArrayRef<Attribute>()) {
      auto part = dyn_cast<DictionaryAttr>(attribute);
      auto name = part ? part.getAs<StringAttr>("name") : nullptr;
      auto begin = part ? part.getAs<IntegerAttr>("begin") : nullptr;
      auto bytes = part ? part.getAs<IntegerAttr>("bytes") : nullptr;
      if (!name || !begin || !bytes || allocation == allocations.end())
        return function.emitOpError()
               << "has " << attribute << " in " << schedule::partsAttrName
               << ", expected name, begin and bytes of a part of a result in bytes of its own";
      PlanView view = {allocation->second, begin.getInt(), bytes.getInt()};
      plan.parts.push_back({name.str(), result, view.offset, view.bytes,
                            std::max<int64_t>(findLastWrite(plan, view), 0)});
    }
  }
  return success();
}

FailureOr<Plan> PlanBuilder::build() {
  plan.entry = function.getName().str();
  plan.target = manifest.targets.front().target;
  if (failed(addAllocations()))
    return failure();
  schedule::CommandsOp commands;
  for (Operation &op : function.getBody().front()) {
    auto view = dyn_cast<memref::ViewOp>(op);
    if (view && failed(addSlot(view)))
      return failure();
    if (auto list = dyn_cast<schedule::CommandsOp>(op)) {
      if (commands)
        return list.emitOpError("is the second command list of its function");
      commands = list;
    }
  }
  if (!commands)
    return function.emitOpError("has no command list");
  for (Operation &op : commands.getBody().front()) {
    if (isa<schedule::CopyOp, schedule::FillOp>(op))
      return op.emitOpError("cannot be part of an artifact yet, whose commands are dispatches");
    FailureOr<Command> command =
        llvm::TypeSwitch<Operation &, FailureOr<Command>>(op)
            .Case([&](schedule::DispatchOp dispatch) { return getDispatch(dispatch); })
            .Case([&](schedule::BarrierOp barrier) { return getBarrier(barrier); })
            .Case([&](schedule::SignalOp signal) { return getSignal(signal); })
            .Case([&](schedule::WaitOp wait) { return getWait(wait); });
    if (failed(command))
      return failure();
    plan.commands.push_back(std::move(*command));
  }
  if (failed(addValues()) || failed(addParts()))
    return failure();
  // Refuses here, at its source, a plan that readers would refuse.
  if (failed(catchErrors([&] { return function.emitOpError() << "cannot be packed: "; },
                         [&] { return parsePlan(printPlan(plan), "the plan"); })))
    return failure();
  return std::move(plan);
}

FailureOr<Plan> weir::getPlan(func::FuncOp entry, const Manifest &manifest) {
  return PlanBuilder(entry, manifest).build();
}

//===----------------------------------------------------------------------===//
// The artifact
//===----------------------------------------------------------------------===//

/// Appends the constant's elements, row-major and little-endian, `i1` as one
/// byte each.
static LogicalResult appendElements(memref::GlobalOp global, Bytes &bytes) {
  auto value = dyn_cast_or_null<ElementsAttr>(global.getInitialValue().value_or(nullptr));
  int64_t size = *schedule::getByteSize(global.getType());
  if (auto resource = dyn_cast_or_null<DenseResourceElementsAttr>(value)) {
    AsmResourceBlob *blob = resource.getRawHandle().getBlob();
    if (!blob || int64_t(blob->getData().size()) != size)
      return global.emitOpError() << "needs " << size << " bytes, its resource has "
                                  << (blob ? blob->getData().size() : 0);
    const char *data = blob->getData().data();
    bytes.insert(bytes.end(), data, data + blob->getData().size());
    return success();
  }
  auto dense = dyn_cast_or_null<DenseElementsAttr>(value);
  if (!dense || !dense.getElementType().isIntOrFloat())
    return global.emitOpError("has a value that is neither dense nor dense_resource");
  if (dense.getElementType().isInteger(1)) {
    for (bool element : dense.getValues<bool>())
      bytes.push_back(element);
    return success();
  }
  ArrayRef<char> raw = dense.getRawData();
  for (int64_t repeat = dense.isSplat() ? dense.getNumElements() : 1; repeat > 0; --repeat)
    bytes.insert(bytes.end(), raw.begin(), raw.end());
  return success();
}

static LogicalResult addConstants(ModuleOp module, Artifact &artifact) {
  SymbolTable symbols(module);
  for (const ConstantSpec &constant : artifact.manifest.constants) {
    auto global = symbols.lookup<memref::GlobalOp>(constant.tensor.name);
    if (!global || schedule::getByteSize(global.getType()) != getByteSize(constant.tensor))
      return module.emitError() << "the manifest's constant '" << constant.tensor.name
                                << "' is not a memref.global of its size";
    artifact.constants.resize(constant.offset);
    if (failed(appendElements(global, artifact.constants)))
      return failure();
  }
  return success();
}

/// Adds the code of a plan's kernels; code for the CPU to `objects`, to be linked.
static LogicalResult addCode(ModuleOp module, const Plan &plan, Artifact &artifact,
                             std::map<std::string, StringRef> &objects) {
  SymbolTable symbols(module);
  for (const Kernel &kernel : plan.kernels) {
    // A kernel and its binary have one name.
    auto binary = symbols.lookup<gpu::BinaryOp>(kernel.name);
    if (!binary || binary.getObjects().size() != 1)
      return module.emitError() << "the plan's code '" << kernel.code
                                << "' is not a gpu.binary of one object";
    StringRef code = cast<gpu::ObjectAttr>(binary.getObjects()[0]).getObject().getValue();
    if (plan.target == "cpu")
      objects[kernel.name] = code;
    else
      artifact.code[kernel.code] = Bytes(code.bytes_begin(), code.bytes_end());
  }
  return success();
}

/// Adds the object that a CPU's kernels are linked to.
static LogicalResult linkCode(const std::map<std::string, StringRef> &objects,
                              llvm::function_ref<InFlightDiagnostic()> emitError,
                              Artifact &artifact) {
  if (objects.empty())
    return success();
  FailureOr<std::string> code = catchErrors(
      emitError, [&] { return linkCpuObjects(llvm::to_vector(llvm::make_second_range(objects))); });
  if (failed(code))
    return failure();
  artifact.code[cpuCode.str()] = Bytes(code->begin(), code->end());
  return success();
}

FailureOr<Artifact> weir::buildArtifact(ModuleOp emitted, StringRef graphText) {
  Artifact artifact;
  auto manifestText = emitted->getAttrOfType<StringAttr>(schedule::manifestAttrName);
  if (!manifestText)
    return emitted.emitError("module has no manifest; run weir-pack first");
  auto emitError = [&] { return emitted.emitError(); };
  FailureOr<Manifest> manifest = catchErrors(emitError, [&] {
    return parseManifest(manifestText.str(), schedule::manifestAttrName.str());
  });
  if (failed(manifest))
    return failure();
  artifact.manifest = std::move(*manifest);
  std::map<std::string, StringRef> objects;
  auto addPlan = [&](Operation *owner, StringAttr planText) -> LogicalResult {
    if (!planText)
      return owner->emitOpError("has no plan; run weir-pack first");
    FailureOr<Plan> plan = catchErrors(
        emitError, [&] { return parsePlan(planText.str(), schedule::planAttrName.str()); });
    if (failed(plan) || failed(addCode(emitted, *plan, artifact, objects)))
      return failure();
    artifact.plans.push_back(std::move(*plan));
    return success();
  };
  for (auto function : emitted.getOps<func::FuncOp>())
    if (function->hasAttr(schedule::entryAttrName) &&
        !function->hasAttr(schedule::segmentAttrName) &&
        failed(addPlan(function, function->getAttrOfType<StringAttr>(schedule::planAttrName))))
      return failure();
  for (NamedAttribute program : getPrograms(emitted))
    if (failed(addPlan(
            emitted,
            cast<DictionaryAttr>(program.getValue()).getAs<StringAttr>(schedule::planAttrName))))
      return failure();
  if (failed(linkCode(objects, emitError, artifact)) || failed(addConstants(emitted, artifact)))
    return failure();
  if (!graphText.empty())
    artifact.ir["ir/graph.mlir"] = graphText.str();
  return artifact;
}

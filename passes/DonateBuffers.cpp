//===- DonateBuffers.cpp - Where a result may take an operand's bytes -----===//
//
// Looks at every operand that a dispatch reads and every value whose bytes that
// dispatch is the first to write, and says of each pair whether the value may
// take the operand's bytes, or why not. Which permissions are used is the
// business of weir-plan-memory.
//
//===----------------------------------------------------------------------===//

#include "passes/Passes.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/IR/Remarks.h"
#include "weir/Analysis/Hazards.h"
#include "weir/Analysis/InPlace.h"

namespace weir {
#define GEN_PASS_DEF_DONATEBUFFERSPASS
#include "passes/Passes.h.inc"
} // namespace weir

using namespace mlir;
using namespace weir;

namespace {
/// Why a result may not take an operand's bytes; docs/donation.md explains each.
enum class Refusal {
  MemorySpace,
  Layout,
  Size,
  Alignment,
  NotOwned,
  ViewOfArgument,
  ArgumentAlias,
  EscapesTwice,
  LiveReader,
  UnorderedReader,
  AccessMapUnproven
};

/// One operand of one command.
struct Use {
  int64_t command = 0;
  unsigned operand = 0;
  schedule::Access access = schedule::Access::none;
};

/// The answer for a pair of operands of one dispatch.
struct Verdict {
  std::optional<Refusal> refusal;
  Operation *witness = nullptr; ///< what stands in the way
  std::string detail;
};

struct DonateBuffers : weir::impl::DonateBuffersPassBase<DonateBuffers> {
  using DonateBuffersPassBase::DonateBuffersPassBase;

  void runOnOperation() override {
    Effects &effects = getAnalysis<Effects>();
    for (auto function : getOperation().getOps<func::FuncOp>())
      if (failed(donate(function, effects)))
        signalPassFailure();
    markAnalysesPreserved<Effects>();
  }

private:
  SmallVector<schedule::CommandOpInterface> commands;
  DenseMap<Value, SmallVector<Use>> uses; ///< by allocation, in recorded order
  DenseMap<Value, View> views;
  DenseMap<Operation *, std::shared_ptr<AccessMaps>> maps;

  LogicalResult donate(func::FuncOp function, Effects &effects);
  const View &getKnownView(Value memref) {
    auto [it, isNew] = views.try_emplace(memref);
    if (isNew)
      it->second = getView(memref);
    return it->second;
  }
  Verdict judge(int64_t command, unsigned target, unsigned source);
  Verdict prove(schedule::DispatchOp dispatch, const View &target, const View &source);
  void reportAllowed(schedule::DispatchOp dispatch, unsigned target, unsigned source);
  void reportRefused(schedule::DispatchOp dispatch, unsigned target, unsigned source,
                     const Verdict &verdict);
};
} // namespace

static StringRef stringify(Refusal refusal) {
  switch (refusal) {
  case Refusal::MemorySpace:
    return "memory-space";
  case Refusal::Layout:
    return "layout";
  case Refusal::Size:
    return "size";
  case Refusal::Alignment:
    return "alignment";
  case Refusal::NotOwned:
    return "not-owned";
  case Refusal::ViewOfArgument:
    return "view-of-argument";
  case Refusal::ArgumentAlias:
    return "argument-alias";
  case Refusal::EscapesTwice:
    return "escapes-twice";
  case Refusal::LiveReader:
    return "live-reader";
  case Refusal::UnorderedReader:
    return "unordered-reader";
  case Refusal::AccessMapUnproven:
    return "access-map-unproven";
  }
  llvm_unreachable("no such refusal");
}

static Attribute getArgAttr(Value value, StringRef name) {
  auto argument = dyn_cast<BlockArgument>(value);
  auto function = argument ? dyn_cast<FunctionOpInterface>(argument.getOwner()->getParentOp())
                           : FunctionOpInterface();
  return function ? function.getArgAttr(argument.getArgNumber(), name) : Attribute();
}

/// The name that people know the value by.
static std::string getValueName(Value value) {
  auto name = dyn_cast_or_null<StringAttr>(getArgAttr(value, schedule::nameAttrName));
  if (Operation *op = value.getDefiningOp())
    name = op->getAttrOfType<StringAttr>(schedule::nameAttrName);
  if (name)
    return ("\"" + name.getValue() + "\"").str();
  if (auto argument = dyn_cast<BlockArgument>(value))
    return "argument " + std::to_string(argument.getArgNumber());
  return "an unnamed value";
}

/// What the bytes of a whole allocation are; failure for others.
static std::optional<int64_t> getWholeBytes(const View &view) {
  auto type = dyn_cast<MemRefType>(view.allocation.value.getType());
  std::optional<int64_t> bytes = type ? schedule::getByteSize(type) : std::nullopt;
  bool whole = bytes && view.exact && view.range == ByteRange{0, *bytes};
  return whole ? bytes : std::nullopt;
}

/// Whether the bytes suit, whoever else uses them.
static std::optional<Refusal> checkFit(const View &target, const View &source) {
  auto toType = cast<MemRefType>(target.allocation.value.getType());
  using Kind = AllocationRef::Kind;
  if (source.allocation.kind == Kind::Global)
    return Refusal::NotOwned;
  auto fromType = cast<MemRefType>(source.allocation.value.getType());
  if (toType.getMemorySpace() != fromType.getMemorySpace())
    return Refusal::MemorySpace;
  bool isArgument =
      source.allocation.kind == Kind::Entry || source.allocation.kind == Kind::Argument;
  std::optional<int64_t> have = getWholeBytes(source), want = getWholeBytes(target);
  if (!have && isArgument)
    return Refusal::ViewOfArgument;
  if (!have || !want)
    return Refusal::Layout;
  if (*want != *have)
    return Refusal::Size;
  if (toType != fromType)
    return Refusal::Layout;
  auto getAlignment = [](Value value) -> int64_t {
    auto alloc = value.getDefiningOp<memref::AllocOp>();
    return alloc ? std::max<int64_t>(256, alloc.getAlignment().value_or(1)) : 256;
  };
  if (getAlignment(target.allocation.value) > getAlignment(source.allocation.value))
    return Refusal::Alignment;
  if (isArgument && getArgAttr(source.allocation.value, schedule::resultAttrName))
    return Refusal::EscapesTwice;
  if (isArgument && !getArgAttr(source.allocation.value, schedule::donateAttrName))
    return Refusal::NotOwned;
  if (source.allocation.kind == Kind::Argument &&
      !getArgAttr(source.allocation.value, LLVM::LLVMDialect::getNoAliasAttrName()))
    return Refusal::ArgumentAlias;
  return std::nullopt;
}

/// Whether the kernel's own accesses allow it, for all operands that name the
/// two.
Verdict DonateBuffers::prove(schedule::DispatchOp dispatch, const View &target,
                             const View &source) {
  auto kernel =
      SymbolTable::lookupNearestSymbolFrom<gpu::GPUFuncOp>(dispatch, dispatch.getKernel());
  Verdict unproven{Refusal::AccessMapUnproven, dispatch, ""};
  std::shared_ptr<AccessMaps> &known = maps[kernel];
  if (!known)
    known = std::make_shared<AccessMaps>(kernel);
  for (OpOperand &from : dispatch->getOpOperands())
    for (OpOperand &to : dispatch->getOpOperands()) {
      if (!isa<BaseMemRefType>(from.get().getType()) || !isa<BaseMemRefType>(to.get().getType()) ||
          getKnownView(from.get()).allocation.value != source.allocation.value ||
          getKnownView(to.get()).allocation.value != target.allocation.value)
        continue;
      unsigned read = from.getOperandNumber(), written = to.getOperandNumber();
      // Views of a part are elsewhere than the proof would have them.
      InPlaceProof proof;
      if (getWholeBytes(getKnownView(from.get())) && getWholeBytes(getKnownView(to.get())))
        proof = proveInPlace(*known, kernel, read, written);
      if (proof.holds)
        continue;
      unproven.detail = ("operand " + Twine(written) + " may be written before operand " +
                         Twine(read) + " is read")
                            .str();
      if (proof.read)
        unproven.witness = proof.read->op;
      return unproven;
    }
  return {};
}

Verdict DonateBuffers::judge(int64_t command, unsigned target, unsigned source) {
  auto dispatch = cast<schedule::DispatchOp>(*commands[command]);
  Value to = dispatch.getOperands()[target], from = dispatch.getOperands()[source];
  const View &written = getKnownView(to), &read = getKnownView(from);
  if (std::optional<Refusal> refusal = checkFit(written, read)) {
    Verdict verdict{refusal, dispatch, ""};
    if (auto owner = read.allocation.value.getDefiningOp())
      verdict.witness = owner;
    return verdict;
  }
  for (const Use &use : uses.lookup(read.allocation.value)) {
    Operation *other = commands[use.command];
    if (use.command > command)
      return {Refusal::LiveReader, other, ""};
    if (use.command < command && commands[use.command].getQueue() != commands[command].getQueue())
      return {Refusal::UnorderedReader, other, ""};
  }
  return prove(dispatch, written, read);
}

void DonateBuffers::reportAllowed(schedule::DispatchOp dispatch, unsigned target, unsigned source) {
  Value to = getKnownView(dispatch.getOperands()[target]).allocation.value;
  Value from = getKnownView(dispatch.getOperands()[source]).allocation.value;
  remark::passed(dispatch.getLoc(), remark::RemarkOpts::name("in-place").category("donate-buffers"))
      << remark::add("{0} may take the bytes of {1}", getValueName(to), getValueName(from))
      << remark::metric("target", target) << remark::metric("source", source)
      << remark::metric("bytes", *schedule::getByteSize(cast<MemRefType>(to.getType())));
}

void DonateBuffers::reportRefused(schedule::DispatchOp dispatch, unsigned target, unsigned source,
                                  const Verdict &verdict) {
  std::string where;
  llvm::raw_string_ostream(where) << verdict.witness->getLoc();
  remark::missed(dispatch.getLoc(), remark::RemarkOpts::name("in-place").category("donate-buffers"))
      << remark::reason("{0}", stringify(*verdict.refusal).str())
      << remark::metric("target", target) << remark::metric("source", source)
      << remark::metric("witness", where) << remark::add("{0}", verdict.detail);
}

LogicalResult DonateBuffers::donate(func::FuncOp function, Effects &effects) {
  FailureOr<schedule::CommandsOp> list = getCommands(function);
  if (failed(list) || !*list)
    return list;
  commands.assign((*list).getBody().front().getOps<schedule::CommandOpInterface>().begin(),
                  (*list).getBody().front().getOps<schedule::CommandOpInterface>().end());
  uses.clear();
  views.clear();
  SymbolTableCollection symbols;
  SmallVector<SmallVector<OperandEffect>> allEffects;
  for (auto [number, command] : llvm::enumerate(commands)) {
    FailureOr<ArrayRef<OperandEffect>> known = getEffects(command, symbols, effects);
    if (failed(known))
      return failure();
    allEffects.emplace_back(known->begin(), known->end());
    for (OpOperand &operand : command->getOpOperands()) {
      unsigned index = operand.getOperandNumber();
      if (!isa<BaseMemRefType>(operand.get().getType()) ||
          (*known)[index].access == schedule::Access::none)
        continue;
      const View &view = getKnownView(operand.get());
      if (view.allocation.value)
        uses[view.allocation.value].push_back({int64_t(number), index, (*known)[index].access});
    }
  }

  // Donated arguments that nothing may take, and what stood in the way first.
  llvm::MapVector<Value, Verdict> refused;
  DenseSet<Value> allowed;
  for (auto [number, command] : llvm::enumerate(commands)) {
    auto dispatch = dyn_cast<schedule::DispatchOp>(*command);
    if (!dispatch)
      continue;
    SmallVector<Attribute> permissions;
    for (auto [target, written] : llvm::enumerate(allEffects[number])) {
      if (written.access != schedule::Access::write)
        continue;
      const View to = getKnownView(dispatch.getOperands()[target]);
      bool mayMove = to.allocation.kind == AllocationRef::Kind::Local ||
                     getArgAttr(to.allocation.value, schedule::resultAttrName);
      auto known = uses.find(to.allocation.value);
      // Only where its life begins can a value be given its bytes.
      if (!mayMove || known == uses.end() || known->second.front().command != int64_t(number) ||
          to.range == ByteRange())
        continue;
      for (auto [source, read] : llvm::enumerate(allEffects[number])) {
        if (read.access != schedule::Access::read)
          continue;
        Value from = getKnownView(dispatch.getOperands()[source]).allocation.value;
        if (!from || from == to.allocation.value)
          continue;
        Verdict verdict = judge(number, target, source);
        if (verdict.refusal) {
          reportRefused(dispatch, target, source, verdict);
          if (getArgAttr(from, schedule::donateAttrName))
            refused.insert({from, verdict});
          continue;
        }
        reportAllowed(dispatch, target, source);
        permissions.push_back(schedule::PermissionAttr::get(&getContext(), target, source));
        allowed.insert(from);
      }
    }
    if (permissions.empty())
      dispatch->removeAttr(schedule::permissionsAttrName);
    else
      dispatch->setAttr(schedule::permissionsAttrName, ArrayAttr::get(&getContext(), permissions));
  }
  Builder builder(&getContext());
  for (auto &[value, verdict] : refused) {
    if (allowed.contains(value))
      continue;
    NamedAttribute refusal[] = {
        builder.getNamedAttr("detail", builder.getStringAttr(verdict.detail)),
        builder.getNamedAttr("reason", builder.getStringAttr(stringify(*verdict.refusal))),
        builder.getNamedAttr("witness", LocationAttr(verdict.witness->getLoc()))};
    function.setArgAttr(cast<BlockArgument>(value).getArgNumber(), schedule::refusalAttrName,
                        builder.getDictionaryAttr(refusal));
  }
  return success();
}

//===- DonateBuffers.cpp - Where a result may take an operand's bytes -----===//
//
// Looks at every operand that a dispatch reads and every value whose bytes that
// dispatch is the first to write, and says of each pair whether the value may
// take the operand's bytes, or why not. Which permissions are used is the
// business of weir-plan-memory.
//
//===----------------------------------------------------------------------===//

#include "passes/Passes.h"

#include "mlir/IR/Remarks.h"
#include "weir/Analysis/Donation.h"
#include "weir/Analysis/Hazards.h"

namespace weir {
#define GEN_PASS_DEF_DONATEBUFFERSPASS
#include "passes/Passes.h.inc"
} // namespace weir

using namespace mlir;
using namespace weir;

namespace {
/// One operand of one command.
struct Use {
  int64_t command = 0;
  unsigned operand = 0;
  schedule::Access access = schedule::Access::none;
};

struct DonateBuffers : weir::impl::DonateBuffersPassBase<DonateBuffers> {
  using DonateBuffersPassBase::DonateBuffersPassBase;

  void runOnOperation() override {
    Effects &effects = getAnalysis<Effects>();
    Views &views = getAnalysis<Views>();
    for (auto function : getOperation().getOps<func::FuncOp>())
      if (failed(donate(function, effects, views)))
        signalPassFailure();
    markAnalysesPreserved<Effects, Views>();
  }

private:
  SmallVector<schedule::CommandOpInterface> commands;
  DenseMap<Value, SmallVector<Use>> uses; ///< by allocation, in recorded order
  std::shared_ptr<Donation> donation;

  LogicalResult donate(func::FuncOp function, Effects &effects, Views &views);
  DonationVerdict judge(int64_t command, unsigned target, unsigned source);
  void reportAllowed(schedule::DispatchOp dispatch, unsigned target, unsigned source);
  void reportRefused(schedule::DispatchOp dispatch, unsigned target, unsigned source,
                     const DonationVerdict &verdict);
};
} // namespace

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

DonationVerdict DonateBuffers::judge(int64_t command, unsigned target, unsigned source) {
  auto dispatch = cast<schedule::DispatchOp>(*commands[command]);
  if (DonationVerdict verdict = donation->checkFit(dispatch, target, source); verdict.refusal)
    return verdict;
  Value from = donation->getView(dispatch.getOperands()[source]).allocation.value;
  for (const Use &use : uses.lookup(from)) {
    Operation *other = commands[use.command];
    if (use.command > command)
      return {Refusal::LiveReader, other, ""};
    if (use.command < command && commands[use.command].getQueue() != commands[command].getQueue())
      return {Refusal::UnorderedReader, other, ""};
  }
  return donation->prove(dispatch, target, source);
}

void DonateBuffers::reportAllowed(schedule::DispatchOp dispatch, unsigned target, unsigned source) {
  Value to = donation->getView(dispatch.getOperands()[target]).allocation.value;
  Value from = donation->getView(dispatch.getOperands()[source]).allocation.value;
  remark::passed(dispatch.getLoc(), remark::RemarkOpts::name("in-place").category("donate-buffers"))
      << remark::add("{0} may take the bytes of {1}", getValueName(to), getValueName(from))
      << remark::metric("target", target) << remark::metric("source", source)
      << remark::metric("bytes", *schedule::getByteSize(cast<MemRefType>(to.getType())));
}

void DonateBuffers::reportRefused(schedule::DispatchOp dispatch, unsigned target, unsigned source,
                                  const DonationVerdict &verdict) {
  std::string where;
  llvm::raw_string_ostream(where) << verdict.witness->getLoc();
  remark::missed(dispatch.getLoc(), remark::RemarkOpts::name("in-place").category("donate-buffers"))
      << remark::reason("{0}", stringify(*verdict.refusal).str())
      << remark::metric("target", target) << remark::metric("source", source)
      << remark::metric("witness", where) << remark::add("{0}", verdict.detail);
}

LogicalResult DonateBuffers::donate(func::FuncOp function, Effects &effects, Views &views) {
  FailureOr<schedule::CommandsOp> list = getCommands(function);
  if (failed(list) || !*list)
    return list;
  commands.assign((*list).getBody().front().getOps<schedule::CommandOpInterface>().begin(),
                  (*list).getBody().front().getOps<schedule::CommandOpInterface>().end());
  uses.clear();
  donation = std::make_shared<Donation>(views);
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
      const View &view = donation->getView(operand.get());
      if (view.allocation.value)
        uses[view.allocation.value].push_back({int64_t(number), index, (*known)[index].access});
    }
  }

  // Donated arguments that nothing may take, and what stood in the way first.
  llvm::MapVector<Value, DonationVerdict> refused;
  DenseSet<Value> allowed;
  for (auto [number, command] : llvm::enumerate(commands)) {
    auto dispatch = dyn_cast<schedule::DispatchOp>(*command);
    if (!dispatch)
      continue;
    SmallVector<Attribute> permissions;
    for (auto [target, written] : llvm::enumerate(allEffects[number])) {
      if (written.access != schedule::Access::write)
        continue;
      const View to = donation->getView(dispatch.getOperands()[target]);
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
        Value from = donation->getView(dispatch.getOperands()[source]).allocation.value;
        if (!from || from == to.allocation.value)
          continue;
        DonationVerdict verdict = judge(number, target, source);
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

//===- DonateBuffers.cpp - Where a result may take an operand's bytes -----===//
//
// Looks at every operand that a dispatch reads and every value whose bytes that
// dispatch is the first to write, and says of each pair whether the value may
// take the operand's bytes, or why not. Which permissions are used is the
// business of weir-plan-memory.
//
//===----------------------------------------------------------------------===//

#include "passes/Steps.h"

#include "dialects/Schedule/Schedule.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/Remarks.h"
#include "mlir/Pass/Pass.h"
#include "weir/Analysis/CommandList.h"
#include "weir/Analysis/Donation.h"

namespace weir {
#define GEN_PASS_DEF_DONATEBUFFERSPASS
#include "passes/Passes.h.inc"
} // namespace weir

using namespace mlir;
using namespace weir;

namespace {
struct DonateBuffers : weir::impl::DonateBuffersPassBase<DonateBuffers> {
  using DonateBuffersPassBase::DonateBuffersPassBase;

  void runOnOperation() override {
    Effects &effects = getAnalysis<Effects>();
    Views &views = getAnalysis<Views>();
    Donation donation(views);
    for (auto function : getOperation().getOps<func::FuncOp>())
      if (failed(donateBuffers(function, effects, donation, /*report=*/true)))
        signalPassFailure();
    markAnalysesPreserved<Effects, Views>();
  }
};

/// Judges the pairs of one function.
class Donor {
public:
  Donor(Donation &donation, bool report) : donation(&donation), report(report) {}

  LogicalResult donate(func::FuncOp function, Effects &effects);

private:
  CommandList list;
  std::vector<SmallVector<int64_t, 2>> users; ///< commands by allocation, in recorded order
  Donation *donation;
  bool report;

  DonationVerdict judge(int64_t command, unsigned target, const OperandAccess &source);
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
  if (!value)
    return "an unknown value";
  auto name = dyn_cast_or_null<StringAttr>(getArgAttr(value, schedule::nameAttrName));
  if (Operation *op = value.getDefiningOp())
    name = op->getAttrOfType<StringAttr>(schedule::nameAttrName);
  if (name)
    return ("\"" + name.getValue() + "\"").str();
  if (auto argument = dyn_cast<BlockArgument>(value))
    return "argument " + std::to_string(argument.getArgNumber());
  return "an unnamed value";
}

DonationVerdict Donor::judge(int64_t command, unsigned target, const OperandAccess &source) {
  auto dispatch = cast<schedule::DispatchOp>(*list.dispatches[command]);
  if (DonationVerdict verdict = donation->checkFit(dispatch, target, source.operand);
      verdict.refusal)
    return verdict;
  ArrayRef<int64_t> all = users[source.allocation];
  const int64_t *later = llvm::upper_bound(all, command);
  if (later != all.end())
    return {Refusal::LiveReader, list.dispatches[*later], ""};
  for (int64_t earlier : all)
    if (list.dispatches[earlier].getQueue() != dispatch.getQueue())
      return {Refusal::UnorderedReader, list.dispatches[earlier], ""};
  return donation->prove(dispatch, target, source.operand);
}

void Donor::reportAllowed(schedule::DispatchOp dispatch, unsigned target, unsigned source) {
  if (!report)
    return;
  auto remark = remark::passed(dispatch.getLoc(),
                               remark::RemarkOpts::name("in-place").category("donate-buffers"));
  if (!remark)
    return;
  Value to = donation->getView(dispatch.getOperands()[target]).allocation.value;
  Value from = donation->getView(dispatch.getOperands()[source]).allocation.value;
  remark << remark::add(
      "{0}, which operand {1} is, may take the {2} bytes of {3}, operand {4}", getValueName(to),
      target, *schedule::getByteSize(cast<MemRefType>(to.getType())), getValueName(from), source);
}

void Donor::reportRefused(schedule::DispatchOp dispatch, unsigned target, unsigned source,
                          const DonationVerdict &verdict) {
  if (!report)
    return;
  auto remark = remark::missed(dispatch.getLoc(),
                               remark::RemarkOpts::name("in-place").category("donate-buffers"));
  if (!remark)
    return;
  auto getName = [&](unsigned operand) {
    return getValueName(donation->getView(dispatch.getOperands()[operand]).allocation.value);
  };
  std::string where, detail = verdict.detail.empty() ? "" : ", " + verdict.detail;
  llvm::raw_string_ostream(where) << verdict.witness->getLoc();
  remark << remark::reason("{0}", stringify(*verdict.refusal).str())
         << remark::add("{0}, which operand {1} is, may not take the bytes of {2}, operand {3}: "
                        "{4}{5}; see {6}",
                        getName(target), target, getName(source), source,
                        describe(*verdict.refusal).str(), detail, where);
}

LogicalResult weir::donateBuffers(func::FuncOp function, Effects &effects, Donation &donation,
                                  bool report) {
  return Donor(donation, report).donate(function, effects);
}

LogicalResult Donor::donate(func::FuncOp function, Effects &effects) {
  FailureOr<schedule::CommandsOp> commands = getCommands(function);
  if (failed(commands) || !*commands)
    return commands;
  FailureOr<CommandList> collected = collectAccesses(*commands, effects, donation->getViews());
  if (failed(collected))
    return failure();
  list = std::move(*collected);
  users.assign(list.allocations.size(), {});
  for (auto [number, accesses] : llvm::enumerate(list.accesses.dispatches))
    for (const OperandAccess &access : accesses)
      users[access.allocation].push_back(number);

  // Donated arguments that nothing may take, and what stood in the way first.
  llvm::MapVector<Value, DonationVerdict> refused;
  DenseSet<Value> allowed;
  for (auto [number, accesses] : llvm::enumerate(list.accesses.dispatches)) {
    auto dispatch = dyn_cast<schedule::DispatchOp>(*list.dispatches[number]);
    if (!dispatch)
      continue;
    SmallVector<Attribute> permissions;
    for (const OperandAccess &written : accesses) {
      const AllocationRef &to = list.allocations[written.allocation];
      bool mayMove =
          to.kind == AllocationRef::Kind::Local || getArgAttr(to.value, schedule::resultAttrName);
      // Only where its life begins can a value be given its bytes.
      if (!written.writes || written.reads || !mayMove ||
          users[written.allocation].front() != int64_t(number))
        continue;
      for (const OperandAccess &read : accesses) {
        Value from = list.allocations[read.allocation].value;
        if (!read.reads || read.writes || !from || from == to.value)
          continue;
        unsigned target = written.operand, source = read.operand;
        DonationVerdict verdict = judge(number, target, read);
        if (verdict.refusal) {
          reportRefused(dispatch, target, source, verdict);
          if (getArgAttr(from, schedule::donateAttrName))
            refused.insert({from, verdict});
          continue;
        }
        reportAllowed(dispatch, target, source);
        permissions.push_back(schedule::PermissionAttr::get(function.getContext(), target, source));
        allowed.insert(from);
      }
    }
    if (permissions.empty())
      dispatch->removeAttr(schedule::permissionsAttrName);
    else
      dispatch->setAttr(schedule::permissionsAttrName,
                        ArrayAttr::get(function.getContext(), permissions));
  }
  Builder builder(function.getContext());
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

//===- DonateBuffers.cpp - Where a result may take an operand's bytes -----===//
//
// Looks at every operand that a dispatch reads and every value whose bytes that
// dispatch is the first to write, and says of each pair whether the value may
// take the operand's bytes, or why not. Which permissions are used is the
// business of weir-plan-memory.
//
//===----------------------------------------------------------------------===//

#include "passes/Passes.h"

#include "dialects/Schedule/Schedule.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/Remarks.h"
#include "mlir/Pass/Pass.h"
#include "weir/Analysis/CommandList.h"
#include "weir/Order/Donation.h"

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
    InPlaceProofs &proofs = getAnalysis<InPlaceProofs>();
    for (auto function : getOperation().getOps<func::FuncOp>())
      if (failed(donate(function, effects, views, proofs)))
        signalPassFailure();
    markAnalysesPreserved<Effects, Views, InPlaceProofs>();
  }

private:
  LogicalResult donate(func::FuncOp function, Effects &effects, Views &views,
                       InPlaceProofs &proofs);
};

/// The operation that stands in the way of a pair.
struct Obstacle {
  Operation *witness = nullptr;
  std::string detail;
};

/// Reports on the pairs of one function.
class Reporter {
public:
  Reporter(const CollectedOrder &collected, InPlaceProofs &proofs)
      : list(collected.list), problem(collected.problem), proofs(proofs) {}

  Obstacle getObstacle(const DonationPair &pair);
  void report(const DonationPair &pair, const Obstacle &obstacle);
  Value getValue(int64_t command, int64_t operand);

private:
  void findReader(schedule::DispatchOp dispatch, const DonationPair &pair, Obstacle &obstacle);

  const CommandList &list;
  const OrderProblem &problem;
  InPlaceProofs &proofs;
};
} // namespace

static Attribute getArgAttr(Value value, StringRef name) {
  auto argument = dyn_cast<BlockArgument>(value);
  auto function = argument ? dyn_cast<FunctionOpInterface>(argument.getOwner()->getParentOp())
                           : FunctionOpInterface();
  return function ? function.getArgAttr(argument.getArgNumber(), name) : Attribute();
}

/// Returns the name that people know the value by.
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

/// Returns the allocation that an operand names.
Value Reporter::getValue(int64_t command, int64_t operand) {
  schedule::CommandOpInterface op = list.dispatches[command];
  return list.views->get(op->getOperand(operand)).allocation.value;
}

/// Finds the first pair of operands that the kernel's accesses forbid.
void Reporter::findReader(schedule::DispatchOp dispatch, const DonationPair &pair,
                          Obstacle &obstacle) {
  const OrderCommand &command = problem.commands[pair.command];
  int64_t to = command.getOperand(pair.target).allocation;
  int64_t from = command.getOperand(pair.source).allocation;
  for (const MemoryOperand &read : command.operands)
    for (const MemoryOperand &written : command.operands) {
      if (read.allocation != from || written.allocation != to)
        continue;
      bool areWhole = read.isWhole && written.isWhole;
      const InPlaceProof *proof =
          areWhole ? &proofs.get(dispatch, read.operand, written.operand) : nullptr;
      if (proof && proof->holds)
        continue;
      obstacle.detail = ("operand " + Twine(written.operand) + " may be written before operand " +
                         Twine(read.operand) + " is read")
                            .str();
      if (proof && proof->read)
        obstacle.witness = proof->read->op;
      return;
    }
}

Obstacle Reporter::getObstacle(const DonationPair &pair) {
  auto dispatch = cast<schedule::DispatchOp>(*list.dispatches[pair.command]);
  Obstacle obstacle = {dispatch, ""};
  if (pair.witness >= 0)
    obstacle.witness = list.dispatches[pair.witness];
  else if (pair.refusal == Refusal::AccessMapUnproven)
    findReader(dispatch, pair, obstacle);
  else if (Operation *owner = getValue(pair.command, pair.source).getDefiningOp())
    obstacle.witness = owner;
  return obstacle;
}

void Reporter::report(const DonationPair &pair, const Obstacle &obstacle) {
  Operation *dispatch = list.dispatches[pair.command];
  remark::RemarkOpts options = remark::RemarkOpts::name("in-place").category("donate-buffers");
  auto remark = pair.refusal ? remark::missed(dispatch->getLoc(), options)
                             : remark::passed(dispatch->getLoc(), options);
  if (!remark)
    return;
  Value to = getValue(pair.command, pair.target), from = getValue(pair.command, pair.source);
  if (!pair.refusal) {
    remark << remark::add("{0}, which operand {1} is, may take the {2} bytes of {3}, operand {4}",
                          getValueName(to), pair.target,
                          *schedule::getByteSize(cast<MemRefType>(to.getType())),
                          getValueName(from), pair.source);
    return;
  }
  std::string where, detail = obstacle.detail.empty() ? "" : ", " + obstacle.detail;
  llvm::raw_string_ostream(where) << obstacle.witness->getLoc();
  remark << remark::reason("{0}", std::string(stringify(*pair.refusal)))
         << remark::add("{0}, which operand {1} is, may not take the bytes of {2}, operand {3}: "
                        "{4}{5}; see {6}",
                        getValueName(to), pair.target, getValueName(from), pair.source,
                        std::string(describe(*pair.refusal)), detail, where);
}

LogicalResult DonateBuffers::donate(func::FuncOp function, Effects &effects, Views &views,
                                    InPlaceProofs &proofs) {
  FailureOr<schedule::CommandsOp> commands = getCommands(function);
  if (failed(commands) || !*commands)
    return commands;
  FailureOr<CollectedOrder> collected = collect(function, *commands, effects, views, proofs);
  if (failed(collected))
    return failure();
  Reporter reporter(*collected, proofs);
  Builder builder(function.getContext());

  // Donated arguments that nothing may take, and what stood in the way first.
  llvm::MapVector<Value, std::pair<Refusal, Obstacle>> refused;
  DenseSet<Value> allowed;
  std::vector<SmallVector<Attribute, 1>> permissions(collected->list.dispatches.size());
  for (const DonationPair &pair : judgeDonations(collected->problem)) {
    Obstacle obstacle = pair.refusal ? reporter.getObstacle(pair) : Obstacle();
    reporter.report(pair, obstacle);
    Value from = reporter.getValue(pair.command, pair.source);
    if (!pair.refusal) {
      permissions[pair.command].push_back(
          schedule::PermissionAttr::get(function.getContext(), pair.target, pair.source));
      allowed.insert(from);
    } else if (getArgAttr(from, schedule::donateAttrName)) {
      refused.insert({from, {*pair.refusal, obstacle}});
    }
  }
  for (auto [command, permitted] : llvm::zip_equal(collected->list.dispatches, permissions)) {
    if (!isa<schedule::DispatchOp>(*command))
      continue;
    if (permitted.empty())
      command->removeAttr(schedule::permissionsAttrName);
    else
      command->setAttr(schedule::permissionsAttrName, builder.getArrayAttr(permitted));
  }
  for (auto &[value, reason] : refused) {
    if (allowed.contains(value))
      continue;
    const auto &[refusal, obstacle] = reason;
    NamedAttribute fields[] = {
        builder.getNamedAttr("detail", builder.getStringAttr(obstacle.detail)),
        builder.getNamedAttr("reason", builder.getStringAttr(stringify(refusal))),
        builder.getNamedAttr("witness", LocationAttr(obstacle.witness->getLoc()))};
    function.setArgAttr(cast<BlockArgument>(value).getArgNumber(), schedule::refusalAttrName,
                        builder.getDictionaryAttr(fields));
  }
  return success();
}

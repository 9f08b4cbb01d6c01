//===- NoteTaker.cpp - Remarks of passes, kept for people -----------------===//

#include "NoteTaker.h"

#include "dialects/Schedule/Schedule.h"
#include "dialects/Schedule/Segments.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/Remarks.h"
#include "weir/Target/Bundle.h"

using namespace mlir;
using namespace weir;

namespace {
class NoteStreamer : public remark::detail::MLIRRemarkStreamerBase {
public:
  explicit NoteStreamer(std::shared_ptr<NoteTaker::ByFunction> taken) : taken(std::move(taken)) {}

  void streamOptimizationRemark(const remark::detail::Remark &remark) override {
    EntryNotes &notes = (*taken)[remark.getFunction().str()];
    if (remark.getRemarkName() == "kernel")
      addKernel(notes, remark);
    else if (remark.getRemarkName() == "apart")
      notes.apart.push_back({getNumber(remark, "producer"), getNumber(remark, "reader"),
                             find(remark, "Reason")->val});
  }

private:
  std::shared_ptr<NoteTaker::ByFunction> taken;

  static const remark::detail::Remark::Arg *find(const remark::detail::Remark &remark,
                                                 StringRef key) {
    return llvm::find_if(remark.getArgs(), [&](const auto &arg) { return arg.key == key; });
  }

  static int64_t getNumber(const remark::detail::Remark &remark, StringRef key) {
    int64_t number = 0;
    StringRef(find(remark, key)->val).getAsInteger(10, number);
    return number;
  }

  /// Kernels come in the order of their numbers; a function that is formed again begins
  /// with the first.
  static void addKernel(EntryNotes &notes, const remark::detail::Remark &remark) {
    if (getNumber(remark, "kernel") == 0)
      notes = {};
    std::vector<OpNote> &ops = notes.kernels.emplace_back();
    for (const auto &arg : remark.getArgs())
      if (arg.key == "op")
        ops.push_back({arg.val, ""});
      else if (arg.key == "at")
        ops.back().source = printSource(cast<LocationAttr>(arg.getAttribute()));
  }
};
} // namespace

NoteTaker::NoteTaker(MLIRContext &context) : taken(std::make_shared<ByFunction>()) {
  remark::RemarkCategories categories;
  categories.passed = categories.missed = "form-kernels";
  LogicalResult enabled = remark::enableOptimizationRemarks(
      context, std::make_unique<NoteStreamer>(taken),
      std::make_unique<remark::RemarkEmittingPolicyAll>(), categories);
  assert(succeeded(enabled) && "the context has remarks already");
  (void)enabled;
}

/// Returns the number that weir-form-kernels gave the kernel of a dispatch, or -1.
static int64_t getKernelNumber(schedule::DispatchOp dispatch, size_t count) {
  auto location = dyn_cast<FusedLoc>(dispatch->getLoc());
  auto number = location ? dyn_cast_or_null<IntegerAttr>(location.getMetadata()) : IntegerAttr();
  return number && number.getInt() < int64_t(count) ? number.getInt() : -1;
}

Notes NoteTaker::take(ModuleOp emitted, std::optional<int64_t> memoryLimit) {
  Notes notes;
  for (auto function : emitted.getOps<func::FuncOp>()) {
    if (!function->hasAttr(schedule::entryAttrName) || function->hasAttr(schedule::segmentAttrName))
      continue;
    EntryNotes entry = (*taken)[function.getName().str()];
    entry.entry = function.getName().str();
    entry.memoryLimit = memoryLimit;
    function.walk([&](schedule::DispatchOp dispatch) {
      entry.dispatchKernels.push_back(getKernelNumber(dispatch, entry.kernels.size()));
    });
    for (unsigned i = 0; i < function.getNumArguments(); ++i)
      if (auto refusal = function.getArgAttrOfType<DictionaryAttr>(i, schedule::refusalAttrName))
        entry.refusals.push_back({i, refusal.getAs<StringAttr>("reason").str(),
                                  refusal.getAs<StringAttr>("detail").str(),
                                  printSource(refusal.getAs<LocationAttr>("witness"))});
    notes.entries.push_back(std::move(entry));
  }
  taken->clear();
  return notes;
}

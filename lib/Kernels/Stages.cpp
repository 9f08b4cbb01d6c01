//===- Stages.cpp - Kernels that compute group by group -------------------===//

#include "weir/Kernels/Stages.h"

#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;
using namespace weir;

SmallVector<int64_t> Stage::getGroupSizes() const {
  return llvm::map_to_vector(groupDims, [&](int64_t dim) { return domain.getSizes()[dim]; });
}

int64_t Stage::getGroups() const {
  int64_t groups = 1;
  for (int64_t size : getGroupSizes())
    groups *= size;
  return groups;
}

bool weir::hasStages(schedule::KernelOp kernel) {
  return !kernel.getBody().front().getOps<schedule::KernelOp>().empty();
}

std::optional<KernelDomain> weir::getStageDomain(schedule::KernelOp kernel, StringRef *why) {
  auto refuse = [&](StringRef reason) {
    if (why)
      *why = reason;
    return std::nullopt;
  };
  SmallVector<Operation *> ops;
  for (Operation &op : kernel.getBody().front().without_terminator()) {
    if (getOpShape(&op) == OpShape::Free)
      continue;
    if (!isa<linalg::GenericOp>(op))
      return refuse("it does more than compute points");
    if (op.hasAttr(schedule::noFuseAttrName))
      return refuse("weir.no_fuse asks for a kernel of its own");
    ops.push_back(&op);
  }
  for (Type type : kernel.getResultTypes())
    if (cast<RankedTensorType>(type).getNumElements() == 0)
      return refuse("it makes an empty tensor");
  if (ops.empty())
    return refuse("it computes nothing");
  StringRef noDomain;
  std::optional<KernelDomain> domain = KernelDomain::build(ops, &noDomain);
  if (!domain)
    return refuse(noDomain);
  if (domain->getBlocks())
    return refuse("it computes a contraction in blocks");
  bool isShape = domain->getShape() == KernelShape::Map ||
                 domain->getShape() == KernelShape::Contraction ||
                 (domain->getShape() == KernelShape::Row && !domain->isAcross() &&
                  domain->getColumnOps().empty());
  if (!isShape)
    return refuse("it reduces columns, or runs in the order of its loops");
  return domain;
}

SmallVector<int64_t> weir::getBatchDims(const KernelDomain &domain) {
  SmallVector<int64_t> batches;
  for (int64_t dim = 0; dim < int64_t(domain.getNumRows()); ++dim)
    if (llvm::all_of(domain.getContractions(), [&](linalg::GenericOp op) {
          auto loop = llvm::find(domain.getDims(op), dim) - domain.getDims(op).begin();
          return llvm::all_of(op.getDpsInputOperands(), [&](OpOperand *factor) {
            return getAccessMap(op, factor).isFunctionOfDim(loop);
          });
        }))
      batches.push_back(dim);
  return batches;
}

//===----------------------------------------------------------------------===//
// Accesses
//===----------------------------------------------------------------------===//

namespace {
/// Finds the indices at which a kernel reads or writes a tensor, in dimensions of its domain. A
/// null index is computed.
class AccessFinder {
public:
  using Indices = SmallVector<AffineExpr>;

  AccessFinder(schedule::KernelOp kernel, const KernelDomain &domain)
      : domain(domain), context(kernel.getContext()) {}

  /// Returns those of all reads of `tensor`, and of the write if the kernel makes it, or nothing if
  /// a use is neither.
  std::optional<std::vector<Indices>> find(Value tensor);

private:
  const KernelDomain &domain;
  MLIRContext *context;

  std::optional<std::vector<Indices>> findReads(Value tensor);
  std::optional<std::vector<Indices>> getLoops(linalg::GenericOp op);
  AffineExpr getIndex(linalg::GenericOp op, Value index, const Indices &loops);
};
} // namespace

/// Returns the loops of `op` wherever it is computed.
std::optional<std::vector<AccessFinder::Indices>> AccessFinder::getLoops(linalg::GenericOp op) {
  if (!domain.isPrologue(op)) {
    Indices loops;
    for (int64_t dim : domain.getDims(op))
      loops.push_back(dim < 0 ? getAffineConstantExpr(0, context) : getAffineDimExpr(dim, context));
    return std::vector<Indices>{loops};
  }
  // Computed where the contraction reads it.
  std::vector<Indices> all;
  for (Value result : op->getResults()) {
    std::optional<std::vector<Indices>> reads = findReads(result);
    if (!reads)
      return std::nullopt;
    AffineMap written = op.getIndexingMapMatchingResult(cast<OpResult>(result));
    for (const Indices &at : *reads) {
      Indices loops(op.getNumLoops(), getAffineConstantExpr(0, context));
      for (auto [index, place] : llvm::zip_equal(written.getResults(), at))
        if (auto loop = dyn_cast<AffineDimExpr>(index))
          loops[loop.getPosition()] = place;
      all.push_back(loops);
    }
  }
  return all;
}

AffineExpr AccessFinder::getIndex(linalg::GenericOp op, Value index, const Indices &loops) {
  APInt literal;
  if (matchPattern(index, m_ConstantInt(&literal)))
    return getAffineConstantExpr(literal.getSExtValue(), context);
  auto loop = index.getDefiningOp<linalg::IndexOp>();
  return loop && loop->getParentOp() == op ? loops[loop.getDim()] : AffineExpr();
}

std::optional<std::vector<AccessFinder::Indices>> AccessFinder::findReads(Value tensor) {
  std::vector<Indices> all;
  for (OpOperand &use : tensor.getUses()) {
    Operation *user = use.getOwner();
    if (isa<schedule::YieldOp>(user))
      continue;
    auto op = dyn_cast<linalg::GenericOp>(user);
    auto read = dyn_cast<tensor::ExtractOp>(user);
    if (!op && read)
      op = dyn_cast<linalg::GenericOp>(read->getParentOp());
    if (!op)
      return std::nullopt;
    std::optional<std::vector<Indices>> places = getLoops(op);
    if (!places)
      return std::nullopt;
    for (const Indices &loops : *places) {
      Indices indices;
      if (read) {
        for (Value index : read.getIndices())
          indices.push_back(getIndex(op, index, loops));
      } else {
        for (AffineExpr index : getAccessMap(op, &use).getResults()) {
          bool isKnown = true; // no index of a prologue's loop is computed
          for (auto [number, loop] : llvm::enumerate(loops))
            isKnown &= loop != nullptr || !index.isFunctionOfDim(number);
          indices.push_back(isKnown ? index.replaceDims(loops) : AffineExpr());
        }
      }
      all.push_back(indices);
    }
  }
  return all;
}

std::optional<std::vector<AccessFinder::Indices>> AccessFinder::find(Value tensor) {
  std::optional<std::vector<Indices>> all = findReads(tensor);
  auto result = dyn_cast<OpResult>(tensor);
  if (!all || !result)
    return all;
  auto op = cast<linalg::GenericOp>(result.getOwner());
  AffineMap written = op.getIndexingMapMatchingResult(result);
  std::optional<std::vector<Indices>> places = getLoops(op);
  if (!places)
    return std::nullopt;
  for (const Indices &loops : *places) {
    Indices indices;
    for (AffineExpr index : written.getResults())
      indices.push_back(index.replaceDims(loops));
    all->push_back(indices);
  }
  return all;
}

SmallVector<Digit> weir::getDigits(Value tensor, ArrayRef<int64_t> dims) {
  auto shape = cast<RankedTensorType>(tensor.getType()).getShape();
  return llvm::map_to_vector(dims, [&](int64_t dim) {
    Digit digit{shape[dim], 1};
    for (int64_t size : shape.drop_front(dim + 1))
      digit.stride *= size;
    return digit;
  });
}

std::optional<SmallVector<int64_t>> weir::getGroupedDims(const Stage &stage, Value tensor) {
  auto accesses = AccessFinder(stage.kernel, stage.domain).find(tensor);
  if (!accesses || accesses->empty())
    return std::nullopt;
  SmallVector<int64_t> dims;
  for (int64_t group : stage.groupDims) {
    AffineExpr number = getAffineDimExpr(group, tensor.getContext());
    auto shape = cast<RankedTensorType>(tensor.getType()).getShape();
    auto all = llvm::seq<int64_t>(shape.size());
    auto found = llvm::find_if(all, [&](int64_t dim) { // of which a slice has only some groups
      return shape[dim] == stage.domain.getSizes()[group] &&
             llvm::all_of(*accesses, [&](const auto &indices) { return indices[dim] == number; });
    });
    if (found == all.end())
      return std::nullopt;
    dims.push_back(*found);
  }
  return dims;
}

std::optional<SmallVector<int64_t>> weir::findGroupDims(schedule::KernelOp kernel,
                                                        const KernelDomain &domain, Value tensor,
                                                        ArrayRef<Digit> digits) {
  auto accesses = AccessFinder(kernel, domain).find(tensor);
  if (!accesses || accesses->empty())
    return std::nullopt;
  int64_t rank = cast<RankedTensorType>(tensor.getType()).getRank();
  SmallVector<int64_t> groupDims;
  for (const Digit &digit : digits) {
    auto all = llvm::seq<int64_t>(rank);
    auto found =
        llvm::find_if(all, [&](int64_t dim) { return getDigits(tensor, dim).front() == digit; });
    if (found == all.end())
      return std::nullopt;
    auto walked = dyn_cast_or_null<AffineDimExpr>(accesses->front()[*found]);
    bool isOne = walked && llvm::all_of(*accesses, [&](const auto &indices) {
                   return indices[*found] == walked;
                 });
    if (!isOne || walked.getPosition() >= domain.getNumRows() ||
        domain.getSizes()[walked.getPosition()] != digit.size ||
        llvm::is_contained(groupDims, walked.getPosition()))
      return std::nullopt;
    groupDims.push_back(walked.getPosition());
  }
  // The order of a contraction's sums must not depend on what shares its kernel.
  if (domain.getShape() == KernelShape::Contraction) {
    SmallVector<int64_t> batches = getBatchDims(domain);
    if (!llvm::all_of(groupDims, [&](int64_t dim) { return llvm::is_contained(batches, dim); }))
      return std::nullopt;
  }
  return groupDims;
}

//===----------------------------------------------------------------------===//
// Kernels of stages
//===----------------------------------------------------------------------===//

const Stage *weir::findMaker(ArrayRef<Stage> stages, Value value) {
  Operation *made = stripReshapes(value).getDefiningOp();
  auto found = llvm::find_if(stages, [&](const Stage &stage) { return stage.kernel == made; });
  return found == stages.end() ? nullptr : &*found;
}

Value weir::getYielded(Value made) {
  auto result = cast<OpResult>(made);
  auto kernel = cast<schedule::KernelOp>(result.getOwner());
  return kernel.getBody().front().getTerminator()->getOperand(result.getResultNumber());
}

BlockArgument weir::findForeignRead(ArrayRef<Stage> stages) {
  for (const Stage &stage : stages)
    for (auto [input, argument] :
         llvm::zip_equal(stage.kernel.getInputs(), stage.kernel.getBody().getArguments())) {
      const Stage *maker = findMaker(stages, input);
      if (!maker)
        continue;
      Value yielded = getYielded(stripReshapes(input));
      auto written = getGroupedDims(*maker, yielded), read = getGroupedDims(stage, argument);
      if (!written || !read || getDigits(yielded, *written) != getDigits(argument, *read))
        return argument;
    }
  return {};
}

FailureOr<Stages> weir::getStages(schedule::KernelOp kernel) {
  Stages stages;
  Block &body = kernel.getBody().front();
  for (Operation &op : body.without_terminator()) {
    if (isReshape(&op))
      continue;
    auto inner = dyn_cast<schedule::KernelOp>(op);
    if (!inner)
      return op.emitError("stands beside the stages of a kernel, which has kernels and reshapes");
    StringRef why;
    std::optional<KernelDomain> domain = getStageDomain(inner, &why);
    if (!domain)
      return inner.emitError() << "cannot be a stage: " << why;
    std::optional<ArrayRef<int64_t>> groupDims = inner.getGroupDims();
    if (!groupDims || groupDims->empty() || groupDims->size() > KernelDomain::maxGroupDims)
      return inner.emitError() << "is a stage, whose group_dims must name 1 to "
                               << KernelDomain::maxGroupDims << " dimensions of its rows";
    for (auto [number, dim] : llvm::enumerate(*groupDims))
      if (dim < 0 || dim >= int64_t(domain->getNumRows()) ||
          llvm::is_contained(groupDims->take_front(number), dim))
        return inner.emitError() << "has group_dims [" << *groupDims
                                 << "], which are not different dimensions of its "
                                 << domain->getNumRows() << " rows";
    stages.push_back({inner, std::move(*domain), llvm::to_vector(*groupDims)});
    if (stages.back().getGroupSizes() != stages.front().getGroupSizes())
      return inner.emitError("has other groups than the first stage");
    for (OpResult result : inner->getResults())
      if (result.use_empty())
        return inner.emitError() << "makes result " << result.getResultNumber()
                                 << ", which nothing reads";
  }
  if (BlockArgument argument = findForeignRead(stages))
    return argument.getOwner()->getParentOp()->emitError()
           << "reads in input " << argument.getArgNumber()
           << " what another stage makes, but not only of its own group";
  for (Value value : body.getTerminator()->getOperands())
    if (!stripReshapes(value).getDefiningOp<schedule::KernelOp>())
      return kernel.emitError("yields a value that no stage makes");
  return stages;
}

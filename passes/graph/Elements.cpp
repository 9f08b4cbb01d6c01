//===- Elements.cpp - Elements of tensors as expressions ------------------===//

#include "passes/graph/Elements.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/Matchers.h"
#include "weir/Graph/Graph.h"

using namespace mlir;
using namespace weir::elements;

//===----------------------------------------------------------------------===//
// Elements
//===----------------------------------------------------------------------===//

void Digits::add(Digit digit) {
  if (digit.size == 1)
    return;
  if (!empty() && back().variable == digit.variable && back().below == digit.below * digit.size)
    digit = {digit.variable, digit.below, back().size * digit.size, back().above};
  else
    resize(size() + 1);
  back() = digit;
}

std::optional<Digits> Digits::takeFront(int64_t size) {
  Digits taken;
  while (size != 1) {
    if (empty() || size == 0)
      return std::nullopt;
    Digit digit = front();
    erase(begin());
    if (digit.size > size) {
      if (digit.size % size != 0)
        return std::nullopt;
      int64_t rest = digit.size / size;
      insert(begin(), {digit.variable, digit.below, rest, digit.above * size});
      digit = {digit.variable, digit.below * rest, size, digit.above};
    }
    if (digit.size == 0 || size % digit.size != 0)
      return std::nullopt;
    taken.add(digit);
    size /= digit.size;
  }
  return taken;
}

Coord::Coord(Digits number) : digits(std::move(number)) {
  if (!digits.empty())
    variable = digits.size() == 1 && digits[0].below == 1 && digits[0].above == 1
                   ? digits[0].variable
                   : -1;
}

Coord Unfolder::makeCoord(int64_t size) {
  Digits digits;
  digits.add({makeVariable(size), 1, size, 1});
  return digits;
}

std::optional<Digits> weir::elements::flatten(ArrayRef<Coord> coords) {
  Digits all;
  for (const Coord &coord : coords) {
    if (coord.computed.value)
      return std::nullopt;
    llvm::for_each(coord.digits, [&](Digit digit) { all.add(digit); });
  }
  return all;
}

Term Unfolder::element(Value tensor, Coords coords) {
  ArrayRef<int64_t> shape = cast<RankedTensorType>(tensor.getType()).getShape();
  for (auto [coord, size] : llvm::zip_equal(coords, shape))
    if (size == 1)
      coord = Coord();
  return {tensor, nullptr, std::make_shared<const Coords>(std::move(coords))};
}

Term Unfolder::makeElement(Value tensor) {
  Coords coords;
  for (int64_t size : cast<RankedTensorType>(tensor.getType()).getShape())
    coords.push_back(makeCoord(size));
  return element(tensor, std::move(coords));
}

/// Returns the loops of `op` that reach the element at `coords` through `map`. Loops that
/// the map does not mention stay at variable 0.
std::optional<Coords> Unfolder::getLoops(linalg::GenericOp op, AffineMap map,
                                         ArrayRef<Coord> coords) {
  Coords loops(map.getNumDims());
  llvm::SmallBitVector seen(map.getNumDims());
  for (auto [expr, coord] : llvm::zip_equal(map.getResults(), coords)) {
    if (auto dim = dyn_cast<AffineDimExpr>(expr)) {
      if (seen.test(dim.getPosition()))
        return std::nullopt;
      seen.set(dim.getPosition());
      loops[dim.getPosition()] = coord;
    } else if (!isa<AffineConstantExpr>(expr) || !coord.isVariable(0)) {
      return std::nullopt;
    }
  }
  SmallVector<int64_t> ranges = op.getStaticLoopRanges();
  for (unsigned loop = 0; loop < loops.size(); ++loop)
    if (!seen.test(loop) && ranges[loop] != 1 &&
        op.getIteratorTypesArray()[loop] == utils::IteratorType::parallel)
      return std::nullopt;
  return loops;
}

std::optional<Term> Unfolder::stepIntoBody(const Term &term, linalg::GenericOp op) {
  if (op.getNumReductionLoops() != 0)
    return std::nullopt;
  unsigned result = cast<OpResult>(term.value).getResultNumber();
  AffineMap map = op.getMatchingIndexingMap(op.getDpsInitOperand(result));
  std::optional<Coords> loops = getLoops(op, map, *term.coords);
  if (!loops)
    return std::nullopt;
  visited.insert(op);
  auto scope = std::make_shared<const Scope>(Scope{op, std::move(*loops)});
  return Term{op.getBody()->getTerminator()->getOperand(result), scope, nullptr};
}

std::optional<Term> Unfolder::stepThroughReshape(const Term &term) {
  Operation *op = term.value.getDefiningOp();
  auto from = cast<RankedTensorType>(op->getOperand(0).getType());
  auto to = cast<RankedTensorType>(op->getResult(0).getType());
  if (!from.hasStaticShape() || !to.hasStaticShape())
    return std::nullopt;
  auto collapse = dyn_cast<tensor::CollapseShapeOp>(op);
  ArrayRef<int64_t> sizes = collapse ? from.getShape() : to.getShape();
  Coords coords(from.getRank());
  for (auto [number, group] :
       llvm::enumerate(collapse ? collapse.getReassociationIndices()
                                : cast<tensor::ExpandShapeOp>(op).getReassociationIndices())) {
    SmallVector<int64_t> dims;
    llvm::copy_if(group, std::back_inserter(dims), [&](int64_t dim) { return sizes[dim] != 1; });
    if (dims.empty())
      continue;
    if (dims.size() == 1) {
      int64_t whole = int64_t(number);
      coords[collapse ? dims[0] : whole] = (*term.coords)[collapse ? whole : dims[0]];
      continue;
    }
    ArrayRef<Coord> own = *term.coords;
    std::optional<Digits> digits =
        flatten(collapse ? own[number] : own.slice(group.front(), group.size()));
    if (!digits)
      return std::nullopt;
    if (!collapse) {
      coords[number] = std::move(*digits);
      continue;
    }
    for (int64_t dim : dims) {
      std::optional<Digits> part = digits->takeFront(sizes[dim]);
      if (!part)
        return std::nullopt;
      coords[dim] = std::move(*part);
    }
  }
  visited.insert(op);
  return element(op->getOperand(0), std::move(coords));
}

std::optional<Term> Unfolder::step(const Term &term) {
  if (term.isElement()) {
    Operation *op = term.value.getDefiningOp();
    if (!op)
      return std::nullopt;
    if (auto generic = dyn_cast<linalg::GenericOp>(op))
      return stepIntoBody(term, generic);
    if (isa<tensor::ExpandShapeOp, tensor::CollapseShapeOp>(op))
      return stepThroughReshape(term);
    if (auto transpose = dyn_cast<linalg::TransposeOp>(op)) {
      Coords coords(term.coords->size());
      for (auto [place, coord] : llvm::zip_equal(transpose.getPermutation(), *term.coords))
        coords[place] = coord;
      visited.insert(op);
      return element(transpose.getInput(), std::move(coords));
    }
    if (auto fill = dyn_cast<linalg::FillOp>(op)) {
      visited.insert(op);
      return Term{fill.getInputs().front(), nullptr, nullptr};
    }
    if (auto splat = dyn_cast<tensor::SplatOp>(op))
      return Term{splat.getInput(), nullptr, nullptr};
    return std::nullopt;
  }
  if (!term.scope) {
    auto extract = term.value.getDefiningOp<tensor::ExtractOp>();
    if (!extract || extract.getTensor().getType().getRank() != 0)
      return std::nullopt;
    visited.insert(extract);
    return element(extract.getTensor(), {});
  }
  if (auto argument = dyn_cast<BlockArgument>(term.value)) {
    linalg::GenericOp op = term.scope->op;
    if (argument.getOwner() != op.getBody())
      return std::nullopt;
    OpOperand *operand = op.getMatchingOpOperand(argument);
    if (!isa<ShapedType>(operand->get().getType()))
      return Term{operand->get(), nullptr, nullptr};
    if (!isa<RankedTensorType>(operand->get().getType()))
      return std::nullopt;
    Coords coords;
    for (AffineExpr expr : op.getMatchingIndexingMap(operand).getResults()) {
      auto dim = dyn_cast<AffineDimExpr>(expr);
      auto constant = dyn_cast<AffineConstantExpr>(expr);
      if (!dim && !(constant && constant.getValue() == 0))
        return std::nullopt;
      bool isOnly = cast<RankedTensorType>(operand->get().getType()).getDimSize(coords.size()) == 1;
      if (!dim && !isOnly)
        return std::nullopt;
      coords.push_back(dim ? term.scope->loops[dim.getPosition()] : Coord());
    }
    return element(operand->get(), std::move(coords));
  }
  // A gather is an element at computed coordinates.
  if (auto extract = term.value.getDefiningOp<tensor::ExtractOp>()) {
    linalg::GenericOp op = term.scope->op;
    Coords coords;
    for (Value index : extract.getIndices()) {
      Term where = {index, term.scope, nullptr};
      int64_t size = extract.getTensor().getType().getDimSize(coords.size());
      auto loop = index.getDefiningOp<linalg::IndexOp>();
      // A loop over a part of the dimension does not name all of its places.
      if (loop && op.getStaticLoopRanges()[loop.getDim()] == size)
        coords.push_back(term.scope->loops[loop.getDim()]);
      else
        coords.push_back(where);
    }
    if (!isa<RankedTensorType>(extract.getTensor().getType()))
      return std::nullopt;
    return element(extract.getTensor(), std::move(coords));
  }
  return std::nullopt;
}

Term Unfolder::resolve(Term term, Value stop) {
  while (!(term.isElement() && term.value == stop)) {
    std::optional<Term> next = step(term);
    if (!next)
      break;
    term = *next;
  }
  return term;
}

Operation *Unfolder::getOp(Term &term) {
  term = resolve(term);
  return term.isElement() ? nullptr : term.value.getDefiningOp();
}

std::optional<Reduction> Unfolder::getReduction(Term term) {
  term = resolve(term);
  auto op = term.isElement() ? term.value.getDefiningOp<linalg::GenericOp>() : nullptr;
  if (!op || op.getNumReductionLoops() == 0)
    return std::nullopt;
  unsigned number = cast<OpResult>(term.value).getResultNumber();
  OpOperand *init = op.getDpsInitOperand(number);
  std::optional<Coords> loops = getLoops(op, op.getMatchingIndexingMap(init), *term.coords);
  if (!loops)
    return std::nullopt;

  std::optional<Combiner> combiner = getCombiner(op, number);
  if (!combiner)
    return std::nullopt;
  // The reduced value must not depend on accumulators.
  SmallVector<Value> worklist = {combiner->reduced};
  while (!worklist.empty()) {
    Value value = worklist.pop_back_val();
    auto argument = dyn_cast<BlockArgument>(value);
    if (argument && argument.getOwner() == op.getBody() &&
        argument.getArgNumber() >= op.getNumDpsInputs())
      return std::nullopt;
    if (Operation *inner = value.getDefiningOp(); inner && inner->getBlock() == op.getBody())
      worklist.append(inner->operand_begin(), inner->operand_end());
  }

  Reduction reduction;
  reduction.combine = combiner->combine;
  SmallVector<int64_t> ranges = op.getStaticLoopRanges();
  for (auto [loop, kind] : llvm::enumerate(op.getIteratorTypesArray()))
    if (kind == utils::IteratorType::reduction) {
      (*loops)[loop] = makeCoord(ranges[loop]);
      reduction.variables.push_back((*loops)[loop].variable);
    }
  visited.insert(op);
  reduction.start = element(init->get(), *term.coords);
  auto scope = std::make_shared<const Scope>(Scope{op, std::move(*loops)});
  reduction.body = {combiner->reduced, scope, nullptr};
  return reduction;
}

//===----------------------------------------------------------------------===//
// Patterns of scalars
//===----------------------------------------------------------------------===//

static bool isLowest(std::optional<double> value) {
  return value == -std::numeric_limits<double>::infinity();
}

bool weir::elements::isAt(ArrayRef<Coord> coords, ArrayRef<int64_t> variables) {
  return llvm::all_of(llvm::zip_equal(coords, variables),
                      [](auto pair) { return std::get<0>(pair).isVariable(std::get<1>(pair)); });
}

std::optional<double> Matcher::floatConstant(Term term) { return getNumber(skipConversions(term)); }

bool Matcher::isWide(Type other) const {
  return isa<FloatType>(other) && other.getIntOrFloatBitWidth() >= type.getIntOrFloatBitWidth();
}

Term Matcher::skipCasts(Term term, Value stop) {
  term = unfolder.resolve(term, stop);
  while (!term.isElement() && isWide(term.value.getType()) &&
         isa_and_present<arith::ExtFOp, arith::TruncFOp>(term.value.getDefiningOp()))
    term = unfolder.resolve(unfolder.getOperand(term, 0), stop);
  return term;
}

static std::optional<double> getLiteral(Value number) {
  FloatAttr scalar;
  DenseFPElementsAttr dense;
  APFloat value(0.0);
  if (matchPattern(number, m_Constant(&scalar)))
    value = scalar.getValue();
  else if (matchPattern(number, m_Constant(&dense)) && dense.isSplat())
    value = dense.getSplatValue<APFloat>();
  else
    return std::nullopt;
  bool losesInfo;
  value.convert(APFloat::IEEEdouble(), APFloat::rmNearestTiesToEven, &losesInfo);
  return value.convertToDouble();
}

std::optional<double> Matcher::getNumber(Term term) {
  if (std::optional<double> literal = getLiteral(term.value))
    return literal;
  Operation *op = term.isElement() ? nullptr : term.value.getDefiningOp();
  if (!isa_and_present<arith::AddFOp, arith::SubFOp>(op) || !isWide(term.value.getType()))
    return std::nullopt;
  std::optional<double> left = getLiteral(skipCasts(unfolder.getOperand(term, 0)).value);
  std::optional<double> right = getLiteral(skipCasts(unfolder.getOperand(term, 1)).value);
  if (!left || !right)
    return std::nullopt;
  return isa<arith::AddFOp>(op) ? *left + *right : *left - *right;
}

std::optional<unsigned> Matcher::getChoice(Term term) {
  if (term.isElement() || !isa_and_present<arith::SelectOp>(term.value.getDefiningOp()))
    return std::nullopt;
  Term condition = unfolder.getOperand(term, 0);
  auto order = dyn_cast_or_null<arith::CmpFOp>(unfolder.getOp(condition));
  if (!order)
    return std::nullopt;
  std::optional<double> left = getNumber(skipCasts(unfolder.getOperand(condition, 0)));
  std::optional<double> right = getNumber(skipCasts(unfolder.getOperand(condition, 1)));
  if (!left || !right)
    return std::nullopt;
  return arith::applyCmpPredicate(order.getPredicate(), APFloat(*left), APFloat(*right)) ? 1 : 2;
}

std::optional<int64_t> Matcher::integerConstant(Term term) {
  term = unfolder.resolve(term);
  IntegerAttr scalar;
  DenseIntElementsAttr dense;
  if (matchPattern(term.value, m_Constant(&scalar)))
    return scalar.getValue().getSExtValue();
  if (matchPattern(term.value, m_Constant(&dense)) && dense.isSplat())
    return dense.getSplatValue<APInt>().getSExtValue();
  return std::nullopt;
}

Term Matcher::skipConversions(Term term, Value stop) {
  term = skipCasts(term, stop);
  while (std::optional<unsigned> operand = getChoice(term))
    term = skipCasts(unfolder.getOperand(term, *operand), stop);
  return term;
}

const Coords *Matcher::getPlace(Term &term, Value tensor) {
  term = skipConversions(term, tensor);
  return term.isElement() && term.value == tensor ? term.coords.get() : nullptr;
}

Value Matcher::findTensor(Term term, RankedTensorType wanted,
                          llvm::function_ref<bool(ArrayRef<Coord>)> accepts) {
  Value found;
  for (std::optional<Term> at = term; at; at = unfolder.step(*at))
    if (at->isElement() && at->value.getType() == wanted && accepts(*at->coords))
      found = at->value;
  return found;
}

std::optional<Reduction> Matcher::sum(Term term) {
  std::optional<Reduction> reduction = unfolder.getReduction(term);
  if (!reduction)
    return std::nullopt;
  bool isSum = (isa<arith::AddFOp>(reduction->combine) && isFloat(reduction->start, 0.0)) ||
               (isa<arith::AddIOp>(reduction->combine) && isInteger(reduction->start, 0));
  return isSum ? reduction : std::nullopt;
}

std::optional<Reduction> Matcher::maximum(Term term) {
  // The larger of -inf and a value is that value, which JAX computes.
  if (auto operands = binary<arith::MaximumFOp>(term)) {
    if (isLowest(floatConstant(operands->first)))
      return maximum(skipConversions(operands->second));
    if (isLowest(floatConstant(operands->second)))
      return maximum(skipConversions(operands->first));
    return std::nullopt;
  }
  std::optional<Reduction> reduction = unfolder.getReduction(term);
  if (!reduction || !isa<arith::MaximumFOp>(reduction->combine) ||
      !isLowest(floatConstant(reduction->start)))
    return std::nullopt;
  return reduction;
}

bool Matcher::isShared(Value x, Value root, ArrayRef<Value> others) {
  Operation *end = root.getDefiningOp();
  Block *block = end->getBlock();
  SmallVector<Operation *> ops;
  for (Operation *op : unfolder.getVisited())
    if (op->getBlock() == block)
      ops.push_back(op);
  llvm::sort(ops, [](Operation *a, Operation *b) { return a->isBeforeInBlock(b); });
  llvm::SetVector<Operation *> made; // of x, for the root
  for (Operation *op : ops)
    if (llvm::any_of(op->getOperands(), [&](Value value) {
          return value == x || made.contains(value.getDefiningOp());
        }))
      made.insert(op);

  llvm::DenseSet<Operation *> stay;
  for (Operation *op : llvm::reverse(made)) {
    bool isReplaced =
        op == end || llvm::any_of(others, [&](Value value) { return value.getDefiningOp() == op; });
    if (isReplaced || llvm::all_of(op->getUsers(), [&](Operation *user) {
          Operation *outer = block->findAncestorOpInBlock(*user);
          return outer && made.contains(outer) && !stay.contains(outer);
        }))
      continue;
    stay.insert(op);
    auto generic = dyn_cast<linalg::GenericOp>(op);
    if (generic && llvm::any_of(*generic.getBody(), [&](Operation &inner) {
          return isa<math::ExpOp>(inner) ||
                 (isa<arith::AddFOp>(inner) && generic.getNumReductionLoops() != 0);
        }))
      return true;
  }
  return false;
}

std::optional<std::pair<Term, Term>> Matcher::square(Term term) {
  if (auto factors = binary<arith::MulFOp>(term))
    return factors;
  std::optional<std::pair<Term, Term>> power = binary<math::FPowIOp>(term);
  if (power ? !isInteger(power->second, 2)
            : !(power = binary<math::PowFOp>(term)) || !isFloat(power->second, 2.0))
    return std::nullopt;
  return std::pair(power->first, power->first);
}

//===- SelectedRows.cpp - Sums of the rows that a condition selects -------===//
//
// The gradient of a gather adds to each row of a table the cotangents of those who read it: a
// reduction of select(reader's index == row, cotangent, 0). The condition is the same for all
// elements of the row. So an invocation owns a row of results, asks the condition once for each
// term, and walks the row for those that it selects. On a GPU a subgroup owns the row, or a block
// of a long one, and keeps the sums in registers. Most terms are of other rows: the condition is
// asked for many at once, by the lanes of a vector or of a subgroup, and one by one only where it
// holds for one of them.
//
// The bits are those of a row kernel, which adds the terms in the same order, and a neutral element
// for each term that is not selected.
//
//===----------------------------------------------------------------------===//

#include "Shapes.h"
#include "Tuning.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "llvm/ADT/SetVector.h"

using namespace mlir;
using namespace weir;

namespace {
class SelectedRows {
public:
  explicit SelectedRows(PointEmitter &emitter) : emitter(emitter), domain(emitter.domain) {}

  bool find();
  void run(EmittedKernel &launch);
  void runTeams(EmittedKernel &launch);

private:
  PointEmitter &emitter;
  const KernelDomain &domain;
  linalg::GenericOp reduction;
  Combiner combiner;
  arith::SelectOp term;
  int64_t lanes = 1, units = 0; ///< of a row of results
  SmallVector<Rest> rests;      ///< elements behind the last unit

  /// Memory of the sums of a row: of its units, and of each rest.
  struct Sums {
    Value ofUnits;
    SmallVector<Value> ofRests;
  };

  void forEachUnit(const Sums &sums,
                   function_ref<void(AffineExpr inRow, Value memory, Value at)> body);
  SmallVector<AffineExpr> getRowPoint(AffineExpr inRow);
  Value getStart();
  Value evaluate(Value value, AffineExpr inRow, AffineExpr term);
  Value evaluate(Value value, AffineExpr inRow) {
    return evaluate(value, inRow, emitter.dim(tripCoordinate));
  }
  void addTerm(const Sums &sums);
  int64_t getTermLanes();
  Value isAnySelected(Value chunk, int64_t termLanes);
  void store(AffineExpr inRow, Value total);
  void storeRow(const Sums &sums);
  void emitTeam(Value number, int64_t blocks);

  SmallVector<Value> atTerm(Value number, ValueRange carried, PointEmitter::LoopBody body);
  SmallVector<Value> addTerms(ArrayRef<Value> numbers, ValueRange before);
  SmallVector<Value> addTerms(Value first, int64_t count, ValueRange before);
  Value isAnyOfTeamSelected(Value first, int64_t perLane);
  int64_t ofLane = 1; ///< units of a row that an invocation of a subgroup owns
  /// Calls `body` with the first element of one of these, if the row has it.
  SmallVector<Value> atUnit(int64_t number, ValueRange otherwise,
                            function_ref<SmallVector<Value>(AffineExpr inRow)> body);
};
} // namespace

/// Finds the one reduction of the kernel and the condition of its terms. Returns whether the kernel
/// is of this kind.
bool SelectedRows::find() {
  ArrayRef<int64_t> rows = domain.getRowSizes();
  bool isFree = emitter.profile.hasFreeVectors();
  if (!(isFree || emitter.profile.units > 0) || !domain.isAcross() ||
      !domain.getColumnOps().empty() || rows.size() < 2)
    return false;
  for (Operation &op : emitter.kernel.getBody().front().without_terminator())
    if (getOpShape(&op) == OpShape::Reduction) {
      if (reduction)
        return false;
      reduction = cast<linalg::GenericOp>(op);
    }
  if (!reduction || reduction->getNumResults() != 1)
    return false;
  if (llvm::any_of(emitter.computed, [&](Value value) {
        return value.getDefiningOp() != reduction && domain.hasColumns(value.getDefiningOp());
      }))
    return false;
  term = getSelection(reduction);
  if (!term)
    return false;
  combiner = getCombiners(reduction)->front();
  lanes = isFree ? getLanesBeforeRest(emitter.profile, rows.back())
                 : getLanes(emitter.profile, rows.take_back());
  units = rows.back() / lanes;
  if (!isFree)
    return true;
  rests = getRests(rows.back(), lanes);
  Type element = emitter.getElementType(reduction.getResult(0));
  return isKeepable(element) &&
         rows.back() * (element.getIntOrFloatBitWidth() / 8) <= emitter.profile.privateRowBytes;
}

/// Calls `body` for all elements of a row, with the last index of the domain's rows and the place
/// of the sums.
void SelectedRows::forEachUnit(const Sums &sums,
                               function_ref<void(AffineExpr inRow, Value memory, Value at)> body) {
  auto getIndex = [&](AffineExpr first) {
    return emitter.lanes > 1 ? first + emitter.vectorLane() : first;
  };
  emitter.setLanes(lanes);
  emitter.loop(units, {}, [&](Value turn, ValueRange) -> SmallVector<Value> {
    AffineExpr unit = emitter.setCoordinate(tileColumnCoordinate, turn);
    body(getIndex(unit * lanes), sums.ofUnits, turn);
    return {};
  });
  for (auto [rest, memory] : llvm::zip_equal(rests, sums.ofRests)) {
    emitter.setLanes(rest.lanes);
    emitter.loop(1, {}, [&](Value first, ValueRange) -> SmallVector<Value> {
      body(getIndex(emitter.constant(rest.begin)), memory, first);
      return {};
    });
  }
  emitter.setLanes(lanes);
}

/// Returns the point of the domain's rows with this last index, in the row that `unitCoordinate`
/// numbers.
SmallVector<AffineExpr> SelectedRows::getRowPoint(AffineExpr inRow) {
  SmallVector<AffineExpr> point =
      emitter.delinearize(emitter.dim(unitCoordinate), domain.getRowSizes().drop_back());
  point.push_back(inRow);
  return point;
}

/// Returns what a sum begins with.
Value SelectedRows::getStart() {
  Value start =
      arith::ConstantOp::create(emitter.builder(), emitter.loc, getNeutral(combiner.combine));
  return lanes > 1 ? emitter.broadcast(start) : start;
}

/// Returns a value of the body for a term.
Value SelectedRows::evaluate(Value value, AffineExpr inRow, AffineExpr term) {
  SmallVector<AffineExpr> point = getRowPoint(inRow);
  llvm::append_range(point, emitter.delinearize(term, domain.getColumnSizes()));
  return emitter.evaluateInBody(reduction, value, emitter.getLoops(reduction, point));
}

/// Adds the term that `tripCoordinate` numbers to the row, if it is selected.
void SelectedRows::addTerm(const Sums &sums) {
  auto place = emitter.codeFor(reduction);
  Value selected = evaluate(term.getCondition(), emitter.constant(0));
  emitter.guard(selected, {}, [&]() -> SmallVector<Value> {
    forEachUnit(sums, [&](AffineExpr inRow, Value memory, Value at) {
      Value value = evaluate(term.getTrueValue(), inRow);
      Value sum = memref::LoadOp::create(emitter.builder(), emitter.loc, memory, at);
      sum = emitter.combine(combiner.combine, sum, value);
      memref::StoreOp::create(emitter.builder(), emitter.loc, sum, memory, at);
    });
    return {};
  });
}

/// Stores the results in elements of a row whose terms have all been added.
void SelectedRows::store(AffineExpr inRow, Value total) {
  emitter.startPoint();
  auto place = emitter.codeFor(reduction);
  SmallVector<AffineExpr> point = getRowPoint(inRow);
  point.resize(domain.getSizes().size(), emitter.constant(0));
  OpOperand &init = reduction.getDpsInitsMutable()[0];
  if (getSplat(init.get()) != getNeutral(combiner.combine)) {
    SmallVector<AffineExpr> loops = emitter.getLoops(reduction, point);
    Value start =
        emitter.evaluate(init.get(), emitter.apply(reduction.getMatchingIndexingMap(&init), loops));
    total = emitter.combine(combiner.combine, start, total);
  }
  emitter.setReduced(reduction.getResult(0), total);
  emitResults(emitter, llvm::to_vector(llvm::seq<unsigned>(0, emitter.computed.size())), point);
}

/// Returns the neighbouring terms for which a vector asks the condition, 1 if it cannot.
int64_t SelectedRows::getTermLanes() {
  const int64_t termLanes = 2 * emitter.profile.vectorWidth; // as many as a byte has bits, or more
  if (getProduct(domain.getColumnSizes()) < termLanes)
    return 1;
  emitter.setLanes(termLanes);
  SmallVector<AffineExpr> point = getRowPoint(emitter.constant(0));
  llvm::append_range(
      point, emitter.delinearize(emitter.dim(tripCoordinate) * termLanes + emitter.vectorLane(),
                                 domain.getColumnSizes()));
  SmallVector<AffineExpr> loops = emitter.getLoops(reduction, point);
  bool isFriendly = true;
  llvm::SetVector<Value> slice;
  slice.insert(term.getCondition());
  for (size_t next = 0; next < slice.size(); ++next) {
    if (auto argument = dyn_cast<BlockArgument>(slice[next])) {
      if (argument.getOwner() != reduction.getBody())
        continue;
      OpOperand &operand = reduction->getOpOperand(argument.getArgNumber());
      isFriendly &= !isa<RankedTensorType>(operand.get().getType()) ||
                    emitter.isVectorFriendly(
                        operand.get(), emitter.apply(getAccessMap(reduction, &operand), loops));
      continue;
    }
    Operation *producer = slice[next].getDefiningOp();
    if (producer->getBlock() != reduction.getBody())
      continue;
    isFriendly &= OpTrait::hasElementwiseMappableTraits(producer) ||
                  isa<linalg::IndexOp>(producer) || producer->hasTrait<OpTrait::ConstantLike>();
    slice.insert(producer->operand_begin(), producer->operand_end());
  }
  emitter.setLanes(lanes);
  return isFriendly ? termLanes : 1;
}

/// Whether the condition holds for one of the `termLanes` terms of a chunk.
Value SelectedRows::isAnySelected(Value chunk, int64_t termLanes) {
  auto place = emitter.codeFor(reduction);
  emitter.setLanes(termLanes);
  AffineExpr number = emitter.setCoordinate(tripCoordinate, chunk) * termLanes;
  Value selected = emitter.broadcast(
      evaluate(term.getCondition(), emitter.constant(0), number + emitter.vectorLane()));
  OpBuilder &b = emitter.builder();
  auto bits = VectorType::get(1, b.getIntegerType(termLanes));
  Value word = vector::ExtractOp::create(
      b, emitter.loc, vector::BitCastOp::create(b, emitter.loc, bits, selected), 0);
  Value none = arith::ConstantIntOp::create(b, emitter.loc, word.getType(), 0);
  return arith::CmpIOp::create(b, emitter.loc, arith::CmpIPredicate::ne, word, none);
}

void SelectedRows::storeRow(const Sums &sums) {
  forEachUnit(sums, [&](AffineExpr inRow, Value memory, Value at) {
    auto place = emitter.codeFor(reduction);
    store(inRow, memref::LoadOp::create(emitter.builder(), emitter.loc, memory, at));
  });
}

SmallVector<Value> SelectedRows::atUnit(int64_t number, ValueRange otherwise,
                                        function_ref<SmallVector<Value>(AffineExpr inRow)> body) {
  int64_t subgroup = emitter.profile.subgroupSize;
  AffineExpr unit = (emitter.dim(tileColumnCoordinate) * ofLane + number) * subgroup +
                    emitter.dim(teamLaneCoordinate);
  auto call = [&](AffineExpr inside) {
    return body(lanes > 1 ? inside * lanes + emitter.vectorLane() : inside);
  };
  if (units % (ofLane * subgroup) == 0)
    return call(unit);
  Value place = emitter.expand(unit);
  Value isInside = arith::CmpIOp::create(emitter.builder(), emitter.loc, arith::CmpIPredicate::ult,
                                         place, emitter.indexConstant(units));
  return emitter.guard(isInside, otherwise,
                       [&] { return call(emitter.setCoordinate(tileRowCoordinate, place)); });
}

/// Calls `body` where `number` is that of the term.
SmallVector<Value> SelectedRows::atTerm(Value number, ValueRange carried,
                                        PointEmitter::LoopBody body) {
  return emitter.loop(1, carried, [&](Value first, ValueRange running) {
    emitter.setCoordinate(tripCoordinate, number);
    return body(first, running);
  });
}

/// Adds the terms of these numbers to the sums, if they are selected. All are asked first.
SmallVector<Value> SelectedRows::addTerms(ArrayRef<Value> numbers, ValueRange before) {
  auto place = emitter.codeFor(reduction);
  SmallVector<Value> selected, sums(before);
  for (Value number : numbers)
    selected.append(atTerm(number, {}, [&](Value, ValueRange) -> SmallVector<Value> {
      return {evaluate(term.getCondition(), emitter.constant(0))};
    }));
  for (auto [number, isSelected] : llvm::zip_equal(numbers, selected))
    sums = atTerm(number, sums, [&](Value, ValueRange running) {
      return emitter.guard(isSelected, running, [&] {
        SmallVector<Value> next;
        for (int64_t unit = 0; unit < ofLane; ++unit)
          next.append(atUnit(unit, running[unit], [&](AffineExpr inRow) -> SmallVector<Value> {
            return {emitter.combine(combiner.combine, running[unit],
                                    evaluate(term.getTrueValue(), inRow))};
          }));
        return next;
      });
    });
  return sums;
}

/// Adds `count` terms from `first` on.
SmallVector<Value> SelectedRows::addTerms(Value first, int64_t count, ValueRange before) {
  auto offset = [&](Value from, int64_t by) -> Value {
    return arith::AddIOp::create(emitter.builder(), emitter.loc, from, emitter.indexConstant(by));
  };
  constexpr int64_t termsAtOnce = tuning::selected_rows::termsAtOnce;
  int64_t turns = count / termsAtOnce;
  SmallVector<Value> sums = emitter.loop(turns, before, [&](Value turn, ValueRange running) {
    OpBuilder &b = emitter.builder();
    Value inTurn = arith::MulIOp::create(b, emitter.loc, turn, emitter.indexConstant(termsAtOnce));
    Value begin = arith::AddIOp::create(b, emitter.loc, first, inTurn);
    SmallVector<Value> numbers;
    for (int64_t i = 0; i < termsAtOnce; ++i)
      numbers.push_back(offset(begin, i));
    return addTerms(numbers, running);
  });
  for (int64_t number = turns * termsAtOnce; number < count; ++number)
    sums = addTerms(offset(first, number), sums);
  return sums;
}

/// Whether the condition holds for one of the terms from `first` on, of which each lane of the
/// subgroup asks for `perLane`.
Value SelectedRows::isAnyOfTeamSelected(Value first, int64_t perLane) {
  auto place = emitter.codeFor(reduction);
  int64_t subgroup = emitter.profile.subgroupSize;
  Value own = arith::AddIOp::create(emitter.builder(), emitter.loc, first,
                                    emitter.expand(emitter.dim(teamLaneCoordinate)));
  Value any;
  for (int64_t i = 0; i < perLane; ++i) {
    Value number = arith::AddIOp::create(emitter.builder(), emitter.loc, own,
                                         emitter.indexConstant(i * subgroup));
    Value selected = atTerm(number, {}, [&](Value, ValueRange) -> SmallVector<Value> {
                       return {evaluate(term.getCondition(), emitter.constant(0))};
                     }).front();
    any = any ? arith::OrIOp::create(emitter.builder(), emitter.loc, any, selected) : selected;
  }
  OpBuilder &b = emitter.builder();
  Value bits = arith::ExtUIOp::create(b, emitter.loc, b.getI32Type(), any);
  for (int64_t distance = 1; distance < subgroup; distance *= 2) {
    auto other =
        gpu::ShuffleOp::create(b, emitter.loc, bits, distance, subgroup, gpu::ShuffleMode::XOR);
    bits = arith::OrIOp::create(b, emitter.loc, bits, other.getShuffleResult());
  }
  Value none = arith::ConstantIntOp::create(b, emitter.loc, b.getI32Type(), 0);
  return arith::CmpIOp::create(b, emitter.loc, arith::CmpIPredicate::ne, bits, none);
}

/// Computes a block of a row in a subgroup.
void SelectedRows::emitTeam(Value number, int64_t blocks) {
  int64_t rows = getProduct(domain.getRowSizes().drop_back());
  AffineExpr at = emitter.setCoordinate(packedCoordinate, number);
  SmallVector<AffineExpr> digits = getDigits(emitter, at, {rows, blocks});
  emitter.setCoordinate(unitCoordinate, emitter.expand(digits[0]));
  emitter.setCoordinate(tileColumnCoordinate, emitter.expand(digits[1]));
  SmallVector<Value> sums(ofLane, getStart());
  constexpr int64_t perLane = tuning::selected_rows::termsOfLane;
  int64_t terms = getProduct(domain.getColumnSizes());
  int64_t atOnce = perLane * emitter.profile.subgroupSize, chunks = terms / atOnce;
  sums = emitter.loop(chunks, sums, [&](Value chunk, ValueRange running) {
    Value first =
        arith::MulIOp::create(emitter.builder(), emitter.loc, chunk, emitter.indexConstant(atOnce));
    SmallVector<Value> before(running);
    return emitter.guard(isAnyOfTeamSelected(first, perLane), before,
                         [&] { return addTerms(first, atOnce, before); });
  });
  sums = addTerms(emitter.indexConstant(chunks * atOnce), terms - chunks * atOnce, sums);
  for (int64_t unit = 0; unit < ofLane; ++unit)
    atUnit(unit, {}, [&](AffineExpr inRow) -> SmallVector<Value> {
      store(inRow, sums[unit]);
      return {};
    });
}

void SelectedRows::runTeams(EmittedKernel &launch) {
  const Profile &profile = emitter.profile;
  int64_t rows = getProduct(domain.getRowSizes().drop_back());
  int64_t teams = profile.workgroupSize / profile.subgroupSize;
  ofLane = std::clamp<int64_t>(llvm::divideCeil(units, profile.subgroupSize), 1,
                               tuning::selected_rows::maxUnitsOfLane);
  int64_t blocks = llvm::divideCeil(units, profile.subgroupSize * ofLane);
  emitWorkgroups(emitter, llvm::divideCeil(rows * blocks, teams), launch, [&](Value group) {
    OpBuilder &b = emitter.builder();
    Location loc = emitter.loc;
    emitter.setCoordinate(teamLaneCoordinate, gpu::LaneIdOp::create(b, loc, nullptr));
    Value first = arith::MulIOp::create(b, loc, group, emitter.indexConstant(teams));
    Value number = arith::AddIOp::create(b, loc, first, gpu::SubgroupIdOp::create(b, loc, nullptr));
    if (rows * blocks % teams == 0)
      return emitTeam(number, blocks);
    Value isInside = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::ult, number,
                                           emitter.indexConstant(rows * blocks));
    emitter.guard(isInside, {}, [&]() -> SmallVector<Value> {
      emitTeam(number, blocks);
      return {};
    });
  });
}

void SelectedRows::run(EmittedKernel &launch) {
  int64_t rows = getProduct(domain.getRowSizes().drop_back());
  emitUnits(emitter, rows, launch, [&](Value row) {
    Type element = emitter.getElementType(reduction.getResult(0));
    Sums sums = {allocatePrivate(emitter, element, lanes, units), {}};
    for (const Rest &rest : rests)
      sums.ofRests.push_back(allocatePrivate(emitter, element, rest.lanes, 1));
    emitter.setCoordinate(unitCoordinate, row);
    forEachUnit(sums, [&](AffineExpr, Value memory, Value at) {
      OpBuilder &b = emitter.builder();
      Value start = arith::ConstantOp::create(b, emitter.loc, getNeutral(combiner.combine));
      if (emitter.lanes > 1)
        start = emitter.broadcast(start);
      memref::StoreOp::create(b, emitter.loc, start, memory, at);
    });
    auto addAll = [&](Value first, int64_t count) {
      emitter.loop(count, {}, [&](Value turn, ValueRange) -> SmallVector<Value> {
        emitter.setCoordinate(tripCoordinate,
                              arith::AddIOp::create(emitter.builder(), emitter.loc, first, turn));
        addTerm(sums);
        return {};
      });
    };
    int64_t terms = getProduct(domain.getColumnSizes()), termLanes = getTermLanes();
    int64_t chunks = termLanes > 1 ? terms / termLanes : 0;
    emitter.loop(chunks, {}, [&](Value chunk, ValueRange) -> SmallVector<Value> {
      Value any = isAnySelected(chunk, termLanes);
      emitter.setLanes(lanes);
      return emitter.guard(any, {}, [&]() -> SmallVector<Value> {
        addAll(arith::MulIOp::create(emitter.builder(), emitter.loc, chunk,
                                     emitter.indexConstant(termLanes)),
               termLanes);
        return {};
      });
    });
    addAll(emitter.indexConstant(chunks * termLanes), terms - chunks * termLanes);
    storeRow(sums);
  });
}

bool weir::emitSelectedRows(PointEmitter &emitter, EmittedKernel &launch) {
  SelectedRows rows(emitter);
  if (!rows.find())
    return false;
  if (emitter.profile.hasFreeVectors())
    rows.run(launch);
  else
    rows.runTeams(launch);
  return true;
}

//===- RowTeam.cpp - Invocations that share a row -------------------------===//
//
// A row's team is an invocation, some that have neighbouring rows, a subgroup, or a workgroup. Each
// invocation has combined what it has of the row; the team combines these values, those of all
// reductions of a pass at a time.
//
//===----------------------------------------------------------------------===//

#include "Shapes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;
using namespace weir;

/// Of teams that are interleaved.
static constexpr unsigned teamCoordinate = tileColumnCoordinate;

Value RowTeam::number() {
  OpBuilder &b = emitter.builder();
  Location loc = emitter.loc;
  Value team = emitter.indexConstant(0);
  if (layout.teamSize == 1) {
    team = gpu::ThreadIdOp::create(b, loc, gpu::Dimension::x);
    lane = emitter.indexConstant(0);
  } else if (layout.isInterleaved) {
    Value thread = gpu::ThreadIdOp::create(b, loc, gpu::Dimension::x);
    Value teams = emitter.indexConstant(layout.teams);
    team = arith::RemUIOp::create(b, loc, thread, teams);
    lane = arith::DivUIOp::create(b, loc, thread, teams);
    emitter.setCoordinate(teamCoordinate, team);
  } else {
    subgroupLane = gpu::LaneIdOp::create(b, loc, nullptr);
    subgroup = gpu::SubgroupIdOp::create(b, loc, nullptr);
    lane = subgroupLane;
    if (layout.teamSize > emitter.profile.subgroupSize)
      lane = arith::AddIOp::create(
          b, loc,
          arith::MulIOp::create(b, loc, subgroup,
                                emitter.indexConstant(emitter.profile.subgroupSize)),
          subgroupLane);
    else if (layout.teams > 1)
      team = subgroup;
  }
  emitter.setCoordinate(teamLaneCoordinate, lane);
  return team;
}

/// Combines the elements of a vector.
Value RowTeam::reduceVector(Operation *combiner, Value vector) {
  if (emitter.profile.hasFreeVectors())
    return emitter.combineLanes(combiner, vector);
  auto reduce = [&](auto &self, int64_t first, int64_t count) -> Value {
    if (count == 2)
      return emitter.combine(combiner, emitter.extract(vector, first),
                             emitter.extract(vector, first + 1));
    Value low = self(self, first, count / 2);
    Value high = self(self, first + count / 2, count / 2);
    return emitter.combine(combiner, low, high);
  };
  return reduce(reduce, 0, layout.columnLanes);
}

/// Returns a value as shuffles and memory take it: they take no single bits.
static Value widen(PointEmitter &emitter, Value value) {
  OpBuilder &b = emitter.builder();
  return value.getType().isInteger(1)
             ? arith::ExtUIOp::create(b, emitter.loc, b.getI32Type(), value)
             : value;
}

/// Returns a value of `type` that was made wider.
static Value narrow(PointEmitter &emitter, Value value, Type type) {
  return type.isInteger(1) ? arith::TruncIOp::create(emitter.builder(), emitter.loc, type, value)
                           : value;
}

void weir::reduceSubgroup(PointEmitter &emitter, ArrayRef<Operation *> combiners,
                          MutableArrayRef<Value> partials, Value lane, int64_t lanes) {
  OpBuilder &b = emitter.builder();
  Location loc = emitter.loc;
  int64_t size = emitter.profile.subgroupSize;
  if (lanes == 0)
    lanes = size;
  for (int64_t distance = 1; distance < lanes; distance *= 2) {
    // The lower lane's value first, so that every lane adds in the same order.
    Value bit = arith::ConstantIndexOp::create(b, loc, distance);
    Value isHigh =
        arith::CmpIOp::create(b, loc, arith::CmpIPredicate::ne,
                              arith::AndIOp::create(b, loc, lane, bit), emitter.indexConstant(0));
    SmallVector<Value> others;
    for (Value partial : partials) {
      auto other = gpu::ShuffleOp::create(b, loc, widen(emitter, partial), distance, size,
                                          gpu::ShuffleMode::XOR);
      others.push_back(narrow(emitter, other.getShuffleResult(), partial.getType()));
    }
    for (auto [combiner, partial, received] : llvm::zip_equal(combiners, partials, others)) {
      Value low = arith::SelectOp::create(b, loc, isHigh, received, partial);
      Value high = arith::SelectOp::create(b, loc, isHigh, partial, received);
      partial = emitter.combine(combiner, low, high);
    }
  }
}

Value weir::reduceSubgroup(PointEmitter &emitter, Operation *combiner, Value partial, Value lane,
                           int64_t lanes) {
  reduceSubgroup(emitter, combiner, MutableArrayRef(partial), lane, lanes);
  return partial;
}

/// Returns memory of the workgroup by which it combines the value `number` of this pass.
Value RowTeam::getTeamMemory(size_t number, int64_t count, Type type) {
  Value &memory = teamMemory[{emitter.getPass(), number}];
  auto shared =
      MemRefType::get({count}, type.isInteger(1) ? IntegerType::get(emitter.context, 32) : type,
                      MemRefLayoutAttrInterface{},
                      gpu::AddressSpaceAttr::get(emitter.context, gpu::AddressSpace::Workgroup));
  if (!memory)
    memory = emitter.getFunction().addWorkgroupAttribution(shared, emitter.loc);
  return memory;
}

/// Stores by `store` what all invocations then get. Those that still read what the row before left
/// there are behind the barrier of another pass, or of the copies, or else behind one more.
void RowTeam::shareByTeam(int64_t barriers, function_ref<void()> store) {
  if (layout.rowsPerTeam > 1 && barriers < 2)
    gpu::BarrierOp::create(emitter.builder(), emitter.loc);
  store();
  gpu::BarrierOp::create(emitter.builder(), emitter.loc);
}

/// Combines what the invocations of each row across memory have, in their order. In the
/// workgroup's memory an invocation's rows are neighbours, and so are those of other teams.
void RowTeam::reduceInterleaved(ArrayRef<Operation *> combiners, MutableArrayRef<Value> partials,
                                int64_t barriers) {
  OpBuilder &b = emitter.builder();
  Location loc = emitter.loc;
  auto getLanes = [](Value partial) -> int64_t {
    auto vector = dyn_cast<VectorType>(partial.getType());
    return vector ? vector.getNumElements() : 1;
  };
  auto getMemory = [&](size_t number) {
    return getTeamMemory(number, layout.workgroup * getLanes(partials[number]),
                         getElementTypeOrSelf(partials[number].getType()));
  };
  auto getAddress = [&](AffineExpr member, int64_t lane, int64_t lanes) {
    AffineExpr place = member * layout.teams + emitter.dim(teamCoordinate);
    return emitter.expand(place * lanes + lane);
  };
  shareByTeam(barriers, [&] {
    for (auto [number, partial] : llvm::enumerate(partials)) {
      const int64_t lanes = getLanes(partial);
      for (int64_t lane = 0; lane < lanes; ++lane) {
        Value element = emitter.isVector(partial) ? emitter.extract(partial, lane) : partial;
        memref::StoreOp::create(b, loc, widen(emitter, element), getMemory(number),
                                getAddress(emitter.dim(teamLaneCoordinate), lane, lanes));
      }
    }
  });
  for (auto [number, partial] : llvm::enumerate(partials)) {
    auto place = emitter.codeFor(combiners[number]->getParentOp());
    const int64_t lanes = getLanes(partial);
    Type type = partial.getType();
    Value total;
    for (int64_t member = 0; member < layout.teamSize; ++member) {
      SmallVector<Value> elements;
      for (int64_t lane = 0; lane < lanes; ++lane)
        elements.push_back(
            narrow(emitter,
                   memref::LoadOp::create(b, emitter.loc, getMemory(number),
                                          getAddress(emitter.constant(member), lane, lanes)),
                   getElementTypeOrSelf(type)));
      Value next = isa<VectorType>(type)
                       ? Value(vector::FromElementsOp::create(b, emitter.loc, type, elements))
                       : elements.front();
      total = total ? emitter.combine(combiners[number], total, next) : next;
    }
    partial = total;
  }
}

void RowTeam::reduce(ArrayRef<Operation *> combiners, MutableArrayRef<Value> partials,
                     int64_t barriers) {
  for (auto [combiner, partial] : llvm::zip_equal(combiners, partials)) {
    auto place = emitter.codeFor(combiner->getParentOp());
    if (layout.columnLanes > 1 && emitter.isVector(partial))
      partial = reduceVector(combiner, partial);
  }
  if (layout.teamSize == 1 || combiners.empty())
    return;
  if (layout.isInterleaved)
    return reduceInterleaved(combiners, partials, barriers);

  reduceSubgroup(emitter, combiners, partials, subgroupLane);
  if (layout.teamSize == emitter.profile.subgroupSize)
    return;

  Location loc = emitter.loc;
  int64_t subgroups = layout.teamSize / emitter.profile.subgroupSize;
  auto getMemory = [&](size_t number) {
    return getTeamMemory(number, subgroups, partials[number].getType());
  };
  Value isFirst = arith::CmpIOp::create(emitter.builder(), loc, arith::CmpIPredicate::eq,
                                        subgroupLane, emitter.indexConstant(0));
  shareByTeam(barriers, [&] {
    emitter.guard(isFirst, {}, [&]() -> SmallVector<Value> {
      for (auto [number, partial] : llvm::enumerate(partials))
        memref::StoreOp::create(emitter.builder(), loc, widen(emitter, partial), getMemory(number),
                                subgroup);
      return {};
    });
  });
  for (auto [number, partial] : llvm::enumerate(partials)) {
    auto place = emitter.codeFor(combiners[number]->getParentOp());
    Type type = partial.getType();
    auto load = [&, number = number](int64_t member) {
      Value loaded = memref::LoadOp::create(emitter.builder(), emitter.loc, getMemory(number),
                                            emitter.indexConstant(member));
      return narrow(emitter, loaded, type);
    };
    Value total = load(0);
    for (int64_t member = 1; member < subgroups; ++member)
      total = emitter.combine(combiners[number], total, load(member));
    partial = total;
  }
}

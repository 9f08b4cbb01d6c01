//===- RowCopies.cpp - Rows that are brought while others are computed ----===//
//
// Where a long row has all of a unit, nothing comes from memory while the unit computes, and behind
// a barrier nothing is computed while it waits for memory. So a workgroup owns some rows, one after
// the other, and copies the next one to workgroup memory asynchronously while it computes one:
//
//     begin to copy the first row
//     for each row:
//       wait for the copies                  each invocation for its own, then for the others
//       load the row into registers          each invocation loads what it has copied
//       begin to copy the next row           to the same bytes, which are free again
//       reduce the row and store the results
//
// Where registers do not hold a row, it stays in workgroup memory, and what has no room there in
// registers:
//
//     begin to copy the first row, load the rest
//     for each row:
//       wait for the copies
//       reduce the row and store the results; at the last trips, begin to copy the next row
//
//===----------------------------------------------------------------------===//

#include "Shapes.h"
#include "Tuning.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/NVGPU/IR/NVGPUDialect.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;
using namespace weir;

/// Bytes that are copied at once.
static constexpr int64_t runBytes = 16;

/// Whether an address is one of the row that an invocation walks, and of nothing else.
static bool isOfRow(AffineExpr address) {
  bool isKnown = true;
  address.walk([&](AffineExpr part) {
    if (auto dim = dyn_cast<AffineDimExpr>(part))
      isKnown &=
          llvm::is_contained(ArrayRef<unsigned>{unitCoordinate, tripCoordinate, teamLaneCoordinate,
                                                PointEmitter::laneOfVector},
                             dim.getPosition());
  });
  return isKnown && address.isFunctionOfDim(unitCoordinate) &&
         address.isFunctionOfDim(tripCoordinate);
}

/// Returns the rows that a workgroup owns, if a unit holds up to `held` workgroups: as few as let
/// all run at a time, or some more where the unit with the most rows has fewer then. Returns 0 if
/// there are too few rows.
static int64_t chooseRowsPerTeam(int64_t rows, int64_t units, int64_t held) {
  constexpr int64_t enough = tuning::row_copies::enoughRows;
  const int64_t least =
      std::clamp(int64_t(llvm::divideCeil(rows, units * held)), tuning::loops::minTrips, enough);
  const int64_t most = std::min<int64_t>(llvm::divideCeil(rows, units), enough);
  int64_t best = 0, fewest = INT64_MAX;
  for (int64_t each = least; each <= most; ++each) {
    const int64_t ofUnit = llvm::divideCeil(llvm::divideCeil(rows, each), units) * each;
    if (ofUnit < fewest) {
      fewest = ofUnit;
      best = each;
    }
  }
  return best;
}

RowCopies::RowCopies(PointEmitter &emitter, const Survey &survey, const RowLayout &layout)
    : emitter(emitter), layout(layout) {
  const Profile &profile = emitter.profile;
  if (!profile.copiesAsynchronously() || profile.units == 0 || !profile.unrollPrivate ||
      emitter.isStage() || layout.teams != 1 || layout.teamSize == profile.subgroupSize ||
      layout.isInterleaved || layout.rowLanes != 1 || !layout.rests.empty())
    return;
  SmallVector<Load> found = findLoads(survey);
  // Bytes of workgroup memory by which the team combines values, each of at most eight.
  int64_t ofSums = 0;
  for (Operation &op : emitter.kernel.getBody().front().without_terminator())
    if (getOpShape(&op) == OpShape::Reduction)
      ofSums += op.getNumResults() * llvm::alignTo(8 * layout.teamSize / profile.subgroupSize, 128);
  int64_t rowBytes = ofSums;
  for (int64_t trip = 0; trip < layout.getTrips(); ++trip)
    rowBytes += int64_t(found.size()) * getBytes(trip);
  // Smaller workgroups divide what a unit has for the largest one. Elements
  // of 16 bits are widened once for all passes.
  constexpr int64_t widened = 4;
  const int64_t keptBytes =
      int64_t(found.size()) * layout.getTrips() * layout.columnLanes * widened;
  if (keptBytes == 0)
    return;
  int64_t held = std::min(
      {profile.maxWorkgroupSize / layout.workgroup, profile.workgroupMemory / rowBytes,
       profile.privateRowBytes * profile.maxWorkgroupSize / (keptBytes * layout.workgroup)});
  if (held > 1 && isBoundByFunctions(found))
    return;
  if (held == 0) {
    if (!emitter.domain.getColumnOps().empty() ||
        !shareRows(found, profile.workgroupMemory - ofSums))
      return;
    isShared = true;
    held = 1;
  }
  if (emitter.domain.getColumnOps().empty())
    rowsPerTeam = chooseRowsPerTeam(layout.rows, profile.units, held);
  else if (layout.rows % layout.rowsPerTeam == 0 && layout.restUnits == 0)
    rowsPerTeam = layout.rowsPerTeam; // shorter parts, and rests, make code that is hard to prove
  if (rowsPerTeam >= tuning::loops::minTrips)
    loads = std::move(found);
}

int64_t RowCopies::getBytes(int64_t trip) const {
  constexpr int64_t alignment = 1024; // of a variable
  return llvm::alignTo(getUnits(trip) * runBytes, alignment);
}

/// Chooses what of a row stays in workgroup memory of so many bytes; returns whether registers hold
/// what is left, a small part of it.
bool RowCopies::shareRows(SmallVector<Load> &found, int64_t bytes) const {
  int64_t vectors = 0;
  for (int64_t trip = 0; trip < layout.getTrips(); ++trip)
    for (Load &load : found) {
      const bool fits = getBytes(trip) <= bytes;
      load.inRegisters.push_back(!fits);
      if (fits)
        bytes -= getBytes(trip);
      else
        ++vectors;
    }
  return vectors <= tuning::row_copies::maxVectors &&
         tuning::row_copies::minRatio * vectors <= layout.getTrips() * int64_t(found.size());
}

bool RowCopies::isLast(unsigned pass) const {
  return llvm::any_of(loads, [&](const Load &load) { return load.lastPass == pass; });
}

/// Returns all loads of rows if all of them can be copied, else none.
SmallVector<RowCopies::Load> RowCopies::findLoads(const Survey &survey) const {
  SmallVector<Load> found;
  DenseSet<unsigned> buffers;
  for (const auto &[key, passes] : survey.loads) {
    auto [buffer, address] = key;
    if (!address.isFunctionOfDim(unitCoordinate) || !address.isFunctionOfDim(teamLaneCoordinate)) {
      buffers.insert(buffer);
      continue;
    }
    Type element = cast<RankedTensorType>(emitter.getTensor(buffer).getType()).getElementType();
    std::optional<AffineExpr> first = emitter.getRun(address, layout.columnLanes);
    if (!isOfRow(address) || !first || !isKeepable(element) ||
        layout.columnLanes * element.getIntOrFloatBitWidth() != runBytes * 8)
      return {};
    found.push_back({buffer, address, *first, element, *llvm::max_element(passes), {}, {}});
  }
  // A buffer of elements would make each other load of a vector several loads.
  for (const Load &load : found)
    if (!buffers.insert(load.buffer).second)
      return {};
  return found;
}

/// Whether functions of the elements take longer than their way from and to memory. Then other
/// workgroups of the unit hide that way as well.
bool RowCopies::isBoundByFunctions(ArrayRef<Load> found) const {
  if (!emitter.domain.hasFunctions())
    return false;
  int64_t bits = 0;
  for (const Load &load : found)
    bits += load.element.getIntOrFloatBitWidth();
  for (Value value : emitter.computed) {
    Operation *op = value.getDefiningOp();
    if (getOpShape(op) == OpShape::Pointwise && emitter.domain.hasColumns(op))
      bits += getStorageType(emitter.getElementType(value)).getIntOrFloatBitWidth();
  }
  return bits < tuning::row_copies::minBitsOfFunction;
}

void RowCopies::allocate() {
  auto space = gpu::AddressSpaceAttr::get(emitter.context, gpu::AddressSpace::Workgroup);
  for (Load &load : loads) {
    load.memory.clear();
    for (int64_t trip = 0; trip < layout.getTrips(); ++trip) {
      if (isShared && load.inRegisters[trip]) {
        load.memory.push_back(nullptr);
        continue;
      }
      auto type = MemRefType::get({getUnits(trip) * layout.columnLanes}, load.element,
                                  MemRefLayoutAttrInterface{}, space);
      load.memory.push_back(emitter.getFunction().addWorkgroupAttribution(type, emitter.loc));
    }
    if (isShared)
      emitter.cache.setShared({load.buffer, load.address}, load.memory, getPlace());
  }
}

Value RowCopies::getMemory(const Load &load) const {
  return load.memory[*getConstantIntValue(emitter.cache.getTrip())];
}

Value RowCopies::getPlace() const {
  return emitter.expand(emitter.dim(teamLaneCoordinate) * layout.columnLanes);
}

void RowCopies::copy(unsigned rowCoordinate, std::optional<unsigned> pass) {
  AffineExpr row = emitter.dim(unitCoordinate), next = emitter.dim(rowCoordinate);
  for (const Load &load : loads) {
    if (pass && load.lastPass != *pass)
      continue;
    AffineExpr first = load.first.replace(row, next);
    if (Value memory = getMemory(load))
      emitter.copyFrom(load.buffer, first, layout.columnLanes, memory, getPlace());
    else
      memref::StoreOp::create(
          emitter.builder(), emitter.loc, emitter.loadFrom(load.buffer, first, layout.columnLanes),
          emitter.cache.find({load.buffer, load.address})->memory, emitter.cache.getTrip());
  }
}

void RowCopies::closeGroup() {
  // It takes in all copies that are in none yet, those of a branch as well.
  Value closed = nvgpu::DeviceAsyncCreateGroupOp::create(
      emitter.builder(), emitter.loc, nvgpu::DeviceAsyncTokenType::get(emitter.context),
      ValueRange());
  if (!group)
    group = closed;
}

void RowCopies::wait() {
  OpBuilder &b = emitter.builder();
  nvgpu::DeviceAsyncWaitOp::create(b, emitter.loc, group, b.getI32IntegerAttr(0));
  gpu::BarrierOp::create(b, emitter.loc);
}

void RowCopies::fetch() {
  OpBuilder &b = emitter.builder();
  for (const Load &load : loads) {
    auto type = VectorType::get({layout.columnLanes}, load.element);
    Value vector = vector::LoadOp::create(b, emitter.loc, type, getMemory(load), getPlace(),
                                          /*nontemporal=*/false, llvm::Align(runBytes));
    memref::StoreOp::create(b, emitter.loc, vector,
                            emitter.cache.find({load.buffer, load.address})->memory,
                            emitter.cache.getTrip());
  }
}

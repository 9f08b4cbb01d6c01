//===- RowLayout.cpp - Who computes which part of a row -------------------===//

#include "Shapes.h"
#include "Tuning.h"

using namespace mlir;
using namespace weir;

/// Returns the invocations that share a row across memory: as many as keep a device busy where rows
/// are few and long. All teams of a workgroup have a row, since all wait at its barriers.
static int64_t chooseTeamAcross(int64_t rows, int64_t length, const Profile &profile) {
  constexpr int64_t maxTeam = tuning::rows::maxTeamAcross, minTerms = tuning::rows::minTermsAcross,
                    busy = tuning::rows::busyInvocations;
  int64_t best = 1;
  for (int64_t team = 2; team <= maxTeam && team <= profile.workgroupSize; team *= 2)
    if (rows * team <= profile.units * busy && length >= minTerms * team &&
        profile.workgroupSize % team == 0 && rows % (profile.workgroupSize / team) == 0)
      best = team;
  return best;
}

/// Returns the invocations that share a row: a subgroup, or so many that each has few enough
/// elements for its registers. A long row then has all of a unit, so that the next cache holds the
/// rows of all; but where all tensors have elements of 16 bits, the registers of half of them hold
/// it, and one row is loaded while another is added up (on an H200, the VJP of LayerNorm of
/// 1024 x 32000 takes 74 us in place of 107).
/// Where columns may be kept, all invocations of a team have as many units of the row: no verifier
/// follows LLVM's code for a rest behind several trips.
static int64_t chooseTeam(int64_t length, int64_t units, bool movesHalves, const Profile &profile) {
  constexpr int64_t elements = tuning::rows::elements;
  int64_t team = profile.subgroupSize;
  while (team * elements < length && 2 * team <= profile.maxWorkgroupSize)
    team *= 2;
  bool keepsColumns = 2 * team <= profile.maxWorkgroupSize;
  if (movesHalves && !keepsColumns && length <= 2 * elements * team)
    return team / 2;
  return keepsColumns && units % team != 0 ? profile.workgroupSize : team;
}

RowLayout::RowLayout(const KernelDomain &domain, const Profile &profile) {
  ArrayRef<int64_t> columns = domain.getColumnSizes();
  ArrayRef<int64_t> rowSizes = domain.getRowSizes();
  // Several short dimensions of terms, such as a window's, do not fill a vector.
  bool isWindow = !domain.isAcross() && profile.hasFreeVectors() && columns.size() > 1 &&
                  !rowSizes.empty() && domain.readsWindows() &&
                  getLanes(profile, columns) < getLanesBeforeRest(profile, rowSizes.back());
  const bool isAcross = domain.isAcross() || isWindow;
  if (isAcross) {
    rowLanes = getLanes(profile, rowSizes, getMaxVectors(domain));
    if (profile.hasFreeVectors() && rowLanes < profile.vectorWidth && !rowSizes.empty()) {
      rowLanes = getLanesBeforeRest(profile, rowSizes.back());
      rowRests = getRests(rowSizes.back(), rowLanes);
    }
  } else if (profile.hasFreeVectors() && columns.size() == 1)
    columnLanes = getLanesBeforeRest(profile, columns.front());
  else
    columnLanes = getColumnLanes(domain, profile);
  if (columns.size() == 1)
    rests = getRests(columns.front(), columnLanes);
  outerRows = rowSizes.empty() ? 1 : getProduct(rowSizes.drop_back());
  rows = rowSizes.empty() ? 1 : outerRows * (rowSizes.back() / rowLanes);
  int64_t length = getProduct(columns);
  units = length / columnLanes;

  // A row shorter than a subgroup's vectors would leave invocations idle; rows
  // across memory are neighbours of each other.
  RowMapping mapping = profile.rowMapping;
  if (length < 4 * profile.subgroupSize || isAcross)
    mapping = RowMapping::Lane;
  workgroup = profile.workgroupSize;
  if (mapping == RowMapping::Workgroup && profile.units > 0) {
    workgroup = chooseTeam(length, units, domain.movesHalves(), profile);
    if (workgroup == profile.subgroupSize) {
      mapping = RowMapping::Subgroup;
      workgroup = profile.workgroupSize;
    }
  }
  teamSize = mapping == RowMapping::Lane       ? 1
             : mapping == RowMapping::Subgroup ? profile.subgroupSize
                                               : workgroup;
  if (isAcross && profile.units > 0) {
    teamSize = chooseTeamAcross(rows, length, profile);
    workgroup = chooseWorkgroup(rows * teamSize, tuning::rows::minWorkgroupAcross, profile);
  }
  isInterleaved = isAcross && teamSize > 1;
  teams = workgroup / teamSize;
  fullTrips = units / teamSize;
  restUnits = units % teamSize;
  // One sum would wait for itself at every trip.
  if (profile.hasFreeVectors() && !isAcross)
    sums = llvm::bit_floor<uint64_t>(std::clamp<int64_t>(fullTrips, 1, tuning::rows::maxSums));
  tripsAtOnce = profile.units > 0 ? tuning::rows::tripsAtOnce : sums;
  // Rows in turn share what is loaded for the columns; keep enough workgroups.
  int64_t enough = profile.units > 0 ? profile.units * tuning::rows::invocationsInTurn / teamSize
                                     : teams * tuning::rows::workgroupsInTurn;
  rowsPerTeam = domain.getColumnOps().empty()
                    ? std::clamp<int64_t>(rows / enough, 1, tuning::rows::maxRowsInTurn)
                    : domain.getChunk();
}

std::optional<int64_t> weir::getKeptColumnBytes(const KernelDomain &domain,
                                                const Profile &profile) {
  if (domain.getShape() != KernelShape::Row)
    return 0;
  RowLayout layout(domain, profile);
  // Invocations of the largest workgroups have the fewest registers, and the row is in them.
  if (profile.units > 0 && 2 * layout.workgroup > profile.maxWorkgroupSize &&
      !domain.getColumnOps().empty())
    return std::nullopt;
  int64_t elements = layout.getTrips() * layout.columnLanes, bytes = 0;
  for (const Rest &rest : layout.rests)
    elements += rest.lanes;
  for (linalg::GenericOp op : domain.getColumnOps())
    for (Type type : op.getResultTypes()) {
      Type element = getElementTypeOrSelf(type);
      if (!isKeepable(element))
        return std::nullopt;
      bytes += elements * (element.getIntOrFloatBitWidth() / 8);
    }
  return bytes;
}

//===- Reports.cpp - Sentences of the simulator ---------------------------===//

#include "Machine.h"

#include <algorithm>

using namespace weir;
using namespace weir::sim;

bool Reports::haveRaces() const {
  for (const auto &[key, report] : reports)
    if (key.first <= ReportKind::NonCoherent)
      return true;
  return false;
}

std::vector<std::string> Reports::print() const {
  std::vector<std::string> sentences;
  for (const auto &[key, report] : reports)
    sentences.push_back(
        report.sentence +
        (report.count == 1 ? "" : " (the first of " + std::to_string(report.count) + ")"));
  if (isCut)
    sentences.push_back("and more than these");
  return sentences;
}

std::vector<SimFinding> Reports::list() const {
  using Kind = SimFinding::Kind;
  std::vector<SimFinding> findings;
  for (const auto &[id, report] : reports) {
    const auto &[kind, key] = id;
    SimFinding finding;
    finding.sentence = report.sentence;
    switch (kind) {
    case ReportKind::Race: // inside a dispatch, see reportInside
      if (key[1] < 0) {
        finding.kind = Kind::Race;
        if (key[2])
          finding.operand = uint32_t(-1 - key[1]);
      }
      break;
    case ReportKind::Divergent:
      finding.kind = Kind::Divergent;
      break;
    case ReportKind::OutOfBounds:
      finding.kind = Kind::OutOfBounds;
      finding.isPrivate = Space(key[1]) == Space::Private;
      if (Space(key[1]) == Space::Storage)
        finding.operand = uint32_t(key[2]);
      break;
    case ReportKind::NeverWritten:
      finding.kind = Kind::Unwritten;
      finding.isPrivate = Space(key[1]) == Space::Private;
      break;
    default:
      break;
    }
    findings.push_back(std::move(finding));
  }
  return findings;
}

/// Prints "5", or "(5, 0, 2)" if there are several dimensions.
static std::string printPlace(uint64_t index, uint64_t x, uint64_t y, bool isLine) {
  if (isLine)
    return std::to_string(index);
  return "(" + std::to_string(index % x) + ", " + std::to_string(index / x % y) + ", " +
         std::to_string(index / x / y) + ")";
}

std::string Machine::describe(const DispatchRun &dispatch) const {
  const std::string &location = dispatch.command->location;
  return "dispatch " + std::to_string(dispatch.number) + " (@" + dispatch.program->name +
         (location.empty() ? "" : ", " + location) + ")";
}

static std::string describeWorkgroup(const DispatchRun &dispatch, uint32_t number) {
  const std::array<int64_t, 3> &grid = dispatch.command->grid;
  return "workgroup " +
         printPlace(number, uint64_t(grid[0]), uint64_t(grid[1]), grid[1] == 1 && grid[2] == 1);
}

/// Whether `location` of a plan (path and line) is the source line `own`.
static bool isAt(const std::string &location, const std::string &own) {
  return location.ends_with(own) &&
         (location.size() == own.size() || location[location.size() - own.size() - 1] == '/');
}

std::string Machine::describeSource(const DispatchRun &dispatch,
                                    const spv::SourceLine &source) const {
  if (source.line == 0)
    return "";
  const spv::Module &module = modules[size_t(dispatch.command->kernel)];
  auto print = [&](const spv::SourceLine &line) {
    return module.getString(line.file) + ":" + std::to_string(line.line);
  };
  // Equal kernels share the code of the first one, with its source lines.
  const std::string line = print(dispatch.program->source),
                    &code = plan.kernels[size_t(dispatch.command->kernel)].code;
  auto hasFirst = [&](const Plan &other) {
    return std::any_of(other.commands.begin(), other.commands.end(), [&](const Command &command) {
      return isAt(command.location, line) && other.kernels[size_t(command.kernel)].code == code;
    });
  };
  bool isShared = !isAt(dispatch.command->location, line) &&
                  std::any_of(artifact.plans.begin(), artifact.plans.end(), hasFirst);
  return " at " + print(source) +
         (source.column ? ":" + std::to_string(source.column) : std::string()) +
         (isShared ? " of an equal kernel" : "");
}

std::string Machine::describe(const DispatchRun &dispatch, const Touch &touch) const {
  const std::array<uint32_t, 3> &size = dispatch.program->localSize;
  return "thread " + printPlace(touch.invocation, size[0], size[1], size[1] == 1 && size[2] == 1) +
         " of " + describeWorkgroup(dispatch, touch.workgroup) +
         describeSource(dispatch, dispatch.program->accesses[touch.site].source);
}

std::string Machine::describeByte(const Store &store, int64_t byte) const {
  const Allocation &allocation = plan.allocations[size_t(&store - stores.data())];
  return "byte " + std::to_string(byte) + " of " + weir::describeAllocation(allocation, entry);
}

std::string Machine::describeValue(int64_t value) const {
  return value < 0 ? "a constant" : "\"" + plan.values[size_t(value)].name + "\"";
}

static const AccessSite &getAccess(const DispatchRun &dispatch, const Touch &touch) {
  return dispatch.program->accesses[touch.site];
}

static const char *getKind(bool firstWrites, bool secondWrites) {
  return !firstWrites ? "WAR" : secondWrites ? "WAW" : "RAW";
}

static std::string getVerb(const AccessSite &access) {
  return !access.isWrite ? "reads" : access.isRead ? "updates" : "writes";
}

void Machine::reportPair(ReportKind kind, const DispatchRun &a, const Touch &aTouch,
                         const DispatchRun &b, const Touch &bTouch, const Store &store,
                         int64_t cell) {
  // Report in recorded order, not in the order of this run.
  bool swaps = b.number < a.number;
  const DispatchRun &first = swaps ? b : a, &second = swaps ? a : b;
  const Touch &firstTouch = swaps ? bTouch : aTouch, &secondTouch = swaps ? aTouch : bTouch;
  const AccessSite &from = getAccess(first, firstTouch), &to = getAccess(second, secondTouch);
  reports.add(
      kind,
      {int64_t(first.number), int64_t(from.binding), int64_t(second.number), int64_t(to.binding)},
      [&] {
        return std::string(getKind(from.isWrite, to.isWrite)) + ": " + describe(second) + ", " +
               describe(second, secondTouch) + ", " + getVerb(to) + " " +
               describeByte(store, cell << store.shift) + ", which " + describe(first) + ", " +
               describe(first, firstTouch) + ", " + getVerb(from) +
               (kind == ReportKind::Race
                    ? "; no barrier or wait orders the two"
                    : "; no barrier or signal between the two has the byte in its memory");
      });
}

void Machine::reportInside(const DispatchRun &dispatch, const Touch &a, const Touch &b,
                           int64_t byte, const Store *store) {
  // Report in the order of the code, not in the order of this run.
  bool swaps = b.site < a.site;
  const Touch &firstTouch = swaps ? b : a, &secondTouch = swaps ? a : b;
  const AccessSite &first = getAccess(dispatch, firstTouch),
                   &second = getAccess(dispatch, secondTouch);
  reports.add(ReportKind::Race,
              {dispatch.command->kernel, -1 - int64_t(first.binding), store ? 1 : 0,
               int64_t(second.binding) * 4 + first.isWrite * 2 + second.isWrite},
              [&] {
                return std::string(getKind(first.isWrite, second.isWrite)) + ": in " +
                       describe(dispatch) + ", " + describe(dispatch, secondTouch) + " " +
                       getVerb(second) + " " +
                       (store ? describeByte(*store, byte)
                              : "byte " + std::to_string(byte) + " of workgroup memory") +
                       ", which " + describe(dispatch, firstTouch) + " " + getVerb(first) +
                       (a.workgroup == b.workgroup ? "; no barrier in the kernel orders the two"
                                                   : "; nothing orders workgroups of one dispatch");
              });
}

void Machine::reportLate(const DispatchRun &dispatch, const Touch &copy, const Touch &touch,
                         int64_t byte, const Store *store) {
  reports.add(ReportKind::Late, {dispatch.command->kernel, copy.site, touch.site, store ? 1 : 0},
              [&] {
                return "late: in " + describe(dispatch) + ", " + describe(dispatch, touch) + " " +
                       getVerb(getAccess(dispatch, touch)) + " " +
                       (store ? describeByte(*store, byte)
                              : "byte " + std::to_string(byte) + " of workgroup memory") +
                       (store ? ", from" : ", to") + " which " + describe(dispatch, copy) +
                       " copies asynchronously; it has not waited for the copy";
              });
}

void Machine::reportReadOnly(const DispatchRun &dispatch, const Touch &write, int64_t byte,
                             const Store &store) {
  reports.add(ReportKind::NonCoherent,
              {dispatch.command->kernel, getAccess(dispatch, write).binding, 0, 0}, [&] {
                return "nc: in " + describe(dispatch) + ", " + describe(dispatch, write) +
                       " writes " + describeByte(store, byte) +
                       ", which the kernel also reads by ld.global.nc; such a load may miss the "
                       "write whatever the order";
              });
}

void Machine::reportMisaligned(const DispatchRun &dispatch, const AccessSite &access,
                               const Touch &touch, int64_t byte) {
  reports.add(ReportKind::Misaligned,
              {int64_t(dispatch.number), int64_t(access.space), access.site, 0}, [&] {
                return "misaligned: " + describe(dispatch) + ", " + describe(dispatch, touch) +
                       ", " + getVerb(access) + " " + std::to_string(access.bytes) +
                       " bytes at byte " + std::to_string(byte) +
                       ", which is not a multiple of their number";
              });
}

void Machine::reportOutside(const DispatchRun &dispatch, const AccessSite &access,
                            const Touch &touch, int64_t offset, int64_t bytes) {
  reports.add(
      ReportKind::OutOfBounds,
      {int64_t(dispatch.number), int64_t(access.space), int64_t(access.binding), access.isWrite},
      [&] {
        std::string what = access.space == Space::Storage
                               ? "operand " + std::to_string(access.binding)
                           : access.space == Space::Workgroup ? "a variable in workgroup memory"
                                                              : "a variable of its own";
        return "out of bounds: " + describe(dispatch) + ", " + describe(dispatch, touch) + ", " +
               getVerb(access) + " bytes [" + std::to_string(offset) + ", " +
               std::to_string(offset + access.bytes) + ") of " + what + ", which has " +
               std::to_string(bytes);
      });
}

void Machine::reportUnwritten(const DispatchRun &dispatch, const AccessSite &access,
                              const Touch &touch, int64_t byte) {
  reports.add(ReportKind::NeverWritten,
              {dispatch.command->kernel, int64_t(access.space), access.objectBegin, -1}, [&] {
                return "never written: " + describe(dispatch) + ", " + describe(dispatch, touch) +
                       ", reads byte " + std::to_string(byte) + " of " +
                       (access.space == Space::Workgroup ? "workgroup memory"
                                                         : "a variable of its own") +
                       ", which nothing wrote";
              });
}

void Machine::reportCode(ReportKind kind, const DispatchRun &dispatch, uint32_t workgroup,
                         const spv::SourceLine &source, const std::string &problem) {
  const char *name = kind == ReportKind::Divergent ? "divergent barrier"
                     : kind == ReportKind::Hang    ? "hang"
                     : kind == ReportKind::Endless ? "loop"
                                                   : "undefined";
  reports.add(kind, {dispatch.command->kernel, source.line, source.column, 0}, [&] {
    return std::string(name) + ": in " + describe(dispatch) + ", " +
           describeWorkgroup(dispatch, workgroup) + describeSource(dispatch, source) + ", " +
           problem;
  });
}

//===- Effects.cpp - Proves the plan's statements about code --------------===//

#include "Checks.h"

#include <algorithm>
#include <set>

using namespace weir;
using namespace weir::verifier;

static std::string nameOperand(const Launch &launch, size_t operand) {
  return "operand " + std::to_string(operand) + " of @" + launch.kernel.name;
}

/// Returns " (REASON)", why a fact is not proved, or "" if all addresses of its code are known.
static std::string getReason(const Launch &launch) {
  const KernelCode &code = launch.code;
  if (!code.problem.empty())
    return " (" + code.problem + ")";
  if (code.map)
    for (const spv::MemoryAccess &access : code.map->accesses)
      if (access.root == spv::MemoryAccess::Root::Unknown)
        return " (" + code.describe(access) + ": an address that is not followed)";
  return "";
}

static bool reads(Access access) { return access == Access::Read || access == Access::Update; }
static bool writes(Access access) { return access == Access::Write || access == Access::Update; }

//===----------------------------------------------------------------------===//
// Validity
//===----------------------------------------------------------------------===//

Facts verifier::checkValidity(const Subject &subject) {
  Facts facts;
  std::set<const spv::Validity *> seen; // kernels may share code
  for (size_t i = 0; i < subject.validities.size(); ++i) {
    const spv::Validity *validity = subject.validities[i];
    if (!validity || !seen.insert(validity).second)
      continue;
    const std::string name = "the code of @" + subject.plan.kernels[i].name,
                      is = " is SPIR-V that " + subject.profile.api + " takes";
    if (!validity->isValid)
      facts.taken.push_back("that " + name + is + " (" + validity->detail + ")");
    else if (*validity->isValid)
      ++facts.proved;
    else
      throw Counterexample{name + " is no SPIR-V that " + subject.profile.api +
                           " takes: " + validity->detail};
  }
  return facts;
}

//===----------------------------------------------------------------------===//
// Effects
//===----------------------------------------------------------------------===//

/// Returns ", word 312" for the first instruction that reads, or writes, an operand.
static std::string describeFirst(const KernelCode &code, size_t operand, bool isRead) {
  if (code.map)
    for (const spv::MemoryAccess &access : code.map->accesses)
      if (access.root == spv::MemoryAccess::Root::Binding && access.binding == operand &&
          (isRead ? access.reads : access.writes))
        return " (" + code.describe(access) + ")";
  return "";
}

/// Checks that the code accesses the operand as stated. Adds to `taken` if that is not proved.
static void checkAccess(const Launch &launch, size_t operand, Facts &facts) {
  const KernelOperand &effect = launch.kernel.operands[operand];
  const KernelCode::Operand &code = launch.code.operands[operand];
  auto refuse = [&](bool isRead) {
    throw Counterexample{"the code of @" + launch.kernel.name + (isRead ? " reads" : " writes") +
                         " operand " + std::to_string(operand) +
                         describeFirst(launch.code, operand, isRead) +
                         ", the plan says that it does not"};
  };
  if (code.reads == Answer::Yes && !reads(effect.access))
    refuse(true);
  if (code.writes == Answer::Yes && !writes(effect.access))
    refuse(false);
  bool isSame = code.reads == (reads(effect.access) ? Answer::Yes : Answer::No) &&
                code.writes == (writes(effect.access) ? Answer::Yes : Answer::No);
  if (isSame)
    ++facts.proved;
  else
    facts.taken.push_back("the access of " + nameOperand(launch, operand) + getReason(launch));
}

static void checkCover(const Launch &launch, size_t operand, Facts &facts) {
  int64_t bytes = launch.kernel.operands[operand].bytes;
  const spv::TouchedBytes &written = launch.code.operands[operand].written;
  if (spv::findHole(written.certain, bytes) < 0) {
    ++facts.proved;
    return;
  }
  if (int64_t hole = written.possible ? spv::findHole(*written.possible, bytes) : -1; hole >= 0)
    throw Counterexample{"the code of @" + launch.kernel.name + " never writes byte " +
                         std::to_string(hole) + " of operand " + std::to_string(operand) +
                         ", the plan says that it covers all " + std::to_string(bytes)};
  facts.taken.push_back("that all of " + nameOperand(launch, operand) + " is written" +
                        getReason(launch));
}

/// Checks that the code writes exactly the slice, all of it.
static void checkSlice(const Launch &launch, size_t operand, Facts &facts) {
  const ByteSlice &slice = *launch.kernel.operands[operand].slice;
  const spv::TouchedBytes &written = launch.code.operands[operand].written;
  std::vector<spv::ByteRange> runs;
  for (int64_t run = 0; run < slice.count; ++run)
    runs.push_back({slice.at(run), slice.at(run) + slice.bytes});
  if (written.certain == runs && written.possible == runs) {
    ++facts.proved;
    return;
  }
  // Returns the first byte of `some` that is not in `others`, or -1.
  auto findOutside = [](const std::vector<spv::ByteRange> &some,
                        const std::vector<spv::ByteRange> &others) -> int64_t {
    for (spv::ByteRange run : some)
      if (!spv::doCover(others, 0, run)) {
        int64_t at = run.begin;
        for (spv::ByteRange other : others)
          if (other.begin <= at)
            at = std::max(at, other.end);
        return at;
      }
    return -1;
  };
  auto refuse = [&](int64_t byte, const std::string &what) {
    throw Counterexample{"the code of @" + launch.kernel.name + what + std::to_string(byte) +
                         " of operand " + std::to_string(operand) +
                         ", the plan says otherwise of its slice"};
  };
  if (int64_t byte = findOutside(written.certain, runs); byte >= 0)
    refuse(byte, " writes byte ");
  if (written.possible)
    if (int64_t byte = findOutside(runs, *written.possible); byte >= 0)
      refuse(byte, " never writes byte ");
  facts.taken.push_back("that a slice of " + nameOperand(launch, operand) + " is what is written" +
                        getReason(launch));
}

Facts verifier::checkEffects(const Subject &subject) {
  Facts facts;
  for (const Launch &launch : subject.launches) {
    if (!launch.code.fault.empty())
      throw Counterexample{"the code of @" + launch.kernel.name + " " + launch.code.fault};
    for (size_t operand = 0; operand < launch.kernel.operands.size(); ++operand) {
      checkAccess(launch, operand, facts);
      if (launch.kernel.operands[operand].coversAll)
        checkCover(launch, operand, facts);
      if (launch.kernel.operands[operand].slice)
        checkSlice(launch, operand, facts);
    }
  }
  return facts;
}

//===----------------------------------------------------------------------===//
// Bounds
//===----------------------------------------------------------------------===//

/// Whether it is proved that an access stays in its operand and is aligned.
static bool isInBounds(const Launch &launch, const spv::MemoryAccess &access) {
  const KernelOperand &operand = launch.kernel.operands[access.binding];
  auto refuse = [&](const std::string &what) {
    throw Counterexample{"the code of @" + launch.kernel.name + " " + what + " operand " +
                         std::to_string(access.binding) + " (" + launch.code.describe(access) +
                         ")"};
  };
  if (access.alignment > operand.alignment)
    refuse("needs an alignment of " + std::to_string(access.alignment) + " where the plan says " +
           std::to_string(operand.alignment) + ", at");
  std::optional<spv::Reach> reach = spv::getReach(*launch.code.map, access, operand.bytes);
  if (!reach)
    return false;
  if (reach->begin == reach->end)
    return true; // it never runs
  if (reach->begin < 0 || reach->end > operand.bytes) {
    if (reach->outside)
      refuse("goes to byte " + std::to_string(*reach->outside) + " of the " +
             std::to_string(operand.bytes) + " of");
    if (reach->isExact)
      refuse("reaches byte " + std::to_string(reach->begin < 0 ? reach->begin : reach->end - 1) +
             " of the " + std::to_string(operand.bytes) + " of");
    return false;
  }
  auto isMultiple = [&](int64_t number) { return number % access.alignment == 0; };
  return isMultiple(access.address->constant) &&
         std::all_of(access.address->terms.begin(), access.address->terms.end(),
                     [&](auto term) { return isMultiple(term.second); });
}

/// Checks that the code stays in the workgroup memory that its launch gives it.
static void checkLaunchMemory(const Launch &launch, Facts &facts) {
  const KernelCode &code = launch.code;
  bool isProved = true;
  for (const spv::MemoryAccess &access : code.map->accesses) {
    if (access.root != spv::MemoryAccess::Root::Shared) {
      isProved &= access.root != spv::MemoryAccess::Root::Unknown;
      continue;
    }
    auto variable = code.workgroupBytes.find(access.binding);
    if (variable == code.workgroupBytes.end()) { // of PTX, addresses that may be behind them all
      isProved = false;
      continue;
    }
    const int64_t bytes = variable->second;
    std::optional<spv::Reach> reach = spv::getReach(*code.map, access, bytes);
    const bool leaves =
        reach && reach->begin < reach->end && (reach->begin < 0 || reach->end > bytes);
    if (leaves && (reach->outside || reach->isExact))
      throw Counterexample{"the code of @" + launch.kernel.name + " leaves the " +
                           std::to_string(launch.kernel.workgroupMemory) +
                           " bytes of workgroup memory that its launch states (" +
                           code.describe(access) + ")"};
    isProved &= reach && !leaves;
  }
  if (isProved)
    ++facts.proved;
  else
    facts.taken.push_back("the bounds of the workgroup memory of @" + launch.kernel.name +
                          getReason(launch));
}

Facts verifier::checkBounds(const Subject &subject) {
  Facts facts;
  for (const Launch &launch : subject.launches) {
    std::vector<bool> isProved(launch.kernel.operands.size(),
                               launch.code.map && launch.code.problem.empty());
    if (launch.code.map && launch.code.problem.empty())
      for (const spv::MemoryAccess &access : launch.code.map->accesses) {
        if (access.root == spv::MemoryAccess::Root::Unknown)
          isProved.assign(isProved.size(), false);
        else if (access.root == spv::MemoryAccess::Root::Binding &&
                 access.binding < isProved.size() && !isInBounds(launch, access))
          isProved[access.binding] = false;
      }
    for (size_t operand = 0; operand < isProved.size(); ++operand)
      if (isProved[operand])
        ++facts.proved;
      else
        facts.taken.push_back("the bounds of " + nameOperand(launch, operand) + getReason(launch));
    if (launch.code.map && launch.code.problem.empty() && !launch.code.workgroupBytes.empty())
      checkLaunchMemory(launch, facts);
  }
  return facts;
}

//===----------------------------------------------------------------------===//
// Permissions
//===----------------------------------------------------------------------===//

/// Max number of pairs of one kernel that are checked.
static constexpr size_t maxPairs = 256;

Facts verifier::checkPermissions(const Subject &subject) {
  Facts facts;
  for (const Launch &launch : subject.launches) {
    size_t pairs = 0;
    for (auto [source, target] : launch.kernel.inPlace) {
      std::string name = "that @" + launch.kernel.name + " may write operand " +
                         std::to_string(target) + " over operand " + std::to_string(source);
      spv::PairAnswer result;
      if (launch.code.map && ++pairs <= maxPairs)
        result = spv::mayOverwrite(*launch.code.map, uint32_t(source), uint32_t(target));
      if (result.answer == Answer::No)
        throw Counterexample{"the plan says " + name + ", but its code may read byte " +
                             std::to_string(result.byte) + " (" +
                             launch.code.describe(*result.first) + ") once it is written (" +
                             launch.code.describe(*result.second) + ")"};
      if (result.answer == Answer::Yes)
        ++facts.proved;
      else
        facts.taken.push_back(name + getReason(launch));
    }
  }
  return facts;
}

//===----------------------------------------------------------------------===//
// Races
//===----------------------------------------------------------------------===//

static void checkMemory(const Subject &subject, const Launch &launch, spv::MemoryAccess::Root root,
                        uint32_t binding, const std::string &name, Facts &facts) {
  spv::PairAnswer result;
  if (launch.code.map)
    result = spv::isFreeOfRaces(*launch.code.map, root, binding);
  if (result.answer == Answer::No) {
    auto describe = [&](const spv::MemoryAccess *access) {
      return std::string(access->writes ? "writes" : "reads") + " (" +
             launch.code.describe(*access) + ")";
    };
    throw Counterexample{"in " + subject.describe(launch.dispatch) + " an invocation " +
                         describe(result.first) + " byte " + std::to_string(result.byte) + " of " +
                         name + " and another " + describe(result.second) +
                         " it, and no barrier of the kernel orders the two"};
  }
  if (result.answer == Answer::Yes)
    ++facts.proved;
  else
    facts.taken.push_back("that no two invocations race for " + name + getReason(launch));
}

/// Checks that registers of products of matrices are used only when these have ended, and mbarriers
/// phase by phase.
static void checkRegisters(const Subject &subject, const Launch &launch, Facts &facts) {
  const spv::AddressMap &map = *launch.code.map;
  if (!map.hasProducts && !map.hasTiles)
    return;
  for (const spv::RegisterHazard &hazard : map.registerHazards) {
    const std::string where = launch.code.describe(hazard.word, hazard.source);
    if (hazard.isCertain)
      throw Counterexample{"in " + subject.describe(launch.dispatch) + " an instruction (" + where +
                           ") " + hazard.what};
    facts.taken.push_back("that on no way an instruction of @" + launch.kernel.name + " (" + where +
                          ") " + hazard.what);
  }
  facts.proved += map.problem.empty() && map.registerHazards.empty();
}

Facts verifier::checkRaces(const Subject &subject) {
  Facts facts;
  for (const Launch &launch : subject.launches) {
    for (size_t i = 0; i < launch.kernel.operands.size(); ++i)
      checkMemory(subject, launch, spv::MemoryAccess::Root::Binding, uint32_t(i),
                  nameOperand(launch, i), facts);
    if (!launch.code.map)
      continue;
    checkRegisters(subject, launch, facts);
    std::set<uint32_t> variables;
    for (const spv::MemoryAccess &access : launch.code.map->accesses)
      if (access.root == spv::MemoryAccess::Root::Shared && variables.insert(access.binding).second)
        checkMemory(subject, launch, access.root, access.binding,
                    "workgroup memory of @" + launch.kernel.name, facts);
  }
  return facts;
}

//===----------------------------------------------------------------------===//
// Uniform barriers
//===----------------------------------------------------------------------===//

/// Checks that the lanes that reach shuffles are those that they are for.
static void checkLanes(const Launch &launch, Facts &facts) {
  for (const spv::LaneSite &site : launch.code.map->laneSites) {
    std::string name = "the lanes in the mask of the shuffle or barrier of @" + launch.kernel.name +
                       " (" + launch.code.describe(site.word, site.source) + ")";
    switch (spv::doLanesMeet(*launch.code.map, site)) {
    case Answer::No:
      throw Counterexample{name + " are not those that reach it"};
    case Answer::Yes:
      ++facts.proved;
      break;
    case Answer::Unknown:
      facts.taken.push_back("that " + name + " are those that reach it");
      break;
    }
  }
}

Facts verifier::checkUniformBarriers(const Subject &subject) {
  Facts facts;
  for (const Launch &launch : subject.launches) {
    if (!launch.code.problem.empty())
      facts.taken.push_back("that all invocations reach the barriers of @" + launch.kernel.name +
                            getReason(launch));
    if (!launch.code.map || !launch.code.problem.empty())
      continue;
    for (const spv::BarrierSite &barrier : launch.code.map->barriers) {
      std::string name = "barrier of @" + launch.kernel.name + " (" +
                         launch.code.describe(barrier.word, barrier.source) + ")";
      switch (spv::isUniform(*launch.code.map, barrier)) {
      case Answer::No:
        throw Counterexample{"some invocations of a workgroup reach the " + name +
                             ", others don't"};
      case Answer::Yes:
        ++facts.proved;
        break;
      case Answer::Unknown:
        facts.taken.push_back("that all invocations reach the " + name);
        break;
      }
    }
    checkLanes(launch, facts);
  }
  return facts;
}

//===----------------------------------------------------------------------===//
// Loops
//===----------------------------------------------------------------------===//

Facts verifier::checkLoops(const Subject &subject) {
  Facts facts;
  const int64_t limit = subject.profile.maxLoopTrips;
  if (limit == noLoopLimit)
    return facts;
  for (const Launch &launch : subject.launches) {
    if (!launch.code.map || !launch.code.problem.empty()) {
      facts.taken.push_back("the trips of the loops of @" + launch.kernel.name + getReason(launch));
      continue;
    }
    if (launch.code.map->loops.empty())
      continue;
    const spv::TripCount trips = spv::getTrips(*launch.code.map);
    if (trips.min > limit)
      throw Counterexample{
          "an invocation of @" + launch.kernel.name + " makes " + std::to_string(trips.min) +
          " trips of loops, the end of each counted as one, profile '" + subject.profile.name +
          "' ends all loops after " + std::to_string(limit)};
    if (trips.max >= 0 && trips.max <= limit)
      ++facts.proved;
    else
      facts.taken.push_back("that an invocation of @" + launch.kernel.name + " makes at most " +
                            std::to_string(limit) + " trips of loops");
  }
  return facts;
}

//===----------------------------------------------------------------------===//
// Needs
//===----------------------------------------------------------------------===//

Facts verifier::checkNeeds(const Subject &subject) {
  Facts facts;
  size_t barriers = 0;
  auto isUse = [&](int64_t dispatch, int64_t operand) {
    return dispatch >= 0 && size_t(dispatch) < subject.dispatches.size() && operand >= 0 &&
           size_t(operand) < subject.dispatches[dispatch]->operands.size();
  };
  for (const Command &command : subject.plan.commands) {
    if (command.kind != Command::Kind::Barrier)
      continue;
    size_t number = barriers++;
    if (command.hazards.empty())
      continue; // `checkBarriers` refuses that, and hazards with invalid operands
    const Hazard &hazard = command.hazards.front();
    if (!isUse(hazard.from, hazard.fromOperand) || !isUse(hazard.to, hazard.toOperand))
      continue;
    auto getBytes = [&](int64_t dispatch, int64_t operand,
                        bool isRead) -> const spv::TouchedBytes & {
      const KernelCode::Operand &code =
          subject.launches[subject.launchOf[dispatch]].code.operands[operand];
      return isRead ? code.read : code.written;
    };
    const spv::TouchedBytes &first =
        getBytes(hazard.from, hazard.fromOperand, hazard.kind == HazardKind::WAR);
    const spv::TouchedBytes &second =
        getBytes(hazard.to, hazard.toOperand, hazard.kind == HazardKind::RAW);
    auto isSlice = [&](int64_t dispatch, int64_t operand) {
      return subject.getKernel(size_t(dispatch)).operands[size_t(operand)].slice.has_value();
    };
    const PlanOperand &from = subject.dispatches[hazard.from]->operands[hazard.fromOperand];
    const PlanOperand &to = subject.dispatches[hazard.to]->operands[hazard.toOperand];
    if (from.allocation != to.allocation)
      continue;
    // Ranges in bytes of the second view.
    auto doMeet = [&](const std::vector<spv::ByteRange> &a, const std::vector<spv::ByteRange> &b) {
      return spv::doMeet(a, from.offset - to.offset, b, 0, to.bytes);
    };
    auto describe = [&] {
      return "the hazard that forced barrier " + std::to_string(number) + ", from dispatch " +
             std::to_string(hazard.from) + " to " + std::to_string(hazard.to);
    };
    // Ranges in bytes of each view.
    int64_t shift = from.offset - to.offset;
    auto covers = [](const spv::TouchedBytes &all, int64_t by, const spv::TouchedBytes &some) {
      return std::any_of(some.somewhere.begin(), some.somewhere.end(), [&](spv::ByteRange range) {
        return spv::doCover(all.certain, by, range);
      });
    };
    if (doMeet(first.certain, second.certain) || covers(first, shift, second) ||
        covers(second, -shift, first))
      ++facts.proved;
    else if (!first.possible || !second.possible || doMeet(*first.possible, *second.possible) ||
             (hazard.kind == HazardKind::WAR && first.possible->empty()) ||
             (hazard.kind == HazardKind::RAW && second.possible->empty()) ||
             (from.value == to.value && from.bytes != to.bytes))
      // A code generator drops loads whose values turn out not to matter, after the order is fixed.
      // And who reads a value that others made part by part may leave one of the parts out.
      facts.taken.push_back(describe());
    else if (from.value == to.value && !isSlice(hazard.from, hazard.fromOperand) &&
             !isSlice(hazard.to, hazard.toOperand))
      throw Counterexample{describe() + ", is between kernels whose code touches no common byte"};
    // Otherwise the bytes pass from one value to another as a whole, or two kernels write parts
    // of one value through bindings of the whole.
  }
  return facts;
}

//===- Verify.cpp - Re-proves an artifact's plan -------------------------===//

#include "weir/Verify/Verify.h"

#include "Checks.h"

#include <algorithm>

using namespace weir;
using namespace weir::verifier;

//===----------------------------------------------------------------------===//
// The subject
//===----------------------------------------------------------------------===//

Subject::Subject(const Artifact &artifact, const Plan &plan, const EntrySpec &entry,
                 const Profile &profile)
    : artifact(artifact), plan(plan), entry(entry), profile(profile) {
  for (size_t i = 0; i < plan.commands.size(); ++i) {
    if (plan.commands[i].kind != Command::Kind::Dispatch)
      continue;
    dispatches.push_back(&plan.commands[i]);
    place.push_back(i);
  }
}

void Subject::spreadEffects() {
  for (size_t dispatch = 0; dispatch < dispatches.size(); ++dispatch) {
    firstUse.push_back(uses.size());
    const Kernel &kernel = getKernel(dispatch);
    for (size_t operand = 0; operand < kernel.operands.size(); ++operand) {
      const KernelOperand &effect = kernel.operands[operand];
      Use use{dispatch, operand, dispatches[dispatch]->operands[operand]};
      use.reads = effect.access == Access::Read || effect.access == Access::Update;
      use.writes = effect.access == Access::Write || effect.access == Access::Update;
      use.coversAll = effect.coversAll;
      use.slice = effect.slice;
      if (use.view.bytes && (use.reads || use.writes))
        uses.push_back(use);
    }
  }
  firstUse.push_back(uses.size());
}

void Subject::readCode(CodeCache &cache) {
  std::map<std::pair<int64_t, std::array<int64_t, 3>>, size_t> known;
  for (size_t dispatch = 0; dispatch < dispatches.size(); ++dispatch) {
    const Command &command = *dispatches[dispatch];
    auto [place, isNew] = known.try_emplace({command.kernel, command.grid}, launches.size());
    if (isNew) {
      const Kernel &kernel = getKernel(dispatch);
      launches.push_back({kernel, cache.get(kernel, command.grid, profile), dispatch});
    }
    launchOf.push_back(place->second);
  }
  for (const Kernel &kernel : plan.kernels)
    validities.push_back(cache.validate(kernel, profile));
}

const Kernel &Subject::getKernel(size_t dispatch) const {
  return plan.kernels[dispatches[dispatch]->kernel];
}

std::string Subject::describe(size_t dispatch) const {
  const std::string &location = dispatches[dispatch]->location;
  const size_t number = stated.empty() ? dispatch : stated[dispatch];
  const bool isLater =
      !stated.empty() && std::find(stated.begin(), stated.begin() + int64_t(dispatch), number) !=
                             stated.begin() + int64_t(dispatch);
  return "dispatch " + std::to_string(number) + " (@" + getKernel(dispatch).name +
         (location.empty() ? "" : ", " + location) + ")" + (isLater ? " of the next trip" : "");
}

std::string Subject::describe(int64_t allocation, int64_t begin, int64_t end) const {
  return "bytes [" + std::to_string(begin) + ", " + std::to_string(end) + ") of " +
         weir::describeAllocation(plan.allocations[allocation], entry);
}

std::string verifier::count(size_t number, const std::string &noun) {
  return std::to_string(number) + " " + noun + (number == 1 ? "" : "s");
}

//===----------------------------------------------------------------------===//
// Claims
//===----------------------------------------------------------------------===//

/// Returns "12 facts proved from code, 2 taken from compiler: ...".
static std::string describeFacts(const Facts &facts) {
  std::string text = count(facts.proved, "fact") + " proved from code";
  if (facts.taken.empty())
    return text;
  text += ", " + std::to_string(facts.taken.size()) + " taken from compiler: ";
  for (size_t i = 0; i < std::min<size_t>(facts.taken.size(), 3); ++i)
    text += (i ? "; " : "") + facts.taken[i];
  return text + (facts.taken.size() > 3 ? "..." : "");
}

/// Runs one check and turns its outcome into a claim.
template <typename Outcome>
static Claim prove(const Subject &subject, const std::string &what,
                   Outcome (*check)(const Subject &)) {
  Claim claim{subject.plan.entry, subject.plan.target, what, false, ""};
  try {
    Outcome outcome = check(subject);
    if constexpr (std::is_same_v<Outcome, Facts>) {
      claim.detail = describeFacts(outcome);
      claim.proved = outcome.proved;
      claim.taken = outcome.taken.size();
    } else {
      claim.detail = outcome;
    }
    claim.holds = true;
  } catch (const Counterexample &counterexample) {
    claim.detail = counterexample.text;
  }
  claim.detail = makeReadable(claim.detail);
  return claim;
}

static void verifyPlan(const Artifact &artifact, const Plan &plan, CodeCache &cache,
                       std::vector<Claim> &claims) {
  const Manifest &manifest = artifact.manifest;
  auto entry = std::find_if(manifest.entries.begin(), manifest.entries.end(),
                            [&](const EntrySpec &entry) { return entry.name == plan.entry; });
  const Profile *profile = artifact.findProfile(plan.target);
  if (entry == manifest.entries.end() || !profile) {
    claims.push_back({plan.entry, plan.target, "ranges", false,
                      "the manifest does not have this entry and target"});
    return;
  }
  Subject subject(artifact, plan, *entry, *profile);
  claims.push_back(prove(subject, "ranges", checkRanges));
  bool inRange = claims.back().holds;
  if (inRange) {
    subject.spreadEffects();
    subject.readCode(cache);
  }

  static constexpr std::pair<const char *, std::string (*)(const Subject &)> checks[] = {
      {"order", checkOrder},  {"in place", checkInPlace},   {"barriers", checkBarriers},
      {"waves", checkWaves},  {"slots", checkSlots},        {"contents", checkContents},
      {"parts", checkParts},  {"read-only", checkReadOnly}, {"alignment", checkAlignment},
      {"limits", checkLimits}};
  static constexpr std::pair<const char *, Facts (*)(const Subject &)> codeChecks[] = {
      {"validity", checkValidity}, {"effects", checkEffects},
      {"bounds", checkBounds},     {"permissions", checkPermissions},
      {"races", checkRaces},       {"uniform barriers", checkUniformBarriers},
      {"loops", checkLoops},       {"needs", checkNeeds}};
  auto add = [&](const char *what, auto check) {
    if (inRange)
      claims.push_back(prove(subject, what, check));
    else
      claims.push_back(
          {plan.entry, plan.target, what, false, "cannot be checked before \"ranges\" holds"});
  };
  for (auto [what, check] : checks)
    add(what, check);
  for (auto [what, check] : codeChecks)
    add(what, check);
}

std::vector<Claim> weir::verify(const Artifact &artifact) {
  std::vector<Claim> claims;
  CodeCache cache(artifact);
  for (const Plan &plan : artifact.plans)
    verifyPlan(artifact, plan, cache, claims);
  return claims;
}

//===- Donation.cpp - Whether a value may take an operand's bytes ---------===//

#include "weir/Order/Donation.h"

#include <algorithm>

using namespace weir;

const char *weir::stringify(Refusal refusal) {
  switch (refusal) {
  case Refusal::MemorySpace:
    return "memory-space";
  case Refusal::Layout:
    return "layout";
  case Refusal::Size:
    return "size";
  case Refusal::Alignment:
    return "alignment";
  case Refusal::NotOwned:
    return "not-owned";
  case Refusal::ViewOfArgument:
    return "view-of-argument";
  case Refusal::ArgumentAlias:
    return "argument-alias";
  case Refusal::EscapesTwice:
    return "escapes-twice";
  case Refusal::LiveReader:
    return "live-reader";
  case Refusal::UnorderedReader:
    return "unordered-reader";
  case Refusal::AccessMapUnproven:
    return "access-map-unproven";
  }
  return "";
}

const char *weir::describe(Refusal refusal) {
  switch (refusal) {
  case Refusal::MemorySpace:
    return "they are in different memory spaces";
  case Refusal::Layout:
    return "they have different types, or one is a part of a value";
  case Refusal::Size:
    return "they have different sizes";
  case Refusal::Alignment:
    return "it needs a larger alignment";
  case Refusal::NotOwned:
    return "that is a constant, or an argument that is not donated";
  case Refusal::ViewOfArgument:
    return "that is a part of an argument";
  case Refusal::ArgumentAlias:
    return "that is a foreign function's argument, which may share bytes with others";
  case Refusal::EscapesTwice:
    return "that is a result itself";
  case Refusal::LiveReader:
    return "a later command still touches them";
  case Refusal::UnorderedReader:
    return "a command of another queue touches them, and nothing orders it before the write";
  case Refusal::AccessMapUnproven:
    return "the access maps do not prove that each element is read before it is written";
  }
  return "";
}

std::optional<Refusal> weir::findMisfit(const OrderProblem &problem, const OrderCommand &command,
                                        int64_t target, int64_t source) {
  const MemoryOperand &to = command.getOperand(target), &from = command.getOperand(source);
  const OrderAllocation &want = problem.allocations[to.allocation];
  const OrderAllocation &have = problem.allocations[from.allocation];
  bool isArgument = have.kind == OrderAllocation::Kind::Argument;
  if (have.kind == OrderAllocation::Kind::Global)
    return Refusal::NotOwned;
  if (have.isReturned)
    return Refusal::EscapesTwice;
  if (want.space != have.space)
    return Refusal::MemorySpace;
  if (!from.isWhole && isArgument)
    return Refusal::ViewOfArgument;
  if (!from.isWhole || !to.isWhole)
    return Refusal::Layout;
  if (want.bytes != have.bytes)
    return Refusal::Size;
  if (want.type != have.type)
    return Refusal::Layout;
  if (want.alignment > have.alignment)
    return Refusal::Alignment;
  if (!isArgument)
    return std::nullopt;
  if (have.isResult || have.isLent)
    return Refusal::EscapesTwice;
  if (!have.isDonated)
    return Refusal::NotOwned;
  return have.mayBeShared ? std::optional(Refusal::ArgumentAlias) : std::nullopt;
}

bool weir::isProvedInPlace(const OrderProblem &problem, const OrderCommand &command, int64_t target,
                           int64_t source) {
  int64_t to = command.getOperand(target).allocation;
  int64_t from = command.getOperand(source).allocation;
  for (const MemoryOperand &read : command.operands)
    for (const MemoryOperand &written : command.operands)
      // Views of a part are elsewhere than the proof would have them.
      if (read.allocation == from && written.allocation == to &&
          !(read.isWhole && written.isWhole &&
            problem.isProved(command.id, read.operand, written.operand)))
        return false;
  return true;
}

namespace {
class DonationJudge {
public:
  DonationJudge(const OrderProblem &problem)
      : problem(problem), users(problem.accesses.mayShare.size()) {
    for (size_t number = 0; number < problem.commands.size(); ++number)
      for (const OperandAccess &access : problem.accesses.dispatches[number])
        users[access.allocation].push_back(number);
  }

  bool isBorn(int64_t command, const OperandAccess &access) const;
  DonationPair judge(int64_t command, int64_t target, const OperandAccess &source) const;

private:
  const OrderProblem &problem;
  std::vector<std::vector<int64_t>> users; ///< commands by allocation, in recorded order
};
} // namespace

/// Whether a value that may move begins its life with this access: only there can it be
/// given bytes.
bool DonationJudge::isBorn(int64_t command, const OperandAccess &access) const {
  const OrderAllocation &value = problem.allocations[access.allocation];
  return access.writes && !access.reads &&
         (value.kind == OrderAllocation::Kind::Local || value.isResult) &&
         users[access.allocation].front() == command;
}

DonationPair DonationJudge::judge(int64_t number, int64_t target,
                                  const OperandAccess &source) const {
  const OrderCommand &command = problem.commands[number];
  DonationPair pair = {number, target, source.operand, std::nullopt, -1};
  pair.refusal = findMisfit(problem, command, target, source.operand);
  if (pair.refusal)
    return pair;
  const std::vector<int64_t> &all = users[source.allocation];
  if (auto later = std::upper_bound(all.begin(), all.end(), number); later != all.end()) {
    pair.refusal = Refusal::LiveReader;
    pair.witness = *later;
    return pair;
  }
  for (int64_t earlier : all)
    if (problem.commands[earlier].queue != command.queue) {
      pair.refusal = Refusal::UnorderedReader;
      pair.witness = earlier;
      return pair;
    }
  if (!isProvedInPlace(problem, command, target, source.operand))
    pair.refusal = Refusal::AccessMapUnproven;
  return pair;
}

std::vector<DonationPair> weir::judgeDonations(const OrderProblem &problem) {
  DonationJudge judge(problem);
  std::vector<DonationPair> pairs;
  for (size_t number = 0; number < problem.commands.size(); ++number) {
    if (!problem.commands[number].isDispatch)
      continue;
    const DispatchAccesses &accesses = problem.accesses.dispatches[number];
    for (const OperandAccess &written : accesses)
      if (judge.isBorn(number, written))
        for (const OperandAccess &read : accesses)
          if (read.reads && !read.writes && problem.allocations[read.allocation].type >= 0 &&
              read.allocation != written.allocation)
            pairs.push_back(judge.judge(number, written.operand, read));
  }
  return pairs;
}

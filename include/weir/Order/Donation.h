//===- Donation.h - Whether a value may take an operand's bytes -*- C++ -*-===//
//
// docs/donation.md explains it.
//
//===----------------------------------------------------------------------===//

#ifndef WEIR_ORDER_DONATION_H
#define WEIR_ORDER_DONATION_H

#include "weir/Order/Problem.h"

#include <optional>
#include <vector>

namespace weir {

/// Why a value may not take an operand's bytes; docs/donation.md explains each.
enum class Refusal {
  MemorySpace,
  Layout,
  Size,
  Alignment,
  NotOwned,
  ViewOfArgument,
  ArgumentAlias,
  EscapesTwice,
  LiveReader,
  UnorderedReader,
  AccessMapUnproven
};

/// "memory-space"
const char *stringify(Refusal refusal);

/// "they are in different memory spaces"
const char *describe(Refusal refusal);

/// Returns why the bytes of operand `source` do not suit what operand `target` names, or the
/// kernel's own accesses forbid it; nothing if the two fit. Asks nobody who else uses the bytes.
std::optional<Refusal> findMisfit(const OrderProblem &problem, const OrderCommand &command,
                                  int64_t target, int64_t source);

/// Whether the kernel's own accesses allow that the one allocation has the other's bytes,
/// through all operands that name the two.
bool isProvedInPlace(const OrderProblem &problem, const OrderCommand &command, int64_t target,
                     int64_t source);

/// A command, an operand whose value begins there and an operand that it reads.
struct DonationPair {
  int64_t command = 0; ///< its place in the list
  int64_t target = 0;  ///< operands
  int64_t source = 0;
  std::optional<Refusal> refusal; ///< nothing: the target may take the source's bytes
  int64_t witness = -1;           ///< the command that still needs the bytes, of these refusals
};

/// Returns every pair of an operand that a dispatch reads and a value whose bytes that dispatch
/// is the first to write, in recorded order, with the answer of each.
std::vector<DonationPair> judgeDonations(const OrderProblem &problem);

} // namespace weir

#endif // WEIR_ORDER_DONATION_H

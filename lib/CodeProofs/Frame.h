//===- Frame.h - Addresses as sums of independent digits --------*- C++ -*-===//
//
// Ids and counters are independent of each other. Where an address divides a sum of
// them, the sum becomes one number, and its digits take its place: 8 * group + lane,
// below 80, divided by 10, is a digit below 8, and one below 10 is the rest. In these
// digits an address is a plain sum again.
//
//===----------------------------------------------------------------------===//

#ifndef WEIR_LIB_SPIRVREADER_FRAME_H
#define WEIR_LIB_SPIRVREADER_FRAME_H

#include "weir/CodeProofs/AddressMap.h"

namespace weir::spv {

/// One of two accesses in a frame, or the only one.
enum Who : int { First, Second };

class Frame {
public:
  explicit Frame(const Atoms &atoms) : atoms(&atoms) {}

  /// Counters of these loops are one number for both accesses: as values, where it is
  /// asked which bytes the two share.
  void pair(uint32_t loopOfFirst, uint32_t loopOfSecond);

  /// Finds the digits of these sums, those of few numbers first: for those of more,
  /// numbers are merged.
  void prepare(const std::vector<std::pair<Affine, Who>> &sums);
  /// The sum in digits; none when they are not independent. What earlier calls
  /// returned no longer counts.
  std::optional<Affine> express(const Affine &sum, Who who);
  /// Lets digits have no values with which a guard is negative. With `merges` also by
  /// making one number of several.
  void restrict(const Affine &guard, Who who, bool merges);

  int64_t getCount(uint32_t digit) const { return digits[digit].count; }
  /// It is a digit of what differs from one execution to the next, other than ids and
  /// shared counters.
  bool isOther(uint32_t digit) const { return digits[digit].isOther; }
  /// The digits' values are just those that executions have, each with any other.
  bool isExact() const;
  bool isEmpty() const { return empty; }
  /// Whether an id is the same in both accesses where these digits are; or the counter
  /// of a shared loop.
  bool isFixedId(uint32_t atom, const std::vector<uint32_t> &equal) const;
  bool isFixedTrip(uint32_t loop, const std::vector<uint32_t> &equal) const;

private:
  /// Whose numbers: ids are of both accesses, counters of the first one and what is
  /// paired with them, or else of the second.
  enum Owner { OfBoth, OfLoop, LoopOfSecond, OtherOfFirst, OtherOfSecond };
  /// Takes the place of one digit or of several.
  struct Step {
    enum class Kind { Merge, Split, Shift } kind;
    std::vector<std::pair<uint32_t, int64_t>> from; ///< Merge: of all, with its factor in the sum
    uint32_t to = 0, high = 0;                      ///< Split: from = to + by * high
    int64_t by = 0;                                 ///< Shift: from = to + by
  };
  struct Digit {
    int64_t count;
    bool isOther = false;
  };

  /// In digits as they were before a step.
  struct Meaning {
    std::optional<Affine> sum;
    size_t step = 0;
  };

  const Meaning &understand(uint32_t number, Who who);
  Meaning findMeaning(const Atom &digit, Who who);
  std::optional<Affine> apply(Affine sum, size_t step, size_t end) const;
  std::optional<std::pair<Affine, Affine>> cut(Affine sum, int64_t divisor);
  bool merge(std::vector<std::pair<uint32_t, int64_t>> terms);
  void split(uint32_t digit, int64_t by);
  uint32_t getDigit(uint32_t atom, Who who);
  uint32_t addDigit(int64_t count, bool isOther);
  Affine getOffset(uint32_t atom) const;
  bool isFixedDigit(uint32_t digit, const std::vector<uint32_t> &equal) const;

  const Atoms *atoms;
  std::vector<Digit> digits;
  std::map<std::pair<Owner, uint32_t>, uint32_t> digitOf; ///< by atom, or loop
  std::map<uint32_t, uint32_t> firstOfSecond;             ///< loops
  std::vector<Step> steps;
  std::map<std::pair<Who, uint32_t>, Meaning> meanings; ///< of atoms
  bool exact = true, empty = false;
};

} // namespace weir::spv

#endif // WEIR_LIB_SPIRVREADER_FRAME_H

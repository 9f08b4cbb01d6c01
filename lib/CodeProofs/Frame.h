//===- Frame.h - Addresses as sums of independent digits --------*- C++ -*-===//
//
// Ids and counters are independent of each other. An address may divide a sum of them, which is
// not affine; then the sum is merged into one number, which is split into digits. For example 8
// * group + lane < 80, divided by 10, has the digits quotient < 8 and rest < 10. In these
// independent digits the address is affine again.
//
//===----------------------------------------------------------------------===//

#ifndef WEIR_LIB_CODEPROOFS_FRAME_H
#define WEIR_LIB_CODEPROOFS_FRAME_H

#include "weir/CodeProofs/AddressMap.h"

namespace weir::spv {

/// Selects one of two accesses in a frame; `First` if there is one only.
enum Who : int { First, Second };

class Frame {
public:
  explicit Frame(const Atoms &atoms) : atoms(&atoms) {}

  /// Makes the counters of two loops one number for both accesses: they are compared in the
  /// same trip.
  void pair(uint32_t loopOfFirst, uint32_t loopOfSecond);

  /// Finds digits for these sums, sums of few numbers first; sums of more numbers may merge
  /// them.
  void prepare(const std::vector<std::pair<Affine, Who>> &sums);
  /// Returns the sum in digits; none if they would not be independent. Invalidates the results
  /// of earlier calls.
  std::optional<Affine> express(const Affine &sum, Who who);
  /// Restricts digits to values for which `guard` is >= 0. With `merges`, may merge several
  /// digits into one to do so.
  void restrict(const Affine &guard, Who who, bool merges);

  /// Returns what a guard, a sum in digits, says of the digit with the largest factor, whatever
  /// values the others have; none if it leaves it all its values.
  std::optional<Affine> findBound(const Affine &guard) const;

  int64_t getCount(uint32_t digit) const { return digits[digit].count; }
  /// Whether it is a digit of a number other than ids and shared counters, which may differ in
  /// each execution.
  bool isOther(uint32_t digit) const { return digits[digit].isOther; }
  /// Whether executions have all combinations of the digits' values, and no others.
  bool isExact() const;
  bool isEmpty() const { return empty; }
  /// Whether an id, or the counter of a shared loop, is the same in both accesses if the digits
  /// `equal` are.
  bool isFixedId(uint32_t atom, const std::vector<uint32_t> &equal) const;
  bool isFixedTrip(uint32_t loop, const std::vector<uint32_t> &equal) const;
  /// Returns the digit whose difference is that of the counters of a shared loop, if there is one.
  std::optional<uint32_t> findTripDigit(uint32_t loop) const;

private:
  /// The access that a number belongs to: both for ids, the first for its counters and those
  /// paired with them, else the second.
  enum Owner { OfBoth, OfLoop, LoopOfSecond, OtherOfFirst, OtherOfSecond };
  /// A rewriting of one digit or several.
  struct Step {
    enum class Kind { Merge, Split, Shift } kind;
    std::vector<std::pair<uint32_t, int64_t>> from; ///< Merge: all digits with their factors
    uint32_t to = 0, high = 0;                      ///< Split: from = to + by * high
    int64_t by = 0;                                 ///< Shift: from = to + by
  };
  struct Digit {
    int64_t count;
    bool isOther = false;
  };

  /// A sum in the digits that existed before step `step`.
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

#endif // WEIR_LIB_CODEPROOFS_FRAME_H

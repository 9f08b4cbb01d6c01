//===- Affine.h - Sums of ids and counters ----------------------*- C++ -*-===//

#ifndef WEIR_CODEPROOFS_AFFINE_H
#define WEIR_CODEPROOFS_AFFINE_H

#include <compare>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <tuple>
#include <utility>
#include <vector>

namespace weir::spv {

/// What does not fit into 64 bits, or is too large to be worth following.
struct TooLarge {};

/// A constant and numbers times factors. Arithmetic throws `TooLarge`.
struct Affine {
  int64_t constant = 0;
  /// (number, factor): by number, no factor is 0.
  std::vector<std::pair<uint32_t, int64_t>> terms;

  static Affine of(int64_t constant) { return {constant, {}}; }
  static Affine number(uint32_t number, int64_t factor = 1) { return {0, {{number, factor}}}; }
  bool isConstant() const { return terms.empty(); }
  int64_t getFactor(uint32_t number) const;
  auto operator<=>(const Affine &) const = default;
};

Affine operator+(const Affine &a, const Affine &b);
Affine operator*(const Affine &a, int64_t factor);
inline Affine operator-(const Affine &a, const Affine &b) { return a + b * -1; }

/// Closed.
struct Interval {
  int64_t min = 0, max = 0;
};

/// What sums are made of.
struct Atom {
  enum class Kind {
    Workgroup, ///< id, on axis `number`
    Local,     ///< the invocation's id in its workgroup, on axis `number`
    Subgroup,  ///< in the workgroup
    Lane,      ///< in the subgroup
    Trip,      ///< of loop `number`, from 0
    Digit,     ///< floor(`of` / `divisor`) mod `modulus`, of an `of` that is not negative
    Clamped,   ///< the number of the range that is next to `of`
    Other      ///< anything in the range, each time that it is computed
  } kind = Kind::Other;
  uint32_t number = 0;
  Affine of;
  int64_t divisor = 1, modulus = 0; ///< a modulus of 0 is none
  Interval range;
  uint32_t size = 1; ///< atoms inside, itself too
  /// Other: the same in all executions of a launch, as what is made of constants and of
  /// operands that the kernel does not write.
  bool isUniform = false;
};

/// Makes each atom once. Sums here have atoms as numbers.
class Atoms {
public:
  const Atom &operator[](uint32_t number) const { return atoms[number]; }
  uint32_t size() const { return uint32_t(atoms.size()); }

  /// The id or counter, which goes from 0 to `count` - 1.
  Affine getId(Atom::Kind kind, uint32_t number, int64_t count);
  Affine makeOther(Interval range);
  void setUniform(uint32_t number) { atoms[number].isUniform = true; }
  /// Whether an atom is the same in all executions of a launch.
  bool isUniform(uint32_t number) const;
  /// The number of [min, max] that is next to the sum.
  Affine clamp(const Affine &sum, Interval to);
  /// By the atoms' ranges.
  Interval getRange(const Affine &sum) const;
  /// By what sums that are not negative leave of those ranges; none where the sums
  /// contradict each other.
  std::optional<Interval> getRange(const Affine &sum, const std::vector<Affine> &guards) const;
  /// floor(sum / divisor) and sum mod divisor, of a sum that is not negative and a
  /// divisor that is at least 1.
  Affine divide(const Affine &sum, int64_t divisor);
  Affine getRest(const Affine &sum, int64_t divisor);

private:
  /// The kind, the sum, and the two numbers that say what of it.
  using Key = std::tuple<Atom::Kind, Affine, int64_t, int64_t>;

  Affine makeDigit(const Affine &of, int64_t divisor, int64_t modulus);
  /// Makes an atom of a sum, or one that may be anything in its range if it is too large.
  Affine add(Atom atom, Key key);
  std::optional<Affine> findDigit(const Affine &sum, int64_t divisor, int64_t modulus);

  std::vector<Atom> atoms;
  std::map<std::pair<Atom::Kind, uint32_t>, uint32_t> ids;
  std::map<Key, uint32_t> made;
};

} // namespace weir::spv

#endif // WEIR_CODEPROOFS_AFFINE_H

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

/// Thrown when a number exceeds 64 bits, or a sum is too large to be worth following.
struct TooLarge {};

/// The sum of a constant and of variables times factors. A variable is a number, in most uses
/// an index into `Atoms`. Arithmetic throws `TooLarge`.
struct Affine {
  int64_t constant = 0;
  /// (number, factor), sorted by number; no factor is 0.
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

/// The closed interval [min, max].
struct Interval {
  int64_t min = 0, max = 0;
};

/// A variable of sums.
struct Atom {
  enum class Kind {
    Workgroup, ///< the workgroup's id on axis `number`
    Local,     ///< the invocation's id in its workgroup, on axis `number`
    Subgroup,  ///< the subgroup's number in its workgroup
    Lane,      ///< the invocation's number in its subgroup
    Trip,      ///< the trip of loop `number`, from 0
    Digit,     ///< floor(`of` / `divisor`) mod `modulus`, where `of` >= 0
    Clamped,   ///< `of` clamped to the range
    Choice,    ///< `of` if all `conditions` are >= 0, else `otherwise`
    Other      ///< any number in the range, a new one at each computation
  } kind = Kind::Other;
  uint32_t number = 0;
  Affine of;
  int64_t divisor = 1, modulus = 0; ///< modulus 0: no modulus
  std::vector<Affine> conditions;
  Affine otherwise;
  Interval range;
  uint32_t size = 1; ///< number of atoms in it, itself included
  /// Other: whether it is the same in all executions of a launch, since it is computed from
  /// constants and from operands that the kernel does not write.
  bool isUniform = false;
  bool isLoaded = false; ///< Other: whether memory holds it, so it may be any in the range
};

/// The atoms of an address map, without duplicates. Sums here refer to atoms by number.
class Atoms {
public:
  const Atom &operator[](uint32_t number) const { return atoms[number]; }
  uint32_t size() const { return uint32_t(atoms.size()); }

  /// Returns the id or counter, which is in [0, count).
  Affine getId(Atom::Kind kind, uint32_t number, int64_t count);
  Affine makeOther(Interval range);
  void setUniform(uint32_t number) { atoms[number].isUniform = true; }
  void setLoaded(uint32_t number) { atoms[number].isLoaded = true; }
  /// Whether an atom is the same in all executions of a launch.
  bool isUniform(uint32_t number) const;
  /// Returns `first` if all conditions are >= 0, else `second`.
  Affine choose(const std::vector<Affine> &conditions, const Affine &first, const Affine &second);
  /// Calls `visit` for each sum inside an atom.
  template <typename Visit> static void forEachInside(const Atom &atom, Visit visit) {
    visit(atom.of);
    for (const Affine &condition : atom.conditions)
      visit(condition);
    visit(atom.otherwise);
  }
  /// Returns the sum clamped to the interval.
  Affine clamp(const Affine &sum, Interval to);
  /// Returns the range of a sum, from the atoms' ranges.
  Interval getRange(const Affine &sum) const;
  /// Returns the range of a sum of digits of one number, by all values of that; none if there are
  /// many, or if the sum depends on others.
  std::optional<Interval> findRange(const Affine &sum);
  /// Returns the bits that a sum may have set. Needs: sum >= 0, of which `range` is the range.
  uint64_t getBits(const Affine &sum, Interval range) const;
  /// Returns the range of a sum where all `guards` are >= 0; none if the guards contradict each
  /// other.
  std::optional<Interval> getRange(const Affine &sum, const std::vector<Affine> &guards) const;
  /// Returns floor(sum / divisor), or sum mod divisor. Needs: sum >= 0, divisor >= 1.
  Affine divide(const Affine &sum, int64_t divisor);
  Affine getRest(const Affine &sum, int64_t divisor);
  /// Returns the sum with x - d * floor(x / d) as the rest of x, and with two neighbouring digits
  /// of x as one, wherever it has these.
  Affine joinRests(Affine sum);

private:
  /// The kind, the sum, and its two parameters.
  using Key = std::tuple<Atom::Kind, Affine, int64_t, int64_t>;

  Affine makeDigit(const Affine &of, int64_t divisor, int64_t modulus);
  /// Adds an atom; with a key, unless there is one with it. If it is too large, adds `Other` with
  /// its range instead.
  Affine add(Atom atom, std::optional<Key> key);
  const Affine *findInner(const Affine &sum) const;
  std::optional<std::vector<int64_t>> getValues(const Affine &sum);
  std::optional<Affine> findQuotient(const Affine &of, int64_t divisor, int64_t modulus);
  std::optional<int64_t> evaluate(const Affine &sum, const Affine &base, int64_t value) const;
  std::optional<Affine> findDigit(const Affine &sum, int64_t divisor, int64_t modulus);

  std::vector<Atom> atoms;
  std::map<std::pair<Atom::Kind, uint32_t>, uint32_t> ids;
  std::map<Key, uint32_t> made;
  int64_t tries = 0; ///< number of values that were looked at one by one
};

} // namespace weir::spv

#endif // WEIR_CODEPROOFS_AFFINE_H

//===- ShortVector.h - A vector whose first elements need no heap -*- C++ -*-===//
//
// A problem has a list of operands for each command, most of them short. As vectors of the
// standard library, their allocations took a third of the time that collecting a problem takes.
// LLVM's SmallVector is not at hand here: this room has no LLVM.
//
//===----------------------------------------------------------------------===//

#ifndef WEIR_ORDER_SHORTVECTOR_H
#define WEIR_ORDER_SHORTVECTOR_H

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <type_traits>

namespace weir {

/// A sequence of elements in one piece; up to `Inline` of them lie in the object itself.
template <typename T, size_t Inline> class ShortVector {
  static_assert(std::is_trivially_copyable_v<T> && std::is_trivially_destructible_v<T>);

public:
  using value_type = T;
  using iterator = T *;
  using const_iterator = const T *;

  ShortVector() = default;
  ShortVector(std::initializer_list<T> elements) { append(elements.begin(), elements.end()); }
  ShortVector(const ShortVector &other) { append(other.begin(), other.end()); }
  ShortVector(ShortVector &&other) noexcept { take(other); }
  ShortVector &operator=(const ShortVector &other) {
    if (this != &other) {
      count = 0;
      append(other.begin(), other.end());
    }
    return *this;
  }
  ShortVector &operator=(ShortVector &&other) noexcept {
    if (this != &other)
      take(other);
    return *this;
  }

  size_t size() const { return count; }
  bool empty() const { return count == 0; }
  T *begin() { return heap ? heap.get() : own; }
  T *end() { return begin() + count; }
  const T *begin() const { return heap ? heap.get() : own; }
  const T *end() const { return begin() + count; }
  T &operator[](size_t index) { return begin()[index]; }
  const T &operator[](size_t index) const { return begin()[index]; }
  T &front() { return *begin(); }
  const T &front() const { return *begin(); }
  T &back() { return begin()[count - 1]; }
  const T &back() const { return begin()[count - 1]; }

  void clear() { count = 0; }

  void reserve(size_t wanted) {
    if (wanted <= capacity)
      return;
    auto larger = std::make_unique<T[]>(wanted);
    std::copy(begin(), end(), larger.get());
    heap = std::move(larger);
    capacity = wanted;
  }

  void push_back(const T &element) {
    T copy = element; // it may be one of this vector
    if (count == capacity)
      reserve(2 * capacity);
    begin()[count++] = copy;
  }

private:
  void append(const T *from, const T *to) {
    reserve(count + (to - from));
    std::copy(from, to, end());
    count += to - from;
  }

  void take(ShortVector &other) {
    heap = std::move(other.heap);
    capacity = other.capacity;
    count = other.count;
    if (!heap)
      std::copy(other.own, other.own + count, own);
    other.capacity = Inline;
    other.count = 0;
  }

  uint32_t count = 0, capacity = Inline;
  std::unique_ptr<T[]> heap;
  T own[Inline];
};

} // namespace weir

#endif // WEIR_ORDER_SHORTVECTOR_H

// Tensors.
#pragma once

#include <initializer_list>
#include <memory>
#include <new>
#include <span>
#include <vector>

#include "thimble/engine/matrix_view.h"
#include "thimble/engine/real.h"
#include "thimble/engine/shape.h"

namespace thimble {

// The alignment, in bytes, of every buffer that kernels read: a cache line, as an unaligned 64-byte load
// touches two.
inline constexpr std::size_t kAlignment = 64;

// An allocator for std::vector that aligns to kAlignment.
template <class T>
struct AlignedAllocator {
  using value_type = T;
  AlignedAllocator() = default;
  template <class U>
  AlignedAllocator(const AlignedAllocator<U>&) {}
  T* allocate(std::size_t n) {
    return static_cast<T*>(::operator new (n * sizeof(T), std::align_val_t{kAlignment}));
  }
  void deallocate(T* p, std::size_t) { ::operator delete (p, std::align_val_t{kAlignment}); }
  template <class U>
  bool operator==(const AlignedAllocator<U>&) const {
    return true;
  }
};

template <class T>
using AlignedVector = std::vector<T, AlignedAllocator<T>>;

inline namespace THIMBLE_PRECISION {

// A dense, row-major tensor that owns its elements.
class Tensor {
 public:
  Tensor() = default;
  explicit Tensor(Shape shape) : shape_(shape), elements_(static_cast<std::size_t>(shape.elements())) {}
  // Throws ShapeError when the number of values differs from shape.elements().
  Tensor(Shape shape, std::span<const Real> values);
  Tensor(Shape shape, std::initializer_list<Real> values);

  const Shape& shape() const { return shape_; }
  Real* data() { return elements_.data(); }
  const Real* data() const { return elements_.data(); }
  std::span<Real> values() { return elements_; }
  std::span<const Real> values() const { return elements_; }

  // Rows are all dimensions but the last.
  MatrixView matrix() { return {data(), shape_.rows(), shape_.last(), shape_.last()}; }
  ConstMatrixView matrix() const { return {data(), shape_.rows(), shape_.last(), shape_.last()}; }

 private:
  Shape shape_;
  AlignedVector<Real> elements_;
};

}  // namespace THIMBLE_PRECISION
}  // namespace thimble

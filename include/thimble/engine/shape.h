// The shape of a tensor.
#pragma once

#include <fmt/format.h>

#include <array>
#include <cstdint>
#include <initializer_list>
#include <string>

namespace thimble {

// The sizes of a dense row-major tensor, slowest dimension first.
class Shape {
 public:
  static constexpr int kMaxRank = 4;

  Shape() = default;
  // Throws ShapeError for more than kMaxRank dimensions or a negative one.
  Shape(std::initializer_list<std::int64_t> sizes);

  int rank() const { return rank_; }
  std::int64_t operator[](int dimension) const { return sizes_[dimension]; }
  std::int64_t last() const { return rank_ == 0 ? 1 : sizes_[rank_ - 1]; }
  std::int64_t elements() const;

  // Returns the rows of the shape as a matrix: the product of all dimensions but the last, which is the
  // columns.
  std::int64_t rows() const { return last() == 0 ? 0 : elements() / last(); }

  // Returns this shape with another last dimension. Throws ShapeError for ().
  Shape with_last(std::int64_t size) const;

  // Returns this shape with one more dimension, the fastest. Throws ShapeError beyond kMaxRank.
  Shape appended(std::int64_t size) const;

  bool operator==(const Shape&) const = default;

  std::string str() const;  // "(2, 3)"

 private:
  std::array<std::int64_t, kMaxRank> sizes_{};
  int rank_ = 0;
};

}  // namespace thimble

template <>
struct fmt::formatter<thimble::Shape> : fmt::formatter<std::string> {
  template <class Context>
  auto format(const thimble::Shape& shape, Context& context) const {
    return fmt::formatter<std::string>::format(shape.str(), context);
  }
};

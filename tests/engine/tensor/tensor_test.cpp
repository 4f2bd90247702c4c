#include "thimble/engine/tensor.h"

#include <algorithm>
#include <cstdint>
#include <vector>

#include "catch.h"
#include "thimble/engine/error.h"

using namespace thimble;

TEST_CASE("a tensor starts at zero, on a cache line", "[tensor]") {
  for (std::int64_t n : {1, 3, 17, 1000}) {
    const Tensor x({2, n});
    CHECK(x.shape() == Shape{2, n});
    CHECK(x.values().size() == static_cast<std::size_t>(2 * n));
    CHECK(std::ranges::all_of(x.values(), [](Real v) { return v == 0; }));
    CHECK(reinterpret_cast<std::uintptr_t>(x.data()) % kAlignment == 0);
  }
  CHECK(Tensor().values().empty());
  CHECK(Tensor(Shape{}).values().size() == 1);  // a scalar
}

TEST_CASE("a tensor owns a copy of its values", "[tensor]") {
  std::vector<Real> values{1, 2, 3, 4, 5, 6};
  Tensor x({2, 3}, values);
  values[0] = 9;
  const Tensor copy = x;
  x.data()[1] = 8;
  CHECK(x.values()[0] == 1);
  CHECK(copy.values()[1] == 2);
  CHECK(Tensor({2}, {7, 8}).values()[1] == 8);
}

TEST_CASE("as many values as the shape holds, or an error", "[tensor]") {
  CHECK_THROWS_AS(Tensor({2, 3}, {1, 2, 3, 4, 5}), ShapeError);
  CHECK_THROWS_WITH(Tensor({2, 2}, {1, 2, 3, 4, 5}), "tensor: 5 values for shape (2, 2), which holds 4");
}

TEST_CASE("as a matrix, the rows are all dimensions but the last", "[tensor]") {
  Tensor x({2, 3, 4});
  for (std::size_t i = 0; i < 24; ++i) x.values()[i] = static_cast<Real>(i);
  const MatrixView m = x.matrix();
  CHECK(m.rows == 6);
  CHECK(m.cols == 4);
  CHECK(m.stride == 4);
  CHECK(m.contiguous());
  CHECK(m.row(5)[3] == 23);
  const Tensor& read = x;
  CHECK(read.matrix().data == x.data());
}

TEST_CASE("a block of a matrix shares its memory", "[tensor]") {
  Tensor x({4, 5});
  for (std::size_t i = 0; i < 20; ++i) x.values()[i] = static_cast<Real>(i);
  const MatrixView block = x.matrix().row_block(1, 2).column_block(2, 3);
  CHECK(block.rows == 2);
  CHECK(block.cols == 3);
  CHECK(block.elements() == 6);
  CHECK_FALSE(block.contiguous());
  CHECK(block.row(1)[2] == 14);
  block.row(0)[0] = -1;
  CHECK(x.values()[7] == -1);
  const ConstMatrixView read = block;
  CHECK(read.row(0)[0] == -1);
}

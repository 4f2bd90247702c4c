#include "thimble/engine/shape.h"

#include "catch.h"
#include "thimble/engine/error.h"

using namespace thimble;

TEST_CASE("a shape knows its sizes", "[tensor]") {
  const Shape s{2, 3, 4};
  CHECK(s.rank() == 3);
  CHECK(s[0] == 2);
  CHECK(s[2] == 4);
  CHECK(s.last() == 4);
  CHECK(s.elements() == 24);
  CHECK(s.rows() == 6);
  CHECK(s.str() == "(2, 3, 4)");
  CHECK(fmt::format("{}", s) == "(2, 3, 4)");
  CHECK(Shape{5}.str() == "(5)");
  CHECK(Shape{5}.rows() == 1);
}

TEST_CASE("a scalar is one row of one element", "[tensor]") {
  const Shape scalar;
  CHECK(scalar.rank() == 0);
  CHECK(scalar.elements() == 1);
  CHECK(scalar.rows() == 1);
  CHECK(scalar.last() == 1);
  CHECK(scalar.str() == "()");
}

TEST_CASE("a dimension may be empty", "[tensor]") {
  CHECK(Shape{3, 0}.elements() == 0);
  CHECK(Shape{3, 0}.rows() == 0);
  CHECK(Shape{0, 3}.rows() == 0);
}

TEST_CASE("shapes are equal when rank and sizes are", "[tensor]") {
  CHECK(Shape{2, 3} == Shape{2, 3});
  CHECK_FALSE(Shape{2, 3} == Shape{3, 2});
  CHECK_FALSE(Shape{2} == Shape{2, 1});
  CHECK_FALSE(Shape{} == Shape{0});
}

TEST_CASE("a shape with another last dimension, and with one more", "[tensor]") {
  CHECK(Shape{2, 3}.with_last(7) == Shape{2, 7});
  CHECK(Shape{2, 3}.appended(7) == Shape{2, 3, 7});
  CHECK(Shape{}.appended(7) == Shape{7});
}

TEST_CASE("what is no shape is refused", "[tensor]") {
  CHECK_THROWS_AS((Shape{1, 2, 3, 4, 5}), ShapeError);
  CHECK_THROWS_WITH((Shape{1, 2, 3, 4, 5}), "shape: 5 dimensions, at most 4 are supported");
  CHECK_THROWS_AS((Shape{2, -1}), ShapeError);
  CHECK_THROWS_WITH((Shape{2, -1}), "shape: (2, -1) has a negative dimension");
  CHECK_THROWS_AS(Shape{}.with_last(3), ShapeError);
  CHECK_THROWS_AS((Shape{1, 2, 3, 4}.appended(5)), ShapeError);
  CHECK_THROWS_AS(Shape{1}.appended(-5), ShapeError);
}

#include "thimble/core/width.h"

#include "catch.h"

using namespace thimble;

TEST_CASE("a text has the columns that a terminal gives it", "[core]") {
  CHECK(display_width("") == 0);
  CHECK(display_width("layer 0") == 7);
  CHECK(display_width("mangé") == 5);
  CHECK(display_width("e\u0301te\u0301") == 3);  // combining accents
  CHECK(display_width("注意 lang") == 9);        // wide
  CHECK(display_width("\U0001F600") == 2);       // an emoji
  CHECK(display_width("שלום") == 4);             // right to left
  CHECK(display_width("a\u200bb") == 2);         // a space of no width
  CHECK(display_width("\t") == 1);               // what has no width of its own
  CHECK(display_width("\xff\xc3(") == 3);        // not UTF-8
}

TEST_CASE("a text is cut between characters, at a width", "[core]") {
  CHECK(truncated("reverse", 7) == "reverse");
  CHECK(truncated("reverse", 6) == "rever~");
  CHECK(truncated("reverse", 1) == "~");
  CHECK(truncated("reverse", 0) == "");
  CHECK(truncated("", 0) == "");
  CHECK(truncated("注意注意", 8) == "注意注意");
  CHECK(truncated("注意注意", 7) == "注意注~");
  CHECK(truncated("注意注意", 6) == "注意~");
  CHECK(truncated("e\u0301e\u0301e\u0301", 2) == "e\u0301~");
  for (std::size_t width = 0; width < 12; ++width)
    CHECK(display_width(truncated("a注b意\U0001F600e\u0301\xff", width)) <= width);
}

TEST_CASE("a text is padded to a width", "[core]") {
  CHECK(padded_right("ab", 4) == "ab  ");
  CHECK(padded_left("ab", 4) == "  ab");
  CHECK(padded_right("注意", 5) == "注意 ");
  CHECK(padded_left("e\u0301", 3) == "  e\u0301");
  CHECK(padded_left("longer", 3) == "longer");
}

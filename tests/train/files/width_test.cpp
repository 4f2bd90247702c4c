#include "train/files/text/width.h"

#include "catch.h"

using namespace thimble;

TEST_CASE("a text has the columns that a terminal gives it", "[files]") {
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

TEST_CASE("a text is cut between characters, at a width", "[files]") {
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

TEST_CASE("a text is padded to a width", "[files]") {
  CHECK(padded_right("ab", 4) == "ab  ");
  CHECK(padded_left("ab", 4) == "  ab");
  CHECK(padded_right("注意", 5) == "注意 ");
  CHECK(padded_left("e\u0301", 3) == "  e\u0301");
  CHECK(padded_left("longer", 3) == "longer");
}

TEST_CASE("text is broken at spaces, by the columns of words", "[files]") {
  CHECK(wrapped("", 10) == "\n");
  CHECK(wrapped("one two three", 8) == "one two\nthree\n");
  CHECK(wrapped("one two three", 7) == "one two\nthree\n");
  CHECK(wrapped("one two three", 6) == "one\ntwo\nthree\n");
  CHECK(wrapped("one two three", 8, 2) == "one two\n  three\n");
  CHECK(wrapped("  one two", 6, 2) == "  one\n  two\n");
  CHECK(wrapped("a  b", 10) == "a  b\n");
  CHECK(wrapped("注意 语言", 8) == "注意\n语言\n");
  CHECK(wrapped("注意 语言", 9) == "注意 语言\n");
  CHECK(wrapped("a 95 % CI", 5) == "a\n95 %\nCI\n");
  CHECK(wrapped("a 95 %", 5) == "a\n95 %\n");
  CHECK(wrapped("see /a/long/path now", 6) == "see\n/a/long/path\nnow\n");
}

TEST_CASE("only lines that are too wide are broken, below their own start", "[files]") {
  CHECK(reflowed("short\n\nno line break", 20) == "short\n\nno line break");
  CHECK(reflowed("one two three\nfour\n", 8) == "one two\nthree\nfour\n");
  CHECK(reflowed("one two three", 8) == "one two\nthree");
  CHECK(reflowed("  one two three\n", 9) == "  one two\n  three\n");
  CHECK(reflowed("keys  one two three\n", 18) == "keys  one two\n      three\n");
  CHECK(reflowed("# one two three\n", 10) == "# one two\n# three\n");
}

TEST_CASE("characters keep the accents that follow them", "[files]") {
  CHECK(characters_of("e\u0301注") == std::vector<std::string_view>{"e\u0301", "注"});
  CHECK(characters_of("").empty());
}

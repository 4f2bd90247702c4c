#include "thimble/core/text.h"

#include "catch.h"

using namespace thimble;

TEST_CASE("a UTF-8 character has the size that its first byte says", "[core]") {
  CHECK(character_size("a") == 1);
  CHECK(character_size("\xc3\xa9x") == 2);
  CHECK(character_size("\xe2\x82\xac") == 3);
  CHECK(character_size("\xf0\x9f\x98\x80") == 4);
  CHECK(character_size(std::string_view("\0", 1)) == 1);
}

TEST_CASE("what RFC 3629 rules out is no character", "[core]") {
  for (const char* text : {"", "\x80", "\xff", "\xc3", "\xc3(", "\xe2\x82", "\xf0\x9f\x98",
                           "\xc0\xaf",                                 // two bytes for one
                           "\xe0\x80\xaf", "\xf0\x80\x80\xaf",         // three and four for one
                           "\xed\xa0\x80",                             // a surrogate
                           "\xf4\x90\x80\x80", "\xf8\x88\x80\x80"}) {  // beyond the last
    CAPTURE(text);
    CHECK(character_size(text) == 0);
  }
  CHECK(character_size("\xe0\xa0\x80") == 3);
  CHECK(character_size("\xed\x9f\xbf") == 3);
  CHECK(character_size("\xf4\x8f\xbf\xbf") == 4);
}

TEST_CASE("the first byte that is not UTF-8 is found", "[core]") {
  CHECK(utf8_size("") == 0);
  CHECK(utf8_size("a\xc3\xa9z") == 4);
  CHECK(utf8_size("a\xc3\xa9\xffz") == 3);
}

TEST_CASE("a quoted text stays on its line, and short", "[core]") {
  CHECK(printable("a\xc3\xa9") == "a\xc3\xa9");
  CHECK(printable("a\nb\x1b\x7f\xff") == "a?b???");
  CHECK(printable(std::string(100, 'x')) == std::string(100, 'x'));
  CHECK(printable(std::string(101, 'x')) == std::string(100, 'x') + "...");
}

TEST_CASE("a line is UTF-8 without control characters", "[core]") {
  CHECK(is_line("a \xc3\xa9"));
  CHECK(is_line(""));
  for (const char* text : {"a\nb", "\t", "\x7f", "a\xff"}) {
    CAPTURE(text);
    CHECK_FALSE(is_line(text));
  }
}

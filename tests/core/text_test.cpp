#include "thimble/core/text.h"
#include "thimble/core/json.h"

#include "catch.h"

using namespace thimble;

TEST_CASE("control characters of ASCII end with DEL", "[core]") {
  for (const char c : {'\0', '\n', '\x1f', '\x7f'}) CHECK(is_control(c));
  for (const char c : {' ', '~', '\x80'}) CHECK_FALSE(is_control(c));
}

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
  CHECK(printable("a\nb\x1b\x7f\xff") == "a\\u{a}b\\u{1b}\\u{7f}\\x{ff}");
  CHECK(printable(std::string(100, 'x')) == std::string(100, 'x'));
  CHECK(printable(std::string(101, 'x')) == std::string(100, 'x').append("..."));
}

TEST_CASE("a line is UTF-8 without control characters", "[core]") {
  CHECK(is_line("a \xc3\xa9"));
  CHECK(is_line(""));
  for (const char* text : {"a\nb", "\t", "\x7f", "a\xff", "\xc2\x9b"}) {
    CAPTURE(text);
    CHECK_FALSE(is_line(text));
  }
}

TEST_CASE("text becomes content of a page", "[core]") {
  CHECK(escape_markup("a < b & \"c\" > \xc3\xa9") == "a &lt; b &amp; &quot;c&quot; &gt; \xc3\xa9");
  CHECK(escape_markup("\xEF\xBF\xBE \xEF\xBF\xBF \xEF\xBF\xBD") == "? ? \xEF\xBF\xBD");  // U+FFFD is one
}

TEST_CASE("text can be cut between two characters", "[core]") {
  CHECK(shortened("abc", 3) == "abc");
  CHECK(shortened("abcd", 3) == "abc...");
  CHECK(shortened("a\xc3\xa9\xc3\xa9", 4) == "a\xc3\xa9...");
  CHECK(shortened("\xc3\xa9", 1) == "...");
}

TEST_CASE("a number is all of a text", "[core]") {
  CHECK(parse_number<int>("12") == 12);
  CHECK(parse_number<int>("+12") == 12);
  CHECK(parse_number<double>("-1.5e2") == -150);
  for (const char* text : {"", "+", "+-1", "1 ", " 1", "1.5", "x", "99999999999"}) {
    CAPTURE(text);
    CHECK_FALSE(parse_number<int>(text));
  }
}

TEST_CASE("an escaped text cannot steer a terminal", "[core]") {
  CHECK(escape_controls("a\xc3\xa9 \\ \n\xf0\x9f\x98\x80") == "a\xc3\xa9 \\ \n\xf0\x9f\x98\x80");
  CHECK(escape_controls(std::string_view("\0\x1b[0m\r\t\x7f", 8)) == "\\u{0}\\u{1b}[0m\\u{d}\\u{9}\\u{7f}");
  CHECK(escape_controls("\x9b\xff\xc3") == "\\x{9b}\\x{ff}\\x{c3}");
  // U+0080, U+009B, U+009F, and U+00A0 after the last control character.
  CHECK(escape_controls("\xc2\x80\xc2\x9b\xc2\x9f\xc2\xa0") == "\\u{80}\\u{9b}\\u{9f}\xc2\xa0");
  // All of Bidi_Control, the separators of lines, and the neighbors of each range.
  const std::pair<std::string_view, std::string_view> cases[] = {
      {"\xd8\x9b", ""},         {"\xd8\x9c", "61c"},      {"\xd8\x9d", ""},         {"\xe2\x80\x8d", ""},
      {"\xe2\x80\x8e", "200e"}, {"\xe2\x80\x8f", "200f"}, {"\xe2\x80\x90", ""},     {"\xe2\x80\xa7", ""},
      {"\xe2\x80\xa8", "2028"}, {"\xe2\x80\xa9", "2029"}, {"\xe2\x80\xaa", "202a"}, {"\xe2\x80\xae", "202e"},
      {"\xe2\x80\xaf", ""},     {"\xe2\x81\xa5", ""},     {"\xe2\x81\xa6", "2066"}, {"\xe2\x81\xa9", "2069"},
      {"\xe2\x81\xaa", ""}};
  for (const auto& [text, point] : cases) {
    CAPTURE(text);
    CHECK(escape_controls(text) == (point.empty() ? std::string(text) : "\\u{" + std::string(point) + "}"));
  }
}

TEST_CASE("escaped JSON says the same", "[core]") {
  const Json value = {{"k\xc2\x9b", "\xe2\x80\xae\xd8\x9c\x7f\n\x1b \xc3\xa9\xf0\x9f\x98\x80"}};
  const std::string text = escape_controls_in_json(json_text(value, 2));
  CHECK(parse_json(text) == value);
  CHECK(escape_controls(text) == text);
  CHECK(text.find("\xc3\xa9") != std::string::npos);
}

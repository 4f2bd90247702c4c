#include "train/files/text/text.h"
#include "thimble/train/json.h"

#include "catch.h"

using namespace thimble;

TEST_CASE("control characters of ASCII end with DEL", "[files]") {
  for (const char c : {'\0', '\n', '\x1f', '\x7f'}) CHECK(is_control(c));
  for (const char c : {' ', '~', '\x80'}) CHECK_FALSE(is_control(c));
}

TEST_CASE("a UTF-8 character has the size that its first byte says", "[files]") {
  CHECK(character_size("a") == 1);
  CHECK(character_size("\xc3\xa9x") == 2);
  CHECK(character_size("\xe2\x82\xac") == 3);
  CHECK(character_size("\xf0\x9f\x98\x80") == 4);
  CHECK(character_size(std::string_view("\0", 1)) == 1);
}

TEST_CASE("what RFC 3629 rules out is no character", "[files]") {
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

TEST_CASE("the first byte that is not UTF-8 is found", "[files]") {
  CHECK(utf8_size("") == 0);
  CHECK(utf8_size("a\xc3\xa9z") == 4);
  CHECK(utf8_size("a\xc3\xa9\xffz") == 3);
}

TEST_CASE("a quoted text stays on its line, and short", "[files]") {
  CHECK(printable("a\xc3\xa9") == "a\xc3\xa9");
  CHECK(printable("a\nb\x1b\x7f\xff") == "a\\u{a}b\\u{1b}\\u{7f}\\x{ff}");
  CHECK(printable(std::string(100, 'x')) == std::string(100, 'x'));
  CHECK(printable(std::string(101, 'x')) == std::string(100, 'x').append("..."));
}

TEST_CASE("a line is UTF-8 without control characters", "[files]") {
  CHECK(is_line("a \xc3\xa9"));
  CHECK(is_line(""));
  for (const char* text : {"a\nb", "\t", "\x7f", "a\xff", "\xc2\x9b"}) {
    CAPTURE(text);
    CHECK_FALSE(is_line(text));
  }
}

TEST_CASE("text becomes content of a page", "[files]") {
  CHECK(escape_markup("a < b & \"c\" > \xc3\xa9") == "a &lt; b &amp; &quot;c&quot; &gt; \xc3\xa9");
  CHECK(escape_markup("<\u202e\u200b\x1b\xff") == "&lt;\\u{202e}\\u{200b}\\u{1b}\\x{ff}");
  CHECK(escape_markup("\xEF\xBF\xBE \xEF\xBF\xBF \xEF\xBF\xBD") == "? ? \xEF\xBF\xBD");  // U+FFFD is one
}

TEST_CASE("text can be cut between two characters", "[files]") {
  CHECK(shortened("abc", 3) == "abc");
  CHECK(shortened("abcd", 3) == "abc...");
  CHECK(shortened("a\xc3\xa9\xc3\xa9", 4) == "a\xc3\xa9...");
  CHECK(shortened("\xc3\xa9", 1) == "...");
}

TEST_CASE("a number is all of a text", "[files]") {
  CHECK(parse_number<int>("12") == 12);
  CHECK(parse_number<int>("+12") == 12);
  CHECK(parse_number<double>("-1.5e2") == -150);
  for (const char* text : {"", "+", "+-1", "1 ", " 1", "1.5", "x", "99999999999"}) {
    CAPTURE(text);
    CHECK_FALSE(parse_number<int>(text));
  }
}

TEST_CASE("an escaped text cannot steer a terminal", "[files]") {
  CHECK(escape_controls("a\xc3\xa9 \\ \n\xf0\x9f\x98\x80") == "a\xc3\xa9 \\ \n\xf0\x9f\x98\x80");
  CHECK(escape_controls(std::string_view("\0\x1b[0m\r\t\x7f", 8)) == "\\u{0}\\u{1b}[0m\\u{d}\\u{9}\\u{7f}");
  CHECK(escape_controls("\x9b\xff\xc3") == "\\x{9b}\\x{ff}\\x{c3}");
  // U+0080, U+009B, U+009F, and U+00A0 after the last control character.
  CHECK(escape_controls("\xc2\x80\xc2\x9b\xc2\x9f\xc2\xa0") == "\\u{80}\\u{9b}\\u{9f}\xc2\xa0");
}

TEST_CASE("characters that turn the text or cannot be seen are escaped", "[files]") {
  // All of Bidi_Control, the separators of lines, what has no width, and the neighbors of each range.
  const std::pair<std::string_view, std::string_view> cases[] = {
      {"\u061b", ""},          {"\u061c", "61c"},       {"\u061d", ""},          {"\u200e", "200e"},
      {"\u200f", "200f"},      {"\u2010", ""},          {"\u2027", ""},          {"\u2028", "2028"},
      {"\u2029", "2029"},      {"\u202a", "202a"},      {"\u202e", "202e"},      {"\u202f", ""},
      {"\u2066", "2066"},      {"\u2069", "2069"},      {"\u00ac", ""},          {"\u00ad", "ad"},
      {"\u00ae", ""},          {"\u034e", ""},          {"\u034f", "34f"},       {"\u0350", ""},
      {"\u115e", ""},          {"\u115f", "115f"},      {"\u1160", "1160"},      {"\u1161", ""},
      {"\u17b4", "17b4"},      {"\u17b6", ""},          {"\u180e", "180e"},      {"\u1810", ""},
      {"\u200a", ""},          {"\u200b", "200b"},      {"\u200c", "200c"},      {"\u200d", "200d"},
      {"\u205f", ""},          {"\u2060", "2060"},      {"\u2064", "2064"},      {"\u206f", "206f"},
      {"\u2070", ""},          {"\u3163", ""},          {"\u3164", "3164"},      {"\ufdff", ""},
      {"\ufe00", "fe00"},      {"\ufe0f", "fe0f"},      {"\ufe10", ""},          {"\ufeff", "feff"},
      {"\uffa0", "ffa0"},      {"\ufffb", "fffb"},      {"\ufffc", ""},          {"\U0001d173", "1d173"},
      {"\U0001d17b", ""},      {"\U0001bca0", "1bca0"}, {"\U000e0001", "e0001"}, {"\U000e0041", "e0041"},
      {"\U000e01ef", "e01ef"}, {"\U000e1000", ""},      {"e\u0301", ""},         {"\U000f0000", ""}};
  for (const auto& [text, point] : cases) {
    CAPTURE(text);
    CHECK(escape_controls(text) == (point.empty() ? std::string(text) : "\\u{" + std::string(point) + "}"));
  }
}

TEST_CASE("emoji stay whole, and nothing hides between characters", "[files]") {
  const std::string family = "\U0001f468\u200d\U0001f469\U0001f3fd\u200d\U0001f467", heart = "\u2764\ufe0f",
                    burning = heart + "\u200d\U0001f525", flag = "\U0001f1eb\U0001f1f7";
  for (const std::string& emoji : {family, heart, burning, flag, std::string("\u00a9\ufe0e")}) {
    CAPTURE(emoji);
    CHECK(escape_controls("a" + emoji + "\u200b") == "a" + emoji + "\\u{200b}");
    CHECK(printable(emoji) == emoji);
    CHECK(escape_controls_in_json('"' + emoji + '"') == '"' + emoji + '"');
  }
  CHECK(escape_controls("a\u200d" + family) == "a\\u{200d}" + family);
  CHECK(escape_controls(heart + "\ufe0f\u200d\ufe0e" + heart) == heart + "\ufe0f\\u{200d}\\u{fe0e}" + heart);
  CHECK(escape_controls("1\ufe0f") == "1\\u{fe0f}");
  CHECK(escape_controls("\u200d\ufe0f") == "\\u{200d}\\u{fe0f}");
  CHECK(escape_controls("\u00e9\n\u200d\u200b\u200d") == "\u00e9\n\\u{200d}\\u{200b}\\u{200d}");
  CHECK(escape_controls_in_json("\"\u200d\"") == "\"\\u200d\"");
  CHECK(escape_controls("\U0001f3f4\U000e0067\U000e007f") == "\U0001f3f4\\u{e0067}\\u{e007f}");
}

TEST_CASE("control characters that are kept stay", "[files]") {
  CHECK(escape_controls("a\tb\nc\r\x1b\x7f\xff", "\n\t") == "a\tb\nc\\u{d}\\u{1b}\\u{7f}\\x{ff}");
}

TEST_CASE("what is not UTF-8 becomes U+FFFD, once for each character that is cut short", "[files]") {
  const std::string r = "\uFFFD";
  for (const auto& [text, valid] : std::vector<std::pair<std::string, std::string>>{
           {"", ""},
           {"a\u00e9\u20ac\U0001f600\n", "a\u00e9\u20ac\U0001f600\n"},
           {"\xc3", r},
           {"\xc3"
            "a",
            r + "a"},
           {"\xe2\x82"
            "a",
            r + "a"},
           {"\xf0\x9f\x98", r},
           {"\xf0\x9f\x98\xc3\xa9", r + "\u00e9"},
           {"\x80\xbf\xff", r + r + r},
           {"\xe0\x80\xaf", r + r + r},  // overlong, a surrogate, beyond U+10FFFF
           {"\xed\xa0\x80", r + r + r},
           {"\xf4\x90\x80\x80", r + r + r + r}})
    CHECK(valid_utf8(text) == valid);
}

TEST_CASE("words of a shell", "[files]") {
  CHECK(shell_command({"thimble", "train", "a=b_1.txt", ""}) == "thimble train a=b_1.txt ''");
  CHECK(shell_path("-my run") == "'./-my run'");
  CHECK(shell_command({"my #2.txt", "it's", "a;b", "$x"}) == R"('my #2.txt' 'it'\''s' 'a;b' '$x')");
}

TEST_CASE("escaped JSON says the same", "[files]") {
  const Json value = {
      {"k\xc2\x9b", "\xe2\x80\xae\xd8\x9c\x7f\n\x1b \xc3\xa9\xf0\x9f\x98\x80\u200b\U000e0041"}};
  const std::string text = escape_controls_in_json(json_text(value, 2));
  CHECK(parse_json(text) == value);
  CHECK(escape_controls(text) == text);
  CHECK(text.find("\xc3\xa9") != std::string::npos);
}

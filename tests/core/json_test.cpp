// Untrusted JSON.
#include "thimble/core/json.h"

#include "catch.h"
#include "thimble/core/error.h"

using namespace thimble;

namespace {

std::string refused(std::string_view text, std::size_t max_depth = 127) {
  try {
    parse_untrusted_json(text, max_depth);
  } catch (const DataError& e) {
    return e.what();
  }
  return "accepted";
}

}  // namespace

TEST_CASE("untrusted JSON has each key once in an object", "[core]") {
  CHECK(refused(R"({"a": {"b": 1}, "b": {"b": 2}, "c": [{"b": 3}, {"b": 4}]})") == "accepted");
  CHECK(refused(R"({"a": 1, "\u0061": 2})") == "duplicate key a");
  CHECK(refused(R"({"a": {"x": [{}, {"b": 1, "b": 2}]}})") == "duplicate key b");
  CHECK(refused(R"({"a": {"b": 1}, "a": 2})") == "duplicate key a");
  CHECK(refused(R"({"a\n": 1, "a\n": 2})") == "duplicate key a\\u{a}");
}

TEST_CASE("untrusted JSON nests as deep as is allowed", "[core]") {
  CHECK(refused("[[1]]", 2) == "accepted");
  CHECK(refused("[[[1]]]", 2) == "nests more than 2 deep");
  CHECK(refused(R"([{"a": {}}])", 2) == "nests more than 2 deep");
  CHECK(refused(std::string(10'000'000, '[')) == "nests more than 127 deep");
}

TEST_CASE("what is no JSON is refused at its byte", "[core]") {
  CHECK(refused("[1,]") == "not valid JSON at byte 4");
  CHECK(refused(std::string("[]\0x", 4)) == "not valid JSON at byte 3");
  CHECK(refused("[1e999]") == "not valid JSON: a number is out of range");
  CHECK(refused("") == "not valid JSON at byte 1");
}

TEST_CASE("many keys take no quadratic time", "[core]") {
  std::string text = "{";
  for (int i = 0; i < 300'000; ++i) text += fmt::format("\"{}\":1,", i);
  text.back() = '}';
  CHECK(parse_untrusted_json(text).size() == 300'000);
}

// The readers of JSON.
#include "thimble/train/json.h"

#include "catch.h"
#include "temporary_directory.h"
#include "thimble/engine/error.h"
#include "thimble/train/file.h"

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

TEST_CASE("untrusted JSON has each key once in an object", "[files]") {
  CHECK(refused(R"({"a": {"b": 1}, "b": {"b": 2}, "c": [{"b": 3}, {"b": 4}]})") == "accepted");
  CHECK(refused(R"({"a": 1, "\u0061": 2})") == "duplicate key a");
  CHECK(refused(R"({"a": {"x": [{}, {"b": 1, "b": 2}]}})") == "duplicate key b");
  CHECK(refused(R"({"a": {"b": 1}, "a": 2})") == "duplicate key a");
  CHECK(refused(R"({"a\n": 1, "a\n": 2})") == "duplicate key a\\u{a}");
}

TEST_CASE("untrusted JSON nests as deep as is allowed", "[files]") {
  CHECK(refused("[[1]]", 2) == "accepted");
  CHECK(refused("[[[1]]]", 2) == "nests more than 2 deep");
  CHECK(refused(R"([{"a": {}}])", 2) == "nests more than 2 deep");
  CHECK(refused(std::string(10'000'000, '[')) == "nests more than 127 deep");
}

TEST_CASE("what is no JSON is refused at its byte", "[files]") {
  CHECK(refused("[1,]") == "not valid JSON at byte 4");
  CHECK(refused(std::string("[]\0x", 4)) == "not valid JSON at byte 3");
  CHECK(refused("[1e999]") == "not valid JSON: a number is out of range");
  CHECK(refused("") == "not valid JSON at byte 1");
}

TEST_CASE("JSON is read as the library reads it", "[files]") {
  for (const char* text :
       {"null", "[]", "{}", R"("a\u00e9\n")", "-3", "18446744073709551615", "-1.5e-3",
        R"({"b": [1, {"z": true, "a": [[], {}]}, "x"], "a": {"c": null, "b": false}, "": [2, 3]})"}) {
    CAPTURE(text);
    CHECK(json_text(parse_json(text)) == Json::parse(text).dump());
    CHECK(parse_untrusted_json(text) == SortedJson::parse(text));
    CHECK(parse_untrusted_json(text).type() == SortedJson::parse(text).type());
  }
  CHECK(parse_json(std::string(1000, '[') + std::string(1000, ']')).size() == 1);
}

TEST_CASE("a file that is no JSON is named, with the reason", "[files]") {
  const TemporaryDirectory directory;
  const std::string file = directory / "x.json";
  const auto complaint = [&](std::string_view text) {
    write_file(file, text);
    try {
      read_json(file);
    } catch (const FileError& e) {
      return std::string(e.what());
    }
    return std::string("accepted");
  };
  CHECK(complaint("[1,]") == file + ": not valid JSON at byte 4");
  CHECK(complaint(R"({"loss": 1, "step": 2, "loss": 3})") == file + ": not valid JSON: duplicate key loss");
  CHECK(complaint("[1e999]").starts_with(file + ": not valid JSON: "));
  CHECK_THROWS_AS(parse_json(R"({"a": 1, "a": 1})"), Json::exception);
}

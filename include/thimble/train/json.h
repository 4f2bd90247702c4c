// JSON values. Only these functions compile the parser and the printer of the library.
#pragma once

#include <cstddef>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>

namespace thimble {

// A JSON value whose objects keep the order in which members were added.
using Json = nlohmann::ordered_json;

// Returns the parsed text, in n log n time. Throws Json::parse_error, Json::out_of_range for a number that a
// double cannot hold, and another Json::exception for a duplicate key in an object.
Json parse_json(std::string_view text);

// Returns the parsed file. Throws FileError, naming it, when it cannot be read or is not valid JSON.
Json read_json(const std::filesystem::path& path);

// A JSON value whose objects are sorted, so that building one from hostile text takes n log n time at most.
using SortedJson = nlohmann::json;

// Returns the parsed text. Throws DataError, with the byte from 1, when the text is not valid JSON, nests
// more than `max_depth` deep or has a duplicate key in an object. Takes n log n time, and up to 40 bytes of
// memory per byte of text; readers limit the size of the text.
SortedJson parse_untrusted_json(std::string_view text, std::size_t max_depth = 127);

// Returns the pointer to a key such as train.seed: /train/seed.
Json::json_pointer pointer_of(std::string_view key);

// Returns the value, or null if there is none.
template <class T>
Json or_null(const std::optional<T>& value) {
  return value ? Json(*value) : Json();
}

// Returns the JSON as text, indented over several lines, or on one line for -1. Throws Json::type_error on
// bytes that are not UTF-8, unless `invalid` replaces them.
std::string json_text(const Json& json, int indent = -1,
                      Json::error_handler_t invalid = Json::error_handler_t::strict);

// Returns the JSON on one line with sorted keys, numbers without a fraction as integers, and null for those that are not
// finite: equal for equal values, however they were written.
std::string canonical_text(const Json& json);

}  // namespace thimble

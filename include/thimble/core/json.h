// JSON values, read and written by the functions below: they alone compile the library's parser and printer.
#pragma once

#include <cstddef>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

namespace thimble {

// Its objects keep the order in which members were added.
using Json = nlohmann::ordered_json;

// Throws Json::parse_error.
Json parse_json(std::string_view text);

// Returns what is in the file. Throws FileError, naming it, when it cannot be read or is not valid JSON.
Json read_json(const std::filesystem::path& path);

// JSON that may be hostile. Its objects are sorted, so that it takes no more than n log n time to build.
using SortedJson = nlohmann::json;

// Throws DataError, with the byte from 1, when the text is not valid JSON, nests more than `max_depth` deep
// or has a key twice in an object. Takes up to 40 bytes of memory for each byte of the text.
SortedJson parse_untrusted_json(std::string_view text, std::size_t max_depth = 127);

// With an indent, over several lines; -1: on one. Bytes that are not UTF-8 throw Json::type_error or are
// replaced.
std::string json_text(const Json& json, int indent = -1,
                      Json::error_handler_t invalid = Json::error_handler_t::strict);

}  // namespace thimble

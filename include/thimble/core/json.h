// JSON values, read and written by the functions below: they alone compile the library's parser and printer.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

namespace thimble {

// Its objects keep the order in which members were added.
using Json = nlohmann::ordered_json;

// Throws Json::parse_error.
Json parse_json(std::string_view text);

// Tells the events of a text to the reader, which returns false to stop. Errors are told to the reader too.
void read_json(std::string_view text, nlohmann::json_sax<Json>& reader);

// With an indent, over several lines; -1: on one. Bytes that are not UTF-8 throw Json::type_error or are
// replaced.
std::string json_text(const Json& json, int indent = -1,
                      Json::error_handler_t invalid = Json::error_handler_t::strict);

}  // namespace thimble

#include "thimble/core/json.h"

namespace thimble {

Json parse_json(std::string_view text) { return Json::parse(text); }

void read_json(std::string_view text, nlohmann::json_sax<Json>& reader) { Json::sax_parse(text, &reader); }

std::string json_text(const Json& json, int indent, Json::error_handler_t invalid) {
  return json.dump(indent, ' ', false, invalid);
}

}  // namespace thimble

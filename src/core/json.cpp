#include "thimble/core/json.h"

#include <algorithm>
#include <set>
#include <vector>

#include "thimble/core/error.h"
#include "thimble/core/file.h"
#include "thimble/core/text.h"

namespace thimble {

Json parse_json(std::string_view text) { return Json::parse(text); }

Json read_json(const std::filesystem::path& path) {
  try {
    return parse_json(read_file(path));
  } catch (const Json::parse_error& e) {
    throw FileError(fmt::format("{}: not valid JSON at byte {}", path.string(), e.byte));
  }
}

SortedJson parse_untrusted_json(std::string_view text, std::size_t max_depth) {
  std::vector<std::set<std::string>> keys;  // of each open list and object
  const auto check = [&](int depth, SortedJson::parse_event_t event, const SortedJson& parsed) {
    const auto open = static_cast<std::size_t>(depth);  // lists and objects around the value
    using Event = SortedJson::parse_event_t;
    if (event == Event::object_start || event == Event::array_start) {
      require<DataError>(open < max_depth, "nests more than {} deep", max_depth);
      keys.resize(open);
      keys.emplace_back();
    } else if (event == Event::key) {
      const auto& name = parsed.get_ref<const std::string&>();
      require<DataError>(keys[open - 1].insert(name).second, "duplicate key {}", printable(name));
    }
    return true;
  };
  // The parser takes a NUL for the end of the text.
  const std::size_t nul = text.find('\0');
  require<DataError>(nul == text.npos, "not valid JSON at byte {}", nul + 1);
  try {
    return SortedJson::parse(text, check);
  } catch (const SortedJson::parse_error& e) {
    throw DataError(fmt::format("not valid JSON at byte {}", e.byte));
  } catch (const SortedJson::out_of_range&) {
    throw DataError("not valid JSON: a number is out of range");
  }
}

Json::json_pointer pointer_of(std::string_view key) {
  std::string text = fmt::format("/{}", key);
  std::ranges::replace(text, '.', '/');
  return Json::json_pointer(text);
}

std::string json_text(const Json& json, int indent, Json::error_handler_t invalid) {
  return json.dump(indent, ' ', false, invalid);
}

}  // namespace thimble

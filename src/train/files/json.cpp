#include "thimble/train/json.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <type_traits>
#include <utility>
#include <vector>

#include "thimble/engine/error.h"
#include "thimble/train/file.h"
#include "train/files/text/text.h"

namespace thimble {

namespace {

// A duplicate key; it has no byte, unlike a parse_error.
struct DuplicateKey : Json::exception {
  explicit DuplicateKey(const std::string& key)
      : exception(0, fmt::format("duplicate key {}", printable(key)).c_str()) {}
};

// Builds the value that the parser reports part by part, in n log n time: the library's own builders compare
// each key of an ordered object with all others, and with a callback each element with all others.
template <class J>
class Builder final : public nlohmann::json_sax<J> {
 public:
  explicit Builder(std::size_t max_depth) : max_depth_(max_depth) {}

  J& root() { return root_; }

  bool null() override { return add(nullptr); }
  bool boolean(bool value) override { return add(value); }
  bool number_integer(typename J::number_integer_t value) override { return add(value); }
  bool number_unsigned(typename J::number_unsigned_t value) override { return add(value); }
  bool number_float(typename J::number_float_t value, const std::string&) override { return add(value); }
  bool string(std::string& value) override { return add(std::move(value)); }
  bool binary(typename J::binary_t&) override { return false; }  // JSON has none
  bool start_object(std::size_t) override { return open(J::object()); }
  bool start_array(std::size_t) override { return open(J::array()); }
  bool end_object() override { return close(); }
  bool end_array() override { return close(); }

  bool key(std::string& name) override {
    if (!open_.back().keys.insert(name).second) throw DuplicateKey(name);
    auto& members = open_.back().value->template get_ref<typename J::object_t&>();
    if constexpr (std::is_same_v<J, Json>)
      member_ = &members.emplace_back(std::move(name), nullptr).second;  // its emplace() would search
    else
      member_ = &members[std::move(name)];
    return true;
  }

  bool parse_error(std::size_t, const std::string&, const Json::exception& e) override {
    if (const auto* invalid = dynamic_cast<const Json::parse_error*>(&e)) throw *invalid;
    throw dynamic_cast<const Json::out_of_range&>(e);  // a number
  }

 private:
  struct Open {
    J* value;
    std::set<std::string> keys;
  };

  bool add(J value) {
    place(std::move(value));
    return true;
  }

  J* place(J&& value) {
    if (open_.empty()) return &(root_ = std::move(value));
    if (J& parent = *open_.back().value; parent.is_array())
      return &parent.template get_ref<typename J::array_t&>().emplace_back(std::move(value));
    return &(*member_ = std::move(value));
  }

  bool open(J&& value) {
    require<DataError>(open_.size() < max_depth_, "nests more than {} deep", max_depth_);
    open_.push_back({place(std::move(value)), {}});
    return true;
  }

  bool close() {
    open_.pop_back();
    return true;
  }

  std::size_t max_depth_;
  J root_;
  J* member_ = nullptr;     // of the innermost object: the last
  std::vector<Open> open_;  // lists and objects, each inside the one before
};

template <class J>
J parse(std::string_view text, std::size_t max_depth) {
  Builder<J> builder(max_depth);
  J::sax_parse(text, &builder);
  return std::move(builder.root());
}

// Returns the value with sorted keys, and numbers without a fraction as integers.
Json canonical(const Json& value) {
  if (value.is_array()) {
    Json out = Json::array();
    for (const Json& element : value) out.push_back(canonical(element));
    return out;
  }
  if (value.is_object()) {
    std::map<std::string_view, const Json*> members;
    for (const auto& [key, member] : value.items()) members[key] = &member;
    Json out = Json::object();
    auto& list = out.get_ref<Json::object_t&>();
    for (const auto& [key, member] : members) list.emplace_back(std::string(key), canonical(*member));
    return out;
  }
  constexpr double kExact = 1LL << 53;
  if (!value.is_number_float()) return value;
  const auto number = value.get<double>();
  return std::trunc(number) == number && std::abs(number) <= kExact ? Json(static_cast<std::int64_t>(number))
                                                                    : value;
}

}  // namespace

Json parse_json(std::string_view text) { return parse<Json>(text, text.size()); }

Json read_json(const std::filesystem::path& path) {
  try {
    return parse_json(read_file(path));
  } catch (const Json::parse_error& e) {
    throw FileError(fmt::format("{}: not valid JSON at byte {}", path.string(), e.byte));
  } catch (const Json::exception& e) {
    throw FileError(fmt::format("{}: not valid JSON: {}", path.string(), e.what()));
  }
}

SortedJson parse_untrusted_json(std::string_view text, std::size_t max_depth) {
  // The parser takes a NUL for the end of the text.
  const std::size_t nul = text.find('\0');
  require<DataError>(nul == text.npos, "not valid JSON at byte {}", nul + 1);
  try {
    return parse<SortedJson>(text, max_depth);
  } catch (const Json::parse_error& e) {
    throw DataError(fmt::format("not valid JSON at byte {}", e.byte));
  } catch (const Json::out_of_range&) {
    throw DataError("not valid JSON: a number is out of range");
  } catch (const DuplicateKey& e) {
    throw DataError(e.what());
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

std::string canonical_text(const Json& json) {
  return json_text(canonical(json), -1, Json::error_handler_t::replace);
}

}  // namespace thimble

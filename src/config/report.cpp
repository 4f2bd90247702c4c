#include "config/report.h"

#include <algorithm>
#include <tuple>

#include "config/text.h"
#include "thimble/core/error.h"
#include "thimble/core/text.h"

namespace thimble::config {
namespace {

// Which of two places has the last word: the one with the larger number.
int precedence(const Place& place) { return place.argument > 0 ? place.argument : -place.file; }

}  // namespace

void Report::problem(const Place& place, const std::string& key, std::string_view rule) {
  constexpr std::size_t kLongestKey = 80;
  std::string line = place.argument > 0
                         ? fmt::format("command line: {}", place.argument_text)
                         : fmt::format("{}:{}:{}", file_name(place.file), place.line, place.column);
  // An argument names its key already.
  if (!key.empty() && place.argument == 0) line += ": " + shortened(key, kLongestKey);
  line += fmt::format(": {}", rule);
  // Quoted YAML can put line breaks and worse into a key or a value.
  std::replace_if(line.begin(), line.end(), is_control, ' ');
  problems_.push_back({place, line});
  distrust(key);
}

bool Report::distrusted(const std::string& key) const {
  if (distrusted_.count(key) > 0 || distrusted_.count("") > 0) return true;
  for (std::size_t dot = key.find('.'); dot != std::string::npos; dot = key.find('.', dot + 1))
    if (distrusted_.count(key.substr(0, dot)) > 0) return true;
  return false;
}

void Report::conflict(const std::vector<std::string>& keys, std::string_view rule) {
  if (std::any_of(keys.begin(), keys.end(), [&](const std::string& key) { return distrusted(key); })) return;
  const std::string* where = nullptr;
  for (const std::string& key : keys) {
    const auto found = given_.find(key);
    if (found == given_.end()) continue;
    if (where == nullptr || precedence(found->second) > precedence(given_.at(*where))) where = &key;
  }
  const std::string& key = where == nullptr ? keys.front() : *where;
  problem(given_[key], key, rule);
}

void Report::finish() const {
  constexpr std::size_t kMostShown = 100;
  if (problems_.empty()) return;
  auto sorted = problems_;
  std::stable_sort(sorted.begin(), sorted.end(), [](const Problem& a, const Problem& b) {
    return std::tie(a.place.argument, a.place.file, a.place.line, a.place.column) <
           std::tie(b.place.argument, b.place.file, b.place.line, b.place.column);
  });
  std::string message =
      fmt::format("{}: {} problem{}", file_name(0), sorted.size(), sorted.size() == 1 ? "" : "s");
  const std::size_t shown = std::min(sorted.size(), kMostShown);
  for (std::size_t i = 0; i < shown; ++i) message += "\n" + sorted[i].line;
  if (shown < sorted.size()) message += fmt::format("\nand {} more", sorted.size() - shown);
  throw ConfigError(message);
}

}  // namespace thimble::config

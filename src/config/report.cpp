#include "thimble/config/report.h"

#include <algorithm>
#include <tuple>

#include "thimble/core/error.h"

namespace thimble::config {

// Returns a number that is larger for the location whose value overrides the other.
int Report::precedence(const SourceLocation& at) const {
  return at.argument > 0 ? at.argument
                         : -static_cast<int>(std::ranges::find(files_, at.source) - files_.begin());
}

void Report::problem(const SourceLocation& location, const std::string& key, std::string_view rule) {
  problems_.push_back({key, location, std::string(rule)});
  suppress(key);
}

bool Report::is_suppressed(const std::string& key) const {
  if (suppressed_.contains(key) || suppressed_.contains("")) return true;
  for (std::size_t dot = key.find('.'); dot != std::string::npos; dot = key.find('.', dot + 1))
    if (suppressed_.contains(key.substr(0, dot))) return true;
  return false;
}

void Report::conflict(const std::vector<std::string>& keys, std::string_view rule) {
  if (std::ranges::any_of(keys, [&](const std::string& key) { return is_suppressed(key); })) return;
  const std::string* last = nullptr;
  for (const std::string& key : keys) {
    const auto found = given_.find(key);
    if (found == given_.end()) continue;
    if (last == nullptr || precedence(found->second) > precedence(given_.at(*last))) last = &key;
  }
  if (last == nullptr) return problem(start_of_file(), keys.front(), rule);
  problem(given_.at(*last), *last, rule);
}

void Report::finish() const {
  if (problems_.empty()) return;
  auto sorted = problems_;
  std::ranges::stable_sort(sorted, {}, [&](const ConfigProblem& problem) {
    const SourceLocation& at = problem.location;
    return std::tuple(at.argument, at.argument > 0 ? 0 : -precedence(at), at.line, at.column);
  });
  throw ConfigError(files_[0], std::move(sorted));
}

}  // namespace thimble::config

#include "train/config/report.h"

#include <algorithm>
#include <tuple>

#include "thimble/engine/error.h"
#include "train/files/text/format.h"
#include "train/files/text/text.h"

namespace thimble::config {

std::string problem_text(const ConfigProblem& problem) {
  constexpr std::size_t kMaxKey = 80;
  const SourceLocation& at = problem.location;
  std::string text;
  if (at.argument > 0) {
    text = fmt::format("command line: {}: ", at.source);
  } else {
    if (!at.source.empty())
      text = at.source + (at.line > 0 ? fmt::format(":{}:{}: ", at.line, at.column) : ": ");
    if (!problem.key.empty()) text += shortened(problem.key, kMaxKey) + ": ";
  }
  text += problem.rule;
  // Quoted YAML can put line breaks and worse into a key or a value.
  std::ranges::replace_if(text, is_control, ' ');
  return text;
}

ConfigError config_error(const std::string& file, std::vector<ConfigProblem> problems) {
  constexpr std::size_t kMaxShown = 100;
  std::string text = fmt::format("{}: {}", file, counted(std::ssize(problems), "problem"));
  const std::size_t shown = std::min(problems.size(), kMaxShown);
  for (std::size_t i = 0; i < shown; ++i) text += '\n' + problem_text(problems[i]);
  if (shown < problems.size()) text += fmt::format("\nand {} more", problems.size() - shown);
  return ConfigError(text, std::move(problems));
}

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
  throw config_error(files_[0], std::move(sorted));
}

}  // namespace thimble::config

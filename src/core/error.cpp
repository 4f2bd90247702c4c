#include "thimble/core/error.h"

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "thimble/core/format.h"
#include "thimble/core/text.h"

namespace thimble {
namespace {

std::string report_text(const std::string& file, const std::vector<ConfigProblem>& problems) {
  constexpr std::size_t kMaxShown = 100;
  std::string text = fmt::format("{}: {}", file, counted(std::ssize(problems), "problem"));
  const std::size_t shown = std::min(problems.size(), kMaxShown);
  for (std::size_t i = 0; i < shown; ++i) text += '\n' + problem_text(problems[i]);
  if (shown < problems.size()) text += fmt::format("\nand {} more", problems.size() - shown);
  return text;
}

}  // namespace

std::string system_message(int error) {
  return std::strerror(error) + std::string(error == EMFILE ? "; raise the limit (ulimit -n)" : "");
}

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

ConfigError::ConfigError(const std::string& message) : Error(message), problems_(1) {
  problems_[0].rule = message;
}

ConfigError::ConfigError(const std::string& file, std::vector<ConfigProblem> problems)
    : Error(report_text(file, problems)), problems_(std::move(problems)) {}

}  // namespace thimble

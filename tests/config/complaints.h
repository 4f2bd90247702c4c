// What parse_config complains about, for tests.
#pragma once

#include <fmt/ranges.h>

#include <string>
#include <vector>

#include "thimble/config/config.h"
#include "thimble/core/error.h"

// The message of the ConfigError for a file t.yaml of that text; "" when there is none.
inline std::string complaints(const std::string& yaml, const std::vector<std::string>& overrides = {}) {
  try {
    thimble::parse_config(yaml, "t.yaml", overrides);
  } catch (const thimble::ConfigError& e) {
    return e.what();
  }
  return "";
}

// The problems of that ConfigError.
inline std::vector<thimble::ConfigProblem> problems(const std::string& yaml,
                                                    const std::vector<std::string>& overrides = {}) {
  try {
    thimble::parse_config(yaml, "t.yaml", overrides);
  } catch (const thimble::ConfigError& e) {
    return e.problems();
  }
  return {};
}

// The line about the problem of a file that has one.
inline std::string complaint(const std::string& yaml, const std::vector<std::string>& overrides = {}) {
  const auto all = problems(yaml, overrides);
  return all.size() == 1 ? problem_text(all[0]) : fmt::format("{} problems", all.size());
}

// "copy, reverse, ...": every task there is.
inline std::string all_tasks() { return fmt::format("{}", fmt::join(thimble::task_names(), ", ")); }

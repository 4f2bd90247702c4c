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

// The same for a file with one problem: the line after the summary.
inline std::string complaint(const std::string& yaml, const std::vector<std::string>& overrides = {}) {
  const std::string summary = "t.yaml: 1 problem\n", all = complaints(yaml, overrides);
  return all.substr(0, summary.size()) == summary ? all.substr(summary.size()) : "not one problem: " + all;
}

// "copy, reverse, ...": every task there is.
inline std::string all_tasks() { return fmt::format("{}", fmt::join(thimble::task_names(), ", ")); }

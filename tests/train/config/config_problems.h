// What parse_config reports, for tests.
#pragma once

#include "problems.h"
#include "thimble/train/config.h"

// Returns the problems of a file t.yaml of that text.
inline std::vector<thimble::ConfigProblem> problems(const std::string& yaml,
                                                    const std::vector<std::string>& overrides = {}) {
  return problems_of([&] { thimble::parse_config(yaml, "t.yaml", overrides); });
}

inline bool is_valid(const std::string& yaml, const std::vector<std::string>& overrides = {}) {
  return problems(yaml, overrides).empty();
}

// Returns the problem of a file that has one. Throws std::logic_error when there are more or none.
inline thimble::ConfigProblem problem(const std::string& yaml,
                                      const std::vector<std::string>& overrides = {}) {
  const auto all = problems(yaml, overrides);
  if (all.size() != 1) throw std::logic_error(fmt::format("{} problems: {}", all.size(), yaml));
  return all[0];
}

// Returns the place of the problem of a file that has one.
inline std::string place(const std::string& yaml, const std::vector<std::string>& overrides = {}) {
  return place(problem(yaml, overrides));
}

// Problems of configs, sweeps and experiments as tests compare them: by place and key. How they read is in
// tests/train/config/messages.txt.
#pragma once

#include <string>
#include <vector>

#include "thimble/engine/error.h"

// Returns "1:29 model.heads": line, column and key of a problem; "argument 2 model.heads" on the command
// line.
inline std::string place(const thimble::ConfigProblem& problem) {
  const thimble::SourceLocation& at = problem.location;
  const std::string where =
      at.argument > 0 ? fmt::format("argument {}", at.argument) : fmt::format("{}:{}", at.line, at.column);
  return problem.key.empty() ? where : where + ' ' + problem.key;
}

inline std::vector<std::string> places(const std::vector<thimble::ConfigProblem>& problems) {
  std::vector<std::string> out;
  for (const thimble::ConfigProblem& problem : problems) out.push_back(place(problem));
  return out;
}

// Returns the problems of the ConfigError that f throws; none if it throws nothing.
template <class F>
std::vector<thimble::ConfigProblem> problems_of(const F& f) {
  try {
    f();
  } catch (const thimble::ConfigError& e) {
    return e.problems();
  }
  return {};
}

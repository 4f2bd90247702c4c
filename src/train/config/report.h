// Collects the problems of a config, sweep or experiment, so that all of them are reported at once.
#pragma once

#include <map>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "thimble/engine/error.h"

namespace thimble::config {

// Returns "FILE:LINE:COLUMN: KEY: RULE" or "command line: ARGUMENT: RULE", without what the problem lacks.
std::string problem_text(const ConfigProblem&);

// Returns an error whose message names the file and has a line for each of the first hundred problems.
ConfigError config_error(const std::string& file, std::vector<ConfigProblem> problems);

class Report {
 public:
  explicit Report(std::string file) : files_{std::move(file)} {}
  // Goes on with a config that was read from these files, the first of which is its own.
  Report(std::vector<std::string> files, std::map<std::string, SourceLocation> given)
      : files_(std::move(files)), given_(std::move(given)) {}

  // Adds the file that the last one builds on.
  void add_file(std::string file) { files_.push_back(std::move(file)); }
  const std::vector<std::string>& files() const { return files_; }
  SourceLocation start_of_file() const { return {.source = files_[0], .line = 1, .column = 1}; }

  // Records where `key`, a dotted path, was set.
  void given(const std::string& key, const SourceLocation& location) { given_[key] = location; }
  const std::map<std::string, SourceLocation>& given() const { return given_; }
  bool was_given(const std::string& key) const { return given_.contains(key); }

  // Adds a problem. An empty key means the file as a whole.
  void problem(const SourceLocation& location, const std::string& key, std::string_view rule);

  // Suppresses conflicts of `key`, because its value is not the intended one; "": of every key.
  void suppress(const std::string& key) { suppressed_.insert(key); }

  // Adds a problem of the values of several keys, placed at the key that was set last: on the command line if
  // one was set there, else in the file that builds on the others. Does nothing when one of the keys has a
  // problem of its own.
  void conflict(const std::vector<std::string>& keys, std::string_view rule);
  // Adds it if the rule, formatted with the values, is broken.
  template <class... Values>
  void conflict_if(bool is_broken, const std::vector<std::string>& keys, fmt::format_string<Values...> rule,
                   Values&&... values) {
    if (is_broken) conflict(keys, fmt::format(rule, std::forward<Values>(values)...));
  }

  // Throws ConfigError, with the problems in the order of their locations, when there are any.
  void finish() const;

 private:
  bool is_suppressed(const std::string& key) const;
  int precedence(const SourceLocation&) const;

  std::vector<std::string> files_;
  std::map<std::string, SourceLocation> given_;
  std::set<std::string> suppressed_;
  std::vector<ConfigProblem> problems_;
};

}  // namespace thimble::config

// The problems of a config, gathered so that all of them are told at once.
#pragma once

#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace thimble::config {

// Where something was written: line and column of a file, from 1, or an argument of the command line.
struct Place {
  int file = 0;  // its number in the report: 0 for the config, 1 for what it builds on, and so on
  int line = 1, column = 1;
  int argument = 0;  // number of the argument, from 1; 0: in the file
  std::string argument_text{};
};

class Report {
 public:
  explicit Report(std::string file_name) : files_{std::move(file_name)} {}

  // What the last file so far builds on.
  void add_file(std::string name) { files_.push_back(std::move(name)); }
  const std::string& file_name(int file) const { return files_[static_cast<std::size_t>(file)]; }

  // `key`, a dotted path, got its value there.
  void given(const std::string& key, const Place& place) { given_[key] = place; }
  const std::map<std::string, Place>& given() const { return given_; }
  bool was_given(const std::string& key) const { return given_.contains(key); }

  // The rule that `key` breaks there. An empty key means the file as a whole.
  void problem(const Place& place, const std::string& key, std::string_view rule);

  // No conflict of `key` is to be reported, because its value is not what was meant.
  void distrust(const std::string& key) { distrusted_.insert(key); }

  // The rule that the values of `keys` break together, placed where the first of them that was given stands:
  // on the command line if one was given there, else in the file that builds on the others. Silent when one
  // of them has a problem of its own.
  void conflict(const std::vector<std::string>& keys, std::string_view rule);

  // Throws ConfigError when there are problems: a summary, then one line for each of the first hundred
  // in the order of their places.
  void finish() const;

 private:
  struct Problem {
    Place place;
    std::string line;
  };

  bool distrusted(const std::string& key) const;

  std::vector<std::string> files_;
  std::map<std::string, Place> given_;
  std::set<std::string> distrusted_;
  std::vector<Problem> problems_;
};

}  // namespace thimble::config

// The problems of data files, which are reported together.
#pragma once

#include <cstddef>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace thimble {

// Collects the problems of data files, so that all of them are reported at once.
class Problems {
 public:
  // Adds a problem of a line, from 1, or of the file as a whole, 0. Of problems of a file with the same rule,
  // or the same `kind` if given, the first is shown and the others are counted.
  void add(const std::string& file, std::size_t line, std::string_view rule, std::string_view kind = {});

  // Returns whether a further problem would only be counted.
  bool full() const { return shown_.size() >= kShown; }

  // Returns a summary, then a line for each problem that is shown; "" without problems.
  std::string text() const;

  // Throws DataError with that text when there are problems.
  void finish() const;

 private:
  static constexpr std::size_t kShown = 20, kLines = 3;

  struct Shown {
    std::string line;
    std::size_t more = 0;              // lines with the same problem
    std::vector<std::string> first{};  // of them, with "..." for the others
  };

  std::size_t count_ = 0, hidden_ = 0;
  std::string first_file_;
  std::vector<Shown> shown_;
  std::map<std::string, std::size_t, std::less<>> kinds_;  // file and rule: index in shown_
};

}  // namespace thimble

// Rows from the text of data files.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "thimble/data/table.h"

namespace thimble {

// Collects the problems of a table's files, so that all of them are reported at once.
class TableProblems {
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
  static constexpr std::size_t kShown = 20;

  struct Shown {
    std::string line;
    std::size_t more = 0;  // lines with the same problem
  };

  std::size_t count_ = 0, hidden_ = 0;
  std::string first_file_;
  std::vector<Shown> shown_;
  std::map<std::string, std::size_t, std::less<>> kinds_;  // file and rule: index in shown_
};

// The numbers of tokens, given in order of their first occurrence or fixed.
class TableVocabulary {
 public:
  // Reads the tokens of a vocabulary file and allows no others from then on.
  void read(const TableText&, TableProblems&);

  // Takes the tokens that a model was trained with, in the order of their ids, and allows no others from then
  // on. Throws DataError for an invalid or duplicate token.
  void read(const std::vector<std::string>& trained);

  // Returns the number of a token. Throws DataError, whose message is only the rule, when the token is
  // invalid or not in the vocabulary, or when there are too many; with `guess`, it suggests a similar token.
  std::int32_t number(std::string_view token, bool guess);

  bool fixed() const { return !fixed_by_.empty(); }
  const std::map<std::string, std::int32_t, std::less<>>& numbers() const { return numbers_; }

 private:
  std::map<std::string, std::int32_t, std::less<>> numbers_;
  std::string_view fixed_by_{};
};

// Appends the rows of a file to `ids` and `ends`, as Table keeps them.
void read_rows(const TableText& file, TableVocabulary& vocabulary, TableProblems& problems,
               std::vector<std::int32_t>& ids, std::vector<std::uint32_t>& ends);

}  // namespace thimble

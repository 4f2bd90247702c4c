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

// The problems of the files of a table, gathered so that all of them are reported at once.
class TableProblems {
 public:
  // `line` from 1; 0: the file as a whole. Of problems of a file with the same rule, or the same `kind` where
  // one is given, the first is reported in full and the others are counted.
  void add(const std::string& file, std::size_t line, std::string_view rule, std::string_view kind = {});

  // Whether one more problem would only be counted.
  bool full() const { return shown_.size() >= kShown; }

  // A summary, then a line for each that is shown; "" when there are no problems.
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

// Gives tokens their numbers.
class TableVocabulary {
 public:
  // The tokens of a vocabulary file; from then on there are no others.
  void read(const TableText&, TableProblems&);

  // The tokens that a model was trained with, in the order of their ids; from then on there are no others.
  // Throws DataError when one of them is no token or there twice.
  void read(const std::vector<std::string>& trained);

  // Throws DataError, only the rule, when the text is no token or not in the vocabulary, or when
  // there are too many; `guess` names the one that may have been meant.
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

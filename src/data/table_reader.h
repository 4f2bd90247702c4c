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

// What is wrong with the files of a table, gathered so that it can be told at once.
class TableProblems {
 public:
  // `line` from 1; 0: the file as a whole.
  void add(const std::string& file, std::size_t line, std::string_view rule);

  // Whether one more problem would only be counted.
  bool full() const { return count_ >= kShown; }

  // Throws DataError when there are problems: a summary, then a line for each that is shown.
  void finish() const;

 private:
  static constexpr std::size_t kShown = 20;

  std::size_t count_ = 0;
  std::string first_file_, lines_;
};

// Gives tokens their numbers.
class TableVocabulary {
 public:
  // The tokens of a vocabulary file; from then on there are no others.
  void read(const TableText&, TableProblems&);

  // Throws DataError, only the rule, when the text is no token or not in the vocabulary, or when
  // there are too many; `guess` names the one that may have been meant.
  std::int32_t number(std::string_view token, bool guess);

  bool fixed() const { return fixed_; }
  const std::map<std::string, std::int32_t, std::less<>>& numbers() const { return numbers_; }

 private:
  std::map<std::string, std::int32_t, std::less<>> numbers_;
  bool fixed_ = false;
};

// Appends the rows of a file to `ids` and `ends`, as Table keeps them.
void read_rows(const TableText& file, TableVocabulary& vocabulary, TableProblems& problems,
               std::vector<std::int32_t>& ids, std::vector<std::uint32_t>& ends);

}  // namespace thimble

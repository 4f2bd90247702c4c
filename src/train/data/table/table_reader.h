// Rows from the text of data files.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "train/data/table/table.h"
#include "train/files/hash.h"

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
  // With `has_unknown`, a fixed vocabulary that has <unk> gives its number to other tokens. With `any_control`,
  // a token may be a control character.
  explicit TableVocabulary(bool has_unknown, bool any_control = false)
      : has_unknown_(has_unknown), any_control_(any_control) {}

  // Reads the tokens of a vocabulary file, sets what is known of the file, and allows no others from then on.
  void read(const TableText&, TableProblems&, DataFile& source);

  // Takes the tokens that a model was trained with, in the order of their ids, and allows no others from then
  // on. Throws DataError for an invalid or duplicate token.
  void read(const std::vector<std::string>& trained);

  // Returns the number of a token. Throws DataError, whose message is only the rule, when the token is
  // invalid or not in the vocabulary, or when there are too many; with `guess`, it suggests a similar token.
  std::int32_t number(std::string_view token, bool guess);

  bool fixed() const { return !fixed_by_.empty(); }
  std::size_t size() const { return numbers_.size(); }
  // Returns the tokens with their numbers, in the order of their bytes.
  std::vector<std::pair<std::string_view, std::int32_t>> sorted() const;

 private:
  struct Hash {
    using is_transparent = void;
    std::size_t operator()(std::string_view text) const { return static_cast<std::size_t>(hash_of(text)); }
  };

  std::unordered_map<std::string, std::int32_t, Hash, std::equal_to<>> numbers_;
  std::string_view fixed_by_{};
  bool has_unknown_, any_control_;
};

// A reader of the tokens of one sequence of a row.
class SequenceReader {
 public:
  // `blank`: the token that marks a position without an answer, "": none; with a \ in front, it is that token.
  // Where it marks nothing, `blanks` counts the tokens that equal it.
  SequenceReader(TableVocabulary& vocabulary, const TableProblems& problems, Tokenization tokens,
                 const std::string& blank, bool marks)
      : vocabulary_(vocabulary), problems_(problems), tokens_(tokens), blank_(blank), marks_(marks) {}

  void token(std::string_view text);       // as it is
  void whole(std::string_view text);       // one token or the mark
  void text(std::string_view text);        // tokens and marks
  void plain_text(std::string_view text);  // tokens
  void no_answer();

  void clear();
  const std::vector<std::int32_t>& ids() const { return ids_; }
  const std::string& hashed() const { return hashed_; }  // as RowHash has it
  std::int64_t blanks() const { return blanks_; }        // in all rows

 private:
  TableVocabulary& vocabulary_;
  const TableProblems& problems_;
  const Tokenization tokens_;
  const std::string& blank_;
  const bool marks_;
  std::vector<std::int32_t> ids_;
  std::string hashed_;
  std::int64_t blanks_ = 0;
};

// Rows as Table keeps them, with the hashes of their texts.
struct TableRows {
  std::vector<std::int32_t>& ids;
  std::vector<std::uint32_t>&ends, &lines;
  TableCounts& counts;
  std::vector<RowHash> hashes{};
};

// Appends the rows of a file, and sets what is known of the file.
void read_rows(const TableText& file, const TableOptions& options, TableVocabulary& vocabulary,
               TableProblems& problems, DataFile& source, TableRows& rows);

}  // namespace thimble

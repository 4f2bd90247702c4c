// Rows from the text of data files.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "train/data/files/problems.h"
#include "train/data/files/vocabulary.h"
#include "train/data/table/table.h"

namespace thimble {

// A reader of the tokens of one sequence of a row.
class SequenceReader {
 public:
  // `blank`: the token that marks a position without an answer, "": none; with a \ in front, it is that token.
  // Where it marks nothing, `blanks` counts the tokens that equal it.
  SequenceReader(Vocabulary& vocabulary, const Problems& problems, const ColumnTokens& tokens,
                 const std::string& blank, bool marks)
      : vocabulary_(vocabulary), problems_(problems), tokens_(tokens), blank_(blank), marks_(marks) {}

  void token(std::string_view text);                               // as it is
  void whole(std::string_view text);                               // one token or the mark
  void columns(std::span<const std::string_view> texts);           // tokens and marks
  void plain_text(std::string_view text, std::size_t column = 0);  // tokens
  void no_text() { has_empty_ = true; }
  void no_answer();

  void clear();
  const std::vector<std::int32_t>& ids() const { return ids_; }
  const std::string& hashed() const { return hashed_; }  // as TableRows has it
  bool has_empty() const { return has_empty_; }          // whether a field has no text
  std::int64_t blanks() const { return blanks_; }        // in all rows
  Cut cut() const { return cut_; }                       // in all rows

 private:
  void text(std::string_view text, std::size_t column, bool plain);

  Vocabulary& vocabulary_;
  const Problems& problems_;
  const ColumnTokens& tokens_;
  const std::string& blank_;
  const bool marks_;
  std::vector<std::int32_t> ids_;
  std::string hashed_, joined_;
  bool has_empty_ = false;
  Cut cut_ = Cut::none;
  std::int64_t blanks_ = 0;
};

// What a row says of itself.
struct RowMarks {
  struct Attends {
    std::int64_t query, key;
    std::string kind;
  };
  std::vector<Attends> attends{};
  bool is_varied = false;  // in no split, but an example of Split::varied
};

// Appends the rows of a file and the hashes of their inputs, and sets what is known of the file.
void read_rows(const DataText& file, const TableOptions& options, Vocabulary& vocabulary, Problems& problems,
               DataFile& source, TableRows& rows, std::vector<std::uint64_t>& input_hashes);

}  // namespace thimble

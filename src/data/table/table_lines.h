// The lines of a data file, read in pieces.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "thimble/core/hash.h"
#include "thimble/data/table.h"

namespace thimble {

// A reader of the lines of a file. Throws FileError when the file cannot be read.
class LineReader {
 public:
  static constexpr std::size_t kMaxLine = 1 << 20;

  explicit LineReader(const TableText& file) : file_(file) {}

  // Sets `line` to the next line, without its end and without a byte order mark; returns false at the end of
  // the file. Of a line of more than kMaxLine bytes, which size() tells, only the start is in `line`.
  bool next(std::string_view& line);

  std::size_t size() const { return size_; }  // bytes of the last line
  std::uint64_t total() const { return file_.file ? file_.file->size() : file_.text.size(); }
  std::uint64_t bytes() const { return hashed_; }      // read so far
  std::string hash() const { return hash_.digits(); }  // of them

 private:
  bool fill();  // appends the next piece to buffer_; returns false at the end

  const TableText& file_;
  std::string buffer_;
  std::size_t used_ = 0, size_ = 0;  // bytes of buffer_ before the next line
  std::uint64_t hashed_ = 0;
  StreamHash hash_;
};

// Calls f(line, number) with each line, numbered from 1. `report` receives the rules that lines break, among them
// the DataErrors that f throws, with number 0 for a rule of the whole file. Blank lines are reported unless they
// end the file or `blanks` are part of the format. Sets bytes and hash of `source`.
void for_lines(const TableText& file, bool blanks, DataFile& source,
               const std::function<void(std::size_t number, const char* rule)>& report,
               const std::function<void(std::string_view line, std::size_t number)>& f);

}  // namespace thimble

// The lines of a text, read in pieces.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "thimble/train/file.h"
#include "train/files/hash.h"

namespace thimble {

// A reader of the lines of a file or a text, which must outlive it. Throws FileError when the file cannot be read.
class LineReader {
 public:
  static constexpr std::size_t kMaxLine = 1 << 20;

  explicit LineReader(const InputFile& file) : file_(&file) {}
  explicit LineReader(std::string_view text) : text_(text) {}

  // Sets `line` to the next line, without its end and without a byte order mark; returns false at the end of
  // the text. Of a line of more than kMaxLine bytes, which size() tells, only the start is in `line`.
  bool next(std::string_view& line);

  // Sets `part` to the next part of the text, without its line break: a line, or of a line of more than kMaxLine
  // bytes as many, up to a space or else the end of a character; returns false at the end of the text.
  bool next_part(std::string_view& part);

  std::size_t size() const { return size_; }      // bytes of the last line
  bool is_complete() const { return complete_; }  // whether a line break ended it
  std::uint64_t total() const { return file_ != nullptr ? file_->size() : text_.size(); }
  std::uint64_t offset() const { return hashed_ - (buffer_.size() - used_); }  // bytes up to the next line
  std::uint64_t bytes() const { return hashed_; }                              // read so far
  std::string hash() const { return hash_.digits(); }                          // of them

 private:
  bool fill();  // appends the next piece to buffer_; returns false at the end

  const InputFile* file_ = nullptr;  // null: text_
  std::string_view text_;
  std::string buffer_;
  std::size_t used_ = 0, size_ = 0;  // bytes of buffer_ before the next line
  bool complete_ = false;
  std::uint64_t hashed_ = 0;
  StreamHash hash_;
};

}  // namespace thimble

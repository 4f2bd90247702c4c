#include "train/files/line_reader.h"

#include <algorithm>

namespace thimble {

bool LineReader::fill() {
  constexpr std::uint64_t kPiece = 1 << 20;
  buffer_.erase(0, used_);
  used_ = 0;
  const std::string piece =
      file_ != nullptr ? file_->read(hashed_, kPiece) : std::string(text_.substr(hashed_, kPiece));
  hash_.add(piece);
  hashed_ += piece.size();
  buffer_ += piece;
  return !piece.empty();
}

bool LineReader::next(std::string_view& line) {
  const bool first = hashed_ == 0;
  std::size_t dropped = 0, from = used_, end = 0;
  while ((end = buffer_.find('\n', from)) == buffer_.npos) {
    from = buffer_.size() - used_;
    if (from > 2 * kMaxLine) {  // of such a line, its size is all that is reported
      dropped += from - kMaxLine;
      buffer_.resize(used_ + kMaxLine);
      from = kMaxLine;
    }
    if (fill()) continue;
    if (buffer_.empty()) return false;
    end = buffer_.size();
    break;
  }
  line = std::string_view(buffer_).substr(used_, end - used_);
  size_ = line.size() + dropped;
  complete_ = end < buffer_.size();
  used_ = std::min(end + 1, buffer_.size());
  if (line.ends_with('\r')) line.remove_suffix(1), --size_;
  if (first && line.starts_with("\xEF\xBB\xBF")) line.remove_prefix(3);
  line = line.substr(0, kMaxLine);
  return true;
}

bool LineReader::next_part(std::string_view& part) {
  std::size_t end = 0;
  while ((end = buffer_.find('\n', used_)) == buffer_.npos && buffer_.size() - used_ <= kMaxLine)
    if (!fill()) break;
  const std::string_view rest = std::string_view(buffer_).substr(used_);
  if (rest.empty()) return false;
  part = rest.substr(0, std::min(end, buffer_.size()) - used_);
  complete_ = part.size() < rest.size();
  if (part.size() > kMaxLine) {
    complete_ = false;
    part = part.substr(0, kMaxLine);
    if (const std::size_t space = part.rfind(' '); space != part.npos) part = part.substr(0, space + 1);
    // A character of UTF-8 has at most 3 bytes after its first.
    for (int i = 0; i < 3 && (static_cast<unsigned char>(rest[part.size()]) & 0xC0) == 0x80; ++i)
      part.remove_suffix(1);
  }
  size_ = part.size();
  used_ += part.size() + (complete_ ? 1 : 0);
  return true;
}

}  // namespace thimble

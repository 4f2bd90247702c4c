#include "data/table/table_lines.h"

#include <algorithm>

#include "thimble/core/error.h"
#include "thimble/core/progress.h"
#include "thimble/core/text.h"

namespace thimble {

namespace {

// Throws DataError when the first line shows that the file is no text of UTF-8.
void check_start(std::string_view line, const std::string& name) {
  require<DataError>(!line.starts_with("\xFF\xFE") && !line.starts_with("\xFE\xFF"),
                     "UTF-16; convert it: iconv -f UTF-16 -t UTF-8 '{}' > NEW", name);
  require<DataError>(!line.starts_with("\x1F\x8B"), "compressed by gzip; unpack it: gunzip --keep '{}'",
                     name);
}

void check_line(std::string_view line, std::size_t size) {
  require<DataError>(size <= LineReader::kMaxLine, "line of {} bytes; the maximum is {}", size,
                     LineReader::kMaxLine);
  const std::size_t valid = utf8_size(line), nul = line.find('\0');
  require<DataError>(valid == line.size(), "invalid UTF-8 at byte {} of the line; save the file as UTF-8",
                     valid + 1);
  require<DataError>(nul == line.npos, "NUL byte at byte {} of the line; delete it", nul + 1);
}

}  // namespace

bool LineReader::fill() {
  constexpr std::uint64_t kPiece = 1 << 20;
  buffer_.erase(0, used_);
  used_ = 0;
  const std::string piece =
      file_.file ? file_.file->read(hashed_, kPiece) : file_.text.substr(hashed_, kPiece);
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
  used_ = std::min(end + 1, buffer_.size());
  if (line.ends_with('\r')) line.remove_suffix(1), --size_;
  if (first && line.starts_with("\xEF\xBB\xBF")) line.remove_prefix(3);
  line = line.substr(0, kMaxLine);
  return true;
}

void for_lines(const TableText& file, bool blanks, DataFile& source,
               const std::function<void(std::size_t number, const char* rule)>& report,
               const std::function<void(std::string_view line, std::size_t number)>& f) {
  LineReader reader(file);
  ProgressCounter progress("reading data", static_cast<double>(reader.total()));
  std::size_t number = 0, blank = 0, filled = 0;  // blank: the number of the first of the last blank lines
  bool readable = true;
  std::string_view line;
  while (reader.next(line)) {
    ++number;
    progress.advance(static_cast<double>(reader.size() + 1));
    if (!readable) continue;  // the rest is only hashed
    try {
      const bool is_blank = line.find_first_not_of(' ') == line.npos;
      if (is_blank && !blanks) {
        if (blank == 0) blank = number;
        continue;
      }
      if (blank > 0) report(blank, "blank line; delete it");
      blank = 0;
      filled += is_blank ? 0 : 1;
      if (number == 1) {
        readable = false;
        check_start(line, file.name);
        readable = true;
      }
      check_line(line, reader.size());
      f(line, number);
    } catch (const DataError& e) {
      report(readable ? number : 0, e.what());
    }
  }
  if (filled == 0) report(0, "the file is empty");
  source.bytes = reader.bytes();
  source.hash = reader.hash();
}

}  // namespace thimble

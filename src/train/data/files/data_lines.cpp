#include "train/data/files/data_lines.h"

#include <utility>

#include "thimble/engine/error.h"
#include "train/files/line_reader.h"
#include "train/files/progress.h"
#include "train/files/text/text.h"

namespace thimble {

namespace {

// Throws DataError when the first line, which may be all of the file, shows that it has no lines of UTF-8.
void check_start(std::string_view line, bool is_all, const std::string& path) {
  require<DataError>(!line.starts_with("\xFF\xFE") && !line.starts_with("\xFE\xFF"),
                     "UTF-16; convert it: iconv -f UTF-16 -t UTF-8 {} > NEW", path);
  require<DataError>(!line.starts_with("\x1F\x8B"), "compressed by gzip; unpack it: gunzip < {} > NEW", path);
  require<DataError>(!is_all || line.find('\r') >= line.size() - 1,
                     "its lines end in CR alone; convert it: tr '\\r' '\\n' < {} > NEW", path);
}

void check_line(std::string_view line, std::size_t size, bool any_bytes) {
  require<DataError>(size <= LineReader::kMaxLine, "line of {} bytes; the maximum is {}", size,
                     LineReader::kMaxLine);
  if (any_bytes) return;
  const std::size_t valid = utf8_size(line), nul = line.find('\0');
  require<DataError>(valid == line.size(), "invalid UTF-8 at byte {} of the line; save the file as UTF-8",
                     valid + 1);
  require<DataError>(nul == line.npos, "NUL byte at byte {} of the line; delete it", nul + 1);
}

}  // namespace

void for_lines(const DataText& file, Lines lines, DataFile& source,
               const std::function<void(std::size_t number, const char* rule)>& report,
               const std::function<void(std::string_view line, std::size_t number, bool complete)>& f,
               const std::function<bool()>& takes_blanks) {
  constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";
  LineReader reader = file.file ? LineReader(*file.file) : LineReader(file.text);
  ProgressCounter progress(kReadingData, static_cast<double>(reader.total()));
  const bool in_parts = lines == Lines::parts || lines == Lines::bytes,
             any_bytes = lines == Lines::bytes || lines == Lines::any_bytes;
  std::size_t number = 0, blank = 0, filled = 0;  // blank: the number of the first of the last blank lines
  bool readable = true, first = true, complete = true;
  std::string_view line;
  while (in_parts ? reader.next_part(line) : reader.next(line)) {
    number += complete ? 1 : 0;
    complete = reader.is_complete();
    progress.advance(static_cast<double>(reader.size() + 1));
    if (!readable) continue;  // the rest is only hashed
    try {
      const bool is_start = std::exchange(first, false) && !any_bytes;
      if (is_start && in_parts && line.starts_with(kByteOrderMark)) line.remove_prefix(kByteOrderMark.size());
      const bool is_blank = line.find_first_not_of(' ') == line.npos;
      if (is_blank && lines == Lines::filled && !(takes_blanks && takes_blanks())) {
        if (blank == 0) blank = number;
        continue;
      }
      if (blank > 0) report(blank, "blank line; delete it");
      blank = 0;
      filled += is_blank ? 0 : 1;
      if (is_start) {
        readable = false;
        check_start(line, !complete || reader.offset() == reader.total(), shell_command({file.name}));
        readable = true;
      }
      check_line(line, reader.size(), any_bytes);
      f(line, number, complete);
    } catch (const DataError& e) {
      report(readable ? number : 0, e.what());
    }
  }
  if (filled == 0) report(0, "the file is empty");
  source.bytes = reader.bytes();
  source.hash = reader.hash();
}

}  // namespace thimble

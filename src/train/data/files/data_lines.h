// The lines of a data file, read in pieces.
#pragma once

#include <cstddef>
#include <functional>
#include <string_view>

#include "train/data/files/file_source.h"

namespace thimble {

// What for_lines reads.
enum class Lines {
  filled,     // lines of UTF-8; blank ones are reported unless they end the file
  any,        // lines of UTF-8
  any_bytes,  // lines of any bytes
  parts,      // parts of a text of UTF-8, see LineReader::next_part()
  bytes,      // parts of any bytes
};

// Calls f(line, number, complete) with each line or part, numbered by lines from 1; `complete`: a line break ends
// it. `report` receives the rules that lines break, among them the DataErrors that f throws, with number 0 for a
// rule of the whole file. f receives a blank line, too, where `takes_blanks` returns true. Sets bytes and hash of `source`.
void for_lines(const DataText& file, Lines lines, DataFile& source,
               const std::function<void(std::size_t number, const char* rule)>& report,
               const std::function<void(std::string_view line, std::size_t number, bool complete)>& f,
               const std::function<bool()>& takes_blanks = {});

}  // namespace thimble

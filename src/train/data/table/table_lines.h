// The lines of a data file, read in pieces.
#pragma once

#include <cstddef>
#include <functional>
#include <string_view>

#include "train/data/table/table.h"

namespace thimble {

// Calls f(line, number) with each line, numbered from 1. `report` receives the rules that lines break, among them
// the DataErrors that f throws, with number 0 for a rule of the whole file. Blank lines are reported unless they
// end the file or `blanks` are part of the format. Sets bytes and hash of `source`.
void for_lines(const TableText& file, bool blanks, DataFile& source,
               const std::function<void(std::size_t number, const char* rule)>& report,
               const std::function<void(std::string_view line, std::size_t number)>& f);

}  // namespace thimble

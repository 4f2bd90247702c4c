// Finds possible mistakes in data files.
#pragma once

#include <string>
#include <vector>

#include "train/data/table/table.h"

namespace thimble {

// Returns a line for each kind of possible mistake in the rows: a first line that may be a header, equal inputs,
// fields in quotes, tokens that are no tokens or are alike, numbers as classes, outliers of length, the marker of
// positions without an answer; and what was left out, replaced, or never occurs in the first `train` training
// rows.
std::vector<std::string> remarks(const Table& table, std::int64_t train = kAll);

}  // namespace thimble

// What the subcommand reproduce shows.
#pragma once

#include <span>
#include <string>

#include "thimble/reproduce/reproduce.h"

namespace thimble::cli {

// A line for each experiment, below it one for each condition and each value that no condition is about, with
// least, median and most over the seeds; in lines of `width` columns, at least 40.
std::string experiments_table(std::span<const ExperimentResult> results, std::size_t width);

// Names, kinds and statements.
std::string experiments_list(std::span<const Experiment> experiments, std::size_t width);

}  // namespace thimble::cli

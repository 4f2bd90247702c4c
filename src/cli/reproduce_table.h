// What the subcommand reproduce shows.
#pragma once

#include <span>
#include <string>

#include "thimble/reproduce/reproduce.h"

namespace thimble::cli {

// A line for each experiment, below it one for each condition and each value that no condition is about, with
// least, median and most over the seeds; lines of at most 80 columns.
std::string experiments_table(std::span<const ExperimentResult> results);

// Names, kinds and statements, in lines of at most 80 columns.
std::string experiments_list(std::span<const Experiment> experiments);

// Four significant digits, or all of a whole number; "never" for infinity, - for what is not known.
std::string figure(double x);

}  // namespace thimble::cli

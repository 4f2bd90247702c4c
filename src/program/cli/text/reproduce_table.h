// Tables of the subcommand reproduce.
#pragma once

#include <span>
#include <string>

#include "program/reproduce/reproduce.h"

namespace thimble::cli {

// Returns a line for each experiment, and below it one for each condition and each value without a condition,
// with minimum, median and maximum over the seeds; in lines of `width` columns, at least 40.
std::string experiments_table(std::span<const ExperimentResult> results, std::size_t width);

// Returns the names, kinds and statements of experiments.
std::string experiments_list(std::span<const Experiment> experiments, std::size_t width);

}  // namespace thimble::cli

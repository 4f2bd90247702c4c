// The table of a sweep.
#pragma once

#include <string>
#include <vector>

#include "program/sweep/sweep_runs.h"

namespace thimble::cli {

// Returns a row for each setting, with means over seeds and below them standard deviations, then the runs
// that are not done; in lines of `width` columns, at least 40.
std::string sweep_table(const Sweep&, const std::vector<SweepRun>&, std::size_t width);

}  // namespace thimble::cli

// The result of a sweep for people.
#pragma once

#include <string>
#include <vector>

#include "thimble/sweep/sweep_runs.h"

namespace thimble::cli {

// What distinguishes the settings of a sweep: for each its overrides, without those that all settings share
// and with keys no longer than needed: "heads=2 lr=0.001".
std::vector<std::string> setting_labels(const Sweep&);

// A row for each setting, with the means over seeds and below them the standard deviations, then the runs
// that are not done; in lines of `width` columns, at least 40.
std::string sweep_table(const Sweep&, const std::vector<SweepRun>&, std::size_t width);

}  // namespace thimble::cli

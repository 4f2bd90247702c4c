// Results of experiments as a page for the browser.
#pragma once

#include <span>
#include <string>

#include "thimble/reproduce/verdict.h"

namespace thimble {

// One HTML file that needs no other, no script and no network: a table of verdicts, then for each experiment
// its statement, source, runs and every number on every seed.
std::string reproduce_page(std::span<const ExperimentResult> results);

}  // namespace thimble

// Renders results of experiments as an HTML page.
#pragma once

#include <span>
#include <string>

#include "program/reproduce/verdict.h"

namespace thimble {

// Returns a self-contained HTML page, without scripts: a table of verdicts, then for each experiment its
// statement, source, runs and every number on every seed.
std::string reproduce_page(std::span<const ExperimentResult> results);

}  // namespace thimble

// Renders results of experiments as Markdown.
#pragma once

#include <span>
#include <string>

#include "program/reproduce/verdict.h"

namespace thimble {

// Returns a table of verdicts, then for each experiment its statement, source, runs and every number on every
// seed.
std::string to_markdown(std::span<const ExperimentResult> results);

}  // namespace thimble

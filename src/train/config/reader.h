// Reads a config from YAML and from the command line.
#pragma once

#include <string>

#include "train/config/fields.h"
#include "train/config/report.h"

namespace thimble::config {

// Sets the variables of `root` to the values in the text of the report's file and in the files it builds on.
// Reports every problem.
void read_yaml(const std::string& text, const Section& root, Report& report);

// Sets the variable that the override "a.b.c=value" names; `number`, from 1, is which override it is.
void read_override(const std::string& argument, int number, const Section& root, Report& report);

}  // namespace thimble::config

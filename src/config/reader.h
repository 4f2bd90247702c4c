// Reading a config from YAML, the only place that knows yaml-cpp.
#pragma once

#include <string>

#include "config/fields.h"
#include "config/report.h"

namespace thimble::config {

// Sets the variables of `root` to what the text of a config file says, and reports what is wrong with it.
void read_yaml(const std::string& text, const Section& root, Report& report);

// The same for "a.b.c=value", the number-th override from 1.
void read_override(const std::string& argument, int number, const Section& root, Report& report);

}  // namespace thimble::config

// YAML as far as configs need it: nodes, and where they stand.
#pragma once

#include <yaml-cpp/yaml.h>

#include <optional>
#include <string>

#include "config/report.h"

namespace thimble::config {

// The nodes of the text of that file, or none if there is a problem with it, which is then reported.
std::optional<YAML::Node> parse_yaml(const std::string& text, int file, Report& report);

Place place_of(const YAML::Mark&, int file);

// A short description of what stands there, to follow "not": "a list", "3".
std::string found(const YAML::Node&);

}  // namespace thimble::config

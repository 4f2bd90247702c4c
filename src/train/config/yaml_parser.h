// What calls the YAML library, behind parse_yaml().
#pragma once

#include <optional>
#include <string>

#include "train/config/yaml.h"

namespace thimble::config {

// Does what parse_yaml() does for text that is UTF-8, without control characters and tabs in its indentation.
std::optional<YamlNode> parse_nodes(const std::string& text, const SourceLocation& source, Report& report);

}  // namespace thimble::config

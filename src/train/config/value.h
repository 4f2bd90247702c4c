// Reads and writes values of fields as text.
#pragma once

#include <string>
#include <string_view>

#include "train/config/fields.h"

namespace thimble::config {

// Sets the variable of a field that is not a section, if the rule of the field allows the value; returns
// whether it does. Quoted text is a name or a path, never a number. Relative paths start at `folder`, ""
// being the current one.
bool assign(const Field& field, std::string_view text, bool quoted, const std::string& folder);

// Returns the rule of a field, to follow "must be": "an integer from 1 to 8".
std::string expectation(const Field& field);

// Returns UTF-8 text as a YAML value that readers of YAML 1.1 (PyYAML) and 1.2 take for that text: as it is, or
// in double quotes where one of them would read a number, a date, a boolean or nothing, as in 1:30, on or ~.
std::string yaml_text(std::string_view text);

// Returns the value as YAML, of the same type for readers of YAML 1.1 and 1.2, which `assign` reads back; "" for an empty path, and for a section.
std::string value_text(const Field& field);

}  // namespace thimble::config

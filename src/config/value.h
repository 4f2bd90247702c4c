// Values of fields as text: reading them by the rule of the field, and writing them.
#pragma once

#include <string>
#include <string_view>

#include "config/fields.h"

namespace thimble::config {

// Sets the variable of a field that is no section, if the text is a value that its rule allows. Text that
// stood in quotes is a name or a path, never a number. Relative paths start at `folder`, "" being the current
// one.
bool assign(const Field& field, std::string_view text, bool quoted, const std::string& folder);

// What the rule of a field asks for, to follow "must be": "an integer from 1 to 8".
std::string expectation(const Field& field);

// The value as YAML, from which `assign` reads the same; "" for a path that is none. Not for sections.
std::string value_text(const Field& field);

}  // namespace thimble::config
